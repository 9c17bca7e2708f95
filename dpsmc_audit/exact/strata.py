"""The law of (tau, o) for the L of a range where both bounds matter: laws for fixed L, averaged.

For a fixed L the law changes only where a position of the walk crosses a bound. If few L are such positions, the law is
known in each interval between them, and the average is exact. Otherwise tau grows with L: the laws at the two ends of
each stratum bracket P(tau > k). Of single outcomes (k, o) such a bracket says nothing, so their error is an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.fixed import ALIVE, add_laws, walk_until_exit
from dpsmc_audit.exact.walk import TIE, Steps, Turned
from dpsmc_audit.exact.weight import Range

__all__ = ["CELLS", "Part", "Plan", "places_of", "plan_of", "strata"]

FloatArray = NDArray[np.float64]

CELLS = 3e9
"""Cells that the passage may visit, and the laws of all strata: some seconds each."""

_MOST = 4096
"""Strata. More make the bracket narrower than other errors."""

_CHUNKS = 16
"""The laws are added up in this many parts, in this order, whatever the number of threads."""

_POSITIONS = 2e6
"""Positions of the walk that are looked at to find where a law changes."""

_UNIT = 2.0**-53

_GOING_ON = 1e-7
"""In strata the runs still going on are left out when they are no more than this, and counted."""

_STRIDES = ((2, 4.0), (4, 1.8))
"""Keeping every second end or every fourth: the larger change, times this, is the estimate of the summed error.

