"""Load users' own code, which the command line names as ``package.module:function``."""

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
    """Load a callable. Modules in the current folder can be loaded too.

    Parameters
    ----------
    key : str
        The key of the command line that names the callable, for messages.
    target : str
        ``package.module:function``.

    Returns
    -------
    callable
        The callable.

    Raises
    ------
    ParameterError
        If the module cannot be imported or has no such callable.

    Examples
    --------
    >>> load_target("sampler", "math:sqrt")(4.0)
    2.0
    """
    module, colon, name = target.partition(":")
    shape = f"{key} must name a function as package.module:function, got {target}"
    require(colon == ":" and bool(module) and bool(name), shape)
    _look_here()
    try:
        found: Any = import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ParameterError(f"{key}={target}: cannot import {module}: {said(error)}") from error
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # a module may have a __getattr__ of its own
        raise ParameterError(f"{key}={target}: {module} has no {name}") from error
    require(callable(found), f"{key}={target}: {name} is no function")
    return found  # type: ignore[no-any-return]


def module_file(target: str) -> Path:
    """Find the file of the module that holds a callable. Modules that it imports are not looked at.

    Parameters
    ----------
    target : str
        ``package.module:function``.

    Returns
    -------
    Path
        The file; the current folder if there is none.

    Examples
    --------
    >>> module_file("json.decoder:JSONDecoder").name
    'decoder.py'
    """
    _look_here()
    try:
        found = find_spec(target.partition(":")[0])
    except KeyboardInterrupt:
        raise
    except BaseException:  # a package that cannot be imported, or that exits: `load_target` reports it
        found = None
    return Path(found.origin if found is not None and found.origin is not None else "")


def _look_here() -> None:
    """Let Python import modules from the current folder."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def said(error: BaseException) -> str:
    """Word an error of a user's code in one line.

    Parameters
    ----------
    error : BaseException
        The error.

    Returns
    -------
    str
        Its type and its message.
    """
    try:
        text = " ".join(f"{error}".split())
    except Exception:  # a user's error may fail to be printed
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
