"""Rows of results as a table: for the terminal, as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsmc_audit.tasks.other_observers import Curve

__all__ = [
    "CSV_COLUMNS",
    "Column",
    "as_csv",
    "as_latex",
    "as_markdown",
    "as_text",
    "columns_csv",
    "columns_for",
    "decimals",
    "flatten",
]

Row = dict[str, Any]

PARAMETERS = ("alpha", "delta", "epsilon", "p", "p_phi")
CSV_COLUMNS = {
    "simulate": ("accuracy", "samples", "samples_low", "samples_high", "samples_exact", "error_exact", "unfinished"),
    "audit": (
        *("entry", "verdict", "epsilon_lower", "delta_lower", "bins_outside", "support_gap_mass"),
        *("samples_exact", "fp_worst", "fn_worst", "total_variation", "delta_at_epsilon", "delta_at_2_epsilon"),
        *("best_log_ratio", "best_p1", "best_p0", "reveal_1", "reveal_0", "oscillating_total_variation"),
    ),
    "estimate": ("p_phi_low", "p_phi_high", "satisfied", "samples_drawn"),
}
"""After the parameters, by task."""
MODEL_COLUMNS = ("p_phi_low", "p_phi_high", "samples_exact_low", "samples_exact_high")
"""Of runs on a model, whose p_phi is estimated."""
SAMPLER_COLUMNS = (
    *("sampler", "method", "epsilon", "claimed_delta", "confidence", "seed", "runs_used"),
    *("verdict", "epsilon_lower", "delta_lower"),
)
PAPER_COLUMNS = ("paper_samples", "paper_halfwidth", "distance")
PAPER_TIMES = ("seconds_per_sample", "paper_seconds", "paper_seconds_halfwidth")
TIMING_COLUMNS = ("alpha", "delta", "epsilon", "p", "p_phi", "seconds", "seconds_per_run")
SETTINGS = (
    "mechanism", "notion", "model", "relation", "formula", "engine", "kernel", "alpha_fp", "alpha_fn", "runs",
    "pairs", "draws", "bin_width", "seed", "max_steps", "confidence",
)  # fmt: skip
"""Parameters that get a column of their own only where a sweep varies them."""


@dataclass(frozen=True)
class Column:
    """A column for people: its heading, the same in LaTeX, and how a row is shown in it."""

    heading: str
    latex: str
    show: Callable[[Row], str]


def flatten(result: dict[str, Any]) -> Row:
    """One flat row of a result."""
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


def varying(rows: Sequence[Row]) -> list[str]:
    """Settings that differ between rows."""
    return [name for name in SETTINGS if len({str(row.get(name)) for row in rows}) > 1]


def _number(name: str, spec: str) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        return _shown(row.get(name), spec)

    return show


def _shown(value: Any, spec: str) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else decimals(value, spec)


def decimals(value: float, spec: str) -> str:
    """With so many decimals; with two digits and an exponent where those would make a 0 of a number that is none.

    Examples
    --------
    >>> decimals(0.00992, ".4f"), decimals(0.0, ".4f"), decimals(3.14e-6, ".4f")
    ('0.0099', '0.0000', '3.1e-06')
    """
    text = format(value, spec)
    return text if value == 0.0 or re.search("[1-9a-z]", text) else format(value, ".2g")


def _plain(name: str) -> Callable[[Row], str]:
    return lambda row: "-" if row.get(name) is None else f"{row[name]}"


def _mean(row: Row) -> str:
    if row.get("samples") is None:
        return "-"
    low, high = row["samples_low"], row["samples_high"]
    return f"{row['samples']:.1f}" + ("" if low is None else f" ± {0.5 * (high - low):.1f}")


def _exact_mean(row: Row) -> str:
    return _between("samples_exact", ".1f" if row.get("samples_exact_low") is not None else ".3f")(row)


def _paper(row: Row) -> str:
    if row.get("paper_samples") is None:
        return "-"
    return f"{row['paper_samples']:.0f} ± {row['paper_halfwidth']:.0f}"


def _distance(row: Row) -> str:
    if row.get("distance") is None:
        return "-"
    return f"{row['distance']:+.1f}" + (" *" if abs(row["distance"]) > 3.0 else "")


def _time(row: Row) -> str:
    value = row.get("seconds_per_run")
    if value is None:
        return "-"
    return f"{1e6 * value:.2f} us" if value < 1e-3 else f"{1e3 * value:.1f} ms"


def columns_for(rows: Sequence[Row]) -> list[Column]:
    """The columns that these rows fill."""
    if rows[0].get("sampler") is not None:
        return _sampler_columns(rows)
    settings = varying(rows)
    if "notion" in settings:  # the others come with it
        settings = [name for name in settings if name in ("mechanism", "notion", "engine", "seed")]
    columns = [Column(name, name.replace("_", r"\_"), _plain(name)) for name in settings]
    columns += [
        Column("1-alpha", r"$1-\alpha$", _levels),
        Column("delta", r"$\delta$", _plain("delta")),
        Column("epsilon", r"$\varepsilon$", lambda row: "-" if _without_noise(row) else f"{row['epsilon']}"),
    ]
    for name, latex in (("p", "$p$"), ("p_phi", r"$p_\varphi$"), ("entry", "$n$")):
        if len({str(row[name]) for row in rows}) > 1:
            columns.append(Column(name, latex, _plain(name)))
    if rows[0]["task"] == "estimate":
        return _estimate_columns(rows)
    if rows[0]["task"] != "audit":
        return columns + _simulate_columns(rows)
    if len({row["notion"] for row in rows}) > 1:
        return columns + _observer_columns()
    return columns + _audit_columns(rows)


def _levels(row: Row) -> str:
    """One level for both errors, or that of H_alt under H_null and that of H_null under H_alt."""
    fp, fn = (row["alpha"] if row[name] is None else row[name] for name in ("alpha_fp", "alpha_fn"))
    return f"{1.0 - fp:g}" if fp == fn else f"{1.0 - fp:g}, {1.0 - fn:g}"


def _without_noise(row: Row) -> bool:
    """Then epsilon was not used (an audit still checks it)."""
    return bool(row["mechanism"] == "none" and row["task"] == "simulate")


def _simulate_columns(rows: Sequence[Row]) -> list[Column]:
    columns = [
        Column("accuracy", "Acc.", _number("accuracy", ".4f")),
        Column("mean samples", "Samples", _mean),
        Column("exact mean", "Exact", _exact_mean),
        Column("P(wrong)", r"$P(\mathrm{wrong})$", _number("error_exact", ".2g")),
    ]
    if any(row.get("paper_samples") is not None for row in rows):
        columns.append(Column("paper", "Paper", _paper))
    if any(row.get("distance") is not None for row in rows):
        columns.append(Column("distance", "Distance", _distance))
    if any(row.get("unfinished") for row in rows):
        columns.append(Column("unfinished", "Unfinished", _plain("unfinished")))
    columns.append(Column("time/run", "Time/run", _time))
    if any(row.get("paper_seconds") is not None for row in rows):
        columns.append(Column("paper's", "Paper's", lambda row: f"{_shown(row['paper_seconds'], '.2f')} s"))
    return [*columns, Column("decision", "Decision", _plain("decision"))]


def _between(name: str, spec: str) -> Callable[[Row], str]:
    """A value with the interval it lies in."""

    def show(row: Row) -> str:
        ends = [_shown(row.get(f"{name}_{end}"), spec) for end in ("low", "high")]
        return _shown(row.get(name), spec) + ("" if row.get(f"{name}_low") is None else f" [{', '.join(ends)}]")

    return show


def _estimate_columns(rows: Sequence[Row]) -> list[Column]:
    """p_phi alone: neither levels nor bounds matter to it."""
    return [
        *(Column(name, name.replace("_", r"\_"), _plain(name)) for name in ("model", *varying(rows)) if name != "runs"),
        Column("samples", "Samples", _plain("samples_drawn")),
        Column("p_phi", r"$p_\varphi$", _between("p_phi", ".4f")),
        Column("time/sample", "Time", lambda row: f"{1e6 * row['seconds_per_sample']:.2f} us"),
    ]


def _audit_columns(rows: Sequence[Row]) -> list[Column]:
    columns = [
        Column("verdict", "Verdict", _plain("verdict")),
        Column("epsilon >=", r"$\varepsilon \geq$", _number("epsilon_lower", ".4g")),
        Column("delta >=", r"$\delta_{\mathrm{DP}} \geq$", _number("delta_lower", ".4g")),
    ]
    notion = rows[0]["notion"]
    if notion != "informed":
        columns.append(Column("bins outside", "Outside", _outside))
    if notion == "expected":
        columns.append(Column("support gap", "Gap", _gap))
    if notion == "informed":
        columns += [
            Column("reveals 1", r"$R_1$", _number("reveal_1", ".4g")),
            Column("reveals 0", r"$R_0$", _number("reveal_0", ".4g")),
            Column("TV, worst sequence", r"$\max d_{TV}$", _number("oscillating_total_variation", ".4f")),
        ]
    else:
        columns.append(Column("exact", "Exact", _exactly))
    return [
        *columns,
        Column("TV" if notion != "informed" else "TV, average", r"$d_{TV}$", _number("total_variation", ".4g")),
    ]


def _sampler_columns(rows: Sequence[Row]) -> list[Column]:
    """Audits of users' mechanisms."""
    names = [name for name in ("seed", "confidence") if len({row[name] for row in rows}) > 1]
    return [
        *(Column(name, name.replace("_", r"\_"), _plain(name)) for name in ("sampler", "method", *names)),
        Column("epsilon", r"$\varepsilon$", _plain("epsilon")),
        Column("delta", r"$\delta_{\mathrm{DP}}$", _plain("claimed_delta")),
        Column("runs", "Runs", _plain("runs_used")),
        Column("verdict", "Verdict", _plain("verdict")),
        Column("epsilon >=", r"$\varepsilon \geq$", _number("epsilon_lower", ".4g")),
        Column("delta >=", r"$\delta_{\mathrm{DP}} \geq$", _number("delta_lower", ".4g")),
    ]


