"""What a run finds in its folder: releases are not replaced, files of others stay, finished runs are returned.

Also what it leaves there when a signal ends it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpsmc_audit.app import cli, interrupts
from dpsmc_audit.runs.files import TEMPORARY
from tests.runs.test_faults import AUDIT, COMMAND, SWEEP, finish, finished_now, same_audit, start, wait_for, whole
from tests.runs.test_kills import nothing_left
from tests.support.command import Run, runner
from tests.support.documents import TOP
from tests.support.once import made_once

RELEASE = ("task=verify", "epsilon=0.5", "delta=0.1", "alpha=0.05", "hydra.run.dir=r")
SINGLE = ("task=simulate", "runs=300", "backend=serial")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    return runner(monkeypatch, capsys, tmp_path)


# --- releases -------------------------------------------------------------------------------------------------------


def test_a_folder_that_holds_a_release_is_refused(run: Run, tmp_path: Path) -> None:
    assert run(*RELEASE)[0] == 0
    first = (tmp_path / "r" / "result.json").read_bytes()
    for words in (RELEASE, (*SINGLE, "hydra.run.dir=r"), (*RELEASE, "model=python", "model.target=nowhere:f")):
        code, out, err = run(*words)
        assert (code, out, err) == (2, "", "error: r holds a release already: choose another folder\n")
        assert (tmp_path / "r" / "result.json").read_bytes() == first
    (tmp_path / "s").mkdir()
    (tmp_path / "r").rename(tmp_path / "s" / "1")
    code, _, err = run("-m", *SINGLE, "alpha=0.05,0.1", "hydra.sweep.dir=s")
    assert (code, err.count("holds a release already")) == (1, 1)
    assert (tmp_path / "s" / "1" / "result.json").read_bytes() == first


@pytest.mark.parametrize("content", ["", "mine", "{}"])
def test_a_release_is_not_put_beside_another_result(run: Run, tmp_path: Path, content: str) -> None:
    """A failed run would leave a result that looks like its release."""
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "result.json").write_text(content)
    code, out, err = run(*RELEASE)
    assert (code, out) == (2, "")
    assert err == "error: r holds a result already: a release needs a folder of its own\n"
    assert (tmp_path / "r" / "result.json").read_text() == content


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    ("words", "said", "otherwise"),
    [
        (RELEASE, "is p_phi > 0.73?", "nothing is released"),
        ((*SINGLE, "hydra.run.dir=r"), "result in ", "nothing new was kept"),
        (("engine=exact", "epsilon=0.5", "delta=0.05", "hydra.run.dir=r"), "result in ", "nothing new was kept"),
    ],
)
def test_words_and_exit_code_follow_from_whether_the_result_exists(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
    otherwise: str,
    late: bool,
) -> None:
    """Ctrl-C just after the file got its name, and just before."""
    rename, before = os.replace, signal.getsignal(signal.SIGINT)

    def interrupted(source: Path, target: Path) -> None:
        if late:
            rename(source, target)
        if Path(target).name == "result.json":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)

    monkeypatch.setattr(os, "replace", interrupted)
    interrupts.listen()
    try:
        code, out, err = run(*words)
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    exists = (tmp_path / "r" / "result.json").exists()
    assert exists == late
    assert (code, said in out) == ((0, True) if late else (130, False))
    assert err == ("" if late else f"\ninterrupted: {otherwise}\n")


# --- signals --------------------------------------------------------------------------------------------------------


def test_sigterm_is_handled_like_ctrl_c(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    audit = made_once(tmp_path_factory, "whole-audit", lambda folder: whole(AUDIT, folder)) / "a"
    process = start(AUDIT, tmp_path)
    wait_for((tmp_path / "a" / "checkpoint-runs.npz").exists, process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err.startswith("\ninterrupted: kept ")
    assert len(err.splitlines()) == 2
    assert finish(AUDIT, tmp_path)[0] == 0
    same_audit(audit, tmp_path / "a")


def test_code_that_drops_the_interrupt_does_not_keep_the_run(run: Run, tmp_path: Path) -> None:
    """Later signals are ignored, so the command must not forget the first."""
    (tmp_path / "own_careless.py").write_text(
        "import os, signal, time, numpy as np\n"
        "def draw(x, runs, rng):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(0.05)\n"
        "    except BaseException:\n"
        "        pass\n"
        "    return rng.integers(0, 9, runs), np.zeros(runs, int)\n"
    )
    before = signal.getsignal(signal.SIGINT)
    interrupts.listen()
    try:
        code, _, err = run("sampler=own_careless:draw", "epsilon=1", "runs=30000", "backend=serial", "hydra.run.dir=r")
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert code == 143
    assert err.startswith("\ninterrupted: ")
    assert not (tmp_path / "r" / "result.json").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_a_source_text_is_executed_keeps_its_exit_code(tmp_path: Path, number: int) -> None:
    """Dataclasses are made so: Python remembers a plain KeyboardInterrupt from there, and ends with SIGINT."""
    text = f"import os, time; os.kill(os.getpid(), {number:d}); time.sleep(60)"
    (tmp_path / "own_made.py").write_text(f"exec({text!r})\n")
    code, _, err = finish(["task=estimate", "model=python", "model.target=own_made:draw"], tmp_path)
    assert (code, err) == (128 + number, "\ninterrupted: nothing new was kept\n")


def test_a_signal_while_a_cluster_starts_ends_in_one_line(tmp_path: Path) -> None:
    """Its second worker is not there yet."""
    (tmp_path / "own_start.py").write_text(
        "import os, signal, distributed\n"
        "from dpsmc_audit.__main__ import start\n"
        "begin = distributed.Nanny.instantiate\n"
        "async def instantiate(self):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return await begin(self)\n"
        "distributed.Nanny.instantiate = instantiate\n"
        "start()\n"
    )
    environment = os.environ | {"KILLING": f"{tmp_path}", "PYTHONPATH": f"{TOP}"}
    words = ["task=simulate", "backend=dask", "backend.workers=2", "hydra.run.dir=r"]
    command = [sys.executable, "own_start.py", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "\ninterrupted: nothing new was kept\n")
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_sweep_in_processes_ends_with_its_table(tmp_path: Path, number: int) -> None:
    environment = os.environ | {"KILLING": f"{tmp_path}"}
    words = [*SWEEP, "runs=1500000", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    process = start(words, tmp_path, env=environment)
    wait_for(lambda: len(finished_now(tmp_path)) >= 2, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "results in s" in out
    assert err.endswith("interrupted: finished points are kept; go on with the same command and hydra.sweep.dir=s\n")
    assert "Traceback" not in err
    assert nothing_left(tmp_path)


def test_workers_write_nothing_after_their_command_was_killed(tmp_path: Path) -> None:
    environment = os.environ | {"KILLING": f"{tmp_path}"}
    words = [*SWEEP, "runs=1500000", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    process = start(words, tmp_path, env=environment)
    wait_for(lambda: len(finished_now(tmp_path)) >= 1, process)
    process.kill()
    process.wait()
    assert nothing_left(tmp_path)
    process.communicate()
    left = sorted(finished_now(tmp_path))
    time.sleep(1.0)
    assert sorted(finished_now(tmp_path)) == left
    assert len(left) < 5


def test_a_process_without_a_parent_ends_too(tmp_path: Path) -> None:
    """A sampler's own grandchild, in a session of its own, which no signal to the group reaches."""
    (tmp_path / "own.py").write_text(
        "import subprocess, sys, time, numpy as np\n"
        "def draw(x, runs, rng):\n"
        "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "    open('begun', 'w').close()\n"
        "    time.sleep(1)\n"
        "    return rng.integers(0, 9, runs), np.zeros(runs, int)\n"
    )
    environment = os.environ | {"KILLING": f"{tmp_path}", "PYTHONPATH": f"{tmp_path}{os.pathsep}{TOP}"}
    words = [*COMMAND, "sampler=own:draw", "epsilon=1", "runs=100000", "backend=processes", "backend.workers=2"]
    process = subprocess.Popen(words, cwd=tmp_path, env=environment)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert nothing_left(tmp_path)


