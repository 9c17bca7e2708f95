"""The audit of expected differential privacy: two histograms, the tolerance e^{±epsilon}, and a verdict.

The sampled audit follows the paper's Figure 1: M pairs of sequences, many draws of L, the average termination time for
each L. Its verdict rests on one thing that sampling can settle: the termination time of a sequence does not fall when L
grows. If the average for x_n = 1 at some L* > 0 is below the average for x_n = 0 at the smallest L, no L can make the
second as small, and the two laws have a ratio without bound on an event of probability P(L <= L*).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpsmc_audit.errors import check_bin_width, require
from dpsmc_audit.evidence.judging import OneEvent, rejudged
from dpsmc_audit.evidence.profiles import Leakage, best_tail, privacy_profile, total_variation
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Ranges
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.observers.base import Claim, PairAudit, Resolution
from dpsmc_audit.observers.certificates import (
    Certificate,
    certificate_of_bins,
    certificate_of_event,
    ranges_of,
    with_hulls,
)
from dpsmc_audit.observers.expected.averages import forced_moments, output_sensitivity
from dpsmc_audit.observers.expected.edges import reached_at
from dpsmc_audit.observers.expected.law import ExpectedLaw, SupportGap, bins_between, expected_law
from dpsmc_audit.observers.expected.picture import BATCH, Picture, bytes_needed, outside_by_chance
from dpsmc_audit.observers.expected.proven import ProvenAverages
from dpsmc_audit.observers.expected.sentence import ExpectedWords
from dpsmc_audit.observers.expected.verdicts import (
    Histogram,
    average_range,
    exact_histogram,
    exact_verdict,
    support_gap_evidence,
)
from dpsmc_audit.observers.sentence import Words
from dpsmc_audit.runs.memory import require_room
from dpsmc_audit.sampling.pairs import draw_excess, pair_sums
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent, Setting

__all__ = ["Expected", "ExpectedAudit", "auto_bin_width", "expected_leakage"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpectedAudit(PairAudit):
    """What the expected observer learns.

    Parameters
    ----------
    histogram : Histogram
        Bins of averages.
    exact : Finding
        What the exact laws say.
    given_pairs : Finding, optional
        The finding on the averages over the drawn pairs of sequences, instead of all sequences.
    gap : SupportGap
        Averages that only one member can have.
    by_chance : float, optional
        How many bins the draws of L are expected to put outside the tolerance by chance.
    start_1, start_0 : float
        The average of each member at the smallest L.
    output_sensitivity : float
        By how much the entries change the mean decision.
    pairs : int, optional
        Pairs of sequences that were drawn; None for the exact engine.
    law : ExpectedLaw
        The exact laws of the averages.
    """

    observer: ClassVar[str] = "expected"
    prose: ClassVar[type[Words]] = ExpectedWords
    histogram: Histogram
    exact: Finding
    given_pairs: Finding | None = None
    gap: SupportGap
    by_chance: float | None = None
    start_1: float
    start_0: float
    output_sensitivity: float
    pairs: int | None = None
    law: ExpectedLaw = field(repr=False)

    @property
    def bins_outside(self) -> int:
        """How many bins have a ratio beyond the claim."""
        return int(self.histogram.outside.sum())

    def proof(self) -> Certificate | None:
        """Prove that the claim is violated by an event, or that it holds in all bins.

        Returns
        -------
        Certificate or None
            None for other verdicts, where the law is an estimate, and if the checker proves nothing.
        """
        promise, law = self.claim.promise, self.law
        if self.verdict == Verdict.VIOLATED:
            return certificate_of_event("expected", self.pair, promise, with_hulls(ranges_of(self.witness)))
        if self.verdict != Verdict.CERTIFIED or law.method == "list":
            return None
        mechanism = self.pair.setting.mechanism
        reached = {bit: reached_at(tails, mechanism) for bit, tails in ((1, law.one), (0, law.zero))}
        return certificate_of_bins(self.pair, promise, law.edges, reached)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        setting = self.pair.setting
        return {
            **super().as_dict(),
            "detectable_difference": self.finding.detectable,
            "given_pairs": None if self.given_pairs is None else self.given_pairs.as_dict(),
            "bins": self.histogram.lo.size,
            "bins_outside": self.bins_outside,
            "bins_outside_expected_by_chance": self.by_chance,
            "support_gap": {"from": self.gap.start, "to": self.gap.end, "mass": self.gap.mass},
            "mean_difference": self.start_0 - self.start_1,
            "expected_sensitivity": setting.test.expected_sensitivity(setting.p_phi),
            "output_sensitivity": self.output_sensitivity,
        }


def auto_bin_width(setting: Setting) -> int:
    """Choose a width with which about sixty bins hold all but one part in 10^4 of the averages.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.

    Returns
    -------
    int
        The width in samples, at least 1.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    lowest, highest = max(float(mechanism.quantile(0.0)), 0.9 * test.no_room), float(mechanism.quantile(1.0 - 1e-4))
    low, high = (forced_moments(test, p_phi, excess, {1: 1})[0] for excess in (lowest, max(lowest, highest)))
    return max(1, round((high - low) / 60.0))


