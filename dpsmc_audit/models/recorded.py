"""Recorded samples: outcomes or traces in a file, read as a stream in the order in which they stand there.

`dpsmc_audit.verify.order` puts them into random order for a verification.

========== ============================================================================================================
outcomes   one 0 or 1 a line, without a header; or, with `column`, that column of a CSV file with a header
traces     CSV with the header ``trace,time,<signals>`` in any order, a line for each sample of a trace. The lines of a
           trace stand together, its times start at 0 and are equally spaced, alike for all traces; traces may differ
           in length. The formula says which signals are read
Parquet    the same columns (a file that ends in .parquet; needs the extra ``parquet``)
========== ============================================================================================================
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.models.sources import BATCH, Batch, SourceError, evaluated
from dpsmc_audit.stl import Formula
from dpsmc_audit.stl.traces import Traces

__all__ = ["Recorded"]

Record = tuple[int, list[Any]]
"""The number of a line (a row, in Parquet) and the values of the columns that were asked for."""

MOST_VALUES = 2**17
"""Values of a signal that are kept until they are evaluated together."""
SPACING = 1e-6
"""By how much of a step a time may be off: times are written with few digits."""


@dataclass(frozen=True)
class Recorded:
    """The samples of a file; each is there once, whatever the seed. A `step` that is given must be that of the traces.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "outcomes.csv"
    >>> _ = path.write_text("1\\n0\\n1\\n")
    >>> [batch.bits.tolist() for batch in Recorded(str(path)).batches(seed=0)]
    [[True, False, True]]
    """

    name: ClassVar[str] = "recorded"
    repeatable: ClassVar[bool] = False
    path: str
    column: str | None = None
    formula: Formula | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        both = self.column is not None and self.formula is not None
        require(not both, "model.column names outcomes: it has no meaning with a formula, which reads traces")
        require(self.step is None or self.formula is not None, "model.step is for traces: give a formula too")
        require(self.step is None or 0.0 < self.step < math.inf, f"model.step must be positive, got {self.step}")
        require(Path(self.path).exists(), f"cannot read {self.path}: No such file or directory")
        if Path(self.path).is_file():  # and no pipe, whose beginning would be lost
            for _ in self._records():  # it can be read and has the columns; whether its lines are good shows later
                break

    def batches(self, seed: int) -> Iterator[Batch]:
        yield from self._outcomes() if self.formula is None else self._traces(self.formula)

    # --- outcomes ---

    def _outcomes(self) -> Iterator[Batch]:
        bits: list[bool] = []
        try:
            for number, (value,) in self._checked():
                bits.append(self._bit(number, f"{value}".strip()))
                if len(bits) == BATCH:
                    yield Batch(np.array(bits))
                    bits = []
        except SourceError as error:
            yield from _those(bits)
            raise error from None
        yield from _those(bits)

    def _bit(self, number: int, text: str) -> bool:
        if text not in ("0", "1", "False", "True"):
            hint = " (model.column=NAME names one of several columns)" if "," in text else ""
            raise self._at(number, f"outcomes must be 0 or 1{hint}", f", got {text[:40]!r}")
        return text in ("1", "True")

    # --- traces ---

    def _traces(self, formula: Formula) -> Iterator[Batch]:
        """Neighbouring traces of one length are evaluated together."""
        step, waiting = self.step or 0.0, _Waiting(formula.signals)
        grouped = self._grouped()
        while True:
            try:
                trace = next(grouped, None)
                if trace is not None:
                    step = step or trace.spacing()
                    self._check(trace, formula, step)
            except SourceError as error:
                yield from self._evaluated(formula, step, waiting)
                raise error from None
            if trace is None or trace.points != waiting.points or waiting.full:
                yield from self._evaluated(formula, step, waiting)
                waiting = _Waiting(formula.signals)
            if trace is None:
                return
            waiting.add(trace)

    def _grouped(self) -> Iterator[_Trace]:
        """Traces one by one; a line that cannot be read takes the trace it stands in with it."""
        current: _Trace | None = None
        for number, values in self._checked():
            if current is None or values[0] != current.key:
                if current is not None:
                    yield current
                current = _Trace(values[0])
            current.add(number, values[1:])
        if current is not None:
            yield current

    def _check(self, trace: _Trace, formula: Formula, step: float) -> None:
        """Numbers, finite, in equal steps, and as many as the formula looks ahead."""
        if trace.wrong is not None:
            raise self._at(*trace.wrong)
        if not step > 0.0:
            raise self._at(trace.lines[0], "the times of a trace must increase, and a trace needs two of them")
        off = np.abs(np.array(trace.times) / step - np.arange(trace.points)) > SPACING * np.arange(1, trace.points + 1)
        if np.any(off):
            line, times = trace.lines[int(np.argmax(off))], f"0, {step:.6g}, {2 * step:.6g}, ..."
            error = self._at(line, f"times must be {times}, and the lines of a trace together")
            if self.step is None:  # it was read from a trace: a release's error may not hold it
                known = "times must start at 0 in equal steps, and the lines of a trace together"
                error.place = self._at(line, known).place
            raise error
        try:
            formula.check(Traces(step, dict.fromkeys(formula.signals or ("time",), np.empty((0, trace.points)))))
        except ParameterError as error:
            short = (trace.points - 1) * step < formula.horizon * (1.0 - SPACING)
            what = "is too short" if short else "does not fit the formula"
            raise self._at(trace.lines[0], f"the trace that begins here {what}", f": {error}") from None

    def _evaluated(self, formula: Formula, step: float, waiting: _Waiting) -> Iterator[Batch]:
        if waiting.values:
            place = "the trace that begins here does not fit the formula"
            yield from evaluated(formula, waiting.traces(step), lambda k: self._at(waiting.lines[k], place).place)

    # --- lines ---

    def _at(self, number: int, what: str, detail: str = "") -> SourceError:
        unit = "row" if self._is_parquet else "line"
        return SourceError(f"{self.path}, {unit} {number}: {what}", detail)

    @property
    def _is_parquet(self) -> bool:
        return Path(self.path).suffix.lower() in (".parquet", ".pq")

    @property
    def _columns(self) -> list[str] | None:
        """Columns that are read; None for a file of bare outcomes."""
        if self.formula is not None:
            return ["trace", "time", *self.formula.signals]
        return None if self.column is None else [self.column]

    def _checked(self) -> Iterator[Record]:
        number = 0
        for number, values in self._records():
            yield number, values
        if number == 0:
            raise SourceError(f"{self.path} holds no samples")

    def _records(self) -> Iterator[Record]:
        try:
            yield from self._parquet() if self._is_parquet else self._csv()
        except OSError as error:
            raise SourceError(f"cannot read {self.path}", f": {_in_one_line(error.strerror or error)}") from None

    def _csv(self) -> Iterator[Record]:
        # a byte that is no text is a bad value where it stands, and is met there: files are decoded in chunks
        with Path(self.path).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            if self._columns is None:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield number, [line]
                return
            reader = csv.reader(file, strict=True)
            try:
                header = [name.strip() for name in next(reader, [])]
                places = self._places(header)
                for row in reader:
                    if not row:
                        continue
                    if len(row) != len(header):
                        raise self._at(reader.line_num, f"expected {len(header)} values", f", got {len(row)}")
                    yield reader.line_num, [row[place] for place in places]
            except csv.Error as error:
                raise self._at(reader.line_num, "not CSV", f": {error}") from None

    def _parquet(self) -> Iterator[Record]:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ParameterError(f"{self.path}: Parquet needs pyarrow: pip install 'dpsmc-audit[parquet]'") from None
        number = 0
        try:
            for values in self._rows(parquet.ParquetFile(self.path)):
                number += 1
                yield number, values
        except (pyarrow.ArrowException, ValueError, OverflowError) as error:
            if isinstance(error, ParameterError):
                raise
            what = f"{self.path} is not a Parquet file" if number == 0 else self._at(number + 1, "cannot be read").place
            raise SourceError(what, f": {_in_one_line(error)}") from None

    def _rows(self, file: Any) -> Iterator[list[Any]]:
        """The columns of a Parquet file that are asked for, row by row."""
        header = list(file.schema_arrow.names)
        if self._columns is None and len(header) != 1:
            raise SourceError(f"{self.path}: model.column must name one of its columns", f", {header}")
        wanted = [header[place] for place in self._places(header)] if self._columns is not None else header
        for part in file.iter_batches(batch_size=4096, columns=wanted):
            columns = [part.column(name).to_pylist() for name in wanted]
            yield from (list(values) for values in zip(*columns, strict=True))

    def _places(self, header: list[str]) -> list[int]:
        for name in self._columns or []:
            known = ", ".join(f"{column[:40]!r}"[1:-1] for column in header[:20]) or "none"
            if header.count(name) != 1:
                what = "has no column" if name not in header else "has several columns"
                raise SourceError(f"{self.path} {what} {name!r}", f" (its columns: {known})")
        return [header.index(name) for name in self._columns or []]


def _in_one_line(error: object) -> str:
    return " ".join(f"{error}".split())


def _those(bits: list[bool]) -> Iterator[Batch]:
    if bits:
        yield Batch(np.array(bits))


class _Trace:
    """The lines of one trace; the first mistake in them is kept until the trace is looked at."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.times: list[float] = []
        self.lines: list[int] = []
        self.values: list[list[float]] = []
        self.wrong: tuple[int, str, str] | None = None

    @property
    def points(self) -> int:
        return len(self.times)

    def add(self, number: int, values: list[Any]) -> None:
        if self.wrong is not None:
            return
        try:
            time, *signals = (float(value) for value in values)
        except (TypeError, ValueError):
            self.wrong = number, "samples must be numbers", f", got {values}"
            return
        if not all(math.isfinite(value) for value in (time, *signals)):
            self.wrong = number, "samples must be finite", f", got {values}"
            return
        self.times.append(time)
        self.lines.append(number)
        self.values.append(signals)

    def spacing(self) -> float:
        return self.times[1] - self.times[0] if self.points > 1 else 0.0


class _Waiting:
    """Traces of one length that will be evaluated together."""

    def __init__(self, signals: tuple[str, ...]) -> None:
        self.signals, self.points = signals, 0
        self.values: list[NDArray[np.float64]] = []
        self.lines: list[int] = []

    @property
    def full(self) -> bool:
        return len(self.values) >= BATCH or len(self.values) * self.points >= MOST_VALUES

    def add(self, trace: _Trace) -> None:
        self.points = trace.points
        self.values.append(np.array(trace.values, np.float64).reshape(trace.points, -1))
        self.lines.append(trace.lines[0])

    def traces(self, step: float) -> Traces:
        cube = np.array(self.values)
        signals = {name: np.ascontiguousarray(cube[:, :, place]) for place, name in enumerate(self.signals)}
        return Traces(step, signals or {"time": np.zeros(cube.shape[:2])})
