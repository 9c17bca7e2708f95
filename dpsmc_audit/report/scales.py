"""What the templates of drawings need: scales with ticks at round numbers, paths, and numbers as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpsmc_audit.observers.phrases import brief

__all__ = ["ROUNDING", "Frame", "Scale", "brief_delta", "path", "plain", "round_ticks"]

ROUNDING = 1e-9
"""A delta is a difference of sums of probabilities: below this it may be numerical error."""


def path(points: Iterable[tuple[float, float]]) -> str:
    """Write a line through points, for the attribute `d`.

    Parameters
    ----------
    points : iterable of tuple
        The points (x, y) in pixels.

    Returns
    -------
    str
        The commands of the path. Empty without points.
    """
    line = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f"M{line}" if line else ""


def brief_delta(value: float, digits: int = 3) -> str:
    """Write a delta for a reader.

    Parameters
    ----------
    value : float
        The delta.
    digits : int
        Significant digits.

    Returns
    -------
    str
        The number as text. A positive delta that may be numerical error is said to be below 1e-9.

    Examples
    --------
    >>> brief_delta(0.0099270), brief_delta(3e-12), brief_delta(0.0)
    ('0.00993', 'below 1e-9', '0')
    """
    return "below 1e-9" if 0.0 < value <= ROUNDING else brief(value, digits)


@dataclass(frozen=True)
class Scale:
    """A map from numbers to pixels.

    Parameters
    ----------
    low, high : float
        The numbers at its ends.
    start, end : float
        The pixels at its ends.
    log : bool
        Whether it is linear in the logarithm of the numbers.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, x = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (x - low) / (high - low)

    def clipped(self, value: float) -> float:
        """Convert the nearest number on the scale to pixels.

        Parameters
        ----------
        value : float
            The number.

        Returns
        -------
        float
            The pixel. It lies between `start` and `end`.
        """
        return self(min(max(value, self.low), self.high))

    @property
    def numbers(self) -> str:
        """The four numbers, for the script of a page."""
        return f"{self.low} {self.high} {self.start} {self.end}"

    def label(self, value: float) -> str:
        """Write a tick: powers of ten below 0.001 as people write them, all others as they are.

        Parameters
        ----------
        value : float
            The tick.

        Returns
        -------
        str
            The number as text.
        """
        exponent = round(math.log10(value)) if self.log else 0
        superscript = f"{exponent}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{value:g}" if exponent >= -3 else f"10{superscript}"

    def ticks(self, about: int = 5) -> list[float]:
        """Choose ticks: powers of ten on a logarithmic scale, round numbers otherwise.

        A logarithmic scale that holds fewer than two powers of ten has round numbers as well.

        Parameters
        ----------
        about : int
            About how many ticks there are.

        Returns
        -------
        list of float
            The ticks in increasing order.
        """
        if not self.log:
            return round_ticks(self.low, self.high, about)
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        if last - first < 1:
            return [x for x in round_ticks(self.low, self.high, about) if x > 0.0]
        every = max(1, math.ceil((last - first) / about))
        return [10.0**k for k in range(last, first - 1, -every)][::-1]


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Choose ticks at multiples of 1, 2 or 5 times a power of ten.

    Parameters
    ----------
    low, high : float
        The ends of the scale.
    about : int
        About how many ticks there are.

    Returns
    -------
    list of float
        The ticks in increasing order. Only `low` if the scale is empty.

    Examples
    --------
    >>> round_ticks(0.0, 0.31, 4)
    [0.0, 0.1, 0.2, 0.3]
    """
    if not high > low:
        return [low]
    raw = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(k * power for k in (1.0, 2.0, 5.0, 10.0) if k * power >= raw * (1.0 - 1e-9))
    places = max(0, -math.floor(math.log10(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [min(max(round(k * step, places) + 0.0, low), high) for k in range(first, last + 1)]


@dataclass(frozen=True)
class Frame:
    """Where a panel lies in its picture.

    Parameters
    ----------
    left, right, top, bottom : float
        Its edges in pixels.
    """

    left: float
    right: float
    top: float
    bottom: float


def plain(value: float) -> str:
    """Write a number of an axis.

    Parameters
    ----------
    value : float
        The number.

    Returns
    -------
    str
        The number as text.
    """
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:g}"
