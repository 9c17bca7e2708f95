"""The informed observer of standard differential privacy, who knows every sample but the entries in question.

For a given sequence only L is random, and tau is one of the times at which the excess sets a record:
``P(tau = k) = survival(record before k) - survival(record at k)``. From the last entry on, the walk with ones at the
entries is a fixed distance above the walk with zeros (``s_plus + s_minus`` for one entry), so the two set records at
different times: some values of tau are possible for one of them only, and reveal the samples with certainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import in_order, require
from dpsmc_audit.evidence.means import BoundedMean, bounded_mean
from dpsmc_audit.evidence.profiles import Profile, privacy_profile, total_variation
from dpsmc_audit.exact.strata import LONGEST
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray, IntArray
from dpsmc_audit.numerics.ties import best_of
from dpsmc_audit.observers.informed.outcomes import Ends, keys_of, mass_ends, masses, running_key
from dpsmc_audit.runs.execution import accumulate, cut
from dpsmc_audit.runs.memory import require_room
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.records import Records, draw_records, records_of
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = [
    "InformedAverage",
    "InformedLaw",
    "average",
    "draw_pair",
    "given_sequence",
    "informed_law",
    "lowest_record",
]


RUNNING = -1
"""The decision of a run that has not ended with the last sample that was read."""

_TAIL = 1e-12
"""Records are followed until less than this probability runs on; ratios of outcomes below it say nothing."""

_IMPOSSIBLE = 1e-6
"""An outcome this much less likely counts as impossible. At p = 1/2 records tie, and rounding puts them apart; bounds
are nearer by one part in 10^9 (see `Sprt`): both leave traces of probability where there is none."""

_TRACE = 1e-15
"""Where two records tie, rounding may leave this much probability between them, or none."""

_CAPPED = 1e-9
"""A drawn sequence counts as capped if more than this probability runs on after its last sample."""


# --- the two laws of one pair of sequences --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InformedLaw:
    """Probabilities of every outcome (tau, decision) of two adjacent sequences.

    Outcomes that neither sequence can have are left out.

    Parameters
    ----------
    tau : ndarray
        Samples drawn.
    decision : ndarray
        1 (H_null), 0 (H_alt) or -1: still running after `tau` samples, the last that were read.
    p1, p0 : ndarray
        The probabilities with ones and with zeros at the entries.
    samples : int
        How many were read in each sequence.
    """

    tau: IntArray
    decision: NDArray[np.int8]
    p1: FloatArray
    p0: FloatArray
    samples: int
    _ends: Callable[[], Ends] = field(repr=False)

    @cached_property
    def ends(self) -> Ends:
        """The ends between which the probabilities surely lie: records and the survival function are rounded."""
        return self._ends()

    @property
    def _only_1(self) -> BoolArray:
        return self.p0 <= _IMPOSSIBLE * self.p1

    @property
    def _only_0(self) -> BoolArray:
        return self.p1 <= _IMPOSSIBLE * self.p0

    @property
    def reveals(self) -> tuple[BoolArray, BoolArray]:
        """Which outcomes are possible for ones at the entries only, and which for zeros only."""
        return self._only_1, self._only_0

    @cached_property
    def reveal_1(self) -> float:
        """P(an outcome that is impossible for zeros at the entries), given ones."""
        return float(self.p1[self._only_1].sum())

    @cached_property
    def reveal_0(self) -> float:
        """P(an outcome that is impossible for ones at the entries), given zeros."""
        return float(self.p0[self._only_0].sum())

    @cached_property
    def total_variation(self) -> float:
        """By how much better than by guessing an observer can distinguish the two sequences."""
        return total_variation(self.p1, self.p0)

    @cached_property
    def worst_ratio(self) -> float:
        """Largest ``|ln(p1 / p0)|`` over the outcomes that both sequences can have; 0 if there are none."""
        both = ~self._only_1 & ~self._only_0 & (np.maximum(self.p1, self.p0) > _TAIL)
        return float(np.abs(np.log(self.p1[both] / self.p0[both])).max(initial=0.0))

    @property
    def running(self) -> tuple[float, float]:
        """P(still running after the last sample that was read), for ones and for zeros."""
        last = self.decision == RUNNING
        return float(self.p1[last].sum()), float(self.p0[last].sum())

    def profile(self, epsilons: FloatArray) -> Profile:
        """Compute the delta that the informed observer of this pair needs, for every epsilon and in both directions.

        Parameters
        ----------
        epsilons : ndarray
            The grid.

        Returns
        -------
        Profile
            The privacy profile.
        """
        return privacy_profile(self.p1, self.p0, epsilons)


def lowest_record(test: Sprt, mechanism: Mechanism) -> float:
    """Return the excess up to which records stop no run: L is larger, or so small that the coin decides.

    A walk whose excess equals L stops, so that with a smallest possible L a record equal to it counts.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.

    Returns
    -------
    float
        The excess. Only records above it matter.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> lowest_record(Sprt(p=0.73, delta=0.01, alpha=0.01), NoNoise())
    -5e-324
    """
    return max(test.no_room, float(np.nextafter(mechanism.quantile(0.0), -math.inf)))


def informed_law(test: Sprt, mechanism: Mechanism, one: Records, zero: Records) -> InformedLaw:
    """Compute the laws of (tau, decision) of two sequences from their records, outcome by outcome.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    one, zero : Records
        The records above `lowest_record` with ones and with zeros at the entries.

    Returns
    -------
    InformedLaw
        The probabilities of the outcomes.

    Raises
    ------
    ParameterError
        If the records are of different numbers of samples.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> test = Sprt(p=0.5, delta=0.25, alpha=0.1)  # a step is ln 3, the bound is two steps away
    >>> one, zero = (records_of(test, np.array([x, 1, 0, 0]), -0.01) for x in (1, 0))
    >>> law = informed_law(test, NoNoise(), one, zero)
    >>> law.tau.tolist(), law.decision.tolist(), law.p1.tolist(), law.p0.tolist()
    ([2, 4], [1, 0], [1.0, 0.0], [0.0, 1.0])
    """
    require(one.samples == zero.samples, "records of two sequences must be of the same number of samples")
    keys_1, keys_0 = keys_of(one), keys_of(zero)
    keys, place = np.unique(np.concatenate([keys_1, keys_0]), return_inverse=True)
    places = place[: keys_1.size], place[keys_1.size :]

    def gathered(member: int, mass: FloatArray) -> FloatArray:
        return np.bincount(places[member], mass, keys.size).astype(np.float64)

    p1, p0 = (gathered(k, masses(test, mechanism, records)) for k, records in enumerate((one, zero)))
    shown, running = (p1 > _TRACE) | (p0 > _TRACE), keys == running_key(one)
    tau, decision = np.where(running, one.samples, keys // 2), np.where(running, RUNNING, keys % 2).astype(np.int8)

    def ends() -> Ends:
        (low_1, high_1), (low_0, high_0) = (
            [gathered(k, mass) for mass in mass_ends(test, mechanism, records)] for k, records in enumerate((one, zero))
        )
        return Ends(low_1, high_1, low_0, high_0, shown, running)

    return InformedLaw(tau[shown], decision[shown], p1[shown], p0[shown], one.samples, ends)


def given_sequence(test: Sprt, mechanism: Mechanism, bits: NDArray[np.integer], entries: Sequence[int]) -> InformedLaw:
    """Compute the laws of a given sequence of samples with its entries set to 1 and set to 0.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    bits : ndarray
        The samples.
    entries : sequence of int
        The samples that differ, counted from 1.

    Returns
    -------
    InformedLaw
        The probabilities of the outcomes.

    Raises
    ------
    ParameterError
        If an entry lies beyond the sequence, or if the entries are impossible.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.5, delta=0.25, alpha=0.1)
    >>> law = given_sequence(test, Exponential(rate=1.0), np.ones(50, np.int8), entries=[1])
    >>> round(law.reveal_1, 3), law.reveal_0  # a zero at the entry goes beyond its bound after 4 samples
    (0.889, 0.0)
    """
    wanted = np.array(in_order(entries))
    require(bits.size >= wanted[-1], f"entry {wanted[-1]} lies beyond the {bits.size} samples of the sequence")
    lowest, members = lowest_record(test, mechanism), []
    for bit in (1, 0):
        changed = np.array(bits, dtype=np.int64)
        changed[wanted - 1] = bit
        members.append(records_of(test, changed, lowest))
    return informed_law(test, mechanism, *members)


# --- random sequences -----------------------------------------------------------------------------------------------


def samples_to_the_end(setting: Setting, max_steps: int) -> float:
    """Estimate how many samples of a sequence are needed until nearly every L has stopped.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    max_steps : int
        The largest number of samples.

    Returns
    -------
    float
        The number of samples, by Wald's approximation. It is at least 1 and at most `max_steps`.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    top = max(float(mechanism.quantile(1.0 - _TAIL)), 0.0)
    return max(min(test.wald(p_phi, top).samples, float(max_steps)), 1.0)


