"""Where the package is installed, and what can be written there and elsewhere."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from numba import config

from dpsmc_audit.numerics.jit import kernel
from dpsmc_audit.report.command import without_folders
from tests.support.documents import TOP


def three_times(x: float) -> float:
    return 3.0 * x


# --- compiled code is kept ------------------------------------------------------------------------------------------


def test_compiled_code_is_kept_in_the_folder_that_the_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    first = kernel(three_times)
    assert first(2.0) == 6.0
    assert [path.suffix for path in sorted(tmp_path.rglob("*.nb*"))] == [".nbc", ".nbi"]
    second = kernel(three_times)
    assert second(2.0) == 6.0
    assert sum(second.stats.cache_hits.values()) == 1


def test_every_kernel_can_do_without_a_cache() -> None:
    own = [path.name for path in (TOP / "dpsmc_audit").rglob("*.py") if "njit" in path.read_text()]
    assert own == ["jit.py"]


# --- nothing can be kept --------------------------------------------------------------------------------------------


def blocked(folder: Path) -> None:
    """A file in the way of the folder for compiled code: permissions would not stop root."""
    (folder / "__pycache__").touch()


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder that a process is in whose user the system does not know."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    assert os.path.expanduser("~") == "~"
    return folder


def test_without_a_home_no_folder_is_made(homeless: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba alone would keep its code in a folder named "~"."""
    (tmp_path / "installed_elsewhere.py").write_text("def four_times(x):\n    return 4.0 * x\n")
    blocked(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    compiled = kernel(import_module("installed_elsewhere").four_times)
    assert compiled(2.0) == 8.0
    assert compiled.stats.cache_path is None
    assert not list(homeless.iterdir())


def test_without_a_home_texts_lose_their_folders(homeless: Path) -> None:
    assert without_folders(f"cannot read {homeless}/bits.txt; about ~1 %") == "cannot read …/bits.txt; about ~1 %"


def test_the_command_runs_where_only_its_results_can_be_written(tmp_path: Path) -> None:
    """Here and in another process."""
    installed = tmp_path / "installed"
    for name in ("dpsmc_audit", "conf"):
        shutil.copytree(TOP / name, installed / name, ignore=shutil.ignore_patterns("__pycache__"))
    for source in list(installed.rglob("*.py")):
        blocked(source.parent)
    keys = ["task=simulate", "runs=200", "engine.kernel=steps", "backend=processes", "hydra.run.dir=out"]
    given = {name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    given |= {"HOME": os.devnull, "PYTHONPATH": f"{installed}"}
    command = [sys.executable, "-m", "dpsmc_audit", *keys]
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "result.json").exists()
    assert not list(installed.rglob("*.nb*"))
