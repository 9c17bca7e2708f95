"""Averages over L between rigorous bounds, for steps so coarse that the law for fixed bounds is a staircase in L."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from dpsmc_audit.exact.fixed import Exact, Steps, cells_needed, walk_until_exit
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
"""Bounds, or an L, fewer steps wide than this are no place for smooth approximations."""

_ROUGH = 2e-3
SMOOTH = 10.0
"""Fewer steps away than this a bound is always looked at exactly."""


def is_coarse(test: Sprt, scale: float) -> bool:
    """Are both the bounds and the typical L only a few steps wide?"""
    return (test.b_up + test.b_low) / test.step_sum < COARSE and scale / test.step_sum < COARSE


def _bracket(
    test: Sprt,
    mechanism: Mechanism,
    inside: Callable[[float, float], tuple[float, float]],
    top: float,
    beyond: tuple[float, float],
    coin: float,
) -> Exact:
    """E[f(L)] from bounds of f on intervals of L, the interval that matters most halved again and again.

    `inside` bounds f on an interval of L, `beyond` where L exceeds `top`; f is `coin` where a coin decides. Of
    intervals that matter the same but for rounding the one with the smallest L is halved.
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
    return Exact(0.5 * (low + high), 0.5 * (high - low) + 1e-10 * abs(high), "bracket")


def _few_digits(value: float) -> float:
    """To 24 binary digits: numbers that differ by rounding become equal."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 2.0**24), exponent - 24)


def mean_by_bracket(setting: Setting) -> Exact:
    """On each path tau does not fall when L grows: the means at the ends of an interval bracket those inside."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    top = float(mechanism.quantile(1.0 - _TAIL))
    last = overshoots(test, p_phi).mean(test.b_up + 3.0 * top, test.b_low + 3.0 * top)

    def at(excess: float) -> float:
        return fixed(test, p_phi, excess, 0.05 * BUDGET)[0]

    return _bracket(test, mechanism, lambda left, right: (at(left), at(right)), top, (at(top), last), 1.0)


def rare_by_bracket(setting: Setting) -> Exact:
    """Leaving against the drift is likelier the closer that bound and the further the other; never above exp(-h b)."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    h = abs(test.exponent(p_phi))
    bound = test.b_low if test.exponent(p_phi) >= 0.0 else test.b_up
    # the same for all laws of a kind, so that what was computed for one serves the others
    top = 30.0 / h if h > 0.0 else float(mechanism.quantile(1.0 - _TAIL))

    def inside(left: float, right: float) -> tuple[float, float]:
        if h > 0.0 and _dear(test, p_phi, left, right):  # wide intervals, about to be halved anyway
            return 0.0, math.exp(-h * max(bound + left, 0.0))
        return against(test, p_phi, left, right), against(test, p_phi, right, left)

    between = _bracket(test, mechanism, inside, top, (0.0, math.exp(-h * (bound + top))), 0.5)
    if not _leave_to_wald(test, p_phi, test.b_up + top, test.b_low + top):
        return between
    tossed = 1.0 - float(mechanism.survival(test.no_room))
    return replace(between, error=between.error + 2.0 * roughness(test, p_phi) * (between.value - 0.5 * tossed))


@lru_cache(maxsize=8192)
def against(test: Sprt, p_phi: float, along: float, against: float) -> float:
    """P(leave against the drift) with the bound along the drift enlarged by one excess, the other by another."""
    h = test.exponent(p_phi)
    b_up, b_low = (test.b_up + along, test.b_low + against) if h >= 0.0 else (test.b_up + against, test.b_low + along)
    if along != against and _leave_to_wald(test, p_phi, b_up, b_low):
        return overshoots(test, p_phi).rare(b_up, b_low)
    return exactly_against(test, p_phi, b_up, b_low)


def _dear(test: Sprt, p_phi: float, left: float, right: float) -> bool:
    """Would the law with one bound at `left` and the other at `right` visit millions of cells?"""
    walk = Steps.of(test, p_phi)
    for up, low in ((test.b_up + left, test.b_low + right), (test.b_up + right, test.b_low + left)):
        if not _leave_to_wald(test, p_phi, up, low) and cells_needed(walk, up, low) > 1e7:
            return True
    return False


def _leave_to_wald(test: Sprt, p_phi: float, b_up: float, b_low: float) -> bool:
    """Do Wald's identities stand in for the law of these bounds? Where they are rough the law may cost more."""
    if min(b_up, b_low) <= SMOOTH * test.step_sum or test.s_plus == test.s_minus:
        return False
    dear = 2e4 if roughness(test, p_phi) <= _ROUGH else 1.5e6
    return cells_needed(Steps.of(test, p_phi), b_up, b_low) > dear


@lru_cache(maxsize=64)
def roughness(test: Sprt, p_phi: float) -> float:
    """By how much, relatively, Wald's identities are off at a few bounds; much where steps share a lattice.

    Infinite where no bound is wide enough for them.
    """
    off, smooth = 0.0, overshoots(test, p_phi)
    for steps in (10.13, 11.37, 13.71, 16.29, 19.83, 24.57):
        width = steps * test.step_sum
        exact = exactly_against(test, p_phi, width, width)
        off = max(off, abs(smooth.rare(width, width) / exact - 1.0)) if exact > 1e-300 else math.inf
    return off


def exactly_against(test: Sprt, p_phi: float, b_up: float, b_low: float) -> float:
    """P(leave against the drift) between these bounds: gambler's ruin at p = 1/2, else by the conjugate walk."""
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
    """How many steps in a row reach the bound."""
    count = math.ceil(bound / step)
    return count if count * step >= bound else count + 1
