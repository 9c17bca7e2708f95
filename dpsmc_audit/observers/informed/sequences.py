"""Sequences for the informed observer: a user's own, from a file, and the worst there is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, in_order, regular, require
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.observers.informed.law import lowest_record
from dpsmc_audit.sprt import Sprt

__all__ = ["oscillating_sequence", "read_sequence"]

Bits = NDArray[np.int8]
LONGEST = 10**7
"""Samples of a sequence. A law given the sequence takes about a hundred bytes for each."""


def read_sequence(path: str | Path, entries: Sequence[int]) -> Bits:
    """Read samples from a text file of 0s and 1s.

    A line holds one sample, or several with or without blanks and commas between them.

    Parameters
    ----------
    path : str or Path
        The file.
    entries : sequence of int
        The samples that differ, counted from 1. The file must hold them.

    Returns
    -------
    ndarray of int8
        The samples.

    Raises
    ------
    ParameterError
        With one line that names the file and, where it applies, the line in it.
    """
    most = 4 * LONGEST  # a line end, a comma and a blank for each sample
    long = f"{path} holds more than {LONGEST} samples, the most that a sequence can have"
    try:
        size = regular(Path(path)).stat().st_size
    except OSError:
        size = 0  # reading fails below
    require(size <= most, long)
    try:
        lines = regular(Path(path)).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise ParameterError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path} is not a text file of 0s and 1s") from error
    digits = [re.sub(r"[\s,]", "", line) for line in lines]
    for number, line in enumerate(digits, start=1):
        wrong = re.search(r"[^01]", line)
        require(wrong is None, f"{path}, line {number}: samples must be 0 or 1, got {wrong and wrong.group()!r}")
    bits = np.frombuffer("".join(digits).encode("ascii"), np.int8) - np.int8(48)
    require(bits.size > 0, f"{path} holds no samples")
    require(bits.size <= LONGEST, long)
    last = in_order(entries)[-1]
    require(bits.size >= last, f"{path} holds {bits.size} samples, but entry {last} was asked for")
    return bits


# --- worst sequences ------------------------------------------------------------------------------------------------


class _Oscillation:
    """A sequence under construction: how many samples and ones there are, and the records of both members.

    Positions are computed afresh from the counts, as everywhere in the suite, so that records agree to the last bit.
    """

    def __init__(self, test: Sprt, lowest: float) -> None:
        self.test, self.records = test, [lowest, lowest]
        self.bits: list[Bits] = []
        self.steps = self.ones = self.forced = 0

    def walk(self, member: int, bit: int = 0, count: int = 0) -> float:
        """Compute where a member is after `count` more samples equal to `bit`. Member 1 has ones at the entries."""
        steps, ones = self.steps + count, self.ones + bit * count + member * self.forced
        return ones * self.test.s_plus - (steps - ones) * self.test.s_minus

    def excess(self, member: int, bit: int = 0, count: int = 0) -> float:
        walk = self.walk(member, bit, count)
        return max(walk - self.test.b_up, -walk - self.test.b_low)

    def append(self, bit: int, count: int = 1, *, entry: bool = False) -> None:
        """Add samples of one kind. An entry is 0 here, and counts as 1 for member 1."""
        self.bits.append(np.full(count, bit, np.int8))
        self.steps, self.ones, self.forced = self.steps + count, self.ones + bit * count, self.forced + entry
        self.records = [max(self.records[member], self.excess(member)) for member in (0, 1)]

    def hover(self, count: int) -> None:
        """Samples that keep the middle between the members near 0; `walk` and `append` in one loop: there are many."""
        test, forced, steps, ones = self.test, self.forced, self.steps, self.ones
        up, down, b_up, b_low = test.s_plus, test.s_minus, test.b_up, test.b_low
        zero, one = self.walk(0), self.walk(1)
        low, high = self.records
        bits = bytearray(count)
        for place in range(count):
            bits[place] = bit = one + zero <= 0.0
            steps, ones = steps + 1, ones + bit
            zero = ones * up - (steps - ones) * down
            one = (ones + forced) * up - (steps - ones - forced) * down
            low, high = max(low, zero - b_up, -zero - b_low), max(high, one - b_up, -one - b_low)
        self.bits.append(np.frombuffer(bits, np.int8))
        self.steps, self.ones, self.records = steps, ones, [low, high]

    def push(self, bit: int) -> None:
        """As many samples equal to `bit` as the other member can take without a record."""
        other, test = 1 - bit, self.test
        bound, step = (test.b_up, test.s_plus) if bit else (test.b_low, test.s_minus)
        room = bound + self.records[other] - (1 if bit else -1) * self.walk(other)
        count = max(int(room / step) - 1, 0)
        while self.excess(other, bit, count + 1) <= self.records[other]:
            count += 1
        self.append(bit, count)


def oscillating_sequence(
    test: Sprt,
    mechanism: Mechanism,
    entries: Sequence[int] = (1,),
    coverage: float = 0.999,
    longest: int = LONGEST,
) -> Bits:
    """Make a sequence on which every outcome reveals the entries, whatever the law of L. Its own entries are 0.

    Let ``c = s_plus + s_minus``: with one entry the walk of member 1 (ones at the entries) stays c above that of member
    0. The sequence goes up until member 0 is about to set a record. Member 1 sets records on the way, until its record
    is nearly c above that of member 0. It then goes down until member 1 is about to set a record; now those of member 0
    grow, until they are nearly c above. And so on, with an amplitude that grows by at least c from one swing to the
    next. Member 1 only sets records at the top and returns H_null, member 0 only at the bottom, at other times, and
    returns H_alt. The total variation is 1 less what is cut off (``1 - coverage``), decided by the coin or, with bounds
    a few steps away and an entry after the first, decided before it. So no law for L gives differential privacy,
    unless the coin decides all.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    entries : sequence of int
        The samples that differ, counted from 1.
    coverage : float
        The sequence ends when runs on it have stopped with this probability.
    longest : int
        More samples than this are an error; their number grows as the square of ``ln(1 - coverage) / epsilon``.

    Returns
    -------
    ndarray of int8
        The samples.

    Raises
    ------
    ParameterError
        If `coverage` is not in (0, 1), if the entries are impossible, or if the sequence needs more than `longest`
        samples.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> from dpsmc_audit.observers.informed.law import given_sequence
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> law = Exponential.private(test, 0.1)
    >>> bits = oscillating_sequence(test, law)
    >>> round(given_sequence(test, law, bits, [1]).total_variation, 3)
    0.999
    """
    require(0.0 < coverage < 1.0, f"coverage must lie in (0, 1), got {coverage}")
    wanted, made = in_order(entries), _Oscillation(test, lowest_record(test, mechanism))
    require(wanted[-1] <= longest, f"entry {wanted[-1]} lies beyond the longest sequence allowed, {longest}")
    for entry in wanted:
        made.hover(entry - 1 - made.steps)
        made.append(0, entry=True)
    while mechanism.survival(made.records).max() > 1.0 - coverage:
        made.push(1)
        made.push(0)
        require(made.steps <= longest, f"the sequence needs more than {longest} samples for a coverage of {coverage:g}")
    return np.concatenate(made.bits)
