"""Two-sided noise, whole and cut off from below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsmc_audit.errors import require
from dpsmc_audit.mechanisms.protocol import Atoms
from dpsmc_audit.numerics.arrays import FloatArray

__all__ = ["Laplace", "Truncated"]


@dataclass(frozen=True)
class Laplace:
    """Two-sided noise: ``L ~ center + Laplace(scale)``.

    Parameters
    ----------
    center : float
        The median of L. `dpsmc_audit.private` chooses it so that the test keeps its error levels.
    scale : float
        The scale.

    Examples
    --------
    >>> law = Laplace(center=30.0, scale=10.0)
    >>> float(law.survival(30.0)), round(float(law.survival(law.quantile(0.02))), 12)
    (0.5, 0.98)
    """

    name: ClassVar[str] = "laplace"
    atoms: ClassVar[Atoms | None] = None
    center: float
    scale: float

    def __post_init__(self) -> None:
        require(0.0 < self.scale < math.inf, f"the scale of L must be positive and finite, got {self.scale}")
        require(math.isfinite(self.center), f"the center of L must be finite, got {self.center}")

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
        z = (np.asarray(excess, dtype=np.float64) - self.center) / self.scale
        half = 0.5 * np.exp(-np.abs(z))
        return np.where(z >= 0.0, half, 1.0 - half)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies. It is minus infinity at 0.
        """
        return self.upper_quantile(1.0 - np.asarray(u, dtype=np.float64))

    def upper_quantile(self, tail: FloatArray) -> FloatArray:
        """Compute quantiles from the upper end.

        Parameters
        ----------
        tail : ndarray
            Shares of the law.

        Returns
        -------
        ndarray
            The L above which these shares lie.
        """
        with np.errstate(divide="ignore"):
            side = np.where(tail > 0.5, np.log(2.0 * (1.0 - tail)), -np.log(2.0 * tail))
        return np.asarray(self.center + self.scale * side)


@dataclass(frozen=True)
class Truncated:
    """Laplace noise that leaves some room between the bounds: the law of `Laplace` given ``L >= lowest``.

    It needs no coin, and no bound is so near that the first samples decide. Like Algorithm 2 it has a support gap, but
    only with the small probability that L is within a changed sample of `lowest`. For the marginal observer it hides
    more than Algorithm 2 for as many samples.

    Parameters
    ----------
    center, scale : float
        As for `Laplace`.
    lowest : float
        The smallest L.

    Examples
    --------
    >>> law = Truncated(center=5.0, scale=10.0, lowest=-3.0)
    >>> float(law.survival(-3.0)), round(float(law.survival(law.quantile(0.02))), 12)
    (1.0, 0.98)
    """

    name: ClassVar[str] = "truncated"
    atoms: ClassVar[Atoms | None] = None
    center: float
    scale: float
    lowest: float

    def __post_init__(self) -> None:
        _ = self._whole
        require(math.isfinite(self.lowest), f"the smallest L must be finite, got {self.lowest}")

    @property
    def mean(self) -> float:
        """The mean of L, from ``E[L; L >= lowest]`` of the whole law in units of the scale from its center."""
        start = (self.lowest - self.center) / self.scale
        part = 0.5 * (1.0 - start) * math.exp(start) if start < 0.0 else 0.5 * (1.0 + start) * math.exp(-start)
        return self.center + self.scale * part / float(self._whole.survival(self.lowest))

    @property
    def _whole(self) -> Laplace:
        return Laplace(self.center, self.scale)

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess).

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            The probabilities. They are 1 up to `lowest`.
        """
        inside = np.maximum(np.asarray(excess, dtype=np.float64), self.lowest)
        return np.asarray(self._whole.survival(inside) / self._whole.survival(self.lowest))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies. It is exactly `lowest` at 0.
        """
        given = np.asarray(u, dtype=np.float64)
        tail = (1.0 - given) * self._whole.survival(self.lowest)
        inside = np.maximum(self._whole.upper_quantile(tail), self.lowest)
        return np.where(given > 0.0, inside, self.lowest)  # exactly the smallest L, because records can equal it
