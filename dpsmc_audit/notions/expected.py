"""What an observer compares: two laws over the same events, one for x_n = 1 and one for x_n = 0.

*Expected* (the paper's Definition 3): the other samples are averaged away first, L is the only randomness left. The
laws compared are those of ``g_x(L) = E[tau | L, x_n = x]``; g_x does not fall when L grows, so
``P(g_x(L) >= a) = P(L >= the L at which g_x reaches a)`` and no L has to be drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt, require
from dpsmc_audit.walks.exact import Exact, Steps, cells_needed, exit_law, walk_until_forced
from dpsmc_audit.walks.ladder import MeanPassage
from dpsmc_audit.walks.overshoot import BUDGET, overshoots, turned_up

__all__ = ["ExpectedLaw", "SupportGap", "bins_between", "expected_law", "forced_moments", "output_sensitivity"]

FloatArray = NDArray[np.float64]

_CHEAP = 3e6
"""Cells that the law for one L may cost where hundreds of L are asked for."""

_SECONDS = 8.0
"""What finding every edge by bisection may take where the ladder does not apply."""

_BISECTED = 400
"""So many edges may be looked for one by one."""

_GRID, _FOLLOWED = 461, 2e11
"""L in the grid, and cells that may be visited for all of them up to the last entry: half a minute."""

MOST_BINS = 50_000
"""A histogram with more bins is a request for wider ones."""


@dataclass(frozen=True)
class SupportGap:
    """Averages that one member reaches and the other never: from `start` to `end`, with this probability.

    `integer`, where there is one, is the largest with ``start < integer <= end``: the average of one member falls below
    it with probability `below` (less its numerical error), that of the other never. The definition's events are sets of
    integers, so this is one of them whatever the width of the bins.
    """

    start: float
    end: float
    mass: float
    integer: int | None = None
    below: float = 0.0


_ON_EDGE = 1e-6
"""An average below an edge by this share of it counts as on the edge: with p = 1/2 means can be integers, but for
rounding and the far bound."""

_TIE = 1e-7
"""Means this close to an integer are taken to be on it: they are known to 1e-8 and better."""


@dataclass(frozen=True, eq=False)
class ExpectedLaw:
    """Laws of ``g_x(L)`` at the edges of bins: ``tail_1[i] = P(g_1(L) >= edges[i])``, `tail_0` for x_n = 0.

    `start_1`, `start_0` are g_x at the smallest L. `tail_error` is by how much a tail may be off, relative to it: a
    bound by the ladder, an estimate by the grid.
    """

    edges: FloatArray
    tail_1: FloatArray
    tail_0: FloatArray
    start_1: Exact
    start_0: Exact
    gap: SupportGap
    tail_error: float
    method: str

    def probabilities(self) -> tuple[FloatArray, FloatArray]:
        """P_1 and P_0 of the bins ``[edges[i], edges[i + 1])``, the last one open."""
        return bins_between(self.tail_1), bins_between(self.tail_0)

    def surely_held(self) -> NDArray[np.bool_]:
        """Bins that one member meets with more than the error of its probability."""
        held = np.zeros(self.edges.size, np.bool_)
        for tail in (self.tail_1, self.tail_0):
            either = tail + np.append(tail[1:], 0.0)
            held |= bins_between(tail) > self.tail_error * either
        return held

    def log_ratio_error(self) -> FloatArray:
        """Numerical error of ``ln(P_1 / P_0)`` in each bin."""
        total = np.zeros(self.edges.size)
        for tail in (self.tail_1, self.tail_0):
            either = tail + np.append(tail[1:], 0.0)
            total += self.tail_error * either / np.maximum(bins_between(tail), 1e-300)
        return total


def bins_between(tail: FloatArray) -> FloatArray:
    """Probabilities between edges from those beyond each; the last one is open."""
    return np.maximum(-np.diff(np.append(tail, 0.0)), 0.0)


def forced_moments(test: Sprt, p_phi: float, excess: float, forced: Mapping[int, int]) -> tuple[float, float]:
    """E[tau | L] and P(H_null | L) with forced entries; by Wald's identities past the last one where that is dear."""
    walk, b_up, b_low = Steps.of(test, p_phi), test.b_up + excess, test.b_low + excess
    if cells_needed(walk, b_up, b_low) <= _CHEAP:
        law = exit_law(test, p_phi, excess, forced)
        return law.mean, law.null_probability
    last = max(forced)
    begun = walk_until_forced(walk, b_up, b_low, forced)
    smooth = overshoots(test, p_phi)
    mean, null = begun.law.mean + begun.law.alive * last, begun.law.null_probability
    for position, mass in zip(begun.positions.tolist(), begun.cells.tolist(), strict=True):
        ahead, behind = b_up - position, b_low + position
        rare = smooth.rare(ahead, behind)
        mean += mass * smooth.mean(ahead, behind)
        null += mass * (rare if smooth.turned else 1.0 - rare)
    return mean, null


