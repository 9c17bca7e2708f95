"""Rows of results as a table: for the terminal, as CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from dpsmc_audit.report.columns import Column, Row, columns_for

if TYPE_CHECKING:
    from dpsmc_audit.tasks.other_observers import Curve

__all__ = ["as_csv", "as_markdown", "as_text", "columns_csv", "flatten", "observers_csv"]

MODEL_COLUMNS = ("p_phi_low", "p_phi_high", "samples_exact_low", "samples_exact_high")
"""Of runs on a model, whose p_phi is estimated."""
SAMPLER_COLUMNS = (
    *("sampler", "samples", "epsilon", "claimed_delta", "mu", "curve", "confidence", "seed", "runs_used"),
    *("verdict", "epsilon_lower", "privacy_delta_lower"),
)
PAPER_COLUMNS = ("paper_samples", "paper_halfwidth", "distance")
PAPER_TIMES = ("seconds_per_sample", "paper_seconds", "paper_seconds_halfwidth")
TIMING_COLUMNS = ("alpha", "delta", "epsilon", "p", "p_phi", "seconds", "seconds_per_run")


def flatten(result: dict[str, Any]) -> Row:
    """Make one flat row of a result.

    Parameters
    ----------
    result : dict
        The content of ``result.json``.

    Returns
    -------
    dict
        Parameters and results side by side; intervals and events have columns for their parts.
    """
    low, high = result.get("samples_ci") or (None, None)
    row = {**result["parameters"], **result, "samples_low": low, "samples_high": high}
    for name in ("p_phi", "samples_exact"):
        if result.get(f"{name}_ci") is not None:
            row[f"{name}_low"], row[f"{name}_high"] = result[f"{name}_ci"]
    if "support_gap" in result:
        row["support_gap_mass"] = result["support_gap"]["mass"]
    if result.get("best_event"):
        row |= {f"best_{name}": result["best_event"][name] for name in ("log_ratio", "p1", "p0")}
    return row


def _cells(rows: Sequence[Row]) -> tuple[list[Column], list[list[str]]]:
    columns = columns_for(rows)
    return columns, [[column.show(row) for column in columns] for row in rows]


def as_text(rows: Sequence[Row]) -> str:
    """Write rows as an aligned table for the terminal.

    Parameters
    ----------
    rows : sequence of dict
        The rows.

    Returns
    -------
    str
        The table, without a line break at the end.
    """
    columns, cells = _cells(rows)
    lines = [[column.heading for column in columns], *cells]
    widths = [max(len(line[j]) for line in lines) for j in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def as_markdown(rows: Sequence[Row]) -> str:
    """Write rows as a table in Markdown.

    Parameters
    ----------
    rows : sequence of dict
        The rows.

    Returns
    -------
    str
        The table.
    """
    columns, cells = _cells(rows)
    body = [[cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ") for cell in line] for line in cells]
    lines = [[column.heading for column in columns], ["---:"] * len(columns), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def as_csv(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Write rows as CSV, numbers with all their digits.

    Parameters
    ----------
    rows : sequence of dict
        What a row lacks is left empty.
    names : sequence of str
        The columns.

    Returns
    -------
    str
        With a line of names.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def columns_csv(table: Any) -> str:
    """Write a dataclass of arrays as CSV; an infinity is written as inf, what is unknown is left empty.

    Parameters
    ----------
    table : dataclass of arrays
        All of one length.

    Returns
    -------
    str
        With a line of names.
    """
    names = [field.name for field in fields(table)]
    columns = ([None if str(x) == "nan" else x for x in getattr(table, name).tolist()] for name in names)
    return as_csv([dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)], names)


def observers_csv(curves: Mapping[str, Curve]) -> str:
    """Write the profiles of several observers in one table.

    Parameters
    ----------
    curves : mapping
        The curves by observer.

    Returns
    -------
    str
        CSV with a row for each observer and epsilon. The column `about` says what the curve is of.
    """
    names = ("observer", "about", "epsilon", "delta_1_over_0", "delta_0_over_1")
    rows = [
        dict(zip(names, (observer, curve.about, *values), strict=True))
        for observer, curve in curves.items()
        for values in zip(*(getattr(curve.profile, name).tolist() for name in names[2:]), strict=True)
    ]
    return as_csv(rows, names)
