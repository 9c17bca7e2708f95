"""DP-SPRT: against the authors' package, its exact laws against runs, and its audit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from dpsprt.core.algorithms import dp_sprt_laplace
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit import audit_mechanism
from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.mechanisms import Exponential, Laplace, Mechanism, NoNoise, Truncated
from dpsmc_audit.observers.informed.law import given_sequence
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.zoo.dpsprt import ZETA_S, DpSprt, S
from experiments import dpsprt as study
from tests.support.statistics import chi_square

PUBLISHED = study.PUBLISHED
RESULTS = study.TOP / "experiments" / "results" / "dpsprt.csv"


@st.composite
def dpsprts(draw: st.DrawFn) -> DpSprt:
    mu0 = draw(st.floats(0.05, 0.6))
    mu1 = draw(st.floats(mu0 + 0.05, 0.95))
    levels = st.floats(0.001, 0.2)
    return DpSprt(mu0, mu1, draw(levels), draw(levels), draw(st.floats(0.1, 5.0)))


def test_the_constant_is_zeta_of_the_exponent() -> None:
    """By the sum up to N and the integral beyond it, with its first correction."""
    n = np.arange(1.0, 100_001.0)
    tail = n[-1] ** (1 - S) / (S - 1) - 0.5 * n[-1] ** -S
    assert float((n**-S).sum()) + tail == pytest.approx(ZETA_S, abs=2e-6)


@given(dpsprts(), st.floats(0.0, 1.0), st.integers(0, 2**31))
@settings(max_examples=40)
def test_with_the_packages_noise_it_decides_as_the_package(test: DpSprt, p: float, seed: int) -> None:
    """Same data, same noise: same tau, same decision (on the package's own trajectories)."""
    data = (np.random.default_rng(seed).random(600) < p).astype(int)
    decision, tau, info = dp_sprt_laplace(data, test.mu0, test.mu1, test.alpha, test.beta, test.epsilon, seed)
    steps = np.arange(1, 601)
    y, z = info["laplace_noise1"] * steps, info["laplace_noise2"] * steps
    low, high = test.thresholds(600)
    noisy = np.cumsum(data) + y
    up, down = noisy >= high + z, noisy <= low - z
    stopped = np.flatnonzero(up | down)
    if stopped.size == 0:
        assert decision == 0
        return
    assert tau == stopped[0] + 1
    assert decision == (1 if up[stopped[0]] else -1)


def test_the_packages_runs_follow_the_exact_law() -> None:
    """2000 runs of the package on one sequence, by chi-square at level 1e-6."""
    bits = study.climbing(PUBLISHED, 0.9, 20, 0, 900)
    law = PUBLISHED.on(bits, 1).law(int(bits[0]))
    runs = [dp_sprt_laplace(bits, 0.3, 0.7, 0.05, 0.05, 1.0, seed)[:2] for seed in range(2000)]
    decision, tau = np.array(runs).T
    assert chi_square(tau, (decision == 1).astype(int), law[1], law[0]) > 1e-6


@given(
    dpsprts(),
    st.lists(st.integers(0, 1), min_size=5, max_size=60),
    st.booleans(),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.integers(0, 1),
)
@settings(max_examples=20, derandomize=True)
def test_runs_on_a_sequence_follow_the_exact_law(
    test: DpSprt, bits: list[int], shared: bool, noise: float, x: int
) -> None:
    """Any variant, short sequences with large noise, by chi-square at level 1e-6."""
    made = replace(test.with_noise(noise), shared=shared, correction=0.2)
    given_bits = made.on(np.array(bits), 1 + len(bits) // 2)
    law = given_bits.law(x)
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert law.min() >= -1e-12
    tau, decision = given_bits(x, 4000, np.random.default_rng(1))
    assert chi_square(tau, decision, law[1], law[0]) > 1e-6


@pytest.mark.parametrize("p", [0.3, 0.6, 0.7])
def test_fresh_runs_follow_the_exact_law(p: float) -> None:
    """By chi-square at level 1e-6; and the programme agrees with the given-sequence law averaged over sequences."""
    test = replace(PUBLISHED, correction=0.3)
    law = test.law(p)
    tau, decision = test.runs(p, 20_000, np.random.default_rng(2))
    assert chi_square(tau, decision, law[1], law[0]) > 1e-6


def test_the_law_on_fresh_samples_is_the_average_over_all_sequences() -> None:
    """Six samples, all 64 sequences: P(tau = n, o) for n below 6; large noise and bounds nearby, the hardest case."""
    test = DpSprt(0.3, 0.6, 0.2, 0.2, 4.0, correction=0.05)
    fresh, p = test.law(0.4), 0.4
    mean = np.zeros((2, 6))
    for number in range(64):
        bits = np.array([number >> k & 1 for k in range(6)])
        mean += p ** bits.sum() * (1 - p) ** (6 - bits.sum()) * test.on(bits, 1).law(int(bits[0]))
    assert fresh[:, :5] == pytest.approx(mean[:, :5], abs=2e-6)
    assert mean[:, :5].sum() > 0.3  # it is about something


def test_quadrature_is_fine_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the panels change no probability by more than is stated: shared noise, independent noise, fresh runs."""
    near = replace(PUBLISHED, correction=0.05)
    bits = study.climbing(near, 0.9, 20, 0, 100)
    apart = replace(near, shared=False)
    laws: list[tuple[Callable[[], np.ndarray], float]] = [
        (partial(near.on(bits, 1).law, 1), 1e-6),
        (partial(apart.on(bits, 1).law, 1), 1e-6),
        (partial(near.law, 0.6), 5e-6),
    ]
    for law, stated in laws:
        coarse = law()
        with monkeypatch.context() as finer:
            finer.setattr("dpsmc_audit.zoo.dpsprt._PANELS", 192)
            assert law() == pytest.approx(coarse, abs=stated)


@given(dpsprts(), st.lists(st.integers(0, 1), min_size=30, max_size=30), st.integers(1, 30), st.booleans())
@settings(max_examples=15, derandomize=True)
def test_the_proof_holds_on_every_outcome(test: DpSprt, bits: list[int], entry: int, shared: bool) -> None:
    """epsilon bounds every exact ratio as published; with independent noises on the thresholds, 3/4 of it."""
    made = replace(test, shared=shared, correction=0.1)
    given_bits = made.on(np.array(bits), entry)
    one, zero = given_bits.law(1).ravel(), given_bits.law(0).ravel()
    solid = (one > 1e-5) & (zero > 1e-5)
    assert np.abs(np.log(one[solid] / zero[solid])).max(initial=0.0) <= (1.0 if shared else 0.75) * test.epsilon + 1e-3


def test_verdicts_on_a_good_sequence() -> None:
    """10^5 runs of the published test and of one with a tenth of its noise, on sequences the study found."""
    bits = study.climbing(PUBLISHED, 0.95, 10, 0)
    assert audit_mechanism(PUBLISHED.on(bits, 1), 1.0, runs=100_000).verdict == "consistent"
    weak = PUBLISHED.with_noise(0.1)
    found = audit_mechanism(weak.on(study.climbing(weak, 1.0, 20, 0), 1), 1.0, runs=100_000, early=False)
    assert found.verdict == "violated"
    assert found.epsilon_lower > 4.0
    half = PUBLISHED.with_noise(0.5)
    assert audit_mechanism(half.on(study.climbing(half, 0.95, 50, 0), 1), 1.0, runs=100_000).verdict == "violated"


def test_the_committed_study() -> None:
    """What it says of each variant, with the exact ratio computed anew for its sequence."""
    rows = pd.read_csv(RESULTS).set_index("mechanism")
    verdicts = {name: rows.loc[f"DP-SPRT, {name}", "verdict"] for name in study.VARIANTS}
    assert list(verdicts.values()) == ["consistent", "violated", "consistent", "violated"]
    for name, test in study.VARIANTS.items():
        row = rows.loc[f"DP-SPRT, {name}"]
        share, stay, last = (float(word.strip("s,;")) for word in str(row.sequence).split()[1::2][:3])
        entry = int(str(row.sequence).split()[-1])
        given_bits = test.on(study.climbing(test, share, int(stay), int(last)), entry)
        one, zero = (given_bits.law(x).ravel() for x in (1, 0))
        assert study.best_ratio(one, zero, study.FLOOR) == pytest.approx(row.exact_ratio, rel=1e-6)
        solid = (one > 1e-9) & (zero > 1e-9)
        assert row.epsilon_lower <= np.abs(np.log(one[solid] / zero[solid])).max()
    assert rows.loc["DP-SPRT, as published", "samples"] == pytest.approx(study.mean_of(PUBLISHED.law(0.7)), rel=1e-9)
    assert rows.loc["Algorithm 2", "exact_ratio"] == math.inf


def test_barrier_runs_on_a_sequence_follow_the_informed_law() -> None:
    test = Sprt(0.5, 0.2, 0.05)
    made: dict[str, Mechanism] = {}
    made["none"], made["exponential"] = NoNoise(), Exponential.private(test, 1.0)
    made |= {"truncated": private(Truncated, test, 1.0), "laplace": private(Laplace, test, 1.0)}
    for kind, mechanism in made.items():
        bits = np.random.default_rng(3).integers(0, 2, 400)
        law = given_sequence(test, mechanism, bits, [1])
        sampler = study.BarrierOnSequence(test, mechanism, bits, 1)
        for x, p in ((1, law.p1), (0, law.p0)):
            tau, decision = sampler(x, 5000, np.random.default_rng(4))
            size = int(law.tau.max())
            exact = np.zeros((2, size))
            np.add.at(exact, (np.where(law.decision < 0, 1, law.decision), law.tau - 1), p)
            assert chi_square(tau, decision, exact[1], exact[0]) > 1e-6, kind


@pytest.mark.parametrize(
    ("change", "word"),
    [({"mu0": 0.7}, "mu0 < mu1"), ({"alpha": 0.0}, "alpha"), ({"epsilon": 0.0}, "epsilon"),
     ({"query_scale": math.nan}, "query_scale")],
)  # fmt: skip
def test_impossible_tests_are_named(change: dict[str, float], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        replace(PUBLISHED, **change)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="entry"):
        PUBLISHED.on(np.ones(5, int), 6)
    with pytest.raises(ParameterError, match="0 or 1"):
        PUBLISHED.on(np.full(5, 2), 1)
