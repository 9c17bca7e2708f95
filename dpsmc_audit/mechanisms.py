"""Barrier mechanisms: laws for the excess L that is drawn once and added to both bounds of the test.

A walk with excess record ``X_k = max_j max(Lambda_j - b_up, -Lambda_j - b_low)`` stops at the first k with
``X_k >= L``. So a law for L is all there is to know about a mechanism: ``P(tau > k) = survival(X_k)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsmc_audit.sprt import Sprt, require

__all__ = ["MECHANISMS", "Exponential", "Mechanism", "NoNoise", "mechanism_named", "sample"]

FloatArray = NDArray[np.float64]


class Mechanism(Protocol):
    """What the walks and the exact laws ask of a law for L."""

    name: ClassVar[str]

    @property
    def atom(self) -> float | None:
        """The one value of L, where there is no randomness; else None."""
        ...

    def __hash__(self) -> int:
        """Mechanisms are frozen: what was computed for one is remembered."""
        ...

    def survival(self, excess: ArrayLike) -> FloatArray:
        """P(L > excess): the chance that a walk with this excess record is still running."""
        ...

    def quantile(self, u: ArrayLike) -> FloatArray:
        """The L below which a share u of the law lies; of a uniform u, a draw of L."""
        ...

    def nodes(self, count: int, tilt: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Points and weights with ``E[exp(-tilt L) g(L)] ~ sum(weights * g(points))`` for a slowly varying g."""
        ...


@dataclass(frozen=True)
class NoNoise:
    """Algorithm 1: L = 0, the plain test.

    Examples
    --------
    >>> NoNoise().quantile([0.1, 0.9]).tolist()
    [0.0, 0.0]
    """

    name: ClassVar[str] = "none"
    atom: ClassVar[float | None] = 0.0

    @classmethod
    def private(cls, test: Sprt, epsilon: float) -> Self:
        """Algorithm 1 has no noise to calibrate; the privacy level is not used."""
        return cls()

    def survival(self, excess: ArrayLike) -> FloatArray:
        return np.where(np.asarray(excess, dtype=np.float64) < 0.0, 1.0, 0.0)

    def quantile(self, u: ArrayLike) -> FloatArray:
        return np.zeros_like(np.asarray(u, dtype=np.float64))

    def nodes(self, count: int, tilt: float = 0.0) -> tuple[FloatArray, FloatArray]:
        return np.zeros(1), np.ones(1)


@dataclass(frozen=True)
class Exponential:
    """Algorithm 2: ``L ~ Exp(epsilon / (s_plus + s_minus))``, the paper's randomised stopping condition.

    Examples
    --------
    >>> law = Exponential.private(Sprt(p=0.73, delta=0.01, alpha=0.01), epsilon=0.05)
    >>> round(1 / law.rate, 3)
    2.03
    >>> float(law.survival(law.quantile(0.25)))
    0.75
    """

    name: ClassVar[str] = "exponential"
    atom: ClassVar[float | None] = None
    rate: float

    def __post_init__(self) -> None:
        require(0.0 < self.rate < math.inf, f"the rate of L must be positive and finite, got {self.rate}")

    @classmethod
    def private(cls, test: Sprt, epsilon: float) -> Self:
        """The law the paper proves ``2 epsilon`` for."""
        require(0.0 < epsilon < math.inf, f"epsilon must be positive for mechanism {cls.name}, got {epsilon}")
        require(1e-9 <= epsilon <= 1e9, f"epsilon must lie in [1e-9, 1e9], got {epsilon}")
        return cls(epsilon / test.step_sum)

    def survival(self, excess: ArrayLike) -> FloatArray:
        return np.exp(-self.rate * np.maximum(np.asarray(excess, dtype=np.float64), 0.0))

    def quantile(self, u: ArrayLike) -> FloatArray:
        return -np.log1p(-np.asarray(u, dtype=np.float64)) / self.rate

    def nodes(self, count: int, tilt: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Gauss-Laguerre for the tilted law, which is again exponential, with rate ``rate + tilt``."""
        points, weights = _laguerre(count)
        rate = self.rate + tilt
        return points / rate, weights * (self.rate / rate)


@lru_cache(maxsize=32)
def _laguerre(count: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.laguerre.laggauss(count)


def sample(law: Mechanism, rng: np.random.Generator, size: int) -> FloatArray:
    """Independent draws of L, by inversion.

    Examples
    --------
    >>> draws = sample(Exponential(rate=2.0), np.random.default_rng(1), 100_000)
    >>> abs(float(draws.mean()) - 0.5) < 0.01
    True
    """
    return law.quantile(rng.random(size))


MECHANISMS: dict[str, type[NoNoise] | type[Exponential]] = {law.name: law for law in (NoNoise, Exponential)}


def mechanism_named(name: str, test: Sprt, epsilon: float) -> Mechanism:
    """The mechanism a configuration names, calibrated to the test and the privacy level."""
    require(name in MECHANISMS, f"mechanism must be one of {', '.join(MECHANISMS)}, got {name}")
    return MECHANISMS[name].private(test, epsilon)
