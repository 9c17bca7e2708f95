"""The smallest violations that bets on labels find with probability 0.9.

A bettor who knew both laws would have a log capital that is nearly normal after many runs: its mean and its variance
are sums over outcomes. One who has to learn is behind by some log capital (`behind`), which was measured
(see benchmarks/README.md). A violation is found if the lower tenth of the log capital is above what a refutation needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.bets import EXCESS, SHARES
from dpsmc_audit.evidence.claims import Gdp, Point, Promise
from dpsmc_audit.evidence.verdict import Detectable

__all__ = ["POWER", "behind", "detectable", "finds", "smallest_events"]

FloatArray = NDArray[np.float64]

POWER = 0.9
_PROBABILITIES = (0.5, 0.1, 0.01, 0.001)

_FEWEST_BEHIND, _MOST_BEHIND, _FINE = 1.0, 7.3, 50
_RARE, _STEEP = 100.0, 3.0


def behind(cells: int, expected: float = math.inf) -> float:
    """Return what learning costs, in log capital.

    Parameters
    ----------
    cells : int
        The number of cells of the output: more places where an event may begin, more to learn.
    expected : float, optional
        How many runs with one value of x are expected to have the event: one that is seldom seen is learnt late.

    Returns
    -------
    float
        It grows from two cells to fifty, and no further; and below a hundred runs with the event.
    """
    share = min(math.log(max(cells, 2) / 2.0) / math.log(_FINE / 2.0), 1.0)
    rare = _STEEP * math.log(max(_RARE / max(expected, 1.0), 1.0))
    return _FEWEST_BEHIND + share * (_MOST_BEHIND + rare - _FEWEST_BEHIND)


Laws = tuple[FloatArray, FloatArray]
"""The probabilities of the outcomes with x = 1 and with x = 0."""


def finds(laws: Laws, points: Sequence[Point], labelled: int, level: float, late: float) -> bool:
    """Tell whether runs of two laws would refute a claim with probability 0.9.

    Parameters
    ----------
    laws : pair of arrays
        The probabilities of the outcomes with x = 1 and with x = 0.
    points : sequence of Point
        The claim.
    labelled : int
        The number of labelled runs.
    level : float
        The level of a refutation.
    late : float
        What learning costs, in log capital.

    Returns
    -------
    bool
        Whether the best gambler alone would reach the target.
    """
    needed = math.log(1.0 / level) + late + math.log(len(points))
    for point in points:
        mean, variance = _growth(laws, point)
        low = labelled * mean - NormalDist().inv_cdf(POWER) * np.sqrt(labelled * variance)
        if np.any(low + np.log(SHARES) >= needed):
            return True
    return False


def _growth(laws: Laws, point: Point) -> tuple[FloatArray, FloatArray]:
    """Compute mean and variance of what one labelled run adds to the log capital of each gambler."""
    one, zero = laws
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.where(one == zero, 0.0, np.log(one) - np.log(zero))
    trusted = np.minimum(np.abs(odds), point.epsilon + EXCESS[:, None])
    bets = np.abs(odds) > point.epsilon
    edge = math.log1p(math.exp(-point.epsilon))
    win = np.where(bets, edge - np.log1p(np.exp(-trusted)), 0.0)
    lose = np.where(bets, win - trusted + point.epsilon, 0.0)
    right, wrong = 0.5 * np.maximum(one, zero), 0.5 * np.minimum(one, zero)
    gains = [np.where((odds * sign > 0.0) & bets, np.expm1(win), 0.0).max(axis=1, initial=0.0) for sign in (1.0, -1.0)]
    cost = np.log1p(0.5 * (point.delta_1 * gains[0] + point.delta_0 * gains[1]))
    mean = (right * win + wrong * lose).sum(axis=1)
    square = (right * win**2 + wrong * lose**2).sum(axis=1)
    return mean - cost, square - mean**2


def detectable(promise: Promise, labelled: int, level: float, floor: float, cells: int) -> Detectable:
    """Find the smallest violations that would have been found.

    Parameters
    ----------
    promise : Promise
        The claim.
    labelled : int
        The number of labelled runs.
    level : float
        The level of a refutation.
    floor : float
        The probability of the event for the main result.
    cells : int
        The number of cells of the output.

    Returns
    -------
    Detectable
        The smallest violations; None where no violation would be found.
    """
    points, main = promise.points, promise.main

    def found(laws: Laws, likely: float) -> bool:
        return finds(laws, points, labelled, level, behind(cells, 0.5 * labelled * likely))

    events = smallest_events(lambda p, q: found(_event(p, q), p), floor, main.epsilon, main.delta)
    if not isinstance(promise, Gdp):
        return events
    return replace(events, mu=_smallest(lambda mu: found(_gaussian(mu), 0.5), promise.mu, promise.mu + 30.0))


def smallest_events(shows: Callable[[float, float], bool], floor: float, epsilon: float, delta: float) -> Detectable:
    """Find the smallest violations on events of several probabilities.

    Parameters
    ----------
    shows : callable
        Tells whether an event with two given probabilities, the larger first, refutes the claim with probability 0.9.
    floor : float
        The probability of the event for the main result.
    epsilon, delta : float
        The claim.

    Returns
    -------
    Detectable
        The smallest violations; None where no violation would be found.
    """

    def least_epsilon(p: float) -> float | None:
        return _smallest(lambda size: shows(p, p * math.exp(-size)), epsilon, epsilon + 60.0)

    others = {p: least_epsilon(p) for p in _PROBABILITIES}
    return Detectable(floor, least_epsilon(floor), _smallest(lambda p: shows(p, 0.0), delta, 1.0), others)


def _event(likely: float, other: float) -> Laws:
    """Two outcomes: an event and the rest."""
    return np.array([likely, 1.0 - likely]), np.array([other, 1.0 - other])


def _gaussian(mu: float) -> Laws:
    """One draw of N(mu, 1) or of N(0, 1), in narrow bins."""
    edges = np.linspace(-8.0, 8.0 + mu, 801)
    cdf = NormalDist().cdf
    zero, one = (np.diff([cdf(float(edge - shift)) for edge in edges]) for shift in (0.0, mu))
    return one, zero


def _smallest(found: Callable[[float], bool], low: float, high: float) -> float | None:
    """Find where a condition that holds from some value on begins to hold; None if it fails at the highest value."""
    if not found(high):
        return None
    while high - low > 1e-6 * (high + 1e-9):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if found(middle) else (middle, high)
    return high