def expected_leakage(law: ExpectedLaw, epsilons: FloatArray, floor: float) -> Leakage:
    """Compute the leakage of the averages, in the bins of their law.

    If there is a support gap, its integer becomes another edge.

    Parameters
    ----------
    law : ExpectedLaw
        The laws of the averages.
    epsilons : ndarray
        The grid of the privacy profile.
    floor : float
        The best event has at least this probability for one member.

    Returns
    -------
    Leakage
        The profile, the total variation and the tail with the largest ratio.
    """
    edges, tail_1, tail_0 = law.edges, law.tail_1, law.tail_0
    if law.gap.integer is not None and law.gap.integer not in edges:
        place = int(np.searchsorted(edges, law.gap.integer))
        early_1 = law.start_1.value < law.start_0.value
        ends = (1.0 - law.gap.below, 1.0) if early_1 else (1.0, 1.0 - law.gap.below)
        edges = np.insert(edges, place, float(law.gap.integer))
        tail_1, tail_0 = (np.insert(tail, place, end) for tail, end in zip((tail_1, tail_0), ends, strict=True))
    p1, p0 = bins_between(tail_1), bins_between(tail_0)
    edges = np.append(edges[1:], math.inf)

    def tail(k: int, beyond: bool) -> Ranges:
        edge = float(edges[k - 1])
        return average_range(edge, math.inf) if beyond else average_range(-math.inf, edge)

    return Leakage(privacy_profile(p1, p0, epsilons), total_variation(p1, p0), best_tail(p1, p0, floor, tail))


