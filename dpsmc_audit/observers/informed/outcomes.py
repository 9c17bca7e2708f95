"""Outcomes (tau, decision) of a given sequence as numbers, their probabilities, and what these surely lie between."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from dpsmc_audit.mechanisms import Law, Mechanism
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray, IntArray
from dpsmc_audit.observers.expected.edges import SURVIVAL_ERROR
from dpsmc_audit.sampling.records import Records
from dpsmc_audit.sprt import Sprt

__all__ = ["Ends", "keys_of", "mass_ends", "masses", "running_key"]


@dataclass(frozen=True, eq=False)
class Ends:
    """Lower and upper ends of the probability of every outcome.

    Parameters
    ----------
    low_1, high_1 : ndarray
        What the probabilities with ones at the entries surely lie between.
    low_0, high_0 : ndarray
        The same for zeros.
    shown : ndarray
        Those that an `InformedLaw` lists; the others have hardly more probability than rounding makes.
    running : ndarray
        The one of runs that have not ended.
    """

    low_1: FloatArray
    high_1: FloatArray
    low_0: FloatArray
    high_0: FloatArray
    shown: BoolArray
    running: BoolArray

    def kept(self, keep: BoolArray) -> Ends:
        """Keep some outcomes.

        Parameters
        ----------
        keep : ndarray of bool
            Which outcomes are kept.

        Returns
        -------
        Ends
            These outcomes.
        """
        return Ends(*(getattr(self, column.name)[keep] for column in fields(self)))

    @property
    def one(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper ends for ones at the entries."""
        return self.low_1, self.high_1

    @property
    def zero(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper ends for zeros at the entries."""
        return self.low_0, self.high_0


def running_key(records: Records) -> int:
    """Return the key of runs that have not ended. It is larger than all others.

    Parameters
    ----------
    records : Records
        The records of the sequence.

    Returns
    -------
    int
        The key.
    """
    return 2 * max(records.samples, 1) + 2


def keys_of(records: Records) -> IntArray:
    """Number the outcomes of a sequence: ``2 tau + decision``.

    Parameters
    ----------
    records : Records
        The records of the sequence.

    Returns
    -------
    ndarray
        The keys of all records, then that of runs that have not ended, then the two of the coin (H_alt and H_null).
    """
    return np.concatenate([2 * records.times + records.decision, [running_key(records), 2, 3]]).astype(np.int64)


def masses(test: Sprt, mechanism: Mechanism, records: Records) -> FloatArray:
    """Compute the probabilities of the outcomes of `keys_of`.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    records : Records
        The records of the sequence.

    Returns
    -------
    ndarray
        The probabilities, in the order of the keys.
    """
    room = float(mechanism.survival(test.no_room))
    alive = np.minimum(mechanism.survival(records.excess), room)
    coin = 0.5 * (1.0 - room)
    return np.append(-np.diff(alive, prepend=room, append=0.0), [coin, coin])


def mass_ends(test: Sprt, mechanism: Mechanism, records: Records) -> tuple[FloatArray, FloatArray]:
    """Compute two numbers that each probability of `masses` surely lies between.

    A record is a sum of rounded steps less a bound; survival functions are known to a part in 10^13 (`scipy`'s are
    taken to be to one in 10^12, and to 10^-15).

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    records : Records
        The records of the sequence.

    Returns
    -------
    tuple of ndarray
        The lower and the upper ends, in the order of the keys.
    """
    relative, absolute = SURVIVAL_ERROR[isinstance(mechanism, Law)]
    off = 2.0**-51 * (records.times * test.step_sum + max(test.b_up, test.b_low) + np.abs(records.excess))

    def survival(excess: FloatArray, sign: float) -> FloatArray:
        known = np.asarray(mechanism.survival(excess)) * (1.0 + sign * relative) + sign * absolute
        return np.clip(np.where(excess < float(mechanism.quantile(0.0)), 1.0, known), 0.0, 1.0)

    bound = np.array([test.no_room])
    room_low, room_high = survival(bound, -1.0), survival(bound, 1.0)
    low = np.concatenate([room_low, np.minimum(survival(records.excess + off, -1.0), room_low), [0.0]])
    high = np.concatenate([room_high, np.minimum(survival(records.excess - off, 1.0), room_high), [0.0]])
    coins = [0.5 * (1.0 - room) for room in (float(room_high[0]), float(room_low[0]))]
    return (
        np.append(np.maximum(low[:-1] - high[1:], 0.0), [coins[0]] * 2),
        np.append(np.maximum(high[:-1] - low[1:], 0.0), [coins[1]] * 2),
    )
