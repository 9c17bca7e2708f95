"""Adjacent pairs of sequences: equal but for entry n, which is 1 in one and 0 in the other.

All draws of L meet the same sequences, and the members of a pair share every other sample. One pass over a pair answers
every L: the walk stops for L when its excess reaches L, and the excess only has to be followed up to the largest L.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import check_entries, require
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.arrays import FloatArray, IntArray
from dpsmc_audit.runs.execution import accumulate, cut
from dpsmc_audit.sampling import kernels
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import walk_arguments
from dpsmc_audit.sampling.streams import Purpose, derived, uniforms
from dpsmc_audit.setting import Adjacent, Setting

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["PairSums", "draw_excess", "pair_sums", "pair_times"]


GROUPS = 25
"""Groups of pairs whose sums are kept apart, for the bootstrap."""
MOST_PAIRS = 1024
"""In a block."""


def draw_excess(mechanism: Mechanism, draws: int, seed: int, first: int = 0) -> FloatArray:
    """Draw independent values of L and sort them.

    Parameters
    ----------
    mechanism : Mechanism
        The law of L.
    draws : int
        How many values are drawn.
    seed : int
        The seed.
    first : int
        The number of the first draw. Draws with the same seed and number are equal.

    Returns
    -------
    ndarray
        The values in increasing order.

    Raises
    ------
    ParameterError
        If the seed is not a 64-bit word.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> drawn = draw_excess(Exponential(rate=1.0), 1000, seed=1)
    >>> drawn.size, bool(np.all(np.diff(drawn) >= 0))
    (1000, True)
    """
    return np.sort(mechanism.quantile(uniforms(derived(seed, Purpose.EXCESS), first, draws)))


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums of tau over groups of pairs.

    Parameters
    ----------
    excess : ndarray
        The values of L in increasing order.
    sums : ndarray
        ``sums[group, member, j]`` for the j-th smallest L; member 0 has x_n = 1.
    sizes : ndarray
        Pairs in each group.
    unfinished : int
        How many (sequence, L) reached the cap; they entered the sums with the cap.
    steps : int
        Samples drawn.
    """

    excess: FloatArray
    sums: IntArray
    sizes: IntArray
    unfinished: int
    steps: int

    def means(self, weights: IntArray | None = None) -> FloatArray:
        """Average tau over pairs, by member and L.

        Parameters
        ----------
        weights : ndarray, optional
            ``weights[row, group]``: how often each group of pairs counts. By default each group counts once.

        Returns
        -------
        ndarray
            ``means[member, j]`` for the j-th smallest L. With weights ``means[row, member, j]``.
        """
        if weights is None:
            return np.asarray(self.sums.sum(axis=0) / self.sizes.sum())
        flat = self._floats.reshape(self.sizes.size, -1)
        totals = (weights.astype(np.float64) @ flat).reshape(-1, *self.sums.shape[1:])
        return np.asarray(totals / (weights @ self.sizes)[:, None, None])

    @cached_property
    def _floats(self) -> FloatArray:
        """The sums as floating-point numbers, for the bootstrap. Below 2^53 they are exact, and multiply faster."""
        return self.sums.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Tables:
    """All that the kernel needs beside the pairs: sorted L and a guide into them, the walk, the entries."""

    excess: FloatArray
    guide: NDArray[np.int32]
    scale: float
    walk: tuple[object, ...]
    max_steps: int
    entries: IntArray
    stream: np.uint64

    @classmethod
    def of(cls, pair: Adjacent, excess: FloatArray, sampling: Sampling) -> _Tables:
        cells, span = 65_536, float(excess[-1] - excess[0])
        scale = cells / span if span > 0.0 else 0.0
        guide = np.searchsorted(excess, excess[0] + np.arange(cells) / scale) if span > 0.0 else np.zeros(1)
        changed, stream = np.array(pair.entries, np.int64), derived(sampling.seed, Purpose.SEQUENCES)
        walk = walk_arguments(pair.setting.test, pair.setting.p_phi)
        return cls(excess, guide.astype(np.int32), scale, walk, sampling.max_steps, changed, stream)


def _block(tables: _Tables, group: int, first: int, count: int) -> tuple[int, IntArray, int, int]:
    """Sum up pairs first, ..., first + count - 1 of one group. The result does not depend on the process."""
    sums = np.zeros((2, tables.excess.size), np.int64)
    kernel = cast(Callable[..., tuple[int, int]], kernels._pairs)
    laws = (tables.excess, tables.guide, tables.scale, *tables.walk, tables.max_steps)
    capped, steps = kernel(tables.stream, first, count, tables.entries, *laws, sums)
    return group, sums, int(capped), int(steps)