def expected_law(
    test: Sprt, mechanism: Mechanism, p_phi: float, entries: tuple[int, ...], bin_width: int, upto: float = 1e-9
) -> ExpectedLaw:
    """Exact laws of g_1(L) and g_0(L) in bins of this width from 0, until less than `upto` is left above.

    All entries are 1 in one member and 0 in the other; where a coin decides, both averages are 1.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> law = expected_law(test, Exponential.private(test, 0.01), 0.84, entries=(1,), bin_width=140)
    >>> one, zero = law.probabilities()
    >>> f"{one[2]:.6f}", float(zero[2]), f"{np.log(one[4] / zero[4]):.6f}"
    ('0.009218', 0.0, '-0.010000')
    """
    _require_early(test, mechanism, p_phi, entries[-1])
    start_1, start_0 = (_start(test, mechanism, p_phi, entries, bit) for bit in (1, 0))
    far = max(float(mechanism.quantile(1.0 - upto)), test.no_room + test.step_sum)
    longest = max(forced_moments(test, p_phi, far, dict.fromkeys(entries, bit))[0] for bit in (1, 0))
    count = math.ceil(longest / bin_width) + 1
    require(count <= MOST_BINS, f"bin_width={bin_width} makes {count} bins, more than {MOST_BINS}: choose wider ones")
    edges = bin_width * np.arange(float(count))
    far = _beyond(test, p_phi, entries, far, float(edges[-1]))
    begin, end = sorted((start_1.value, start_0.value))
    integer = math.floor(end + _TIE)
    # a hair below the end: the staircase of the other member takes the same value there, up to rounding
    points = np.append(edges, [end - 1e-6 - start_1.error - start_0.error, float(integer)]) * (1.0 - _ON_EDGE)
    apart = _apart(test, mechanism, p_phi)
    error = _far_bound_share(test, mechanism, p_phi, entries, apart, far, bin_width)
    if p_phi in (0.0, 1.0):
        reached, error, method = _by_line(test, p_phi, entries, points), 1e-12, "line"
    elif error <= 1e-5:
        reached, method = _by_ladder(test, p_phi, points, _lowest(test, mechanism), apart, far), "ladder"
    elif mechanism.atoms is None and points.size * (_evaluation(test, p_phi, far)) <= _SECONDS:
        nowhere, lowest = np.full(points.size, -math.inf), _lowest(test, mechanism)
        one, zero = (
            _bisected(test, p_phi, dict.fromkeys(entries, bit), points, nowhere, lowest, far) for bit in (1, 0)
        )
        reached, error, method = (one, zero), 1e-8, "bisection"
    else:
        reached, error = _by_grid(test, mechanism, p_phi, entries, points, far)
        method = "grid"
    lowest = float(mechanism.quantile(0.0))
    tails = []
    for start, excess in zip((start_1, start_0), reached, strict=True):
        tail = np.where(excess <= lowest, 1.0, mechanism.survival(excess))
        tails.append(np.where(points <= start.value + _TIE, 1.0, tail))
    early = tails[0] if start_1.value <= start_0.value else tails[1]
    gap = SupportGap(begin, end, 1.0 - float(early[-2]))
    below = 1.0 - float(early[-1]) * (1.0 + error)
    if integer > begin + _TIE and below > 0.0:
        gap = replace(gap, integer=integer, below=below)
    return ExpectedLaw(edges, tails[0][:-2], tails[1][:-2], start_1, start_0, gap, error, method)


def _require_early(test: Sprt, mechanism: Mechanism, p_phi: float, last: int) -> None:
    """Without drift walks live to see a late entry, and have to be followed up to it for hundreds of L."""
    walk, excess = Steps.of(test, p_phi), max(_lowest(test, mechanism), float(mechanism.quantile(1.0 - 1e-3)))
    b_up, b_low = test.b_up + excess, test.b_low + excess
    width = min(b_up + b_low, 16.0 * math.sqrt(walk.variance * last)) / test.step_sum + 1.0
    cells = 2.0 * _GRID * min(last * width, 2.0 * cells_needed(walk, b_up, b_low))
    message = f"entry {last} is late: the exact law at p_phi={p_phi:g} would visit {cells:.0e} cells, more than"
    require(cells <= _FOLLOWED, f"{message} {_FOLLOWED:.0e}; choose an earlier one, or p_phi further from p")


