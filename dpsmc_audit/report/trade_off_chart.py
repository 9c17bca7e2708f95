"""The trade-off curve of a user's mechanism: a learnt test, its band, and what the claim allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.report.html import draw
from dpsmc_audit.report.scales import Frame, Scale, path

if TYPE_CHECKING:
    from markupsafe import Markup

    from dpsmc_audit.evidence.claims import Promise
    from dpsmc_audit.evidence.shown import TradeOff

__all__ = ["least_misses", "trade_off_chart"]


def least_misses(promise: Promise, alpha: FloatArray) -> FloatArray:
    """Compute the fewest misses that a claim allows.

    Parameters
    ----------
    promise : Promise
        The claim, of which the points count.
    alpha : array
        Shares of false alarms.

    Returns
    -------
    array
        The least share of misses at each.

    Examples
    --------
    >>> from dpsmc_audit.evidence.claims import Dp
    >>> least_misses(Dp(0.0, 0.2), np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [0.8, 0.3, 0.0]
    """
    lines = [np.zeros_like(alpha)]
    for point in promise.points:
        times = factor(point.epsilon)
        lines += [1.0 - point.delta_1 - times * alpha, (1.0 - point.delta_0 - alpha) / times]
    return np.asarray(np.max(lines, axis=0))


def trade_off_chart(curve: TradeOff, promise: Promise, width: int) -> Markup:
    """Draw a trade-off curve.

    Parameters
    ----------
    curve : TradeOff
        The curve with its band.
    promise : Promise
        The claim.
    width : int
        Of the picture, in pixels.

    Returns
    -------
    Markup
        An element of SVG.
    """
    frame = Frame(50.0, width - 10.0, 30.0, 306.0)
    x, y = Scale(0.0, 1.0, frame.left, frame.right), Scale(0.0, 1.0, frame.bottom, frame.top)

    def line(alpha: FloatArray, beta: FloatArray) -> list[tuple[float, float]]:
        return [(x(a), y(b)) for a, b in zip(alpha.tolist(), beta.tolist(), strict=True)]

    grid = np.linspace(0.0, 1.0, 201)
    band = [*line(curve.alpha_low, curve.beta_low), *line(curve.alpha_high, curve.beta_high)[::-1]]
    return draw(
        "trade_off.svg",
        frame=frame,
        x=x,
        y=y,
        width=width,
        band=path(band),
        allowed=path(line(grid, least_misses(promise, grid))),
        line=path(line(curve.alpha, curve.beta)),
    )
