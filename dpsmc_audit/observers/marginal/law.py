"""The marginal observer: sees one released (tau, o), knows neither L nor the other samples.

Compared are ``P(tau = k, o | x_n = 1)`` and ``P(tau = k, o | x_n = 0)``, the decision always part of the outcome. The
exact laws come from `exact.laws`. Sampled, they come in two ways: termination times of many runs, counted; and
Rao-Blackwell's way, where a walk contributes not one tau but the law of tau given its records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from dpsmc_audit.evidence.events import Counted, joined, outcome_code
from dpsmc_audit.evidence.means import betting_intervals
from dpsmc_audit.evidence.outputs import Outputs
from dpsmc_audit.evidence.profiles import Leakage, best_tail, largest, privacy_profile, tail_of_tau, total_variation
from dpsmc_audit.evidence.witness import Event
from dpsmc_audit.exact.fixed import TerminationLaw
from dpsmc_audit.exact.laws import LONGEST, exact_law
from dpsmc_audit.numerics.arrays import FloatArray, IntArray
from dpsmc_audit.observers.informed.average import draw_pair, samples_to_the_end
from dpsmc_audit.runs.execution import accumulate, cut
from dpsmc_audit.sampling.kernels import ALT, NULL, UNFINISHED
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.runs import block_size_for, check_runs, draw_block
from dpsmc_audit.sampling.streams import Purpose, derived
from dpsmc_audit.setting import Adjacent, Setting

if TYPE_CHECKING:
    from dpsmc_audit.evidence.game import Game
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["Counts", "MarginalLaw", "SmoothedLaw", "affordable_pairs", "count_runs", "marginal_law", "smoothed_law"]


SIDES = (NULL, ALT, UNFINISHED)
NAMES = {NULL: "H_null", ALT: "H_alt", UNFINISHED: "undecided"}
_PLACE = np.array([1, 0, 2])
"""The side's row for decision 0 (H_alt), 1 (H_null) and -1 (undecided)."""


SHORT, JOINED = 4096, 32
"""The longest block, since the game may end at any run; and how many blocks are kept before they are joined."""

_LONGEST = 1 << 22
"""Termination times above this are counted together."""


@dataclass(frozen=True, eq=False)
class MarginalLaw:
    """The laws of (tau, side) of both members.

    Parameters
    ----------
    p1, p0 : ndarray
        ``p1[side][k - 1] = P(tau = k, side | x_n = 1)`` for the sides H_null, H_alt and undecided; `p0` for x_n = 0.
    error : float
        A bound on the numerical error of a tail of tau.
    scatter : float
        The numerical error of the law as a whole (the sum over all outcomes).
    method : str
        How it was computed.
    proven : bool
        Whether `scatter` is a bound. Otherwise it is an estimate, and no verdict rests on it.
    """

    p1: FloatArray
    p0: FloatArray
    error: float
    scatter: float
    method: str
    proven: bool = True

    @property
    def surely(self) -> float:
        """A bound on the error of the law as a whole; infinite if none is proven."""
        return self.scatter if self.proven else math.inf

    def leakage(self, epsilons: FloatArray, floor: float) -> Leakage:
        """Compute the leakage of one release.

        Parameters
        ----------
        epsilons : ndarray
            The grid of the privacy profile.
        floor : float
            The smallest probability of the best tail.

        Returns
        -------
        Leakage
            The profile, the total variation and the best tail.
        """
        one, zero = self.p1.ravel(), self.p0.ravel()
        return Leakage(privacy_profile(one, zero, epsilons), total_variation(one, zero), self.best(floor))

    def best(self, floor: float, *, alone: bool = False) -> Event | None:
        """Find the tail of tau with the largest ratio.

        Parameters
        ----------
        floor : float
            The smallest probability of the tail for the likelier member.
        alone : bool
            Look at tails without a decision only.

        Returns
        -------
        Event or None
            The tail; None if no tail is so probable.
        """
        tail = best_tail(self.p1.sum(axis=0), self.p0.sum(axis=0), floor)
        if alone:
            return tail
        sides = zip(SIDES, self.p1, self.p0, strict=True)
        joint = [best_tail(one, zero, floor, partial(tail_of_tau, decision=side)) for side, one, zero in sides]
        return largest([tail, *joint])

    def binned(self, width: int) -> tuple[FloatArray, FloatArray]:
        """Sum up the laws in bins of tau: [0, width), [width, 2 width), ...

        Parameters
        ----------
        width : int
            The width of the bins.

        Returns
        -------
        tuple of ndarray
            The laws of both members, ``[side][bin]``.
        """
        one, zero = (_binned(p, width) for p in (self.p1, self.p0))
        return one, zero


