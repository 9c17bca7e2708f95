from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, t

from dpsmc_audit.evidence import (
    TailCounts,
    _ends,
    check_confidence,
    clopper_pearson,
    delta_lower_bound,
    epsilon_lower_bound,
    mean_interval,
    student_quantile,
)
from dpsmc_audit.sprt import ParameterError


@given(st.integers(1, 300), st.floats(1e-6, 1 - 1e-6) | st.sampled_from([0.0, 1.0]), st.sampled_from([0.5, 0.9, 0.99]))
def test_clopper_pearson_covers_by_exact_summation(trials: int, truth: float, confidence: float) -> None:
    """The coverage at any truth, summed over all outcomes, is at least the confidence."""
    outcomes = np.arange(trials + 1)
    intervals = np.array([clopper_pearson(int(k), trials, confidence) for k in outcomes])
    covered = (intervals[:, 0] <= truth) & (truth <= intervals[:, 1])
    assert binom.pmf(outcomes, trials, truth)[covered].sum() >= confidence - 1e-9


@given(st.integers(1, 10**7), st.floats(0.51, 0.9999))
def test_student_quantile_equals_scipy(freedom: int, u: float) -> None:
    assert student_quantile(freedom, u) == pytest.approx(float(t.ppf(u, freedom)), rel=3e-7)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=50), st.floats(0.5, 0.999))
def test_mean_interval_from_integer_sums(values: list[int], confidence: float) -> None:
    interval = mean_interval(len(values), sum(values), sum(v * v for v in values), confidence)
    assert interval is not None
    half = t.ppf(0.5 * (1 + confidence), len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    assert interval[0] == pytest.approx(np.mean(values) - half, rel=1e-6, abs=1e-6)
    assert interval[1] == pytest.approx(np.mean(values) + half, rel=1e-6, abs=1e-6)


def test_one_observation_has_no_interval() -> None:
    assert mean_interval(1, 5, 25, 0.99) is None


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, float("nan")])
def test_confidence_is_a_level(confidence: float) -> None:
    with pytest.raises(ParameterError, match="confidence"):
        check_confidence(confidence)


def _tails(seen: np.ndarray, other: np.ndarray, top: int) -> TailCounts:
    """Both tails of two samples."""
    one, zero = (np.bincount(np.minimum(x, top), minlength=top + 1).cumsum()[:-1] for x in (seen, other))
    return TailCounts(np.append(one, seen.size - one), np.append(zero, other.size - zero), seen.size)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_bounds_keep_their_level_on_exactly_private_laws(epsilon: float) -> None:
    """Two-sided geometric noise is exactly epsilon-private: 1000 times 95 % bounds, at most 5 % + 3 sigma wrong.

    The event is the best of 40 tails, chosen on one half. Judged on the half that chose it, false alarms are several
    times as many.
    """
    rng, wrong, careless = np.random.default_rng(7), np.zeros(2, int), 0
    share = np.exp(-epsilon) if epsilon > 0 else 0.5
    for _ in range(1000):
        noise = rng.geometric(1 - share, (2, 2, 400)) - rng.geometric(1 - share, (2, 2, 400)) + 10
        samples = np.maximum(noise + np.array([0, 1 if epsilon > 0 else 0])[:, None, None], 0)
        first, second = (_tails(samples[1, half], samples[0, half], 20) for half in (0, 1))
        wrong[0] += epsilon_lower_bound(first, second, 0.95)[0] > epsilon
        wrong[1] += delta_lower_bound(first, second, epsilon, 0.95)[0] > 0
        careless += epsilon_lower_bound(second, second, 0.95)[0] > epsilon
    assert np.all(wrong <= 50 + 3 * np.sqrt(1000 * 0.05 * 0.95))
    assert careless >= 3 * wrong[0]
    assert careless > 10


def test_bounds_find_what_is_there() -> None:
    """floor(10 (q + Exp(1))): no epsilon holds; 10^5 a side say at least 8."""
    rng = np.random.default_rng(3)
    one, zero = (np.floor(10 * (q + rng.exponential(size=(2, 100_000)))).astype(int) for q in (0, 1))
    first, second = (_tails(one[half], zero[half], 100) for half in (0, 1))
    bound, _, turned = epsilon_lower_bound(first, second, 0.99)
    assert bound > 8
    assert not turned
    delta, _, _ = delta_lower_bound(first, second, 1.0, 0.99)
    assert 0.6 < delta <= 1 - np.exp(-1)


@given(st.integers(2, 500), st.floats(0.01, 0.99))
def test_each_end_is_missed_with_half_the_level(runs: int, p: float) -> None:
    """By exact summation over all outcomes."""
    every = np.arange(runs + 1)
    low, high = _ends(TailCounts(every, every, runs), 0.95)
    assert binom.pmf(every, runs, p)[low > p].sum() <= 0.025 + 1e-9
    assert binom.pmf(every, runs, p)[high < p].sum() <= 0.025 + 1e-9
