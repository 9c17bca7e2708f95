"""One column of a sampler's runs: numbers as float64, categories as texts, or one line that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import compress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.targets import said

__all__ = ["Reader", "objects", "plain", "shown"]

Column = NDArray[Any]
_PLAIN = {bool, int, float, np.bool_, np.float64, np.float32, np.int64, np.int32}
"""Types that NumPy turns into floats without loss of meaning; other numbers are converted one by one."""
_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Reader:
    """What every check needs: the call to blame and the rule for missing values.

    Parameters
    ----------
    call : str
        The beginning of every error.
    missing : bool
        Whether nan, None and masked values are an outcome of their own.
    unit, first : str, int
        What is counted where an error says which one is wrong, and the number of the first.
    verb : str
        What the call did.
    """

    call: str
    missing: bool = False
    unit: str = "run"
    first: int = 0
    verb: str = "returned"

    def error(self, problem: str) -> ParameterError:
        """Make an error of one line.

        Parameters
        ----------
        problem : str
            What is wrong, as a clause that follows the call.

        Returns
        -------
        ParameterError
            The error.
        """
        if self.verb != "returned":
            problem = problem.replace("returned", self.verb, 1).replace("must return", "must hold", 1)
        return ParameterError(" ".join(f"{self.call} {problem}".split()))

    def at(self, problem: str, run: int) -> ParameterError:
        """Make an error that names the first wrong run.

        Parameters
        ----------
        problem : str
            What is wrong.
        run : int
            Its place, counted from 0.

        Returns
        -------
        ParameterError
            The error.
        """
        return self.error(f"{problem} at {self.numbered(run)}")

    def numbered(self, run: int) -> str:
        """Name a run in an error.

        Parameters
        ----------
        run : int
            Its place, counted from 0.

        Returns
        -------
        str
            Its name.
        """
        return f"{self.unit} {self.first + run}{'' if self.first else ' (counted from 0)'}"

    def array(self, values: Any) -> NDArray[Any]:
        """Convert array-likes. Lists become arrays of objects, so that NumPy does not turn numbers into texts.

        Parameters
        ----------
        values : array-like
            What a sampler returned, or one column of it.

        Returns
        -------
        array
            The array; masked values are None.

        Raises
        ------
        ParameterError
            If there is no array in it.
        """
        if isinstance(values, (list, tuple)):
            return objects(values)
        if isinstance(values, (str, bytes, set, frozenset)) or hasattr(values, "__next__"):
            raise self.error(f"must return an array, a list of runs or a tuple of columns, got {_kind(values)}")
        try:
            array = np.asarray(values)
        except Exception as error:
            raise self.error(f"returned a {_kind(values)} that is no array: {said(error)}") from error
        if np.ma.isMaskedArray(values) and np.any(np.ma.getmaskarray(values)):
            array = array.astype(object)
            array[np.ma.getmaskarray(values)] = None
        return array

    def column(self, values: Any, runs: int, what: str = "") -> Column:
        """Read one number or one category of every run.

        Parameters
        ----------
        values : array-like
            The values, one for each run.
        runs : int
            How many runs there must be.
        what : str
            How the column is called in errors; empty if there is only one.

        Returns
        -------
        array
            Numbers as float64 with nan for missing ones, or categories as an array of texts with None for missing ones.

        Raises
        ------
        ParameterError
            If the values are something else.
        """
        array, of = self.array(values), f" in {what}" if what else ""
        if array.ndim != 1 or array.size != runs:
            got = f"{array.size} runs" if array.ndim == 1 else f"an array of shape {array.shape}"
            got = got if array.ndim else shown(array.item())
            raise self.error(f"must return {runs} runs{f' as {what}' if what else ''}, got {got}")
        kind = array.dtype.kind
        if kind in "biuf":
            return self._numbers(array, of)
        if kind in "UST":
            array, kind = array.astype(object), "O"
        if kind == "O":
            return self._objects(array, of)
        raise self.error(f"returned {_wrong(array.dtype)}{of}")

    def entries(self, values: list[Any], of: str = "") -> Column:
        """Read numbers or categories from a list of any length.

        Parameters
        ----------
        values : list
            The values.
        of : str
            Where they stand, for errors.

        Returns
        -------
        array
            As from `column`.

        Raises
        ------
        ParameterError
            If they are neither.
        """
        return self._objects(objects(values), of)

    def _numbers(self, array: NDArray[Any], of: str) -> NDArray[np.float64]:
        numbers = array.astype(np.float64) + 0.0  # there is one zero
        self._declared(np.isnan(numbers), of, "nan")
        return numbers

    def _declared(self, absent: NDArray[np.bool_], of: str, what: str) -> None:
        if not self.missing and np.any(absent):
            hint = " (missing values must be declared as an outcome)"
            raise self.at(f"returned {what}{of}{hint}", int(np.argmax(absent)))

    def _objects(self, array: NDArray[Any], of: str) -> Column:
        values = array.tolist()
        types = set(map(type, values))
        if types <= {str}:
            return array
        if types <= _PLAIN and (numbers := _quickly(array)) is not None:
            return self._numbers(numbers, of)
        values = [_scalar(value) for value in values]
        absent = np.array([_absent(value) for value in values], bool)
        if np.any(absent):
            self._declared(absent, of, shown(values[int(np.argmax(absent))]))
        there = np.flatnonzero(~absent)
        numeric = np.array([_numeric(value) for value in compress(values, ~absent)], bool)
        if np.any(numeric) and not np.all(numeric):
            number, other = int(there[np.argmax(numeric)]), int(there[np.argmin(numeric)])
            both = f"{shown(values[number])} at {self.numbered(number)}, {shown(values[other])}"
            raise self.at(f"mixed numbers and other values{of}: {both}", other)
        if np.all(numeric):
            return self._converted(values, there, of)
        return self._texts(values, there, of)

    def _converted(self, values: list[Any], there: NDArray[np.intp], of: str) -> NDArray[np.float64]:
        numbers = np.full(len(values), np.nan)
        for run in there.tolist():
            try:
                numbers[run] = float(values[run])
            except (OverflowError, ValueError) as error:
                raise self.at(f"returned a number{of} beyond the range of floats", run) from error
        return numbers + 0.0

    def _texts(self, values: list[Any], there: NDArray[np.intp], of: str) -> Column:
        texts = np.full(len(values), None, object)
        known: dict[Any, str] = {}
        for run in there.tolist():
            value = values[run]
            try:
                texts[run] = known[value] if value in known else known.setdefault(value, _text(value))
            except Exception as error:  # no hash, no text, or a class of the user that fails
                raise self.at(f"returned {_unfit(values[run])}{of}", run) from error
        return texts


def objects(values: Iterable[Any]) -> NDArray[Any]:
    """Put values into an array of objects, one each, also if they are lists.

    Parameters
    ----------
    values : iterable
        The values.

    Returns
    -------
    array
        The array.
    """
    every = list(values)
    return np.fromiter(every, object, len(every))


def plain(column: Column) -> Column:
    """Turn numbers into objects, so that what is missing equals itself.

    Parameters
    ----------
    column : array
        Floats with nan, or objects with None, for what is missing.

    Returns
    -------
    array
        Objects with None for what is missing.
    """
    values = column.astype(object)
    if column.dtype != object:
        values[np.isnan(column)] = None
    return values


def shown(value: Any) -> str:
    """Show a value in a message.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    str
        At most 40 characters on one line.
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # the class of a user may fail to be printed
        text = f"a {_kind(value)}"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _kind(value: Any) -> str:
    return type(value).__name__


