"""What runs of any mechanism return: numbers, vectors, categories, columns or transcripts.

An array or a list holds runs, a tuple holds columns. What a block of runs is depends on the types that the sampler
returns and never on values that are equal in length by chance, so that all blocks of one sampler agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.columns import Reader, objects, plain, shown

__all__ = ["Kind", "Outputs", "read_by", "read_outputs"]

Kind = Literal["numbers", "vectors", "categories", "columns", "transcripts"]
WIDEST = 64
"""The most numbers of a vector, and the most columns."""
LONGEST = 2.0**60
EMPTY, OF_NUMBERS, OF_CATEGORIES = "empty transcript", "transcript of numbers", "transcript"


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of runs, in the order of the runs.

    Parameters
    ----------
    kind : {"numbers", "vectors", "categories", "columns", "transcripts"}
        What one output is.
    columns : tuple of array
        Arrays with an entry for each run: float64 with nan for what is missing, or objects with None for what is
        missing. Categories are texts, transcripts are tuples of floats or of texts.
    names : tuple of str
        The names of the columns.
    """

    kind: Kind
    columns: tuple[NDArray[Any], ...]
    names: tuple[str, ...]

    @property
    def runs(self) -> int:
        """The number of runs."""
        return int(self.columns[0].size)

    def take(self, index: NDArray[Any]) -> Outputs:
        """Choose runs.

        Parameters
        ----------
        index : array
            Their places or a mask.

        Returns
        -------
        Outputs
            These runs in this order.
        """
        return Outputs(self.kind, tuple(column[index] for column in self.columns), self.names)

    def same_form(self, other: Outputs, call: str) -> None:
        """Check that other runs are of the same kind, with the same columns.

        Parameters
        ----------
        other : Outputs
            The other runs.
        call : str
            The call that returned them, the beginning of the error.

        Raises
        ------
        ParameterError
            If they are not.
        """
        if self._form() != other._form() and not self._of_transcripts(other):
            raise ParameterError(f"{call} returned {other.described}, but runs before it were {self.described}")

    @property
    def described(self) -> str:
        """Kind and columns in words."""
        if self.kind == "transcripts":
            return {EMPTY: "empty transcripts", OF_NUMBERS: "transcripts of numbers"}.get(
                self.names[0], "transcripts of categories"
            )
        if self.kind == "vectors":
            return f"vectors of {len(self.columns)} numbers"
        if self.kind != "columns":
            return self.kind
        parts = [
            f"{name} ({'categories' if column.dtype == object else 'numbers'})"
            for name, column in zip(self.names, self.columns, strict=True)
        ]
        return f"columns {', '.join(parts)}"

    @staticmethod
    def joined(parts: Sequence[Outputs]) -> Outputs:
        """Put runs one after the other.

        Parameters
        ----------
        parts : sequence of Outputs
            At least one part.

        Returns
        -------
        Outputs
            All runs.

        Raises
        ------
        ParameterError
            If the parts differ in kind or columns.
        """
        first = next((part for part in parts if part.names != (EMPTY,)), parts[0])
        for part in parts:
            first.same_form(part, "a part of the runs")
        columns = tuple(map(np.concatenate, zip(*(part.columns for part in parts), strict=True)))
        return Outputs(first.kind, columns, first.names)

    def _form(self) -> tuple[Any, ...]:
        names = ("column 1", "column 2") if self.names == ("tau", "o") else self.names
        return self.kind, names, tuple(column.dtype.kind for column in self.columns)

    def _of_transcripts(self, other: Outputs) -> bool:
        return self.kind == other.kind == "transcripts" and (EMPTY,) in (self.names, other.names)


def read_outputs(result: Any, runs: int, call: str, *, missing: bool = False) -> Outputs:
    """Read what a sampler returned.

    An array or a list of numbers, or of texts and other categories, has one entry for each run. An array of shape
    (runs, d) has a vector for each run. A list of lists or tuples has a transcript for each run. A tuple, a mapping or
    a data frame has columns with one entry for each run.

    Parameters
    ----------
    result : object
        What the sampler returned.
    runs : int
        How many runs were asked for.
    call : str
        The call in words, the beginning of every error.
    missing : bool
        Whether nan, None and masked values are an outcome of their own.

    Returns
    -------
    Outputs
        The runs.

    Raises
    ------
    ParameterError
        If the result is something else: one line, with the first wrong run.

    Examples
    --------
    >>> read_outputs([0.5, 2.0, 1.0], 3, "sampler f").kind
    'numbers'
    >>> read_outputs(([7, 3], [0, 1]), 2, "sampler f").names
    ('tau', 'o')
    >>> read_outputs([["up", "down"], ["up"]], 2, "sampler f").columns[0].tolist()
    [('up', 'down'), ('up',)]
    """
    return read_by(Reader(call, missing), result, runs)


def read_by(reader: Reader, result: Any, runs: int) -> Outputs:
    """Read runs as `read_outputs` does, with other words for errors.

    Parameters
    ----------
    reader : Reader
        The rule for missing values, and words.
    result : object
        The runs.
    runs : int
        How many there must be.

    Returns
    -------
    Outputs
        The runs.

    Raises
    ------
    ParameterError
        If the runs are something else.
    """
    if (named := _named(result, reader)) is not None:
        return _columns(named, runs, reader)
    if isinstance(result, tuple):
        return _tuple(result, runs, reader)
    array = reader.array(result)
    if isinstance(result, list):
        _enough(array.size, runs, reader)
        types = set(map(type, result))
        if any(issubclass(type_, (list, tuple)) for type_ in types):
            return _transcripts(result, reader)
        if types == {np.ndarray} and all(run.ndim == 1 for run in result):
            array = _stacked(result, reader)
    if array.ndim == 2:
        return _vectors(array, runs, reader)
    column = reader.column(array, runs)
    return Outputs("categories" if column.dtype == object else "numbers", (column,), ("output",))


