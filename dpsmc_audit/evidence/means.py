"""Averages of values in [0, 1] that are not counts (Rao-Blackwell weights, probabilities of sequences).

Binomial intervals do not hold for them, and normal ones fail if rare values decide the mean. The bets of Waudby-Smith
and Ramdas (2024) hold for every law and every number of values. A gambler bets that the mean is above m. If it is not,
he ever multiplies a capital of 1 by 1/level with probability at most `level`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import require
from dpsmc_audit.evidence.intervals import Interval, check_confidence

__all__ = ["BoundedMean", "betting_interval", "betting_intervals", "bounded_mean", "lower_means"]

FloatArray = NDArray[np.float64]

_MOST = 0.75
"""A bet never risks more than this share of the capital."""

_HALVINGS = 34
"""Halvings of the interval [0, 1]: a bound is less than 1e-10 below its exact value."""


@dataclass(frozen=True)
class BoundedMean:
    """Mean of a sample of values in [0, 1], and an interval for the mean of their law.

    Parameters
    ----------
    mean : float
        The mean of the sample.
    low, high : float
        The ends of the interval.
    """

    mean: float
    low: float
    high: float


def _stakes(values: FloatArray, level: float) -> FloatArray:
    """Compute each stake from the variance of the values before it: ``sqrt(2 ln(1/level) / (n variance))``."""
    n = values.shape[0]
    before = np.arange(n, dtype=np.float64)[:, None]
    mean = (0.5 + _sums_before(values)) / (before + 1.0)
    variance = (0.25 + _sums_before((values - mean) ** 2)) / (before + 1.0)
    return np.asarray(np.sqrt(2.0 * math.log(1.0 / level) / (n * variance)))


def _sums_before(values: FloatArray) -> FloatArray:
    sums = np.cumsum(values, axis=0)
    return np.concatenate([np.zeros((1, values.shape[1])), sums[:-1]])


def lower_means(values: FloatArray, level: float) -> FloatArray:
    """Compute a lower bound on the mean of each column's law on [0, 1].

    P(bound > mean) <= level holds for any law and any sample size.

    The bound is the smallest mean at which the gambler has not won. With stakes ``min(s, 0.75 / m)`` every factor
    ``1 + stake (x - m)`` falls with m, so bisection finds the bound. It ends below it.

    Parameters
    ----------
    values : array
        The values, a column for each law.
    level : float
        The level of each bound.

    Returns
    -------
    array
        The bound for each column.

    Raises
    ------
    ParameterError
        If there are no values, or a value is not in [0, 1].

    Examples
    --------
    >>> values = np.tile([0.0, 0.02], 5000)[:, None]
    >>> 0.0096 < float(lower_means(values, 0.005)[0]) < 0.01
    True
    """
    require(values.shape[0] >= 1, "a bound needs at least one value")
    require(bool(np.all((values >= 0.0) & (values <= 1.0))), "values must lie in [0, 1]")
    stakes, target = _stakes(values, level), math.log(1.0 / level)

    def refuted(mean: FloatArray) -> NDArray[np.bool_]:
        bets = np.minimum(stakes, _MOST / mean)
        return np.asarray(np.cumsum(np.log1p(bets * (values - mean)), axis=0).max(axis=0) >= target)

    low, high = np.zeros(values.shape[1]), np.ones(values.shape[1])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = refuted(middle)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low


def betting_intervals(values: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Compute an interval for the mean of each column. Each end is missed with half of the level.

    Rarely one gambler refutes everything that the other leaves. The interval between the two ends is then used instead.

    Parameters
    ----------
    values : array
        The values in [0, 1], a column for each law.
    confidence : float
        The confidence of each interval.

    Returns
    -------
    low, high : array
        The ends for each column.

    Raises
    ------
    ParameterError
        If the confidence is not valid, there are no values, or a value is not in [0, 1].
    """
    check_confidence(confidence)
    level = 0.5 * (1.0 - confidence)
    ends = lower_means(values, level), 1.0 - lower_means(1.0 - values, level)
    return np.minimum(*ends), np.maximum(*ends)


def betting_interval(values: FloatArray, confidence: float) -> Interval:
    """Compute an interval for a mean of values in [0, 1].

    P(low <= mean <= high) >= confidence, with half of the level on each side.

    Parameters
    ----------
    values : array
        The values.
    confidence : float
        The confidence of the interval.

    Returns
    -------
    low, high : float
        The ends.

    Raises
    ------
    ParameterError
        If the confidence is not valid, there are no values, or a value is not in [0, 1].

    Examples
    --------
    >>> low, high = betting_interval(np.full(1000, 0.25), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.249, 0.254)
    """
    low, high = betting_intervals(values[:, None], confidence)
    return float(low[0]), float(high[0])


def bounded_mean(values: FloatArray, confidence: float) -> BoundedMean:
    """Compute the mean and its betting interval.

    Parameters
    ----------
    values : array
        The values in [0, 1].
    confidence : float
        The confidence of the interval.

    Returns
    -------
    BoundedMean
        The mean and the interval.

    Raises
    ------
    ParameterError
        If the confidence is not valid, there are no values, or a value is not in [0, 1].
    """
    return BoundedMean(float(values.mean()), *betting_interval(values, confidence))
