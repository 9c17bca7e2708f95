"""What made a result: versions, a fingerprint of the code, seed and work; nothing about the machine or its user."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["code_version", "digest", "environment", "fingerprint", "provenance"]

PACKAGE = Path(__file__).parents[1]


@lru_cache(maxsize=1)
def code_version() -> str:
    """A fingerprint of the package's own source: results of different code are never taken for one another's."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@lru_cache(maxsize=1)
def _commit() -> str | None:
    """The commit of the checkout that the package lies in; None for an installed one."""
    root = PACKAGE.parent
    if not (root / ".git").exists() or not (root / "pyproject.toml").exists():
        return None
    try:
        found = subprocess.run(
            ["git", "-C", f"{root}", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5.0, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


@lru_cache(maxsize=1)
def environment() -> str:
    """All code that numbers come from: the package's own and that of its libraries."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    return f"dpsmc_audit {code_version()}, {libraries}, python {platform.python_version()}"


def provenance(seed: int | None, steps: int | None) -> dict[str, Any]:
    """For ``result.json``; `steps` are the samples that were simulated."""
    import numba
    import numpy

    from dpsmc_audit import __version__

    made: dict[str, Any] = {"version": __version__, "commit": _commit(), "code": code_version()}
    made |= {"python": platform.python_version(), "numpy": numpy.__version__, "numba": numba.__version__}
    return made | ({} if seed is None else {"seed": seed}) | ({} if steps is None else {"steps": steps})


def digest(value: Any) -> str:
    """Of any JSON value.

    Examples
    --------
    >>> digest({"a": 1, "b": [0.5, None]}) == digest({"b": [0.5, None], "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def fingerprint(parameters: dict[str, Any], inputs: dict[str, str]) -> str:
    """Of all that a result depends on: its parameters with the seed, the files it reads, and the code."""
    return digest({"parameters": parameters, "inputs": inputs, "code": environment()})
