"""DP-SPRT, a second private sequential test (Michel, Basu, Kaufmann, AISTATS 2026), as a mechanism under audit.

H_0: mean mu0 against H_1: mean mu1. After n samples with sum S_n it stops with H_1 if ``S_n + Y_n >= T1(n) + Z`` and
with H_0 if ``S_n + Y_n <= T0(n) - Z``: fresh Laplace noise Y_n on every sum, one Laplace Z on both thresholds, drawn
once. With ``theta`` the log odds, ``gamma = max(1/2, 1 - 1/epsilon)`` and ``s = 1.134``

    T1(n) = n mu1 + (ln(1 / (gamma alpha)) - n KL(mu1, mu0)) / (theta1 - theta0) + C(n, alpha)
    T0(n) = n mu0 - (ln(1 / (gamma beta)) - n KL(mu0, mu1)) / (theta1 - theta0) - C(n, beta)
    C(n, a) = (6 / epsilon) ln(max(epsilon, 2) n^s zeta(s) / a).

Z has the scale 2/epsilon and Y_n the scale 4/epsilon. Changing one sample moves all later sums by 1, so a shift of Z
by 1 (a factor of e^{epsilon/2}) and of the last Y_n by 2 (again e^{epsilon/2}) turns the runs of one member into
those of the other: epsilon-differential privacy, for whoever knows all other samples.

For a given sequence the steps are independent once Z is given, so the law of (tau, o) is an integral over Z: exact.
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
from dpsmc_audit.numerics.jit import kernel

__all__ = ["DpSprt", "GivenSequence"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

S, ZETA_S = 1.134, 8.049572
"""The published exponent and zeta(s), with which the correction's shares of the error add up to one."""

_REACH, _PANELS, _NODES = 36.0, 96, 8
"""Quadrature over Z: as many scales to either side (e^-36 is left out), Gauss-Legendre panels and nodes in each."""


@dataclass(frozen=True)
class DpSprt:
    """The test and its noise; `query_scale` and `threshold_scale` are in units of 1/epsilon.

    With ``shared=False`` the two thresholds have independent noise, and `correction` (the authors' kappa) multiplies
    C(n, a): neither is as published. Decision 1 is H_1 (mean mu1), 0 is H_0.

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
        """``T0(n), T1(n)`` for n = 1, ..., samples."""
        n = np.arange(1.0, samples + 1.0)
        low, high = (slope * n + offset + wide * np.log(n) for slope, offset, wide in self._lines)
        return low, high

    def on(self, bits: NDArray[np.integer], entry: int) -> GivenSequence:
        """The mechanism an informed observer audits: this sequence, with the sample at `entry` (from 1) under test."""
        given = np.asarray(bits)
        require(bool(np.all((given == 0) | (given == 1))), "samples must be 0 or 1")
        return GivenSequence(self, given.astype(np.int64), entry)

    def runs(self, p: float, runs: int, rng: np.random.Generator, max_steps: int = 10**7) -> tuple[IntArray, IntArray]:
        """(tau, o) on fresh samples that are 1 with probability p.

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
        unfinished = cast(Callable[..., int], _fresh)(rng, p, self._lines, *noise, max_steps, tau, decision)
        require(unfinished == 0, f"{unfinished} of {runs} runs drew {max_steps} samples undecided")
        return tau, decision

    def law(self, p: float, max_steps: int = 20_000) -> FloatArray:
        """``P(tau = n, o)`` on fresh samples that are 1 with probability p, to about 5e-6; 1e-9 may run on.

        For each Z a programme over the sum of the samples; rows o = 0, 1 and columns n = 1, 2, ...

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
            cast(Callable[..., None], _programme)(p, *self.thresholds(steps), self.query_noise, z, weight, law)
            steps *= 2
        return law

    def with_noise(self, share: float) -> DpSprt:
        """The same with all noise multiplied by `share`."""
        return replace(self, query_scale=share * self.query_scale, threshold_scale=share * self.threshold_scale)


def _divergence(p: float, q: float) -> float:
    """Kullback-Leibler divergence between Bernoulli laws."""
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


# --- one sequence ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GivenSequence:
    """DP-SPRT on given samples, the one at `entry` set to x. A run that outlasts the samples ends there with H_1.

    An instance is a sampler for `audit_mechanism`: ``sampler(x, runs, rng)``.
    """

    test: DpSprt
    bits: IntArray
    entry: int

    def __post_init__(self) -> None:
        require(1 <= self.entry <= self.bits.size, f"entry must lie in [1, {self.bits.size}], got {self.entry}")

    def distances(self, x: int) -> tuple[FloatArray, FloatArray]:
        """How far the sums are above T0 and below T1, without noise."""
        bits = self.bits.copy()
        bits[self.entry - 1] = x
        sums, (low, high) = np.cumsum(bits), self.test.thresholds(bits.size)
        return sums - low, high - sums

    def __call__(self, x: int, runs: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """(tau, o) of so many runs."""
        tau, decision = np.empty(runs, np.int64), np.empty(runs, np.int64)
        noise = (self.test.query_noise, self.test.threshold_noise, self.test.shared)
        cast(Callable[..., None], _given)(rng, *self.distances(x), *noise, tau, decision)
        return tau, decision

    def law(self, x: int) -> FloatArray:
        """``P(tau = n, o)`` to about 1e-6, in rows o = 0, 1 and columns n = 1, 2, ...: an integral over Z.

        Examples
        --------
        >>> test = DpSprt(mu0=0.3, mu1=0.7, alpha=0.05, beta=0.05, epsilon=1.0)
        >>> one, zero = (test.on(np.ones(400, int), entry=1).law(x) for x in (1, 0))
        >>> round(float(one.sum()), 9), round(float(np.log(one[1, 99] / zero[1, 99])), 3)
        (1.0, 0.224)
        """
        low, high = self.distances(x)
        z, weight = _nodes(self.test.threshold_noise, 1.0 if self.test.shared else 0.25)
        law = np.zeros((2, low.size))
        if self.test.shared:
            cast(Callable[..., None], _integrate)(low, high, self.test.query_noise, z, z, weight, law)
        else:
            first, second = (part.ravel() for part in np.meshgrid(z, z))
            weights = np.outer(weight, weight).ravel()
            cast(Callable[..., None], _integrate)(low, high, self.test.query_noise, first, second, weights, law)
        law[1, -1] += 1.0 - law.sum()
        return law


def _nodes(scale: float, fineness: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the Laplace law: Gauss-Legendre on panels that meet at 0, where its density has a kink.

    They are narrower near 0, where the mass is: the laws of Y_n bring kinks of their own wherever a sum meets a bound.
    """
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    panels = int(_PANELS * fineness)
    side = _REACH * np.linspace(0.0, 1.0, panels + 1) ** 2
    edges = np.concatenate([-side[:0:-1], side])
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    z = (middle[:, None] + half[:, None] * points).ravel()
    mass = (half[:, None] * weights).ravel() * 0.5 * np.exp(-np.abs(z))
    return scale * z, mass / mass.sum()