def _lowest(test: Sprt, mechanism: Mechanism) -> float:
    """The smallest L that leaves room between the bounds; a hair above where a coin decides."""
    return max(float(mechanism.quantile(0.0)), test.least_room)


def _beyond(test: Sprt, p_phi: float, entries: tuple[int, ...], far: float, edge: float) -> float:
    """An L, at least `far`, for which the averages of both members are past the last edge: no bin is cut off."""
    for _ in range(60):
        if min(forced_moments(test, p_phi, far, dict.fromkeys(entries, bit))[0] for bit in (1, 0)) > edge:
            break
        far += 0.1 * abs(far) + test.step_sum
    return far


def _start(test: Sprt, mechanism: Mechanism, p_phi: float, entries: tuple[int, ...], bit: int) -> Exact:
    """g_x at the smallest L."""
    lowest = float(mechanism.quantile(0.0))
    if lowest <= test.no_room:
        return Exact(1.0, 0.0, "coin")
    walk = Steps.of(test, p_phi)
    if cells_needed(walk, test.b_up + lowest, test.b_low + lowest) <= BUDGET:
        law = exit_law(test, p_phi, lowest, dict.fromkeys(entries, bit))
        return Exact(law.mean, law.mean_error, "fixed bounds")
    mean = forced_moments(test, p_phi, lowest, dict.fromkeys(entries, bit))[0]
    scale = overshoots(test, p_phi, 0.6).mean(test.b_up, test.b_low) - overshoots(test, p_phi).mean(
        test.b_up, test.b_low
    )
    return Exact(mean, 3.0 * abs(scale) + 1e-9 * mean, "overshoots")


def _apart(test: Sprt, mechanism: Mechanism, p_phi: float) -> float:
    """The L from which on the far bound is too far to matter; the smallest L where it always is."""
    h, lowest = abs(test.exponent(p_phi)), _lowest(test, mechanism)
    if h == 0.0 or lowest > test.no_room + 5.0 * test.step_sum:
        return lowest
    return max(lowest, test.no_room + min(25.0 / h, 40.0 * test.step_sum))


def _far_bound_share(
    test: Sprt,
    mechanism: Mechanism,
    p_phi: float,
    entries: tuple[int, ...],
    apart: float,
    far: float,
    bin_width: int,
) -> float:
    """By how much, relatively, leaving out the far bound changes a tail; inf where the ladder does not apply.

    Where L is random from `apart` on only: smaller L are looked at one by one.
    """
    h = abs(test.exponent(p_phi))
    turned, walk, b_up, b_low = turned_up(test, p_phi)
    if entries != (1,) or h == 0.0 or math.isinf(h) or cells_needed(walk, b_up + far, 40.0 / h) > BUDGET:
        return math.inf
    if apart > _lowest(test, mechanism) and (apart - test.no_room) / walk.drift > _BISECTED * bin_width:
        return math.inf
    rare = 0.0
    for bit in (1, 0):
        law = exit_law(test, p_phi, apart, {1: bit})
        rare = max(rare, law.null_probability if turned else law.alt_probability)
    off = np.array([(rare + 1e-12) * (b_up + b_low + 2.0 * apart + 2.0 * walk.up)])
    return float(np.log(_ratio(mechanism, np.array([apart]), off))[0])


def _by_ladder(
    test: Sprt, p_phi: float, edges: FloatArray, lowest: float, apart: float, far: float
) -> tuple[FloatArray, FloatArray]:
    """The L at which g_1 and g_0 reach each edge: after the first step the walk is a step up or down from 0.

    Below `apart`, where the far bound can be met as well, the L is found by bisection.
    """
    turned, walk, b_up, _ = turned_up(test, p_phi)
    # a walk 40 / h beyond the last barrier comes back below it with probability exp(-40)
    passage = MeanPassage.of(walk, b_up + far + walk.up + walk.down + 40.0 / abs(test.exponent(p_phi)))
    barrier = passage.upcrossing(edges - 1.0)
    ahead, behind = barrier + walk.up - b_up, barrier - walk.down - b_up
    one, zero = (behind, ahead) if turned else (ahead, behind)
    return (
        _bisected(test, p_phi, {1: 1}, edges, one, lowest, apart),
        _bisected(test, p_phi, {1: 0}, edges, zero, lowest, apart),
    )


