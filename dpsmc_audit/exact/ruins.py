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

_CLOSE = 1e-4
"""Other ways are not tried if an interval is this narrow, relative to its middle."""

_CELLS = 3e8
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
        room = np.maximum(1.0 - again, 1e-9)  # too little of it tells nothing
        least = np.where(again < 1.0 - 1e-9, np.maximum(least, (first - again) / room), least)
        first = self.reach.ends(turned.far + low)[1]
        again = self.reach.ends(turned.span + low + high + turned.walk.up)[0]
        return least, np.minimum(most, np.maximum(first - again, 0.0) / np.maximum(1.0 - again, 1e-300))

    def mean(self, low: FloatArray, high: FloatArray) -> Ends:
        """Bound the mean time for L between these ends.

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
        least = walds_mean(turned, turned.near + low, turned.far + low)[0]
        most = walds_mean(turned, turned.near + high, turned.far + high)[1]
        if turned.h == 0.0:
            return least, most
        beyond, drift = self.beyond(low, high), turned.walk.drift
        slack = 1e-12 + 4e-16 * (turned.walk.up + turned.walk.down) / drift
        by_ladder = (turned.near + low + beyond[0]) / drift, (turned.near + high + beyond[1]) / drift
        return np.maximum(least, by_ladder[0] * (1.0 - slack)), np.minimum(most, by_ladder[1] * (1.0 + slack))

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
    return Reach.of(turned) if turned.h > 0.0 and Reach.cost(turned) <= _CELLS else None


@lru_cache(maxsize=32)
def _upward(test: Sprt, p_phi: float, high: float) -> MeanPassage | None:
    turned = turned_up(test, p_phi)
    if turned.h <= 0.0:
        return None
    top = turned.near + high + AWAY / turned.h
    return MeanPassage.of(turned.walk, top) if visits_cost(turned.walk, top) <= _CELLS else None


@dataclass(frozen=True, eq=False)
class _Grid:
    """Intervals of L above those where a coin decides.

    Parameters
    ----------
    ends : array
        Their ends, increasing.
    masses : array
        The probability of each interval, and of all larger L.
    """

    ends: FloatArray
    masses: FloatArray

    @classmethod
    def of(cls, setting: Setting, high: float) -> _Grid:
        """Cut the range: evenly up to `high`, equally likely, by parts of 1/h near the lowest L, and wider in the tail."""
        test, mechanism = setting.test, setting.mechanism
        h, lowest = turned_up(test, setting.p_phi).h, _lowest(test, mechanism)
        shares = float(mechanism.survival(lowest)) * (1.0 - np.arange(1, _GRID) / _GRID)
        near = lowest + np.linspace(0.0, AWAY, _GRID) / h if h > 0.0 else np.empty(0)
        tail = high + (high - lowest) * (_GROWTH ** np.arange(1.0, 10_000.0) - 1.0)
        even = np.linspace(lowest, high, _GRID)
        return cls._with(setting, np.concatenate([even, near, mechanism.quantile(1.0 - shares), tail]))

    @classmethod
    def _with(cls, setting: Setting, points: FloatArray) -> _Grid:
        test, mechanism = setting.test, setting.mechanism
        lowest = _lowest(test, mechanism)
        ends = np.unique(np.append(points[(points > lowest) & np.isfinite(points)], lowest))
        above = np.asarray(mechanism.survival(ends))
        above[0] = float(mechanism.survival(test.no_room))
        return cls(ends, np.append(np.maximum(-np.diff(above), 0.0), above[-1]))

    def cut(self, setting: Setting, points: FloatArray) -> _Grid:
        """Cut intervals at further values of L."""
        return self._with(setting, np.concatenate([self.ends, points]))

    @property
    def sides(self) -> Ends:
        """The lower and the upper ends of the intervals."""
        return self.ends[:-1], self.ends[1:]

    def average(self, bounds: Ends, last: tuple[float, float]) -> tuple[float, float]:
        """Average bounds over the intervals. `last` holds beyond all of them."""
        inner, rest = self.masses[:-1], float(self.masses[-1])
        some = inner > 0.0
        ends = []
        for bound, beyond, slack in zip(bounds, last, (-1e-12, 1e-12), strict=True):
            value = float(np.sum(inner[some] * bound[some])) + (rest * beyond if rest > 0.0 else 0.0)
            ends.append(value + slack * abs(value))
        return ends[0], ends[1]

    def weakest(self, bounds: Ends, turned: Turned) -> FloatArray:
        """Choose L at which laws for fixed bounds help most: the intervals between them have equal shares of the error.

        They are all L at which the law changes, from both sides, if there are few in that range.
        """
        with np.errstate(invalid="ignore"):
            loss = np.nan_to_num(self.masses[:-1] * (bounds[1] - bounds[0]), posinf=0.0)
        return points_of(turned, self.ends, np.cumsum(loss))


def _lowest(test: Sprt, mechanism: Mechanism) -> float:
    return max(float(mechanism.quantile(0.0)), test.no_room)


def _tighter(one: Ends, other: Ends) -> Ends:
    return np.maximum(one[0], other[0]), np.minimum(one[1], other[1])


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
    turned, high = turned_up(test, p_phi), float(mechanism.quantile(1.0 - 1e-12))
    if turned.h > 0.0:
        high = min(high, _lowest(test, mechanism) + AWAY / turned.h)
    ruins, grid = Ruins(turned, None, _reach(test, p_phi)), _Grid.of(setting, high)
    coin = 0.5 * (1.0 - float(mechanism.survival(test.no_room)))
    bounds, last = ruins.rare(*grid.sides), (0.0, float(ruins.rare(grid.ends[-1:], grid.ends[-1:])[1][0]))
    low, most = grid.average(bounds, last)
    found = Enclosure(low + coin, most + coin, "ladder" if ruins.reach is not None else "wald")
    if found.error <= _CLOSE * found.value or not (points := grid.weakest(bounds, turned)).size:
        return found
    finer = grid.cut(setting, points)
    low, most = finer.average(_tighter(ruins.rare(*finer.sides), rare_between(turned, points, *finer.sides)), last)
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
    turned, high = turned_up(test, p_phi), float(mechanism.quantile(1.0 - 1e-9))
    ruins, grid = Ruins(turned, _upward(test, p_phi, high), _reach(test, p_phi)), _Grid.of(setting, high)
    coin, last = 1.0 - float(mechanism.survival(test.no_room)), grid.ends[-1:]
    bounds = ruins.mean(*grid.sides)
    ends = grid.average(bounds, (float(ruins.mean(last, last)[0][0]), math.inf))
    method = "wald" if ruins.upward is None else "ladder"
    found = [Enclosure(ends[0] + coin, ends[1] + coin, method)]
    if turned.h > 0.0:
        least, most = _mean_of_distance(setting, ruins, grid)
        found.append(Enclosure(least + coin, most + coin, method))
    if meet(found).error > _CLOSE * meet(found).value and (points := grid.weakest(bounds, turned)).size:
        finer = grid.cut(setting, points)
        tighter = _tighter(ruins.mean(*finer.sides), mean_between(turned, points, *finer.sides))
        ends = finer.average(tighter, (float(ruins.mean(last, last)[0][0]), math.inf))
        found.append(Enclosure(ends[0] + coin, ends[1] + coin, "fixed bounds"))
    return meet(found)


def _mean_of_distance(setting: Setting, ruins: Ruins, grid: _Grid) -> tuple[float, float]:
    """Enclose E[tau; no coin] from the mean of L: where the walk ends, over the drift. Heavy tails are no matter here."""
    test, mechanism, turned = setting.test, setting.mechanism, ruins.turned
    lowest, last = _lowest(test, mechanism), float(grid.ends[-1])
    share, drift = float(mechanism.survival(test.no_room)), turned.walk.drift
    cut = -(turned.span + 2.0 * last) * math.exp(-min(turned.h * (turned.far + last), 700.0))
    part = grid.average(ruins.beyond(*grid.sides), (cut, turned.walk.up))
    room = excess_mean(mechanism, lowest)
    slack = 1e-12 + 4e-16 * (turned.walk.up + turned.walk.down) / drift
    low, most = ((turned.near + lowest) * share + room[i] + part[i] for i in (0, 1))
    return low / drift * (1.0 - slack), most / drift * (1.0 + slack)


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
