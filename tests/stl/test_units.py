"""A formula in another unit of time than its traces: intervals that cover one sample are named, private data never."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.models.keys import UNCHECKED
from dpsmc_audit.models.recorded import Recorded
from dpsmc_audit.models.sources import SourceError
from dpsmc_audit.stl import parse
from dpsmc_audit.stl.units import unit_notes
from tests.support.command import Run, result_in, runner

QUICK = ("p=0.5", "delta=0.1", "alpha=0.01", "epsilon=0.5")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    return runner(monkeypatch, capsys, tmp_path)


def said(interval: str, operator: str, traces: str = "traces have a step of 20 and last 4000 time units") -> str:
    return f"The interval {interval} of {operator} covers 1 sample: {traces}. Check the unit of the formula."


# --- which intervals ------------------------------------------------------------------------------------------------

FORMULAS = {
    "always[0,15] (x > 0)": [("[0,15]", "always")],
    "eventually[0,19.9] (x > 0)": [("[0,19.9]", "eventually")],
    "(x > 0) until[15,35] (x < 0)": [("[15,35]", "until")],
    "always[0,20] (x > 0)": [],
    "always[15,40] (x > 0)": [],
    "always[0,4000] (x > 0)": [],
    "not (always[0,1000] (x > 0 implies eventually[0,5] (x < 0)))": [("[0,5]", "eventually")],
    "always[0,15] (x > 0) and eventually[0,15] (x > 0 or always[0,15] (x < 1))": [
        ("[0,15]", "always"),
        ("[0,15]", "eventually"),
    ],
    "always[20,20] (x > 0)": [],  # equal ends ask for one sample
    "eventually[0,0] (x > 0)": [],
    "always (x > 0)": [],  # the whole trace, in any unit
    "(x > 0) until (x < 0)": [],
    "always[3980,inf] (x > 0)": [],
    "always[3981,inf] (x > 0)": [("[3981,inf]", "always")],
    "x > 0": [],
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_intervals_that_cover_one_sample_are_named(formula: str) -> None:
    notes = unit_notes(parse(formula), 20.0, (201, 201))
    assert notes == [said(*words) for words in FORMULAS[formula]]


@given(begin=st.integers(0, 50), length=st.integers(1, 50), step=st.integers(1, 30))
def test_the_samples_are_counted(begin: int, length: int, step: int) -> None:
    covered = sum(begin <= k * step <= begin + length for k in range(101))
    if covered == 0:  # refused where it is evaluated, and by the count of samples
        return
    notes = unit_notes(parse(f"always[{begin},{begin + length}] (x > 0)"), float(step), (101, 101))
    assert bool(notes) == (covered == 1)


def test_what_is_not_known_is_not_said() -> None:
    one = parse("always[0,15] (x > 0)")
    assert unit_notes(one, 20.0) == [said("[0,15]", "always", "traces have a step of 20 time units")]
    assert unit_notes(parse("always[3981,inf] (x > 0)"), 20.0) == []
    (note,) = unit_notes(one, 20.0, (101, 201))
    assert "a step of 20 and last 2000 to 4000 time units" in note


# --- estimates and simulations --------------------------------------------------------------------------------------


def milliseconds(folder: Path, step: float = 20.0, traces: int = 60) -> None:
    """Traces of 4 seconds that leave their bounds some time after the start, with times in milliseconds."""
    x = np.cumsum(np.random.default_rng(1).normal(0.0, 0.05, (traces, 201)), axis=1)
    lines = (f"{k},{j * step:.10g},{x[k, j]:.4f}\n" for k in range(traces) for j in range(201))
    (folder / "t.csv").write_text("trace,time,x\n" + "".join(lines))


RECORDED = ("model=recorded", "model.path=t.csv")


def test_a_formula_in_seconds_on_traces_in_milliseconds(run: Run, tmp_path: Path) -> None:
    milliseconds(tmp_path)
    code, _, err = run("task=estimate", *RECORDED, 'formula="always[0,1.5] (abs(x) < 0.5)"', "hydra.run.dir=s")
    assert code == 0
    assert err == f"warning: {said('[0,1.5]', 'always')}\n"
    wrong = result_in(tmp_path / "s")
    assert wrong["warnings"][0] == said("[0,1.5]", "always")
    assert wrong["p_phi"] == 1.0
    code, _, err = run("task=estimate", *RECORDED, 'formula="always[0,1500] (abs(x) < 0.5)"', "hydra.run.dir=ms")
    assert (code, err) == (0, "")
    assert result_in(tmp_path / "ms")["p_phi"] < 0.9


@pytest.mark.parametrize("task", ["estimate", "simulate"])
def test_simulated_traces_are_looked_at(run: Run, tmp_path: Path, task: str) -> None:
    (tmp_path / f"own_{task}.py").write_text("def draw(rng, n):\n    return {'x': rng.random((n, 3)) - 0.1}\n")
    sys.path.insert(0, f"{tmp_path}")
    try:
        own = ("model=python", f"model.target=own_{task}:draw", "model.step=20", 'formula="always[0,15] (x > 0)"')
        code, _, err = run(f"task={task}", *QUICK, *own, "runs=20", "hydra.run.dir=r")
    finally:
        sys.path.remove(f"{tmp_path}")
    assert code == 0
    note = said("[0,15]", "always", "traces have a step of 20 and last 40 time units")
    assert f"warning: {note}\n" in err
    assert note in result_in(tmp_path)["warnings"]


def test_an_interval_between_two_samples_is_no_short_trace(tmp_path: Path) -> None:
    milliseconds(tmp_path, traces=1)
    with pytest.raises(SourceError, match=r"does not fit the formula: the interval \[5,15\] holds no sample") as caught:
        list(Recorded(f"{tmp_path / 't.csv'}", formula=parse("always[5,15] (x > 0)")).batches(0))
    assert "short" not in f"{caught.value}"


# --- verifications: public parameters only --------------------------------------------------------------------------


def test_a_verification_of_a_model_warns_before_it_runs(run: Run) -> None:
    model = ("model=powertrain", "model.step=0.005", "model.setting=as_written")
    code, out, err = run("task=verify", *QUICK, *model, 'formula="always[0.8,0.805] (abs(e) < 0.5)"')
    assert code == 0
    note = said("[0.8,0.805]", "always", "traces have a step of 0.01 and last 1 time units")
    assert err == f"warning: {note}\n"
    assert "is p_phi" in out


def test_the_step_of_private_traces_is_told_nowhere(run: Run, tmp_path: Path) -> None:
    """Two steps for the same samples: the same words. A step that is declared is public, and the file must have it."""
    texts = []
    for step in (20.0, 37.25):
        milliseconds(tmp_path, step=step)
        folder = tmp_path / f"run-of-{step:.0f}"
        arguments = ("mechanism=none", 'formula="always[0,15] (abs(x) < 0.5)"', f"hydra.run.dir={folder.name}")
        code, out, err = run("task=verify", *QUICK, *RECORDED, *arguments)
        assert (code, err) == (0, f"warning: {UNCHECKED}\n")
        left = "".join(path.read_text() for path in sorted(folder.iterdir()) if path.suffix == ".json")
        texts.append((out + left).replace(folder.name, "FOLDER"))
    assert texts[0] == texts[1]
    code, _, err = run("task=verify", *QUICK, *RECORDED, *arguments[:2], "model.step=37.25", "hydra.run.dir=declared")
    assert (code, err) == (0, f"warning: {said('[0,15]', 'always', 'traces have a step of 37.25 time units')}\n")
    code, _, err = run("task=verify", *QUICK, *RECORDED, *arguments[:2], "model.step=30", "hydra.run.dir=wrong")
    assert code == 2
    assert "error: t.csv, line 3: times must be 0, 30, 60, ..., and the lines of a trace together\n" in err


def test_no_warning_where_a_declared_step_fits(run: Run, tmp_path: Path) -> None:
    milliseconds(tmp_path)
    for formula, options in (("always[0,1500] (abs(x) < 0.9)", ["model.step=20"]), ("always (abs(x) < 0.9)", [])):
        code, _, err = run("task=verify", *QUICK, "mechanism=none", *RECORDED, f'formula="{formula}"', *options)
        assert (code in (0, 3), err) == (True, "")


def test_an_error_in_the_times_of_a_trace_does_not_tell_them(run: Run, tmp_path: Path) -> None:
    """The first trace has a step that only the owner of the data knows; an estimate, which is not private, names it."""
    (tmp_path / "t.csv").write_text("trace,time,x\n0,0,1\n0,37.25,1\n1,0,1\n1,30,1\n")
    formula = 'formula="eventually (x > 0)"'
    code, out, err = run("task=verify", *QUICK, *RECORDED, formula, "hydra.run.dir=v")
    assert (code, err) == (
        2,
        "error: t.csv, line 5: times must start at 0 in equal steps, and the lines of a trace together\n",
    )
    left = "".join(path.read_text() for path in (tmp_path / "v").iterdir())
    assert "37.25" not in out + left
    assert "times must be 0, 37.25, 74.5" in run("task=estimate", *RECORDED, formula)[2]


def test_a_declared_step_is_for_traces(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1\n")
    for task in ("estimate", "verify"):
        code, _, err = run(f"task={task}", *RECORDED, "model.step=1")
        assert (code, err) == (2, "error: model.step is for traces: give a formula too\n")
