"""Means and error probabilities, averaged over L. Every number is an interval that is proven to hold it.

Several ways lead to it, and the result is what all of them leave:

- *renewal*: an exponential L is memoryless, so after the first passage every new record of the walk is a fresh start;
- *ladder*, *wald* and *fixed bounds*: what holds for all L of an interval, averaged over intervals (`both_bounds`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.both_bounds import averaged
from dpsmc_audit.exact.enclosure import Enclosure, meet
from dpsmc_audit.exact.fixed import BUDGET, walk_for
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.exact.renewal import renewal
from dpsmc_audit.exact.walk import turned_up, walds_mean
from dpsmc_audit.mechanisms import Exponential, Law, Mechanism, NoNoise
from dpsmc_audit.numerics.sums import dot
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = [
    "WorstErrors",
    "exact_error",
    "exact_mean",
    "exact_null_probability",
    "exact_sd",
    "worst_errors",
]


@dataclass(frozen=True)
class WorstErrors:
    """The largest error probability over each hypothesis, at ``p + delta`` and at ``p - delta``.

    P(H_alt) falls and P(H_null) rises with p_phi, path by path, so the worst case is where the hypotheses begin.

    Parameters
    ----------
    fp : Enclosure
        P(H_alt) at ``p + delta``.
    fn : Enclosure
        P(H_null) at ``p - delta``.
    """

    fp: Enclosure
    fn: Enclosure


@lru_cache(maxsize=512)
def exact_mean(setting: Setting) -> Enclosure:
    """Compute the mean number of samples.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    Enclosure
        The mean and its numerical error. If L is a `Law` without a finite mean, the result is inf.

    Raises
    ------
    ParameterError
        If p_phi is not a probability.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> mean = exact_mean(Setting(test, Exponential.private(test, 0.01), 0.84))
    >>> f"{mean.value:.3f}", mean.error < 1e-6, mean.method
    ('1322.747', True, 'renewal')
    """
    mechanism = setting.mechanism
    if isinstance(mechanism, Law) and math.isinf(mechanism.moments[0]):
        return Enclosure.around(math.inf, 0.0, "no mean")
    if setting.p_phi in (0.0, 1.0):
        return _mean_of_certain_walk(setting)
    if isinstance(mechanism, Exponential) and (records := renewal(setting)) is not None:
        found = records.mean()
        return found if found.error <= 1e-5 * found.value else meet([found, averaged(setting, rare=False)])
    found = averaged(setting, rare=False)
    return meet([found, _mean_followed(setting)]) if isinstance(mechanism, NoNoise) else found


def _mean_followed(setting: Setting) -> Enclosure:
    """Enclose the mean of Algorithm 1: the programme for as long as it is affordable, then Wald's identities."""
    turned = turned_up(setting.test, setting.p_phi)
    samples = int(2.0 * BUDGET / (turned.span / (turned.walk.up + turned.walk.down) + 100.0)) + 1
    begun = walk_for(turned.walk, turned.near, turned.far, samples, {})
    law, at = begun.law, begun.positions
    low, high = (float(dot(begun.cells, end)) for end in walds_mean(turned, turned.near - at, turned.far + at))
    before, slack = law.mean + law.alive * law.null.size, 1e-15 * law.null.size
    unseen = law.lost * (law.null.size + law.longest)
    return Enclosure((before + low) * (1.0 - slack), (before + high) * (1.0 + slack) + unseen, "fixed bounds, wald")


def _mean_of_certain_walk(setting: Setting) -> Enclosure:
    """Sum P(tau > k), the survival function of L along the walk. The walk is a straight line."""
    test, mechanism = setting.test, setting.mechanism
    step, bound = (test.s_plus, test.b_up) if setting.p_phi == 1.0 else (test.s_minus, test.b_low)
    top = float(mechanism.quantile(1.0 - 1e-15))
    if not (bound + top) / step <= 10_000_000:
        return averaged(setting, rare=False)
    running = mechanism.survival(
        np.maximum(np.arange(math.ceil((bound + top) / step) + 1) * step - bound, test.no_room)
    )
    running[0] = 1.0
    return Enclosure.around(float(running.sum()), 1e-12 * running.size + 1e-15 * top / step, "sum")


