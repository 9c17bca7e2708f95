"""The figures of a report as inline SVG: the two histograms with their ratio, and outcomes of one sequence.

Each is drawn twice, for a desk and for a telephone; the style sheet shows the one that fits. Colours are classes, so
that they follow the reader's light or dark scheme and print.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.observers.phrases import brief
from dpsmc_audit.report.bins import Bin, Bins, ratio_limit
from dpsmc_audit.report.html import draw
from dpsmc_audit.report.scales import Frame, Scale, path, plain

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
    return draw("sizes.html", wide=make(WIDE), narrow=make(NARROW))


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
    x = _across(bins, width)
    top = max(max(each.one, each.zero) for each in bins.bins)
    says = [say_bin(each, bins, epsilon, name) for each in bins.bins]
    shared: dict[str, Any] = {"bins": bins, "says": says, "x": x, "name": name, "width": width}
    shared["per_bin"] = _per_bin(bins)
    if bins.mirrored:
        frame = Frame(x.start, x.end, 28.0, 300.0)
        return draw("outcomes.svg", **shared, frame=frame, y=Scale(-1.08 * top, 1.08 * top, frame.bottom, frame.top))
    above, below = Frame(x.start, x.end, 28.0, 240.0), Frame(x.start, x.end, 292.0, 428.0)
    limit = ratio_limit(bins, epsilon)
    return draw(
        "histogram.svg",
        **shared,
        above=above,
        below=below,
        y=Scale(0.0, 1.12 * top, above.bottom, above.top),
        ratio=Scale(-1.06 * limit, 1.06 * limit, below.bottom, below.top),
        limit=limit,
        epsilon=epsilon,
        factor=factor(epsilon),
        stairs=partial(_stairs, bins, x),
    )


def _across(bins: Bins, width: int) -> Scale:
    first, last = bins.bins[0].lo, bins.bins[-1].hi
    room = 0.01 * (last - first)
    return Scale(first - room, last + room, 50.0, width - 8.0)


def _stairs(bins: Bins, x: Scale, y: Scale, member: str, times: float = 1.0) -> str:
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


def _per_bin(bins: Bins) -> str:
    width = bins.bins[0].hi - bins.bins[0].lo
    return "probability" if width == 1 else f"probability per bin of {width:g}"
