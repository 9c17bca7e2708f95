"""The ladder of a walk that drifts up: its visits while it stays above 0, by position. One programme for every bound.

With tau+ the time of the first strict record, ``1 / E[tau+]`` is the probability of never coming back to 0, and

    E[time to reach T] = E[tau+] * sum_N P(Lambda_1 > 0, ..., Lambda_N > 0, Lambda_N < T).

The same visits tell how often the walk ever reaches T under ``dP~ = exp(-h Lambda) dP``, where it drifts down:

    P~(ever reach T) = sum over visits at x >= T of exp(-h x) / sum over all visits of exp(-h x).

So the ladder knows two means of the overshoot over T, that of itself and that of its exponential. Both are averages of
what they are at lower T: after a first passage over y the walk has ``T - y`` to go, less an overshoot of up to a step.
So what holds for all T of a window of one step holds for all T above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.walk import SLACK, Steps
from dpsmc_audit.numerics.jit import kernel

__all__ = ["AWAY", "Ladder"]

FloatArray = NDArray[np.float64]
Ends = tuple[FloatArray, FloatArray]

AWAY = 13.0
"""A walk 2 * 13 / h below a level comes to it with a probability of at most exp(-26)."""

_BINS = 1 << 18

_ALIVE = 1e-12
"""Less than this probability is dropped, and counted; so are cells a millionth of it at the edge of the window."""

_UNIT = float(np.finfo(np.float64).epsneg)
"""The relative error of one operation."""


@kernel
def _visit(p_up, up, down, h, top, scale, alive, wanted, weights, positions, masses):
    """Walk that stays above 0: add each visit below `top` to its bin, plain and by ``exp(-h x)``.

    The visits in `wanted` bins are kept one by one. Returns the probability of getting past `top`, that of the cells
    that were dropped, the steps taken, and the number of visits to keep.
    """
    width = int(top / (up + down)) + 8
    mass, other = np.zeros(width), np.zeros(width)
    mass[0] = 1.0
    base, count, steps, kept, escaped, lost, ratio = 0, 1, 0, 0, 0.0, 0.0, math.exp(-h * (up + down))
    while count > 0:
        factor = math.exp(-h * (base * up - (steps - base) * down))
        for i in range(count):
            position = (base + i) * up - (steps - base - i) * down
            cell = int(position * scale)
            weights[cell, 0] += mass[i]
            weights[cell, 1] += mass[i] * factor
            factor *= ratio
            if positions.size > 0 and wanted[cell]:
                if kept < positions.size:
                    positions[kept], masses[kept] = position, mass[i]
                kept += 1
        steps += 1
        mass[count] = 0.0
        other[0] = (1.0 - p_up) * mass[0]
        for i in range(1, count + 1):
            other[i] = p_up * mass[i - 1] + (1.0 - p_up) * mass[i]
        first, last = 0, count + 1
        while last > 0 and (base + last - 1) * up - (steps - base - last + 1) * down >= top:
            last -= 1
            escaped += other[last]
        while first < last and (base + first) * up - (steps - base - first) * down <= 0.0:
            first += 1
        while last > first and other[last - 1] < 1e-6 * alive:
            last -= 1
            lost += other[last]
        while first < last and other[first] < 1e-6 * alive:
            lost += other[first]
            first += 1
        count = last - first
        base += first
        for i in range(count):
            mass[i] = other[i + first]
        if steps % 64 == 0 and mass[:count].sum() < alive:
            lost += mass[:count].sum()
            count = 0
    return escaped, lost, steps, kept


@dataclass(frozen=True, eq=False)
class Ladder:
    """What the ladder of a walk says of first passages over T.

    Parameters
    ----------
    walk : Steps
        A walk that drifts up.
    h : float
        Its exponent, positive.
    known : float
        Below this T the ladder is computed.
    top : float
        Visits are counted up to here.
    visits : array
        Expected visits in each bin of positions, while the walk stays above 0: plain, and weighed by ``exp(-h x)``.
    escaped : float
        The probability of getting past `top`. Its inverse is E[tau+].
    lost : float
        The probability of the cells that were dropped.
    steps : int
        The steps taken until no walk was left below `top`.
    """

    walk: Steps
    h: float
    known: float
    top: float
    visits: FloatArray
    escaped: float
    lost: float
    steps: int

    @classmethod
    def of(cls, walk: Steps, h: float, reach: float, *, most: float = math.inf, alive: float = _ALIVE) -> Ladder:
        """Compute the ladder of a walk.

        Parameters
        ----------
        walk : Steps
            A walk that drifts up.
        h : float
            Its exponent, positive.
        reach : float
            The largest T of interest.
        most : float
            Cells that may be visited. If they would be more, only the size of a step is known.
        alive : float
            Less than this probability is dropped.

        Returns
        -------
        Ladder
            The ladder.
        """
        step = walk.up + walk.down
        known = max(reach, 2.0 * step)
        top = known + 2.0 * AWAY / h
        steps, visits, empty = top / max(walk.drift, 1e-300), np.zeros((_BINS + 1, 2)), np.empty(0)
        if steps * (min(22.0 * math.sqrt(steps * walk.p_up * (1.0 - walk.p_up)), top / step) + 2.0) > most:
            return cls(walk, h, 0.0, top, visits[:1], 1.0, 0.0, 0)
        arguments = (walk.p_up, walk.up, walk.down, h, top, _BINS / top, alive, np.zeros(_BINS + 1, np.bool_), visits)
        escaped, lost, taken, _ = _visit(*arguments, empty, empty)
        return cls(walk, h, known, top, visits, escaped, lost, taken)

    @property
    def bins(self) -> float:
        """How many bins there are in a unit of height."""
        return _BINS / self.top

    @cached_property
    def climbed(self) -> FloatArray:
        """The mean time to reach the begin of each bin, and the end of the last."""
        return np.insert(np.cumsum(self.visits[:, 0]), 0, 0.0) / self.escaped

    @cached_property
    def _above(self) -> FloatArray:
        """The weighed visits in each bin and all later ones."""
        return np.append(np.cumsum(self.visits[::-1, 1])[::-1], 0.0)

    def _places(self, height: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the bins that end at these T or before, and those that begin there or after."""
        cell = np.clip(height, 0.0, self.known) * self.bins
        return np.maximum(cell - 1e-6, 0.0).astype(np.int64), (cell + 1e-6).astype(np.int64) + 1

    @property
    def _rounding(self) -> float:
        """A bound on the relative error of sums over visits: see `error`."""
        cells = 2.0 + self.top / (_BINS * (self.walk.up + self.walk.down))
        tilt = 2.0 * self.h * (self.walk.up + self.walk.down)  # of a walk under exp(-h Lambda)
        return _UNIT * (self.steps * (6.0 + 3.0 * cells + tilt) + _BINS + 100.0)

    def error(self, times: FloatArray, height: FloatArray | float) -> FloatArray:
        """Bound the error of the mean time to reach some T.

        With u = 2^-53, the relative error of one operation:

        - a cell after N steps has gone through N times two products, a sum and the rounding of ``1 - p_up``: 3 N u.
          Cells are in the sum of visits and in the probability of escape: 6 N u;
        - sums of positive numbers add u for each term. The cells of one step that fall into one bin are as many as fit
          into it and one more, and at most two pass `top`; then the bins are added up;
        - the walk upside down has a ``1 - p_up`` that is off by u, and means are proportional to the inverse of the
          drift;
        - walks that were dropped, or that come back from above `top`, would have been seen for the mean time to get
          past `top` again. They also change the probability of escape.

        Parameters
        ----------
        times : array
            What the ladder says.
        height : array or float
            The values of T, or the largest: at most `known`.

        Returns
        -------
        array
            The error of each time.
        """
        walk, unseen = self.walk, self.lost + np.exp(-self.h * (self.top - height))
        relative = self._rounding + 4.0 * _UNIT * (walk.up + walk.down) / walk.drift + unseen / self.escaped
        return np.asarray(relative * np.abs(times) + 2.0 * unseen * (self.top + walk.up) / walk.drift / self.escaped)

    @property
    def _drift(self) -> tuple[float, float]:
        off = 4.0 * _UNIT * (self.walk.up + self.walk.down)
        return max(self.walk.drift - off, 1e-300), self.walk.drift + off

    def mean(self, height: FloatArray) -> Ends:
        """Enclose the mean time to reach some T.

        Parameters
        ----------
        height : array
            The values of T, not negative.

        Returns
        -------
        tuple of array
            The lower and the upper ends.
        """
        (before, after), over, drift = self._places(height), self.later(height)[0], self._drift
        low, high = (height + over[0]) / drift[1], (height + over[1]) / drift[0]
        error, inside = self.error(self.climbed[after], np.minimum(height, self.known)), height < self.known
        low = np.where(inside, np.maximum(self.climbed[before] - error, low), low)
        return low, np.where(inside, np.minimum(self.climbed[after] + error, high), high)

    def ever(self, height: FloatArray) -> Ends:
        """Enclose P~(ever reach T).

        Parameters
        ----------
        height : array
            The values of T, not negative.

        Returns
        -------
        tuple of array
            The lower and the upper ends.
        """
        bound, factor, inside = np.exp(-self.h * height), self.later(height)[1], height < self.known
        low, high = self._ever(*self._places(height), np.minimum(height, self.known))
        low = np.where(inside, np.maximum(low, factor[0] * bound), factor[0] * bound)
        high = np.where(inside, np.minimum(high, factor[1] * bound), factor[1] * bound)
        return low * (1.0 - SLACK), high * (1.0 + SLACK) + 1e-300

    def _ever(self, before: NDArray[np.int64], after: NDArray[np.int64], height: FloatArray) -> Ends:
        """Enclose P~(ever reach T) by the sums over visits.

        A walk that was dropped, or has passed `top`, weighs what remains of ``exp(-h x)`` on its way down to 0 under
        P~: no more than the mean time of that.
        """
        walk, slack = self.walk, 2.0 * self._rounding + SLACK
        way = (self.top + 2.0 * (walk.up + walk.down)) / max(-walk.conjugate(self.h).drift, 1e-300)
        gone, whole = math.exp(-self.h * self.top) * way, float(self._above[0])
        low = self._above[after] / (whole * (1.0 + slack) + gone + self.lost * way) * (1.0 - slack)
        unseen = gone + self.lost * way * np.exp(-self.h * height)
        return low, (self._above[before] * (1.0 + slack) + unseen) / np.maximum(whole * (1.0 - slack), 1e-300)

    @cached_property
    def _later(self) -> tuple[Ends, Ends]:
        """For each bin the least and the most that the means of the overshoot are from there on."""
        begins: FloatArray = np.arange(float(int(self.known * self.bins))) * (1.0 / self.bins)
        ends, count, drift = begins + 1.0 / self.bins, begins.size, self._drift
        error = self.error(self.climbed[1 : count + 1], ends)
        plain = (
            drift[0] * (self.climbed[:count] - error) - ends,
            drift[1] * (self.climbed[1 : count + 1] + error) - begins,
        )
        places = np.arange(np.count_nonzero(self.h * ends < 300.0))  # exp(300) does not overflow
        low, high = self._ever(places, places + 1, begins[places])
        weighed = low * np.exp(self.h * begins[places]), high * np.exp(self.h * ends[places])
        return self._from_here_on(plain, 0.0, self.walk.up), self._from_here_on(
            weighed, math.exp(-self.h * self.walk.up), 1.0
        )

    def _from_here_on(self, ends: Ends, least: float, most: float) -> Ends:
        """For each bin the least and the most from there on, as far as a window of one step follows."""
        last = ends[0].size - int(self.walk.up * self.bins) - 2
        if last < 1:
            return np.array([least]), np.array([most])
        low, high = np.maximum(ends[0], least)[::-1], np.minimum(ends[1], most)[::-1]
        return np.minimum.accumulate(low)[::-1][:last], np.maximum.accumulate(high)[::-1][:last]

    def later(self, height: FloatArray) -> tuple[Ends, Ends]:
        """Enclose the means of the overshoot over any level from some T on: plain, and of its exponential.

        The latter is ``exp(h T) P~(ever reach T)``.

        Parameters
        ----------
        height : array
            The values of T, not negative.

        Returns
        -------
        tuple
            The lower and the upper ends of both.
        """
        (low, high), (least, most) = self._later
        place = self._places(height)[0]
        at, by = np.minimum(place, low.size - 1), np.minimum(place, least.size - 1)
        return (low[at], high[at]), (least[by] * (1.0 - SLACK), most[by] * (1.0 + SLACK))

    def visits_in(self, wanted: NDArray[np.bool_]) -> Ends:
        """List all visits in some bins. The arrays grow until all visits fit.

        Parameters
        ----------
        wanted : array
            Which bins.

        Returns
        -------
        tuple of array
            Their positions and probabilities.
        """
        size, kept, walk = 1 << 14, 1 << 16, self.walk
        while kept > size:
            size = 2 * kept
            positions, masses = np.empty(size), np.empty(size)
            arguments = (walk.p_up, walk.up, walk.down, self.h, self.top, self.bins, 1e-6 * _ALIVE, wanted)
            kept = _visit(*arguments, np.zeros_like(self.visits), positions, masses)[3]
        return positions[:kept], masses[:kept]
