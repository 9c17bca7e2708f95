from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.averages import exact_error, exact_mean
from dpsmc_audit.exact.laws import _mixed_law, exact_law
from dpsmc_audit.exact.passage import convolved
from dpsmc_audit.exact.renewal import _renewed, renewal
from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from tests.support.statistics import chi_square
from tests.support.strategies import epsilons, examples, mechanisms, sprts

PAPER = Sprt(0.73, 0.01, 0.01)
entry_sets = st.sets(st.integers(1, 9), max_size=6)


def enumerated(test: Sprt, law: Mechanism, p_phi: float, forced: dict[int, int], length: int) -> np.ndarray:
    """P(tau = k, o) for k up to `length` by going through all sequences; rows H_null and H_alt."""
    choices = [(forced[k],) if k in forced else (0, 1) for k in range(1, length + 1)]
    bits = np.array(list(itertools.product(*choices)), bool)  # a row for each sequence
    free = [k not in forced for k in range(1, length + 1)]
    weight = np.prod(np.where(bits, p_phi, 1 - p_phi)[:, free], axis=1)[:, None]
    walk = np.cumsum(np.where(bits, test.s_plus, -test.s_minus), axis=1)
    above, below = walk - test.b_up, -walk - test.b_low
    began = float(law.survival(test.no_room))
    still = law.survival(np.maximum(np.maximum(above, below), test.no_room))
    running = np.minimum.accumulate(np.minimum(still, began), axis=1)
    stopped = -weight * np.diff(running, prepend=began, axis=1)
    found = np.array([stopped.sum(axis=0, where=above >= below), stopped.sum(axis=0, where=above < below)])
    found[:, 0] += 0.5 * (1.0 - began)
    return found


@given(st.data(), sprts(finest=0.08), st.floats(0.05, 0.95), entry_sets)
@settings(max_examples=examples(40), deadline=None)
def test_the_law_is_the_average_over_all_sequences(
    data: st.DataObject, test: Sprt, p_phi: float, entries: set[int]
) -> None:
    """Against an enumeration that knows neither renewal nor passage nor strata, within the stated error."""
    law = data.draw(mechanisms(test))
    forced = {entry: data.draw(st.integers(0, 1)) for entry in entries}
    exact, length = exact_law(Setting(test, law, p_phi), forced), 10
    expected = enumerated(test, law, p_phi, forced, length)
    null, alt = (np.pad(side, (0, length))[:length] for side in (exact.null, exact.alt))
    slack = 2 * exact.error + 2e-9
    assert np.max(np.abs(np.cumsum(null + alt) - np.cumsum(expected.sum(axis=0)))) <= slack
    if exact.scatter < 1e-3:
        assert np.max(np.abs(np.cumsum(null) - np.cumsum(expected[0]))) <= slack + exact.scatter


@given(st.data(), sprts(finest=0.03), st.floats(0.05, 0.95), st.sets(st.integers(1, 60), max_size=2))
@settings(max_examples=examples(60), derandomize=True, deadline=None)
def test_sampled_and_exact_laws_agree_for_every_mechanism(
    data: st.DataObject, test: Sprt, p_phi: float, entries: set[int]
) -> None:
    """Chi-square on (tau, o) at level 1e-6 a case, forced entries and coins included, p_phi on either side of p."""
    law, bit = data.draw(mechanisms(test)), data.draw(st.integers(0, 1))
    chosen = tuple(sorted(entries))
    exact = exact_law(Setting(test, law, p_phi), dict.fromkeys(chosen, bit))
    runs = 20_000 if exact.scatter < 1e-3 else 2_000
    drawn = draw_runs(Setting(test, law, p_phi), runs, entries=chosen, bit=bit, sampling=Sampling(seed=13))
    assert chi_square(drawn.tau, drawn.decision, exact.null, exact.alt) > 1e-6


