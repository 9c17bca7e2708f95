"""The audit of what the release says about a sample to an observer who knows every other one."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, in_order, require
from dpsmc_audit.evidence.means import BoundedMean
from dpsmc_audit.evidence.profiles import Event, Leakage, factor, largest
from dpsmc_audit.evidence.verdict import Verdict
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.ties import exceeds, ranked, tied_groups
from dpsmc_audit.observers.base import Claim, Engine, checked, undecided
from dpsmc_audit.observers.expected.verdicts import delta_ends, log_ratio, surest_event
from dpsmc_audit.observers.informed.law import InformedAverage, InformedLaw, average, given_sequence
from dpsmc_audit.observers.informed.sequences import oscillating_sequence, read_sequence
from dpsmc_audit.runs.execution import SERIAL, Execution
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["InformedAudit", "OutcomeHistogram", "audit_informed"]

FloatArray = NDArray[np.float64]

_RARE = 1e-9
"""Probabilities are differences of numbers up to 1: the ratio of rarer outcomes is not known to the sixth digit."""

_DECISIONS = np.array(["H_alt", "H_null", "running"])


@dataclass(frozen=True, eq=False)
class OutcomeHistogram:
    """P_L(tau, decision) of one sequence with its entries 1 (`p1`) and 0 (`p0`): exact, outcome by outcome."""

    tau: NDArray[np.int64]
    decision: NDArray[np.str_]
    p1: FloatArray
    p0: FloatArray
    log_ratio: FloatArray
    outside: NDArray[np.bool_]

    @classmethod
    def of(cls, law: InformedLaw, epsilon: float) -> OutcomeHistogram:
        shown, times = law.ends.kept(law.ends.shown), factor(epsilon)
        outside = (shown.low_1 > times * shown.high_0) | (shown.low_0 > times * shown.high_1)
        return cls(law.tau, _DECISIONS[law.decision], law.p1, law.p0, log_ratio(law.p1, law.p0), outside)


@dataclass(frozen=True, eq=False)
class InformedAudit(Claim):
    """What the audit found on a given sequence, or on random ones and the one made to be the worst.

    `law` and `histogram` are of the given sequence, or of the drawn one that is told apart best; `oscillating` is the
    law of the sequence made to be the worst, None where it would be too long. The verdict is on the worst of them.
    """

    verdict: Verdict
    histogram: OutcomeHistogram
    law: InformedLaw
    shown: str
    worst: str
    leakage: Leakage
    averages: InformedAverage | None
    oscillating: InformedLaw | None
    seconds: float = field(compare=False)

    @property
    def sentence(self) -> str:
        """The verdict for a reader in a hurry."""
        claim = self.text
        if self.verdict.verdict == "certified":
            return f"certified on {self.worst}: every outcome's log ratio is within {claim}"
        running = max(self.law.running)
        if self.verdict.verdict == "consistent":
            if running > 0.0:
                return f"undecided: no violation of {claim} on {self.worst}, but {running:.3g} of the runs outlast it"
            return f"undecided: on {self.worst} {undecided(self.verdict.delta_upper, claim)}"
        text = f"violated on {self.worst}: delta is at least {self.verdict.delta_lower:.4g} at {claim}"
        if self.averages is not None:
            mean = max(self.averages.reveal_1.mean, self.averages.reveal_0.mean)
            text += f". On random sequences the outcome reveals the sample with certainty with probability {mean:.4g}"
        elif max(self.law.reveal_1, self.law.reveal_0) > 0.0:
            reveal = max(self.law.reveal_1, self.law.reveal_0)
            text += f"; with probability {reveal:.4g} the outcome reveals the sample with certainty"
        return text

    def as_dict(self) -> dict[str, Any]:
        """The content of ``result.json``, parameters apart."""
        averages, one, zero = self.averages, *self.law.running
        numbers: dict[str, Any] = {"reveal_1": self.law.reveal_1, "reveal_0": self.law.reveal_0}
        if averages is not None:
            numbers = {
                **_with_interval("reveal_1", averages.reveal_1),
                **_with_interval("reveal_0", averages.reveal_0),
                **_with_interval("average_total_variation", averages.total_variation),
                "sequences": averages.sequences,
                "unfinished": averages.capped,
            }
        return {
            **self.verdict.as_dict(),
            "epsilon_claimed": self.epsilon,
            "confidence": 1.0 if averages is None else self.confidence,
            "sentence": self.sentence,
            **self.leakage.as_dict(self.epsilon),
            **numbers,
            "worst_sequence": self.worst,
            "shown_sequence": self.shown,
            "shown_reveal_1": self.law.reveal_1,
            "shown_reveal_0": self.law.reveal_0,
            "shown_total_variation": self.law.total_variation,
            "shown_largest_finite_log_ratio": self.law.worst_ratio,
            "shown_running": {"x_n = 1": one, "x_n = 0": zero},
            "oscillating_total_variation": None if self.oscillating is None else self.oscillating.total_variation,
            "steps": None if averages is None else averages.steps,
            "seconds": self.seconds,
        }


def _with_interval(name: str, value: BoundedMean) -> dict[str, Any]:
    return {name: value.mean, f"{name}_ci": (value.low, value.high)}


def informed_verdict(law: InformedLaw, epsilon: float) -> Verdict:
    """Of one sequence, exactly: any outcome whose ratio surely exceeds the claim is a violation.

    What runs on after the last sample might still violate it: the claim is certified if nothing does.
    """
    ends = law.ends
    with np.errstate(divide="ignore", invalid="ignore"):
        surely = np.maximum(np.log(ends.low_1) - np.log(ends.high_0), np.log(ends.low_0) - np.log(ends.high_1))
    bound = float(np.max(surely, initial=0.0, where=~np.isnan(surely)))
    lower = delta_ends(ends.one, ends.zero, epsilon)[0]
    if lower > 0.0:
        return Verdict("violated", bound, lower, surest_event(ends.one, ends.zero, epsilon))
    ended = ends.kept(~ends.running)
    running = max(float(high[ends.running].sum()) for high in (ends.high_1, ends.high_0))
    upper = delta_ends(ended.one, ended.zero, epsilon)[1] + running
    return Verdict("certified" if upper == 0.0 else "consistent", bound, 0.0, None, delta_upper=upper)


def best_outcome(law: InformedLaw, floor: float) -> Event | None:
    """The event of this probability or more with the largest ratio: outcomes in the order of their ratio.

    Of outcomes with the same ratio but for rounding, so many of the most probable are taken that one is enough for the
    rest, and of those the least probable: the event is no larger than it must be. An outcome that is impossible for one
    member counts as that, whatever rounding makes of its probability; outcomes so rare that rounding decides their
    ratio come last.
    """
    found, (only_1, only_0) = [], law.reveals
    p1, p0 = np.where(only_0, 0.0, law.p1), np.where(only_1, 0.0, law.p0)
    for p, q, side in ((p1, p0, 1), (p0, p1, 0)):
        groups = tied_groups(np.where(np.maximum(p, q) > _RARE, log_ratio(p, q), -math.inf), close=1e-6)
        chosen = _just_enough(p, groups, floor * (1.0 - 1e-12))
        if chosen is not None:
            name = f"one of {chosen.size} outcomes that are likelier with x_n = {side}"
            found.append(Event(name, float(p1[chosen].sum()), float(p0[chosen].sum())))
    return largest(found)


def _just_enough(p: FloatArray, groups: NDArray[np.int64], wanted: float) -> NDArray[np.int64] | None:
    """Outcomes of this probability together: all of the first groups, and as little as possible of the next one."""
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


def audit_informed(
    setting: Setting,
    epsilon: float,
    *,
    entry: int | Sequence[int] = 1,
    engine: Engine = "monte_carlo",
    sequence: str | Path | NDArray[np.integer] | None = None,
    sequences: int = 500,
    seed: int = 1,
    max_steps: int = 10_000_000,
    confidence: float = 0.99,
    floor: float = 0.01,
    epsilons: Sequence[float] | None = None,
    execution: Execution = SERIAL,
) -> InformedAudit:
    """Audit standard differential privacy: all samples but the entries are known, only L is random.

    With a sequence (an array, or a file of 0s and 1s) that one is audited, exactly. Else `sequences` random ones are
    drawn, each of them audited exactly and the numbers averaged; beside them stands the one made to be the worst.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> found = audit_informed(Setting(test, Exponential.private(test, 0.1), 0.84), epsilon=0.1, sequences=50)
    >>> found.verdict.verdict, round(found.averages.reveal_1.mean, 2), round(found.oscillating.total_variation, 3)
    ('violated', 0.08, 0.999)
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    claim = Claim(test, mechanism, p_phi, epsilon, in_order(entry), engine, confidence)
    grid, entries = checked(claim, max_steps, floor, epsilons), claim.entries
    started = time.perf_counter()
    averages: InformedAverage | None = None
    if sequence is not None:
        bits = read_sequence(sequence, entries) if isinstance(sequence, (str, Path)) else np.asarray(sequence)
        law, shown = given_sequence(test, mechanism, bits, entries), "the given sequence"
        leakage = Leakage(law.profile(grid), law.total_variation, best_outcome(law, floor))
    else:
        message = "notion=informed averages over drawn sequences: use engine=monte_carlo, or give sequence=FILE"
        require(engine != "exact", message)
        options: dict[str, Any] = {"seed": seed, "max_steps": max_steps, "confidence": confidence}
        averages = average(setting, entries, sequences, grid, execution=execution, **options)
        law, shown = averages.worst, f"random sequence {averages.worst_path}, the worst of {sequences}"
        leakage = Leakage(averages.profile, averages.total_variation.mean, best_outcome(law, floor))
    made = _oscillating(test, mechanism, entries) if sequence is None else None
    verdict, worst = informed_verdict(law, epsilon), shown
    if made is not None and exceeds(made.total_variation, law.total_variation):
        verdict, worst = informed_verdict(made, epsilon), "a sequence made to be the worst"
    return InformedAudit(
        **claim.parts(),
        verdict=verdict,
        histogram=OutcomeHistogram.of(law, epsilon),
        law=law,
        shown=shown,
        worst=worst,
        leakage=leakage,
        averages=averages,
        oscillating=made,
        seconds=time.perf_counter() - started + execution.spent,
    )


def _oscillating(test: Sprt, mechanism: Mechanism, entries: tuple[int, ...]) -> InformedLaw | None:
    """The law of the sequence made to be the worst, if that is not too long."""
    try:
        bits = oscillating_sequence(test, mechanism, entries, longest=5_000_000)
    except ParameterError:
        return None
    return given_sequence(test, mechanism, bits, entries)
