"""The sampled expected audit's histogram: shares of the draws of L by the bin their average termination time falls in.

Draws come in batches, each with its sums over all pairs; what is kept of a batch is its counts. So memory does not
grow with the draws, nor with the pairs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpsmc_audit.evidence.bounds import FEWEST, PARTS, Parts, bounded_verdict, part_of
from dpsmc_audit.evidence.events import Counted, joined, outcome_code
from dpsmc_audit.evidence.verdict import Finding
from dpsmc_audit.evidence.witness import Ranges
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.observers.expected.law import ExpectedLaw
from dpsmc_audit.observers.expected.verdicts import Histogram, log_ratio
from dpsmc_audit.sampling.pairs import GROUPS, PairSums
from dpsmc_audit.sampling.streams import Shuffle

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["BATCH", "Picture", "bytes_needed", "outside_by_chance"]


BATCH = 65_536
"""Draws of L in a batch."""
REPLICATES, TOGETHER = 200, 10
"""Of the bootstrap; so many at once are one product of matrices."""
SIMULATED = 2000
_CELLS = 1 << 21
"""Of simulated bins at a time."""


def bytes_needed(draws: int, bins: int) -> float:
    """Estimate the memory of a histogram.

    It holds the sums of a batch, as integers and floating-point numbers, and the replicates of every bin with their
    quantiles.

    Parameters
    ----------
    draws : int
        Draws of L.
    bins : int
        Bins of the averages.

    Returns
    -------
    float
        The memory in bytes.
    """
    return (
        (2.0 * GROUPS + 4.0 * TOGETHER) * 8.0 * 2 * min(draws, BATCH) + 10.0 * 8.0 * REPLICATES * bins + 64.0 * _CELLS
    )


class Picture:
    """Counts of the draws so far by member and bin, and the same for every replicate of a bootstrap.

    A replicate draws both the groups of pairs and the draws of L anew (these within their batch), so that its
    percentiles reflect the finite number of both. Bins are [0, width), [width, 2 width), ...

    Parameters
    ----------
    width : int
        Of the bins.
    seed : int
        Of the bootstrap.
    """

    def __init__(self, width: int, seed: int) -> None:
        self.width, self.seed = width, seed
        self.batches = self.draws = self.unfinished = self.steps = 0
        self.counts = np.zeros((2, 1), np.int64)
        self.replicates = np.zeros((REPLICATES, 2, 1), np.int64)
        self.start = np.full(2, math.inf)
        self._groups = np.zeros((REPLICATES, 0), np.int64)
        self._parts: list[list[Counted]] = [[Counted.of(np.zeros(0, np.int64))] * PARTS for _ in range(2)]

    def add(self, sums: PairSums) -> None:
        """Add a batch of draws. `start` becomes the average at the smallest L so far, for both members.

        Parameters
        ----------
        sums : PairSums
            The sums of tau over all pairs, for each L of the batch.
        """
        means = sums.means()
        self.start = np.minimum(self.start, means[:, 0])
        places = (means // self.width).astype(np.int64)
        self._grow(int(places.max()) + 1)
        for member, place in enumerate(places):
            self.counts[member] += np.bincount(place, minlength=self.counts.shape[1])
        self._replicate(sums, int(places.min()))
        self._add_parts(means)
        self.batches, self.draws = self.batches + 1, self.draws + sums.excess.size
        self.unfinished, self.steps = self.unfinished + sums.unfinished, self.steps + sums.steps

    def _grow(self, bins: int) -> None:
        more = max(bins - self.counts.shape[1], 0)
        self.counts = np.pad(self.counts, ((0, 0), (0, more)))
        self.replicates = np.pad(self.replicates, ((0, 0), (0, 0), (0, more)))

    def _rng(self, purpose: Shuffle) -> np.random.Generator:
        return np.random.default_rng([self.seed, purpose, *([self.batches] if self.batches else [])])

    def _replicate(self, sums: PairSums, first: int) -> None:
        groups, draws, bins = sums.sizes.size, sums.excess.size, self.counts.shape[1]
        rng, shares = self._rng(Shuffle.BOOTSTRAP), (np.full(groups, 1.0 / groups), np.full(draws, 1.0 / draws))
        inner = self.width * np.arange(first + 1, bins)  # edges between the bins; what lies beyond is in the outer ones
        if self.batches == 0:
            self._groups = np.zeros((REPLICATES, groups), np.int64)
        for some in np.array_split(np.arange(REPLICATES), REPLICATES // TOGETHER):
            again = []
            for k in some:
                if self.batches == 0:
                    self._groups[k] = rng.multinomial(groups, shares[0])
                again.append(rng.multinomial(draws, shares[1]))
            for k, weights, rows in zip(some, again, sums.means(self._groups[some]), strict=True):
                before = np.concatenate([[0], np.cumsum(weights)])
                for member, means in enumerate(rows):  # which do not fall when L grows
                    reached = before[np.searchsorted(means, inner)]
                    self.replicates[k, member, first:] += np.diff(reached, prepend=0, append=draws)

    def _add_parts(self, means: FloatArray) -> None:
        """Count outcomes by part, for the verdict on the drawn pairs. A batch is sorted, the parts must not be."""
        order = self._rng(Shuffle.PARTS).permutation(means.shape[1])
        part = part_of(self.draws, order.size)
        for member, row in zip(self._parts, means, strict=True):
            codes = outcome_code(np.floor(row[order]).astype(np.int64), np.zeros(order.size, np.int64))
            for k in range(PARTS):
                member[k] = joined([member[k], Counted.of(codes[part == k])])

    def histogram(self, law: ExpectedLaw, epsilon: float, confidence: float) -> Histogram:
        """Make the histogram: shares, their ratio with its interval, and the check. Empty bins are left out.

        Parameters
        ----------
        law : ExpectedLaw
            The exact laws, for the column `exact_log_ratio`.
        epsilon : float
            The claim.
        confidence : float
            The confidence of the intervals.

        Returns
        -------
        Histogram
            The bins.
        """
        lo = self.width * np.arange(float(self.counts.shape[1]))
        p1, p0 = self.counts / self.draws
        ratio, tail = log_ratio(p1, p0), 0.5 * (1.0 - confidence)
        replicates = log_ratio(self.replicates[:, 0] / self.draws, self.replicates[:, 1] / self.draws)
        known = np.nan_to_num(replicates, nan=0.0, posinf=1e9, neginf=-1e9)
        low, high = np.quantile(known, [tail, 1.0 - tail], axis=0)
        low, high = (np.where(np.abs(x) >= 1e8, np.copysign(math.inf, x), x) for x in (low, high))
        with np.errstate(invalid="ignore"):
            outside = np.abs(ratio) > epsilon
        exact = _exact_ratio_on(law, lo)
        return Histogram(lo, lo + self.width, p1, p0, ratio, low, high, exact, outside).kept((p1 + p0) > 0)

    def given_pairs(self, epsilon: float, confidence: float, floor: float, delta: float = 0.0) -> Finding | None:
        """Give the verdict on what the histogram shows.

        It shows averages over the drawn pairs, with L as the only random number.
        For given sequences the draws of L are independent runs of a mechanism that releases that average (rounded
        down), so the bounds of `evidence.bounds` hold without any approximation. Both members meet the same L: each
        bound joins its two proportions by a union bound, which asks for no independence between them.

        Parameters
        ----------
        epsilon : float
            The claim.
        confidence : float
            The confidence of the bounds.
        floor : float
            The probability of the events for which the smallest detectable epsilon is reported.
        delta : float
            The claimed delta.

        Returns
        -------
        Finding or None
            The verdict; None if there are too few draws.
        """
        if self.draws < FEWEST:
            return None
        parts = Parts((tuple(self._parts[0]), tuple(self._parts[1])))
        found = bounded_verdict(parts, epsilon, delta, confidence, floor=floor)
        if found.witness is None:
            return found
        assert isinstance(found.witness.what, Ranges)
        (share,) = found.witness.what.shares  # averages come without a decision: all are coded with the same one
        what = Ranges((replace(share, decision=None),), "average")
        return replace(found, witness=replace(found.witness, what=what))

    def saved(self) -> Saved:
        """Return the counts by name, for a checkpoint."""
        names = ("batches", "draws", "unfinished", "steps")
        state: Saved = {name: getattr(self, name) for name in names}
        state |= {"counts": self.counts, "replicates": self.replicates, "start": self.start, "groups": self._groups}
        for m, member in enumerate(self._parts):
            for k, part in enumerate(member):
                state |= {f"codes{m}{k}": part.codes, f"seen{m}{k}": part.counts}
        return state

    def restore(self, saved: Saved) -> None:
        """Set the counts to those of a checkpoint.

        Parameters
        ----------
        saved : dict
            A state that `saved` returned.

        Raises
        ------
        ValueError
            If the counts do not add up to the draws.
        KeyError
            If a part is missing.
        """
        batches, draws, unfinished, steps = (int(saved[name]) for name in ("batches", "draws", "unfinished", "steps"))
        counts, replicates, groups = (np.asarray(saved[name], np.int64) for name in ("counts", "replicates", "groups"))
        if not np.all(counts.sum(axis=1) == draws) or replicates.shape != (REPLICATES, *counts.shape):
            raise ValueError("counts do not add up to the draws")
        parts = [[Counted(*(np.asarray(saved[f"{what}{m}{k}"], np.int64) for what in ("codes", "seen")))
                  for k in range(PARTS)] for m in range(2)]  # fmt: skip
        self.batches, self.draws, self.unfinished, self.steps = batches, draws, unfinished, steps
        self.counts, self.replicates, self._groups, self._parts = counts, replicates, groups, parts
        self.start = np.asarray(saved["start"], np.float64)


def _exact_ratio_on(law: ExpectedLaw, lo: FloatArray) -> FloatArray:
    """Compute the exact log ratios of the bins that begin at `lo`: nan beyond the exact law's last edge."""
    ratios = log_ratio(*law.probabilities())[:-1]
    place = np.searchsorted(law.edges, lo)
    return np.array([ratios[i] if i < ratios.size else math.nan for i in place])


