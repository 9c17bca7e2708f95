"""The command line as a user meets it: in this process where that is enough, in its own where it matters."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from dpsmc_audit.app import sweep
from dpsmc_audit.app.config import read, register
from dpsmc_audit.app.progress import bar, progress
from dpsmc_audit.report.figures import sweep_figure
from tests.support.command import Run, runner, without_figures
from tests.support.latex import check_latex

TOP = Path(__file__).parents[2]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command in this process, in an empty folder: exit code, standard output, standard error.

    Figures are files, but empty: `drawing` is for tests that look at them.
    """
    without_figures(monkeypatch)
    return runner(monkeypatch, capsys, tmp_path)


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command in this process and draw its figures."""
    return runner(monkeypatch, capsys, tmp_path)


@pytest.fixture
def points_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sweep: its own figure is drawn, and those of its points by the tests of single runs."""
    without_figures(monkeypatch, but="table")


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.rglob("result.json"))]


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in result["provenance"].items() if key != "digest"}  # which knows of the times
    return {key: value for key, value in result.items() if not key.startswith("seconds")} | {"provenance": made}


def test_one_run_prints_one_row_and_writes_its_result(run: Run, tmp_path: Path) -> None:
    code, out, err = run("task=simulate", "epsilon=0.05", "runs=500", "hydra.run.dir=here")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 4
    assert "594.959" in out
    (result,) = results(tmp_path)
    assert (tmp_path / "here" / "result.json").exists()
    assert result["parameters"]["epsilon"] == 0.05
    assert set(result) == {
        "schema",
        "parameters", "samples", "samples_ci", "samples_exact", "samples_exact_error", "accuracy", "accuracy_ci",
        "null_rate", "error_exact", "error_exact_error", "fp_worst", "fp_worst_error", "fn_worst", "fn_worst_error",
        "unfinished", "decision", "seconds", "seconds_per_run", "provenance", "warnings", "exact_errors_are",
    }  # fmt: skip
    assert result["samples_ci"][0] < result["samples"] < result["samples_ci"][1]


@pytest.mark.parametrize(
    "options", [["backend.workers=2"], ["backend.block_size=7"], ["backend.workers=4", "backend.block_size=100"]]
)
def test_the_seed_alone_decides_the_result(run: Run, tmp_path: Path, options: list[str]) -> None:
    run("task=simulate", "seed=1", "runs=9000", "backend=serial", "hydra.run.dir=a")
    run("task=simulate", "seed=1", "runs=9000", *options, "hydra.run.dir=b")
    one, other = (without_times(results(tmp_path / name)[0]) for name in ("a", "b"))
    assert one == other


def test_table_1(run: Run, tmp_path: Path) -> None:
    code, out, err = run("+sweep=table1", "hydra.sweep.dir=t")
    assert (code, err) == (0, "")
    with (tmp_path / "t" / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "alpha", "delta", "epsilon", "p", "p_phi", "accuracy", "samples", "samples_low", "samples_high",
        "samples_exact", "error_exact", "unfinished", "paper_samples", "paper_halfwidth", "distance",
    ]  # fmt: skip
    assert len(rows) == 8
    assert [row["paper_samples"] for row in rows] == [f"{n}.0" for n in (1350, 610, 1030, 330, 1120, 450, 1020, 280)]
    assert out.count("*") == 3  # two rows that disagree, and the line that explains the mark
    assert (tmp_path / "t" / "table.md").read_text().count("\n") == 10
    check_latex((tmp_path / "t" / "table.tex").read_text(), rows=8, stars=2)
    assert "seconds_per_run" in (tmp_path / "t" / "timing.csv").read_text().splitlines()[0]