def _exactly(row: Row) -> str:
    exact = row.get("exact")
    return "-" if exact is None else f"{exact['verdict']}, delta {_shown(exact['delta_lower'], '.4g')}"


def _observer_columns() -> list[Column]:
    """Mechanisms and observers side by side: what it costs and what it hides."""

    def verdict(row: Row) -> str:
        return f"{(row.get('exact') or row)['verdict']}"

    def error(row: Row) -> str:
        return decimals(max(row["fp_worst"], row["fn_worst"]), ".4f")

    def ratio(row: Row) -> str:
        best = row.get("best_event")
        return "-" if best is None else _shown(best["log_ratio"], "+.4g")

    return [
        Column("mean samples", "Samples", _number("samples_exact", ".1f")),
        Column("error", r"$\max P(\mathrm{wrong})$", error),
        Column("verdict", "Verdict", verdict),
        Column("total variation", r"$d_{TV}$", _number("total_variation", ".3g")),
        Column("delta at eps", r"$\delta(\varepsilon)$", _delta("delta_at_epsilon")),
        Column("delta at 2 eps", r"$\delta(2\varepsilon)$", _delta("delta_at_2_epsilon")),
        Column("ln ratio, best event", r"$\ln$ ratio", ratio),
    ]


def _delta(name: str) -> Callable[[Row], str]:
    """A positive delta below 1e-9 may be rounding."""

    def show(row: Row) -> str:
        value = max(float(row[name]), 0.0)
        return "<1e-9" if 0.0 < value <= 1e-9 else f"{value:.3g}"

    return show