def outside_by_chance(law: ExpectedLaw, draws: int, epsilon: float, seed: int) -> float:
    """Estimate how many bins this many draws of L put outside by chance.

    Only bins count whose exact ratio is inside, or on the line. Both members meet the same draws, so most of a bin's
    draws are in it for both: its counts are C + A and C + B with independent Poisson C, A, B, whose means the exact
    laws give. The finite number of pairs moves both members by the same amount.

    Parameters
    ----------
    law : ExpectedLaw
        The exact laws.
    draws : int
        Draws of L.
    epsilon : float
        The claim.
    seed : int
        The seed of the simulation.

    Returns
    -------
    float
        The mean number of bins over `SIMULATED` simulations.
    """
    p1, p0 = law.probabilities()
    above, below = np.minimum(law.tail_1, law.tail_0), np.maximum(law.tail_1, law.tail_0)
    both = np.maximum(above - np.append(below[1:], 0.0), 0.0)
    with np.errstate(invalid="ignore"):
        fair = np.abs(log_ratio(p1, p0)) <= epsilon + 1e-6
    rng = np.random.default_rng([seed, Shuffle.CHANCE])
    means = [draws * np.maximum(p, 0.0)[fair] for p in (both, p1 - both, p0 - both)]
    rows, outside = max(_CELLS // max(int(fair.sum()), 1), 1), 0
    for first in range(0, SIMULATED, rows):
        shape = (min(rows, SIMULATED - first), int(fair.sum()))
        common, one, zero = (rng.poisson(mean, shape) for mean in means)
        with np.errstate(invalid="ignore"):
            ratio = np.abs(log_ratio((common + one).astype(np.float64), (common + zero).astype(np.float64)))
            outside += int(np.count_nonzero(ratio > epsilon))
    return outside / SIMULATED
