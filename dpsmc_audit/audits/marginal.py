"""The audit of what one released (tau, o) says about a sample to an observer who does not know the others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.audits.claims import Claim, Engine, checked
from dpsmc_audit.audits.verdicts import Verdict, log_ratio
from dpsmc_audit.evidence import TailCounts, delta_lower_bound, epsilon_lower_bound
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.notions.marginal import (
    NAMES,
    SIDES,
    Counts,
    MarginalLaw,
    affordable_pairs,
    count_runs,
    marginal_law,
    smoothed_law,
)
from dpsmc_audit.profiles import Event, Leakage, factor
from dpsmc_audit.sprt import ParameterError, Sprt, in_order, require

__all__ = ["JointHistogram", "MarginalAudit", "audit_marginal"]

FloatArray = NDArray[np.float64]

CERTIFIED = 1e-6
"""A delta below this, both ways and numerical error included, counts as none."""

_THRESHOLDS = 400
"""Candidates for the end of a tail, at quantiles of the runs that choose."""


@dataclass(frozen=True, eq=False)
class JointHistogram:
    """P(tau in [lo, hi), decision) for both members, the check of their ratio, and Rao-Blackwell's estimates.

    `smooth_p1` and `smooth_p0` are nan for the exact engine; so are exact ratios where the exact law is not known.
    """

    decision: NDArray[np.str_]
    lo: FloatArray
    hi: FloatArray
    p1: FloatArray
    p0: FloatArray
    log_ratio: FloatArray
    log_ratio_low: FloatArray
    log_ratio_high: FloatArray
    exact_log_ratio: FloatArray
    outside: NDArray[np.bool_]
    smooth_p1: FloatArray
    smooth_p0: FloatArray


@dataclass(frozen=True, eq=False)
class MarginalAudit(Claim):
    """What the audit found; `exact` is the exact engine's verdict beside a sampled one, None where it is too dear."""

    floor: float
    verdict: Verdict
    exact: Verdict | None
    histogram: JointHistogram
    leakage: Leakage
    leakage_from: str
    numerical_error: float
    unfinished: int
    seconds: float = field(compare=False)

    @property
    def sentence(self) -> str:
        """The verdict for a reader in a hurry."""
        found, claim, how = self.verdict, self.text, self.how
        if found.verdict == "certified":
            return f"certified: no event of one released (tau, o) needs a delta above {CERTIFIED:g} at {claim}"
        if found.verdict == "consistent" and self.engine == "exact":
            return f"undecided: the law is known to ±{self.numerical_error:.2g}, too little for {claim}"
        if found.verdict == "consistent":
            could = "" if found.detectable is None else f"; an epsilon of {found.detectable:.3g} would have shown"
            return f"consistent with {claim}: no violation found {how}{could}"
        assert found.witness is not None
        text = f"violated {how}: one released (tau, o) needs a delta of at least {found.delta_lower:.4g} at {claim}"
        if found.epsilon_lower > self.epsilon:
            where = f" on events of probability {self.floor:g} or more" if self.engine == "exact" else ""
            text += f", and epsilon is at least {found.epsilon_lower:.4g}{where}"
        witness = found.witness
        return f"{text}. Witness: {witness.name}: {witness.p1:.4g} for x_n = 1, {witness.p0:.4g} for x_n = 0"

    def as_dict(self) -> dict[str, Any]:
        """The content of ``result.json``, parameters apart."""
        outside = self.histogram.outside
        return {
            **self.verdict.as_dict(),
            "epsilon_claimed": self.epsilon,
            "confidence": self.certainty,
            "sentence": self.sentence,
            "detectable_epsilon": self.verdict.detectable,
            "bins": outside.size,
            "bins_outside": int(outside.sum()),
            **self.leakage.as_dict(self.epsilon),
            "leakage_from": self.leakage_from,
            "exact": None if self.exact is None else self.exact.as_dict(),
            "numerical_error": self.numerical_error,
            "unfinished": self.unfinished,
            "seconds": self.seconds,
        }


# --- exact ----------------------------------------------------------------------------------------------------------


