"""The verdict of a single audit on the terminal: a compact table, in colour where colour is wanted."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import IO, Any

from dpsmc_audit.evidence.intervals import percent
from dpsmc_audit.evidence.verdict import rounded_up
from dpsmc_audit.report.guarantee import method_name
from dpsmc_audit.report.words import Words, in_words, number, sampled

__all__ = ["as_table", "colourful"]

_COLOURS = {"violated": "31", "certified": "32", "consistent": "33", "undecided": "33"}
_BOLD, _DIM = "1", "2"


def colourful(stream: IO[str], environment: Mapping[str, str] | None = None) -> bool:
    """Colour only on a terminal that has it, and never where NO_COLOR is set (no-color.org)."""
    environment = os.environ if environment is None else environment
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def as_table(result: dict[str, Any], files: list[str], *, colour: bool | None = None, width: int | None = None) -> str:
    """Lines of a name and a text each, the texts aligned and wrapped to the width."""
    colour = colourful(sys.stdout) if colour is None else colour
    width = width or min(shutil.get_terminal_size((100, 24)).columns, 120)
    words = in_words(result)
    rows = _rows(result, words, files)
    indent = max(len(name) for name, _ in rows) + 2
    lines = []
    for name, text in rows:
        first, *rest = textwrap.wrap(_printable(text), max(width - indent, 20), break_on_hyphens=False) or [""]
        if name == "verdict":
            first = first.replace(
                words.verdict, _painted(words.verdict, f"{_BOLD};{_COLOURS[words.verdict]}", colour), 1
            )
        lines.append(_painted(f"{name:<{indent}}", _DIM, colour) + first)
        lines += [" " * indent + line for line in rest]
    return "\n".join(lines)


def _rows(result: dict[str, Any], words: Words, files: list[str]) -> list[tuple[str, str]]:
    """What the report has at its top, shorter."""
    columns = max(len(words.claimed), len(words.claimed_delta)) + 2
    claimed, claimed_delta = (f"claimed {text:<{columns}}" for text in (words.claimed, words.claimed_delta))
    rows = [
        ("verdict", f"{words.verdict}: {words.sentence}"),
        ("epsilon", f"{claimed}audited: {words.audited}"),
        ("delta", f"{claimed_delta}audited: {words.audited_delta} (at the claimed epsilon)"),
    ]
    witness, exact = result.get("witness"), result.get("exact")
    if witness is not None:
        shares = f"{number(witness['p1']):.4g} with x = 1, {number(witness['p0']):.4g} with x = 0"
        rows.append(("witness", f"{str(witness['event']).replace('x_n', 'x')}: {shares}"))
    if exact is not None and sampled(result):
        rows.append(("exact", _exact(exact)))
    sure = percent(number(result["confidence"])) if sampled(result) else "exact, not sampled"
    if result.get("sequences") is not None:
        sure += f"; averages over sequences at {percent(number(result['confidence']))}"
    return [*rows, ("method", method_name(result)), ("confidence", sure), ("files", ", ".join(files))]


def _exact(exact: dict[str, Any]) -> str:
    """The exact verdict beside a sampled one, with the delta that it proves."""
    if exact["verdict"] != "consistent":
        return f"{exact['verdict']}, delta {number(exact['delta_lower']):.4g}"
    return f"undecided, delta at most {rounded_up(number(exact.get('delta_upper')))}, by the numerical error"


def _painted(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _printable(text: str) -> str:
    """Letters that any console has, and no control characters: names come from users, and a terminal obeys them."""
    for letter, name in (("ε", "epsilon"), ("δ", "delta")):
        text = text.replace(letter, name)
    return "".join(c if c.isprintable() else "?" for c in text)
