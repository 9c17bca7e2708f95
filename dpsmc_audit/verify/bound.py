"""An upper bound of what one release gives away, proven for every p_phi, every sample and every number of samples.

Fix all samples but the n-th, and write the walk with x_n = 1; with x_n = 0 it is lower by ``c = s_plus + s_minus`` from
the n-th sample on. Let A_x be the set of L for which the run stops after k samples with H_null. If L is in A_0, then
``L + c`` is in A_1: the upper bound is met at the same sample, and the lower one is further away. What A_1 holds beyond
``A_0 + c`` are those L that

- lie within c above the record of the first n - 1 samples, or
- lie further above it, and let the walk come within 2 c of the lower bound and stop above later.

The mirror image holds for H_alt. L and ``L + c`` have densities within a factor of ``exp(c / scale)``, so with
epsilon = c / scale

    delta(epsilon) <= max_x P(x < L <= x + c) + P(the walk comes within 2 c of one bound, and stops at the other).

The first term holds for any samples whatsoever. The second needs independent samples: Wald's martingale bounds it, with
``exp(-h Lambda)`` for any exponent h, that is for any p_phi, and with overshoots of at most a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Exponential, Laplace, Mechanism, Truncated
from dpsmc_audit.sprt import Sprt

__all__ = ["Bound", "crossing", "proven_bound", "ruin", "window"]

FloatArray = NDArray[np.float64]

_STRATA, _EXPONENTS = 250, 100
"""Intervals of L, and of the exponent on either side of 0, for a fineness of 1."""

_FINE = 4
"""More intervals make the bound smaller, by 5 % at most; it holds with any number of them."""

_ROUNDING = 1e-12
"""More than the sums of positive numbers below can be off by."""


@dataclass(frozen=True)
class Bound:
    """``delta(epsilon) <= delta`` for one epsilon, in both directions, and what follows for every other."""

    epsilon: float
    delta: float

    def at(self, epsilon: float) -> float:
        """The delta at any epsilon.

        Below `epsilon` it follows from the trade-off between the two errors of a test of x_n = 1 against x_n = 0, both
        of which are at best ``(1 - delta) / (1 + exp(epsilon))`` at once. At 0 it bounds the total variation.

        Examples
        --------
        >>> Bound(math.log(3.0), 0.0).at(0.0)  # randomised response with 3/4 against 1/4
        0.5
        """
        if epsilon >= self.epsilon:
            return self.delta
        # (1 + e^x) / (1 + e^y) without overflow
        ratio = math.exp(epsilon - self.epsilon) * (1.0 + math.exp(-epsilon)) / (1.0 + math.exp(-self.epsilon))
        return 1.0 - (1.0 - self.delta) * ratio


def ruin(exponent: FloatArray, start: FloatArray, width: FloatArray) -> FloatArray:
    """``(1 - exp(-h start)) / (1 - exp(-h width))`` for ``0 <= start <= width``, its limit ``start / width`` at h = 0.

    The probability that a continuous martingale ``exp(-h Lambda)`` leads from `start` up to `width` before it leads
    down to 0. It grows with h and with `start`, and falls with `width`.
    """
    h = np.abs(exponent)
    small = h * width < 1e-9
    scale = np.where(small, 1.0, h)
    share = np.where(small, start / width, np.expm1(-scale * start) / np.expm1(-scale * width))
    return np.where(exponent < 0.0, share * np.exp(-h * (width - start)), share)


def _scale(mechanism: Mechanism) -> float | None:
    """The length over which the density of L changes by a factor of e at most; None where it is not known."""
    if isinstance(mechanism, Exponential):
        return 1.0 / mechanism.rate
    return mechanism.scale if isinstance(mechanism, (Laplace, Truncated)) else None


def window(test: Sprt, mechanism: Exponential | Laplace | Truncated) -> float:
    """``max_x P(x < L <= x + c)`` over those x that leave room between the bounds: about the mode of L.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> round(window(test, Exponential.private(test, 0.01)), 6), round(window(test, Laplace(30.0, test.step_sum)), 6)
    (0.00995, 0.393469)
    """
    center = 0.0 if isinstance(mechanism, Exponential) else mechanism.center
    lowest = max(float(mechanism.quantile(0.0)), test.no_room)
    begin = max(center - 0.5 * test.step_sum, lowest)
    return float(mechanism.survival(begin) - mechanism.survival(begin + test.step_sum))


def _edges(test: Sprt, mechanism: Mechanism, fine: int) -> FloatArray:
    """Where intervals of L begin: from c above the smallest L on (below, `window` has counted it), ever wider."""
    begin = max(float(mechanism.quantile(0.0)), test.no_room) + test.step_sum
    room, top = begin - test.no_room, float(mechanism.quantile(1.0 - 1e-13)) - test.no_room
    return test.no_room + np.geomspace(room, max(top, 2.0 * room), _STRATA * fine)


def _exponents(test: Sprt, mechanism: Mechanism, fine: int) -> FloatArray:
    """Exponents h of either sign, from where the bounds are hardly told from those of no drift to a steep walk."""
    room = min(test.b_up, test.b_low) + max(float(mechanism.quantile(0.5)), 0.5 * test.no_room)
    steep = 40.0 / test.step_sum
    positive = np.geomspace(min(1e-3 / room, 1e-3 * steep), steep, _EXPONENTS * fine)
    return np.concatenate([-positive[::-1], [0.0], positive])


def crossing(test: Sprt, mechanism: Mechanism, *, turned: bool = False, fine: int = _FINE) -> float:
    """P(the walk comes within 2 c of the lower bound, and stops at the upper one later), at most, for every p_phi.

    With `turned` the bounds change places. The walk comes near the lower bound with a probability that falls with the
    exponent h, and stops at the upper one from there with a probability that grows with it. So between two exponents
    the product is at most that of the larger probabilities, and the same holds between two values of L.
    """
    up, low, step_up, step_down = test.b_up, test.b_low, test.s_plus, test.s_minus
    if turned:
        up, low, step_up, step_down = low, up, step_down, step_up
    edges = _edges(test, mechanism, fine)
    masses = np.maximum(-np.diff(mechanism.survival(edges), append=0.0), 0.0)
    wider = np.append(edges[1:], edges[-1])  # of the last interval, which is endless, see below
    near = 2.0 * test.step_sum
    above, below = up + wider + step_up, np.maximum(low + edges - near, 0.0)
    start = near + step_down
    width = np.maximum(up + low + 2.0 * edges + step_down, start)
    exponents = _exponents(test, mechanism, fine)
    reached = ruin(-exponents[:, None], above, above + below)
    reached[:, -1] = 1.0
    back = ruin(exponents[:, None], np.full_like(width, start), width)
    least, most = np.vstack([np.ones_like(width), reached]), np.vstack([back, np.ones_like(width)])
    return float((least * most * masses).sum(axis=1).max())


def proven_bound(test: Sprt, mechanism: Mechanism, *, fine: int = _FINE) -> Bound | None:
    """What (tau, o) gives away of one sample at most, whichever it is and whatever p_phi is.

    None for laws of L whose shift by c is not known to be bounded: without noise, and those of scipy.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> bound = proven_bound(test, Exponential.private(test, 0.01))
    >>> round(bound.epsilon, 9), round(bound.at(0.01), 3), round(bound.at(0.0), 3)
    (0.01, 0.018, 0.023)
    """
    scale = _scale(mechanism)
    if scale is None:
        return None
    assert isinstance(mechanism, (Exponential, Laplace, Truncated))
    far = max(crossing(test, mechanism, turned=turned, fine=fine) for turned in (False, True))
    return Bound(test.step_sum / scale, min(window(test, mechanism) + far + _ROUNDING, 1.0))
