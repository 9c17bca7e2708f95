"""The marginal observer: sees one released (tau, o), knows neither L nor the other samples.

Compared are ``P(tau = k, o | x_n = 1)`` and ``P(tau = k, o | x_n = 0)``, the decision always part of the outcome. The
exact laws come from `walks.laws`. Sampled, they come in two ways: termination times of many runs, counted; and
Rao-Blackwell's way, where a walk contributes not one tau but the law of tau given its records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.notions.informed import draw_pair
from dpsmc_audit.profiles import Event, Leakage, best_tail, largest, privacy_profile, total_variation
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.walks.exact import TerminationLaw
from dpsmc_audit.walks.laws import exact_law
from dpsmc_audit.walks.monte_carlo import ALT, NULL, UNFINISHED, derived, draw_blocks

__all__ = ["Counts", "MarginalLaw", "affordable_pairs", "count_runs", "marginal_law", "smoothed_law"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIDES = (NULL, ALT, UNFINISHED)
NAMES = {NULL: "H_null", ALT: "H_alt", UNFINISHED: "undecided"}
_PLACE = np.array([1, 0, 2])
"""The side's row for decision 0 (H_alt), 1 (H_null) and -1 (undecided)."""

_ONE, _ZERO = 5, 6
"""Purposes of the random streams of the two members: they are independent."""

_LONGEST = 1 << 22
"""Termination times above this are counted together."""


@dataclass(frozen=True, eq=False)
class MarginalLaw:
    """``p1[side][k - 1] = P(tau = k, side | x_n = 1)`` for the sides H_null, H_alt and undecided; `p0` for x_n = 0.

    `error` is the numerical error of a tail, `scatter` that of the law as a whole (the sum over all outcomes).
    """

    p1: FloatArray
    p0: FloatArray
    error: float
    scatter: float
    method: str

    def leakage(self, epsilons: FloatArray, floor: float) -> Leakage:
        """Profile, total variation and the best tail, of tau alone or with a decision, of probability >= floor."""
        one, zero = self.p1.ravel(), self.p0.ravel()
        return Leakage(privacy_profile(one, zero, epsilons), total_variation(one, zero), self.best(floor))

    def best(self, floor: float) -> Event | None:
        found = [best_tail(self.p1.sum(axis=0), self.p0.sum(axis=0), floor)]
        for side, one, zero in zip(SIDES, self.p1, self.p0, strict=True):

            def named(k: int, beyond: bool, side: int = side) -> str:
                return f"tau {'>' if beyond else '<='} {k} and {NAMES[side]}"

            found.append(best_tail(one, zero, floor, named))
        return largest(found)

    def binned(self, width: int) -> tuple[FloatArray, FloatArray]:
        """The same in bins of tau, [0, width), [width, 2 width), ..."""
        one, zero = (_binned(p, width) for p in (self.p1, self.p0))
        return one, zero


def _binned(p: FloatArray, width: int) -> FloatArray:
    first = np.concatenate([np.zeros((p.shape[0], 1)), p], axis=1)  # tau = 0 belongs to the first bin
    short = -first.shape[1] % width
    return np.asarray(np.pad(first, ((0, 0), (0, short))).reshape(p.shape[0], -1, width).sum(axis=2))


@lru_cache(maxsize=16)
def marginal_law(test: Sprt, mechanism: Mechanism, p_phi: float, entries: tuple[int, ...]) -> MarginalLaw:
    """The exact laws of (tau, o) given that all entries are 1, and that all are 0.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> law = marginal_law(test, Exponential.private(test, 0.01), 0.84, entries=(1,))
    >>> found = law.leakage(np.array([0.01, 0.02]), floor=0.01)
    >>> f"{found.total_variation:.5f}", f"{found.profile.at(0.01):.5f}", f"{found.profile.at(0.02):.5f}"
    ('0.00822', '0.00703', '0.00608')
    >>> found.best.name, f"{found.best.log_ratio:.4f}"
    ('tau <= 365', '0.2549')
    """
    laws = [exact_law(test, mechanism, p_phi, dict.fromkeys(entries, bit)) for bit in (1, 0)]
    size = max(law.null.size for law in laws)
    one, zero = (_padded(law, size) for law in laws)
    error, scatter = (max(getattr(law, name) for law in laws) for name in ("error", "scatter"))
    return MarginalLaw(one, zero, error, scatter, laws[0].method)


