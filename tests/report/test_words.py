"""What the pages say of small numbers and of ratios: only 0 is shown as 0, and a log ratio is called one."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit import Exponential, Laplace, NoNoise, Sprt, marginal_law
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.phrases import brief
from dpsmc_audit.report.bins import Bin, Bins, bins_of
from dpsmc_audit.report.charts import say_bin
from dpsmc_audit.report.columns import OBSERVERS, decimals
from dpsmc_audit.report.html import render
from dpsmc_audit.report.multiples import panels
from dpsmc_audit.report.page_sweep import sort_key
from dpsmc_audit.report.profile_chart import Curve, slider_data
from dpsmc_audit.report.scales import brief_delta
from dpsmc_audit.report.tables import as_text
from dpsmc_audit.setting import Adjacent, Setting
from tests.support import reports
from tests.support.documents import README, TOP

PAPER = Sprt(0.73, 0.01, 0.01)
LAW = Exponential.private(PAPER, 0.01)
positive = st.floats(5e-324, 1e15)


@given(positive, st.integers(1, 6))
def test_no_positive_number_is_shown_as_zero(value: float, digits: int) -> None:
    assert float(brief(value, digits).replace(",", "")) > 0.0
    assert float(brief(-value, digits).replace(",", "")) < 0.0
    for spec in (".1f", ".4f", ".4g"):
        assert float(decimals(value, spec)) > 0.0
    shown = brief_delta(value, digits)
    assert (shown == "below 1e-9") == (value <= 1e-9)
    assert shown == "below 1e-9" or float(shown.replace(",", "")) > 0.0


def test_zero_stays_zero() -> None:
    assert (brief(0.0), brief_delta(0.0), decimals(0.0, ".4f")) == ("0", "0", "0.0000")
    assert (brief(3.1e-9), brief(3.14159e-30, 4), decimals(3.1e-9, ".4f")) == ("3.1e-09", "3.142e-30", "3.1e-09")


def law_page(folder: Path, epsilon: float) -> reports.Made:
    """The page of one released result at the paper's parameters, where the first bins are rare."""
    found = audit(Setting(PAPER, Exponential.private(PAPER, epsilon), 0.84), epsilon, "marginal", engine="exact")
    return reports.written(folder, found, reports.parameters("marginal", "exact", epsilon=epsilon))


