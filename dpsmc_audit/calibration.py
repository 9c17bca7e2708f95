"""Noise that keeps the test's promise: how far up two-sided noise must be moved so that no error exceeds its level."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt, require
from dpsmc_audit.walks.averages import worst_errors

__all__ = ["calibrated_center", "center_of_mean"]

_LONGEST = 2.0**40
"""Samples a run may need on average where a hypothesis begins: the largest cap on samples there is."""


def _excess(test: Sprt, law: Mechanism) -> float:
    """By how much (its logarithm) the larger of the two errors, numerical error included, is above its level."""
    worst = worst_errors(test, law)
    return max(
        math.log((error.value + error.error) / level) for error, level in ((worst.fp, test.fp), (worst.fn, test.fn))
    )


def calibrated_center(test: Sprt, law: Callable[[float], Mechanism], scale: float, least: float) -> float:
    """The smallest center from `least` on at which both errors, averaged over L, are at most their levels.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Laplace
    >>> test = Sprt(p=0.73, delta=0.05, alpha=0.05)
    >>> center = calibrated_center(test, lambda x: Laplace(x, 2.0), 2.0, 0.0)
    >>> worst_errors(test, Laplace(center, 2.0)).fp.value <= 0.05
    True
    """
    from scipy.optimize import brentq

    if _excess(test, law(least)) <= 0.0:
        return least
    room = scale
    while _excess(test, law(least + room)) > 0.0:
        room *= 2.0
        length = room / test.drift(test.p + test.delta)
        require(
            length <= _LONGEST,
            f"noise cannot keep alpha={min(test.fp, test.fn):g}: with L of scale {scale:.3g} the bounds"
            f" would be {room:.2g} wide and a run {length:.1g} samples long; raise epsilon or delta",
        )
    tolerance = 1e-4 * scale
    center = float(brentq(lambda x: _excess(test, law(x)), least, least + room, xtol=tolerance))
    while _excess(test, law(center)) > 0.0:
        center += tolerance
    return center


def center_of_mean(mean: Callable[[float], float], wanted: float, least: float, scale: float) -> float:
    """The center from `least` on at which L has this mean; `least` where it is larger there already."""
    from scipy.optimize import brentq

    if mean(least) >= wanted:
        return least
    room = scale
    while mean(least + room) < wanted:
        room *= 2.0
    return float(brentq(lambda center: mean(center) - wanted, least, least + room))
