"""Random integers from the operating system, or from a seed for runs that protect nothing."""

from __future__ import annotations

import random
import secrets
from typing import Protocol

__all__ = ["Entropy", "SeededEntropy", "SystemEntropy"]


class Entropy(Protocol):
    """A source of uniform integers."""

    def below(self, n: int) -> int:
        """Draw an integer that is exactly uniform.

        Parameters
        ----------
        n : int
            The number of possible values.

        Returns
        -------
        int
            One of 0, ..., n - 1.
        """
        ...


class SystemEntropy:
    """The cryptographic generator of the operating system. It has no state in this process.

    Examples
    --------
    >>> 0 <= SystemEntropy().below(10**30) < 10**30
    True
    """

    def below(self, n: int) -> int:
        """Draw an integer from the generator of the operating system.

        Parameters
        ----------
        n : int
            The number of possible values.

        Returns
        -------
        int
            One of 0, ..., n - 1, each with the same probability.
        """
        return secrets.randbelow(n)


class SeededEntropy:
    """The same integers for the same seed. For tests and demonstrations, never for private data.

    Parameters
    ----------
    seed : int
        The seed.

    Examples
    --------
    >>> SeededEntropy(1).below(1000) == SeededEntropy(1).below(1000)
    True
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        """Draw the next integer of the seed.

        Parameters
        ----------
        n : int
            The number of possible values.

        Returns
        -------
        int
            One of 0, ..., n - 1.
        """
        return self._random.randrange(n)

    def __repr__(self) -> str:  # hides the state
        return "SeededEntropy()"