def _wrong(dtype: np.dtype[Any]) -> str:
    """Word what a dtype holds that is neither numbers nor categories."""
    names = {"c": "complex numbers: return their parts as columns", "V": "structured values: return a tuple of columns"}
    return names.get(dtype.kind, "dates or times: convert them to numbers" if dtype.kind in "mM" else f"{dtype} values")


def _unfit(value: Any) -> str:
    """Word what makes a value no category."""
    if isinstance(value, complex):
        return "a complex number (return its parts as columns)"
    if isinstance(value, _DATES):
        return "a date or a time (convert it to a number)"
    if getattr(value, "ndim", 0):
        return f"an array of shape {tuple(value.shape)} (return an array of numbers or a list of transcripts)"
    return f"{shown(value)} of type {_kind(value)}, which is neither a number nor a category,"


def _quickly(array: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        return array.astype(np.float64)
    except OverflowError:
        return None


def _scalar(value: Any) -> Any:
    """Unwrap scalars of NumPy and of libraries like it."""
    if isinstance(value, (np.datetime64, np.timedelta64)) or value is np.ma.masked:
        return value
    if isinstance(value, np.generic) or (getattr(value, "ndim", None) == 0 and hasattr(value, "item")):
        return value.item()
    return value


def _absent(value: Any) -> bool:
    if value is None or value is np.ma.masked or _kind(value) in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, (float, Decimal, np.floating)) and bool(value != value)  # noqa: PLR0124


def _numeric(value: Any) -> bool:
    return isinstance(value, (Real, Decimal))


def _text(value: Any) -> str:
    """Write a category in the same way in every process. Raise an error if that cannot be done."""
    if isinstance(value, Enum):
        return f"{_kind(value)}.{value.name}"
    if isinstance(value, (str, bytes)):
        return str(value) if isinstance(value, str) else repr(bytes(value))
    if isinstance(value, (tuple, frozenset)):
        parts = [repr(part) if isinstance(part, str) else _text(part) for part in value]
        return f"({', '.join(parts)})" if isinstance(value, tuple) else f"{{{', '.join(sorted(parts))}}}"
    if value is None:
        return "None"
    if _numeric(value):
        return repr(float(value) + 0.0)
    hash(value)
    if (
        getattr(value, "ndim", 0)
        or isinstance(value, (complex, *_DATES))
        or getattr(type(value), "__repr__", None) is object.__repr__
    ):
        raise TypeError("not a category")
    return repr(value)
