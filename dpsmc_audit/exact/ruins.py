"""Means and error probabilities for any law of L, from two staircases that hold for all L at once.

m(T) is the mean time to reach T, and G(T) the probability of ever coming down to -T. With both bounds the far one is
met first with probability r, and from there the walk would need R more samples to the near one:

    r = (G(far) - G(from near to far)) / (1 - G(from near to far)),    E[tau] = m(near) - r R.

From one bound to the other it is the distance of both, and up to a step more. r falls and the mean grows with L, so sums
over a grid of L bracket the averages. Wald's identities bound both as well, without any staircase.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.brackets import mean_between, points_of, rare_between
from dpsmc_audit.exact.enclosure import Enclosure, meet
from dpsmc_audit.exact.ladder import AWAY, MeanPassage, Reach, visits_cost
from dpsmc_audit.exact.walk import Turned, turned_up, walds_mean, walds_ruin
from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, Truncated
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["Ruins", "excess_mean", "mean_by_ladder", "rare_by_ladder"]

FloatArray = NDArray[np.float64]
Ends = tuple[FloatArray, FloatArray]

CLOSE = 1e-4
"""Other ways are not tried if an interval is this narrow, relative to its middle."""

_CELLS = 5e8
"""Cells that a staircase may cost: a second or two."""

_GROWTH = 1.001
"""By how much the distance of an L from the lowest one grows in the tail."""

_GRID = 1 << 15
"""Intervals of L of each kind."""


@dataclass(frozen=True, eq=False)
class Ruins:
    """The two staircases of a walk, as far as they are affordable.

    Parameters
    ----------
    turned : Turned
        The walk.
    upward : MeanPassage, optional
        The mean time to reach each T.
    reach : Reach, optional
        The probability of ever coming down to each -T.
    """

    turned: Turned
    upward: MeanPassage | None
    reach: Reach | None

    def rare(self, low: FloatArray, high: FloatArray) -> Ends:
        """Bound P(the far bound is met first) for L between these ends.

        Parameters
        ----------
        low, high : array
            The ends.

        Returns
        -------
        tuple of array
            The lower and the upper bounds.
        """
        turned = self.turned
        least = walds_ruin(turned, turned.near + low, turned.far + high)[0]
        most = walds_ruin(turned, turned.near + high, turned.far + low)[1]
        if self.reach is None:
            return least, most
        first, again = self.reach.ends(turned.far + high)[0], self.reach.ends(turned.span + low + high)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.fmax(least, (first - again) / (1.0 - again))
        first = self.reach.ends(turned.far + low)[1]
        again = self.reach.ends(turned.span + low + high + turned.walk.up)[0]
        return np.maximum(least, 0.0), np.minimum(most, (first - again) / (1.0 - again))

    def beyond(self, low: FloatArray, high: FloatArray) -> Ends:
        """Bound by how much the mean time exceeds that of the distance ``near + L`` alone, times the drift.

        That is the overshoot at the near bound, less what the far bound cuts off.

        Parameters
        ----------
        low, high : array
            Ends of intervals of L.

        Returns
        -------
        tuple of array
            The lower and the upper bounds.
        """
        turned, walk = self.turned, self.turned.walk
        least, most = np.zeros(low.size), np.full(low.size, walk.up)
        if self.upward is not None:
            back = math.exp(-AWAY)
            at_low, at_high = (self.upward.ends(turned.near + x, back) for x in (low, high))
            least = np.maximum(walk.drift * at_low[0] - (turned.near + high), 0.0)
            most = np.minimum(walk.drift * at_high[1] - (turned.near + low), walk.up)
        seldom, often = self.rare(low, high)
        further = walk.up + walk.down
        return (
            least - often * (turned.span + 2.0 * high + further),
            most - seldom * (turned.span + 2.0 * low),
        )


@lru_cache(maxsize=32)
def _reach(test: Sprt, p_phi: float) -> Reach | None:
    turned = turned_up(test, p_phi)
    if turned.h <= 0.0:
        return None
    top, walk = turned.span + AWAY / turned.h, Reach.downwards(turned.walk, turned.h)
    return Reach(turned.h, MeanPassage.of(walk, top)) if visits_cost(walk, top) <= _CELLS else None


@lru_cache(maxsize=32)
def _upward(test: Sprt, p_phi: float, high: float) -> MeanPassage | None:
    turned = turned_up(test, p_phi)
    if turned.h <= 0.0:
        return None
    top = turned.near + high + AWAY / turned.h
    return MeanPassage.of(turned.walk, top) if visits_cost(turned.walk, top) <= _CELLS else None


def grid_of(setting: Setting, high: float, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut the values of L above those where a coin decides into intervals.

    They are evenly spaced, equally likely, and spaced by parts of 1/h near the lowest L.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.
    high : float
        The largest L, but for the tail.
    points : array
        Further ends of intervals.

    Returns
    -------
    ends, masses : array
        The ends of the intervals, and the probability of each interval and of all larger L.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    h, lowest = turned_up(test, p_phi).h, _lowest(test, mechanism)
    shares = float(mechanism.survival(lowest)) * (1.0 - np.arange(1, _GRID) / _GRID)
    near = lowest + np.linspace(0.0, AWAY / h, _GRID) if h > 0.0 else np.empty(0)
    tail = high + (high - lowest) * (_GROWTH ** np.arange(1.0, 10_000.0) - 1.0)
    points = np.concatenate([np.linspace(lowest, high, _GRID), near, mechanism.quantile(1.0 - shares), tail, points])
    ends = np.unique(points[(points >= lowest) & np.isfinite(points)])
    above = np.asarray(mechanism.survival(ends))
    above[0] = float(mechanism.survival(test.no_room))
    return ends, np.append(np.maximum(-np.diff(above), 0.0), above[-1])


def _lowest(test: Sprt, mechanism: Mechanism) -> float:
    return max(float(mechanism.quantile(0.0)), test.no_room)


def _average(ends: Ends, masses: FloatArray, last: tuple[float, float]) -> tuple[float, float]:
    """Average bounds over the intervals. `last` holds beyond all of them."""
    inner, rest, slack = masses[:-1], float(masses[-1]), 1e-12
    some = inner > 0.0
    low, high = (float(np.sum(inner[some] * end[some])) + (rest * x if rest > 0.0 else 0.0) for end, x in zip(ends, last, strict=True))
    return low - slack * abs(low), high + slack * abs(high)


def rare_by_ladder(setting: Setting) -> Enclosure:
    """Enclose P(leave against the drift), the coin included.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    Enclosure
        The probability.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    turned = turned_up(test, p_phi)
    high = float(mechanism.quantile(1.0 - 1e-12))
    if turned.h > 0.0:
        high = min(high, _lowest(test, mechanism) + AWAY / turned.h)
    ruins = Ruins(turned, None, _reach(test, p_phi))
    ends, masses = grid_of(setting, high, np.empty(0))
    coin, last = 0.5 * (1.0 - float(mechanism.survival(test.no_room))), ruins.rare(ends[-1:], ends[-1:])[1]
    low, most = _average(ruins.rare(ends[:-1], ends[1:]), masses, (0.0, float(last[0])))
    found = Enclosure(low + coin, most + coin, "ladder" if ruins.reach is not None else "wald")
    if found.error <= CLOSE * found.value:
        return found
    points = points_of(turned, _lowest(test, mechanism), _quantiles(setting, high))
    if not points.size:
        return found
    ends, masses = grid_of(setting, high, points)
    low, most = _average(_tighter(ruins.rare(ends[:-1], ends[1:]), rare_between(turned, points, ends[:-1], ends[1:])), masses, (0.0, float(last[0])))
    return meet([found, Enclosure(low + coin, most + coin, "fixed bounds")])