def draw_pair(pair: Adjacent, path: int, sampling: Sampling = USUAL) -> InformedLaw:
    """Compute the two laws of a random sequence.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.
    path : int
        The number of the sequence.
    sampling : Sampling
        How it is drawn. It is followed until neither member runs on with a probability above 1e-12.

    Returns
    -------
    InformedLaw
        The law of (tau, decision) for both members, over L alone.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> law = draw_pair(Adjacent(Setting(test, Exponential.private(test, 0.01), 0.84)), path=0)
    >>> 0.005 < law.reveal_1 < 0.01, law.reveal_0
    (True, 0.0)
    """
    test, mechanism, last = pair.setting.test, pair.setting.mechanism, pair.entries[-1]
    require(sampling.max_steps >= last, f"max_steps must reach entry {last}, got {sampling.max_steps}")
    lowest, top = lowest_record(test, mechanism), float(mechanism.quantile(1.0 - _TAIL))

    def member(bit: int, top: float, steps: int) -> Records:
        return draw_records(pair, path, bit, lowest, top, replace(sampling, max_steps=steps))

    members = [member(bit, top, sampling.max_steps) for bit in (1, 0)]
    longest = max(records.samples for records in members)
    for bit, records in zip((1, 0), members, strict=True):
        if records.samples < longest:  # read both equally far: what one sees beyond is possible for both
            members[1 - bit] = member(bit, math.inf, longest)
    return informed_law(test, mechanism, *members)


