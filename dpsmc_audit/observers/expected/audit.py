"""The audit of expected differential privacy: two histograms, the tolerance e^{±epsilon}, and a verdict.

The sampled audit follows the paper's Figure 1: M pairs of sequences, many draws of L, the average termination time for
each L. Its verdict rests on one thing that sampling can settle: the termination time of a sequence does not fall when L
grows. If the average for x_n = 1 at some L* > 0 is below the average for x_n = 0 at the smallest L, no L can make the
second as small, and the two laws have a ratio without bound on an event of probability P(L <= L*).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import in_order, require
from dpsmc_audit.evidence.profiles import Leakage, best_tail, privacy_profile, total_variation
from dpsmc_audit.evidence.verdict import Verdict
from dpsmc_audit.observers.base import Claim, Engine, checked, undecided
from dpsmc_audit.observers.expected.law import (
    ExpectedLaw,
    SupportGap,
    bins_between,
    expected_law,
    forced_moments,
    output_sensitivity,
)
from dpsmc_audit.observers.expected.picture import BATCH, Picture, bytes_needed, outside_by_chance
from dpsmc_audit.observers.expected.verdicts import Histogram, exact_histogram, exact_verdict, support_gap_evidence
from dpsmc_audit.runs.execution import SERIAL, Execution
from dpsmc_audit.runs.memory import require_room
from dpsmc_audit.sampling.pairs import draw_excess, pair_sums
from dpsmc_audit.setting import Setting

__all__ = ["Audit", "audit", "auto_bin_width", "expected_leakage"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Audit(Claim):
    """What the audit found; `exact` is the exact engine's verdict on the same claim, beside a sampled one.

    `given_pairs` is the verdict on the averages over the drawn pairs of sequences, instead of all sequences.
    """

    verdict: Verdict
    given_pairs: Verdict | None
    histogram: Histogram
    gap: SupportGap
    by_chance: float | None
    unfinished: int
    steps: int
    exact: Verdict
    leakage: Leakage
    start_1: float
    start_0: float
    output_sensitivity: float
    numerical_error: float
    seconds: float = field(compare=False)

    @property
    def bins_outside(self) -> int:
        return int(self.histogram.outside.sum())

    @property
    def sentence(self) -> str:
        """The verdict for a reader in a hurry."""
        found, claim, how = self.verdict, self.text, self.how
        if found.verdict == "certified":
            return f"certified: every bin's log ratio is within {claim}, {how} and at this bin width"
        if found.verdict == "consistent" and self.engine == "exact":
            return f"undecided: at this bin width {undecided(found.delta_upper, claim)}"
        if found.verdict == "consistent":
            could = "too few pairs, or all runs alike: no difference could have shown"
            if found.detectable is not None:
                could = f"a difference of {found.detectable:.3g} samples would have shown"
            return f"consistent with {claim}: no violation found {how}; {could}"
        assert found.witness is not None
        bound = "no finite epsilon holds"
        if not math.isinf(found.epsilon_lower):
            bound = f"epsilon is at least {found.epsilon_lower:.4g}"
        at_least = "" if self.engine == "exact" else "at least "
        p1, p0 = ((at_least if p > 0.0 else "") + f"{p:.4g}" for p in (found.witness.p1, found.witness.p0))
        return (
            f"violated {how}: {bound}, and delta is at least {found.delta_lower:.4g} at {claim}. "
            f"Witness: {found.witness.name} has probability {p1} for x_n = 1 and {p0} for x_n = 0"
        )

    def as_dict(self) -> dict[str, Any]:
        """The content of ``result.json``, parameters apart."""

        return {
            **self.verdict.as_dict(),
            "epsilon_claimed": self.epsilon,
            "confidence": self.certainty,
            "sentence": self.sentence,
            "detectable_difference": self.verdict.detectable,
            "given_pairs": None if self.given_pairs is None else self.given_pairs.as_dict(),
            "bins": self.histogram.lo.size,
            "bins_outside": self.bins_outside,
            "bins_outside_expected_by_chance": self.by_chance,
            "support_gap": {"from": self.gap.start, "to": self.gap.end, "mass": self.gap.mass},
            "mean_difference": self.start_0 - self.start_1,
            "expected_sensitivity": self.test.expected_sensitivity(self.p_phi),
            "output_sensitivity": self.output_sensitivity,
            "exact": self.exact.as_dict(),
            **self.leakage.as_dict(self.epsilon),
            "numerical_error": self.numerical_error,
            "unfinished": self.unfinished,
            "steps": self.steps,
            "seconds": self.seconds,
        }


def auto_bin_width(setting: Setting) -> int:
    """A width with which about sixty bins hold all but one part in 10^4 of the averages."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    lowest, highest = max(float(mechanism.quantile(0.0)), 0.9 * test.no_room), float(mechanism.quantile(1.0 - 1e-4))
    low, high = (forced_moments(test, p_phi, excess, {1: 1})[0] for excess in (lowest, max(lowest, highest)))
    return max(1, round((high - low) / 60.0))


