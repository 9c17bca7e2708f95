from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.fixed import exit_law
from dpsmc_audit.mechanisms import Exponential, Laplace, Mechanism, NoNoise
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.informed.audit import Informed
from dpsmc_audit.observers.informed.average import average, draw_pair
from dpsmc_audit.observers.informed.law import given_sequence, informed_law, lowest_record
from dpsmc_audit.observers.informed.sequences import oscillating_sequence, read_sequence
from dpsmc_audit.runs.execution import Execution
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.records import records_of
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from tests.support import twins
from tests.support.strategies import epsilons, probabilities, sprts

PAPER = Sprt(0.73, 0.01, 0.01)
STRATA = 300


@st.composite
def cases(draw: st.DrawFn) -> tuple[Sprt, Mechanism]:
    """L at 0, above 0, and on both sides with a real chance of the coin."""
    test, epsilon = draw(sprts(finest=0.05)), draw(epsilons)
    center = draw(st.floats(-1.0, 3.0))
    scale = test.step_sum / epsilon
    laws: list[Mechanism] = [NoNoise(), Exponential(1.0 / scale), Laplace(center, scale)]
    return test, draw(st.sampled_from(laws))


def by_strata(test: Sprt, mechanism: Mechanism, bits: list[int]) -> dict[tuple[int, int], float]:
    """Probabilities of (tau, decision) by running the plain test for the middle L of equally likely strata."""
    weights: dict[tuple[int, int], float] = defaultdict(float)
    for x in mechanism.quantile((np.arange(STRATA) + 0.5) / STRATA):
        if x <= -min(test.b_up, test.b_low):
            for o in (0, 1):
                weights[1, o] += 0.5 / STRATA
        else:
            weights[twins.walk(test, float(x), iter(bits), len(bits))] += 1.0 / STRATA
    return weights


