"""What a reader is shown of a game: the event that tells most, a histogram, and a trade-off curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from dpsmc_audit.evidence.predictor import Cells, Predictor
from dpsmc_audit.evidence.scores import Linear
from dpsmc_audit.evidence.witness import Event, View

__all__ = ["Histogram", "TradeOff", "best_range", "trade_off", "witness_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FEW, FEWEST_BINS, MOST_BINS, IN_A_BIN = 64, 8, 80, 15
"""Up to so many different whole numbers have a bar each. Otherwise the middle is cut into bins, as many as the runs can
fill."""

_FAR = 1e300
"""Values beyond this stand for infinite or missing ones."""


def best_range(counts: FloatArray, epsilon: float) -> tuple[int, int]:
    """Find the cells in a row that speak most against a claim.

    Parameters
    ----------
    counts : array
        ``counts[label, cell]``.
    epsilon : float
        The claim.

    Returns
    -------
    first, last : int
        The event holds the cells first, ..., last - 1.
    """
    sums = np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0)))
    first, last = np.triu_indices(sums.shape[1], 1)
    inside = sums[:, last] - sums[:, first]
    likely, other = inside.max(axis=0), inside.min(axis=0)
    runs, s = np.maximum(likely + other, 1.0), 1.0 / (1.0 + math.exp(-min(epsilon, 700.0)))
    share = likely / runs
    gain = np.where(share > s, runs * (rel_entr(share, s) + rel_entr(1.0 - share, max(1.0 - s, 1e-300))), 0.0)
    tail = (first == 0) | (last == counts.shape[1])
    best = int(np.argmax(np.where(tail, 1.1, 1.0) * np.round(gain, 9)))
    return int(first[best]), int(last[best])


def witness_of(predictor: Predictor, epsilon: float) -> Event:
    """Return the range of a view that speaks most against a claim, with its shares of the runs.

    Parameters
    ----------
    predictor : Predictor
        What was learnt.
    epsilon : float
        The claim.

    Returns
    -------
    Event
        Of the view with the largest evidence. Its shares are of the runs that chose it: they are no bounds.
    """
    view = int(np.argmax(np.round(predictor.weights, 9)))
    cells = predictor.cells[view]
    first, last = best_range(cells.counts, epsilon)
    zero, one = (float(row[first:last].sum() / max(row.sum(), 1.0)) for row in cells.counts)
    low, high = ends_of(cells, first, last)
    return Event(View(predictor.names[view], low, high, predictor.named(view, low, high)), one, zero)


def ends_of(cells: Cells, first: int, last: int) -> tuple[float, float]:
    """Return the half-open range of the cells first, ..., last - 1.

    Parameters
    ----------
    cells : Cells
        The cells of a view.
    first, last : int
        The range of cells.

    Returns
    -------
    low, high : float
        ``low <= value < high``.
    """
    low = -math.inf if first == 0 else float(np.nextafter(cells.ends[first - 1], np.inf))
    high = float(np.nextafter(cells.ends[last - 1], np.inf))
    return low, high


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often each outcome was seen: the first view of the labelled runs that are kept.

    Parameters
    ----------
    outcome : array of str
        The outcomes of each bar in words.
    low, high : array
        ``low <= value < high``.
    runs_1, runs_0 : array of int
        The runs with x = 1 and with x = 0.
    """

    outcome: NDArray[np.str_]
    low: FloatArray
    high: FloatArray
    runs_1: IntArray
    runs_0: IntArray

    @classmethod
    def of(cls, predictor: Predictor) -> Histogram:
        """Count runs in bars.

        Parameters
        ----------
        predictor : Predictor
            What was learnt.

        Returns
        -------
        Histogram
            A bar for each value if they are few whole numbers; otherwise bins of one width between two tails.
        """
        values, labels = predictor.kept(0)
        edges = _edges(values)
        one, zero = (np.histogram(values[labels == b], edges)[0] for b in (1, 0))
        seen = np.flatnonzero(one + zero)
        low, high = edges[:-1][seen], edges[1:][seen]
        names = [predictor.named(0, float(a), float(b)) for a, b in zip(low, high, strict=True)]
        return cls(np.array(names, np.str_), low, high, one[seen], zero[seen])


