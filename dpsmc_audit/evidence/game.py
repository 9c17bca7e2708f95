"""The game: who sees the output of a run guesses its label, and claims are refuted by bets on the guess.

Blocks of runs of both members arrive. For each labelled run a fair coin, from a stream that neither the mechanism nor
the predictor sees, says which member the next run is taken from. Batches of labelled runs are predicted before their
labels are used; then the gamblers bet, and the predictor learns. Early batches are small: the predictor learns fast.

The course of the game depends on the blocks and the seed only, not on how many runs are allowed: a game that is given
more runs goes on where the shorter one ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.bets import Batch, Bettor, Ledger
from dpsmc_audit.evidence.claims import Dp, Promise
from dpsmc_audit.evidence.outputs import Kind, Outputs
from dpsmc_audit.evidence.packing import packed, unpacked
from dpsmc_audit.evidence.predictor import Predictor
from dpsmc_audit.evidence.scores import Score

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["Bounds", "Game", "Rules", "delta_grid", "epsilon_grid"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_FIRST, _FIRST_OTHERS, _PART, _LONGEST = 4, 16, 10, 65_536
"""The first batch has so many numbers, or so many other outputs, which show how they are seen. Later batches are a
tenth of the runs so far, up to the longest: a batch is kept until it is learnt from."""

_LABELS = 4
"""The number of the stream of labels."""

_FARTHEST, _FINE, _WIDE = 16.0, 2.5, 0.25
"""The grid of epsilon: in steps of a tenth up to `_FINE`, then in steps of `_WIDE` up to the farthest."""

_BAND = 24
"""At so many values of epsilon the profile is bounded; they share the level."""


@dataclass(frozen=True)
class Rules:
    """What a game is about.

    Parameters
    ----------
    promise : Promise
        The claim.
    level : float
        The probability of refuting a claim that holds.
    seed : int
        Of the labels.
    most : int
        The largest number of runs of each member that are used.
    early : bool
        Whether the game ends as soon as the claim is refuted.
    """

    promise: Promise
    level: float
    seed: int
    most: int
    early: bool = True


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower bounds, each by itself at the level of the game.

    Parameters
    ----------
    epsilon : float
        The mechanism needs more than this epsilon at the claimed delta.
    delta : float
        It needs more than this delta at the claimed epsilon.
    profile_epsilon, profile_delta : array
        A lower bound on the privacy profile: all of them hold together.
    """

    epsilon: float
    delta: float
    profile_epsilon: FloatArray
    profile_delta: FloatArray


def epsilon_grid(claimed: float) -> FloatArray:
    """Choose the values of epsilon that are tested. The claim and 0 are among them.

    Parameters
    ----------
    claimed : float
        The claimed epsilon.

    Returns
    -------
    array
        Increasing.

    Examples
    --------
    >>> grid = epsilon_grid(0.5)
    >>> float(grid[0]), 0.5 in grid, float(grid[-1])
    (0.0, True, 16.0)
    """
    least = min(claimed / 4.0, 0.1) if claimed > 0.0 else 0.01
    steps = math.ceil(math.log(_FINE / max(least, 1e-4)) / math.log(1.1))
    near = _FINE * 1.1 ** -np.arange(steps + 1.0)[::-1]
    return np.unique(np.concatenate([[0.0, claimed], near, np.arange(_FINE, _FARTHEST + _WIDE / 2, _WIDE)]))


def delta_grid(claimed: float) -> FloatArray:
    """Choose the values of delta that are tested. The claim and 0 are among them.

    Parameters
    ----------
    claimed : float
        The claimed delta.

    Returns
    -------
    array
        Increasing.
    """
    return np.unique(np.concatenate([[0.0, claimed], 0.02 * np.arange(1.0, 50.0), 0.02 * 1.3 ** -np.arange(1.0, 44.0)]))


