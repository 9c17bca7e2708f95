"""What every law for L has."""

from __future__ import annotations

import math
from typing import ClassVar, Protocol

from numpy.typing import ArrayLike

from dpsmc_audit.errors import require
from dpsmc_audit.numerics.arrays import FloatArray

__all__ = ["Atoms", "Mechanism", "check_epsilon"]

Atoms = tuple[tuple[float, float], ...]


class Mechanism(Protocol):
    """A law for L, as the walks and the exact laws use it."""

    name: ClassVar[str]

    @property
    def atoms(self) -> Atoms | None:
        """The values of L and their probabilities, up to 1e-12 in total. None if they cannot be listed."""
        ...

    def __hash__(self) -> int:
        """Mechanisms are frozen, so results can be cached by them."""
        ...

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess), the probability that a walk with this excess record still runs.

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            The probabilities.
        """
        ...

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L. The quantile of a uniform number is a draw of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies.
        """
        ...


def check_epsilon(name: str, epsilon: float) -> None:
    """Check a privacy level that noise is scaled to.

    Parameters
    ----------
    name : str
        The mechanism.
    epsilon : float
        The level.

    Raises
    ------
    ParameterError
        If the level is not in [1e-9, 1e9].
    """
    require(0.0 < epsilon < math.inf, f"epsilon must be positive for mechanism {name}, got {epsilon}")
    require(1e-9 <= epsilon <= 1e9, f"epsilon must lie in [1e-9, 1e9], got {epsilon}")
