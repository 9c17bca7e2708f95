"""Renewal at the records of the walk: exact mean and law of tau where L is exponential, hence memoryless.

After the first passage over its bound a walk that survived is at a record, and every new record is a fresh start: a
ladder step (T, H), survived with probability ``exp(-rate H)``. The far bound is left out after the first passage; the
probability of paths on which it could matter is part of every stated error.

That probability, for a walk that drifts up. A record at ``b_up + x`` that is survived means L > x, and the far bound
then lies below ``-(b_low + x)``. To reach it the walk has to fall by at least ``span + 2 x``, where
``span = b_up + b_low``.

- Free samples: ``exp(-h Lambda)`` is a martingale, so a walk ever falls by y with probability at most ``exp(-h y)``.
  That is ``exp(-h span)`` for all records together, counted from the first of them.
- Forced entries: of the samples after the first passage at j the free ones make a walk of their own, which does not
  depend on what came before. The forced ones move it down by no more than ``K(j) down`` at any time, where K(j) counts
  the entries after j that are forced down; those forced up only lift it. So the free walk has to fall by
  ``span + 2 z - K(j) down``, with z the excess at the first passage, and the probability is at most
  ``sum_j P(first passage at j, survived) exp(-h max(0, span + 2 z_j - K(j) down))``.
- Many forced entries make that bound large, even if few walks reach them. Then a ladder step that meets forced
  entries is followed down to the span below its record and no further. Walks that fall so deep are in no outcome, and
  the probability that is missing from all outcomes is part of the error. Ladder steps that meet none come in stretches
  between such entries, and each stretch adds ``exp(-h span)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import BUDGET, ExitLaw, TerminationLaw, cells_needed, walk_until_exit
from dpsmc_audit.exact.passage import convolved
from dpsmc_audit.exact.walk import Steps, turned_up
from dpsmc_audit.mechanisms import Exponential
from dpsmc_audit.numerics.jit import kernel
from dpsmc_audit.numerics.sums import dot, tilted
from dpsmc_audit.setting import Setting

__all__ = ["Renewal", "renewal"]

FloatArray = NDArray[np.float64]

_DEEP = 40.0
"""The walk falls further than this over h below its last record with probability at most exp(-40)."""

_ABOVE = float(np.nextafter(0.0, 1.0))
"""A ladder step ends strictly above 0."""

_LED = 5e-4
"""About the error of P(tau > k) by strata. A larger bound `led_across` is not useful."""

_DIRECT = 1e9


@dataclass(frozen=True, eq=False)
class Renewal:
    """The parts of the renewal for a walk that drifts up: first passage over b_up, then ladder steps between records.

    At its first passage the walk has an excess z and survives with probability exp(-rate z). Each further record is a
    ladder step (T, H), survived with probability exp(-rate H).

    Parameters
    ----------
    walk : Steps
        The walk, turned so that it drifts up.
    b_up, b_low : float
        Distances of its upper and its lower bound from 0.
    turned : bool
        Whether the walk was turned upside down.
    h : float
        The exponent, positive.
    rate : float
        The rate of the exponential L.
    first : ExitLaw
        The law of the first passage.
    ladder : ExitLaw
        The law of a ladder step: time to the next strict record, and its height.
    """

    walk: Steps
    b_up: float
    b_low: float
    turned: bool
    h: float
    rate: float
    first: ExitLaw
    ladder: ExitLaw

    @property
    def drift(self) -> float:
        """Mean step of the walk."""
        return self.walk.drift

    @property
    def span(self) -> float:
        """Distance between the two bounds for L = 0."""
        return self.b_up + self.b_low

    @property
    def survived(self) -> FloatArray:
        """P(first passage at k, still running)."""
        return self.first.null * np.exp(-self.rate * self.first.over_null)

    @property
    def from_below(self) -> float:
        """P(the first passage is below and the walk survives it). The renewal does not describe what follows."""
        return float(tilted(self.first.alt, -self.rate, self.first.over_alt))

    @property
    def unsettled(self) -> float:
        """Probability of paths on which the far bound matters after the first passage."""
        return self.from_below + math.exp(-self.h * self.span) + self.first.probability_error

    def led_across(self, forced: Mapping[int, int]) -> float:
        """Bound P(the first passage is above and survived, and the far bound matters later): see the module.

        `first` must be the first passage with these entries.

        Parameters
        ----------
        forced : mapping
            Samples that are given (entry: bit). Here 0 is a step down of the walk that drifts up.

        Returns
        -------
        float
            The bound.
        """
        downs = np.sort([entry for entry, bit in forced.items() if bit == 0])
        ahead = downs.size - np.searchsorted(downs, self.first.tau, side="right")
        fall = np.maximum(self.span + 2.0 * self.first.over_null - ahead * self.walk.down, 0.0)
        return math.fsum(self.survived * np.exp(-self.h * fall))

    @property
    def kept(self) -> FloatArray:
        """P(the next record comes after t steps and is survived)."""
        return self.ladder.null * np.exp(-self.rate * self.ladder.over_null)

    @property
    def _stop(self) -> float:
        """P(a record that was survived is the last one)."""
        return float(dot(self.ladder.null, -np.expm1(-self.rate * self.ladder.over_null)))

    @property
    def onwards(self) -> float:
        """Mean time from a survived record to the end: ``E[T] / P(stop)``."""
        return self.ladder.mean / self._stop

    @property
    def _crossing(self) -> float:
        """Mean detour of an unsettled path, at most: the span and twice the excess, then on from above."""
        return (self.span + 2.0 / self.rate) / self.drift + self.onwards

    def mean(self) -> Enclosure:
        """Compute the mean number of samples.

        Returns
        -------
        Enclosure
            The mean and a bound on its error.
        """
        due, gone = self.from_below * self._crossing, math.exp(-self.h * self.span) * self._crossing
        numerical = self.first.mean_error + self.ladder.mean_error / self._stop
        numerical += self.onwards * (self.ladder.probability_error / self._stop + self.first.probability_error)
        value = self.first.mean + float(self.survived.sum()) * self.onwards + 0.5 * due
        return Enclosure.around(value, 0.5 * due + gone + numerical, "renewal")

    def sd(self) -> Enclosure:
        """Compute the standard deviation of tau.

        The second moment S of the time from a record on solves ``S = E[T^2] + 2 E[T; kept] V + P(kept) S``, with V its
        mean.

        Returns
        -------
        Enclosure
            The standard deviation and its error.
        """
        ladder, first = self.ladder, self.first
        onwards = (ladder.second_moment + 2.0 * float(dot(ladder.tau, self.kept)) * self.onwards) / self._stop
        second = first.second_moment + 2.0 * float(dot(first.tau, self.survived)) * self.onwards
        second += float(self.survived.sum()) * onwards
        value = math.sqrt(max(second - self.mean().value ** 2, 0.0))
        unseen = self.unsettled * (self._crossing + self.mean().value) ** 2
        return Enclosure.estimate(value, (unseen + 1e-9 * second) / max(value, 1e-300), "renewal")

    @property
    def reach(self) -> float:
        """About how many values of tau the law has. A run meets a later entry with a probability of about exp(-30)."""
        return (self.span + 30.0 / self.rate) / self.drift

    def law(self, forced: Mapping[int, int] | None = None) -> TerminationLaw:
        """Compute P(tau = k, o), up to where an L of probability exp(-30) would stop the walk on average.

        With forced entries a ladder step that begins before the last of them has its own law; later ones are free.

        Parameters
        ----------
        forced : mapping, optional
            Samples that are given (entry: bit), counted from 1, with the bits of the test.

        Returns
        -------
        TerminationLaw
            The law. Its errors are bounds.
        """
        forced = {entry: 1 - bit if self.turned else bit for entry, bit in (forced or {}).items()}
        first = walk_until_exit(self.walk, self.b_up, self.b_low, forced=forced) if forced else self.first
        settled = max(forced, default=0)
        last = max(first.null.size, int(self.reach))
        begun = replace(self, first=first)
        survived, near, far = np.zeros(last), np.zeros(last), np.zeros(last)
        survived[: first.null.size] = begun.survived
        near[: first.null.size] = first.null - begun.survived
        far[: first.null.size] = first.alt * -np.expm1(-self.rate * first.over_alt)
        across, bottom, free = begun.led_across(forced), math.inf, False
        if across > _LED:
            across, bottom = math.exp(-self.h * self.span), self.span
        for j in range(1, min(settled, last)):
            if survived[j - 1] > 1e-17:
                step = self._ladder_from(j, forced, bottom)
                _add(survived, survived[j - 1] * step.kept, j)
                _add(near, survived[j - 1] * (step.ladder.null - step.kept), j)
                survived[j - 1] = 0.0
                if bottom < math.inf and step is self and not free:  # another stretch of free steps
                    across += math.exp(-self.h * self.span)
                free = step is self
        records = _renewed(survived, _without_tail(self.kept))
        near[1:] += convolved(records, _without_tail(self.ladder.null - self.kept))[: last - 1]
        near = np.maximum(near, 0.0)
        null, alt = (far, near) if self.turned else (near, far)
        missing = max(1.0 - float(near.sum() + far.sum()), 0.0)
        error = begun.from_below + first.probability_error + across + missing + self.ladder.probability_error
        # a path that meets the far bound after all is missing from one outcome and counted in another
        return TerminationLaw(null, alt, error, error + across, "renewal")

    def _ladder_from(self, j: int, forced: Mapping[int, int], bottom: float) -> Renewal:
        """Replace the ladder by the step that begins after j samples. An entry far ahead has no effect on it.

        With entries in the step, walks that fall to the `bottom` leave it. Entries that lead down make the step longer,
        so more entries may lie inside it. The search repeats until no more are found.
        """
        ladder, ahead, longest = self.ladder, dict[int, int](), 0
        while True:
            longest = max(longest, ladder.null.size)
            inside = {entry - j: bit for entry, bit in forced.items() if j < entry <= j + longest}
            if len(inside) == len(ahead):
                return replace(self, ladder=ladder) if ahead else self
            ahead = inside
            deep = _DEEP / self.h + len(ahead) * (self.walk.up + self.walk.down)  # forced entries may lead down
            ladder = walk_until_exit(self.walk, _ABOVE, min(deep, bottom), forced=ahead)


@lru_cache(maxsize=64)
def renewal(setting: Setting) -> Renewal | None:
    """Compute the renewal of the walk, turned so that it drifts up.

    Parameters
    ----------
    setting : Setting
        The test, its noise (`Exponential`) and the system.

    Returns
    -------
    Renewal or None
        None without drift, with certain samples, at too high a cost, or if the far bound matters with a probability of
        0.01 or more.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    assert isinstance(mechanism, Exponential)
    turned = turned_up(test, p_phi)
    walk, b_up, b_low, h = turned.walk, turned.near, turned.far, turned.h
    if h == 0.0 or math.isinf(h) or max(cells_needed(walk, b_up, b_low), cells_needed(walk, b_up, _DEEP / h)) > BUDGET:
        return None
    first = walk_until_exit(walk, b_up, b_low)
    ladder = walk_until_exit(walk, _ABOVE, _DEEP / h)
    records = Renewal(walk, b_up, b_low, turned.over, h, mechanism.rate, first, ladder)
    return records if records.unsettled < 0.01 else None


