"""Runs of any output as a few real numbers each, the views, in which an auditor looks for evidence.

What is computed from an output alone (sums, lengths, largest entries) is in `derived`; how it becomes a finite number
is in `scales`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.derived import Entries, Table, derived, together
from dpsmc_audit.evidence.outputs import OF_NUMBERS, Outputs
from dpsmc_audit.evidence.scales import FEW, Category, Number, Pair, Scale, scale_of

__all__ = ["Views"]

FloatArray = NDArray[np.float64]
MOST_VIEWS, MOST_SINGLE, MOST_COORDINATES = 12, 8, 16
ENTRIES = 8
"""Entries of a transcript that are features."""
TOGETHER = "all columns"
HUGE = 1e30
"""Features are clipped here: predictors may compute in single precision."""


class Views:
    """Turns runs into real numbers, one row for each view.

    The views are fixed by the first runs. A category has the number of its first appearance, so a run's numbers depend
    on it and on earlier runs only: encode runs in the order in which they are used.

    Parameters
    ----------
    form : Outputs
        The first runs.

    Examples
    --------
    >>> from dpsmc_audit.evidence.outputs import read_outputs
    >>> runs = read_outputs((np.arange(20), np.arange(20) % 2), 20, "sampler f")
    >>> views = Views(runs)
    >>> views.names
    ('tau', 'o then tau')
    >>> rows = views.encode(runs)
    >>> views.named(0, -np.inf, 7.0), views.named(1, rows[1, 1], rows[1, 9])
    ('tau <= 6', 'o = 1 and 1 <= tau <= 8')
    """

    def __init__(self, form: Outputs) -> None:
        self._form = form.take(np.arange(0))
        table = derived(form, self._numeric)
        self._scales: list[Scale] = _scales(form, table)
        self._absent = [name for name in _marked(form) if bool(np.any(np.isnan(table[name])))]
        self._hot = [Category(name, FEW) for name, column in table.items() if column.dtype == object]
        if form.kind == "transcripts":
            self._hot = [] if self._numeric else [Category("entry")]

    @property
    def _numeric(self) -> bool:
        return self._form.names == (OF_NUMBERS,)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(scale.name for scale in self._scales)

    @property
    def times(self) -> bool:
        """Whether the runs are (tau, o): every view then sorts running times."""
        return self._form.names == ("tau", "o")

    def encode(self, outputs: Outputs) -> FloatArray:
        """Turn runs into numbers. New categories are remembered.

        Parameters
        ----------
        outputs : Outputs
            The next runs.

        Returns
        -------
        array
            Finite numbers, a row for each view and a column for each run.

        Raises
        ------
        ParameterError
            If the runs are not of the form of the first.
        """
        outputs = self._checked(outputs)
        table = derived(outputs, self._numeric)
        if any(scale.name == TOGETHER for scale in self._scales) and TOGETHER not in table:
            table[TOGETHER] = together(outputs)
        rows = np.empty((len(self._scales), outputs.runs))
        for row, scale in zip(rows, self._scales, strict=True):
            row[:] = scale.encode(table)
        return rows

    def named(self, view: int, low: float, high: float) -> str:
        """Say in words which runs a range of a view holds.

        Parameters
        ----------
        view : int
            The view.
        low, high : float
            The ends of ``low <= view < high``; they may be infinite.

        Returns
        -------
        str
            The event.
        """
        return self._scales[view].words(float(low), float(high))

    def features(self, outputs: Outputs) -> FloatArray:
        """Turn runs into features for a classifier.

        Numbers are themselves, categories have a column for each of the first 16. A transcript has its length, its
        first 8 entries, its last and its sum. What is missing is 0; if the first runs had some, a column marks it.

        Parameters
        ----------
        outputs : Outputs
            The next runs.

        Returns
        -------
        array
            Finite numbers, a row for each run.

        Raises
        ------
        ParameterError
            If the runs are not of the form of the first.
        """
        outputs = self._checked(outputs)
        if outputs.kind == "transcripts":
            columns = self._of_transcripts(Entries(outputs.columns[0], self._numeric))
        else:
            columns = self._of_columns(dict(zip(outputs.names, outputs.columns, strict=True)))
        return np.clip(np.nan_to_num(np.column_stack(columns), posinf=HUGE, neginf=-HUGE), -HUGE, HUGE)

    def _checked(self, outputs: Outputs) -> Outputs:
        """Check the form of runs, and give their columns the names of the first."""
        self._form.same_form(outputs, "a later call")
        return Outputs(outputs.kind, outputs.columns, self._form.names)

    def _of_transcripts(self, entries: Entries) -> list[FloatArray]:
        codes = None if self._numeric else self._hot[0].codes.of(entries.flat).astype(np.float64)
        marks = [entries.absent.astype(np.float64) for _ in self._absent]
        return [*entries.features(codes, ENTRIES), *marks]

    def _of_columns(self, table: Table) -> list[FloatArray]:
        columns = [column for column in table.values() if column.dtype != object]
        columns += [np.isnan(table[name]).astype(np.float64) for name in self._absent]
        for category in self._hot:
            codes = category.codes.of(table[category.name])
            columns += [(codes == code).astype(np.float64) for code in range(FEW)]
        return columns

    def saved(self) -> dict[str, NDArray[np.int64]]:
        """Return the state, for a checkpoint.

        Returns
        -------
        dict
            One array by the name ``views``.
        """
        form = self._form
        state = {
            "kind": form.kind,
            "names": form.names,
            "types": [column.dtype.kind for column in form.columns],
            "scales": [scale.saved() for scale in self._scales],
            "absent": self._absent,
            "hot": [category.saved() for category in self._hot],
        }
        text = json.dumps(state).encode()
        return {"views": np.frombuffer(text.ljust(-8 * (-len(text) // 8)), np.dtype("<i8")).astype(np.int64)}

    @classmethod
    def restore(cls, saved: Mapping[str, Any]) -> Views:
        """Make the views of a saved state.

        Parameters
        ----------
        saved : mapping
            What `saved` returned; other names in it are ignored.

        Returns
        -------
        Views
            Views that encode further runs as the saved ones would have.

        Raises
        ------
        ValueError, KeyError
            If it is no such state.
        """
        state = json.loads(np.asarray(saved["views"], "<i8").tobytes())
        columns = tuple(np.empty(0, np.float64 if kind == "f" else object) for kind in state["types"])
        made = cls.__new__(cls)
        made._form = Outputs(state["kind"], columns, tuple(state["names"]))
        made._scales = [scale_of(scale) for scale in state["scales"]]
        made._absent = state["absent"]
        made._hot = [scale for scale in map(scale_of, state["hot"]) if isinstance(scale, Category)]
        return made


def _numbers(form: Outputs) -> list[str]:
    """Find the columns of the outputs that are numbers."""
    return [name for name, column in zip(form.names, form.columns, strict=True) if column.dtype != object]


def _marked(form: Outputs) -> list[str]:
    """Find the columns that have a feature of their own for what is missing."""
    return ["length"] if form.kind == "transcripts" else _numbers(form)


def _scales(form: Outputs, table: Table) -> list[Scale]:
    if form.kind == "columns":
        return _of_columns(form, table)
    names = [name for name in table if not name.startswith("x[")]
    coordinates = [name for name in form.names[:MOST_COORDINATES] if form.kind == "vectors"]
    return [_single(name, table[name]) for name in (*coordinates, *names)]


def _single(name: str, column: NDArray[Any]) -> Number | Category:
    return Category(name) if column.dtype == object else Number(name)


def _of_columns(form: Outputs, table: Table) -> list[Scale]:
    """Choose views of columns: numbers by themselves, and each column of few values before the first number."""
    many = {name: _has_many(table[name]) for name in form.names}
    numbers = _numbers(form)
    first = next((name for name in numbers if many[name]), next(iter(numbers or form.names)))
    leads = [name for name in form.names if name != first and not (many[name] and name in numbers)]
    single = [name for name in form.names if name == first or many[name]]
    alone: list[Scale] = [_single(name, table[name]) for name in single]
    pairs: list[Scale] = [Pair(Category(name, FEW), _single(first, table[first])) for name in leads]
    if len(leads) > 1 and len(leads) == len(form.names) - 1 and not many[first]:
        pairs.insert(0, Category(TOGETHER))
    return [*alone[:MOST_SINGLE], *pairs, *alone[MOST_SINGLE:]][:MOST_VIEWS]


def _has_many(column: NDArray[Any]) -> bool:
    """Guess from a handful of runs whether a column has more than a few values.

    Numbers have few values if all so far are small whole numbers, categories if one came twice or if there is one run.
    """
    if column.dtype == object:
        return bool(1 < column.size == len(set(column.tolist())))
    there = column[~np.isnan(column)]
    return bool(np.any((np.abs(there) > FEW) | (there != np.rint(there))))
