"""Sums of an unfinished task on disk. The same task continues from them to the same result.

Blocks are added in the order of their runs, so a checkpoint is the sum over the first so many runs. It does not depend
on who computed them or how they were cut into blocks. A file that is damaged, or that belongs to another task or
another version of the code, is not used.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import regular
from dpsmc_audit.runs.files import write_bytes
from dpsmc_audit.runs.notes import warn

__all__ = ["Checkpoint", "Saved", "Sums"]

Saved = dict[str, "int | float | NDArray[np.int64] | NDArray[np.float64]"]
"""The state of sums: numbers (integers of any size) and arrays, by name."""

log = logging.getLogger("dpsmc_audit")


class Sums(Protocol):
    """Sums that a checkpoint can save and restore."""

    def saved(self) -> Saved:
        """Return the state of the sums."""
        ...

    def restore(self, saved: Saved) -> None:
        """Set the state of the sums.

        Parameters
        ----------
        saved : dict
            A state that `saved` returned.

        Raises
        ------
        ValueError, KeyError
            If `saved` is not a state of these sums. The sums are then unchanged.
        """
        ...


def _digest(done: int, numbers: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    """Compute a digest of the content: an archive's own checksums do not cover its table of contents."""
    found = hashlib.sha256(json.dumps([done, numbers], sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode() + array.tobytes())
    return found.hexdigest()


class Checkpoint:
    """The checkpoints of one task: a file ``checkpoint-<stage>.npz`` for each of its stages.

    Parameters
    ----------
    folder : Path
        The folder of the files.
    key : str
        A digest of everything that the sums depend on. A file with another key is not used.
    every : float
        Seconds between two saves.

    Attributes
    ----------
    kept : dict of str to int
        The number of runs on disk, by stage.
    spent : float
        Seconds that earlier attempts at this task took.

    Examples
    --------
    >>> import tempfile
    >>> class Total:
    ...     value = 0
    ...     def saved(self): return {"value": self.value}
    ...     def restore(self, saved): self.value = saved["value"]
    >>> folder, total = Path(tempfile.mkdtemp()), Total()
    >>> total.value = 3 ** 100
    >>> Checkpoint(folder, "a").save("runs", 500, total)
    >>> again = Total()
    >>> Checkpoint(folder, "a").restore("runs", again), again.value == 3 ** 100
    (500, True)
    >>> Checkpoint(folder, "another task").restore("runs", again)
    0
    """

    def __init__(self, folder: Path, key: str, every: float = 10.0) -> None:
        self.folder, self.key, self.every = folder, key, every
        self.kept: dict[str, int] = {}
        self.spent = 0.0
        self._stages: set[str] = set()
        self._begun = self._last = time.monotonic()

    def _path(self, stage: str) -> Path:
        self._stages.add(stage)
        return self.folder / f"checkpoint-{stage}.npz"

    def restore(self, stage: str, sums: Sums) -> int:
        """Restore sums from disk. A file that cannot be used causes a warning.

        Parameters
        ----------
        stage : str
            The stage of the task.
        sums : Sums
            They take over the saved state, or stay unchanged.

        Returns
        -------
        int
            The number of runs that the sums cover; 0 if nothing was restored.
        """
        path, problem = self._path(stage), "is damaged"
        if not os.path.lexists(path):
            return 0
        try:
            with np.load(io.BytesIO(regular(path).read_bytes()), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            head = json.loads(bytes(arrays.pop("head")))
            if head["key"] != self.key:
                problem = "is of other parameters or of another version"
                raise ValueError(problem)
            if head["digest"] != _digest(head["done"], head["numbers"], arrays):
                raise ValueError(problem)
            done, spent = int(head["done"]), float(head["seconds"])
            sums.restore({**head["numbers"], **arrays})
        except Exception:  # a damaged archive can raise anything
            warn(f"{path.name} {problem}: the task begins anew")
            return 0
        self.spent = max(self.spent, spent)
        self.kept[stage] = done
        log.info("going on from %s: %d done", path.name, done)
        return done

    def offer(self, stage: str, done: int, sums: Sums) -> None:
        """Save the sums if the last save was `every` seconds ago. If the disk refuses, warn once and stop saving.

        Parameters
        ----------
        stage : str
            The stage of the task.
        done : int
            The number of runs that the sums cover.
        sums : Sums
            The sums.
        """
        if time.monotonic() - self._last < self.every:
            return
        try:
            self.save(stage, done, sums)
        except OSError as error:
            warn(f"no more checkpoints: {error}")
            self.every = math.inf

    def save(self, stage: str, done: int, sums: Sums) -> None:
        """Save the sums.

        Parameters
        ----------
        stage : str
            The stage of the task.
        done : int
            The number of runs that the sums cover.
        sums : Sums
            The sums.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        saved = sums.saved()
        arrays: dict[str, Any] = {name: value for name, value in saved.items() if isinstance(value, np.ndarray)}
        numbers = {name: value for name, value in saved.items() if name not in arrays}
        head = {"key": self.key, "seconds": self.spent + time.monotonic() - self._begun, "done": done}
        head |= {"numbers": numbers, "digest": _digest(done, numbers, arrays)}
        buffer = io.BytesIO()
        np.savez(buffer, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)
        write_bytes(self._path(stage), buffer.getvalue())
        self.kept[stage] = done
        self._last = time.monotonic()

    def drop(self, stage: str) -> None:
        """Remove the file of a stage whose sums are now part of another stage's.

        Parameters
        ----------
        stage : str
            The stage of the task.
        """
        self._path(stage).unlink(missing_ok=True)
        self.kept.pop(stage, None)

    def clear(self, *, others: bool = False) -> None:
        """Remove the files of this task, also those of an attempt that was killed. Files of users are not touched.

        Parameters
        ----------
        others : bool
            Also remove checkpoints of other tasks, as a folder of a sweep holds one point after the other.
        """
        ours = {self._path(stage) for stage in [*self._stages]}
        for path in self.folder.glob("checkpoint-*.npz"):
            key = _key_in(path)
            if key == self.key or (others and key is not None):
                ours.add(path)
        for path in ours:
            path.unlink(missing_ok=True)


def _key_in(path: Path) -> str | None:
    """Read the key of a checkpoint. None if the file is no checkpoint."""
    with suppress(Exception), np.load(io.BytesIO(regular(path).read_bytes()), allow_pickle=False) as file:
        return str(json.loads(bytes(file["head"]))["key"])
    return None
