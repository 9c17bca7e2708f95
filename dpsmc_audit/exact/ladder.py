"""The visits of a walk that stays above 0, by position: one programme for every barrier.

For a walk that drifts up, with tau+ the time of its first strict record,

    E[time to reach T] = E[tau+] * sum_N P(Lambda_1 > 0, ..., Lambda_N > 0, Lambda_N < T),

a staircase that climbs at each position the walk can be at. ``1 / E[tau+]`` is the probability of never coming back
to 0.

The same visits tell how often a walk that drifts down ever reaches T. Under ``dP~ = exp(-h Lambda) dP`` it drifts up,
and a visit at x weighs exp(-h x):

    P(ever reach T) = sum over visits at x >= T of exp(-h x) / sum over all visits of exp(-h x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.walk import Steps, Turned
from dpsmc_audit.numerics.jit import kernel

__all__ = ["AWAY", "MeanPassage", "Reach", "visits_cost"]

FloatArray = NDArray[np.float64]
Ends = tuple[FloatArray, FloatArray]

AWAY = 40.0
"""A walk this far over h below a level comes back to it with probability at most exp(-40)."""

_BINS = 1 << 18

_UNIT = 2.0**-53
"""The relative error of one operation."""

_FLOOR = 1e-25
"""Smaller cells at the edge of the window are dropped, and counted."""

_SLACK = 1e-9
"""More than the relative error of exp(-h x), as h is rounded."""


@kernel
def _visit(p_up, up, down, top, scale, floor, wanted, weights, positions, masses):
    """Walk that stays above 0: add each visit below `top` to its bin, and keep the visits in `wanted` bins one by one.

    Returns the probability of getting past `top` (and so, practically, of never coming back), the number of visits
    kept, the probability of the cells that were dropped, and the steps taken.
    """
    size = positions.size
    width = int(top / (up + down)) + 4
    mass, other = np.zeros(width + 4), np.zeros(width + 4)
    mass[0] = 1.0
    count, base, steps, escaped, kept, lost = 1, 0, 0, 0.0, 0, 0.0
    weights[0] += 1.0
    if wanted[0] and size > 0:
        positions[0], masses[0] = 0.0, 1.0
        kept = 1
    while count > 0:
        steps += 1
        # cell i has base + i ones; keep those in (0, top)
        first = 0
        while first <= count and (base + first) * up - (steps - base - first) * down <= 0.0:
            first += 1
        fresh = 0
        for i in range(first, count + 1):
            value = (p_up * mass[i - 1] if i > 0 else 0.0) + ((1.0 - p_up) * mass[i] if i < count else 0.0)
            ones = base + i
            position = ones * up - (steps - ones) * down
            if position >= top:
                escaped += value
                continue
            if fresh == 0 and value < floor:
                lost += value
                first += 1
                continue
            other[fresh] = value
            fresh += 1
            cell = int(position * scale)
            weights[cell] += value
            if wanted[cell] and kept < size:
                positions[kept], masses[kept] = position, value
                kept += 1
        while fresh > 0 and other[fresh - 1] < floor:
            fresh -= 1
            lost += other[fresh]
        base += first
        count = fresh
        mass, other = other, mass
    return escaped, kept, lost, steps


@dataclass(frozen=True, eq=False)
class MeanPassage:
    """E[time to reach T] for every T up to `top`, as a staircase.

    `upcrossing` inverts the staircase, and `error` bounds its error.

    Parameters
    ----------
    walk : Steps
        A walk that drifts up.
    top : float
        The largest T.
    weights : array
        Expected visits in each bin of positions, while the walk stays above 0.
    ladder_time : float
        E[tau+], the mean time of the first strict record.
    lost : float
        The probability of the cells that were dropped.
    steps : int
        The steps taken until no walk was left below `top`.
    """

    walk: Steps
    top: float
    weights: FloatArray
    ladder_time: float
    lost: float
    steps: int

    @classmethod
    def of(cls, walk: Steps, top: float, floor: float = _FLOOR) -> MeanPassage:
        """Compute the staircase of a walk.

        Parameters
        ----------
        walk : Steps
            A walk that drifts up.
        top : float
            The largest T.
        floor : float
            Smaller probabilities at the edge of the window are dropped, and counted.

        Returns
        -------
        MeanPassage
            The staircase.
        """
        weights = np.zeros(_BINS + 1)
        empty = np.empty(0)
        nothing = np.zeros(_BINS + 1, np.bool_)
        arguments = (walk.p_up, walk.up, walk.down, top, _BINS / top, floor, nothing, weights, empty, empty)
        escaped, _, lost, steps = _visit(*arguments)
        return cls(walk, top, weights, 1.0 / escaped, lost, steps)

    @cached_property
    def cumulative(self) -> FloatArray:
        """The staircase at the ends of the bins."""
        return np.insert(np.cumsum(self.weights), 0, 0.0) * self.ladder_time

    @property
    def rounding(self) -> float:
        """A bound on the relative error of sums over visits."""
        cells = 2.0 + self.top / (_BINS * (self.walk.up + self.walk.down))
        return _UNIT * (self.steps * (6.0 + 3.0 * cells) + _BINS + 100.0)

    def ends(self, height: FloatArray, back: float) -> Ends:
        """Enclose the mean time to reach some T. Beyond the top it is that of the distance and up to a step more.

        Parameters
        ----------
        height : array
            The values of T, not negative.
        back : float
            A bound on the probability to come back from above `top` to below the T of interest.

        Returns
        -------
        tuple of array
            The lower and the upper ends.
        """
        place = np.clip((height * (_BINS / self.top)).astype(np.int64), 0, _BINS - 1)
        low, high = self.cumulative[place], self.cumulative[place + 1]
        drift = self.walk.drift * (1.0 + 4.0 * _UNIT * (self.walk.up + self.walk.down) / self.walk.drift)
        least, most = height / drift, (height + self.walk.up) / self.walk.drift
        inside = height < self.top
        low = np.where(inside, np.maximum(low - self.error(low, back), least), least)
        return low, np.where(inside, np.minimum(high + self.error(high, back), most), most)

    def error(self, times: FloatArray, back: float) -> FloatArray:
        """Bound the error of the staircase where it has these values.

        With u = 2^-53, the relative error of one operation:

        - a cell after N steps has gone through N times two products, a sum and the rounding of ``1 - p_up``: 3 N u.
          Cells are in the sum of visits and in the probability of escape: 6 N u;
        - sums of positive numbers add u for each term. The cells of one step that fall into one bin are as many as fit
          into it and one more, and at most two pass `top`; then the bins are added up;
        - the walk upside down has a ``1 - p_up`` that is off by u, and means are proportional to the inverse of the
          drift;
        - walks that were dropped, or that come `back` from above `top` with at most this probability, would have been
          seen for the mean time to get past `top` again. They also change the probability of escape.

        Parameters
        ----------
        times : array
            Values of the staircase.
        back : float
            A bound on the probability to come back from above `top` to below the T of interest.

        Returns
        -------
        array
            The error of each value.
        """
        walk = self.walk
        relative = self.rounding + 4.0 * _UNIT * (walk.up + walk.down) / walk.drift
        unseen = self.lost + back
        visits = (self.top + walk.up) / walk.drift * self.ladder_time
        return np.asarray((relative + unseen * self.ladder_time) * np.abs(times) + 2.0 * unseen * visits)

    def upcrossing(self, times: FloatArray) -> FloatArray:
        """Find, for each time, the position T after which E[time to reach T] is at least that time.

        Parameters
        ----------
        times : array
            The times.

        Returns
        -------
        array
            The positions; inf beyond `top`.
        """
        cumulative = np.cumsum(self.weights) * self.ladder_time
        bins = np.searchsorted(cumulative, times)
        inside = bins < _BINS
        wanted = np.zeros(_BINS + 1, np.bool_)
        wanted[bins[inside]] = True
        positions, masses = self._collect(wanted)
        found = np.full(times.size, math.inf)
        owner = (positions * (_BINS / self.top)).astype(np.int64)
        order = np.lexsort((positions, owner))
        positions, masses, owner = positions[order], masses[order], owner[order]
        begins, ends = np.searchsorted(owner, bins), np.searchsorted(owner, bins, side="right")
        for i in np.flatnonzero(inside):
            mine = slice(begins[i], ends[i])
            below = cumulative[bins[i] - 1] if bins[i] > 0 else 0.0
            climbed = below + np.cumsum(masses[mine]) * self.ladder_time
            place = min(int(np.searchsorted(climbed, times[i])), climbed.size - 1)
            found[i] = positions[mine][place]
        return found

    def _collect(self, wanted: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Return all visits in the wanted bins. The arrays grow until all visits fit."""
        size = 1 << 16
        while True:
            positions, masses = np.empty(size), np.empty(size)
            weights = np.zeros(_BINS + 1)
            scale = _BINS / self.top
            arguments = (self.walk.p_up, self.walk.up, self.walk.down, self.top, scale, _FLOOR, wanted, weights)
            kept = int(_visit(*arguments, positions, masses)[1])
            if kept < size:
                return positions[:kept], masses[:kept]
            size *= 4


