"""The same bytes under every backend and every launcher, from the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpsmc_audit.report import figures
from tests.support.command import Run, runner

AUDIT = ["pairs=260", "draws=500", "epsilon=0.05"]
SWEEP = ["-m", "task=simulate", "runs=3000", "epsilon=0.05,0.1", "alpha=0.01,0.05"]
WAYS = {
    "serial": ["backend=serial"],
    "one thread": ["backend.workers=1"],
    "two threads": ["backend.workers=2", "backend.block_size=64"],
    "four threads": ["backend.workers=4", "backend.block_size=7"],
    "processes": ["backend=processes", "backend.workers=2", "backend.block_size=500"],
    "one worker": ["backend=dask", "backend.workers=1", "backend.block_size=1000"],
    "two workers": ["backend=dask", "backend.workers=2", "backend.block_size=400"],
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Without figures, which take longer than the rest."""
    monkeypatch.setattr(figures, "save", lambda *_: None)
    return runner(monkeypatch, capsys, tmp_path)


@pytest.mark.filterwarnings("default")
def test_an_audit_and_a_sweep_are_the_same_bytes_under_every_backend(run: Run, tmp_path: Path) -> None:
    seen = set()
    for number, (name, options) in enumerate(WAYS.items()):
        code, _, err = run(*AUDIT, *options, f"hydra.run.dir=a{number}")
        assert (code, err) == (0, ""), name
        code, _, err = run(*SWEEP, *options, f"hydra.sweep.dir=s{number}")
        assert (code, err) == (0, ""), name
        folders = (tmp_path / f"a{number}" / "histogram.csv", tmp_path / f"s{number}" / "table.csv")
        seen.add(tuple(path.read_bytes() for path in folders))
    assert len(seen) == 1


@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_launchers_give_the_same_table_and_its_points_are_kept(run: Run, tmp_path: Path, launcher: str) -> None:
    """Points in processes of their own; a second sweep in the same folder computes none of them."""
    small = ["-m", "task=simulate", "runs=3000", "epsilon=0.05,0.1"]
    run(*small, "hydra.sweep.dir=here")
    command = [sys.executable, "-m", "dpsmc_audit", *small, f"hydra/launcher={launcher}", "hydra.sweep.dir=there"]
    for told in ("2 results in there", "2 of them were there already"):
        made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert told in made.stdout
        assert (tmp_path / "there" / "table.csv").read_bytes() == (tmp_path / "here" / "table.csv").read_bytes()
        if launcher == "submitit_local":
            break  # each start of its jobs takes seconds
