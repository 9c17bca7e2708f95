"""What the paper's text says and what is true (docs/errata.md), where no other test shows it. Exact, no sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsmc_audit import Exponential, NoNoise, Sprt, exact_error, exit_law, worst_errors
from dpsmc_audit.setting import Setting
from dpsmc_audit.tasks.paper import P_PHI, TABLE1, P
from experiments import counterexample

PAPER = Sprt(P, 0.01, 0.01)


def test_algorithm_1_as_listed_returns_h_null_after_one_sample() -> None:
    """Its thresholds are exchanged: the first is below lambda after one sample, whatever the sample."""
    low, high = PAPER.alpha / (1 - PAPER.alpha), (1 - PAPER.alpha) / PAPER.alpha
    for step in (PAPER.s_plus, -PAPER.s_minus):
        assert low <= math.exp(step) < high
    assert np.flatnonzero(exit_law(PAPER, P_PHI).null)[0] + 1 == math.ceil(PAPER.b_up / PAPER.s_plus)


def test_the_likelihood_ratio_grows_under_h_null_and_falls_under_h_alt() -> None:
    assert PAPER.drift(P + PAPER.delta) > 0 > PAPER.drift(P - PAPER.delta)


@pytest.mark.parametrize(("p", "tau"), [(0.5, math.inf), (P, 557.0)])
def test_example_2_goes_on_for_ever_only_at_one_half(p: float, tau: float) -> None:
    test = Sprt(p, 0.01, 0.01)
    one, zero = counterexample.stops(test, counterexample.alternating(test), 20_000)
    assert one == counterexample.just_below(test) + 1
    assert zero == tau
    assert counterexample.stops(test, counterexample.balancing(test), 20_000)[1] == math.inf


def test_the_far_bound_is_hit_with_the_exponent_of_p_phi() -> None:
    """exp(-B) is right where a hypothesis begins (but for overshoot); at 0.84 it is off by 23 orders of magnitude."""
    begins, paper = (exact_error(Setting(PAPER, NoNoise(), p_phi)).value for p_phi in (P + PAPER.delta, P_PHI))
    assert begins == pytest.approx(math.exp(-PAPER.b_low), rel=0.04)
    assert paper == pytest.approx(math.exp(-PAPER.exponent(P_PHI) * PAPER.b_low), rel=0.5)
    assert paper < 1e-23 * math.exp(-PAPER.b_low)


def test_a_satisfied_first_sample_shortens_the_rest_by_one_step_up() -> None:
    """E[tau | x_1 = 1] = E[tau] + 1 - s_plus / D; the proofs have some of these signs the other way round."""
    free, one, zero = (exit_law(PAPER, P_PHI, 0.0, forced).mean for forced in ({}, {1: 1}, {1: 0}))
    assert one - free == pytest.approx(1 - PAPER.s_plus / PAPER.drift(P_PHI), abs=1e-3)
    assert zero - free == pytest.approx(1 + PAPER.s_minus / PAPER.drift(P_PHI), abs=1e-3)


def two_sided(center: float, epsilon: float, sensitivity: float) -> np.ndarray:
    """The law of the exponential mechanism lemma on the naturals, as far as they matter."""
    weight = np.exp(-epsilon * np.abs(np.arange(40_000) - center) / sensitivity)
    return np.asarray(weight / weight.sum())


def test_the_exponential_mechanism_lemma_needs_more_than_epsilon_and_less_than_twice() -> None:
    one, zero = (exit_law(PAPER, P_PHI, 0.0, {1: bit}).mean for bit in (1, 0))
    laws = [two_sided(center, 0.01, PAPER.expected_sensitivity(P_PHI)) for center in (one, zero)]
    worst = float(np.abs(np.log(laws[0] / laws[1])).max())
    assert worst == pytest.approx(0.0146, abs=5e-5)
    assert 0.01 < counterexample.worst_log_ratio(0.01) < 0.02


def test_algorithm_2_never_stops_early_and_the_lemmas_law_does() -> None:
    """L >= 0: no average lies below that of Algorithm 1, where the two-sided law has a quarter of its mass."""
    mean = exit_law(PAPER, P_PHI).mean
    assert float(Exponential.private(PAPER, 0.01).quantile(0.0)) == 0.0
    assert two_sided(mean, 0.01, PAPER.expected_sensitivity(P_PHI))[: math.ceil(mean)].sum() == pytest.approx(
        0.267, abs=5e-4
    )


def test_algorithm_2_exceeds_alpha_with_coarse_steps_and_hardly_any_noise() -> None:
    """And keeps far below it at the paper's parameters."""
    coarse = Sprt(0.9, 0.09, 0.1208)
    worst = worst_errors(coarse, Exponential.private(coarse, 1000.0)).fn
    assert worst.value == pytest.approx(0.1267, abs=5e-5)
    assert coarse.alpha < worst.value - worst.error
    shares = []
    for alpha, delta, epsilon in TABLE1:
        test = Sprt(P, delta, alpha)
        found = worst_errors(test, Exponential.private(test, epsilon))
        shares.append(max(found.fp.value, found.fn.value) / alpha)
    assert max(shares) == pytest.approx(0.333, abs=1e-3)


def test_a_satisfied_sample_makes_h_alt_less_likely() -> None:
    """The output-sensitivity lemma has exp(-B + s_plus) for it, and that is the larger of its two numbers."""
    one, zero = (exit_law(PAPER, P + PAPER.delta, 0.0, {1: bit}).alt.sum() for bit in (1, 0))
    assert one < zero
    assert one == pytest.approx(math.exp(-PAPER.b_low - PAPER.s_plus), rel=0.05)
    assert zero == pytest.approx(math.exp(-PAPER.b_low + PAPER.s_minus), rel=0.05)


def test_the_standard_error_of_the_papers_p_phi() -> None:
    assert math.sqrt(P_PHI * (1 - P_PHI) / 10_000) == pytest.approx(0.0037, abs=5e-5)
