"""The smallest violations that bets on labels find with probability 0.9.

A bettor who knew both laws would have a log capital that is nearly normal after many runs: its mean and its variance
are sums over outcomes. One who has to learn is behind by some log capital (`behind`). A violation is found if the lower
tenth of the log capital is above what a refutation needs.
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

_SURE, _NOISE, _LEAST, _ONE = 0.5, 0.25, 0.1, 5.8
_FEW, _ALL = 2, 6
_RARE, _STEEP = 100.0, 3.5


def behind(cells: int, epsilon: float, share: FloatArray, expected: float = math.inf) -> FloatArray:
    """Return what learning costs, in log capital.

    Two cells leave nothing to find but the size of the effect. With more, bets on noise lose until predictions are
    nearer to 1/2 than the claim, which takes the longer the smaller it is. And the place of the effect has to be found.
    That takes log(cells) of evidence, and about 6 more because few models explain a single place. Meanwhile no
    capital is won, so the loss is the part of this that capital would have grown by. The constants were measured (see
    benchmarks/README.md).

    Parameters
    ----------
    cells : int
        The number of cells of the output.
    epsilon : float
        The claim.
    share : array
        How fast the capital of each gambler grows who knows both laws, compared with the evidence against no effect.
    expected : float, optional
        How many runs with one value of x are expected to have the event: one that is seldom seen is learnt late.

    Returns
    -------
    array
        The cost of each gambler.
    """
    several = min(max(cells - _FEW, 0) / (_ALL - _FEW), 1.0)
    noise = -_NOISE * math.log(min(max(epsilon, _LEAST), 1.0))
    rare = _STEEP * math.log(max(_RARE / max(expected, 1.0), 1.0))
    return np.asarray(_SURE + several * (noise + share * (math.log(max(cells, _FEW)) + _ONE) + rare))


Laws = tuple[FloatArray, FloatArray]
"""The probabilities of the outcomes with x = 1 and with x = 0."""


def finds(
    laws: Laws, points: Sequence[Point], labelled: int, level: float, cells: int, expected: float = math.inf
) -> bool:
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
    cells : int
        The number of cells of the output.
    expected : float, optional
        How many runs with one value of x are expected to have the event (`behind`).

    Returns
    -------
    bool
        Whether the best gambler alone would reach the target.
    """
    evidence = _evidence(laws)
    for point in points:
        mean, variance = _growth(laws, point)
        late = behind(cells, point.epsilon, np.clip(mean / evidence, 0.0, 1.0), expected)
        needed = math.log(1.0 / level) + late + math.log(len(points))
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


def _evidence(laws: Laws) -> float:
    """Compute what one labelled run adds on average to the log evidence that labels have to do with outputs."""
    one, zero = laws
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(law > 0.0, law * np.log(2.0 * law / (one + zero)), 0.0) for law in laws]
    return max(0.5 * float(np.sum(parts)), 1e-300)


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
        return finds(laws, points, labelled, level, cells, 0.5 * labelled * likely)

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
