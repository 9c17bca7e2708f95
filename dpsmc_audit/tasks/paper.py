"""The published numbers (Wang, Sibai, Yen, Mitra, Dullerud), and how far they lie from the exact ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsmc_audit.exact.averages import exact_mean, exact_sd
from dpsmc_audit.mechanisms import Exponential, Mechanism
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["P_PHI", "TABLE1", "P", "PaperRow", "compare", "published"]

P, P_PHI = 0.73, 0.84
RUNS = 10_000
ROUNDING = 5.0
"""Table 1 gives mean samples in thousands with two decimals."""


@dataclass(frozen=True)
class PaperRow:
    """A row of Table 1: mean samples and time per run in seconds, each with its 99 % half-width.

    Parameters
    ----------
    samples, samples_halfwidth : float
        Mean samples.
    seconds, seconds_halfwidth : float
        Time per run.
    """

    samples: float
    samples_halfwidth: float
    seconds: float
    seconds_halfwidth: float


TABLE1: dict[tuple[float, float, float], PaperRow] = {
    (0.01, 0.01, 0.01): PaperRow(1350.0, 30.0, 181.31, 4.36),
    (0.01, 0.01, 0.05): PaperRow(610.0, 10.0, 82.04, 0.65),
    (0.01, 0.03, 0.01): PaperRow(1030.0, 20.0, 146.90, 9.13),
    (0.01, 0.03, 0.05): PaperRow(330.0, 10.0, 44.86, 0.58),
    (0.05, 0.01, 0.01): PaperRow(1120.0, 20.0, 163.33, 8.94),
    (0.05, 0.01, 0.05): PaperRow(450.0, 10.0, 61.81, 0.58),
    (0.05, 0.03, 0.01): PaperRow(1020.0, 30.0, 137.26, 4.24),
    (0.05, 0.03, 0.05): PaperRow(280.0, 10.0, 38.11, 0.58),
}
"""Keyed by (alpha, delta, epsilon)."""


def compare(setting: Setting, epsilon: float) -> dict[str, float | None]:
    """Find the paper's row for these parameters and its distance from the exact mean.

    The distance is in standard errors of the paper's own 10^4 runs (exactly known: sd of tau / 100), beyond what
    rounding explains; it is positive where the paper lies above.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    epsilon : float
        The privacy level.

    Returns
    -------
    dict
        The paper's mean with its half-width, and the distance; all None where the paper has no such row.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.05)
    >>> row = compare(Setting(test, Exponential.private(test, 0.01), 0.84), 0.01)
    >>> row["paper_samples"], round(row["distance"], 1)
    (1120.0, -5.4)
    """
    row = _row(setting.test, setting.mechanism, epsilon)
    if row is None or setting.p_phi != P_PHI:
        return {"paper_samples": None, "paper_halfwidth": None, "distance": None}
    gap = row.samples - exact_mean(setting).value
    standard_error = exact_sd(setting).value / math.sqrt(RUNS)
    distance = math.copysign(max(abs(gap) - ROUNDING, 0.0) / standard_error, gap)
    return {"paper_samples": row.samples, "paper_halfwidth": row.samples_halfwidth, "distance": distance}


def published(test: Sprt, mechanism: Mechanism, epsilon: float) -> dict[str, float | None]:
    """Find the paper's row for these parameters, its time included.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        Its noise.
    epsilon : float
        The privacy level.

    Returns
    -------
    dict
        The paper's mean and time with their half-widths; all None where the paper has no such row.

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.05)
    >>> published(test, Exponential.private(test, 0.01), 0.01)["paper_seconds"]
    163.33
    """
    row = _row(test, mechanism, epsilon)
    parts = {"samples": "samples", "halfwidth": "samples_halfwidth"}
    parts |= {name: name for name in ("seconds", "seconds_halfwidth")}
    return {f"paper_{name}": None if row is None else getattr(row, part) for name, part in parts.items()}


def _row(test: Sprt, mechanism: Mechanism, epsilon: float) -> PaperRow | None:
    same = test.p == P and test.fp == test.fn == test.alpha and isinstance(mechanism, Exponential)
    return TABLE1.get((test.alpha, test.delta, epsilon)) if same else None
