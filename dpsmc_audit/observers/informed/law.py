"""The informed observer of standard differential privacy, who knows every sample but the entries in question.

For a given sequence only L is random, and tau is one of the times at which the excess sets a record:
``P(tau = k) = survival(record before k) - survival(record at k)``. From the last entry on, the walk with ones at the
entries is a fixed distance above the walk with zeros (``s_plus + s_minus`` for one entry), so the two set records at
different times: some values of tau are possible for one of them only, and reveal the samples with certainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import in_order, require
from dpsmc_audit.evidence.profiles import Profile, privacy_profile, total_variation
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray, IntArray
from dpsmc_audit.observers.informed.outcomes import Ends, keys_of, mass_ends, masses, running_key
from dpsmc_audit.sampling.records import Records, records_of
from dpsmc_audit.sprt import Sprt

if TYPE_CHECKING:
    pass

__all__ = ["InformedLaw", "given_sequence", "informed_law", "lowest_record"]


RUNNING = -1
"""The decision of a run that has not ended with the last sample that was read."""

_TAIL = 1e-12
"""Records are followed until less than this probability runs on; ratios of outcomes below it say nothing."""

_IMPOSSIBLE = 1e-6
"""An outcome this much less likely counts as impossible. At p = 1/2 records tie, and rounding puts them apart; bounds
are nearer by one part in 10^9 (see `Sprt`): both leave traces of probability where there is none."""

_TRACE = 1e-15
"""Where two records tie, rounding may leave this much probability between them, or none."""


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
