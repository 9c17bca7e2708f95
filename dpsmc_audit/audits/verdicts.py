"""From two laws, or from samples of them, to a histogram with the e^{±epsilon} check of each bin and to a verdict."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.bounds import FEWEST, PARTS, Parts, bounded_verdict, part_of
from dpsmc_audit.evidence.events import Counted, outcome_code
from dpsmc_audit.evidence.intervals import student_quantile
from dpsmc_audit.evidence.verdict import Verdict
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.notions.expected import ExpectedLaw
from dpsmc_audit.profiles import Event, factor
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.walks.pairs import PairSums, pair_times

__all__ = [
    "Histogram",
    "exact_histogram",
    "exact_verdict",
    "given_pairs_verdict",
    "log_ratio",
    "sampled_histogram",
    "support_gap_evidence",
]

FloatArray = NDArray[np.float64]

_KNOWN = 1e-8
"""Bins with less probability than this are left out of exact verdicts."""

_NOTHING = 1e-12
"""A support gap of this probability is rounding."""

FEWEST_PAIRS = 200
"""A sampled verdict needs this many pairs: its bound is asymptotic, and rare sequences need a chance to show."""

REPLICATES = 200
SIMULATED = 2000
CANDIDATES = 17


@dataclass(frozen=True, eq=False)
class Histogram:
    """Probabilities of the average termination time in bins ``[lo, hi)`` and the check of their ratio."""

    lo: FloatArray
    hi: FloatArray
    p1: FloatArray
    p0: FloatArray
    log_ratio: FloatArray
    log_ratio_low: FloatArray
    log_ratio_high: FloatArray
    exact_log_ratio: FloatArray
    outside: NDArray[np.bool_]

    def kept(self, keep: NDArray[np.bool_]) -> Histogram:
        """Only these bins."""
        return replace(self, **{column.name: getattr(self, column.name)[keep] for column in fields(self)})


# --- exact ----------------------------------------------------------------------------------------------------------


def log_ratio(p1: FloatArray, p0: FloatArray) -> FloatArray:
    """``ln(p1 / p0)``: infinite where one is 0, nan where both are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(p1) - np.log(p0)


def _delta(p1: FloatArray, p0: FloatArray, epsilon: float, unsure: FloatArray) -> float:
    """A delta that (epsilon, delta) cannot do without on unions of these bins, in either direction.

    Each bin counts with what is left of it when both probabilities are off by as much as they are `unsure`.
    """
    times = factor(epsilon)
    slack = unsure * (1.0 + times)
    return float(max(np.maximum(p1 - times * p0 - slack, 0.0).sum(), np.maximum(p0 - times * p1 - slack, 0.0).sum()))


def exact_verdict(law: ExpectedLaw, epsilon: float) -> Verdict:
    """From the exact laws; a support gap counts if it holds an integer, as the definition's events are of integers."""
    p1, p0 = law.probabilities()
    ratio, error = np.abs(log_ratio(p1, p0)), law.log_ratio_error()
    known = (p1 + p0) > _KNOWN
    surely = np.where(known & (np.isfinite(ratio) | law.surely_held()), ratio - error, 0.0)
    worst = int(np.argmax(surely))
    delta = _delta(p1, p0, epsilon, 2.0 * law.tail_error * np.maximum(law.tail_1, law.tail_0))
    if law.gap.integer is not None and law.gap.below > _NOTHING:
        one_early = law.start_1.value < law.start_0.value
        p = (law.gap.below, 0.0) if one_early else (0.0, law.gap.below)
        event = f"average termination time below {law.gap.integer}"
        return Verdict("violated", math.inf, max(delta, law.gap.below), Event(event, *p))
    witness = Event(f"average termination time in {_bin_name(law.edges, worst)}", float(p1[worst]), float(p0[worst]))
    bound = max(float(surely[worst]), 0.0)
    if bound > epsilon:
        return Verdict("violated", bound, delta, witness)
    if np.all(np.where(known, ratio + error, 0.0) <= epsilon + 1e-6):
        return Verdict("certified", bound, 0.0, None)
    return Verdict("consistent", bound, 0.0, None)


def _bin_name(edges: FloatArray, i: int) -> str:
    return f"[{edges[i]:g}, {edges[i + 1]:g})" if i + 1 < edges.size else f"[{edges[i]:g}, inf)"