@kernel
def _beyond(distance, scale):
    """P(a Laplace variable of this scale exceeds the distance)."""
    return 0.5 * math.exp(-distance / scale) if distance > 0.0 else 1.0 - 0.5 * math.exp(distance / scale)


@kernel
def _integrate(above, below, scale, z_low, z_high, weight, law):
    """Add up P(tau = n, o) over noise of the thresholds: a step stops above with H_1 first, as in the package."""
    for k in range(weight.size):
        alive = weight[k]
        for n in range(above.size):
            up = _beyond(below[n] + z_high[k], scale)
            down = min(_beyond(above[n] + z_low[k], scale), 1.0 - up)
            law[1, n] += alive * up
            law[0, n] += alive * down
            alive *= 1.0 - up - down
            if alive < 1e-18 * weight[k]:
                break


@kernel
def _programme(p, low, high, scale, z, weight, law):
    """The same for fresh samples: how the sum of those still running is distributed, sample by sample."""
    alive, new = np.zeros(low.size + 2), np.zeros(low.size + 2)
    for k in range(weight.size):
        alive[:] = 0.0
        alive[0] = weight[k]
        first, last = 0, 0
        for n in range(low.size):
            last += 1
            mass = 0.0
            for total in range(first, last + 1):
                here = alive[total] * (1.0 - p) + (alive[total - 1] * p if total > first else 0.0)
                up = _beyond(high[n] - total + z[k], scale)
                down = min(_beyond(total - low[n] + z[k], scale), 1.0 - up)
                law[1, n] += here * up
                law[0, n] += here * down
                new[total] = here * (1.0 - up - down)
                mass += new[total]
            alive[first : last + 1] = new[first : last + 1]
            while first < last and alive[first] < 1e-16 * weight[k]:
                alive[first] = 0.0
                first += 1
            while last > first and alive[last] < 1e-16 * weight[k]:
                alive[last] = 0.0
                last -= 1
            if mass < 1e-13 * weight[k]:
                break


@kernel
def _laplace(rng, scale):
    return scale * rng.standard_exponential() * (1.0 if rng.random() < 0.5 else -1.0)


@kernel
def _given(rng, above, below, query, threshold, shared, tau, decision):
    """Runs on one sequence; the sign of Y_n is drawn only where its size could stop the run."""
    for i in range(tau.size):
        z_high = _laplace(rng, threshold)
        z_low = z_high if shared else _laplace(rng, threshold)
        tau[i], decision[i] = above.size, 1
        for n in range(above.size):
            size = query * rng.standard_exponential()
            up, down = below[n] + z_high, above[n] + z_low
            if size < up and size < down:
                continue
            noise = size if rng.random() < 0.5 else -size
            if noise >= up:
                tau[i] = n + 1
                break
            if -noise >= down:
                tau[i], decision[i] = n + 1, 0
                break


@kernel
def _fresh(rng, p, lines, query, threshold, shared, max_steps, tau, decision):
    """Runs on fresh samples; how many of them reached the cap."""
    unfinished = 0
    for i in range(tau.size):
        z_high = _laplace(rng, threshold)
        z_low = z_high if shared else _laplace(rng, threshold)
        total, outcome, n = 0.0, -1, 0
        while outcome < 0 and n < max_steps:
            n += 1
            total += 1.0 if rng.random() < p else 0.0
            size, log = query * rng.standard_exponential(), math.log(n)
            up = lines[1, 0] * n + lines[1, 1] + lines[1, 2] * log + z_high - total
            down = total - (lines[0, 0] * n + lines[0, 1] + lines[0, 2] * log) + z_low
            if size < up and size < down:
                continue
            noise = size if rng.random() < 0.5 else -size
            if noise >= up:
                outcome = 1
            elif -noise >= down:
                outcome = 0
        tau[i], decision[i] = n, outcome
        unfinished += outcome < 0
    return unfinished