def _edges(values: FloatArray) -> FloatArray:
    """Choose the ends of bars."""
    distinct = np.unique(values)
    whole = bool(np.all(distinct == np.rint(distinct)))
    if whole and distinct[-1] - distinct[0] < FEW:
        return np.arange(distinct[0], distinct[-1] + 2.0)
    finite = values[np.abs(values) < _FAR]  # missing and infinite values are farther out
    low, high = np.quantile(finite if finite.size else np.zeros(1), [5e-4, 1.0 - 5e-4], method="nearest")
    bins = min(max(values.size // IN_A_BIN, FEWEST_BINS), MOST_BINS)
    width = max((high - low) / bins, 1e-12 * max(abs(low), abs(high), 1e-290))
    if whole:
        width = math.ceil(width)
    inner = low + width * np.arange(math.floor((high - low) / width) + 2)
    ends = [distinct[0]] if distinct[0] < inner[0] else []
    beyond = [np.nextafter(distinct[-1], np.inf)] if distinct[-1] >= inner[-1] else []
    return np.concatenate([ends, inner, beyond])


_LEAST = 16
"""A band is about so many runs, or twice as many, or four times, ..."""


@dataclass(frozen=True, eq=False)
class TradeOff:
    """False alarms against misses of tests that guess x = 1 where a score is large, with simultaneous bands.

    The score was learnt on one half of the kept runs, the rates are of the other half. The best test may be better:
    each point bounds the trade-off curve of the mechanism from above.

    Parameters
    ----------
    alpha, beta : array
        The share of false alarms (x = 0 taken for 1) and of misses of each test.
    alpha_low, alpha_high, beta_low, beta_high : array
        Ends that hold for all tests together, at the confidence of the audit.
    """

    alpha: FloatArray
    beta: FloatArray
    alpha_low: FloatArray
    alpha_high: FloatArray
    beta_low: FloatArray
    beta_high: FloatArray


def trade_off(predictor: Predictor, level: float, stopped: bool = False) -> TradeOff:
    """Estimate a trade-off curve with simultaneous bands (Dvoretzky, Kiefer, Wolfowitz, Massart).

    A game that stopped before it had all its runs may have stopped at a lucky one. Its band is about the first 16, 32,
    64, ... runs, as many as there are: their number is no matter of luck, and all these bands share half of the level.

    Parameters
    ----------
    predictor : Predictor
        Its kept runs are used. The score of a user's classifier is not: it goes on learning.
    level : float
        The probability that a band misses any of its rates.
    stopped : bool
        Whether the game stopped before it had all its runs.

    Returns
    -------
    TradeOff
        The curve, with increasing false alarms.
    """
    plain = range(len(predictor.views.names))
    linear = [score for score in predictor.scores if isinstance(score, Linear)]
    _, labels = predictor.kept(0)
    runs, share = min([labels.size, *(score.labels.size for score in linear)]), 0.5
    if stopped:
        doubled = max(int(math.log2(max(runs, 1) / _LEAST)), 0)
        share = 0.5 / ((doubled + 1) * (doubled + 2)) if runs >= _LEAST else 0.0
        runs = min(runs, _LEAST << doubled)
    half = runs // 2
    # a score would go on learning: the first quarter fixes it
    views = [(predictor.kept(k)[0], 0) for k in plain] + [(score.fixed(half // 2), half // 2) for score in linear]
    learnt, gained = [], []
    for row, first in views:
        cells = Cells()
        cells.cut(row[first:half], labels[first:half])
        cells.learn()
        learnt.append(cells)
        gained.append(cells.evidence + (half - first) * math.log(2.0))
    best = int(np.argmax(np.round(gained, 9)))
    score = learnt[best].chance[learnt[best].place(views[best][0][half:runs])]
    return _banded(score, labels[half:runs], share * level)


def _banded(score: FloatArray, labels: IntArray, level: float) -> TradeOff:
    """Count the errors of all tests of a score. Four ends share the level."""
    cuts = np.unique(np.append(score, np.inf))[::-1]
    rates, wide = [], []
    for b in (0, 1):
        mine = np.sort(score[labels == b])
        above = 1.0 - np.searchsorted(mine, cuts, side="left") / max(mine.size, 1)
        rates.append(above if b == 0 else 1.0 - above)
        known = mine.size > 0 and level > 0.0
        wide.append(math.sqrt(math.log(4.0 / level) / (2.0 * mine.size)) if known else 1.0)
    ends = [np.clip(rate + sign * off, 0.0, 1.0) for rate, off in zip(rates, wide, strict=True) for sign in (-1, 1)]
    return TradeOff(rates[0], rates[1], *ends)
