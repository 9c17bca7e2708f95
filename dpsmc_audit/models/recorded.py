"""Recorded samples: outcomes or traces in a file, read as a stream in the order of the file.

For a verification `dpsmc_audit.verify.order` puts them into random order.

========== ============================================================================================================
outcomes   one 0 or 1 a line, without a header; or, with `column`, that column of a CSV file with a header
traces     CSV with the header ``trace,time,<signals>`` in any order and a line for each sample of a trace. The lines of
           a trace stand together. Its times start at 0 and are equally spaced. All traces have one step, but they may
           differ in length. The formula decides which signals are read
Parquet    the same columns (a file that ends in .parquet; needs the extra ``parquet``)
========== ============================================================================================================
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TextIO, TypeVar

import numpy as np

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.models.sources import BATCH, Batch, SourceError, evaluated
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.stl import Formula
from dpsmc_audit.stl.traces import Traces

__all__ = ["Recorded"]

Record = tuple[int, list[Any]]
"""The number of a line (a row, in Parquet) and the values of the columns that are read."""
Sample = TypeVar("Sample")

MOST_VALUES = 2**17
"""Values of a signal that are kept until they are evaluated together. It bounds the memory for long traces."""
LONGEST_LINE = 2**20
"""In letters."""
SPACING = 1e-6
"""By how much of a step a time may be off, because times are written with few digits."""


class _Trace(NamedTuple):
    """The line that a trace begins at, its step, and its times and signals in columns."""

    line: int
    step: float
    values: FloatArray


@dataclass(frozen=True)
class Recorded:
    """The samples of a file. Each can be used once, whatever the seed.

    Parameters
    ----------
    path : str
        The file.
    column : str, optional
        The column of the outcomes. Without it a file of outcomes has no header. Not for traces.
    formula : Formula, optional
        The specification. With it the file holds traces.
    step : float, optional
        The step of the traces in seconds. The file must have it. Without it, the step is read from the first trace.

    Raises
    ------
    ParameterError
        If the file cannot be read or lacks a column.

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
        path = Path(self.path)
        require(path.exists(), f"cannot read {self.path}: No such file or directory")
        if path.is_char_device() or path.is_block_device():  # such as /dev/zero, which has no end
            raise SourceError(f"{self.path} is a device")
        if path.is_file():  # reading the beginning of a pipe would lose it
            next(self._records(), None)

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yield the samples in the order of the file.

        Parameters
        ----------
        seed : int
            It is not used: the file holds the samples.

        Yields
        ------
        Batch
            The next samples.

        Raises
        ------
        SourceError
            If a sample cannot be read, after all samples before it, or if the file holds no samples.
        """
        empty = True
        for batch in self._outcomes() if self.formula is None else self._judged(self.formula):
            empty = False
            yield batch
        if empty:
            raise SourceError(f"{self.path} holds no samples")

    def _outcomes(self) -> Iterator[Batch]:
        texts = ((number, f"{value}".strip()) for number, (value,) in self._records())
        for bits in _gathered((self._bit(number, text) for number, text in texts), lambda _: 1):
            yield Batch(np.array(bits))

    def _bit(self, number: int, text: str) -> bool:
        if text not in ("0", "1", "False", "True"):
            hint = " (model.column=NAME names one of several columns)" if "," in text else ""
            raise self._at(number, "outcomes must be 0 or 1", f"{hint}, got {text[:40]!r}")
        return text in ("1", "True")

    def _judged(self, formula: Formula) -> Iterator[Batch]:
        """Evaluate neighbouring traces of one length together."""
        place = "the trace that begins here does not fit the formula"
        for some in _gathered(self._traces(formula), lambda trace: len(trace.values)):
            lines, cube = [trace.line for trace in some], np.array([trace.values for trace in some])
            signals = {name: np.ascontiguousarray(cube[:, :, k]) for k, name in enumerate(formula.signals, start=1)}
            traces = Traces(some[0].step, signals or {"time": cube[:, :, 0]})
            yield from evaluated(formula, traces, lambda k, lines=lines: self._at(lines[k], place).place)  # type: ignore[misc]

    def _traces(self, formula: Formula) -> Iterator[_Trace]:
        """Yield traces one by one. A line that cannot be read fails its whole trace."""
        step = self.step
        for _, records in groupby(self._records(), lambda record: record[1][0]):
            trace = self._trace(list(records), formula, step)
            step = trace.step
            yield trace

    def _trace(self, records: list[Record], formula: Formula, step: float | None) -> _Trace:
        """Check that a trace holds finite numbers in equal steps, and is as long as the formula looks ahead."""
        rows, first = [], records[0][0]
        for number, (_, *values) in records:
            try:
                row = [float(value) for value in values]
            except (TypeError, ValueError):
                raise self._at(number, "samples must be numbers", f", got {values}") from None
            if not all(map(math.isfinite, row)):
                raise self._at(number, "samples must be finite", f", got {values}")
            rows.append(row)
        table, count = np.array(rows), np.arange(len(rows))
        if step is None:
            step = rows[1][0] - rows[0][0] if len(rows) > 1 else 0.0
        if not step > 0.0:
            raise self._at(first, "the times of a trace must increase, and a trace needs two of them")
        off = np.abs(table[:, 0] / step - count) > SPACING * (count + 1)
        if np.any(off):
            raise self._off_time(records[int(np.argmax(off))][0], step)
        try:
            formula.check(Traces(step, dict.fromkeys(formula.signals or ("time",), np.empty((0, len(rows))))))
        except ParameterError as error:
            short = (len(rows) - 1) * step < formula.horizon * (1.0 - SPACING)
            what = "is too short" if short else "does not fit the formula"
            raise self._at(first, f"the trace that begins here {what}", f": {error}") from None
        return _Trace(first, step, table)

    def _off_time(self, number: int, step: float) -> SourceError:
        together = "and the lines of a trace together"
        error = self._at(number, f"times must be 0, {step:.6g}, {2 * step:.6g}, ..., {together}")
        if self.step is None:  # the step was read from private data, so a release must not show it
            error.place = self._at(number, f"times must start at 0 in equal steps, {together}").place
        return error

    def _at(self, number: int, what: str, detail: str = "") -> SourceError:
        unit = "row" if self._is_parquet else "line"
        return SourceError(f"{self.path}, {unit} {number}: {what}", detail)

    @property
    def _is_parquet(self) -> bool:
        return Path(self.path).suffix.lower() in (".parquet", ".pq")

    @property
    def _columns(self) -> list[str] | None:
        """The columns to read, or None for a file of bare outcomes."""
        if self.formula is not None:
            return ["trace", "time", *self.formula.signals]
        return None if self.column is None else [self.column]

    def _records(self) -> Iterator[Record]:
        try:
            yield from self._parquet() if self._is_parquet else self._csv()
        except OSError as error:
            raise SourceError(f"cannot read {self.path}", f": {_in_one_line(error.strerror or error)}") from None

    def _csv(self) -> Iterator[Record]:
        # A byte that is not text becomes a bad value of its line. Files are decoded in chunks, so an error of the
        # decoder would come too early.
        with Path(self.path).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            lines = self._lines(file)
            if self._columns is None:
                yield from ((number, [line]) for number, line in enumerate(lines, start=1) if line.strip())
                return
            reader = csv.reader(lines, strict=True)
            try:
                header = [name.strip() for name in next(reader, [])]
                places = [header.index(name) for name in self._found(header)]
                for row in filter(None, reader):
                    if len(row) != len(header):
                        raise self._at(reader.line_num, f"expected {len(header)} values", f", got {len(row)}")
                    yield reader.line_num, [row[place] for place in places]
            except csv.Error as error:
                raise self._at(reader.line_num, "not CSV", f": {error}") from None

    def _lines(self, file: TextIO) -> Iterator[str]:
        """Yield the lines of a file. A line without an end would fill the memory."""
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE:
                raise self._at(number, "the line is too long")
            yield line

    def _parquet(self) -> Iterator[Record]:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ParameterError(f"{self.path}: Parquet needs pyarrow: pip install 'dpsmc-audit[parquet]'") from None
        number = 0
        try:
            file = parquet.ParquetFile(self.path)
            wanted = self._found(file.schema_arrow.names)
            for part in file.iter_batches(batch_size=4096, columns=wanted):
                for values in zip(*(part.column(name).to_pylist() for name in wanted), strict=True):
                    number += 1
                    yield number, list(values)
        except (pyarrow.ArrowException, ValueError, OverflowError) as error:
            if isinstance(error, ParameterError):
                raise
            what = f"{self.path} is not a Parquet file" if number == 0 else self._at(number + 1, "cannot be read").place
            raise SourceError(what, f": {_in_one_line(error)}") from None

    def _found(self, header: list[str]) -> list[str]:
        """Return the columns to read. Each must be in the header once."""
        if self._columns is None:
            if len(header) != 1:
                raise SourceError(f"{self.path}: model.column must name one of its columns", f", {header}")
            return header
        for name in self._columns:
            if header.count(name) != 1:
                known = ", ".join(f"{column[:40]!r}"[1:-1] for column in header[:20]) or "none"
                what = "has several columns" if name in header else "has no column"
                raise SourceError(f"{self.path} {what} {name!r}", f" (its columns: {known})")
        return self._columns


def _gathered(samples: Iterator[Sample], length: Callable[[Sample], int]) -> Iterator[list[Sample]]:
    """Collect neighbours of one length. An error comes after all samples before it."""
    some: list[Sample] = []
    try:
        for sample in samples:
            if some and length(sample) != length(some[0]):
                yield some
                some = []
            some.append(sample)
            if len(some) >= BATCH or len(some) * length(sample) >= MOST_VALUES:
                yield some
                some = []
    except SourceError as error:
        if some:
            yield some
        raise error from None
    if some:
        yield some


def _in_one_line(error: object) -> str:
    return " ".join(f"{error}".split())
