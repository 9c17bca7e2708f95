"""Work that all workers of a test run share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

__all__ = ["made_once"]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder of that name, filled by the first worker that asks for it; the others wait and find it."""
    base = factory.getbasetemp()
    top = base.parent if base.name.startswith("popen-") else base  # each worker has a folder in that of the run
    folder, done = top / name, top / f"{name}.done"
    with FileLock(top / f"{name}.lock"):
        if not done.exists():
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