def mean_by_ladder(setting: Setting) -> Enclosure:
    """Enclose the mean number of samples.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    Enclosure
        The mean. Its upper end is infinite if nothing better is known.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    turned, lowest = turned_up(test, p_phi), _lowest(test, mechanism)
    share = float(mechanism.survival(test.no_room))
    drift, high = turned.walk.drift, float(mechanism.quantile(1.0 - 1e-9))
    upward = _upward(test, p_phi, high)
    ruins = Ruins(turned, upward, _reach(test, p_phi))
    found = _mean_on(setting, ruins, high, np.empty(0))
    if found.error <= CLOSE * found.value:
        return found
    points = points_of(turned, lowest, _quantiles(setting, high))
    return meet([found, _mean_on(setting, ruins, high, points)]) if points.size else found


def _mean_on(setting: Setting, ruins: Ruins, high: float, points: FloatArray) -> Enclosure:
    """Enclose the mean, with laws for fixed bounds at some L."""
    test, mechanism, turned = setting.test, setting.mechanism, ruins.turned
    share, drift = float(mechanism.survival(test.no_room)), turned.walk.drift
    ends, masses = grid_of(setting, high, points)
    by_wald = walds_mean(turned, turned.near + ends, turned.far + ends)
    bounds = _tighter((by_wald[0][:-1], by_wald[1][1:]), mean_between(turned, points, ends[:-1], ends[1:]))
    low, most = _average(bounds, masses, (float(by_wald[0][-1]), math.inf))
    if drift > 0.0 and not points.size:
        cut = -(turned.span + 2.0 * ends[-1]) * math.exp(-min(turned.h * (turned.far + ends[-1]), 700.0))
        part = _average(ruins.beyond(ends[:-1], ends[1:]), masses, (cut, turned.walk.up))
        lowest = _lowest(test, mechanism)
        room = excess_mean(mechanism, lowest)
        slack = 1e-12 + 4e-16 * (turned.walk.up + turned.walk.down) / drift
        reached = [(turned.near + lowest) * share + room[i] + part[i] for i in (0, 1)]
        low, most = max(low, reached[0] / drift * (1.0 - slack)), min(most, reached[1] / drift * (1.0 + slack))
    method = "fixed bounds" if points.size else ("ladder" if ruins.upward is not None else "wald")
    return Enclosure(max(low + (1.0 - share), 1.0), most + (1.0 - share), method)


def _tighter(one: Ends, other: Ends) -> Ends:
    return np.maximum(one[0], other[0]), np.minimum(one[1], other[1])


def _quantiles(setting: Setting, high: float) -> FloatArray:
    """Return a thousand equally likely L between the lowest one and the highest."""
    test, mechanism = setting.test, setting.mechanism
    lowest = _lowest(test, mechanism)
    share = float(mechanism.survival(lowest))
    inner = mechanism.quantile(1.0 - share * (1.0 - np.arange(1, 1024) / 1024))
    return np.unique(np.append(inner[(inner > lowest) & (inner < high)], high))


def excess_mean(mechanism: Mechanism, least: float) -> tuple[float, float]:
    """Enclose ``E[(L - least)+]``.

    Parameters
    ----------
    mechanism : Mechanism
        The law of L.
    least : float
        The threshold.

    Returns
    -------
    tuple of float
        The lower and the upper end.
    """
    begin = float(mechanism.quantile(0.0))
    if isinstance(mechanism, Exponential):
        value = math.exp(-mechanism.rate * max(least, 0.0)) / mechanism.rate + max(-least, 0.0)
    elif isinstance(mechanism, Laplace):
        away = abs(least - mechanism.center)
        value = 0.5 * mechanism.scale * math.exp(-away / mechanism.scale) + max(mechanism.center - least, 0.0)
    elif isinstance(mechanism, Truncated) and least <= mechanism.lowest:
        value = mechanism.mean - least
    elif isinstance(mechanism, Law) and least <= begin:
        value = mechanism.moments[0] - least
    else:
        return _integral(mechanism, least)
    return value * (1.0 - 1e-12) - 1e-300, value * (1.0 + 1e-12)


def _integral(mechanism: Mechanism, least: float) -> tuple[float, float]:
    """Enclose the integral of the survival function from `least` on. It falls, so sums bracket it."""
    first = max(float(mechanism.quantile(0.9)) - least, 1e-9 * max(abs(least), 1.0))
    points = least + np.concatenate([np.linspace(0.0, first, 1 << 16), first * _GROWTH ** np.arange(1.0, 100_000.0)])
    points = points[np.isfinite(points)]
    heights, widths = np.asarray(mechanism.survival(points)), np.diff(points)
    low, high = float(np.sum(widths * heights[1:])), float(np.sum(widths * heights[:-1]))
    return low * (1.0 - 1e-12), high * (1.0 + 1e-12) if heights[-1] == 0.0 else math.inf