# --- files of others ------------------------------------------------------------------------------------------------


def test_named_single_runs_are_left_where_they_are(run: Run, tmp_path: Path) -> None:
    assert run(*SINGLE, "hydra.run.dir=s/baseline")[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "s" / "baseline").iterdir()}
    for _ in range(2):
        assert run("-m", *SINGLE, "alpha=0.05,0.1", "hydra.sweep.dir=s")[0] == 0
    assert {path: path.read_bytes() for path in before} == before
    assert not (tmp_path / "s" / ".kept").exists()


def test_notes_of_the_user_are_left_alone(run: Run, tmp_path: Path) -> None:
    names = ("failed.txt", "kept.txt", "partial.json", f".mine{TEMPORARY}", ".result.json.17.tmp")
    (tmp_path / "s").mkdir()
    for folder in (tmp_path / "s", tmp_path):
        for name in names:
            (folder / name).write_text('{"mine": 1}')
    assert run(*SINGLE, "hydra.run.dir=.")[0] == 0
    assert run("-m", *SINGLE, "alpha=0.05,0.7", "hydra.sweep.dir=s")[0] == 1
    (tmp_path / "own_failing.py").write_text("def draw(x, runs, rng):\n    raise RuntimeError('no')\n")
    assert run("sampler=own_failing:draw", "epsilon=1", "hydra.run.dir=.")[0] == 2
    assert all((folder / name).read_text() == '{"mine": 1}' for folder in (tmp_path / "s", tmp_path) for name in names)


