"""The Figure 1 workload, 10^4 draws of L on pairs of sequences: one pass per pair against two kinds of brute force."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.measure import LAW, P_PHI, TEST, Ratio, Ratios, alternate
from dpsmc_audit.mechanisms import NoNoise
from dpsmc_audit.sampling import kernels, pairs
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.streams import Purpose, derived
from dpsmc_audit.setting import Adjacent, Setting

__all__ = ["figure1_ratios"]

DRAWS, PAIRS, FEW, WORDS = 10_000, 500, 10, 625
"""Draws of L; pairs for one pass, and for brute force; words of 64 samples that are stored of a sequence."""
ROUNDS = 5


@njit(nogil=True)
def _stored(stream, count, threshold, out):
    """The sequences themselves, 64 samples a word, the first one in the lowest bit."""
    for i in range(count):
        s0, s1, s2, s3 = kernels._stream(stream, i)
        for j in range(out.shape[1]):
            out[i, j], s0, s1, s2, s3 = kernels._bernoulli_word(s0, s1, s2, s3, threshold, False)


@njit(nogil=True)
def _brute(bits, excess, s_plus, s_minus, b_up, b_low, sums):
    """Algorithm 2 on every stored sequence (a byte a sample) with every L, from its first sample, which is changed."""
    steps_of = np.array([-s_minus, s_plus])
    for i in range(bits.shape[0]):
        for member in range(2):
            bits[i, 0] = 1 - member
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


@njit(nogil=True)
def _brute_by_words(words, excess, s_plus, s_minus, b_up, b_low, sums):
    """The same on words of samples: one whose samples cannot reach a bound is only counted."""
    one = np.uint64(1)
    for i in range(words.shape[0]):
        for member in range(2):
            words[i, 0] = (words[i, 0] | one) if member == 0 else (words[i, 0] & ~one)
            for j in range(excess.size):
                up, low = b_up + excess[j], -b_low - excess[j]
                ones, n, place, stopped = 0, 0, 0, False
                while not stopped:
                    word = words[i, place]
                    place += 1
                    walk = ones * s_plus - (n - ones) * s_minus
                    if walk + 65 * s_plus < up and walk - 65 * s_minus > low:
                        ones += np.int64(kernels._popcount(word))  # type: ignore[assignment]
                        n += 64
                        continue
                    for _ in range(64):
                        ones += np.int64(word & one)  # type: ignore[assignment]
                        word >>= one
                        n += 1
                        walk = ones * s_plus - (n - ones) * s_minus
                        if walk >= up or walk <= low:
                            stopped = True
                            break
                sums[member, j] += n


def _brute_force(excess: NDArray[np.float64]) -> dict[str, Callable[[], NDArray[np.int64]]]:
    """Both kinds, ready to go: sums of tau by member and L over the first few pairs."""
    words, walk = np.empty((FEW, WORDS), np.uint64), (TEST.s_plus, TEST.s_minus, TEST.b_up, TEST.b_low)
    _stored(derived(1, Purpose.SEQUENCES), FEW, np.uint64(int(P_PHI * 2.0**64)), words)
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.int8)

    def plain() -> NDArray[np.int64]:
        sums = np.zeros((2, DRAWS), np.int64)
        _brute(bits, excess, *walk, sums)
        return sums

    def popcount() -> NDArray[np.int64]:
        sums = np.zeros((2, DRAWS), np.int64)
        _brute_by_words(words, excess, *walk, sums)
        return sums

    return {"brute": plain, "popcount": popcount}


def figure1_ratios() -> Ratios:
    """Pairs per second, one core; the sums of all three are the same integers."""
    excess = pairs.draw_excess(LAW, DRAWS, 1)
    brute = _brute_force(excess)

    def records(count: int) -> pairs.PairSums:
        return pairs.pair_sums(
            Adjacent(Setting(TEST, NoNoise(), P_PHI), (1,)),
            excess,
            count,
            groups=1,
            sampling=Sampling(seed=1, max_steps=10**7),
        )

    expected = records(FEW).sums[0]
    for name, sums in brute.items():
        assert np.array_equal(sums(), expected), f"{name} and one pass disagree"

    def counting(work: Callable[[], object], count: int) -> Callable[[], float]:
        def turn() -> float:
            work()
            return float(count)

        return turn

    turns = {name: counting(sums, FEW) for name, sums in brute.items()}
    turns["records"] = counting(lambda: records(PAIRS), PAIRS)
    speed = alternate(turns, ROUNDS, time.thread_time)
    rates = {name: float(f"{rate:.4g}") for name, rate in speed.items()}
    method = (
        f"pairs per second of thread time, {DRAWS} draws of L, one core, best of {ROUNDS} rounds in turn,"
        " identical sums checked"
    )
    details = {"pairs_per_second": rates}
    return {
        "records_vs_brute": Ratio(
            speed["records"] / speed["brute"], f"one pass against a run for every L; {method}", 300.0, details=details
        ),
        "records_vs_popcount": Ratio(
            speed["records"] / speed["popcount"],
            f"one pass against a run for every L that skips words of 64 samples by counting; {method}",
            30.0,
            details=details,
        ),
    }
