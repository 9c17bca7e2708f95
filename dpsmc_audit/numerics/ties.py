"""Choices between floating-point numbers that are the same on every processor.

Processors add in different orders and round functions differently. So numbers that are equal on paper differ in their
last digits, and chance decides which of them is the larger. Here numbers that agree up to rounding count as equal, and
a rule decides between them: the larger size (if sizes are given), then the earlier place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpsmc_audit.numerics.arrays import BoolArray, FloatArray, IntArray

__all__ = ["CLOSE", "best_of", "exceeds", "ranked", "tied_groups"]


CLOSE = 5e-10
"""Numbers this close count as equal: far above rounding, and far below any digit that is shown."""

_SAME_SIZE = 1e-9


def best_of(scores: ArrayLike, sizes: ArrayLike | None = None, close: float = CLOSE) -> int:
    """Find the place of the largest score.

    Scores within `close` of the largest are tied. The one of the largest size wins. Of sizes that agree to nine digits
    the first one wins. A score that is nan never wins over a number.

    Parameters
    ----------
    scores : array_like
        The scores, at least one.
    sizes : array_like, optional
        The size of each score, not negative. Without sizes the first of the tied scores wins.
    close : float
        The tolerance: absolute, or relative to the largest score if that is more.

    Returns
    -------
    int
        The place, counted from 0.

    Examples
    --------
    >>> best_of([0.1, 0.3, 0.3 + 1e-15]), best_of([0.1, 0.3, 0.3 + 1e-15], sizes=[0.2, 0.2, 0.4])
    (1, 2)
    """
    values = np.where(np.isnan(scores), -np.inf, np.asarray(scores, np.float64))
    top = float(values.max())
    tied = values == top if np.isinf(top) else values >= top - close * max(1.0, abs(top))
    if sizes is None:
        return int(np.flatnonzero(tied)[0])
    sized = np.where(tied, np.asarray(sizes, np.float64), -np.inf)
    return int(np.flatnonzero(sized >= float(sized.max()) * (1.0 - _SAME_SIZE))[0])


def ranked(scores: ArrayLike, sizes: ArrayLike | None = None, close: float = CLOSE) -> IntArray:
    """Sort the places from the largest score to the smallest.

    Scores that follow each other within `close` (as in `best_of`) are tied. Those of larger size come first. Sizes that
    agree to nine digits stay in the order of their places. Scores that are nan come last.

    Parameters
    ----------
    scores : array_like
        The scores.
    sizes : array_like, optional
        The size of each score. Without sizes tied scores stay in the order of their places.
    close : float
        The tolerance, as in `best_of`.

    Returns
    -------
    array of int
        The places, counted from 0.

    Examples
    --------
    >>> ranked([0.3, 0.5, 0.3 + 1e-15]).tolist(), ranked([0.3, 0.5, 0.3 + 1e-15], sizes=[1, 1, 2]).tolist()
    ([1, 0, 2], [1, 2, 0])
    """
    values = np.where(np.isnan(scores), -np.inf, np.asarray(scores, np.float64))
    groups, places = tied_groups(values, close), np.arange(values.size)
    if sizes is None:
        return np.lexsort((places, groups))
    given = np.asarray(sizes, np.float64)
    order = np.lexsort((-given, groups))
    group, size = groups[order], given[order]
    new = (group[1:] > group[:-1]) | (size[:-1] - size[1:] > _SAME_SIZE * size[:-1])
    return np.lexsort((places, _numbered(order, new)))


def tied_groups(values: FloatArray, close: float = CLOSE) -> IntArray:
    """Number the groups of tied values, from the largest on.

    Parameters
    ----------
    values : array
        The values, without nan. Infinite values of the same sign are tied.
    close : float
        The tolerance between neighbours, as in `best_of`.

    Returns
    -------
    array of int
        The group of each value, counted from 0.

    Examples
    --------
    >>> tied_groups(np.array([0.3, 0.5, 0.3 + 1e-15])).tolist()
    [1, 0, 1]
    """
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    scale = np.maximum(1.0, np.abs(np.where(np.isinf(falling), 0.0, falling)))[:-1]
    with np.errstate(invalid="ignore"):  # infinite ones are tied with each other
        new = falling[:-1] - falling[1:] > close * scale
    return _numbered(order, new)


def _numbered(order: IntArray, new: BoolArray) -> IntArray:
    """Count, in this order, the new groups that began up to each place."""
    groups = np.zeros(order.size, np.int64)
    groups[order[1:]] = np.cumsum(new)
    return groups


def exceeds(value: float, other: float) -> bool:
    """Tell whether a number is larger than another by more than rounding.

    Parameters
    ----------
    value, other : float
        The numbers. The tolerance is `CLOSE`: absolute, or relative to `other` if that is more. There is none if
        `other` is infinite or nan.

    Returns
    -------
    bool
        Whether `value` is larger.
    """
    return value > other + CLOSE * max(1.0, abs(other)) if np.isfinite(other) else value > other
