"""At which L an average reaches an edge, where following every edge to the last step would take too long.

Averages grow with L. So two L of a grid enclose the L of an edge, and the widest of these intervals are halved for as
long as the work is affordable.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import cells_needed
from dpsmc_audit.exact.walk import Steps
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.observers.expected.averages import CHEAP, average_at, lowest_excess
from dpsmc_audit.observers.expected.edges import Reached, rounding
from dpsmc_audit.setting import Setting

__all__ = ["GRID", "by_grid"]

GRID, _LAST = 400, 61
"""L of equal probability between neighbours, and even ones beyond the last of them."""

_WORK = 2e9
"""Cells that the laws for the L in the middle of intervals may visit, for each member: a few seconds."""

_CLEAR = 1e-6
"""An interval of L with a smaller probability is not halved."""


def by_grid(setting: Setting, entries: tuple[int, ...], points: FloatArray, far: float) -> tuple[Reached, Reached]:
    """Enclose the L of both members at which each edge is reached.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    entries : tuple of int
        The samples that differ, counted from 1.
    points : ndarray
        The edges.
    far : float
        An L at which the averages of both members are beyond the last edge.

    Returns
    -------
    tuple of Reached
        For x = 1 and x = 0.
    """
    one, zero = (_Halving(setting, entries, bit, far).reached(points) for bit in (1, 0))
    return one, zero


class _Halving:
    """The averages of one member at the L of a grid, and at the L that are added to it."""

    def __init__(self, setting: Setting, entries: tuple[int, ...], bit: int, far: float) -> None:
        self.setting, self.entries, self.bit = setting, entries, bit
        lowest = lowest_excess(setting.test, setting.mechanism)
        inner = np.maximum(setting.mechanism.quantile(np.arange(GRID) / GRID), lowest)
        self.grid = np.unique(np.concatenate([inner, np.linspace(inner[-1], max(far, inner[-1]), _LAST)]))
        self.walk, self.work = Steps.of(setting.test, setting.p_phi), 0.0

    def average(self, excess: float) -> Enclosure:
        test = self.setting.test
        self.work += min(cells_needed(self.walk, test.b_up + excess, test.b_low + excess), CHEAP)
        return average_at(test, self.setting.p_phi, self.entries, self.bit, excess, CHEAP)

    def reached(self, points: FloatArray) -> Reached:
        known = [self.average(x) for x in self.grid.tolist()]
        surely, possibly = (np.maximum.accumulate([getattr(each, end) for each in known]) for end in ("low", "high"))
        low = np.append(-math.inf, self.grid)[np.searchsorted(possibly, points)]
        high = np.append(self.grid, math.inf)[np.searchsorted(surely, points)]
        self._halve(points, low, high)
        inner = np.interp(points, 0.5 * (surely + possibly), self.grid, right=math.inf)
        off = rounding(self.setting.test, int(points.max()), self.grid[-1:])
        return Reached(low - off, np.clip(inner, low, high), high + off, np.zeros(points.size, np.bool_))

    def _halve(self, points: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """Halve the intervals, the likeliest first, in place."""
        law = self.setting.mechanism
        waiting = [(-_mass(law, low[i], high[i]), i) for i in range(points.size)]
        heapq.heapify(waiting)
        self.work = 0.0
        while waiting and self.work < _WORK:
            mass, i = heapq.heappop(waiting)
            if mass > -_CLEAR:
                return
            middle = 0.5 * (low[i] + high[i])
            there = self.average(float(middle))
            if there.low >= points[i]:
                high[i] = middle
            elif there.high < points[i]:
                low[i] = middle
            else:
                continue  # the average there is not known well enough
            heapq.heappush(waiting, (-_mass(law, low[i], high[i]), i))


def _mass(law: Mechanism, low: float, high: float) -> float:
    """Compute P(low < L <= high). It is 0 if an end is not known, since no middle is there then."""
    return float(law.survival(low) - law.survival(high)) if math.isfinite(low) and math.isfinite(high) else 0.0
