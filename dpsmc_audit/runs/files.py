"""Results on disk. A file is written under a temporary name and then renamed, so it is complete or absent."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from dpsmc_audit.errors import ParameterError, regular, require

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KEPT",
    "PARTIAL",
    "POINT",
    "RESULT",
    "load_results",
    "near",
    "read_json",
    "remove_temporary",
    "strict",
    "write_bytes",
    "write_json",
    "write_text",
]

RESULT = "result.json"
"""The file that a run writes last."""
PARTIAL = "partial.json"
"""What a mechanism that failed has shown before."""
POINT = ".point.json"
"""The note in the folder of a sweep's point: how it ended."""
KEPT = ".kept"
"""The folder of a sweep that holds results of earlier sweeps."""
TEMPORARY = ".dpsmc_audit.tmp"
"""How the names of unfinished files end, after the number of their process."""


def near(folder: Path) -> Path:
    """Shorten a path for messages.

    Parameters
    ----------
    folder : Path
        An absolute path.

    Returns
    -------
    Path
        The path relative to the current folder if it lies below that folder, else the path itself.
    """
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all.

    Parameters
    ----------
    path : Path
        The file. An existing file is replaced.
    content : bytes
        Its new content.

    Raises
    ------
    OSError
        If the content cannot be written. The error names the file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        error.filename = error.filename or path.name  # the error of a full disk names no file
        raise
    finally:
        temporary.unlink(missing_ok=True)


def remove_temporary(paths: Iterable[Path]) -> None:
    """Remove unfinished files that killed processes have left.

    Parameters
    ----------
    paths : iterable of Path
        Any files. Only unfinished ones are removed, and not those of a process that is alive.
    """
    for path in paths:
        found = re.fullmatch(rf"\..+\.(\d+){re.escape(TEMPORARY)}", path.name)
        if found and not psutil.pid_exists(int(found[1])):
            path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, completely or not at all; see `write_bytes`.

    Parameters
    ----------
    path : Path
        The file. An existing file is replaced.
    text : str
        Its new content.
    """
    write_bytes(path, text.encode())


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write strict JSON, completely or not at all.

    Parameters
    ----------
    path : Path
        The file. An existing file is replaced.
    value : dict
        Any JSON object. nan becomes null, infinities become "inf" and "-inf".
    """
    write_text(path, json.dumps(strict(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Parameters
    ----------
    path : Path
        A file that `write_json` wrote.

    Returns
    -------
    dict
        Its content.

    Raises
    ------
    ParameterError
        If the file cannot be read or holds anything else.
    """
    try:
        value = json.loads(regular(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ParameterError(f"{path} holds no result: {error}") from error
    require(isinstance(value, dict), f"{path} holds no result: it is no object")
    return value  # type: ignore[no-any-return]


def strict(value: Any) -> Any:
    """Convert a value to what strict JSON can hold.

    Parameters
    ----------
    value
        Dictionaries, sequences, numbers, text, None, nested to any depth.

    Returns
    -------
    object
        The same value with lists for tuples, None for nan, and "inf" or "-inf" for infinities.

    Examples
    --------
    >>> strict({"a": (1, float("nan")), "b": float("-inf")})
    {'a': [1, None], 'b': '-inf'}
    """
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def load_results(folder: str | Path) -> pd.DataFrame:
    """Read all results below a folder into one table.

    Parameters
    ----------
    folder : str or Path
        The folder of a run, of a sweep, or of many.

    Returns
    -------
    pandas.DataFrame
        One row per result. Parameters and results are columns; intervals stay lists.

    Raises
    ------
    ParameterError
        If a result file is damaged.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_json(folder / "result.json", {"parameters": {"alpha": 0.01}, "samples": 413.0})
    >>> load_results(folder)[["alpha", "samples"]].values.tolist()
    [[0.01, 413.0]]
    """
    import pandas as pd

    rows = []
    for path in sorted(Path(folder).rglob(RESULT)):
        if KEPT not in path.parts:
            result = read_json(path)
            require(isinstance(result.get("parameters"), dict), f"{path} holds no result: it has no parameters")
            rows.append({**result.pop("parameters"), **result})
    return pd.DataFrame(rows)
