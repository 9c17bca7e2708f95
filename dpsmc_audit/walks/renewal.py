"""Renewal at the records of the walk: exact mean and law of tau where L is exponential, hence memoryless.

After the first passage over its bound a walk that survived is at a record, and every new record is a fresh start: a
ladder step (T, H), survived with probability ``exp(-rate H)``. The far bound is left out after the first passage; the
probability of paths on which it could matter is part of every stated error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Exponential
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.walks.exact import Exact, ExitLaw, TerminationLaw, cells_needed, walk_until_exit
from dpsmc_audit.walks.overshoot import BUDGET, turned_up

__all__ = ["Renewal", "renewal"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Renewal:
    """Pieces of the renewal, for a walk that drifts up: first passage over b_up, then ladder steps between records.

    At its first passage the walk has an excess z and survives with probability exp(-rate z); each further record is a
    ladder step (T, H), survived with probability exp(-rate H).
    """

    first: ExitLaw
    ladder: ExitLaw
    rate: float
    drift: float
    span: float
    h: float
    turned: bool

    @property
    def survived(self) -> FloatArray:
        """P(first passage at k, still running)."""
        return self.first.null * np.exp(-self.rate * self.first.over_null)

    @property
    def from_below(self) -> float:
        """P(the first passage is below and the walk survives it): the renewal is silent about what follows."""
        return float(self.first.alt @ np.exp(-self.rate * self.first.over_alt))

    @property
    def unsettled(self) -> float:
        """Probability of paths on which the far bound matters after the first passage."""
        return self.from_below + math.exp(-self.h * self.span) + self.first.probability_error

    @property
    def _kept(self) -> FloatArray:
        """P(the next record comes after t steps and is survived)."""
        return self.ladder.null * np.exp(-self.rate * self.ladder.over_null)

    @property
    def _stop(self) -> float:
        """P(a record that was survived is the last one)."""
        return float(self.ladder.null @ -np.expm1(-self.rate * self.ladder.over_null))

    @property
    def onwards(self) -> float:
        """Mean time from a survived record to the end: ``E[T] / P(stop)``."""
        return self.ladder.mean / self._stop

    @property
    def _crossing(self) -> float:
        """Covers the mean detour of an unsettled path: the span and twice the excess, then on from above."""
        return (self.span + 2.0 / self.rate) / self.drift + self.onwards

    def mean(self) -> Exact:
        due, gone = self.from_below * self._crossing, math.exp(-self.h * self.span) * self._crossing
        numerical = self.first.mean_error + self.ladder.mean_error / self._stop
        numerical += self.onwards * (self.ladder.probability_error / self._stop + self.first.probability_error)
        value = self.first.mean + float(self.survived.sum()) * self.onwards + 0.5 * due
        return Exact(value, 0.5 * due + gone + numerical, "renewal")

    def sd(self) -> Exact:
        """From the second moment S of the time from a record on, ``S = E[T^2] + 2 E[T; kept] V + P(kept) S``."""
        ladder, first = self.ladder, self.first
        onwards = (ladder.second_moment + 2.0 * float(ladder.tau @ self._kept) * self.onwards) / self._stop
        second = first.second_moment + 2.0 * float(first.tau @ self.survived) * self.onwards
        second += float(self.survived.sum()) * onwards
        value = math.sqrt(max(second - self.mean().value ** 2, 0.0))
        unseen = self.unsettled * (self._crossing + self.mean().value) ** 2
        return Exact(value, (unseen + 1e-9 * second) / max(value, 1e-300), "renewal")

    def law(self) -> TerminationLaw:
        """P(tau = k, o), up to where an L of probability exp(-30) would stop the walk on average."""
        ladder, last = self.ladder, max(self.first.null.size, int((self.span + 30.0 / self.rate) / self.drift))
        records = np.empty(last)
        _renew(self.survived, _without_tail(self._kept), records)
        stopping = _without_tail(ladder.null - self._kept)
        near, far = np.zeros(last), np.zeros(last)
        first = self.first.null.size
        near[:first] = self.first.null - self.survived
        near[1:] += np.convolve(records, stopping)[: last - 1]
        far[:first] = self.first.alt * -np.expm1(-self.rate * self.first.over_alt)
        null, alt = (far, near) if self.turned else (near, far)
        missing = max(1.0 - float(near.sum() + far.sum()), 0.0)
        return TerminationLaw(null, alt, self.unsettled + missing + self.ladder.probability_error, "renewal")


@lru_cache(maxsize=64)
def renewal(test: Sprt, mechanism: Exponential, p_phi: float) -> Renewal | None:
    """The renewal of the walk, turned so that it drifts up; None without drift, at too high a cost, or where the far
    bound is not far.
    """
    h, (turned, walk, b_up, b_low) = abs(test.exponent(p_phi)), turned_up(test, p_phi)
    if h == 0.0 or math.isinf(h) or max(cells_needed(walk, b_up, b_low), cells_needed(walk, b_up, 40.0 / h)) > BUDGET:
        return None
    first = walk_until_exit(walk, b_up, b_low)
    # a ladder step ends strictly above 0; below -40 / h the walk comes with probability exp(-40)
    ladder = walk_until_exit(walk, float(np.nextafter(0.0, 1.0)), 40.0 / h)
    records = Renewal(first, ladder, mechanism.rate, walk.drift, b_up + b_low, h, turned)
    return records if records.unsettled < 0.01 else None


def _without_tail(probability: FloatArray) -> FloatArray:
    """Without the last entries that together hold less than 1e-15."""
    tail = np.cumsum(probability[::-1])[::-1]
    return probability[: int(np.count_nonzero(tail > 1e-15))]


@njit(cache=True, nogil=True)
def _renew(source, kernel, out):
    """``out = source + kernel * out``, the renewal equation; kernel[t - 1] belongs to a step of length t."""
    for k in range(out.size):
        total = source[k] if k < source.size else 0.0
        for t in range(1, min(k, kernel.size) + 1):
            total += kernel[t - 1] * out[k - t]
        out[k] = total