@dataclass(frozen=True, eq=False)
class InformedAverage:
    """What the informed observer learns on average over random sequences, and at most among those drawn.

    Each interval holds by itself with the stated confidence.

    Parameters
    ----------
    sequences : int
        How many were drawn.
    reveal_1, reveal_0 : BoundedMean
        The probability that the entries are given away with certainty, where they are ones and where they are zeros.
    total_variation : BoundedMean
        By how much better than by guessing the members can be distinguished.
    profile : Profile
        The delta, averaged over the sequences.
    worst_path : int
        The number of the sequence on which the members are easiest to distinguish.
    worst : InformedLaw
        The law of that sequence.
    capped : int
        Sequences that ran on after the last sample with a probability above 1e-9.
    steps : int
        Samples drawn.
    """

    sequences: int
    reveal_1: BoundedMean
    reveal_0: BoundedMean
    total_variation: BoundedMean
    profile: Profile
    worst_path: int
    worst: InformedLaw
    capped: int
    steps: int


BLOCK = 8
"""Sequences that are audited together."""


@dataclass(frozen=True, eq=False)
class _Several:
    """A block of sequences: reveal_1, reveal_0 and total variation of each, its deltas, and sums."""

    numbers: FloatArray
    deltas: FloatArray
    capped: int
    steps: int


