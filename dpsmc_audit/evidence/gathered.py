"""Runs of both members as they come in: counted by part, and bet on if there are bets."""

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
"""Blocks that are kept apart before they are counted together."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A block of runs, one code each (`events.outcome_code`), in their order."""

    one: IntArray
    zero: IntArray


@dataclass(frozen=True, eq=False)
class Tables:
    """A block of runs, counted by member and part."""

    runs: int
    one: tuple[Counted, ...]
    zero: tuple[Counted, ...]


def counted(first: int, drawn: Outcomes) -> Tables:
    """The runs first, first + 1, ... by part; much less than their codes to send and to keep."""
    part = part_of(first, drawn.one.size)
    one, zero = (tuple(Counted.of(codes[part == k]) for k in range(PARTS)) for codes in (drawn.one, drawn.zero))
    return Tables(drawn.one.size, one, zero)


class Gathered:
    """The runs so far. Blocks come in the order of the runs; with bets as codes, else counted."""

    def __init__(self, bets: Anytime | None = None) -> None:
        self.runs, self.bets = 0, bets
        self._members: list[list[list[Counted]]] = [[[] for _ in range(PARTS)] for _ in range(2)]

    def add(self, block: Outcomes | Tables) -> bool:
        """True if no more are needed: then runs after the rejection are left out."""
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
        """As the verdict wants them."""
        self._members = [[[joined(part)] for part in member] for member in self._members]
        one, zero = (tuple(part[0] for part in member) for member in self._members)
        return Parts((one, zero))

    def saved(self) -> Saved:
        """Codes and counts of every part, and the bets."""
        state: Saved = {"runs": self.runs}
        for m, member in enumerate(self.parts().members):
            for k, part in enumerate(member):
                state |= {f"codes{m}{k}": part.codes, f"counts{m}{k}": part.counts}
        return state | ({} if self.bets is None else self.bets.saved())

    def restore(self, saved: Saved) -> None:
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
