"""Processes that are killed, interrupted or run out of disk: nothing finished is lost, and going on gives the same."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.support.once import made_once

COMMAND = [sys.executable, "-m", "dpsmc_audit"]
SWEEP = ["-m", "task=simulate", "runs=20000", "alpha=0.01,0.02,0.03,0.05,0.1", "hydra.sweep.dir=s", "backend=serial"]
AUDIT = [
    *("notion=marginal", "runs=400000", "early=false", "pairs=4", "epsilon=0.1", "delta=0.03", "hydra.run.dir=a"),
    *("backend.checkpoint=0", "backend.block_size=2000"),
]


def hears_interrupts() -> None:
    """In the child: a job of a shell's background is born deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(arguments: list[str], folder: Path, **options: object) -> subprocess.Popen[str]:
    options.setdefault("preexec_fn", hears_interrupts)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *arguments], cwd=folder, **pipes, **options)  # type: ignore[call-overload, no-any-return]


def finish(arguments: list[str], folder: Path, **options: object) -> tuple[int, str, str]:
    process = start(arguments, folder, **options)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def finished(folder: Path) -> dict[str, bytes]:
    """Whole results by their parameters: they say how long they took, so none is made twice."""
    found = {}
    for path in folder.rglob("result.json"):
        content = path.read_bytes()
        found[json.dumps(json.loads(content)["parameters"])] = content
    return found


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Until the condition holds, or the process has ended."""
    deadline = time.monotonic() + 120
    while not condition() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def kill_and_go_on(folder: Path, kills: int, seed: int) -> tuple[int, bytes]:
    """How many results were there before the last start, and the final table."""
    rng, kept = random.Random(seed), 0
    for _ in range(kills):
        before = finished(folder)
        process = start(SWEEP, folder)
        target = rng.choice([len(before), len(before) + 1])
        wait_for(lambda target=target: len(finished_now(folder)) >= target and (folder / "s").exists(), process)  # type: ignore[misc]
        time.sleep(rng.random() * 0.3)
        process.kill()
        process.communicate()
        after = finished(folder)
        assert {key: after[key] for key in before} == before
    kept = len(finished(folder))
    before = finished(folder)
    code, out, _ = finish(SWEEP, folder)
    assert code == 0
    after = finished(folder)
    assert {key: after[key] for key in before} == before
    assert (f"{kept} of them were there already" in out) == (kept > 0)
    return kept, (folder / "s" / "table.csv").read_bytes()


def finished_now(folder: Path) -> list[Path]:
    """While a process works there: a folder may go while it is looked through."""
    with suppress(FileNotFoundError):
        return list(folder.rglob("result.json"))
    return []


def whole(arguments: list[str], folder: Path) -> None:
    assert finish(arguments, folder)[0] == 0


@pytest.fixture(scope="module")
def whole_sweep(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = made_once(tmp_path_factory, "whole-sweep", partial(whole, SWEEP))
    return (folder / "s" / "table.csv").read_bytes()


def test_a_killed_sweep_goes_on(tmp_path: Path, whole_sweep: bytes) -> None:
    _, table = kill_and_go_on(tmp_path, kills=2, seed=1)
    assert table == whole_sweep


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_sweep_killed_many_times_goes_on(tmp_path: Path, whole_sweep: bytes, seed: int) -> None:
    """Four kills each at random moments."""
    _, table = kill_and_go_on(tmp_path, kills=4, seed=seed)
    assert table == whole_sweep


def killed_audit(folder: Path, kills: int, seed: int) -> int:
    """Kill the audit when its checkpoint has grown a few times; how often it was killed after a checkpoint."""
    rng, killed = random.Random(seed), 0
    checkpoint = folder / "a" / "checkpoint-runs.npz"
    for _ in range(kills):
        process = start(AUDIT, folder)
        seen: set[int] = set()
        wanted = rng.randrange(1, 12)

        def grown(seen: set[int] = seen, wanted: int = wanted) -> bool:
            if checkpoint.exists():
                seen.add(checkpoint.stat().st_mtime_ns)
            return len(seen) > wanted

        wait_for(grown, process)
        process.kill()
        process.communicate()
        killed += checkpoint.exists() and not (folder / "a" / "result.json").exists()
    return killed


@pytest.fixture(scope="module")
def whole_audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "whole-audit", partial(whole, AUDIT)) / "a"


def same_audit(one: Path, other: Path) -> None:
    assert (one / "histogram.csv").read_bytes() == (other / "histogram.csv").read_bytes()
    results = [json.loads((folder / "result.json").read_text()) for folder in (one, other)]
    for result in results:
        del result["seconds"], result["provenance"]["digest"]
    assert results[0] == results[1]
    assert not list(other.glob("checkpoint*")) + list(other.glob(".*"))


def test_a_killed_audit_goes_on(tmp_path: Path, whole_audit: Path) -> None:
    assert killed_audit(tmp_path, kills=1, seed=3) == 1
    code, _, err = finish([*AUDIT, "backend.block_size=3000"], tmp_path)
    assert (code, err) == (0, "")
    same_audit(whole_audit, tmp_path / "a")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_an_audit_killed_many_times_goes_on(tmp_path: Path, whole_audit: Path, seed: int) -> None:
    assert killed_audit(tmp_path, kills=5, seed=seed) >= 3
    assert finish(AUDIT, tmp_path)[0] == 0
    same_audit(whole_audit, tmp_path / "a")


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def test_an_interrupted_audit_says_what_was_kept_and_how_to_go_on(tmp_path: Path, whole_audit: Path) -> None:
    process = start(AUDIT, tmp_path)
    wait_for((tmp_path / "a" / "checkpoint-runs.npz").exists, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: kept" in err
    assert "go on with the same command and hydra.run.dir=a" in err
    assert "Traceback" not in err
    assert finish(AUDIT, tmp_path)[0] == 0
    same_audit(whole_audit, tmp_path / "a")


@pytest.mark.parametrize("backend", ["serial", "processes"])
def test_a_long_block_does_not_keep_ctrl_c_waiting(tmp_path: Path, backend: str) -> None:
    """One block is minutes of work as it is asked for. It is cut, Ctrl-C takes effect, and what was done is kept."""
    long = ["task=simulate", "runs=1000000", "p_phi=0.73", "delta=0.0001", "engine.kernel=steps", f"backend={backend}"]
    process = start([*long, "backend.block_size=500000", "backend.workers=2", "hydra.run.dir=a"], tmp_path)
    wait_for((tmp_path / "a").exists, process)
    time.sleep(4.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    went_on = r"\ninterrupted: (nothing new was kept|kept \d+ runs; go on with the same command and hydra.run.dir=a)\n"
    assert re.fullmatch(went_on, err)


def test_an_interrupted_sweep_says_how_to_go_on(tmp_path: Path, whole_sweep: bytes) -> None:
    process = start(SWEEP, tmp_path)
    wait_for(lambda: len(finished_now(tmp_path)) >= 2, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with the same command and hydra.sweep.dir=s" in err
    assert "results in s" in out
    assert finish(SWEEP, tmp_path)[0] == 0
    assert (tmp_path / "s" / "table.csv").read_bytes() == whole_sweep


def test_a_sweep_in_a_long_block_still_shows_its_finished_points(tmp_path: Path) -> None:
    """The second point would take minutes in one compiled call, if a block were as large as it is asked for."""
    slow = ["-m", "task=simulate", "runs=100000", "p_phi=0.73", "delta=0.05,0.0001", "engine.kernel=steps", "alpha=0.1"]
    process = start([*slow, "backend=serial", "backend.block_size=100000", "hydra.sweep.dir=s"], tmp_path)
    wait_for((tmp_path / "s" / "1").exists, process)
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)  # impatience changes nothing
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "1 results in s" in out
    assert (tmp_path / "s" / "table.csv").read_text().count("\n") == 2
    assert err.endswith("\ninterrupted: finished points are kept; go on with the same command and hydra.sweep.dir=s\n")
    assert "Traceback" not in err


def test_ctrl_c_until_the_process_ends_changes_nothing(tmp_path: Path) -> None:
    """Also while Python closes down, when it has removed the handlers of signals."""
    process = start([*AUDIT, "runs=40000000"], tmp_path)
    wait_for((tmp_path / "a" / "checkpoint-runs.npz").exists, process)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.count("interrupted: kept") == 1


def test_ctrl_c_during_the_imports_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "hydra.py").write_text("import pathlib, time\npathlib.Path('importing').touch()\ntime.sleep(60)\n")
    process = start(["task=simulate"], tmp_path)  # the folder it starts in comes first on the path
    wait_for((tmp_path / "importing").exists, process)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == -signal.SIGINT


# --- no room on the disk --------------------------------------------------------------------------------------------


def test_files_that_cannot_grow_end_in_one_line(tmp_path: Path) -> None:
    """A limit of 20 KB for a file: figures do not fit, and no result is left that looks whole."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    code, _, err = finish(["engine=exact", "hydra.run.dir=a"], tmp_path, preexec_fn=limited)
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not list(tmp_path.rglob("result.json"))
    assert not list(tmp_path.rglob(".*.tmp"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 KB, where one can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    options = [f"{mount}", "-t", "tmpfs", "-o", "size=300k", "tmpfs", f"{folder}"]
    if mount is None or os.geteuid() != 0 or subprocess.run(options, check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", f"{folder}"], check=True)


def fill(path: Path) -> None:
    """Leave no room."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 1024)


def test_a_full_disk_ends_in_one_line_with_earlier_results_intact(small_disk: Path) -> None:
    sweep = ["-m", "task=simulate", "runs=300", "hydra.sweep.dir=s"]
    assert finish([*sweep, "alpha=0.01,0.02"], small_disk)[0] == 0
    before = finished(small_disk)
    table = (small_disk / "s" / "table.csv").read_bytes()
    fill(small_disk / "ballast")
    code, _, err = finish([*sweep, "alpha=0.01,0.02,0.03,0.05"], small_disk)
    assert code != 0
    assert "No space left on device" in err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    after = finished(small_disk)
    assert after == before
    (small_disk / "ballast").unlink()
    assert finish([*sweep, "alpha=0.01,0.02"], small_disk)[0] == 0
    assert finished(small_disk) == before
    assert (small_disk / "s" / "table.csv").read_bytes() == table
