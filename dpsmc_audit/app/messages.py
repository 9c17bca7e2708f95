"""Word an error in one line that says what to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from traceback import walk_tb

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from dpsmc_audit.app.keys import key_of
from dpsmc_audit.app.typed import kind_of, quoted
from dpsmc_audit.errors import ParameterError

__all__ = ["one_line", "unknown_to_hydra"]

EXTRAS = {"joblib": "launchers", "submitit_local": "launchers", "submitit_slurm": "launchers"}
"""Launchers of Hydra and the extra of this package that brings them."""

NUMBERS = {
    int: "a whole number, such as 1000 or 1e3",
    float: "a number, such as 0.05",
    bool: "true or false",
    str: "text",
}


def one_line(error: BaseException, arguments: Sequence[str] = ()) -> str:
    """Word an error for the user.

    Parameters
    ----------
    error : BaseException
        Any error.
    arguments : sequence of str
        The command line, for a message that shows how to quote it.

    Returns
    -------
    str
        Its message in one line. The type comes first, unless the message is written for users.
    """
    text = _of_command(error, arguments) or _plain(error)
    joined = " ".join(line.strip() for line in text.splitlines() if line.strip(" ^"))
    return joined.encode("utf-8", "backslashreplace").decode()  # a message can hold bytes that are no text


def _plain(error: BaseException) -> str:
    """The message of an error, without the lines in which Hydra tells where in its code it is."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}; choose another file or folder"
    ours = isinstance(error, (ParameterError, HydraException, OmegaConfBaseException, OSError)) or _of_hydra(error)
    lines = (f"{error}" if ours else f"{type(error).__name__}: {error}").splitlines()
    if isinstance(error.__cause__, OmegaConfBaseException):  # Hydra puts the reason into the cause
        lines += f"{error.__cause__}".splitlines()[:1]
    noise = ("full_key:", "object_type=", "reference_type=", "See https:")
    return "\n".join(line for line in lines if not line.strip().startswith(noise))


def _of_command(error: BaseException, arguments: Sequence[str]) -> str | None:
    """Word the errors that Hydra raises for a command line. None for others."""
    if isinstance(error, OverrideParseException):
        return _unreadable(error.override, arguments)
    if isinstance(error, MissingConfigException) and error.options is not None:
        return _missing(f"{error.missing_cfg_file}", error.options)
    text = f"{error}"
    if found := re.match(r"Error merging override (\S+?)=(.*)", text):
        key, value = key_of(found[1]), found[2]
        kind = kind_of(key)
        return None if kind is None else f"{key} must be {NUMBERS[kind]}, got {value or 'nothing'}"
    if found := re.match(r"Ambiguous value for argument '(.*)'", text):
        return f"{found[1]} has several values: add -m for a sweep over them{_or_list(found[1])}"
    return None


def _or_list(word: str) -> str:
    key, _, values = word.partition("=")
    return f", or write a list: {shlex.quote(f'{key}=[{values}]')}" if key in ("entry", "samples", "epsilons") else ""


def _unreadable(word: str, arguments: Sequence[str]) -> str:
    """A word that is no ``key=value``, or whose value Hydra cannot read."""
    name, equals, value = word.partition("=")
    given = list(arguments)
    if not equals:
        place = given.index(word) if word in given else 0
        before = given[place - 1] if place else ""
        whole = shlex.quote(f"{before} {word}") if "=" in before else "key=value"
        return f"cannot read the word {word}: write key=value; a value with spaces needs quotes: {whole}"
    return f"cannot read the override {word}: quote its value, as in {shlex.quote(f'{name}={quoted(value)}')}"


def _missing(path: str, options: Sequence[str]) -> str:
    """A choice that a group does not have."""
    group, _, name = path.rpartition("/")
    if group == "hydra/launcher" and name in EXTRAS:
        return f"{group}={name} is not installed: pip install 'dpsmc-audit[{EXTRAS[name]}]'"
    return f"{group} must be one of {', '.join(options)}, got {name}"


def unknown_to_hydra(error: BaseException) -> str | None:
    """Find the key that Hydra does not know.

    Parameters
    ----------
    error : BaseException
        Any error.

    Returns
    -------
    str or None
        The key, if an unknown key is the reason of the error.
    """
    reason = error.__cause__ or error.__context__
    if isinstance(error, HydraException) and isinstance(reason, (ConfigAttributeError, ConfigKeyError)):
        return reason.full_key
    return None


def _of_hydra(error: BaseException) -> bool:
    """Tell whether Hydra raised the error: some of its refusals are plain exceptions."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and f"{frames[-1].f_globals.get('__name__')}".startswith(("hydra.", "omegaconf."))
