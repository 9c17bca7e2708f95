"""What laws for fixed bounds say of all L between them: the mean grows with L, and so does each bound's distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import cells_needed, walk_until_exit
from dpsmc_audit.exact.strata import places_of
from dpsmc_audit.exact.walk import Turned
from dpsmc_audit.numerics.sums import tilted

__all__ = ["against", "mean_between", "points_of", "rare_between"]

FloatArray = NDArray[np.float64]
Ends = tuple[FloatArray, FloatArray]

_CELLS = 2e8
"""Cells that all laws may visit together."""

_FEW, _MOST = 8, 512
"""Values of L that are spread over the range, and that are listed if the law changes at so few."""

_HAIR = 1e-10
"""A law has changed this far above a place, in parts of both steps."""


def points_of(turned: Turned, ends: FloatArray, loss: FloatArray) -> FloatArray:
    """Choose values of L for which laws are computed, with equal shares of an error between them.

    They are all L at which the law changes, from both sides, if there are few in that range.

    Parameters
    ----------
    turned : Turned
        The walk.
    ends : array
        The ends of intervals of L, increasing.
    loss : array
        The error of the intervals up to each.

    Returns
    -------
    array
        The values, increasing. There are none if laws are not affordable.
    """
    if not loss[-1] > 0.0:
        return np.empty(0)
    least = ends[0] + 1e-9 * (turned.walk.up + turned.walk.down)
    spread = np.interp(np.arange(1, _MOST) / _MOST * loss[-1], loss, ends[1:])
    each = np.array([_cells(turned, max(float(x), least)) for x in spread[:: _MOST // 16]]) + 2e5
    count = min(int(_CELLS / float(each.mean())), _MOST)
    if count < _FEW:
        return np.empty(0)
    low, high = max(float(spread[0]), least), float(spread[-1])
    if (places := places_of(turned, low, high, count // 2)) is not None:
        spread = np.concatenate([places, places + _HAIR * (turned.walk.up + turned.walk.down)])
    else:
        spread = spread[:: _MOST // count]
    points = np.unique(np.concatenate([[least, low, high], spread]))
    return points[points >= least]


def mean_between(turned: Turned, points: FloatArray, low: FloatArray, high: FloatArray) -> Ends:
    """Bound the mean time for L in intervals.

    Parameters
    ----------
    turned : Turned
        The walk.
    points : array
        Values of L whose laws are computed.
    low, high : array
        The ends of the intervals.

    Returns
    -------
    tuple of array
        The lower and the upper bounds; 1 and infinity where nothing is known.
    """
    least, most = [1.0], []
    for x in points.tolist():
        law = walk_until_exit(turned.walk, turned.near + x, turned.far + x)
        least.append(law.mean - law.mean_error)
        most.append(law.mean + law.mean_error)
    below, above = np.searchsorted(points, low, side="right"), np.searchsorted(points, high, side="left")
    return np.array(least)[below], np.array([*most, np.inf])[above]


def rare_between(turned: Turned, points: FloatArray, low: FloatArray, high: FloatArray) -> Ends:
    """Bound P(leave at the far bound) for L in intervals.

    It is smallest with the near bound at the lower end and the far bound at the upper one.

    Parameters
    ----------
    turned : Turned
        The walk.
    points : array
        Values of L, increasing.
    low, high : array
        The ends of the intervals.

    Returns
    -------
    tuple of array
        The lower and the upper bounds; 0 and 1 where nothing is known.
    """
    least, most = [0.0], [1.0]
    for left, right in zip(points[:-1].tolist(), points[1:].tolist(), strict=True):
        least.append(against(turned, turned.near + left, turned.far + right).low)
        most.append(against(turned, turned.near + right, turned.far + left).high)
    place = np.searchsorted(points, low, side="right")
    inside = (place >= 1) & (place < points.size) & (np.searchsorted(points, high, side="left") == place)
    return tuple(
        np.where(inside, np.array(ends)[np.minimum(place, len(ends) - 1)], other)
        for ends, other in ((least, 0.0), (most, 1.0))
    )  # type: ignore[return-value]


def against(turned: Turned, near: float, far: float) -> Enclosure:
    """Compute P(leave at the far bound) for two bounds.

    The walk is followed under ``exp(-h Lambda)``, where it usually leaves there.

    Parameters
    ----------
    turned : Turned
        The walk.
    near, far : float
        Distances of the bounds from 0.

    Returns
    -------
    Enclosure
        The probability.
    """
    walk, h = turned.walk, turned.h
    law = walk_until_exit(walk.conjugate(h), near, far)
    value = float(tilted(law.alt, -h, far + law.over_alt))
    error = value * (1e-9 + law.probability_error) + law.probability_error * np.exp(-h * far)
    return Enclosure.around(value, error, "fixed bounds")


def _cells(turned: Turned, excess: float) -> float:
    return cells_needed(turned.walk, turned.near + excess, turned.far + excess)
