"""Streams cannot cost a run: closed, full, without a reader or unable to show a letter, they change no result."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.test_faults import finished

RUN = "task=simulate runs=300 backend=serial hydra.run.dir=r"
SWEEP = "-m task=simulate runs=300 alpha=0.05,0.1 backend=serial hydra.sweep.dir=s"
RELEASE = "task=verify epsilon=0.5 delta=0.1 alpha=0.05 hydra.run.dir=r"
WAYS = {
    "no stderr": "{} 2>&-",
    "no stdout": "{} >&-",
    "no streams": "{} <&- >&- 2>&-",
    "no reader": "{} | true; exit ${{PIPESTATUS[0]}}",
    "no reader of both": "{} 2>&1 | true; exit ${{PIPESTATUS[0]}}",
    "full": "{} >/dev/full",
    "both full": "{} >/dev/full 2>&1",
    "ASCII": "PYTHONIOENCODING=ascii {} >out",
}


def shell(folder: Path, words: str, way: str) -> int:
    """Run a command with its streams in some way. Its exit code."""
    command = f"{shlex.quote(sys.executable)} -m dpsmc_audit {words}"
    environment = os.environ | {"PYTHONUNBUFFERED": ""}
    given = ["bash", "-c", WAYS[way].format(command)]
    return subprocess.run(given, cwd=folder, env=environment, capture_output=True, check=False).returncode


@pytest.mark.parametrize("way", WAYS)
def test_a_run_ends_with_its_result_whatever_its_streams(tmp_path: Path, way: str) -> None:
    assert shell(tmp_path, RUN, way) == 0
    assert len(finished(tmp_path)) == 1


@pytest.mark.parametrize("way", ["no stderr", "no reader", "full"])
def test_a_sweep_ends_with_its_page(tmp_path: Path, way: str) -> None:
    assert shell(tmp_path, SWEEP, way) == 0
    assert len(finished(tmp_path)) == 2
    assert {"report.html", "table.md", "table.csv"} <= {path.name for path in (tmp_path / "s").iterdir()}


@pytest.mark.parametrize("way", ["no streams", "no reader of both"])
def test_a_failure_keeps_its_exit_code(tmp_path: Path, way: str) -> None:
    assert shell(tmp_path, f"{RUN} alpha=0.7", way) == 2


@pytest.mark.parametrize("way", ["no streams", "no reader"])
def test_a_release_is_a_release_whatever_its_streams(tmp_path: Path, way: str) -> None:
    assert shell(tmp_path, RELEASE, way) == 0
    assert len(finished(tmp_path)) == 1


def test_a_stream_that_cannot_show_a_letter_shows_another(tmp_path: Path) -> None:
    assert shell(tmp_path, SWEEP, "ASCII") == 0
    assert "?" in (tmp_path / "out").read_text(encoding="ascii")
