"""A claimed curve from a file: a privacy profile or a trade-off curve becomes a few points (epsilon, delta)."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, regular, require
from dpsmc_audit.evidence.claims import Curve, Point

__all__ = ["read_curve"]

FloatArray = NDArray[np.float64]

_UNIT = 2.0**-53
"""The relative error of one operation."""

_MOST = 7
"""Points of a curve that an audit looks at."""

_PROFILES = (("epsilon", "delta_1_over_0", "delta_0_over_1"), ("epsilon", "delta"))
_TRADE_OFF = ("alpha", "beta")


def read_curve(path: str | Path) -> Curve:
    """Read a claimed privacy profile or trade-off curve from a CSV file.

    A profile has the columns ``epsilon, delta``, or ``epsilon, delta_1_over_0, delta_0_over_1`` for each direction. A
    trade-off curve has the columns ``alpha, beta``: the smallest miss rate at each false-alarm rate, from 0 to 1, for
    both directions, with straight lines between the rows. Other columns are ignored. A claim of more than seven points
    is thinned: to those with a delta above 1e-6 and well below that of epsilon = 0, and the one that follows.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Curve
        The claim, at no more than seven points.

    Raises
    ------
    ParameterError
        With one line that names the file and, where it applies, the line in it.
    """
    kind, lines, rows = _columns(path)
    (_check_trade_off if kind == _TRADE_OFF else _check_profile)(path, lines, rows)
    points = _of_trade_off(rows) if kind == _TRADE_OFF else _of_profile(rows)
    require(len(points) > 0, f"{path} claims nothing: every delta is 1")
    return Curve(_spread(points), f"{path}")


def _columns(path: str | Path) -> tuple[tuple[str, ...], list[int], FloatArray]:
    """Read the kind of the curve, the numbers of its lines and its rows. All values are in range."""
    try:
        with regular(Path(path)).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            table = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except OSError as error:
        raise ParameterError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path} is not a CSV file in UTF-8") from error
    require(len(table) > 0, f"{path} is empty")
    header = [cell.strip() for cell in table[0][1]]
    kinds = [kind for kind in (*_PROFILES, _TRADE_OFF) if set(kind) <= set(header)]
    wanted = " or ".join(",".join(kind) for kind in (*_PROFILES[::-1], _TRADE_OFF))
    require(len(kinds) > 0, f"{path}, line {table[0][0]}: columns must be {wanted}, got {','.join(header)}")
    require(len(table) > 1, f"{path} holds no values")
    kind, places = kinds[0], [header.index(name) for name in kinds[0]]
    values = [[_value(path, line, name, row[at : at + 1]) for name, at in zip(kind, places, strict=True)]
              for line, row in table[1:]]  # fmt: skip
    return kind, [line for line, _ in table[1:]], np.array(values)


def _value(path: str | Path, line: int, name: str, cells: list[str]) -> float:
    """Read one value."""
    text = cells[0].strip() if cells else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    most = math.inf if name == "epsilon" else 1.0
    good = 0.0 <= value <= most and value < math.inf
    shown = "a finite number >= 0" if name == "epsilon" else "a number in [0, 1]"
    require(good, f"{path}, line {line}: {name} must be {shown}, got {text!r}")
    return value


def _check_profile(path: str | Path, lines: list[int], rows: FloatArray) -> None:
    """Check that epsilon grows and that no delta does."""
    for line, before, row in zip(lines[1:], rows, rows[1:], strict=False):
        require(row[0] > before[0], f"{path}, line {line}: epsilon must grow from line to line, got {row[0]:g}")
        require(bool(np.all(row[1:] <= before[1:])), f"{path}, line {line}: delta must not grow with epsilon")


def _check_trade_off(path: str | Path, lines: list[int], rows: FloatArray) -> None:
    """Check that this is a convex curve from alpha = 0 to alpha = 1, below the line of a blind guess."""
    close, (alpha, beta) = 1e-6, rows.T
    require(alpha[0] == 0.0, f"{path}, line {lines[0]}: alpha must begin at 0, got {alpha[0]:g}")
    require(alpha[-1] == 1.0, f"{path}, line {lines[-1]}: alpha must end at 1, got {alpha[-1]:g}")
    for k, line in enumerate(lines):
        blind = beta[k] <= 1.0 - alpha[k] + close
        require(bool(blind), f"{path}, line {line}: beta must not exceed 1 - alpha, got {beta[k]:g} at {alpha[k]:g}")
        if k:
            require(bool(alpha[k] > alpha[k - 1]), f"{path}, line {line}: alpha must grow from line to line")
            require(bool(beta[k] <= beta[k - 1]), f"{path}, line {line}: beta must not grow with alpha")
        if 0 < k < len(lines) - 1:
            share = (alpha[k] - alpha[k - 1]) / (alpha[k + 1] - alpha[k - 1])
            chord = (1.0 - share) * beta[k - 1] + share * beta[k + 1]
            require(bool(beta[k] <= chord + close), f"{path}, line {line}: beta must be a convex function of alpha")


def _of_profile(rows: FloatArray) -> list[Point]:
    """Make the points of a profile. Where a delta is 1, they say nothing."""
    return [Point(row[0], row[1], row[-1]) for row in rows.tolist() if max(row[1:]) < 1.0]


def _of_trade_off(rows: FloatArray) -> list[Point]:
    """Make the points at which the profile of a trade-off curve bends: between them it is linear in e^epsilon."""
    alpha, beta = rows.T
    with np.errstate(divide="ignore", over="ignore"):
        slopes = np.log(np.maximum(-np.diff(beta), 0.0)) - np.log(np.diff(alpha))
    bends = np.unique(np.clip(slopes[slopes > 0.0] + 16.0 * _UNIT, 0.0, 700.0))  # above: the delta of a corner is 0
    bends = np.append(0.0, bends)[_evenly(np.append(0.0, bends), 500)]
    deltas = [_delta_of(alpha, beta, epsilon) for epsilon in bends.tolist()]
    deltas = np.minimum.accumulate(np.array(deltas)).tolist()
    return [Point(x, delta, delta) for x, delta in zip(bends.tolist(), deltas, strict=True) if delta < 1.0]


def _delta_of(alpha: FloatArray, beta: FloatArray, epsilon: float) -> float:
    """Compute ``max of 1 - beta - e^epsilon alpha``, rounded up."""
    kept = (1.0 - beta) * (1.0 + 2.0 * _UNIT) - math.exp(epsilon) * alpha * (1.0 - 8.0 * _UNIT)
    return max(float(kept.max()), 0.0)


def _spread(points: list[Point]) -> tuple[Point, ...]:
    """Choose at most seven points: where delta says most, evenly spread over epsilon."""
    if len(points) <= _MOST:
        return tuple(points)
    deltas = np.array([point.delta for point in points])
    end = int(np.searchsorted(-deltas, -1e-6, side="right"))  # the first one below 1e-6
    begin = int(np.searchsorted(-deltas, -0.9 * deltas[0]))
    window = points[min(begin, len(points) - 1) : max(end, begin) + 1] or points
    chosen = _evenly(np.array([point.epsilon for point in window]), _MOST)
    return tuple(window[k] for k in chosen)


def _evenly(values: FloatArray, count: int) -> list[int]:
    """Choose the places of at most so many increasing values, evenly spread; both ends are among them."""
    if values.size <= count:
        return list(range(values.size))
    wanted = np.linspace(values[0], values[-1], count)
    after = np.clip(np.searchsorted(values, wanted), 1, values.size - 1)
    nearer = np.where(wanted - values[after - 1] < values[after] - wanted, after - 1, after)
    return [int(k) for k in np.unique(nearer)]
