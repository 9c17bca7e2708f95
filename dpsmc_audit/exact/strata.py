"""Averages over strata of L of the law for fixed bounds, where no closed form is known.

tau grows with L, so the laws at the two ends of each stratum bracket P(tau > k). Where only one bound is usually met,
strata compute only the change by the other one. It falls like ``exp(-h L)``, and the strata follow it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import require
from dpsmc_audit.exact.far_bound import FAR, change
from dpsmc_audit.exact.fixed import Steps, cells_needed, exit_law
from dpsmc_audit.exact.overshoot import turned_up
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.sums import dot, total
from dpsmc_audit.runs.memory import require_room
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["CELLS", "LONGEST", "Part", "affordable", "cells_of", "short_enough", "strata"]

FloatArray = NDArray[np.float64]

CELLS = 1.5e9
"""Cells that the passage, or all strata together, may visit."""

_MOST_STRATA, _FEWEST_STRATA = 1024, 10

_STRIDES = ((2, 4.0), (4, 1.8), (8, 0.9))
"""Keeping every second end, every fourth or every eighth: the largest change, times this, is the stated error.

A law for fixed L jumps at some L, and each jump adds to the change. By how much depends on its place among the strata
that are joined, and jumps at similar places cancel. They rarely do so for two, four and eight strata at once. The
factors make the three equal on average for jumps at random places.
"""


@dataclass(frozen=True)
class Part:
    """A part of the law: the runs whose L lies in some interval, or the change of these runs by the far bound.

    Parameters
    ----------
    null, alt : array
        ``null[k - 1] = P(tau = k, H_null)`` and ``alt[k - 1] = P(tau = k, H_alt)`` of these runs, or their change.
    error : float
        The numerical error of any P(tau > k).
    scatter : float
        The numerical error summed over all (tau, o).
    mean_error : float
        The numerical error of the contribution to E[tau].
    """

    null: FloatArray
    alt: FloatArray
    error: float
    scatter: float
    mean_error: float


def strata(
    setting: Setting,
    forced: Mapping[int, int],
    lowest: float,
    highest: float | None,
    *,
    beyond_passage: bool = False,
) -> Part:
    """Compute the runs with L in an interval, by the trapezoid rule in F(L).

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.
    forced : mapping
        Samples that are given (entry: bit), counted from 1.
    lowest : float
        The lower end of the interval.
    highest : float or None
        The upper end; None for all L but a small rest, which is part of the error.
    beyond_passage : bool
        Whether to compute only the difference from the passage over the near bound alone.

    Returns
    -------
    Part
        These runs, with errors.

    Raises
    ------
    ParameterError
        If even the fewest strata would visit too many cells.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    top, rest = (highest, 0.0) if highest is not None else _affordable_top(setting)
    tilt = abs(test.exponent(p_phi)) if beyond_passage else 0.0  # the change by the far bound falls like exp(-h L)
    ends = _ends(setting, lowest, top, tilt)
    laws = [_between(test, p_phi, float(x), forced, beyond_passage) for x in ends]
    masses = -np.diff(mechanism.survival(np.concatenate([[lowest], ends[1:]])))
    fine = _weighted(laws, _weights(mechanism, lowest, ends, tilt))

    def coarsened(stride: int) -> float:
        """Compute the change, summed over all (tau, o), if only every `stride`-th end is kept."""
        kept = np.unique(np.append(np.arange(0, ends.size, stride), ends.size - 1))
        coarse = _weighted([laws[i] for i in kept], _weights(mechanism, lowest, ends[kept], tilt))
        return float(sum(np.abs(total([a, -b])).sum() for a, b in zip(fine, coarse, strict=True)))

    # the change by the far bound is smooth in L: the rest of the error was observed to be up to 1.8 times this change
    scatter = 3.0 * coarsened(2) if beyond_passage else max(factor * coarsened(stride) for stride, factor in _STRIDES)
    share = float(masses.sum())
    inside = 1e-11 * share + rest
    # tau grows with L: P(tau > k) lies between its values at the two ends of each stratum
    half = scatter if beyond_passage else 0.5 * float(masses.max())
    moved = abs(_mean(laws[-1]) - _mean(laws[0]))
    late = 0.5 * float(masses.max()) * moved + 2.0 * inside * max(law[0].size for law in laws)
    return Part(*fine, half + inside, scatter + inside, late)


def _between(
    test: Sprt, p_phi: float, excess: float, forced: Mapping[int, int], beyond_passage: bool
) -> tuple[FloatArray, FloatArray]:
    """Compute P(tau = k, H_null) and P(tau = k, H_alt) for this L, or their change by the far bound."""
    law = exit_law(test, p_phi, excess, forced)
    return change(test, p_phi, excess, forced, law) if beyond_passage else (law.null, law.alt)


def _mean(law: tuple[FloatArray, FloatArray]) -> float:
    return float(sum(dot(np.arange(1.0, side.size + 1.0), side) for side in law))


