"""A sweep on disk: what was asked for, and how each point ended.

The folder of a sweep holds ``.sweep.json``, written when the sweep starts. Each point writes ``.point.json`` to its own
folder when it begins and when it ends. Both carry the token of the sweep, so files of an earlier sweep in the same
folder are not mistaken for those of this one. Points may run in other processes, or on other machines that share the
disk.
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
from dpsmc_audit.runs.files import KEPT, POINT, RESULT, near, read_json, remove_temporary, write_text
from dpsmc_audit.runs.resume import set_aside

__all__ = ["Point", "State", "Sweep", "begin", "end", "locked", "running"]

MANIFEST = ".sweep.json"
State = Literal["begun", "done", "kept", "failed"]


@dataclass(frozen=True)
class Point:
    """How a point of a sweep ended, or that it was begun.

    Parameters
    ----------
    folder : Path
        The folder of the point.
    state : {"begun", "done", "kept", "failed"}
        Not ended, computed, taken over from an earlier sweep, or failed.
    overrides : str
        The keys that this point changes, with their values.
    error : str
        The message of a failed point.
    """

    folder: Path
    state: State
    overrides: str
    error: str = ""

    @property
    def result(self) -> Path:
        """The result file. A failed point has none."""
        return self.folder / RESULT


@dataclass(frozen=True)
class Sweep:
    """A sweep that was started in a folder.

    Parameters
    ----------
    folder : Path
        The folder of its points and its table.
    token : str
        Distinguishes its notes from those of other sweeps in the same folder.
    study : str or None
        The prepared study it belongs to, such as ``table1``.
    given : tuple of str
        The overrides as they were typed.
    points : int
        The number of points that were asked for.
    """

    folder: Path
    token: str
    study: str | None
    given: tuple[str, ...]
    points: int

    @classmethod
    def start(cls, folder: Path, study: str | None, given: tuple[str, ...], points: int) -> Sweep:
        """Start a sweep: write what was asked for into its folder.

        Parameters
        ----------
        folder, study, given, points
            As for the class.

        Returns
        -------
        Sweep
            The sweep, with a new token.
        """
        sweep = cls(folder, secrets.token_hex(8), study, given, points)
        write_text(folder / MANIFEST, json.dumps({**asdict(sweep), "folder": ""}) + "\n")
        return sweep

    @classmethod
    def read(cls, folder: Path) -> Sweep | None:
        """Read the sweep that was last started in a folder.

        Parameters
        ----------
        folder : Path
            The folder of the sweep.

        Returns
        -------
        Sweep or None
            None if no sweep was started there.
        """
        with suppress(ParameterError, KeyError, TypeError):
            said = read_json(folder / MANIFEST)
            given = tuple(f"{override}" for override in said["given"])
            return cls(folder, f"{said['token']}", said["study"], given, int(said["points"]))
        return None

    def note(self, folder: Path, state: State, overrides: str, error: str = "") -> None:
        """Record that a point was begun, or how it ended.

        Parameters
        ----------
        folder, state, overrides, error
            As for `Point`.
        """
        content = {"sweep": self.token, "state": state, "overrides": overrides, "error": error}
        write_text(folder / POINT, json.dumps(content) + "\n")

    def ended(self) -> list[Point]:
        """List the points that have ended.

        Returns
        -------
        list of Point
            In the order of their folders' names, shorter names first: 2 comes before 10.
        """
        ended = (point for point in self._notes() if point.state != "begun")
        return sorted(ended, key=lambda point: (len(str(point.folder)), str(point.folder)))

    def _notes(self) -> Iterator[Point]:
        for path in self.folder.rglob(POINT):
            with suppress(ParameterError, KeyError):
                note = read_json(path)
                if KEPT not in path.parts and note["sweep"] == self.token:
                    yield Point(path.parent, note["state"], note["overrides"], note["error"])


def locked(folder: Path) -> FileLock:
    """Take the lock of a sweep's folder. One sweep at a time holds it; it is free when its process ends.

    Parameters
    ----------
    folder : Path
        The folder of the sweep. It is made if it does not exist.

    Returns
    -------
    FileLock
        The lock, acquired.

    Raises
    ------
    ParameterError
        If another sweep holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ParameterError(f"another sweep is under way in {near(folder)}") from None
    return lock


# Hydra makes the callback that begins a sweep, and nobody else can reach it: the command learns of the sweep from here.
_running: ContextVar[tuple[Sweep, FileLock] | None] = ContextVar("running", default=None)


def running() -> Sweep | None:
    """Return the sweep that this process has begun and not ended; None if there is none."""
    found = _running.get()
    return None if found is None else found[0]


def begin(folder: Path, study: str | None, given: tuple[str, ...], points: int) -> Sweep:
    """Lock the folder, set the results of earlier sweeps aside, and start a sweep.

    Parameters
    ----------
    folder, study, given, points
        As for `Sweep`.

    Returns
    -------
    Sweep
        The sweep; `running` returns it until `end` is called.

    Raises
    ------
    ParameterError
        If another sweep is under way in the folder.
    """
    lock = locked(folder)
    remove_temporary(folder.rglob("*"))
    set_aside(folder)
    sweep = Sweep.start(folder, study, given, points)
    _running.set((sweep, lock))
    return sweep


def end() -> None:
    """Release the folder of the running sweep, if there is one."""
    found = _running.get()
    _running.set(None)
    if found is not None:
        found[1].release()
