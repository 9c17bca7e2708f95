"""At which L an average termination time reaches the edge of a bin, enclosed from both sides.

``g_x(L) = E[tau | L, x_n = x]`` is a staircase in L that does not fall, and continuous from the left: tau > k exactly
if L exceeds the excess record after k samples. So ``P(g_x(L) >= a) = P(L > l)`` with one l for each edge a. Each
method knows g up to a numerical error, and finds two L: up to `low` the average is surely below the edge, beyond `high`
it surely is not. They are one step of the staircase unless g comes as near to the edge as it is uncertain: then the
steps on which it does lie between them, and probabilities are enclosed from both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsmc_audit.exact.fixed import Exact, ExitLaw, Steps, cells_needed, exit_law
from dpsmc_audit.exact.ladder import MeanPassage
from dpsmc_audit.exact.overshoot import BUDGET, turned_up
from dpsmc_audit.mechanisms import Atoms, Law, Mechanism
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["Reached", "Tails", "by_bisection", "by_ladder", "by_line", "mean_of", "tails_between", "tails_of_atoms"]

_UNIT = 2.0**-53

SURVIVAL_ERROR = ((1e-13, 0.0), (1e-12, 1e-15))
"""Relative and absolute error of a survival function: of ours (an exponential of a rounded number of at most 400: a few
units of rounding of that), and what is taken for those of `scipy`."""

_SECONDS = 8.0
"""What finding edges by bisection may take."""

_SMOOTH = 1e-5
"""A far bound that changes tails by less, as if g were smooth, keeps its bound where bisection is too expensive."""

_BEYOND = 40.0
"""A walk that is this / h above a barrier comes back to it with probability exp(-this) at most."""


@dataclass(frozen=True, eq=False)
class Reached:
    """The L at which an average reaches each edge, enclosed from both sides.

    Parameters
    ----------
    low, high : ndarray
        Up to `low` the average is surely below the edge, beyond `high` it surely is not.
    at : ndarray
        The L that is used.
    known : ndarray
        Where `at` is that L but for rounding: two edges with one such L are reached together.
    """

    low: FloatArray
    at: FloatArray
    high: FloatArray
    known: BoolArray


@dataclass(frozen=True, eq=False)
class Tails:
    """``P(g_x(L) >= edge)`` for each edge.

    Parameters
    ----------
    low, value, high : ndarray
        The probability, and what it surely lies between. Results show `value`.
    step : ndarray
        Edges with the same `step` are reached together; nan where that is not known.
    """

    low: FloatArray
    value: FloatArray
    high: FloatArray
    step: FloatArray

    def bins(self) -> Tails:
        """Return the probabilities between each edge and the next one. The last bin is open."""
        empty = self.step == np.append(self.step[1:], math.nan)

        def between(here: FloatArray, there: FloatArray) -> FloatArray:
            return np.where(empty, 0.0, np.maximum(here - np.append(there[1:], 0.0), 0.0))

        ends = between(self.low, self.high), between(self.value, self.value), between(self.high, self.low)
        return Tails(*ends, self.step)

    def cut(self, count: int) -> Tails:
        """Keep the first edges.

        Parameters
        ----------
        count : int
            How many edges are kept.

        Returns
        -------
        Tails
            The tails at these edges.
        """
        return Tails(self.low[:count], self.value[:count], self.high[:count], self.step[:count])


def tails_between(test: Sprt, mechanism: Mechanism, points: FloatArray, reached: Reached) -> Tails:
    """Compute the probability of reaching each edge from the L at which it is reached.

    Every tau is at least 1, so the tail is 1 at edges up to 1. If L cannot be as small as `high`, the tail is 1 too.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    points : ndarray
        The edges.
    reached : Reached
        The L at which each edge is reached, enclosed from both sides.

    Returns
    -------
    Tails
        The probabilities, enclosed from both sides.
    """
    always, least = points <= 1.0, float(mechanism.quantile(0.0))
    relative, absolute = SURVIVAL_ERROR[isinstance(mechanism, Law)]

    def survival(excess: FloatArray) -> FloatArray:
        # up to `no_room` a coin decides, and every average is 1
        return np.asarray(mechanism.survival(np.maximum(excess, test.no_room)), np.float64)

    low = np.maximum(survival(reached.high) * (1.0 - relative) - absolute, 0.0)
    low = np.where(np.maximum(reached.high, test.no_room) < least, 1.0, low)
    high = np.minimum(survival(reached.low) * (1.0 + relative) + absolute, 1.0)
    high = np.where(np.isinf(reached.low) & (reached.low > 0.0), 0.0, high)
    value = np.clip(survival(reached.at), low, high)
    low, value, high = (np.where(always, 1.0, tail) for tail in (low, value, high))
    return Tails(low, value, high, np.where(reached.known & ~always, reached.at, math.nan))


# --- an L that takes few values -------------------------------------------------------------------------------------


def tails_of_atoms(atoms: Atoms, averages: Sequence[Exact], points: FloatArray) -> Tails:
    """Compute the probability of reaching each edge from the average at each value of L.

    A value of L counts for `low` at the edges that its average surely reaches. If there are several values, they are
    listed up to a total probability of 1e-12, and the ends allow for it.

    Parameters
    ----------
    atoms : tuple of tuple
        The values of L and their probabilities.
    averages : sequence of Exact
        The average termination time at each value.
    points : ndarray
        The edges.

    Returns
    -------
    Tails
        The probabilities, enclosed from both sides.
    """
    low, value, high = (np.zeros(points.size) for _ in range(3))
    for (_, share), average in zip(atoms, averages, strict=True):
        low += share * (average.value - average.error >= points)
        value += share * (average.value + average.error >= points)
    high = value.copy()
    if len(atoms) > 1:
        low, high = np.maximum(low - 1e-12, 0.0), high + 1e-12
    always = points <= 1.0
    low, value, high = (np.where(always, 1.0, np.minimum(tail, 1.0)) for tail in (low, value, high))
    return Tails(low, value, high, np.full(points.size, math.nan))


# --- samples that are certain ---------------------------------------------------------------------------------------


def by_line(test: Sprt, p_phi: float, entries: tuple[int, ...], points: FloatArray) -> tuple[Reached, Reached]:
    """Find the L of each edge where samples are certain (p_phi is 0 or 1).

    There tau is at least v for every L above the record after v - 1 samples. No average is rounded. The records are
    rounded, by as much as sums of that many steps.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds: 0 or 1.
    entries : tuple of int
        The samples that differ, counted from 1.
    points : ndarray
        The edges.

    Returns
    -------
    tuple of Reached
        For x = 1 and x = 0.
    """
    steps = np.arange(math.ceil(points.max()) + 1)
    reached = []
    for bit in (1, 0):
        ones = steps * p_phi + sum((steps >= entry) * (bit - p_phi) for entry in entries)
        walk = ones * test.s_plus - (steps - ones) * test.s_minus
        excess = np.maximum(walk - test.b_up, -walk - test.b_low)
        excess[0] = -math.inf
        record = np.maximum.accumulate(excess)
        before = np.maximum(np.ceil(points).astype(np.int64) - 1, 0)
        at = np.where(before > 0, np.maximum(record[before], test.no_room), -math.inf)
        off = _rounding(test, steps.size, at)
        reached.append(Reached(at - off, at, at + off, np.ones(points.size, np.bool_)))
    return reached[0], reached[1]


def _rounding(test: Sprt, steps: int, excess: FloatArray) -> FloatArray:
    """Bound the rounding error of an L that is a position of the walk less its bound."""
    finite = np.where(np.isfinite(excess), np.abs(excess), 0.0)
    return np.asarray(4.0 * _UNIT * (steps * test.step_sum + max(test.b_up, test.b_low) + finite))


# --- the first entry: all L at once ---------------------------------------------------------------------------------


def by_ladder(
    setting: Setting,
    entries: tuple[int, ...],
    points: FloatArray,
    lowest: float,
    far: float,
) -> tuple[Reached, Reached, BoolArray] | None:
    """Find the L of both members if entry 1 is forced: after the first step the walk is a step up or down from 0.

    The mean passage over the near bound is known for all L at once (`MeanPassage`), and g is below it by what the far
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
    turned, walk, near, _ = turned_up(test, p_phi)
    if entries != (1,) or h == 0.0 or math.isinf(h) or cells_needed(walk, near + far, _BEYOND / h) > BUDGET:
        return None
    passage = MeanPassage.of(walk, near + far + walk.up + walk.down + _BEYOND / h)
    numerical = passage.error(points - 1.0, math.exp(-_BEYOND))
    lower = passage.upcrossing(points - 1.0 - numerical)
    found, same = [], np.ones(points.size, np.bool_)
    for bit in (1, 0):
        first = walk.up if (bit == 1) != turned else -walk.down
        missed = _far_bound(test, p_phi, first, lower + first - near)
        upper = passage.upcrossing(points - 1.0 + numerical + missed)
        same &= (upper == lower) & np.isfinite(lower) & (lower + first - near > max(lowest, test.no_room))
        off = _rounding(test, passage.steps, lower + first - near)
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
    h = abs(test.exponent(p_phi))
    _, walk, near, far = turned_up(test, p_phi)
    span = near + far + walk.up + walk.down
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
    if _seconds(test, p_phi, np.minimum(bracket.high[unsure], far)) > _SECONDS:
        above = np.maximum(mechanism.survival(bracket.at + missed * abs(test.drift(p_phi))), 1e-300)
        change = np.log(np.maximum(mechanism.survival(bracket.at), 1e-300) / above)
        return bracket if float(change[unsure].max()) <= _SMOOTH else None
    within = Reached(bracket.low[unsure], bracket.at[unsure], bracket.high[unsure], bracket.known[unsure])
    better = _bisected(test, p_phi, {1: bit}, points[unsure], within, lowest, far)
    low, at, high = bracket.low.copy(), bracket.at.copy(), bracket.high.copy()
    low[unsure], at[unsure], high[unsure] = better.low, better.at, better.high
    return Reached(low, at, high, bracket.known & ~unsure)


