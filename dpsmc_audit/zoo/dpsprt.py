"""DP-SPRT, a second private sequential test (Michel, Basu, Kaufmann, AISTATS 2026), as an example for audits.

H_0: mean mu0 against H_1: mean mu1. After n samples with sum S_n it stops with H_1 if ``S_n + Y_n >= T1(n) + Z`` and
with H_0 if ``S_n + Y_n <= T0(n) - Z``. Every sum has fresh Laplace noise Y_n. Both thresholds share one
Laplace noise Z, drawn once. With ``theta`` the log odds, ``gamma = max(1/2, 1 - 1/epsilon)`` and ``s = 1.134``

    T1(n) = n mu1 + (ln(1 / (gamma alpha)) - n KL(mu1, mu0)) / (theta1 - theta0) + C(n, alpha)
    T0(n) = n mu0 - (ln(1 / (gamma beta)) - n KL(mu0, mu1)) / (theta1 - theta0) - C(n, beta)
    C(n, a) = (6 / epsilon) ln(max(epsilon, 2) n^s zeta(s) / a).

Z has the scale 2/epsilon and Y_n the scale 4/epsilon. Changing one sample moves all later sums by 1. A shift of Z by 1
(a factor of e^{epsilon/2}) and of the last Y_n by 2 (again e^{epsilon/2}) turns the runs of one data set into those of
the other. So the test is epsilon-differentially private, also for an observer who knows all other samples.

For a given sequence the steps are independent given Z, so the exact law of (tau, o) is an integral over Z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import require
from dpsmc_audit.numerics.arrays import FloatArray, IntArray
from dpsmc_audit.zoo.dpsprt_kernel import integrate, programme, run_fresh, run_given

__all__ = ["DpSprt", "GivenSequence"]


S, ZETA_S = 1.134, 8.049572
"""The published exponent and zeta(s). With them the correction's shares of the error add up to one."""

_PANELS = 96
"""Gauss-Legendre panels of the quadrature over Z, for each sign. They give the stated errors."""


