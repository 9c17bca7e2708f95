"""The exact law of (tau, o) averaged over L, with any entries forced. The marginal observer sees this law.

- *renewal* for the memoryless L of Algorithm 2;
- *passage* for all L of a range at once, without the far bound. That is met with a probability of at most
  ``E[exp(-h (b + L))]``, so the range begins where this is small;
- *strata* for the L below, and for all L where the walk has too little drift.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.exact.fixed import TerminationLaw, cells_needed, exit_law
from dpsmc_audit.exact.passage import passage, passage_cost
from dpsmc_audit.exact.renewal import renewal
from dpsmc_audit.exact.strata import CELLS, Part, Plan, plan_of, strata
from dpsmc_audit.exact.walk import Steps, Turned, turned_up
from dpsmc_audit.exact.weight import Range
from dpsmc_audit.mechanisms import Atoms, Exponential, Mechanism
from dpsmc_audit.numerics.sums import total
from dpsmc_audit.runs.memory import require_room
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["LONGEST", "exact_law", "short_enough"]

FloatArray = NDArray[np.float64]

_VAGUE = 0.02
"""A law with a larger error in some P(tau > k) is refused."""

LONGEST = 1 << 23
"""The most values of tau that a law may have: arrays of this size are transformed."""

_GOOD = 3e-5
"""The renewal is not compared with other ways if its error is at most this."""


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
    if renewed.error <= _GOOD:
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
    for tail in _TAILS:
        reach = bound + float(mechanism.quantile(1.0 - tail)) + len(forced) * test.step_sum
        last = max(forced, default=0) + math.ceil(max(min(reach / step, 1e300), 0.0)) + 2
        if last <= LONGEST:
            break
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
    return TerminationLaw(null, alt, error, 2.0 * error, "certain")


# --- an L that takes few values -------------------------------------------------------------------------------------


def _listed_law(test: Sprt, atoms: Atoms, p_phi: float, forced: Mapping[int, int]) -> TerminationLaw:
    """Average over the values of L, one by one. Algorithm 1 has a single one."""
    walk, inside = Steps.of(test, p_phi), [(x, share) for x, share in atoms if x > test.no_room]
    cells = math.fsum(cells_needed(walk, test.b_up + x, test.b_low + x) for x, _ in inside)
    require(cells <= CELLS, _TOO_LONG.format(p_phi))
    coin = np.array([0.5 * math.fsum(share for x, share in atoms if x <= test.no_room)])
    null, alt, error = [coin], [coin], 1e-12 * (len(atoms) > 1)
    for excess, share in inside:
        law = exit_law(test, p_phi, excess, forced)
        null.append(share * law.null)
        alt.append(share * law.alt)
        error += share * law.probability_error
    return TerminationLaw(*_as_long(total(null), total(alt)), error, 2.0 * error, "fixed bounds")


def _as_long(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Continue the shorter array by 0."""
    size = max(one.size, other.size)
    return np.pad(one, (0, size - one.size)), np.pad(other, (0, size - other.size))


