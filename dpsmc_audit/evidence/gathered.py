"""Collect the runs of both members in their order: count them by part, and bet on them if there are bets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.bounds import PARTS, Parts, part_of
from dpsmc_audit.evidence.events import Counted, joined

if TYPE_CHECKING:
    from dpsmc_audit.evidence.anytime import Anytime
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["Gathered", "Outcomes", "Tables", "counted"]

IntArray = NDArray[np.int64]

JOINED = 32
"""The number of blocks that are kept before they are counted together."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A block of runs in their order.

    Parameters
    ----------
    one, zero : array of int
        One code for each run (`events.outcome_code`), with x = 1 and with x = 0.
    """

    one: IntArray
    zero: IntArray


@dataclass(frozen=True, eq=False)
class Tables:
    """A block of runs, counted by member and part.

    Parameters
    ----------
    runs : int
        The number of runs of each member.
    one, zero : tuple of Counted
        The outcomes with x = 1 and with x = 0, one table for each part.
    """

    runs: int
    one: tuple[Counted, ...]
    zero: tuple[Counted, ...]


def counted(first: int, drawn: Outcomes) -> Tables:
    """Count runs by part. The tables are much smaller than the codes.

    Parameters
    ----------
    first : int
        The number of the first run, counted from 0.
    drawn : Outcomes
        The runs.

    Returns
    -------
    Tables
        The counts.
    """
    part = part_of(first, drawn.one.size)
    one, zero = (tuple(Counted.of(codes[part == k]) for k in range(PARTS)) for codes in (drawn.one, drawn.zero))
    return Tables(drawn.one.size, one, zero)


class Gathered:
    """The runs so far. Blocks must be added in the order of the runs.

    Parameters
    ----------
    bets : Anytime, optional
        Bets on the runs. They need blocks of codes (`Outcomes`).
    """

    def __init__(self, bets: Anytime | None = None) -> None:
        self.runs, self.bets = 0, bets
        self._members: list[list[list[Counted]]] = [[[] for _ in range(PARTS)] for _ in range(2)]

    def add(self, block: Outcomes | Tables) -> bool:
        """Add a block of runs. Runs after a rejection by the bets are left out.

        Parameters
        ----------
        block : Outcomes or Tables
            The next runs.

        Returns
        -------
        bool
            Whether no more runs are needed.
        """
        over = False
        if isinstance(block, Outcomes):
            if self.bets is not None:
                before = self.bets.pairs
                over = self.bets.update(block.one, block.zero)
                used = self.bets.pairs - before
                block = Outcomes(block.one[:used], block.zero[:used])
            block = counted(self.runs, block)
        for member, tables in zip(self._members, (block.one, block.zero), strict=True):
            for k in range(PARTS):
                member[k].append(tables[k])
                if len(member[k]) >= JOINED:
                    member[k] = [joined(member[k])]
        self.runs += block.runs
        return over

    def parts(self) -> Parts:
        """Return the runs so far.

        Returns
        -------
        Parts
            The runs, counted by member and part.
        """
        self._members = [[[joined(part)] for part in member] for member in self._members]
        one, zero = (tuple(part[0] for part in member) for member in self._members)
        return Parts((one, zero))

    def saved(self) -> Saved:
        """Return the state of the runs.

        Returns
        -------
        Saved
            Codes and counts of every part, and the state of the bets if there are any.
        """
        state: Saved = {"runs": self.runs}
        for m, member in enumerate(self.parts().members):
            for k, part in enumerate(member):
                state |= {f"codes{m}{k}": part.codes, f"counts{m}{k}": part.counts}
        return state | ({} if self.bets is None else self.bets.saved())

    def restore(self, saved: Saved) -> None:
        """Restore a state.

        Parameters
        ----------
        saved : Saved
            The result of `saved`.

        Raises
        ------
        ValueError
            If the counts do not fit the codes or do not add up to the runs, or if the state of the bets is not valid.
        KeyError
            If a part of the state is missing.
        """
        tables = [[[_table(saved, f"{m}{k}")] for k in range(PARTS)] for m in range(2)]
        runs = {sum(part[0].runs for part in member) for member in tables}
        if runs != {saved["runs"]}:
            raise ValueError("counts do not add up to the runs")
        if self.bets is not None:
            self.bets.restore(saved)
        self.runs, self._members = int(saved["runs"]), tables


def _table(saved: Saved, name: str) -> Counted:
    codes, counts = (np.asarray(saved[f"{what}{name}"], np.int64) for what in ("codes", "counts"))
    if codes.shape != counts.shape or codes.ndim != 1:
        raise ValueError("codes and counts differ in number")
    return Counted(codes, counts)
