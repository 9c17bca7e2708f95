"""Sums of an unfinished task on disk, from which the same task goes on to the same result.

Blocks are added in the order of their runs, so what is kept is the sum over the first so many runs: it does not matter
who computed them, nor how they were cut into blocks. A file that is damaged, or belongs to another task or another
version of the code, is not used.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
import os
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import regular
from dpsmc_audit.runs.notes import warn

__all__ = ["Checkpoint", "Saved", "Sums"]

Saved = dict[str, "int | float | NDArray[np.int64] | NDArray[np.float64]"]
"""What sums are made of: numbers (integers of any size) and arrays."""

log = logging.getLogger("dpsmc_audit")


class Sums(Protocol):
    """What can be kept on disk and taken up again."""

    def saved(self) -> Saved: ...

    def restore(self, saved: Saved) -> None:
        """Raise `ValueError` or `KeyError`, and change nothing, if that is not a state of these sums."""


def _digest(done: int, numbers: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    """Of all that is kept: an archive's own checks do not cover its table of contents."""
    found = hashlib.sha256(json.dumps([done, numbers], sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode())
        found.update(array.tobytes())
    return found.hexdigest()


class Checkpoint:
    """Files ``checkpoint-<stage>.npz`` in one folder; `key` stands for everything that the sums depend on.

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
        self.spent = 0.0  # seconds of earlier attempts
        self._stages: set[str] = set()
        self._begun = self._last = time.monotonic()

    def _path(self, stage: str) -> Path:
        return self.folder / f"checkpoint-{stage}.npz"

    def restore(self, stage: str, sums: Sums) -> int:
        """How many runs the sums on disk are of; they are now in `sums`. 0 if there are none that can be used."""
        path = self._path(stage)
        self._stages.add(stage)
        if not os.path.lexists(path):
            return 0
        try:
            with np.load(io.BytesIO(regular(path).read_bytes()), allow_pickle=False) as file:
                content = {name: file[name] for name in file.files}
            head = json.loads(bytes(content.pop("head")))
            known, done = head["key"] == self.key, int(head["done"])
            if known:
                if head["digest"] != _digest(head["done"], head["numbers"], content):
                    raise ValueError("its content was changed")
                spent = float(head["seconds"])
                sums.restore({**head["numbers"], **content})
                self.spent = max(self.spent, spent)
        except Exception:  # what a damaged archive raises is anybody's guess
            warn(f"{path.name} is damaged: the task begins anew")
            return 0
        if not known:
            warn(f"{path.name} is of other parameters or of another version: the task begins anew")
            return 0
        self.kept[stage] = done
        log.info("going on from %s: %d done", path.name, done)
        return done

    def offer(self, stage: str, done: int, sums: Sums) -> None:
        """Save, if the last time is long enough ago; a disk that takes no checkpoint ends no task."""
        if time.monotonic() - self._last < self.every:
            return
        try:
            self.save(stage, done, sums)
        except OSError as error:
            warn(f"no more checkpoints: {error}")
            self.every = math.inf

    def save(self, stage: str, done: int, sums: Sums) -> None:
        """Write to a temporary name and rename."""
        saved = sums.saved()
        arrays: dict[str, Any] = {name: value for name, value in saved.items() if isinstance(value, np.ndarray)}
        numbers = {name: value for name, value in saved.items() if not isinstance(value, np.ndarray)}
        content = {"done": done, "numbers": numbers, "digest": _digest(done, numbers, arrays)}
        seconds = self.spent + time.monotonic() - self._begun
        head = json.dumps({"key": self.key, "seconds": seconds, **content}).encode()
        buffer = io.BytesIO()
        np.savez(buffer, head=np.frombuffer(head, np.uint8), **arrays)  # NumPy < 2.2 takes any option for an array
        path = self._path(stage)
        self._stages.add(stage)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(buffer.getbuffer())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        self.kept[stage] = done
        self._last = time.monotonic()

    def drop(self, stage: str) -> None:
        """The stage is done, and its sums are part of another's."""
        self._path(stage).unlink(missing_ok=True)
        self.kept.pop(stage, None)

    def clear(self) -> None:
        """The task is done: remove what it wrote, and nothing else."""
        for stage in self._stages:
            self._path(stage).unlink(missing_ok=True)