def _outside(row: Row) -> str:
    chance = row.get("bins_outside_expected_by_chance")
    by_chance = "" if chance is None else f" ({decimals(chance, '.1f')} by chance)"
    return f"{row['bins_outside']} of {row['bins']}{by_chance}"


def _gap(row: Row) -> str:
    gap = row["support_gap"]
    return f"{gap['from']:.1f} to {gap['to']:.1f}" if gap["to"] > gap["from"] else "none"


def _cells(rows: Sequence[Row]) -> tuple[list[Column], list[list[str]]]:
    columns = columns_for(rows)
    return columns, [[column.show(row) for column in columns] for row in rows]


def as_text(rows: Sequence[Row]) -> str:
    """An aligned table for the terminal."""
    columns, cells = _cells(rows)
    lines = [[column.heading for column in columns], *cells]
    widths = [max(len(line[j]) for line in lines) for j in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def as_markdown(rows: Sequence[Row]) -> str:
    columns, cells = _cells(rows)
    lines = [[column.heading for column in columns], ["---:"] * len(columns), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def as_latex(rows: Sequence[Row]) -> str:
    columns, cells = _cells(rows)
    body = [[_latex(cell) for cell in line] for line in cells]
    lines = [r"\begin{tabular}{" + "r" * len(columns) + "}", " & ".join(c.latex for c in columns) + r" \\", r"\hline"]
    return "\n".join([*lines, *(" & ".join(line) + r" \\" for line in body), r"\end{tabular}"]) + "\n"


def _latex(cell: str) -> str:
    for plain, escaped in (("_", r"\_"), ("±", r"$\pm$"), (" us", r" $\mu$s"), ("%", r"\%")):
        cell = cell.replace(plain, escaped)
    return cell


def as_csv(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Numbers with all their digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([row.get(name) for name in names] for row in rows)
    return out.getvalue()


def columns_csv(table: Any) -> str:
    """A dataclass of columns, one line a row; an infinity is written as inf, what is unknown is left empty."""
    names = [field.name for field in fields(table)]
    columns = [getattr(table, name).tolist() for name in names]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    return as_csv(
        [{name: None if str(value) == "nan" else value for name, value in row.items()} for row in rows], names
    )


def observers_csv(curves: Mapping[str, Curve]) -> str:
    """Write the profiles of several observers in one table, each with what it is of."""
    names = ("observer", "about", "epsilon", "delta_1_over_0", "delta_0_over_1")
    rows = [
        dict(zip(names, (observer, curve.about, *values), strict=True))
        for observer, curve in curves.items()
        for values in zip(*(getattr(curve.profile, name).tolist() for name in names[2:]), strict=True)
    ]
    return as_csv(rows, names)
