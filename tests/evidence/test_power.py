"""What `consistent` says would have been found is found about as often as it says.

By hand: ``python -m tests.evidence.test_power 300``.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.evidence.claims import Dp, Gdp
from dpsmc_audit.evidence.game import Game, Rules
from dpsmc_audit.evidence.outputs import Outputs
from dpsmc_audit.evidence.power import _evidence, behind, detectable, finds
from dpsmc_audit.evidence.summary import finding_of

EPSILON, LEVEL = 0.1, 0.05


def drawn(runs: int, values: int, probability: float, rng: np.random.Generator) -> Outputs:
    """One inner value with this probability; the others share the rest."""
    column = rng.integers(0, values - 1, runs).astype(float)
    column[column >= values // 2] += 1.0
    column[rng.random(runs) < probability] = values // 2
    return Outputs("numbers", (column,), ("output",))


def stated(runs: int, values: int, floor: float) -> float | None:
    """The epsilon that an audit of two equal members calls detectable."""
    rng = np.random.default_rng(1)
    game = Game(Rules(Dp(EPSILON), 1e-9, 1, runs, early=False))
    game.add(*(drawn(runs, values, floor, rng) for _ in range(2)))
    assert game.predictor is not None
    cells = game.predictor.cells[0].ends.size
    return detectable(Dp(EPSILON), game.labelled, LEVEL, floor, cells).epsilon


def share_found(case: tuple[int, int, float], audits: int, part: float = 1.0) -> float:
    """The share of audits that find the stated violation, or one with this part of the distance to the claim."""
    runs, values, floor = case
    size = stated(runs, values, floor)
    if size is None:
        return math.nan
    other, found = floor * math.exp(-EPSILON - part * (size - EPSILON)), 0
    for seed in range(audits):
        rng = np.random.default_rng([8, seed])
        game = Game(Rules(Dp(EPSILON), LEVEL, seed, runs))
        game.add(*(drawn(runs, values, p, rng) for p in (other, floor)))
        found += game.refuted
    return found / audits


CASES = list(product((1000, 5000, 20_000), (2, 51, 10_000), (0.5, 0.1, 0.01)))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_called_detectable_is_detected(case: tuple[int, int, float]) -> None:
    """In 85 to 95 % of 300 audits, as the statement of 90 % should be; more where the floor has no such size."""
    share = share_found(case, 300)
    assert math.isnan(share) or 0.85 <= share <= 0.95


@pytest.mark.parametrize("case", [(1000, 2, 0.1), (1000, 51, 0.5)], ids=str)
def test_a_few_audits_find_it_too(case: tuple[int, int, float]) -> None:
    """Of 25 audits at least 17: with a share of 0.85 fewer come once in 250 seeds, and the seed is fixed.

    And a violation at 40 % of the distance to the claim in at most 16: the statement is not idle.
    """
    assert share_found(case, 25) >= 17 / 25
    assert share_found(case, 25, 0.4) <= 16 / 25


@given(st.integers(50, 10**6), st.sampled_from([2, 51, 10_000]), st.sampled_from([0.0, 1e-3]), st.floats(0.0, 2.0))
@settings(max_examples=5)
def test_more_runs_show_smaller_violations(labelled: int, cells: int, delta: float, epsilon: float) -> None:
    few, many = (detectable(Dp(epsilon, delta), n, 0.01, 0.1, cells) for n in (labelled, 2 * labelled))
    for p in few.by_probability:
        small, large = many.by_probability[p], few.by_probability[p]
        assert large is None or (small is not None and epsilon < small <= large * (1 + 1e-5))
    assert many.delta is None or many.delta > delta
    assert few.delta is None or (many.delta is not None and many.delta <= few.delta * (1 + 1e-5))


def test_what_learning_costs() -> None:
    """More cells, a smaller claim, a capital that grows as fast as the evidence, and rare events cost more."""
    share = np.array([0.1, 0.9])
    costs = np.array([behind(cells, 0.1, share) for cells in (1, 2, 3, 5, 51, 300)])
    assert np.all(costs[0] == costs[1])
    assert np.all(np.diff(costs[1:], axis=0) > 0.0)
    assert np.all(np.diff(costs[2:], axis=1) > 0.0)
    assert np.all(behind(51, 0.1, share) > behind(51, 0.5, share))
    assert np.all(behind(51, 0.1, share, 20.0) > behind(51, 0.1, share, 50.0))
    assert np.all(behind(51, 0.1, share, 500.0) == behind(51, 0.1, share))


def test_evidence_is_what_the_label_shares_with_the_output() -> None:
    one, zero = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.0, 0.75])
    entropy = 0.375 * (math.log(3) / 3 * 1 - 2 / 3 * math.log(2 / 3) - 0)
    assert _evidence((one, zero)) == pytest.approx(math.log(2) - entropy)
    assert _evidence((one, one)) < 1e-15


def test_a_gaussian_claim_has_a_detectable_mu() -> None:
    few, many = (detectable(Gdp(0.5), n, 0.01, 0.01, 51) for n in (1000, 8000))
    assert few.mu is not None
    assert many.mu is not None
    assert 0.5 < many.mu < few.mu
    assert detectable(Dp(0.5), 1000, 0.01, 0.01, 51).mu is None


def test_a_claim_that_holds_is_never_found() -> None:
    one, zero = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    epsilon = math.log(1.5)
    assert not finds((one, zero), Dp(epsilon + 1e-9).points, 10**9, 0.05, 2)
    assert finds((one, zero), Dp(0.9 * epsilon).points, 10**6, 0.05, 2)


def test_an_audit_says_what_it_could_have_found() -> None:
    rng = np.random.default_rng(3)
    game = Game(Rules(Dp(EPSILON), LEVEL, 1, 300))
    game.add(*(drawn(300, 2, 0.5, rng) for _ in range(2)))
    could = finding_of(game, 0.5).could
    assert could is not None
    assert could.epsilon == detectable(Dp(EPSILON), game.labelled, LEVEL, 0.5, 2).epsilon


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("audits", type=int)
    audits = parser.parse_args().audits
    with ProcessPoolExecutor(1) as pool:
        for each, share in zip(CASES, pool.map(partial(share_found, audits=audits), CASES), strict=True):
            print(each, f"{share:.3f}", flush=True)