@lru_cache(maxsize=512)
def _rare(setting: Setting, rough: bool = False) -> Enclosure:
    """Compute P(leave against the drift). If all samples are certain, only a coin can lead there."""
    test, mechanism = setting.test, setting.mechanism
    if setting.p_phi in (0.0, 1.0):
        coin = 0.5 * (1.0 - float(mechanism.survival(test.no_room)))
        return Enclosure.around(coin, 1e-12 * coin, "certain")
    return averaged(setting, rare=True, rough=rough)


def exact_null_probability(setting: Setting) -> Enclosure:
    """Compute P(return H_null).

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    Enclosure
        The probability and its numerical error.

    Raises
    ------
    ParameterError
        If p_phi is not a probability.
    """
    rare = _rare(setting)
    return rare if setting.test.exponent(setting.p_phi) < 0.0 else rare.complement()


def exact_error(setting: Setting, *, rough: bool = False) -> Enclosure:
    """Compute P(wrong decision). The truth is H_null iff p_phi > p, also inside the indifference region.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.
    rough : bool
        Whether a wider interval is enough, which takes milliseconds.

    Returns
    -------
    Enclosure
        The probability and its numerical error.

    Raises
    ------
    ParameterError
        If p_phi is not a probability.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> f"{exact_error(Setting(Sprt(p=0.9, delta=0.09, alpha=0.1186), NoNoise(), 0.81)).value:.4f}"
    '0.1267'
    """
    test, p_phi = setting.test, setting.p_phi
    rare = _rare(setting, rough)
    drifts_to_null = test.exponent(p_phi) >= 0.0
    if drifts_to_null == test.null_is_true(p_phi):
        return rare
    return rare.complement()


def worst_errors(test: Sprt, mechanism: Mechanism, *, rough: bool = False) -> WorstErrors:
    """Compute the largest error probability over each hypothesis.

    Wald's bounds promise ``alpha / (1 - alpha)``, not alpha: with coarse steps each error may exceed alpha.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of the noise L.
    rough : bool
        Whether wider intervals are enough, which take milliseconds.

    Returns
    -------
    WorstErrors
        `fp` is P(H_alt) at ``p + delta``, `fn` is P(H_null) at ``p - delta``.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> f"{worst_errors(Sprt(p=0.9, delta=0.09, alpha=0.1186), NoNoise()).fn.value:.4f}"
    '0.1267'
    """
    return WorstErrors(
        exact_error(Setting(test, mechanism, test.p + test.delta), rough=rough),
        exact_error(Setting(test, mechanism, test.p - test.delta), rough=rough),
    )


def exact_sd(setting: Setting) -> Enclosure:
    """Compute the standard deviation of tau.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    Enclosure
        The standard deviation and its numerical error. It is inf if L is a `Law` without a finite variance. It is
        nan if the second moment for `NoNoise` or `Exponential` is not affordable.

    Raises
    ------
    ParameterError
        If p_phi is not a probability, or if the exact law of any other mechanism is not affordable.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> round(exact_sd(Setting(test, Exponential.private(test, 0.01), 0.84)).value, 1)
    917.8
    """
    mechanism = setting.mechanism
    if isinstance(mechanism, Law) and mechanism.atoms is None and math.isinf(mechanism.moments[1]):
        return Enclosure.around(math.inf, 0.0, "no variance")
    if isinstance(mechanism, Exponential) and (records := renewal(setting)) is not None:
        return records.sd()
    try:
        law = exact_law(setting)
    except ParameterError:
        return Enclosure.estimate(math.nan, math.nan, "unknown")
    tau, mean = np.arange(1.0, law.null.size + 1.0), exact_mean(setting).value
    spread = math.sqrt(max(float(dot((tau - mean) ** 2, law.stopped)), 0.0))
    return Enclosure.estimate(spread, law.error * float(tau[-1]) ** 2 / max(spread, 1e-9), law.method)
