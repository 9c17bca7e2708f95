"""One function for the audits of all observers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack, overload

from dpsmc_audit.errors import check_entries, require
from dpsmc_audit.evidence.claims import Promise, as_promise
from dpsmc_audit.observers.base import Claim, Engine, Observer, PairAudit
from dpsmc_audit.observers.expected.audit import Expected, ExpectedAudit
from dpsmc_audit.observers.informed.audit import Informed, InformedAudit
from dpsmc_audit.observers.marginal.audit import Marginal, MarginalAudit
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.setting import Adjacent, Setting

__all__ = ["OBSERVERS", "audit"]

OBSERVERS: dict[str, type[Expected] | type[Marginal] | type[Informed]] = {
    observer.name: observer for observer in (Expected, Marginal, Informed)
}


class _Options(TypedDict, total=False):
    """The keywords of `audit`, for the type checker."""

    entry: int | Sequence[int]
    engine: Engine
    confidence: float
    sampling: Sampling


@overload
def audit(
    setting: Setting,
    epsilon: float | Promise,
    observer: Expected | Literal["expected"] = "expected",
    **options: Unpack[_Options],
) -> ExpectedAudit: ...
@overload
def audit(
    setting: Setting, epsilon: float | Promise, observer: Marginal | Literal["marginal"], **options: Unpack[_Options]
) -> MarginalAudit: ...
@overload
def audit(
    setting: Setting, epsilon: float | Promise, observer: Informed | Literal["informed"], **options: Unpack[_Options]
) -> InformedAudit: ...
@overload
def audit(setting: Setting, epsilon: float | Promise, observer: Observer, **options: Unpack[_Options]) -> PairAudit: ...
def audit(
    setting: Setting,
    epsilon: float | Promise,
    observer: Observer | str = "expected",
    *,
    entry: int | Sequence[int] = 1,
    engine: Engine = "monte_carlo",
    confidence: float = 0.99,
    sampling: Sampling = USUAL,
) -> PairAudit:
    """Audit the claim that a test with its noise is private, as claimed, towards an observer.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    epsilon : float or Promise
        The claim: an epsilon with delta = 0, or ``Dp(epsilon, delta)``, ``Gdp(mu)`` or a `Curve`.
    observer : {"expected", "marginal", "informed"} or Observer
        Who observes: a name, or an object with numbers of its own such as ``Marginal(runs=10_000)``.
    entry : int or sequence of int
        The samples that change, counted from 1. Several change together.
    engine : {"monte_carlo", "exact"}
        Sample the two laws, or compute them.
    confidence : float
        The probability that a sampled verdict is wrong is at most 1 - confidence.
    sampling : Sampling
        How runs are drawn.

    Returns
    -------
    PairAudit
        The verdict with its bounds, witness, histogram and leakage.

    Raises
    ------
    ParameterError
        If something cannot be audited; the message is one line.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Sprt
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> setting = Setting(test, Exponential.private(test, epsilon=0.1), p_phi=0.84)
    >>> found = audit(setting, epsilon=0.1, observer="marginal", engine="exact")
    >>> f"{found.verdict}", found.witness.name
    ('violated', 'tau <= 313')
    """
    if isinstance(observer, str):
        require(observer in OBSERVERS, f"observer must be one of {', '.join(OBSERVERS)}, got {observer}")
        observer = OBSERVERS[observer]()
    claim, pair = Claim(as_promise(epsilon), confidence, engine), Adjacent.of(setting, entry)
    claim.check()
    check_entries(pair.entries, sampling.max_steps)
    return observer.audit(pair, claim, sampling)