def test_overrides_narrow_a_sweep_and_tables_do_not_depend_on_the_clock(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run("+sweep=table1", "alpha=0.01", "runs=200", f"hydra.sweep.dir={name}")
    assert len(results(tmp_path / "a")) == 4
    assert (tmp_path / "a" / "table.csv").read_bytes() == (tmp_path / "b" / "table.csv").read_bytes()


def test_a_users_own_sweep(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("-m", "task=simulate", "alpha=0.01,0.02", "p_phi=0.8,0.9", "runs=50", "hydra.sweep.dir=own")
    assert code == 0
    assert "p_phi" in out
    with (tmp_path / "own" / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4


def test_failed_points_are_named_and_finished_ones_kept(run: Run, tmp_path: Path) -> None:
    code, out, err = run("-m", "task=simulate", "alpha=0.01,0.7,0.05", "runs=50", "hydra.sweep.dir=s")
    assert code != 0
    assert len(results(tmp_path)) == 2
    with (tmp_path / "s" / "table.csv").open() as file:
        assert [row["alpha"] for row in csv.DictReader(file)] == ["0.01", "0.05"]
    assert "failed: alpha=0.7" in err
    assert "alpha must lie in (0, 0.5), got 0.7" in err
    assert "0.7" not in out


def test_a_second_sweep_in_the_same_folder_shows_its_own_points_only(run: Run, tmp_path: Path) -> None:
    run("-m", "task=simulate", "alpha=0.01,0.02,0.05", "runs=50", "hydra.sweep.dir=s")
    os.utime(tmp_path / "s" / "2" / "result.json", (1, 1))
    run("-m", "task=simulate", "alpha=0.1,0.2", "runs=50", "hydra.sweep.dir=s")
    with (tmp_path / "s" / "table.csv").open() as file:
        assert [row["alpha"] for row in csv.DictReader(file)] == ["0.1", "0.2"]


@pytest.mark.usefixtures("points_not_drawn")
def test_a_point_listed_twice_is_run_twice_and_one_run_has_no_interval(drawing: Run, tmp_path: Path) -> None:
    code, _, err = drawing("-m", "task=simulate", "seed=1,1", "runs=1", "epsilon=0.5,1", "hydra.sweep.dir=s")
    assert (code, err) == (0, "")
    assert len(results(tmp_path)) == 4
    assert (tmp_path / "s" / "table.png").exists()


def test_a_point_that_fails_over_bytes_that_are_no_text_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\xff\x1ea,b\n1,2\n")
    code, _, err = run("-m", "task=estimate", "model=recorded", "model.path=x.csv", "model.column=ok", "seed=1,2")
    assert code == 1
    assert err.count("has no column 'ok'") == len(err.splitlines()) == 2


def test_a_foreign_result_among_the_points_is_not_in_the_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s" / "7").mkdir(parents=True)
    (tmp_path / "s" / "7" / "result.json").write_text('{"parameters": {"task": "sim')
    os.utime(tmp_path / "s" / "7" / "result.json", (4e9, 4e9))
    code, _, _ = run("-m", "task=simulate", "seed=1,2", "runs=50", "hydra.sweep.dir=s")
    assert code == 0
    with (tmp_path / "s" / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2


def test_means_that_do_not_exist_leave_a_gap_in_the_figure() -> None:
    row = {"task": "simulate", "notion": "expected", "alpha": 0.01, "samples_exact": "inf", "samples": None}
    assert sweep_figure([row, row | {"alpha": 0.02}], ["alpha"]).axes[0].get_yscale() == "linear"
    assert sweep_figure([row, row | {"alpha": 0.02, "samples_exact": 5.0}], ["alpha"]).axes[0].get_yscale() == "log"


@pytest.mark.parametrize("alpha", ["0.7,0.8", "0.1,x"])
def test_a_run_after_a_sweep_that_failed_is_a_run(run: Run, alpha: str) -> None:
    assert run("-m", "task=simulate", f"alpha={alpha}", "runs=5")[0] != 0
    code, _, err = run("task=simulate", "runs=5")
    assert (code, err) == (0, "")


BAD = {
    "alpha=0": "alpha",
    "alpha=0.5": "alpha",
    "alpha_fp=0.9": "alpha_fp",
    "p=0.995": "p - delta",
    "delta=0": "delta",
    "delta=-0.01": "delta",
    "epsilon=0": "epsilon",
    "epsilon=-1": "epsilon",
    "p_phi=1.2": "p_phi",
    "p_phi=-0.1": "p_phi",
    "p_phi=null": "p_phi",
    "runs=0": "runs",
    "pairs=1": "pairs",
    "draws=1": "draws",
    "bin_width=0": "bin_width",
    f"bin_width={2**40 + 1}": "bin_width",
    "entry=11 max_steps=10": "entry",
    "entry=2.5 epsilon=0": "entry",
    "bin_width=1 p_phi=0.73": "bins",
    "confidence=nan": "confidence",
    "delta=nan": "delta",
    "p_phi=0.73": "bin_width=null",
    "p_phi=1e-300": "p_phi",
    "epsilon=1e-300": "epsilon",
    "alpha=1e-320": "alpha",
    "engine.name=foo": "engine",
    "notion=all": "expected",
    "entry=0": "entry",
    "max_steps=0": "max_steps",
    "seed=-1": "seed",
    "confidence=1": "confidence",
    "alpha=many": "alpha",
    "runs=1.5": "runs",
    "runs=ten": "runs",
    "p=nan": "p",
    "epsilon=inf": "epsilon",
    "alpha=nan": "alpha",
    "backend.workers=0": "workers",
    "backend.block_size=0": "block_size",
    "engine.kernel=hops": "kernel",
    "hydra.run.dir=/dev/null/x": "/dev/null/x",
    "hydra/launcher=nothing": "hydra/launcher must be one of basic",
    "epsilon=1,2": "-m",
    "entry=1,2": "'entry=[1,2]'",
    "epsilon": "key=value",
    "unknown=1": "unknown",
    "mechanism=gaussian": "exponential",
    "task=fly": "audit",
    "+sweep=nothing": "table1",
    "entry=[]": "entry",
    "entry=[1,1]": "different",
    "entry=[0,3]": "entry",
    "entry=1.5": "entry",
    "entry=first": "entry",
    "epsilons=[]": "epsilons",
    "epsilons=[0.1,-1]": "epsilons",
    "epsilons=[nan]": "epsilons",
    "epsilons=${p}": "epsilons must be a list",
    "-m alpha=0.01,0.02 study=${nothing}": "nothing",
    "-m alpha=0.01,0.02 hydra.sweep.dir=${nothing}": "nothing",
    "-m alpha=0.01,0.02 hydra.sweep.dir=/dev/null/x": "/dev/null/x",
    "floor=0": "floor",
    "floor=1": "floor",
    "floor=nan": "floor",
    "notion=informed engine=exact": "sequence=FILE",
    "sequence=x.txt": "notion=informed",
    "notion=informed sequence=nothing.txt": "nothing.txt",
    "notion=informed sequence=.": "cannot read",
    "notion=marginal engine=exact p_phi=0.73": "task=simulate engine=exact",
    "mechanism=law": "mechanism.distribution",
    "mechanism=law mechanism.distribution=gama": "gama",
    "mechanism=law mechanism.distribution=gamma": "gamma",
    "mechanism=law mechanism.distribution=gamma mechanism.arguments={a:-1}": "domain",
    "mechanism=law mechanism.distribution=gamma mechanism.arguments=2": "arguments",
    "task=null": "Config group override must be a string",
    "p=${p}": "Recursive interpolation",
    "alpha='open": "cannot read the override alpha='open",
    "entry=1000000 p_phi=0.73 bin_width=null": "entry 1000000 is late",
    "mechanism=laplace epsilon=1e-6 delta=1e-6 alpha=1e-6 p=0.5": "raise epsilon or delta",
}


@pytest.mark.parametrize("argument", BAD)
def test_bad_input_ends_in_one_clear_line(run: Run, tmp_path: Path, argument: str) -> None:
    code, out, err = run(*argument.split())
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("error: ")
    assert BAD[argument] in err
    assert not [noise for noise in ("full_key", "object_type", "search path", "https:", "Errno") if noise in err]
    assert not list(tmp_path.iterdir())


def test_bad_input_in_every_point_of_a_sweep_writes_no_table(run: Run, tmp_path: Path) -> None:
    code, out, err = run("-m", "alpha=0.7,0.8", "hydra.sweep.dir=s")
    assert code != 0
    assert out == ""
    assert len(err.splitlines()) == 2
    assert not list(tmp_path.iterdir())


def test_epsilon_is_not_needed_without_noise(run: Run) -> None:
    assert run("task=simulate", "mechanism=none", "epsilon=0", "runs=10")[0] == 0


def test_the_indifference_region_runs_with_a_warning(run: Run, tmp_path: Path) -> None:
    code, _, err = run("task=simulate", "p_phi=0.735", "runs=100", "delta=0.03")
    assert code == 0
    assert "Assumption 1 does not hold" in err
    assert len(results(tmp_path)) == 1


def test_errors_beyond_alpha_are_said(run: Run) -> None:
    _, _, err = run("task=simulate", "mechanism=none", "p=0.9", "delta=0.09", "alpha=0.1186", "p_phi=0.5", "runs=10")
    assert "fn_worst = 0.1267 exceeds its level" in err


def test_the_exact_engine_samples_nothing(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("task=simulate", "engine=exact")
    assert code == 0
    assert "1322.747" in out
    assert "samples" not in results(tmp_path)[0]


def configurations() -> list[list[str]]:
    groups = [path.relative_to(TOP / "conf") for path in sorted((TOP / "conf").glob("*/*.yaml"))]
    needs = {"mechanism=law": ["mechanism.distribution=gamma", "mechanism.arguments={a: 2, scale: 5}"]}
    needs |= {f"model={key}": ["task=estimate"] for key in ("powertrain", "recorded", "python")}
    needs |= {f"{group}=python": [f"{group}.target=math:sqrt"] for group in ("task", "notion")}
    needs |= {"mechanism=python": ["mechanism.target=dpsmc_audit:Exponential.private"]}
    chosen = [f"{group.parent.name}={group.stem}" for group in groups]
    return [["+" * name.startswith("sweep") + name, *needs.get(name, [])] for name in chosen]


@pytest.mark.parametrize("overrides", configurations(), ids=lambda overrides: overrides[0])
def test_every_configuration_composes_and_is_valid(overrides: list[str]) -> None:
    GlobalHydra.instance().clear()
    register()
    with initialize_config_dir(str(TOP / "conf"), version_base="1.3"):
        read(compose("config", overrides))


@pytest.mark.parametrize("path", sorted((TOP / "conf").rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_configuration_file_begins_with_its_use(path: Path) -> None:
    comments = [line for line in path.read_text().splitlines() if line.startswith("# ")]
    assert re.search(r"\w+=\w+|python -m dpsmc_audit", " ".join(comments[:2]))


def test_importing_the_package_is_light() -> None:
    """The names are there, but nothing heavy is imported before one of them is used."""
    heavy = {"numba", "scipy", "pandas", "hydra", "matplotlib", "jinja2"}
    code = f"import sys, dpsmc_audit; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TOP)
    assert done.stdout.strip() == "[]"


def test_progress_is_silent_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "dpsmc_audit"), progress("runs", 100, every=0.0) as advance:
        advance(40)
        advance(90)
    assert capsys.readouterr() == ("", "")
    assert caplog.messages == ["runs 40 of 100", "runs 90 of 100"]


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_a_bar_that_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with bar("runs", 100) as shown:
        shown.update(90)
        shown.refresh()
    text = terminal.getvalue()
    assert "90/100" in text
    assert text.split("\r")[-2].strip() == ""


def test_the_command_in_its_own_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dpsmc_audit", "task=simulate", "runs=20", "hydra.run.dir=out"]
    environment = os.environ | {"PYTHONPATH": str(TOP)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "result.json").exists()


def test_the_default_command_audits_at_the_papers_parameters(drawing: Run, tmp_path: Path) -> None:
    code, out, err = drawing("hydra.run.dir=a")
    assert (code, err) == (0, "")
    assert re.search(r"verdict +violated: .*no finite epsilon holds.*confidence +99 %", out, flags=re.S)
    (result,) = results(tmp_path)
    assert (result["verdict"], result["epsilon_lower"], result["exact"]["verdict"]) == ("violated", "inf", "violated")
    assert result["support_gap"].keys() == {"from", "to", "mass"}
    assert result["witness"].keys() == {"event", "p1", "p0", "what"}
    with (tmp_path / "a" / "histogram.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = "lo hi p1 p0 log_ratio log_ratio_low log_ratio_high exact_log_ratio outside"
    assert list(rows[0]) == names.split()
    assert sum(float(row["p1"]) for row in rows) == pytest.approx(1)
    assert (tmp_path / "a" / "figure1.png").stat().st_size > 20_000


@pytest.mark.parametrize("options", [["backend.workers=1"], ["backend.workers=3", "backend.block_size=7"]])
def test_an_audit_depends_on_the_seed_alone(run: Run, tmp_path: Path, options: list[str]) -> None:
    run("pairs=200", "draws=500", "hydra.run.dir=a")
    run("pairs=200", "draws=500", *options, "hydra.run.dir=b")
    assert (tmp_path / "a" / "histogram.csv").read_bytes() == (tmp_path / "b" / "histogram.csv").read_bytes()
    one, other = (without_times(results(tmp_path / name)[0]) for name in ("a", "b"))
    assert one == other


@pytest.mark.usefixtures("points_not_drawn")
@pytest.mark.parametrize("sweep", ["entry", "pairs", "epsilon", "alpha_delta", "p_phi"])
def test_every_sweep_audits(drawing: Run, tmp_path: Path, sweep: str) -> None:
    small = ["pairs=40", "draws=100"] if sweep != "pairs" else ["pairs=20,40", "draws=100"]
    narrow = {"alpha_delta": ["alpha=0.01,0.1", "delta=0.01,0.05"], "p_phi": ["p_phi=0.6,0.73,0.8"]}.get(sweep, [])
    code, out, _ = drawing(f"+sweep={sweep}", "task=audit", *small, *narrow, "hydra.sweep.dir=s")
    assert code == 0
    with (tmp_path / "s" / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    wanted = {"alpha", "delta", "epsilon", "p", "p_phi", "entry", "verdict", "epsilon_lower", "privacy_delta_lower"}
    assert wanted | {"bins_outside", "support_gap_mass"} <= set(rows[0])
    assert len(rows) >= 2
    check_latex((tmp_path / "s" / "table.tex").read_text(), rows=len(rows))
    assert "verdict" in out
    assert (tmp_path / "s" / "table.png").exists()


OBSERVERS = {
    "expected": ("figure1.png", "lo"),
    "marginal": ("marginal.png", "decision"),
    "informed": ("informed.png", "tau"),
}


@pytest.mark.parametrize("notion", sorted(OBSERVERS))
@pytest.mark.parametrize("options", [[], ["mechanism=none", "p_phi=0.6"], ["entry=[1,5]", "epsilons=[0,0.1,1]"]])
def test_every_observer_writes_the_same_files(drawing: Run, tmp_path: Path, notion: str, options: list[str]) -> None:
    amount = {"expected": ["draws=50"], "marginal": ["runs=2000"], "informed": []}[notion]
    small = ["pairs=20", *amount, "epsilon=0.1", "delta=0.03"]
    code, out, err = drawing(f"notion={notion}", *small, *options, "hydra.run.dir=a")
    assert (code, err) == (0, "")
    (result,) = results(tmp_path / "a")
    wanted = {
        "verdict",
        "sentence",
        "total_variation",
        "privacy_delta_at_epsilon",
        "privacy_delta_at_2_epsilon",
        "best_event",
    }
    assert wanted <= set(result)
    assert result["sentence"] in " ".join(out.split())
    figure, column = OBSERVERS[notion]
    assert (tmp_path / "a" / figure).stat().st_size > 10_000
    assert (tmp_path / "a" / "profile.png").stat().st_size > 10_000
    with (tmp_path / "a" / "histogram.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert next(iter(rows[0])) == column
    for name in ("p1", "p0"):
        assert sum(float(row[name]) for row in rows) == pytest.approx(1, abs=1e-9)
    with (tmp_path / "a" / "profile.csv").open() as file:
        profile = list(csv.DictReader(file))
    assert list(profile[0]) == ["epsilon", "delta_1_over_0", "delta_0_over_1"]
    if "epsilons=[0,0.1,1]" in options:
        assert [float(row["epsilon"]) for row in profile] == [0, 0.1, 0.2, 1]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0\n1\n2\n", "line 3"),
        ("1\n", "entry 3"),
        ("", "no samples"),
        ("0\n\nx\n", "line 3"),
        ("0 1 0,1\n-1\n", "line 2"),
    ],
)
def test_a_bad_sequence_is_named_by_its_line(run: Run, tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "bits.txt").write_text(text)
    code, _, err = run("notion=informed", "sequence=bits.txt", "entry=3", "hydra.run.dir=a")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "bits.txt" in err
    assert word in err


def test_a_given_sequence_is_audited_exactly(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bits.txt").write_text("1\n" * 3000)
    code, out, _ = run("notion=informed", "engine=exact", "sequence=bits.txt", "epsilon=0.1", "hydra.run.dir=a")
    assert code == 0
    (result,) = results(tmp_path / "a")
    assert result["worst_sequence"] == "the given sequence"
    assert result["reveal_1"] == pytest.approx(0.1, abs=0.03)  # about 1 - exp(-epsilon)
    assert "given sequence" in out


def test_a_sweep_whose_table_cannot_be_written_fails(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To Hydra an error in a callback is a warning, and the sweep a success."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sweep, "_write", full)
    code, _, err = run("-m", "task=simulate", "runs=20", "alpha=0.01,0.02", "hydra.sweep.dir=s")
    assert (code, err) == (2, "error: [Errno 28] No space left on device\n")
    assert len(results(tmp_path / "s")) == 2


@pytest.mark.parametrize(("given", "expected"), [("epsilon=${delta}", 0), ("epsilon=${nothing}", 1)])
def test_overrides_of_a_sweep_may_refer_to_keys(run: Run, tmp_path: Path, given: str, expected: int) -> None:
    code, _, err = run("-m", "task=simulate", "runs=20", "alpha=0.01,0.02", given, "hydra.sweep.dir=s")
    assert code == expected
    assert err.count("Interpolation key 'nothing' not found") == (0 if expected == 0 else 2)
    if expected == 0:
        assert {result["parameters"]["epsilon"] for result in results(tmp_path / "s")} == {0.01}
        assert "epsilon=${delta}" in (tmp_path / "s" / "report.html").read_text()


@pytest.mark.usefixtures("points_not_drawn")
def test_observers_side_by_side(drawing: Run, tmp_path: Path) -> None:
    small = ["pairs=20", "draws=50", "runs=2000", "epsilon=0.1", "delta=0.03", "hydra.sweep.dir=s"]
    code, out, _ = drawing("+sweep=observers", *small)
    assert code == 0
    assert (tmp_path / "s" / "table.png").exists()
    with (tmp_path / "s" / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert {
        "mechanism",
        "notion",
        "samples_exact",
        "total_variation",
        "privacy_delta_at_epsilon",
        "best_log_ratio",
    } <= set(rows[0])
    assert out.count("laplace") == 3


@pytest.mark.parametrize(
    "law", ["distribution=gamma mechanism.arguments={a:2,scale:5}", "distribution=poisson mechanism.arguments={mu:3}"]
)
def test_any_law_for_l_is_audited(run: Run, tmp_path: Path, law: str) -> None:
    overrides = [f"mechanism.{law}".split()[0], law.split()[1]]
    for notion in ("marginal", "expected"):
        code, _, err = run("mechanism=law", *overrides, f"notion={notion}", "engine=exact", f"hydra.run.dir={notion}")
        assert (code, err) == (0, "")
        (result,) = results(tmp_path / notion)
        assert result["parameters"]["distribution"] in ("gamma", "poisson")


# --- users' laws for L ----------------------------------------------------------------------------------------------

LAWS = """
from dataclasses import dataclass
import numpy as np
from dpsmc_audit import Exponential

@dataclass(frozen=True)
class Uniform:
    width: float
    name = "uniform"
    atoms = None

    def survival(self, excess):
        return np.clip(1.0 - np.asarray(excess, float) / self.width, 0.0, 1.0)

    def quantile(self, u):
        return self.width * np.asarray(u, float)

@dataclass(frozen=True)
class Backwards(Uniform):
    def survival(self, excess):
        return 1.0 - super().survival(excess)

@dataclass(frozen=True)
class Falling(Uniform):
    def quantile(self, u):
        return -super().quantile(u)

class Changing(Uniform):
    __hash__ = None

def uniform(test, epsilon):
    return Uniform(2.0 * test.step_sum / epsilon)

def same(test, epsilon):
    return Exponential.private(test, epsilon)

def backwards(test, epsilon):
    return Backwards(1.0)

def falling(test, epsilon):
    return Falling(1.0)

def changing(test, epsilon):
    return Changing(1.0)

def low(test, epsilon):
    from scipy.stats import norm
    law = Uniform(1.0)
    object.__setattr__(law, "quantile", lambda u: 2 * test.no_room + norm.ppf(u) * 1e-3)
    object.__setattr__(law, "survival", lambda x: norm.sf((np.asarray(x) - 2 * test.no_room) / 1e-3))
    return law

def number(test, epsilon):
    return 3.0

def leaving(test, epsilon):
    raise SystemExit(0)
"""


@pytest.fixture
def laws(tmp_path: Path) -> str:
    """A module of laws for L in the folder the command runs in."""
    name = f"laws_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{name}.py").write_text(LAWS)
    return name


def test_a_law_from_outside_that_equals_one_of_ours_gives_the_same_result(run: Run, laws: str, tmp_path: Path) -> None:
    small = ["task=simulate", "runs=2000", "epsilon=0.1", "delta=0.03"]
    run(*small, "hydra.run.dir=ours")
    code, _, err = run(*small, "mechanism=python", f"mechanism.target={laws}:same", "hydra.run.dir=theirs")
    assert (code, err) == (0, "")
    (ours,), (theirs,) = results(tmp_path / "ours"), results(tmp_path / "theirs")
    assert theirs["parameters"]["mechanism"] == "python"
    assert theirs["parameters"]["mechanism_target"] == f"{laws}:same"
    assert [ours[name] for name in ("samples", "samples_exact")] == [
        theirs[name] for name in ("samples", "samples_exact")
    ]


@pytest.mark.parametrize(
    "keys",
    [
        *("notion=expected", "notion=marginal", "notion=informed", "notion=marginal engine=exact"),
        *("task=simulate", "task=simulate engine=exact"),
    ],
)
def test_a_law_from_outside_is_audited_and_simulated(run: Run, laws: str, tmp_path: Path, keys: str) -> None:
    small = ["pairs=20", "draws=50", "runs=2000", "epsilon=0.3", "delta=0.05", "alpha=0.05"]
    code, _, err = run("mechanism=python", f"mechanism.target={laws}:uniform", *keys.split(), *small)
    assert (code, [line for line in err.splitlines() if not line.startswith("warning: ")]) == (0, [])
    (result,) = results(tmp_path)
    assert result["parameters"]["mechanism"] == "python"


def test_a_point_with_a_law_from_outside_is_kept(run: Run, laws: str) -> None:
    sweep = ["-m", "task=simulate", "runs=50", "mechanism=python", f"mechanism.target={laws}:uniform"]
    assert run(*sweep, "epsilon=0.3,0.5", "delta=0.05", "hydra.sweep.dir=s")[0] == 0
    assert "2 of them were there already" in run(*sweep, "epsilon=0.3,0.5", "delta=0.05", "hydra.sweep.dir=s")[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["mechanism=python"], "mechanism=python needs mechanism.target"),
        (["mechanism.target=LAWS:uniform"], "mechanism.target is for mechanism=python, got exponential"),
        (["mechanism=python", "mechanism.target=LAWS"], "package.module:function"),
        (["mechanism=python", "mechanism.target=LAWS:none"], "has no none"),
        (["mechanism=python", "mechanism.target=LAWS:number"], "float without name, atoms, survival, quantile"),
        (["mechanism=python", "mechanism.target=LAWS:leaving"], "failed: SystemExit"),
        (["mechanism=python", "mechanism.target=LAWS:changing"], "failed: TypeError: unhashable"),
        (["mechanism=python", "mechanism.target=LAWS:backwards"], "survival(quantile(u)) must be 1 - u"),
        (["mechanism=python", "mechanism.target=LAWS:falling"], "finite values that do not fall"),
        (["mechanism=python", "mechanism.target=LAWS:low"], "a coin would decide every run"),
        (
            ["mechanism=python", "mechanism.target=LAWS:uniform", "task=verify"],
            "task=verify cannot use mechanism=python",
        ),
    ],
)
def test_what_is_no_law_ends_in_one_line(run: Run, laws: str, options: list[str], words: str, tmp_path: Path) -> None:
    code, out, err = run(*(option.replace("LAWS", laws) for option in options))
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not results(tmp_path)


# --- users' mechanisms ----------------------------------------------------------------------------------------------

MINE = """
import numpy as np

def noisy(x, runs, rng):
    return np.floor(10 * (x + rng.exponential(size=runs))), np.zeros(runs, int)

def same(x, runs, rng):
    return rng.integers(1, 9, runs), rng.integers(0, 2, runs)

def late(x, runs, rng):
    if runs > 500:
        raise RuntimeError("no more")
    return same(x, runs, rng)

def holes(x, runs, rng):
    return np.where(rng.random(runs) < 0.5, np.nan, 1.0)
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """A module of samplers in the folder the command runs in, under a name of its own."""
    name = f"mine_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{name}.py").write_text(MINE)
    return name


def test_a_sampler_is_audited(drawing: Run, mine: str, tmp_path: Path) -> None:
    given = ("epsilon=1", "runs=20000", "early=false", "hydra.run.dir=here")
    code, out, err = drawing(f"sampler={mine}:noisy", *given)
    assert (code, err) == (0, "")
    assert out.count("violated") == 1
    assert re.search(r"epsilon +claimed 1 ", out)
    (result,) = results(tmp_path)
    assert result["epsilon_lower"] > 6
    assert result["witness"]["event"] == "tau <= 9"
    assert set(result["parameters"]) == {
        "task", "sampler", "epsilon", "claimed_delta", "confidence", "runs", "seed", "early", "missing",
    }  # fmt: skip
    rows = list(csv.DictReader((tmp_path / "here" / "histogram.csv").read_text().splitlines()))
    assert sum(int(row["runs_1"]) + int(row["runs_0"]) for row in rows) == result["runs_used_1"] + result["runs_used_0"]
    assert max(result["runs_used_1"], result["runs_used_0"]) == 20_000
    for name in ("profile.csv", "trade_off.csv", "trade_off.png"):
        assert (tmp_path / "here" / name).stat().st_size > 100
    assert (tmp_path / "here" / "sampler.png").stat().st_size > 10_000


def test_a_sweep_over_samplers_makes_one_table(run: Run, mine: str, tmp_path: Path) -> None:
    code, out, _ = run("-m", f"sampler={mine}:noisy,{mine}:same", "epsilon=1,2", "runs=3000", "hydra.sweep.dir=all")
    assert code == 0
    assert out.count("violated") == 2
    assert out.count("consistent") == 2
    rows = list(csv.DictReader((tmp_path / "all" / "table.csv").read_text().splitlines()))
    assert [row["verdict"] for row in rows] == ["violated", "violated", "consistent", "consistent"]


def test_a_sweep_over_claims_shows_them(run: Run, mine: str, tmp_path: Path) -> None:
    code, out, _ = run("-m", f"sampler={mine}:noisy", "mu=0.5,9", "runs=2000", "hydra.sweep.dir=all")
    assert code == 0
    header, _, *lines = out.splitlines()
    assert "mu" in header.split()
    assert [line.split()[2] for line in lines[:2]] == ["0.5", "9.0"]


def test_a_sweep_over_runs_one_has_makes_one_table(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, shift in (("ones.csv", 1.0), ("zeros.csv", 0.0)):
        np.savetxt(tmp_path / name, shift + rng.laplace(size=500))
    code, _, err = run("-m", "samples=[ones.csv,zeros.csv]", "epsilon=0.3,3", "hydra.sweep.dir=all")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader((tmp_path / "all" / "table.csv").read_text().splitlines()))
    assert [(row["epsilon"], row["verdict"]) for row in rows] == [("0.3", "violated"), ("3.0", "consistent")]
    assert all(row["samples"] and int(row["runs_used"]) > 400 for row in rows)
    assert (tmp_path / "all" / "report.html").exists()


@pytest.mark.parametrize(
    "override",
    ["notion=marginal", "notion=expected", "engine=exact", "engine.kernel=steps", "mechanism=laplace", "p=0.5",
     "p_phi=0.8", "alpha=0.05", "delta=0.02", "entry=2", "pairs=100", "draws=100", "bin_width=1", "max_steps=100",
     "epsilons=[1]", "model=bernoulli", "floor=0.1"],
)  # fmt: skip
def test_keys_without_meaning_for_a_sampler_are_refused_by_name(run: Run, mine: str, override: str) -> None:
    code, out, err = run(f"sampler={mine}:noisy", override)
    assert code == 2
    assert out == ""
    assert err.startswith(f"error: {override.split('=', maxsplit=1)[0]} has no meaning with sampler=")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [(["sampler=MINE:none"], "has no none"), (["sampler=nowhere_at_all:f"], "cannot import"),
     (["sampler=MINE"], "package.module:function"), (["sampler=MINE:holes"], "missing"),
     (["sampler=MINE:noisy", "samples=a.csv"], "give one"), (["label=x"], "label is for"),
     (["missing=true"], "missing is for"),
     (["samples=nowhere.csv"], "nowhere.csv"), (["predictor=a:b"], "predictor is for"),
     (["sampler=MINE:noisy", "task=simulate"], "sampler is for task=audit"),
     (["sampler=MINE:noisy", "runs=3"], "runs must be at least"),
     (["task=simulate", "claimed_delta=0.1"], "claimed_delta is for"), (["early=false"], "early=false is for"),
     (["notion=marginal", "engine=exact", "early=false"], "early=false is for"),
     (["sampler=MINE:noisy", "claimed_delta=1"], "claimed_delta must lie")],
)  # fmt: skip
def test_a_bad_sampler_ends_in_one_line(run: Run, mine: str, options: list[str], words: str, tmp_path: Path) -> None:
    code, out, err = run(*(option.replace("MINE", mine) for option in options))
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not results(tmp_path)


def test_runs_before_a_failure_are_kept_but_are_no_result(run: Run, mine: str, tmp_path: Path) -> None:
    code, _, err = run(f"sampler={mine}:late", "epsilon=1", "hydra.run.dir=here")
    assert code == 2
    assert "raised RuntimeError: no more; the " in err
    assert "runs before are in partial" in err
    kept = json.loads((tmp_path / "here" / "partial.json").read_text())
    assert 2500 < kept["runs_used"] <= 3000
    assert "no more" in kept["error"]
    assert not results(tmp_path)
    run(f"sampler={mine}:noisy", "epsilon=1", "hydra.run.dir=here")
    assert not (tmp_path / "here" / "partial.json").exists()


@pytest.mark.parametrize(("given", "drawn"), [([], 0), (["figures=true"], 2), (["figures=false"], 0)])
def test_points_of_a_sweep_draw_figures_on_request_only(run: Run, tmp_path: Path, given: list[str], drawn: int) -> None:
    """Their page has figures of its own. A point without them is not taken over where they are asked for."""
    sweep = ["-m", "notion=marginal", "engine=exact", "epsilon=0.3,0.5", "delta=0.05", "hydra.sweep.dir=s"]
    assert run(*sweep)[0] == 0
    code, out, _ = run(*sweep, *given)
    assert (code, "2 of them were there already" in out) == (0, not given)
    for point in ("0", "1"):
        assert len(list((tmp_path / "s" / point).glob("*.png"))) == drawn
        assert "<svg" in (tmp_path / "s" / point / "report.html").read_text()


@pytest.mark.parametrize(("given", "drawn"), [([], 2), (["figures=true"], 2), (["figures=false"], 0)])
def test_a_single_run_draws_figures_unless_told_not_to(run: Run, tmp_path: Path, given: list[str], drawn: int) -> None:
    assert run("notion=marginal", "engine=exact", "epsilon=0.3", "delta=0.05", *given, "hydra.run.dir=r")[0] == 0
    assert len(list((tmp_path / "r").glob("*.png"))) == drawn


# --- two deltas -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("delta=0.03", "claimed_delta=0.03"),
        ("", None),
        ("delta=0.03 claimed_delta=0.01", None),
        ("delta=0.03 mu=0.5", None),
    ],
)
def test_delta_is_told_apart_from_the_delta_of_a_claim(run: Run, tmp_path: Path, words: str, said: str | None) -> None:
    """Who gives epsilon and delta may mean a claim: one line says what delta is, and what would claim it."""
    given = ["notion=marginal", "engine=exact", "epsilon=1", *words.split(), "hydra.run.dir=r"]
    code, out, _ = run(*given)
    assert code == 0
    assert out.count("indifference parameter") == (said is not None)
    assert said is None or said in " ".join(out.split())
    assert "privacy delta" in out
    (result,) = results(tmp_path)
    assert "privacy_delta_lower" in result
    assert not [name for name in result if name.startswith("delta")]
    assert result["parameters"]["delta"] == (0.03 if "delta=0.03" in words.split() else 0.01)
    page = (tmp_path / "r" / "report.html").read_text()
    assert "Audited privacy δ" in page
    assert "indifference parameter" in page


def test_a_sampler_that_is_given_a_delta_is_told_of_the_other_key(run: Run, mine: str) -> None:
    code, out, err = run(f"sampler={mine}:noisy", "epsilon=1", "delta=0.001")
    assert (code, out) == (2, "")
    assert "claimed_delta" in err


def test_tables_have_two_names_for_two_deltas(run: Run, mine: str, tmp_path: Path) -> None:
    audits = ["-m", "notion=marginal", "engine=exact", "epsilon=0.3,0.5", "delta=0.05", "hydra.sweep.dir=s"]
    _, out, _ = run(*audits)
    heading = next(line for line in out.splitlines() if "verdict" in line)
    assert re.findall(r"(?:privacy )?delta", heading) == ["delta", "privacy delta"]
    assert "indifference parameter" in out
    assert "privacy_delta_lower" in (tmp_path / "s" / "table.csv").read_text().splitlines()[0].split(",")
    _, out, _ = run("-m", f"sampler={mine}:same", "epsilon=1,2", "claimed_delta=0.1", "runs=500", "hydra.sweep.dir=t")
    heading = next(line for line in out.splitlines() if "verdict" in line)
    assert re.findall(r"(?:privacy )?delta", heading) == ["privacy delta", "privacy delta"]
