"""No noise, and the one-sided noise of Algorithm 2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpsmc_audit.errors import require
from dpsmc_audit.mechanisms.protocol import Atoms, check_epsilon
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.sprt import Sprt

__all__ = ["Exponential", "NoNoise"]


@dataclass(frozen=True)
class NoNoise:
    """Algorithm 1: L = 0, the plain test.

    Examples
    --------
    >>> NoNoise().quantile([0.1, 0.9]).tolist()
    [0.0, 0.0]
    """

    name: ClassVar[str] = "none"
    atoms: ClassVar[Atoms | None] = ((0.0, 1.0),)

    @classmethod
    def private(cls, test: Sprt, epsilon: float) -> Self:
        """Make the law. Algorithm 1 has no noise, so the privacy level is not used.

        Parameters
        ----------
        test : Sprt
            The test.
        epsilon : float
            The privacy level.

        Returns
        -------
        NoNoise
            The law.
        """
        return cls()

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess).

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            1 below 0, and 0 from 0 on.
        """
        return np.where(np.asarray(excess, dtype=np.float64) < 0.0, 1.0, 0.0)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            Zeros: L is always 0.
        """
        return np.zeros_like(np.asarray(u, dtype=np.float64))


@dataclass(frozen=True)
class Exponential:
    """Algorithm 2: ``L ~ Exp(epsilon / (s_plus + s_minus))``, the paper's randomised stopping condition.

    Parameters
    ----------
    rate : float
        One over the mean of L.

    Examples
    --------
    >>> law = Exponential.private(Sprt(p=0.73, delta=0.01, alpha=0.01), epsilon=0.05)
    >>> round(1 / law.rate, 3)
    2.03
    >>> float(law.survival(law.quantile(0.25)))
    0.75
    """

    name: ClassVar[str] = "exponential"
    atoms: ClassVar[Atoms | None] = None
    rate: float

    def __post_init__(self) -> None:
        require(0.0 < self.rate < math.inf, f"the rate of L must be positive and finite, got {self.rate}")

    @property
    def scale(self) -> float:
        """The mean of L, over which its density falls by a factor of e."""
        return 1.0 / self.rate

    @classmethod
    def private(cls, test: Sprt, epsilon: float) -> Self:
        """Make the law for which the paper proves ``2 epsilon``.

        Parameters
        ----------
        test : Sprt
            The test.
        epsilon : float
            The privacy level.

        Returns
        -------
        Exponential
            The law.
        """
        check_epsilon(cls.name, epsilon)
        return cls(epsilon / test.step_sum)

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess).

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            The probabilities.
        """
        return np.exp(-self.rate * np.maximum(np.asarray(excess, dtype=np.float64), 0.0))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies.
        """
        return np.log1p(-np.asarray(u, dtype=np.float64)) / -self.rate