@pytest.mark.parametrize("forced", [{}, {1: 1}, {1: 0}, {5: 0, 9: 1}, {60: 1}, {150: 0}])
@pytest.mark.parametrize(
    ("test", "epsilon", "p_phi"),
    [(PAPER, 0.05, 0.84), (PAPER, 0.05, 0.6), (Sprt(0.73, 0.03, 0.05), 0.2, 0.84), (Sprt(0.6, 0.05, 0.1), 0.3, 0.72)],
)
def test_renewal_and_passage_agree(test: Sprt, epsilon: float, p_phi: float, forced: dict[int, int]) -> None:
    """Two ways that share only the programme for fixed bounds: every P(tau > k) and every P(tau = k, o)."""
    law = Exponential.private(test, epsilon)
    records = renewal(Setting(test, law, p_phi))
    assert records is not None
    one, other = records.law(forced), _mixed_law(Setting(test, law, p_phi), forced)
    size = min(one.null.size, other.null.size)
    slack = one.error + other.error
    assert np.max(np.abs(one.survival()[:size] - other.survival()[:size])) <= slack
    for a, b in ((one.null, other.null), (one.alt, other.alt)):
        assert np.abs(a[:size] - b[:size]).sum() <= one.scatter + other.scatter + 1e-6


@pytest.mark.parametrize(("first", "last", "epsilon"), [(10, 30, 0.2), (12, 25, 0.2), (12, 25, 1.0), (10, 30, 1.0)])
def test_entries_that_lead_far_against_the_drift(first: int, last: int, epsilon: float) -> None:
    """Twenty zeros in a row take the walk to the far bound and beyond: against 3000 laws for fixed L."""
    from dpsmc_audit.exact.fixed import exit_law

    test, forced = Sprt(0.5, 0.1, 0.05), dict.fromkeys(range(first, last + 1), 0)
    law = Exponential.private(test, epsilon)
    exact = exact_law(Setting(test, law, 0.8), forced)
    assert exact.stopped.sum() == pytest.approx(1, abs=1e-6)
    tail = np.zeros(exact.null.size + 1)
    for x in law.quantile((np.arange(3000) + 0.5) / 3000):
        fixed = exit_law(test, 0.8, float(x), forced).survival()[: tail.size]
        tail[: fixed.size] += fixed / 3000
    assert np.max(np.abs(exact.survival() - tail)) <= exact.error + 1 / 3000


def test_both_decisions_have_the_same_length() -> None:
    exact = exact_law(Setting(Sprt(0.5, 0.11, 0.1), Law.of("uniform", loc=0.0, scale=2.0), 0.37), {1: 1, 2: 1, 3: 1})
    assert exact.null.shape == exact.alt.shape


@pytest.mark.parametrize(
    ("law", "finite"),
    [(Law.of("pareto", b=0.8, loc=-1.0), False), (Law.of("cauchy"), False), (Law.of("lognorm", s=1.0), True)],
)
def test_a_mean_that_does_not_exist_is_infinite(law: Law, finite: bool) -> None:
    mean = exact_mean(Setting(Sprt(0.73, 0.05, 0.05), law, 0.9))
    assert np.isfinite(mean.value) == finite


@pytest.mark.parametrize("entry", [200, 500, 1000])
def test_late_entries_by_renewal_are_those_of_many_l(entry: int) -> None:
    """Records before the entry have ladder steps of their own; against 1000 exact laws for fixed L."""
    from dpsmc_audit.exact.fixed import exit_law

    law = Exponential.private(PAPER, 0.05)
    for bit in (1, 0):
        exact = exact_law(Setting(PAPER, law, 0.84), {entry: bit})
        assert exact.method == "renewal"
        tail = np.zeros(exact.null.size + 1)
        for x in law.quantile((np.arange(1000) + 0.5) / 1000):
            fixed = exit_law(PAPER, 0.84, float(x), {entry: bit}).survival()[: tail.size]
            tail[: fixed.size] += fixed / 1000
        assert np.max(np.abs(exact.survival() - tail)) < 1 / 1000


