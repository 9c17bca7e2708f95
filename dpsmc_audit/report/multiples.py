"""Small multiples of a sweep: each measure over each swept parameter, one line for each setting of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dpsmc_audit.observers.phrases import brief
from dpsmc_audit.report.html import draw
from dpsmc_audit.report.scales import ROUNDING, Frame, Scale, brief_delta

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Measure", "Panel", "measures_of", "panels"]

Row = dict[str, Any]

_LINES = 12
"""More lines than this are a tangle: such a panel is left out."""

_PANELS = 12


@dataclass(frozen=True)
class Measure:
    """A number of each row.

    Parameters
    ----------
    key, name : str
        Its key in the row, and its name for readers.
    low, high : str
        The keys of the ends of its interval; empty if it has none.
    log : bool
        Whether it is drawn on a logarithmic scale where its values differ much.
    """

    key: str
    name: str
    low: str = ""
    high: str = ""
    log: bool = False


MEASURES = {
    "simulate": (
        Measure("samples_exact", "Mean samples", "samples_low", "samples_high", log=True),
        Measure("samples", "Mean samples (sampled)", "samples_low", "samples_high", log=True),
    ),
    "audit": (
        Measure("epsilon_lower", "Audited ε, at least", log=True),
        Measure("privacy_delta_lower", "Audited privacy δ at the claimed ε, at least", log=True),
        Measure("privacy_delta_at_epsilon", "Privacy δ needed at the claimed ε", log=True),
        Measure("samples_exact", "Mean samples", log=True),
    ),
    "estimate": (Measure("p_phi", "p_φ", "p_phi_low", "p_phi_high"),),
}


@dataclass(frozen=True)
class Panel:
    """One figure.

    Parameters
    ----------
    title : str
        What is drawn.
    chart : Markup
        The picture.
    lines : tuple of str
        The names of its lines; empty if there is one.
    notes : tuple of str
        What is not drawn in its place.
    """

    title: str
    chart: Markup
    lines: tuple[str, ...]
    notes: tuple[str, ...]


class _Point(NamedTuple):
    """A value: its place, the ends of its interval, and what it says when it is pointed at."""

    place: tuple[float, float]
    ends: tuple[float, float] | None
    says: str


def measures_of(rows: Sequence[Row]) -> list[Measure]:
    """Choose the measures that any row has, without those that say nothing new.

    Parameters
    ----------
    rows : sequence of dict
        Of one task.

    Returns
    -------
    list of Measure
        In the order of their importance.
    """
    known = [m for m in MEASURES.get(rows[0]["task"], ()) if any(_value(row, m.key) is not None for row in rows)]
    said: list[list[float | None]] = []
    kept: list[Measure] = []
    for measure in known:
        values = [_value(row, measure.key) for row in rows]
        if values not in said and (measure.key != "samples" or "samples_exact" not in [m.key for m in kept]):
            kept.append(measure)
        said.append(values)
    return kept


def _value(row: Row, key: str) -> float | None:
    value = row.get(key)
    if value is None or isinstance(value, bool) or (isinstance(value, str) and value not in ("inf", "-inf")):
        return None
    return None if math.isnan(float(value)) else float(value)


def panels(rows: Sequence[Row], swept: Sequence[str]) -> list[Panel]:
    """Draw all measures over all swept parameters.

    Parameters
    ----------
    rows : sequence of dict
        The points.
    swept : sequence of str
        Parameters with several values, the one with most values first.

    Returns
    -------
    list of Panel
        At most twelve.
    """
    made: list[Panel] = []
    for measure in measures_of(rows):
        for name in swept:
            others = [other for other in swept if other != name]
            lines: dict[str, list[Row]] = {}
            for row in rows:
                if _value(row, measure.key) is not None:
                    lines.setdefault(", ".join(f"{key} = {row.get(key)}" for key in others), []).append(row)
            if len(lines) <= _LINES and len(made) < _PANELS and _tells(measure, name, lines):
                made.append(_panel(measure, name, lines))
    return made


def _tells(measure: Measure, name: str, lines: dict[str, list[Row]]) -> bool:
    """Whether there is a finite value to draw, and, over names, one that depends on them."""
    every = [row for rows in lines.values() for row in rows]
    if not any(math.isfinite(_value(row, measure.key) or 0.0) for row in every):
        return False
    words = any(isinstance(row.get(name), str) for row in every)
    return not words or any(len({_value(row, measure.key) for row in rows}) > 1 for rows in lines.values())


def _panel(measure: Measure, name: str, lines: dict[str, list[Row]]) -> Panel:
    frame = Frame(50.0, 350.0, 14.0, 200.0)
    every = [row for rows in lines.values() for row in rows]
    values = [row.get(name) for row in every]
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    words = [] if numeric else list(dict.fromkeys(f"{value}" for value in values))
    x = _x_scale([float(v) for v in values if v is not None], frame) if numeric else _places(len(words), frame)
    y, none, infinite = _y_scale(measure, every, frame)
    drawn = []
    for k, (label, rows) in enumerate(lines.items()):
        aside = 0.0 if numeric else 9.0 * (k - 0.5 * (len(lines) - 1))
        points = []
        for row in rows:
            value = _value(row, measure.key)
            assert value is not None
            at = x(float(row[name]) if numeric else words.index(f"{row.get(name)}")) + aside
            says = f"{label}{', ' if label else ''}{name} = {row.get(name)}: {_said(measure, value)}"
            points.append(_Point((at, y.clipped(value)), _ends(row, measure), says))
        drawn.append(sorted(points, key=lambda point: point.place[0]))
    notes = [f"No finite value: drawn at the top ({infinite})."] if infinite else []
    notes += [f"Zero, none or below 1e-9: drawn at the bottom ({none})."] if none else []
    title = f"{measure.name}, over {name}"
    room = max(4, int((frame.right - frame.left) / max(len(words), 1) / 6.6))  # letters between neighbours
    chart = draw("panel.svg", title=title, frame=frame, x=x, y=y, name=name, words=words, room=room, lines=drawn)
    return Panel(title, chart, tuple(lines) if len(lines) > 1 else (), tuple(notes))


def _ends(row: Row, measure: Measure) -> tuple[float, float] | None:
    low, high = _value(row, measure.low), _value(row, measure.high)
    return None if low is None or high is None else (low, high)


def _said(measure: Measure, value: float) -> str:
    return (brief_delta if measure.key.startswith("privacy_delta") else brief)(value, 4)


def _x_scale(values: Sequence[float], frame: Frame) -> Scale:
    low, high = min(values), max(values)
    if low > 0.0 and high / low > 20.0:
        return Scale(low / 1.25, high * 1.25, frame.left, frame.right, log=True)
    room = _room(low, high, 0.06)
    return Scale(low - room, high + room, frame.left, frame.right)


def _room(low: float, high: float, share: float) -> float:
    """Compute the room beside the outermost values. A single value, however large, gets two distinct ends."""
    return max(share * (high - low), 1e-12 * abs(high)) if high > low else 0.1 * abs(high) or 1.0


def _places(count: int, frame: Frame) -> Scale:
    return Scale(-0.5, max(count, 1) - 0.5, frame.left, frame.right)


def _y_scale(measure: Measure, rows: Sequence[Row], frame: Frame) -> tuple[Scale, int, int]:
    """A scale for the finite values; how many a logarithmic one leaves out, and how many infinite."""
    known = [
        v for row in rows for key in (measure.key, measure.low, measure.high) if (v := _value(row, key)) is not None
    ]
    drawn = [_value(row, measure.key) or 0.0 for row in rows]
    infinite = sum(math.isinf(v) for v in drawn)
    finite = [v for v in known if math.isfinite(v)]
    positive = [v for v in finite if v > ROUNDING]
    if measure.log and positive and (len(positive) < len(finite) or max(positive) / min(positive) > 20.0):
        none = sum(v <= ROUNDING for v in drawn)
        low, high = min(positive) / (3.0 if none else 1.5), max(positive) * (3.0 if infinite else 1.5)
        return Scale(max(low, high * 1e-8), high, frame.bottom, frame.top, log=True), none, infinite
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if measure.log:
        low = min(0.0, low)
    room = _room(low, high, 0.08)
    start = low if low == 0.0 else low - room
    return Scale(start, high + room * (2.0 if infinite else 1.0), frame.bottom, frame.top), 0, infinite
