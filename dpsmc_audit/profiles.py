"""Privacy profiles: how much delta a claim of (epsilon, delta) needs, for every epsilon and in both directions.

``delta_1_over_0(epsilon) = max over events S of P_1(S) - exp(epsilon) P_0(S)``; the best event is where the ratio of the
two laws exceeds exp(epsilon), so the maximum is a sum of positive parts. At epsilon = 0 it is the total variation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.sprt import require

__all__ = ["Profile", "Tail", "best_tail", "epsilon_grid", "privacy_profile", "total_variation"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Profile:
    """delta for each epsilon, in both directions; both fall and are convex in exp(epsilon)."""

    epsilon: FloatArray
    delta_1_over_0: FloatArray
    delta_0_over_1: FloatArray

    def at(self, epsilon: float) -> float:
        """The delta that both directions need at an epsilon of the grid."""
        place = int(np.argmin(np.abs(self.epsilon - epsilon)))
        return float(max(self.delta_1_over_0[place], self.delta_0_over_1[place]))


@dataclass(frozen=True)
class Tail:
    """An event ``{tau <= k}`` (or, `beyond`, ``{tau > k}``) and its probability for x_n = 1 and for x_n = 0."""

    k: int
    beyond: bool
    p1: float
    p0: float

    @property
    def log_ratio(self) -> float:
        if min(self.p1, self.p0) <= 0.0:
            return math.inf if self.p1 > self.p0 else -math.inf
        return math.log(self.p1 / self.p0)

    @property
    def event(self) -> str:
        return f"tau > {self.k}" if self.beyond else f"tau <= {self.k}"


def epsilon_grid(epsilon: float, given: Sequence[float] | None = None) -> FloatArray:
    """Where a profile is computed: as given, or from 0 far beyond the claimed epsilon; the claim and its double in it.

    Examples
    --------
    >>> epsilon_grid(0.1, [0.0, 0.5]).tolist()
    [0.0, 0.1, 0.2, 0.5]
    """
    if given is None:
        values = np.append(0.0, np.geomspace(0.1 * epsilon, max(50.0 * epsilon, 2.0), 80))
    else:
        require(len(given) > 0, "epsilons must hold at least one value")
        values = np.array(given, dtype=np.float64)
        bad = [float(x) for x in values if not 0.0 <= x < math.inf]
        require(not bad, f"epsilons must be finite and not negative, got {bad[:1]}")
    return np.unique(np.append(values, [epsilon, 2.0 * epsilon]))


def _over(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """``max over S of p(S) - exp(epsilon) q(S)``; where exp(epsilon) overflows, what q cannot reach at all."""
    if epsilon > 700.0:
        return float(p[q == 0.0].sum())
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def privacy_profile(p1: FloatArray, p0: FloatArray, epsilons: FloatArray) -> Profile:
    """The profile of two laws over the same outcomes.

    Examples
    --------
    >>> response = privacy_profile(np.array([0.75, 0.25]), np.array([0.25, 0.75]), np.array([0.0, np.log(2), np.log(3)]))
    >>> np.round(response.delta_1_over_0, 12).tolist()  # randomised response is (ln 3, 0)-private
    [0.5, 0.25, 0.0]
    """
    forth = np.array([_over(p1, p0, x) for x in epsilons.tolist()])
    back = np.array([_over(p0, p1, x) for x in epsilons.tolist()])
    return Profile(epsilons, forth, back)


def total_variation(p1: FloatArray, p0: FloatArray) -> float:
    """``max over S of |P_1(S) - P_0(S)|``."""
    return max(_over(p1, p0, 0.0), _over(p0, p1, 0.0))


def best_tail(p1: FloatArray, p0: FloatArray, floor: float) -> Tail | None:
    """The tail of tau = 1, 2, ... with the largest ratio, either way, among those that a member meets with `floor`.

    Both members count: an event is of interest when one of them meets it with at least this probability.

    Examples
    --------
    >>> best_tail(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.4, 0.4]), floor=0.1).event
    'tau <= 1'
    """
    best: Tail | None = None
    below = np.cumsum(p1), np.cumsum(p0)
    above = tuple(np.cumsum(p[::-1])[::-1][1:] for p in (p1, p0))
    for beyond, (one, zero) in ((False, below), (True, above)):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(np.log(one) - np.log(zero))
        worthy = np.where((np.maximum(one, zero) >= floor) & ~np.isnan(ratio), ratio, -1.0)
        if worthy.size and worthy.max() >= 0.0:
            k = int(np.argmax(worthy))
            tail = Tail(k + 1, beyond, float(one[k]), float(zero[k]))
            if best is None or abs(tail.log_ratio) > abs(best.log_ratio):
                best = tail
    return best
