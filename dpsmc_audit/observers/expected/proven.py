"""What is proven of the laws of averages at every epsilon: the ends of their privacy profile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsmc_audit.evidence.judging import proven_delta
from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.evidence.witness import Event, Ranges, Share
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray
from dpsmc_audit.observers.expected.law import ExpectedLaw

__all__ = ["ProvenAverages"]


@dataclass(frozen=True, eq=False)
class ProvenAverages:
    """The laws of averages as `rejudged` takes them: enclosed in bins, one of which a support gap may split.

    Parameters
    ----------
    law : ExpectedLaw
        The laws.
    """

    law: ExpectedLaw

    @cached_property
    def _cells(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The lower edges of the bins, and both ends of their probabilities for x_n = 1 and for x_n = 0."""
        law, (one, zero) = self.law, self.law.enclosed()
        edges, p1, p0 = law.edges, np.array([one.low, one.high]), np.array([zero.low, zero.high])
        integer, early_1 = law.gap.integer, law.start_1.value < law.start_0.value
        if integer is None:
            return edges, p1, p0
        early, late, tails = (p1, p0, law.one) if early_1 else (p0, p1, law.zero)
        place = self._split
        if place is not None:
            before = 1.0 - np.array([tails.low[place - 1], tails.high[place - 1]])
            inside = np.array([law.gap.below, law.gap.below_at_most]) - before
            here = np.clip(inside, 0.0, early[1, place - 1])  # of the bin, the part below the integer
            early = np.insert(early, place - 1, here, axis=1)
            early[:, place] = np.maximum(early[:, place] - here[::-1], 0.0)
            late = np.insert(late, place - 1, 0.0, axis=1)
            edges = np.insert(edges, place, float(integer))
        late[:, np.append(edges[1:], math.inf) <= integer] = 0.0
        return (edges, early, late) if early_1 else (edges, late, early)

    @property
    def _split(self) -> int | None:
        """Where the integer of the support gap becomes another edge; None if there is none, or it is one already."""
        integer = self.law.gap.integer
        return None if integer is None or integer in self.law.edges else int(np.searchsorted(self.law.edges, integer))

    def _shown(self, epsilon: float) -> BoolArray:
        """Find the bins that may need a delta: all but those where one law is the other shifted."""
        shown, place = ~self.law.hidden(epsilon), self._split
        if place is not None:
            shown = np.insert(shown, place, True)
            shown[place - 1] = True
        return shown

    def ends(self, epsilon: float, side: int) -> tuple[float, float]:
        """Bound the delta of one direction.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        _, one, zero = self._cells
        p, q = (one, zero) if side == 1 else (zero, one)
        shown = self._shown(epsilon)
        return proven_delta(p, q, epsilon)[0], proven_delta(p[:, shown], q[:, shown], epsilon)[1]

    def event(self, epsilon: float, side: int) -> Event:
        """Collect the bins that surely need a delta.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        Event
            The event.
        """
        edges, one, zero = self._cells
        p, q = (one, zero) if side == 1 else (zero, one)
        chosen = p[0] > factor(epsilon) * q[1]
        ends = np.append(edges[1:], math.inf)
        starts = np.flatnonzero(chosen & ~np.append(False, chosen[:-1]))
        stops = np.flatnonzero(chosen & ~np.append(chosen[1:], False))
        ranges = tuple((float(edges[a]), float(ends[b])) for a, b in zip(starts, stops, strict=True))
        p1, p0 = (float(0.5 * (low[chosen] + high[chosen]).sum()) for low, high in (one, zero))
        return Event(Ranges((Share(ranges),), "average"), p1, p0)
