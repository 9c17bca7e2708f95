"""report.html of an audit: the verdict on top, then figures, witness, method, parameters, files and the command."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dpsmc_audit.observers.base import Audit, PairAudit
from dpsmc_audit.observers.black_box import BlackBoxAudit
from dpsmc_audit.observers.expected.audit import ExpectedAudit
from dpsmc_audit.report.bins import Bins, bins_of
from dpsmc_audit.report.charts import both_sizes, histogram_chart, say_bin
from dpsmc_audit.report.columns import decimals
from dpsmc_audit.report.command import command_line, flat, without_folders
from dpsmc_audit.report.figures import trade_off_figure
from dpsmc_audit.report.html import REPORT, render
from dpsmc_audit.report.profile_chart import Curve, delta_or_none, profile_chart, slider_data
from dpsmc_audit.runs.files import RESULT, write_text
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.targets import said
from dpsmc_audit.tasks.other_observers import OtherObservers

__all__ = ["FIGURES", "audit_page", "flat", "meaning", "write_report"]

Row = dict[str, Any]

log = logging.getLogger("dpsmc_audit")

FIGURES = {"expected": "figure1", "marginal": "marginal", "informed": "informed", "black_box": "sampler"}
"""Names of the histogram's picture by observer; others have ``histogram.png``."""

FILES = (
    ("histogram.csv", "all bins or outcomes"),
    ("profile.csv", "δ for every ε, both directions; a lower bound if sampled"),
    ("trade_off.csv", "false alarms against misses, with bands"),
    ("observers.csv", "the same for the other observers"),
    *((f"{name}.png", "the histogram as a picture") for name in (*FIGURES.values(), "histogram")),
    ("profile.png", "the profile as a picture"),
    ("trade_off.png", "false alarms against misses as a picture"),
)

NAMES = {
    "expected": "Expected (averages)",
    "marginal": "Marginal (one result)",
    "informed": "Informed (all others known)",
}


def write_report(
    folder: Path, audit: Audit, others: OtherObservers, result: Row, notes: Sequence[str], given: Sequence[str]
) -> list[str]:
    """Write the page of an audit beside its other files.

    Parameters
    ----------
    folder : Path
        Where the files are.
    audit : Audit
        What was found.
    others : OtherObservers
        The profiles of the observers that the audit was not about.
    result : dict
        The content of ``result.json``; `parameters`, `provenance` and further numbers are shown as they are.
    notes : sequence of str
        Warnings.
    given : sequence of str
        The words of the command line.

    Returns
    -------
    list of str
        The names of all files; empty if the page could not be made, which only prints a warning.
    """
    try:
        write_text(folder / REPORT, audit_page(folder, audit, others, result, notes, given))
    except Exception as error:  # hours of an audit are not lost for a page: result.json is still to come
        log.exception("no report")
        warn(f"{REPORT} could not be made: {said(error)}")
        return []
    return [REPORT, *(name for name, _ in _files(folder))]


def audit_page(
    folder: Path, audit: Audit, others: OtherObservers, result: Row, notes: Sequence[str], given: Sequence[str]
) -> str:
    """Render the page of an audit.

    Parameters
    ----------
    folder : Path
        Where the other files of the audit are.
    audit : Audit
        What was found.
    others : OtherObservers
        The profiles of the observers that the audit was not about.
    result : dict
        The content of ``result.json``; `parameters`, `provenance` and further numbers are shown as they are.
    notes : sequence of str
        Warnings.
    given : sequence of str
        The words of the command line.

    Returns
    -------
    str
        HTML that loads nothing.
    """
    command, shortened = command_line(given)
    parameters, words = result["parameters"], audit.words
    pair = audit if isinstance(audit, PairAudit) else None
    return render(
        "audit.html",
        name=audit.name if isinstance(audit, BlackBoxAudit) else f"mechanism {parameters.get('mechanism')}",
        audit=audit,
        words=words,
        meaning=meaning(audit, parameters.get("relation")),
        p_phi=parameters.get("p_phi"),
        warnings=list(notes),
        histogram=_histogram(bins_of(audit), audit),
        profile=None if pair is None else _profile(pair, others),
        below=_below(audit) if isinstance(audit, BlackBoxAudit) else None,
        known={key: value for key, value in result.items() if value is not None},
        parameters=_parameters(parameters),
        provenance=flat(result.get("provenance")),
        files=_files(folder),
        command=command,
        shortened=shortened,
    )


