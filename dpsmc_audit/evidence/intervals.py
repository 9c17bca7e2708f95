"""From counts and sums to intervals for a probability or a mean."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import require

__all__ = [
    "Interval",
    "check_confidence",
    "clopper_pearson",
    "lower_ends",
    "mean_interval",
    "percent",
    "student_quantile",
    "upper_ends",
]

Interval = tuple[float, float]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def check_confidence(confidence: float) -> None:
    """Check a confidence level.

    Parameters
    ----------
    confidence : float
        The level.

    Raises
    ------
    ParameterError
        If it is not in (0, 1), or if it is above 1 - 1e-9.
    """
    require(0.0 < confidence < 1.0, f"confidence must lie in (0, 1), got {confidence}")
    require(confidence <= 1.0 - 1e-9, f"confidence must be at most 1 - 1e-9, got {confidence}")


def percent(confidence: float) -> str:
    """Format a confidence level for a reader.

    Parameters
    ----------
    confidence : float
        The level.

    Returns
    -------
    str
        The level in percent.

    Examples
    --------
    >>> percent(0.99), percent(1.0 - 1e-9)
    ('99 %', '99.9999999 %')
    """
    return f"{100.0 * confidence:.10g} %"


def clopper_pearson(successes: int, trials: int, confidence: float) -> Interval:
    """Compute the exact two-sided interval for a binomial proportion. Each end is missed with at most half the level.

    Parameters
    ----------
    successes : int
        The number of successes.
    trials : int
        The number of trials, at least 1.
    confidence : float
        The confidence of the interval.

    Returns
    -------
    low, high : float
        The ends.

    Examples
    --------
    >>> low, high = clopper_pearson(10_000, 10_000, 0.99)
    >>> f"{low:.6f}", high
    ('0.999470', 1.0)
    """
    tail = 0.5 * (1.0 - confidence)
    if successes in (0, trials):  # the common case; closed form, without importing scipy
        edge = -math.expm1(math.log(tail) / trials)
        return (0.0, edge) if successes == 0 else (1.0 - edge, 1.0)
    from scipy.special import betaincinv

    low = float(betaincinv(successes, trials - successes + 1, tail))
    return low, float(betaincinv(successes + 1, trials - successes, 1.0 - tail))


def lower_ends(successes: IntArray, trials: int, level: float) -> FloatArray:
    """Compute one-sided Clopper-Pearson bounds from below. P(proportion < bound) is at most `level` for each.

    Parameters
    ----------
    successes : array of int
        The number of successes for each proportion.
    trials : int
        The number of trials, the same for all.
    level : float
        The level of each bound.

    Returns
    -------
    array
        The bounds.

    Examples
    --------
    >>> lower_ends(np.array([0, 50]), 100, 0.025).round(4).tolist()
    [0.0, 0.3983]
    """
    from scipy.special import betaincinv

    ends = betaincinv(np.maximum(successes, 1), trials - successes + 1, level)
    return np.where(successes > 0, ends, 0.0)


def upper_ends(successes: IntArray, trials: int, level: float) -> FloatArray:
    """Compute one-sided Clopper-Pearson bounds from above. P(proportion > bound) is at most `level` for each.

    Parameters
    ----------
    successes : array of int
        The number of successes for each proportion.
    trials : int
        The number of trials, the same for all.
    level : float
        The level of each bound.

    Returns
    -------
    array
        The bounds.
    """
    from scipy.special import betainccinv

    ends = betainccinv(successes + 1, np.maximum(trials - successes, 1), level)
    return np.where(successes < trials, ends, 1.0)


def student_quantile(freedom: int, u: float) -> float:
    """Compute a quantile of Student's t.

    From 1000 degrees of freedom on it is the expansion around the normal law (error below 1e-7).

    Parameters
    ----------
    freedom : int
        The degrees of freedom.
    u : float
        The probability of values below the quantile.

    Returns
    -------
    float
        The quantile.

    Examples
    --------
    >>> round(student_quantile(9_999, 0.995), 5), round(student_quantile(3, 0.975), 5)
    (2.57632, 3.18245)
    """
    if freedom < 1000:
        from scipy.special import stdtrit

        return float(stdtrit(freedom, u))
    z = NormalDist().inv_cdf(u)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def mean_interval(count: int, total: int, total_of_squares: int, confidence: float) -> Interval | None:
    """Compute Student's interval for a mean from exact integer sums.

    Its level is asymptotic: termination times are skewed, and a few thousand runs are needed to keep it well.

    Parameters
    ----------
    count : int
        The number of observations.
    total, total_of_squares : int
        The sum of the observations, and of their squares.
    confidence : float
        The confidence of the interval.

    Returns
    -------
    pair of float or None
        The ends; None for fewer than two observations.

    Examples
    --------
    >>> [round(x, 3) for x in mean_interval(4, 10, 30, 0.95)]
    [0.446, 4.554]
    """
    if count < 2:
        return None
    variance = (count * total_of_squares - total**2) / (count * (count - 1))
    half = student_quantile(count - 1, 0.5 * (1.0 + confidence)) * math.sqrt(variance / count)
    return total / count - half, total / count + half
