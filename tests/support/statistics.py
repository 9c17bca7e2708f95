"""Statistical tests that several test files share."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.stats import chi2


def chi_square(tau: np.ndarray, decision: np.ndarray, null: np.ndarray, alt: np.ndarray) -> float:
    """p-value of (tau, decision) against its exact law, in cells that each expect at least ten runs."""
    runs = tau.size
    statistic, cells, seen, expected_total = 0.0, 0, 0, 0.0
    for side, law in ((1, null), (0, alt)):
        cumulative = np.cumsum(law) * runs
        edges = [0]
        for mark in np.arange(1, 13) * cumulative[-1] / 12:
            k = int(np.searchsorted(cumulative, mark - 1e-9)) + 1
            if (
                k > edges[-1]
                and cumulative[min(k, law.size) - 1] - (cumulative[edges[-1] - 1] if edges[-1] else 0) >= 10
            ):
                edges.append(min(k, law.size))
        for low, high in itertools.pairwise(edges):
            expected = cumulative[high - 1] - (cumulative[low - 1] if low else 0)
            observed = int(np.count_nonzero((decision == side) & (tau > low) & (tau <= high)))
            statistic += (observed - expected) ** 2 / expected
            cells, seen, expected_total = cells + 1, seen + observed, expected_total + expected
    if runs - expected_total >= 10:
        statistic += (runs - seen - (runs - expected_total)) ** 2 / (runs - expected_total)
        cells += 1
    return float(chi2.sf(statistic, max(cells - 1, 1)))