def exact_verdict(law: MarginalLaw, epsilon: float, floor: float) -> Verdict:
    """From the exact laws; numerical errors are taken off every bound.

    `epsilon_lower` is over tails of probability `floor` and more: the earliest tau are possible with x_n = 1 only, so
    without a floor it would be infinite and say little.
    """
    best = law.best(floor)
    bound, tail = _surely(best, epsilon, law.error)
    one, zero = law.p1.ravel(), law.p0.ravel()
    times, witness, delta = factor(epsilon), None, 0.0
    for p, q in ((one, zero), (zero, one)):
        event = p > times * q
        share = float((p - times * q)[event].sum())
        if share >= delta:
            name = f"one of the {int(event.sum())} values of (tau, o) whose ratio exceeds e^epsilon"
            delta, witness = share, Event(name, float(one[event].sum()), float(zero[event].sum()))
    off = (1.0 + times) * law.scatter
    lower = max(delta - off, tail, 0.0)
    if bound > epsilon or lower > CERTIFIED:
        shown = best if best is not None and bound > epsilon else witness
        return Verdict("violated", bound, lower, shown)
    return Verdict("certified" if delta + off <= CERTIFIED else "consistent", bound, 0.0, None)


def _surely(event: Event | None, epsilon: float, error: float) -> tuple[float, float]:
    """What one event says of epsilon and of delta when both its probabilities are off by as much as they may be."""
    if event is None:
        return 0.0, 0.0
    likely, other = max(event.p1, event.p0) - error, min(event.p1, event.p0) + error
    if likely <= 0.0:
        return 0.0, 0.0
    bound = math.inf if other <= 0.0 else max(math.log(likely / other), 0.0)
    return bound, max(likely - factor(epsilon) * other, 0.0)


def auto_width(p1: FloatArray, p0: FloatArray) -> int:
    """A width with which about eighty bins hold all but one part in 10^3 of the termination times."""
    stopped = np.cumsum(p1.sum(axis=0) + p0.sum(axis=0)) / 2.0
    low, high = (int(np.searchsorted(stopped, u)) for u in (1e-4, min(0.999, float(stopped[-1]))))
    return max(1, round((high - low) / 80.0))


def exact_histogram(law: MarginalLaw, width: int, epsilon: float) -> JointHistogram:
    """All bins that hold anything; outside means beyond the tolerance and the numerical error."""
    p1, p0 = law.binned(width)
    ratio = log_ratio(p1, p0)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = min(law.scatter, 4.0 * law.error)  # a bin is the difference of two tails, with a decision
        error = np.where(np.isinf(ratio), 0.0, off / p1 + off / p0)
        outside = np.abs(ratio) - error > epsilon + 1e-9
        low, high = ratio - error, ratio + error
    unknown = np.full(p1.shape, math.nan)
    return _joined(width, p1, p0, ratio, low, high, ratio, outside, unknown, unknown, 1e-12)


def _joined(width: int, p1: FloatArray, p0: FloatArray, *columns: Any) -> JointHistogram:
    """Rows of (decision, bin), without the empty ones."""
    *arrays, least = columns
    bins = np.arange(float(p1.shape[1]))
    decision = np.repeat(np.array([NAMES[side] for side in SIDES]), bins.size)
    keep = (p1 + p0).ravel() > least
    lo = np.tile(width * bins, len(SIDES))[keep]
    rest = [array.ravel()[keep] for array in (p1, p0, *arrays)]
    return JointHistogram(decision[keep], lo, lo + width, *rest)


# --- sampled --------------------------------------------------------------------------------------------------------


def tail_counts(counts: Counts, half: int, thresholds: NDArray[np.int64]) -> TailCounts:
    """How often each tail was seen in one half: tau <= k and tau > k, of all runs and of those with each decision."""
    seen = counts.counts[half]
    rows = np.concatenate([seen.sum(axis=1, keepdims=True), seen], axis=1)  # member, (all, sides), tau
    below = np.cumsum(rows, axis=2)[:, :, thresholds - 1]
    above = rows.sum(axis=2, keepdims=True) - below
    events = np.concatenate([below, above], axis=1).reshape(2, -1)
    runs = int(seen[0].sum())
    return TailCounts(events[0], events[1], runs)


