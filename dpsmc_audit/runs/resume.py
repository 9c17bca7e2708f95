"""Find the points of a sweep that have a result already: a complete one, of the same parameters, inputs and code.

A run writes its result last. The result carries a fingerprint of everything that it depends on and a digest of its own
content. A result that cannot be read or does not match its digest is not used.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.runs.files import KEPT, PARTIAL, POINT, RESULT, read_json, remove_temporary, strict
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.runs.provenance import digest
from dpsmc_audit.targets import module_file

__all__ = [
    "clean",
    "complete",
    "content_of",
    "files_in",
    "fingerprint_in",
    "module_content",
    "released_in",
    "seal",
    "set_aside",
    "take_over",
]


def seal(result: dict[str, Any], fingerprint: str, files: Sequence[str] = ()) -> dict[str, Any]:
    """Add to a result what `fingerprint_in` and `take_over` check.

    Parameters
    ----------
    result : dict
        The content of ``result.json``, with its provenance.
    fingerprint : str
        The digest of everything that the result depends on.
    files : sequence of str
        The names of the files that belong to the result.

    Returns
    -------
    dict
        The result with these and with a digest of its content, in strict JSON.
    """
    sealed = strict({**result, "provenance": {**result["provenance"], "fingerprint": fingerprint, "files": files}})
    sealed["provenance"]["digest"] = digest(sealed)
    return sealed  # type: ignore[no-any-return]


def fingerprint_in(folder: Path, quietly: bool = False) -> str | None:
    """Read the fingerprint of the complete result in a folder.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    quietly : bool
        True suppresses the warning about a result that is not complete.

    Returns
    -------
    str or None
        The fingerprint; None if the folder holds no complete result.
    """
    path = folder / RESULT
    if not os.path.lexists(path):
        return None
    try:
        result = read_json(path)
        provenance = dict(result["provenance"])
        if provenance.pop("digest") != digest({**result, "provenance": provenance}):
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


def released_in(folder: Path) -> bool:
    """Tell whether a folder holds a private release.

    Parameters
    ----------
    folder : Path
        The folder of a run.

    Returns
    -------
    bool
        True if its result is that of a verification.
    """
    try:
        return bool(read_json(folder / RESULT)["parameters"]["task"] == "verify")
    except (ParameterError, KeyError, TypeError):
        return False


def set_aside(sweep: Path) -> None:
    """Before a sweep, move the results of earlier sweeps in its folder to ``.kept/<fingerprint>``.

    Only folders that hold the note of a point are moved: single runs have none.

    Parameters
    ----------
    sweep : Path
        The folder of the sweep.
    """
    folders = [path.parent for path in sweep.glob(f"*/{POINT}") if path.parent.name != KEPT]
    for folder in sorted(folders):
        fingerprint = fingerprint_in(folder, quietly=True)  # `take_over` warns when a point comes to this folder
        place = sweep / KEPT / f"{fingerprint}"
        if fingerprint is not None and fingerprint_in(place, quietly=True) != fingerprint:
            shutil.rmtree(place, ignore_errors=True)  # a killed sweep may have left half of a move
            place.parent.mkdir(exist_ok=True)
            os.replace(folder, place)


def take_over(folder: Path, sweep: Path, fingerprint: str) -> bool:
    """Move the result of a point into its folder, if an earlier sweep has left it with all files that it names.

    The result file is moved last, so at any moment one of the two places has everything.

    Parameters
    ----------
    folder : Path
        The folder of the point.
    sweep : Path
        The folder of the sweep.
    fingerprint : str
        The digest of everything that the result depends on.

    Returns
    -------
    bool
        Whether the result is now in the folder.
    """
    waiting = sweep / KEPT / fingerprint
    if complete(folder, fingerprint):
        return True
    if not complete(waiting, fingerprint):
        return False
    clean(folder)
    for path in waiting.iterdir():
        if path.name != RESULT:
            _copy(path, folder)
    os.replace(waiting / RESULT, folder / RESULT)
    shutil.rmtree(waiting, ignore_errors=True)
    return True


def complete(folder: Path, fingerprint: str) -> bool:
    """Tell whether a folder holds a result with all files that it names.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    fingerprint : str
        The digest of everything that the result depends on.

    Returns
    -------
    bool
        True if it does.
    """
    if fingerprint_in(folder) != fingerprint:
        return False
    return all((folder / name).exists() for name in read_json(folder / RESULT)["provenance"].get("files", []))


def _copy(path: Path, folder: Path) -> None:
    """Copy a file or a folder; next to a file of the same name, such as the new log, under another name."""
    place = folder / path.name
    if os.path.lexists(place):
        if path.is_file() and place.is_file() and filecmp.cmp(path, place, shallow=False):
            return  # of an earlier attempt, which was killed
        place = folder / f"{path.stem}.before{path.suffix}"
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, place, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(path, place, follow_symlinks=False)


def files_in(folder: Path) -> list[str]:
    """List the tables, figures and pages that a run has written.

    Parameters
    ----------
    folder : Path
        The folder of the run.

    Returns
    -------
    list of str
        Their names, sorted.
    """
    return sorted(path.name for path in folder.iterdir() if path.suffix in (".csv", ".png", ".html"))


def clean(folder: Path) -> None:
    """Prepare a folder for a new run.

    An earlier result is renamed to ``result.before.json``, and its page is removed. Notes, runs before a failure and
    unfinished files of earlier runs are removed. Checkpoints and files of others stay.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    """
    if fingerprint_in(folder, quietly=True) is not None:
        os.replace(folder / RESULT, folder / "result.before.json")
        (folder / "report.html").unlink(missing_ok=True)
    (folder / POINT).unlink(missing_ok=True)
    with suppress(ParameterError):
        if {"parameters", "error", "note"} <= read_json(folder / PARTIAL).keys():  # else it is the user's
            (folder / PARTIAL).unlink()
    remove_temporary(folder.iterdir())


@lru_cache
def module_content(target: str) -> str:
    """Compute a digest of the file of a user's module.

    The digest is that of the first call in this process: Python imports a module once.

    Parameters
    ----------
    target : str
        ``package.module:function``.

    Returns
    -------
    str
        The digest.
    """
    return content_of(module_file(target))


def content_of(path: Path) -> str:
    """Compute a digest of the bytes of a file.

    Parameters
    ----------
    path : Path
        A file. A pipe can be read only once, so it is not read here and every call returns another digest.

    Returns
    -------
    str
        The digest; the same for all files that cannot be read.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return secrets.token_hex(32)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return json.dumps(None)
