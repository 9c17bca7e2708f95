"""Lower confidence bounds on epsilon and on delta from a fixed number of runs of both members.

A pilot makes the events, a second part of the runs chooses among them, a third part judges the chosen one or two. Runs
are independent, and no run affects the choice of an event that it judges. Then for any two laws

    P(epsilon_lower > epsilon of the truth, or delta_lower > delta of the truth) <= 1 - confidence,

where the truth is the smallest epsilon for the given delta, and the smallest delta for the given epsilon. Each
proportion gets a one-sided Clopper-Pearson end; the level is shared by proportions, events and directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.events import Counted, Family, family_of, joined
from dpsmc_audit.evidence.intervals import lower_ends, upper_ends
from dpsmc_audit.evidence.power import POWER, smallest_events
from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Event
from dpsmc_audit.numerics.ties import best_of

__all__ = ["FEWEST", "PARTS", "Parts", "bounded_verdict", "part_of", "shows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PARTS = 3
_PATTERN = np.array([0, 0, *[1] * 6, *[2] * 12])
"""Of twenty runs in a row two make the events, six choose, twelve judge."""


FEWEST = 20
"""The fewest runs of each member: with fewer, a part would be empty."""


def part_of(first: int, count: int) -> IntArray:
    """Compute the part of each run: 0 makes the events, 1 chooses, 2 judges.

    Parameters
    ----------
    first : int
        The number of the first run, counted from 0.
    count : int
        The number of consecutive runs.

    Returns
    -------
    array of int
        The part of the runs first, first + 1, ...
    """
    return np.asarray(_PATTERN[(first + np.arange(count)) % _PATTERN.size])


@dataclass(frozen=True, eq=False)
class Parts:
    """Counted outcomes of both members, by part.

    Parameters
    ----------
    members : pair of tuples of Counted
        ``members[0]`` has x = 1, ``members[1]`` has x = 0. Each holds one table for each part.
    """

    members: tuple[tuple[Counted, ...], tuple[Counted, ...]]

    def part(self, *which: int) -> tuple[Counted, Counted]:
        """Return the outcomes of both members in one part, or in several parts together.

        Parameters
        ----------
        *which : int
            The parts.

        Returns
        -------
        one, zero : Counted
            The outcomes with x = 1 and with x = 0.
        """
        one, zero = (joined([member[k] for k in which]) for member in self.members)
        return one, zero


@dataclass(frozen=True, eq=False)
class _Ends:
    """For each event: P(event) of the likelier member from below and of the other from above, in both directions."""

    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, one: IntArray, zero: IntArray, runs: tuple[int, int], level: float) -> _Ends:
        low = np.array([lower_ends(one, runs[0], level), lower_ends(zero, runs[1], level)])
        high = np.array([upper_ends(zero, runs[1], level), upper_ends(one, runs[0], level)])
        return cls(low, high)

    def epsilon(self, delta: float) -> FloatArray:
        """Compute ``ln((P_low - delta) / Q_high)``, a lower bound on epsilon."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(self.low - delta, 0.0)) - np.log(self.high)

    def delta(self, epsilon: float) -> FloatArray:
        """Compute ``P_low - exp(epsilon) Q_high``, a lower bound on delta."""
        return np.asarray(self.low - factor(epsilon) * self.high)