@pytest.mark.parametrize("p_phi", [0.84, 0.62, 0.76])
@pytest.mark.parametrize("name", ["none", "exponential", "laplace", "truncated", "gamma", "poisson"])
def test_the_law_has_the_exact_mean_and_error(name: str, p_phi: float) -> None:
    test = Sprt(0.73, 0.03, 0.05, 0.02, 0.08)
    laws: dict[str, Mechanism] = {
        "none": NoNoise(),
        "exponential": Exponential.private(test, 0.2),
        "laplace": Laplace(3.0, 1.5),
        "truncated": Truncated(2.0, 1.5, -1.0),
        "gamma": Law.of("gamma", a=2.0, scale=1.0),
        "poisson": Law.of("poisson", mu=2.0),
    }
    exact = exact_law(Setting(test, laws[name], p_phi))
    mean, wrong = exact_mean(Setting(test, laws[name], p_phi)), exact_error(Setting(test, laws[name], p_phi))
    assert exact.mean == pytest.approx(mean.value, abs=mean.error + exact.error * exact.null.size)
    side = exact.alt if test.null_is_true(p_phi) else exact.null
    assert side.sum() == pytest.approx(wrong.value, abs=wrong.error + exact.scatter + exact.error + 1e-6)
    assert exact.stopped.sum() == pytest.approx(1, abs=exact.error + 1e-8)


@given(st.data(), sprts(finest=0.05), st.sampled_from([0.0, 1.0]), entry_sets)
@settings(max_examples=examples(30))
def test_certain_samples(data: st.DataObject, test: Sprt, p_phi: float, entries: set[int]) -> None:
    law = data.draw(mechanisms(test))
    forced = {entry: data.draw(st.integers(0, 1)) for entry in entries}
    exact = exact_law(Setting(test, law, p_phi), forced)
    expected = enumerated(test, law, p_phi, forced, 10)
    for side, row in ((exact.null, expected[0]), (exact.alt, expected[1])):
        np.testing.assert_allclose(np.pad(side, (0, 10))[:10], row, atol=1e-9)


@given(st.lists(st.floats(0, 1), min_size=5, max_size=60), st.lists(st.floats(0, 0.2), min_size=1, max_size=40))
def test_the_renewal_equation_is_solved_either_way(source: list[float], kernel: list[float]) -> None:
    """Term by term, and by Newton's inversion of the power series, forced by a limit of 0."""
    from dpsmc_audit.exact import renewal as module

    scaled = np.array(kernel) / max(1.1 * sum(kernel), 1.0)
    direct = _renewed(np.array(source), scaled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_DIRECT", 0.0)
        fast = _renewed(np.array(source), scaled)
    np.testing.assert_allclose(fast, direct, atol=1e-12)
    again = np.array(source) + np.concatenate([[0.0], convolved(scaled, direct)])[: len(source)]
    np.testing.assert_allclose(again, direct, atol=1e-12)


def test_without_drift_the_law_is_refused_where_it_is_too_dear() -> None:
    with pytest.raises(ParameterError, match="drift"):
        exact_law(Setting(PAPER, Exponential.private(PAPER, 0.01), 0.73))


@given(sprts(finest=0.08), epsilons, st.floats(0.1, 0.9))
@settings(max_examples=examples(15), deadline=None)
def test_an_error_that_is_stated_covers_a_finer_law(test: Sprt, epsilon: float, p_phi: float) -> None:
    """Strata against 1500 midpoints of L: P(tau > k) differs by no more than both can be wrong."""
    from dpsmc_audit.exact.fixed import exit_law

    law = Laplace(0.5 * test.step_sum / epsilon, test.step_sum / epsilon)
    exact = exact_law(Setting(test, law, p_phi), {1: 1})
    tail = np.zeros(exact.null.size + 1)
    for x in law.quantile((np.arange(1500) + 0.5) / 1500):
        fixed = np.ones(1) if x <= test.no_room else exit_law(test, p_phi, float(x), {1: 1}).survival()
        fixed = fixed[: tail.size]
        tail[: fixed.size] += fixed / 1500
    assert np.max(np.abs(exact.survival() - tail)) <= exact.error + 1 / 1500


def test_a_late_entry_leaves_the_renewal_as_it_was() -> None:
    test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    law = Exponential.private(test, 0.05)
    free, late = exact_law(Setting(test, law, 0.84)), exact_law(Setting(test, law, 0.84), {10**12: 0})
    assert late.method == "renewal"
    np.testing.assert_allclose(late.stopped, free.stopped, atol=1e-15)
