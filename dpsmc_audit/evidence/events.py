"""The comparison of two samples of (tau, o): counted outcomes, a partition into cells, and events made of cells.

An event of the family is a set of cells (a range of tau with a decision): both tails of tau, bins, each with any
decision and with each one, and the sets of cells whose likelihood ratio is the largest. The family is made from a
pilot sample. Other runs then judge events that were fixed in advance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.witness import Ranges, Share

__all__ = ["Cells", "Counted", "Family", "family_of", "joined", "outcome_code"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_SIDES = 3

FEW = 64
"""If tau has at most this many values, each is the end of a tail and a bin of its own."""

LONGEST = 2**60
"""The largest tau: a code has two more bits."""


def outcome_code(tau: NDArray[np.integer], decision: NDArray[np.integer]) -> IntArray:
    """Encode (tau, decision) as one integer, in the order of tau.

    Parameters
    ----------
    tau : array of int
        The running times, at most `LONGEST`.
    decision : array of int
        The decisions: 0, 1 or -1 (undecided).

    Returns
    -------
    array of int
        ``4 tau + decision + 1``.
    """
    return np.asarray(4 * tau.astype(np.int64) + (decision.astype(np.int64) + 1))


@dataclass(frozen=True, eq=False)
class Counted:
    """How often each outcome was seen.

    Parameters
    ----------
    codes : array of int
        The outcome codes, sorted and different.
    counts : array of int
        The number of runs with each code.
    """

    codes: IntArray
    counts: IntArray

    @classmethod
    def of(cls, codes: IntArray) -> Counted:
        """Count a sample. If the codes are small, a table of all codes is used, which is faster than sorting.

        Parameters
        ----------
        codes : array of int
            The outcome code of each run.

        Returns
        -------
        Counted
            The counts.
        """
        if codes.size == 0 or codes.max() >= 16 * codes.size or codes.min() < 0:
            return cls(*np.unique(codes, return_counts=True))
        table = np.bincount(codes)
        seen = np.flatnonzero(table)
        return cls(seen, table[seen])

    @property
    def runs(self) -> int:
        """Number of runs."""
        return int(self.counts.sum())

    @property
    def tau(self) -> IntArray:
        """Running time of each code."""
        return self.codes // 4

    @property
    def decision(self) -> IntArray:
        """Decision of each code: 0, 1 or -1 (undecided)."""
        return self.codes % 4 - 1


def joined(parts: list[Counted]) -> Counted:
    """Join counted outcomes.

    Parameters
    ----------
    parts : list of Counted
        The parts, at least one.

    Returns
    -------
    Counted
        The outcomes of all parts together.

    Examples
    --------
    >>> both = joined([Counted.of(np.array([5, 9])), Counted.of(np.array([9, 9]))])
    >>> both.codes.tolist(), both.counts.tolist()
    ([5, 9], [1, 3])
    """
    codes, place = np.unique(np.concatenate([part.codes for part in parts]), return_inverse=True)
    counts = np.zeros(codes.size, np.int64)
    np.add.at(counts, place, np.concatenate([part.counts for part in parts]))
    return Counted(codes, counts)


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of the outcomes: cell ``3 j + side`` holds ``edges[j-1] < tau <= edges[j]`` with one decision.

    Parameters
    ----------
    edges : array of int
        The upper ends of the ranges of tau, increasing. The last range has no upper end.
    """

    edges: IntArray

    @property
    def size(self) -> int:
        """Number of cells."""
        return _SIDES * (self.edges.size + 1)

    def place(self, codes: IntArray) -> IntArray:
        """Find the cell of each outcome.

        Parameters
        ----------
        codes : array of int
            Outcome codes.

        Returns
        -------
        array of int
            The cells.
        """
        return np.asarray(_SIDES * np.searchsorted(self.edges, codes // 4) + codes % 4)

    def count(self, sample: Counted) -> IntArray:
        """Count how often each cell was seen.

        Parameters
        ----------
        sample : Counted
            The outcomes.

        Returns
        -------
        array of int
            The number of runs in each cell.
        """
        counts = np.zeros(self.size, np.int64)
        np.add.at(counts, self.place(sample.codes), sample.counts)
        return counts


@dataclass(frozen=True, eq=False)
class Family:
    """Events over the cells of a partition.

    Parameters
    ----------
    cells : Cells
        The partition.
    holds : array of bool
        ``holds[i, cell]`` tells whether event i holds the cell.
    kind : array of str
        How each event was made: "tail", "bin" or "ratio".
    """

    cells: Cells
    holds: BoolArray
    kind: NDArray[np.str_]

    def count(self, sample: Counted) -> IntArray:
        """Count how often each event was seen.

        Parameters
        ----------
        sample : Counted
            The outcomes.

        Returns
        -------
        array of int
            The number of runs in each event.
        """
        return np.asarray(self.holds.astype(np.int64) @ self.cells.count(sample))

    def what(self, event: int) -> Ranges:
        """Return an event with all its ranges, so that anyone can count it again.

        Parameters
        ----------
        event : int
            The number of the event.

        Returns
        -------
        Ranges
            The event.
        """
        bins = self.holds[event].reshape(-1, _SIDES)
        if np.all(bins == bins[:, :1]):
            return Ranges((Share(_ranges(self.cells.edges, bins[:, 0])),))
        sides = [side for side in range(_SIDES) if bins[:, side].any()]
        return Ranges(tuple(Share(_ranges(self.cells.edges, bins[:, side]), side - 1) for side in sides))


def _ranges(edges: IntArray, held: BoolArray) -> tuple[tuple[float, float], ...]:
    """Join neighbouring bins into half-open ranges of tau."""
    ends = [-math.inf, *(int(edge) + 1 for edge in edges), math.inf]
    changes = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(int), [0]])))
    return tuple((ends[first], ends[last]) for first, last in zip(changes[::2], changes[1::2], strict=True))


