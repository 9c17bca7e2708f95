"""Bets on labels: their exact expectation, the costs of a delta, and twins in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsmc_audit.evidence.bets import EXCESS, HIGHEST, LEVELS, ODDS, SHARES, Batch, Bettor, Ledger, level_of
from dpsmc_audit.evidence.claims import Gdp, Point

ROUNDING = 1e-12
UNIT = st.floats(0.0, 1.0)


def one_run(bettor: Bettor, level: int, label: int, lowest: int, highest: int) -> np.ndarray:
    """What one run multiplies the capital of each gambler by."""
    fresh = Bettor(bettor.points, 0.01)
    before = fresh.capital.copy()
    fresh.bet(Batch(np.array([level]), np.array([label]), lowest, highest))
    return np.asarray(fresh.capital / before)


def need(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The smallest delta of this direction."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


LAW = st.lists(st.floats(1e-6, 1.0), min_size=4, max_size=4)


@given(LAW, LAW, st.floats(0.0, 5.0), st.lists(UNIT, min_size=4, max_size=4), UNIT)
@example([0.5, 0.5, 1e-6, 1e-6], [0.5, 0.5, 1e-6, 1e-6], 0.0, [1.0, 0.0, 0.5, 0.5], 0.0)
@settings(max_examples=60)
def test_no_gambler_wins_on_average_where_the_claim_holds(
    first: list[float], second: list[float], epsilon: float, predicted: list[float], spare: float
) -> None:
    """Any two laws on four outcomes, any predictions, and the deltas that these laws need, or somewhat more."""
    one, zero = np.array(first) / sum(first), np.array(second) / sum(second)
    deltas = [min(need(p, q, epsilon) * (1.0 + spare), 0.999999) for p, q in ((one, zero), (zero, one))]
    levels = level_of(np.array(predicted))
    bettor = Bettor((Point(epsilon, *deltas),), 0.01)
    lowest, highest = int(levels.min()), int(levels.max())
    mean = np.zeros((1, EXCESS.size))
    for outcome, level in enumerate(levels.tolist()):
        for label, law in ((1, one), (0, zero)):
            mean += 0.5 * law[outcome] * one_run(bettor, level, label, lowest, highest)
    assert np.all(mean <= 1.0 + ROUNDING)


@given(st.floats(0.0, 8.0), UNIT, UNIT)
@settings(max_examples=60)
def test_on_the_boundary_nothing_is_lost_or_won(epsilon: float, chance: float, delta: float) -> None:
    """Randomised response and a prediction that goes too far: every bet is fair, for either direction."""
    s = 1.0 / (1.0 + math.exp(-epsilon))
    bettor = Bettor((Point(epsilon, 0.0, 0.0),), 0.01)
    levels = level_of(np.array([chance, 1.0 - chance]))
    ends = int(levels.min()), int(levels.max())
    for level in levels.tolist():
        right = 1 if ODDS[level] > 0 else 0
        factors = [one_run(bettor, level, label, *ends) for label in (0, 1)]
        mean = s * factors[right] + (1.0 - s) * factors[1 - right]
        assert np.allclose(mean, 1.0, rtol=0.0, atol=1e-12)
    # the worst output of a delta tells the label: its gain is what the cost is made for
    told = Bettor((Point(epsilon, 0.9 * delta, 0.0),), 0.01)
    top = one_run(told, int(levels.max()), 1, *ends)
    gain = one_run(bettor, int(levels.max()), 1, *ends) - 1.0
    assert np.allclose(top, (1.0 + gain) / (1.0 + 0.45 * delta * np.maximum(gain, 0.0)), atol=1e-12)


def test_directions_have_deltas_of_their_own() -> None:
    """A delta for one direction makes bets on the other label no dearer."""
    up, down = level_of(np.array([0.9, 0.1])).tolist()
    middle = (LEVELS - 1) // 2
    free = Bettor((Point(0.5, 0.0, 0.0),), 0.01)
    on_one, on_zero = (Bettor((Point(0.5, *deltas),), 0.01) for deltas in ((0.2, 0.0), (0.0, 0.2)))
    for level, label, dear, cheap in ((up, 1, on_one, on_zero), (down, 0, on_zero, on_one)):
        ends = min(level, middle), max(level, middle)
        assert np.array_equal(one_run(cheap, level, label, *ends), one_run(free, level, label, *ends))
        assert np.all(one_run(dear, level, label, *ends) < one_run(free, level, label, *ends))


def plain_capital(point: Point, batch: Batch) -> list[list[float]]:
    """The log capital of each gambler after every run, by the formulas of the game."""
    capital, course = [math.log(share) for share in SHARES], []
    for level, label in zip(batch.levels.tolist(), batch.labels.tolist(), strict=True):
        for k, excess in enumerate(EXCESS.tolist()):
            cap = point.epsilon + excess
            s = 1.0 / (1.0 + math.exp(-point.epsilon))
            odds = max(-cap, min(cap, float(ODDS[level])))
            h = 1.0 / (1.0 + math.exp(-odds))
            if odds > point.epsilon:
                capital[k] += math.log(h / s) if label else math.log((1.0 - h) / (1.0 - s))
            elif odds < -point.epsilon:
                capital[k] += math.log(h / (1.0 - s)) if label else math.log((1.0 - h) / s)
            gains = []
            for end in (float(ODDS[batch.highest]), -float(ODDS[batch.lowest])):
                top = min(end, cap)
                gains.append((1.0 / (1.0 + math.exp(-top))) / s - 1.0 if top > point.epsilon else 0.0)
            capital[k] -= math.log(1.0 + 0.5 * (point.delta_1 * gains[0] + point.delta_0 * gains[1]))
        course.append(list(capital))
    return course


def batch_of(rng: np.random.Generator, runs: int) -> Batch:
    levels = level_of(rng.random(runs))
    return Batch(levels, (rng.random(runs) < 0.5).astype(np.int64), int(levels.min()), int(levels.max()))


@given(st.integers(0, 2**32), st.floats(0.0, 3.0), st.sampled_from([0.0, 1e-5, 0.1, 0.7]))
@settings(max_examples=20)
def test_a_ledger_and_gamblers_agree_with_plain_python(seed: int, epsilon: float, delta: float) -> None:
    """Run by run: a ledger that is told after each run what the gamblers are told at once."""
    rng = np.random.default_rng(seed)
    batch, point = batch_of(rng, 30), Point(epsilon, delta, delta)
    course = plain_capital(point, batch)
    bettor = Bettor((point,), 1e-300)
    bettor.bet(batch)
    assert np.allclose(np.log(bettor.capital[0]), course[-1], rtol=0.0, atol=1e-9)
    ledger, best = Ledger(np.array([epsilon]), np.array([[delta]])), 0.0
    for t, logs in enumerate(course):
        ledger.bet(Batch(batch.levels[t : t + 1], batch.labels[t : t + 1], batch.lowest, batch.highest))
        best = max(best, math.log(sum(map(math.exp, logs))))
        assert ledger.best[0, 0] == pytest.approx(best, abs=1e-9)
    whole = Ledger(np.array([epsilon]), np.array([[delta]]))
    whole.bet(batch)
    assert np.allclose(whole.log_capital - whole.paid[:, 0], course[-1], rtol=0.0, atol=1e-9)


def test_rungs_and_deltas_of_a_ledger_do_not_disturb_each_other() -> None:
    rng = np.random.default_rng(2)
    epsilon, delta = np.array([0.0, 0.3, 1.0]), np.array([[0.0, 1e-3, 0.2]] * 3)
    together = Ledger(epsilon, delta)
    single = {(r, j): Ledger(epsilon[r : r + 1], delta[r : r + 1, j : j + 1]) for r in range(3) for j in range(3)}
    for _ in range(5):
        batch = batch_of(rng, 40)
        for ledger in (together, *single.values()):
            ledger.bet(batch)
    for (r, j), ledger in single.items():
        assert together.best[r, j] == pytest.approx(ledger.best[0, 0], abs=1e-9)


def test_gamblers_stop_at_the_run_that_refutes() -> None:
    levels = np.full(100, LEVELS - 1)
    batch = Batch(levels, np.ones(100, np.int64), (LEVELS - 1) // 2, LEVELS - 1)
    bettor = Bettor((Point(0.0, 0.0, 0.0),), 0.01)
    used = bettor.bet(batch)
    totals = [sum(map(math.exp, logs)) for logs in plain_capital(bettor.points[0], batch)]
    assert bettor.refuted
    assert used == next(t for t, total in enumerate(totals, 1) if total >= 100.0)
    late = Bettor((Point(0.0, 0.0, 0.0),), 0.01)
    assert late.bet(Batch(*vars(batch).values()), early=False) == 100


def test_a_whole_batch_is_looked_at_when_it_ends() -> None:
    """Won at first and lost again: nothing is refuted."""
    levels = np.full(40, level_of(np.array([0.99]))[0])
    labels = np.repeat([1, 0], 20)
    for whole in (False, True):
        bettor = Bettor((Point(0.0, 0.0, 0.0),), 0.05)
        bettor.bet(Batch(levels, labels, (LEVELS - 1) // 2, int(levels[0]), whole=whole))
        assert bettor.refuted != whole


def test_gamblers_on_several_points_share_the_capital() -> None:
    bettor = Bettor(Gdp(1.0).points, 0.05)
    assert bettor.capital.sum() == pytest.approx(1.0, abs=1e-12)
    assert SHARES.sum() == pytest.approx(1.0, abs=1e-12)
    assert bettor.target == pytest.approx(20.0)


@given(st.lists(UNIT, min_size=2, max_size=20))
def test_levels_are_monotone_and_symmetric(chances: list[float]) -> None:
    sorted_chances = np.sort(np.array(chances))
    levels = level_of(sorted_chances)
    assert np.all(np.diff(levels) >= 0)
    exact = np.array([k / 1024 for k in range(1025)])
    assert np.array_equal(level_of(exact) + level_of(1.0 - exact), np.full(exact.size, LEVELS - 1))


def test_the_grid_of_predictions_is_what_it_says() -> None:
    assert np.all(np.diff(ODDS) > 0)
    assert np.array_equal(ODDS, -ODDS[::-1])
    assert abs(ODDS[-1] / HIGHEST - 1.0) < 0.01
    chance = 1.0 / (1.0 + np.exp(-ODDS))
    near = np.abs(ODDS) < 15  # further out 1 - h has too few digits to be told apart
    assert np.array_equal(level_of(chance[near]), np.flatnonzero(near))