@dataclass(frozen=True)
class DpSprt:
    """The test and its noise. Decision 1 is H_1 (mean mu1), 0 is H_0.

    Parameters
    ----------
    mu0, mu1 : float
        The two means.
    alpha, beta : float
        Levels of the errors under H_0 and under H_1.
    epsilon : float
        The privacy level.
    query_scale, threshold_scale : float
        Scales of Y_n and Z in units of 1/epsilon.
    shared : bool
        Whether both thresholds have the same noise, as published.
    correction : float
        The authors' kappa, a factor of C(n, a). It is 1 as published.

    Raises
    ------
    ParameterError
        If a parameter is outside its range.

    Examples
    --------
    >>> test = DpSprt(mu0=0.3, mu1=0.7, alpha=0.05, beta=0.05, epsilon=1.0)
    >>> low, high = test.thresholds(100)
    >>> float(low[99].round(2)), float(high[99].round(2))  # for the sum of 100 samples
    (-18.16, 118.16)
    """

    mu0: float
    mu1: float
    alpha: float
    beta: float
    epsilon: float
    query_scale: float = 4.0
    threshold_scale: float = 2.0
    shared: bool = True
    correction: float = 1.0

    def __post_init__(self) -> None:
        require(0.0 < self.mu0 < self.mu1 < 1.0, f"0 < mu0 < mu1 < 1 must hold, got {self.mu0}, {self.mu1}")
        for name in ("alpha", "beta"):
            require(0.0 < getattr(self, name) < 1.0, f"{name} must lie in (0, 1), got {getattr(self, name)}")
        for name in ("epsilon", "query_scale", "threshold_scale", "correction"):
            value = getattr(self, name)
            require(0.0 < value < math.inf, f"{name} must be positive, got {value}")

    @property
    def query_noise(self) -> float:
        """Scale of every Y_n."""
        return self.query_scale / self.epsilon

    @property
    def threshold_noise(self) -> float:
        """Scale of Z."""
        return self.threshold_scale / self.epsilon

    @cached_property
    def _lines(self) -> FloatArray:
        """Slope, offset and factor of ln n of T0 and of T1."""
        odds = math.log(self.mu1 / (1.0 - self.mu1)) - math.log(self.mu0 / (1.0 - self.mu0))
        gamma, wide = max(0.5, 1.0 - 1.0 / self.epsilon), 6.0 * self.correction / self.epsilon

        def margin(level: float) -> float:
            return -math.log(gamma * level) / odds + wide * math.log(max(self.epsilon, 2.0) * ZETA_S / level)

        low = (self.mu0 + _divergence(self.mu0, self.mu1) / odds, -margin(self.beta), -wide * S)
        high = (self.mu1 - _divergence(self.mu1, self.mu0) / odds, margin(self.alpha), wide * S)
        return np.array([low, high])

    def thresholds(self, samples: int) -> tuple[FloatArray, FloatArray]:
        """Compute ``T0(n), T1(n)`` for n = 1, ..., samples.

        Parameters
        ----------
        samples : int
            The number of samples.

        Returns
        -------
        low, high : ndarray
            The thresholds.
        """
        n = np.arange(1.0, samples + 1.0)
        low, high = (slope * n + offset + wide * np.log(n) for slope, offset, wide in self._lines)
        return low, high

    def on(self, bits: NDArray[np.integer], entry: int) -> GivenSequence:
        """Make the mechanism that an informed observer audits.

        Parameters
        ----------
        bits : ndarray
            The samples, 0 or 1.
        entry : int
            The sample that the observer does not know, counted from 1.

        Returns
        -------
        GivenSequence
            The mechanism.
        """
        given = np.asarray(bits)
        require(bool(np.all((given == 0) | (given == 1))), "samples must be 0 or 1")
        return GivenSequence(self, given.astype(np.int64), entry)

    def runs(self, p: float, runs: int, rng: np.random.Generator, max_steps: int = 10**7) -> tuple[IntArray, IntArray]:
        """Run the test on fresh samples that are 1 with probability p.

        Parameters
        ----------
        p : float
            The probability.
        runs : int
            The number of runs.
        rng : Generator
            The source of random numbers.
        max_steps : int
            The largest number of samples.

        Returns
        -------
        tau, decision : ndarray
            The results.

        Raises
        ------
        ParameterError
            If a run is undecided after `max_steps` samples.

        Examples
        --------
        >>> test = DpSprt(mu0=0.3, mu1=0.7, alpha=0.05, beta=0.05, epsilon=1.0)
        >>> tau, decision = test.runs(0.7, 2000, np.random.default_rng(1))
        >>> 300 < float(tau.mean()) < 335, float(decision.mean())
        (True, 1.0)
        """
        require(0.0 <= p <= 1.0, f"p must lie in [0, 1], got {p}")
        tau, decision = np.empty(runs, np.int64), np.empty(runs, np.int64)
        noise = (self.query_noise, self.threshold_noise, self.shared)
        unfinished = cast(Callable[..., int], run_fresh)(rng, p, self._lines, *noise, max_steps, tau, decision)
        require(unfinished == 0, f"{unfinished} of {runs} runs drew {max_steps} samples undecided")
        return tau, decision

    def law(self, p: float, max_steps: int = 20_000) -> FloatArray:
        """Compute ``P(tau = n, o)`` on fresh samples that are 1 with probability p, to about 5e-6.

        For each Z a dynamic programme runs over the sum of the samples. Up to 1e-9 of the runs may last longer.

        Parameters
        ----------
        p : float
            The probability.
        max_steps : int
            The largest number of samples.

        Returns
        -------
        ndarray
            Rows o = 0, 1 and columns n = 1, 2, ...

        Raises
        ------
        ParameterError
            If the noise is not shared, or the law needs more samples.

        Examples
        --------
        >>> law = DpSprt(mu0=0.3, mu1=0.7, alpha=0.05, beta=0.05, epsilon=1.0).law(0.7)
        >>> print(f"{law.sum(axis=0) @ np.arange(1, law.shape[1] + 1):.2f}")
        320.94
        """
        require(self.shared, "the law on fresh samples is known for one shared noise of the thresholds")
        z, weight = _nodes(self.threshold_noise, 0.5)
        law, steps = np.zeros((2, 0)), 512
        while law.sum() < 1.0 - 1e-9:
            require(steps <= max_steps, f"the law of DP-SPRT needs more than {max_steps} samples here")
            law = np.zeros((2, steps))
            cast(Callable[..., None], programme)(p, *self.thresholds(steps), self.query_noise, z, weight, law)
            steps *= 2
        return law

    def with_noise(self, share: float) -> DpSprt:
        """Multiply all noise.

        Parameters
        ----------
        share : float
            The factor.

        Returns
        -------
        DpSprt
            The test with that noise.
        """
        return replace(self, query_scale=share * self.query_scale, threshold_scale=share * self.threshold_scale)


