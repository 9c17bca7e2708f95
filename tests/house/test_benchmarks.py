"""The benchmarks' page and the README say what results.json says, and the C twin is the kernel's."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import auditor_page, in_c, naive, page, pairs, plain, results
from benchmarks.__main__ import PARTS
from benchmarks.measure import LAW, P_PHI, TEST, Ratio
from dpsmc_audit import audit_samples
from dpsmc_audit.exact.averages import exact_mean, exact_sd
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Setting

TOP = Path(__file__).parents[2]
KNOWN = results.read()


def test_every_ratio_has_its_method_and_machine() -> None:
    for name, entry in KNOWN.items():
        assert set(entry) <= {"ratio", "method", "machine", "at_least", "at_most", "details"}, name
        assert entry["ratio"] > 0.0 or name.startswith("slope_"), name  # what does not grow has a slope of about 0
        assert entry["method"]
        assert re.match(r"\d+ cores, ", entry["machine"])


@pytest.mark.parametrize(
    "name",
    ["kernel_vs_c_scalar", "jumps_vs_c_jumps", "records_vs_brute", "records_vs_popcount", "threads_2_vs_1",
     "threads_2_vs_1_audit", "powertrain_vs_paper", "stl_vs_rtamt", "dpsprt_vs_package"],
)  # fmt: skip
def test_the_ratios_asked_for_are_there(name: str) -> None:
    assert name in KNOWN


@pytest.mark.parametrize(
    "name",
    ["kernel_vs_c_scalar", "jumps_vs_c_jumps", "records_vs_brute", "records_vs_popcount", "slope_runs", "slope_pairs",
     "slope_draws", "memory_100_times_the_runs"],
)  # fmt: skip
def test_what_is_asked_was_kept_when_it_was_measured(name: str) -> None:
    """Threads are measured by the clock on the wall, which a shared machine can spoil."""
    assert results.met(KNOWN[name])


def test_met_compares_with_what_is_asked() -> None:
    assert results.met(Ratio(1.0, "", at_least=0.9).as_dict("here"))
    assert not results.met(Ratio(1.0, "", at_least=1.1).as_dict("here"))
    assert not results.met(Ratio(1.0, "", at_most=0.9).as_dict("here"))
    assert results.met(Ratio(1.0, "").as_dict("here")) is None


def test_the_page_is_made_from_the_results() -> None:
    assert (TOP / "benchmarks" / "README.md").read_text(encoding="utf-8") == page.text(KNOWN)


def test_the_readme_says_what_was_measured() -> None:
    (shown,) = page.MARKS.findall((TOP / "README.md").read_text(encoding="utf-8"))
    assert shown == page.sentence(KNOWN)


def test_parts_are_functions() -> None:
    for module, function in PARTS.values():
        assert re.search(rf"^def {function}\(", (TOP / "benchmarks" / f"{module}.py").read_text(), flags=re.M)


@pytest.mark.skipif(in_c.compiler() is None, reason="no C compiler")
def test_the_jumps_in_c_are_those_of_the_kernel() -> None:
    tau, decision = in_c.binomial_jumps(2000, seed=7)
    drawn = draw_runs(Setting(TEST, LAW, P_PHI), 2000, sampling=Sampling(seed=7))
    assert np.array_equal(tau, drawn.tau)
    assert np.array_equal(decision, drawn.decision)


def test_numpy_and_python_sample_the_same_law() -> None:
    """Means within five standard errors of the exact one."""
    mean, spread = exact_mean(Setting(TEST, LAW, P_PHI)).value, exact_sd(Setting(TEST, LAW, P_PHI)).value
    for draw, runs in ((plain.pure_python, 200), (plain.numpy_blocks, 2000)):
        assert abs(np.mean(draw(runs, 3)) - mean) < 5 * spread / runs**0.5


def test_the_naive_check_refutes_a_mechanism_that_keeps_its_claim() -> None:
    one, zero = naive.geometric(1.0, 64, 1)
    assert naive.naive(one, zero, 1.0)
    assert audit_samples(one, zero, 1.0).verdict == "consistent"


@pytest.mark.parametrize(
    ("name", "runs"),
    [("gaussian_001", 16.4), ("gaussian_01", 19.2), ("laplace_001", 28.5), ("laplace_01", 35.2), ("pure_05", 76.7)],
)
def test_the_oracle_is_the_known_one(name: str, runs: float) -> None:
    assert pairs.oracle(pairs.small_pairs()[name]) == pytest.approx(runs, abs=0.06)


def test_samplers_draw_their_laws() -> None:
    """Shares of a few intervals within five standard errors, for the staircase, which is drawn from no table."""
    rng, runs = np.random.default_rng(1), 20_000
    staircase = pairs.unseen_pairs()["staircase"]
    x = np.linspace(-40.0, 41.0, pairs.POINTS)
    for member, law in ((1, staircase.one), (0, staircase.zero)):
        drawn = staircase.sampler(member, runs, rng)
        for low, high in ((-40.0, 0.0), (0.0, 0.3), (0.3, 0.9), (1.0, 1.4)):
            share = law[(x > low) & (x <= high)].sum()
            assert abs(np.mean((drawn > low) & (drawn <= high)) - share) < 5 * math.sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize(
    "name",
    [*pairs.small_pairs(), "geometric_1", "geometric_03", "algorithm2_005", "response", "laplace_125", "gaussian_pure",
     "release", "unseen_staircase", "unseen_vector", "bound_without_limit", "average_of_six"],
)  # fmt: skip
def test_the_auditor_was_measured(name: str) -> None:
    assert f"auditor_{name}" in KNOWN


def test_every_pair_has_a_row() -> None:
    told = page.text(KNOWN)
    for name, entry in KNOWN.items():
        if name.startswith("auditor_") and "pair" in entry.get("details", {}):
            assert f"| {entry['details']['pair']} |" in told
    assert not any("oracle" in entry.get("details", {}) for name, entry in KNOWN.items() if auditor_page.PEER in name)