def expected_leakage(law: ExpectedLaw, epsilons: FloatArray, floor: float) -> Leakage:
    """Of the averages, in the law's bins and, where there is a support gap, with an edge at its integer."""
    edges, tail_1, tail_0 = law.edges, law.tail_1, law.tail_0
    if law.gap.integer is not None and law.gap.integer not in edges:
        place = int(np.searchsorted(edges, law.gap.integer))
        early_1 = law.start_1.value < law.start_0.value
        ends = (1.0 - law.gap.below, 1.0) if early_1 else (1.0, 1.0 - law.gap.below)
        edges = np.insert(edges, place, float(law.gap.integer))
        tail_1, tail_0 = (np.insert(tail, place, end) for tail, end in zip((tail_1, tail_0), ends, strict=True))
    p1, p0 = bins_between(tail_1), bins_between(tail_0)
    edges = np.append(edges[1:], math.inf)

    def named(k: int, beyond: bool) -> str:
        return f"average termination time {'>=' if beyond else '<'} {edges[k - 1]:g}"

    return Leakage(privacy_profile(p1, p0, epsilons), total_variation(p1, p0), best_tail(p1, p0, floor, named))


def audit(
    setting: Setting,
    epsilon: float,
    *,
    entry: int | Sequence[int] = 1,
    engine: Engine = "monte_carlo",
    pairs: int = 500,
    draws: int = 10_000,
    bin_width: int | None = 140,
    seed: int = 1,
    max_steps: int = 10_000_000,
    confidence: float = 0.99,
    floor: float = 0.01,
    epsilons: Sequence[float] | None = None,
    execution: Execution = SERIAL,
) -> Audit:
    """Audit the claim that the mechanism is `epsilon`-expectedly differentially private in termination time.

    `entry` may name several samples: they are all 1 in one member and all 0 in the other. `bin_width` None chooses
    one. The exact engine needs neither pairs nor draws. The leakage (profile, and the best event of probability `floor`
    and more) is always that of the exact laws, on bins.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Sprt
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> found = audit(Setting(test, Exponential.private(test, 0.01), 0.84), epsilon=0.01, engine="exact")
    >>> found.verdict.verdict, found.verdict.epsilon_lower, found.bins_outside
    ('violated', inf, 1)
    >>> f"{found.gap.start:.3f} to {found.gap.end:.3f}, mass {found.gap.mass:.5f}"
    '411.535 to 420.633, mass 0.00993'
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    claim = Claim(test, mechanism, p_phi, epsilon, in_order(entry), engine, confidence)
    grid, entries = checked(claim, max_steps, floor, epsilons), claim.entries
    require(bin_width is None or bin_width >= 1, f"bin_width must be at least 1, got {bin_width}")
    require(pairs >= 4, f"pairs must be at least 4, got {pairs}")
    require(draws >= 2, f"draws must be at least 2, got {draws}")
    started = time.perf_counter()
    width = auto_bin_width(setting) if bin_width is None else bin_width
    law = expected_law(setting, entries, width)
    exact = exact_verdict(law, epsilon)
    common: dict[str, Any] = {
        "exact": exact,
        "leakage": expected_leakage(law, grid, floor),
        "start_1": law.start_1.value,
        "start_0": law.start_0.value,
        "output_sensitivity": output_sensitivity(setting, entries),
        "numerical_error": law.tail_error,
    }
    if engine == "exact":
        common |= {"verdict": exact, "histogram": exact_histogram(law, epsilon), "gap": law.gap}
        common |= {"given_pairs": None, "by_chance": None, "unfinished": 0, "steps": 0}
        return Audit(**claim.parts(), **common, seconds=time.perf_counter() - started + execution.spent)
    options: dict[str, Any] = {"seed": seed, "max_steps": max_steps, "execution": execution}
    require_room(bytes_needed(draws, law.edges.size), f"a histogram of {law.edges.size} bins")
    picture = _picture(setting, entries, pairs, draws, width, **options)
    verdict, steps = support_gap_evidence(setting, entries, pairs, confidence=confidence, **options)
    gap = SupportGap(float(picture.start.min()), float(picture.start.max()), verdict.delta_lower)
    common |= {"verdict": verdict, "histogram": picture.histogram(law, epsilon, confidence), "gap": gap}
    common |= {"given_pairs": picture.given_pairs(epsilon, confidence, floor), "steps": picture.steps + steps}
    common |= {"by_chance": outside_by_chance(law, draws, epsilon, seed), "unfinished": picture.unfinished}
    return Audit(**claim.parts(), **common, seconds=time.perf_counter() - started + execution.spent)


def _picture(
    setting: Setting,
    entries: tuple[int, ...],
    pairs: int,
    draws: int,
    width: int,
    *,
    seed: int,
    max_steps: int,
    execution: Execution,
) -> Picture:
    """The draws of L in batches, all of them on the same pairs; finished batches are kept by the checkpoint."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    picture, checkpoint = Picture(width, seed), execution.checkpoint
    begun = 0 if checkpoint is None else checkpoint.restore("picture", picture)
    for first in range(begun, draws, BATCH):
        excess = draw_excess(mechanism, min(BATCH, draws - first), seed, first)
        place, stage = replace(execution, progress=execution.told_after(first // BATCH * pairs)), f"pairs{first}"
        options: dict[str, Any] = {"seed": seed, "max_steps": max_steps, "execution": place, "stage": stage}
        picture.add(pair_sums(test, p_phi, excess, pairs, entries, **options))
        if checkpoint is not None and draws > BATCH:
            checkpoint.save("picture", picture.draws, picture)
            checkpoint.drop(stage)
    return picture
