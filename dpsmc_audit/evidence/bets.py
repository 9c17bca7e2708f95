"""Bets on the label of a run: evidence against privacy claims that holds at any time.

A fair coin gives each run its label x, and a predictor that knows earlier runs only states h, its probability that
x = 1, from the output. If the claim (epsilon, delta) holds, the label's true probability lies between 1 - s and s, with
s = e^epsilon / (1 + e^epsilon), but for a part of the outputs that delta bounds. Betting on the label where h lies
outside multiplies a capital by at most 1 on average, whatever the predictor does. So a capital that reaches 1/level
refutes the claim at that level, at whichever run one looks (Ville's inequality).

Several gamblers share the capital. Gambler k trusts the predictor only up to epsilon + `EXCESS[k]`: small violations
are won with small bets. A claim of several points has gamblers for each of them.

Given the outputs, the labels are independent. Therefore the guarantee also holds for a predictor that sees all outputs
of a batch before it predicts them. With delta > 0 this is so at the end of a batch; a predictor that looks at one
output at a time is safe at every run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.claims import Point
from dpsmc_audit.numerics.jit import kernel

__all__ = ["EXCESS", "HIGHEST", "LEVELS", "ODDS", "SHARES", "Batch", "Bettor", "Ledger", "level_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EXCESS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 40.0])
"""How far beyond the claim a gambler trusts the predictor."""

SHARES = np.array([0.04, 0.08, 0.05, 0.04, 0.1, 0.06, 0.5, 0.13])
"""The share of the capital of each gambler. They add up to 1; see benchmarks/README.md for the choice."""

_BEND, _STEP = 0.1, 0.01
HIGHEST = 20.7
"""Predictions have log odds on a grid: steps of 0.001 near 0, of 1 % of the value far from 0, up to this one."""

_TOP = round(math.asinh(HIGHEST / _BEND) / _STEP)
LEVELS = 2 * _TOP + 1
"""The number of different predictions."""


def level_of(chance: FloatArray) -> IntArray:
    """Round predictions to the grid.

    Parameters
    ----------
    chance : array
        Predicted probabilities of label 1, in [0, 1].

    Returns
    -------
    array of int
        The place of each prediction on the grid, 0, ..., `LEVELS` - 1.

    Examples
    --------
    >>> level_of(np.array([0.0, 0.5, 1.0])).tolist() == [0, (LEVELS - 1) // 2, LEVELS - 1]
    True
    """
    with np.errstate(divide="ignore"):
        odds = np.log(chance) - np.log1p(-chance)
    bent = np.arcsinh(np.clip(odds, -HIGHEST, HIGHEST) / _BEND) / _STEP
    return np.asarray(np.clip(np.rint(bent).astype(np.int64) + _TOP, 0, LEVELS - 1))


ODDS: FloatArray = _BEND * np.sinh(_STEP * (np.arange(LEVELS) - _TOP))
"""The log odds of every prediction of the grid: increasing, symmetric about 0."""
ODDS.setflags(write=False)


def _log_chance(odds: FloatArray) -> FloatArray:
    """Compute the logarithm of the probability with these log odds."""
    return np.asarray(-np.logaddexp(0.0, -odds))


def _log_factors(epsilon: float) -> FloatArray:
    """Compute how each label changes the log capital of each gambler: ``[label, gambler, level]``."""
    caps = epsilon + EXCESS[:, None]
    trusted = np.clip(ODDS, -caps, caps)
    up = np.where(trusted > epsilon, _log_chance(trusted) - _log_chance(np.array(epsilon)), 0.0)
    down = np.where(trusted > epsilon, _log_chance(-trusted) - _log_chance(np.array(-epsilon)), 0.0)
    return np.array([down + up[:, ::-1], up + down[:, ::-1]])


def _largest_gains(epsilon: float, lowest: int, highest: int) -> FloatArray:
    """Bound what a gambler can gain from one run with levels in this range: ``[direction, gambler]``.

    Direction 0 bets on label 1, direction 1 on label 0.
    """
    tops = np.minimum(np.array([ODDS[highest], -ODDS[lowest]])[:, None], epsilon + EXCESS)
    return np.where(tops > epsilon, np.expm1(_log_chance(tops) - _log_chance(np.array(epsilon))), 0.0)


@dataclass(frozen=True, eq=False)
class Batch:
    """Runs whose predictions were fixed before their labels were known.

    Parameters
    ----------
    levels : array of int
        The prediction of each run (`level_of`).
    labels : array of int
        The label of each run, 0 or 1.
    lowest, highest : int
        The range of predictions that any output could have had.
    whole : bool
        Whether one may look at the end of the batch only.
    """

    levels: IntArray
    labels: IntArray
    lowest: int
    highest: int
    whole: bool = False

    def first(self, runs: int) -> Batch:
        """Return the first runs of the batch.

        Parameters
        ----------
        runs : int
            How many.

        Returns
        -------
        Batch
            The runs.
        """
        return Batch(self.levels[:runs], self.labels[:runs], self.lowest, self.highest, self.whole)


@kernel
def _bet(levels, labels, factors, cost, capital, target):
    """Let gamblers bet on run after run until their capital reaches the target. Return the number of runs."""
    points, gamblers = capital.shape
    for t in range(levels.size):
        total = 0.0
        for i in range(points):
            for k in range(gamblers):
                capital[i, k] *= factors[i, labels[t], k, levels[t]] * cost[i, k]
                total += capital[i, k]
        if total >= target:
            return t + 1
    return levels.size


class Bettor:
    """The gamblers against one claim. They look after every run.

    Parameters
    ----------
    points : sequence of Point
        The claim implies each of them.
    level : float
        P(the claim is ever refuted although it holds) is at most this.

    Attributes
    ----------
    refuted : bool
        Whether the claim is refuted.
    """

    def __init__(self, points: tuple[Point, ...], level: float) -> None:
        self.points, self.target, self.refuted = points, max(1.0 / level, 1.0 + 1e-9), False
        self.capital = np.tile(SHARES / len(points), (len(points), 1))
        self._factors = np.exp(np.array([_log_factors(point.epsilon) for point in points]))

    def cost(self, lowest: int, highest: int) -> FloatArray:
        """Compute what each run costs each gambler because the claim allows a delta.

        Parameters
        ----------
        lowest, highest : int
            The range of possible predictions.

        Returns
        -------
        array
            A factor for each point and gambler, at most 1.
        """
        rows = []
        for point in self.points:
            on_one, on_zero = _largest_gains(point.epsilon, lowest, highest)
            rows.append(1.0 / (1.0 + 0.5 * (point.delta_1 * on_one + point.delta_0 * on_zero)))
        return np.array(rows)

    def bet(self, batch: Batch, early: bool = True) -> int:
        """Bet on a batch, up to the run that refutes the claim.

        Parameters
        ----------
        batch : Batch
            The next runs.
        early : bool
            Whether runs after the refutation are left out.

        Returns
        -------
        int
            The number of runs that count.
        """
        look = math.inf if batch.whole else self.target
        cost = self.cost(batch.lowest, batch.highest)
        used = int(_bet(batch.levels, batch.labels, self._factors, cost, self.capital, look))
        self.refuted = bool(self.capital.sum() >= self.target)
        return used if self.refuted and early else batch.levels.size


@kernel
def _pay(delta, gains, runs, paid):
    """Charge every gambler for so many runs under a claim with this delta."""
    for k in range(gains.size):
        if delta > 0.0 and gains[k] > 0.0:
            paid[k] += runs * math.log1p(0.5 * delta * gains[k])


@kernel
def _log_sum(values, known):
    """Compute the logarithm of the sum of exponentials, or something smaller than `known` if it is."""
    top = values.max()
    if top + math.log(values.size) <= known:
        return top
    total = 0.0
    for value in values:
        total += math.exp(value - top)
    return top + math.log(total)


@kernel
def _settle(epsilon, delta, log_gain, log_loss, gains, counts, odds, runs, log_capital, paid, best):
    """Let the gamblers of every rung bet on a batch that is counted by level; update the largest capitals.

    ``log_gain[r, k]`` is what trusting the cap of gambler k adds to his log capital if he is right, `log_loss` if he
    is wrong; `gains` bounds his gain in the batch.
    """
    rungs, gamblers = log_capital.shape
    for r in range(rungs):
        if gains[r].max() <= 0.0:
            continue
        sure = math.log1p(math.exp(-epsilon[r]))
        for c in range(odds.size):
            size, side = abs(odds[c]), (1 if odds[c] > 0.0 else 0)
            if size <= epsilon[r] or counts[0, c] + counts[1, c] == 0.0:
                continue
            right, wrong = counts[side, c], counts[1 - side, c]
            own = sure - math.log1p(math.exp(-size))
            for k in range(gamblers):
                if log_gain[r, k] < own:
                    log_capital[r, k] += right * log_gain[r, k] + wrong * log_loss[r, k]
                else:
                    log_capital[r, k] += right * own + wrong * (own - size + epsilon[r])
        for j in range(delta.shape[1]):
            _pay(delta[r, j], gains[r], runs, paid[r, j])
            best[r, j] = max(best[r, j], _log_sum(log_capital[r] - paid[r, j], best[r, j]))


class Ledger:
    """The capital of many claims at once, looked at after every batch.

    Rung r claims (epsilon[r], delta[r, j]) for every j, with the same delta in both directions.

    Parameters
    ----------
    epsilon : array
        The epsilon of each rung.
    delta : array
        ``delta[r, j]``.

    Attributes
    ----------
    best : array
        The largest log capital so far: ``best[r, j]``.
    """

    def __init__(self, epsilon: FloatArray, delta: FloatArray) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.log_capital = np.tile(np.log(SHARES), (epsilon.size, 1))
        self.paid = np.zeros((*delta.shape, EXCESS.size))
        self.best = np.zeros(delta.shape)
        caps, at = epsilon[:, None] + EXCESS, epsilon[:, None]
        self._log_gain = _log_chance(caps) - _log_chance(at)
        self._log_loss = _log_chance(-caps) - _log_chance(-at)

    def bet(self, batch: Batch) -> None:
        """Bet on a batch.

        Parameters
        ----------
        batch : Batch
            The next runs.
        """
        if batch.levels.size == 0:
            return
        counts = np.array([np.bincount(batch.levels[batch.labels == b], minlength=LEVELS) for b in (0, 1)])
        seen = np.flatnonzero(counts.sum(axis=0))
        tops = np.array([ODDS[batch.highest], -ODDS[batch.lowest]])[:, None, None]
        caps = np.minimum(tops, self.epsilon[:, None] + EXCESS)
        edge = _log_chance(self.epsilon)[:, None]
        gains = np.where(caps > self.epsilon[:, None], np.expm1(_log_chance(caps) - edge), 0.0).sum(axis=0)
        _settle(
            self.epsilon,
            self.delta,
            self._log_gain,
            self._log_loss,
            gains,
            counts[:, seen].astype(np.float64),
            ODDS[seen],
            batch.levels.size,
            self.log_capital,
            self.paid,
            self.best,
        )
