"""Choices between floating-point numbers that come out the same on every processor.

Processors add in different orders and round functions differently, so numbers that are equal on paper differ in their
last digits, and which of them is the larger is an accident. Here numbers that agree but for rounding count as equal,
and a rule decides between them: the larger size (where sizes are given), then the earlier place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["CLOSE", "best_of", "exceeds", "ranked"]

IntArray = NDArray[np.int64]

CLOSE = 5e-10
"""Numbers this close count as equal: far above rounding, and far below any digit that is shown."""

_SAME_SIZE = 1e-9


def best_of(scores: ArrayLike, sizes: ArrayLike | None = None, close: float = CLOSE) -> int:
    """The place of the largest score.

    Scores within `close` of the largest (absolutely, or relatively if that is more) are tied: the one of the largest
    size wins, and of sizes that agree to nine digits the first. A score that is nan never wins over a number.

    Examples
    --------
    >>> best_of([0.1, 0.3, 0.3 + 1e-15]), best_of([0.1, 0.3, 0.3 + 1e-15], sizes=[0.2, 0.2, 0.4])
    (1, 2)
    """
    values = np.where(np.isnan(scores), -np.inf, np.asarray(scores, np.float64))
    top = float(values.max())
    if np.isinf(top):
        tied = values == top
    else:
        tied = values >= top - close * max(1.0, abs(top))
    if sizes is None:
        return int(np.flatnonzero(tied)[0])
    sized = np.where(tied, np.asarray(sizes, np.float64), -np.inf)
    return int(np.flatnonzero(sized >= float(sized.max()) * (1.0 - _SAME_SIZE))[0])


def ranked(scores: ArrayLike, sizes: ArrayLike | None = None, close: float = CLOSE) -> IntArray:
    """The places from the largest score to the smallest.

    Scores are tied that follow each other within `close` (as in `best_of`): those of larger size come first, and sizes
    that agree to nine digits in the order of their places. Scores that are nan come last.

    Examples
    --------
    >>> ranked([0.3, 0.5, 0.3 + 1e-15]).tolist(), ranked([0.3, 0.5, 0.3 + 1e-15], sizes=[1, 1, 2]).tolist()
    ([1, 0, 2], [1, 2, 0])
    """
    values = np.where(np.isnan(scores), -np.inf, np.asarray(scores, np.float64))
    groups = _groups(values, close, 1.0)
    if sizes is None:
        return np.lexsort((np.arange(values.size), groups))
    order = np.zeros(values.size, np.int64)  # within a group by size, group by group
    alike = np.empty(values.size, np.int64)
    by_group = np.lexsort((np.arange(values.size), groups))
    starts = np.flatnonzero(np.diff(groups[by_group], prepend=-1))
    given = np.asarray(sizes, np.float64)
    for start, end in zip(starts, [*starts[1:], values.size], strict=True):
        mine = by_group[start:end]
        alike[mine] = _groups(given[mine], _SAME_SIZE, 0.0) if mine.size > 1 else 0
    order[:] = np.lexsort((np.arange(values.size), alike, groups))
    return order


def _groups(values: NDArray[np.float64], close: float, least: float) -> IntArray:
    """Number of the group of tied values that each belongs to, from the largest on; `least` is the smallest scale."""
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    with np.errstate(invalid="ignore"):
        scale = np.maximum(least, np.abs(falling[:-1]))
        new = (falling[:-1] - falling[1:] > close * scale) | (np.isinf(falling[1:]) != np.isinf(falling[:-1]))
    groups = np.zeros(values.size, np.int64)
    groups[order] = np.concatenate([[0], np.cumsum(new)]) if values.size else 0
    return groups


def exceeds(value: float, other: float, close: float = CLOSE) -> bool:
    """Whether a number is larger than another by more than rounding."""
    return value > other + close * max(1.0, abs(other)) if np.isfinite(other) else value > other
