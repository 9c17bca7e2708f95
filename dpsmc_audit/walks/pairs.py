"""Adjacent pairs of sequences: equal but for entry n, which is 1 in one and 0 in the other.

All draws of L meet the same sequences, and the members of a pair share every other sample. One pass over a pair answers
every L: the walk stops for L when its excess reaches L, and the excess only has to be followed up to the largest L.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt, check_entries, require
from dpsmc_audit.walks import monte_carlo
from dpsmc_audit.walks.monte_carlo import EXCESS, SEQUENCES, derived, walk_arguments

__all__ = ["PairSums", "draw_excess", "pair_sums", "pair_times"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BLOCK = 64


def draw_excess(mechanism: Mechanism, draws: int, seed: int) -> FloatArray:
    """Sorted independent draws of L.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> drawn = draw_excess(Exponential(rate=1.0), 1000, seed=1)
    >>> drawn.size, bool(np.all(np.diff(drawn) >= 0))
    (1000, True)
    """
    uniforms = np.empty(draws)
    monte_carlo._uniforms(derived(seed, EXCESS), 0, uniforms)
    return np.sort(mechanism.quantile(uniforms))


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums of tau over groups of pairs: ``sums[group, member, j]`` for the j-th smallest L; member 0 has x_n = 1.

    `unfinished` counts (sequence, L) that reached the cap; they entered the sums with the cap.
    """

    excess: FloatArray
    sums: IntArray
    sizes: IntArray
    unfinished: int

    def means(self, weights: IntArray | None = None) -> FloatArray:
        """Average termination time by member and L, over all groups or with the groups weighted."""
        if weights is None:
            return np.asarray(self.sums.sum(axis=0) / self.sizes.sum())
        return np.asarray(np.tensordot(weights.astype(np.float64), self._floats, axes=1) / (weights @ self.sizes))

    @cached_property
    def _floats(self) -> FloatArray:
        """For the bootstrap: sums below 2^53 are the same numbers, and multiply much faster."""
        return self.sums.astype(np.float64)


def pair_sums(
    test: Sprt,
    p_phi: float,
    excess: FloatArray,
    pairs: int,
    entries: tuple[int, ...],
    *,
    seed: int,
    max_steps: int,
    groups: int = 25,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> PairSums:
    """Sums of tau over `pairs` pairs for every L in the sorted `excess`; integers, so the order of blocks is no matter.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> found = pair_sums(test, 0.84, np.array([0.0, 5.0]), pairs=400, entries=(1,), seed=2, max_steps=10**6)
    >>> one, zero = found.means()
    >>> bool(np.all(zero > one))
    True
    """
    require(pairs >= 2, f"pairs must be at least 2, got {pairs}")
    check_entries(entries, max_steps)
    groups = min(groups, pairs)
    edges = np.arange(groups + 1) * pairs // groups
    coins = int(np.count_nonzero(excess <= test.no_room))  # where a coin decides, after one sample
    if coins:
        total = np.tile(np.diff(edges)[:, None, None], (1, 2, excess.size))
        if coins < excess.size:
            options = {"seed": seed, "max_steps": max_steps, "groups": groups, "threads": threads}
            rest = pair_sums(test, p_phi, excess[coins:], pairs, entries, progress=progress, **options)
            total[:, :, coins:] = rest.sums
            return PairSums(excess, total, rest.sizes, rest.unfinished)
        return PairSums(excess, total, np.diff(edges), 0)
    cells = 65_536
    span = float(excess[-1] - excess[0])
    scale = cells / span if span > 0.0 else 0.0
    guide = np.searchsorted(excess, excess[0] + np.arange(cells) / scale) if span > 0.0 else np.zeros(1, np.int32)
    tables = (excess, guide.astype(np.int32), scale, *walk_arguments(test, p_phi), max_steps)
    changed = np.array(entries, np.int64)
    stream, kernel = derived(seed, SEQUENCES), cast(Callable[..., int], monte_carlo._pairs)

    def block(bounds: tuple[int, int, int]) -> tuple[int, IntArray, int]:
        group, first, last = bounds
        sums = np.zeros((2, excess.size), np.int64)
        return group, sums, int(kernel(stream, first, last - first, changed, *tables, sums))

    blocks = [
        (g, int(first), int(min(first + BLOCK, edges[g + 1])))
        for g in range(groups)
        for first in range(edges[g], edges[g + 1], BLOCK)
    ]
    total, unfinished = np.zeros((groups, 2, excess.size), np.int64), 0
    with ThreadPoolExecutor(threads) as pool:
        window = 4 * threads
        for start in range(0, len(blocks), window):
            for group, sums, capped in pool.map(block, blocks[start : start + window]):
                total[group] += sums
                unfinished += capped
            if progress is not None:
                progress(blocks[min(start + window, len(blocks)) - 1][2])
    return PairSums(excess, total, np.diff(edges), unfinished)


def pair_times(
    test: Sprt,
    p_phi: float,
    excess: FloatArray,
    first: int,
    count: int,
    entries: tuple[int, ...],
    *,
    seed: int,
    max_steps: int,
    bits: tuple[int, int] = (1, 0),
    shift: int = 0,
) -> IntArray:
    """``tau[i, member, j]`` of pairs first, ..., first + count - 1 for a few sorted L, pair by pair.

    With ``shift`` not 0 the members are independent sequences, and with equal `bits` they then follow the same law.
    """
    tau = np.empty((count, 2, excess.size), np.int64)
    forced, changed = np.array(bits, np.int64), np.array(entries, np.int64)
    stream = derived(seed, SEQUENCES)
    kernel = cast(Callable[..., None], monte_carlo._pair_times)
    kernel(stream, first, shift, forced, changed, excess, *walk_arguments(test, p_phi), max_steps, tau)
    tau[:, :, excess <= test.no_room] = 1
    return tau
