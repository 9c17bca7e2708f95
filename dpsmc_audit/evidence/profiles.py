"""Privacy profiles: how much delta a claim of (epsilon, delta) needs, for every epsilon and in both directions.

``delta_1_over_0(epsilon) = max over events S of P_1(S) - exp(epsilon) P_0(S)``; the best event is where the ratio of
the two laws exceeds exp(epsilon), so the maximum is a sum of positive parts. At epsilon = 0 it is the total variation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import require
from dpsmc_audit.evidence.witness import Event, Outcomes, Ranges, Share, What
from dpsmc_audit.numerics.ties import CLOSE, best_of

__all__ = [
    "Leakage",
    "Profile",
    "best_tail",
    "check_floor",
    "epsilon_grid",
    "factor",
    "largest",
    "one_direction",
    "privacy_profile",
    "tail_of_tau",
    "total_variation",
    "worst_event",
]

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-15
"""Rounding error of a probability, whatever its size: small ones are differences of large ones."""


@dataclass(frozen=True, eq=False)
class Profile:
    """delta for each epsilon, in both directions. Both fall and are convex in exp(epsilon).

    Parameters
    ----------
    epsilon : array
        The grid.
    delta_1_over_0, delta_0_over_1 : array
        The delta that each direction needs at each epsilon.
    """

    epsilon: FloatArray
    delta_1_over_0: FloatArray
    delta_0_over_1: FloatArray

    def at(self, epsilon: float) -> float:
        """Return the delta that both directions need.

        Parameters
        ----------
        epsilon : float
            An epsilon of the grid. For any other value the nearest one is used.

        Returns
        -------
        float
            The larger delta of the two directions.
        """
        place = int(np.argmin(np.abs(self.epsilon - epsilon)))
        return float(max(self.delta_1_over_0[place], self.delta_0_over_1[place]))


@dataclass(frozen=True, eq=False)
class Leakage:
    """How well two laws over the same outcomes can be distinguished.

    Parameters
    ----------
    profile : Profile
        The privacy profile.
    total_variation : float
        The total variation distance.
    best : Event, optional
        The best event above a floor.
    """

    profile: Profile
    total_variation: float
    best: Event | None

    def as_dict(self, epsilon: float) -> dict[str, Any]:
        """Return the leakage as ``result.json`` holds it.

        Parameters
        ----------
        epsilon : float
            The claimed epsilon. It and its double should be in the grid of the profile.

        Returns
        -------
        dict
            Total variation, delta at epsilon and at its double, and the best event.
        """
        best = self.best
        return {
            "total_variation": self.total_variation,
            "privacy_delta_at_epsilon": self.profile.at(epsilon),
            "privacy_delta_at_2_epsilon": self.profile.at(2.0 * epsilon),
            "best_event": None if best is None else {**best.as_dict(), "log_ratio": best.log_ratio},
        }


def epsilon_grid(epsilon: float, given: Sequence[float] | None = None) -> FloatArray:
    """Make the grid of a profile. The claimed epsilon and its double are always in it.

    Parameters
    ----------
    epsilon : float
        The claimed epsilon.
    given : sequence of float, optional
        The other points. By default they reach from 0 far beyond the claimed epsilon.

    Returns
    -------
    array
        The grid, increasing.

    Raises
    ------
    ParameterError
        If `given` is empty or holds a value that is negative or not finite.

    Examples
    --------
    >>> epsilon_grid(0.1, [0.0, 0.5]).tolist()
    [0.0, 0.1, 0.2, 0.5]
    """
    if given is None:
        near, far = np.linspace(0.0, 3.0 * epsilon, 31), np.geomspace(3.0 * epsilon, max(60.0 * epsilon, 2.0), 50)
        values = np.concatenate([near, far])
    else:
        require(len(given) > 0, "epsilons must hold at least one value")
        values = np.array(given, dtype=np.float64)
        bad = [float(x) for x in values if not 0.0 <= x < math.inf]
        require(not bad, f"epsilons must be finite and not negative, got {bad[:1]}")
    return np.unique(np.append(values, [epsilon, 2.0 * epsilon]))


def check_floor(floor: float) -> None:
    """Check the smallest probability of events of interest.

    Parameters
    ----------
    floor : float
        The probability.

    Raises
    ------
    ParameterError
        If it is not in (0, 1).
    """
    require(0.0 < floor < 1.0, f"floor must lie in (0, 1), got {floor}")


def factor(epsilon: float) -> float:
    """Compute ``exp(epsilon)`` without overflow.

    Parameters
    ----------
    epsilon : float
        The exponent.

    Returns
    -------
    float
        ``exp(epsilon)``, or ``exp(700)`` if that is less: large enough to leave nothing of any probability.
    """
    return math.exp(min(epsilon, 700.0))


def _over(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """Compute ``max over S of p(S) - exp(epsilon) q(S)``. Above 700 it is the probability of what q cannot reach."""
    if epsilon > 700.0:
        return float(p[q == 0.0].sum())
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def privacy_profile(p1: FloatArray, p0: FloatArray, epsilons: FloatArray) -> Profile:
    """Compute the profile of two laws over the same outcomes.

    Parameters
    ----------
    p1, p0 : array
        The probabilities of the outcomes with x_n = 1 and with x_n = 0.
    epsilons : array
        The grid.

    Returns
    -------
    Profile
        The profile.

    Examples
    --------
    >>> one, zero = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    >>> response = privacy_profile(one, zero, np.array([0.0, np.log(2), np.log(3)]))
    >>> np.round(response.delta_1_over_0, 12).tolist()  # randomised response is (ln 3, 0)-private
    [0.5, 0.25, 0.0]
    """
    forth = np.array([_over(p1, p0, x) for x in epsilons.tolist()])
    back = np.array([_over(p0, p1, x) for x in epsilons.tolist()])
    return Profile(epsilons, forth, back)


def worst_event(p1: FloatArray, p0: FloatArray, epsilon: float) -> tuple[float, Event]:
    """Find the delta that the worse direction needs at an epsilon, and the event that needs it.

    Outcomes whose ratio is exp(epsilon) up to rounding need no delta and are left out of the event: there may be many.
    If both directions need the same, the event is that of x_n = 1.

    Parameters
    ----------
    p1, p0 : array
        The probabilities of the outcomes with x_n = 1 and with x_n = 0.
    epsilon : float
        The epsilon.

    Returns
    -------
    delta : float
        The delta needed.
    event : Event
        The event.

    Examples
    --------
    >>> delta, event = worst_event(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.4, 0.4]), epsilon=0.1)
    >>> round(delta, 3), event.name
    (0.279, 'one of 1 outcomes over e^0.1 times as likely with x_n = 1')
    """
    found = [one_direction(p1, p0, epsilon, side) for side in (1, 0)]
    deltas = [delta for delta, _ in found]
    return max(deltas), found[best_of(deltas, close=1e-12)][1]


def one_direction(p1: FloatArray, p0: FloatArray, epsilon: float, side: int) -> tuple[float, Event]:
    """Find the delta that one direction needs at an epsilon, and the event that needs it (see `worst_event`).

    Parameters
    ----------
    p1, p0 : array
        The probabilities of the outcomes with x_n = 1 and with x_n = 0.
    epsilon : float
        The epsilon.
    side : {1, 0}
        The likelier member.

    Returns
    -------
    delta : float
        The delta needed.
    event : Event
        The event.
    """
    p, q = (p1, p0) if side == 1 else (p0, p1)
    event = p > factor(epsilon) * q * (1.0 + CLOSE) + _ROUNDING
    what = Outcomes(int(event.sum()), side, epsilon)
    return _over(p, q, epsilon), Event(what, float(p1[event].sum()), float(p0[event].sum()))


def total_variation(p1: FloatArray, p0: FloatArray) -> float:
    """Compute ``max over S of |P_1(S) - P_0(S)|``.

    Parameters
    ----------
    p1, p0 : array
        The probabilities of the outcomes with x_n = 1 and with x_n = 0.

    Returns
    -------
    float
        The total variation distance.
    """
    return max(_over(p1, p0, 0.0), _over(p0, p1, 0.0))


def tail_of_tau(k: int, beyond: bool, decision: int | None = None) -> Ranges:
    """Make the event ``tau <= k`` or ``tau > k`` of the test.

    Parameters
    ----------
    k : int
        The end of the tail.
    beyond : bool
        Whether the event is ``tau > k``.
    decision : {0, 1, -1}, optional
        The decision that is part of the event; None for any decision.

    Returns
    -------
    Ranges
        The event.

    Examples
    --------
    >>> tail_of_tau(3, beyond=True).name, tail_of_tau(3, beyond=False, decision=1).name
    ('tau > 3', 'tau <= 3 and H_null')
    """
    ends = (k + 1, math.inf) if beyond else (-math.inf, k + 1)
    return Ranges((Share((ends,), decision),), "test")


def best_tail(
    p1: FloatArray, p0: FloatArray, floor: float, tail: Callable[[int, bool], What] | None = None
) -> Event | None:
    """Find the tail with the largest ratio, in one direction or the other, among those that are probable enough.

    If tails have the same ratio up to rounding (log ratios within `ties.CLOSE`), the most probable one for the likelier
    member is returned: on a plateau, where every ratio is exp(-epsilon), rounding would choose any. Of tails that are
    also equally probable, it is the shortest of those below, then of those beyond.

    Parameters
    ----------
    p1, p0 : array
        The probabilities of the outcomes with x_n = 1 and with x_n = 0, in the order of tau = 1, 2, ...
    floor : float
        The least probability of a tail for the likelier member.
    tail : callable, optional
        Makes an event of (k, beyond), for the first k outcomes or the ones beyond. By default `tail_of_tau`.

    Returns
    -------
    Event or None
        The tail; None if no tail is probable enough.

    Examples
    --------
    >>> best_tail(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.4, 0.4]), floor=0.1).name
    'tau <= 1'
    """
    tail = tail or tail_of_tau
    found = []
    below = np.cumsum(p1), np.cumsum(p0)
    above = np.cumsum(p1[::-1])[::-1][1:], np.cumsum(p0[::-1])[::-1][1:]
    for beyond, (one, zero) in ((False, below), (True, above)):
        likely = np.maximum(one, zero)
        # an event that is impossible for one member may have a tiny probability by rounding
        ratio = np.abs(np.log(np.maximum(one, _ROUNDING)) - np.log(np.maximum(zero, _ROUNDING)))
        worthy = np.where(likely >= floor * (1.0 - 1e-12), ratio, -1.0)
        if worthy.size and worthy.max() >= 0.0:
            k = best_of(worthy, likely)
            found.append(Event(tail(k + 1, beyond), float(one[k]), float(zero[k])))
    return largest(found)


def largest(events: Sequence[Event | None]) -> Event | None:
    """Find the event with the largest ratio, in one direction or the other.

    Parameters
    ----------
    events : sequence of Event or None
        The events. None is ignored.

    Returns
    -------
    Event or None
        The event. Of those with the same ratio up to rounding, it is the most probable one. None if there is no event.
    """
    known = [event for event in events if event is not None]
    if not known:
        return None
    ratios, sizes = ([f(event) for event in known] for f in (_ratio, _size))
    return known[best_of(ratios, sizes)]


def _ratio(event: Event) -> float:
    return abs(event.log_ratio)


def _size(event: Event) -> float:
    return max(event.p1, event.p0)
