"""Which points of a sweep are there already: complete results of the same parameters, inputs and code.

A result is written last in its folder and carries a fingerprint of all that it depends on and a digest of its own
content. What cannot be read, or does not match its digest, is nobody's result.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from dpsmc_audit.notes import warn
from dpsmc_audit.provenance import digest
from dpsmc_audit.report.files import FAILED, KEPT_NOTE, RESULT, read_json, strict

__all__ = ["KEPT", "clean", "content_of", "fingerprint_in", "seal", "set_aside", "take_over"]

KEPT = ".kept"
"""Where results of an earlier sweep in the same folder wait for the points that they belong to."""
STALE = (RESULT, FAILED, KEPT_NOTE, "partial.json", "report.html")
"""Files of an older run, which a new one would seem to have made."""


def seal(result: dict[str, Any], fingerprint: str) -> dict[str, Any]:
    """The result with its fingerprint and the digest of everything in it."""
    made = strict({**result, "provenance": {**result["provenance"], "fingerprint": fingerprint}})
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
    """Before a sweep: move the results of numbered points to where any point can find its own by its fingerprint."""
    folders = [path for path in sweep.iterdir() if path.name.isdigit()] if sweep.is_dir() else []
    for folder in sorted(folders):
        fingerprint = fingerprint_in(folder, quietly=True)  # the point that comes there will say it
        if fingerprint is not None and not (sweep / KEPT / fingerprint).exists():
            (sweep / KEPT).mkdir(exist_ok=True)
            os.replace(folder, sweep / KEPT / fingerprint)


def take_over(folder: Path, sweep: Path, fingerprint: str) -> bool:
    """Whether the result of this point is in its folder now, from an earlier sweep.

    The result itself is moved last, so that at any moment one of the two places has all files.
    """
    if fingerprint_in(folder) == fingerprint:
        return True
    waiting = sweep / KEPT / fingerprint
    if fingerprint_in(waiting) != fingerprint:
        return False
    clean(folder)
    for path in waiting.iterdir():
        if path.name != RESULT and path.is_file() and path.suffix not in (".log", ".tmp"):
            shutil.copy2(path, folder / path.name)
    os.replace(waiting / RESULT, folder / RESULT)
    shutil.rmtree(waiting, ignore_errors=True)
    return True


def clean(folder: Path) -> None:
    """Remove what an older run left, but for checkpoints, which know what they are of."""
    for name in STALE:
        (folder / name).unlink(missing_ok=True)
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


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
