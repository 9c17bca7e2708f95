"""Where the package is installed, and what can be written there and elsewhere."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba import config
from numba.core.caching import InTreeCacheLocator

from dpsmc_audit.jit import kernel
from dpsmc_audit.report.command import without_folders
from tests.documents import TOP


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


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user that the system does not know, in an installation of somebody else."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(InTreeCacheLocator, "from_function", classmethod(lambda cls, function, path: None))
    assert os.path.expanduser("~") == "~"
    return tmp_path


def test_without_a_home_no_folder_is_made(homeless: Path) -> None:
    """Numba alone would keep its code in a folder named "~"."""
    compiled = kernel(three_times)
    assert compiled(2.0) == 6.0
    assert compiled.stats.cache_path is None
    assert not list(homeless.iterdir())


def test_without_a_home_texts_lose_their_folders(homeless: Path) -> None:
    assert without_folders(f"cannot read {homeless}/bits.txt; about ~1 %") == "cannot read …/bits.txt; about ~1 %"


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Path]:
    """The package and a home in which nothing can be written."""
    folder = tmp_path / "sealed"
    for name in ("dpsmc_audit", "conf"):
        shutil.copytree(TOP / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "home").mkdir()
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    yield folder
    for path in folders:
        path.chmod(0o755)


def obeying() -> list[str]:
    """A command in front of another that makes root obey the permissions of files."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root writes everywhere")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def test_the_command_runs_where_only_its_results_can_be_written(sealed: Path, tmp_path: Path) -> None:
    """Here and in another process."""
    keys = ["task=simulate", "runs=200", "engine.kernel=steps", "backend=processes", "hydra.run.dir=out"]
    given = {name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    given |= {"HOME": f"{sealed / 'home'}", "PYTHONPATH": f"{sealed}"}
    command = [*obeying(), sys.executable, "-m", "dpsmc_audit", *keys]
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "result.json").exists()
    assert not list(sealed.rglob("__pycache__"))
    assert not list((sealed / "home").iterdir())