A law for fixed L jumps at some L, and each jump adds to the change. By how much depends on its place among the strata
that are joined. The factors make both equal on average for jumps at random places.
"""


@dataclass(frozen=True, eq=False)
class Part:
    """The runs of a range of L.

    Parameters
    ----------
    near, far : array
        ``near[k - 1] = P(tau = k)`` for runs that stop at the bound which the walk drifts to, and for the others.
    error : float
        By how much a P(tau > k) may be off.
    scatter : float
        By how much the law may be off, summed over all (tau, o).
    proven : bool
        Whether `scatter` is a bound. `error` always is.
    """

    near: FloatArray
    far: FloatArray
    error: float
    scatter: float
    proven: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """For which L the laws are computed.

    Parameters
    ----------
    runs : Range
        The range.
    ends : array
        Increasing L from its low to its high end: the laws are known between them, or computed at them.
    listed : bool
        Whether the law is the same for all L between two ends.
    longest : int
        The number of samples after which the runs still going on are left out.
    """

    runs: Range
    ends: FloatArray
    listed: bool
    longest: int

    @property
    def alive(self) -> float:
        """The probability below which the runs still going on are left out."""
        return ALIVE if self.listed else _GOING_ON

    @property
    def error(self) -> float:
        """About the error of a P(tau > k)."""
        return 0.0 if self.listed else 0.5 * float(np.max(self.masses, initial=0.0))

    @property
    def masses(self) -> FloatArray:
        """The probability between neighbouring ends."""
        return -np.diff(self.runs.survival(self.ends))


def plan_of(turned: Turned, runs: Range, most: float = CELLS) -> Plan | None:
    """Choose the L for which laws are computed: all at which the law changes, or strata of equal probability.

    Parameters
    ----------
    turned : Turned
        The walk.
    runs : Range
        The range of L.
    most : float
        The cells that may be visited.

    Returns
    -------
    Plan or None
        The choice; None if even two laws would visit too many cells.
    """
    inner = np.linspace(runs.low, runs.high, 9)[1:]
    each = float(np.mean([_cells(turned, float(x)) for x in inner])) + 100.0
    longest = 2 * int(_steps(turned, runs.high, ALIVE))
    count = min(int(most / each), _MOST)
    if count < 2:
        return None
    places = places_of(turned, runs.low, runs.high, int(most / each))
    if places is not None:
        return Plan(runs, np.unique(np.concatenate([[runs.low], places, [runs.high]])), True, longest)
    shares = runs.survival(np.array([runs.low]))[0] * (1.0 - np.arange(1, count) / count)
    grid = np.linspace(runs.low, runs.high, 1 << 16)
    inner = np.interp(shares, runs.survival(grid)[::-1], grid[::-1])
    return Plan(runs, np.unique(np.concatenate([[runs.low], inner, [runs.high]])), False, longest)


def strata(turned: Turned, plan: Plan, forced: Mapping[int, int]) -> Part:
    """Compute the law of the runs of a range.

    Parameters
    ----------
    turned : Turned
        The walk.
    plan : Plan
        For which L laws are computed.
    forced : mapping
        Forced steps of the walk (entry: 1 for up, 0 for down), counted from 1.

    Returns
    -------
    Part
        The runs, and by how much their law may be off.
    """
    masses, last = plan.masses, max(forced, default=0)
    if plan.listed:
        excess, weights = 0.5 * (plan.ends[:-1] + plan.ends[1:]), masses[:, None]
    else:
        excess, weights = plan.ends, _weights(masses)
    ups = np.full(min(last, plan.longest) + 1, turned.walk.p_up)
    for entry, bit in forced.items():
        if entry < ups.size:
            ups[entry - 1] = float(bit)
    found, unseen = _averaged(turned, plan.alive, (excess, weights), ups, plan.longest + last)
    used = np.flatnonzero(found.any(axis=(0, 1)))
    found = found[:, :, : int(used[-1]) + 1 if used.size else 1]
    numerical = unseen + 8.0 * _UNIT * found.shape[2] * plan.runs.share + 1e-15
    if plan.listed:
        return Part(found[0, 0], found[0, 1], numerical, numerical, True)
    gap = found[-1].sum(axis=0)
    half = 0.5 * float(np.max(np.abs(float(gap.sum()) - np.cumsum(gap)), initial=abs(float(gap.sum()))))
    changes = (factor * float(np.abs(found[0] - found[i + 1]).sum()) for i, (_, factor) in enumerate(_STRIDES))
    return Part(found[0, 0], found[0, 1], half + numerical, max(changes) + numerical, False)


def _weights(masses: FloatArray) -> FloatArray:
    """Return weights of the ends: by the trapezoid rule, the same with fewer ends, and upper less lower bracket."""
    columns = []
    for stride in (1, *(stride for stride, _ in _STRIDES)):
        kept = np.unique(np.append(np.arange(0, masses.size + 1, stride), masses.size))
        joined = np.add.reduceat(masses, kept[:-1])
        column = np.zeros(masses.size + 1)
        column[kept] = 0.5 * (np.append(joined, 0.0) + np.insert(joined, 0, 0.0))
        columns.append(column)
    columns.append(np.insert(masses, 0, 0.0) - np.append(masses, 0.0))
    return np.stack(columns, axis=1)


def _averaged(
    turned: Turned, alive: float, laws: tuple[FloatArray, FloatArray], ups: FloatArray, longest: int
) -> tuple[FloatArray, float]:
    """Add up the laws, in parallel. The order of the sums does not depend on the number of threads."""
    walk, (excess, weights) = turned.walk, laws

    def part(i: int) -> tuple[FloatArray, float]:
        mine = slice(i, None, _CHUNKS)
        out = np.zeros((weights.shape[1], 2, longest))
        bounds = (turned.near + excess[mine], turned.far + excess[mine])
        unseen = add_laws(ups, walk.up, walk.down, alive, *bounds, weights[mine].copy(), out)
        return out, float(unseen)

    total, unseen = np.zeros((weights.shape[1], 2, longest)), 0.0
    with ThreadPoolExecutor() as pool:
        for out, rest in pool.map(part, range(min(_CHUNKS, excess.size))):
            total += out
            unseen += rest
    return total, unseen


def _cells(turned: Turned, excess: float) -> float:
    width = (turned.span + 2.0 * excess) / (turned.walk.up + turned.walk.down)
    return 2.0 * _steps(turned, excess, _GOING_ON) * (width + 2.0)


def _steps(turned: Turned, excess: float, alive: float) -> float:
    """Estimate after how many samples so little is still between the bounds."""
    walk, span = turned.walk, turned.span + 2.0 * excess
    drift, variance = walk.drift, walk.variance
    decay = drift**2 / (2.0 * variance) + np.pi**2 * variance / (2.0 * span**2)
    begin = min(span / drift if drift > 0.0 else np.inf, span**2 / variance)
    return float(-np.log(alive) / decay + begin) + 100.0


def places_of(turned: Turned, low: float, high: float, most: int) -> FloatArray | None:
    """List the L between two at which the law for fixed L changes: a position of the walk is on a bound.

    Parameters
    ----------
    turned : Turned
        The walk.
    low, high : float
        The two values of L.
    most : int
        The largest number of such L.

    Returns
    -------
    array or None
        The values of L, increasing; None if there are more.
    """
    walk: Steps = turned.walk
    step = walk.up + walk.down
    count = int((high - low) / step) + 3
    if not _steps(turned, high, ALIVE) * (high - low) / step <= _POSITIONS:
        return None
    steps = np.arange(1, walk_until_exit(walk, turned.near + high, turned.far + high).null.size + 1)[:, None]
    found = []
    for sign, bound in ((1.0, turned.near), (-1.0, turned.far)):
        level = bound + low if sign > 0 else -bound - high
        ones = np.floor((level + steps * walk.down) / step).astype(np.int64) + np.arange(count)
        excess = sign * walk.at(steps, ones) - bound
        found.append(excess[(ones >= 0) & (ones <= steps) & (excess > low) & (excess < high)])
    places = np.unique(np.concatenate(found))
    apart = np.diff(places, prepend=-np.inf) > TIE * step  # of the same position, up to rounding
    return places[apart] if np.count_nonzero(apart) <= most else None
