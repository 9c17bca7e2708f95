"""Averages over strata of L of the law for fixed bounds, where nothing closed is known.

tau grows with L, so the laws at the two ends of each stratum bracket P(tau > k). Where only one bound is usually met,
strata are used for no more than what the other one changes; that falls like ``exp(-h L)``, and the strata with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import require
from dpsmc_audit.exact.fixed import Steps, cells_needed, exit_law, walk_until_exit
from dpsmc_audit.exact.overshoot import turned_up
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.sums import dot
from dpsmc_audit.runs.memory import require_room
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["CELLS", "FAR", "LONGEST", "Part", "affordable", "cells_of", "short_enough", "strata", "total"]

FloatArray = NDArray[np.float64]

FAR = 23.0
"""A bound further than this over h against the drift is reached with probability exp(-23), 1e-10."""

CELLS = 1.5e9
"""Cells that the passage, or all strata together, may visit."""

_MOST_STRATA, _FEWEST_STRATA = 1024, 10

_STRIDES = ((2, 4.0), (4, 1.8), (8, 0.9))
"""Keeping every second end, every fourth or every eighth: the largest change, times this, is the stated error.

A law for fixed L jumps at some L, and each jump adds to the change. By how much depends on its place among the strata
that are joined, and jumps at like places cancel. They rarely do so for two, four and eight strata at once. The factors
make the three equal on average for jumps at random places.
"""


@dataclass(frozen=True)
class Part:
    """A share of the law: the runs whose L lies in some interval, or a bound on what is wrong with them."""

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
    """The runs with L between `lowest` and `highest` (None: all but a small rest), by the trapezoid rule in F(L).

    With `beyond_passage`, only by what they differ from the passage over the near bound alone.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    top, rest = (highest, 0.0) if highest is not None else _affordable_top(setting)
    tilt = abs(test.exponent(p_phi)) if beyond_passage else 0.0  # what the far bound changes falls like exp(-h L)
    ends = _ends(setting, lowest, top, tilt)
    laws = [_between(test, p_phi, float(x), forced, beyond_passage) for x in ends]
    masses = -np.diff(mechanism.survival(np.concatenate([[lowest], ends[1:]])))
    fine = _weighted(laws, _weights(mechanism, lowest, ends, tilt))

    def change(stride: int) -> float:
        """Summed over all (tau, o), by keeping only every so manyth end."""
        kept = np.unique(np.append(np.arange(0, ends.size, stride), ends.size - 1))
        coarse = _weighted([laws[i] for i in kept], _weights(mechanism, lowest, ends[kept], tilt))
        return float(sum(np.abs(total([a, -b])).sum() for a, b in zip(fine, coarse, strict=True)))

    # what the far bound changes is smooth in L: the rest of the error has been seen to be up to 1.8 times this change
    scatter = 3.0 * change(2) if beyond_passage else max(factor * change(stride) for stride, factor in _STRIDES)
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
    """P(tau = k, H_null) and P(tau = k, H_alt) for this L; or by how much the far bound changes them."""
    law = exit_law(test, p_phi, excess, forced)
    if not beyond_passage:
        return law.null, law.alt
    deep = FAR / abs(test.exponent(p_phi)) + len(forced) * test.step_sum  # forced entries may lead there
    up, low = (test.b_up + excess, deep) if test.drift(p_phi) > 0.0 else (deep, test.b_low + excess)
    alone = walk_until_exit(Steps.of(test, p_phi), up, low, forced=forced)
    if test.drift(p_phi) > 0.0:
        return total([law.null, -alone.null]), law.alt
    return law.null, total([law.alt, -alone.alt])


def _mean(law: tuple[FloatArray, FloatArray]) -> float:
    return float(sum(dot(np.arange(1.0, side.size + 1.0), side) for side in law))


def _ends(setting: Setting, lowest: float, top: float, tilt: float) -> FloatArray:
    """Ends of an even number of strata of equal probability, each L counted with ``exp(-tilt L)``.

    Without a tilt none is wider than the law for a fixed L is smooth.
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
    """Enough evenly spaced L for ``exp(-tilt L)`` to fall by half an e-fold between them, if that is affordable."""
    count = math.ceil(2.0 * tilt * (top - start)) + 2
    middle = np.linspace(start, top, 8)
    each = float(np.mean([cells_of(test, p_phi, float(x), tilt) for x in middle]))
    return count if count * each <= 0.5 * CELLS else 2


def cells_of(test: Sprt, p_phi: float, excess: float, tilt: float) -> float:
    """Cells for one L; with a tilt both with and without the far bound."""
    _, walk, near, far = turned_up(test, p_phi)
    cells = cells_needed(walk, near + excess, far + excess)
    return cells if tilt == 0.0 else cells + cells_needed(walk, near + excess, FAR / tilt)


def _weights(mechanism: Mechanism, lowest: float, ends: FloatArray, tilt: float) -> FloatArray:
    """Weights of the ends: half the probability of the strata on either side.

    With a tilt, those that are right where ``exp(tilt L) f(L)`` is linear between the ends, but for wide strata.
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
    """Up to which L strata go, and the probability of what is beyond."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    walk = Steps.of(test, p_phi)
    for tail in 10.0 ** -np.arange(9.0, 2.0, -1.0):
        top = float(mechanism.quantile(1.0 - tail))
        if cells_needed(walk, test.b_up + top, test.b_low + top) <= 0.05 * CELLS:
            return top, float(tail)
    return float(mechanism.quantile(1.0 - 1e-2)), 1e-2


LONGEST = 1 << 23
"""Values of tau that a law may have: arrays of as many numbers are transformed."""


def short_enough(p_phi: float, last: float) -> None:
    """A tiny epsilon makes laws that reach far; the refusal depends on the parameters alone, not on the machine."""
    message = "the law at p_phi={:g} reaches {:.0e} samples, more than {:.0e}: means, errors and runs are affordable"
    require(last <= LONGEST, message.format(p_phi, last, LONGEST))
    require_room(200.0 * last, f"the law of {last:.0e} values of tau")


def affordable(p_phi: float, cells: float) -> None:
    message = "the law at p_phi={:g} would visit {:.0e} cells: without drift only means and errors are affordable"
    require(cells <= CELLS, message.format(p_phi, cells))


def total(rows: Sequence[FloatArray]) -> FloatArray:
    """Sum of rows of different lengths, continued by 0."""
    total = np.zeros(max(row.size for row in rows))
    for row in rows:
        total[: row.size] += row
    return total
