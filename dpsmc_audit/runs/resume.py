"""Which points of a sweep are there already: complete results of the same parameters, inputs and code.

A result is written last in its folder and carries a fingerprint of all that it depends on and a digest of its own
content. What cannot be read, or does not match its digest, is nobody's result.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpsmc_audit.runs.files import RESULT, read_json, strict
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.runs.provenance import digest
from dpsmc_audit.targets import module_file

__all__ = [
    "KEPT",
    "clean",
    "content_of",
    "files_in",
    "fingerprint_in",
    "module_content",
    "seal",
    "set_aside",
    "take_over",
]

KEPT = ".kept"
"""Where results of an earlier sweep in the same folder wait for the points that they belong to."""
BEFORE = "result.before.json"
"""The result of an older run in the same folder."""
OURS = re.compile(r"\.point\.json|partial\.json|\.[\w.-]+\.\d+\.tmp")
"""Notes of an older run, and what a killed one was writing."""


def seal(result: dict[str, Any], fingerprint: str, files: Sequence[str] = ()) -> dict[str, Any]:
    """The result with its fingerprint, the files that belong to it and the digest of everything in it."""
    known = {**result["provenance"], "fingerprint": fingerprint, "files": list(files)}
    made = strict({**result, "provenance": known})
    made["provenance"]["digest"] = digest(made)
    return made  # type: ignore[no-any-return]


def fingerprint_in(folder: Path, quietly: bool = False) -> str | None:
    """Of the complete result in a folder; None if there is none, with a warning if there is something else."""
    path = folder / RESULT
    if not os.path.lexists(path):
        return None
    try:
        result = read_json(path)
        provenance = dict(result["provenance"])
        told = provenance.pop("digest")
        if told != digest({**result, "provenance": provenance}):
            raise ValueError("its content was changed")
        found = str(provenance["fingerprint"])
        if found in ("", ".", "..") or Path(found).name != found or len(found) > 64:
            raise ValueError("its fingerprint is none")  # it will be the name of a folder
        return found
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else f"{error}"
        if not quietly:
            warn(f"{RESULT} in {folder.name} is not a complete result ({what}): not used")
        return None


def set_aside(sweep: Path) -> None:
    """Before a sweep: move the results of its points to where any point can find its own by its fingerprint."""
    folders = [path for path in sweep.iterdir() if path.is_dir() and path.name != KEPT] if sweep.is_dir() else []
    for folder in sorted(folders):
        fingerprint = fingerprint_in(folder, quietly=True)  # the point that comes there will say it
        if fingerprint is None:
            continue
        place = sweep / KEPT / fingerprint
        if fingerprint_in(place, quietly=True) == fingerprint:
            continue
        shutil.rmtree(place, ignore_errors=True)  # copied elsewhere before an earlier sweep was killed
        place.parent.mkdir(exist_ok=True)
        os.replace(folder, place)


def take_over(folder: Path, sweep: Path, fingerprint: str) -> bool:
    """Whether the result of this point is in its folder now, from an earlier sweep, with all files that it names.

    The result itself is moved last, so that at any moment one of the two places has everything.
    """
    if fingerprint_in(folder) == fingerprint and _all_there(folder):
        return True
    waiting = sweep / KEPT / fingerprint
    if fingerprint_in(waiting) != fingerprint or not _all_there(waiting):
        return False
    clean(folder)
    for path in waiting.iterdir():
        if path.name != RESULT:
            _copy(path, folder)
    os.replace(waiting / RESULT, folder / RESULT)
    shutil.rmtree(waiting, ignore_errors=True)
    return True


def _all_there(folder: Path) -> bool:
    return all((folder / name).exists() for name in read_json(folder / RESULT)["provenance"].get("files", []))


def _copy(path: Path, folder: Path) -> None:
    """A file or a folder, whoever made it; beside one of the same name, such as the log of today."""
    place = folder / path.name
    if os.path.lexists(place):
        place = folder / f"{path.stem}.before{path.suffix}"
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, place, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(path, place, follow_symlinks=False)


def files_in(folder: Path) -> list[str]:
    """What a run has written, but for its log."""
    names = (path.name for path in folder.iterdir() if path.suffix in (".csv", ".png", ".html"))
    return sorted(names)


def clean(folder: Path) -> None:
    """Make room for a new run: what it would seem to have made is removed, a result of ours is put by.

    Files that we did not make are left alone; so are checkpoints, which know what they are of.
    """
    if fingerprint_in(folder, quietly=True) is not None:
        os.replace(folder / RESULT, folder / BEFORE)
        (folder / "report.html").unlink(missing_ok=True)
    for path in folder.iterdir():
        if OURS.fullmatch(path.name):
            path.unlink(missing_ok=True)


@lru_cache
def module_content(target: str) -> str:
    """A digest of the file of a user's module, as it was when this process first asked: it is imported once."""
    return content_of(module_file(target))


def content_of(path: Path) -> str:
    """A digest of a file's bytes; of nothing if it cannot be read.

    What a pipe holds can be read once, by whoever needs it: it is never the same as before.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return secrets.token_hex(32)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return json.dumps(None)
