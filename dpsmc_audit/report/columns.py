"""The columns of a table for people: which ones rows fill, and how a cell is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "BOUNDS",
    "CSV_COLUMNS",
    "INFORMED",
    "OBSERVERS",
    "PARAMETERS",
    "SETTINGS",
    "Column",
    "columns_for",
    "decimals",
    "several",
    "varying",
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


SETTINGS = (
    "mechanism", "notion", "model", "relation", "formula", "engine", "kernel", "alpha_fp", "alpha_fn", "runs",
    "pairs", "draws", "bin_width", "seed", "max_steps", "confidence", "claimed_delta", "mu", "curve",
)  # fmt: skip
"""Parameters that get a column of their own only where a sweep varies them."""


@dataclass(frozen=True)
class Column:
    """A column for people.

    Parameters
    ----------
    heading, latex : str
        Its heading, plain and in LaTeX.
    show : callable
        Makes the cell of a row.
    """

    heading: str
    latex: str
    show: Callable[[Row], str]


def varying(rows: Sequence[Row]) -> list[str]:
    """List the settings that differ between rows.

    Parameters
    ----------
    rows : sequence of dict
        The rows.

    Returns
    -------
    list of str
        The names of the settings, in the order of `SETTINGS`.
    """
    return [name for name in SETTINGS if several(rows, name)]


def several(rows: Sequence[Row], name: str) -> bool:
    """Check whether a column has more than one value.

    Parameters
    ----------
    rows : sequence of dict
        The rows.
    name : str
        The column. A missing value counts as a value.

    Returns
    -------
    bool
        Whether two rows differ.
    """
    return len({str(row.get(name)) for row in rows}) > 1


def decimals(value: float, spec: str) -> str:
    """Format a number; where the digits would make a 0 of a number that is none, use two digits and an exponent.

    Parameters
    ----------
    value : float
        The number.
    spec : str
        Of Python's `format`.

    Returns
    -------
    str
        The number as text.

    Examples
    --------
    >>> decimals(0.00992, ".4f"), decimals(0.0, ".4f"), decimals(3.14e-6, ".4f")
    ('0.0099', '0.0000', '3.1e-06')
    """
    text = format(value, spec)
    return text if value == 0.0 or re.search("[1-9a-z]", text) else format(value, ".2g")


def _shown(value: Any, spec: str) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else decimals(value, spec)


def _number(heading: str, latex: str, name: str, spec: str) -> Column:
    return Column(heading, latex, lambda row: _shown(row.get(name), spec))


def _plain(name: str, heading: str | None = None, latex: str | None = None) -> Column:
    shown = name if heading is None else heading
    latex = shown.replace("_", r"\_") if latex is None else latex
    return Column(shown, latex, lambda row: "-" if row.get(name) is None else f"{row[name]}")


def _between(row: Row, name: str, spec: str) -> str:
    """A value with the interval it lies in."""
    ends = [_shown(row.get(f"{name}_{end}"), spec) for end in ("low", "high")]
    return _shown(row.get(name), spec) + ("" if row.get(f"{name}_low") is None else f" [{', '.join(ends)}]")


def _mean(row: Row) -> str:
    if row.get("samples") is None:
        return "-"
    low, high = row["samples_low"], row["samples_high"]
    return f"{row['samples']:.1f}" + ("" if low is None else f" ± {0.5 * (high - low):.1f}")


def _exact_mean(row: Row) -> str:
    return _between(row, "samples_exact", ".1f" if row.get("samples_exact_low") is not None else ".3f")


def _paper(row: Row) -> str:
    known = row.get("paper_samples")
    return "-" if known is None else f"{known:.0f} ± {row['paper_halfwidth']:.0f}"


def _distance(row: Row) -> str:
    far = row.get("distance")
    return "-" if far is None else f"{far:+.1f}" + (" *" if abs(far) > 3.0 else "")


def _time(row: Row) -> str:
    value = row.get("seconds_per_run")
    if value is None:
        return "-"
    return f"{1e6 * value:.2f} us" if value < 1e-3 else f"{1e3 * value:.1f} ms"


def _levels(row: Row) -> str:
    """One level for both errors, or that of H_alt under H_null and that of H_null under H_alt."""
    fp, fn = (row["alpha"] if row[name] is None else row[name] for name in ("alpha_fp", "alpha_fn"))
    return f"{1.0 - fp:g}" if fp == fn else f"{1.0 - fp:g}, {1.0 - fn:g}"


def _epsilon(row: Row) -> str:
    """Nothing where it was not used; an audit still checks it."""
    return "-" if row["mechanism"] == "none" and row["task"] == "simulate" else f"{row['epsilon']}"


def _delta(heading: str, latex: str, name: str) -> Column:
    """A positive delta below 1e-9 may be rounding."""

    def show(row: Row) -> str:
        value = max(float(row[name]), 0.0)
        return "<1e-9" if 0.0 < value <= 1e-9 else f"{value:.3g}"

    return Column(heading, latex, show)


def _outside(row: Row) -> str:
    chance = row.get("bins_outside_expected_by_chance")
    by_chance = "" if chance is None else f" ({decimals(chance, '.1f')} by chance)"
    return f"{row['bins_outside']} of {row['bins']}{by_chance}"


def _gap(row: Row) -> str:
    gap = row["support_gap"]
    return f"{gap['from']:.1f} to {gap['to']:.1f}" if gap["to"] > gap["from"] else "none"


def _exactly(row: Row) -> str:
    exact = row.get("exact")
    return "-" if exact is None else f"{exact['verdict']}, delta {_shown(exact['delta_lower'], '.4g')}"


def _best_ratio(row: Row) -> str:
    best = row.get("best_event")
    return "-" if best is None else _shown(best["log_ratio"], "+.4g")


def _larger_error(row: Row) -> str:
    return decimals(max(row["fp_worst"], row["fn_worst"]), ".4f")


BOUNDS = (
    _plain("verdict", None, "Verdict"),
    _number("epsilon >=", r"$\varepsilon \geq$", "epsilon_lower", ".4g"),
    _number("delta >=", r"$\delta_{\mathrm{DP}} \geq$", "delta_lower", ".4g"),
)


OBSERVERS = (
    _number("mean samples", "Samples", "samples_exact", ".1f"),
    Column("error", r"$\max P(\mathrm{wrong})$", _larger_error),
    Column("verdict", "Verdict", lambda row: f"{(row.get('exact') or row)['verdict']}"),
    _number("total variation", r"$d_{TV}$", "total_variation", ".3g"),
    _delta("delta at eps", r"$\delta(\varepsilon)$", "delta_at_epsilon"),
    _delta("delta at 2 eps", r"$\delta(2\varepsilon)$", "delta_at_2_epsilon"),
    Column("ln ratio, best event", r"$\ln$ ratio", _best_ratio),
)
"""Mechanisms and observers side by side: what each costs and what it hides."""


INFORMED = (
    _number("reveals 1", r"$R_1$", "reveal_1", ".4g"),
    _number("reveals 0", r"$R_0$", "reveal_0", ".4g"),
    _number("TV, worst sequence", r"$\max d_{TV}$", "oscillating_total_variation", ".4f"),
    _number("TV, average", r"$d_{TV}$", "total_variation", ".4g"),
)


def columns_for(rows: Sequence[Row]) -> list[Column]:
    """Choose the columns that these rows fill.

    Parameters
    ----------
    rows : sequence of dict
        Of one task, as `flatten` makes them.

    Returns
    -------
    list of Column
        For people; `CSV_COLUMNS` has those for programs.
    """
    task = rows[0]["task"]
    if rows[0].get("observer") == "black_box":
        return _sampler_columns(rows)
    if task == "estimate":
        return _estimate_columns(rows)
    if task not in CSV_COLUMNS:
        return _own_columns(rows)
    settings = varying(rows)
    if "notion" in settings:  # the others come with it
        settings = [name for name in settings if name in ("mechanism", "notion", "engine", "seed")]
    columns = [_plain(name) for name in settings]
    columns += [Column("1-alpha", r"$1-\alpha$", _levels), _plain("delta", None, r"$\delta$")]
    columns.append(Column("epsilon", r"$\varepsilon$", _epsilon))
    known = (("p", "$p$"), ("p_phi", r"$p_\varphi$"), ("entry", "$n$"))
    columns += [_plain(name, None, latex) for name, latex in known if several(rows, name)]
    if task == "simulate":
        return columns + _simulate_columns(rows)
    return columns + (list(OBSERVERS) if several(rows, "observer") else _audit_columns(rows))


def _own_columns(rows: Sequence[Row]) -> list[Column]:
    """A task from outside the package: what varies, and all its single values."""
    kinds = (int, float, str, bool)
    results = [name for name, value in rows[0].items() if isinstance(value, kinds)]
    found = results[results.index("schema") + 1 :]  # what comes before are parameters
    varied = [name for name in (*PARAMETERS, "entry") if several(rows, name)]
    return [_plain(name) for name in (*varied, *varying(rows), *found)]


def _simulate_columns(rows: Sequence[Row]) -> list[Column]:
    optional = (
        ("paper_samples", Column("paper", "Paper", _paper)),
        ("distance", Column("distance", "Distance", _distance)),
        ("paper_seconds", Column("paper's", "Paper's", lambda row: f"{_shown(row['paper_seconds'], '.2f')} s")),
    )
    *paper, times = ([column] if any(row.get(name) is not None for row in rows) else [] for name, column in optional)
    unfinished = [_plain("unfinished", None, "Unfinished")] if any(row.get("unfinished") for row in rows) else []
    return [
        _number("accuracy", "Acc.", "accuracy", ".4f"),
        Column("mean samples", "Samples", _mean),
        Column("exact mean", "Exact", _exact_mean),
        _number("P(wrong)", r"$P(\mathrm{wrong})$", "error_exact", ".2g"),
        *(column for columns in paper for column in columns),
        *unfinished,
        Column("time/run", "Time/run", _time),
        *times,
        _plain("decision", None, "Decision"),
    ]


def _estimate_columns(rows: Sequence[Row]) -> list[Column]:
    """p_phi alone: neither levels nor bounds matter to it."""
    return [
        *(_plain(name) for name in ("model", *varying(rows)) if name != "runs"),
        _plain("samples_drawn", "samples", "Samples"),
        Column("p_phi", r"$p_\varphi$", lambda row: _between(row, "p_phi", ".4f")),
        Column("time/sample", "Time", lambda row: f"{1e6 * row['seconds_per_sample']:.2f} us"),
    ]


def _audit_columns(rows: Sequence[Row]) -> list[Column]:
    """The bounds, and what the observer is asked about beside them."""
    if rows[0].get("observer") == "informed":
        return [*BOUNDS, *INFORMED]
    optional = (
        ("bins_outside", Column("bins outside", "Outside", _outside)),
        ("support_gap", Column("support gap", "Gap", _gap)),
        ("exact", Column("exact", "Exact", _exactly)),
    )
    known = [column for name, column in optional if all(name in row for row in rows)]
    return [*BOUNDS, *known, _number("TV", r"$d_{TV}$", "total_variation", ".4g")]


def _sampler_columns(rows: Sequence[Row]) -> list[Column]:
    """Audits of users' mechanisms."""
    names = [name for name in ("mu", "curve", "seed", "confidence") if several(rows, name)]
    return [
        *(_plain(name) for name in ("sampler", "samples", *names)),
        _plain("epsilon", None, r"$\varepsilon$"),
        _plain("claimed_delta", "delta", r"$\delta_{\mathrm{DP}}$"),
        _plain("runs_used", "runs", "Runs"),
        *BOUNDS,
    ]
