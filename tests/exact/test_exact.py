from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.fixed import ExitLaw, exit_law, walk_until_exit
from dpsmc_audit.exact.walk import Steps
from dpsmc_audit.sprt import Sprt
from tests.support.strategies import probabilities, sprts

PAPER = Sprt(0.73, 0.01, 0.01)


def enumerated(test: Sprt, p_phi: float, excess: float, length: int, forced: dict[int, int]) -> np.ndarray:
    """P(tau = k, o) for k <= length by going through every sequence of that length."""
    law = np.zeros((2, length))
    for bits in itertools.product((0, 1), repeat=length):
        if any(bits[entry - 1] != bit for entry, bit in forced.items() if entry <= length):
            continue
        probability = np.prod([p_phi if bit else 1 - p_phi for i, bit in enumerate(bits, 1) if i not in forced])
        ones = 0
        for k, bit in enumerate(bits, 1):
            ones += bit
            position = ones * test.s_plus - (k - ones) * test.s_minus
            if position >= test.b_up + excess or position <= -(test.b_low + excess):
                law[int(position > 0), k - 1] += probability
                break
    return law


@given(
    sprts(finest=0.05),
    probabilities,
    st.floats(0, 1),
    st.dictionaries(st.integers(1, 9), st.integers(0, 1), max_size=2),
)
@settings(max_examples=60)
def test_law_equals_enumeration_of_all_sequences(
    test: Sprt, p_phi: float, excess: float, forced: dict[int, int]
) -> None:
    law = exit_law(test, p_phi, excess, forced)
    expected = enumerated(test, p_phi, excess, 9, forced)
    padded = np.zeros((2, max(9, law.null.size)))
    padded[1, : law.null.size], padded[0, : law.alt.size] = law.null, law.alt
    np.testing.assert_allclose(padded[:, :9], expected, atol=1e-12)


@given(sprts(finest=0.02), st.floats(0.05, 0.95), st.floats(0, 3))
def test_law_is_complete_and_meets_walds_identity(test: Sprt, p_phi: float, excess: float) -> None:
    """``E[Lambda_tau] = D E[tau]``, the paper's stopping time property; overshoots stay below a step."""
    law = exit_law(test, p_phi, excess)
    assert law.null_probability + law.alt_probability == pytest.approx(1, abs=1e-10)
    up = law.null @ (test.b_up + excess + law.over_null)
    low = law.alt @ (test.b_low + excess + law.over_alt)
    assert up - low == pytest.approx(test.drift(p_phi) * law.mean, abs=1e-9)
    assert np.all((law.over_null >= 0) & (law.over_null < test.s_plus))
    assert np.all((law.over_alt >= 0) & (law.over_alt < test.s_minus))


@given(sprts(finest=0.02), st.floats(0.05, 0.95), st.integers(1, 60))
def test_forced_entries_average_to_the_free_law(test: Sprt, p_phi: float, entry: int) -> None:
    free, one, zero = (exit_law(test, p_phi, 0.0, forced) for forced in (None, {entry: 1}, {entry: 0}))
    size = max(law.null.size for law in (free, one, zero))

    def padded(law: ExitLaw) -> np.ndarray:
        return np.array([np.pad(side, (0, size - side.size)) for side in (law.null, law.alt)])

    mixed = p_phi * padded(one) + (1 - p_phi) * padded(zero)
    np.testing.assert_allclose(mixed, padded(free), atol=1e-12)


@given(sprts(finest=0.02), st.floats(0.05, 0.95), st.floats(0, 3))
def test_conjugate_walk_gives_the_rare_side(test: Sprt, p_phi: float, excess: float) -> None:
    h = test.exponent(p_phi)
    up, low = test.b_up + excess, test.b_low + excess
    direct = exit_law(test, p_phi, excess)
    conjugate = walk_until_exit(Steps.of(test, p_phi).conjugate(h), up, low)
    if h >= 0:
        tilted = conjugate.alt @ np.exp(-h * (low + conjugate.over_alt))
        assert tilted == pytest.approx(direct.alt_probability, rel=1e-6, abs=1e-12)
    else:
        tilted = conjugate.null @ np.exp(h * (up + conjugate.over_null))
        assert tilted == pytest.approx(direct.null_probability, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("excess", "mean"), [(0, 412.990986), (5, 861.143140), (20, 2205.474818), (60, 5790.391730)])
def test_means_at_the_papers_parameters(excess: float, mean: float) -> None:
    law = exit_law(PAPER, 0.84, excess)
    assert law.mean == pytest.approx(mean, abs=1e-6)
    assert law.mean_error < 1e-6


@pytest.mark.parametrize(("entry", "difference"), [(1, 9.097), (200, 9.097), (400, 4.904), (600, 0.089), (1000, 0.0)])
def test_the_effect_of_one_entry_fades_where_the_test_has_stopped(entry: int, difference: float) -> None:
    one, zero = (exit_law(PAPER, 0.84, 0.0, {entry: bit}) for bit in (1, 0))
    assert zero.mean - one.mean == pytest.approx(difference, abs=6e-4)


@pytest.mark.parametrize(("p_phi", "sensitivity"), [(0.84, 6.8e-6), (0.76, 0.0159)])
def test_output_sensitivity_is_not_zero_near_the_threshold(p_phi: float, sensitivity: float) -> None:
    """The paper's lemma has Delta_o about 0; it depends on how far p_phi is from p."""
    test = Sprt(0.73, 0.03, 0.05)
    one, zero = (exit_law(test, p_phi, 0.0, {1: bit}) for bit in (1, 0))
    assert one.null_probability - zero.null_probability == pytest.approx(sensitivity, rel=0.01)


def test_survival_keeps_small_tails() -> None:
    tail = exit_law(PAPER, 0.84).survival()
    assert tail[0] == pytest.approx(1, abs=1e-12)
    assert np.all(np.diff(tail) <= 0)
    assert 0 < tail[-1] < 1e-12


@pytest.mark.parametrize("arguments", [(0.84, -5.0, None), (1.2, 0.0, None), (0.84, 0.0, {0: 1}), (0.84, 0.0, {1: 2})])
def test_impossible_requests_are_refused(arguments: tuple[float, float, dict[int, int] | None]) -> None:
    with pytest.raises(ParameterError):
        exit_law(PAPER, *arguments)


def test_an_entry_that_no_walk_lives_to_see_changes_and_costs_nothing() -> None:
    test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    free, late = exit_law(test, 0.84), exit_law(test, 0.84, forced={10**12: 1})
    assert late.mean == pytest.approx(free.mean, rel=1e-12)
    assert late.null.size < 10_000
