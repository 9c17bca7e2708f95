"""Exact laws of the test with fixed bounds: a dynamic programme over (samples drawn, samples that hold).

After N samples with K ones the walk is at ``Lambda = K s_plus - (N - K) s_minus``. Neighbouring K are
``s_plus + s_minus`` apart, more than a step, so at most one K leaves through each bound at each N: where the walk
ends is a function of (tau, decision), and so is its overshoot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import require
from dpsmc_audit.exact.walk import Steps
from dpsmc_audit.numerics.jit import kernel
from dpsmc_audit.numerics.sums import dot
from dpsmc_audit.sprt import Sprt

__all__ = [
    "ALIVE",
    "BUDGET",
    "ExitLaw",
    "Interrupted",
    "TerminationLaw",
    "add_laws",
    "cells_needed",
    "exit_law",
    "walk_for",
    "walk_until_exit",
]

FloatArray = NDArray[np.float64]

BUDGET = 2e8
"""Cells that the law for one pair of bounds may visit where another way is known."""

ALIVE = 1e-13
"""The programme ends when less than this probability is still inside the bounds."""

_FLOOR = 1e-25
"""Cells below this at the edge of the alive window are dropped (and counted), long before they become denormal."""

_ROUNDING = 4e-16
"""Relative rounding error of a probability per step: two products and a sum of positive numbers."""


@dataclass(frozen=True, eq=False)
class ExitLaw:
    """Law of (tau, o) of a walk that stops on leaving ``(-b_low, b_up)``.

    Parameters
    ----------
    null, alt : array
        ``null[k - 1] = P(tau = k, H_null)`` and ``alt[k - 1] = P(tau = k, H_alt)``.
    over_null, over_alt : array
        The overshoot over the bound if the walk leaves at k; 0 where it cannot leave.
    alive : float
        The probability to run on after the last k.
    lost : float
        The probability that was dropped at the edges.
    longest : float
        A bound on the mean time that a walk still inside the bounds needs.
    """

    null: FloatArray
    alt: FloatArray
    over_null: FloatArray
    over_alt: FloatArray
    alive: float
    lost: float
    longest: float
    """A bound on the mean time that a walk still inside the bounds needs."""

    @property
    def null_probability(self) -> float:
        """P(H_null)."""
        return float(self.null.sum())

    @property
    def alt_probability(self) -> float:
        """P(H_alt)."""
        return float(self.alt.sum())

    @property
    def tau(self) -> FloatArray:
        """The values 1, 2, ... of tau."""
        return np.arange(1.0, self.null.size + 1.0)

    @property
    def mean(self) -> float:
        """E[tau], without the runs that are still alive or were dropped."""
        return float(dot(self.tau, self.null + self.alt))

    @property
    def second_moment(self) -> float:
        """E[tau^2], without the runs that are still alive or were dropped."""
        return float(dot(self.tau**2, self.null + self.alt))

    @property
    def probability_error(self) -> float:
        """Numerical error of the probability of any event."""
        return self.alive + self.lost + _ROUNDING * self.null.size

    @property
    def mean_error(self) -> float:
        """Numerical error of `mean`: rounding, and the remaining time of walks that are still alive or were dropped."""
        unseen = (self.alive + self.lost) * (self.null.size + self.longest)
        return unseen + _ROUNDING * self.null.size * self.mean

    def survival(self) -> FloatArray:
        """Compute P(tau > k), summed from the far end so that small tails keep their digits.

        Returns
        -------
        array
            The probabilities for k = 0, 1, ...
        """
        stopped = self.null + self.alt
        tail = np.cumsum(stopped[::-1])[::-1]
        return np.append(tail, 0.0) + self.alive


@dataclass(frozen=True, eq=False)
class TerminationLaw:
    """Law of (tau, o) of a mechanism, averaged over L.

    Parameters
    ----------
    null, alt : array
        ``null[k - 1] = P(tau = k, H_null)`` and ``alt[k - 1] = P(tau = k, H_alt)``.
    error : float
        A bound on the numerical error of any P(tau > k).
    scatter : float
        The numerical error of the law as a whole, summed over all (tau, o): a bound, or an estimate.
    method : str
        How the law was computed.
    proven : bool
        Whether `scatter` is a bound.
    """

    null: FloatArray
    alt: FloatArray
    error: float
    scatter: float
    method: str
    proven: bool = True

    @property
    def stopped(self) -> FloatArray:
        """P(tau = k) for k = 1, 2, ..."""
        return self.null + self.alt

    @property
    def mean(self) -> float:
        """E[tau]."""
        return float(dot(np.arange(1.0, self.null.size + 1.0), self.stopped))

    def survival(self) -> FloatArray:
        """Compute P(tau > k).

        Returns
        -------
        array
            The probabilities for k = 0, 1, ...
        """
        return 1.0 - np.concatenate([[0.0], np.cumsum(self.stopped)])


@kernel
def _advance(mass, other, low, high, base, steps, p_up, up, down, b_up, b_low, null, alt, over_null, over_alt):
    """Advance the alive cells ``mass[low:high]`` (cell i: base + i ones) by ``null.size`` samples.

    Returns the new window, the probability dropped and how many samples were taken; the cells are in `mass` if that
    number is even, in `other` if it is odd.
    """
    p_down = 1.0 - p_up
    lost = 0.0
    taken = 0
    while taken < null.size and high > low:
        mass[high] = 0.0
        fresh = other[low : high + 1]
        fresh[0] = p_down * mass[low]
        kept, moved, into = mass[low + 1 : high + 1], mass[low:high], other[low + 1 : high + 1]
        for i in range(into.size):
            into[i] = p_up * moved[i] + p_down * kept[i]
        high += 1
        steps += 1
        ones = base + high - 1
        position = ones * up - (steps - ones) * down
        if position >= b_up:
            high -= 1
            null[taken] = other[high]
            over_null[taken] = position - b_up
        ones = base + low
        position = ones * up - (steps - ones) * down
        if high > low and position <= -b_low:
            alt[taken] = other[low]
            over_alt[taken] = -position - b_low
            low += 1
        while high > low and other[high - 1] < _FLOOR:
            high -= 1
            lost += other[high]
        while high > low and other[low] < _FLOOR:
            lost += other[low]
            low += 1
        mass, other = other, mass
        taken += 1
    return low, high, lost, taken


_PIECE = 64
"""Samples between two looks at what is still inside the bounds."""


@kernel
def add_laws(ups, up, down, enough, near, far, weights, out):
    """Add the weighted laws for some pairs of bounds.

    Parameters
    ----------
    ups : array
        The probability of a step up of each sample. The last one is that of all later samples.
    up, down : float
        The sizes of the steps.
    enough : float
        A law ends when less than this probability is still inside the bounds.
    near, far : array
        Distances of the bounds from 0.
    weights : array
        The weights of each pair of bounds.
    out : array
        Where the laws are added: ``out[weight, side, k - 1]``.

    Returns
    -------
    float
        The probability of the runs that are left out, times the first weight.
    """
    unseen, longest, exits = 0.0, out.shape[2], np.zeros((4, _PIECE))
    for row in range(near.size):
        size = int((near[row] + far[row]) / (up + down)) + 6 + _PIECE
        mass, other = np.zeros(size), np.zeros(size)
        mass[0] = 1.0
        count, base, steps, lost = 1, 0, 0, 0.0
        while count > 0 and steps < longest:
            p_up, samples = ups[min(steps, ups.size - 1)], 1
            while samples < min(_PIECE, longest - steps) and ups[min(steps + samples, ups.size - 1)] == p_up:
                samples += 1
            exits[:] = 0.0
            null, alt, over_null, over_alt = exits[0, :samples], exits[1, :samples], exits[2], exits[3]
            low, high, dropped, taken = _advance(
                mass, other, 0, count, base, steps, p_up, up, down, near[row], far[row], null, alt, over_null, over_alt
            )
            for w in range(weights.shape[1]):
                for k in range(taken):
                    out[w, 0, steps + k] += weights[row, w] * null[k]
                    out[w, 1, steps + k] += weights[row, w] * alt[k]
            kept = mass if taken % 2 == 0 else other
            count = high - low
            for i in range(count):
                mass[i] = kept[low + i]
            base, steps, lost = base + low, steps + samples, lost + dropped
            if steps >= ups.size and mass[:count].sum() <= enough:
                break
        unseen += abs(weights[row, 0]) * (lost + mass[:count].sum())
    return unseen


class _Programme:
    """The dynamic programme in progress: alive cells, and the exits so far in pieces."""

    def __init__(self, walk: Steps, b_up: float, b_low: float) -> None:
        self.walk, self.b_up, self.b_low = walk, b_up, b_low
        self.cells = np.ones(1)
        self.base, self.steps, self.lost = 0, 0, 0.0
        self.pieces: list[FloatArray] = []

    @property
    def alive(self) -> float:
        return float(self.cells.sum())

    def advance(self, samples: int, p_up: float) -> None:
        width = self.cells.size
        mass, other = np.zeros(width + samples + 1), np.zeros(width + samples + 1)
        mass[:width] = self.cells
        exits = np.zeros((4, samples))
        bounds = (self.walk.up, self.walk.down, self.b_up, self.b_low)
        low, high, lost, taken = _advance(mass, other, 0, width, self.base, self.steps, p_up, *bounds, *exits)
        self.pieces.append(exits)
        self.cells = (mass if taken % 2 == 0 else other)[low:high].copy()
        self.base += low
        self.steps += samples
        self.lost += lost

    def advance_until(self, last: int, p_up: float) -> None:
        """Advance in pieces. If no walk is left alive, the remaining samples cost nothing."""
        while self.steps < last and self.cells.size:
            self.advance(min(last - self.steps, 4096), p_up)

    def law(self) -> ExitLaw:
        null, alt, over_null, over_alt = np.concatenate(self.pieces, axis=1)
        longest = longest_mean(self.walk, self.b_up, self.b_low)
        return ExitLaw(null, alt, over_null, over_alt, self.alive, self.lost, longest)


def longest_mean(walk: Steps, b_up: float, b_low: float) -> float:
    """Bound the mean time to leave the bounds from anywhere inside, by Wald's first or second identity.

    Parameters
    ----------
    walk : Steps
        The walk.
    b_up, b_low : float
        Distances of the upper and the lower bound from 0.

    Returns
    -------
    float
        The bound, in samples; inf if neither identity gives one.
    """
    reach = b_up + b_low + max(walk.up, walk.down)
    drift, variance = abs(walk.drift), walk.variance
    by_drift = reach / drift if drift > 0.0 else math.inf
    # (Lambda - x)^2 grows by at least variance - 2 |D| reach a step on average
    gain = variance - 2.0 * drift * reach
    return min(by_drift, reach**2 / gain if gain > 0.0 else math.inf)


def walk_until_exit(
    walk: Steps,
    b_up: float,
    b_low: float,
    *,
    forced: Mapping[int, int] | None = None,
    alive: float = ALIVE,
) -> ExitLaw:
    """Compute the exit law of any walk with two step sizes.

    Parameters
    ----------
    walk : Steps
        The walk.
    b_up, b_low : float
        Distances of the upper and the lower bound from 0.
    forced : mapping, optional
        Samples that are given (entry: bit), counted from 1. The others are random.
    alive : float
        The programme ends when at most this probability is still inside the bounds.

    Returns
    -------
    ExitLaw
        The law of (tau, o).
    """
    programme = _begun(walk, b_up, b_low, forced or {})
    piece = 256
    while programme.alive > alive:
        programme.advance(piece, walk.p_up)
        piece = min(2 * piece, 4096)
    return programme.law()


def _begun(walk: Steps, b_up: float, b_low: float, forced: Mapping[int, int]) -> _Programme:
    """Run the programme up to the last forced entry."""
    programme = _Programme(walk, b_up, b_low)
    for entry in sorted(forced):
        programme.advance_until(entry - 1, walk.p_up)
        programme.advance(1, float(forced[entry]))
    return programme


@dataclass(frozen=True, eq=False)
class Interrupted:
    """A walk that was stopped after some samples.

    Parameters
    ----------
    law : ExitLaw
        The exits so far.
    positions : array
        Where the walks still inside the bounds can be.
    cells : array
        The probability of each of these positions.
    """

    law: ExitLaw
    positions: FloatArray
    cells: FloatArray


def walk_for(walk: Steps, b_up: float, b_low: float, samples: int, forced: Mapping[int, int]) -> Interrupted:
    """Run the walk for so many samples, and no further.

    Parameters
    ----------
    walk : Steps
        The walk.
    b_up, b_low : float
        Distances of the upper and the lower bound from 0.
    samples : int
        The number of samples, at least 1.
    forced : mapping
        Those of them that are given (entry: bit), counted from 1.

    Returns
    -------
    Interrupted
        The exits so far and the walks still inside.
    """
    programme = _begun(walk, b_up, b_low, forced)
    programme.advance_until(samples, walk.p_up)
    ones = programme.base + np.arange(programme.cells.size)
    return Interrupted(programme.law(), walk.at(np.int64(programme.steps), ones), programme.cells)


@lru_cache(maxsize=256)
def _free_exit_law(walk: Steps, b_up: float, b_low: float) -> ExitLaw:
    return walk_until_exit(walk, b_up, b_low)


def exit_law(test: Sprt, p_phi: float, excess: float = 0.0, forced: Mapping[int, int] | None = None) -> ExitLaw:
    """Compute the law of (tau, o) of the test with both bounds enlarged by a fixed amount.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    excess : float
        By how much both bounds are enlarged; reduced if negative.
    forced : mapping, optional
        Samples that are given (entry: bit), counted from 1.

    Returns
    -------
    ExitLaw
        The law.

    Raises
    ------
    ParameterError
        If no room is left between the bounds, an entry is below 1, a bit is not 0 or 1 or p_phi is not a probability.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> law = exit_law(test, 0.84)
    >>> f"{law.mean:.6f}", law.mean_error < 1e-8
    ('412.990986', True)
    >>> f"{exit_law(test, 0.84, forced={1: 0}).mean - exit_law(test, 0.84, forced={1: 1}).mean:.3f}"
    '9.097'
    """
    require(excess > -min(test.b_up, test.b_low), f"excess {excess} leaves no room between the bounds")
    for entry, bit in (forced or {}).items():
        require(entry >= 1, f"entry must be at least 1, got {entry}")
        require(bit in (0, 1), f"a forced sample is 0 or 1, got {bit}")
    walk, b_up, b_low = Steps.of(test, p_phi), test.b_up + excess, test.b_low + excess
    return walk_until_exit(walk, b_up, b_low, forced=forced) if forced else _free_exit_law(walk, b_up, b_low)


def cells_needed(walk: Steps, b_up: float, b_low: float) -> float:
    """Estimate how many cells the programme will visit: steps until the alive mass is negligible, times its width.

    Parameters
    ----------
    walk : Steps
        The walk.
    b_up, b_low : float
        Distances of the upper and the lower bound from 0.

    Returns
    -------
    float
        The number of cells.
    """
    drift, variance, span = abs(walk.drift), walk.variance, b_up + b_low
    if variance == 0.0:
        return span / drift
    decay = drift**2 / (2.0 * variance) + math.pi**2 * variance / (2.0 * span**2)
    steps = -math.log(ALIVE) / decay + min(span / drift if drift > 0.0 else math.inf, span**2 / variance)
    width = min(span, 16.0 * math.sqrt(variance * steps)) / (walk.up + walk.down)
    return steps * (width + 1.0)