def _bisected(
    test: Sprt,
    p_phi: float,
    forced: Mapping[int, int],
    edges: FloatArray,
    reached: FloatArray,
    begin: float,
    apart: float,
) -> FloatArray:
    """With the L from `begin` to `apart` found anew: g does not fall, so the edge is reached where bisection ends."""

    def average(excess: float) -> float:
        return exit_law(test, p_phi, excess, forced).mean

    first, top = (average(begin), average(apart)) if np.any(reached < apart) else (0.0, 0.0)
    found = np.where((reached < apart) & (edges <= first), test.no_room, reached)
    found = np.where((reached < apart) & (edges >= top), np.maximum(reached, apart), found)
    for i in np.flatnonzero((reached < apart) & (edges > first) & (edges < top)):
        low, high = begin, apart
        while high - low > 1e-9 * test.step_sum and low < 0.5 * (low + high) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if average(middle) >= edges[i] else (middle, high)
        found[i] = high
    return found


def _evaluation(test: Sprt, p_phi: float, far: float) -> float:
    """About how many seconds it takes to look for the L of one edge, for both members."""
    cells = cells_needed(Steps.of(test, p_phi), test.b_up + far, test.b_low + far)
    return 60.0 * (2e-4 + 1e-9 * cells)


def _by_line(test: Sprt, p_phi: float, entries: tuple[int, ...], points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same where samples are certain: tau is at least v for every L above the excess record after v - 1 samples."""
    steps = np.arange(math.ceil(points.max()) + 1)
    reached = []
    for bit in (1, 0):
        ones = steps * p_phi + sum((steps >= entry) * (bit - p_phi) for entry in entries)
        walk = ones * test.s_plus - (steps - ones) * test.s_minus
        excess = np.maximum(walk - test.b_up, -walk - test.b_low)
        excess[0] = -math.inf
        record = np.maximum.accumulate(excess)
        before = np.maximum(np.ceil(points - _TIE).astype(np.int64) - 1, 0)
        reached.append(np.where(before > 0, np.maximum(record[before], test.no_room), -math.inf))
    return reached[0], reached[1]


def _by_grid(
    test: Sprt, mechanism: Mechanism, p_phi: float, entries: tuple[int, ...], edges: FloatArray, far: float
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """The same by interpolation between the means at hundreds of L, and the relative error of tails this causes.

    The error stated is four times that of interpolating between every second L, found at the ones left out: an
    estimate, as the curve is a staircase between them.
    """
    lowest = _lowest(test, mechanism)
    bulk = max(lowest, float(mechanism.quantile(1.0 - 1e-3)))
    grid = np.unique(np.concatenate([np.linspace(lowest, bulk, 401), np.linspace(bulk, far, 61)]))
    reached, error = [], 0.0
    for bit in (1, 0):
        forced = dict.fromkeys(entries, bit)
        curve = np.maximum.accumulate([forced_moments(test, p_phi, float(x), forced)[0] for x in grid])
        reached.append(np.interp(edges, curve, grid, right=math.inf))
        if grid.size > 2:
            off = np.abs(np.interp(curve[1::2], curve[::2], grid[::2]) - grid[1::2])
            error = max(error, float(np.max(np.abs(np.log(_ratio(mechanism, grid[1::2], off))))))
    return (reached[0], reached[1]), 4.0 * error


def _ratio(mechanism: Mechanism, excess: FloatArray, off: FloatArray) -> FloatArray:
    """By what factor the survival function changes where L is off by this much."""
    above = np.maximum(mechanism.survival(excess + off), 1e-300)
    return np.maximum(mechanism.survival(excess), 1e-300) / above


def output_sensitivity(test: Sprt, mechanism: Mechanism, p_phi: float, entries: tuple[int, ...]) -> float:
    """``|E[o | L, x_n = 1] - E[o | L, x_n = 0]|``, largest over a grid of L that starts at the smallest."""
    shares = np.linspace(0.0, 0.95, 11)
    largest = 0.0
    for excess in np.unique(np.maximum(mechanism.quantile(shares), _lowest(test, mechanism))):
        one, zero = (forced_moments(test, p_phi, float(excess), dict.fromkeys(entries, bit))[1] for bit in (1, 0))
        largest = max(largest, abs(one - zero))
    return largest
