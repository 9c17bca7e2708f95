"""Random integers and where they come from: the operating system, or a seed for runs that protect nothing."""

from __future__ import annotations

import random
import secrets
from typing import Protocol

__all__ = ["Entropy", "SeededEntropy", "SystemEntropy"]


class Entropy(Protocol):
    """A source of uniform integers."""

    def below(self, n: int) -> int:
        """Uniform on 0, ..., n - 1, exactly."""
        ...


class SystemEntropy:
    """The operating system's generator, which is cryptographic; nothing of it is kept.

    Examples
    --------
    >>> 0 <= SystemEntropy().below(10**30) < 10**30
    True
    """

    def below(self, n: int) -> int:
        return secrets.randbelow(n)


class SeededEntropy:
    """The same integers for the same seed: for tests and demonstrations, never for private data.

    Examples
    --------
    >>> SeededEntropy(1).below(1000) == SeededEntropy(1).below(1000)
    True
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def __repr__(self) -> str:
        return "SeededEntropy()"
