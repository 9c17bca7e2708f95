"""A start that is refused leaves no folder behind."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

from dpsmc_audit.runs.files import POINT

__all__ = ["about_to_make", "leave_nothing"]

_made: ContextVar[tuple[Path, ...]] = ContextVar("made", default=())

NOTES = {POINT, ".sweep.json", ".lock", "multirun.yaml"}
"""Files that say that something was begun, and nothing more."""


def about_to_make(folder: Path) -> None:
    """Remember which folders do not exist before a run or a sweep makes them.

    Parameters
    ----------
    folder : Path
        The folder that will be made, with all its parents.
    """
    path = folder.absolute()
    _made.set(tuple(each for each in (path, *path.parents) if not each.exists()))


def leave_nothing() -> None:
    """Remove these folders if nothing but notes is in them."""
    made, _ = _made.get(), _made.set(())
    if not made or not made[0].is_dir():
        return
    inside = sorted(made[0].rglob("*"), reverse=True)
    if any(path.is_symlink() or (path.is_file() and path.name not in NOTES) for path in inside):
        return
    with suppress(OSError):
        for path in inside:
            path.rmdir() if path.is_dir() else path.unlink()
        for path in made:
            path.rmdir()  # stops at a folder that something else has used meanwhile