def _add(total: FloatArray, part: FloatArray, start: int) -> None:
    """Add a part that begins at `start`, as far as the total goes."""
    room = min(part.size, total.size - start)
    total[start : start + room] += part[:room]


def _without_tail(probability: FloatArray) -> FloatArray:
    """Drop the last entries that together hold at most 1e-15."""
    tail = np.cumsum(probability[::-1])[::-1]
    return probability[: int(np.count_nonzero(tail > 1e-15))]


def _renewed(source: FloatArray, kernel: FloatArray) -> FloatArray:
    """Solve ``out = source + kernel * out``. Long ones use Newton's inversion of the power series ``1 - kernel(z)``."""
    if source.size * kernel.size < _DIRECT:
        out = np.empty(source.size)
        _renew(source, kernel, out)
        return out
    series = np.zeros(source.size)
    series[0] = 1.0
    series[1 : kernel.size + 1] -= kernel[: source.size - 1]
    inverse = np.ones(1)
    while inverse.size < source.size:
        size = min(2 * inverse.size, source.size)
        residual = -convolved(series[:size], inverse)[:size]
        residual[0] += 2.0
        inverse = convolved(inverse, residual)[:size]
    return convolved(source, inverse)[: source.size]


@kernel
def _renew(source, kernel, out):
    """Solve the renewal equation ``out = source + kernel * out``; ``kernel[t - 1]`` belongs to a step of length t."""
    for k in range(out.size):
        total = source[k] if k < source.size else 0.0
        for t in range(1, min(k, kernel.size) + 1):
            total += kernel[t - 1] * out[k - t]
        out[k] = total