def _ends(setting: Setting, lowest: float, top: float, tilt: float) -> FloatArray:
    """Make the ends of an even number of strata of equal probability, each L weighted by ``exp(-tilt L)``.

    Evenly spaced ends are added, so that no stratum is too wide.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    start = max(lowest, test.least_room)
    grid = np.linspace(start, top, 20_001)
    weights = -np.diff(mechanism.survival(grid)) * np.exp(-tilt * (grid[1:] - start))
    cumulative = np.concatenate([[0.0], np.cumsum(weights)]) / max(float(weights.sum()), 1e-300)
    middle = np.interp((np.arange(16) + 0.5) / 16.0, cumulative, grid)
    each = float(np.mean([cells_of(test, p_phi, float(x), tilt) for x in middle])) + 5e4
    enough = int(1e6 * float(weights.sum())) + _FEWEST_STRATA
    count = min(int(CELLS / each), _MOST_STRATA, enough)
    affordable(p_phi, each * _FEWEST_STRATA)
    inner = np.interp(np.arange(1, count) / count, cumulative, grid)
    even = np.linspace(start, top, count // 4 if tilt == 0.0 else _even_count(test, p_phi, start, top, tilt))
    ends = np.unique(np.concatenate([[start, top], inner, even]))
    return ends if ends.size % 2 == 1 else np.insert(ends, -1, 0.5 * (ends[-2] + ends[-1]))


def _even_count(test: Sprt, p_phi: float, start: float, top: float, tilt: float) -> int:
    """Count the evenly spaced L between which ``exp(-tilt L)`` falls by half an e-fold; 2 if that is not affordable."""
    count = math.ceil(2.0 * tilt * (top - start)) + 2
    middle = np.linspace(start, top, 8)
    each = float(np.mean([cells_of(test, p_phi, float(x), tilt) for x in middle]))
    return count if count * each <= 0.5 * CELLS else 2


def cells_of(test: Sprt, p_phi: float, excess: float, tilt: float) -> float:
    """Estimate the cells that the law for one L visits.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    excess : float
        The value of L.
    tilt : float
        0 for the law alone. Otherwise the exponent h: the law without the far bound is then included.

    Returns
    -------
    float
        The number of cells.
    """
    _, walk, near, far = turned_up(test, p_phi)
    cells = cells_needed(walk, near + excess, far + excess)
    return cells if tilt == 0.0 else cells + cells_needed(walk, near + excess, FAR / tilt)


def _weights(mechanism: Mechanism, lowest: float, ends: FloatArray, tilt: float) -> FloatArray:
    """Compute the weights of the ends: half the probability of the strata on both sides.

    With a tilt they are right if ``exp(tilt L) f(L)`` is linear between the ends, except for wide strata.
    """
    masses = -np.diff(mechanism.survival(np.concatenate([[lowest], ends[1:]])))
    halves = 0.5 * masses
    if tilt == 0.0:
        return np.asarray(np.append(halves, 0.0) + np.insert(halves, 0, 0.0))
    cells = 64
    grid = np.append((ends[:-1, None] + np.diff(ends)[:, None] * (np.arange(cells) / cells)).ravel(), ends[-1])
    masses = -np.diff(mechanism.survival(grid)).reshape(-1, cells)
    narrow = tilt * np.diff(ends) <= 4.0  # beyond, the weight of the right end would outgrow the stratum's
    right = (np.arange(cells) + 0.5) / cells
    ahead = np.diff(ends)[:, None] * right
    left_share = (masses * (1.0 - right) * np.exp(-tilt * ahead)).sum(axis=1)
    right_share = (masses * right * np.exp(tilt * (np.diff(ends)[:, None] - ahead))).sum(axis=1)
    left_share, right_share = (np.where(narrow, share, halves) for share in (left_share, right_share))
    return np.asarray(np.append(left_share, 0.0) + np.insert(right_share, 0, 0.0))


def _weighted(laws: Sequence[tuple[FloatArray, FloatArray]], weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    null, alt = (total([w * law[side] for w, law in zip(weights, laws, strict=True)]) for side in (0, 1))
    return null, alt


def _affordable_top(setting: Setting) -> tuple[float, float]:
    """Find the largest L of the strata, and the probability of larger ones."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    walk = Steps.of(test, p_phi)
    for tail in 10.0 ** -np.arange(9.0, 2.0, -1.0):
        top = float(mechanism.quantile(1.0 - tail))
        if cells_needed(walk, test.b_up + top, test.b_low + top) <= 0.05 * CELLS:
            return top, float(tail)
    return float(mechanism.quantile(1.0 - 1e-2)), 1e-2


LONGEST = 1 << 23
"""The most values of tau that a law may have: arrays of this size are transformed."""


def short_enough(p_phi: float, last: float) -> None:
    """Refuse a law with too many values of tau, as a tiny epsilon makes it.

    The first limit depends on the parameters alone, not on the machine. The second one is the memory available.

    Parameters
    ----------
    p_phi : float
        The satisfaction probability, for the message.
    last : float
        The number of values of tau.

    Raises
    ------
    ParameterError
        If there are more than `LONGEST` values.
    NoRoomError
        If memory is short.
    """
    message = "the law at p_phi={:g} reaches {:.0e} samples, more than {:.0e}: means, errors and runs are affordable"
    require(last <= LONGEST, message.format(p_phi, last, LONGEST))
    require_room(200.0 * last, f"the law of {last:.0e} values of tau")


def affordable(p_phi: float, cells: float) -> None:
    """Refuse a law that would visit too many cells.

    Parameters
    ----------
    p_phi : float
        The satisfaction probability, for the message.
    cells : float
        The number of cells.

    Raises
    ------
    ParameterError
        If there are more than `CELLS`.
    """
    message = "the law at p_phi={:g} would visit {:.0e} cells: without drift only means and errors are affordable"
    require(cells <= CELLS, message.format(p_phi, cells))