def _padded(law: TerminationLaw, size: int) -> FloatArray:
    full = np.zeros((3, size))
    full[0, : law.null.size], full[1, : law.alt.size] = law.null, law.alt
    return full


# --- sampled --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counts:
    """Runs by (half, member, side, tau - 1); the halves are there to choose an event on one and judge it on the other.

    Member 0 has x_n = 1. Longer times than the last cell are counted in it.
    """

    counts: IntArray
    runs: int

    @property
    def unfinished(self) -> int:
        return int(self.counts[:, :, 2].sum())

    def law(self) -> MarginalLaw:
        """Shares of all runs, as if they were the laws."""
        shares = self.counts.sum(axis=0) / self.runs
        return MarginalLaw(shares[0], shares[1], math.nan, math.nan, "sampled")


def count_runs(
    test: Sprt,
    mechanism: Mechanism,
    p_phi: float,
    entries: tuple[int, ...],
    runs: int,
    *,
    seed: int,
    max_steps: int,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Counts:
    """(tau, decision) of `runs` runs with all entries 1, and of as many others with all entries 0, counted.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> found = count_runs(test, Exponential.private(test, 0.5), 0.84, (1,), 1000, seed=1, max_steps=10**6)
    >>> int(found.counts.sum()), found.unfinished
    (2000, 0)
    """
    counts = np.zeros((2, 2, 3, 1024), np.int64)
    done = 0
    for member, bit in enumerate((1, 0)):
        stream = int(derived(seed, (_ONE, _ZERO)[member]))
        options: dict[str, Any] = {"seed": stream, "max_steps": max_steps, "threads": threads}
        path = 0
        for block in draw_blocks(test, mechanism, p_phi, runs, entries=entries, bit=bit, **options):
            tau = np.minimum(block.tau, _LONGEST)
            if tau.max() > counts.shape[3]:
                grown = max(int(tau.max()), 2 * counts.shape[3])
                counts = np.pad(counts, ((0, 0), (0, 0), (0, 0), (0, grown - counts.shape[3])))
            half, side = np.arange(path, path + tau.size) % 2, _PLACE[block.decision]
            counts[:, member] += _tally(half, side, tau, counts.shape[3])
            path += tau.size
            done += tau.size
            if progress is not None:
                progress(done)
    return Counts(counts[..., : int(np.flatnonzero(counts.sum(axis=(0, 1, 2)))[-1]) + 1], runs)


def _tally(half: IntArray, side: IntArray, tau: IntArray, size: int) -> IntArray:
    """How often each (half, side, tau) occurs."""
    cell = (half * 3 + side) * size + tau - 1
    return np.bincount(cell, minlength=6 * size).reshape(2, 3, size)


def affordable_pairs(test: Sprt, mechanism: Mechanism, p_phi: float) -> int:
    """How many pairs can be followed to the end of L in seconds: with a tiny epsilon that is millions of samples."""
    reach = max(test.b_up, test.b_low) + abs(float(mechanism.quantile(1.0 - 1e-12)))
    samples = min(test.wald(p_phi, reach).samples, 1e15)
    return max(2, int(1e8 / samples))


def smoothed_law(
    test: Sprt,
    mechanism: Mechanism,
    p_phi: float,
    entries: tuple[int, ...],
    pairs: int,
    width: int,
    *,
    seed: int,
    max_steps: int,
) -> tuple[FloatArray, FloatArray]:
    """Means and standard errors of P(bin, side) by Rao-Blackwell: ``[member, side, bin]``, from pairs of sequences.

    Each sequence contributes the probability, over L alone, that its tau falls into a bin: the survival function of L
    at one record less that at the next.
    """
    total, squares = np.zeros((2, 3, 1)), np.zeros((2, 3, 1))
    for path in range(pairs):
        law = draw_pair(test, mechanism, p_phi, path, entries, seed=seed, max_steps=max_steps)
        place, side = law.tau // width, _PLACE[law.decision]
        bins = max(int(place.max()) + 1, total.shape[2])
        each = np.zeros((2, 3, bins))
        for member, p in enumerate((law.p1, law.p0)):
            np.add.at(each[member], (side, place), p)
        total, squares = _grown(total, bins) + each, _grown(squares, bins) + each**2
    mean = total / pairs
    return mean, np.sqrt(np.maximum(squares / pairs - mean**2, 0.0) / max(pairs - 1, 1))


def _grown(array: FloatArray, bins: int) -> FloatArray:
    return np.pad(array, ((0, 0), (0, 0), (0, bins - array.shape[2])))