@given(
    cases(),
    st.lists(st.integers(0, 1), min_size=4, max_size=40),
    st.sets(st.integers(1, 4), min_size=1, max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_probabilities_equal_an_enumeration_over_l(
    case: tuple[Sprt, Mechanism], bits: list[int], entries: set[int]
) -> None:
    """An outcome is an interval of L (and a half of the coin's): off by at most one stratum (and a half)."""
    law = given_sequence(*case, np.array(bits), list(entries))
    for bit, p in ((1, law.p1), (0, law.p0)):
        changed = [bit if k in entries else x for k, x in enumerate(bits, start=1)]
        seen = by_strata(*case, changed)
        found = dict(zip(zip(law.tau.tolist(), law.decision.tolist(), strict=True), p.tolist(), strict=True))
        for outcome in seen.keys() | found.keys():
            assert abs(found.get(outcome, 0.0) - seen[outcome]) <= 1.5 / STRATA + 1e-9


@given(cases(), probabilities, st.sets(st.integers(1, 50), min_size=1, max_size=3), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_laws_are_laws(case: tuple[Sprt, Mechanism], p_phi: float, entries: set[int], seed: int) -> None:
    """They sum to 1; delta falls, is convex in exp(epsilon), and lies between what is revealed and total variation."""
    law = draw_pair(
        Adjacent(Setting(*case, p_phi), tuple(sorted(entries))), 0, sampling=Sampling(seed=seed, max_steps=20_000)
    )
    assert min(law.p1.min(), law.p0.min()) >= 0.0
    assert law.p1.sum() == pytest.approx(1.0, abs=1e-9)
    assert law.p0.sum() == pytest.approx(1.0, abs=1e-9)
    grid = np.linspace(0.0, 4.0, 21)
    profile, x = law.profile(grid), np.exp(grid)
    for delta, reveal in ((profile.delta_1_over_0, law.reveal_1), (profile.delta_0_over_1, law.reveal_0)):
        slopes = np.diff(delta) / np.diff(x)
        assert np.all(slopes <= 1e-12)
        assert np.all(np.diff(slopes) >= -1e-12)
        assert np.all(delta >= reveal - 1e-12)
        assert np.all(delta <= law.total_variation + 1e-12)
    assert law.profile(np.array([law.worst_ratio + 1e-9])).at(np.inf) <= max(law.reveal_1, law.reveal_0) + 1e-8


def test_a_walk_on_its_bound_stops() -> None:
    """With L = 0 exactly a record of 0 ends the run, and one just below 0 does not count."""
    assert lowest_record(PAPER, NoNoise()) < 0.0
    records = records_of(PAPER, np.array([1, 0, 1]), -10.0)
    law = informed_law(PAPER, NoNoise(), records, records)
    assert law.decision.tolist() == [-1]
    assert law.tau.tolist() == [3]


def test_ties_are_no_outcomes() -> None:
    """At p = 1/2 a zero at the entry reaches its bound, with no excess, at 4: rounding leaves a trace of mass."""
    test = Sprt(0.5, 0.25, 0.1)
    law = given_sequence(test, Exponential(1.0), np.ones(50, np.int8), [1])
    assert 0.0 < law.p0[law.tau == 4].item() < 1e-8
    assert law.reveal_1 == pytest.approx(1.0 - 1.0 / 9.0, abs=1e-7)


def test_records_must_be_of_equally_many_samples() -> None:
    one, zero = (records_of(PAPER, np.ones(k, np.int8), 0.0) for k in (3, 4))
    with pytest.raises(ParameterError, match="same number"):
        informed_law(PAPER, NoNoise(), one, zero)


# --- random sequences -----------------------------------------------------------------------------------------------


def exact_reveal(delta: float, epsilon: float, p_phi: float, strata: int = 300) -> float:
    """Without records: an L in (0, c) reveals if the walk that passes b + L stays below b + c, where zeros begin."""
    test = Sprt(0.73, delta, 0.01)
    law, c = Exponential.private(test, epsilon), test.step_sum
    edges = np.linspace(0.0, c, strata + 1)
    weights = -np.diff(law.survival(edges))
    total = 0.0
    for weight, x in zip(weights, 0.5 * (edges[1:] + edges[:-1]), strict=True):
        exits = exit_law(test, p_phi, float(x), {1: int(p_phi > test.p)})
        mass, over = (exits.null, exits.over_null) if p_phi > test.p else (exits.alt, exits.over_alt)
        total += weight * mass[over < c - x].sum()
    return float(total)


@pytest.mark.parametrize(
    ("delta", "epsilon", "p_phi", "value", "within"),
    [(0.01, 0.01, 0.84, 0.0086, 0.0004), (0.03, 0.05, 0.84, 0.042, 0.002), (0.03, 0.05, 0.62, 0.034, 0.002)],
)
def test_revealed_on_average(delta: float, epsilon: float, p_phi: float, value: float, within: float) -> None:
    """One member is revealed, the other never; a seeded mean misses 4 standard errors with probability 1e-4."""
    test = Sprt(0.73, delta, 0.01)
    law = Exponential.private(test, epsilon)
    found = average(
        Adjacent(Setting(test, law, p_phi)), 1000, np.array([0.0, epsilon, 2 * epsilon]), sampling=Sampling(seed=1)
    )
    seen, never = (found.reveal_1, found.reveal_0) if p_phi > 0.73 else (found.reveal_0, found.reveal_1)
    assert never.mean == 0.0
    assert abs(seen.mean - value) < within
    exact = exact_reveal(delta, epsilon, p_phi)
    assert seen.low <= exact <= seen.high
    error = 0.5 * epsilon / np.sqrt(found.sequences)  # values lie in [0, epsilon]: sd at most half of it
    assert abs(seen.mean - exact) < 4 * error
    assert found.capped == 0
    assert found.total_variation.mean == pytest.approx(1 - np.exp(-epsilon), rel=0.02)
    assert found.worst.total_variation >= found.total_variation.mean
    again = draw_pair(Adjacent(Setting(test, law, p_phi)), found.worst_path, sampling=Sampling(seed=1))
    assert again.total_variation == found.worst.total_variation


def test_capped_sequences_are_counted_and_progress_is_told() -> None:
    told: list[int] = []
    law = Exponential.private(PAPER, 0.01)
    found = average(
        Adjacent(Setting(PAPER, law, 0.84)),
        3,
        np.array([0.0]),
        sampling=Sampling(seed=1, max_steps=500, execution=Execution(block_size=2, progress=told.append)),
    )
    assert found.capped == 3
    assert told == [2, 3]
    assert found.steps == 3 * 2 * 500


def test_noise_that_leaves_no_room_releases_the_coin() -> None:
    law = draw_pair(Adjacent(Setting(PAPER, Laplace(center=-100.0, scale=1.0), 0.84)), 0, sampling=Sampling(seed=1))
    assert law.tau.tolist()[:2] == [1, 1]
    assert law.decision.tolist()[:2] == [0, 1]
    np.testing.assert_allclose(law.p1[:2], 0.5)
    assert law.total_variation < 1e-12


# --- worst sequences ------------------------------------------------------------------------------------------------


@given(sprts(finest=0.02), st.none() | st.floats(0.2, 5.0), st.sampled_from([0.9, 0.995]))
@settings(max_examples=60, deadline=None)
def test_the_oscillating_sequence_reveals_everything(test: Sprt, epsilon: float | None, coverage: float) -> None:
    """Member 1 only returns H_null and member 0 only H_alt, never at the same time; they share running on."""
    law = NoNoise() if epsilon is None else Exponential.private(test, epsilon)
    bits = oscillating_sequence(test, law, coverage=coverage)
    found = given_sequence(test, law, bits, [1])
    stopped = found.decision >= 0
    assert found.total_variation >= coverage - 1e-9
    assert set(found.decision[(found.p1 > 0) & stopped].tolist()) == {1}
    assert set(found.decision[(found.p0 > 0) & stopped].tolist()) == {0}
    assert not np.any((found.p1 > 0) & (found.p0 > 0) & stopped)


@pytest.mark.parametrize("entries", [(1,), (40,), (3, 10, 11)])
def test_later_and_several_entries_are_revealed_too(entries: tuple[int, ...]) -> None:
    for law in (NoNoise(), Exponential.private(PAPER, 0.1)):
        bits = oscillating_sequence(PAPER, law, entries)
        assert given_sequence(PAPER, law, bits, entries).total_variation > 0.99


def test_two_sided_noise_hides_no_more_than_the_coin() -> None:
    law = Laplace(center=5.0, scale=1.0)
    coin = 1.0 - float(law.survival(PAPER.no_room))
    found = given_sequence(PAPER, law, oscillating_sequence(PAPER, law), [1])
    assert found.total_variation == pytest.approx(1.0 - coin, abs=2e-3)


def test_a_sequence_too_long_is_an_error() -> None:
    with pytest.raises(ParameterError, match="more than 1000 samples"):
        oscillating_sequence(PAPER, Exponential.private(PAPER, 0.01), longest=1000)


def test_the_audit_judges_the_worst_sequence_it_knows() -> None:
    law = Exponential.private(PAPER, 0.5)
    found = audit(Setting(PAPER, law, 0.84), 0.5, Informed(sequences=20))
    assert found.oscillating is not None
    assert found.delta_lower > 0.99
    assert found.worst == "a sequence made to be the worst"
    drawn = [
        draw_pair(Adjacent(Setting(PAPER, law, 0.84)), path, sampling=Sampling(seed=1)).total_variation
        for path in range(20)
    ]
    assert found.law.total_variation == max(drawn)


def test_a_sequence_that_ends_too_early_certifies_nothing() -> None:
    found = audit(
        Setting(PAPER, Exponential.private(PAPER, 0.5), 0.84), 0.5, Informed(sequence=np.array([1, 0, 1, 1, 0]))
    )
    assert found.verdict == "undecided"
    assert "outlast" in found.sentence
    assert found.law.running == (1.0, 1.0)


# --- sequences from files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1\n0\n1\n1\n", "1011", "1, 0, 1, 1\r\n", "\n10\n\n1 1\n", "\ufeff1\n0,1\n1"])
def test_sequences_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bits.txt"
    path.write_text(text, encoding="utf-8")
    assert read_sequence(path, [4]).tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n0\n2\n", r"line 3: .* got '2'"),
        ("1 0 x", r"line 1: .* got 'x'"),
        ("1\n-1\n", r"line 2: .* got '-'"),
        ("1\n١\n", "line 2"),  # a digit, but not one of ours
        ("", "no samples"),
        (" \n\n", "no samples"),
        ("101", "3 samples, but entry 4"),
    ],
)
def test_bad_sequences_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bits.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError, match=message) as raised:
        read_sequence(path, [4])
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_unreadable_sequences_are_named(tmp_path: Path) -> None:
    (tmp_path / "bits.bin").write_bytes(b"\xff\xfe\x00")
    for name, message in (("missing.txt", "cannot read"), ("", "cannot read"), ("bits.bin", "not a text file")):
        with pytest.raises(ParameterError, match=message):
            read_sequence(tmp_path / name, [1])


@pytest.mark.parametrize("entries", [(), (0,), (2, 2), (9,)])
def test_entries_that_cannot_be(entries: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="entr"):
        given_sequence(PAPER, NoNoise(), np.ones(5, np.int8), entries)
