"""The privacy profiles of the observers that an audit was not about, where they cost a second or less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.profiles import Profile
from dpsmc_audit.setting import Setting

__all__ = ["NOTIONS", "Case", "observers_csv", "other_profiles", "reach"]

NOTIONS = ("expected", "marginal", "informed")

FloatArray = NDArray[np.float64]

LONGEST = 40_000
"""Samples that a run may take, all but never, for its laws to be worth a second."""

MOST_BINS = 1_000

SEQUENCES = 20


@dataclass(frozen=True, eq=False)
class Case:
    """What the curves are of."""

    setting: Setting
    entries: tuple[int, ...]
    bin_width: int | None
    epsilons: FloatArray
    seed: int
    max_steps: int
    floor: float


def reach(case: Case) -> float:
    """About how many samples a run takes at the largest L that occurs once in 10^12 runs."""
    test = case.setting.test
    far = max(test.b_up, test.b_low) + abs(float(case.setting.mechanism.quantile(1.0 - 1e-12)))
    return max(test.wald(case.setting.p_phi, far).samples, float(case.entries[-1]))


def other_profiles(case: Case, audited: str) -> tuple[dict[str, tuple[Profile, str]], dict[str, str]]:
    """For each other observer its profile and what it is of, and for those left out the reason."""
    found: dict[str, tuple[Profile, str]] = {}
    left_out: dict[str, str] = {}
    if not reach(case) <= LONGEST:
        return found, dict.fromkeys((n for n in NOTIONS if n != audited), "it would take more than a second here")
    for notion in NOTIONS:
        if notion == audited:
            continue
        try:
            found[notion] = _PROFILES[notion](case)
        except ParameterError as error:
            left_out[notion] = f"{error}"
    return found, left_out


def _expected(case: Case) -> tuple[Profile, str]:
    from dpsmc_audit.observers.expected.audit import auto_bin_width, expected_leakage
    from dpsmc_audit.observers.expected.law import expected_law

    width = case.bin_width or auto_bin_width(case.setting)
    if reach(case) / width > MOST_BINS:
        raise ParameterError(f"it would take more than a second with bins of {width} samples")
    law = expected_law(case.setting, case.entries, width)
    return expected_leakage(law, case.epsilons, case.floor).profile, f"exact, averages in bins of {width} samples"


def _marginal(case: Case) -> tuple[Profile, str]:
    from dpsmc_audit.observers.marginal.law import marginal_law

    law = marginal_law(case.setting, case.entries)
    return law.leakage(case.epsilons, case.floor).profile, "exact, one released result"


def _informed(case: Case) -> tuple[Profile, str]:
    from dpsmc_audit.observers.informed.law import average

    numbers: dict[str, Any] = {"seed": case.seed, "max_steps": case.max_steps}
    found = average(case.setting, case.entries, SEQUENCES, case.epsilons, **numbers)
    return found.profile, f"average over {SEQUENCES} drawn sequences, each exact"


_PROFILES: dict[str, Callable[[Case], tuple[Profile, str]]] = {
    "expected": _expected,
    "marginal": _marginal,
    "informed": _informed,
}


def observers_csv(profiles: dict[str, tuple[Profile, str]]) -> str:
    """All curves in one file, each with what it is of."""
    from dpsmc_audit.report.tables import as_csv

    names = ("observer", "about", "epsilon", "delta_1_over_0", "delta_0_over_1")
    rows = [
        dict(zip(names, (observer, about, *values), strict=True))
        for observer, (p, about) in profiles.items()
        for values in zip(p.epsilon.tolist(), p.delta_1_over_0.tolist(), p.delta_0_over_1.tolist(), strict=True)
    ]
    return as_csv(rows, names)
