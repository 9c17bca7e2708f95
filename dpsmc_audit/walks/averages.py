"""Exact characteristics of a mechanism: mean samples, error probabilities and the law of tau, averaged over L.

Each number carries its numerical error. Three ways lead to it, and the one with the smallest error is taken:

- *renewal*: an exponential L is memoryless, so after the first passage every new record of the walk is a fresh start;
  exact where the far bound plays no part, and that part is bounded;
- *quadrature* over L of the exact law for fixed bounds; limited by the steps that these laws make in L;
- *Wald's identities* with measured overshoots, in place of that law where bounds are far apart and drift is missing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Exponential, Mechanism
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.walks.exact import Exact, Steps, TerminationLaw, cells_needed, exit_law, walk_until_exit
from dpsmc_audit.walks.overshoot import BUDGET, overshoots
from dpsmc_audit.walks.renewal import renewal

__all__ = [
    "WorstErrors",
    "exact_error",
    "exact_law",
    "exact_mean",
    "exact_null_probability",
    "exact_sd",
    "worst_errors",
]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class WorstErrors:
    """The largest error probabilities over each hypothesis: at ``p + delta`` and at ``p - delta``.

    P(H_alt) falls and P(H_null) rises with p_phi, path by path, so the worst case is where the hypotheses begin.
    """

    fp: Exact
    fn: Exact


# --- quadrature over L ----------------------------------------------------------------------------------------------


def _refine(average: Callable[[int], float], tolerance: float, most: int) -> Exact:
    """Double the number of nodes until three refinements in a row hardly change the average.

    The error reported is three times the largest of these changes: a single one can be small by chance.
    """
    nodes = 1
    values, error = [average(nodes)], math.inf
    while nodes < most and (nodes < 8 or error > tolerance * abs(values[-1])):
        nodes *= 2
        values.append(average(nodes))
        error = 3.0 * float(np.abs(np.diff(values[-4:])).max())
    return Exact(values[-1], error + 1e-13 * abs(values[-1]), "quadrature")


@lru_cache(maxsize=4096)
def _fixed(test: Sprt, p_phi: float, excess: float) -> tuple[float, float]:
    """E[tau | L] and E[tau^2 | L] (nan where only Wald's identities are affordable)."""
    walk = Steps.of(test, p_phi)
    if cells_needed(walk, test.b_up + excess, test.b_low + excess) <= BUDGET:
        law = exit_law(test, p_phi, excess)
        return law.mean, law.second_moment
    return overshoots(test, p_phi).mean(test.b_up + excess, test.b_low + excess), math.nan


@lru_cache(maxsize=4096)
def _fixed_rare(test: Sprt, p_phi: float, excess: float) -> float:
    """``exp(|h| L)`` times P(leave against the drift | L), from the conjugate walk, where that is the rule."""
    h, walk = test.exponent(p_phi), Steps.of(test, p_phi)
    b_up, b_low = test.b_up + excess, test.b_low + excess
    if cells_needed(walk, b_up, b_low) > BUDGET:
        return overshoots(test, p_phi).rare(b_up, b_low) * math.exp(abs(h) * excess)
    law = walk_until_exit(walk.conjugate(h), b_up, b_low, alive=1e-9)
    if h < 0.0:
        return float(law.null @ np.exp(h * law.over_null)) * math.exp(h * test.b_up)
    return float(law.alt @ np.exp(-h * law.over_alt)) * math.exp(-h * test.b_low)


def _nodes(mechanism: Mechanism, count: int, tilt: float, share: float) -> list[tuple[float, float]]:
    """Nodes and weights for L, without those whose weight is below this share of the largest."""
    points, weights = mechanism.nodes(count, tilt)
    keep = weights > share * weights.max()
    return list(zip(points[keep].tolist(), weights[keep].tolist(), strict=True))


@lru_cache(maxsize=1)
def _panels() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights of the unit exponential law, on panels that double from 0.002 to 30."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.concatenate([[0.0], 30.0 * 0.5 ** np.arange(14.0, -1.0, -1.0)])
    half = 0.5 * np.diff(edges)[:, None]
    y = (half * (nodes + 1.0) + edges[:-1, None]).ravel()
    return y, (half * weights).ravel() * np.exp(-y)


def _average(mechanism: Mechanism, function: Callable[[float], float]) -> float:
    """E[function(L)] of a smooth function that costs little, by quadrature in ``-ln(survival)``."""
    y, weights = _panels()
    excess = mechanism.quantile(-np.expm1(-y))
    return math.fsum(w * function(x) for x, w in zip(excess.tolist(), weights.tolist(), strict=True))


def _mean_by_quadrature(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Wald's identities averaged over L, and what the law for fixed bounds differs from them at a few nodes."""
    walk = Steps.of(test, p_phi)

    def wald(excess: float, scale: float = 1.0) -> float:
        return overshoots(test, p_phi, scale).mean(test.b_up + excess, test.b_low + excess)

    nodes = _nodes(mechanism, 8, 0.0, 1e-8)
    affordable = [(x, w) for x, w in nodes if cells_needed(walk, test.b_up + x, test.b_low + x) <= BUDGET]
    differences = [(w, _fixed(test, p_phi, x)[0] - wald(x)) for x, w in affordable]
    base = _average(mechanism, wald)
    value = base + math.fsum(w * d for w, d in differences)
    error = max((abs(d) for _, d in differences), default=0.0) + 1e-12 * value
    if len(affordable) < len(nodes):
        error += 3.0 * abs(base - _average(mechanism, lambda x: wald(x, 0.6)))
    return Exact(value, error, "quadrature")


def _rare_by_quadrature(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Gauss nodes for the law of L tilted by exp(-|h| L), more and more of them."""
    h = abs(test.exponent(p_phi))

    def average(count: int) -> float:
        return math.fsum(w * _fixed_rare(test, p_phi, x) for x, w in _nodes(mechanism, count, h, 1e-6))

    return _refine(average, 3e-3, most=64)


def _rare_by_overshoots(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Wald's identities averaged over L, and by how much the law for fixed bounds differs from them at a few places.

    The difference is noise around 0, so where it is looked at matters little and all mechanisms share the same places.
    """
    h, walk = abs(test.exponent(p_phi)), Steps.of(test, p_phi)

    def wald(excess: float, scale: float = 1.0) -> float:
        if h * min(test.b_up, test.b_low) > 15.0:  # too rare to measure its overshoot, and simply exponential
            return 0.0
        return overshoots(test, p_phi, scale).rare(test.b_up + excess, test.b_low + excess)

    places = [x / h for x in (0.2, 0.8, 2.0, 4.5)]
    differences = np.array([_fixed_rare(test, p_phi, x) - math.exp(h * x) * wald(x) for x in places])
    weight = _nodes(mechanism, 1, h, 0.0)[0][1]
    base = _average(mechanism, wald)
    value = base + weight * float(differences.mean())
    error = 4.0 * weight * float(np.abs(differences - differences.mean()).max()) + 1e-9 * value
    if max(cells_needed(walk, test.b_up + x, test.b_low + x) for x in places) > BUDGET:
        error += 3.0 * abs(base - _average(mechanism, lambda x: wald(x, 0.6)))
    return Exact(value, error, "overshoots")


# --- bisection in L, for steps so coarse that the law for fixed bounds is a staircase -------------------------------


@dataclass(frozen=True)
class _Bisection:
    """Averages over L with rigorous errors, from the law for fixed bounds at the ends of adaptive intervals of L.

    On each path tau is an integer and does not fall when L grows. So E[tau | L] at the ends of an interval brackets it
    inside, and nothing at all changes inside with more probability than E[tau | L] rises.
    """

    mean: Exact
    rare: Exact


_INTERVALS = 400
_TAIL = 1e-9


@lru_cache(maxsize=512)
def _bisection(test: Sprt, mechanism: Mechanism, p_phi: float) -> _Bisection | None:
    """Refine where the bracket is widest; None where the laws for fixed bounds cost too much to be taken this often."""
    walk, top = Steps.of(test, p_phi), float(mechanism.quantile(1.0 - _TAIL))
    if _INTERVALS * cells_needed(walk, test.b_up + 0.25 * top, test.b_low + 0.25 * top) > 20.0 * BUDGET:
        return None

    def at(excess: float) -> tuple[float, float, float]:
        running = float(mechanism.survival(excess)) if excess > 0.0 else 1.0
        law = exit_law(test, p_phi, excess)
        rare = law.alt_probability if walk.drift >= 0.0 else law.null_probability
        return running, law.mean, rare

    def interval(left: float, right: float) -> tuple[float, float, float]:
        (above, low, _), (below, high, _) = points[left], points[right]
        return -(above - below) * (high - low), left, right

    points = {0.0: at(0.0), top: at(top)}
    queue = [interval(0.0, top)]
    while len(points) <= _INTERVALS and queue[0][0] < 0.0:
        _, left, right = heapq.heappop(queue)
        middle = 0.5 * (left + right)
        if not left < middle < right:
            continue
        points[middle] = at(middle)
        heapq.heappush(queue, interval(left, middle))
        heapq.heappush(queue, interval(middle, right))
        if not queue:
            break
    rows = np.array([points[x] for x in sorted(points)])
    weight, rise = -np.diff(rows[:, 0]), np.diff(rows[:, 1])
    tail, last_mean, last_rare = rows[-1].tolist()
    beyond = overshoots(test, p_phi).mean(test.b_up + 2.0 * top, test.b_low + 2.0 * top)
    mean = float(weight @ (rows[:-1, 1] + 0.5 * rise)) + tail * last_mean
    rare = float(weight @ (0.5 * (rows[:-1, 2] + rows[1:, 2]))) + tail * last_rare
    mean_error = 0.5 * float(weight @ rise) + tail * beyond + 1e-12 * mean
    rare_error = float(weight @ np.minimum(rise, 1.0)) + tail + 1e-12
    return _Bisection(Exact(mean, mean_error, "bisection"), Exact(rare, rare_error, "bisection"))


# --- what users ask for ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def exact_mean(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Mean number of samples.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> mean = exact_mean(test, Exponential.private(test, 0.01), 0.84)
    >>> f"{mean.value:.3f}", mean.error < 1e-6, mean.method
    ('1322.747', True, 'renewal')
    """
    if p_phi in (0.0, 1.0):
        return _mean_of_certain_walk(test, mechanism, p_phi)
    candidates = []
    if isinstance(mechanism, Exponential) and (records := renewal(test, mechanism, p_phi)) is not None:
        candidates.append(records.mean())
    if not candidates or candidates[0].error > 1e-5 * candidates[0].value:
        candidates.append(_mean_by_quadrature(test, mechanism, p_phi))
    if (
        min(c.error / c.value for c in candidates) > 1e-5
        and (refined := _bisection(test, mechanism, p_phi)) is not None
    ):
        candidates.append(refined.mean)
    return min(candidates, key=lambda exact: exact.error)


def _mean_of_certain_walk(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """The walk is a straight line; ``E[tau] = sum_k P(tau > k)``, the survival function along that line."""
    step, bound = (test.s_plus, test.b_up) if p_phi == 1.0 else (test.s_minus, test.b_low)
    last = math.ceil((bound + float(mechanism.quantile(1.0 - 1e-15))) / step) + 1
    running = mechanism.survival(np.arange(last) * step - bound)
    return Exact(float(running.sum()), 1e-12 * last, "sum")


@lru_cache(maxsize=512)
def _rare(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Probability of leaving against the drift."""
    h = abs(test.exponent(p_phi))
    if math.isinf(h):
        return Exact(0.0, 0.0, "certain")
    candidates = []
    if h * min(test.b_up, test.b_low) > 0.05:
        candidates.append(_rare_by_overshoots(test, mechanism, p_phi))
    if not candidates or candidates[0].error > max(3e-3 * candidates[0].value, 1e-12):
        candidates.append(_rare_by_quadrature(test, mechanism, p_phi))
    if candidates[-1].error > 3e-4 and (refined := _bisection(test, mechanism, p_phi)) is not None:
        candidates.append(refined.rare)
    return min(candidates, key=lambda exact: exact.error)


def exact_null_probability(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """P(return H_null)."""
    rare = _rare(test, mechanism, p_phi)
    return rare if test.exponent(p_phi) < 0.0 else Exact(1.0 - rare.value, rare.error, rare.method)


def exact_error(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """P(wrong decision); the truth is H_null iff p_phi > p, also inside the indifference region.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> f"{exact_error(Sprt(p=0.9, delta=0.09, alpha=0.1186), NoNoise(), 0.81).value:.4f}"
    '0.1267'
    """
    rare = _rare(test, mechanism, p_phi)
    drifts_to_null = test.exponent(p_phi) >= 0.0
    if drifts_to_null == test.null_is_true(p_phi):
        return rare
    return Exact(1.0 - rare.value, rare.error, rare.method)


def worst_errors(test: Sprt, mechanism: Mechanism) -> WorstErrors:
    """`fp` = P(H_alt) at ``p + delta``, `fn` = P(H_null) at ``p - delta``.

    Wald's bounds promise ``alpha / (1 - alpha)``, not alpha: with coarse steps either may exceed alpha.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> f"{worst_errors(Sprt(p=0.9, delta=0.09, alpha=0.1186), NoNoise()).fn.value:.4f}"
    '0.1267'
    """
    return WorstErrors(
        exact_error(test, mechanism, test.p + test.delta), exact_error(test, mechanism, test.p - test.delta)
    )


def exact_sd(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Standard deviation of tau; nan where the second moment is not affordable."""
    records = renewal(test, mechanism, p_phi) if isinstance(mechanism, Exponential) else None
    if records is not None and records.sd().error <= 1e-3 * records.sd().value:
        return records.sd()

    def average(count: int) -> float:
        nodes = _nodes(mechanism, count, 0.0, 1e-7)
        mean, second = (math.fsum(w * _fixed(test, p_phi, x)[j] for x, w in nodes) for j in (0, 1))
        return math.sqrt(max(second - mean**2, 0.0))

    return _refine(average, 1e-3, most=32)


def exact_law(test: Sprt, mechanism: Mechanism, p_phi: float, strata: int = 256) -> TerminationLaw:
    """Law of (tau, o): by renewal where it applies, else averaged over strata of L of equal probability.

    tau grows with L, so the laws at the two ends of each stratum bracket P(tau > k); the law at the medians is returned
    and the width of the bracket is its stated error.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> law = exact_law(test, Exponential.private(test, 0.05), 0.84)
    >>> f"{law.survival()[200]:.4f}", law.error < 1e-5, law.method
    ('0.5449', True, 'renewal')
    """
    records = renewal(test, mechanism, p_phi) if isinstance(mechanism, Exponential) else None
    if records is not None and records.unsettled <= 1e-4:
        return records.law()
    # the top end of the last stratum is infinite: all of it counts as running on
    ends = mechanism.quantile(np.arange(strata) / strata)
    medians = mechanism.quantile((np.arange(strata) + 0.5) / strata)
    if np.ptp(medians) == 0.0:
        law = exit_law(test, p_phi, float(medians[0]))
        return TerminationLaw(law.null, law.alt, law.probability_error, "fixed bounds")
    laws = [exit_law(test, p_phi, float(x)) for x in medians]
    lower = [exit_law(test, p_phi, float(x)).survival() for x in ends]
    width = float(np.max(_total([*lower[1:], np.ones(1)], hold=True) - _total(lower, hold=False))) / strata
    null, alt = _total([x.null for x in laws]) / strata, _total([x.alt for x in laws]) / strata
    return TerminationLaw(null, alt, width, "strata")


def _total(rows: Sequence[FloatArray], *, hold: bool = False) -> FloatArray:
    """Sum of rows of different lengths, continued by 0 (or, to `hold`, by their last value)."""
    total = np.zeros(max(row.size for row in rows))
    for row in rows:
        total[: row.size] += row
        total[row.size :] += row[-1] if hold else 0.0
    return total