def _divergence(p: float, q: float) -> float:
    """Compute the Kullback-Leibler divergence between Bernoulli laws."""
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


# --- one sequence ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GivenSequence:
    """DP-SPRT on given samples, the one at `entry` set to x. A run that outlasts the samples ends there with H_1.

    An instance is a sampler for `audit_mechanism`: ``sampler(x, runs, rng)``.

    Parameters
    ----------
    test : DpSprt
        The test.
    bits : ndarray
        The samples.
    entry : int
        The sample that is set, counted from 1.
    """

    test: DpSprt
    bits: IntArray
    entry: int

    def __post_init__(self) -> None:
        require(1 <= self.entry <= self.bits.size, f"entry must lie in [1, {self.bits.size}], got {self.entry}")

    def distances(self, x: int) -> tuple[FloatArray, FloatArray]:
        """Compute how far the sums are above T0 and below T1, without noise.

        Parameters
        ----------
        x : int
            The value of the entry.

        Returns
        -------
        above, below : ndarray
            The distances.
        """
        bits = self.bits.copy()
        bits[self.entry - 1] = x
        sums, (low, high) = np.cumsum(bits), self.test.thresholds(bits.size)
        return sums - low, high - sums

    def __call__(self, x: int, runs: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Run the test.

        Parameters
        ----------
        x : int
            The value of the entry.
        runs : int
            The number of runs.
        rng : Generator
            The source of random numbers.

        Returns
        -------
        tau, decision : ndarray
            The results.
        """
        tau, decision = np.empty(runs, np.int64), np.empty(runs, np.int64)
        noise = (self.test.query_noise, self.test.threshold_noise, self.test.shared)
        cast(Callable[..., None], run_given)(rng, *self.distances(x), *noise, tau, decision)
        return tau, decision

    def law(self, x: int) -> FloatArray:
        """Compute ``P(tau = n, o)`` to about 1e-6 as an integral over Z.

        Parameters
        ----------
        x : int
            The value of the entry.

        Returns
        -------
        ndarray
            Rows o = 0, 1 and columns n = 1, 2, ...

        Examples
        --------
        >>> test = DpSprt(mu0=0.3, mu1=0.7, alpha=0.05, beta=0.05, epsilon=1.0)
        >>> one, zero = (test.on(np.ones(400, int), entry=1).law(x) for x in (1, 0))
        >>> round(float(one.sum()), 9), round(float(np.log(one[1, 99] / zero[1, 99])), 3)
        (1.0, 0.224)
        """
        low, high = self.distances(x)
        z, weight = _nodes(self.test.threshold_noise, 1.0 if self.test.shared else 0.25)
        first, second = z, z
        if not self.test.shared:
            first, second = (part.ravel() for part in np.meshgrid(z, z))
            weight = np.outer(weight, weight).ravel()
        law = np.zeros((2, low.size))
        cast(Callable[..., None], integrate)(low, high, self.test.query_noise, first, second, weight, law)
        law[1, -1] += 1.0 - law.sum()
        return law


def _nodes(scale: float, fineness: float) -> tuple[FloatArray, FloatArray]:
    """Make nodes and weights for the Laplace law: Gauss-Legendre on panels that meet at its kink at 0.

    Panels are narrower near 0, where the mass is, because the laws of Y_n have kinks wherever a sum meets a bound. They
    reach out to 36 scales, which leaves out e^-36.
    """
    points, weights = np.polynomial.legendre.leggauss(8)
    panels = int(_PANELS * fineness)
    side = 36.0 * np.linspace(0.0, 1.0, panels + 1) ** 2
    edges = np.concatenate([-side[:0:-1], side])
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    z = (middle[:, None] + half[:, None] * points).ravel()
    mass = (half[:, None] * weights).ravel() * 0.5 * np.exp(-np.abs(z))
    return scale * z, mass / mass.sum()
