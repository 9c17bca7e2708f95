"""The sequential probability ratio test of the paper: its parameters and what follows from them.

The walk ``Lambda_N = K s_plus - (N - K) s_minus`` (the paper's log-likelihood ratio) moves up by ``s_plus`` on a sample
that satisfies the specification and down by ``s_minus`` on one that does not. Algorithm 1 stops when it leaves
``(-b_low, b_up)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dpsmc_audit.errors import check_probability, require

__all__ = ["Sprt", "WaldApproximation"]


_ON_THE_BOUND = 1.0 - 1e-9
"""Factor of both bounds. A walk exactly on its bound has reached it, but rounding can put it on either side. With
p = 1/2 this happens: bounds can be whole numbers of steps. One part in 10^9 is more than rounding and less than any
result shows."""


@dataclass(frozen=True)
class WaldApproximation:
    """Wald's classical approximation, which ignores by how much the walk overshoots its bounds.

    Parameters
    ----------
    samples : float
        Mean samples.
    null_probability : float
        P(H_null).
    """

    samples: float
    null_probability: float


@dataclass(frozen=True)
class Sprt:
    """Test of H_null: p_phi >= p + delta against H_alt: p_phi <= p - delta.

    Parameters
    ----------
    p : float
        Threshold the satisfaction probability is compared with.
    delta : float
        Indifference parameter of Assumption 1, ``|p_phi - p| > delta``.
    alpha : float
        Significance level, for each kind of error that has no level of its own.
    alpha_fp, alpha_fn : float, optional
        Level for returning H_alt under H_null, and for returning H_null under H_alt (the paper's footnote).

    Raises
    ------
    ParameterError
        If a parameter is outside its range.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> round(test.b_up, 4), round(test.s_plus, 5), round(test.s_minus, 5)
    (4.5951, 0.0274, 0.07411)
    >>> round(test.expected_sensitivity(0.84), 3)
    9.097
    """

    p: float
    delta: float
    alpha: float
    alpha_fp: float | None = None
    alpha_fn: float | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "alpha_fp", "alpha_fn"):
            value = getattr(self, name)
            require(value is None or 0.0 < value < 0.5, f"{name} must lie in (0, 0.5), got {value}")
            require(value is None or value >= 1e-12, f"{name} must be at least 1e-12, got {value}")
        require(0.0 < self.delta < math.inf, f"delta must be positive, got {self.delta}")
        # below 1e-9 the hypotheses differ by less than the rounding of their probabilities
        require(self.delta >= 1e-9, f"delta must be at least 1e-09, got {self.delta}")
        inside = self.p - self.delta > 0.0 and self.p + self.delta < 1.0
        require(inside, f"p - delta and p + delta must lie in (0, 1), got p={self.p}, delta={self.delta}")

    @property
    def fp(self) -> float:
        """Level of P(return H_alt) under H_null."""
        return self.alpha if self.alpha_fp is None else self.alpha_fp

    @property
    def fn(self) -> float:
        """Level of P(return H_null) under H_alt."""
        return self.alpha if self.alpha_fn is None else self.alpha_fn

    @cached_property
    def s_plus(self) -> float:
        """Step of the walk on a sample that satisfies the specification."""
        return math.log1p(2.0 * self.delta / (self.p - self.delta))

    @cached_property
    def s_minus(self) -> float:
        """Step (downwards) on a sample that violates the specification."""
        return math.log1p(2.0 * self.delta / (1.0 - self.p - self.delta))

    @property
    def step_sum(self) -> float:
        """``c = s_plus + s_minus``: by how much one changed sample moves the walk."""
        return self.s_plus + self.s_minus

    @cached_property
    def b_up(self) -> float:
        """Wald's upper bound, ``ln((1 - fp) / fn)``; ``ln((1 - alpha) / alpha)`` with one level."""
        return _ON_THE_BOUND * math.log((1.0 - self.fp) / self.fn)

    @cached_property
    def b_low(self) -> float:
        """Distance of the lower bound, ``ln((1 - fn) / fp)``."""
        return _ON_THE_BOUND * math.log((1.0 - self.fn) / self.fp)

    @property
    def no_room(self) -> float:
        """The L at and below which no room is left between the bounds. A fair coin then decides after one sample."""
        return -min(self.b_up, self.b_low)

    @property
    def least_room(self) -> float:
        """The smallest L that leaves room in practice: 1e-9 of c above `no_room`, or the next float."""
        return max(self.no_room + 1e-9 * self.step_sum, math.nextafter(self.no_room, math.inf))

    def drift(self, p_phi: float) -> float:
        """Compute the mean step ``D = p_phi s_plus - (1 - p_phi) s_minus``.

        Parameters
        ----------
        p_phi : float
            The satisfaction probability.

        Returns
        -------
        float
            The drift.
        """
        check_probability("p_phi", p_phi)
        return p_phi * self.s_plus - (1.0 - p_phi) * self.s_minus

    def expected_sensitivity(self, p_phi: float) -> float:
        """Compute ``Delta_tau = (s_plus + s_minus) / |D|``, the paper's expected sensitivity lemma.

        Parameters
        ----------
        p_phi : float
            The satisfaction probability.

        Returns
        -------
        float
            The sensitivity, inf without drift.
        """
        drift = abs(self.drift(p_phi))
        return self.step_sum / drift if drift > 0.0 else math.inf

    def assumption_holds(self, p_phi: float) -> bool:
        """Check Assumption 1: p_phi lies outside the indifference region.

        Parameters
        ----------
        p_phi : float
            The satisfaction probability.

        Returns
        -------
        bool
            Whether it holds.
        """
        return abs(p_phi - self.p) > self.delta * (1.0 + 1e-9)  # in floating point 0.74 - 0.73 > 0.01

    def null_is_true(self, p_phi: float) -> bool:
        """Evaluate the true answer, ``p_phi > p``, also inside the indifference region.

        Parameters
        ----------
        p_phi : float
            The satisfaction probability.

        Returns
        -------
        bool
            Whether H_null is the right answer.
        """
        return p_phi > self.p

    def exponent(self, p_phi: float) -> float:
        """Solve ``p_phi exp(-h s_plus) + (1 - p_phi) exp(h s_minus) = 1`` for its nonzero root h.

        ``exp(-h Lambda_N)`` is then a martingale, and P(ever hit -b) is about ``exp(-h b)`` for h > 0. h has the sign
        of the drift. It is 1 at ``p + delta``, -1 at ``p - delta``, 0 without drift and infinite where p_phi is 0 or 1.

        Parameters
        ----------
        p_phi : float
            The satisfaction probability.

        Returns
        -------
        float
            The exponent h.
        """
        drift = self.drift(p_phi)
        if p_phi in (0.0, 1.0):
            return math.copysign(math.inf, drift)
        if drift < 0.0:
            return -_root_of_positive_drift(1.0 - p_phi, self.s_minus, self.s_plus)
        return _root_of_positive_drift(p_phi, self.s_plus, self.s_minus) if drift > 0.0 else 0.0

    def wald(self, p_phi: float, excess: float = 0.0) -> WaldApproximation:
        """Approximate mean samples and P(H_null) with both bounds enlarged.

        Parameters
        ----------
        p_phi : float
            The satisfaction probability.
        excess : float
            By how much the bounds are enlarged.

        Returns
        -------
        WaldApproximation
            The approximation.
        """
        up, low = self.b_up + excess, self.b_low + excess
        drift, h = self.drift(p_phi), self.exponent(p_phi)
        if math.isinf(h):
            reached, distance = (1.0, up) if h > 0 else (0.0, -low)
            return WaldApproximation(distance / drift, reached)
        if abs(h) * (up + low) < 1e-4:  # the limit is accurate to (h b)^2; the general form loses digits here
            variance = p_phi * self.s_plus**2 + (1.0 - p_phi) * self.s_minus**2
            return WaldApproximation(up * low / variance, low / (up + low))
        if h > 0:
            null = -math.expm1(-h * low) / -math.expm1(-h * (up + low))
        else:
            null = math.exp(h * up) * math.expm1(h * low) / math.expm1(h * (up + low))
        return WaldApproximation((null * up - (1.0 - null) * low) / drift, null)


def _root_of_positive_drift(p_up: float, up: float, down: float) -> float:
    """Find the root of the convex ``p_up (e^{-h up} - 1) + (1 - p_up) (e^{h down} - 1)`` by Newton from the right.

    In exact arithmetic every step is to the left. A step that is not has met rounding.
    """
    h = -math.log1p(-p_up) / down
    for _ in range(200):
        value = p_up * math.expm1(-h * up) + (1.0 - p_up) * math.expm1(h * down)
        slope = (1.0 - p_up) * down * math.exp(h * down) - p_up * up * math.exp(-h * up)
        if slope <= 0.0 or h - value / slope >= h:
            break
        h -= value / slope
    return h
