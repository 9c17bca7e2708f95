"""The published numbers, and how far the exact ones are from them."""

from __future__ import annotations

import math

import pytest

from dpsmc_audit import Exponential, Sprt, exact_mean, exact_sd, simulate
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Setting
from dpsmc_audit.tasks.paper import P_PHI, TABLE1, P, compare

EXACT = {
    (0.01, 0.01, 0.01): 1322.747,
    (0.01, 0.01, 0.05): 594.959,
    (0.01, 0.03, 0.01): 1053.807,
    (0.01, 0.03, 0.05): 321.851,
    (0.05, 0.01, 0.01): 1174.808,
    (0.05, 0.01, 0.05): 447.021,
    (0.05, 0.03, 0.01): 1004.352,
    (0.05, 0.03, 0.05): 272.395,
}
"""Computed by other code than ours."""

rows = pytest.mark.parametrize(("alpha", "delta", "epsilon"), sorted(TABLE1))


@rows
def test_exact_means_of_table_1(alpha: float, delta: float, epsilon: float) -> None:
    test = Sprt(P, delta, alpha)
    exact = exact_mean(Setting(test, Exponential.private(test, epsilon), P_PHI))
    assert exact.value == pytest.approx(EXACT[alpha, delta, epsilon], abs=0.01)
    assert exact.error < 0.01


@rows
def test_sampled_means_of_table_1(alpha: float, delta: float, epsilon: float) -> None:
    """Within four standard errors of the exact mean, at the paper's 10^4 runs and the default seed."""
    test = Sprt(P, delta, alpha)
    law = Exponential.private(test, epsilon)
    result = simulate(Setting(test, law, P_PHI), 10_000, sampling=Sampling(seed=1))
    assert abs(result.samples - EXACT[alpha, delta, epsilon]) < 4 * exact_sd(Setting(test, law, P_PHI)).value / 100
    assert result.accuracy == 1.0
    assert 0 < result.exact.error.value < 1.5e-7


@pytest.mark.parametrize(
    ("row", "distance"),
    [((0.01, 0.01, 0.05), 5.0), ((0.05, 0.01, 0.01), -5.4)],
)
def test_two_rows_of_the_paper_disagree(row: tuple[float, float, float], distance: float) -> None:
    alpha, delta, epsilon = row
    test = Sprt(P, delta, alpha)
    assert compare(Setting(test, Exponential.private(test, epsilon), P_PHI), epsilon)["distance"] == pytest.approx(
        distance, abs=0.06
    )


def test_the_other_rows_agree_within_their_noise() -> None:
    for alpha, delta, epsilon in sorted(set(TABLE1) - {(0.01, 0.01, 0.05), (0.05, 0.01, 0.01)}):
        test = Sprt(P, delta, alpha)
        distance = compare(Setting(test, Exponential.private(test, epsilon), P_PHI), epsilon)["distance"]
        assert distance is not None
        assert abs(distance) < 2.5


def test_no_single_p_phi_explains_the_table() -> None:
    """Around the best fitting p_phi some row is always more than three standard errors away."""
    for p_phi in (0.836, 0.837, 0.838, 0.839, 0.84, 0.841):
        worst = 0.0
        for (alpha, delta, epsilon), row in TABLE1.items():
            test = Sprt(P, delta, alpha)
            law = Exponential.private(test, epsilon)
            gap = abs(row.samples - exact_mean(Setting(test, law, p_phi)).value) - 5
            worst = max(worst, gap / (exact_sd(Setting(test, law, p_phi)).value / math.sqrt(10_000)))
        assert worst > 3


def test_a_row_the_paper_does_not_have() -> None:
    test = Sprt(P, 0.02, 0.01)
    assert set(compare(Setting(test, Exponential.private(test, 0.01), P_PHI), 0.01).values()) == {None}
