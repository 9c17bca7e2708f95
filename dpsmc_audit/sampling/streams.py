"""Random streams: each purpose has its own, so that nothing is drawn twice."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from dpsmc_audit.errors import require
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.sampling.kernels import _mix, _uniforms

__all__ = ["Purpose", "Shuffle", "check_seed", "derived", "uniforms"]


class Purpose(IntEnum):
    """What the numbers of a stream decide. The stream of the seed itself decides the runs and their L."""

    SEQUENCES = 1  # the samples of drawn sequences, and of pairs of them
    EXCESS = 2  # the draws of L that all meet the same sequences
    COIN = 3  # the decision of a run whose L leaves no room between the bounds
    BEGINNING = 4  # the samples of a run up to the last entry that is given
    ONE = 5  # the runs of the member with ones at the entries
    ZERO = 6  # the runs of the other member
    SPEED = 16  # the speed of the powertrain
    MAF = 17  # its tolerances
    INJECTOR = 18
    AIR_FUEL = 19
    KAPPA = 20
    TAU = 21
    ESTIMATE = 40  # the samples from which p_phi is estimated
    MODEL_RUNS = 41  # the samples of runs on a model


class Shuffle(IntEnum):
    """What a generator of NumPy, seeded by the seed and this number, decides about draws that were made."""

    BOOTSTRAP = 3  # replicates of a histogram
    CHANCE = 4  # how many bins are put outside by chance
    PARTS = 7  # which draws choose events and which judge them


def check_seed(seed: int) -> None:
    """Check that a seed is a 64-bit word.

    Parameters
    ----------
    seed : int
        The seed.

    Raises
    ------
    ParameterError
        If the seed is not in [0, 2^64).
    """
    require(0 <= seed < 2**64, f"seed must lie in [0, 2^64), got {seed}")


def derived(seed: int, purpose: int) -> np.uint64:
    """Derive the seed of the streams for another purpose.

    Parameters
    ----------
    seed : int
        The seed.
    purpose : int
        A `Purpose`, or another number.

    Returns
    -------
    uint64
        The derived seed.

    Raises
    ------
    ParameterError
        If the seed is not a 64-bit word.
    """
    check_seed(seed)
    return np.uint64(_mix(np.uint64((seed + purpose * 0xD1342543DE82EF95) % 2**64)))


def uniforms(seed: int | np.uint64, first: int, count: int) -> FloatArray:
    """Draw the first number of each of these streams.

    Parameters
    ----------
    seed : int
        The seed of the streams.
    first, count : int
        The number of the first stream, and how many there are.

    Returns
    -------
    ndarray
        Uniform numbers in [0, 1).
    """
    drawn = np.empty(count)
    _uniforms(np.uint64(seed), first, drawn)
    return drawn
