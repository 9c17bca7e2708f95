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

_KEPT = 1e-9
"""By how much, relatively, an error must be below its level to count as kept: far above its rounding."""


def _excess(test: Sprt, law: Mechanism) -> float:
    """By how much (its logarithm) the larger of the two errors, numerical error included, is above its level."""
    worst = worst_errors(test, law)
    return max(
        math.log((error.value + error.error) / level) for error, level in ((worst.fp, test.fp), (worst.fn, test.fn))
    )


def unit_below(length: float) -> float:
    """The largest power of two that is not above: its multiples are floating-point numbers, without rounding."""
    return math.ldexp(1.0, math.frexp(length)[1] - 1)


def calibrated_center(test: Sprt, law: Callable[[float], Mechanism], scale: float, least: float) -> float:
    """The smallest center from `least` on, on a grid, at which both errors, averaged over L, are at most their levels.

    The grid is that of the multiples of a power of two below 1e-4 of the scale. Errors are computed on its points alone
    and compared with their levels less `_KEPT`: rounding, which differs between processors, is a billionth of what the
    errors change from one point to the next, so that all processors choose the same point, and the levels are kept
    whatever the rounding.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Laplace
    >>> test = Sprt(p=0.73, delta=0.05, alpha=0.05)
    >>> center = calibrated_center(test, lambda x: Laplace(x, 2.0), 2.0, 0.0)
    >>> worst_errors(test, Laplace(center, 2.0)).fp.value <= 0.05
    True
    """
    if _excess(test, law(least)) <= -_KEPT:
        return least
    unit = unit_below(1e-4 * scale)

    def excess(k: int) -> float:
        return _excess(test, law(k * unit)) + _KEPT

    begin, room = math.floor(least / unit), math.ceil(scale / unit)
    while excess(begin + room) > 0.0:
        room *= 2
        length = room * unit / test.drift(test.p + test.delta)
        require(
            length <= _LONGEST,
            f"noise cannot keep alpha={min(test.fp, test.fn):g}: with L of scale {scale:.3g} the bounds"
            f" would be {room * unit:.2g} wide and a run {length:.1g} samples long; raise epsilon or delta",
        )
    return _first(excess, begin, begin + room) * unit


def center_of_mean(mean: Callable[[float], float], wanted: float, least: float, scale: float) -> float:
    """The smallest center from `least` on, on a grid, at which L has this mean or more; `least` where it has there.

    The grid is finer than that of `calibrated_center`: a mean costs nothing, and is known to the last digits.
    """
    if mean(least) >= wanted:
        return least
    unit = unit_below(1e-7 * scale)
    begin, room = math.floor(least / unit), math.ceil(scale / unit)
    while mean((begin + room) * unit) < wanted:
        room *= 2
    return _first(lambda k: wanted - mean(k * unit), begin, begin + room) * unit


def _first(excess: Callable[[int], float], low: int, high: int) -> int:
    """The smallest integer up to `high` at which a falling function is not positive; it is positive at `low`.

    By false position, each place looked at a whole number: where the search ends, the next smaller one was looked at.
    """
    above, below, halve = excess(low), excess(high), False
    if above <= 0.0:  # `low` was rounded down
        return low
    while high - low > 1:
        share = 0.5 if halve else above / (above - below)
        place = min(max(low + math.ceil(share * (high - low)), low + 1), high - 1)
        found, width = excess(place), high - low
        if found > 0.0:
            low, above, below = place, found, 0.5 * below
        else:
            high, below, above = place, found, 0.5 * above
        halve = not halve and high - low > width // 2
    return high