def _event_name(index: int, thresholds: NDArray[np.int64]) -> str:
    row, k = divmod(index, thresholds.size)
    beyond, side = divmod(row, 1 + len(SIDES))
    decision = "" if side == 0 else f" and {NAMES[SIDES[side - 1]]}"
    return f"tau {'>' if beyond else '<='} {thresholds[k]}{decision}"


def sampled_verdict(counts: Counts, epsilon: float, floor: float, confidence: float) -> Verdict:
    """Events chosen on one half of the runs, judged on the other; epsilon and delta share the level.

    P(epsilon_lower or delta_lower exceeds the truth) <= 1 - confidence, for any laws and any number of runs.
    """
    seen = counts.counts[0].sum(axis=(0, 1))
    shares = np.cumsum(seen) / max(int(seen.sum()), 1)
    marks = np.linspace(1.0 / _THRESHOLDS, 1.0, _THRESHOLDS)
    thresholds = np.unique(np.minimum(np.searchsorted(shares, marks), seen.size - 1)) + 1
    choose, judge = (tail_counts(counts, half, thresholds) for half in (0, 1))
    level = 0.5 * (1.0 + confidence)
    bound, event, _ = epsilon_lower_bound(choose, judge, level)
    delta, other, _ = delta_lower_bound(choose, judge, epsilon, level)
    if bound <= epsilon and delta <= 0.0:
        return Verdict("consistent", bound, 0.0, None, detectable(judge.runs, floor, epsilon, level))
    shown = event if bound > epsilon else other
    p1, p0 = (float(side[shown]) / judge.runs for side in (judge.one, judge.zero))
    return Verdict("violated", bound, max(delta, 0.0), Event(_event_name(shown, thresholds), p1, p0))


def detectable(runs: int, floor: float, epsilon: float, confidence: float) -> float | None:
    """The epsilon of an event of probability `floor` that this many runs would have shown with probability 0.9.

    Both counts at their ten percent (five each) worst, judged as in the verdict; None if even the impossible would not.
    """
    from scipy.stats import binom

    def shows(excess: float) -> bool:
        other = floor * math.exp(-excess)
        worst = TailCounts(
            np.array([int(binom.ppf(0.05, runs, floor))]), np.array([int(binom.ppf(0.95, runs, other))]), runs
        )
        return epsilon_lower_bound(worst, worst, confidence)[0] > epsilon

    low, high = 0.0, 50.0
    if not shows(high):
        return None
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def sampled_histogram(
    counts: Counts,
    law: MarginalLaw | None,
    smooth: FloatArray,
    width: int,
    epsilon: float,
    confidence: float,
) -> JointHistogram:
    """Shares of the runs by bin and decision; intervals of the ratio from Clopper-Pearson ends of both shares."""
    found = counts.law()
    p1, p0 = found.binned(width)
    bins = p1.shape[1]
    ones, zeros = (np.rint(p * counts.runs).astype(np.int64) for p in (p1, p0))
    low, high = _ratio_interval(ones, zeros, counts.runs, confidence)
    ratio = log_ratio(p1, p0)
    exact = np.full(p1.shape, math.nan)
    if law is not None:
        known = log_ratio(*law.binned(width))
        exact[:, : min(bins, known.shape[1])] = known[:, :bins]
    with np.errstate(invalid="ignore"):
        outside = np.abs(ratio) > epsilon
    fitted = np.zeros((2, 3, bins))
    fitted[:, :, : min(bins, smooth.shape[2])] = smooth[:, :, :bins]
    return _joined(width, p1, p0, ratio, low, high, exact, outside, fitted[0], fitted[1], 0.0)


