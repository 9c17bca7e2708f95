"""The privacy profiles of the observers that an audit was not about, where they take a second or less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.profiles import Profile
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent

__all__ = ["NOTIONS", "Curve", "OtherObservers", "other_observers", "reach"]

NOTIONS = ("expected", "marginal", "informed")


LONGEST = 40_000
"""Samples that a run may take, all but never, for its laws to be worth a second."""

MOST_BINS = 1_000

SEQUENCES = 20


@dataclass(frozen=True, eq=False)
class Curve:
    """A privacy profile, and what it is of.

    Parameters
    ----------
    profile : Profile
        The privacy profile.
    about : str
        What it is of.
    """

    profile: Profile
    about: str


@dataclass(frozen=True, eq=False)
class OtherObservers:
    """The curves of the other observers by name; for those left out, the reason.

    Parameters
    ----------
    curves : dict
        The curves by observer.
    left_out : dict
        The reasons by observer.
    """

    curves: dict[str, Curve] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the part of ``result.json``; the curves themselves are in ``observers.csv``."""
        shown = {name: {"about": curve.about} for name, curve in self.curves.items()}
        return {**shown, **{name: {"left_out": reason} for name, reason in self.left_out.items()}}


@dataclass(frozen=True, eq=False)
class _Case:
    """What the curves are of."""

    pair: Adjacent
    epsilons: FloatArray
    floor: float
    bin_width: int | None
    sampling: Sampling


def reach(pair: Adjacent) -> float:
    """Estimate how many samples a run takes at the largest L that occurs once in 10^12 runs.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.

    Returns
    -------
    float
        The number of samples, by Wald's approximation. It is at least the last entry.
    """
    setting = pair.setting
    far = max(setting.test.b_up, setting.test.b_low) + abs(float(setting.mechanism.quantile(1.0 - 1e-12)))
    return max(setting.test.wald(setting.p_phi, far).samples, float(pair.entries[-1]))


def other_observers(
    audited: str, pair: Adjacent, epsilons: FloatArray, floor: float, bin_width: int | None, sampling: Sampling
) -> OtherObservers:
    """Compute the profiles of all observers but one.

    Parameters
    ----------
    audited : str
        The observer that is left out.
    pair : Adjacent
        The setting and the entries.
    epsilons : array
        The grid of the profiles.
    floor : float
        Of the events behind bounds on epsilon.
    bin_width : int, optional
        Of the averages that the expected observer compares.
    sampling : Sampling
        How sequences for the informed observer are drawn.

    Returns
    -------
    OtherObservers
        The curves, and why some are missing.
    """
    others = [name for name in NOTIONS if name != audited]
    if not reach(pair) <= LONGEST:
        return OtherObservers(left_out=dict.fromkeys(others, "it would take more than a second here"))
    case, found = _Case(pair, epsilons, floor, bin_width, sampling), OtherObservers()
    for name in others:
        try:
            found.curves[name] = _CURVES[name](case)
        except ParameterError as error:
            found.left_out[name] = f"{error}"
    return found


def _expected(case: _Case) -> Curve:
    from dpsmc_audit.observers.expected.audit import auto_bin_width, expected_leakage
    from dpsmc_audit.observers.expected.law import expected_law

    width = case.bin_width or auto_bin_width(case.pair.setting)
    if reach(case.pair) / width > MOST_BINS:
        raise ParameterError(f"it would take more than a second with bins of {width} samples")
    leakage = expected_leakage(expected_law(case.pair, width), case.epsilons, case.floor)
    return Curve(leakage.profile, f"exact, averages in bins of {width} samples")


def _marginal(case: _Case) -> Curve:
    from dpsmc_audit.observers.marginal.law import marginal_law

    return Curve(marginal_law(case.pair).leakage(case.epsilons, case.floor).profile, "exact, one released result")


def _informed(case: _Case) -> Curve:
    from dpsmc_audit.observers.informed.average import average

    found = average(case.pair, SEQUENCES, case.epsilons, case.sampling.alone())
    return Curve(found.profile, f"average over {SEQUENCES} drawn sequences, each exact")


_CURVES: dict[str, Callable[[_Case], Curve]] = {"expected": _expected, "marginal": _marginal, "informed": _informed}
