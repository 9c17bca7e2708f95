"""Results on disk: written to a temporary name and renamed, so that a file is whole or not there."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsmc_audit.errors import ParameterError, regular, require

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load_results", "near", "read_json", "strict", "write_json", "write_text"]

RESULT = "result.json"
"""The last file of a run: where it is, all others are."""


def near(folder: Path) -> Path:
    """As seen from here, if it is below."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def write_text(path: Path, text: str) -> None:
    """Write all of the text or nothing."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        error.filename = error.filename or path.name  # a full disk does not say of which file it speaks
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Strict JSON: nan becomes null and an infinity the word "inf" or "-inf"."""
    write_text(path, json.dumps(strict(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """A result written by `write_json`."""
    try:
        value = json.loads(regular(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ParameterError(f"{path} holds no result: {error}") from error
    require(isinstance(value, dict), f"{path} holds no result: it is no object")
    return value  # type: ignore[no-any-return]


def strict(value: Any) -> Any:
    """The same in strict JSON."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def load_results(folder: str | Path) -> pd.DataFrame:
    """All results below a folder, one row each; parameters and results are columns, intervals stay lists.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_json(folder / "result.json", {"parameters": {"alpha": 0.01}, "samples": 413.0})
    >>> load_results(folder)[["alpha", "samples"]].values.tolist()
    [[0.01, 413.0]]
    """
    import pandas as pd

    paths = [path for path in sorted(Path(folder).rglob(RESULT)) if ".kept" not in path.parts]
    results = [read_json(path) for path in paths]
    for path, result in zip(paths, results, strict=True):
        require(isinstance(result.get("parameters"), dict), f"{path} holds no result: it has no parameters")
    return pd.DataFrame([{**result.pop("parameters"), **result} for result in results])
