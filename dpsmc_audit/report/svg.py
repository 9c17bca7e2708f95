"""SVG by hand: elements whose every attribute and text is escaped, scales, and ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsmc_audit.observers.words import brief

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["ROUNDING", "Frame", "Scale", "brief_delta", "grid", "path", "plain", "round_ticks", "tag"]

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


@dataclass(frozen=True)
class Frame:
    """Where a panel lies in its picture."""

    left: float
    right: float
    top: float
    bottom: float


def grid(frame: Frame, x: Scale | None, y: Scale | None, x_label: str = "", y_label: str = "") -> list[Markup]:
    """Draw lines and numbers at round values, and the names of the axes: y above its panel, x below it.

    Parameters
    ----------
    frame : Frame
        Where the panel lies.
    x, y : Scale, optional
        The axes that get numbers.
    x_label, y_label : str
        Their names.

    Returns
    -------
    list of Markup
        Elements of SVG.
    """
    made = []
    if y is not None:
        for value in y.ticks(5):
            made.append(tag("line", class_="grid", x1=frame.left, x2=frame.right, y1=y(value), y2=y(value)))
            label = f"{value:g}" if not y.log else _power(value)
            made.append(tag("text", label, class_="tick end", x=frame.left - 6, y=y(value) + 4))
    made.append(tag("line", class_="axis", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom))
    if x is not None:
        for value in x.ticks(6 if frame.right - frame.left > 400 else 4):
            made.append(tag("line", class_="axis", x1=x(value), x2=x(value), y1=frame.bottom, y2=frame.bottom + 4))
            made.append(tag("text", plain(value), class_="tick middle", x=x(value), y=frame.bottom + 17))
        middle = 0.5 * (frame.left + frame.right)
        made.append(tag("text", x_label, class_="label middle", x=middle, y=frame.bottom + 35))
    if y_label:
        made.append(tag("text", y_label, class_="label", x=4, y=frame.top - 9))
    return made


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


def _power(value: float) -> str:
    """10^-3 as people write it; 1 and 0.1 as they are."""
    exponent = round(math.log10(value))
    return (
        f"{value:g}" if exponent >= -3 else "10" + f"{exponent}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    )