def _binned(p: FloatArray, width: int) -> FloatArray:
    first = np.concatenate([np.zeros((p.shape[0], 1)), p], axis=1)  # tau = 0 belongs to the first bin
    width = min(width, first.shape[1])  # a bin can be wider than the law, and would be filled up
    short = -first.shape[1] % width
    return np.asarray(np.pad(first, ((0, 0), (0, short))).reshape(p.shape[0], -1, width).sum(axis=2))


@lru_cache(maxsize=16)
def marginal_law(pair: Adjacent) -> MarginalLaw:
    """Compute the two laws of (tau, o) without sampling.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.

    Returns
    -------
    MarginalLaw
        The law for each member, with its numerical error.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting, Sprt
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> law = marginal_law(Adjacent(Setting(test, Exponential.private(test, 0.01), 0.84)))
    >>> found = law.leakage(np.array([0.01, 0.02]), floor=0.01)
    >>> f"{found.total_variation:.5f}", f"{found.profile.at(0.01):.5f}", f"{found.profile.at(0.02):.5f}"
    ('0.00822', '0.00703', '0.00608')
    >>> found.best.name, f"{found.best.log_ratio:.4f}"
    ('tau <= 365', '0.2549')
    """
    laws = [exact_law(pair.setting, pair.forced(bit)) for bit in (1, 0)]
    size = max(law.null.size for law in laws)
    one, zero = (_padded(law, size) for law in laws)
    error, scatter = (max(getattr(law, name) for law in laws) for name in ("error", "scatter"))
    method = max(laws, key=lambda law: law.scatter).method
    return MarginalLaw(one, zero, error, scatter, method, all(law.proven for law in laws))


def _padded(law: TerminationLaw, size: int) -> FloatArray:
    full = np.zeros((3, size))
    full[0, : law.null.size], full[1, : law.alt.size] = law.null, law.alt
    return full


# --- sampled --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counts:
    """Outcomes of runs of both members.

    Parameters
    ----------
    one, zero : Counted
        The outcomes with x_n = 1 and with x_n = 0.
    """

    one: Counted
    zero: Counted

    @property
    def unfinished(self) -> int:
        """How many runs of both members stopped at the cap, without a decision."""
        both = joined([self.one, self.zero])
        return int(both.counts[both.decision == UNFINISHED].sum())

    @property
    def samples(self) -> int:
        """The sum of tau over all runs of both members."""
        both = joined([self.one, self.zero])
        return int(np.dot(both.tau.astype(object), both.counts))

    def law(self) -> MarginalLaw:
        """Return the shares of all runs, as if they were the laws."""
        members = self.one, self.zero
        size = max(int(min(member.tau[-1], _LONGEST)) for member in members)
        one, zero = (_dense(member, size) / member.runs for member in members)
        return MarginalLaw(one, zero, math.nan, math.nan, "sampled")


def _dense(member: Counted, size: int) -> IntArray:
    """Convert outcome codes to rows of sides, with a column for each tau."""
    table = np.zeros((len(SIDES), size), np.int64)
    np.add.at(table, (_PLACE[member.decision], np.minimum(member.tau, _LONGEST) - 1), member.counts)
    return table


Block = tuple[IntArray, IntArray]
"""Outcome codes with x_n = 0 and with x_n = 1."""


