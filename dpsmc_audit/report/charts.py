"""The figures of a report as inline SVG: the two histograms with their ratio, and outcomes of one sequence.

Each is drawn twice, for a desk and for a telephone; the style sheet shows the one that fits. Colours are classes, so
that they follow the reader's light or dark scheme and print.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.observers.words import brief
from dpsmc_audit.report.bins import Bin, Bins, ratio_limit
from dpsmc_audit.report.svg import Frame, Scale, grid, path, plain, tag

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["both_sizes", "histogram_chart", "say_bin"]


WIDE, NARROW = 760, 350

_ON_THE_LINE = 1e-6
"""An exact ratio this close to the tolerance is called within."""


def both_sizes(make: Callable[[int], Markup]) -> Markup:
    """Draw a chart for wide windows and one for narrow ones.

    Parameters
    ----------
    make : callable
        Draws the chart with a width in pixels.

    Returns
    -------
    Markup
        Both; the style sheet shows the one that fits.
    """
    from markupsafe import Markup

    return Markup("").join(
        tag("div", make(width), class_=name) for width, name in ((WIDE, "chart wide"), (NARROW, "chart narrow"))
    )


def say_bin(each: Bin, bins: Bins, epsilon: float, name: str) -> str:
    """Say all values of a bin in one sentence: shown on hover, focus and tap, and by browsers without scripts.

    Parameters
    ----------
    each : Bin
        The bin.
    bins : Bins
        The picture it is part of.
    epsilon : float
        The claim.
    name : str
        Of the value that differs between the members.

    Returns
    -------
    str
        The sentence.
    """
    low, high = (plain(x) for x in (each.lo, each.hi))
    where = f"{low} to {high}"
    if each.lo % 1.0 == 0.5:  # bins of whole numbers
        first, last = (plain(x) for x in (each.lo + 0.5, each.hi - 0.5))
        where = first if first == last else f"{first} to {last}"
    text = f"{where}: probability {brief(each.one)} with {name} = 1, {brief(each.zero)} with {name} = 0"
    if bins.mirrored:
        return f"{text}; of these {brief(each.marked[0])} and {brief(each.marked[1])} outside the tolerance"
    sign = "+" if each.ratio > 0 else ""
    text += f"; ln ratio {sign}{brief(each.ratio)}"
    if bins.sampled and not math.isnan(each.low):
        text += f" [{brief(each.low)}, {brief(each.high)}]"
    if bins.sampled and not math.isnan(each.exact):
        text += f", exactly {'+' if each.exact > 0 else ''}{brief(each.exact)}"
    if each.outside:
        sure = "" if each.sure or not bins.sampled else ", but not with its whole interval"
        return f"{text}: outside ±{epsilon:g}{sure}"
    if not abs(each.ratio) <= epsilon + _ON_THE_LINE and not bins.sampled:
        return f"{text}: beyond ±{epsilon:g}, but not by more than its numerical error"
    return f"{text}: within ±{epsilon:g}"


def histogram_chart(bins: Bins, epsilon: float, name: str, width: int) -> Markup:
    """Draw both members, with their ratio below, or, for one sequence, one member up and the other down.

    Parameters
    ----------
    bins : Bins
        What is drawn.
    epsilon : float
        The claim.
    name : str
        Of the value that differs between the members.
    width : int
        Of the picture, in pixels.

    Returns
    -------
    Markup
        An element of SVG.
    """
    left, right = (50.0, width - 8.0)
    first, last = bins.bins[0].lo, bins.bins[-1].hi
    room = 0.01 * (last - first)
    x = Scale(first - room, last + room, left, right)
    if bins.mirrored:
        frame = Frame(left, right, 28.0, 300.0)
        drawn, height = _mirrored(bins, frame, x, name), 346
        frames = [frame]
    else:
        above, below = Frame(left, right, 28.0, 240.0), Frame(left, right, 292.0, 428.0)
        drawn, height = [*_two(bins, above, x, epsilon), *_ratios(bins, below, x, epsilon, name)], 474
        frames = [above, below]
    for each in bins.bins:
        a, b = x(each.lo), x(each.hi)
        says = say_bin(each, bins, epsilon, name)
        areas = [
            tag("rect", x=a, width=max(b - a, 1.0), y=f.top, height=f.bottom - f.top, class_="hit") for f in frames
        ]
        drawn.append(tag("g", tag("title", says), *areas, class_="bin", data_say=says))
    label = f"Histogram over {bins.what}, {len(bins.bins)} bins"
    return tag(
        "svg", *drawn, viewBox=f"0 0 {width} {height}", role="group", aria_label=label, tabindex="0", class_="bins"
    )


def _steps(bins: Bins, x: Scale, y: Scale, times: float, member: str) -> str:
    """The outline of a histogram; where bins are missing it goes down to 0."""
    parts, last = "", math.nan
    points: list[tuple[float, float]] = []
    for each in bins.bins:
        if each.lo != last:
            if points:
                parts += path([*points, (x(last), y(0.0))])
            points = [(x(each.lo), y(0.0))]
        height = y.clipped(times * getattr(each, member))
        points += [(x(each.lo), height), (x(each.hi), height)]
        last = each.hi
    return parts + path([*points, (x(last), y(0.0))])


def _two(bins: Bins, frame: Frame, x: Scale, epsilon: float) -> list[Markup]:
    top = max(max(each.one, each.zero) for each in bins.bins)
    y = Scale(0.0, 1.12 * top, frame.bottom, frame.top)
    drawn = grid(frame, None, y, y_label=_per_bin(bins))
    marks = [tag("path", d=_steps(bins, x, y, 1.0, "zero"), class_="zero-area")]
    bounds = (1.0 / factor(epsilon), factor(epsilon))
    marks += [tag("path", d=_steps(bins, x, y, bound, "one"), class_="tolerance") for bound in bounds]
    marks.append(tag("path", d=_steps(bins, x, y, 1.0, "one"), class_="one-line"))
    for each in bins.bins:
        if each.outside:
            kind = "outside sure" if each.sure or not bins.sampled else "outside"
            marks.append(tag("path", d=_triangle(x(0.5 * (each.lo + each.hi)), frame.bottom + 11, -1.0), class_=kind))
    return drawn + marks


def _per_bin(bins: Bins) -> str:
    width = bins.bins[0].hi - bins.bins[0].lo
    return "probability" if width == 1 else f"probability per bin of {width:g}"


def _triangle(x: float, y: float, way: float, size: float = 3.6) -> str:
    """Pointing up where `way` is -1."""
    return path([(x - size, y - way * size), (x + size, y - way * size), (x, y + way * size)]) + "Z"


def _ratios(bins: Bins, frame: Frame, x: Scale, epsilon: float, name: str) -> list[Markup]:
    limit = ratio_limit(bins, epsilon)
    y = Scale(-1.06 * limit, 1.06 * limit, frame.bottom, frame.top)
    wide, high = frame.right - frame.left, y(-epsilon) - y(epsilon)
    band = tag("rect", class_="band", x=frame.left, width=wide, y=y(epsilon), height=high)
    title = f"ln of the ratio, {name} = 1 over {name} = 0"
    drawn = [band, *grid(frame, x, y, bins.what, title)]
    for each in bins.bins:
        middle = x(0.5 * (each.lo + each.hi))
        kind = "point" + (" sure" if each.outside and (each.sure or not bins.sampled) else "")
        if bins.sampled and not math.isnan(each.low) and not math.isnan(each.ratio) and math.isfinite(each.ratio):
            ends = (y.clipped(each.low), y.clipped(each.high))
            drawn.append(tag("line", class_="whisker", x1=middle, x2=middle, y1=ends[0], y2=ends[1]))
        if abs(each.ratio) <= limit:
            drawn.append(tag("circle", class_=kind, cx=middle, cy=y(each.ratio), r=2.4))
        elif not math.isnan(each.ratio):
            way = -1.0 if each.ratio > 0 else 1.0
            drawn.append(
                tag("path", d=_triangle(middle, y.clipped(each.ratio) - 5 * way, way), class_=f"{kind} beyond")
            )
        if bins.sampled and abs(each.exact) <= limit:
            a, b, h = middle, y(each.exact), 2.8
            d = path([(a - h, b - h), (a + h, b + h)]) + path([(a - h, b + h), (a + h, b - h)])
            drawn.append(tag("path", d=d, class_="exact"))
    return drawn


def _mirrored(bins: Bins, frame: Frame, x: Scale, name: str) -> list[Markup]:
    top = 1.08 * max(max(each.one, each.zero) for each in bins.bins)
    y = Scale(-top, top, frame.bottom, frame.top)
    drawn = []
    for value in y.ticks(6):
        drawn.append(tag("line", class_="grid", x1=frame.left, x2=frame.right, y1=y(value), y2=y(value)))
        drawn.append(tag("text", f"{abs(value):g}", class_="tick end", x=frame.left - 6, y=y(value) + 4))
    drawn += grid(frame, x, None, bins.what, f"{_per_bin(bins)}, {name} = 1 up, {name} = 0 down")
    for each in bins.bins:
        a, w = x(each.lo), max(x(each.hi) - x(each.lo) - 0.6, 0.6)
        for value, kind in (
            (each.one, "one-part"),
            (each.marked[0], "one-marked"),
            (-each.zero, "zero-part"),
            (-each.marked[1], "zero-marked"),
        ):
            if value != 0.0:
                ends = sorted((y(value), y(0.0)))
                drawn.append(tag("rect", class_=kind, x=a, width=w, y=ends[0], height=ends[1] - ends[0]))
    drawn.append(tag("line", class_="axis", x1=frame.left, x2=frame.right, y1=y(0.0), y2=y(0.0)))
    return drawn
