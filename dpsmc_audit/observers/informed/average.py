"""What the informed observer learns on average over random sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpsmc_audit.errors import require
from dpsmc_audit.evidence.means import BoundedMean, bounded_mean
from dpsmc_audit.evidence.profiles import Profile
from dpsmc_audit.exact.laws import LONGEST
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.numerics.ties import best_of
from dpsmc_audit.observers.informed.law import _TAIL, InformedLaw, informed_law, lowest_record
from dpsmc_audit.runs.execution import accumulate, cut
from dpsmc_audit.runs.memory import require_room
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.records import Records, draw_records
from dpsmc_audit.setting import Adjacent, Setting

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["BLOCK", "InformedAverage", "average", "draw_pair", "samples_to_the_end"]


_CAPPED = 1e-9
"""A drawn sequence counts as capped if more than this probability runs on after its last sample."""


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
    >>> from dpsmc_audit import Exponential, Setting, Sprt
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
    >>> from dpsmc_audit import Exponential, Setting, Sprt
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
