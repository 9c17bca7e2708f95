from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.profiles import Profile, best_tail, epsilon_grid, privacy_profile, total_variation
from dpsmc_audit.mechanisms import Exponential, Laplace, Truncated
from dpsmc_audit.numerics.ties import CLOSE
from dpsmc_audit.observers.expected.law import expected_law
from dpsmc_audit.observers.informed.average import draw_pair
from dpsmc_audit.observers.marginal.law import marginal_law
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from tests.support.strategies import mechanisms, sprts

PAPER = Sprt(0.73, 0.01, 0.01)
GRID = np.linspace(0.0, 2.0, 81)
shares_of_six = arrays(np.float64, 6, elements=st.just(0.0) | st.floats(1e-9, 1))
laws_of_six = shares_of_six.filter(lambda p: p.sum() > 0.1).map(lambda p: p / p.sum())


def assert_is_a_profile(profile: Profile) -> None:
    """Between 0 and 1, not rising, and convex in exp(epsilon)."""
    for delta in (profile.delta_1_over_0, profile.delta_0_over_1):
        assert np.all((delta >= 0) & (delta <= 1 + 1e-9))
        assert np.all(np.diff(delta) <= 1e-12)
        slopes = np.diff(delta) / np.diff(np.exp(profile.epsilon))
        assert np.all(np.diff(slopes) >= -1e-9)


@given(laws_of_six, laws_of_six)
def test_a_profile_is_the_best_of_all_events(p: np.ndarray, q: np.ndarray) -> None:
    """Against all 64 events, one by one."""
    profile = privacy_profile(p, q, GRID)
    events = np.array([[k >> j & 1 for j in range(6)] for k in range(64)], dtype=float)
    for place in (0, 20, 80):
        factor = math.exp(GRID[place])
        assert profile.delta_1_over_0[place] == pytest.approx(np.max(events @ (p - factor * q)), abs=1e-12)
        assert profile.delta_0_over_1[place] == pytest.approx(np.max(events @ (q - factor * p)), abs=1e-12)
    assert total_variation(p, q) == pytest.approx(0.5 * np.abs(p - q).sum(), abs=1e-12)
    assert_is_a_profile(profile)


@pytest.mark.processor
@given(laws_of_six, laws_of_six, st.floats(0.01, 0.5))
def test_the_best_tail_is_the_best_of_all_tails(p: np.ndarray, q: np.ndarray, floor: float) -> None:
    """Or as good, by the rule for ties, and more probable."""
    found = best_tail(p, q, floor)
    ratios = []
    for k in range(1, 6):
        for one, zero in ((p[:k].sum(), q[:k].sum()), (p[k:].sum(), q[k:].sum())):
            if max(one, zero) >= floor:
                ratios.append(math.inf if min(one, zero) <= 0 else abs(math.log(one / zero)))
    assert found is not None  # the whole is an event too
    best = max([0.0, *ratios])
    assert abs(found.log_ratio) == pytest.approx(best, abs=CLOSE * max(1.0, best) + 1e-12)


@given(st.data(), sprts(finest=0.05), st.floats(0.1, 0.9), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_profiles_of_every_mechanism_and_observer(data: st.DataObject, test: Sprt, p_phi: float, entry: int) -> None:
    law = data.draw(mechanisms(test))
    grid = np.linspace(0, 3, 31)
    assert_is_a_profile(marginal_law(Adjacent(Setting(test, law, p_phi), (entry,))).leakage(grid, 0.01).profile)
    assert_is_a_profile(
        draw_pair(Adjacent(Setting(test, law, p_phi), (entry,)), 0, sampling=Sampling(seed=1, max_steps=10**5)).profile(
            grid
        )
    )
    if law.name in ("exponential", "laplace"):
        width = max(1, round(test.step_sum / max(abs(test.drift(p_phi)), 0.02)))
        assert_is_a_profile(
            privacy_profile(*expected_law(Adjacent(Setting(test, law, p_phi), (entry,)), width).probabilities(), grid)
        )


THEIRS = """
import json, math, sys
from dp_accounting.pld import privacy_loss_distribution

laws, grid = json.load(sys.stdin)
logs = [{k: math.log(x) for k, x in enumerate(p) if x > 0} for p in laws]
ends = [
    [
        privacy_loss_distribution.from_two_probability_mass_functions(
            logs[1 - upper], logs[upper], pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        ).get_delta_for_epsilon(grid)
        for pessimistic in (False, True)
    ]
    for upper in (0, 1)
]
print(json.dumps([[list(end) for end in pair] for pair in ends]))
"""


@pytest.mark.parametrize("law", [Exponential.private(PAPER, 0.05), Laplace(5.9, 2.03), Truncated(2.0, 2.03, -3.5)])
def test_profiles_are_those_of_dp_accounting(law: Exponential | Laplace | Truncated) -> None:
    """Its privacy-loss distribution, rounded down and rounded up, brackets ours in both directions.

    In a process of its own: importing it hands the standard error stream to a logger that closes it.
    """
    found = marginal_law(Adjacent(Setting(PAPER, law, 0.84)))
    grid = np.array([0.0, 0.02, 0.05, 0.1, 0.3])
    ours = privacy_profile(found.p1.ravel(), found.p0.ravel(), grid)
    given_ = json.dumps([[found.p1.ravel().tolist(), found.p0.ravel().tolist()], grid.tolist()])
    done = subprocess.run([sys.executable, "-c", THEIRS], input=given_, capture_output=True, text=True, check=True)
    for (low, high), delta in zip(json.loads(done.stdout), (ours.delta_1_over_0, ours.delta_0_over_1), strict=True):
        assert np.all(np.array(low) - 1e-9 <= delta)
        assert np.all(delta <= np.array(high) + 1e-9)
        assert np.max(np.array(high) - np.array(low)) < 3e-4  # the bracket says something


@pytest.mark.parametrize(("given_", "word"), [([], "at least one"), ([-0.1], "negative"), ([math.nan], "negative")])
def test_a_grid_must_hold_epsilons(given_: list[float], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        epsilon_grid(0.1, given_)


def test_a_huge_epsilon_leaves_what_the_other_cannot_reach() -> None:
    profile = privacy_profile(np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5]), np.array([0.0, 1000.0]))
    assert profile.delta_1_over_0.tolist() == [0.5, 0.5]
