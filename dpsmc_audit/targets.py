"""Users' own code, named on the command line as ``package.module:function``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpsmc_audit.errors import ParameterError, require

__all__ = ["load_target", "module_file", "said"]


def load_target(key: str, target: str) -> Callable[..., Any]:
    """The callable that ``package.module:function`` names; the folder one is in counts as a place to look.

    Examples
    --------
    >>> load_target("sampler", "math:sqrt")(4.0)
    2.0
    """
    module, colon, name = target.partition(":")
    shape = f"{key} must name a function as package.module:function, got {target}"
    require(colon == ":" and bool(module) and bool(name), shape)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ParameterError(f"{key}={target}: cannot import {module}: {said(error)}") from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except Exception as error:  # a module may have a __getattr__ of its own
            raise ParameterError(f"{key}={target}: {module} has no {name}") from error
    require(callable(found), f"{key}={target}: {name} is no function")
    return found  # type: ignore[no-any-return]


def module_file(target: str) -> Path:
    """Where the module of ``package.module:function`` lies; modules that it imports are not looked at.

    Examples
    --------
    >>> module_file("json.decoder:JSONDecoder").name
    'decoder.py'
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = find_spec(target.partition(":")[0])
    except KeyboardInterrupt:
        raise
    except BaseException:  # a package that cannot be imported, or that exits: whoever needs it will say so
        found = None
    return Path(found.origin if found is not None and found.origin is not None else "")


def said(error: BaseException) -> str:
    """An error in one line."""
    try:
        text = " ".join(f"{error}".split())
    except Exception:  # users' errors may fail to be printed
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
