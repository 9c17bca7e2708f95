"""The audit of what the release says about a sample to an observer who knows every other one."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.evidence.claims import Promise
from dpsmc_audit.evidence.judging import proven_delta, rejudged
from dpsmc_audit.evidence.means import BoundedMean
from dpsmc_audit.evidence.profiles import Leakage, factor, largest
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Event, Outcomes
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray, IntArray
from dpsmc_audit.numerics.ties import exceeds, ranked, tied_groups
from dpsmc_audit.observers.base import Claim, PairAudit, Resolution
from dpsmc_audit.observers.certificates import Certificate, Proposal, certificate_of_event
from dpsmc_audit.observers.expected.verdicts import delta_ends, log_ratio, surest_event
from dpsmc_audit.observers.informed.average import InformedAverage, average
from dpsmc_audit.observers.informed.law import InformedLaw, given_sequence
from dpsmc_audit.observers.informed.sentence import InformedWords
from dpsmc_audit.observers.informed.sequences import oscillating_sequence, read_sequence
from dpsmc_audit.observers.sentence import Words
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent

__all__ = ["Informed", "InformedAudit", "OutcomeHistogram"]


_RARE = 1e-9
"""Probabilities are differences of numbers up to 1: the ratio of rarer outcomes is not known to the sixth digit."""

_DECISIONS = np.array(["H_alt", "H_null", "running"])


@dataclass(frozen=True, eq=False)
class OutcomeHistogram:
    """P_L(tau, decision) of one sequence with its entries 1 (`p1`) and 0 (`p0`): exact, outcome by outcome.

    Parameters
    ----------
    tau, decision : ndarray
        The outcomes.
    p1, p0 : ndarray
        Their probabilities.
    log_ratio : ndarray
        ``ln(p1 / p0)``.
    outside : ndarray
        Whether it is surely beyond the claim.
    """

    tau: IntArray
    decision: NDArray[np.str_]
    p1: FloatArray
    p0: FloatArray
    log_ratio: FloatArray
    outside: BoolArray

    @classmethod
    def of(cls, law: InformedLaw, epsilon: float) -> OutcomeHistogram:
        """List the outcomes of a law, each with the check of its ratio.

        Parameters
        ----------
        law : InformedLaw
            The laws of both members.
        epsilon : float
            The claim. An outcome is outside if its ratio surely exceeds it.

        Returns
        -------
        OutcomeHistogram
            A row for each outcome.
        """
        shown, times = law.ends.kept(law.ends.shown), factor(epsilon)
        outside = (shown.low_1 > times * shown.high_0) | (shown.low_0 > times * shown.high_1)
        return cls(law.tau, _DECISIONS[law.decision], law.p1, law.p0, log_ratio(law.p1, law.p0), outside)


@dataclass(frozen=True, eq=False, kw_only=True)
class InformedAudit(PairAudit):
    """What the informed observer learns on a given sequence, or on random ones and the one made to be the worst.

    Parameters
    ----------
    histogram : OutcomeHistogram
        The outcomes of the law.
    law : InformedLaw
        Of the given sequence, or of the drawn one whose members are easiest to distinguish.
    shown, worst : str
        Which sequence the histogram is of, and which one the verdict is on.
    averages : InformedAverage, optional
        Over random sequences, where no sequence is given.
    oscillating : InformedLaw, optional
        Of the sequence made to be the worst; None where it would be too long.
    given : ndarray, optional
        The given sequence.
    """

    observer: ClassVar[str] = "informed"
    prose: ClassVar[type[Words]] = InformedWords
    histogram: OutcomeHistogram
    law: InformedLaw
    shown: str
    worst: str
    averages: InformedAverage | None
    oscillating: InformedLaw | None
    given: NDArray[np.integer] | None = None

    @property
    def sampled(self) -> bool:
        """False: the verdict is about given sequences, exactly."""
        return False

    def proof(self) -> Certificate | None:
        """Prove that the claim is violated on the given sequence.

        Returns
        -------
        Certificate or None
            None for other verdicts, without a given sequence, and if the checker proves nothing.
        """
        if self.verdict != Verdict.VIOLATED or self.given is None:
            return None
        promise, events = self.claim.promise, outcomes_that_break(self.law, self.claim.promise)
        last = max([*self.pair.entries, *(int(time) - 1 for event in events for _, time, _ in event.ranges if time)])
        sequence = "".join(map(str, self.given[:last].tolist()))
        return certificate_of_event("informed", self.pair, promise, events, sequence)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        averages, one, zero = self.averages, *self.law.running
        numbers: dict[str, Any] = {"reveal_1": self.law.reveal_1, "reveal_0": self.law.reveal_0}
        if averages is not None:
            numbers = {
                **_with_interval("reveal_1", averages.reveal_1),
                **_with_interval("reveal_0", averages.reveal_0),
                **_with_interval("average_total_variation", averages.total_variation),
                "sequences": averages.sequences,
            }
        return {
            **super().as_dict(),
            "confidence": 1.0 if averages is None else self.claim.confidence,
            **numbers,
            "worst_sequence": self.worst,
            "shown_sequence": self.shown,
            "shown_reveal_1": self.law.reveal_1,
            "shown_reveal_0": self.law.reveal_0,
            "shown_total_variation": self.law.total_variation,
            "shown_largest_finite_log_ratio": self.law.worst_ratio,
            "shown_running": {"x_n = 1": one, "x_n = 0": zero},
            "oscillating_total_variation": None if self.oscillating is None else self.oscillating.total_variation,
        }


def outcomes_that_break(law: InformedLaw, promise: Promise) -> list[Proposal]:
    """Collect outcomes that surely break one point of a claim together, as few as it takes.

    Parameters
    ----------
    law : InformedLaw
        The laws of both members.
    promise : Promise
        The claim.

    Returns
    -------
    list of Proposal
        An event for each point and direction that is surely broken.
    """
    found, ends = [], law.ends.kept(law.ends.shown)
    for point in promise.points:
        for p, q, delta in ((ends.one, ends.zero, point.delta_1), (ends.zero, ends.one, point.delta_0)):
            margin = np.where(ends.running, 0.0, p[0] - factor(point.epsilon) * q[1])
            order = np.argsort(-margin, kind="stable")
            enough = np.flatnonzero(np.cumsum(np.maximum(margin[order], 0.0)) > delta * (1.0 + 1e-9))
            if enough.size:
                mine = np.sort(order[: enough[0] + 1])
                ranges = [(float(law.tau[k]), float(law.tau[k] + 1), int(law.decision[k])) for k in mine]
                found.append(Proposal(ranges, float(law.p1[mine].sum()), float(law.p0[mine].sum())))
    return found


def _with_interval(name: str, value: BoundedMean) -> dict[str, Any]:
    return {name: value.mean, f"{name}_ci": (value.low, value.high)}


def informed_verdict(law: InformedLaw, epsilon: float) -> Finding:
    """Give the verdict on one sequence, exactly.

    The claim is violated if the ratio of an outcome surely exceeds it. It is certified if no ratio can exceed it and no
    run goes on after the last sample: such a run might still violate it.

    Parameters
    ----------
    law : InformedLaw
        The laws of both members.
    epsilon : float
        The claim.

    Returns
    -------
    Finding
        The verdict, its bounds and its witness.
    """
    ends = law.ends
    with np.errstate(divide="ignore", invalid="ignore"):
        surely = np.maximum(np.log(ends.low_1) - np.log(ends.high_0), np.log(ends.low_0) - np.log(ends.high_1))
    bound = float(np.max(surely, initial=0.0, where=~np.isnan(surely)))
    lower = delta_ends(ends.one, ends.zero, epsilon)[0]
    if lower > 0.0:
        return Finding(Verdict.VIOLATED, bound, lower, surest_event(ends.one, ends.zero, epsilon))
    ended = ends.kept(~ends.running)
    running = max(float(high[ends.running].sum()) for high in (ends.high_1, ends.high_0))
    upper = delta_ends(ended.one, ended.zero, epsilon)[1] + running
    verdict = Verdict.CERTIFIED if upper == 0.0 else Verdict.UNDECIDED
    return Finding(verdict, bound, 0.0, None, delta_upper=min(upper, 1.0))


@dataclass(frozen=True, eq=False)
class ProvenSequence:
    """The laws of one sequence, as `rejudged` takes them. Runs that have not ended may tell anything.

    Parameters
    ----------
    law : InformedLaw
        The laws of both members.
    """

    law: InformedLaw

    def ends(self, epsilon: float, side: int) -> tuple[float, float]:
        """Bound the delta of one direction.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        ends = self.law.ends
        ended = ends.kept(~ends.running)
        running = (ends.high_1 if side == 1 else ends.high_0)[ends.running].sum()
        low, high = (
            proven_delta(*((some.one, some.zero) if side == 1 else (some.zero, some.one)), epsilon)
            for some in (ends, ended)
        )
        return low[0], high[1] + float(running)

    def event(self, epsilon: float, side: int) -> Event:
        """Collect the outcomes that surely need a delta.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        Event
            The event.
        """
        return surest_event(self.law.ends.one, self.law.ends.zero, epsilon, side)


