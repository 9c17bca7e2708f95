"""The exact law of (tau, o) averaged over L, with any entries forced. The marginal observer sees this law.

- *renewal* for the memoryless L of Algorithm 2;
- *passage* for any law of L, where only the bound that the walk drifts to matters;
- *strata* of L for the rest: tau grows with L, so the laws at the two ends of each stratum bracket P(tau > k).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.exact.far_bound import FAR, OFTEN, far_share, splits
from dpsmc_audit.exact.fixed import Steps, TerminationLaw, exit_law
from dpsmc_audit.exact.overshoot import turned_up
from dpsmc_audit.exact.passage import passage_cost, passage_survival
from dpsmc_audit.exact.renewal import renewal
from dpsmc_audit.exact.strata import CELLS, Part, affordable, cells_of, short_enough, strata
from dpsmc_audit.mechanisms import Atoms, Exponential
from dpsmc_audit.numerics.sums import convolution, total
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["exact_law"]

FloatArray = NDArray[np.float64]

_VAGUE = 0.02
"""A law with a larger error in some P(tau > k) is refused."""

_LATE = 300
"""Strata compute the law if the last forced entry comes after this."""


def exact_law(setting: Setting, forced: Mapping[int, int] | None = None) -> TerminationLaw:
    """Compute the law of (tau, o), with or without forced entries.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.
    forced : mapping, optional
        Samples that are given (entry: bit), counted from 1.

    Returns
    -------
    TerminationLaw
        The law and its numerical errors.

    Raises
    ------
    ParameterError
        If an entry is below 1, a bit is not 0 or 1 or p_phi is not a probability. Also if the law would be too long or
        too expensive, or if its error would exceed 0.02.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> law = exact_law(Setting(test, Exponential.private(test, 0.05), 0.84))
    >>> f"{law.survival()[200]:.4f}", law.error < 1e-5, law.method
    ('0.5449', True, 'renewal')
    """
    for entry, bit in (forced or {}).items():
        require(entry >= 1, f"entry must be at least 1, got {entry}")
        require(bit in (0, 1), f"a forced sample is 0 or 1, got {bit}")
    return _exact_law(setting, tuple(sorted((forced or {}).items())))


@lru_cache(maxsize=32)
def _exact_law(setting: Setting, forced: tuple[tuple[int, int], ...]) -> TerminationLaw:
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    given = dict(forced)
    if p_phi in (0.0, 1.0):
        return _certain_law(setting, given)
    if mechanism.atoms is not None:
        return _listed_law(test, mechanism.atoms, p_phi, given)
    records = renewal(setting) if isinstance(mechanism, Exponential) else None
    if records is None:
        return _known(p_phi, _mixed_law(setting, given))
    short_enough(p_phi, records.reach)
    renewed = records.law(given)
    if renewed.error <= 3e-5:
        return renewed
    try:
        other = _mixed_law(setting, given)
    except ParameterError:
        return _known(p_phi, renewed)
    return _known(p_phi, min((renewed, other), key=lambda law: law.error))


def _known(p_phi: float, law: TerminationLaw) -> TerminationLaw:
    """Refuse a law with a bracket so wide that it says nothing."""
    message = "the law at p_phi={:g} is only known to ±{:.2g}: too little drift; means and errors are affordable"
    require(law.error <= _VAGUE, message.format(p_phi, law.error))
    return law


# --- samples that are certain ---------------------------------------------------------------------------------------


def _certain_law(setting: Setting, forced: Mapping[int, int]) -> TerminationLaw:
    """Compute the law of certain samples. The excess record is certain too: ``P(tau > k) = survival(record)``."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    step, bound = (test.s_plus, test.b_up) if p_phi == 1.0 else (test.s_minus, test.b_low)
    reach = bound + float(mechanism.quantile(1.0 - 1e-13)) + len(forced) * test.step_sum
    last = max(forced, default=0) + math.ceil(max(reach, 0.0) / step) + 2
    short_enough(p_phi, last)
    bits = np.full(last, p_phi)
    for entry, bit in forced.items():
        bits[entry - 1] = bit
    ones, steps = np.cumsum(bits), np.arange(1, last + 1)
    walk = ones * test.s_plus - (steps - ones) * test.s_minus
    above, below = walk - test.b_up, -walk - test.b_low
    record = np.maximum.accumulate(np.maximum(np.maximum(above, below), test.no_room))
    running = mechanism.survival(record)
    coin = 1.0 - float(mechanism.survival(test.no_room))
    stopped = -np.diff(running, prepend=1.0 - coin)
    null, alt = np.where(above >= below, stopped, 0.0), np.where(above >= below, 0.0, stopped)
    null[0] += 0.5 * coin
    alt[0] += 0.5 * coin
    error = float(running[-1]) + 1e-15
    return TerminationLaw(null, alt, error, error, "certain", 2.0 * error * last)


