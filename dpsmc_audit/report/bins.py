"""The bins of a report's histogram, read from histogram.csv: few enough to be drawn, each with its sentence."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.numerics.ties import ranked
from dpsmc_audit.report.svg import brief

__all__ = ["Bin", "Bins", "read_bins", "read_columns"]

FloatArray = NDArray[np.float64]

MOST = 100
"""So many bins are drawn: finer ones are joined."""

_UNFINISHED = 1e-2
"""The picture ends where less than this is left, of both members together."""


@dataclass(frozen=True)
class Bin:
    """Probabilities of both members; `marked` are the parts of them outside the tolerance.

    `ratio` is ln(one / zero), with its interval and exact value, nan where there is none. `sure` means outside with
    the whole interval.
    """

    lo: float
    hi: float
    one: float
    zero: float
    ratio: float
    low: float
    high: float
    exact: float
    outside: bool
    sure: bool
    marked: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Bins:
    """What is drawn, and in words what is not."""

    bins: tuple[Bin, ...]
    what: str
    notes: tuple[str, ...]
    mirrored: bool = False
    sampled: bool = False


def read_columns(path: Path) -> dict[str, list[str]]:
    """A CSV file by column."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0])}


def _floats(values: Sequence[str]) -> FloatArray:
    return np.array([float(value) if value else math.nan for value in values])


def read_bins(folder: Path, result: dict[str, Any]) -> Bins:
    """From the histogram of any audit."""
    columns = read_columns(folder / "histogram.csv")
    epsilon, confidence = float(result["parameters"]["epsilon"]), float(result["parameters"]["confidence"])
    if "runs_1" in columns:
        return _of_runs(columns, epsilon, confidence, int(result["runs_used"]))
    if "tau" in columns:
        return _of_outcomes(columns)
    return _of_shares(columns, epsilon, sampled=result["parameters"]["engine"] != "exact")


