"""At which L an average reaches an edge: edge by edge, by bisection of the exact mean."""

from __future__ import annotations

import math

import numpy as np

from dpsmc_audit.exact.fixed import ExitLaw, cells_needed, exit_law
from dpsmc_audit.exact.walk import Steps
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.observers.expected.edges import UNIT, Reached, rounding
from dpsmc_audit.sprt import Sprt

__all__ = ["SECONDS", "bisected", "by_bisection", "mean_of", "seconds_needed"]


SECONDS = 8.0
"""What finding edges by bisection may take."""


def by_bisection(
    test: Sprt, p_phi: float, entries: tuple[int, ...], points: FloatArray, lowest: float, far: float
) -> tuple[Reached, Reached] | None:
    """Find the L of both members, edge by edge.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds.
    entries : tuple of int
        The samples that differ, counted from 1.
    points : ndarray
        The edges.
    lowest : float
        The smallest L that leaves room between the bounds.
    far : float
        An L at which the averages of both members are beyond the last edge.

    Returns
    -------
    tuple of Reached, or None
        For x = 1 and x = 0; None where this would take too long.
    """
    if 2.0 * points.size * seconds_needed(test, p_phi, np.array([far])) > SECONDS:
        return None
    low, high = np.full(points.size, -math.inf), np.full(points.size, math.inf)
    nothing = Reached(low, low, high, np.zeros(points.size, np.bool_))
    one, zero = (bisected(test, p_phi, dict.fromkeys(entries, bit), points, nothing, lowest, far) for bit in (1, 0))
    return one, zero


def seconds_needed(test: Sprt, p_phi: float, excess: FloatArray) -> float:
    """Estimate how long it takes to find the edges that one member reaches near these L.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds.
    excess : ndarray
        The values of L.

    Returns
    -------
    float
        Seconds.
    """
    walk = Steps.of(test, p_phi)
    return sum(30.0 * (2e-4 + 1e-9 * cells_needed(walk, test.b_up + x, test.b_low + x)) for x in excess.tolist())


def mean_of(law: ExitLaw) -> tuple[float, float]:
    """Compute the mean of tau and a bound on its numerical error.

    The law states the error of its probabilities and of what is still running; the sum of so many products adds
    one unit of rounding each. Nothing is rounded where tau is certain: all probabilities are 0 or 1 there.

    Parameters
    ----------
    law : ExitLaw
        The law of tau between fixed bounds.

    Returns
    -------
    tuple of float
        The mean and the bound.
    """
    stopped = law.null + law.alt
    if law.alive == 0.0 and law.lost == 0.0 and float(stopped.max()) == 1.0 == float(stopped.sum()):
        return float(np.flatnonzero(stopped)[0] + 1), 0.0
    return law.mean, law.mean_error + 2.0 * UNIT * (law.null.size + 2) * law.mean


class _Average:
    """g by the dynamic programme, remembered."""

    def __init__(self, test: Sprt, p_phi: float, forced: dict[int, int]) -> None:
        self.test, self.p_phi, self.forced = test, p_phi, forced
        self.known: dict[float, tuple[float, float]] = {}
        self.longest = 0

    def __call__(self, excess: float) -> tuple[float, float]:
        if excess not in self.known:
            law = exit_law(self.test, self.p_phi, excess, self.forced)
            self.known[excess] = mean_of(law)
            self.longest = max(self.longest, law.null.size)
        return self.known[excess]

    def first(self, edge: float, surely: bool, begin: float, end: float) -> tuple[float, float]:
        """Two L a billionth of a step apart: the first does not reach the edge, surely or possibly, the second does.

        (begin, begin) if already the first one does, (end, inf) if not even the last one does.
        """

        def reached(excess: float) -> bool:
            mean, error = self(excess)
            return mean - error >= edge if surely else mean + error >= edge

        if reached(begin):
            return begin, begin
        if not reached(end):
            return end, math.inf
        low, high = begin, end
        while high - low > 1e-9 * self.test.step_sum and low < 0.5 * (low + high) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if reached(middle) else (middle, high)
        return low, high


def bisected(
    test: Sprt, p_phi: float, forced: dict[int, int], points: FloatArray, within: Reached, lowest: float, far: float
) -> Reached:
    """Enclosures inside those given. Walks meet rounded bounds: as if L were off by that much (tau grows with L).

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds.
    forced : dict
        The value of each forced sample, counted from 1.
    points : ndarray
        The edges.
    within : Reached
        Where to look.
    lowest, far : float
        The smallest and the largest L.

    Returns
    -------
    Reached
        The enclosures.
    """
    average, found = _Average(test, p_phi, forced), []
    for point, low, high in zip(points.tolist(), within.low.tolist(), within.high.tolist(), strict=True):
        begin, end = max(low, lowest), min(high, far)
        if point <= 1.0 or begin >= end:
            found.append((low, low, high))
            continue
        below, at = average.first(point, False, begin, end)
        above = average.first(point, True, begin, end)[1]
        off = float(rounding(test, average.longest, np.array(end)))
        if above == lowest > test.least_room:
            found.append((-math.inf, -math.inf, -math.inf))  # no L is smaller, and this one does
            continue
        # where already the smallest L may do, nothing more is known of `low`; nor of `high` if the largest may not
        found.append((low, low, min(above + off, high)) if at == begin else (below - off, at, min(above + off, high)))
    columns = np.array(found).reshape(-1, 3).T
    return Reached(columns[0], columns[1], columns[2], np.zeros(points.size, np.bool_))
