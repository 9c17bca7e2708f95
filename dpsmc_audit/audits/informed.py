"""The audit of what the release says about a sample to an observer who knows every other one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.audits.expected import Engine
from dpsmc_audit.audits.verdicts import Verdict, log_ratio
from dpsmc_audit.evidence import BoundedMean, check_confidence
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.notions.informed import InformedAverage, InformedLaw, average, given_sequence
from dpsmc_audit.notions.sequences import oscillating_sequence, read_sequence
from dpsmc_audit.profiles import Event, Leakage, check_floor, epsilon_grid
from dpsmc_audit.sprt import ParameterError, Sprt, check_entries, in_order, require

__all__ = ["InformedAudit", "OutcomeHistogram", "audit_informed"]

FloatArray = NDArray[np.float64]

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
        ratio = log_ratio(law.p1, law.p0)
        with np.errstate(invalid="ignore"):
            outside = np.abs(ratio) > epsilon + 1e-9
        return cls(law.tau, _DECISIONS[law.decision], law.p1, law.p0, ratio, outside)


@dataclass(frozen=True, eq=False)
class InformedAudit:
    """What the audit found on a given sequence, or on random ones: averages, and the worst (`law`).

    `worst` tells where the worst sequence came from; `oscillating` is the total variation of the sequence made to be
    the worst, None where it would be too long.
    """

    test: Sprt
    mechanism: Mechanism
    p_phi: float
    epsilon: float
    entries: tuple[int, ...]
    engine: Engine
    confidence: float
    verdict: Verdict
    histogram: OutcomeHistogram
    law: InformedLaw
    worst: str
    leakage: Leakage
    averages: InformedAverage | None
    oscillating: float | None
    seconds: float = field(compare=False)

    @property
    def sentence(self) -> str:
        """The verdict for a reader in a hurry."""
        claim = f"the claimed epsilon = {self.epsilon:g}"
        if self.verdict.verdict == "certified":
            return f"certified on {self.worst}: every outcome's ratio is within {claim}"
        assert self.verdict.witness is not None
        reveal = max(self.law.reveal_1, self.law.reveal_0)
        text = f"violated on {self.worst}: delta is at least {self.verdict.delta_lower:.4g} at {claim}"
        if reveal > 0.0:
            text += f"; with probability {reveal:.4g} the outcome reveals the sample with certainty"
        if self.averages is not None:
            mean = max(self.averages.reveal_1.mean, self.averages.reveal_0.mean)
            text += f" (on average over random sequences: {mean:.4g})"
        if self.oscillating is not None:
            text += f". A sequence made to be the worst has total variation {self.oscillating:.4f}"
        return text

    def as_dict(self) -> dict[str, Any]:
        """The content of ``result.json``, parameters apart."""
        averages = self.averages
        numbers: dict[str, Any] = {"reveal_1": self.law.reveal_1, "reveal_0": self.law.reveal_0}
        if averages is not None:
            numbers = {
                **_with_interval("reveal_1", averages.reveal_1),
                **_with_interval("reveal_0", averages.reveal_0),
                **_with_interval("informed_total_variation", averages.total_variation),
                "sequences": averages.sequences,
                "unfinished": averages.capped,
            }
        return {
            **self.verdict.as_dict(),
            "epsilon_claimed": self.epsilon,
            "confidence": self.confidence,
            "sentence": self.sentence,
            **self.leakage.as_dict(self.epsilon),
            **numbers,
            "worst_sequence": self.worst,
            "worst_reveal_1": self.law.reveal_1,
            "worst_reveal_0": self.law.reveal_0,
            "worst_total_variation": self.law.total_variation,
            "worst_finite_log_ratio": self.law.worst_ratio,
            "oscillating_total_variation": self.oscillating,
            "seconds": self.seconds,
        }


def _with_interval(name: str, value: BoundedMean) -> dict[str, Any]:
    return {name: value.mean, f"{name}_ci": (value.low, value.high)}


def informed_verdict(law: InformedLaw, epsilon: float) -> Verdict:
    """Of one sequence, exactly: any outcome whose ratio exceeds the claim is a violation."""
    factor = math.exp(min(epsilon, 700.0))
    sides = ((law.p1, law.p0), (law.p0, law.p1))
    deltas = [float(np.maximum(p - factor * q, 0.0).sum()) for p, q in sides]
    which = int(np.argmax(deltas))
    bound = math.inf if max(law.reveal_1, law.reveal_0) > 1e-12 else law.worst_ratio
    if bound <= epsilon + 1e-9 and max(deltas) <= 1e-12:
        return Verdict("certified", bound, 0.0, None)
    p, q = sides[which]
    event = p > factor * q
    name = f"one of {int(event.sum())} outcomes that are likelier with x_n = {1 - which}"
    witness = Event(name, float(law.p1[event].sum()), float(law.p0[event].sum()))
    return Verdict("violated", bound, deltas[which], witness)


def best_outcome(law: InformedLaw, floor: float) -> Event | None:
    """The event of this probability or more with the largest ratio: outcomes in the order of their ratio."""
    found = []
    for p, q, side in ((law.p1, law.p0, 1), (law.p0, law.p1, 0)):
        order = np.argsort(-log_ratio(p, q), kind="stable")
        enough = int(np.searchsorted(np.cumsum(p[order]), floor * (1.0 - 1e-12))) + 1
        if enough <= order.size:
            chosen = order[:enough]
            name = f"one of {enough} outcomes that are likelier with x_n = {side}"
            found.append(Event(name, float(law.p1[chosen].sum()), float(law.p0[chosen].sum())))
    return max(found, key=lambda event: abs(event.log_ratio)) if found else None


def audit_informed(
    test: Sprt,
    mechanism: Mechanism,
    p_phi: float,
    epsilon: float,
    *,
    entry: int | Sequence[int] = 1,
    engine: Engine = "monte_carlo",
    sequence: str | Path | None = None,
    sequences: int = 500,
    seed: int = 1,
    max_steps: int = 10_000_000,
    confidence: float = 0.99,
    floor: float = 0.01,
    epsilons: Sequence[float] | None = None,
    progress: Callable[[int], None] | None = None,
) -> InformedAudit:
    """Audit standard differential privacy: all samples but the entries are known, only L is random.

    With a file of 0s and 1s (`sequence`) that one is audited, exactly. Else `sequences` random ones are drawn, each of
    them audited exactly and the numbers averaged, and beside them stands the sequence made to be the worst.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> found = audit_informed(test, Exponential.private(test, 0.1), 0.84, epsilon=0.1, sequences=50)
    >>> found.verdict.verdict, round(found.averages.reveal_1.mean, 2), round(found.oscillating, 3)
    ('violated', 0.08, 0.999)
    """
    check_confidence(confidence)
    check_floor(floor)
    require(0.0 < epsilon < math.inf, f"epsilon must be positive to be audited, got {epsilon}")
    entries, grid = in_order(entry), epsilon_grid(epsilon, epsilons)
    check_entries(entries, max_steps)
    started = time.perf_counter()
    averages: InformedAverage | None = None
    if sequence is not None:
        law, worst = given_sequence(test, mechanism, read_sequence(sequence, entries), entries), "the given sequence"
        leakage = Leakage(law.profile(grid), law.total_variation, best_outcome(law, floor))
    else:
        message = "notion=informed averages over drawn sequences: use engine=monte_carlo, or give sequence=FILE"
        require(engine != "exact", message)
        options: dict[str, Any] = {"seed": seed, "max_steps": max_steps, "confidence": confidence}
        averages = average(test, mechanism, p_phi, entries, sequences, grid, progress=progress, **options)
        law, worst = averages.worst, f"random sequence {averages.worst_path}"
        leakage = Leakage(averages.profile, averages.total_variation.mean, best_outcome(law, floor))
    verdict = informed_verdict(law, epsilon)
    apart = _oscillating(test, mechanism, entries) if sequence is None else None
    claim = (test, mechanism, p_phi, epsilon, entries, engine, confidence)
    histogram, seconds = OutcomeHistogram.of(law, epsilon), time.perf_counter() - started
    return InformedAudit(*claim, verdict, histogram, law, worst, leakage, averages, apart, seconds)


def _oscillating(test: Sprt, mechanism: Mechanism, entries: tuple[int, ...]) -> float | None:
    """Total variation of the sequence made to be the worst, if it is not too long."""
    try:
        bits = oscillating_sequence(test, mechanism, entries, longest=5_000_000)
    except ParameterError:
        return None
    return given_sequence(test, mechanism, bits, entries).total_variation
