"""Noise that keeps the error levels of the test: two-sided noise is moved up until no error exceeds its level."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, cast

from dpsmc_audit.errors import require
from dpsmc_audit.exact.averages import worst_errors
from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated, check_epsilon
from dpsmc_audit.sprt import Sprt

__all__ = ["MECHANISMS", "calibrated_center", "center_of_mean", "mechanism_named", "private"]

Noise = TypeVar("Noise", bound=Mechanism)

_LONGEST = 2.0**40
"""The most samples a run may need on average where a hypothesis begins: the largest cap on samples."""

_KEPT = 1e-9
"""An error keeps its level if it is below it by this relative margin, which is far above rounding."""


def _excess(test: Sprt, law: Mechanism, rough: bool) -> float:
    """Compute the logarithm of the worse ratio of error to level, for the upper ends of the errors."""
    worst = worst_errors(test, law, rough=rough)
    return max(math.log(error.high / level) for error, level in ((worst.fp, test.fp), (worst.fn, test.fn)))


def unit_below(length: float) -> float:
    """Compute the largest power of two that is not above a length.

    Its multiples are floating-point numbers, without rounding.

    Parameters
    ----------
    length : float
        A positive number.

    Returns
    -------
    float
        The power of two.
    """
    return math.ldexp(1.0, math.frexp(length)[1] - 1)


def calibrated_center(test: Sprt, law: Callable[[float], Mechanism], scale: float, least: float) -> float:
    """Find the smallest center on a grid at which both errors, averaged over L, are at most their levels.

    The grid holds the multiples of a power of two below 1e-4 of the scale. Errors are computed on its points alone and
    compared with their levels less `_KEPT`. Rounding differs between processors, but it is a billionth of what the
    errors change from one point to the next. So all processors choose the same point, and the levels are kept
    whatever the rounding.

    Parameters
    ----------
    test : Sprt
        The test with its error levels.
    law : callable
        The law of L for a center.
    scale : float
        The scale of L. It sets the grid.
    least : float
        The smallest center allowed. It is returned if the errors keep their levels there.

    Returns
    -------
    float
        The center.

    Raises
    ------
    ParameterError
        If the bounds would be so wide that a run would need more than 2^40 samples on average.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Laplace
    >>> test = Sprt(p=0.73, delta=0.05, alpha=0.05)
    >>> center = calibrated_center(test, lambda x: Laplace(x, 2.0), 2.0, 0.0)
    >>> worst_errors(test, Laplace(center, 2.0)).fp.value <= 0.05
    True
    """
    if _excess(test, law(least), False) <= -_KEPT:
        return least
    unit = unit_below(1e-4 * scale)

    def excess(k: int, rough: bool = False) -> float:
        return _excess(test, law(k * unit), rough) + _KEPT

    def roughly(k: int) -> float:
        return excess(k, True)

    begin, room = math.floor(least / unit), math.ceil(scale / unit)
    while roughly(begin + room) > 0.0:
        room *= 2
        length = room * unit / test.drift(test.p + test.delta)
        require(
            length <= _LONGEST,
            f"noise cannot keep alpha={min(test.fp, test.fn):g}: with L of scale {scale:.3g} the bounds"
            f" would be {room * unit:.2g} wide and a run {length:.1g} samples long; raise epsilon or delta",
        )
    known = low = high = _first(roughly, begin, begin + room)
    while excess(high) > 0.0:
        low, high = high, 2 * high - known + 1
    while low > begin and excess(low) <= 0.0:
        low, high = max(5 * low - 4 * known - 1, begin), low
    return _first(excess, low, high) * unit


def center_of_mean(mean: Callable[[float], float], wanted: float, least: float, scale: float) -> float:
    """Find the smallest center on a grid at which L has the wanted mean or more.

    The grid is finer than that of `calibrated_center`: a mean costs nothing to compute, and its last digits are known.

    Parameters
    ----------
    mean : callable
        The mean of L for a center. It grows with the center.
    wanted : float
        The wanted mean.
    least : float
        The smallest center allowed. It is returned if the mean is large enough there.
    scale : float
        The scale of L. It sets the grid.

    Returns
    -------
    float
        The center.
    """
    if mean(least) >= wanted:
        return least
    unit = unit_below(1e-7 * scale)
    begin, room = math.floor(least / unit), math.ceil(scale / unit)
    while mean((begin + room) * unit) < wanted:
        room *= 2
    return _first(lambda k: wanted - mean(k * unit), begin, begin + room) * unit


def _first(excess: Callable[[int], float], low: int, high: int) -> int:
    """Find the smallest integer up to `high` at which a falling function is not positive. It is positive at `low`.

    The search uses false position on integers. When it ends, the next smaller integer has been evaluated.
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


