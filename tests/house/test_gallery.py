"""The studies behind the gallery: reference results are recomputed in part, and pages quote them rightly."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from dpsmc_audit import Laplace, Sprt, marginal_law
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.tasks.paper import P_PHI
from experiments import __main__ as gallery
from experiments import observers, price, sensitivity
from tests.support.documents import TOP, blocks

PAGE = TOP / "docs" / "observers.md"


def _agrees(row: dict[str, object], results: pd.DataFrame, keys: tuple[str, ...]) -> None:
    mine = results
    for key in keys:
        mine = mine[mine[key] == row[key]]
    (stored,) = mine.to_dict("records")
    for name, value in row.items():
        assert stored[name] == (pytest.approx(value, rel=1e-6, abs=1e-11) if isinstance(value, float) else value), name


@pytest.mark.processor
@pytest.mark.parametrize(
    ("name", "entry"), [("none", 400), ("exponential", 1), ("exponential", 1000), ("truncated", 1)]
)
def test_rows_of_the_sensitivity_are_recomputed(name: str, entry: int) -> None:
    _agrees(sensitivity.row(name, entry), pd.read_csv(sensitivity.RESULTS), ("mechanism", "entry"))


def test_averaging_over_nodes_follows_the_exact_law() -> None:
    """Within the error that is stated; coarse steps, where nodes are cheap and exact laws are sharp."""
    test = Sprt(0.73, 0.05, 0.05)
    noise = private(Laplace, test, 0.3)
    halves, longer = sensitivity.averaged(test, noise, 4, 1000)
    both = halves.mean(axis=0)
    found = sensitivity.Effect(both[1], both[0], longer, tuple((half[1], half[0]) for half in halves), 0.0)
    law = marginal_law(Adjacent(Setting(test, noise, P_PHI), (4,)))
    one, zero = (sensitivity.fold(p[0], p[1], sensitivity.WIDTH) for p in (law.p1, law.p0))
    exact, close = (
        sensitivity.leakage(*laws, [0.3]).profile.at(0.3) for laws in ((one, zero), (found.one, found.zero))
    )
    assert close == pytest.approx(exact, abs=found.delta_error(0.3) + law.scatter)
    assert found.delta_error(0.3) < 0.1 * exact
    steps = np.arange(1, law.p1.shape[1] + 1)
    assert longer == pytest.approx(float((law.p0 - law.p1).sum(axis=0) @ steps), rel=1e-3)


@pytest.mark.processor
@pytest.mark.parametrize(("name", "epsilon"), [("none", 0.01), ("exponential", 0.05), ("truncated", 1.0)])
def test_rows_of_the_price_are_recomputed(name: str, epsilon: float) -> None:
    _agrees(price.row(name, epsilon), pd.read_csv(price.RESULTS), ("mechanism", "epsilon"))


@pytest.mark.processor
@pytest.mark.parametrize(("name", "notion"), [("none", "expected"), ("exponential", "marginal")])
def test_rows_of_the_observers_are_recomputed(name: str, notion: str) -> None:
    row, profile = observers.rows_of(name, notion)
    _agrees(row, pd.read_csv(observers.RESULTS / "observers.csv"), ("mechanism", "notion"))
    stored = pd.read_csv(observers.RESULTS / "profiles.csv")
    mine = stored[(stored.mechanism == name) & (stored.notion == notion)]
    assert mine.delta.to_numpy() == pytest.approx(profile.delta.to_numpy(), rel=1e-6, abs=1e-11)


def test_the_table_of_observers_is_that_of_the_study() -> None:
    (shown,) = [block.text.splitlines()[2:] for block in blocks(PAGE) if block.language == "text"]
    rows = pd.read_csv(observers.RESULTS / "observers.csv").to_dict("records")
    for line, row in zip(shown, rows, strict=True):
        error = max(row["fp_worst"], row["fn_worst"])
        told = [row["total_variation"], row["privacy_delta_at_epsilon"], row["privacy_delta_at_2_epsilon"]]
        made = [row["mechanism"], row["notion"], "0.99", "0.01", "0.01", f"{row['samples_exact']:.1f}", f"{error:.4f}"]
        made += [row["verdict"], *(f"{value:.3g}" if value > 1e-9 else "<1e-9" if value > 0 else "0" for value in told)]
        ratio = row["log_ratio"]
        assert line.split() == [*made, "inf" if ratio == np.inf else f"{ratio:+.4g}"]


def _said(pattern: str, *numbers: str) -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    (found,) = re.findall(pattern, text)
    assert found == numbers


def test_the_page_quotes_the_sensitivity_and_the_price() -> None:
    effect = pd.read_csv(sensitivity.RESULTS).set_index(["mechanism", "entry"])
    delta = effect.delta_at_epsilon
    early = [f"{effect.mean_difference[name, 1]:.1f}" for name in ("exponential", "laplace")]
    _said(r"time by ([\d.]+) samples under every mechanism \(the paper's Delta_tau; ([\d.]+) for", *early)
    assert {f"{effect.mean_difference[name, 1]:.1f}" for name in ("none", "exponential", "truncated")} == {early[0]}
    tops = [delta["exponential", 300], delta["exponential", 400], delta["truncated", 1], delta["truncated"].max()]
    tops += [delta["laplace", 1], delta["laplace"].max()]
    pattern = (
        r"it is ([\d.]+) up to n = 300 and ([\d.]+) at n = 400; for `truncated` it rises from ([\d.]+) to ([\d.]+) at"
    )
    _said(pattern + r" n = 800; for `laplace` from ([\d.]+) to ([\d.]+) at n = 3000", *(f"{x:.4f}" for x in tops))
    assert (delta["truncated"].idxmax(), delta["laplace"].idxmax()) == (800, 3000)
    rows = pd.read_csv(price.RESULTS)
    worst = rows[["total_variation_first", "total_variation_mean"]].max(axis=1)
    at = rows.assign(worst=worst)[rows.epsilon == 0.01].set_index("mechanism")
    bought = [x for name in ("exponential", "truncated", "laplace") for x in (at.samples[name], at.worst[name])]
    numbers = [f"{x:.0f}" if x > 1 else f"{x:.4f}" for x in bought]
    pattern = r"takes (\d+) samples for a total variation of ([\d.]+), `truncated` (\d+) for ([\d.]+), "
    _said(pattern + r"`laplace` (\d+) for ([\d.]+)\. ", *numbers)
    late = [f"{at.delta_mean[name]:.4f}" for name in ("exponential", "truncated", "laplace")]
    _said(r"the same: ([\d.]+) \(Algorithm 2\), ([\d.]+) \(`truncated`\), ([\d.]+) \(`laplace`\)", *late)
    _said(
        r"sample it needs ([\d.]+) where Algorithm 2 needs ([\d.]+)\.",
        *(f"{at.delta_first[x]:.4f}" for x in ("laplace", "exponential")),
    )


def test_which_mechanism_takes_the_fewest_samples_for_a_total_variation() -> None:
    """Between the points of the study, on its logarithmic scales."""
    rows = pd.read_csv(price.RESULTS)
    rows["worst"] = rows[["total_variation_first", "total_variation_mean"]].max(axis=1)

    def samples(name: str, gained: float) -> float:
        mine = rows[rows.mechanism == name].sort_values("worst")
        return float(np.interp(np.log(gained), np.log(mine.worst), np.log(mine.samples)))

    for gained in (0.006, 0.01, 0.015, 0.017):
        assert samples("truncated", gained) < samples("exponential", gained) < samples("laplace", gained)
    for gained in (0.02, 0.03, 0.04):
        assert samples("truncated", gained) < samples("exponential", gained)
        assert samples("laplace", gained) < samples("exponential", gained)


def test_every_figure_belongs_to_a_study() -> None:
    drawn = {path.stem for path in (TOP / "figures").glob("*.png")}
    assert drawn == {path.stem for path in (TOP / "figures").glob("*.pdf")}
    assert drawn == {*gallery.QUICK, *gallery.LONG, "profiles"}
    for name in (*gallery.QUICK, *gallery.LONG):
        assert (TOP / "experiments" / f"{name}.py").exists()


def test_an_unknown_study_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gallery.main(["atack"])
    assert "no such study: atack" in capsys.readouterr().err