def best_outcome(law: InformedLaw, floor: float) -> Event | None:
    """Find the event of at least this probability with the largest ratio, from outcomes in the order of their ratio.

    Of outcomes with the same ratio but for rounding, so many of the most probable are taken that one is enough for the
    rest, and of those the least probable: the event is no larger than it must be. An outcome that is impossible for one
    member counts as that, whatever rounding makes of its probability; outcomes so rare that rounding decides their
    ratio come last.

    Parameters
    ----------
    law : InformedLaw
        The laws of both members.
    floor : float
        The smallest probability of the event for the likelier member.

    Returns
    -------
    Event or None
        The event; None if the outcomes do not add up to `floor`.
    """
    found, (only_1, only_0) = [], law.reveals
    p1, p0 = np.where(only_0, 0.0, law.p1), np.where(only_1, 0.0, law.p0)
    for p, q, side in ((p1, p0, 1), (p0, p1, 0)):
        groups = tied_groups(np.where(np.maximum(p, q) > _RARE, log_ratio(p, q), -math.inf), close=1e-6)
        chosen = _just_enough(p, groups, floor * (1.0 - 1e-12))
        if chosen is not None:
            found.append(Event(Outcomes(chosen.size, side), float(p1[chosen].sum()), float(p0[chosen].sum())))
    return largest(found)


