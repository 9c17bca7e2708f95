"""At which L an average termination time reaches the edge of a bin, enclosed from both sides.

``g_x(L) = E[tau | L, x_n = x]`` is a staircase in L that does not fall, and continuous from the left: tau > k exactly
if L exceeds the excess record after k samples. So ``P(g_x(L) >= a) = P(L > l)`` with one l for each edge a. Each
method knows g up to a numerical error, and finds two L: up to `low` the average is surely below the edge, beyond `high`
it surely is not. They are one step of the staircase unless g comes as near to the edge as it is uncertain: then the
steps on which it does lie between them, and probabilities are enclosed from both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.mechanisms import Atoms, Law, Mechanism
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray
from dpsmc_audit.sprt import Sprt

__all__ = ["Reached", "Tails", "by_line", "reached_at", "tails_between", "tails_of_atoms"]

UNIT = 2.0**-53

SURVIVAL_ERROR = ((1e-13, 0.0), (1e-12, 1e-15))
"""Relative and absolute error of a survival function: of ours (an exponential of a rounded number of at most 400: a few
units of rounding of that), and what is taken for those of `scipy`."""


@dataclass(frozen=True, eq=False)
class Reached:
    """The L at which an average reaches each edge, enclosed from both sides.

    Parameters
    ----------
    low, high : ndarray
        Up to `low` the average is surely below the edge, beyond `high` it surely is not.
    at : ndarray
        The L that is used.
    known : ndarray
        Where `at` is that L but for rounding: two edges with one such L are reached together.
    """

    low: FloatArray
    at: FloatArray
    high: FloatArray
    known: BoolArray


@dataclass(frozen=True, eq=False)
class Tails:
    """``P(g_x(L) >= edge)`` for each edge.

    Parameters
    ----------
    low, value, high : ndarray
        The probability, and what it surely lies between. Results show `value`.
    step : ndarray
        Edges with the same `step` are reached together; nan where that is not known.
    """

    low: FloatArray
    value: FloatArray
    high: FloatArray
    step: FloatArray

    def bins(self) -> Tails:
        """Return the probabilities between each edge and the next one. The last bin is open."""
        empty = self.step == np.append(self.step[1:], math.nan)

        def between(here: FloatArray, there: FloatArray) -> FloatArray:
            return np.where(empty, 0.0, np.maximum(here - np.append(there[1:], 0.0), 0.0))

        ends = between(self.low, self.high), between(self.value, self.value), between(self.high, self.low)
        return Tails(*ends, self.step)

    def cut(self, count: int) -> Tails:
        """Keep the first edges.

        Parameters
        ----------
        count : int
            How many edges are kept.

        Returns
        -------
        Tails
            The tails at these edges.
        """
        return Tails(self.low[:count], self.value[:count], self.high[:count], self.step[:count])


def tails_between(test: Sprt, mechanism: Mechanism, points: FloatArray, reached: Reached) -> Tails:
    """Compute the probability of reaching each edge from the L at which it is reached.

    Every tau is at least 1, so the tail is 1 at edges up to 1. If L cannot be as small as `high`, the tail is 1 too.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    points : ndarray
        The edges.
    reached : Reached
        The L at which each edge is reached, enclosed from both sides.

    Returns
    -------
    Tails
        The probabilities, enclosed from both sides.
    """
    always, least = points <= 1.0, float(mechanism.quantile(0.0))
    relative, absolute = SURVIVAL_ERROR[isinstance(mechanism, Law)]

    def survival(excess: FloatArray) -> FloatArray:
        # up to `no_room` a coin decides, and every average is 1
        return np.asarray(mechanism.survival(np.maximum(excess, test.no_room)), np.float64)

    low = np.maximum(survival(reached.high) * (1.0 - relative) - absolute, 0.0)
    low = np.where(np.maximum(reached.high, test.no_room) < least, 1.0, low)
    high = np.minimum(survival(reached.low) * (1.0 + relative) + absolute, 1.0)
    high = np.where(np.isinf(reached.low) & (reached.low > 0.0), 0.0, high)
    value = np.clip(survival(reached.at), low, high)
    low, value, high = (np.where(always, 1.0, tail) for tail in (low, value, high))
    return Tails(low, value, high, np.where(reached.known & ~always, reached.at, math.nan))


def reached_at(tails: Tails, mechanism: Mechanism) -> list[tuple[float, float]]:
    """Find what the L lies between at which an average reaches each edge.

    Parameters
    ----------
    tails : Tails
        The probability of reaching each edge.
    mechanism : Mechanism
        The law of L.

    Returns
    -------
    list of tuple
        The lower and the upper end for each edge. Where all L reach it, they are -inf and the smallest L.
    """
    found, least = [], float(mechanism.quantile(0.0))
    for low, high, step in zip(tails.low.tolist(), tails.high.tolist(), tails.step.tolist(), strict=True):
        if low == 1.0:
            found.append((-math.inf, least))
        elif not math.isnan(step):
            found.append((step, step))
        else:  # quantiles are those of 1 - tail, which is rounded
            shares = 1.0 - np.array([high * (1.0 + 1e-12), low * (1.0 - 1e-12)])
            ends = mechanism.quantile(np.clip(shares + np.array([-4.0, 4.0]) * UNIT, 0.0, 1.0))
            found.append((float(ends[0]), float(ends[1])))
    return found


# --- an L that takes few values -------------------------------------------------------------------------------------


def tails_of_atoms(atoms: Atoms, averages: Sequence[Enclosure], points: FloatArray) -> Tails:
    """Compute the probability of reaching each edge from the average at each value of L.

    A value of L counts for `low` at the edges that its average surely reaches. If there are several values, they are
    listed up to a total probability of 1e-12, and the ends allow for it.

    Parameters
    ----------
    atoms : tuple of tuple
        The values of L and their probabilities.
    averages : sequence of Enclosure
        The average termination time at each value.
    points : ndarray
        The edges.

    Returns
    -------
    Tails
        The probabilities, enclosed from both sides.
    """
    low, value, high = (np.zeros(points.size) for _ in range(3))
    for (_, share), average in zip(atoms, averages, strict=True):
        low += share * (average.value - average.error >= points)
        value += share * (average.value + average.error >= points)
    high = value.copy()
    if len(atoms) > 1:
        low, high = np.maximum(low - 1e-12, 0.0), high + 1e-12
    always = points <= 1.0
    low, value, high = (np.where(always, 1.0, np.minimum(tail, 1.0)) for tail in (low, value, high))
    return Tails(low, value, high, np.full(points.size, math.nan))


# --- samples that are certain ---------------------------------------------------------------------------------------


def by_line(test: Sprt, p_phi: float, entries: tuple[int, ...], points: FloatArray) -> tuple[Reached, Reached]:
    """Find the L of each edge where samples are certain (p_phi is 0 or 1).

    There tau is at least v for every L above the record after v - 1 samples. No average is rounded. The records are
    rounded, by as much as sums of that many steps.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds: 0 or 1.
    entries : tuple of int
        The samples that differ, counted from 1.
    points : ndarray
        The edges.

    Returns
    -------
    tuple of Reached
        For x = 1 and x = 0.
    """
    steps = np.arange(math.ceil(points.max()) + 1)
    reached = []
    for bit in (1, 0):
        ones = steps * p_phi + sum((steps >= entry) * (bit - p_phi) for entry in entries)
        walk = ones * test.s_plus - (steps - ones) * test.s_minus
        excess = np.maximum(walk - test.b_up, -walk - test.b_low)
        excess[0] = -math.inf
        record = np.maximum.accumulate(excess)
        before = np.maximum(np.ceil(points).astype(np.int64) - 1, 0)
        at = np.where(before > 0, np.maximum(record[before], test.no_room), -math.inf)
        off = rounding(test, steps.size, at)
        reached.append(Reached(at - off, at, at + off, np.ones(points.size, np.bool_)))
    return reached[0], reached[1]


def rounding(test: Sprt, steps: int, excess: FloatArray) -> FloatArray:
    """Bound the rounding error of an L that is a position of the walk less its bound.

    Parameters
    ----------
    test : Sprt
        The test.
    steps : int
        The longest walk.
    excess : ndarray
        The values of L.

    Returns
    -------
    ndarray
        The bounds.
    """
    finite = np.where(np.isfinite(excess), np.abs(excess), 0.0)
    return np.asarray(4.0 * UNIT * (steps * test.step_sum + max(test.b_up, test.b_low) + finite))
