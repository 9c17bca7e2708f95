"""The audit of any observer whose two laws are known, outcome by outcome."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from dpsmc_audit.evidence.judging import KnownLaws, rejudged
from dpsmc_audit.evidence.profiles import Leakage, epsilon_grid, factor, privacy_profile, total_variation, worst_event
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray, IntArray
from dpsmc_audit.observers.base import Claim, PairAudit
from dpsmc_audit.observers.expected.verdicts import log_ratio
from dpsmc_audit.setting import Adjacent

__all__ = ["OutcomeTable", "audit_of_laws"]


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """Probabilities of every outcome for both members, and the check of their ratio.

    Parameters
    ----------
    outcome : ndarray
        The numbers of the outcomes.
    p1, p0 : ndarray
        Their probabilities.
    log_ratio : ndarray
        ``ln(p1 / p0)``.
    outside : ndarray
        Whether it is surely beyond the claim.
    """

    outcome: IntArray
    p1: FloatArray
    p0: FloatArray
    log_ratio: FloatArray
    outside: BoolArray


Kind = TypeVar("Kind", bound=PairAudit)


def audit_of_laws(
    kind: type[Kind],
    pair: Adjacent,
    claim: Claim,
    p1: FloatArray,
    p0: FloatArray,
    *,
    error: float = 0.0,
) -> Kind:
    """Audit a claim whose two laws are known: all that an observer of few outcomes needs.

    Parameters
    ----------
    kind : type
        The class of the result, a `PairAudit` without fields of its own.
    pair : Adjacent
        What is compared.
    claim : Claim
        What is audited.
    p1, p0 : array
        The probability of every outcome, for each member.
    error : float
        The error of each law, summed over all outcomes. Rounding is added to it.

    Returns
    -------
    PairAudit
        Violated if a delta is needed beyond the error, certified if none is at all, else undecided.

    Examples
    --------
    >>> from dpsmc_audit import Dp, NoNoise, Setting, Sprt
    >>> pair = Adjacent(Setting(Sprt(p=0.73, delta=0.01, alpha=0.01), NoNoise(), 0.84))
    >>> found = audit_of_laws(PairAudit, pair, Claim(Dp(1.0)), np.array([0.75, 0.25]), np.array([0.25, 0.75]))
    >>> f"{found.verdict}", round(found.delta_lower, 4)
    ('violated', 0.0704)
    """
    started = time.perf_counter()
    delta, event = worst_event(p1, p0, claim.epsilon)
    laws = KnownLaws(p1, p0, error + p1.size * float(np.finfo(np.float64).eps))
    off = (1.0 + factor(claim.epsilon)) * laws.error
    beyond = np.maximum(p1 - factor(claim.epsilon) * p0, p0 - factor(claim.epsilon) * p1)  # of single outcomes
    finding = Finding(Verdict.UNDECIDED, 0.0, 0.0, None, delta_upper=min(delta + off, 1.0))
    if delta - off > 0.0:
        finding = Finding(Verdict.VIOLATED, claim.epsilon, delta - off, event)
    elif delta + off <= 0.0:
        finding = Finding(Verdict.CERTIFIED, 0.0, 0.0, None, delta_upper=delta + off)
    finding = rejudged(finding, claim.promise, laws)
    profile = privacy_profile(p1, p0, epsilon_grid(claim.epsilon))
    return kind(
        pair=pair,
        claim=replace(claim, engine="exact"),
        finding=finding,
        exact=finding,
        histogram=OutcomeTable(np.arange(p1.size), p1, p0, log_ratio(p1, p0), beyond > off),
        leakage=Leakage(profile, total_variation(p1, p0), None),
        numerical_error=error,
        unfinished=0,
        steps=0,
        seconds=time.perf_counter() - started,
    )