def _several(pair: Adjacent, epsilons: FloatArray, sampling: Sampling, first: int, count: int) -> _Several:
    """Compute sequences first, ..., first + count - 1. The result does not depend on the process."""
    laws = [draw_pair(pair, path, sampling) for path in range(first, first + count)]
    profiles = [law.profile(epsilons) for law in laws]
    return _Several(
        np.array([(law.reveal_1, law.reveal_0, law.total_variation) for law in laws]),
        np.array([(profile.delta_1_over_0, profile.delta_0_over_1) for profile in profiles]),
        sum(max(law.running) > _CAPPED for law in laws),
        sum(2 * law.samples for law in laws),
    )


class _Averages:
    """Sums over sequences, added one by one in their order: sums of floating-point numbers depend on it."""

    def __init__(self, sequences: int, epsilons: int) -> None:
        self.numbers, self.deltas = np.empty((sequences, 3)), np.zeros((2, epsilons))
        self.done = self.capped = self.steps = 0

    def add(self, block: _Several) -> None:
        for deltas in block.deltas:
            self.deltas += deltas
        self.numbers[self.done : self.done + len(block.numbers)] = block.numbers
        self.done += len(block.numbers)
        self.capped += block.capped
        self.steps += block.steps

    def saved(self) -> Saved:
        numbers: Saved = {"done": self.done, "capped": self.capped, "steps": self.steps}
        return numbers | {"numbers": self.numbers[: self.done], "deltas": self.deltas}

    def restore(self, saved: Saved) -> None:
        done, numbers, deltas = int(saved["done"]), np.asarray(saved["numbers"]), np.asarray(saved["deltas"])
        if numbers.shape != (done, 3) or deltas.shape != self.deltas.shape:
            raise ValueError("it is not of these sequences")
        self.done, self.capped, self.steps = done, int(saved["capped"]), int(saved["steps"])
        self.numbers[:done], self.deltas[:] = numbers, deltas


def average(
    pair: Adjacent, sequences: int, epsilons: FloatArray, sampling: Sampling = USUAL, *, confidence: float = 0.99
) -> InformedAverage:
    """Average what the informed observer learns over random sequences.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries. Samples are independent and hold with probability p_phi.
    sequences : int
        How many sequences are drawn.
    epsilons : array
        The grid of the privacy profile.
    sampling : Sampling
        How they are drawn.
    confidence : float
        The level of each interval.

    Returns
    -------
    InformedAverage
        The averages with their intervals, and the worst of the sequences.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.01)
    >>> pair = Adjacent(Setting(test, Exponential.private(test, 0.05), 0.84))
    >>> found = average(pair, 50, np.array([0.05]))
    >>> round(found.reveal_1.mean, 2), found.reveal_0.mean, found.capped
    (0.04, 0.0, 0)
    """
    require(sequences >= 2, f"sequences must be at least 2, got {sequences}")
    samples = samples_to_the_end(pair.setting, sampling.max_steps)
    message = "each sequence would be followed for {:.0e} samples, more than {:.0e}: choose a larger epsilon"
    require(samples <= LONGEST, message.format(samples, LONGEST))
    require_room(80.0 * sequences + 200.0 * samples, f"an average over {sequences} sequences")
    found, size = _Averages(sequences, epsilons.size), sampling.execution.size(BLOCK)
    work = partial(_several, pair, epsilons, sampling.alone())
    accumulate(work, lambda done: cut(sequences, size, done), found, sampling.execution, "sequences")
    path = best_of(found.numbers[:, 2])  # the first of those that are equally easy to distinguish
    worst = draw_pair(pair, path, sampling)
    ones, zeros, apart = (bounded_mean(np.clip(row, 0.0, 1.0), confidence) for row in found.numbers.T)
    profile = Profile(epsilons, *found.deltas / sequences)
    return InformedAverage(sequences, ones, zeros, apart, profile, path, worst, found.capped, found.steps)
