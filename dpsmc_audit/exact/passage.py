"""The law of tau for all L of a range at once, where only the bound that the walk drifts to is met.

For a walk that drifts up, the times at which it sets a strict record are its ladder epochs. Read backwards, the walk up
to such an epoch stays above 0, so one dynamic programme with a single barrier at 0 gives

    U(j, x) = P(j is a ladder epoch and Lambda_j = x) = P(Lambda_1 > 0, ..., Lambda_j > 0, Lambda_j = x),

and with it the probability W(j) that a run is still going on after a record at j: the sum of U(j, x) P(L > x - b). Any
law of L is such a weight, and one pass of the programme answers it. With q(t) the law of the time to the next record,

    P(tau = k) = sum_j W(j) q(k - j) - W(k):

runs that set a record at k, less those that go on after it. Forced entries change the weights (`prefix`), and the time
to the next record after a record that comes before the last entry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.fixed import ExitLaw, cells_needed, walk_until_exit
from dpsmc_audit.exact.prefix import prefix_of, records_before
from dpsmc_audit.exact.walk import TIE, Turned
from dpsmc_audit.exact.weight import Range, Weight
from dpsmc_audit.numerics.jit import kernel
from dpsmc_audit.numerics.sums import convolution, dot

__all__ = ["Passage", "convolved", "passage", "passage_cost"]

FloatArray = NDArray[np.float64]

_FLOOR = 1e-25
"""Smaller cells at the edge of the window are dropped, and counted."""

_UNIT = 2.0**-53
"""The relative error of one operation."""

_AWAY = 40.0
"""A walk this far over h below a level comes back to it with probability at most exp(-40)."""

_FFT = 3e8
"""Convolutions of more products than this use the fast Fourier transform."""


@kernel
def _weigh(p_up, up, down, tie, begins, value, slope, bend, guide, scale, top, escape, last):
    """Compute ``sum_x U(j, x) weight(x)`` for j = 0, 1, ... until all walks are above `escape`, and what was lost.

    Cell i holds the walks with i ones.
    """
    out, p_down = np.zeros(last), 1.0 - p_up
    mass, other = np.zeros(last + 2), np.zeros(last + 2)
    mass[0] = 1.0
    low, high, lost, steps = 0, 1, 0.0, 0
    out[0] = value[0]
    while high > low and steps + 1 < last:
        steps += 1
        mass[high] = 0.0
        other[low] = p_down * mass[low]
        kept, moved, into = mass[low + 1 : high + 1], mass[low:high], other[low + 1 : high + 1]
        for i in range(into.size):
            into[i] = p_up * moved[i] + p_down * kept[i]
        high += 1
        while low < high and low * up - (steps - low) * down <= tie:
            low += 1
        while high > low and (high - 1) * up - (steps - high + 1) * down >= escape:
            high -= 1
        while high > low and other[high - 1] < _FLOOR:
            high -= 1
            lost += other[high]
        while high > low and other[low] < _FLOOR:
            lost += other[low]
            low += 1
        place, sums = low * up - (steps - low) * down, np.zeros(4)
        for i in range(high - low):
            at = place + i * (up + down)
            if at >= top:
                break
            cell = min(int(at * scale), guide.size - 2)
            piece = guide[cell]
            while piece < guide[cell + 1] and begins[piece + 1] <= at:
                piece += 1
            t = at - begins[piece]
            sums[i & 3] += other[low + i] * (value[piece] + t * (slope[piece] + t * bend[piece]))
        out[steps] = sums[0] + sums[1] + sums[2] + sums[3]
        mass, other = other, mass
    return out[: steps + 1], lost


def convolved(a: FloatArray, b: FloatArray) -> FloatArray:
    """Compute the full convolution of two arrays.

    A long one is computed by the fast Fourier transform.

    Parameters
    ----------
    a, b : array
        The arrays.

    Returns
    -------
    array
        The convolution, of size ``a.size + b.size - 1``.
    """
    if a.size * b.size < _FFT:
        return np.asarray(convolution(a, b))
    from scipy.signal import fftconvolve

    return np.asarray(fftconvolve(a, b))


@dataclass(frozen=True, eq=False)
class Passage:
    """The runs of a range of L, without the far bound.

    Parameters
    ----------
    time : array
        ``time[k - 1] = P(tau = k)``.
    error : float
        By how much a P(tau > k) may be off.
    scatter : float
        By how much the law may be off, summed over k.
    proven : bool
        Whether `scatter` is a bound. `error` always is.
    """

    time: FloatArray
    error: float
    scatter: float
    proven: bool


def passage_cost(turned: Turned, high: float, last: int) -> float:
    """Estimate how many cells `passage` visits.

    Parameters
    ----------
    turned : Turned
        The walk.
    high : float
        The largest L.
    last : int
        The last forced entry, 0 for none.

    Returns
    -------
    float
        The number of cells; inf without drift.
    """
    walk, h = turned.walk, turned.h
    if h <= 0.0:
        return math.inf
    reach = max(turned.near + high, 0.0) + last * walk.down + _AWAY / h
    steps = reach / walk.drift
    width = min(22.0 * math.sqrt(steps * walk.p_up * (1.0 - walk.p_up)), reach / (walk.up + walk.down)) + 1.0
    ladder = cells_needed(walk, 1e-9, _AWAY / h)
    return 2.0 * steps * width + (1.0 + last) * ladder + last**2 * min(last, 200.0)


def passage(turned: Turned, runs: Range, forced: Mapping[int, int]) -> Passage:
    """Compute the law of tau for the runs of a range, as if there were no far bound.

    Parameters
    ----------
    turned : Turned
        The walk.
    runs : Range
        The range of L.
    forced : mapping
        Forced steps of the walk (entry: 1 for up, 0 for down), counted from 1.

    Returns
    -------
    Passage
        The law, and by how much it may be off.
    """
    walk, last = turned.walk, max(forced, default=0)
    free = _ladder(turned, {})
    prefix = prefix_of(walk, forced) if forced else None
    weight = Weight.of(runs, turned.near, prefix)
    later, lost = _weighed(turned, weight)
    weights = np.concatenate([_weights_before(turned, runs, forced), later[1:]]) if forced else later
    lost += prefix.lost if prefix is not None else 0.0
    starts = weights.copy()
    starts[:last] = 0.0
    arrived = convolved(starts, free.null)
    unseen = _unseen(free)
    for j in range(last):
        if weights[j] > 0.0:
            step = _ladder_from(turned, forced, j, free)
            arrived = _added(arrived, weights[j] * step.null, j)
            unseen = max(unseen, _unseen(step))
    size = max(arrived.size, weights.size)
    arrived, going_on = np.pad(arrived, (0, size - arrived.size)), np.pad(weights[1:], (0, size - weights.size + 1))
    visits = float(weights.sum())
    rounding = 16.0 * _UNIT * (size + 100.0) * 2.0 * visits + _transformed(starts, free.null)
    numerical = rounding + visits * (unseen + math.exp(-_AWAY)) + lost * size
    time = np.maximum(arrived - going_on, 0.0)
    return Passage(time, weight.off + numerical, weight.variation + weight.off + numerical, weight.proven)


def _weighed(turned: Turned, weight: Weight) -> tuple[FloatArray, float]:
    walk = turned.walk
    escape = weight.top + _AWAY / turned.h
    last = int(2.0 * escape / walk.drift + 1000.0 + 400.0 * walk.variance / walk.drift**2)
    pieces = (weight.begins, weight.value, weight.slope, weight.bend, weight.guide, weight.scale)
    tie = TIE * (walk.up + walk.down)
    out, lost = _weigh(walk.p_up, walk.up, walk.down, tie, *pieces, weight.top, escape, last)
    return out, float(lost)


def _weights_before(turned: Turned, runs: Range, forced: Mapping[int, int]) -> FloatArray:
    """Compute the weights of records up to the last forced entry."""
    weights = []
    for j, mass in enumerate(records_before(turned.walk, forced, max(forced))):
        height = turned.walk.at(np.int64(j), np.arange(j + 1))
        weights.append(float(dot(mass, runs.survival(height - turned.near))))
    return np.array(weights)


def _ladder(turned: Turned, forced: Mapping[int, int]) -> ExitLaw:
    """Compute the time to the next record. Forced entries may lead further down."""
    walk = turned.walk
    deep = _AWAY / turned.h + len(forced) * (walk.up + walk.down)
    return walk_until_exit(walk, TIE * (walk.up + walk.down), deep, forced=forced)


def _ladder_from(turned: Turned, forced: Mapping[int, int], j: int, free: ExitLaw) -> ExitLaw:
    """Compute the time to the next record after one at j. Entries far ahead have no effect on it.

    Entries that lead down make the step longer, so more entries may lie inside it. The search repeats until no more are
    found.
    """
    step, inside = free, dict[int, int]()
    while True:
        ahead = {entry - j: bit for entry, bit in forced.items() if j < entry <= j + step.null.size}
        if len(ahead) == len(inside):
            return step
        inside, step = ahead, _ladder(turned, ahead)


def _unseen(step: ExitLaw) -> float:
    """Return the probability that the programme does not know the next record."""
    return step.alive + step.lost + step.alt_probability


def _added(total: FloatArray, part: FloatArray, start: int) -> FloatArray:
    """Add a part that begins at `start`."""
    total = np.pad(total, (0, max(start + part.size - total.size, 0)))
    total[start : start + part.size] += part
    return total


def _transformed(a: FloatArray, b: FloatArray) -> float:
    """Bound the sum of the errors of a convolution by the fast Fourier transform; 0 if it is not used.

    A transform of size n is off by at most ``8 log2(n)`` units of rounding in the Euclidean norm.
    """
    if a.size * b.size < _FFT:
        return 0.0
    size = float(a.size + b.size)
    lengths = [(math.sqrt(float(np.sum(x**2))), float(np.sum(np.abs(x)))) for x in (a, b)]
    (long_a, sum_a), (long_b, sum_b) = lengths
    return math.sqrt(size) * 8.0 * math.log2(size) * _UNIT * (2.0 * long_a * sum_b + long_b * sum_a)
