"""Wald's identities with measured overshoots: mean and error for any bounds from one law, where bounds are far apart.

They replace the dynamic programme where it would visit too many cells (no drift, wide bounds). They are also the smooth
part of the averages over L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.fixed import Steps, cells_needed, walk_until_exit
from dpsmc_audit.numerics.sums import dot, tilted
from dpsmc_audit.sprt import Sprt

__all__ = ["BUDGET", "Overshoots", "overshoots", "turned_up"]

FloatArray = NDArray[np.float64]

BUDGET = 2e8
"""Cells that the law for one pair of bounds may visit before Wald's identities replace it."""


@dataclass(frozen=True)
class Overshoots:
    """Moments of the overshoot at each bound. They hardly depend on the bounds if these are many steps apart.

    The walk is turned so that it does not drift down. With h >= 0 the exponent, ``exp(-h Lambda) - 1 + h Lambda - h D
    N`` is a martingale. So E[tau] is the mean of a convex function of the end point, without cancellation however small
    the drift.

    Parameters
    ----------
    walk : Steps
        The walk, turned so that it does not drift down.
    turned : bool
        Whether the walk was turned upside down.
    h : float
        The exponent, not negative.
    up, low : tuple of float
        For the overshoot z at the upper and at the lower bound of the turned walk: E[z], E[z^2] and E[exp(-h Lambda)]
        with the bound at 0. The last is E[exp(-h z)] above and E[exp(h z)] below.
    """

    walk: Steps
    turned: bool
    h: float
    up: tuple[float, float, float]
    low: tuple[float, float, float]

    def rare(self, b_up: float, b_low: float) -> float:
        """Compute P(leave against the drift), by the harmonic function ``S(x) = (1 - exp(-h x)) / h``.

        Parameters
        ----------
        b_up, b_low : float
            Distances of the upper and the lower bound of the test from 0.

        Returns
        -------
        float
            The probability. Without drift it is that of leaving below.
        """
        if self.turned:
            b_up, b_low = b_low, b_up
        return self._rare(b_up, b_low)

    def _rare(self, b_up: float, b_low: float) -> float:
        h = self.h
        if h * (b_up + b_low) < 1e-7:
            above, below = b_up + self.up[0], b_low + self.low[0]
            return above / (above + below)
        if h * b_low > 600.0:
            return 0.0
        above = 1.0 - math.exp(-h * b_up) * self.up[2]
        below = math.exp(h * b_low) * self.low[2] - 1.0
        return above / (above + below)

    def mean(self, b_up: float, b_low: float) -> float:
        """Compute the mean number of samples, by the martingale of the class.

        Parameters
        ----------
        b_up, b_low : float
            Distances of the upper and the lower bound of the test from 0.

        Returns
        -------
        float
            E[tau].
        """
        if self.turned:
            b_up, b_low = b_low, b_up
        rare, h = self._rare(b_up, b_low), self.h
        (r, rr, k), (q, qq, j) = self.up, self.low
        if h * (b_up + b_low) < 1e-4:
            second = (1.0 - rare) * (b_up**2 + 2.0 * b_up * r + rr) + rare * (b_low**2 + 2.0 * b_low * q + qq)
            third = (1.0 - rare) * (b_up**3 + 3.0 * b_up * (b_up * r + rr))
            third -= rare * (b_low**3 + 3.0 * b_low * (b_low * q + qq))
            step_second = self.walk.p_up * self.walk.up**2 + (1.0 - self.walk.p_up) * self.walk.down**2
            step_third = self.walk.p_up * self.walk.up**3 - (1.0 - self.walk.p_up) * self.walk.down**3
            return (second - h * third / 3.0) / (step_second - h * step_third / 3.0)
        if h * b_low > 50.0:
            return (b_up + r) / self.walk.drift
        above = math.exp(-h * b_up) * k - 1.0 + h * (b_up + r)
        below = math.exp(h * b_low) * j - 1.0 - h * (b_low + q)
        return ((1.0 - rare) * above + rare * below) / (h * self.walk.drift)


@lru_cache(maxsize=64)
def overshoots(test: Sprt, p_phi: float, scale: float = 1.0) -> Overshoots:
    """Measure the overshoots at bounds ``30 (s_plus + s_minus)`` wider than the test's, or at affordable ones.

    The bounds are made narrower until the law is affordable and shows the rare side. A `scale` below 1 makes them
    narrower still. The change in a result is then the uncertainty from using these overshoots for all bounds.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    scale : float
        Factor of the bounds.

    Returns
    -------
    Overshoots
        The moments.
    """
    h, (turned, walk, b_up, b_low) = abs(test.exponent(p_phi)), turned_up(test, p_phi)
    wider = 30.0 * test.step_sum
    for width in (wider + max(b_up, b_low)) * 0.8 ** np.arange(200.0):
        up, low = min(b_up + wider, float(width)), min(b_low + wider, float(width))
        if cells_needed(walk, up, low) <= BUDGET and (h * low <= 15.0 or low <= b_low):
            break
    law = walk_until_exit(walk, scale * up, scale * low)

    def moments(probability: FloatArray, over: FloatArray, sign: float) -> tuple[float, float, float]:
        total = float(probability.sum())
        if total == 0.0:
            return 0.0, 0.0, 1.0
        share = probability / total
        return float(dot(share, over)), float(dot(share, over**2)), float(tilted(share, -sign * h, over))

    return Overshoots(walk, turned, h, moments(law.null, law.over_null, 1.0), moments(law.alt, law.over_alt, -1.0))


def turned_up(test: Sprt, p_phi: float) -> tuple[bool, Steps, float, float]:
    """Return the walk and its bounds, upside down if the walk drifts down.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.

    Returns
    -------
    turned : bool
        Whether the walk was turned.
    walk : Steps
        The walk, which does not drift down.
    b_up, b_low : float
        Distances of its upper and its lower bound from 0.
    """
    walk = Steps.of(test, p_phi)
    if walk.drift < 0.0:
        return True, walk.mirrored(), test.b_low, test.b_up
    return False, walk, test.b_up, test.b_low