def visits_cost(walk: Steps, top: float) -> float:
    """Estimate how many cells `MeanPassage` and `Reach` visit.

    Parameters
    ----------
    walk : Steps
        A walk that drifts up.
    top : float
        The largest T.

    Returns
    -------
    float
        The number of cells.
    """
    steps = top / walk.drift
    width = min(22.0 * math.sqrt(steps * walk.p_up * (1.0 - walk.p_up)), top / (walk.up + walk.down))
    return steps * (width + 2.0)


def _downwards(turned: Turned) -> tuple[Steps, float]:
    """Return the walk upside down under ``exp(-h Lambda)``, which drifts up, and the largest T of interest."""
    return turned.walk.conjugate(turned.h).mirrored(), turned.span + AWAY / turned.h


@dataclass(frozen=True, eq=False)
class Reach:
    """P(a walk that drifts up ever comes down to -T), as a staircase.

    Parameters
    ----------
    h : float
        The exponent of the walk.
    visits : MeanPassage
        The visits of the walk upside down under ``exp(-h Lambda)``.
    """

    h: float
    visits: MeanPassage

    @classmethod
    def of(cls, turned: Turned) -> Reach:
        """Compute the staircase of a walk, up to where it is exp(-40) of what it is at the far bound.

        Parameters
        ----------
        turned : Turned
            A walk that drifts up.

        Returns
        -------
        Reach
            The staircase.
        """
        floor = _FLOOR * math.exp(-min(turned.h * turned.span, 500.0))
        return cls(turned.h, MeanPassage.of(*_downwards(turned), floor))

    @staticmethod
    def cost(turned: Turned) -> float:
        """Estimate how many cells the programme visits.

        Parameters
        ----------
        turned : Turned
            A walk that drifts up.

        Returns
        -------
        float
            The number of cells.
        """
        return visits_cost(*_downwards(turned))

    @cached_property
    def _above(self) -> FloatArray:
        """The weight of the visits in each bin and all later ones, if they are where the bin begins."""
        width = self.visits.top / _BINS
        weights = self.visits.weights * np.exp(-self.h * width * np.arange(self.visits.weights.size))
        return np.append(np.cumsum(weights[::-1])[::-1], 0.0)

    def ends(self, depth: FloatArray) -> Ends:
        """Enclose the probability for some T. It is at most exp(-h T).

        Parameters
        ----------
        depth : array
            The values of T.

        Returns
        -------
        tuple of array
            The lower and the upper ends.
        """
        visits, deep = self.visits, np.maximum(depth, 0.0)
        within = math.exp(-self.h * visits.top / _BINS)  # visits are somewhere in their bins
        rest = (math.exp(-self.h * visits.top) + visits.lost * visits.steps) * (1.0 + _SLACK)
        slack = 2.0 * visits.rounding + _SLACK
        place = np.clip((deep * (_BINS / visits.top)).astype(np.int64), 0, _BINS - 1)
        whole = float(self._above[0])
        inside = deep < visits.top
        low = np.where(inside, within * self._above[place + 1] / (whole + rest) * (1.0 - slack), 0.0)
        high = self._above[place] / (within * whole) * (1.0 + slack) + rest
        bound = np.exp(-self.h * deep) * (1.0 + _SLACK)
        return low, np.minimum(np.where(inside, high, bound), bound)
