"""report.html of an audit: the verdict on top, then figures, witness, method, parameters, files and the command."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpsmc_audit.report.bins import Bins, read_bins
from dpsmc_audit.report.charts import both_sizes, histogram_chart, say_bin
from dpsmc_audit.report.command import command_line, without_folders
from dpsmc_audit.report.guarantee import exact_beside, guarantee, method_name, observer_is, witness_in_words
from dpsmc_audit.report.html import REPORT, render
from dpsmc_audit.report.profile_chart import Curve, delta_or_none, profile_chart, read_curves, slider_data
from dpsmc_audit.report.svg import brief, brief_delta
from dpsmc_audit.report.tables import decimals
from dpsmc_audit.report.words import changed, in_words, kind_of, meaning, number
from dpsmc_audit.runs.files import RESULT, write_text
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.targets import said

__all__ = ["audit_page", "write_report"]

log = logging.getLogger("dpsmc_audit")

OBSERVERS_CSV = "observers.csv"

FIGURES = {"expected": "figure1.png", "marginal": "marginal.png", "informed": "informed.png", "sampler": "sampler.png"}

NAMES = {
    "expected": "Expected (averages)",
    "marginal": "Marginal (one result)",
    "informed": "Informed (all others known)",
}

KEYS = {
    "p": "threshold of the specification's probability",
    "p_phi": "probability that a sample satisfies the specification",
    "alpha": "significance level",
    "alpha_fp": "level for H_alt when H_null is true (none: alpha)",
    "alpha_fn": "level for H_null when H_alt is true (none: alpha)",
    "delta": "indifference parameter of the test (not the δ of privacy)",
    "epsilon": "claimed privacy level ε",
    "claimed_delta": "claimed δ of privacy",
    "entry": "the sample that is changed",
    "mechanism": "law of the random excess of the bounds",
    "notion": "whose view is audited",
    "engine": "sampled or exact",
    "pairs": "pairs of sequences",
    "draws": "draws of the noise",
    "runs": "runs with either value of x",
    "seed": "the same seed gives the same numbers",
    "confidence": "level of every interval",
    "floor": "smallest probability of the events behind the bound on ε",
    "method": "how a verdict comes from runs",
    "sampler": "the user's mechanism",
    "sequence": "file of the other samples",
    "bin_width": "width of the bins, in samples (none: chosen)",
    "max_steps": "longest run",
    "relation": "which side of p is asked for",
}

NUMBERS = (
    ("delta_at_epsilon", "δ needed at the claimed ε"),
    ("delta_at_2_epsilon", "δ needed at twice the claimed ε"),
    ("total_variation", "total variation: the best guess of x, better than a coin by half of it"),
    ("reveal_1", "probability that x = 1 is revealed with certainty, on average"),
    ("reveal_0", "probability that x = 0 is revealed with certainty, on average"),
    ("oscillating_total_variation", "total variation on the sequence made to be the worst"),
    ("samples_exact", "mean samples of a run"),
    ("fp_worst", "probability of H_alt where H_null begins"),
    ("fn_worst", "probability of H_null where H_alt begins"),
)


def write_report(folder: Path, result: dict[str, Any], notes: Sequence[str], given: Sequence[str]) -> list[str]:
    """Write the page beside the other files of an audit, and return the names of all of them."""
    try:
        write_text(folder / REPORT, audit_page(folder, result, notes, given))
    except Exception as error:  # hours of an audit are not lost for a page: result.json is still to come
        log.exception("no report")
        warn(f"{REPORT} could not be made: {said(error)}")
        return []
    return [REPORT, *(name for name, _ in _files(folder, kind_of(result)))]


def audit_page(folder: Path, result: dict[str, Any], notes: Sequence[str], given: Sequence[str]) -> str:
    """The page, from the result and the CSV files in the folder."""
    kind, epsilon = kind_of(result), number(result["epsilon_claimed"])
    command, shortened = command_line(given)
    profile = None if kind == "sampler" else _profile(folder, result, epsilon)
    return render(
        "audit.html",
        name=result["parameters"].get("sampler") or f"mechanism {result['parameters']['mechanism']}",
        words=in_words(result),
        meaning=meaning(result),
        changed=changed(result),
        observer=observer_is(result),
        method=method_name(result),
        witness=witness_in_words(result),
        exact=exact_beside(result),
        guarantee=guarantee(result),
        technical=result["sentence"],
        warnings=list(notes),
        histogram=_histogram(read_bins(folder, result), epsilon, result),
        profile=profile,
        numbers=[(text, _number(key, number(result[key]))) for key, text in NUMBERS if result.get(key) is not None],
        parameters=_parameters(result["parameters"]),
        provenance=_flat(result.get("provenance")),
        files=_files(folder, kind),
        command=command,
        shortened=shortened,
    )


def _number(key: str, value: float) -> str:
    return (brief_delta if key.startswith("delta") else brief)(value, 4)


def _histogram(bins: Bins, epsilon: float, result: dict[str, Any]) -> dict[str, Any] | None:
    if not bins.bins:
        return None
    chance = result.get("bins_outside_expected_by_chance")
    return {
        "chart": both_sizes(lambda width: histogram_chart(bins, epsilon, "x", width)),
        "bins": bins,
        "rows": [say_bin(each, bins, epsilon, "x") for each in bins.bins],
        "outside": result.get("bins_outside", sum(each.outside for each in bins.bins)),
        "whole": result.get("bins", len(bins.bins)),
        "any": any(each.outside for each in bins.bins),
        "exact": any(each.exact == each.exact for each in bins.bins),
        "sure": sum(each.sure for each in bins.bins),
        "of": result.get("shown_sequence"),
        "chance": None if chance is None else decimals(number(chance), ".1f"),
        "confidence": result["parameters"]["confidence"],
    }


def _profile(folder: Path, result: dict[str, Any], epsilon: float) -> dict[str, Any]:
    audited = kind_of(result)
    curves = read_curves(folder / "profile.csv", NAMES, _about(result), audited)
    if (folder / OBSERVERS_CSV).exists():
        curves += read_curves(folder / OBSERVERS_CSV, NAMES)
    data = slider_data(curves, epsilon)
    return {
        "chart": both_sizes(lambda width: profile_chart(curves, epsilon, width)),
        "curves": curves,
        "data": data,
        "start": data["start"],
        "rows": [_profile_row(curve, epsilon) for curve in curves],
        "left_out": {
            NAMES[name]: without_folders(other["left_out"])
            for name, other in result.get("other_observers", {}).items()
            if "left_out" in other
        },
    }


def _profile_row(curve: Curve, epsilon: float) -> tuple[str, ...]:
    values = [max(curve.at(x)) for x in (epsilon, 2.0 * epsilon)]
    return (curve.name, curve.about, *(delta_or_none(x) for x in values))


def _about(result: dict[str, Any]) -> str:
    """What the audited curve is of."""
    kind = kind_of(result)
    if kind == "expected":
        return "exact, averages in bins"
    if kind == "marginal":
        return "of the sampled runs" if result["leakage_from"] == "sampled" else "exact, one released result"
    if result.get("sequences") is None:
        return "exact, the given sequence"
    return f"average over {result['sequences']} drawn sequences, each exact"


def _parameters(parameters: dict[str, Any]) -> list[tuple[str, str, str]]:
    made = []
    for key, value in parameters.items():
        text = "none" if value is None else f"{value}"
        if isinstance(value, str) and (key in ("sequence", "formula_file") or key.endswith("_path")):
            text = Path(value).name
        made.append((key, text, KEYS.get(key, "")))
    return made


def _flat(values: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Names and values of whatever is known about the origin of a result."""
    return [(key, without_folders(f"{value}")) for key, value in (values or {}).items() if value is not None]


def _files(folder: Path, kind: str) -> list[tuple[str, str]]:
    known = [
        ("histogram.csv", "all bins or outcomes"),
        ("profile.csv", "δ for every ε, both directions"),
        (OBSERVERS_CSV, "the same for the other observers"),
        (FIGURES[kind], "the histogram as a picture"),
        ("profile.png", "the profile as a picture"),
    ]
    if kind == "sampler":
        known = [known[0], known[3]]
    found = [(name, about) for name, about in known if (folder / name).exists()]
    return [(RESULT, "every number of this report and more"), *found]
