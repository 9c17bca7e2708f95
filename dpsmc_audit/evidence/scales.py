"""How values become finite real numbers, and ranges of these numbers become words.

A `Number` is itself, a `Category` is its place in the order of first appearance, and a `Pair` is ordered by its
category first. All three only ever use values that came before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.codes import Codes

__all__ = ["FEW", "MANY", "Category", "Number", "Pair", "Scale", "scale_of"]

FloatArray = NDArray[np.float64]
Table = Mapping[str, NDArray[Any]]
"""Columns by name: float64 with nan for what is missing, or objects with None for it."""

PLUS_INF = float(np.finfo(np.float64).max)
MISSING = -PLUS_INF
MINUS_INF = math.nextafter(MISSING, 0.0)
LOWEST, HIGHEST = math.nextafter(MINUS_INF, 0.0), math.nextafter(PLUS_INF, 0.0)
"""The five marks of the scale: what is missing, minus infinity, the finite numbers between two ends, infinity."""

FEW = 16
"""Categories that come first in a pair; later ones share a code."""
MANY = 4096
"""Categories of a view of its own."""

_SMALLEST = math.ldexp(1.0, -63)
_KEY, _LOST = 1 << 58, 2
"""Values of a key for each category, and the bits of a float that it leaves out."""
_FIRST = 8
"""Keys of the first category begin here, so that pairs are numbers of ordinary size."""


class Scale(Protocol):
    """One view of the runs."""

    name: str

    def encode(self, table: Table) -> FloatArray:
        """Turn runs into finite numbers.

        Parameters
        ----------
        table : mapping
            Columns by name.

        Returns
        -------
        array
            A number for each run.
        """
        ...

    def words(self, low: float, high: float) -> str:
        """Say in words what ``low <= view < high`` means.

        Parameters
        ----------
        low, high : float
            The ends; they may be infinite.

        Returns
        -------
        str
            The words.
        """
        ...

    def saved(self) -> dict[str, Any]:
        """Return the state as numbers, texts, lists and dictionaries.

        Returns
        -------
        dict
            The state, for `scale_of`.
        """
        ...


class Number:
    """A number as it is. What is missing lies below everything, and infinities are finite ends.

    Parameters
    ----------
    name : str
        Of the column.
    whole, missing : bool
        Whether all values so far were whole numbers, and whether one was missing.
    """

    def __init__(self, name: str, whole: bool = True, missing: bool = False) -> None:
        self.name, self.whole, self.missing = name, whole, missing

    def note(self, values: FloatArray) -> None:
        """Notice whether values are whole or missing. Both matter for words only.

        Parameters
        ----------
        values : array
            The values.
        """
        absent = np.isnan(values)
        self.missing = self.missing or bool(np.any(absent))
        self.whole = self.whole and bool(np.all(absent | (values == np.rint(values))))

    def encode(self, table: Table) -> FloatArray:
        """Turn runs into finite numbers.

        Parameters
        ----------
        table : dict
            Columns by name.

        Returns
        -------
        array
            A finite number for each run.
        """
        values = table[self.name]
        self.note(values)
        coded = np.clip(values, LOWEST, HIGHEST)
        for value, mark in ((np.inf, PLUS_INF), (-np.inf, MINUS_INF)):
            coded[values == value] = mark
        coded[np.isnan(values)] = MISSING
        return coded

    def words(self, low: float, high: float) -> str:
        """Say in words what ``low <= view < high`` means.

        Parameters
        ----------
        low, high : float
            The range of the view.

        Returns
        -------
        str
            The event.
        """
        if MISSING < high <= MINUS_INF:
            return f"{self.name} is missing"
        below, above = low <= MINUS_INF, high > PLUS_INF
        text = self._range(None if below else low, None if above else high)
        if not self.missing or not below:
            return text
        if low <= MISSING:
            return text if above else f"{text} or missing"
        return f"{self.name} is not missing" if above else f"{text} and not missing"

    def _range(self, low: float | None, high: float | None) -> str:
        name = self.name
        if low is None and high is None:
            return f"any {name}"
        if low is not None and (low >= PLUS_INF or (high is not None and low >= high)):
            return f"{name} = inf" if high is None else f"no {name}"
        if high is not None and high <= LOWEST:
            return f"{name} = -inf"
        if self.whole and all(end is None or abs(end) < 2.0**63 for end in (low, high)):
            return _whole(name, low, high)
        first = "" if low is None else f"{low:.6g} <= "
        if high is None:
            return f"{name} >= {low:.6g}"
        return f"{first}{name} < {'inf' if high >= PLUS_INF else f'{high:.6g}'}"

    def saved(self) -> dict[str, Any]:
        """Return the state as numbers, texts, lists and dictionaries."""
        return {"scale": "number", "name": self.name, "whole": self.whole, "missing": self.missing}


class Category:
    """The code of a category.

    Parameters
    ----------
    name : str
        Of the column.
    most : int
        How many categories have a code of their own.
    known : iterable
        The categories so far.
    shared : bool
        Whether a later one was seen.
    """

    def __init__(self, name: str, most: int = MANY, known: Iterable[Any] = (), shared: bool = False) -> None:
        self.name, self.codes = name, Codes(most, known, shared)

    def encode(self, table: Table) -> FloatArray:
        """Turn runs into finite numbers.

        Parameters
        ----------
        table : dict
            Columns by name.

        Returns
        -------
        array
            A finite number for each run.
        """
        return self.codes.of(table[self.name]).astype(np.float64)

    def words(self, low: float, high: float) -> str:
        """Say in words what ``low <= view < high`` means.

        Parameters
        ----------
        low, high : float
            The range of the view.

        Returns
        -------
        str
            The event.
        """
        last = self.codes.most
        first = math.ceil(min(max(low, 0.0), last + 1.0))
        stop = last + 1 if high > last else math.ceil(max(high, 0.0))
        return self.one_of(range(first, stop))

    def one_of(self, codes: range) -> str:
        """Say in words that the code is one of a range.

        Parameters
        ----------
        codes : range
            The codes; `most` is every category without a code of its own.

        Returns
        -------
        str
            The words.
        """
        known, last = self.codes.known, self.codes.most in codes
        chosen, rest = known[codes.start : codes.stop], known[: codes.start] + known[codes.stop :]
        others = last and self.codes.shared
        if last and not rest:
            return f"any {self.name}"
        if last and len(rest) < len(chosen) + others:
            return f"{self.name} {_listed(rest, 'not ', 'nor')}"
        if not chosen:
            return f"{self.name} is {'a rare value' if others else 'none of the values seen'}"
        return f"{self.name} {_listed(chosen, '', 'or')}{' or a rare value' if others else ''}"

    def seen(self, codes: range) -> bool:
        """Tell whether a category with one of these codes was seen.

        Parameters
        ----------
        codes : range
            The codes.

        Returns
        -------
        bool
            Whether one was.
        """
        return codes.start < min(len(self.codes.known), codes.stop) or (self.codes.shared and self.codes.most in codes)

    def saved(self) -> dict[str, Any]:
        """Return the state as numbers, texts, lists and dictionaries."""
        codes = self.codes
        state = {"scale": "category", "name": self.name, "most": codes.most}
        return state | {"known": codes.known, "shared": codes.shared}


class Pair:
    """A category first, then a number (or another category): ordered by the first, then by the second.

    The number keeps 50 binary digits, so that whole numbers below 2^50 keep their order; from 2^63 on, and below
    2^-63, all numbers are equal in it.

    Parameters
    ----------
    lead : Category
        What comes first.
    then : Number or Category
        What comes second.
    """

    def __init__(self, lead: Category, then: Number | Category) -> None:
        self.lead, self.then = lead, then
        self.name = f"{lead.name} then {then.name}"

    def encode(self, table: Table) -> FloatArray:
        """Turn runs into finite numbers.

        Parameters
        ----------
        table : dict
            Columns by name.

        Returns
        -------
        array
            A finite number for each run.
        """
        codes = self.lead.codes.of(table[self.lead.name])
        if isinstance(self.then, Number):
            values = table[self.then.name]
            self.then.note(values)
        else:
            values = self.then.encode(table)
        return ((codes + _FIRST) * _KEY + _keys(values)).view(np.float64)

    def words(self, low: float, high: float) -> str:
        """Say in words what ``low <= view < high`` means.

        Parameters
        ----------
        low, high : float
            The range of the view.

        Returns
        -------
        str
            The event.
        """
        (first, least), (last, end) = self._place(low), self._place(high)
        if (first, least) >= (last, end):
            return f"no {self.name}"
        if first == last:
            return self._within(first, least, end)
        parts = [] if least == MISSING else [self._within(first, least, math.inf)]
        whole = range(first + bool(parts), last)
        if whole and (self.lead.seen(whole) or not parts):
            parts.append(self.lead.one_of(whole))
        if end > MISSING and last <= self.lead.codes.most:
            parts.append(self._within(last, MISSING, end))
        return ", or ".join(parts)

    def _within(self, code: int, low: float, high: float) -> str:
        if low == MISSING and high == math.inf:
            return self.lead.one_of(range(code, code + 1))
        return f"{self.lead.one_of(range(code, code + 1))} and {self.then.words(low, high)}"

    def _place(self, end: float) -> tuple[int, float]:
        """Find the code and the value that an end of a range stands for."""
        bits = int(np.float64(min(max(end, 0.0), PLUS_INF)).view(np.int64))
        code, rest = divmod(bits + _KEY // 2, _KEY)
        if code < _FIRST:
            return 0, MISSING
        if code > self.lead.codes.most + _FIRST:
            return self.lead.codes.most + 1, MISSING
        value = _value(rest - _KEY // 2)
        return code - _FIRST, MISSING if isinstance(self.then, Category) and value <= 0.0 else value

    def saved(self) -> dict[str, Any]:
        """Return the state as numbers, texts, lists and dictionaries."""
        return {"scale": "pair", "lead": self.lead.saved(), "then": self.then.saved()}


def scale_of(saved: Mapping[str, Any]) -> Number | Category | Pair:
    """Make a scale from the state that its `saved` returned.

    Parameters
    ----------
    saved : mapping
        The state.

    Returns
    -------
    Number, Category or Pair
        The scale.

    Raises
    ------
    ValueError, KeyError
        If it is no such state.
    """
    kind = saved["scale"]
    if kind == "number":
        return Number(saved["name"], saved["whole"], saved["missing"])
    if kind == "category":
        return Category(saved["name"], saved["most"], saved["known"], saved["shared"])
    lead, then = scale_of(saved["lead"]), scale_of(saved["then"])
    if kind != "pair" or not isinstance(lead, Category) or isinstance(then, Pair):
        raise ValueError("not the state of a scale")
    return Pair(lead, then)


def _base() -> int:
    return int(np.float64(_SMALLEST).view(np.int64)) >> _LOST


def _keys(values: FloatArray) -> NDArray[np.int64]:
    """Number the floats in their order, with 50 binary digits each: bits of positive floats are in order already."""
    size = np.clip(np.abs(values), _SMALLEST, 1.0 / _SMALLEST)
    keys = (size.view(np.int64) >> _LOST) - _base() + 1
    keys[np.abs(values) < _SMALLEST] = 0
    keys[np.isinf(values)] = _KEY // 2 - 1
    signed = np.where(values < 0.0, -keys, keys)
    signed[np.isnan(values)] = -_KEY // 2
    return signed


def _value(key: int) -> float:
    """Find the number with this key, as a mark of the scale of `Number`."""
    if key <= -_KEY // 2:
        return MISSING
    if abs(key) >= _KEY // 2 - 1:
        return PLUS_INF if key > 0 else MINUS_INF
    if key == 0:
        return 0.0
    size = float(np.int64(min(abs(key) - 1 + _base(), 1 << 61) << _LOST).view(np.float64))
    return math.copysign(min(size, 1.0 / _SMALLEST), key)


def _whole(name: str, low: float | None, high: float | None) -> str:
    first = None if low is None else math.ceil(low)
    last = None if high is None else math.ceil(high) - 1
    if first is None or last is None:
        return f"{name} <= {last}" if first is None else f"{name} >= {first}"
    if first > last:
        return f"no {name}"
    return f"{name} = {first}" if first == last else f"{first} <= {name} <= {last}"


def _listed(values: list[Any], before: str, word: str) -> str:
    """List categories after a name: "is 'a' or 'b'", "= 0 or 1"."""
    texts = [_shown(value) for value in values[:6]]
    if len(values) > 6:
        return f"is {before}one of {len(values)} values ({', '.join(texts[:3])}, ...)"
    listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"
    return f"= {listed}" if not before and all(isinstance(value, float) for value in values) else f"is {before}{listed}"


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{int(value)}" if value == np.rint(value) and abs(value) < 2.0**63 else f"{value:.6g}"
    if isinstance(value, tuple):
        text = f"({', '.join(map(_shown, value))})"
        return text if len(text) <= 40 else f"{text[:36]}...)"
    return repr(value)