def bounded_verdict(
    parts: Parts,
    epsilon: float,
    delta: float,
    confidence: float,
    floor: float | None = 0.01,
) -> Finding:
    """Judge a claim of (epsilon, delta), with both lower bounds. The head of this module states the guarantee.

    Parameters
    ----------
    parts : Parts
        The runs of both members.
    epsilon, delta : float
        The claim.
    confidence : float
        The confidence of both lower bounds together.
    floor : float, optional
        The probability of the events for which the smallest detectable epsilon is reported. None leaves out everything
        about detectable violations.

    Returns
    -------
    Finding
        The verdict, both lower bounds and, if the claim is violated, the event that shows it.

    Examples
    --------
    >>> from dpsmc_audit.evidence.events import outcome_code
    >>> rng = np.random.default_rng(1)
    >>> def counted(q: int) -> tuple[Counted, ...]:
    ...     tau = np.floor(10 * (q + rng.exponential(size=(3, 20_000)))).astype(int)
    ...     return tuple(Counted.of(outcome_code(part, np.zeros(20_000, int))) for part in tau)
    >>> found = bounded_verdict(Parts((counted(0), counted(1))), epsilon=1.0, delta=0.0, confidence=0.99)
    >>> f"{found.verdict}", found.witness.name, found.epsilon_lower > 7, found.delta_lower > 0.61
    ('violated', 'tau <= 9', True, True)
    """
    whole = 1.0 - confidence
    family = family_of(*parts.part(0))
    chosen = _chosen(family, parts.part(1), epsilon, delta, whole)
    judged, level = parts.part(2), whole / (2 * len(chosen))
    counts, runs = [family.count(member) for member in judged], (judged[0].runs, judged[1].runs)
    ends = _Ends.of(counts[0], counts[1], runs, level)
    pick = tuple(np.array(chosen).T)
    epsilons, deltas = ends.epsilon(delta)[pick], ends.delta(epsilon)[pick]
    bound, share = max(float(epsilons.max()), 0.0), max(float(deltas.max()), 0.0)
    could = None
    if floor is not None:
        least = min(level, 0.25 * whole)  # as if two events had been chosen
        could = smallest_events(lambda p, q: shows(min(runs), p, q, epsilon, delta, least), floor, epsilon, delta)
        could = replace(could, events="a tail, a bin or a set of bins")
    if share <= delta and bound <= epsilon:
        return Finding(Verdict.CONSISTENT, bound, share, None, could=could)
    event = chosen[best_of(epsilons if bound > epsilon else deltas)][1]
    p1, p0 = (float(count[event]) / n for count, n in zip(counts, runs, strict=True))
    return Finding(Verdict.VIOLATED, bound, share, Event(family.what(event), p1, p0), could=could)


def _chosen(
    family: Family, sample: tuple[Counted, Counted], epsilon: float, delta: float, level: float
) -> list[tuple[int, int]]:
    """Choose the (direction, event) with the largest bound on epsilon, and that with the largest bound on delta.

    A set of cells must be better than tails and bins by a tenth: it is fitted to the pilot, and hard to read. If bounds
    are equal up to rounding, the first one is chosen: direction 1 over 0, and tails before bins before sets.
    """
    one, zero = (family.count(member) for member in sample)
    ends = _Ends.of(one, zero, (sample[0].runs, sample[1].runs), 0.25 * level)
    best = []
    for score in (ends.epsilon(delta), ends.delta(epsilon)):
        fair = np.where((family.kind == "ratio") & (score > 0.0), 0.9 * score, score)
        direction, event = np.unravel_index(best_of(fair.ravel()), score.shape)
        best.append((int(direction), int(event)))
    return list(dict.fromkeys(best))


def shows(
    runs: int, likely: float, other: float, epsilon: float, delta: float, level: float, power: float = POWER
) -> bool:
    """Tell whether an event with these probabilities, once it is judged, refutes the claim with enough probability.

    Both counts are taken at their worst. Each is missed with half of what is left of the power.

    Parameters
    ----------
    runs : int
        The number of runs of each member that judge.
    likely, other : float
        The probability of the event for the likelier member and for the other.
    epsilon, delta : float
        The claim.
    level : float
        The level of each proportion.
    power : float
        The probability of a refutation.

    Returns
    -------
    bool
        Whether the event refutes the claim with probability `power` or more.
    """
    miss = 0.5 * (1.0 - power)
    few, many = np.array([_quantile(miss, runs, likely)]), np.array([_quantile(1.0 - miss, runs, other)])
    low, high = float(lower_ends(few, runs, level)[0]), float(upper_ends(many, runs, level)[0])
    return low - factor(epsilon) * high > delta


def _quantile(share: float, runs: int, p: float) -> int:
    """Find the smallest count that a binomial does not exceed with probability `share` or more."""
    from scipy.special import betaincc

    low, high = -1, runs
    while high - low > 1:
        middle = (low + high) // 2
        at_most = float(betaincc(middle + 1.0, runs - middle, p))  # bdtr takes at most 2^31 runs
        low, high = (middle, high) if at_most < share else (low, middle)
    return high
