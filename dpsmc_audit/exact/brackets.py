"""Averages over L between rigorous bounds, for coarse steps: the law for fixed bounds is then a staircase in L."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import lru_cache

from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import Steps, cells_needed, walk_until_exit
from dpsmc_audit.exact.overshoot import BUDGET, overshoots
from dpsmc_audit.exact.quadrature import fixed
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.sums import tilted
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["COARSE", "against", "is_coarse", "mean_by_bracket", "rare_by_bracket", "roughness"]

_EVALUATIONS = 300
_TAIL = 1e-10
COARSE = 12.0
"""Smooth approximations need bounds, or an L, at least this many steps wide."""

_ROUGH = 2e-3
SMOOTH = 10.0
"""A bound fewer steps away than this is always treated exactly."""


def is_coarse(test: Sprt, scale: float) -> bool:
    """Tell whether both the bounds and the typical L are only a few steps wide.

    Parameters
    ----------
    test : Sprt
        The test.
    scale : float
        The typical L.

    Returns
    -------
    bool
        Whether both are narrower than `COARSE` times ``s_plus + s_minus``.
    """
    return (test.b_up + test.b_low) / test.step_sum < COARSE and scale / test.step_sum < COARSE


def _bracket(
    test: Sprt,
    mechanism: Mechanism,
    inside: Callable[[float, float], tuple[float, float]],
    top: float,
    beyond: tuple[float, float],
    coin: float,
) -> Enclosure:
    """Bracket E[f(L)] from bounds of f on intervals of L. The interval with the largest share of the error is halved.

    `inside` bounds f on an interval of L, `beyond` bounds it for L above `top`. f equals `coin` where a coin decides.
    If shares of the error are equal up to rounding, the interval with the smallest L is halved.
    """
    lowest = float(mechanism.quantile(0.0))
    tossed = 0.0 if lowest > test.no_room else 1.0 - float(mechanism.survival(test.no_room))
    lowest = max(lowest, test.least_room)

    def item(left: float, right: float) -> tuple[float, float, float, float, float, float]:
        above = float(mechanism.survival(left)) if left > lowest else 1.0 - tossed
        weight = above - float(mechanism.survival(right))
        low, high = inside(left, right)
        return _few_digits(-weight * (high - low)), left, right, weight, low, high

    queue = [item(lowest, top)]
    for _ in range(_EVALUATIONS):
        loss, left, right = queue[0][:3]
        middle = 0.5 * (left + right)
        if loss == 0.0 or not left < middle < right:
            break
        heapq.heapreplace(queue, item(left, middle))
        heapq.heappush(queue, item(middle, right))
    tail = float(mechanism.survival(top))
    low = math.fsum(weight * least for _, _, _, weight, least, _ in queue) + tail * beyond[0] + coin * tossed
    high = math.fsum(weight * most for _, _, _, weight, _, most in queue) + tail * beyond[1] + coin * tossed
    return Enclosure.estimate(0.5 * (low + high), 0.5 * (high - low) + 1e-10 * abs(high), "bracket")


def _few_digits(value: float) -> float:
    """Round to 24 binary digits, so that numbers that differ by rounding become equal."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 2.0**24), exponent - 24)


def mean_by_bracket(setting: Setting) -> Enclosure:
    """Bracket the mean number of samples.

    On each path tau does not fall when L grows, so the means at the ends of an interval bracket those inside.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    Enclosure
        The middle of the bracket. The error is half its width, and a little for rounding.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    top = float(mechanism.quantile(1.0 - _TAIL))
    last = overshoots(test, p_phi).mean(test.b_up + 3.0 * top, test.b_low + 3.0 * top)

    def at(excess: float) -> float:
        return fixed(test, p_phi, excess, 0.05 * BUDGET)[0]

    return _bracket(test, mechanism, lambda left, right: (at(left), at(right)), top, (at(top), last), 1.0)


def rare_by_bracket(setting: Setting) -> Enclosure:
    """Bracket the probability to leave against the drift.

    It grows if that bound comes closer or the other bound moves away, and it is never above ``exp(-h b)``.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    Enclosure
        The middle of the bracket. The error is half its width, and more where Wald's identities replace the law.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    h = abs(test.exponent(p_phi))
    bound = test.b_low if test.exponent(p_phi) >= 0.0 else test.b_up
    # the same top for all laws of a kind, so that they share cached results
    top = 30.0 / h if h > 0.0 else float(mechanism.quantile(1.0 - _TAIL))

    def inside(left: float, right: float) -> tuple[float, float]:
        if h > 0.0 and _dear(test, p_phi, left, right):  # wide intervals, about to be halved anyway
            return 0.0, math.exp(-h * max(bound + left, 0.0))
        return against(test, p_phi, left, right), against(test, p_phi, right, left)

    between = _bracket(test, mechanism, inside, top, (0.0, math.exp(-h * (bound + top))), 0.5)
    if not _leave_to_wald(test, p_phi, test.b_up + top, test.b_low + top):
        return between
    tossed = 1.0 - float(mechanism.survival(test.no_room))
    rough = 2.0 * roughness(test, p_phi) * (between.value - 0.5 * tossed)
    return Enclosure.estimate(between.value, between.error + rough, between.method)


