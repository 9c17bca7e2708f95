"""The plain alternatives: Algorithm 2 as one would first write it in Python, with NumPy and with Numba.

All return the termination times of so many runs.
"""

from __future__ import annotations

import math
import random

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.measure import LAW, P_PHI, TEST
from dpsmc_audit.sampling import kernels

__all__ = ["numba_generator", "numba_random", "numpy_blocks", "pure_python"]

IntArray = NDArray[np.int64]


def pure_python(runs: int, seed: int) -> list[int]:
    """One sample after the other."""
    rng, found = random.Random(seed), []
    up_step, down_step = TEST.s_plus, TEST.s_minus
    for _ in range(runs):
        excess = rng.expovariate(LAW.rate)
        up, low, walk, n = TEST.b_up + excess, -TEST.b_low - excess, 0.0, 0
        while low < walk < up:
            walk += up_step if rng.random() < P_PHI else -down_step
            n += 1
        found.append(n)
    return found


def numpy_blocks(runs: int, seed: int) -> IntArray:
    """64 samples of all runs that still go on at a time, as a matrix."""
    rng = np.random.default_rng(seed)
    excess, walk, tau = rng.exponential(1.0 / LAW.rate, runs), np.zeros(runs), np.zeros(runs, np.int64)
    alive = np.arange(runs)
    while alive.size:
        steps = np.where(rng.random((alive.size, 64), dtype=np.float32) < P_PHI, TEST.s_plus, -TEST.s_minus)
        path = walk[alive, None] + np.cumsum(steps, axis=1)
        over = (path >= TEST.b_up + excess[alive, None]) | (path <= -TEST.b_low - excess[alive, None])
        stopped = over.any(axis=1)
        tau[alive] += np.where(stopped, over.argmax(axis=1) + 1, 64)
        walk[alive] = path[:, -1]
        alive = alive[~stopped]
    return tau


@njit(nogil=True)
def _random_walks(rate, s_plus, s_minus, b_up, b_low, p_phi, tau):
    for i in range(tau.size):
        excess = -math.log1p(-np.random.random()) / rate  # noqa: NPY002
        n, ones = 0, 0
        while True:
            ones += np.random.random() < p_phi  # noqa: NPY002
            n += 1
            walk = ones * s_plus - (n - ones) * s_minus
            if walk >= b_up + excess or walk <= -b_low - excess:
                break
        tau[i] = n


@njit(nogil=True)
def _generated_walks(seed, rate, s_plus, s_minus, b_up, b_low, threshold, tau):
    for i in range(tau.size):
        s0, s1, s2, s3 = kernels._stream(seed, i)
        word, s0, s1, s2, s3 = kernels._next(s0, s1, s2, s3)
        uniform = (word >> np.uint64(11)) * (1.0 / 9007199254740992.0)
        excess = -math.log1p(-uniform) / rate
        n, ones = 0, 0
        while True:
            word, s0, s1, s2, s3 = kernels._next(s0, s1, s2, s3)
            ones += np.int64(word < threshold)  # type: ignore[assignment]
            n += 1
            walk = ones * s_plus - (n - ones) * s_minus
            if walk >= b_up + excess or walk <= -b_low - excess:
                break
        tau[i] = n


def numba_random(runs: int, seed: int) -> IntArray:
    """A jitted loop with ``np.random`` (seeded by Numba, not by us)."""
    tau = np.empty(runs, np.int64)
    _random_walks(LAW.rate, TEST.s_plus, TEST.s_minus, TEST.b_up, TEST.b_low, P_PHI, tau)
    return tau


def numba_generator(runs: int, seed: int) -> IntArray:
    """The same loop with the suite's generator, one word a sample."""
    tau, threshold = np.empty(runs, np.int64), np.uint64(int(P_PHI * 2.0**64))
    _generated_walks(np.uint64(seed), LAW.rate, TEST.s_plus, TEST.s_minus, TEST.b_up, TEST.b_low, threshold, tau)
    return tau
