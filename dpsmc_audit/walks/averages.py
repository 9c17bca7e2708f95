"""Exact characteristics of a mechanism: mean samples, error probabilities and the law of tau, averaged over L.

Each number carries its numerical error. Several ways lead to it:

- *renewal*: an exponential L is memoryless, so after the first passage every new record of the walk is a fresh start;
  exact where the far bound plays no part, and that part is bounded;
- *quadrature* over L of the exact law for fixed bounds; limited by the steps that these laws make in L;
- *Wald's identities* with measured overshoots, in place of that law where bounds are far apart and drift is missing;
- *brackets* of the law for fixed bounds where steps are coarse and it is a staircase in L.

Brackets, renewals and fixed bounds state a bound of their error; quadratures and overshoots an estimate of it, which
the tests hold against the other ways.
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
from dpsmc_audit.sprt import Sprt, require
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
def _fixed(test: Sprt, p_phi: float, excess: float, budget: float = BUDGET) -> tuple[float, float]:
    """E[tau | L] and E[tau^2 | L] (nan where only Wald's identities are affordable)."""
    walk = Steps.of(test, p_phi)
    if cells_needed(walk, test.b_up + excess, test.b_low + excess) <= budget:
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
    """Gauss-Legendre nodes and weights of the unit exponential law, on panels that double from 3e-11 to 30."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.concatenate([[0.0], 30.0 * 0.5 ** np.arange(40.0, -1.0, -1.0)])
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

    The difference is noise around 0: where it is looked at matters little, so mechanisms share places where they can.
    """
    h, walk = abs(test.exponent(p_phi)), Steps.of(test, p_phi)

    def wald(excess: float, scale: float = 1.0) -> float:
        if h * min(test.b_up, test.b_low) > 15.0:  # too rare to measure its overshoot, and simply exponential
            return 0.0
        return overshoots(test, p_phi, scale).rare(test.b_up + excess, test.b_low + excess)

    ((center, weight),) = _nodes(mechanism, 1, h, 0.0)  # mean and mass of the law of L tilted by exp(-h L)
    scale = 1.0 / h if center > 0.5 / h else center
    places = [scale * x for x in (0.2, 0.8, 2.0, 4.5)]
    differences = np.array([_fixed_rare(test, p_phi, x) - math.exp(h * x) * wald(x) for x in places])
    base = _average(mechanism, wald)
    value = base + weight * float(differences.mean())
    error = 4.0 * weight * float(np.abs(differences - differences.mean()).max()) + 1e-9 * value
    if max(cells_needed(walk, test.b_up + x, test.b_low + x) for x in places) > BUDGET:
        error += 3.0 * abs(base - _average(mechanism, lambda x: wald(x, 0.6)))
    return Exact(value, error, "overshoots")


# --- brackets: rigorous, for steps so coarse that the law for fixed bounds is a staircase in L ----------------------

_EVALUATIONS = 300
_TAIL = 1e-10
COARSE = 12.0
"""Bounds, or an L, fewer steps wide than this are no place for smooth approximations."""


def _is_coarse(test: Sprt, scale: float) -> bool:
    """Are both the bounds and the typical L only a few steps wide?"""
    return (test.b_up + test.b_low) / test.step_sum < COARSE and scale / test.step_sum < COARSE


def _bracket(
    mechanism: Mechanism, inside: Callable[[float, float], tuple[float, float]], top: float, beyond: tuple[float, float]
) -> Exact:
    """E[f(L)] from bounds of f on intervals of L, the interval that matters most halved again and again.

    `inside` bounds f on an interval of L, `beyond` where L exceeds `top`.
    """
    lowest = float(mechanism.quantile(0.0))

    def item(left: float, right: float) -> tuple[float, float, float, float, float, float]:
        above = float(mechanism.survival(left)) if left > lowest else 1.0
        weight = above - float(mechanism.survival(right))
        low, high = inside(left, right)
        return -weight * (high - low), left, right, weight, low, high

    queue = [item(lowest, top)]
    for _ in range(_EVALUATIONS):
        loss, left, right = queue[0][:3]
        middle = 0.5 * (left + right)
        if loss == 0.0 or not left < middle < right:
            break
        heapq.heapreplace(queue, item(left, middle))
        heapq.heappush(queue, item(middle, right))
    tail = float(mechanism.survival(top))
    low = math.fsum(weight * least for _, _, _, weight, least, _ in queue) + tail * beyond[0]
    high = math.fsum(weight * most for _, _, _, weight, _, most in queue) + tail * beyond[1]
    return Exact(0.5 * (low + high), 0.5 * (high - low) + 1e-10 * abs(high), "bracket")


def _mean_by_bracket(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """On each path tau does not fall when L grows: the means at the ends of an interval bracket those inside."""
    top = float(mechanism.quantile(1.0 - _TAIL))
    last = overshoots(test, p_phi).mean(test.b_up + 3.0 * top, test.b_low + 3.0 * top)

    def at(excess: float) -> float:
        return _fixed(test, p_phi, excess, 0.05 * BUDGET)[0]

    return _bracket(mechanism, lambda left, right: (at(left), at(right)), top, (at(top), last))


def _rare_by_bracket(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Leaving against the drift is likelier the closer that bound and the further the other; never above exp(-h b)."""
    h = abs(test.exponent(p_phi))
    top = float(mechanism.quantile(1.0 - _TAIL))
    top = min(top, 30.0 / h) if h > 0.0 else top
    bound = test.b_low if test.exponent(p_phi) >= 0.0 else test.b_up

    def inside(left: float, right: float) -> tuple[float, float]:
        return _against(test, p_phi, left, right), _against(test, p_phi, right, left)

    return _bracket(mechanism, inside, top, (0.0, math.exp(-h * (bound + top))))


@lru_cache(maxsize=8192)
def _against(test: Sprt, p_phi: float, along: float, against: float) -> float:
    """P(leave against the drift) with the bound along the drift enlarged by one excess, the other by another."""
    h, walk = test.exponent(p_phi), Steps.of(test, p_phi)
    b_up, b_low = (test.b_up + along, test.b_low + against) if h >= 0.0 else (test.b_up + against, test.b_low + along)
    if cells_needed(walk, b_up, b_low) > 0.05 * BUDGET and along != against:  # bounds hundreds of steps apart
        return overshoots(test, p_phi).rare(b_up, b_low)
    law = walk_until_exit(walk.conjugate(h), b_up, b_low, alive=1e-12)
    if h < 0.0:
        return float(law.null @ np.exp(h * (b_up + law.over_null)))
    return float(law.alt @ np.exp(-h * (b_low + law.over_alt)))


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
    if mechanism.atom is not None:
        return _mean_without_noise(test, p_phi, mechanism.atom)
    candidates = []
    if isinstance(mechanism, Exponential) and (records := renewal(test, mechanism, p_phi)) is not None:
        candidates.append(records.mean())
        if candidates[0].error <= 1e-5 * candidates[0].value:
            return candidates[0]
    coarse = _is_coarse(test, float(mechanism.quantile(0.5)))
    candidates.append((_mean_by_bracket if coarse else _mean_by_quadrature)(test, mechanism, p_phi))
    return min(candidates, key=lambda exact: exact.error)


def _mean_without_noise(test: Sprt, p_phi: float, excess: float) -> Exact:
    b_up, b_low = test.b_up + excess, test.b_low + excess
    if cells_needed(Steps.of(test, p_phi), b_up, b_low) <= BUDGET:
        law = exit_law(test, p_phi, excess)
        return Exact(law.mean, law.mean_error, "fixed bounds")
    mean, other = (overshoots(test, p_phi, scale).mean(b_up, b_low) for scale in (1.0, 0.6))
    return Exact(mean, 3.0 * abs(mean - other) + 1e-12 * mean, "overshoots")


def _mean_of_certain_walk(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """The walk is a straight line; ``E[tau] = sum_k P(tau > k)``, the survival function along that line."""
    step, bound = (test.s_plus, test.b_up) if p_phi == 1.0 else (test.s_minus, test.b_low)
    last = math.ceil((bound + float(mechanism.quantile(1.0 - 1e-15))) / step) + 1
    if last > 10_000_000:  # half a step is nothing here
        mean = (bound + _average(mechanism, float)) / step + 0.5
        return Exact(mean, 0.5 + 1e-9 * mean, "straight line")
    running = mechanism.survival(np.arange(last) * step - bound)
    return Exact(float(running.sum()), 1e-12 * last, "sum")


@lru_cache(maxsize=512)
def _rare(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Probability of leaving against the drift."""
    h = abs(test.exponent(p_phi))
    if math.isinf(h):
        return Exact(0.0, 0.0, "certain")
    if mechanism.atom is not None:
        return _rare_without_noise(test, p_phi, mechanism.atom)
    if _is_coarse(test, _nodes(mechanism, 1, h, 0.0)[0][0]):
        return _rare_by_bracket(test, mechanism, p_phi)
    candidates = []
    if h * min(test.b_up, test.b_low) > 0.05:
        candidates.append(_rare_by_overshoots(test, mechanism, p_phi))
    if not candidates or candidates[0].error > 1e-2 * candidates[0].value:
        candidates.append(_rare_by_quadrature(test, mechanism, p_phi))
    return min(candidates, key=lambda exact: exact.error)


def _rare_without_noise(test: Sprt, p_phi: float, excess: float) -> Exact:
    walk, b_up, b_low = Steps.of(test, p_phi), test.b_up + excess, test.b_low + excess
    if cells_needed(walk, b_up, b_low) <= BUDGET:
        value = _against(test, p_phi, excess, excess)
        return Exact(
            value, 1e-9 * value + 1e-12 * math.exp(-abs(test.exponent(p_phi)) * min(b_up, b_low)), "fixed bounds"
        )
    value, other = (overshoots(test, p_phi, scale).rare(b_up, b_low) for scale in (1.0, 0.6))
    return Exact(value, 3.0 * abs(value - other) + 1e-9 * value, "overshoots")


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
    """Standard deviation of tau; nan where the second moment is not affordable.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> round(exact_sd(test, Exponential.private(test, 0.01), 0.84).value, 1)
    917.8
    """
    if mechanism.atom is not None:
        mean, second = _fixed(test, p_phi, mechanism.atom)
        value = math.sqrt(max(second - mean**2, 0.0))
        return Exact(value, 1e-9 * second / max(value, 1e-9), "fixed bounds")
    records = renewal(test, mechanism, p_phi) if isinstance(mechanism, Exponential) else None
    if records is not None and records.sd().error <= 1e-3 * records.sd().value:
        return records.sd()

    def average(count: int) -> float:
        nodes = _nodes(mechanism, count, 0.0, 1e-7)
        mean, second = (math.fsum(w * _fixed(test, p_phi, x)[j] for x, w in nodes) for j in (0, 1))
        return math.sqrt(max(second - mean**2, 0.0))

    return _refine(average, 1e-3, most=64)


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
    if mechanism.atom is not None:
        law = exit_law(test, p_phi, mechanism.atom)
        return TerminationLaw(law.null, law.alt, law.probability_error, "fixed bounds")
    records = renewal(test, mechanism, p_phi) if isinstance(mechanism, Exponential) else None
    if records is not None and records.unsettled <= 1e-4:
        return records.law()
    # the top end of the last stratum is infinite: all of it counts as running on
    ends = mechanism.quantile(np.arange(strata) / strata)
    medians = mechanism.quantile((np.arange(strata) + 0.5) / strata)
    walk = Steps.of(test, p_phi)
    cost = math.fsum(cells_needed(walk, test.b_up + x, test.b_low + x) for x in medians.tolist())
    message = "the law at p_phi={} would visit {:.0e} cells: without drift only means and errors are affordable"
    require(cost <= 100.0 * BUDGET, message.format(p_phi, cost))
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