class Game:
    """Runs with random labels, and what is known from them.

    Parameters
    ----------
    rules : Rules
        What the game is about.
    score : Score, optional
        A classifier of the user.

    Attributes
    ----------
    labelled : int
        The number of labelled runs so far.
    used : list of int
        How many of them have x = 0, and x = 1.
    predictor : Predictor or None
        What was learnt; None before the first run.
    """

    def __init__(self, rules: Rules, score: Score | None = None) -> None:
        self.rules, self._score = rules, score
        # a classifier may look at a whole batch; with a delta, that is safe at its end only (see `bets`)
        self._whole = score is not None
        main = rules.promise.main
        self.bettor = Bettor(rules.promise.points, rules.level)
        grid, shares = epsilon_grid(main.epsilon), delta_grid(main.delta)
        rows = np.union1d(grid[np.unique(np.linspace(0, grid.size - 1, _BAND).astype(int))], [main.epsilon])
        self.at_delta = Ledger(grid, np.full((grid.size, 1), main.delta))
        self.profile = Ledger(rows, np.tile(shares, (rows.size, 1)))
        self.predictor: Predictor | None = None
        self.labelled, self.used = 0, [0, 0]
        self._coins = np.random.default_rng([rules.seed, _LABELS])
        self._waiting: list[Outputs] = []
        self._open: list[Batch] = []

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.bettor.refuted

    @property
    def over(self) -> bool:
        """Whether no more runs are needed."""
        return (self.refuted and self.rules.early) or max(self.used) >= self.rules.most

    @property
    def waiting(self) -> tuple[int, ...]:
        """How many runs with x = 0 and with x = 1 have arrived and wait for a label."""
        return tuple(pool.runs for pool in self._waiting)

    def add(self, zero: Outputs, one: Outputs) -> bool:
        """Play with a block of runs.

        Parameters
        ----------
        zero, one : Outputs
            Independent runs with x = 0 and with x = 1.

        Returns
        -------
        bool
            Whether no more runs are needed.
        """
        pools = [zero, one]
        if self._waiting:
            pools = [Outputs.joined([old, new]) for old, new in zip(self._waiting, pools, strict=True)]
        at = [0, 0]
        while not self.over:
            room = min(pool.runs - done for pool, done in zip(pools, at, strict=True))
            wanted = self._until_learning(pools[0].kind)
            # a batch must not end early because of its labels: who looks at all of it could know
            size = min(wanted, room, self.rules.most - max(self.used))
            if size == 0 or (self.predictor is None and size < wanted):
                break  # the first batch is played whole: it fixes the views
            labels = (self._coins.random(size) < 0.5).astype(np.int64)
            counts = np.bincount(labels, minlength=2)
            near = [pool.take(np.arange(k, k + n)) for pool, k, n in zip(pools, at, counts.tolist(), strict=True)]
            at = [k + int(n) for k, n in zip(at, counts, strict=True)]
            self._play(_in_order(near, labels), labels)
        self._waiting = [pool.take(np.arange(k, pool.runs)) for pool, k in zip(pools, at, strict=True)]
        return self.over

    def _until_learning(self, kind: Kind) -> int:
        """Return how many runs are played before the predictor learns next. It depends on their number only."""
        waiting = sum(batch.labels.size for batch in self._open)
        known, first = self.labelled - waiting, _FIRST if kind == "numbers" else _FIRST_OTHERS
        return (first if known < first else min(max(1, known // _PART), _LONGEST)) - waiting

    def _play(self, outputs: Outputs, labels: IntArray) -> None:
        """Predict and bet; learn where it is time."""
        if self.predictor is None:
            self.predictor = Predictor(outputs, self._score)
        found = self.predictor.predict(outputs)
        batch = Batch(found.levels, labels, found.lowest, found.highest, whole=self._whole)
        if not self.refuted:
            batch = batch.first(self.bettor.bet(batch, self.rules.early))
        self.labelled += batch.labels.size
        self.used = [self.used[0] + int((batch.labels == 0).sum()), self.used[1] + int(batch.labels.sum())]
        self._open.append(batch)
        if self.over or self._until_learning(outputs.kind) == 0:
            self._settle()

    def _settle(self) -> None:
        """Enter the open batches into the ledgers, and learn from them."""
        assert self.predictor is not None
        levels, labels = (np.concatenate([getattr(x, name) for x in self._open]) for name in ("levels", "labels"))
        whole = Batch(levels, labels, self._open[0].lowest, self._open[0].highest)
        self._open = []
        self.at_delta.bet(whole)
        self.profile.bet(whole)
        self.predictor.learn(labels)

    def saved(self) -> Saved:
        """Return the state of a game that goes on.

        Returns
        -------
        Saved
            Arrays and numbers.
        """
        state: Saved = {"labelled": self.labelled, "used_0": self.used[0], "used_1": self.used[1]}
        state |= {"capital": self.bettor.capital, "refuted": int(self.refuted)}
        for name, ledger in (("at_delta", self.at_delta), ("profile", self.profile)):
            arrays = {"log_capital": ledger.log_capital, "paid": ledger.paid, "best": ledger.best}
            state |= {f"{name}_{part}": array for part, array in arrays.items()}
        state |= {"open": len(self._open), "waiting": len(self._waiting)}
        for k, batch in enumerate(self._open):
            state |= {f"open_levels_{k}": batch.levels, f"open_labels_{k}": batch.labels}
            state |= {f"open_lowest_{k}": batch.lowest, f"open_highest_{k}": batch.highest}
        for k, pool in enumerate(self._waiting):
            state |= packed(pool, f"waiting_{k}")
        return state if self.predictor is None else state | self.predictor.saved()

    def restore(self, saved: Saved) -> None:
        """Restore the state of a game with the same rules.

        Parameters
        ----------
        saved : Saved
            The result of `saved`.

        Raises
        ------
        KeyError, ValueError
            If it does not fit. The game is then unchanged.
        """
        other = Game(self.rules, None if self._score is None else self._score.fresh())
        other._take(saved)
        vars(self).update(vars(other))

    def _take(self, saved: Saved) -> None:
        """Set the state of a new game."""
        self._waiting = [unpacked(saved, f"waiting_{k}") for k in range(int(saved["waiting"]))]
        self.labelled, self.used = int(saved["labelled"]), [int(saved["used_0"]), int(saved["used_1"])]
        if self.labelled:
            self.predictor = Predictor(self._waiting[0], self._score)
            self.predictor.restore(saved)
        for name, ledger in (("at_delta", self.at_delta), ("profile", self.profile)):
            for part in ("log_capital", "paid", "best"):
                setattr(ledger, part, _shaped(saved[f"{name}_{part}"], getattr(ledger, part)))
        self.bettor.capital = _shaped(saved["capital"], self.bettor.capital)
        self.bettor.refuted = bool(saved["refuted"])
        self._open = [
            Batch(
                np.array(saved[f"open_levels_{k}"], np.int64),
                np.array(saved[f"open_labels_{k}"], np.int64),
                int(saved[f"open_lowest_{k}"]),
                int(saved[f"open_highest_{k}"]),
                whole=self._whole,
            )
            for k in range(int(saved["open"]))
        ]
        self._coins.random(self.labelled)

    def bounds(self) -> Bounds:
        """Return lower bounds on epsilon, on delta and on the privacy profile.

        Returns
        -------
        Bounds
            The bounds so far.
        """
        main, profile, claim = self.rules.promise.main, self.profile, self.at_delta
        enough, shares = math.log(1.0 / self.rules.level), profile.delta[0]
        row, column = (int(np.argmax(grid == main.epsilon)) for grid in (claim.epsilon, profile.epsilon))
        at_delta, at_epsilon = claim.best[:, 0].copy(), profile.best[column].copy()
        if isinstance(self.rules.promise, Dp):
            # the same bets as those on the claim, which are looked at after every run
            known = math.inf if self.refuted else min(at_delta[row], np.nextafter(enough, 0.0))
            at_delta[row] = at_epsilon[shares == main.delta] = known
        lower, share = _largest(claim.epsilon, at_delta >= enough), _largest(shares, at_epsilon >= enough)
        if not self.refuted:  # the verdict and the bounds must not contradict each other
            lower, share = min(lower, main.epsilon), min(share, main.delta)
        shared = enough + math.log(profile.epsilon.size)
        band = np.array([_largest(shares, row >= shared) for row in profile.best])
        # a profile never rises: what holds at a larger epsilon holds at a smaller one
        return Bounds(lower, share, profile.epsilon, np.maximum.accumulate(band[::-1])[::-1])


def _in_order(members: list[Outputs], labels: IntArray) -> Outputs:
    """Put runs of both members into the order of their labels."""
    ones = np.cumsum(labels)
    zeros = np.arange(1, labels.size + 1) - ones
    return Outputs.joined(members).take(np.where(labels == 1, members[0].runs + ones, zeros) - 1)


def _shaped(value: object, like: FloatArray) -> FloatArray:
    """Return a saved array, if it has the shape of the present one."""
    array = np.array(value, np.float64)
    if array.shape != like.shape:
        raise ValueError("the saved game has other gamblers")
    return array


def _largest(grid: FloatArray, rejected: NDArray[np.bool_]) -> float:
    """Return the largest value that is rejected with all smaller ones, 0 if there is none."""
    count = int(np.argmin(np.append(rejected, False)))
    return float(grid[count - 1]) if count else 0.0
