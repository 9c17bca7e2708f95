"""The numbers of docs/scaling.md are those of the study, and the study is what it says it is."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from benchmarks import pairs
from dpsmc_audit.evidence.claims import Dp
from dpsmc_audit.evidence.power import finds
from experiments import scaling
from tests.support.documents import TOP

ROWS = pd.read_csv(scaling.RESULTS)
PAGE = (TOP / "docs" / "scaling.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("epsilon", [0.1, 0.01])
def test_runs_needed_are_recomputed(epsilon: float) -> None:
    laws = scaling.laws_of_tau(epsilon)
    oracle, runs = scaling.oracle(laws, epsilon), scaling.runs_needed(laws, epsilon)
    (row,) = ROWS[ROWS["epsilon"] == epsilon].to_dict("records")
    assert oracle == pytest.approx(row["oracle"], rel=1e-4)
    assert runs == pytest.approx(row["runs"], rel=0.005)
    claim = Dp(epsilon).points
    assert finds(laws, claim, 2 * runs, scaling.LEVEL, scaling.CELLS)
    assert not finds(laws, claim, round(1.96 * runs), scaling.LEVEL, scaling.CELLS)
    assert oracle < runs < 10 * oracle


def test_the_oracle_knows_randomised_response() -> None:
    """Growth by hand: 3:1 answers, claim ln 2."""
    growth = 2.0 * (0.75 * math.log(0.75 * 1.5) + 0.25 * math.log(0.25 * 3.0))
    laws = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    assert scaling.oracle(laws, math.log(2.0)) == pytest.approx(math.log(100.0) / growth)
    assert scaling.oracle(laws, math.log(2.0)) == pytest.approx(pairs.oracle(_pair(laws)))


def _pair(laws: tuple[np.ndarray, np.ndarray]) -> pairs.Pair:
    return pairs.Pair("", lambda x, runs, rng: np.zeros(runs), *laws, claim=Dp(math.log(2.0)), level=0.01)


def test_the_page_quotes_the_study() -> None:
    table = re.findall(r"^\| (0\.\d+) \|(.*)\|$", PAGE, flags=re.M)
    assert len(table) == len(ROWS)
    for (epsilon, rest), row in zip(table, ROWS.to_dict("records"), strict=True):
        oracle, runs, samples, nanoseconds, sent = (float(cell) for cell in rest.split("|"))
        assert float(epsilon) == row["epsilon"]
        for shown, value, digits in (
            (oracle, row["oracle"], 2),
            (runs, row["runs"], 2),
            (samples, row["samples"], 9),
            (nanoseconds, row["nanoseconds_per_run"], 9),
            (sent, row["bytes_per_block"], 2),
        ):
            assert shown == (round(value) if digits == 9 else float(f"{value:.{digits - 1}e}"))


@pytest.mark.parametrize(("share", "epsilon"), [(0.01, 0.01), (0.1, 0.1), (0.1, 0.01)])
def test_a_ratio_just_above_the_claim_takes_many_runs(share: float, epsilon: float) -> None:
    """Also more than 2^31 of them."""
    assert scaling.event_runs(share, epsilon) * share * epsilon**2 == pytest.approx(5000, rel=0.05)


def test_costs_follow_from_the_study() -> None:
    (row,) = ROWS[ROWS["epsilon"] == 0.01].to_dict("records")
    for runs, hours, blocks, sent in re.findall(
        r"^\| (1e\d+) \| ([\d.]+) \| (\S+) \| (\S+) \| 0.2 GB \|$", PAGE, flags=re.M
    ):
        number = float(runs)
        assert float(hours) == pytest.approx(2 * number * row["nanoseconds_per_run"] * 1e-9 / 3600, rel=0.02)
        assert float(blocks) == pytest.approx(number / 65536, rel=0.02)
        assert float(sent) == pytest.approx(number / 65536 * row["bytes_per_block"], rel=0.02)
