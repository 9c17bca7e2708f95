"""An e-process: bets against a claim of (epsilon, delta), checked after every pair of runs.

For an event S, a pair (X, Y) of independent runs of the two members pays ``g = 1[X in S] - e^epsilon 1[Y in S] -
delta``, which is at most 0 on average if the claim holds. A gambler who stakes the share lambda of his capital on
every pair has ``prod(1 + lambda g)`` of it after any number of pairs. A syndicate of gamblers with other events, stakes
and directions has the sum of their capitals. If the claim holds, the capital of the syndicate, 1 at the start, ever
reaches 1/level with probability at most `level` (Ville's inequality). So the claim may be rejected at any time, with no
correction for looking.

Gamblers join in epochs, after 16, 64, 256, ... pairs, each epoch with a share of the capital fixed in advance. They
choose events and stakes from what was seen before they joined. This choice does not change the guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.events import Counted, Family, family_of, joined
from dpsmc_audit.evidence.power import POWER, detectable
from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Event
from dpsmc_audit.numerics.jit import kernel
from dpsmc_audit.numerics.ties import best_of, ranked

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["Anytime"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FIRST, GROWTH = 16, 4
STAKES = np.array([0.98, 0.6, 0.3, 0.1, 0.03, 0.01, 0.003])
"""As shares of the largest stake that cannot lose more than the whole capital."""
EACH = 32
"""The number of gamblers of each kind in an epoch."""


@kernel
def _bet(x, y, holds, quiet, on_x, on_y, capital, total):
    """Let gamblers bet on pair after pair, and add their capital after each pair to `total`.

    ``holds[cell, i]`` is 1.0 where the event of gambler i has the cell; a pair (x, y) of cells multiplies his capital
    by ``quiet[i] + on_x[i] holds[x, i] + on_y[i] holds[y, i]``.
    """
    for t in range(x.size):
        a, b = holds[x[t]], holds[y[t]]
        for i in range(capital.size):
            capital[i] *= quiet[i] + on_x[i] * a[i] + on_y[i] * b[i]
        for i in range(capital.size):
            total[t] += capital[i]


@dataclass(eq=False)
class _Epoch:
    """Gamblers that joined together: their events, what a pair pays them, and their capital now."""

    family: Family
    event: IntArray
    direction: IntArray
    holds: FloatArray
    quiet: FloatArray
    on_x: FloatArray
    on_y: FloatArray
    capital: FloatArray

    def bet(self, x: IntArray, y: IntArray, total: FloatArray) -> None:
        place = self.family.cells.place
        _bet(place(x), place(y), self.holds, self.quiet, self.on_x, self.on_y, self.capital, total)


def _payments(direction: IntArray, stake: FloatArray, epsilon: float, delta: float) -> tuple[FloatArray, ...]:
    """Compute the factor of the capital, ``1 + stake (1[likelier] - e^epsilon 1[other] - delta)``, in three parts."""
    gain, loss = stake, -stake * factor(epsilon)
    return 1.0 - stake * delta, np.where(direction == 0, gain, loss), np.where(direction == 0, loss, gain)


def _promise(one: FloatArray, zero: FloatArray, pairs: int, paid: tuple[FloatArray, ...]) -> FloatArray:
    """Compute the log of the capital that 1 would have become on so many pairs with these shares of the events."""
    quiet, on_x, on_y = paid
    return np.asarray(
        pairs
        * (
            one * zero * np.log(quiet + on_x + on_y)
            + one * (1.0 - zero) * np.log(quiet + on_x)
            + (1.0 - one) * zero * np.log(quiet + on_y)
            + (1.0 - one) * (1.0 - zero) * np.log(quiet)
        )
    )


def _share(number: int) -> float:
    """Return the share of the capital for epoch 0, 1, ... All shares add up to 1."""
    return 1.0 / ((number + 1) * (number + 2))


def _new_epoch(one: Counted, zero: Counted, epsilon: float, delta: float, capital: float) -> _Epoch:
    """Choose the most promising events, directions and stakes so far. Tails and bins are apart from other sets."""
    family, pairs = family_of(one, zero, most=32), one.runs
    seen = [(family.count(member) + 0.5) / (pairs + 1.0) for member in (one, zero)]
    events = family.kind.size
    event, direction, share = (
        grid.ravel() for grid in np.meshgrid(np.arange(events), np.arange(2), STAKES, indexing="ij")
    )
    stake = share / (factor(epsilon) + delta)
    paid = _payments(direction, stake, epsilon, delta)
    promise = _promise(seen[0][event], seen[1][event], pairs, paid)
    chosen, weight = [], []
    for kind in (False, True):
        mine = np.flatnonzero((family.kind[event] == "ratio") == kind)
        best = mine[ranked(promise[mine])[:EACH]]  # an event and its complement may promise the same
        odds = np.exp(promise[best] - promise[best[0]])
        chosen.append(best)
        weight.append(0.5 * odds / odds.sum())
    pick = np.concatenate(chosen)
    holds = np.ascontiguousarray(family.holds[event[pick]].T, dtype=np.float64)
    quiet, on_x, on_y = (part[pick] for part in paid)
    return _Epoch(family, event[pick], direction[pick], holds, quiet, on_x, on_y, capital * np.concatenate(weight))


class Anytime:
    """The syndicate. `update` it with pairs of runs until it `rejected` the claim.

    P(it ever rejects a claim that holds) <= 1 - confidence, however often and whenever one looks.

    Parameters
    ----------
    epsilon, delta : float
        The claim.
    confidence : float
        The confidence of a rejection.

    Examples
    --------
    >>> from dpsmc_audit.evidence.events import outcome_code
    >>> rng, nothing = np.random.default_rng(2), np.zeros(500, int)
    >>> one, zero = (np.floor(10 * (q + rng.exponential(size=500))).astype(int) for q in (0, 1))
    >>> bets = Anytime(epsilon=1.0, delta=0.0, confidence=0.95)
    >>> bets.update(outcome_code(one, nothing), outcome_code(zero, nothing))
    True
    >>> bets.pairs < 60
    True
    """

    def __init__(self, epsilon: float, delta: float, confidence: float) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.target = max(1.0 / (1.0 - confidence), 1.0 + 1e-9)  # more than the capital before the first bet
        self.pairs, self.rejected = 0, False
        self._epochs: list[_Epoch] = []
        self._cash = 1.0
        self._seen: tuple[Counted, Counted] | None = None
        self._joined_after: list[tuple[Counted, Counted]] = []  # what each epoch had seen

    @property
    def capital(self) -> float:
        """The capital of the syndicate now."""
        return self._cash + sum(float(epoch.capital.sum()) for epoch in self._epochs)

    @property
    def _next_epoch(self) -> int:
        return int(FIRST * GROWTH ** len(self._epochs))

    def update(self, one: IntArray, zero: IntArray) -> bool:
        """Bet on pairs of outcomes, in their order.

        Pairs after a rejection are ignored. `pairs` counts those that were used.

        Parameters
        ----------
        one, zero : array of int
            Outcome codes (`events.outcome_code`) of the members with x = 1 and x = 0, equally many.

        Returns
        -------
        bool
            Whether the claim is rejected.
        """
        done = 0
        while done < one.size and not self.rejected:
            until = min(one.size, done + self._next_epoch - self.pairs)
            self._segment(one[done:until], zero[done:until])
            done = until
            if self.pairs == self._next_epoch and not self.rejected:
                self._open_epoch()
        return self.rejected

    def _segment(self, one: IntArray, zero: IntArray) -> None:
        """Bet on pairs during which no epoch begins. A rejection keeps the state of its moment."""
        total, before = np.full(one.size, self._cash), [epoch.capital.copy() for epoch in self._epochs]
        for epoch in self._epochs:
            epoch.bet(one, zero, total)
        reached = np.flatnonzero(total >= self.target)
        if reached.size:
            self.rejected = True
            one, zero = one[: reached[0] + 1], zero[: reached[0] + 1]
            for epoch, capital in zip(self._epochs, before, strict=True):
                epoch.capital = capital
                epoch.bet(one, zero, total)
        self.pairs += one.size
        new = (Counted.of(one), Counted.of(zero))
        old = self._seen
        self._seen = new if old is None else (joined([old[0], new[0]]), joined([old[1], new[1]]))

    def _open_epoch(self) -> None:
        assert self._seen is not None
        capital = _share(len(self._epochs))
        self._cash -= capital
        self._joined_after.append(self._seen)
        self._epochs.append(_new_epoch(*self._seen, self.epsilon, self.delta, capital))

    def saved(self) -> Saved:
        """Return the state of the bets.

        Returns
        -------
        Saved
            What every epoch had seen when it began, which determines its gamblers, and their capital now.
        """
        state: Saved = {"bets_pairs": self.pairs, "bets_cash": self._cash, "bets_epochs": len(self._epochs)}
        seen = [*self._joined_after, *([] if self._seen is None else [self._seen])]
        for k, members in enumerate(seen):
            for m, member in enumerate(members):
                state |= {f"bets_codes{m}_{k}": member.codes, f"bets_counts{m}_{k}": member.counts}
        return state | {f"bets_capital_{k}": epoch.capital for k, epoch in enumerate(self._epochs)}

    def restore(self, saved: Saved) -> None:
        """Restore bets that had not rejected the claim, to the last bit.

        Parameters
        ----------
        saved : Saved
            The result of `saved`, for bets with the same claim.

        Raises
        ------
        ValueError
            If the saved capital does not fit the gamblers.
        KeyError
            If a part of the state is missing.
        """

        def seen(k: int) -> tuple[Counted, Counted]:
            codes, counts = (
                [np.asarray(saved[f"bets_{what}{m}_{k}"], np.int64) for m in range(2)] for what in ("codes", "counts")
            )
            return Counted(codes[0], counts[0]), Counted(codes[1], counts[1])

        count = int(saved["bets_epochs"])
        before = [seen(k) for k in range(count)]
        epochs = [_new_epoch(*seen, self.epsilon, self.delta, _share(k)) for k, seen in enumerate(before)]
        for k, epoch in enumerate(epochs):
            capital = np.array(saved[f"bets_capital_{k}"], np.float64)
            if capital.shape != epoch.capital.shape:
                raise ValueError("the capital is not of these gamblers")
            epoch.capital = capital
        self._seen = seen(count) if int(saved["bets_pairs"]) else None
        self.pairs, self._cash = int(saved["bets_pairs"]), float(saved["bets_cash"])
        self._epochs, self._joined_after = epochs, before

    def _witness(self) -> Event:
        """Return the event of the richest gambler (the first of those that are equally rich) and its shares so far."""
        assert self._seen is not None
        epoch = self._epochs[best_of([float(epoch.capital.max()) for epoch in self._epochs])]
        event = int(epoch.event[best_of(epoch.capital)])
        p1, p0 = (float(epoch.family.count(member)[event]) / self.pairs for member in self._seen)
        return Event(epoch.family.what(event), p1, p0)

    def verdict(self, floor: float = 0.01) -> Finding:
        """Return the verdict so far. Bets only test the claim: they bound neither epsilon nor delta.

        Parameters
        ----------
        floor : float
            The probability of the events for which the smallest detectable epsilon is reported.

        Returns
        -------
        Finding
            `violated` if the claim is rejected: epsilon and delta are not both as small as claimed. Otherwise
            `consistent`.
        """
        could = detectable(self._shows, floor, self.epsilon, self.delta)
        if self.rejected:
            return Finding(Verdict.VIOLATED, self.epsilon, self.delta, self._witness(), could=could)
        return Finding(Verdict.CONSISTENT, 0.0, 0.0, None, could=could)

    def _shows(self, likely: float, other: float) -> bool:
        """Tell whether one gambler on this event, with the smallest usual share, would have reached the target by now.

        Log capital is taken as normal. The stake and the epoch are the best ones.
        """
        stake = STAKES / (factor(self.epsilon) + self.delta)
        paid = _payments(np.zeros(stake.size, np.int64), stake, self.epsilon, self.delta)
        mean = _promise(np.full(stake.size, likely), np.full(stake.size, other), 1, paid)
        quiet, on_x, on_y = paid
        steps = np.log(np.array([quiet + on_x + on_y, quiet + on_x, quiet + on_y, quiet]))
        odds = np.array([likely * other, likely * (1 - other), (1 - likely) * other, (1 - likely) * (1 - other)])
        deviation = np.sqrt((odds[:, None] * (steps - mean) ** 2).sum(axis=0))  # four terms, in their order
        for number in range(len(self._epochs)):
            pairs = self.pairs - FIRST * GROWTH**number
            needed = math.log(2 * EACH * self.target / _share(number))
            if np.any(pairs * mean - NormalDist().inv_cdf(POWER) * math.sqrt(pairs) * deviation >= needed):
                return True
        return False
