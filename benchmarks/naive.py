"""The naive histogram check: fast, because it raises the alarm whatever the truth.

A bin whose two counts differ by more than a factor of e^epsilon refutes the claim. Its false alarms are counted on a
mechanism for which the claim holds with equality, two-sided geometric noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Ratio, Ratios

__all__ = ["geometric", "naive", "naive_ratios"]

ALARMS, BINS, EPSILON = 100, 40, 1.0


def geometric(epsilon: float, runs: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw runs with x = 1 and with x = 0: x plus two-sided geometric noise."""
    share, rng = -math.expm1(-epsilon), np.random.default_rng(seed)
    one, zero = (x + rng.geometric(share, runs) - rng.geometric(share, runs) for x in (1, 0))
    return one, zero


def naive(one: NDArray[np.int64], zero: NDArray[np.int64], epsilon: float) -> bool:
    """Does any of 40 bins, equally likely in the pooled sample, have counts with a ratio beyond e^epsilon?"""
    pooled = np.sort(np.concatenate([one, zero]))
    edges = np.unique(pooled[(np.arange(1, BINS) * pooled.size) // BINS])
    p, q = (np.bincount(np.searchsorted(edges, sample), minlength=edges.size + 1) for sample in (one, zero))
    return bool(np.any((p > math.exp(epsilon) * q) | (q > math.exp(epsilon) * p)))


def naive_ratios() -> Ratios:
    """The share of false alarms, with few runs and with many."""
    found = {}
    for runs in (64, 2000):
        alarms = sum(naive(*geometric(EPSILON, runs, seed), EPSILON) for seed in range(ALARMS))
        method = f"share of {ALARMS} audits in which the naive histogram check accuses a private mechanism, {runs} runs"
        found[f"naive_alarms_{runs}"] = Ratio(alarms / ALARMS, f"{method} of each member")
    return found
