"""The marginal observer: sees one released (tau, o), knows neither L nor the other samples.

Compared are ``P(tau = k, o | x_n = 1)`` and ``P(tau = k, o | x_n = 0)``, the decision always part of the outcome. The
exact laws come from `exact.laws`. Sampled, they come in two ways: termination times of many runs, counted; and
Rao-Blackwell's way, where a walk contributes not one tau but the law of tau given its records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from dpsmc_audit.evidence.bounds import Parts
from dpsmc_audit.evidence.events import Counted, joined, outcome_code
from dpsmc_audit.evidence.gathered import Gathered, Outcomes, Tables, counted
from dpsmc_audit.evidence.means import betting_intervals
from dpsmc_audit.evidence.profiles import Leakage, best_tail, largest, privacy_profile, tail_of_tau, total_variation
from dpsmc_audit.evidence.witness import Event
from dpsmc_audit.exact.fixed import TerminationLaw
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.exact.strata import LONGEST
from dpsmc_audit.numerics.arrays import FloatArray, IntArray
from dpsmc_audit.observers.informed.average import draw_pair, samples_to_the_end
from dpsmc_audit.runs.execution import AHEAD, accumulate, cut
from dpsmc_audit.sampling.kernels import ALT, NULL, UNFINISHED
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.runs import block_size_for, check_runs, draw_block
from dpsmc_audit.sampling.streams import Purpose, derived
from dpsmc_audit.setting import Adjacent, Setting

if TYPE_CHECKING:
    from dpsmc_audit.evidence.anytime import Anytime

__all__ = ["Counts", "MarginalLaw", "SmoothedLaw", "affordable_pairs", "count_runs", "marginal_law", "smoothed_law"]


SIDES = (NULL, ALT, UNFINISHED)
NAMES = {NULL: "H_null", ALT: "H_alt", UNFINISHED: "undecided"}
_PLACE = np.array([1, 0, 2])
"""The side's row for decision 0 (H_alt), 1 (H_null) and -1 (undecided)."""


_LONGEST = 1 << 22
"""Termination times above this are counted together."""


@dataclass(frozen=True, eq=False)
class MarginalLaw:
    """The laws of (tau, side) of both members.

    Parameters
    ----------
    p1, p0 : ndarray
        ``p1[side][k - 1] = P(tau = k, side | x_n = 1)`` for the sides H_null, H_alt and undecided; `p0` for x_n = 0.
    error : float
        The numerical error of a tail.
    scatter : float
        The numerical error of the law as a whole (the sum over all outcomes).
    method : str
        How it was computed.
    """

    p1: FloatArray
    p0: FloatArray
    error: float
    scatter: float
    method: str

    def leakage(self, epsilons: FloatArray, floor: float) -> Leakage:
        """Compute the leakage of one release.

        Parameters
        ----------
        epsilons : ndarray
            The grid of the privacy profile.
        floor : float
            The smallest probability of the best tail.

        Returns
        -------
        Leakage
            The profile, the total variation and the best tail.
        """
        one, zero = self.p1.ravel(), self.p0.ravel()
        return Leakage(privacy_profile(one, zero, epsilons), total_variation(one, zero), self.best(floor))

    def best(self, floor: float) -> Event | None:
        """Find the tail of tau, alone or with a decision, with the largest ratio.

        Parameters
        ----------
        floor : float
            The smallest probability of the tail for the likelier member.

        Returns
        -------
        Event or None
            The tail; None if no tail is so probable.
        """
        found = [best_tail(self.p1.sum(axis=0), self.p0.sum(axis=0), floor)]
        for side, one, zero in zip(SIDES, self.p1, self.p0, strict=True):
            found.append(best_tail(one, zero, floor, partial(tail_of_tau, decision=side)))
        return largest(found)

    def binned(self, width: int) -> tuple[FloatArray, FloatArray]:
        """Sum up the laws in bins of tau: [0, width), [width, 2 width), ...

        Parameters
        ----------
        width : int
            The width of the bins.

        Returns
        -------
        tuple of ndarray
            The laws of both members, ``[side][bin]``.
        """
        one, zero = (_binned(p, width) for p in (self.p1, self.p0))
        return one, zero


def _binned(p: FloatArray, width: int) -> FloatArray:
    first = np.concatenate([np.zeros((p.shape[0], 1)), p], axis=1)  # tau = 0 belongs to the first bin
    short = -first.shape[1] % width
    return np.asarray(np.pad(first, ((0, 0), (0, short))).reshape(p.shape[0], -1, width).sum(axis=2))


