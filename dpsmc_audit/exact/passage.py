"""The law of tau for any law of L at once, where only the bound that the walk drifts to can be reached.

For a walk that drifts up, the times at which it sets a strict record are its ladder epochs. Read backwards, the walk up
to such an epoch stays above 0, so one dynamic programme with a single barrier at 0 gives

    U(j, x) = P(j is a ladder epoch and Lambda_j = x) = P(Lambda_1 > 0, ..., Lambda_j > 0, Lambda_j = x).

The maximum after k samples is x if the last ladder epoch j is at x and no record follows for k - j samples, so with the
ladder time T

    P(tau > k) = E[survival(max - b)] = sum_j (sum_x U(j, x) survival(x - b)) P(T > k - j).

Bits that are given at the beginning only move the start: by y, with some probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.fixed import Steps, cells_needed, walk_until_exit
from dpsmc_audit.numerics.jit import kernel
from dpsmc_audit.numerics.sums import convolution

__all__ = ["convolved", "passage_cost", "passage_survival"]

FloatArray = NDArray[np.float64]

_POINTS = 1 << 18
_DROP = 1e-19
_TIE = 1e-9
"""A walk this close to its last record, in parts of both steps, is back at it up to rounding (`passage_survival`)."""
_NEGLIGIBLE = 1e-15
_FFT = 3e8
"""Convolutions of more products than this use the fast Fourier transform."""


@kernel
def _weigh(p_up, up, down, table, scale, last):
    """Compute ``sum_x U(j, x) weight(x)`` for j = 0, 1, ... until it is negligible. The table is interpolated."""
    out = np.zeros(last)
    mass, other = np.zeros(last + 2), np.zeros(last + 2)
    mass[0] = 1.0
    out[0] = table[0]
    base, count = 0, 1
    tie = _TIE * (up + down)
    for steps in range(1, last):
        # cell i has base + i ones; keep those above 0
        first = 0
        while first <= count and (base + first) * up - (steps - base - first) * down <= tie:
            first += 1
        mass[count] = 0.0
        fresh = 0
        for i in range(first, count + 1):
            value = (1.0 - p_up) * mass[i]
            if i > 0:
                value += p_up * mass[i - 1]
            if fresh == 0 and value < _DROP:
                first += 1
                continue
            other[fresh] = value
            fresh += 1
        while fresh > 0 and other[fresh - 1] < _DROP:
            fresh -= 1
        base += first
        count = fresh
        place = (base * up - (steps - base) * down) * scale
        stride = (up + down) * scale
        total = 0.0
        for i in range(count):
            at = min(place + i * stride, table.size - 1.001)
            cell = int(at)
            total += other[i] * (table[cell] + (at - cell) * (table[cell + 1] - table[cell]))
        out[steps] = total
        if count == 0 or (total < _NEGLIGIBLE and steps > 64):
            return out[: steps + 1]
        mass, other = other, mass
    return out


def convolved(a: FloatArray, b: FloatArray) -> FloatArray:
    """Compute the full convolution of two arrays.

    A long one is computed by the fast Fourier transform. It is then right to 1e-16 of the largest entry.

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


def _ladder_survival(walk: Steps, h: float) -> FloatArray:
    """Compute P(T > m), no strict record in m = 0, 1, ... samples. P(the walk falls below -40 / h) is at most e^-40."""
    return walk_until_exit(walk, _TIE * (walk.up + walk.down), 40.0 / h).survival()


def passage_cost(walk: Steps, h: float, top: float) -> float:
    """Estimate how many cells both programmes visit for barriers up to `top`.

    Parameters
    ----------
    walk : Steps
        A walk that drifts up.
    h : float
        Its exponent.
    top : float
        The highest barrier.

    Returns
    -------
    float
        The number of cells.
    """
    last = top / walk.drift
    return last * 17.0 * math.sqrt(last * walk.p_up * (1.0 - walk.p_up)) + cells_needed(walk, 1e-9, 40.0 / h)


def passage_survival(
    walk: Steps,
    h: float,
    weight: Callable[[FloatArray], FloatArray],
    starts: dict[float, float],
    kink: float,
    top: float,
) -> tuple[FloatArray, float]:
    """Compute ``E[weight(max_{j <= k} Lambda_j)]`` for k = 0, 1, ...

    Both programmes must agree on what a record is. If the steps are whole multiples of one unit, a walk can come back
    to its last record exactly, and rounding puts it a little above or below, not always on the same side. Counted as a
    record in one programme and not in the other, such a path would count twice or not at all. So a walk less than
    `_TIE` (in parts of both steps) above its last record sets none.

    Parameters
    ----------
    walk : Steps
        A walk that drifts up.
    h : float
        Its exponent.
    weight : callable
        The survival function of L, moved by the bound.
    starts : dict
        The walk starts at y with probability ``starts[y]``.
    kink : float
        The weight is constant up to here.
    top : float
        The weight is negligible from here on.

    Returns
    -------
    running : array
        The expectations.
    off : float
        The error of interpolating the weight between 2^18 points, from the change against half as many.
    """
    reach = top - min(starts) + walk.up
    corner = kink - max(starts, key=lambda y: starts[y])
    if corner > 0.0:  # on a point of the grid, and of that of half the size
        reach = 0.5 * corner * _POINTS / max(math.floor(0.5 * corner * _POINTS / reach), 1)
    points: FloatArray = np.arange(_POINTS + 2.0) * (reach / _POINTS)
    table = np.zeros(points.size)
    for y, share in starts.items():
        table += share * weight(points + y)
    middles = 0.5 * (table[:-2:2] + table[2::2])
    off = float(np.abs(middles - table[1:-1:2])[: _POINTS // 2].max())
    last = int(reach / walk.drift * 1.2) + 1000
    weights = _weigh(walk.p_up, walk.up, walk.down, table, _POINTS / reach, last)
    ladder = _ladder_survival(walk, h)
    return convolved(weights, ladder)[: weights.size], off
