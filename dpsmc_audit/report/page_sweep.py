"""report.html of a sweep: one sentence, a table to sort, small multiples, links to every point, failed points."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsmc_audit.observers.phrases import brief
from dpsmc_audit.report.columns import PARAMETERS, columns_for, several, varying
from dpsmc_audit.report.command import command_line, flat, without_folders
from dpsmc_audit.report.html import REPORT, render
from dpsmc_audit.report.multiples import panels
from dpsmc_audit.runs.files import RESULT

__all__ = ["sort_key", "summary", "sweep_page", "swept"]

Row = dict[str, Any]

FILES = (
    ("table.csv", "every number of the table"),
    ("timing.csv", "times"),
    ("table.md", "the table in Markdown"),
    ("table.tex", "the table in LaTeX"),
    ("table.png", "a figure"),
)


def sweep_page(
    folder: Path, study: str | None, points: Sequence[tuple[Path, Row]], failed: Sequence[str], given: Sequence[str]
) -> str:
    """Render the page of a sweep.

    Parameters
    ----------
    folder : Path
        Of the sweep.
    study : str, optional
        Its name.
    points : sequence of tuple
        The file of each result, and its row as `tables.flatten` makes it.
    failed : sequence of str
        One line for each point that failed.
    given : sequence of str
        The words of the command line.

    Returns
    -------
    str
        HTML that loads nothing.
    """
    rows = [row for _, row in points]
    columns = columns_for(rows)
    cells = [[column.show(row) for column in columns] for row in rows]
    keys = [[sort_key(cell) for cell in line] for line in cells]
    kinds = ["number" if all(_is_number(line[j]) for line in keys) else "text" for j in range(len(columns))]
    command, shortened = command_line(given, sweep=True)
    return render(
        "sweep.html",
        study=study or "sweep",
        task=rows[0]["task"],
        sentence=summary(rows, len(failed)),
        verdict=_colour(rows),
        headings=list(zip((column.heading for column in columns), kinds, strict=True)),
        lines=[
            (link, list(zip(line, key, strict=True)))
            for link, line, key in zip((_link(folder, path) for path, _ in points), cells, keys, strict=True)
        ],
        panels=panels(_judged(rows), swept(rows)) if len(rows) > 1 else [],
        endless=_endless(rows),
        failed=[without_folders(line) for line in failed],
        files=[(name, about) for name, about in FILES if (folder / name).exists()],
        command=command,
        shortened=shortened,
        provenance=_same_provenance(rows),
    )


def swept(rows: Sequence[Row]) -> list[str]:
    """List the parameters with several values, the one with most values first.

    Parameters
    ----------
    rows : sequence of dict
        The points, as `tables.flatten` makes them.

    Returns
    -------
    list of str
        Their names; the seed if all points have the same values.
    """
    names = dict.fromkeys((*PARAMETERS, "entry", "sampler", *varying(rows)))
    many = {name: len({str(row.get(name)) for row in rows}) for name in names if any(name in row for row in rows)}
    if several(rows, "observer"):
        many = {name: n for name, n in many.items() if name not in ("runs", "bin_width")}  # of the observer
    if rows[0]["task"] == "estimate":
        many.pop("p_phi", None)
    return sorted((name for name, n in many.items() if n > 1), key=lambda name: -many[name]) or ["seed"]


def _link(folder: Path, result: Path) -> tuple[str, str]:
    """Where a point's report, or its result, lies, and its name."""
    page = result.with_name(REPORT)
    target = (page if page.exists() else result.with_name(RESULT)).relative_to(folder)
    return target.as_posix(), "report" if page.exists() else "result"


def _is_number(key: str) -> bool:
    try:
        float(key or "0")
    except ValueError:
        return False
    return True


def _number(value: Any) -> float:
    """A number of ``result.json``, where null stands for nan."""
    return math.nan if value is None else float(value)