def _enough(got: int, runs: int, reader: Reader) -> None:
    if got != runs:
        raise reader.error(f"must return {runs} runs, got {got} runs")


def _named(result: Any, reader: Reader) -> dict[str, Any] | None:
    """Find columns that have names: of a mapping, a data frame or a structured array."""
    if isinstance(result, np.ndarray):
        keys = list(result.dtype.names or ())
        return {key: result[key] for key in keys} if keys and result.ndim == 1 else None
    if isinstance(result, Mapping):
        keys = list(result)
    elif hasattr(result, "columns") and hasattr(result, "__getitem__"):
        keys = list(result.columns)
    else:
        return None
    if len({str(key) for key in keys}) < len(keys):
        raise reader.error("returned two columns of the same name")
    if not keys:
        raise reader.error("returned no columns")
    return {str(key): result[key] for key in keys}


def _columns(named: Mapping[str, Any], runs: int, reader: Reader) -> Outputs:
    if len(named) > WIDEST:
        raise reader.error(f"must return at most {WIDEST} columns, got {len(named)}")
    return Outputs("columns", tuple(reader.column(x, runs, name) for name, x in named.items()), tuple(named))


def _tuple(result: tuple[Any, ...], runs: int, reader: Reader) -> Outputs:
    """Read columns without names. Two that can be a running time and a decision are called tau and o."""
    if not result:
        raise reader.error("returned an empty tuple; a tuple holds columns")
    given = getattr(result, "_fields", None)
    names = given or [f"column {k}" for k in range(1, len(result) + 1)]
    if any(not hasattr(column, "__len__") for column in result):
        wrong = next(column for column in result if not hasattr(column, "__len__"))
        raise reader.error(f"must return columns of {runs} runs in a tuple, got {shown(wrong)}")
    read = _columns(dict(zip(names, result, strict=True)), runs, reader)
    if given is None and len(result) == 2 and _tau_and_o(*read.columns):
        return Outputs("columns", read.columns, ("tau", "o"))
    return read


def _tau_and_o(tau: NDArray[Any], o: NDArray[Any]) -> bool:
    if object in (tau.dtype, o.dtype):
        return False
    whole = (tau >= 0) & (tau <= LONGEST) & (tau == np.rint(tau))
    return bool(np.all(whole) and np.all((o == 0) | (o == 1)))


def _stacked(result: list[NDArray[Any]], reader: Reader) -> NDArray[Any]:
    size = result[0].size
    for run, vector in enumerate(result):
        if vector.size != size:
            lists = "vectors must have one length; return lists for transcripts"
            raise reader.at(f"returned {vector.size} numbers after {size} ({lists})", run)
    return np.stack(result)


def _vectors(array: NDArray[Any], runs: int, reader: Reader) -> Outputs:
    got, size = array.shape
    if got != runs or not 1 <= size <= WIDEST:
        wanted = f"a row for each of {runs} runs and at most {WIDEST} columns"
        raise reader.error(f"must return {wanted}, got an array of shape {array.shape}")
    names = tuple(f"x[{k}]" for k in range(size))
    columns = tuple(reader.column(np.ascontiguousarray(array[:, k]), runs, name) for k, name in enumerate(names))
    if any(column.dtype == object for column in columns):
        raise reader.error("returned an array of categories with two axes; return a tuple of columns")
    return Outputs("vectors", columns, names)


def _transcripts(result: list[Any], reader: Reader) -> Outputs:
    """Read lists of entries, all numbers or all categories. A missing transcript is None."""
    for run, transcript in enumerate(result):
        if isinstance(transcript, (list, tuple)) or (isinstance(transcript, np.ndarray) and transcript.ndim == 1):
            continue
        if not (transcript is None and reader.missing):
            raise reader.at(f"returned transcripts and {shown(transcript)}, which is none,", run)
    there = [() if transcript is None else transcript for transcript in result]
    flat = list(chain.from_iterable(there))
    entries = _entries(there, flat, reader)
    numeric, values = entries.dtype != object, plain(entries).tolist()
    stops = np.cumsum([len(transcript) for transcript in there]).tolist()
    tuples = [tuple(values[stop - len(x) : stop]) for stop, x in zip(stops, there, strict=True)]
    column = objects(None if given is None else made for given, made in zip(result, tuples, strict=True))
    name = EMPTY if not flat else OF_NUMBERS if numeric else OF_CATEGORIES
    return Outputs("transcripts", (column,), (name,))


def _entries(there: list[Any], flat: list[Any], reader: Reader) -> NDArray[Any]:
    """Read all entries together. If one is wrong, find the run that it belongs to."""
    try:
        return reader.entries(flat)
    except ParameterError as error:
        kinds = set()
        for run, transcript in enumerate(there):
            found = Reader(f"{reader.call}, {reader.numbered(run)},", reader.missing, "entry")
            kinds.add(found.entries(list(transcript), " in a transcript").dtype.kind if len(transcript) else "")
            if {"f", "O"} <= kinds:
                raise reader.at("mixed numbers and other entries in transcripts", run) from error
        raise
