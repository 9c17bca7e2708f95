"""A sweep on disk: what was asked for, and what became of each point.

The folder of a sweep holds ``.sweep.json``, written when it starts. Each point leaves ``.point.json`` in its own folder
when it ends. Both carry the sweep's token, so files of an earlier sweep in the same folder are never mistaken for this
one's. Points may run in other processes or on other machines that share the disk.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.runs.files import RESULT, near, read_json, write_text
from dpsmc_audit.runs.resume import KEPT, set_aside

__all__ = ["Point", "State", "Sweep", "begin", "end", "locked", "running"]

MANIFEST, POINT = ".sweep.json", ".point.json"
State = Literal["done", "kept", "failed"]


@dataclass(frozen=True)
class Point:
    """How a point of a sweep ended: computed, found from an earlier sweep, or failed."""

    folder: Path
    state: State
    overrides: str
    error: str = ""

    @property
    def result(self) -> Path:
        """Its result file, which a failed point does not have."""
        return self.folder / RESULT


@dataclass(frozen=True)
class Sweep:
    """A sweep that was started in a folder.

    Parameters
    ----------
    folder : Path
        Where its points and its table go.
    token : str
        Tells its notes from those of other sweeps in the same folder.
    study : str or None
        The prepared study it belongs to, such as ``table1``.
    given : tuple of str
        The overrides as they were typed.
    points : int
        How many points were asked for.
    """

    folder: Path
    token: str
    study: str | None
    given: tuple[str, ...]
    points: int

    @classmethod
    def start(cls, folder: Path, study: str | None, given: tuple[str, ...], points: int) -> Sweep:
        """Begin a sweep: write what was asked for into its folder."""
        sweep = cls(folder, secrets.token_hex(8), study, given, points)
        write_text(folder / MANIFEST, json.dumps({**asdict(sweep), "folder": ""}) + "\n")
        return sweep

    @classmethod
    def read(cls, folder: Path) -> Sweep | None:
        """The sweep that was last started in a folder; None if there is none."""
        with suppress(ParameterError, KeyError, TypeError):
            said = read_json(folder / MANIFEST)
            given = tuple(f"{x}" for x in said["given"])
            return cls(folder, f"{said['token']}", said["study"], given, int(said["points"]))
        return None

    def note(self, folder: Path, state: State, overrides: str, error: str = "") -> None:
        """Leave word of how a point ended."""
        content = {"sweep": self.token, "state": state, "overrides": overrides, "error": error}
        write_text(folder / POINT, json.dumps(content) + "\n")

    def ended(self) -> list[Point]:
        """The points that have ended, in the order of their folders' names, shorter names first."""
        return sorted(self._notes(), key=lambda point: (len(str(point.folder)), str(point.folder)))

    def _notes(self) -> Iterator[Point]:
        for path in self.folder.rglob(POINT):
            with suppress(ParameterError, KeyError):
                note = read_json(path)
                if KEPT not in path.parts and note["sweep"] == self.token:
                    yield Point(path.parent, note["state"], note["overrides"], note["error"])


def locked(folder: Path) -> FileLock:
    """Take the lock that one sweep at a time holds in its folder; the system frees it when the process ends.

    Raises
    ------
    ParameterError
        If another sweep holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ParameterError(f"another sweep is under way in {near(folder)}") from None
    return lock


_running: ContextVar[tuple[Sweep, FileLock] | None] = ContextVar("running", default=None)


def running() -> Sweep | None:
    """The sweep that this process has begun and not ended."""
    found = _running.get()
    return None if found is None else found[0]


def begin(folder: Path, study: str | None, given: tuple[str, ...], points: int) -> Sweep:
    """Lock the folder, put the results of earlier sweeps in it aside, and start."""
    lock = locked(folder)
    set_aside(folder)
    sweep = Sweep.start(folder, study, given, points)
    _running.set((sweep, lock))
    return sweep


def end() -> None:
    """Free the folder, however the sweep went."""
    found = _running.get()
    _running.set(None)
    if found is not None:
        found[1].release()
