"""The guessing observer: ceilings, the best guess, and the simulated attack against the exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from dpsmc_audit.evidence.intervals import clopper_pearson
from dpsmc_audit.evidence.profiles import total_variation
from dpsmc_audit.mechanisms import Exponential, Laplace
from dpsmc_audit.observers.expected.law import expected_law
from dpsmc_audit.observers.marginal.law import marginal_law
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.tasks.paper import P_PHI
from experiments import attack

RESULTS = attack.TOP / "experiments" / "results" / "attack.csv"


def committed(mechanism: str, notion: str, epsilon: float) -> pd.Series:
    rows = pd.read_csv(RESULTS)
    return rows[(rows.mechanism == mechanism) & (rows.notion == notion) & (rows.epsilon == epsilon)].iloc[0]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_the_ceilings_are_those_of_randomised_response(epsilon: float) -> None:
    truth = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    one, zero = np.array([truth, 1.0 - truth]), np.array([1.0 - truth, truth])
    assert attack.success_ceiling(epsilon) == pytest.approx(truth, rel=1e-14)
    assert attack.advantage_ceiling(epsilon) == pytest.approx(total_variation(one, zero), rel=1e-12)
    assert attack.success(attack.advantage_ceiling(epsilon)) == pytest.approx(truth, rel=1e-14)


def test_no_rule_beats_the_likelihood_ratio() -> None:
    rng = np.random.default_rng(1)
    one, zero = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
    rules = (np.array(rule) for rule in itertools.product((0, 1), repeat=8))
    best = max(0.5 * float(np.sum(np.where(rule == 1, one, zero))) for rule in rules)
    assert attack.success(total_variation(one, zero)) == pytest.approx(best, abs=1e-14)


def test_the_surest_early_stop_by_hand() -> None:
    one, zero = np.array([[0.004, 0.02, 0.5], [0.0, 0.003, 0.473]]), np.array([[0.0, 0.01, 0.4], [0.0, 0.03, 0.56]])
    found = attack.surest_early(one, zero, floor=0.01)
    assert (found.last, found.side, found.name) == (2, 1, "tau <= 2 and H_null")
    assert found.posterior == pytest.approx(0.024 / 0.034)


@pytest.mark.processor
def test_the_advantage_at_the_papers_setting() -> None:
    law = marginal_law(Adjacent(Setting(attack.TEST, Exponential.private(attack.TEST, 0.01), P_PHI)))
    early = attack.surest_early(law.p1, law.p0)
    assert round(total_variation(law.p1.ravel(), law.p0.ravel()), 5) == 0.00822
    assert early.name == "tau <= 365"
    assert round(math.log(early.p1 / early.p0), 4) == 0.2549


@pytest.mark.parametrize("epsilon", [0.02, 1.1])
def test_the_simulated_attack_succeeds_as_often_as_computed(epsilon: float) -> None:
    """Four intervals at 99.99 %: a right programme fails for less than one seed in 2500."""
    mechanism = Exponential.private(attack.TEST, epsilon)
    law = marginal_law(Adjacent(Setting(attack.TEST, mechanism, P_PHI)))
    early = attack.surest_early(law.p1, law.p0)
    found = attack.simulated_attack(mechanism, law, early, 400_000, seed=3)
    low, high = clopper_pearson(found.right, found.runs, 0.9999)
    assert low <= attack.success(total_variation(law.p1.ravel(), law.p0.ravel())) <= high
    assert low > 0.5
    low, high = clopper_pearson(found.early_ones, found.early, 0.9999)
    assert low <= early.posterior <= high


@pytest.mark.parametrize("mechanism", [Exponential.private(attack.TEST, 0.3), Laplace(center=1.0, scale=0.2)])
def test_one_inversion_serves_every_mechanism(mechanism: Exponential | Laplace) -> None:
    law = expected_law(Adjacent(Setting(attack.TEST, mechanism, P_PHI)), bin_width=7, upto=1e-3)
    reliable = law.edges < law.edges[-1] - 100.0
    edges = law.edges[reliable].astype(np.int64)
    assert edges[-1] > 450
    for bins, tail in zip(attack.expected_bins(mechanism), (law.tail_1, law.tail_0), strict=True):
        mine = 1.0 - np.cumsum(np.append(0.0, bins))[edges]
        assert np.allclose(mine, tail[reliable], rtol=0.0, atol=1e-10)


def test_beyond_the_last_bin_all_bins_speak_for_zero() -> None:
    """So that nothing is lost by taking them together."""
    one, zero = attack.expected_bins(Laplace(center=29.57, scale=attack.TEST.step_sum / 0.01))
    assert np.all(one[-200:] < zero[-200:])


@pytest.mark.processor
@pytest.mark.parametrize("epsilon", [0.01, 2.0])
def test_the_committed_rows_are_recomputed(epsilon: float) -> None:
    mechanism = Exponential.private(attack.TEST, epsilon)
    for found in (attack.marginal(mechanism, epsilon), attack.expected(mechanism, epsilon)):
        row = committed("exponential", "marginal" if "simulated_runs" in found else "expected", epsilon)
        for name, value in found.items():
            if isinstance(value, float):
                assert row[name] == pytest.approx(value, rel=1e-6), name
            else:
                assert row[name] == value, name


def test_the_committed_informed_rows_agree_with_fewer_sequences() -> None:
    """The first 200 of the same sequences; the numbers of different sequences lie close together."""
    found = attack.informed(Exponential.private(attack.TEST, 0.3), 0.3, sequences=200)
    assert found["advantage"] == pytest.approx(committed("exponential", "informed", 0.3).advantage, rel=0.01)


def test_what_the_figure_says() -> None:
    rows = pd.read_csv(RESULTS)
    paper, repair = rows[rows.mechanism == "exponential"], rows[rows.mechanism == "laplace"]
    assert len(rows) == 6 * len(attack.EPSILONS)
    assert paper[paper.notion != "marginal"].posterior_exceeds_2_epsilon.all()
    assert not repair.advantage_exceeds_2_epsilon.any()
    assert (rows.advantage_exceeds_epsilon == (rows.advantage_low > np.tanh(0.5 * rows.epsilon))).all()