@lru_cache(maxsize=16)
def marginal_law(pair: Adjacent) -> MarginalLaw:
    """Compute the two laws of (tau, o) without sampling.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.

    Returns
    -------
    MarginalLaw
        The law for each member, with its numerical error.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting, Sprt
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> law = marginal_law(Adjacent(Setting(test, Exponential.private(test, 0.01), 0.84)))
    >>> found = law.leakage(np.array([0.01, 0.02]), floor=0.01)
    >>> f"{found.total_variation:.5f}", f"{found.profile.at(0.01):.5f}", f"{found.profile.at(0.02):.5f}"
    ('0.00822', '0.00703', '0.00608')
    >>> found.best.name, f"{found.best.log_ratio:.4f}"
    ('tau <= 365', '0.2549')
    """
    laws = [exact_law(pair.setting, pair.forced(bit)) for bit in (1, 0)]
    size = max(law.null.size for law in laws)
    one, zero = (_padded(law, size) for law in laws)
    error, scatter = (max(getattr(law, name) for law in laws) for name in ("error", "scatter"))
    return MarginalLaw(one, zero, error, scatter, max(laws, key=lambda law: law.scatter).method)


def _padded(law: TerminationLaw, size: int) -> FloatArray:
    full = np.zeros((3, size))
    full[0, : law.null.size], full[1, : law.alt.size] = law.null, law.alt
    return full


# --- sampled --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counts:
    """Outcomes of runs of both members, counted by part (`evidence.bounds`); member 0 has x_n = 1.

    Parameters
    ----------
    parts : Parts
        The counts.
    runs : int
        Runs of each member.
    """

    parts: Parts
    runs: int

    @property
    def unfinished(self) -> int:
        """How many runs of both members stopped at the cap, without a decision."""
        both = joined(list(self.parts.part(0, 1, 2)))
        return int(both.counts[both.decision == UNFINISHED].sum())

    @property
    def samples(self) -> int:
        """The sum of tau over all runs of both members."""
        both = joined(list(self.parts.part(0, 1, 2)))
        return int(np.dot(both.tau.astype(object), both.counts))

    def law(self) -> MarginalLaw:
        """Return the shares of all runs, as if they were the laws."""
        members = self.parts.part(0, 1, 2)
        size = max(int(min(member.tau[-1], _LONGEST)) for member in members)
        one, zero = (_dense(member, size) / self.runs for member in members)
        return MarginalLaw(one, zero, math.nan, math.nan, "sampled")


def _dense(member: Counted, size: int) -> IntArray:
    """Convert outcome codes to rows of sides, with a column for each tau."""
    table = np.zeros((len(SIDES), size), np.int64)
    np.add.at(table, (_PLACE[member.decision], np.minimum(member.tau, _LONGEST) - 1), member.counts)
    return table


def _block(pair: Adjacent, sampling: Sampling, as_codes: bool, first: int, count: int) -> Outcomes | Tables:
    """Draw runs first, ..., first + count - 1 of both members. The result does not depend on the process."""
    one, zero = (
        draw_block(
            pair.setting,
            first,
            count,
            replace(sampling, seed=int(derived(sampling.seed, stream))),
            entries=pair.entries,
            bit=bit,
        )
        for bit, stream in ((1, Purpose.ONE), (0, Purpose.ZERO))
    )
    drawn = Outcomes(outcome_code(one.tau, one.decision), outcome_code(zero.tau, zero.decision))
    return drawn if as_codes else counted(first, drawn)


def count_runs(pair: Adjacent, runs: int, sampling: Sampling = USUAL, *, bets: Anytime | None = None) -> Counts:
    """Count (tau, decision) of runs of each member.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.
    runs : int
        How many runs of each member are drawn.
    sampling : Sampling
        How they are drawn.
    bets : Anytime, optional
        Bets against a claim; runs are drawn only until it is rejected.

    Returns
    -------
    Counts
        The outcomes of all runs, counted.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting, Sprt
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> found = count_runs(Adjacent(Setting(test, Exponential.private(test, 0.5), 0.84)), 1000)
    >>> found.runs, [member.runs for member in found.parts.part(0, 1, 2)], found.unfinished
    (1000, [1000, 1000], 0)
    """
    check_runs(pair.setting.p_phi, runs, sampling, entries=pair.entries)
    execution = sampling.execution
    size = execution.size(block_size_for(pair.setting, sampling.max_steps))
    ahead = AHEAD
    if bets is not None:  # it may stop at any time
        size, ahead = min(size, execution.block_size or 4096), 2
    work = partial(_block, pair, sampling.alone(), bets is not None)
    found = Gathered(bets)
    accumulate(work, lambda done: cut(runs, size, done), found, execution, "runs", ahead)
    return Counts(found.parts(), found.runs)


