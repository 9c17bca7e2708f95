from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.calibration import MECHANISMS, mechanism_named, private
from dpsmc_audit.mechanisms import Exponential, Law, Mechanism, Truncated
from dpsmc_audit.sprt import Sprt
from tests.support.strategies import mechanisms, sprts

cases = sprts().flatmap(lambda test: st.tuples(st.just(test), mechanisms(test)))
shares = st.lists(st.floats(1e-9, 1 - 1e-9), min_size=1, max_size=40)


@given(cases, shares)
def test_survival_is_the_complement_of_the_quantile(case: tuple[Sprt, Mechanism], u: list[float]) -> None:
    """P(L >= quantile(u)) >= 1 - u >= P(L > quantile(u)), with equality where the law has no atom."""
    _, law = case
    tail = law.survival(law.quantile(u))
    assert np.all(tail <= 1 - np.array(u) + 1e-9)
    if law.atoms is None:
        np.testing.assert_allclose(tail, 1 - np.array(u), rtol=1e-6)


@given(cases)
def test_survival_falls_from_one(case: tuple[Sprt, Mechanism]) -> None:
    _, law = case
    lowest = float(law.quantile(1e-13))
    tail = law.survival(np.linspace(lowest - 1, lowest + 50, 200))
    assert tail[0] == pytest.approx(1, abs=1e-11)
    assert np.all(np.diff(tail) <= 0)


@given(cases, shares)
def test_a_draw_does_not_depend_on_its_neighbours(case: tuple[Sprt, Mechanism], u: list[float]) -> None:
    _, law = case
    together = law.quantile(np.array(u))
    np.testing.assert_allclose([float(law.quantile(np.array([x]))[0]) for x in u], together, rtol=1e-13)


@given(cases)
def test_atoms_are_all_there_is(case: tuple[Sprt, Mechanism]) -> None:
    """Where L takes few values, they add up to its survival function."""
    _, law = case
    if law.atoms is not None:
        for x in (-1.0, 0.0, 1.5, 4.0):
            assert sum(share for value, share in law.atoms if value > x) == pytest.approx(
                float(law.survival(x)), abs=1e-11
            )


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_sampler_follows_the_survival_function(name: str) -> None:
    """Kolmogorov-Smirnov at level 1e-4, seed fixed."""
    law = mechanism_named(name, Sprt(0.73, 0.01, 0.01), 0.05)
    draws = np.sort(law.quantile(np.random.default_rng(20).random(20_000)))
    empirical = 1 - np.searchsorted(draws, draws, side="right") / draws.size
    assert np.max(np.abs(empirical - law.survival(draws))) < 2.23 / np.sqrt(draws.size)


def test_algorithm_2_has_the_papers_rate() -> None:
    test = Sprt(0.73, 0.01, 0.01)
    assert Exponential.private(test, 0.01).rate == pytest.approx(0.01 / (np.log(0.74 / 0.72) + np.log(0.28 / 0.26)))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_a_private_mechanism_needs_a_positive_epsilon(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        mechanism_named("exponential", Sprt(0.73, 0.01, 0.01), epsilon)
    assert mechanism_named("none", Sprt(0.73, 0.01, 0.01), epsilon).name == "none"


def test_an_unknown_mechanism_is_named_with_the_known_ones() -> None:
    with pytest.raises(ParameterError, match="none, exponential, laplace, truncated, law, got gaussian"):
        mechanism_named("gaussian", Sprt(0.73, 0.01, 0.01), 1.0)


@pytest.mark.parametrize(
    ("distribution", "arguments", "word"),
    [
        (None, {}, "needs mechanism.distribution"),
        ("gama", {"a": 2.0}, "a distribution of scipy.stats, got gama"),
        ("describe", {}, "a distribution of scipy.stats, got describe"),
        ("gamma", {}, r"law gamma\(\)"),
        ("gamma", {"a": -1.0}, "domain"),
        ("norm", {"mean": 1.0}, "mean"),
    ],
)
def test_a_law_that_is_none_is_named(distribution: str | None, arguments: dict[str, float], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        mechanism_named("law", Sprt(0.73, 0.01, 0.01), 1.0, distribution, arguments)


@pytest.mark.parametrize("law", [Law.of("poisson", mu=3.0, loc=0.5), Law.of("dlaplace", a=1.0, loc=-0.25)])
def test_atoms_lie_where_the_law_is_moved_to(law: Law) -> None:
    assert law.atoms is not None
    assert sum(share for _, share in law.atoms) == pytest.approx(1, abs=1e-11)


def test_a_law_without_room_is_refused() -> None:
    with pytest.raises(ParameterError, match="coin would decide every run"):
        mechanism_named("law", Sprt(0.73, 0.01, 0.01), 1.0, "norm", {"loc": -100.0})


@pytest.mark.processor
@pytest.mark.parametrize(("alpha", "delta", "epsilon"), [(0.01, 0.01, 0.01), (0.05, 0.03, 0.05), (0.1, 0.1, 1.0)])
def test_truncated_noise_is_as_long_as_algorithm_2_or_longer(alpha: float, delta: float, epsilon: float) -> None:
    test = Sprt(0.73, delta, alpha)
    law = private(Truncated, test, epsilon)
    assert law.mean >= test.step_sum / epsilon * (1 - 1e-9)
    assert test.no_room < law.lowest < 0
    draws = law.quantile(np.random.default_rng(2).random(200_000))
    assert draws.mean() == pytest.approx(law.mean, abs=5 * draws.std() / np.sqrt(200_000))


def test_a_frozen_distribution_is_taken_as_it_is() -> None:
    frozen = stats.gamma(2.0, 1.0, scale=3.0)
    law = Law.frozen(frozen)
    x = np.linspace(-1, 40, 50)
    np.testing.assert_array_equal(law.survival(x), frozen.sf(x))
    assert Law.frozen(stats.poisson(3.0)).atoms is not None
