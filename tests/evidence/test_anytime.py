"""Bets: the kernel against a plain twin, the martingale by enumeration, and the number of pairs they need."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.evidence import anytime
from dpsmc_audit.evidence.anytime import FIRST, GROWTH, Anytime, _bet, _new_epoch, _share
from dpsmc_audit.evidence.events import Counted, outcome_code
from experiments.calibration import PRIVATE, one_sided


def codes(tau: list[int]) -> np.ndarray:
    return outcome_code(np.array(tau), np.zeros(len(tau), int))


@given(st.integers(0, 2**32), st.floats(0.0, 2.0), st.floats(0.0, 0.3))
@settings(max_examples=30)
def test_the_kernel_equals_its_plain_twin(seed: int, epsilon: float, delta: float) -> None:
    """Gambler by gambler, pair by pair: 1 + stake (1[X in S] - e^epsilon 1[Y in S] - delta), and never below 0."""
    rng = np.random.default_rng(seed)
    one, zero = (rng.integers(0, 12, 40) for _ in range(2))
    first, second = (Counted.of(outcome_code(x, np.zeros(40, int))) for x in (one, zero))
    epoch = _new_epoch(first, second, epsilon, delta, 0.5)
    start = epoch.capital.copy()
    assert start.sum() == pytest.approx(0.5)
    x, y = (epoch.family.cells.place(outcome_code(rng.integers(0, 12, 25), np.zeros(25, int))) for _ in range(2))
    total = np.zeros(25)
    _bet(x, y, epoch.holds, epoch.quiet, epoch.on_x, epoch.on_y, epoch.capital, total)
    expected, totals = start.tolist(), []
    stake = np.where(epoch.direction == 0, epoch.on_x, epoch.on_y)
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        for i, event in enumerate(epoch.event.tolist()):
            held = epoch.family.holds[event]
            likely, other = (held[a], held[b]) if epoch.direction[i] == 0 else (held[b], held[a])
            factor = 1.0 + stake[i] * (float(likely) - math.exp(epsilon) * float(other) - delta)
            assert factor >= 0.0
            expected[i] *= factor
        totals.append(sum(expected))
    assert epoch.capital == pytest.approx(expected, rel=1e-9)
    assert total == pytest.approx(totals, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_the_capital_is_a_supermartingale_by_enumeration(monkeypatch: pytest.MonkeyPatch, epsilon: float) -> None:
    """All sequences of four pairs of a pair of laws on the bound of the claim: the mean capital is at most 1.

    Epochs begin after 1 and 2 pairs here, so that what is chosen from earlier pairs is part of it.
    """
    monkeypatch.setattr(anytime, "FIRST", 1)
    monkeypatch.setattr(anytime, "GROWTH", 2)
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    law = {1: (1.0 - truth, truth), 0: (truth, 1.0 - truth)}
    mean = 0.0
    for outcome in itertools.product((0, 1), repeat=8):
        one, zero = list(outcome[:4]), list(outcome[4:])
        chance = math.prod(law[1][bit] for bit in one) * math.prod(law[0][bit] for bit in zero)
        bets = Anytime(epsilon, 0.0, 0.999_999)
        bets.update(codes(one), codes(zero))
        assert len(bets._epochs) == 3
        mean += chance * bets.capital
    assert mean <= 1.0 + 1e-9
    assert mean > 0.9  # the richest claims are bet against with about everything


def test_shares_of_the_epochs_add_up_to_one() -> None:
    assert sum(_share(k) for k in range(10_000)) == pytest.approx(1.0, abs=2e-4)
    assert sum(_share(k) for k in range(10_000)) < 1.0


@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(1, 400))
@settings(max_examples=25)
def test_it_does_not_matter_how_the_pairs_come_in(seed: int, first: int, second: int) -> None:
    """One update, or three: the same capital, the same pair at which the claim falls."""
    rng = np.random.default_rng(seed)
    one, zero = one_sided(1, 600, rng), one_sided(0, 600, rng)
    whole, parts = (Anytime(1.5, 0.0, 0.95) for _ in range(2))
    whole.update(one, zero)
    for low, high in itertools.pairwise(sorted({0, first, second, 600})):
        parts.update(one[low:high], zero[low:high])
    assert (parts.pairs, parts.rejected) == (whole.pairs, whole.rejected)
    assert parts.capital == pytest.approx(whole.capital, rel=1e-9)


def test_looking_after_every_pair_or_at_the_end() -> None:
    """The claim falls at the first pair after which the capital is 20 or more, and not before."""
    rng = np.random.default_rng(4)
    one, zero = one_sided(1, 300, rng), one_sided(0, 300, rng)
    whole = Anytime(1.0, 0.0, 0.95)
    assert whole.update(one, zero)
    step = Anytime(1.0, 0.0, 0.95)
    for k in range(whole.pairs):
        assert not step.rejected
        assert step.capital < 20.0
        step.update(one[k : k + 1], zero[k : k + 1])
    assert step.rejected
    assert step.capital >= 20.0
    assert step.update(one[whole.pairs :], zero[whole.pairs :])  # what comes later is not looked at
    assert step.pairs == whole.pairs


def test_a_one_sided_law_is_refuted_within_sixty_pairs() -> None:
    """floor(10 (x + Exp(1))), claimed epsilon 1, level 5 %: the median over 200 seeds."""
    needed = []
    for seed in range(200):
        rng, bets = np.random.default_rng([9, seed]), Anytime(1.0, 0.0, 0.95)
        assert bets.update(one_sided(1, 2000, rng), one_sided(0, 2000, rng))
        needed.append(bets.pairs)
    assert np.median(needed) <= 60
    assert min(needed) > FIRST


def test_looked_at_after_every_pair_false_alarms_stay_below_the_level() -> None:
    """10^4 pairs, 60 times, at 50 %: a level that only a valid process keeps; at most 30 and three deviations."""
    (draw, epsilon), alarms = PRIVATE["geometric, 0.5"], 0
    for seed in range(60):
        rng = np.random.default_rng([6, seed])
        bets = Anytime(epsilon, 0.0, 0.5)
        alarms += bets.update(draw(1, 10_000, rng), draw(0, 10_000, rng))
    assert alarms <= 30 + 3 * math.sqrt(60 * 0.25)
    assert FIRST * GROWTH**4 < 10_000  # several epochs took part
