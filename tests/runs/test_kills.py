"""Commands that are killed at every file operation and at random moments, over all kinds of run and backends.

What was finished stays and is not computed again, the next run comes to the same numbers, no process outlives the
command by five seconds, and no temporary file outlives the next run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.runs.test_faults import COMMAND, finished
from tests.support.documents import TOP

OWN = """
import numpy as np
def draw(rng, n):
    return rng.random(n) < 0.84
def noisy(x, runs, rng):
    return np.floor(10 * (x + rng.exponential(size=runs))), np.zeros(runs, dtype=int)
"""
TRUTHS = "".join(f"{k % 5 > 0:d}\n" for k in range(3000))


def prepared(folder: Path) -> Path:
    """An empty folder with what the commands read."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "own_code.py").write_text(OWN)
    (folder / "data.csv").write_text(TRUTHS)
    return folder


def numbers(folder: Path) -> dict[str, Any]:
    """Results by their parameters, without what differs from run to run."""
    found = {}
    for path in folder.rglob("result.json"):
        result = json.loads(path.read_text())
        for name in ("seconds", "seconds_per_sample", "nanoseconds_per_sample", "provenance", "timing"):
            result.pop(name, None)
        found[json.dumps(result.pop("parameters"))] = {k: v for k, v in result.items() if "second" not in k}
    return found


def left_over(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith((".tmp", ".npz"))]


# --- at file operations ---------------------------------------------------------------------------------------------


class Forks:
    """The server of `tests.support.killing`."""

    def __init__(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-m", "tests.support.killing"], cwd=TOP, **pipes)  # type: ignore[call-overload]

    def run(self, folder: Path, number: int, words: list[str]) -> tuple[int, int | None]:
        """Kill the command before an operation (0: never). Its exit code, and how many operations it has."""
        self.process.stdin.write(json.dumps([f"{folder}", number, words]) + "\n")
        self.process.stdin.flush()
        code, count = json.loads(self.process.stdout.readline())
        return code, count


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.process.communicate()


FEW = ["runs=300", "delta=0.05", "epsilon=0.5", "backend=serial", "backend.checkpoint=0"]
SWEPT = ["-m", "task=simulate", *FEW, "hydra.sweep.dir=s"]
OPERATED: dict[str, list[list[str]]] = {
    "sweep": [[*SWEPT, "alpha=0.01,0.02,0.05"], [*SWEPT, "alpha=0.05,0.01,0.02"]],
    "audits": [
        ["-m", "engine=exact", *FEW, f"alpha={alpha}", "hydra.sweep.dir=s"] for alpha in ("0.05,0.1", "0.1,0.05")
    ],
    "simulate": [["task=simulate", *FEW, "hydra.run.dir=r"]],
    "audit": [["notion=marginal", *FEW, "pairs=4", "hydra.run.dir=r"]],
    "estimate": [["task=estimate", "model=recorded", "model.path=data.csv", "hydra.run.dir=r"]],
}
"""Commands that take turns in one folder, and that come to the same results."""


def killed_at_operations(forks: Forks, folder: Path, kind: str, numbers_: Iterator[int], whole: dict[str, Any]) -> int:
    """Kill the commands of a kind in turn before these operations, then let one end. How many were killed."""
    prepared(folder)
    kept: dict[str, bytes] = {}
    killed = 0
    for turn, number in enumerate(numbers_):
        code, _ = forks.run(folder, number, OPERATED[kind][turn % len(OPERATED[kind])])
        assert code in (0, -signal.SIGKILL)
        killed += code != 0
        now = finished(folder)
        assert {key: now.get(key) for key in kept} == kept, (kind, number)
        kept = now
    assert forks.run(folder, 0, OPERATED[kind][0])[0] == 0
    assert {key: finished(folder).get(key) for key in kept} == kept
    assert numbers(folder) == whole
    assert not left_over(folder)
    return killed


def whole_of(forks: Forks, folder: Path, kind: str) -> tuple[dict[str, Any], int]:
    """The numbers of a run that is not killed, and how many operations it has."""
    code, count = forks.run(prepared(folder), 0, OPERATED[kind][0])
    assert (code, count is None) == (0, False)
    assert numbers(folder)
    return numbers(folder), int(f"{count}")


@pytest.mark.parametrize("kind", ["sweep", "simulate"])
def test_killed_at_some_file_operations(forks: Forks, tmp_path: Path, kind: str) -> None:
    whole, count = whole_of(forks, tmp_path / "whole", kind)
    rng = random.Random(3)
    chosen = iter(rng.sample(range(1, count + 1), 4))
    assert killed_at_operations(forks, tmp_path / "killed", kind, chosen, whole) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPERATED)
def test_killed_at_every_file_operation(forks: Forks, tmp_path: Path, kind: str) -> None:
    """Each operation alone, then in chains of five at random; all kinds together are more than 300 kills."""
    whole, count = whole_of(forks, tmp_path / "whole", kind)
    rng, killed = random.Random(5), 0
    for number in range(1, count + 1):
        killed += killed_at_operations(forks, tmp_path / f"{number}", kind, iter([number]), whole)
    for chain in range(12):
        chosen = iter([rng.randrange(1, count + 1) for _ in range(5)])
        killed += killed_at_operations(forks, tmp_path / f"chain-{chain}", kind, chosen, whole)
    print(f"{kind}: {count} operations, {killed} kills")


