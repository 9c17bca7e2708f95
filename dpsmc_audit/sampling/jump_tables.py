"""Alias tables of binomials, from which the kernel `jumps` draws how many of the next samples hold."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.numerics.sums import convolution

__all__ = ["JUMP_SIZES", "jump_tables"]

JUMP_SIZES = 10
"""Jumps are of 1, 2, 4, ..., 2^(JUMP_SIZES - 1) steps; the tables take about 20 KB."""


def _alias_table(weights: list[float]) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    """Walker's alias table of outcomes 0, 1, ... whose weights sum to their number, a power of two.

    A column is kept if the bits of a word below its number are less than its cut, else its alias is taken.
    """
    size = len(weights)
    cut, alias = np.full(size, 2**64 - 1, np.uint64), np.arange(size, dtype=np.uint16)
    scale = 2.0**64 / size
    poor = [j for j, weight in enumerate(weights) if weight < 1.0]
    rich = [j for j, weight in enumerate(weights) if weight >= 1.0]
    while poor and rich:
        small, large = poor.pop(), rich[-1]
        cut[small], alias[small] = int(weights[small] * scale), large
        weights[large] -= 1.0 - weights[small]
        if weights[large] < 1.0:
            poor.append(rich.pop())
    return cut, alias


@lru_cache(maxsize=8)
def jump_tables(p_phi: float) -> tuple[NDArray[np.uint64], NDArray[np.uint16], NDArray[np.uint8]]:
    """Alias tables of Binomial(2^e, p_phi), e = 0, 1, ..., and the largest e for each number of steps in reach.

    The table of e has 2^(e+1) columns and starts at position 2^(e+1), so a column is the top e + 1 bits of a word.

    Parameters
    ----------
    p_phi : float
        The probability that a sample holds.

    Returns
    -------
    cut, alias, log2 : ndarray
        The tables, and the largest e by the number of steps.
    """
    size = 2 ** (JUMP_SIZES + 1)
    cut, alias = np.zeros(size, np.uint64), np.zeros(size, np.uint16)
    law = np.array([1.0 - p_phi, p_phi])
    for e in range(JUMP_SIZES):
        columns = 2 ** (e + 1)
        weights = np.zeros(columns)
        weights[: law.size] = law * (columns / law.sum())
        cut[columns : 2 * columns], alias[columns : 2 * columns] = _alias_table(weights.tolist())
        law = np.asarray(convolution(law, law))
    log2 = np.array([max(n.bit_length() - 1, 0) for n in range(2 ** (JUMP_SIZES - 1) + 1)], np.uint8)
    return cut, alias, log2
