"""From counts and sums to intervals: what a sample says about a probability or a mean, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.profiles import factor
from dpsmc_audit.sprt import require

__all__ = [
    "BoundedMean",
    "TailCounts",
    "bernstein_interval",
    "bounded_mean",
    "check_confidence",
    "clopper_pearson",
    "delta_lower_bound",
    "epsilon_lower_bound",
    "mean_interval",
    "student_quantile",
]

Interval = tuple[float, float]
FloatArray = NDArray[np.float64]


def check_confidence(confidence: float) -> None:
    """A confidence level lies strictly between 0 and 1."""
    require(0.0 < confidence < 1.0, f"confidence must lie in (0, 1), got {confidence}")
    require(confidence <= 1.0 - 1e-9, f"confidence must be at most 1 - 1e-9, got {confidence}")


def clopper_pearson(successes: int, trials: int, confidence: float) -> Interval:
    """Exact two-sided interval for a binomial proportion: each end is missed with at most half the level.

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


def student_quantile(freedom: int, u: float) -> float:
    """Quantile of Student's t; from 1000 degrees of freedom on by its expansion around the normal (error below 1e-7).

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
    """Student's interval for a mean from exact integer sums; None from a single observation.

    Its level is asymptotic: termination times are skewed, and a few thousand runs are needed for it to be kept well.

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


@dataclass(frozen=True)
class BoundedMean:
    """Mean of a sample of values in [0, 1], and an interval for what it estimates."""

    mean: float
    low: float
    high: float


def bernstein_interval(values: FloatArray, confidence: float) -> Interval:
    """Empirical-Bernstein interval for the mean of a variable with values in [0, 1].

    Theorem 4 of Maurer and Pontil (2009), with half of the level on each side: for n >= 2 independent draws of any
    such law P(low <= mean <= high) >= confidence, for every n. No normal approximation is involved.

    Examples
    --------
    >>> low, high = bernstein_interval(np.full(1000, 0.25), 0.95)
    >>> round(low, 4), round(high, 4)
    (0.2398, 0.2602)
    """
    check_confidence(confidence)
    require(values.size >= 2, f"an interval needs at least 2 values, got {values.size}")
    n, level = values.size, math.log(4.0 / (1.0 - confidence))
    width = math.sqrt(2.0 * float(values.var(ddof=1)) * level / n) + 7.0 * level / (3.0 * (n - 1))
    mean = float(values.mean())
    return max(mean - width, 0.0), min(mean + width, 1.0)


def bounded_mean(values: FloatArray, confidence: float) -> BoundedMean:
    """Mean and empirical-Bernstein interval."""
    return BoundedMean(float(values.mean()), *bernstein_interval(values, confidence))


# --- two samples over the same events -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TailCounts:
    """How often each event of a family was seen: ``one[i]`` in `runs` runs with x_n = 1, ``zero[i]`` with x_n = 0."""

    one: NDArray[np.int64]
    zero: NDArray[np.int64]
    runs: int

    def turned(self) -> TailCounts:
        """With the members exchanged."""
        return TailCounts(self.zero, self.one, self.runs)


def _ends(counts: TailCounts, confidence: float) -> tuple[FloatArray, FloatArray]:
    """One-sided Clopper-Pearson ends, P(one) from below and P(zero) from above, each missed with half the level."""
    from scipy.special import betaincinv

    level, n = 0.5 * (1.0 - confidence), counts.runs
    low = betaincinv(np.maximum(counts.one, 1), n - counts.one + 1, level)
    high = betaincinv(counts.zero + 1, np.maximum(n - counts.zero, 1), 1.0 - level)
    return np.where(counts.one > 0, low, 0.0), np.where(counts.zero < n, high, 1.0)


def epsilon_lower_bound(choose: TailCounts, judge: TailCounts, confidence: float) -> tuple[float, int, bool]:
    """A lower confidence bound on epsilon, the event that gives it and whether it is likelier with x_n = 0.

    Event and direction are chosen on one part of the runs and judged once on the other, with Clopper-Pearson ends for
    both proportions: P(bound > ln of the true ratio of the judged event) <= 1 - confidence, for any laws.

    Examples
    --------
    >>> seen = TailCounts(np.array([300, 900]), np.array([100, 900]), 1000)
    >>> bound, event, turned = epsilon_lower_bound(seen, seen, 0.99)
    >>> round(bound, 3), event, turned
    (0.73, 0, False)
    """

    def bounds(counts: TailCounts) -> FloatArray:
        low, high = _ends(counts, confidence)
        with np.errstate(divide="ignore"):
            return np.log(low) - np.log(high)

    return _split(choose, judge, bounds)


def delta_lower_bound(
    choose: TailCounts, judge: TailCounts, epsilon: float, confidence: float
) -> tuple[float, int, bool]:
    """The same for delta at this epsilon: P(bound > P_1(S) - exp(epsilon) P_0(S)) <= 1 - confidence."""

    def bounds(counts: TailCounts) -> FloatArray:
        low, high = _ends(counts, confidence)
        return low - factor(epsilon) * high

    return _split(choose, judge, bounds)


def _split(
    choose: TailCounts, judge: TailCounts, bounds: Callable[[TailCounts], FloatArray]
) -> tuple[float, int, bool]:
    sides = [(bounds(choose), False), (bounds(choose.turned()), True)]
    best, turned = max(sides, key=lambda side: float(side[0].max()))
    event = int(np.argmax(best))
    judged = judge.turned() if turned else judge
    only = TailCounts(judged.one[[event]], judged.zero[[event]], judged.runs)
    return max(float(bounds(only)[0]), 0.0), event, turned
