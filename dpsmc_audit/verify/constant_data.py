"""What one release leaks about one sample if all other samples are equal, for many samples at once.

The walk of data that are all equal is a straight line. A changed sample moves the rest of the line back by
``c = s_plus + s_minus``. Outcomes before the changed sample keep their probabilities. About ``c / step`` samples later
the records are those of the moved line, whichever sample was changed. So the sums over later outcomes are computed
once, and each sample adds only the few outcomes in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.observers.informed.law import given_sequence, lowest_record
from dpsmc_audit.sprt import Sprt

__all__ = ["constant_data_deltas"]


def constant_data_deltas(
    test: Sprt, mechanism: Mechanism, bit: int, length: int, entries: Sequence[int], epsilons: Sequence[float]
) -> FloatArray:
    """Compute the delta that each entry needs at each epsilon, in the worse direction.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    bit : int
        The value of all samples but the entry.
    length : int
        The number of samples.
    entries : sequence of int
        The samples that are changed in turn, counted from 1.
    epsilons : sequence of float
        The privacy levels.

    Returns
    -------
    ndarray, shape (entries, epsilons)
        The deltas.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> found = constant_data_deltas(test, Exponential.private(test, 0.1), 1, 3000, [1, 100], [0.1])
    >>> np.round(found[:, 0], 4).tolist()
    [0.0926, 0.0171]
    """
    along, back, bound, other = test.s_plus, test.s_minus, test.b_up, test.b_low
    if bit == 0:
        along, back, bound, other = back, along, other, bound
    lowest, room = lowest_record(test, mechanism), float(mechanism.survival(test.no_room))

    def running(excess: FloatArray) -> FloatArray:
        """Compute P(still running) after each sample."""
        return np.where(excess > lowest, np.minimum(mechanism.survival(excess), room), room)

    steps = np.arange(length + 1.0)  # positions come from counts everywhere in the package, so ties stay ties
    line, moved = running(steps * along - bound), running((steps - 1.0) * along - back - bound)
    line[0] = moved[0] = room
    mass, shifted = (-np.diff(values, append=0.0) for values in (line, moved))
    later = [[_sums_from(_above(p, q, epsilon)) for p, q in ((mass, shifted), (shifted, mass))] for epsilon in epsilons]
    between = math.ceil(test.step_sum / along) + 1  # after so many samples the moved line sets records again

    def deltas(entry: int) -> list[float]:
        before = (entry - 1) * along
        if entry == 1 or back - before - other > max(lowest, before - bound):
            # the changed sample can set a record at the other bound, or the coin decides
            law = given_sequence(test, mechanism, np.full(length, bit, np.int8), [entry])
            return [law.profile(np.array([epsilon])).at(epsilon) for epsilon in epsilons]
        end = min(entry + between, length)
        near = np.minimum(line[entry - 1], moved[entry : end + 1])
        changed = -np.diff(near, prepend=line[entry - 1])
        if end == length:  # the last outcome is to run on
            changed = np.append(changed, near[-1])
        rest = entry - 1 + changed.size
        same = mass[entry - 1 : rest]
        return [
            max(
                float(_above(same, changed, epsilon).sum()) + forth[rest],
                float(_above(changed, same, epsilon).sum()) + behind[rest],
            )
            for epsilon, (forth, behind) in zip(epsilons, later, strict=True)
        ]

    return np.array([deltas(entry) for entry in entries])


def _above(p: FloatArray, q: FloatArray, epsilon: float) -> FloatArray:
    """By how much p exceeds ``exp(epsilon) q``. Where that overflows, only q = 0 counts."""
    return np.where(q == 0.0, p, 0.0) if epsilon > 700.0 else np.maximum(p - math.exp(epsilon) * q, 0.0)


def _sums_from(values: FloatArray) -> FloatArray:
    """Sum the values from each place on, with 0 after the last."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)