def _block(pair: Adjacent, sampling: Sampling, first: int, count: int) -> Block:
    """Draw runs first, ..., first + count - 1 of both members. The result does not depend on the process."""
    codes = []
    for bit, stream in ((0, Purpose.ZERO), (1, Purpose.ONE)):
        own = replace(sampling, seed=int(derived(sampling.seed, stream)))
        drawn = draw_block(pair.setting, first, count, own, entries=pair.entries, bit=bit)
        codes.append(outcome_code(drawn.tau, drawn.decision))
    return codes[0], codes[1]


class _Runs:
    """The runs so far. Those that the game used are counted; the others wait."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.members: list[list[Counted]] = [[], []]
        self._waiting = [np.empty(0, np.int64), np.empty(0, np.int64)]

    def add(self, block: Block) -> bool:
        """Add a block, in the order of the runs."""
        before = list(self.game.used)
        zero, one = (Outputs("columns", _tau_and_o(codes), ("tau", "o")) for codes in block)
        over = self.game.add(zero, one)
        for x, codes in enumerate(block):
            arrived, used = np.append(self._waiting[x], codes), self.game.used[x] - before[x]
            self.members[x].append(Counted.of(arrived[:used]))
            self._waiting[x] = arrived[used:]
            if len(self.members[x]) >= JOINED:
                self.members[x] = [joined(self.members[x])]
        return over

    def counts(self) -> Counts:
        """Return the runs that were used, counted."""
        zero, one = (joined(member) for member in self.members)
        return Counts(one, zero)

    def saved(self) -> Saved:
        """Return the state, for a checkpoint."""
        state = self.game.saved()
        for x, member in enumerate(self.members):
            used = joined(member)
            state |= {f"codes_{x}": used.codes, f"counts_{x}": used.counts, f"left_{x}": self._waiting[x]}
        return state

    def restore(self, saved: Saved) -> None:
        """Restore a state."""
        read = [[np.array(saved[f"{part}_{x}"], np.int64) for part in ("codes", "counts", "left")] for x in (0, 1)]
        members = [Counted(codes, counts) for codes, counts, _ in read]
        if any(member.codes.shape != member.counts.shape for member in members):
            raise ValueError("codes and counts differ in number")
        if [member.runs for member in members] != [int(saved["used_0"]), int(saved["used_1"])]:
            raise ValueError("counts do not add up to the runs")
        self.game.restore(saved)
        self.members, self._waiting = [[member] for member in members], [left for *_, left in read]


def _tau_and_o(codes: IntArray) -> tuple[FloatArray, FloatArray]:
    return (codes // 4).astype(np.float64), (codes % 4 - 1).astype(np.float64)


def count_runs(pair: Adjacent, game: Game, sampling: Sampling = USUAL) -> Counts:
    """Draw (tau, decision) of runs of each member, play with them, and count them.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.
    game : Game
        It says how many runs of each member are allowed, and ends the drawing when it is over.
    sampling : Sampling
        How runs are drawn.

    Returns
    -------
    Counts
        The outcomes of all runs that were used, counted.

    Examples
    --------
    >>> from dpsmc_audit import Dp, Exponential, Setting, Sprt
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> from dpsmc_audit.evidence.game import Game, Rules
    >>> game = Game(Rules(Dp(5.0), level=0.01, seed=1, most=1000))
    >>> found = count_runs(Adjacent(Setting(test, Exponential.private(test, 0.5), 0.84)), game)
    >>> max(found.one.runs, found.zero.runs), found.unfinished, game.refuted
    (1000, 0, False)
    """
    runs = game.rules.most
    check_runs(pair.setting.p_phi, runs, sampling, entries=pair.entries)
    execution = sampling.execution
    size = min(execution.size(block_size_for(pair.setting, sampling.max_steps)), execution.block_size or SHORT)
    found, work = _Runs(game), partial(_block, pair, sampling.alone())
    accumulate(work, lambda done: cut(runs, size, done), found, execution, "runs", 2)
    return found.counts()


def affordable_pairs(setting: Setting, max_steps: int) -> int:
    """Return how many pairs can be followed to the end of L in seconds.

    With a tiny epsilon a sequence takes millions of samples.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    max_steps : int
        The largest number of samples of a sequence.

    Returns
    -------
    int
        The number of pairs: 0 if a sequence is longer than `LONGEST`, otherwise at least 2.
    """
    samples = samples_to_the_end(setting, max_steps)
    return 0 if samples > LONGEST else max(2, int(1e8 / samples))


@dataclass(frozen=True, eq=False)
class SmoothedLaw:
    """Rao-Blackwell's estimates of P(bin, side), ``[member, side, bin]``, each with an interval for a bounded mean.

    Intervals are nan where there are too many bins for them.

    Parameters
    ----------
    mean : ndarray
        The estimates.
    low, high : ndarray
        The ends of the intervals.
    steps : int
        Samples drawn.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    steps: int


