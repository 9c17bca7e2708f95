"""What a release costs and what it leaks, computed from public parameters alone. No sample is used here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.averages import exact_mean
from dpsmc_audit.mechanisms import Mechanism, NoNoise
from dpsmc_audit.numerics.ties import best_of
from dpsmc_audit.observers.marginal.law import marginal_law
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify.bound import proven_bound
from dpsmc_audit.verify.constant_data import constant_data_deltas
from dpsmc_audit.verify.decision import decision_alone

__all__ = ["expected_cost", "near_p", "privacy_statement", "probabilities"]

ADJACENT = (
    "two data sets that differ in one sample (its truth value); "
    "their length, and where a sample cannot be read, are public"
)
UNDECIDED = (
    "a run that reaches the end of the data or max_steps releases that it did, and the number of samples; "
    "this is a function of (tau, decision), so the same numbers hold"
)
BOTH, ALONE = "tau and decision", "decision alone"
EVERYWHERE = "every p_phi in [0, 1] and every sample, if the samples are independent (proven)"
EXAMINED = (
    "tau and decision for p_phi on a grid, the first sample changed; the decision alone for p_phi within delta of p, "
    "the first sample changed; tau and decision for many samples of data that are all equal otherwise"
)
COMPOSITION = (
    "another run on the same data is another release and adds to the loss; these numbers are those of one release "
    "(proven bounds of several add up; ledger=PATH counts them)"
)
INFORMED = (
    "none: to an observer who knows every other sample no law of L hides the last one on every sequence; "
    "on the worst sequence one result tells the sample (see experiments/counterexample.py)"
)


def probabilities(test: Sprt) -> tuple[float, ...]:
    """Choose a grid of p_phi on both sides of p, outside the indifference region.

    It covers quarters of the way from p - delta to 0 and from p + delta to 1. Nearer to p exact laws take long and are
    less precise.

    Parameters
    ----------
    test : Sprt
        The test.

    Returns
    -------
    tuple of float
        The grid, in increasing order.

    Examples
    --------
    >>> probabilities(Sprt(p=0.5, delta=0.01, alpha=0.01))
    (0.0, 0.1225, 0.245, 0.3675, 0.6325, 0.755, 0.8775, 1.0)
    """
    parts = (0.25, 0.5, 0.75, 1.0)
    below = [(test.p - test.delta) * (1.0 - part) for part in reversed(parts)]
    above = [1.0 - (1.0 - test.p - test.delta) * (1.0 - part) for part in parts]
    return tuple(round(value, 6) for value in (*below, *above))


def near_p(test: Sprt) -> tuple[float, ...]:
    """Choose p_phi within the indifference region and on its edges: p, and values around the p_phi without drift.

    Parameters
    ----------
    test : Sprt
        The test.

    Returns
    -------
    tuple of float
        The values, in increasing order.

    Examples
    --------
    >>> near_p(Sprt(p=0.5, delta=0.2, alpha=0.01))
    (0.3, 0.4, 0.45, 0.48, 0.494, 0.5, 0.506, 0.52, 0.55, 0.6, 0.7)
    """
    still = test.s_minus / test.step_sum
    around = {still + sign * part * test.delta for part in (0.0, 0.03, 0.1, 0.25, 0.5, 1.0) for sign in (-1.0, 1.0)}
    inside = {test.p + min(max(value - test.p, -test.delta), test.delta) for value in around}
    rounded = {round(value, 12) for value in inside | {test.p, test.p - test.delta, test.p + test.delta}}
    return tuple(sorted(value for value in rounded if 1e-11 < value < 1.0 - 1e-11))


def expected_cost(test: Sprt, mechanism: Mechanism) -> dict[float, float]:
    """Compute mean samples over a range of p_phi, the edges of the hypotheses included.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.

    Returns
    -------
    dict of float to float
        Mean samples by p_phi, to a percent.
    """
    edges = {round(test.p - test.delta, 9), round(test.p + test.delta, 9)}
    return {
        p_phi: exact_mean(Setting(test, mechanism, p_phi)).value for p_phi in sorted({*probabilities(test), *edges})
    }


@dataclass(frozen=True)
class _Case:
    """What one release leaks about one sample: delta at epsilon, at twice epsilon and at 0, each with its error."""

    p_phi: float
    entry: int
    seen: str
    deltas: tuple[float, float, float]
    errors: tuple[float, float, float]


def _of_levels(epsilon: float, value: Callable[[float], float]) -> tuple[float, float, float]:
    return value(epsilon), value(2.0 * epsilon), value(0.0)


def _errors(epsilon: float, each: float) -> tuple[float, float, float]:
    """The errors of deltas if the probabilities of both laws are off by `each` in total. A delta is 1 at most."""
    return _of_levels(epsilon, lambda x: min((1.0 + math.exp(min(x, 700.0))) * each, 1.0))


def _audits(test: Sprt, mechanism: Mechanism, epsilon: float) -> dict[float, _Case | None]:
    """What one release leaks at each p_phi of the grid. None where its law is unknown."""
    found: dict[float, _Case | None] = {}
    for p_phi in probabilities(test):
        try:
            law = marginal_law(Adjacent(Setting(test, mechanism, p_phi)))
        except ParameterError:
            found[p_phi] = None
            continue
        profile = law.leakage(np.array([0.0, epsilon, 2.0 * epsilon]), 0.01).profile
        found[p_phi] = _Case(p_phi, 1, BOTH, _of_levels(epsilon, profile.at), _errors(epsilon, law.surely))
    return found


@lru_cache(maxsize=8)  # half a second each; several releases of one process share it
def _decisions(test: Sprt, mechanism: Mechanism, epsilon: float) -> tuple[_Case, ...]:
    """What the decision alone leaks about the first sample, near p."""
    laws = ((p_phi, decision_alone(Setting(test, mechanism, p_phi))) for p_phi in near_p(test))
    return tuple(
        _Case(p_phi, 1, ALONE, _of_levels(epsilon, law.delta), _of_levels(epsilon, law.delta_error))
        for p_phi, law in laws
    )


def _constant_data(test: Sprt, mechanism: Mechanism, epsilon: float) -> list[_Case]:
    """What one release leaks about many samples of data that are all zeros or all ones otherwise.

    There the law is known for every sample, because the observer of one release knows the other samples. A later sample
    can be worse than the first: two-sided noise hides it least about where the run tends to stop.
    """
    found: list[_Case] = []
    top = float(mechanism.quantile(1.0 - 1e-9))
    for bit, bound, step in ((0, test.b_low, test.s_minus), (1, test.b_up, test.s_plus)):
        length = math.ceil(max(bound + top, 0.0) / step) + 2
        if length > 2_000_000:  # it would take too much memory
            continue

        def cases(entries: Sequence[int], bit: int = bit, length: int = length) -> list[_Case]:
            levels = (epsilon, 2.0 * epsilon, 0.0)
            deltas = constant_data_deltas(test, mechanism, bit, length, entries, levels).tolist()
            errors = _errors(epsilon, 1e-9)  # P(the run outlasts the data)
            return [_Case(float(bit), n, BOTH, tuple(each), errors) for n, each in zip(entries, deltas, strict=True)]

        # 400 samples over the whole length, then up to 1000 more around the worst one
        tried = np.unique(np.geomspace(1, length - 1, 400).astype(int)).tolist()
        some = cases(tried)
        worst = best_of([case.deltas[0] for case in some])
        between = range(tried[max(worst - 1, 0)] + 1, tried[min(worst + 1, len(tried) - 1)])
        found += some + cases([entry for entry in between[:1_000] if entry not in tried])
    return found


def _worst(cases: Sequence[_Case], level: int) -> _Case | None:
    """Find the case that surely needs the largest delta, if any needs more than its numerical error.

    Of cases that are equal up to rounding, take the first sample and the smallest p_phi.
    """
    sure = [case.deltas[level] - case.errors[level] for case in cases]
    if not sure or max(sure) <= 0.0:
        return None
    tied = [case for case, least in zip(cases, sure, strict=True) if least >= max(sure) * (1.0 - 1e-9)]
    return min(tied, key=lambda case: (case.entry, case.p_phi))


def _vague(case: _Case, worst: _Case | None) -> bool:
    """Whether the delta of a case is smaller than its error, and the case could be the worst."""
    stated = 0.0 if worst is None else worst.deltas[0]
    return case.errors[0] >= case.deltas[0] and case.deltas[0] + case.errors[0] > stated


def _at_most(test: Sprt, mechanism: Mechanism, epsilon: float) -> dict[str, Any] | None:
    """The bound for every p_phi and every sample. None if none is proven."""
    bound = proven_bound(test, mechanism)
    if bound is None or bound.at(epsilon) >= 1.0:
        return None
    one, two, zero = _of_levels(epsilon, bound.at)
    return {"delta_at_epsilon": one, "delta_at_2_epsilon": two, "total_variation": zero, "holds_for": EVERYWHERE}


def privacy_statement(test: Sprt, mechanism: Mechanism, epsilon: float, *, negated: bool = False) -> dict[str, Any]:
    """State what one released (tau, o) leaks about one sample: a proven bound, and the worst case examined.

    The bound (`at_most`, see `dpsmc_audit.verify.bound`) holds for every p_phi and every sample. Three kinds of cases
    are examined: the exact law of (tau, o) over a grid of p_phi outside the indifference region, with the first sample
    changed; the decision alone within that region, where the law of tau cannot be computed; and many samples of data
    that are equal otherwise (p_phi is 0 or 1). So the worst case lies between `delta_at_epsilon`, less its
    `numerical_error`, and the bound.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    epsilon : float
        The privacy level.
    negated : bool
        Show p_phi of the specification as the user gave it. The test counts its negation.

    Returns
    -------
    dict
        The statement, part of the release.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> stated = privacy_statement(test, Exponential.private(test, 0.1), 0.1)
    >>> round(stated["delta_at_epsilon"], 3), stated["worst_p_phi"], round(stated["at_most"]["delta_at_epsilon"], 2)
    (0.093, 1.0, 0.14)
    """
    audited = _audits(test, mechanism, epsilon)

    def shown(values: Sequence[float]) -> list[float]:
        return sorted(round(1.0 - p_phi if negated else p_phi, 6) for p_phi in values)

    cases = [case for case in audited.values() if case is not None]
    cases += [*_decisions(test, mechanism, epsilon), *_constant_data(test, mechanism, epsilon)]
    worst, twice, apart = (_worst(cases, level) for level in range(3))
    unknown = [p_phi for p_phi, case in audited.items() if case is None or _vague(case, worst)]
    return {
        "adjacency": ADJACENT,
        "observer": "sees this release alone and knows no other sample (exact audit, notion=marginal)",
        "epsilon": epsilon,
        "at_most": _at_most(test, mechanism, epsilon),
        "worst_over": EXAMINED,
        "delta_at_epsilon": worst and worst.deltas[0],
        "delta_at_2_epsilon": twice and twice.deltas[1],
        "total_variation": apart and apart.deltas[2],
        "numerical_error": worst and worst.errors[0],
        "total_variation_error": apart and apart.errors[2],
        "worst_p_phi": worst and shown([worst.p_phi])[0],
        "worst_sample": worst and worst.entry,
        "worst_seen": worst and worst.seen,
        "p_phi_grid": shown([p_phi for p_phi in audited if p_phi not in unknown]),
        "p_phi_decision": shown(near_p(test)),
        "p_phi_unknown": shown(unknown),
        "informed_observer": INFORMED if not isinstance(mechanism, NoNoise) else "none: there is no noise",
        "undecided": UNDECIDED,
        "composition": COMPOSITION,
    }
