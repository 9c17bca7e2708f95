from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpsmc_audit.exact.fixed import exit_law
from dpsmc_audit.exact.ladder import Ladder
from dpsmc_audit.exact.walk import Steps
from dpsmc_audit.mechanisms import Exponential, Law, NoNoise
from dpsmc_audit.observers.expected.averages import forced_moments, output_sensitivity
from dpsmc_audit.observers.expected.edges import tails_between
from dpsmc_audit.observers.expected.first_entry import upcrossing
from dpsmc_audit.observers.expected.grid import by_grid
from dpsmc_audit.observers.expected.law import expected_law
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from tests.support.strategies import examples, sprts

PAPER = Sprt(0.73, 0.01, 0.01)
LAW = Exponential.private(PAPER, 0.01)


def test_the_papers_parameters() -> None:
    found = expected_law(Adjacent(Setting(PAPER, LAW, 0.84)), bin_width=140)
    one, zero = found.probabilities()
    assert found.edges[2] == 280
    assert one[2] == pytest.approx(0.009218, abs=1e-5)
    assert zero[2] == 0
    assert found.edges[4] == 560
    held = np.flatnonzero(one > 1e-9)[2:]
    assert held[0] == 4
    np.testing.assert_allclose(np.log(one[held] / zero[held]), -0.01, atol=1e-6)
    assert math.log(one[3] / zero[3]) == pytest.approx(-0.0048, abs=1e-4)
    assert (found.gap.start, found.gap.end) == pytest.approx((411.535, 420.633), abs=0.01)
    assert found.gap.mass == pytest.approx(0.00993, abs=1e-5)
    assert found.gap.integer == 420
    assert one.sum() == pytest.approx(1, abs=1e-12)


def test_the_staircase_is_located_to_the_last_step() -> None:
    """Just below the L found for an edge the exact mean is below the edge, just above it is not."""
    walk = Steps.of(PAPER, 0.84)
    for edge in (420.0, 560.0, 1400.0):
        barrier = float(upcrossing(Ladder.of(walk, PAPER.exponent(0.84), 40.0), np.array([edge - 1]))[0])
        excess = barrier + walk.up - PAPER.b_up
        below, above = (exit_law(PAPER, 0.84, excess + shift, {1: 1}).mean for shift in (-1e-8, 1e-8))
        assert below < edge <= above


@pytest.mark.parametrize(("p_phi", "epsilon"), [(0.84, 0.01), (0.84, 0.2), (0.6, 0.05)])
def test_the_grid_encloses_what_the_ladder_knows(p_phi: float, epsilon: float) -> None:
    law = Exponential.private(PAPER, epsilon)
    setting = Setting(PAPER, law, p_phi)
    found = expected_law(Adjacent(setting), bin_width=100)
    assert found.method == "ladder"
    reached = by_grid(setting, (1,), found.edges, float(law.quantile(1 - 1e-9)))
    for known, each in zip((found.one, found.zero), reached, strict=True):
        grid = tails_between(PAPER, law, found.edges, each)
        assert np.all(grid.low <= known.high)
        assert np.all(known.low <= grid.high)
        likely = known.value > 0.1
        assert np.max(grid.high[likely] - grid.low[likely]) < 1e-4


@given(sprts(finest=0.03), st.floats(0.05, 2.0), st.floats(0.1, 0.9), st.integers(1, 30))
@example(Sprt(0.22528098936032656, 0.042370440232915696, 0.1796875, None, 0.052734375), 1.0, 0.1, 20)
@settings(max_examples=examples(20))
def test_probabilities_are_those_of_many_l(test: Sprt, epsilon: float, p_phi: float, entry: int) -> None:
    """Against g_x at 300 quantiles of L: every tail within one quantile and the stated error."""
    law = Exponential.private(test, epsilon)
    shares = (np.arange(300) + 0.5) / 300
    assume(test.wald(p_phi, float(law.quantile(1.0 - 1e-4))).samples < 100_000)  # too many bins else
    found = expected_law(Adjacent(Setting(test, law, p_phi), (entry,)), bin_width=7, upto=1e-4)
    for tail, bit in ((found.tail_1, 1), (found.tail_0, 0)):
        values = np.array([forced_moments(test, p_phi, float(x), {entry: bit})[0] for x in law.quantile(shares)])
        off = 1 / 300 + found.tail_error
        for edge, share in zip(found.edges, tail, strict=True):  # averages within 1e-6 of an edge may be on either side
            assert np.mean(values >= edge * (1 + 1e-6)) - off <= share <= np.mean(values >= edge * (1 - 1e-6)) + off


