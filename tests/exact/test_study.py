"""A study of the exact engine over random settings: no proven interval misses a plain second programme.

By hand: ``python -m tests.exact.test_study 1000 --log study.jsonl``; a summary with ``--summary study.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.averages import exact_mean, exact_null_probability
from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import TerminationLaw
from dpsmc_audit.exact.laws import exact_law
from tests.support.exact_settings import Asked, Second, asked, second

LONGEST = 30.0
"""Seconds that a setting may take, on an idle machine."""


def missed_by_law(law: TerminationLaw, plain: Second) -> list[str]:
    """What of a law lies further from the second programme than both allow."""
    size = max(law.null.size + 1, plain.survival.size)
    one, other = law.survival(), plain.survival
    one, other = (np.pad(each, (0, size - each.size), mode="edge") for each in (one, other))
    found = ["survival"] if np.max(np.abs(one - other)) > law.error + plain.slack else []
    if law.proven and abs(float(law.null.sum()) - plain.null) > law.scatter + plain.slack:
        found.append("null")
    return found


def missed_by_number(name: str, exact: Enclosure, low: float, high: float) -> list[str]:
    """Whether a proven interval lies apart from another one."""
    return [name] if exact.proven and (exact.low > high or exact.high < low) else []


def tried(case: Asked, plain: Second | None) -> dict[str, Any]:
    """What the engine says of a setting, how long it takes, and what it misses."""
    setting, started = case.setting, time.perf_counter()
    row: dict[str, Any] = {"number": case.number, "mechanism": setting.mechanism.name, "missed": []}
    try:
        law = exact_law(setting, case.forced)
        row |= {"law": law.method, "error": law.error, "scatter": law.scatter, "proven": law.proven}
    except ParameterError as refusal:
        law = None
        row |= {"law": "refused", "why": f"{refusal}"}
    row["law_seconds"] = time.perf_counter() - started
    started = time.perf_counter()
    mean, null = exact_mean(setting), exact_null_probability(setting)
    row |= {"seconds": time.perf_counter() - started, "mean": mean.method, "null": null.method}
    row |= {"mean_width": (mean.high - mean.low) / mean.value if math.isfinite(mean.high) else math.inf}
    row |= {"null_width": null.high - null.low, "mean_proven": mean.proven, "null_proven": null.proven}
    plain = plain or second(case)
    row |= {"second": plain.how, "slack": plain.slack}
    if law is not None:
        row["missed"] += missed_by_law(law, plain)
    if not case.forced:
        row["missed"] += missed_by_number(
            "mean", mean, plain.mean[0] - 1e-6 * plain.mean[0], plain.mean[1] * (1 + 1e-5)
        )
        row["missed"] += missed_by_number("null", null, plain.null - plain.slack, plain.null + plain.slack)
    return row


@pytest.mark.parametrize("number", [3, 10, 17])
def test_a_few_settings(number: int) -> None:
    assert tried(asked(number), None)["missed"] == []


@pytest.mark.slow
@pytest.mark.parametrize("lot", range(20))
def test_no_proven_interval_misses(lot: int) -> None:
    """Fifty settings a lot, of a thousand."""
    rows = [tried(asked(number), None) for number in range(50 * lot, 50 * lot + 50)]
    assert [row for row in rows if row["missed"]] == []
    assert [row for row in rows if row["law_seconds"] > LONGEST or row["seconds"] > LONGEST] == []


def study(first: int, count: int, log: Path) -> None:
    """Try settings one after another, and write a line for each."""
    for number in range(first, first + count):
        row = tried(asked(number), None)
        with log.open("a") as file:
            file.write(json.dumps(row) + "\n")


def summary(log: Path) -> str:
    """Counts, widths and times of a log."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    laws = [row for row in rows if row["law"] != "refused"]

    def spread(values: list[float]) -> str:
        return "  ".join(
            f"{share:g}: {np.quantile(values, share, method='lower'):.2g}" for share in (0.5, 0.9, 0.99, 1.0)
        )

    lines = [
        f"settings {len(rows)}, second programme by runs {sum(row['second'] == 'runs' for row in rows)}",
        f"misses {[(row['number'], row['missed']) for row in rows if row['missed']]}",
        f"laws refused {len(rows) - len(laws)}, with an estimate {sum(not row['proven'] for row in laws)}",
        f"means or errors that are estimates {sum(not (row['mean_proven'] and row['null_proven']) for row in rows)}",
        f"error of P(tau > k)    {spread([row['error'] for row in laws])}",
        f"sum, where proven      {spread([row['scatter'] for row in laws if row['proven']])}",
        f"width of P(H_null)     {spread([row['null_width'] for row in rows])}",
        f"width of mean / mean   {spread([min(row['mean_width'], 1e9) for row in rows])}",
        f"seconds of laws        {spread([row['law_seconds'] for row in rows])}",
        f"seconds of both others {spread([row['seconds'] for row in rows])}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--summary", type=Path)
    given = parser.parse_args()
    if given.count:
        study(given.first, given.count, given.log)
    if given.summary:
        print(summary(given.summary))
