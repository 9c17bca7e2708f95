"""The verdict of a single audit on the terminal: a compact table, in colour where colour is wanted."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import IO

from dpsmc_audit.observers.base import Audit

__all__ = ["as_table", "colourful"]

_COLOURS = {"violated": "31", "certified": "32", "consistent": "33", "undecided": "33"}
"""Red, green and yellow."""


def colourful(stream: IO[str], environment: Mapping[str, str] | None = None) -> bool:
    """Decide whether to use colour: only on a terminal that has it, and never where NO_COLOR is set (no-color.org).

    Parameters
    ----------
    stream : file
        Where the text goes.
    environment : mapping, optional
        The environment variables; by default those of this process.

    Returns
    -------
    bool
        True for colour.
    """
    environment = os.environ if environment is None else environment
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def as_table(
    audit: Audit,
    files: Sequence[str],
    note: str | None = None,
    *,
    colour: bool | None = None,
    width: int | None = None,
) -> str:
    """Write an audit as lines of a name and a text, the texts aligned and wrapped.

    Parameters
    ----------
    audit : Audit
        Of any observer.
    files : sequence of str
        Names of the files that were written.
    note : str, optional
        A line about the claim.
    colour : bool, optional
        By default, what `colourful` says of standard output.
    width : int, optional
        Of the lines; by default that of the terminal, at most 120.

    Returns
    -------
    str
        The table.
    """
    colour = colourful(sys.stdout) if colour is None else colour
    width = width or min(shutil.get_terminal_size((100, 24)).columns, 120)
    rows = _rows(audit, files, note)
    indent = max(len(name) for name, _ in rows) + 2
    lines = []
    for name, text in rows:
        first, *rest = textwrap.wrap(_printable(text), max(width - indent, 20), break_on_hyphens=False) or [""]
        if name == "verdict":
            first = first.replace(audit.verdict, _painted(audit.verdict, f"1;{_COLOURS[audit.verdict]}", colour), 1)
        lines.append(_painted(f"{name:<{indent}}", "2", colour) + first)
        lines += [" " * indent + line for line in rest]
    return "\n".join(lines)


def _rows(audit: Audit, files: Sequence[str], note: str | None) -> list[tuple[str, str]]:
    """What the page has at its top."""
    words = audit.words
    column = max(len(text) for text in words.claimed) + 2
    epsilon, delta = (
        f"claimed {claimed:<{column}}audited: {audited}"
        for claimed, audited in zip(words.claimed, words.audited, strict=True)
    )
    rows = [
        ("verdict", audit.sentence),
        ("epsilon", epsilon),
        ("privacy delta", f"{delta} (at the claimed epsilon)"),
        ("note", note),
        ("witness", words.witness),
        ("exact", words.exact),
        ("method", words.method),
        ("confidence", words.confidence),
        ("files", ", ".join(files)),
    ]
    return [(name, text) for name, text in rows if text is not None]


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _printable(text: str) -> str:
    """Replace control characters: names come from users, and a terminal obeys them."""
    return "".join(c if c.isprintable() else "?" for c in text)
