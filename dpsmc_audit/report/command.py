"""The command that makes a result again, and texts without the folders of the machine they come from."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

__all__ = ["command_line", "flat", "without_folders"]

_FORMULAS = ("formula=", "+formula=")
_PATH = re.compile(r"(?<![\w./~\\:)\]-])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\'\"<>,;:()=]+[/\\])+(?=[^\s/\\'\"<>,;:()=])")


def command_line(given: Sequence[str], *, sweep: bool = False) -> tuple[str, bool]:
    """Write the command with these overrides, quoted for a shell. Where a run writes to is left out.

    Parameters
    ----------
    given : sequence of str
        The overrides.
    sweep : bool
        Whether the command makes a sweep.

    Returns
    -------
    tuple
        The command, and whether paths in it were shortened to file names.

    Examples
    --------
    >>> command_line(["notion=marginal", "entry=[1,5]", "hydra.run.dir=here"])
    ("python -m dpsmc_audit notion=marginal 'entry=[1,5]'", False)
    >>> command_line(["notion=informed", "sequence=/home/me/bits.txt"])
    ('python -m dpsmc_audit notion=informed sequence=bits.txt', True)
    """
    kept = [word for word in given if not word.lstrip("+~").startswith("hydra.")]
    shown = [_shortened(word) for word in kept]
    many = ["-m"] if sweep and not any(word.startswith("+sweep=") for word in kept) else []
    return shlex.join(["python", "-m", "dpsmc_audit", *many, *shown]), shown != kept


def _shortened(word: str) -> str:
    key, equals, value = word.partition("=")
    if not equals or word.startswith(_FORMULAS):
        return word
    bare = value.strip("'\"")
    if PurePosixPath(bare).is_absolute() or PureWindowsPath(bare).is_absolute() or bare.startswith("~"):
        return f"{key}={value.replace(bare, PureWindowsPath(bare).name)}"
    return word


def without_folders(text: str) -> str:
    """Cut absolute paths to their last part, so that a report can be passed on.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    str
        The text with ``…`` in place of folders.

    Examples
    --------
    >>> without_folders("cannot read /home/me/data/bits.txt: no such file; a/b stays")
    'cannot read …/bits.txt: no such file; a/b stays'
    """
    for folder in (str(Path.cwd()), str(Path(os.path.expanduser("~")))):  # "~" if there is no home
        if len(folder) > 1:
            text = text.replace(f"{folder}/", "…/").replace(folder, "…")
    return _PATH.sub("…/", text)


def flat(values: dict[str, Any] | None) -> list[tuple[str, str]]:
    """List names and values of what is known about the origin of a result, without folders.

    Parameters
    ----------
    values : dict or None
        The values by name. None counts as empty.

    Returns
    -------
    list of tuple
        Name and text of each value that is not None.
    """
    return [(key, without_folders(f"{value}")) for key, value in (values or {}).items() if value is not None]
