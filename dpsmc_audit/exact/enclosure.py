"""The type of every number that is computed without sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

__all__ = ["Enclosure", "kind_of", "meet"]


@dataclass(frozen=True)
class Enclosure:
    """An interval that holds a number.

    Parameters
    ----------
    low, high : float
        The ends of the interval.
    method : str
        How they were computed.
    proven : bool
        Whether the ends are proven to hold the number, rounding included. Otherwise the interval is an estimate, and
        may miss the number.

    Examples
    --------
    >>> third = Enclosure.around(1 / 3, 1e-16, "division")
    >>> third.low < third.value < third.high, third.proven
    (True, True)
    """

    low: float
    high: float
    method: str
    proven: bool = True

    @classmethod
    def around(cls, value: float, error: float, method: str, *, proven: bool = True) -> Self:
        """Make an interval from its middle.

        Parameters
        ----------
        value : float
            The middle.
        error : float
            Half the width.
        method : str
            How they were computed.
        proven : bool
            Whether the number is proven to lie within the error of the value.

        Returns
        -------
        Enclosure
            The interval. Its ends are rounded outwards.
        """
        if error == 0.0:
            return cls(value, value, method, proven)
        low, high = math.nextafter(value - error, -math.inf), math.nextafter(value + error, math.inf)
        return cls(low, high, method, proven)

    @classmethod
    def estimate(cls, value: float, error: float, method: str) -> Self:
        """Make an interval that is not proven.

        Parameters
        ----------
        value : float
            The middle.
        error : float
            An estimate of the error.
        method : str
            How they were computed.

        Returns
        -------
        Enclosure
            The interval.
        """
        return cls.around(value, error, method, proven=False)

    @property
    def value(self) -> float:
        """The middle."""
        return self.low if self.low == self.high else self.low + 0.5 * (self.high - self.low)

    @property
    def error(self) -> float:
        """Half the width: no number of the interval is further from the middle."""
        return 0.0 if self.low == self.high else math.nextafter(0.5 * (self.high - self.low), math.inf)

    def complement(self) -> Self:
        """Enclose one minus the number.

        Returns
        -------
        Enclosure
            The interval.
        """
        low, high = 1.0 - self.high, 1.0 - self.low
        if self.low != self.high:
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        return type(self)(low, high, self.method, self.proven)


def meet(enclosures: Sequence[Enclosure]) -> Enclosure:
    """Return what several intervals of one number leave. Estimates count only if nothing is proven.

    Parameters
    ----------
    enclosures : sequence of Enclosure
        The intervals, at least one.

    Returns
    -------
    Enclosure
        Their intersection, with the method of the narrowest.

    Examples
    --------
    >>> both = meet([Enclosure(0.0, 2.0, "one"), Enclosure(1.0, 1.5, "other")])
    >>> both.low, both.high, both.method
    (1.0, 1.5, 'other')
    """
    proven = [each for each in enclosures if each.proven] or enclosures
    method = min(proven, key=lambda each: each.high - each.low).method
    return Enclosure(max(each.low for each in proven), min(each.high for each in proven), method, proven[0].proven)


def kind_of(proven: bool) -> str:
    """Name the kind of an error.

    Parameters
    ----------
    proven : bool
        Whether the error is a bound.

    Returns
    -------
    str
        "proven" or "estimate".
    """
    return "proven" if proven else "estimate"