# --- edge by edge ---------------------------------------------------------------------------------------------------


def by_bisection(
    test: Sprt, p_phi: float, entries: tuple[int, ...], points: FloatArray, lowest: float, far: float
) -> tuple[Reached, Reached] | None:
    """Find the L of both members, edge by edge.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds.
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
    tuple of Reached, or None
        For x = 1 and x = 0; None where this would take too long.
    """
    if 2.0 * points.size * _seconds(test, p_phi, np.array([far])) > _SECONDS:
        return None
    low, high = np.full(points.size, -math.inf), np.full(points.size, math.inf)
    nothing = Reached(low, low, high, np.zeros(points.size, np.bool_))
    one, zero = (_bisected(test, p_phi, dict.fromkeys(entries, bit), points, nothing, lowest, far) for bit in (1, 0))
    return one, zero


def _seconds(test: Sprt, p_phi: float, excess: FloatArray) -> float:
    """Estimate how long it takes to find the edges that one member reaches near these L."""
    walk = Steps.of(test, p_phi)
    return sum(30.0 * (2e-4 + 1e-9 * cells_needed(walk, test.b_up + x, test.b_low + x)) for x in excess.tolist())


def mean_of(law: ExitLaw) -> tuple[float, float]:
    """Compute the mean of tau and a bound on its numerical error.

    The law states the error of its probabilities and of what is still running; the sum of so many products adds
    one unit of rounding each. Nothing is rounded where tau is certain: all probabilities are 0 or 1 there.

    Parameters
    ----------
    law : ExitLaw
        The law of tau between fixed bounds.

    Returns
    -------
    tuple of float
        The mean and the bound.
    """
    stopped = law.null + law.alt
    if law.alive == 0.0 and law.lost == 0.0 and float(stopped.max()) == 1.0 == float(stopped.sum()):
        return float(np.flatnonzero(stopped)[0] + 1), 0.0
    return law.mean, law.mean_error + 2.0 * _UNIT * (law.null.size + 2) * law.mean


