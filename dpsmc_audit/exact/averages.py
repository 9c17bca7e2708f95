"""Exact characteristics of a mechanism: mean samples and error probabilities, averaged over L.

Each number carries its numerical error. Several ways lead to it:

- *renewal*: an exponential L is memoryless, so after the first passage every new record of the walk is a fresh start;
  exact where the far bound plays no part, and that part is bounded;
- *quadrature* over L of the exact law for fixed bounds; limited by the steps that these laws make in L;
- *Wald's identities* with measured overshoots, in place of that law where bounds are far apart and drift is missing;
- *brackets* of the law for fixed bounds where steps are coarse and it is a staircase in L.

Brackets, renewals and fixed bounds state a bound of their error; quadratures and overshoots state an estimate of
it, which the tests compare with the other ways.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.brackets import against, is_coarse, mean_by_bracket, rare_by_bracket, roughness
from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import Steps, cells_needed, exit_law
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.exact.overshoot import BUDGET, overshoots
from dpsmc_audit.exact.quadrature import (
    average_over,
    fixed,
    mean_by_quadrature,
    nodes_of,
    rare_by_overshoots,
    rare_by_quadrature,
    refine,
)
from dpsmc_audit.exact.renewal import renewal
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
    "rough_mean",
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
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    if not isinstance(mechanism, (NoNoise, Exponential)):
        return _mean_of_any(setting)
    if p_phi in (0.0, 1.0):
        return _mean_of_certain_walk(setting)
    if isinstance(mechanism, NoNoise):
        return _mean_without_noise(test, p_phi)
    candidates = []
    if (records := renewal(setting)) is not None:
        candidates.append(records.mean())
        if candidates[0].error <= 1e-5 * candidates[0].value:
            return candidates[0]
    coarse = is_coarse(test, float(mechanism.quantile(0.5)))
    candidates.append((mean_by_bracket if coarse else mean_by_quadrature)(setting))
    return min(candidates, key=lambda exact: exact.error)


def _mean_of_any(setting: Setting) -> Enclosure:
    """Take the mean of the exact law, or a bracket if the law is not affordable. Without a mean of L, tau has none."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    if isinstance(mechanism, Law) and math.isinf(mechanism.moments[0]):
        return Enclosure.around(math.inf, 0.0, "no mean")
    try:
        law = exact_law(setting)
    except ParameterError:
        return mean_by_bracket(setting)
    error, drift = law.mean_error, abs(test.drift(p_phi))
    if isinstance(mechanism, Law) and mechanism.atoms is None and drift > 0.0:
        # runs beyond the last k that was computed belong to L from about here on
        error += 2.0 * mechanism.beyond(0.5 * law.null.size * drift) / drift
    return Enclosure.around(law.mean, error, law.method, proven=law.proven)


def rough_mean(setting: Setting) -> Enclosure:
    """Compute the mean number of samples to 1 % where `exact_mean` would take long: near p with two-sided noise.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    Enclosure
        The mean and its numerical error. If a bracket does not reach 1 %, the result is that of `exact_mean`.

    Raises
    ------
    ParameterError
        If p_phi is not a probability.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Laplace
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> f"{rough_mean(Setting(test, Laplace(center=29.572265625, scale=test.step_sum / 0.01), 0.74)).value:.3g}"
    '3.41e+04'
    """
    mechanism, p_phi = setting.mechanism, setting.p_phi
    heavy = isinstance(mechanism, Law) and (mechanism.atoms is not None or math.isinf(mechanism.moments[0]))
    if not (heavy or isinstance(mechanism, (NoNoise, Exponential)) or p_phi in (0.0, 1.0)):
        between = mean_by_bracket(setting)
        if between.error <= 0.01 * between.value:
            return between
    return exact_mean(setting)


def _mean_without_noise(test: Sprt, p_phi: float) -> Enclosure:
    b_up, b_low = test.b_up, test.b_low
    if cells_needed(Steps.of(test, p_phi), b_up, b_low) <= BUDGET:
        law = exit_law(test, p_phi)
        return Enclosure.around(law.mean, law.mean_error, "fixed bounds")
    mean, other = (overshoots(test, p_phi, scale).mean(b_up, b_low) for scale in (1.0, 0.6))
    return Enclosure.estimate(mean, 3.0 * abs(mean - other) + 1e-12 * mean, "overshoots")


def _mean_of_certain_walk(setting: Setting) -> Enclosure:
    """Sum P(tau > k), the survival function of L along the walk. The walk is a straight line."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    step, bound = (test.s_plus, test.b_up) if p_phi == 1.0 else (test.s_minus, test.b_low)
    last = math.ceil((bound + float(mechanism.quantile(1.0 - 1e-15))) / step) + 1
    if last > 10_000_000:  # half a step is negligible here
        mean = (bound + average_over(mechanism, float)) / step + 0.5
        return Enclosure.estimate(mean, 0.5 + 1e-9 * mean, "straight line")
    running = mechanism.survival(np.arange(last) * step - bound)
    return Enclosure.around(float(running.sum()), 1e-12 * last, "sum")


@lru_cache(maxsize=512)
def _rare(setting: Setting) -> Enclosure:
    """Compute P(leave against the drift)."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    h = abs(test.exponent(p_phi))
    if math.isinf(h):
        return _rare_of_certain_walk(setting)
    if mechanism.atoms is not None:
        each = [(share, _rare_of_atom(test, p_phi, x)) for x, share in mechanism.atoms]
        error = math.fsum(share * exact.error for share, exact in each) + 1e-12 * (len(each) > 1)
        value, proven = math.fsum(share * exact.value for share, exact in each), all(exact.proven for _, exact in each)
        return Enclosure.around(value, error, each[0][1].method, proven=proven)
    if not isinstance(mechanism, Exponential):
        return rare_by_bracket(setting)
    if is_coarse(test, nodes_of(mechanism, 1, h, 0.0)[0][0]) or _is_rough(test, p_phi):
        return rare_by_bracket(setting)
    candidates = []
    if h * min(test.b_up, test.b_low) > 0.05:
        candidates.append(rare_by_overshoots(setting))
    if not candidates or candidates[0].error > 1e-2 * candidates[0].value:
        candidates.append(rare_by_quadrature(setting))
    return min(candidates, key=lambda exact: exact.error)


