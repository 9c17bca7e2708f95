"""Record what made a result: versions, a digest of the code, seed and work; nothing about the machine or its user."""

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
    """Identify the source code of this package.

    Returns
    -------
    str
        A digest of all its modules. Results of different code have different digests.
    """
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def _commit() -> str | None:
    """Return the commit of the checkout that holds the package; None for an installed package."""
    root = PACKAGE.parent
    if not (root / ".git").exists() or not (root / "pyproject.toml").exists():
        return None
    command = ["git", "-C", f"{root}", "rev-parse", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5.0, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def environment() -> str:
    """Identify all code that computes numbers.

    Returns
    -------
    str
        The digest of this package and the versions of Python and of the numerical libraries.
    """
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    return f"dpsmc_audit {code_version()}, {libraries}, python {platform.python_version()}"


def provenance(seed: int | None, steps: int | None) -> dict[str, Any]:
    """Make the section `provenance` of ``result.json``.

    Parameters
    ----------
    seed : int or None
        The seed of the run. None leaves it out.
    steps : int or None
        The number of simulated samples. None leaves it out.

    Returns
    -------
    dict
        Versions, commit and digest of the code, and the seed and the samples if given.
    """
    from dpsmc_audit import __version__

    made: dict[str, Any] = {"version": __version__, "commit": _commit(), "code": code_version()}
    made |= {"python": platform.python_version(), "numpy": version("numpy"), "numba": version("numba")}
    return made | {name: value for name, value in (("seed", seed), ("steps", steps)) if value is not None}


def digest(value: Any) -> str:
    """Compute a digest of a JSON value that does not depend on the order of keys.

    Parameters
    ----------
    value
        Any value that strict JSON can hold.

    Returns
    -------
    str
        32 hexadecimal digits.

    Examples
    --------
    >>> digest({"a": 1, "b": [0.5, None]}) == digest({"b": [0.5, None], "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def fingerprint(parameters: dict[str, Any], inputs: dict[str, str]) -> str:
    """Compute a digest of everything that a result depends on.

    Parameters
    ----------
    parameters : dict
        All parameters of the run, the seed among them.
    inputs : dict
        Digests of the files that the run reads.

    Returns
    -------
    str
        The digest. It also covers the `environment`.
    """
    return digest({"parameters": parameters, "inputs": inputs, "code": environment()})