class _Average:
    """g by the dynamic programme, remembered."""

    def __init__(self, test: Sprt, p_phi: float, forced: dict[int, int]) -> None:
        self.test, self.p_phi, self.forced = test, p_phi, forced
        self.known: dict[float, tuple[float, float]] = {}
        self.longest = 0

    def __call__(self, excess: float) -> tuple[float, float]:
        if excess not in self.known:
            law = exit_law(self.test, self.p_phi, excess, self.forced)
            self.known[excess] = mean_of(law)
            self.longest = max(self.longest, law.null.size)
        return self.known[excess]

    def first(self, edge: float, surely: bool, begin: float, end: float) -> tuple[float, float]:
        """Two L a billionth of a step apart: the first does not reach the edge, surely or possibly, the second does.

        (begin, begin) if already the first one does, (end, inf) if not even the last one does.
        """

        def reached(excess: float) -> bool:
            mean, error = self(excess)
            return mean - error >= edge if surely else mean + error >= edge

        if reached(begin):
            return begin, begin
        if not reached(end):
            return end, math.inf
        low, high = begin, end
        while high - low > 1e-9 * self.test.step_sum and low < 0.5 * (low + high) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if reached(middle) else (middle, high)
        return low, high


def _bisected(
    test: Sprt, p_phi: float, forced: dict[int, int], points: FloatArray, within: Reached, lowest: float, far: float
) -> Reached:
    """Enclosures inside those given. Walks meet rounded bounds: as if L were off by that much (tau grows with L)."""
    average, found = _Average(test, p_phi, forced), []
    for point, low, high in zip(points.tolist(), within.low.tolist(), within.high.tolist(), strict=True):
        begin, end = max(low, lowest), min(high, far)
        if point <= 1.0 or begin >= end:
            found.append((low, low, high))
            continue
        below, at = average.first(point, False, begin, end)
        above = average.first(point, True, begin, end)[1]
        off = float(_rounding(test, average.longest, np.array(end)))
        if above == lowest > test.least_room:
            found.append((-math.inf, -math.inf, -math.inf))  # no L is smaller, and this one does
            continue
        # where already the smallest L may do, nothing more is known of `low`; nor of `high` if the largest may not
        found.append((low, low, min(above + off, high)) if at == begin else (below - off, at, min(above + off, high)))
    columns = np.array(found).reshape(-1, 3).T
    return Reached(columns[0], columns[1], columns[2], np.zeros(points.size, np.bool_))
