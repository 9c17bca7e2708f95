"""Time to a verdict: runs, and seconds, until a false claim is refuted at 99 %.

Two mechanisms that are not what they claim: ``floor(10 (x + Exp(1)))``, which no epsilon covers, with a claim of 1; and
one released result of Algorithm 2 (alpha = delta = epsilon = 0.01, n = 1) with the theorem's claim of 2 epsilon.
`split` and `union` are tried on the first 23, 32, 45, 64, ... runs of either member, `anytime` stops by itself.

Beside them the naive histogram check: a bin whose two counts differ by more than a factor of e^epsilon refutes. It is
fast because it raises the alarm whatever the truth; its false alarms are counted on a mechanism for which the claim
holds (two-sided geometric noise), with as many runs as it took and with as many as `split` took.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import EPSILON, LAW, P_PHI, TEST, Ratio, Ratios, seconds_of
from dpsmc_audit.evidence.anytime import Anytime
from dpsmc_audit.evidence.bounds import bounded_verdict
from dpsmc_audit.evidence.events import Counted, joined, outcome_code
from dpsmc_audit.evidence.gathered import Gathered, Outcomes
from dpsmc_audit.evidence.verdict import Method
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Setting

__all__ = ["verdict_ratios"]

IntArray = NDArray[np.int64]
Draw = Callable[[int, int], Outcomes]
"""(runs, seed): so many runs of either member."""

CONFIDENCE, REPETITIONS, ALARMS, BINS = 0.99, 9, 100, 40


def one_sided(runs: int, seed: int) -> Outcomes:
    """floor(10 (x + Exp(1)))."""
    rng, nothing = np.random.default_rng(seed), np.zeros(runs, np.int64)
    one, zero = (np.floor(10.0 * (x + rng.exponential(size=runs))).astype(np.int64) for x in (1, 0))
    return Outcomes(outcome_code(one, nothing), outcome_code(zero, nothing))


def algorithm2(runs: int, seed: int) -> Outcomes:
    """One released (tau, o) of Algorithm 2 with its first sample set."""
    one, zero = (
        draw_runs(Setting(TEST, LAW, P_PHI), runs, entries=(1,), bit=x, sampling=Sampling(seed=2 * seed + x))
        for x in (1, 0)
    )
    return Outcomes(outcome_code(one.tau, one.decision), outcome_code(zero.tau, zero.decision))


def geometric(epsilon: float) -> Draw:
    """A mechanism that keeps its claim: x plus two-sided geometric noise."""
    share = -math.expm1(-epsilon)

    def draw(runs: int, seed: int) -> Outcomes:
        rng, nothing = np.random.default_rng(seed), np.zeros(runs, np.int64)
        one, zero = (10**6 + x + rng.geometric(share, runs) - rng.geometric(share, runs) for x in (1, 0))
        return Outcomes(outcome_code(one, nothing), outcome_code(zero, nothing))

    return draw


def naive(drawn: Outcomes, epsilon: float) -> bool:
    """Does any of 40 bins of tau, equally likely in the pooled sample, have counts with a ratio beyond e^epsilon?"""
    one, zero = Counted.of(drawn.one), Counted.of(drawn.zero)
    pooled = joined([one, zero])
    share = np.cumsum(pooled.counts) / pooled.runs
    edges = np.unique(pooled.tau[np.searchsorted(share, np.arange(1, BINS) / BINS)])
    p, q = (np.bincount(np.searchsorted(edges, m.tau), m.counts, edges.size + 1) for m in (one, zero))
    return bool(np.any((p > math.exp(epsilon) * q) | (q > math.exp(epsilon) * p)))


def refuted(method: str, drawn: Outcomes, epsilon: float) -> bool:
    """By these runs, all of them."""
    if method == "naive":
        return naive(drawn, epsilon)
    found = Gathered()
    found.add(drawn)
    chosen: Method = "union" if method == "union" else "split"
    return bounded_verdict(found.parts(), epsilon, 0.0, CONFIDENCE, chosen, floor=None).verdict == "violated"


@dataclass(frozen=True)
class _Study:
    name: str
    draw: Draw
    epsilon: float
    most: int

    def runs(self, method: str, drawn: Outcomes) -> int:
        """How many runs of either member this method takes."""
        if method == "anytime":
            bets = Anytime(self.epsilon, 0.0, CONFIDENCE)
            assert bets.update(drawn.one, drawn.zero), f"{self.name}: {self.most} runs are not enough"
            return bets.pairs
        for size in np.rint(2.0 ** np.arange(4.5, math.log2(self.most) + 0.25, 0.5)).astype(int):
            if refuted(method, Outcomes(drawn.one[:size], drawn.zero[:size]), self.epsilon):
                return int(size)
        raise AssertionError(f"{self.name}, {method}: {self.most} runs are not enough")

    def seconds(self, method: str, runs: int) -> float:
        """To draw as many and to judge them."""

        def work() -> None:
            drawn = self.draw(runs, 1)
            if method == "anytime":
                Anytime(self.epsilon, 0.0, CONFIDENCE).update(drawn.one, drawn.zero)
            else:
                refuted(method, drawn, self.epsilon)

        return seconds_of(work)

    def false_alarms(self, runs: int) -> float:
        """Of the naive check, with as many runs of a mechanism for which the claim holds."""
        private = geometric(self.epsilon)
        return sum(naive(private(runs, seed), self.epsilon) for seed in range(ALARMS)) / ALARMS


STUDIES = (_Study("one_sided", one_sided, 1.0, 1 << 12), _Study("algorithm2", algorithm2, 2.0 * EPSILON, 1 << 21))
METHODS = ("split", "union", "anytime", "naive")


def verdict_ratios() -> Ratios:
    """Runs that a method takes against those of `split`; medians of nine repetitions."""
    found = {}
    for study in STUDIES:
        counts: dict[str, list[int]] = {method: [] for method in METHODS}
        for seed in range(1, REPETITIONS + 1):
            drawn = study.draw(study.most, seed)
            for method in METHODS:
                counts[method].append(study.runs(method, drawn))
        split = median(counts["split"])
        for method in METHODS:
            runs = int(median(counts[method]))
            seconds = float(f"{study.seconds(method, runs):.3g}")
            details: dict[str, Any] = {"runs": runs, "seconds": seconds, "all_runs": counts[method]}
            if method == "naive":
                details |= {"false_alarms": study.false_alarms(runs)}
                details |= {"false_alarms_with_the_runs_of_split": study.false_alarms(int(split))}
            level = "at no level" if method == "naive" else "at 99 %"
            text = f"{study.name}, claim {study.epsilon:g}: runs until {method} refutes ({level}), against split;"
            name = f"verdict_{study.name}_{method}_vs_split"
            found[name] = Ratio(runs / split, f"{text} medians of {REPETITIONS}", details=details)
    return found