def _edges(one: Counted, zero: Counted, most: int) -> IntArray:
    """Choose the ends of tails: all values seen if they are few, else quantiles with more of them in the tails.

    The extremes of each member are added. Below the smallest value of one member lies what may be possible for the
    other only.
    """
    pooled = joined([one, zero])
    values = np.unique(pooled.tau)
    shares = np.cumsum(pooled.counts) / pooled.runs
    tail = np.geomspace(min(0.5, 4.0 / pooled.runs), 0.1, most // 4)
    marks = np.concatenate([tail, np.linspace(0.1, 0.9, most - 2 * (most // 4)), 1.0 - tail])
    place = np.minimum(np.searchsorted(shares, marks), shares.size - 1)
    chosen = values if values.size <= FEW else pooled.tau[place]
    ends = [x for member in (one, zero) for x in (member.tau[0] - 1, member.tau[-1])]
    return np.unique(np.concatenate([chosen, ends]).astype(np.int64))


def family_of(one: Counted, zero: Counted, most: int = 48) -> Family:
    """Make the events that a pilot sample of both members suggests.

    Parameters
    ----------
    one, zero : Counted
        The pilot sample of the members with x = 1 and x = 0.
    most : int
        About how many ends of tails are used if tau has many values.

    Returns
    -------
    Family
        The events.

    Examples
    --------
    >>> pilot = Counted.of(outcome_code(np.arange(4), np.zeros(4, int)))
    >>> made = family_of(pilot, pilot)
    >>> [made.what(k).name for k in (1, 6, 10)]
    ['tau <= 0', 'tau > 0', 'tau = 0']
    """
    cells = Cells(_edges(one, zero, most))
    span, ends = np.arange(cells.edges.size + 1), np.arange(cells.edges.size)[:, None]
    tails, bins = np.concatenate([span <= ends, span > ends]), span == ends[1:]
    seen = [side for side in range(_SIDES) if any(np.any(member.decision == side - 1) for member in (one, zero))]
    wanted = [np.ones(_SIDES, bool), *(np.arange(_SIDES) == side for side in seen if len(seen) > 1)]
    made = {
        "tail": [np.outer(row, side).ravel() for side in wanted for row in tails],
        "bin": [np.outer(row, side).ravel() for side in wanted for row in bins],
        "ratio": list(_ratio_sets(cells, one, zero)),
    }
    kinds = np.repeat(list(made), [len(rows) for rows in made.values()])
    return Family(cells, np.array([row for rows in made.values() for row in rows]), kinds)


def _ratio_sets(cells: Cells, one: Counted, zero: Counted, most: int = 24) -> BoolArray:
    """Take the cells with the largest ratio in the pilot, from few to many, and those with the smallest."""
    first, second = cells.count(one), cells.count(zero)
    seen = np.flatnonzero(first + second)
    ratio = (first[seen] + 0.5) / (second[seen] + 0.5)  # one rounded division: equal ratios are equal numbers
    order = seen[np.argsort(-ratio, kind="stable")]
    sizes = np.unique(np.linspace(1, max(order.size - 1, 1), min(most, order.size)).astype(int))
    sets = np.zeros((2 * sizes.size, cells.size), bool)
    for row, size in enumerate(sizes):
        sets[row, order[:size]] = True
        sets[sizes.size + row, order[-size:]] = True
    return sets
