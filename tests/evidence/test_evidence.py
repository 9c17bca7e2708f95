"""Intervals for a probability and for a mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, t

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.intervals import (
    check_confidence,
    clopper_pearson,
    lower_ends,
    mean_interval,
    student_quantile,
    upper_ends,
)


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


@given(st.integers(1, 500), st.floats(0.001, 0.999), st.floats(1e-6, 0.4))
def test_each_end_is_missed_with_at_most_its_level(runs: int, p: float, level: float) -> None:
    """By exact summation over all outcomes."""
    every = np.arange(runs + 1)
    low, high = lower_ends(every, runs, level), upper_ends(every, runs, level)
    chance = binom.pmf(every, runs, p)
    assert chance[low > p].sum() <= level * (1 + 1e-9)
    assert chance[high < p].sum() <= level * (1 + 1e-9)


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1e-5, 0.4))
def test_one_sided_ends_are_those_of_the_interval(runs: int, share: float, level: float) -> None:
    seen = np.array([round(share * runs)])
    interval = clopper_pearson(int(seen[0]), runs, 1.0 - 2.0 * level)
    assert lower_ends(seen, runs, level)[0] == pytest.approx(interval[0], rel=1e-8, abs=1e-15)
    assert upper_ends(seen, runs, level)[0] == pytest.approx(interval[1], rel=1e-8)
