"""Exact values against Monte Carlo: time to the exact mean, law and profile, and time to a standard error of 1e-3."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import EPSILON, LAW, P_PHI, TEST, Ratio, Ratios, alternate
from dpsmc_audit.exact import averages, both_bounds, laws, renewal
from dpsmc_audit.exact import fixed as exact
from dpsmc_audit.exact.averages import exact_mean, exact_sd
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.observers.marginal.law import marginal_law
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Adjacent, Setting

__all__ = ["exact_ratios"]

ERROR, FEW, ROUNDS = 1e-3, 16_384, 15
TAIL = 0.01
"""The probability of the tail that stands for the law."""


REMEMBERED: tuple[Any, ...] = (
    *(exact_mean, averages._rare, exact._free_exit_law, both_bounds._ladder, both_bounds._law),
    *(laws._exact_law, renewal.renewal, marginal_law),
)


def _anew(work: Callable[[], object]) -> Callable[[], float]:
    """One value, without what is remembered from before."""

    def forgotten() -> float:
        for known in REMEMBERED:
            known.cache_clear()
        work()
        return 1.0

    return forgotten


def _runs_needed() -> dict[str, float]:
    """Runs until one standard error is 1e-3 of the mean, of a tail of 1 %, and of delta at the claimed epsilon.

    delta is estimated on the event that the exact laws say is the best one, which is in sampling's favour.
    """
    spread = exact_sd(Setting(TEST, LAW, P_PHI)).value / exact_mean(Setting(TEST, LAW, P_PHI)).value
    law = marginal_law(Adjacent(Setting(TEST, LAW, P_PHI)))
    one, zero = law.p1.ravel(), law.p0.ravel()
    best = one > math.exp(EPSILON) * zero
    p, q = float(one[best].sum()), float(zero[best].sum())
    delta = p - math.exp(EPSILON) * q
    variance = p * (1.0 - p) + math.exp(2.0 * EPSILON) * q * (1.0 - q)
    return {
        "mean": (spread / ERROR) ** 2,
        "law": (1.0 - TAIL) / TAIL / ERROR**2,
        "profile": 2.0 * variance / delta**2 / ERROR**2,  # runs of both members
    }


def exact_ratios() -> Ratios:
    """How many times longer sampling takes; beyond 10^6 runs its time is that of as many runs at the measured rate."""
    epsilons = np.linspace(0.0, 0.1, 101)
    works = {
        "mean": _anew(lambda: exact_mean(Setting(TEST, LAW, P_PHI))),
        "law": _anew(lambda: exact_law(Setting(TEST, LAW, P_PHI))),
        "profile": _anew(lambda: marginal_law(Adjacent(Setting(TEST, LAW, P_PHI))).leakage(epsilons, 0.01)),
    }
    speed = alternate({"runs": lambda: float(draw_runs(Setting(TEST, LAW, P_PHI), FEW).tau.size), **works}, ROUNDS)
    needed, asked = _runs_needed(), {"mean": "the mean", "law": "a tail of 1 %", "profile": "delta at epsilon"}
    found = {}
    for name, runs in needed.items():
        seconds, sampled = 1.0 / speed[name], runs / speed["runs"]
        method = (
            f"thread time of {runs:.2g} runs by jumps, for a standard error of 1e-3 of {asked[name]}, against that of"
            f" the exact {name}, nothing remembered; one core, best of {ROUNDS} rounds in turn"
        )
        details = {"exact_seconds": float(f"{seconds:.3g}"), "sampled_seconds": float(f"{sampled:.3g}"), "runs": runs}
        found[f"exact_{name}_vs_monte_carlo"] = Ratio(sampled / seconds, method, details=details)
    return found