def _is_rough(test: Sprt, p_phi: float) -> bool:
    """Tell whether both steps share a lattice (p near 1/4, 1/3, 1/2, 2/3 or 3/4), on which overshoots oscillate."""
    if test.s_plus == test.s_minus:
        return True
    ratio = math.log(test.s_minus / test.s_plus)
    shared = min(abs(ratio - math.log(x)) for x in (1.0, 2.0, 3.0, 0.5, 1.0 / 3.0)) < 0.05
    return shared and test.exponent(p_phi) != 0.0 and roughness(test, p_phi) > 0.01


def _rare_of_certain_walk(setting: Setting) -> Enclosure:
    """Compute P(leave against the drift) if all samples are certain.

    No sample leads the wrong way. Only a coin can, or the first sample if one bound leaves almost no room.
    """
    if float(setting.mechanism.quantile(0.0)) >= 0.0:
        return Enclosure.around(0.0, 0.0, "certain")
    law = exact_law(setting)
    return Enclosure.around(float((law.alt if setting.p_phi == 1.0 else law.null).sum()), law.error, "certain")


def _rare_of_atom(test: Sprt, p_phi: float, excess: float) -> Enclosure:
    """Compute P(leave against the drift) for one value of L. Algorithm 1 has only one."""
    if excess <= test.no_room:
        return Enclosure.around(0.5, 0.0, "coin")
    walk, b_up, b_low = Steps.of(test, p_phi), test.b_up + excess, test.b_low + excess
    if cells_needed(walk, b_up, b_low) <= BUDGET:
        value = against(test, p_phi, excess, excess)
        return Enclosure.around(
            value, 1e-9 * value + 1e-12 * math.exp(-abs(test.exponent(p_phi)) * min(b_up, b_low)), "fixed bounds"
        )
    value, other = (overshoots(test, p_phi, scale).rare(b_up, b_low) for scale in (1.0, 0.6))
    return Enclosure.estimate(value, 3.0 * abs(value - other) + 1e-9 * value, "overshoots")


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
        If p_phi is not a probability. Also if p_phi is 0 or 1, L can be negative and the law of tau is too long.
    """
    rare = _rare(setting)
    return rare if setting.test.exponent(setting.p_phi) < 0.0 else rare.complement()


def exact_error(setting: Setting) -> Enclosure:
    """Compute P(wrong decision). The truth is H_null iff p_phi > p, also inside the indifference region.

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
        If p_phi is not a probability. Also if p_phi is 0 or 1, L can be negative and the law of tau is too long.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> f"{exact_error(Setting(Sprt(p=0.9, delta=0.09, alpha=0.1186), NoNoise(), 0.81)).value:.4f}"
    '0.1267'
    """
    test, p_phi = setting.test, setting.p_phi
    rare = _rare(setting)
    drifts_to_null = test.exponent(p_phi) >= 0.0
    if drifts_to_null == test.null_is_true(p_phi):
        return rare
    return rare.complement()


def worst_errors(test: Sprt, mechanism: Mechanism) -> WorstErrors:
    """Compute the largest error probability over each hypothesis.

    Wald's bounds promise ``alpha / (1 - alpha)``, not alpha: with coarse steps each error may exceed alpha.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of the noise L.

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
        exact_error(Setting(test, mechanism, test.p + test.delta)),
        exact_error(Setting(test, mechanism, test.p - test.delta)),
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
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    if not isinstance(mechanism, (NoNoise, Exponential)):
        if isinstance(mechanism, Law) and math.isinf(mechanism.moments[1]):
            return Enclosure.around(math.inf, 0.0, "no variance")
        law = exact_law(setting)
        tau = np.arange(1.0, law.null.size + 1.0)
        spread = math.sqrt(max(float(dot(tau**2, law.stopped)) - law.mean**2, 0.0))
        return Enclosure.estimate(spread, law.scatter * float(tau[-1]) ** 2 / max(spread, 1e-9), law.method)
    if isinstance(mechanism, NoNoise):
        mean, second = fixed(test, p_phi, 0.0)
        value = math.sqrt(max(second - mean**2, 0.0))
        return Enclosure.estimate(value, 1e-9 * second / max(value, 1e-9), "fixed bounds")
    records = renewal(setting)
    if records is not None and records.sd().error <= 1e-3 * records.sd().value:
        return records.sd()

    def average(count: int) -> float:
        nodes = nodes_of(mechanism, count, 0.0, 1e-7)
        mean, second = (math.fsum(w * fixed(test, p_phi, x)[j] for x, w in nodes) for j in (0, 1))
        return math.sqrt(max(second - mean**2, 0.0))

    return refine(average, 1e-3, most=64)