class _Total:
    """Sums over blocks of pairs, by group."""

    def __init__(self, groups: int, draws: int) -> None:
        self.sums, self.unfinished, self.steps = np.zeros((groups, 2, draws), np.int64), 0, 0

    def add(self, block: tuple[int, IntArray, int, int]) -> None:
        group, sums, capped, steps = block
        self.sums[group] += sums
        self.unfinished += capped
        self.steps += steps

    def saved(self) -> Saved:
        return {"sums": self.sums, "unfinished": self.unfinished, "steps": self.steps}

    def restore(self, saved: Saved) -> None:
        sums = np.asarray(saved["sums"], np.int64)
        if sums.shape != self.sums.shape:
            raise ValueError("sums are of another shape")
        self.unfinished, self.steps = int(saved["unfinished"]), int(saved["steps"])
        self.sums[:] = sums


def pairs_in_a_block(setting: Setting, top: float, max_steps: int) -> int:
    """Return how many pairs make some hundredths of a second of work.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    top : float
        The largest L. Each pair is followed up to it.
    max_steps : int
        The largest number of samples of a sequence.

    Returns
    -------
    int
        The number of pairs, from 1 to `MOST_PAIRS`.
    """
    samples = min(setting.test.wald(setting.p_phi, max(top, 0.0)).samples, float(max_steps))
    return min(max(int(2.0**24 / max(samples, 1.0)), 1), MOST_PAIRS)


def pair_sums(
    pair: Adjacent,
    excess: FloatArray,
    pairs: int,
    sampling: Sampling,
    *,
    groups: int = GROUPS,
    stage: str = "pairs",
) -> PairSums:
    """Add up tau over pairs of sequences, for every L.

    Parameters
    ----------
    pair : Adjacent
        What differs between the members of a pair; its noise is not used.
    excess : array
        The values of L, sorted.
    pairs : int
        How many pairs of sequences are drawn.
    sampling : Sampling
        How they are drawn. The sums are integers, so that the order of blocks does not matter.
    groups : int
        Sums of so many groups of pairs are kept apart.
    stage : str
        The name of these sums in the checkpoint.

    Returns
    -------
    PairSums
        The sums by group, member and L.

    Examples
    --------
    >>> from dpsmc_audit import NoNoise, Sprt
    >>> pair = Adjacent(Setting(Sprt(p=0.73, delta=0.01, alpha=0.01), NoNoise(), 0.84), (1,))
    >>> found = pair_sums(pair, np.array([0.0, 5.0]), pairs=400, sampling=Sampling(seed=2))
    >>> one, zero = found.means()
    >>> bool(np.all(zero > one))
    True
    """
    require(pairs >= 2, f"pairs must be at least 2, got {pairs}")
    check_entries(pair.entries, sampling.max_steps)
    groups = min(groups, pairs)
    edges = np.arange(groups + 1) * pairs // groups
    sizes, coins = np.diff(edges), int(np.count_nonzero(excess <= pair.setting.test.no_room))
    total = np.empty((groups, 2, excess.size), np.int64)
    total[:, :, :coins] = sizes[:, None, None]  # where a coin decides, after one sample
    if coins == excess.size:
        return PairSums(excess, total, sizes, 0, 0)
    size = sampling.execution.size(pairs_in_a_block(pair.setting, float(excess[-1]), sampling.max_steps))

    def blocks(done: int) -> Iterator[tuple[tuple[int, ...], int]]:
        for group in range(groups):
            for block, end in cut(int(edges[group + 1]), size, max(int(edges[group]), done)):
                yield (group, *block), end

    tables = _Tables.of(pair, excess[coins:], sampling)
    found = _Total(groups, excess.size - coins)
    accumulate(partial(_block, tables), blocks, found, sampling.execution, stage)
    total[:, :, coins:] = found.sums
    return PairSums(excess, total, sizes, found.unfinished, found.steps)


def pair_times(
    pair: Adjacent,
    excess: FloatArray,
    first: int,
    count: int,
    sampling: Sampling,
    *,
    bits: tuple[int, int] = (1, 0),
    shift: int = 0,
) -> IntArray:
    """Draw tau pair by pair, for a few L.

    Parameters
    ----------
    pair : Adjacent
        What differs between the members of a pair; its noise is not used.
    excess : array
        The values of L, sorted.
    first, count : int
        The numbers of the pairs: first, ..., first + count - 1.
    sampling : Sampling
        How they are drawn.
    bits : pair of int
        The value of the entries in both members.
    shift : int
        If it is not 0, the members are independent sequences; with equal `bits` they then follow the same law.

    Returns
    -------
    array
        ``tau[i, member, j]`` of pair i and the j-th L.
    """
    tau = np.empty((count, 2, excess.size), np.int64)
    forced, changed = np.array(bits, np.int64), np.array(pair.entries, np.int64)
    stream, test = derived(sampling.seed, Purpose.SEQUENCES), pair.setting.test
    kernel = cast(Callable[..., None], kernels._pair_times)
    kernel(
        stream,
        first,
        shift,
        forced,
        changed,
        excess,
        *walk_arguments(test, pair.setting.p_phi),
        sampling.max_steps,
        tau,
    )
    tau[:, :, excess <= test.no_room] = 1
    return tau