def _laplace(test: Sprt, epsilon: float) -> Laplace:
    """Make noise of scale ``c / epsilon`` with the smallest center >= 0 (on a grid) that keeps the error levels."""
    scale = test.step_sum / epsilon
    return Laplace(calibrated_center(test, lambda center: Laplace(center, scale), scale, 0.0), scale)


def _truncated(test: Sprt, epsilon: float) -> Truncated:
    """Make noise of scale ``c / epsilon`` with the mean of Algorithm 2's L, or a larger one if the levels need it.

    The bounds keep room for ten changed samples, or for half the bound if that is less.
    """
    scale, lowest = test.step_sum / epsilon, test.no_room + min(10.0 * test.step_sum, -0.5 * test.no_room)

    def law(center: float) -> Truncated:
        return Truncated(center, scale, lowest)

    as_long = center_of_mean(lambda center: law(center).mean, scale, lowest, scale)
    return law(calibrated_center(test, law, scale, as_long))


_CALIBRATED: dict[type, Callable[[Sprt, float], Mechanism]] = {Laplace: _laplace, Truncated: _truncated}
MECHANISMS: dict[str, type[Mechanism]] = {law.name: law for law in (NoNoise, Exponential, Laplace, Truncated)}
"""Noise that can be scaled to a privacy level, by name."""


def private(kind: type[Noise], test: Sprt, epsilon: float) -> Noise:
    """Scale noise to a privacy level. Two-sided noise is moved up until the test keeps its error levels.

    Parameters
    ----------
    kind : type
        `Laplace`, `Truncated`, or a class with a method ``private(test, epsilon)`` such as `Exponential`.
    test : Sprt
        The test whose bounds are randomised.
    epsilon : float
        The privacy level.

    Returns
    -------
    Mechanism
        The law of the noise L.

    Raises
    ------
    ParameterError
        If `kind` is `Laplace` or `Truncated` and epsilon is not in [1e-9, 1e9] or the error levels cannot be kept. The
        method of another class may raise errors of its own.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.05, alpha=0.05)
    >>> noise = private(Laplace, test, epsilon=0.1)
    >>> worst_errors(test, noise).fp.value <= 0.05
    True
    """
    if kind not in _CALIBRATED:
        scaled: Noise = kind.private(test, epsilon)  # type: ignore[attr-defined]
        return scaled
    check_epsilon(kind.name, epsilon)
    return cast(Noise, _CALIBRATED[kind](test, epsilon))


def mechanism_named(
    name: str, test: Sprt, epsilon: float, distribution: str | None = None, arguments: dict[str, float] | None = None
) -> Mechanism:
    """Make the mechanism that a configuration names, calibrated to the test and the privacy level.

    Parameters
    ----------
    name : str
        A key of `MECHANISMS`, or "law".
    test : Sprt
        The test whose bounds are randomised.
    epsilon : float
        The privacy level. A law of scipy.stats is not scaled to it.
    distribution : str, optional
        For "law" only: the distribution of scipy.stats.
    arguments : dict, optional
        For "law" only: shapes, `loc` and `scale` of the distribution.

    Returns
    -------
    Mechanism
        The law of the noise L.

    Raises
    ------
    ParameterError
        If the name is unknown, if `distribution` is missing or does not belong to this name, if a law leaves no room
        between the bounds, or if the noise cannot be scaled to `epsilon`.
    """
    if name == Law.name:
        require(distribution is not None, "mechanism=law needs mechanism.distribution, a distribution of scipy.stats")
        law = Law.of(f"{distribution}", **(arguments or {}))
        message = f"mechanism law {distribution}: no L leaves room between the bounds, a coin would decide every run"
        require(float(law.survival(test.no_room)) > 1e-6, message)
        return law
    require(distribution is None and not arguments, f"mechanism.distribution is for mechanism=law, got {name}")
    require(name in MECHANISMS, f"mechanism must be one of {', '.join([*MECHANISMS, Law.name])}, got {name}")
    return private(MECHANISMS[name], test, epsilon)
