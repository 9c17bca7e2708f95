from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.sprt import Sprt
from tests.support.strategies import probabilities, sprts


@given(sprts())
def test_steps_are_the_log_likelihood_ratios_of_one_sample(test: Sprt) -> None:
    up, down = test.p + test.delta, test.p - test.delta
    assert test.s_plus == pytest.approx(math.log(up / down), rel=1e-9)
    assert test.s_minus == pytest.approx(math.log((1 - down) / (1 - up)), rel=1e-9)


def test_one_level_gives_the_symmetric_bounds_of_the_paper() -> None:
    test = Sprt(0.73, 0.01, 0.05)
    assert test.b_up == test.b_low == pytest.approx(math.log(0.95 / 0.05))


@given(sprts())
def test_two_levels_give_walds_bounds(test: Sprt) -> None:
    assert math.exp(test.b_up) == pytest.approx((1 - test.fp) / test.fn)
    assert math.exp(-test.b_low) == pytest.approx(test.fp / (1 - test.fn))
    assert test.b_up > 0
    assert test.b_low > 0


@given(sprts(), probabilities)
def test_exponent_makes_the_walk_a_martingale(test: Sprt, p_phi: float) -> None:
    assume(abs(test.drift(p_phi)) > 1e-6)
    h = test.exponent(p_phi)
    assert math.copysign(1, h) == math.copysign(1, test.drift(p_phi))
    assert p_phi * math.exp(-h * test.s_plus) + (1 - p_phi) * math.exp(h * test.s_minus) == pytest.approx(1, abs=1e-9)


@given(sprts())
def test_exponent_is_one_where_the_hypotheses_begin(test: Sprt) -> None:
    assert test.exponent(test.p + test.delta) == pytest.approx(1, abs=1e-6)
    assert test.exponent(test.p - test.delta) == pytest.approx(-1, abs=1e-6)


@given(sprts(apart=False))
def test_walds_approximation_meets_its_own_levels(test: Sprt) -> None:
    assert test.wald(test.p + test.delta).null_probability == pytest.approx(1 - test.alpha, rel=1e-6)
    assert test.wald(test.p - test.delta).null_probability == pytest.approx(test.alpha, rel=1e-4)


@given(sprts(), st.floats(-1e-7, 1e-7))
def test_walds_approximation_is_continuous_through_zero_drift(test: Sprt, shift: float) -> None:
    balanced = test.s_minus / test.step_sum
    at, near = test.wald(balanced), test.wald(balanced + shift)
    assert near.samples == pytest.approx(at.samples, rel=1e-2)
    assert near.null_probability == pytest.approx(at.null_probability, abs=1e-3)


def test_expected_sensitivity_at_the_papers_parameters() -> None:
    assert Sprt(0.73, 0.01, 0.01).expected_sensitivity(0.84) == pytest.approx(9.097, abs=5e-4)
    assert math.isinf(Sprt(0.5, 0.1, 0.1).expected_sensitivity(0.5))


@pytest.mark.parametrize("p_phi", [0.0, 1.0])
def test_certain_samples(p_phi: float) -> None:
    wald = Sprt(0.73, 0.01, 0.01).wald(p_phi)
    assert wald.null_probability == p_phi
    assert wald.samples > 0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 0.5}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"alpha_fp": 0.7}, "alpha_fp"),
        ({"alpha_fn": -0.1}, "alpha_fn"),
        ({"delta": 0.0}, "delta"),
        ({"delta": -0.01}, "delta"),
        ({"delta": math.inf}, "delta"),
        ({"delta": 0.27}, "delta"),
        ({"delta": 1e-10}, "delta"),
        ({"p": 0.005}, "p"),
        ({"p": math.nan}, "p"),
    ],
)
def test_impossible_parameters_are_named(change: dict[str, float], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        dataclasses.replace(Sprt(0.73, 0.01, 0.01), **change)


def test_p_phi_is_a_probability() -> None:
    with pytest.raises(ParameterError, match="p_phi"):
        Sprt(0.73, 0.01, 0.01).drift(1.5)