@lru_cache(maxsize=8192)
def against(test: Sprt, p_phi: float, along: float, against: float) -> float:
    """Compute P(leave against the drift) if the two bounds are enlarged by different amounts.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    along : float
        The excess of the bound that the walk drifts to.
    against : float
        The excess of the other bound.

    Returns
    -------
    float
        The probability. If the two amounts differ and the law is expensive, Wald's identities approximate it.
    """
    h = test.exponent(p_phi)
    b_up, b_low = (test.b_up + along, test.b_low + against) if h >= 0.0 else (test.b_up + against, test.b_low + along)
    if along != against and _leave_to_wald(test, p_phi, b_up, b_low):
        return overshoots(test, p_phi).rare(b_up, b_low)
    return exactly_against(test, p_phi, b_up, b_low)


def _dear(test: Sprt, p_phi: float, left: float, right: float) -> bool:
    """Tell whether the law with one bound at `left` and the other at `right` would visit millions of cells."""
    walk = Steps.of(test, p_phi)
    for up, low in ((test.b_up + left, test.b_low + right), (test.b_up + right, test.b_low + left)):
        if not _leave_to_wald(test, p_phi, up, low) and cells_needed(walk, up, low) > 1e7:
            return True
    return False


def _leave_to_wald(test: Sprt, p_phi: float, b_up: float, b_low: float) -> bool:
    """Tell whether Wald's identities replace the law for these bounds. Where they are rough, the law may cost more."""
    if min(b_up, b_low) <= SMOOTH * test.step_sum or test.s_plus == test.s_minus:
        return False
    dear = 2e4 if roughness(test, p_phi) <= _ROUGH else 1.5e6
    return cells_needed(Steps.of(test, p_phi), b_up, b_low) > dear


@lru_cache(maxsize=64)
def roughness(test: Sprt, p_phi: float) -> float:
    """Measure the relative error of Wald's identities at a few bounds. It is large if both steps share a lattice.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.

    Returns
    -------
    float
        The largest relative error of P(leave against the drift); inf if that probability is at most 1e-300 at one
        of these bounds.
    """
    off, smooth = 0.0, overshoots(test, p_phi)
    for steps in (10.13, 11.37, 13.71, 16.29, 19.83, 24.57):
        width = steps * test.step_sum
        exact = exactly_against(test, p_phi, width, width)
        off = max(off, abs(smooth.rare(width, width) / exact - 1.0)) if exact > 1e-300 else math.inf
    return off


def exactly_against(test: Sprt, p_phi: float, b_up: float, b_low: float) -> float:
    """Compute P(leave against the drift) between two bounds: gambler's ruin at p = 1/2, else the conjugate walk.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    b_up, b_low : float
        Distances of the upper and the lower bound from 0.

    Returns
    -------
    float
        The probability.
    """
    h, walk = test.exponent(p_phi), Steps.of(test, p_phi)
    if walk.up == walk.down:
        ahead, behind = (_steps_to(b, walk.up) for b in ((b_up, b_low) if h >= 0.0 else (b_low, b_up)))
        step = abs(h) * walk.up
        if step * (ahead + behind) < 1e-9:
            return ahead / (ahead + behind)
        return math.exp(-behind * step) * math.expm1(-ahead * step) / math.expm1(-(ahead + behind) * step)
    law = walk_until_exit(walk.conjugate(h), b_up, b_low, alive=1e-10)
    if h < 0.0:
        return float(tilted(law.null, h, b_up + law.over_null))
    return float(tilted(law.alt, -h, b_low + law.over_alt))


def _steps_to(bound: float, step: float) -> int:
    """Count the steps in a row that reach the bound."""
    count = math.ceil(bound / step)
    return count if count * step >= bound else count + 1
