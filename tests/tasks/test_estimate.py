"""task=estimate and runs on a model: against known probabilities, exact means and each other."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.mechanisms import Exponential, Laplace, NoNoise
from dpsmc_audit.models.sources import Bernoulli
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks import simulate_model as model_simulation
from dpsmc_audit.tasks.estimate import estimate
from dpsmc_audit.tasks.paper import TABLE1
from dpsmc_audit.tasks.simulate_model import Streams, simulate_model, stop
from tests.support.command import Run, result_in, runner
from tests.support.statistics import chi_square

FAST = ("model=powertrain", "model.step=0.005")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    return runner(monkeypatch, capsys, tmp_path)


# --- p_phi ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p_phi", [0.0, 0.1, 0.84, 1.0])
def test_the_interval_holds_the_truth(p_phi: float) -> None:
    found = estimate(Bernoulli(p_phi), 5000, seed=3, confidence=1 - 1e-6)
    low, high = found.p_phi_ci
    assert low <= p_phi <= high
    assert found.runs == 5000
    assert high - low < 0.08


def test_samples_beyond_those_asked_for_do_not_count() -> None:
    first, more = (estimate(Bernoulli(0.5), runs, seed=1).satisfied for runs in (300, 301))
    assert more - first in (0, 1)


def test_the_case_study(run: Run, tmp_path: Path) -> None:
    code, out, err = run("task=estimate", *FAST, "runs=4000")
    assert (code, err) == (0, "")
    result = result_in(tmp_path)
    low, high = result["p_phi_ci"]
    assert low < 0.839 < high
    assert result["p_phi"] == result["satisfied"] / 4000
    assert f"{result['p_phi']:.4f}" in out
    assert next(tmp_path.rglob("traces.png")).stat().st_size > 20_000


def test_the_formula_can_be_chosen(run: Run, tmp_path: Path) -> None:
    assert run("task=estimate", *FAST, "runs=500", 'formula="always[0, 1.0](e > -0.5)"')[0] == 0
    assert result_in(tmp_path)["p_phi"] == 1.0
    (tmp_path / "f.stl").write_text("eventually[0, 1]\n  abs(e) > 0.2\n")
    assert run("task=estimate", *FAST, "runs=500", "formula_file=f.stl", "hydra.run.dir=file")[0] == 0
    assert result_in(tmp_path / "file")["formula"] == "eventually[0,1] (abs(e) > 0.2)"


def test_recorded_outcomes_all_count(run: Run, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("1\n1\n0\n1\n" * 100)
    code, out, _ = run("task=estimate", "model=recorded", "model.path=o.csv")
    assert code == 0
    assert result_in(tmp_path)["p_phi"] == 0.75
    assert "400" in out


BAD = {
    "task=estimate model=powertrain p_phi=0.8": "p_phi has no meaning with model=powertrain",
    "task=estimate model=powertrain model.path=x": "model.path has no meaning",
    "task=estimate model=bernoulli formula=true": "formula has no meaning",
    "task=estimate model=recorded": "model.path",
    "task=estimate model=recorded model.path=nothing.csv": "nothing.csv",
    "task=estimate model=recorded model.path=x runs=5": "runs has no meaning",
    "task=estimate model=python model.target=nothing:f": "cannot import nothing",
    "task=estimate model=powertrain formula_file=nothing.stl": "nothing.stl",
    "task=estimate model=powertrain formula='always[0,2](e<1)'": "2 s ahead",
    "task=estimate model=powertrain formula='e<'": "column 3",
    "task=estimate model=powertrain formula='f<1'": "unknown signal",
    "task=estimate model=powertrain model.maf=0.5": "maf",
    "task=estimate model=powertrain model.setting=fast": "setting must be one of",
    "task=estimate relation=eq": "relation must be one of",
    "task=simulate insecure=true": "insecure is for task=verify",
    "task=audit model=powertrain": "needs a known p_phi",
    "task=simulate model=powertrain engine=exact": "engine=exact",
    "task=simulate model=recorded model.path=x": "task=simulate",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_ends_in_one_clear_line(run: Run, tmp_path: Path, arguments: str) -> None:
    code, out, err = run(*arguments.split())
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("error: ")
    assert BAD[arguments] in err
    assert not list(tmp_path.rglob("result.json"))


# --- the paper's Remark 2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["lt", "le"])
def test_below_is_asked_of_the_negation(run: Run, tmp_path: Path, relation: str) -> None:
    """p_phi < p of a system with p_phi = 0.16 at p = 0.27 is p_phi > p at 0.84 and 0.73."""
    for name, arguments in (("a", ("p=0.73", "p_phi=0.84")), ("b", ("p=0.27", "p_phi=0.16", f"relation={relation}"))):
        assert run("task=simulate", "engine=exact", *arguments, f"hydra.run.dir={name}")[0] == 0
    one, other = (result_in(tmp_path / name)["samples_exact"] for name in ("a", "b"))
    assert one == pytest.approx(other, rel=1e-9)


# --- runs on a model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("negated", [False, True])
def test_runs_on_a_model_follow_the_exact_law(negated: bool) -> None:
    """False alarms: one in a million."""
    p, p_phi = (0.27, 0.16) if negated else (0.73, 0.84)
    test = Sprt(0.73, 0.05, 0.05)
    assert p == pytest.approx(1 - test.p if negated else test.p)
    for mechanism in (NoNoise(), Exponential.private(test, 0.3), Laplace(1.0, 2.0)):
        taus, decisions = [], []
        streams = Streams(Bernoulli(p_phi), 5)
        rng = np.random.default_rng(1)
        for i, excess in enumerate(mechanism.quantile(rng.random(1500))):
            blocks = streams.run(i)
            counted = (~bits for bits in blocks) if negated else blocks
            outcome = (1, int(rng.integers(2))) if excess <= test.no_room else stop(test, float(excess), counted, 10**6)
            taus.append(outcome[0])
            decisions.append(outcome[1])
        law = exact_law(Setting(test, mechanism, 0.84))
        assert chi_square(np.array(taus), np.array(decisions), law.null, law.alt) > 1e-6


def test_the_model_is_set_beside_its_exact_mean() -> None:
    test = Sprt(0.73, 0.03, 0.05)
    found = simulate_model(test, Exponential.private(test, 0.5), Bernoulli(0.84), 400, Sampling(2))
    low, high = found.as_dict()["samples_exact_ci"]
    assert low < exact_mean_at(test, 0.84) < high
    assert found.simulation.samples_ci is not None
    assert found.simulation.samples_ci[0] < high
    assert low < found.simulation.samples_ci[1]


def exact_mean_at(test: Sprt, p_phi: float) -> float:
    from dpsmc_audit.exact.averages import exact_mean

    return exact_mean(Setting(test, Exponential.private(test, 0.5), p_phi)).value


def test_what_was_drawn_before_changes_no_result() -> None:
    """A row alone, after another row, and before it."""

    def row(delta: float, epsilon: float) -> dict[str, object]:
        test = Sprt(0.73, delta, 0.05)
        found = simulate_model(test, Exponential.private(test, epsilon), Bernoulli(0.9), 50, Sampling(4)).as_dict()
        return {name: value for name, value in found.items() if not name.startswith("seconds")}

    rows: dict[tuple[float, float], dict[str, object]] = {}
    for order in ([(0.03, 0.05)], [(0.1, 0.5), (0.03, 0.05)], [(0.03, 0.05), (0.1, 0.5)]):
        model_simulation._streams.cache_clear()
        model_simulation._estimated.cache_clear()
        for point in order:
            assert rows.setdefault(point, row(*point)) == row(*point)


def test_recorded_samples_cannot_make_many_runs(tmp_path: Path) -> None:
    from dpsmc_audit.models.recorded import Recorded

    (tmp_path / "o.csv").write_text("1\n")
    with pytest.raises(ParameterError, match="there once"):
        simulate_model(Sprt(0.73, 0.03, 0.05), NoNoise(), Recorded(str(tmp_path / "o.csv")))


def test_table_1_on_traces(run: Run, tmp_path: Path) -> None:
    code, out, err = run("+sweep=table1", *FAST, "epsilon=0.05", "runs=10", "hydra.sweep.dir=t")
    assert (code, err) == (0, "")
    with (tmp_path / "t" / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "t" / "timing.csv").open() as file:
        times = list(csv.DictReader(file))
    assert len({row["p_phi"] for row in rows}) == 1
    for row, timed in zip(rows, times, strict=True):
        key = (float(row["alpha"]), float(row["delta"]), float(row["epsilon"]))
        assert float(timed["paper_seconds"]) == TABLE1[key].seconds
        assert float(row["p_phi_low"]) < 0.839 < float(row["p_phi_high"])
        low, exact, high = (float(row[f"samples_exact{end}"]) for end in ("_low", "", "_high"))
        assert low < exact < high
        assert float(timed["seconds_per_run"]) == pytest.approx(
            float(row["samples"]) * float(timed["seconds_per_sample"])
        )
    assert "181.31" not in out
    assert "82.04 s" in out


def test_table_1_on_traces_makes_a_hundred_runs(monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    monkeypatch.setattr(model_simulation, "ESTIMATED_FROM", 100)
    narrow = ("alpha=0.05", "delta=0.03", "epsilon=0.05", "model.setting=as_written")
    assert run("+sweep=table1", *FAST, *narrow, "hydra.sweep.dir=t")[0] == 0
    assert result_in(tmp_path)["parameters"]["runs"] == 100
