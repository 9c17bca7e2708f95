"""The smallest violations that a method finds with probability 0.9."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpsmc_audit.evidence.verdict import Detectable

__all__ = ["POWER", "detectable"]

POWER = 0.9
_PROBABILITIES = (0.5, 0.1, 0.01, 0.001)

Shows = Callable[[float, float], bool]
"""Tells whether an event with these two probabilities (the larger first) refutes the claim with probability 0.9."""


def detectable(shows: Shows, floor: float, epsilon: float, delta: float) -> Detectable:
    """Find the smallest detectable violations of a claim, for events of several probabilities.

    They hold for events that the method looks at. An event that no cell of the family separates is not seen at any
    size.

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
        return _smallest(lambda excess: shows(p, p * math.exp(-excess)), epsilon, epsilon + 60.0)

    others = {p: least_epsilon(p) for p in _PROBABILITIES}
    return Detectable(floor, least_epsilon(floor), _smallest(lambda p: shows(p, 0.0), delta, 1.0), others)


def _smallest(found: Callable[[float], bool], low: float, high: float) -> float | None:
    """Find where a condition that holds from some value on begins to hold; None if it fails at the highest value."""
    if not found(high):
        return None
    while high - low > 1e-6 * (high + 1e-9):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if found(middle) else (middle, high)
    return high