def _ratio_interval(
    ones: NDArray[np.int64], zeros: NDArray[np.int64], runs: int, confidence: float
) -> tuple[FloatArray, FloatArray]:
    from scipy.special import betaincinv

    tail = 0.25 * (1.0 - confidence)  # two shares, two ends
    ends = []
    for seen in (ones, zeros):
        low = np.where(seen > 0, betaincinv(np.maximum(seen, 1), runs - seen + 1, tail), 0.0)
        high = np.where(seen < runs, betaincinv(seen + 1, np.maximum(runs - seen, 1), 1.0 - tail), 1.0)
        ends.append((low, high))
    with np.errstate(divide="ignore"):
        return np.log(ends[0][0]) - np.log(ends[1][1]), np.log(ends[0][1]) - np.log(ends[1][0])


# --- the audit ------------------------------------------------------------------------------------------------------


def audit_marginal(
    test: Sprt,
    mechanism: Mechanism,
    p_phi: float,
    epsilon: float,
    *,
    entry: int | Sequence[int] = 1,
    engine: Engine = "monte_carlo",
    runs: int = 1_000_000,
    pairs: int = 500,
    bin_width: int | None = None,
    seed: int = 1,
    max_steps: int = 10_000_000,
    confidence: float = 0.99,
    threads: int = 1,
    floor: float = 0.01,
    epsilons: Sequence[float] | None = None,
    progress: Callable[[int], None] | None = None,
) -> MarginalAudit:
    """Audit the claim that one released (tau, o) is `epsilon`-private for an observer who does not know the others.

    The sampled engine counts `runs` runs of either member, and adds Rao-Blackwell's estimate from `pairs` sequences.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> found = audit_marginal(test, Exponential.private(test, 0.01), 0.84, epsilon=0.01, engine="exact")
    >>> found.verdict.verdict, round(found.verdict.epsilon_lower, 4), round(found.verdict.delta_lower, 5)
    ('violated', 0.2549, 0.00703)
    """
    claim = Claim(test, mechanism, p_phi, epsilon, in_order(entry), engine, confidence)
    grid, entries = checked(claim, max_steps, floor, epsilons), claim.entries
    require(bin_width is None or bin_width >= 1, f"bin_width must be at least 1, got {bin_width}")
    require(runs >= 4, f"runs must be at least 4, got {runs}")
    require(pairs >= 2, f"pairs must be at least 2, got {pairs}")
    started = time.perf_counter()
    law = _affordable_law(test, mechanism, p_phi, entries, engine)
    exact = None if law is None else exact_verdict(law, epsilon, floor)
    found: dict[str, Any] = {
        "floor": floor,
        "exact": exact,
        "numerical_error": math.nan if law is None else law.scatter,
    }
    if engine == "exact":
        assert law is not None
        width = bin_width or auto_width(law.p1, law.p0)
        found |= {"verdict": exact, "histogram": exact_histogram(law, width, epsilon), "unfinished": 0}
        found |= {"leakage": law.leakage(grid, floor), "leakage_from": "exact"}
        return MarginalAudit(**claim.parts(), **found, seconds=time.perf_counter() - started)
    options: dict[str, Any] = {"seed": seed, "max_steps": max_steps}
    counts = count_runs(test, mechanism, p_phi, entries, runs, threads=threads, progress=progress, **options)
    known = counts.law() if law is None else law
    width = bin_width or auto_width(known.p1, known.p0)
    few = min(pairs, affordable_pairs(test, mechanism, p_phi))
    smooth, _ = smoothed_law(test, mechanism, p_phi, entries, few, width, **options)
    found |= {
        "verdict": sampled_verdict(counts, epsilon, floor, confidence),
        "histogram": sampled_histogram(counts, law, smooth, width, epsilon, confidence),
        "leakage": known.leakage(grid, floor),
        "leakage_from": "sampled" if law is None else "exact",
        "unfinished": counts.unfinished,
    }
    return MarginalAudit(**claim.parts(), **found, seconds=time.perf_counter() - started)


def _affordable_law(
    test: Sprt, mechanism: Mechanism, p_phi: float, entries: tuple[int, ...], engine: Engine
) -> MarginalLaw | None:
    """The exact law; a sampled audit does without it where it is too dear."""
    try:
        return marginal_law(test, mechanism, p_phi, entries)
    except ParameterError:
        if engine == "exact":
            raise
        return None
