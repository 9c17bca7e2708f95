"""What a release costs and what it gives away, from public parameters alone: no sample is ever seen here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpsmc_audit.mechanisms import Mechanism, NoNoise
from dpsmc_audit.notions.marginal import marginal_law
from dpsmc_audit.profiles import Leakage
from dpsmc_audit.sprt import ParameterError, Sprt
from dpsmc_audit.ties import best_of
from dpsmc_audit.verify.alike import Alike
from dpsmc_audit.walks.averages import rough_mean

__all__ = ["expected_cost", "privacy_statement", "probabilities"]

FRACTIONS = (0.25, 0.5, 0.75, 1.0)
"""Of the way from p - delta to 0 and from p + delta to 1. Nearer to p exact laws take long and are known less well."""

SAMPLES, MOST_BETWEEN, LONGEST = 400, 1_000, 2_000_000
"""Samples changed in turn where all others are alike, more where that is worst, and how long such data may be."""

ADJACENT = (
    "two data sets that differ in one sample (its truth value); "
    "their length, and where a sample cannot be read, are public"
)
UNDECIDED = (
    "a run that reaches the end of the data or max_steps releases that it did, and the number of samples; "
    "this is a function of (tau, decision), so the same numbers hold"
)
COMPOSITION = (
    "another run on the same data is another release and adds to the loss; these numbers are those of one release, "
    "and no bound is claimed for several"
)
INFORMED = (
    "none: to an observer who knows every other sample no law of L hides the last one on every sequence; "
    "on the worst sequence one result tells the sample (see experiments/counterexample.py)"
)


def probabilities(test: Sprt) -> tuple[float, ...]:
    """The grid of p_phi, on both sides of p and outside of the indifference region.

    Examples
    --------
    >>> probabilities(Sprt(p=0.5, delta=0.01, alpha=0.01))
    (0.0, 0.1225, 0.245, 0.3675, 0.6325, 0.755, 0.8775, 1.0)
    """
    below = [(test.p - test.delta) * (1.0 - part) for part in reversed(FRACTIONS)]
    above = [1.0 - (1.0 - test.p - test.delta) * (1.0 - part) for part in FRACTIONS]
    return tuple(round(value, 6) for value in (*below, *above))


def expected_cost(test: Sprt, mechanism: Mechanism) -> dict[float, float]:
    """Mean samples over a range of p_phi, the edges of the hypotheses included, to a percent."""
    edges = (round(test.p - test.delta, 9), round(test.p + test.delta, 9))
    return {p_phi: rough_mean(test, mechanism, p_phi).value for p_phi in sorted({*probabilities(test), *edges})}


@lru_cache(maxsize=8)
def _audits(test: Sprt, mechanism: Mechanism, epsilon: float) -> dict[float, tuple[Leakage, float] | None]:
    """What one release gives away at each p_phi of the grid, with its numerical error; None where that is unknown."""
    levels = np.array([epsilon, 2.0 * epsilon])
    found: dict[float, tuple[Leakage, float] | None] = {}
    for p_phi in probabilities(test):
        try:
            law = marginal_law(test, mechanism, p_phi, (1,))
            found[p_phi] = law.leakage(levels, 0.01), law.scatter
        except ParameterError:
            found[p_phi] = None
    return found


@dataclass(frozen=True)
class _Case:
    """What one release gives away of one sample: a case of which the statement takes the worst."""

    p_phi: float
    entry: int
    deltas: tuple[float, float]
    total_variation: float


@lru_cache(maxsize=8)
def _alike(test: Sprt, mechanism: Mechanism, epsilon: float) -> tuple[_Case, ...]:
    """There the law is known for every sample: the observer of one release then knows the others.

    A later sample can be worse than the first: two-sided noise hides it least about where the run tends to stop.
    """
    found: list[_Case] = []
    top = float(mechanism.quantile(1.0 - 1e-9))
    for bit, bound, step in ((0, test.b_low, test.s_minus), (1, test.b_up, test.s_plus)):
        length = math.ceil(max(bound + top, 0.0) / step) + 2
        if length > LONGEST:
            continue
        alike = Alike.of(test, mechanism, bit, length)

        def cases(entries: Sequence[int], bit: int = bit, alike: Alike = alike) -> list[_Case]:
            deltas = alike.deltas(entries, (epsilon, 2.0 * epsilon, 0.0)).tolist()
            return [_Case(float(bit), n, (one, two), tv) for n, (one, two, tv) in zip(entries, deltas, strict=True)]

        tried = np.unique(np.geomspace(1, length - 1, SAMPLES).astype(int)).tolist()
        some = cases(tried)
        worst = best_of([case.deltas[0] for case in some])
        between = range(tried[max(worst - 1, 0)] + 1, tried[min(worst + 1, len(tried) - 1)])
        found += some + cases([entry for entry in between[:MOST_BETWEEN] if entry not in tried])
    return tuple(found)


def privacy_statement(test: Sprt, mechanism: Mechanism, epsilon: float, *, negated: bool = False) -> dict[str, Any]:
    """What the exact audit of one released (tau, o) says, at worst.

    Over a grid of p_phi with the first sample changed, and over many samples where all others are alike (p_phi is 0 or
    1), where a change shows the most. With `negated`, p_phi is shown for the specification as it was given.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> said = privacy_statement(test, Exponential.private(test, 0.1), 0.1)
    >>> round(said["delta_at_epsilon"], 3), said["worst_p_phi"]
    (0.093, 1.0)
    """
    audited = _audits(test, mechanism, epsilon)

    def shown(p_phi: float) -> float:
        return round(1.0 - p_phi, 6) if negated else p_phi

    found = {p_phi: audit[0] for p_phi, audit in audited.items() if audit is not None}
    cases = [
        _Case(p_phi, 1, (each.profile.at(epsilon), each.profile.at(2.0 * epsilon)), each.total_variation)
        for p_phi, each in found.items()
    ] + list(_alike(test, mechanism, epsilon))
    worst = cases[best_of([case.deltas[0] for case in cases])] if cases else None
    numbers: dict[str, Any] = {"delta_at_epsilon": None, "delta_at_2_epsilon": None, "total_variation": None}
    if worst is not None:
        numbers = {
            "delta_at_epsilon": worst.deltas[0],
            "delta_at_2_epsilon": max(case.deltas[1] for case in cases),
            "total_variation": max(case.total_variation for case in cases),
        }
    return {
        "adjacency": ADJACENT,
        "observer": "sees this release alone and knows no other sample (exact audit, notion=marginal)",
        "worst_over": "p_phi on a grid, the first sample changed; many samples of data that are all alike otherwise",
        "epsilon": epsilon,
        **numbers,
        "numerical_error": max((audit[1] for audit in audited.values() if audit is not None), default=None),
        "worst_p_phi": None if worst is None else shown(worst.p_phi),
        "worst_sample": None if worst is None else worst.entry,
        "p_phi_grid": sorted(shown(p_phi) for p_phi in found),
        "p_phi_unknown": sorted(shown(p_phi) for p_phi in audited if p_phi not in found),
        "informed_observer": INFORMED if not isinstance(mechanism, NoNoise) else "none: there is no noise",
        "undecided": UNDECIDED,
        "composition": COMPOSITION,
    }
