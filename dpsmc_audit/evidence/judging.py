"""A claim of any kind against two laws whose privacy profile is enclosed: the verdict from proven ends only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.claims import Point, Promise
from dpsmc_audit.evidence.profiles import factor, one_direction
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Event

__all__ = ["KnownLaws", "OneEvent", "Proven", "enclosed_delta", "proven_delta", "rejudged"]

FloatArray = NDArray[np.float64]
Ends = tuple[FloatArray, FloatArray] | FloatArray

_ROUNDING = 64.0 * 2.0**-53
"""What a sum of differences of probabilities may be off by, as a share of the sum of these probabilities."""

SIDES = (1, 0)
"""The directions of a claim: P_1 over P_0, and P_0 over P_1."""

_FAR = 700.0
"""A delta that is needed beyond this epsilon is needed at any (see `profiles.factor`)."""


class Proven(Protocol):
    """Two laws, as far as they are known."""

    def ends(self, epsilon: float, side: int) -> tuple[float, float]:
        """Bound the delta of one direction: the largest ``P_side(S) - e^epsilon P_other(S)``.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        ...

    def event(self, epsilon: float, side: int) -> Event:
        """Return an event that needs the lower end.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction.

        Returns
        -------
        Event
            The event.
        """
        ...


def enclosed_delta(p: Ends, q: Ends, epsilon: float) -> tuple[float, float]:
    """Bound the largest ``p(S) - e^epsilon q(S)`` over unions of outcomes, each of which is enclosed.

    Parameters
    ----------
    p, q : tuple of two arrays
        The lower and the upper ends of the probability of each outcome.
    epsilon : float
        The epsilon.

    Returns
    -------
    tuple of float
        The lower and the upper end. Rounding of the sums is not taken off.
    """
    times = factor(epsilon)
    low, high = (float(np.maximum(a - times * b, 0.0).sum()) for a, b in ((p[0], q[1]), (p[1], q[0])))
    return low, high


def proven_delta(p: Ends, q: Ends, epsilon: float) -> tuple[float, float]:
    """Bound the largest ``p(S) - e^epsilon q(S)`` over unions of outcomes, and take off the rounding of the sums.

    Parameters
    ----------
    p, q : tuple of two arrays
        The lower and the upper ends of the probability of each outcome.
    epsilon : float
        The epsilon.

    Returns
    -------
    tuple of float
        The lower and the upper end.
    """
    times, (low, high) = factor(epsilon), enclosed_delta(p, q, epsilon)
    off = [_ROUNDING * float(a[a > times * b].sum()) for a, b in ((p[0], q[1]), (p[1], q[0]))]
    return max(low - off[0], 0.0), high + off[1]


@dataclass(frozen=True)
class OneEvent:
    """Laws of which one event is known: it has at least this probability for one member, and none for the other.

    Parameters
    ----------
    known : Event
        The event. The likelier member's probability is the bound.
    """

    known: Event

    def ends(self, epsilon: float, side: int) -> tuple[float, float]:
        """Bound the delta of one direction.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        p, q = (self.known.p1, self.known.p0) if side == 1 else (self.known.p0, self.known.p1)
        return (p * (1.0 - _ROUNDING) if q == 0.0 else 0.0), 1.0

    def event(self, epsilon: float, side: int) -> Event:
        """Return the event.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        Event
            The event.
        """
        return self.known


@dataclass(frozen=True, eq=False)
class KnownLaws:
    """Laws that are known outcome by outcome.

    Parameters
    ----------
    p1, p0 : array
        The probabilities of the outcomes.
    error : float
        What each law may be off by, summed over all outcomes, with the rounding of sums.
    """

    p1: FloatArray
    p0: FloatArray
    error: float

    def ends(self, epsilon: float, side: int) -> tuple[float, float]:
        """Bound the delta of one direction.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        delta, _ = one_direction(self.p1, self.p0, epsilon, side)
        off = (1.0 + factor(epsilon)) * self.error
        return max(delta - off, 0.0), delta + off

    def event(self, epsilon: float, side: int) -> Event:
        """Collect the outcomes that need a delta.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        Event
            The event.
        """
        return one_direction(self.p1, self.p0, epsilon, side)[1]


def rejudged(finding: Finding, promise: Promise, laws: Proven, otherwise: Verdict = Verdict.UNDECIDED) -> Finding:
    """Judge a claim of any kind.

    It is violated if one of its points surely is, and certified if all of them surely hold.

    Parameters
    ----------
    finding : Finding
        The finding for the claim's main epsilon with delta = 0. If that is the claim, the finding is returned as it is.
    promise : Promise
        The claim.
    laws : Proven
        What is known of the two laws.
    otherwise : Verdict
        The verdict if the claim is neither violated nor certified.

    Returns
    -------
    Finding
        The verdict. `epsilon_lower` is for the delta of the claim's main point, `delta_lower` and `delta_upper` for its
        epsilon.

    Examples
    --------
    >>> from dpsmc_audit.evidence.claims import Dp
    >>> from dpsmc_audit.evidence.witness import Outcomes
    >>> laws = OneEvent(Event(Outcomes(1, 1), 0.02, 0.0))
    >>> finding = Finding(Verdict.VIOLATED, math.inf, 0.02, laws.known)
    >>> [f"{rejudged(finding, Dp(1.0, delta), laws).verdict}" for delta in (0.01, 0.03)]
    ['violated', 'undecided']
    """
    main = promise.main
    if promise.points == (Point(main.epsilon, 0.0, 0.0),):
        return finding
    all_ends = {(point, side): laws.ends(point.epsilon, side) for point in (*promise.points, main) for side in SIDES}
    excess = {key: low - _claimed(*key) for key, (low, _) in all_ends.items()}
    point, side = max(excess, key=lambda key: excess[key])
    lower = max(0.0, *(all_ends[main, side][0] for side in SIDES))
    upper = min(1.0, max(all_ends[main, side][1] for side in SIDES))
    found = replace(
        finding,
        epsilon_lower=_epsilon_lower(laws, main),
        delta_lower=lower,
        delta_upper=None if otherwise == Verdict.CONSISTENT else upper,
        verdict=otherwise,
        witness=None,
    )
    if excess[point, side] > 0.0:
        return replace(found, verdict=Verdict.VIOLATED, delta_upper=None, witness=laws.event(point.epsilon, side))
    held = all(high <= _claimed(*key) for key, (_, high) in all_ends.items())
    return replace(found, verdict=Verdict.CERTIFIED) if held else found


def _claimed(point: Point, side: int) -> float:
    return point.delta_1 if side == 1 else point.delta_0


def _epsilon_lower(laws: Proven, main: Point) -> float:
    """Find the largest epsilon at which the claimed delta is surely too small; 0 if there is none."""

    def refuted(epsilon: float) -> bool:
        return any(laws.ends(epsilon, side)[0] > _claimed(main, side) for side in SIDES)

    if refuted(_FAR):
        return math.inf
    low, high = (main.epsilon if main.epsilon < _FAR and refuted(main.epsilon) else 0.0), _FAR
    if low == 0.0 and not refuted(0.0):
        return 0.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