def sort_key(cell: str) -> str:
    """Return the key by which a cell is sorted.

    Parameters
    ----------
    cell : str
        The text of the cell.

    Returns
    -------
    str
        The first number of the cell, in seconds for a time. Without a number, the text. Empty if the cell is missing.

    Examples
    --------
    >>> sort_key("1327.7 ± 23.8"), sort_key("0.25 us"), sort_key("H_null"), sort_key("-"), sort_key("inf")
    ('1327.7', '2.5e-07', 'H_null', '', '1e999')
    >>> sort_key("<1e-9")
    '1e-9'
    """
    if cell in ("-", ""):
        return ""
    if cell in ("inf", "+inf"):
        return "1e999"
    cell = cell.removeprefix("<")
    found = re.match(r"[+-]?\d[\d.]*(?:e[+-]?\d+)?(?= |$)", cell)
    if not found:
        return cell
    unit = {" us": 1e-6, " ms": 1e-3}.get(cell[found.end() : found.end() + 3])
    return found.group() if unit is None else f"{float(found.group()) * unit:g}"


def _colour(rows: Sequence[Row]) -> str:
    verdicts = {row.get("verdict") for row in rows}
    return str(verdicts.pop()) if len(verdicts) == 1 and None not in verdicts else "mixed"


def summary(rows: Sequence[Row], failed: int) -> str:
    """Say in one sentence what a sweep found.

    Parameters
    ----------
    rows : sequence of dict
        The points that were finished.
    failed : int
        How many were not.

    Returns
    -------
    str
        The sentence.
    """
    missing = {0: "", 1: " 1 point failed and is named below."}.get(
        failed, f" {failed} points failed and are named below."
    )
    count, task = len(rows), rows[0]["task"]
    if task == "audit":
        return _audits(rows) + missing
    if task == "estimate":
        low, high = (pick(_number(row["p_phi"]) for row in rows) for pick in (min, max))
        return f"p_φ was estimated {count} times, from {brief(low, 4)} to {brief(high, 4)}.{missing}"
    means = [
        _number(row["samples_exact"] if row.get("samples_exact") is not None else row.get("samples")) for row in rows
    ]
    known = [mean for mean in means if not math.isnan(mean)]
    text = f"{count} settings were simulated."
    if known:
        text = (
            f"The test takes between {brief(min(known), 4)} and {brief(max(known), 4)} samples on average over"
            f" {count} settings."
        )
    compared = [abs(_number(row["distance"])) for row in rows if row.get("distance") is not None]
    if compared:
        agree = sum(distance <= 3.0 for distance in compared)
        text += f" {agree} of the paper's {len(compared)} rows agree with the exact means to 3 of its standard errors."
    return text + missing


def _audits(rows: Sequence[Row]) -> str:
    """How often each verdict of the table was given."""
    count = Counter(str(row["verdict"]) for row in _judged(rows))
    said = {"violated": "refute the privacy claim", "certified": "certify it", "consistent": "find no violation"}
    said["undecided"] = "are undecided"
    if set(count) == {"violated"}:
        return f"All {len(rows)} audits refute the privacy claim." if len(rows) > 1 else "The audit refutes the claim."
    if "violated" not in count:
        said["certified"] = "certify the privacy claim"
    parts = [f"{count[verdict]} {text}" for verdict, text in said.items() if count[verdict]]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    rest = ", which is no proof" if count["consistent"] else ""
    return f"Of {len(rows)} audits {listed}{rest}."


def _judged(rows: Sequence[Row]) -> list[Row]:
    """Rows whose verdict and bounds are the exact ones, where observers differ and the table shows those."""
    many = several(rows, "observer")
    return [{**row, **((row.get("exact") if many else None) or {})} for row in rows]


def _endless(rows: Sequence[Row]) -> str | None:
    """Where no figure can show it: points without a finite epsilon."""
    lower = [_number(row["epsilon_lower"]) for row in rows if row.get("epsilon_lower") is not None]
    if lower and all(math.isinf(value) for value in lower):
        return "No finite ε holds at any of these points: there is no figure of it."
    return None


def _same_provenance(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What all points have in common about their origin."""
    given = [row.get("provenance") or {} for row in rows]
    same = {key: value for key, value in given[0].items() if all(other.get(key) == value for other in given)}
    return flat(same)