@dataclass(frozen=True, kw_only=True)
class Expected(Resolution):
    """The observer of the paper's Definition 3: compares average termination times, given L.

    The exact laws are always computed: the leakage and `exact` come from them. The sampled engine follows the paper's
    Figure 1.

    Parameters
    ----------
    pairs : int
        Pairs of sequences of the sampled engine.
    draws : int
        Draws of L of the sampled engine.
    bin_width : int, optional
        Of the bins of averages, in samples; None chooses one.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting, Sprt, audit
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> found = audit(Setting(test, Exponential.private(test, 0.01), 0.84), epsilon=0.01, engine="exact")
    >>> f"{found.verdict}", found.epsilon_lower, found.bins_outside
    ('violated', inf, 1)
    >>> f"{found.gap.start:.3f} to {found.gap.end:.3f}, mass {found.gap.mass:.5f}"
    '411.535 to 420.633, mass 0.00993'
    """

    name: ClassVar[str] = "expected"
    unit: ClassVar[str] = "pairs"
    pairs: int = 500
    draws: int = 10_000
    bin_width: int | None = 140

    @property
    def amount(self) -> int:
        """Pairs of sequences, once for each batch of draws."""
        return self.pairs * -(-self.draws // BATCH)

    def audit(self, pair: Adjacent, claim: Claim, sampling: Sampling) -> ExpectedAudit:
        """Audit the claim that averages are private.

        Parameters
        ----------
        pair : Adjacent
            The setting and the entries.
        claim : Claim
            The claim, the engine and the confidence.
        sampling : Sampling
            How pairs and L are drawn. The exact engine does not draw.

        Returns
        -------
        ExpectedAudit
            The result.

        Raises
        ------
        ParameterError
            If a field of the observer is impossible, or if the exact laws are too expensive to compute.
        """
        grid, width = self.grid(claim.epsilon), self.bin_width
        check_bin_width(width)
        require(self.pairs >= 4, f"pairs must be at least 4, got {self.pairs}")
        require(self.draws >= 2, f"draws must be at least 2, got {self.draws}")
        started = time.perf_counter()
        width = auto_bin_width(pair.setting) if width is None else width
        law = expected_law(pair, width)
        exact = rejudged(exact_verdict(law, claim.epsilon), claim.promise, ProvenAverages(law))
        found: dict[str, Any] = {
            "finding": exact,
            "histogram": exact_histogram(law, claim.epsilon),
            "gap": law.gap,
            "unfinished": 0,
            "steps": 0,
        }
        if claim.engine != "exact":
            found = self._sampled(pair, claim, sampling, law)
        return ExpectedAudit(
            claim=claim,
            pair=pair,
            law=law,
            exact=exact,
            leakage=expected_leakage(law, grid, self.floor),
            start_1=law.start_1.value,
            start_0=law.start_0.value,
            output_sensitivity=output_sensitivity(pair),
            numerical_error=law.tail_error,
            **found,
            seconds=time.perf_counter() - started + sampling.execution.spent,
        )

    def _sampled(self, pair: Adjacent, claim: Claim, sampling: Sampling, law: ExpectedLaw) -> dict[str, Any]:
        """Compute the fields that depend on the runs."""
        require_room(bytes_needed(self.draws, law.edges.size), f"a histogram of {law.edges.size} bins")
        picture = _picture(pair, self.pairs, self.draws, int(law.edges[1]), sampling)
        finding, steps = support_gap_evidence(pair, self.pairs, sampling, confidence=claim.confidence)
        if finding.witness is not None:
            finding = rejudged(finding, claim.promise, OneEvent(finding.witness), Verdict.CONSISTENT)
        return {
            "pairs": self.pairs,
            "finding": finding,
            "histogram": picture.histogram(law, claim.epsilon, claim.confidence),
            "gap": SupportGap(float(picture.start.min()), float(picture.start.max()), finding.delta_lower),
            "given_pairs": picture.given_pairs(claim.epsilon, claim.confidence, self.floor, claim.delta),
            "by_chance": outside_by_chance(law, self.draws, claim.epsilon, sampling.seed),
            "unfinished": picture.unfinished,
            "steps": picture.steps + steps,
        }


def _picture(pair: Adjacent, pairs: int, draws: int, width: int, sampling: Sampling) -> Picture:
    """Draw L in batches, all on the same pairs. The checkpoint keeps finished batches."""
    execution, checkpoint = sampling.execution, sampling.execution.checkpoint
    picture = Picture(width, sampling.seed)
    begun = 0 if checkpoint is None else checkpoint.restore("picture", picture)
    for first in range(begun, draws, BATCH):
        excess = draw_excess(pair.setting.mechanism, min(BATCH, draws - first), sampling.seed, first)
        stage, here = f"pairs{first}", sampling.with_progress(execution.told_after(first // BATCH * pairs))
        picture.add(pair_sums(pair, excess, pairs, here, stage=stage))
        if checkpoint is not None and draws > BATCH:
            checkpoint.save("picture", picture.draws, picture)
            checkpoint.drop(stage)
    return picture
