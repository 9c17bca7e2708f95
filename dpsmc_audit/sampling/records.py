"""The records of a walk: all there is to know about a sequence, whatever the law of L.

For a given sequence the test stops at the first k whose excess ``max(Lambda_k - b_up, -Lambda_k - b_low)`` reaches L.
So tau is one of the times at which the excess sets a record, and ``P_L(tau > k)`` is the survival function of L at the
record that stands after k samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.numerics.arrays import FloatArray, IntArray
from dpsmc_audit.sampling import kernels
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import walk_arguments
from dpsmc_audit.sampling.streams import Purpose, derived
from dpsmc_audit.setting import Adjacent
from dpsmc_audit.sprt import Sprt

__all__ = ["Records", "draw_records", "records_of"]


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a walk.

    Parameters
    ----------
    times : ndarray
        After how many samples each record was set.
    excess : ndarray
        The records.
    decision : ndarray
        1 (H_null) or 0 (H_alt).
    samples : int
        How many samples were seen.
    """

    times: IntArray
    excess: FloatArray
    decision: NDArray[np.int8]
    samples: int


def _described(test: Sprt, times: IntArray, ones: IntArray, samples: int) -> Records:
    walk = ones * test.s_plus - (times - ones) * test.s_minus
    above, below = walk - test.b_up, -walk - test.b_low
    return Records(times, np.maximum(above, below), (above >= below).astype(np.int8), samples)


def records_of(test: Sprt, bits: NDArray[np.integer], lowest: float) -> Records:
    """Find the records of a given sequence.

    Parameters
    ----------
    test : Sprt
        The test.
    bits : ndarray
        The samples.
    lowest : float
        Only records above this excess are listed.

    Returns
    -------
    Records
        The records in the order of their times.

    Examples
    --------
    >>> test = Sprt(p=0.5, delta=0.25, alpha=0.1)  # a step is ln 3, the bound is two steps away
    >>> found = records_of(test, np.array([1, 1, 0, 1, 1]), lowest=-0.01)
    >>> found.times.tolist(), found.decision.tolist()
    ([2, 5], [1, 1])
    """
    ones, times = np.cumsum(bits, dtype=np.int64), np.arange(1, bits.size + 1)
    every = _described(test, times, ones, bits.size)
    before = np.maximum.accumulate(np.concatenate([[lowest], every.excess]))[:-1]
    new = every.excess > before
    return Records(times[new], every.excess[new], every.decision[new], bits.size)


def draw_records(pair: Adjacent, path: int, bit: int, lowest: float, top: float, sampling: Sampling) -> Records:
    """Draw the records of a random sequence whose entries are set.

    The same path has the same other samples whatever the bit: two calls make an adjacent pair.

    Parameters
    ----------
    pair : Adjacent
        The entries that are set; its noise is not used.
    path : int
        The number of the sequence.
    bit : int
        The value of the entries.
    lowest, top : float
        Records above `lowest` are kept, until one reaches `top`.
    sampling : Sampling
        How the sequence is drawn.

    Returns
    -------
    Records
        The records and the number of samples that were drawn.

    Examples
    --------
    >>> from dpsmc_audit import NoNoise, Setting
    >>> pair = Adjacent(Setting(Sprt(p=0.73, delta=0.01, alpha=0.01), NoNoise(), 0.84), (1,))
    >>> one, zero = (draw_records(pair, 0, x, 0.0, 5.0, Sampling(seed=1)) for x in (1, 0))
    >>> bool(one.times[0] <= zero.times[0])
    True
    """
    test = pair.setting.test
    forced, walk = np.array(pair.entries, np.int64), walk_arguments(test, pair.setting.p_phi)
    kernel, size = cast(Callable[..., tuple[int, int]], kernels._records), 1 << 14
    while True:
        times, ones = np.empty(size, np.int64), np.empty(size, np.int64)
        stream = derived(sampling.seed, Purpose.SEQUENCES)
        found, samples = kernel(stream, path, forced, bit, lowest, top, *walk, sampling.max_steps, times, ones)
        if found >= 0:
            return _described(test, times[:found].copy(), ones[:found].copy(), samples)
        size *= 4