def exact_histogram(law: ExpectedLaw, epsilon: float) -> Histogram:
    """All bins that hold anything; outside means beyond the tolerance and the numerical error."""
    p1, p0 = law.probabilities()
    ratio, error = log_ratio(p1, p0), law.log_ratio_error()
    keep = (p1 + p0) > 1e-12
    with np.errstate(invalid="ignore"):
        outside = np.abs(ratio) - error > epsilon + 1e-9
    hi = np.append(law.edges[1:], math.inf)
    return Histogram(law.edges, hi, p1, p0, ratio, ratio - error, ratio + error, ratio, outside).kept(keep)


# --- sampled --------------------------------------------------------------------------------------------------------


def sampled_histogram(
    sums: PairSums, law: ExpectedLaw, width: int, epsilon: float, confidence: float, seed: int
) -> tuple[Histogram, float]:
    """Shares of the draws of L by the bin their average falls in, for both members, and what chance puts outside.

    Intervals are percentiles of a bootstrap that draws both the groups of pairs and the draws of L anew, so that they
    know of the finite number of either.
    """
    first = int(sums.means().min() // width)
    count = int(sums.means().max() // width) - first + 1
    lo = width * np.arange(first, first + count, dtype=np.float64)
    p1, p0 = _shares(sums.means(), None, first, count, width)
    ratio = log_ratio(p1, p0)
    rng = np.random.default_rng([seed, 3])
    replicates = np.array([_replicate(sums, rng, first, count, width) for _ in range(REPLICATES)])
    tail = 0.5 * (1.0 - confidence)
    with np.errstate(invalid="ignore"):
        low, high = np.nanquantile(
            np.nan_to_num(replicates, nan=0.0, posinf=1e9, neginf=-1e9), [tail, 1.0 - tail], axis=0
        )
    low, high = (np.where(np.abs(x) >= 1e8, np.copysign(math.inf, x), x) for x in (low, high))
    exact = _exact_ratio_on(law, lo)
    with np.errstate(invalid="ignore"):
        outside = np.abs(ratio) > epsilon
    chance = outside_by_chance(law, sums.excess.size, epsilon, seed)
    return Histogram(lo, lo + width, p1, p0, ratio, low, high, exact, outside).kept((p1 + p0) > 0), chance


def _shares(
    means: FloatArray, weights: NDArray[np.int64] | None, first: int, count: int, width: int
) -> tuple[FloatArray, FloatArray]:
    places = np.clip((means // width).astype(np.int64) - first, 0, count - 1)
    total = means.shape[1] if weights is None else int(weights.sum())
    one, zero = (np.bincount(place, weights, minlength=count) / total for place in places)
    return one, zero


def _replicate(sums: PairSums, rng: np.random.Generator, first: int, count: int, width: int) -> FloatArray:
    groups, draws = sums.sizes.size, sums.excess.size
    chosen = rng.multinomial(groups, np.full(groups, 1.0 / groups))
    again = rng.multinomial(draws, np.full(draws, 1.0 / draws))
    return log_ratio(*_shares(sums.means(chosen), again, first, count, width))


def _exact_ratio_on(law: ExpectedLaw, lo: FloatArray) -> FloatArray:
    """Exact log ratios of the bins that begin at `lo`; nan beyond the exact law's last edge."""
    ratios = log_ratio(*law.probabilities())[:-1]
    place = np.searchsorted(law.edges, lo)
    return np.array([ratios[i] if i < ratios.size else math.nan for i in place])


def outside_by_chance(law: ExpectedLaw, draws: int, epsilon: float, seed: int) -> float:
    """How many bins whose exact ratio is inside, or on the line, this many draws of L are expected to put outside.

    Both members meet the same draws, so most of a bin's draws are in it for both: its counts are C + A and C + B with
    independent Poisson C, A, B, whose means the exact laws give. The finite number of pairs moves both alike.
    """
    p1, p0 = law.probabilities()
    above, below = np.minimum(law.tail_1, law.tail_0), np.maximum(law.tail_1, law.tail_0)
    both = np.maximum(above - np.append(below[1:], 0.0), 0.0)
    with np.errstate(invalid="ignore"):
        fair = np.abs(log_ratio(p1, p0)) <= epsilon + 1e-6
    rng = np.random.default_rng([seed, 4])
    shape = (SIMULATED, int(fair.sum()))
    common = rng.poisson(draws * both[fair], shape)
    one = common + rng.poisson(draws * np.maximum(p1 - both, 0.0)[fair], shape)
    zero = common + rng.poisson(draws * np.maximum(p0 - both, 0.0)[fair], shape)
    with np.errstate(invalid="ignore"):
        outside = np.abs(log_ratio(one.astype(np.float64), zero.astype(np.float64))) > epsilon
    return float(outside.sum() / SIMULATED)


def given_pairs_verdict(sums: PairSums, epsilon: float, confidence: float, floor: float, seed: int) -> Verdict | None:
    """The verdict on what the histogram shows: averages over the drawn pairs, with L as the only random number.

    For given sequences the draws of L are independent runs of a mechanism that releases that average (rounded down), so
    the bounds of `evidence.bounds` hold without any approximation. Both members meet the same L: each bound joins its
    two proportions by a union bound, which asks for no independence between them.
    """
    if sums.excess.size < FEWEST:
        return None
    order = np.random.default_rng([seed, 7]).permutation(sums.excess.size)  # they are sorted, the parts must not be
    part = part_of(0, order.size)
    members = []
    for means in sums.means():
        codes = outcome_code(np.floor(means[order]).astype(np.int64), np.zeros(order.size, np.int64))
        members.append(tuple(Counted.of(codes[part == k]) for k in range(PARTS)))
    found = bounded_verdict(Parts((members[0], members[1])), epsilon, 0.0, confidence, floor=floor)
    if found.witness is None:
        return found
    return replace(found, witness=replace(found.witness, name=_of_averages(found.witness.name)))


def _of_averages(name: str) -> str:
    """The name of an event of rounded-down averages, said of the averages.

    Examples
    --------
    >>> _of_averages("tau <= 3 or 7 <= tau <= 9 or tau = 11 or tau > 20")
    'average < 4 or 7 <= average < 10 or 11 <= average < 12 or average >= 21'
    """
    name = re.sub(r"tau = (\d+)", r"\1 <= tau <= \1", name)
    name = re.sub(r"tau <= (\d+)", lambda k: f"average < {int(k[1]) + 1}", name)
    return re.sub(r"tau > (\d+)", lambda k: f"average >= {int(k[1]) + 1}", name)


def support_gap_evidence(
    test: Sprt,
    mechanism: Mechanism,
    p_phi: float,
    entries: tuple[int, ...],
    pairs: int,
    *,
    seed: int,
    max_steps: int,
    confidence: float,
    bits: tuple[int, int] = (1, 0),
    shift: int = 0,
) -> Verdict:
    """Is there an L* > 0 at which one member's average is a whole sample below the other's at the smallest L?

    On one half of the pairs the member and L* are chosen; on the other half Student's lower bound for the mean of the
    paired differences is taken, once, at the stated confidence. A difference of 1 leaves room for an integer between
    the two averages; the event "below it" then has probability at least P(L <= L*) for one member, 0 for the other.
    P(verdict is violated although no such L* exists) <= 1 - confidence, up to the normal approximation of a mean: an
    approximation that sequences too rare to be in the sample can upset, so that fewer than 200 pairs give no verdict.
    """
    lowest = max(float(mechanism.quantile(0.0)), test.no_room)
    excess = lowest + test.step_sum * np.linspace(0.0, 1.0, CANDIDATES)
    mass = 1.0 - mechanism.survival(excess)
    half = pairs // 2
    options: dict[str, Any] = {"seed": seed, "max_steps": max_steps, "bits": bits, "shift": shift}
    level = student_quantile(pairs - half - 1, confidence)
    choice = pair_times(test, p_phi, excess, 0, half, entries, **options)
    best: tuple[float, int, int] | None = None
    for early in (0, 1):
        mean, error = _paired(choice, early)
        promising = np.flatnonzero((mean - 1.0 >= (level + 3.0) * error) & (mass > 0.0) & (mean > 0.0))
        if promising.size and (best is None or mass[promising[-1]] > best[0]):
            best = (float(mass[promising[-1]]), early, int(promising[-1]))
    judged = pair_times(test, p_phi, excess, half, pairs - half, entries, **options)
    spread = float(min(_paired(judged, m)[1].max() for m in (0, 1)))
    enough = pairs >= FEWEST_PAIRS
    detectable = 1.0 + (level + NormalDist().inv_cdf(0.9)) * spread if enough and spread > 0.0 else None
    if best is not None and enough:
        share, early, k = best
        mean, error = _paired(judged, early)
        if mean[k] - level * error[k] >= 1.0:
            p = (share, 0.0) if early == 0 else (0.0, share)
            event = f"average termination time below that of x_n = {early} at the smallest L"
            return Verdict("violated", math.inf, share, Event(event, *p), detectable)
    return Verdict("consistent", 0.0, 0.0, None, detectable)


def _paired(tau: NDArray[np.int64], early: int) -> tuple[FloatArray, FloatArray]:
    """Mean and standard error of tau(late member, smallest L) - tau(early member, L), for each L."""
    differences = tau[:, 1 - early, :1] - tau[:, early, :]
    return differences.mean(axis=0), differences.std(axis=0, ddof=1) / math.sqrt(differences.shape[0])