def _just_enough(p: FloatArray, groups: IntArray, wanted: float) -> IntArray | None:
    """Choose outcomes of this probability together: all of the first groups, as little as possible of the next one."""
    mass = np.cumsum(np.bincount(groups, p))
    last = int(np.searchsorted(mass, wanted))
    if last == mass.size:
        return None
    mine = np.flatnonzero(groups == last)
    mine = mine[ranked(np.zeros(mine.size), p[mine])]
    left = wanted - (mass[last - 1] if last else 0.0) - np.concatenate([[0.0], np.cumsum(p[mine])[:-1]])
    taken = min(int(np.count_nonzero(p[mine] < left)), mine.size - 1)  # the next one would be enough by itself
    smallest = max(int(np.count_nonzero(p[mine] >= left[taken])) - 1, taken)
    return np.concatenate([np.flatnonzero(groups < last), mine[:taken], mine[smallest : smallest + 1]])


@dataclass(frozen=True, kw_only=True)
class Informed(Resolution):
    """The observer of standard differential privacy: knows all samples but the entries, only L is random.

    Parameters
    ----------
    sequence : array or path, optional
        The samples, or a file of 0s and 1s: this sequence is audited, exactly.
    sequences : int
        Without a sequence, so many random ones are drawn. Each is audited exactly and the numbers are averaged; beside
        them stands the sequence made to be the worst.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting, Sprt, audit
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> setting = Setting(test, Exponential.private(test, 0.1), 0.84)
    >>> found = audit(setting, epsilon=0.1, observer=Informed(sequences=50))
    >>> f"{found.verdict}", round(found.averages.reveal_1.mean, 2), round(found.oscillating.total_variation, 3)
    ('violated', 0.08, 0.999)
    """

    name: ClassVar[str] = "informed"
    unit: ClassVar[str] = "sequences"
    sequence: str | Path | NDArray[np.integer] | None = None
    sequences: int = 500

    @property
    def amount(self) -> int:
        """Sequences that are drawn."""
        return self.sequences

    def audit(self, pair: Adjacent, claim: Claim, sampling: Sampling) -> InformedAudit:
        """Audit standard differential privacy.

        Parameters
        ----------
        pair : Adjacent
            The setting and the entries.
        claim : Claim
            The claim, the engine and the confidence.
        sampling : Sampling
            How sequences are drawn, if none is given.

        Returns
        -------
        InformedAudit
            The result.

        Raises
        ------
        ParameterError
            If the given sequence cannot be used, if the engine is exact and no sequence is given, if drawn sequences
            would be too long, or if a field of the observer is impossible.
        """
        grid, started, averages, made = self.grid(claim.epsilon), time.perf_counter(), None, None
        bits: NDArray[np.integer] | None = None
        test, mechanism, entries = pair.setting.test, pair.setting.mechanism, pair.entries
        if self.sequence is not None:
            given = self.sequence
            bits = read_sequence(given, entries) if isinstance(given, (str, Path)) else np.asarray(given)
            law, shown = given_sequence(test, mechanism, bits, entries), "the given sequence"
            profile, apart = law.profile(grid), law.total_variation
        else:
            message = "notion=informed averages over drawn sequences: use engine=monte_carlo, or give sequence=FILE"
            require(claim.engine != "exact", message)
            averages = average(pair, self.sequences, grid, sampling, confidence=claim.confidence)
            law, shown = averages.worst, f"random sequence {averages.worst_path}, the worst of {self.sequences}"
            profile, apart, made = averages.profile, averages.total_variation.mean, _oscillating(pair)
        judged, worst = law, shown
        if made is not None and exceeds(made.total_variation, law.total_variation):
            judged, worst = made, "a sequence made to be the worst"
        return InformedAudit(
            claim=claim,
            pair=pair,
            finding=rejudged(informed_verdict(judged, claim.epsilon), claim.promise, ProvenSequence(judged)),
            exact=None,
            numerical_error=math.nan,
            histogram=OutcomeHistogram.of(law, claim.epsilon),
            law=law,
            shown=shown,
            worst=worst,
            leakage=Leakage(profile, apart, best_outcome(law, self.floor)),
            averages=averages,
            oscillating=made,
            given=None if averages is not None else bits,
            unfinished=0 if averages is None else averages.capped,
            steps=0 if averages is None else averages.steps,
            seconds=time.perf_counter() - started + sampling.execution.spent,
        )


def _oscillating(pair: Adjacent) -> InformedLaw | None:
    """Compute the law of the sequence made to be the worst, if that is not too long."""
    test, mechanism = pair.setting.test, pair.setting.mechanism
    try:
        bits = oscillating_sequence(test, mechanism, pair.entries, longest=5_000_000)
    except ParameterError:
        return None
    return given_sequence(test, mechanism, bits, pair.entries)
