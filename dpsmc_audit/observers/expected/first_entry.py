"""At which L an average reaches an edge if entry 1 alone is forced: all L at once, from the ladder of the walk."""

from __future__ import annotations

import math

import numpy as np

from dpsmc_audit.exact.fixed import BUDGET, cells_needed
from dpsmc_audit.exact.ladder import AWAY, Ladder
from dpsmc_audit.exact.walk import turned_up
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray
from dpsmc_audit.observers.expected.bisection import SECONDS, bisected, seconds_needed
from dpsmc_audit.observers.expected.edges import Reached, rounding
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["by_ladder", "upcrossing"]


_DROPPED = 1e-18
"""Less than this probability of the ladder is dropped. The position of each of its steps depends on it."""


_SMOOTH = 1e-5
"""A far bound that changes tails by less, as if g were smooth, keeps its bound where bisection is too expensive."""


def by_ladder(
    setting: Setting,
    entries: tuple[int, ...],
    points: FloatArray,
    lowest: float,
    far: float,
) -> tuple[Reached, Reached, BoolArray] | None:
    """Find the L of both members if entry 1 is forced: after the first step the walk is a step up or down from 0.

    The mean passage over the near bound is known for all L at once (`Ladder`), and g is below it by what the far
    bound cuts off. By the martingale ``exp(-h Lambda)`` the far bound is met with probability at most
    ``exp(-h (b_far + L + first step))``, and from there to the near one it takes no more than
    ``(b_near + b_far + 2 L + up + down) / D`` samples on average (Wald). Where that leaves more than one step of the
    staircase, the L is found by bisection.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    entries : tuple of int
        The samples that differ, counted from 1.
    points : ndarray
        The edges.
    lowest : float
        The smallest L that leaves room between the bounds.
    far : float
        An L at which the averages of both members are beyond the last edge.

    Returns
    -------
    tuple of Reached, Reached and array, or None
        For x = 1 and x = 0, and which edges both members reach at the same barrier (so that their L are
        ``s_plus + s_minus`` apart, exactly); None where this does not apply.
    """
    test, p_phi = setting.test, setting.p_phi
    h = abs(test.exponent(p_phi))
    turned = turned_up(test, p_phi)
    walk, near = turned.walk, turned.near
    if entries != (1,) or h == 0.0 or math.isinf(h) or cells_needed(walk, near + far, 2.0 * AWAY / h) > BUDGET:
        return None
    highest = near + far + walk.up + walk.down
    passage = Ladder.of(walk, h, highest + AWAY / h, alive=_DROPPED)
    numerical = passage.error(points - 1.0, highest)
    lower = upcrossing(passage, points - 1.0 - numerical)
    found, same = [], np.ones(points.size, np.bool_)
    for bit in (1, 0):
        first = walk.up if (bit == 1) != turned.over else -walk.down
        missed = _far_bound(test, p_phi, first, lower + first - near)
        upper = upcrossing(passage, points - 1.0 + numerical + missed)
        same &= (upper == lower) & np.isfinite(lower) & (lower + first - near > max(lowest, test.no_room))
        off = rounding(test, passage.steps, lower + first - near)
        at = lower + first - near
        bracket = Reached(at - off, at, upper + first - near + off, (upper == lower) & np.isfinite(lower))
        unsure = (upper > lower) & (points > 1.0) & (missed > 10.0 * numerical) & (bracket.high > lowest)
        better = _refined(setting, bit, points, bracket, missed, unsure, (lowest, far))
        if better is None:
            return None
        found.append(better)
    return found[0], found[1], same


def _far_bound(test: Sprt, p_phi: float, first: float, excess: FloatArray) -> FloatArray:
    """Bound by how much the far bound shortens the mean passage over the near one, from this L on."""
    turned = turned_up(test, p_phi)
    h, walk, far = turned.h, turned.walk, turned.far
    span = turned.span + walk.up + walk.down
    # exp(-h L) (span + 2 L) falls from where span + 2 L = 2 / h on
    at = np.maximum(np.maximum(excess, test.no_room), 0.5 * (2.0 / h - span))
    finite = np.where(np.isfinite(at), at, 0.0)
    bound = np.exp(-h * (far + finite + first)) * (span + 2.0 * finite) / walk.drift
    return np.where(np.isfinite(at), bound, 0.0)


def _refined(
    setting: Setting,
    bit: int,
    points: FloatArray,
    bracket: Reached,
    missed: FloatArray,
    unsure: BoolArray,
    span: tuple[float, float],
) -> Reached | None:
    """Edges that the far bound leaves `unsure`, by bisection; None if they are too many and it matters.

    `missed` is by how much the far bound may shorten the mean; `span` is the smallest and the largest L.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    lowest, far = span
    if not np.any(unsure):
        return bracket
    if seconds_needed(test, p_phi, np.minimum(bracket.high[unsure], far)) > SECONDS:
        above = np.maximum(mechanism.survival(bracket.at + missed * abs(test.drift(p_phi))), 1e-300)
        change = np.log(np.maximum(mechanism.survival(bracket.at), 1e-300) / above)
        return bracket if float(change[unsure].max()) <= _SMOOTH else None
    within = Reached(bracket.low[unsure], bracket.at[unsure], bracket.high[unsure], bracket.known[unsure])
    better = bisected(test, p_phi, {1: bit}, points[unsure], within, lowest, far)
    low, at, high = bracket.low.copy(), bracket.at.copy(), bracket.high.copy()
    low[unsure], at[unsure], high[unsure] = better.low, better.at, better.high
    return Reached(low, at, high, bracket.known & ~unsure)


def upcrossing(passage: Ladder, times: FloatArray) -> FloatArray:
    """Find, for each time, the position T after which the mean time to reach T is at least that time.

    Parameters
    ----------
    passage : Ladder
        The ladder of a walk.
    times : ndarray
        The times.

    Returns
    -------
    ndarray
        The positions; inf where no visits are counted any more.
    """
    bins = np.searchsorted(passage.climbed[1:], times)
    inside = bins < passage.climbed.size - 2
    wanted = np.zeros(passage.climbed.size - 1, np.bool_)
    wanted[bins[inside]] = True
    positions, masses = passage.visits_in(wanted)
    owner = (positions * passage.bins).astype(np.int64)
    order = np.lexsort((positions, owner))
    positions, masses, owner = positions[order], masses[order], owner[order]
    begins, ends = np.searchsorted(owner, bins), np.searchsorted(owner, bins, side="right")
    found = np.full(times.size, math.inf)
    for i in np.flatnonzero(inside):
        mine = slice(begins[i], ends[i])
        climbed = passage.climbed[bins[i]] + np.cumsum(masses[mine]) / passage.escaped
        found[i] = positions[mine][min(int(np.searchsorted(climbed, times[i])), climbed.size - 1)]
    return found