_MOST_VALUES = 10_000_000
"""Of pairs times bins: more are not kept, and get no intervals."""

_SEQUENCES, _COLUMNS = 8, 64
"""Sequences, and means, in a block of work."""


def smoothed_law(
    pair: Adjacent, pairs: int, width: int, sampling: Sampling = USUAL, *, confidence: float = 0.99
) -> SmoothedLaw:
    """Estimate P(bin, side) by Rao-Blackwell, from pairs of sequences.

    Each sequence contributes the probability, over L alone, that its tau falls into a bin: the survival function of L
    at one record less that at the next. These are no counts: each interval is one for means of values in [0, 1].

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.
    pairs : int
        How many pairs of sequences are drawn; with 0 nothing is known.
    width : int
        Of the bins of tau.
    sampling : Sampling
        How the pairs are drawn.
    confidence : float
        The level of each interval.

    Returns
    -------
    SmoothedLaw
        The estimates with their intervals.
    """
    execution = sampling.execution
    total, size, steps = np.zeros((2, 3, 1)), 0, 0
    if pairs == 0:
        unknown = np.full((2, 3, 0), math.nan)
        return SmoothedLaw(unknown, unknown, unknown, 0)
    kept: list[FloatArray] = []
    work = partial(_smoothed, pair, width, sampling.alone())
    for block in execution.map(work, (block for block, _ in cut(pairs, _SEQUENCES))):
        for found, samples in block:
            bins = max(found.shape[2], total.shape[2])
            each = _grown(found, bins)
            total = _grown(total, bins) + each
            steps += 2 * samples
            size += each.size
            if size <= _MOST_VALUES:
                kept.append(each)
    mean = total / pairs
    if len(kept) < pairs:
        unknown = np.full(mean.shape, math.nan)
        return SmoothedLaw(mean, unknown, unknown, steps)
    values = np.clip(np.array([_grown(each, mean.shape[2]) for each in kept]).reshape(pairs, -1), 0.0, 1.0)
    columns = (block for block, _ in cut(values.shape[1], _COLUMNS))
    ends = list(execution.map(partial(_intervals, values, confidence), columns))
    low, high = (np.concatenate(side).reshape(mean.shape) for side in zip(*ends, strict=True))
    return SmoothedLaw(mean, low, high, steps)


def _smoothed(pair: Adjacent, width: int, sampling: Sampling, first: int, count: int) -> list[tuple[FloatArray, int]]:
    """Compute P(bin, side) given each of the pairs first, first + 1, ..., and count the samples."""
    found = []
    for path in range(first, first + count):
        law = draw_pair(pair, path, sampling)
        place, side = law.tau // width, _PLACE[law.decision]
        each = np.zeros((2, 3, int(place.max()) + 1))
        for member, p in enumerate((law.p1, law.p0)):
            np.add.at(each[member], (side, place), p)
        found.append((each, law.samples))
    return found


def _intervals(values: FloatArray, confidence: float, first: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Compute intervals for the means of these columns."""
    return betting_intervals(values[:, first : first + count], confidence)


def _grown(array: FloatArray, bins: int) -> FloatArray:
    return np.pad(array, ((0, 0), (0, 0), (0, bins - array.shape[2])))
