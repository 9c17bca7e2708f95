"""What is computed from one output alone: sums, norms, lengths, entries.

Sums are added in the order of the entries, so they are the same on every processor.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.columns import objects, plain
from dpsmc_audit.evidence.outputs import Outputs

__all__ = ["Entries", "Table", "derived", "together"]

FloatArray = NDArray[np.float64]
Table = dict[str, NDArray[Any]]
"""Columns by name: float64 with nan for what is missing, or objects with None for it."""


def derived(outputs: Outputs, numeric: bool) -> Table:
    """Compute the columns that are looked at, besides those that the outputs have.

    Parameters
    ----------
    outputs : Outputs
        The runs.
    numeric : bool
        Whether entries of transcripts are numbers.

    Returns
    -------
    dict of str to array
        Columns by name. Vectors have ``sum``, ``norm``, ``largest`` and ``index of largest`` besides their coordinates.
        Transcripts have ``length``, ``transcript``, ``first``, ``last`` and, if they are numeric, ``sum`` and
        ``position of largest``.
    """
    if outputs.kind == "transcripts":
        return Entries(outputs.columns[0], numeric).table()
    table = dict(zip(outputs.names, outputs.columns, strict=True))
    return table | _of_vectors(outputs.columns) if outputs.kind == "vectors" else table


def together(outputs: Outputs) -> NDArray[Any]:
    """Join the columns of each run into one category.

    Parameters
    ----------
    outputs : Outputs
        The runs.

    Returns
    -------
    array of tuple
        The values of each run, None for what is missing.
    """
    return objects(zip(*(plain(column).tolist() for column in outputs.columns), strict=True))


def _of_vectors(columns: tuple[FloatArray, ...]) -> Table:
    total, squares = np.zeros_like(columns[0]), np.zeros_like(columns[0])
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for column in columns:
            total = total + column
            squares = squares + column * column
        norm = np.sqrt(squares)
    if len(columns) == 1:
        return {"norm": norm}
    every = np.stack(columns)
    largest = np.max(every, axis=0)
    index = np.where(np.isnan(largest), np.nan, np.argmax(every, axis=0).astype(np.float64))
    return {"sum": total, "norm": norm, "largest": largest, "index of largest": index}


class Entries:
    """The entries of transcripts, in one array.

    Parameters
    ----------
    transcripts : array of tuple
        The transcripts; None for one that is missing.
    numeric : bool
        Whether the entries are numbers.
    """

    def __init__(self, transcripts: NDArray[Any], numeric: bool) -> None:
        there = [() if x is None else x for x in transcripts.tolist()]
        self.transcripts = transcripts
        self.absent = np.fromiter((x is None for x in transcripts.tolist()), bool, len(there))
        self.lengths = np.fromiter(map(len, there), np.int64, len(there))
        self.starts = np.cumsum(self.lengths) - self.lengths
        flat = list(chain.from_iterable(there))
        self.flat: NDArray[Any] = np.array(flat, np.float64) if numeric else objects(flat)

    def table(self) -> Table:
        """Return the columns that are looked at.

        Returns
        -------
        dict of str to array
            Columns by name.
        """
        table: Table = {"length": self.length(), "transcript": self.transcripts}
        table |= {"first": self.entry(0), "last": self.entry(-1)}
        if self.flat.dtype != object:
            table |= dict(zip(("sum", "position of largest"), self._sums(), strict=True))
        return table

    def features(self, codes: FloatArray | None, most: int) -> list[FloatArray]:
        """Return numbers for a classifier.

        Parameters
        ----------
        codes : array, optional
            Numbers for all entries, if these are categories.
        most : int
            How many entries count.

        Returns
        -------
        list of array
            Length, first entries, last entry, and the sum of numbers.
        """
        if codes is None:
            return [self.length(), *map(self.entry, range(most)), self.entry(-1), self._sums()[0]]
        return [self.length(), *(self.entry(k, codes) for k in range(most)), self.entry(-1, codes)]

    def length(self) -> FloatArray:
        """Return the number of entries of each transcript.

        Returns
        -------
        array
            The numbers; nan if the transcript is missing.
        """
        return np.where(self.absent, np.nan, self.lengths.astype(np.float64))

    def entry(self, place: int, flat: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return one entry of each transcript.

        Parameters
        ----------
        place : int
            Its place, counted from 0; -1 for the last.
        flat : array, optional
            What stands for the entries of all transcripts; by default the entries.

        Returns
        -------
        array
            The entries; nan or None where a transcript is too short.
        """
        flat = self.flat if flat is None else flat
        there = self.lengths > max(place, 0)
        found = np.full(self.lengths.size, None if flat.dtype == object else np.nan, flat.dtype)
        found[there] = flat[(self.starts + (self.lengths - 1 if place < 0 else place))[there]]
        return found

    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Add the entries one after the other, and find the place of the largest, counted from 1."""
        total, best = np.zeros(self.lengths.size), np.full(self.lengths.size, -np.inf)
        where = np.full(self.lengths.size, np.nan)
        active, place = np.flatnonzero(self.lengths > 0), 0
        with np.errstate(over="ignore", invalid="ignore"):
            while active.size:
                values = self.flat[self.starts[active] + place]
                total[active] += values
                better = active[(values > best[active]) | (np.isnan(where[active]) & ~np.isnan(values))]
                best[better], where[better] = self.flat[self.starts[better] + place], place + 1
                place += 1
                active = active[self.lengths[active] > place]
        total[self.absent] = np.nan
        return total, where
