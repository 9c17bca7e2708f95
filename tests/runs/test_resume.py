"""A sweep that is started again in its folder: finished points are kept, everything else is computed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsmc_audit import load_results
from dpsmc_audit.app.sweep import tabulate
from dpsmc_audit.runs import provenance as module
from dpsmc_audit.runs.files import KEPT
from dpsmc_audit.runs.provenance import fingerprint, provenance
from dpsmc_audit.runs.resume import content_of, fingerprint_in, module_content, seal
from dpsmc_audit.runs.sweeps import Sweep, locked
from tests.support.command import Run, runner, without_figures

SWEEP = ["-m", "task=simulate", "hydra.sweep.dir=s"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    without_figures(monkeypatch)
    return runner(monkeypatch, capsys, tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    """Every result by its parameters; it says how long it took, so no second one is the same."""
    found = {}
    for path in folder.rglob("result.json"):
        values = json.loads(path.read_text())["parameters"]
        found[f"{values['alpha']} {values['runs']}"] = path.read_bytes()
    return found


def test_finished_points_are_kept_and_said(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    assert code == 0
    assert "already" not in out
    first, table = contents(tmp_path), (tmp_path / "s" / "table.csv").read_bytes()
    code, out, _ = run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    assert code == 0
    assert contents(tmp_path) == first
    assert (tmp_path / "s" / "table.csv").read_bytes() == table
    assert "2 of them were there already" in out
    assert "alpha=0.02" in out.splitlines()[-1]
    assert not (tmp_path / "s" / KEPT).exists()


def test_points_are_known_by_their_parameters_and_not_by_their_number(run: Run, tmp_path: Path) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    first = contents(tmp_path)
    code, out, _ = run(*SWEEP, "alpha=0.05,0.02,0.01", "runs=300")
    assert code == 0
    assert "2 of them were there already" in out
    second = contents(tmp_path)
    assert {key: second[key] for key in first} == first
    assert len(second) == 3
    numbered = [json.loads((tmp_path / "s" / f"{k}" / "result.json").read_text()) for k in range(3)]
    assert [result["parameters"]["alpha"] for result in numbered] == [0.05, 0.02, 0.01]


def test_a_point_that_is_not_asked_for_is_kept_for_the_next_sweep(run: Run, tmp_path: Path) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    first = contents(tmp_path)
    run(*SWEEP, "alpha=0.05", "runs=300")
    assert [len(load_results(tmp_path / "s")), (tmp_path / "s" / "table.csv").read_text().count("\n")] == [1, 2]
    run(*SWEEP, "alpha=0.02,0.01", "runs=300")
    third = contents(tmp_path)
    assert {key: third[key] for key in first} == first


def test_other_parameters_are_computed(run: Run, tmp_path: Path) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    code, out, _ = run(*SWEEP, "alpha=0.01,0.02", "runs=300", "seed=2")
    assert code == 0
    assert "already" not in out


def test_the_backend_is_no_parameter(run: Run, tmp_path: Path) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    _, out, _ = run(*SWEEP, "alpha=0.01,0.02", "runs=300", "backend=serial", "backend.block_size=7")
    assert "2 of them were there already" in out


def test_other_code_is_computed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    monkeypatch.setattr(module, "environment", lambda: "another")
    _, out, _ = run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    assert "already" not in out


@pytest.mark.parametrize("keys", [["task=estimate", "model=recorded", "model.path=data"]])
def test_other_content_of_a_file_is_computed(run: Run, tmp_path: Path, keys: list[str]) -> None:
    (tmp_path / "data").write_text("1\n0\n1\n1\n")
    sweep = ["-m", *keys, f"model.path={tmp_path / 'data'}", "confidence=0.9,0.99", "hydra.sweep.dir=s"]
    run(*sweep)
    _, out, _ = run(*sweep)
    assert "2 of them were there already" in out
    (tmp_path / "data").write_text("1\n0\n1\n0\n")
    _, out, _ = run(*sweep)
    assert "already" not in out
    assert set(load_results(tmp_path / "s")["p_phi"]) == {0.5}


def test_other_code_of_a_sampler_is_computed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import numpy as np\ndef draw(x, runs, rng):\n    return rng.integers(0, {}, runs), np.zeros(runs, int)\n"
    (tmp_path / "own_sampler_a.py").write_text(text.format(5))
    monkeypatch.syspath_prepend(str(tmp_path))
    sweep = ["-m", "sampler=own_sampler_a:draw", "seed=1,2", "runs=200", "epsilon=1", "hydra.sweep.dir=s"]
    run(*sweep)
    _, out, _ = run(*sweep)
    assert "2 of them were there already" in out
    (tmp_path / "own_sampler_a.py").write_text(text.format(6))
    _, out, _ = run(*sweep)
    assert "2 of them were there already" in out  # this process has the old code, and so would their results
    module_content.cache_clear()
    monkeypatch.delitem(sys.modules, "own_sampler_a")
    _, out, _ = run(*sweep)
    assert "already" not in out


BROKEN: dict[str, Callable[[str], str]] = {
    "truncated": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "another program's": lambda text: '{"accuracy": 1.0}',
    "a list": lambda text: "[1, 2]",
    "changed": lambda text: re.sub(r'"accuracy": 1.0', '"accuracy": 0.5', text),
    "without its digest": lambda text: re.sub(r',\s*"digest": "\w+"', "", text),
}


def test_a_broken_or_foreign_result_is_computed_again_with_a_warning(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    path = tmp_path / "s" / "0" / "result.json"
    whole = path.read_text()
    for what, change in BROKEN.items():
        assert change(whole) != whole
        path.write_text(change(whole))
        assert fingerprint_in(path.parent) is None, what
        assert "not a complete result" in capsys.readouterr().err
    path.write_text(BROKEN["truncated"](whole))
    table = (tmp_path / "s" / "table.csv").read_bytes()
    _, out, err = run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    assert "1 of them were there already" in out
    assert "warning: result.json in 0 is not a complete result" in err
    assert fingerprint_in(tmp_path / "s" / "0") is not None
    assert (tmp_path / "s" / "table.csv").read_bytes() == table


def test_a_failed_point_is_tried_again(run: Run, tmp_path: Path) -> None:
    code, _, err = run(*SWEEP, "alpha=0.01,0.6", "runs=300")
    assert (code, "failed:" in err) == (1, True)
    code, out, err = run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    assert (code, err) == (0, "")
    assert "1 of them were there already" in out
    assert "failed" not in (tmp_path / "s" / "1" / ".point.json").read_text()


def test_a_table_of_kept_audits_is_the_same(run: Run, tmp_path: Path) -> None:
    """With histograms and figures beside the result: they move with it."""
    sweep = ["-m", "engine=exact", "hydra.sweep.dir=s"]
    run(*sweep, "epsilon=0.01,0.05")
    ours = (path for path in (tmp_path / "s" / "1").iterdir() if not path.name.endswith((".log", ".point.json")))
    files = {path.name: path.read_bytes() for path in ours}
    _, out, _ = run(*sweep, "epsilon=0.05,0.02")
    assert "1 of them were there already" in out
    moved = {path.name: path.read_bytes() for path in (tmp_path / "s" / "0").iterdir()}
    assert {name: moved[name] for name in files} == files


def test_custom_folders_of_points_are_kept_too(run: Run, tmp_path: Path) -> None:
    sweep = [*SWEEP, "alpha=0.01,0.02", "runs=300", "hydra.sweep.subdir=a_${alpha}"]
    run(*sweep)
    _, out, _ = run(*sweep)
    assert "2 of them were there already" in out


# --- what is not ours -----------------------------------------------------------------------------------------------


def test_files_of_others_are_left_alone(run: Run, tmp_path: Path) -> None:
    names = ("report.html", "checkpoint-1000.npz", ".notes.tmp", "data.csv", "result.json")
    for name in names:
        (tmp_path / name).write_text("mine")
    assert run("task=simulate", "runs=-1", "hydra.run.dir=.")[0] == 2
    assert run("task=simulate", "runs=200", "hydra.run.dir=.")[0] == 0
    assert [name for name in names if (tmp_path / name).read_text() != "mine"] == ["result.json"]


def test_a_result_in_the_way_is_put_by(run: Run, tmp_path: Path) -> None:
    run("task=simulate", "runs=300", "hydra.run.dir=a")
    first = (tmp_path / "a" / "result.json").read_bytes()
    assert run("task=simulate", "runs=-1", "hydra.run.dir=a")[0] == 2
    assert (tmp_path / "a" / "result.json").read_bytes() == first
    run("task=simulate", "runs=301", "hydra.run.dir=a")
    assert (tmp_path / "a" / "result.before.json").read_bytes() == first


def test_notes_beside_a_result_move_with_it(run: Run, tmp_path: Path) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    (tmp_path / "s" / "0" / "analysis").mkdir()
    (tmp_path / "s" / "0" / "analysis" / "notes").write_text("mine")
    (tmp_path / "s" / "0" / "my.log").write_text("mine")
    run(*SWEEP, "alpha=0.02,0.01", "runs=300")
    assert (tmp_path / "s" / "1" / "analysis" / "notes").read_text() == "mine"
    assert (tmp_path / "s" / "1" / "my.log").read_text() == "mine"


def test_a_result_that_lost_its_files_is_computed(run: Run, tmp_path: Path) -> None:
    sweep = ["-m", "engine=exact", "hydra.sweep.dir=s", "epsilon=0.05,0.1"]
    run(*sweep)
    (tmp_path / "s" / "0" / "histogram.csv").unlink()
    _, out, _ = run(*sweep)
    assert "1 of them were there already" in out
    assert (tmp_path / "s" / "0" / "histogram.csv").exists()


def test_the_remains_of_a_killed_move_are_no_result(run: Run, tmp_path: Path) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    known = fingerprint_in(tmp_path / "s" / "0")
    (tmp_path / "s" / KEPT / f"{known}").mkdir(parents=True)
    _, out, _ = run(*SWEEP, "alpha=0.02,0.01", "runs=300")
    assert "2 of them were there already" in out


@pytest.mark.parametrize("more", ["hydra.sweep.subdir=p${hydra.job.num}", "hydra.job.chdir=true"])
def test_points_are_known_however_their_folders_are_named(run: Run, tmp_path: Path, more: str) -> None:
    run(*SWEEP, "alpha=0.01,0.02", "runs=300", more)
    _, out, _ = run(*SWEEP, "alpha=0.02,0.01", "runs=300", more)
    assert "2 of them were there already" in out


def test_the_papers_numbers_need_their_study(run: Run, tmp_path: Path) -> None:
    """Points of the same parameters, but without the columns of Table 1."""
    keys = ["alpha=0.01", "delta=0.01", "epsilon=0.01,0.05", "runs=200", "p_phi=0.84", "hydra.sweep.dir=s"]
    run("-m", "task=simulate", *keys)
    _, out, _ = run("+sweep=table1", *keys)
    assert "already" not in out
    assert "1350" in (tmp_path / "s" / "table.csv").read_text()
    assert "2 results of other parameters or versions are in s/.kept" in out


def test_one_sweep_at_a_time_in_a_folder(run: Run, tmp_path: Path) -> None:
    with locked(tmp_path / "s"):
        code, _, err = run(*SWEEP, "alpha=0.01,0.02", "runs=300")
    assert (code, err) == (2, "error: another sweep is under way in s\n")
    assert run(*SWEEP, "alpha=0.01,0.02", "runs=300")[0] == 0


def test_a_table_without_all_of_its_points_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not tabulate(Sweep.start(tmp_path, None, (), points=2))
    assert "failed: 2 of 2 points have no result" in capsys.readouterr().err


def test_warnings_are_repeated_with_a_kept_point(run: Run) -> None:
    sweep = [*SWEEP, "alpha=0.01,0.02", "runs=300", "p_phi=0.735"]
    assert run(*sweep)[2].count("Assumption 1") == 2
    assert run(*sweep)[2].count("Assumption 1") == 2


# --- provenance -----------------------------------------------------------------------------------------------------


def test_provenance_says_what_made_a_result_and_nothing_of_the_machine(run: Run, tmp_path: Path) -> None:
    run("task=simulate", "runs=300", "seed=7", "hydra.run.dir=a")
    text = (tmp_path / "a" / "result.json").read_text()
    made: dict[str, Any] = json.loads(text)["provenance"]
    assert set(made) == {
        *("version", "commit", "code", "python", "numpy", "numba", "seed", "steps", "fingerprint", "files", "digest")
    }
    assert made["seed"] == 7
    assert made["steps"] > 300
    assert str(tmp_path) not in text
    assert str(Path.home()) not in text


def test_a_release_tells_no_seed_and_no_work(run: Run, tmp_path: Path) -> None:
    (tmp_path / "outcomes.csv").write_text("1\n" * 4000)
    run("task=verify", "model=recorded", "model.path=outcomes.csv", "epsilon=0.5", "delta=0.1", "hydra.run.dir=v")
    made = json.loads((tmp_path / "v" / "result.json").read_text())["provenance"]
    assert set(made) == {"version", "commit", "code", "python", "numpy", "numba"}
    assert not list((tmp_path / "v").glob("checkpoint*"))


def test_a_fingerprint_is_of_parameters_inputs_and_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = fingerprint({"a": 1}, {})
    assert one == fingerprint({"a": 1}, {})
    assert len({one, fingerprint({"a": 2}, {}), fingerprint({"a": 1}, {"path": "x"})}) == 3
    monkeypatch.setattr(module, "environment", lambda: "another")
    assert fingerprint({"a": 1}, {}) != one
    assert content_of(tmp_path / "nowhere") == content_of(tmp_path)


def test_a_sealed_result_is_known_by_its_content(tmp_path: Path) -> None:
    from dpsmc_audit.runs.files import write_json

    sealed = seal({"x": float("inf"), "y": [1, (2.5, None)], "provenance": provenance(1, 10)}, "abc")
    write_json(tmp_path / "result.json", sealed)
    assert fingerprint_in(tmp_path) == "abc"
    write_json(tmp_path / "result.json", {**sealed, "y": [1, [2.5, 0]]})
    assert fingerprint_in(tmp_path) is None