# --- at random moments ----------------------------------------------------------------------------------------------


LONG = ["delta=0.01", "epsilon=0.1", "backend.checkpoint=0"]
TIMED: dict[str, list[str]] = {
    "simulate, serial": ["task=simulate", "runs=300000", *LONG, "backend=serial", "hydra.run.dir=r"],
    "marginal, threads": ["notion=marginal", "runs=300000", "pairs=4", *LONG, "hydra.run.dir=r"],
    "marginal, processes": [
        *("notion=marginal", "runs=300000", "pairs=4", *LONG, "backend=processes", "backend.workers=2"),
        *("hydra.run.dir=r",),
    ],
    "marginal, dask": [
        *("notion=marginal", "runs=300000", "pairs=4", *LONG, "backend=dask", "backend.workers=2", "hydra.run.dir=r"),
    ],
    "expected": ["pairs=300", "draws=3000", *LONG, "hydra.run.dir=r"],
    "informed": ["notion=informed", "pairs=200", *LONG, "hydra.run.dir=r"],
    "sampler, processes": [
        *("sampler=own_code:noisy", "epsilon=2", "runs=300000", "backend=processes", "backend.workers=2"),
        *("backend.checkpoint=0", "hydra.run.dir=r"),
    ],
    "estimate": ["task=estimate", "model=python", "model.target=own_code:draw", "runs=600000", "hydra.run.dir=r"],
    "sweep": ["-m", "task=simulate", "runs=100000", *LONG, "alpha=0.01,0.02,0.05", "hydra.sweep.dir=s"],
    "sweep, joblib": [
        *("-m", "task=simulate", "runs=100000", *LONG, "alpha=0.01,0.02,0.05", "hydra.sweep.dir=s", "backend=serial"),
        *("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    ],
}


def started(folder: Path, words: list[str]) -> subprocess.Popen[bytes]:
    environment = os.environ | {"KILLING": f"{folder}", "PYTHONPATH": f"{folder}{os.pathsep}{TOP}"}
    quiet = subprocess.DEVNULL
    with (folder / "stderr").open("w") as err:
        return subprocess.Popen([*COMMAND, *words], cwd=folder, env=environment, stdout=quiet, stderr=err)


def alive(folder: Path) -> list[psutil.Process]:
    everyone = psutil.process_iter(["environ"])
    return [process for process in everyone if (process.info["environ"] or {}).get("KILLING") == f"{folder}"]


def nothing_left(folder: Path) -> bool:
    """Tell whether all processes of the folder end within five seconds. Those that do not are killed."""
    deadline = time.monotonic() + 5.0
    while alive(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = alive(folder)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    return not left


def killed_at_moments(folder: Path, words: list[str], kills: int, seed: int, most: float) -> list[Path]:
    """Kill the command by KILL and TERM in turn, at random moments, until so many have found it running.

    Where it ends before, it begins anew in another folder. All folders.
    """
    rng, folders, killed = random.Random(seed), [prepared(folder / "0")], 0
    while killed < kills:
        assert len(folders) < 3 * kills
        here, number = folders[-1], (signal.SIGKILL, signal.SIGTERM)[killed % 2]
        before = finished(here)
        process = started(here, words)
        time.sleep(0.3 + rng.random() * most)
        killed += process.poll() is None
        process.send_signal(number)
        code = process.wait(timeout=60)
        assert code in (0, -number, *([143] if number == signal.SIGTERM else []))
        assert nothing_left(here)
        after, said = finished(here), (here / "stderr").read_text()
        assert {key: after.get(key) for key in before} == before
        assert "Traceback" not in said, said
        assert (code == 143) == ("interrupted" in said), said
        assert code != 143 or words[0] == "-m" or after == before, said
        folders += [prepared(folder / f"{len(folders)}")] if code == 0 else []
    return folders


def ends_as(folder: Path, words: list[str], whole: dict[str, Any]) -> None:
    before = finished(folder)
    assert started(folder, words).wait(timeout=600) == 0
    assert {key: finished(folder).get(key) for key in before} == before
    assert numbers(folder) == whole
    assert not left_over(folder)
    assert nothing_left(folder)


@pytest.mark.parametrize("kind", ["marginal, processes", "sweep, joblib"])
def test_no_worker_outlives_its_command(tmp_path: Path, kind: str) -> None:
    killed_at_moments(tmp_path, TIMED[kind], 2, 1, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TIMED)
def test_killed_at_many_moments(tmp_path: Path, kind: str) -> None:
    """Ten kills of each of ten kinds."""
    folder = prepared(tmp_path / "whole")
    begun = time.monotonic()
    assert started(folder, TIMED[kind]).wait(timeout=600) == 0
    most, whole = time.monotonic() - begun, numbers(folder)
    assert whole
    folders = killed_at_moments(tmp_path, TIMED[kind], 10, 7, 0.9 * most)
    for killed in folders:
        ends_as(killed, TIMED[kind], whole)
    print(f"{kind}: 10 kills in {len(folders)} folders, {most:.1f} s")
