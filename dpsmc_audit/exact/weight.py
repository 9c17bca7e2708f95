"""What a record of the walk weighs: P(L exceeds it), as a function of its height in pieces of degree two.

With forced entries the weight of a record includes the samples up to the last entry (`prefix`). Then it jumps at the
heights below which these samples would have been above the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.prefix import Prefix
from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, Truncated
from dpsmc_audit.numerics.ties import best_of

__all__ = ["Range", "Weight"]

FloatArray = NDArray[np.float64]

_CELLS = 1 << 15
"""Pieces, without those at corners and jumps."""

_UNIMODAL = (
    "cauchy chi2 expon fisk gamma genpareto gumbel_l gumbel_r halfcauchy halflogistic halfnorm invgamma invgauss "
    "laplace logistic lognorm lomax maxwell norm pareto powerlaw rayleigh t triang uniform weibull_min"
)
"""Families of scipy.stats whose densities rise to one mode and fall from there."""

_CHUNK = 1 << 21
"""Values of the survival function that are computed at once."""


@dataclass(frozen=True)
class Range:
    """The runs with ``low < L <= high``.

    Parameters
    ----------
    mechanism : Mechanism
        The law of L.
    low, high : float
        The ends.
    """

    mechanism: Mechanism
    low: float
    high: float

    @property
    def share(self) -> float:
        """The probability of such an L."""
        return float(self.survival(np.array(self.low)))

    def survival(self, excess: FloatArray) -> FloatArray:
        """Compute P(L > excess, low < L <= high).

        Parameters
        ----------
        excess : array
            Excess records.

        Returns
        -------
        array
            The probabilities.
        """
        inside = np.clip(excess, self.low, self.high)
        beyond = float(self.mechanism.survival(self.high))
        return np.maximum(np.asarray(self.mechanism.survival(inside)) - beyond, 0.0)

    @property
    def unimodal(self) -> bool:
        """Whether the density of L is known to rise to one mode and to fall from there."""
        return isinstance(self.mechanism, Law) and self.mechanism.distribution in _UNIMODAL.split()

    def corners(self) -> FloatArray:
        """List where the density of L is not smooth, as far as that is known."""
        inner: tuple[float, ...] = ()
        if isinstance(self.mechanism, Laplace):
            inner = (self.mechanism.center,)
        elif isinstance(self.mechanism, Truncated):
            inner = (self.mechanism.lowest, self.mechanism.center)
        elif isinstance(self.mechanism, Law):
            inner = (float(self.mechanism.quantile(0.0)), float(self.mechanism.quantile(1.0)))
        places = np.array([self.low, self.high, *(place for place in inner if math.isfinite(place))])
        return np.unique(places[(places >= self.low) & (places <= self.high)])

    def rate(self) -> float | None:
        """Return the rate at which the density grows or falls between its corners. None if it is no exponential."""
        if isinstance(self.mechanism, Exponential):
            return self.mechanism.rate
        return 1.0 / self.mechanism.scale if isinstance(self.mechanism, (Laplace, Truncated)) else None


@dataclass(frozen=True, eq=False)
class Weight:
    """A function of the height of a record. It is zero from `top` on.

    Parameters
    ----------
    begins : array
        Where the pieces begin, increasing.
    value, slope, bend : array
        The function is ``value + slope t + bend t^2`` a distance t after a piece begins.
    guide : array
        The piece at the beginning of each cell of a grid.
    scale : float
        Cells of the grid in a unit of height.
    top : float
        Where the last piece ends.
    off : float
        By how much the function differs at most from what it stands for.
    variation : float
        The total variation of that difference.
    proven : bool
        Whether `variation` is a bound.
    """

    begins: FloatArray
    value: FloatArray
    slope: FloatArray
    bend: FloatArray
    guide: NDArray[np.int64]
    scale: float
    top: float
    off: float
    variation: float
    proven: bool

    @classmethod
    def of(cls, runs: Range, bound: float, prefix: Prefix | None = None) -> Weight:
        """Compute the weight of records of some runs.

        Parameters
        ----------
        runs : Range
            Which L count.
        bound : float
            The distance of the bound from 0, without L.
        prefix : Prefix, optional
            The samples up to the last forced entry. Without it the record is the height itself.

        Returns
        -------
        Weight
            The function, and by how much it may be off.
        """
        moves = np.zeros(1) if prefix is None else prefix.moves
        top = max(bound + runs.high - float(moves.min()), 1.0)  # an entry may leave no record to survive
        corners = (bound + runs.corners()[:, None] - moves).ravel()
        even = np.linspace(0.0, top, _CELLS if prefix is None else _CELLS // 4)
        jumps = np.empty(0) if prefix is None else prefix.jumps
        marks = [even, corners, jumps]
        if (rate := runs.rate()) is None:  # cells of equal probability as well
            likely = np.asarray(runs.mechanism.quantile(np.linspace(0.0, 1.0, 2 + _CELLS // moves.size)[1:-1]))
            marks.append((bound + likely[:, None] - moves).ravel())
        places = np.unique(np.concatenate(marks))
        edges = places[(places >= 0.0) & (places <= top)]
        if edges[-1] < top:
            edges = np.append(edges, top)
        begins, width = edges[:-1], np.diff(edges)

        def survival(height: FloatArray) -> FloatArray:
            return runs.survival(height - bound)

        pieces = _without_prefix if prefix is None else prefix.pieces(_CHUNK)
        left, middle, right = pieces(survival, begins, width)
        slope, bend = (-3.0 * left + 4.0 * middle - right) / width, 2.0 * (left - 2.0 * middle + right) / width**2
        if rate is None:
            slope, bend = (right - left) / width, np.zeros(width.size)
        off, variation = _errors(runs, edges - bound, rate, moves)
        cells = _CELLS
        starts = np.arange(cells + 1) * (top / cells)
        guide = np.maximum(np.searchsorted(begins, starts * (1.0 - 1e-15), side="right") - 1, 0)
        proven = rate is not None or runs.unimodal
        return cls(begins, left, slope, bend, guide, cells / top, top, off, variation, proven)


def _without_prefix(
    survival: Callable[[FloatArray], FloatArray], begins: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    return survival(begins), survival(begins + 0.5 * width), survival(begins + width)


def _errors(runs: Range, edges: FloatArray, rate: float | None, moves: FloatArray) -> tuple[float, float]:
    """Bound the error of one piece of degree two in each cell, or of a line if the density is no exponential.

    Three points at distances of half a width w: the derivative is off by ``w^2 / 12`` times the largest third
    derivative, ``rate^2`` times a density that changes by ``exp(rate w)`` at most. A falling function is off by no more
    than its fall in a cell.
    """
    if rate is not None:
        widest = rate * float(np.diff(edges).max())
        variation = runs.share * widest**2 / 12.0 * math.exp(min(widest, 700.0)) + 1e-15
        return min(variation, runs.share), min(variation, 2.0 * runs.share)
    falls, bends = zip(*(_bend(runs, edges + move) for move in moves), strict=True)
    return max(falls), max(bends)


def _bend(runs: Range, edges: FloatArray) -> tuple[float, float]:
    """Bound the largest fall in a cell, and the variation of the difference from a line in each cell.

    Where the density is monotone across three cells, it lies between the means of the outer ones in the middle one.
    Next to the mode and to the ends the difference varies by no more than twice the fall.
    """
    width, mass = np.diff(edges), -np.diff(runs.survival(edges))
    density = np.divide(mass, width, out=np.zeros(mass.size), where=width > 0.0)
    change = np.maximum(np.abs(np.diff(density, prepend=0.0)), np.abs(np.diff(density, append=0.0)))
    mode = best_of(density)
    change[max(mode - 1, 0) : mode + 2] = math.inf
    return float(mass.max()), float(np.minimum(width * change, 2.0 * mass).sum()) + 1e-13
