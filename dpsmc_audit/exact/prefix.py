"""The samples up to the last forced entry, read backwards from a later record.

A record after k samples is above all that came before. Read backwards from it, the walk stays above 0: first over the
free samples after the last entry n, and then over the n samples of the prefix. So only two things of the prefix matter:
where it leads, and how low it comes on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.walk import TIE, Steps
from dpsmc_audit.numerics.jit import kernel

__all__ = ["Prefix", "prefix_of", "records_before"]

FloatArray = NDArray[np.float64]
Function = Callable[[FloatArray], FloatArray]

_SMALL = 1e-24
"""Smaller probabilities are dropped, and counted."""


@kernel
def _stay(ups, up, down, bar):
    """Compute the law of the number of steps up of walks whose partial sums are all above `bar`; steps up by `ups`."""
    mass = np.zeros(ups.size + 2)
    mass[0] = 1.0
    low, high = 0, 1
    for n in range(ups.size):
        p = ups[n]
        for i in range(high, low, -1):
            mass[i] = p * mass[i - 1] + (1.0 - p) * mass[i]
        mass[low] *= 1.0 - p
        high += 1
        while low < high and low * up - (n + 1 - low) * down <= bar:
            mass[low] = 0.0
            low += 1
    return mass[: ups.size + 1]


def records_before(walk: Steps, forced: Mapping[int, int], last: int) -> list[FloatArray]:
    """Compute, for j = 0, ..., last, the law of the number of steps up of walks with a record after j samples.

    Parameters
    ----------
    walk : Steps
        A walk that drifts up.
    forced : mapping
        Its forced steps (entry: 1 for up, 0 for down), counted from 1.
    last : int
        The last j.

    Returns
    -------
    list of array
        The probabilities, by the number of steps up.
    """
    ups = _probabilities(walk, forced, last)
    tie = TIE * (walk.up + walk.down)
    return [np.asarray(_stay(ups[:j][::-1].copy(), walk.up, walk.down, tie)) for j in range(last + 1)]


def _probabilities(walk: Steps, forced: Mapping[int, int], last: int) -> FloatArray:
    ups = np.full(last, walk.p_up)
    for entry, bit in forced.items():
        if entry <= last:
            ups[entry - 1] = float(bit)
    return ups


@dataclass(frozen=True, eq=False)
class Prefix:
    """Where the samples of the prefix lead, for each level that they must stay above.

    Parameters
    ----------
    moves : array
        By how much they change the height of a later record, for each number of steps up.
    jumps : array
        A record survives some of the walks of the prefix only if the free samples are higher than this. Increasing.
    parts : array
        The walks that each jump lets in: their probability for each move.
    lost : float
        The probability that was dropped.
    """

    moves: FloatArray
    jumps: FloatArray
    parts: FloatArray
    lost: float

    def pieces(self, chunk: int) -> Callable[[Function, FloatArray, FloatArray], tuple[FloatArray, ...]]:
        """Return how to average a function over the prefix, at the begin, the middle and the end of pieces.

        Parameters
        ----------
        chunk : int
            Values of the function that are computed at once.

        Returns
        -------
        callable
            It takes the function, the begins and the widths. No piece contains a jump, but for its begin.
        """

        def averaged(function: Function, begins: FloatArray, width: FloatArray) -> tuple[FloatArray, ...]:
            let_in = np.searchsorted(self.jumps, begins, side="right")
            out = np.empty((3, begins.size))
            open_, done, rows = np.zeros(self.moves.size), 0, max(chunk // self.moves.size, 1)
            for start in range(0, begins.size, rows):
                part = slice(start, min(start + rows, begins.size))
                until = let_in[part]
                steps = np.concatenate([[open_], self.parts[done : until[-1]]]).cumsum(axis=0)
                weights = steps[until - done]
                for row, share in enumerate((0.0, 0.5, 1.0)):
                    height = begins[part] + share * width[part]
                    out[row, part] = (weights * function(height[:, None] + self.moves)).sum(axis=1)
                open_, done = steps[-1], int(until[-1])
            return out[0], out[1], out[2]

        return averaged


def prefix_of(walk: Steps, forced: Mapping[int, int]) -> Prefix:
    """Compute the prefix of a walk with forced entries.

    A walk of the prefix is cut where it is lowest: after i of its steps, read backwards. Up to there it sets a new
    minimum at the end, and from there on it stays above.

    Parameters
    ----------
    walk : Steps
        A walk that drifts up.
    forced : mapping
        Its forced steps (entry: 1 for up, 0 for down), counted from 1; at least one.

    Returns
    -------
    Prefix
        The prefix.
    """
    last = max(forced)
    ups = _probabilities(walk, forced, last)
    tie = TIE * (walk.up + walk.down)
    jumps, parts, lost = [], [], 0.0
    for i in range(last + 1):
        # backwards the steps are last, last - 1, ...; of the first i of them the walk read forwards stays below 0
        down_to = _stay(1.0 - ups[last - i :], walk.down, walk.up, tie)[::-1] if i else np.ones(1)
        after = _stay(ups[: last - i][::-1].copy(), walk.up, walk.down, -tie)
        ones = np.flatnonzero(down_to > _SMALL)
        lost += float(down_to[down_to <= _SMALL].sum())
        for count in ones.tolist():
            row = np.zeros(last + 1)
            row[count : count + after.size] = down_to[count] * after
            jumps.append((i - count) * walk.down - count * walk.up + tie)
            parts.append(row)
    order = np.argsort(np.array(jumps), kind="stable")
    table = np.array(parts)[order]
    used = np.flatnonzero(table.sum(axis=0) > _SMALL)
    steps_up = np.arange(last + 1)[used]
    lost += float(table.sum() - table[:, used].sum())
    return Prefix(walk.at(np.int64(last), steps_up), np.array(jumps)[order], table[:, used].copy(), lost)