def meaning(audit: Audit, relation: str | None) -> str:
    """Say what x is.

    Parameters
    ----------
    audit : Audit
        Of any observer.
    relation : str, optional
        With ``lt`` and ``le`` the negated specification is tested.

    Returns
    -------
    str
        A clause without its capital.
    """
    if not isinstance(audit, PairAudit):
        return "x is the entry under test, as the sampler receives it"
    they, s = ("they", "") if len(audit.pair.entries) > 1 else ("it", "s")
    verb = f"violate{s}" if relation in ("lt", "le") else "satisfies" if s else "satisfy"
    return f"x = 1 means that {they} {verb} the specification, x = 0 the opposite"


def _histogram(bins: Bins | None, audit: Audit) -> Row | None:
    if bins is None or not bins.bins:
        return None
    epsilon, outside = audit.claim.epsilon, getattr(audit.histogram, "outside", None)
    if outside is None:  # a user's mechanism has no bins but those of the picture
        outside = np.array([each.outside for each in bins.bins])
    chance = audit.by_chance if isinstance(audit, ExpectedAudit) else None
    return {
        "chart": both_sizes(lambda width: histogram_chart(bins, epsilon, "x", width)),
        "bins": bins,
        "rows": [say_bin(each, bins, epsilon, "x") for each in bins.bins],
        "outside": int(outside.sum()),
        "whole": outside.size,
        "chance": None if chance is None else decimals(chance, ".1f"),
    }


def _profile(audit: PairAudit, others: OtherObservers) -> Row:
    epsilon, own = audit.claim.epsilon, audit.observer if audit.observer in NAMES else "own"
    curves = [Curve.of(own, _name(audit.observer), audit.words.curve, audit.leakage.profile)]
    curves += [Curve.of(name, _name(name), curve.about, curve.profile) for name, curve in others.curves.items()]
    data = slider_data(curves, epsilon)
    return {
        "chart": both_sizes(lambda width: profile_chart(curves, epsilon, width)),
        "curves": curves,
        "data": data,
        "start": data["start"],
        "rows": [(c.name, c.about, *(delta_or_none(c.at(x)) for x in (epsilon, 2.0 * epsilon))) for c in curves],
        "left_out": {_name(name): without_folders(reason) for name, reason in others.left_out.items()},
    }


def _below(audit: BlackBoxAudit) -> Row:
    """The profile of a user's mechanism where it is above 0, and its trade-off curve as a picture."""
    bounds, written = audit.bounds, BytesIO()
    pairs = zip(bounds.profile_epsilon.tolist(), bounds.profile_delta.tolist(), strict=True)
    trade_off_figure(audit).savefig(written, format="png", dpi=110, metadata={"Software": None})
    rows = [(epsilon, delta) for epsilon, delta in pairs if delta > 0.0]
    return {"rows": rows, "picture": f"data:image/png;base64,{b64encode(written.getvalue()).decode()}"}


def _name(observer: str) -> str:
    return NAMES.get(observer, observer.capitalize())


def _parameters(parameters: Row) -> dict[str, str]:
    """The values by key, without folders."""
    paths = {key for key in parameters if key in ("sequence", "formula_file") or key.endswith("_path")}
    shown = {key: Path(value).name if key in paths and value else value for key, value in parameters.items()}
    return {key: "none" if value is None else f"{value}" for key, value in shown.items()}


def _files(folder: Path) -> list[tuple[str, str]]:
    found = [(name, about) for name, about in FILES if (folder / name).exists()]
    return [(RESULT, "every number of this report and more"), *found]