@pytest.mark.parametrize("entry", [1, 50, 400])
def test_forced_moments_without_and_with_walds_identities(entry: int, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = [forced_moments(PAPER, 0.8, 2.0, {entry: bit}) for bit in (1, 0)]
    monkeypatch.setattr("dpsmc_audit.observers.expected.averages.CHEAP", 0.0)
    smooth = [forced_moments(PAPER, 0.8, 2.0, {entry: bit}) for bit in (1, 0)]
    for (mean, null), (approximate, share) in zip(exact, smooth, strict=True):
        assert approximate == pytest.approx(mean, rel=1e-3)
        assert share == pytest.approx(null, abs=1e-6)


def test_output_sensitivity_depends_on_the_distance_to_the_threshold() -> None:
    test = Sprt(0.73, 0.03, 0.05)
    law = Exponential.private(test, 0.05)
    assert output_sensitivity(Adjacent(Setting(test, law, 0.84))) == pytest.approx(6.8e-6, rel=0.01)
    assert output_sensitivity(Adjacent(Setting(test, law, 0.76))) == pytest.approx(0.0159, rel=0.01)


def test_without_noise_the_averages_are_two_points() -> None:
    found = expected_law(Adjacent(Setting(PAPER, NoNoise(), 0.84)), bin_width=140)
    one, zero = found.probabilities()
    assert (one[2], zero[3]) == (1, 1)
    assert found.gap.mass == 1


@pytest.mark.parametrize(("entry", "difference"), [(1, 9.097), (400, 4.904), (1000, 0.0)])
def test_the_gap_fades_with_the_entry(entry: int, difference: float) -> None:
    found = expected_law(Adjacent(Setting(PAPER, LAW, 0.84), (entry,)), bin_width=140)
    assert found.gap.end - found.gap.start == pytest.approx(difference, abs=6e-4)
    assert (found.gap.integer is None) == (entry == 1000)


def test_a_late_entry_shows_where_the_test_is_likely_to_stop() -> None:
    """n = 1000: no support gap, but averages around 1000 are likelier with x_n = 1; against a plain bisection."""
    found = expected_law(Adjacent(Setting(PAPER, LAW, 0.84), (1000,)), bin_width=140)
    one, zero = found.probabilities()

    def survival(edge: float, bit: int) -> float:
        low, high = 0.0, 30.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            below = exit_law(PAPER, 0.84, middle, {1000: bit}).mean < edge
            low, high = (middle, high) if below else (low, middle)
        return float(LAW.survival(high))

    tails = {bit: [survival(edge, bit) for edge in found.edges[6:10].tolist()] for bit in (1, 0)}
    plain = np.log(np.diff(tails[1]) / np.diff(tails[0]))
    low, high = (ends[6:9] for ends in found.log_ratio_ends())
    assert np.all((low <= plain + 1e-6) & (plain - 1e-6 <= high))
    assert np.all(high - low < 1e-3)
    assert math.log(one[7] / zero[7]) == pytest.approx(0.024, abs=5e-4)


def test_a_block_of_entries_is_looked_at_step_by_step() -> None:
    """Ten entries: averages are a staircase in L, and each edge is found by bisection; against 2000 quantiles of L."""
    test, entries = Sprt(0.6, 0.1, 0.05), tuple(range(1, 11))
    law = Law.of("gamma", a=2.0, scale=0.5 * test.step_sum)
    found = expected_law(Adjacent(Setting(test, law, 0.75), entries), bin_width=3)
    assert found.method == "bisection"
    for tail, bit in ((found.tail_1, 1), (found.tail_0, 0)):
        values = np.array(
            [
                forced_moments(test, 0.75, float(x), dict.fromkeys(entries, bit))[0]
                for x in law.quantile((np.arange(2000) + 0.5) / 2000)
            ]
        )
        counted = np.array([np.mean(values >= edge * (1 - 1e-6)) for edge in found.edges])
        assert np.max(np.abs(counted - tail)) <= 1 / 2000
    assert found.gap.integer is not None
    assert found.gap.below == pytest.approx(found.gap.mass, abs=1e-6)