def affordable_pairs(setting: Setting, max_steps: int) -> int:
    """Return how many pairs can be followed to the end of L in seconds.

    With a tiny epsilon a sequence takes millions of samples.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    max_steps : int
        The largest number of samples of a sequence.

    Returns
    -------
    int
        The number of pairs: 0 if a sequence is longer than `LONGEST`, otherwise at least 2.
    """
    samples = samples_to_the_end(setting, max_steps)
    return 0 if samples > LONGEST else max(2, int(1e8 / samples))


@dataclass(frozen=True, eq=False)
class SmoothedLaw:
    """Rao-Blackwell's estimates of P(bin, side), ``[member, side, bin]``, each with an interval for a bounded mean.

    Intervals are nan where there are too many bins for them.

    Parameters
    ----------
    mean : ndarray
        The estimates.
    low, high : ndarray
        The ends of the intervals.
    steps : int
        Samples drawn.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    steps: int


_MOST_VALUES = 10_000_000
"""Of pairs times bins: more are not kept, and get no intervals."""

_SEQUENCES, _COLUMNS = 8, 64
"""Sequences, and means, in a block of work."""


def smoothed_law(
    pair: Adjacent, pairs: int, width: int, sampling: Sampling = USUAL, *, confidence: float = 0.99
) -> SmoothedLaw:
    """Estimate P(bin, side) by Rao-Blackwell, from pairs of sequences.

    Each sequence contributes the probability, over L alone, that its tau falls into a bin: the survival function of L
    at one record less that at the next. These are no counts: each interval is one for means of values in [0, 1].

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.
    pairs : int
        How many pairs of sequences are drawn; with 0 nothing is known.
    width : int
        Of the bins of tau.
    sampling : Sampling
        How the pairs are drawn.
    confidence : float
        The level of each interval.

    Returns
    -------
    SmoothedLaw
        The estimates with their intervals.
    """
    execution = sampling.execution
    total, size, steps = np.zeros((2, 3, 1)), 0, 0
    if pairs == 0:
        unknown = np.full((2, 3, 0), math.nan)
        return SmoothedLaw(unknown, unknown, unknown, 0)
    kept: list[FloatArray] = []
    work = partial(_smoothed, pair, width, sampling.alone())
    for block in execution.map(work, (block for block, _ in cut(pairs, _SEQUENCES))):
        for found, samples in block:
            bins = max(found.shape[2], total.shape[2])
            each = _grown(found, bins)
            total = _grown(total, bins) + each
            steps += 2 * samples
            size += each.size
            if size <= _MOST_VALUES:
                kept.append(each)
    mean = total / pairs
    if len(kept) < pairs:
        unknown = np.full(mean.shape, math.nan)
        return SmoothedLaw(mean, unknown, unknown, steps)
    values = np.clip(np.array([_grown(each, mean.shape[2]) for each in kept]).reshape(pairs, -1), 0.0, 1.0)
    columns = (block for block, _ in cut(values.shape[1], _COLUMNS))
    ends = list(execution.map(partial(_intervals, values, confidence), columns))
    low, high = (np.concatenate(side).reshape(mean.shape) for side in zip(*ends, strict=True))
    return SmoothedLaw(mean, low, high, steps)


def _smoothed(pair: Adjacent, width: int, sampling: Sampling, first: int, count: int) -> list[tuple[FloatArray, int]]:
    """Compute P(bin, side) given each of the pairs first, first + 1, ..., and count the samples."""
    found = []
    for path in range(first, first + count):
        law = draw_pair(pair, path, sampling)
        place, side = law.tau // width, _PLACE[law.decision]
        each = np.zeros((2, 3, int(place.max()) + 1))
        for member, p in enumerate((law.p1, law.p0)):
            np.add.at(each[member], (side, place), p)
        found.append((each, law.samples))
    return found


def _intervals(values: FloatArray, confidence: float, first: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Compute intervals for the means of these columns."""
    return betting_intervals(values[:, first : first + count], confidence)


def _grown(array: FloatArray, bins: int) -> FloatArray:
    return np.pad(array, ((0, 0), (0, 0), (0, bins - array.shape[2])))