# --- an L that takes few values -------------------------------------------------------------------------------------


def _listed_law(test: Sprt, atoms: Atoms, p_phi: float, forced: Mapping[int, int]) -> TerminationLaw:
    """Average over the values of L, one by one. Algorithm 1 has a single one."""
    affordable(p_phi, math.fsum(cells_of(test, p_phi, x, 0.0) for x, _ in atoms if x > test.no_room))
    coin = np.array([0.5])
    null, alt, error, late = [], [], 1e-12 * (len(atoms) > 1), 0.0
    for excess, share in atoms:
        law = exit_law(test, p_phi, excess, forced) if excess > test.no_room else None
        null.append(share * (coin if law is None else law.null))
        alt.append(share * (coin if law is None else law.alt))
        if law is not None:
            error += share * law.probability_error
            late += share * law.mean_error
    return TerminationLaw(total(null), total(alt), error, error, "fixed bounds", late + error * total(null).size)


# --- any law of L ---------------------------------------------------------------------------------------------------


def _mixed_law(setting: Setting, forced: Mapping[int, int]) -> TerminationLaw:
    """Add up the coin, the passage over the near bound, and the change by the far bound where both can be met.

    Strata replace the passage if a bound may be met before the last forced entry, or if the passage is too expensive.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    lowest = max(float(mechanism.quantile(0.0)), test.no_room)
    coin = 1.0 - float(mechanism.survival(test.no_room))
    parts = [Part(np.array([0.5 * coin]), np.array([0.5 * coin]), 0.0, 0.0, 0.0)]
    settled, apart = splits(test, p_phi, forced)
    if far_share(setting) > OFTEN:
        settled = math.inf
    apart = min(apart, float(mechanism.quantile(1.0 - 1e-12)))
    begin = max(settled, lowest)
    passage = _passage(setting, forced, begin) if begin < math.inf else None
    if passage is None:
        parts.append(strata(setting, forced, lowest, None))
    else:
        parts.append(passage)
        if begin > lowest:
            parts.append(strata(setting, forced, lowest, begin))
        if apart > begin:
            parts.append(strata(setting, forced, begin, apart, beyond_passage=True))
    null, alt = total([part.null for part in parts]), total([part.alt for part in parts])
    columns = zip(*((part.error, part.scatter, part.mean_error) for part in parts), strict=True)
    error, scatter, late = (math.fsum(column) for column in columns)
    method = "passage" if passage is not None and len(parts) == 2 else "strata"
    size = max(null.size, alt.size)
    null, alt = (np.maximum(np.pad(side, (0, size - side.size)), 0.0) for side in (null, alt))
    astray = abs(1.0 - float(null.sum() + alt.sum()))
    errors = (max(error, astray), max(scatter, astray), method, late + astray * size)
    return TerminationLaw(null, alt, *errors, proven_tails=False, proven=False)


def _starts(walk: Steps, turned: bool, forced: Mapping[int, int]) -> dict[float, float]:
    """List where the walk may be after the last forced entry, with probabilities."""
    ups = np.ones(1)
    for entry in range(1, max(forced, default=0) + 1):
        p_up = walk.p_up if entry not in forced else float(forced[entry] != turned)
        ups = np.asarray(convolution(ups, np.array([1.0 - p_up, p_up])))
    steps = ups.size - 1
    return {k * walk.up - (steps - k) * walk.down: float(share) for k, share in enumerate(ups) if share > 1e-18}


def _passage(setting: Setting, forced: Mapping[int, int], begin: float) -> Part | None:
    """Compute the runs with L > begin without the far bound. Return None if that would cost too much."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    h, (turned, walk, near, _) = abs(test.exponent(p_phi)), turned_up(test, p_phi)
    last, share = max(forced, default=0), float(mechanism.survival(begin))
    if h == 0.0 or last > _LATE:
        return None
    for tail in 10.0 ** -np.arange(14.0, 5.0, -2.0):
        top = near + float(mechanism.quantile(1.0 - tail))
        if not math.isinf(top) and passage_cost(walk, h, top) <= CELLS:
            break
    else:
        return None
    weight: Callable[[FloatArray], FloatArray] = lambda x: mechanism.survival(np.maximum(x - near, begin))  # noqa: E731
    running, off = passage_survival(walk, h, weight, _starts(walk, turned, forced), near + begin, top)
    time = np.concatenate([np.zeros(last), np.maximum(-np.diff(running), 0.0)])
    never = np.zeros(time.size)
    error = abs(share - float(time.sum())) + share * math.exp(-FAR) + off
    null, alt = (never, time) if turned else (time, never)
    return Part(null, alt, error, error, 2.0 * error * time.size)
