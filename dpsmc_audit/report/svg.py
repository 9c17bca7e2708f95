"""SVG by hand: elements whose every attribute and text is escaped, scales, and ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsmc_audit.observers.words import brief

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["ROUNDING", "Scale", "brief_delta", "path", "round_ticks", "tag"]

ROUNDING = 1e-9
"""A delta is a difference of sums of probabilities: below this it may be numerical error."""


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """Make an element. Every attribute and text is escaped.

    Parameters
    ----------
    name : str
        The name of the element.
    *children : object
        Elements and texts inside it.
    **attributes : object
        Its attributes. A name may end in `_` where Python needs it, and `_` inside a name stands for `-`. An attribute
        that is None is left out.

    Returns
    -------
    Markup
        The element.

    Examples
    --------
    >>> print(tag("text", "a < b", x=1.25, class_="tick"))
    <text x="1.25" class="tick">a &lt; b</text>
    """
    from markupsafe import Markup, escape

    known = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    head = Markup("").join(Markup(' {}="{}"').format(key, _number(value)) for key, value in known)
    body = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), head, body)


def _number(value: Any) -> Any:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def path(points: Sequence[tuple[float, float]]) -> str:
    """Write a line through points, for the attribute `d`.

    Parameters
    ----------
    points : sequence of tuple
        The points (x, y) in pixels.

    Returns
    -------
    str
        The commands of the path. Empty without points.
    """
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points) if points else ""


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
    """A map from numbers in [low, high] to pixels in [start, end], linear in their logarithm where `log`."""

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
