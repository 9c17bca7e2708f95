"""What one release gives away of one sample where all others are alike, for one sample after the other.

The walk of data that are all alike is a straight line, and a changed sample moves the rest of it back by
``c = s_plus + s_minus``. Outcomes before the changed sample are as likely as without it; some ``c / step`` samples
later the records are those of the line moved back, whichever sample was changed. So sums over the latter are made once,
and a sample costs the few outcomes between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.observers.informed.law import given_sequence, lowest_record
from dpsmc_audit.sprt import Sprt

__all__ = ["Alike"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Alike:
    """P(still running after k samples) of data that are all `bit`: `line`, and `moved` back by c."""

    test: Sprt
    mechanism: Mechanism
    bit: int
    line: FloatArray
    moved: FloatArray

    @classmethod
    def of(cls, test: Sprt, mechanism: Mechanism, bit: int, length: int) -> Alike:
        along, back, bound = (test.s_plus, test.s_minus, test.b_up) if bit else (test.s_minus, test.s_plus, test.b_low)
        lowest, room = lowest_record(test, mechanism), float(mechanism.survival(test.no_room))
        steps = np.arange(length + 1.0)  # positions from counts, as everywhere in the suite: ties stay ties

        def running(excess: FloatArray) -> FloatArray:
            return np.where(excess > lowest, np.minimum(mechanism.survival(excess), room), room)

        line, moved = running(steps * along - bound), running((steps - 1.0) * along - back - bound)
        line[0] = moved[0] = room
        return cls(test, mechanism, bit, line, moved)

    @property
    def length(self) -> int:
        return self.line.size - 1

    @property
    def _between(self) -> int:
        """After so many samples more the moved line sets records again."""
        return math.ceil(self.test.step_sum / (self.test.s_plus if self.bit else self.test.s_minus)) + 1

    def _one_bound_only(self, entry: int) -> bool:
        """Whether the changed sample sets no record at the other bound, and is not decided with the coin."""
        test = self.test
        along, back, bound, other = (
            (test.s_plus, test.s_minus, test.b_up, test.b_low)
            if self.bit
            else (test.s_minus, test.s_plus, test.b_low, test.b_up)
        )
        before = (entry - 1) * along
        record = max(lowest_record(test, self.mechanism), before - bound)
        return entry > 1 and back - before - other <= record

    def deltas(self, entries: Sequence[int], epsilons: Sequence[float]) -> FloatArray:
        """For every entry and epsilon the delta that the worse direction needs.

        Examples
        --------
        >>> from dpsmc_audit.mechanisms import Exponential
        >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
        >>> found = Alike.of(test, Exponential.private(test, 0.1), 1, 3000).deltas([1, 100], [0.1])
        >>> np.round(found[:, 0], 4).tolist()
        [0.0926, 0.0171]
        """
        return np.array([self._each(entries, epsilon) for epsilon in epsilons]).T

    def _each(self, entries: Sequence[int], epsilon: float) -> list[float]:
        mass, other = (-np.diff(running, append=0.0) for running in (self.line, self.moved))
        forth, back = (_sums_from(_above(p, q, epsilon)) for p, q in ((mass, other), (other, mass)))
        found = []
        for entry in entries:
            if not self._one_bound_only(entry):
                data = np.full(self.length, self.bit, np.int8)
                law = given_sequence(self.test, self.mechanism, data, [entry])
                found.append(law.profile(np.array([epsilon])).at(epsilon))
                continue
            end = min(entry + self._between, self.length)
            running = np.minimum(self.line[entry - 1], self.moved[entry : end + 1])
            near = -np.diff(running, prepend=self.line[entry - 1])
            if end == self.length:  # the last outcome is to run on
                near = np.append(near, running[-1])
            same = mass[entry - 1 : entry - 1 + near.size]
            rest = entry - 1 + near.size
            ahead, behind = (float(_above(p, q, epsilon).sum()) for p, q in ((same, near), (near, same)))
            found.append(max(ahead + forth[rest], behind + back[rest]))
        return found


def _above(p: FloatArray, q: FloatArray, epsilon: float) -> FloatArray:
    """By how much p exceeds ``exp(epsilon) q``; where that overflows, what q cannot reach at all."""
    return np.where(q == 0.0, p, 0.0) if epsilon > 700.0 else np.maximum(p - math.exp(epsilon) * q, 0.0)


def _sums_from(values: FloatArray) -> FloatArray:
    """Sums from each place on; beyond the last there is nothing."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)