def test_bins_of_a_page_show_their_probabilities(tmp_path: Path) -> None:
    """Each bin in the page says what its rows in histogram.csv add up to: to three digits, and 0 only for 0."""
    made = law_page(tmp_path, 1.0)
    page, bins = made.page(), bins_of(made.audit)
    assert bins is not None
    said = re.findall(r'data-say="[\d,.]+ to [\d,.]+: probability (\S+) with x = 1, (\S+) with x = 0', page)
    assert len(said) == 2 * len(bins.bins)
    with (tmp_path / "histogram.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["decision"] == "H_null"]
    for each, shown in zip(bins.bins, said, strict=False):
        mine = [row for row in rows if each.lo <= float(row["lo"]) < each.hi]
        truth = [math.fsum(float(row[name]) for row in mine) for name in ("p1", "p0")]
        assert [float(text) for text in shown] == pytest.approx(truth, rel=5.1e-3, abs=0.0)
    rare = [each for each in bins.bins if 0.0 < max(each.one, each.zero) < 1e-9]
    assert rare
    assert "probability 0 with x = 1, 0 with x = 0" not in page


def test_what_is_not_drawn_is_no_zero_either() -> None:
    """The other decision, rare or not, and what lies beyond the picture."""
    test = Sprt(0.73, 0.03, 0.01)
    found = audit(Setting(test, Exponential.private(test, 0.1), 0.84), 0.1, "marginal", engine="exact")
    bins = bins_of(found)
    assert bins is not None
    notes = " ".join(bins.notes)
    shares = re.findall(r"probability (\S+) \(x = 1\), (\S+) \(x = 0\)", notes)
    assert len(shares) == 2
    assert all(0.0 < float(share) < 0.02 for pair in shares for share in pair), notes
    assert float(shares[0][0]) < 1e-9


def test_an_exact_bin_beyond_the_tolerance_is_not_called_within() -> None:
    """Where its numerical error leaves open whether it is."""
    rare = Bin(168.0, 174.0, 1.26e-12, 3.55e-14, 3.57, *(math.nan,) * 3, False, False)
    text = say_bin(rare, Bins((rare,), "tau", ()), 1.0, "x")
    assert text == (
        "168 to 174: probability 1.26e-12 with x = 1, 3.55e-14 with x = 0; ln ratio +3.57:"
        " beyond ±1, but not by more than its numerical error"
    )
    near = Bin(168.0, 174.0, 0.2, 0.1, 0.01 + 1e-12, *(math.nan,) * 3, False, False)
    assert say_bin(near, Bins((near,), "tau", ()), 0.01, "x").endswith("ln ratio +0.01: within ±0.01")


def test_small_deltas_of_a_profile_are_no_none() -> None:
    curve = Curve("expected", "Averages", "", (0.0, 0.01), (0.5, 7e-14), (2e-10, 0.0))
    said = slider_data([curve], 0.01)["observers"][0]["said"]
    assert said == [
        "Averages: δ = 0.5 towards x = 1, below 1e-9 towards x = 0",
        "Averages: δ below 1e-9 towards x = 1, none towards x = 0",
    ]


def test_small_deltas_and_errors_of_a_table_are_no_zero() -> None:
    row = {
        "privacy_delta_at_epsilon": 7.1e-14,
        "privacy_delta_at_2_epsilon": 0.0,
        "fp_worst": 2.345e-6,
        "fn_worst": 0.0,
    }
    shown = {column.heading: column.show(row | {"verdict": "certified"}) for column in OBSERVERS}
    assert (shown["privacy delta at eps"], shown["privacy delta at 2 eps"], shown["error"]) == ("<1e-9", "0", "2.3e-06")
    assert sorted(["0.5", "<1e-9", "0"], key=lambda cell: float(sort_key(cell))) == ["0", "<1e-9", "0.5"]


def test_small_shares_of_an_estimate_are_no_zero() -> None:
    row = {"task": "estimate", "model": "python", "samples_drawn": 10**6, "seconds_per_sample": 1e-6, "alpha": 0.01}
    row |= {"delta": 0.01, "epsilon": 0.01, "p": 0.73, "entry": 1, "alpha_fp": None, "alpha_fn": None}
    text = as_text([row | {"p_phi": 1e-5, "p_phi_low": 3.2e-6, "p_phi_high": 0.0123}])
    assert "1e-05 [3.2e-06, 0.0123]" in text


def test_small_deltas_of_a_sweep_are_no_zero() -> None:
    given: dict[str, Any] = {"task": "audit"}
    rows = [given | {"epsilon": x, "privacy_delta_at_epsilon": d} for x, d in ((0.1, 0.01), (0.2, 7e-14), (0.3, 0.0))]
    (panel,) = panels(rows, ["epsilon"])
    titles = re.findall(r"<title>([^<]*)</title>", panel.chart)
    assert titles == ["epsilon = 0.1: 0.01", "epsilon = 0.2: below 1e-9", "epsilon = 0.3: 0"]
    assert panel.notes == ("Zero, none or below 1e-9: drawn at the bottom (2).",)


@pytest.mark.parametrize("page", [README, TOP / "docs" / "observers.md"], ids=lambda path: path.stem)
def test_the_log_ratio_of_one_released_time_is_called_one(page: Path) -> None:
    """Its numbers are those of the exact law."""
    text = " ".join(page.read_text(encoding="utf-8").split())
    pattern = (
        r"tau <= (\d+) \(probability 0\.01\)[^:]*?log ratio is (\d+) times the claimed epsilon"
        r" \(the ratio itself is ([\d.]+), where e\^epsilon is ([\d.]+)\)"
    )
    ((until, times, ratio, allowed),) = re.findall(pattern, text)
    law = marginal_law(Adjacent(Setting(PAPER, LAW, 0.84)))
    one, zero = (float(p[:, : int(until)].sum()) for p in (law.p1, law.p0))
    assert f"{one:.2f}" == "0.01"
    assert (ratio, allowed) == (f"{one / zero:.2f}", f"{math.exp(0.01):.2f}")
    assert int(times) == math.floor(math.log(one / zero) / 0.01)


@pytest.mark.parametrize("page", [README, *sorted((TOP / "docs").glob("*.md"))], ids=lambda path: path.stem)
def test_no_page_calls_a_multiple_of_epsilon_a_ratio(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert not re.findall(r"(?<!log )(?<!ln )ratio (?:is|of) (?:about )?[\d.]+ times (?:the claimed )?epsilon", text)


def test_verdicts_speak_of_log_ratios(tmp_path: Path) -> None:
    """A claim of epsilon is about the log ratio of a bin or an outcome."""
    mechanism = private(Laplace, reports.TEST, reports.EPSILON)
    held = reports.expected(tmp_path / "expected", mechanism=mechanism, bin_width=100)
    assert "Every bin's log ratio is within the claimed epsilon = 0.1" in render(
        "guarantee.html", audit=held.audit
    ).replace("&#39;", "'")
    held = reports.informed(tmp_path / "informed", np.ones(3000, int), NoNoise(), entry=3000)
    assert "Every outcome's log ratio is within the claimed epsilon = 0.1" in render(
        "guarantee.html", audit=held.audit
    ).replace("&#39;", "'")