def _grouped(lo: FloatArray, hi: FloatArray) -> tuple[float, NDArray[np.int64]]:
    """A width with which all bins are at most `MOST`, and the place of each."""
    width, first = float(hi[0] - lo[0]), float(lo.min())
    many = round((float(hi.max()) - first) / width)
    width *= max(1, math.ceil(many / MOST))
    return width, ((lo - first) // width).astype(np.int64)


def _ratio(one: float, zero: float) -> float:
    if one <= 0.0 and zero <= 0.0:
        return math.nan
    return math.copysign(math.inf, one - zero) if min(one, zero) <= 0.0 else math.log(one / zero)


def _of_shares(columns: dict[str, list[str]], epsilon: float, *, sampled: bool) -> Bins:
    """Expected and marginal: bins with shares; of the marginal one the more frequent decision."""
    number = {name: _floats(values) for name, values in columns.items() if name not in ("decision", "outside")}
    lo, hi, one, zero = (number[name] for name in ("lo", "hi", "p1", "p0"))
    outside = np.array([value == "True" for value in columns["outside"]])
    notes: list[str] = []
    what, kept = "average running time", np.ones(lo.size, bool)
    if "decision" in columns:
        decision = np.array(columns["decision"])
        names = sorted(set(columns["decision"]))
        names = [names[k] for k in ranked([float((one + zero)[decision == name].sum()) for name in names])]
        what, kept = f"running time tau, decision {names[0]}", decision == names[0]
        for name in names[1:]:
            shares = (brief(float(p[decision == name].sum())) for p in (one, zero))
            notes.append("Decision {}, not drawn: probability {} (x = 1), {} (x = 0).".format(name, *shares))
    order = np.flatnonzero(kept & np.isfinite(hi))
    left = np.cumsum((one + zero)[order][::-1])[::-1]
    shown = order[left > _UNFINISHED]
    if not shown.size:
        shown = order
    if shown.size < order.size:
        beyond = np.setdiff1d(order, shown)
        rest = (brief(float(p[beyond].sum())) for p in (one, zero))
        notes.append("Beyond the picture: probability {} (x = 1), {} (x = 0).".format(*rest))
    width, place = _grouped(lo[shown], hi[shown])
    single = width == float(hi[shown[0]] - lo[shown[0]])
    if not single:
        notes.append(f"Bins are joined to a width of {width:g} for the picture; histogram.csv has them all.")
    bins = []
    for k in np.unique(place).tolist():
        mine = shown[place == k]
        p, q = float(one[mine].sum()), float(zero[mine].sum())
        low, high, exact = (
            float(number[name][mine[0]]) if single else math.nan
            for name in ("log_ratio_low", "log_ratio_high", "exact_log_ratio")
        )
        start = float(lo[shown].min()) + k * width
        far = bool(outside[mine].any())
        sure = far and (low > epsilon or high < -epsilon)
        bins.append(Bin(start, start + width, p, q, _ratio(p, q), low, high, exact, far, sure))
    return Bins(tuple(bins), f"{what} (samples drawn)", tuple(notes), sampled=sampled)


def _of_runs(columns: dict[str, list[str]], epsilon: float, confidence: float, runs: int) -> Bins:
    """A user's mechanism: counts of tau whatever was decided, with Clopper-Pearson ends of each bin."""
    from dpsmc_audit.evidence.intervals import lower_ends, upper_ends

    tau, one, zero = (np.array([int(x) for x in columns[name]], np.int64) for name in ("tau", "runs_1", "runs_0"))
    low, high = _middle(tau, (one + zero) / (2.0 * runs))
    width = max(1, math.ceil((high - low + 1) / MOST))
    inside = (tau >= low) & (tau <= high)
    size = (high - low) // width + 1
    counts = [np.bincount((tau[inside] - low) // width, n[inside], size).astype(np.int64) for n in (one, zero)]
    tail = 0.25 * (1.0 - confidence)
    with np.errstate(divide="ignore"):
        (low_1, high_1), (low_0, high_0) = (
            (np.log(lower_ends(n, runs, tail)), np.log(upper_ends(n, runs, tail))) for n in counts
        )
    bins = []
    for k in range(size):
        a, b = (int(n[k]) for n in counts)
        if a + b == 0:
            continue
        ratio, start = _ratio(a, b), float(low + k * width) - 0.5
        ends = float(low_1[k] - high_0[k]), float(high_1[k] - low_0[k])
        far = abs(ratio) > epsilon
        sure = far and (ends[0] > epsilon or ends[1] < -epsilon)
        bins.append(Bin(start, start + width, a / runs, b / runs, ratio, *ends, math.nan, far, sure))
    rest = [int(n[~inside].sum()) for n in (one, zero)]
    notes = (f"Beyond the picture: {rest[0]} runs with x = 1, {rest[1]} with x = 0.",) if sum(rest) else ()
    return Bins(tuple(bins), "tau, whatever was decided", notes, sampled=True)


def _middle(tau: NDArray[np.int64], share: FloatArray) -> tuple[int, int]:
    """Where all but one part in two thousand at either end lie."""
    below = np.cumsum(share)
    ends = (min(int(np.searchsorted(below, u)), tau.size - 1) for u in (5e-4, 1.0 - 5e-4))
    low, high = (int(tau[k]) for k in ends)
    return low, high


def _of_outcomes(columns: dict[str, list[str]]) -> Bins:
    """Informed: the outcomes of one sequence, joined in bins; outside is a part of each bin."""
    finished = np.array([name != "running" for name in columns["decision"]])
    tau, one, zero = (_floats(columns[name]) for name in ("tau", "p1", "p0"))
    outside = np.array([value == "True" for value in columns["outside"]])
    notes = []
    if not finished.all():
        running = [float(p[~finished].sum()) for p in (one, zero)]
        if max(running) > 1e-9:
            notes.append(f"Runs that outlast the sequence: {brief(running[0])} (x = 1), {brief(running[1])} (x = 0).")
    if not finished.any():
        return Bins((), "running time tau (samples drawn)", tuple(notes), mirrored=True)
    whole = finished.copy()
    total = float((one + zero)[whole].sum())
    order = np.flatnonzero(whole)
    low, high = _middle(tau[order].astype(np.int64), (one + zero)[order] / max(total, 1e-300))
    width = max(1, math.ceil((high - low + 1) / MOST))
    kept = whole & (tau >= low) & (tau <= high)
    rest = [float(p[whole & ~kept].sum()) for p in (one, zero)]
    if max(rest) > 1e-9:
        notes.append(f"Beyond the picture: probability {brief(rest[0])} (x = 1), {brief(rest[1])} (x = 0).")
    place = ((tau - low) // width).astype(np.int64)
    bins = []
    for k in np.unique(place[kept]).tolist():
        mine = kept & (place == k)
        p, q = float(one[mine].sum()), float(zero[mine].sum())
        marked = (float(one[mine & outside].sum()), float(zero[mine & outside].sum()))
        start = low + k * width - 0.5
        none = (math.nan, math.nan, math.nan)
        bins.append(Bin(start, start + width, p, q, _ratio(p, q), *none, bool(outside[mine].any()), False, marked))
    return Bins(tuple(bins), "running time tau (samples drawn)", tuple(notes), mirrored=True)
