"""The Figure 1 workload, 10^4 draws of L on pairs of sequences: one pass per pair against brute force."""

from __future__ import annotations

import resource
import time

import numpy as np
from numba import njit

from benchmarks.kernels import LAW, P_PHI, TEST, Ratios
from dpsmc_audit.walks import monte_carlo, pairs
from dpsmc_audit.walks.monte_carlo import SEQUENCES, derived

DRAWS, PAIRS, FEW, LENGTH = 10_000, 500, 10, 40_000


@njit(nogil=True)
def _stored(stream, first, count, threshold, out):
    """The sequences themselves, one byte a sample."""
    for i in range(count):
        s0, s1, s2, s3 = monte_carlo._stream(stream, first + i)
        for j in range(0, out.shape[1], 64):
            word, s0, s1, s2, s3 = monte_carlo._bernoulli_word(s0, s1, s2, s3, threshold, False)
            for k in range(64):
                out[i, j + k] = (word >> np.uint64(k)) & np.uint64(1)


@njit(nogil=True)
def _brute(bits, entry, excess, s_plus, s_minus, b_up, b_low, sums):
    """Algorithm 2 on every stored sequence with every L, from its first sample."""
    steps_of = np.array([-s_minus, s_plus])
    for i in range(bits.shape[0]):
        for member in range(2):
            bits[i, entry - 1] = 1 - member
            for j in range(excess.size):
                up, low = b_up + excess[j], -b_low - excess[j]
                ones, n = 0, 0
                while True:
                    ones += bits[i, n]
                    n += 1
                    walk = ones * steps_of[1] + (n - ones) * steps_of[0]
                    if walk >= up or walk <= low:
                        break
                sums[member, j] += n


def figure1_ratios() -> Ratios:
    excess = pairs.draw_excess(LAW, DRAWS, 1)
    stream = derived(1, SEQUENCES)
    bits = np.empty((FEW, LENGTH), np.int8)
    _stored(stream, 0, FEW, np.uint64(int(P_PHI * 2.0**64)), bits)
    walk = (TEST.s_plus, TEST.s_minus, TEST.b_up, TEST.b_low)
    _brute(bits[:1].copy(), 1, excess[:2], *walk, np.zeros((2, 2), np.int64))
    brute, records = 0.0, 0.0
    pairs.pair_sums(TEST, P_PHI, excess, 4, (1,), seed=1, max_steps=10**7)
    for _ in range(5):
        sums = np.zeros((2, DRAWS), np.int64)
        started = time.perf_counter()
        _brute(bits, 1, excess, *walk, sums)
        brute = max(brute, FEW / (time.perf_counter() - started))
        started = time.perf_counter()
        pairs.pair_sums(TEST, P_PHI, excess, PAIRS, (1,), seed=1, max_steps=10**7, groups=1)
        records = max(records, PAIRS / (time.perf_counter() - started))
    same = pairs.pair_sums(TEST, P_PHI, excess, FEW, (1,), seed=1, max_steps=10**7, groups=1).sums[0]
    assert np.array_equal(same, sums), "the two ways disagree"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pairs.pair_sums(TEST, P_PHI, excess, 20 * PAIRS, (1,), seed=1, max_steps=10**7)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / before
    return {
        "records_vs_brute": (
            records / brute,
            f"pairs per second, {DRAWS} draws of L, one core, identical sums checked",
        ),
        "memory_20_times_the_pairs": (growth, "peak memory with 20 times the pairs against before"),
    }
