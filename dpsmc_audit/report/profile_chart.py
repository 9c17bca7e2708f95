"""The privacy profile in a report: delta over epsilon' for each observer, and the sentences its slider shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dpsmc_audit.evidence.profiles import Profile
from dpsmc_audit.observers.phrases import brief
from dpsmc_audit.report.html import draw
from dpsmc_audit.report.scales import ROUNDING, Frame, Scale, brief_delta, path

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Curve", "delta_or_none", "profile_chart", "slider_data"]

_STOPS = 160
"""The slider stops at so many places; a finer grid of the user's is thinned."""


@dataclass(frozen=True)
class Curve:
    """One observer's delta in both directions, on the grid that all curves of a page share.

    Parameters
    ----------
    observer : str
        A name for style sheets.
    name, about : str
        The observer and what the curve is of, for readers.
    epsilon, forth, back : tuple of float
        The grid, and the delta towards x = 1 and towards x = 0.
    """

    observer: str
    name: str
    about: str
    epsilon: tuple[float, ...]
    forth: tuple[float, ...]
    back: tuple[float, ...]

    @classmethod
    def of(cls, observer: str, name: str, about: str, profile: Profile) -> Curve:
        """Make the curve of a privacy profile.

        Parameters
        ----------
        observer : str
            A name for style sheets.
        name, about : str
            The observer and what the curve is of, for readers.
        profile : Profile
            The privacy profile.

        Returns
        -------
        Curve
            The curve, on the grid of the profile.
        """
        columns = (profile.epsilon, profile.delta_1_over_0, profile.delta_0_over_1)
        return cls(observer, name, about, *(tuple(column.tolist()) for column in columns))

    def at(self, epsilon: float) -> float:
        """Return the larger delta at the nearest point of the grid.

        Parameters
        ----------
        epsilon : float
            Where to look.

        Returns
        -------
        float
            The larger delta of the two directions.
        """
        k = min(range(len(self.epsilon)), key=lambda k: abs(self.epsilon[k] - epsilon))
        return max(self.forth[k], self.back[k])


def _ranges(curves: Sequence[Curve], epsilon: float) -> tuple[float, float, float]:
    """Where epsilon' and delta end: with the curves, but not too far beyond the claim."""
    seen = [
        (x, d)
        for c in curves
        for x, *both in zip(c.epsilon, c.forth, c.back, strict=True)
        if (d := max(both)) > ROUNDING
    ]
    end = max(4.0 * epsilon, min(1.1 * max((x for x, _ in seen), default=0.0), 12.0 * epsilon))
    deltas = [d for x, d in seen if x <= end]
    if not deltas:
        return end, ROUNDING, 1.5
    least = max(min(deltas), 1e-5 * max(deltas))
    bottom, top = math.floor(math.log10(least) - 0.3), math.ceil(math.log10(max(deltas)))
    return end, 10.0**bottom, min(2.0 * 10.0**top, 1.5)


def profile_chart(curves: Sequence[Curve], epsilon: float, width: int) -> Markup:
    """Draw the profiles: solid where x = 1 is the likelier member, dashed the other way round; the claim is dotted.

    Parameters
    ----------
    curves : sequence of Curve
        One for each observer.
    epsilon : float
        The claim.
    width : int
        Of the picture, in pixels.

    Returns
    -------
    Markup
        An element of SVG.
    """
    end, bottom, top = _ranges(curves, epsilon)
    frame = Frame(50.0, width - 10.0, 46.0, 306.0)
    x, y = Scale(0.0, end, frame.left, frame.right), Scale(bottom, top, frame.bottom, frame.top, log=True)
    claims = [(epsilon, "claimed ε", "claim"), (2.0 * epsilon, "2ε", "claim twice")]
    shown = claims if x(2.0 * epsilon) - x(epsilon) > 44.0 else claims[:1]
    line = partial(_line, x, y)
    return draw("profile.svg", curves=curves, claims=shown, frame=frame, x=x, y=y, line=line, width=width)


def _line(x: Scale, y: Scale, epsilon: Sequence[float], delta: Sequence[float]) -> str:
    """As far as the picture goes; down to its edge where the delta vanishes."""
    points, last = [], None
    for e, d in zip(epsilon, delta, strict=True):
        gone = d < y.low
        if last is not None and last[1] < y.low and gone:
            break
        if e > x.high:
            share = (x.high - last[0]) / (e - last[0]) if last is not None else 0.0
            before = y.clipped(last[1]) if last is not None else y.clipped(d)
            points.append((x.end, before + share * (y.clipped(d) - before)))
            break
        if last is not None or not gone:
            points.append((x(e), y.clipped(d)))
        last = (e, d)
        if gone and len(points) < 2:
            points, last = [], (e, d)
    return path(points) if len(points) > 1 else ""


def _times(epsilon: float, claimed: float) -> str:
    if math.isclose(epsilon, claimed):
        return "the claimed ε"
    return f"{brief(epsilon / claimed, 3)} times the claimed ε"


def delta_or_none(value: float) -> str:
    """Write a delta for a reader.

    Parameters
    ----------
    value : float
        The delta.

    Returns
    -------
    str
        The delta, or "none" if it is 0.
    """
    return brief_delta(value) if value > 0.0 else "none"


def _say(name: str, forth: float, back: float) -> str:
    """What is left beyond the allowed factor."""
    one, zero = delta_or_none(forth), delta_or_none(back)
    sign = "" if one.startswith("below") else "= "
    return f"{name}: δ {sign}{one} towards x = 1, {zero} towards x = 0"


def slider_data(curves: Sequence[Curve], epsilon: float) -> dict[str, Any]:
    """Make what the slider's script shows: places, deltas, and the sentences for every place.

    Parameters
    ----------
    curves : sequence of Curve
        One for each observer.
    epsilon : float
        The claim, where the slider starts.

    Returns
    -------
    dict
        Ready for JSON.
    """
    whole = curves[0].epsilon
    every = max(1, math.ceil(len(whole) / _STOPS))
    stops = [k for k, e in enumerate(whole) if k % every == 0 or e in (epsilon, 2.0 * epsilon)]
    end = _ranges(curves, epsilon)[0]
    stops = [k for k in stops if whole[k] <= end] or stops[:1]
    start = min(range(len(stops)), key=lambda i: abs(whole[stops[i]] - epsilon))
    heads = []
    for k in stops:
        allowed = math.exp(min(whole[k], 700.0))
        heads.append(
            f"ε′ = {brief(whole[k], 4)} ({_times(whole[k], epsilon)}) allows probabilities to differ by a factor of"
            f" {brief(allowed, 4)}. What goes beyond that is δ:"
        )
    return {
        "start": start,
        "epsilon": [whole[k] for k in stops],
        "heads": heads,
        "observers": [
            {
                "key": curve.observer,
                "forth": [curve.forth[k] for k in stops],
                "back": [curve.back[k] for k in stops],
                "said": [_say(curve.name, curve.forth[k], curve.back[k]) for k in stops],
            }
            for curve in curves
        ],
    }