# --- any law of L ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """Runs with L up to `at` are averaged over strata, those above by one passage.

    Parameters
    ----------
    at : float
        The L.
    missed : float
        A bound on the probability of the runs above that meet the far bound.
    plan : Plan, optional
        The laws for the runs below. None if there are none.
    """

    at: float
    missed: float
    plan: Plan | None

    @property
    def error(self) -> float:
        """About the error of a P(tau > k)."""
        return self.missed + (self.plan.error if self.plan is not None else 0.0)

    @property
    def listed(self) -> bool:
        """Whether the laws of the runs below are known for every L."""
        return self.plan is None or self.plan.listed


def _mixed_law(setting: Setting, forced: Mapping[int, int]) -> TerminationLaw:
    """Add up the coin, the strata of small L and the passage of the others."""
    test, mechanism = setting.test, setting.mechanism
    turned, last = turned_up(test, setting.p_phi), max(forced, default=0)
    bits = {entry: 1 - bit if turned.over else bit for entry, bit in forced.items()}
    lowest = max(float(mechanism.quantile(0.0)), test.no_room)
    coin = np.array([0.5 * (1.0 - float(mechanism.survival(test.no_room)))])
    high = _affordable_top(turned, mechanism, last)
    split = _best_split(turned, mechanism, bits, (lowest, high))
    require(split is not None, _TOO_LONG.format(setting.p_phi))
    assert split is not None
    parts, method = [Part(coin, coin, 0.0, 0.0, True)], "strata"
    if split.plan is not None:
        parts.append(strata(turned, split.plan, bits))
    if split.at < high:
        short_enough(setting.p_phi, (turned.near + high) / turned.walk.drift)
        run = passage(turned, Range(mechanism, split.at, high), bits)
        missed = split.missed
        parts.append(Part(run.time, np.zeros(1), run.error + missed, run.scatter + 2.0 * missed, run.proven))
        method = "passage" if split.plan is None else "passage, strata"
    rest = float(mechanism.survival(high)) if high > lowest else 0.0
    near, far = total([part.near for part in parts]), total([part.far for part in parts])
    near, far = _as_long(near, far)
    error, scatter = (math.fsum(getattr(part, name) for part in parts) + rest for name in ("error", "scatter"))
    null, alt = (far, near) if turned.over else (near, far)
    return TerminationLaw(null, alt, error, scatter, method, proven=all(part.proven for part in parts))


_TOO_LONG = "the law at p_phi={:g} would visit too many cells: without drift only means and errors are affordable"

_TAILS = 10.0 ** -np.arange(13.0, 1.0, -1.0)
"""The probability of the L that are left out."""


def _affordable_top(turned: Turned, mechanism: Mechanism, last: int) -> float:
    """Find the largest L for which the passage is affordable. Without it the strata leave out a share of 1e-5."""
    for tail in _TAILS:
        high = float(mechanism.quantile(1.0 - tail))
        if math.isfinite(high) and passage_cost(turned, high, last) <= CELLS:
            return high
    return float(mechanism.quantile(1.0 - 1e-5))


def _best_split(
    turned: Turned, mechanism: Mechanism, forced: Mapping[int, int], ends: tuple[float, float]
) -> _Split | None:
    """Find the L at which to split the range: laws that are known for every L if they do, else the smallest error."""
    found: list[_Split] = []
    low, high = ends
    downs, places = sum(1 - bit for bit in forced.values()), [high]
    if passage_cost(turned, high, max(forced, default=0)) <= CELLS:
        deep = low + downs * turned.walk.down + _FOLDS / turned.h
        places = sorted({low, *deep[deep < high].tolist(), high})
    for at in places:
        below, missed = Range(mechanism, low, at), _missed(turned, Range(mechanism, at, high), downs)
        if found and found[-1].error <= max(missed, 1e-10):  # no more is gained
            break
        plan = plan_of(turned, below) if below.share > 0.0 else None
        if plan is not None or below.share == 0.0:
            found.append(_Split(at, missed, plan))
    known = min((split for split in found if split.listed), key=lambda split: split.error, default=None)
    if known is not None and known.error <= _CLEAR:
        return known
    return min(found, key=lambda split: split.error, default=None)


_FOLDS = np.array([0.0, 1.0, 2.0, 4.0, 6.0, 8.0, 11.0, 14.0, 18.0, 23.0])
"""Where a range is split: this many times 1/h above where the far bound can be met at once."""

_CLEAR = 1e-4
"""A law that is known to this for every L is not replaced by a bracket of strata."""


def _missed(turned: Turned, runs: Range, downs: int) -> float:
    """Bound the probability of meeting the far bound: ``E[exp(-h (far + L - downs s_minus))]``, and no more than 1.

    The free samples make a walk of their own, and each forced step down moves it by one step.
    """
    if not runs.high > runs.low:
        return 0.0
    edges = np.linspace(runs.low, min(runs.high, runs.low + 60.0 / turned.h), 20_001)
    masses = -np.diff(runs.survival(edges))
    deep = turned.far + edges[:-1] - downs * turned.walk.down
    beyond = float(runs.survival(edges[-1:])[0]) * math.exp(-60.0)
    return float(np.sum(masses * np.exp(-turned.h * np.maximum(deep, 0.0)))) * (1.0 + 1e-9) + beyond


def short_enough(p_phi: float, last: float) -> None:
    """Refuse a law with too many values of tau, as a tiny epsilon makes it.

    The first limit depends on the parameters alone, not on the machine. The second one is the memory available.

    Parameters
    ----------
    p_phi : float
        The satisfaction probability, for the message.
    last : float
        The number of values of tau.

    Raises
    ------
    ParameterError
        If there are more than `LONGEST` values.
    NoRoomError
        If memory is short.
    """
    message = "the law at p_phi={:g} reaches {:.0e} samples, more than {:.0e}: means, errors and runs are affordable"
    require(last <= LONGEST, message.format(p_phi, last, LONGEST))
    require_room(200.0 * last, f"the law of {last:.0e} values of tau")
