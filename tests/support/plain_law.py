"""A second programme for the law of (tau, o) with forced entries: plain arrays, no renewal, no passage, no strata.

For each L of a list all walks are followed sample by sample, as probabilities over the number of ones. A run whose L
lies between two neighbours of the list is given the outcome of the lower one. The outcomes differ only if the walk
stops at the lower L with an excess below the upper one, and the probability of that is added up: `Plain.slack` is a
bound and no estimate. Where both steps are whole multiples of one unit the law changes at few values of L, and with
these in the list the slack is rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpsmc_audit.exact.fixed import TerminationLaw
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt

_HAIR = 1e-11
"""Positions are rounded by less than this, and no L is meant to lie that near to a position."""

_TAIL = 1e-8
"""Runs with an L of this upper tail are left out, as are runs that go on when no more than this still do."""


@dataclass(frozen=True)
class Plain:
    """``null[k - 1] = P(tau = k, H_null)`` and `alt` likewise; every P(tau > k) is right to `slack`, and no event is
    wrong by more: the sum over all (tau, o) is right to twice as much.
    """

    null: np.ndarray
    alt: np.ndarray
    slack: float


@dataclass(frozen=True)
class Comparison:
    """By how much a law misses the plain one beyond its slack, over what the law states; at most 1 if that is true."""

    tail: float
    joint: float
    decision: float
    summed: float

    @property
    def worst(self) -> float:
        return max(self.tail, self.joint, self.decision, self.summed)


def lattice_ends(test: Sprt, mechanism: Mechanism, unit: float) -> np.ndarray:
    """All L at which a law for fixed bounds can change, if both steps are whole multiples of `unit`."""
    lowest, top = _range(test, mechanism)
    places = [
        np.arange(np.ceil((b + lowest) / unit), (b + top) / unit + 1.0) * unit - b for b in (test.b_up, test.b_low)
    ]
    inner = np.concatenate(places)
    return np.unique(np.concatenate([[lowest, top], inner[(inner > lowest) & (inner < top)]]))


def quantile_ends(test: Sprt, mechanism: Mechanism, count: int) -> np.ndarray:
    """As many L, equally likely between neighbours, and a few in the tail."""
    lowest, top = _range(test, mechanism)
    shares = np.concatenate([np.arange(count) / count, 1.0 - np.logspace(-6.0, -np.log10(count), 40)])
    inner = mechanism.quantile(shares)
    return np.unique(np.concatenate([[lowest, top], inner[(inner > lowest) & (inner < top)]]))


def _range(test: Sprt, mechanism: Mechanism) -> tuple[float, float]:
    lowest = max(float(mechanism.quantile(0.0)), test.no_room)
    return lowest, max(float(mechanism.quantile(1.0 - _TAIL)), lowest + test.step_sum)


def plain_law(
    test: Sprt, mechanism: Mechanism, p_phi: float, forced: Mapping[int, int], ends: np.ndarray, longest: int = 20_000
) -> Plain:
    """The law with the L in `ends`, the first of them the lowest that leaves room; a coin decides below."""
    if mechanism.atoms is not None:
        excess, weights = (np.array(column) for column in zip(*mechanism.atoms, strict=True))
        coin = float(weights[excess <= test.no_room].sum())
        excess, weights, gaps = (part[excess > test.no_room] for part in (excess, weights, 0.0 * weights))
        tail = 1e-12
    else:
        above = np.concatenate([[1.0], mechanism.survival(ends[1:])])
        coin = 1.0 - float(mechanism.survival(test.no_room)) if ends[0] <= test.no_room else 0.0
        above[0] -= coin
        excess, weights, gaps, tail = ends[:-1] + _HAIR, -np.diff(above), np.diff(ends) - 2.0 * _HAIR, float(above[-1])
    rows = _Rows(test, excess, weights, gaps)
    while rows.alive > _TAIL and rows.steps < longest:
        rows.sample(float(forced.get(rows.steps + 1, p_phi)))
    null, alt = np.array(rows.null), np.array(rows.alt)
    null[0] += 0.5 * coin
    alt[0] += 0.5 * coin
    return Plain(null, alt, rows.moved + rows.alive + rows.dropped + tail + 1e-10)


class _Rows:
    """One row of probabilities for each L, over the number of ones."""

    def __init__(self, test: Sprt, excess: np.ndarray, weights: np.ndarray, gaps: np.ndarray) -> None:
        self.test, self.gaps = test, gaps[:, None]
        self.up, self.low = (b + excess[:, None] for b in (test.b_up, test.b_low))
        self.mass, self.ones, self.steps = weights[:, None], np.zeros(1), 0
        self.null: list[float] = []
        self.alt: list[float] = []
        self.moved = self.dropped = 0.0

    @property
    def alive(self) -> float:
        return float(self.mass.sum())

    def sample(self, p_one: float) -> None:
        fresh = np.zeros((self.mass.shape[0], self.mass.shape[1] + 1))
        fresh[:, :-1] = (1.0 - p_one) * self.mass
        fresh[:, 1:] += p_one * self.mass
        self.ones, self.steps = np.append(self.ones, self.ones[-1] + 1.0), self.steps + 1
        at = self.ones * self.test.s_plus - (self.steps - self.ones) * self.test.s_minus
        for beyond, found in ((at - self.up, self.null), (-at - self.low, self.alt)):
            stopped = np.where(beyond >= 0.0, fresh, 0.0)
            found.append(float(stopped.sum()))
            self.moved += float(stopped[beyond < self.gaps].sum())
            fresh -= stopped
        keep = np.flatnonzero(fresh.sum(axis=0) > 1e-16)
        rows = np.flatnonzero(fresh.sum(axis=1) > 1e-16)
        if keep.size == 0 or rows.size == 0:
            self.dropped, self.mass, self.ones = self.dropped + float(fresh.sum()), np.zeros((1, 1)), self.ones[:1]
            self.up, self.low, self.gaps = self.up[:1], self.low[:1], self.gaps[:1]
            return
        inside, across = slice(rows[0], rows[-1] + 1), slice(keep[0], keep[-1] + 1)
        before = float(fresh.sum())
        self.mass, self.ones = fresh[inside, across].copy(), self.ones[across]
        self.up, self.low, self.gaps = self.up[inside], self.low[inside], self.gaps[inside]
        self.dropped += max(before - float(self.mass.sum()), 0.0)


def compared(law: TerminationLaw, plain: Plain) -> Comparison:
    """Every P(tau > k), every P(tau <= k, o), both decisions, and the sum over all outcomes."""
    size = max(law.null.size, plain.null.size)
    null, alt = (np.pad(side, (0, size - side.size)) for side in (law.null, law.alt))
    null -= np.pad(plain.null, (0, size - plain.null.size))
    alt -= np.pad(plain.alt, (0, size - plain.alt.size))
    tail = np.abs(np.cumsum(null + alt)).max()
    joint = max(np.abs(np.cumsum(side)).max() for side in (null, alt))
    decision = max(abs(side.sum()) for side in (null, alt))
    summed = np.abs(null).sum() + np.abs(alt).sum()

    def over(wrong: float, slack: float, stated: float) -> float:
        return float(max(wrong - slack, 0.0) / max(stated, 1e-300))

    return Comparison(
        over(tail, plain.slack, law.error),
        over(joint, plain.slack, law.scatter),
        over(decision, plain.slack, law.scatter),
        over(summed, 2.0 * plain.slack, law.scatter),
    )
