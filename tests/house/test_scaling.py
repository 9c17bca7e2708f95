"""The numbers of docs/scaling.md are those of the study, and the study is what it says it is."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from dpsmc_audit.evidence.bounds import shows
from experiments import scaling
from tests.support.documents import TOP

ROWS = pd.read_csv(scaling.RESULTS)
PAGE = (TOP / "docs" / "scaling.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("epsilon", [0.1, 0.01])
def test_runs_needed_are_recomputed(epsilon: float) -> None:
    runs, event, p1, p0 = scaling.runs_needed(epsilon)
    (row,) = ROWS[ROWS["epsilon"] == epsilon].to_dict("records")
    assert (runs, event) == (row["runs"], row["event"])
    assert (p1, p0) == pytest.approx((row["p1"], row["p0"]), rel=1e-5)
    judged = round(scaling.JUDGED * runs)
    assert shows(judged, p1, p0, epsilon, 0.0, 0.0025)
    assert not shows(round(0.98 * judged), p1, p0, epsilon, 0.0, 0.0025)


def test_the_page_quotes_the_study() -> None:
    table = re.findall(r"^\| ([\d.]+) \| (tau <= \d+) \|(.*)\|$", PAGE, flags=re.M)
    assert len(table) == len(ROWS)
    for (epsilon, event, rest), row in zip(table, ROWS.to_dict("records"), strict=True):
        p1, p0, runs, samples, nanoseconds, sent = (float(cell) for cell in rest.split("|"))
        assert (float(epsilon), event) == (row["epsilon"], row["event"])
        for shown, value, digits in (
            (p1, row["p1"], 2),
            (p0, row["p0"], 2),
            (runs, row["runs"], 2),
            (samples, row["samples"], 9),
            (nanoseconds, row["nanoseconds_per_run"], 9),
            (sent, row["bytes_per_block"], 2),
        ):
            assert shown == (round(value) if digits == 9 else float(f"{value:.{digits - 1}e}"))


@pytest.mark.parametrize(("share", "epsilon"), [(0.01, 0.01), (0.1, 0.1), (0.1, 0.01)])
def test_a_ratio_just_above_the_claim_takes_many_runs(share: float, epsilon: float) -> None:
    """Also more than 2^31 of them."""
    runs = scaling._runs_for(share, share * math.exp(-1.1 * epsilon), epsilon, 0.99)
    assert runs * share * epsilon**2 == pytest.approx(13_000, rel=0.1)


def test_costs_follow_from_the_study() -> None:
    (row,) = ROWS[ROWS["epsilon"] == 0.01].to_dict("records")
    for runs, hours, blocks, sent in re.findall(
        r"^\| (1e\d+) \| ([\d.]+) \| (\S+) \| (\S+) \| 0.2 GB \|$", PAGE, flags=re.M
    ):
        number = float(runs)
        assert float(hours) == pytest.approx(2 * number * row["nanoseconds_per_run"] * 1e-9 / 3600, rel=0.02)
        assert float(blocks) == pytest.approx(number / 65536, rel=0.02)
        assert float(sent) == pytest.approx(number / 65536 * row["bytes_per_block"], rel=0.02)