def test_pictures_are_not_written_through_links(run: Run, tmp_path: Path) -> None:
    words = ("engine=exact", "epsilon=0.5", "delta=0.05")
    assert run(*words, "hydra.run.dir=first")[0] == 0
    names = [path.name for path in (tmp_path / "first").iterdir() if path.suffix != ".log"]
    assert len([name for name in names if name.endswith(".png")]) == 2
    (tmp_path / "r").mkdir()
    for name in names:
        (tmp_path / f"mine-{name}").write_text("mine")
        (tmp_path / "r" / name).symlink_to(tmp_path / f"mine-{name}")
    assert run(*words, "hydra.run.dir=r")[0] == 0
    assert all(path.read_text() == "mine" for path in tmp_path.glob("mine-*"))
    assert not any((tmp_path / "r" / name).is_symlink() for name in names)


def test_temporary_files_of_killed_runs_are_removed(run: Run, tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for folder in (tmp_path / "s" / "0", tmp_path / "s", tmp_path / "r"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f".other.csv.{ended.pid}{TEMPORARY}").write_text("")
        (folder / f".other.csv.{os.getpid()}{TEMPORARY}").write_text("")  # of a process that is alive
    assert run("-m", *SINGLE, "alpha=0.05,0.1", "hydra.sweep.dir=s")[0] == 0
    assert run(*SINGLE, "hydra.run.dir=r")[0] == 0
    assert len(list(tmp_path.rglob(f"*{TEMPORARY}"))) == 3


def test_the_lock_stays(run: Run, tmp_path: Path) -> None:
    """If it were removed, two sweeps could hold the locks of two files of that name."""
    assert run("-m", *SINGLE, "alpha=0.05,0.1", "hydra.sweep.dir=s")[0] == 0
    lock = (tmp_path / "s" / ".lock").stat().st_ino
    assert run("-m", *SINGLE, "alpha=0.05,0.2", "hydra.sweep.dir=s")[0] == 0
    assert (tmp_path / "s" / ".lock").stat().st_ino == lock


# --- finished runs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [SINGLE, ("engine=exact", "epsilon=0.5", "delta=0.05")])
def test_a_finished_run_is_returned(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert run(*words, "hydra.run.dir=r")[0] == 0
    first = (tmp_path / "r" / "result.json").read_bytes()
    code, out, _ = run(*words, "hydra.run.dir=r")
    assert (code, "it was there already" in out) == (0, True)
    assert (tmp_path / "r" / "result.json").read_bytes() == first
    assert not (tmp_path / "r" / "result.before.json").exists()
    code, out, _ = run(*words, "alpha=0.05", "hydra.run.dir=r")
    assert (code, "already" in out) == (0, False)
    assert (tmp_path / "r" / "result.before.json").read_bytes() == first


def test_a_finished_run_that_lost_a_file_is_computed(run: Run, tmp_path: Path) -> None:
    words = ("engine=exact", "epsilon=0.5", "delta=0.05", "hydra.run.dir=r")
    run(*words)
    (tmp_path / "r" / "profile.csv").unlink()
    _, out, _ = run(*words)
    assert "already" not in out
    assert (tmp_path / "r" / "profile.csv").exists()


def test_a_point_of_a_sweep_is_no_single_run(run: Run, tmp_path: Path) -> None:
    """It lacks the other observers."""
    run("-m", "engine=exact", "epsilon=0.5,0.6", "delta=0.05", "hydra.sweep.dir=s")
    _, out, _ = run("engine=exact", "epsilon=0.5", "delta=0.05", "hydra.run.dir=s/0")
    assert "already" not in out
    assert json.loads((tmp_path / "s" / "0" / "result.json").read_text())["other_observers"]


def test_exit_codes_of_signals_are_documented() -> None:
    assert f"{cli.__doc__}".count("143 SIGTERM") == 1
