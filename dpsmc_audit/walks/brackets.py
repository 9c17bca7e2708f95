"""Averages over L between rigorous bounds, for steps so coarse that the law for fixed bounds is a staircase in L."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.walks.exact import Exact, Steps, walk_until_exit
from dpsmc_audit.walks.overshoot import BUDGET, overshoots
from dpsmc_audit.walks.quadrature import fixed

__all__ = ["COARSE", "against", "is_coarse", "mean_by_bracket", "rare_by_bracket"]

_EVALUATIONS = 300
_TAIL = 1e-10
COARSE = 12.0
"""Bounds, or an L, fewer steps wide than this are no place for smooth approximations."""

SMOOTH = 10.0
"""With bounds more steps away than this Wald's identities are off by less than 1e-4 of the probability."""


def is_coarse(test: Sprt, scale: float) -> bool:
    """Are both the bounds and the typical L only a few steps wide?"""
    return (test.b_up + test.b_low) / test.step_sum < COARSE and scale / test.step_sum < COARSE


def is_fine(test: Sprt, top: float) -> bool:
    """Are there bounds, up to this L, at which Wald's identities stand in for the law?"""
    return min(test.b_up, test.b_low) + top > SMOOTH * test.step_sum


def _bracket(
    test: Sprt,
    mechanism: Mechanism,
    inside: Callable[[float, float], tuple[float, float]],
    top: float,
    beyond: tuple[float, float],
    coin: float,
) -> Exact:
    """E[f(L)] from bounds of f on intervals of L, the interval that matters most halved again and again.

    `inside` bounds f on an interval of L, `beyond` where L exceeds `top`; f is `coin` where a coin decides.
    """
    lowest = float(mechanism.quantile(0.0))
    tossed = 0.0 if lowest > test.floor else 1.0 - float(mechanism.survival(test.floor))
    lowest = max(lowest, test.floor + 1e-9 * test.step_sum)

    def item(left: float, right: float) -> tuple[float, float, float, float, float, float]:
        above = float(mechanism.survival(left)) if left > lowest else 1.0 - tossed
        weight = above - float(mechanism.survival(right))
        low, high = inside(left, right)
        return -weight * (high - low), left, right, weight, low, high

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


def mean_by_bracket(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """On each path tau does not fall when L grows: the means at the ends of an interval bracket those inside."""
    top = float(mechanism.quantile(1.0 - _TAIL))
    last = overshoots(test, p_phi).mean(test.b_up + 3.0 * top, test.b_low + 3.0 * top)

    def at(excess: float) -> float:
        return fixed(test, p_phi, excess, 0.05 * BUDGET)[0]

    return _bracket(test, mechanism, lambda left, right: (at(left), at(right)), top, (at(top), last), 1.0)


def rare_by_bracket(test: Sprt, mechanism: Mechanism, p_phi: float) -> Exact:
    """Leaving against the drift is likelier the closer that bound and the further the other; never above exp(-h b)."""
    h = abs(test.exponent(p_phi))
    bound = test.b_low if test.exponent(p_phi) >= 0.0 else test.b_up
    # the same for all laws of a kind, so that what was computed for one serves the others
    top = 30.0 / h if h > 0.0 else float(mechanism.quantile(1.0 - _TAIL))

    def inside(left: float, right: float) -> tuple[float, float]:
        return against(test, p_phi, left, right), against(test, p_phi, right, left)

    between = _bracket(test, mechanism, inside, top, (0.0, math.exp(-h * (bound + top))), 0.5)
    return replace(between, error=between.error + 1e-4 * between.value * is_fine(test, top))


@lru_cache(maxsize=8192)
def against(test: Sprt, p_phi: float, along: float, against: float) -> float:
    """P(leave against the drift) with the bound along the drift enlarged by one excess, the other by another."""
    h, walk = test.exponent(p_phi), Steps.of(test, p_phi)
    b_up, b_low = (test.b_up + along, test.b_low + against) if h >= 0.0 else (test.b_up + against, test.b_low + along)
    if min(b_up, b_low) > SMOOTH * test.step_sum and along != against:
        return overshoots(test, p_phi).rare(b_up, b_low)
    law = walk_until_exit(walk.conjugate(h), b_up, b_low, alive=1e-12)
    if h < 0.0:
        return float(law.null @ np.exp(h * (b_up + law.over_null)))
    return float(law.alt @ np.exp(-h * (b_low + law.over_alt)))
