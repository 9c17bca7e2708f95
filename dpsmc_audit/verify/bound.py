"""A proven upper bound of what one release leaks, for every p_phi, every sample and every number of samples.

Fix all samples but the n-th, and write the walk with x_n = 1. With x_n = 0 it is lower by ``c = s_plus + s_minus`` from
the n-th sample on. Let A_x be the set of L for which the run stops after k samples with H_null. If L is in A_0, then
``L + c`` is in A_1: the upper bound is met at the same sample, and the lower one is further away. The rest of A_1,
beyond ``A_0 + c``, consists of those L that

- lie within c above the record of the first n - 1 samples, or
- lie further above it, and let the walk come within 2 c of the lower bound and stop above later.

The mirror image holds for H_alt. L and ``L + c`` have densities within a factor of ``exp(c / scale)``, so with
epsilon = c / scale

    delta(epsilon) <= max_x P(x < L <= x + c) + P(the walk comes within 2 c of one bound, and stops at the other).

The first term holds for any samples. The second needs independent samples. Wald's martingale ``exp(-h Lambda)`` bounds
it for any exponent h, that is for any p_phi, with overshoots of at most a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsmc_audit.mechanisms import Exponential, Laplace, Mechanism, Truncated
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.sprt import Sprt

__all__ = ["Bound", "crossing", "proven_bound", "ruin", "window"]


@dataclass(frozen=True)
class Bound:
    """A bound at one epsilon, in both directions. It implies a bound at every other epsilon.

    Parameters
    ----------
    epsilon, delta : float
        ``delta(epsilon) <= delta``.
    """

    epsilon: float
    delta: float

    def at(self, epsilon: float) -> float:
        """Compute the bound at any epsilon.

        Below `epsilon` it follows from the trade-off between the two errors of a test of x_n = 1 against x_n = 0. Both
        are at best ``(1 - delta) / (1 + exp(epsilon))`` at once. At 0 it bounds the total variation.

        Parameters
        ----------
        epsilon : float
            The privacy level.

        Returns
        -------
        float
            The delta.

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
    """Compute ``(1 - exp(-h start)) / (1 - exp(-h width))``, with the limit ``start / width`` at h = 0.

    This is the probability that a continuous martingale ``exp(-h Lambda)`` leads from `start` up to `width` before it
    leads down to 0. It grows with h and with `start`, and falls with `width`.

    Parameters
    ----------
    exponent : ndarray
        The exponents h.
    start, width : ndarray
        With ``0 <= start <= width``.

    Returns
    -------
    ndarray
        The probabilities.
    """
    h = np.abs(exponent)
    small = h * width < 1e-9
    scale = np.where(small, 1.0, h)
    share = np.where(small, start / width, np.expm1(-scale * start) / np.expm1(-scale * width))
    return np.where(exponent < 0.0, share * np.exp(-h * (width - start)), share)


def window(test: Sprt, mechanism: Exponential | Laplace | Truncated) -> float:
    """Compute ``max_x P(x < L <= x + c)`` over those x that leave room between the bounds. It is taken at the mode.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Exponential or Laplace or Truncated
        The law of L.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> round(window(test, Exponential.private(test, 0.01)), 6), round(window(test, Laplace(30.0, test.step_sum)), 6)
    (0.00995, 0.393469)
    """
    center = 0.0 if isinstance(mechanism, Exponential) else mechanism.center
    begin = max(center - 0.5 * test.step_sum, _lowest(test, mechanism))
    return float(mechanism.survival(begin) - mechanism.survival(begin + test.step_sum))


def _lowest(test: Sprt, mechanism: Mechanism) -> float:
    """The smallest L that leaves room between the bounds."""
    return max(float(mechanism.quantile(0.0)), test.no_room)


def crossing(test: Sprt, mechanism: Mechanism, *, turned: bool = False, fine: int = 4) -> float:
    """Bound P(the walk comes within 2 c of the lower bound, and stops at the upper one later) for every p_phi.

    The probability to come near the lower bound falls with the exponent h. The probability to stop at the upper one
    from there grows with h. So between two exponents the product is at most that of the larger probabilities. The same
    holds between two values of L.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    turned : bool
        Exchange the two bounds.
    fine : int
        Intervals of L come in 250 * fine, exponents of each sign in 100 * fine. The bound holds with any number. More
        intervals than for 4 make it smaller by 5 % at most.

    Returns
    -------
    float
        The bound.
    """
    up, low, step_up, step_down = test.b_up, test.b_low, test.s_plus, test.s_minus
    if turned:
        up, low, step_up, step_down = low, up, step_down, step_up
    # Intervals of L begin at c above the smallest L (`window` counts those below) and become wider.
    begin = _lowest(test, mechanism) + test.step_sum
    room, top = begin - test.no_room, float(mechanism.quantile(1.0 - 1e-13)) - test.no_room
    edges = test.no_room + np.geomspace(room, max(top, 2.0 * room), 250 * fine)
    masses = np.maximum(-np.diff(mechanism.survival(edges), append=0.0), 0.0)
    wider = np.append(edges[1:], edges[-1])  # the last interval has no end; it is treated below
    near = 2.0 * test.step_sum
    above, below = up + wider + step_up, np.maximum(low + edges - near, 0.0)
    start = near + step_down
    width = np.maximum(up + low + 2.0 * edges + step_down, start)
    exponents = _exponents(test, mechanism, 100 * fine)
    reached = ruin(-exponents[:, None], above, above + below)
    reached[:, -1] = 1.0
    back = ruin(exponents[:, None], np.full_like(width, start), width)
    least, most = np.vstack([np.ones_like(width), reached]), np.vstack([back, np.ones_like(width)])
    return float((least * most * masses).sum(axis=1).max())


def _exponents(test: Sprt, mechanism: Mechanism, count: int) -> FloatArray:
    """Exponents h of both signs, from nearly no drift to a steep walk."""
    room = min(test.b_up, test.b_low) + max(float(mechanism.quantile(0.5)), 0.5 * test.no_room)
    steep = 40.0 / test.step_sum
    positive = np.geomspace(min(1e-3 / room, 1e-3 * steep), steep, count)
    return np.concatenate([-positive[::-1], [0.0], positive])


def proven_bound(test: Sprt, mechanism: Mechanism, *, fine: int = 4) -> Bound | None:
    """Bound what (tau, o) leaks about one sample, whichever sample and whatever p_phi.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    fine : int
        As for `crossing`.

    Returns
    -------
    Bound or None
        None if no bound is known for shifts of L by c: without noise, and for laws of scipy.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> bound = proven_bound(test, Exponential.private(test, 0.01))
    >>> round(bound.epsilon, 9), round(bound.at(0.01), 3), round(bound.at(0.0), 3)
    (0.01, 0.018, 0.023)
    """
    if not isinstance(mechanism, (Exponential, Laplace, Truncated)):
        return None
    far = max(crossing(test, mechanism, turned=turned, fine=fine) for turned in (False, True))
    rounding = 1e-12  # more than the sums of positive numbers above can be off by
    return Bound(test.step_sum / mechanism.scale, min(window(test, mechanism) + far + rounding, 1.0))
