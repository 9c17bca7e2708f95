"""Small multiples of a sweep: each measure over each swept parameter, one line for each setting of the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsmc_audit.observers.words import brief
from dpsmc_audit.report.svg import ROUNDING, Frame, Scale, brief_delta, grid, path, tag

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Measure", "Panel", "measures_of", "panels"]

Row = dict[str, Any]

_LINES = 12
"""More lines than this are a tangle: such a panel is left out."""

_PANELS = 12


@dataclass(frozen=True)
class Measure:
    """A number of each row, with the ends of its interval where it has one."""

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
        Measure("delta_lower", "Audited δ at the claimed ε, at least", log=True),
        Measure("delta_at_epsilon", "δ needed at the claimed ε", log=True),
        Measure("samples_exact", "Mean samples", log=True),
    ),
    "estimate": (Measure("p_phi", "p_φ", "p_phi_low", "p_phi_high"),),
}


@dataclass(frozen=True)
class Panel:
    """One figure: its title, the picture, and the names of its lines with their class and mark."""

    title: str
    chart: Markup
    lines: tuple[tuple[str, str, Markup], ...]
    notes: tuple[str, ...]


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
    names = [] if numeric else list(dict.fromkeys(f"{value}" for value in values))
    x = _x_scale([float(v) for v in values if v is not None], frame) if numeric else _places(len(names), frame)
    y, none, infinite = _y_scale(measure, every, frame)
    drawn = grid(frame, x if numeric else None, y, name)
    if not numeric:
        drawn += _words(names, x, frame, name)
    for k, (label, rows) in enumerate(lines.items()):
        points = []
        for row in rows:
            value = _value(row, measure.key)
            assert value is not None
            at = x(float(row[name]) if numeric else names.index(f"{row.get(name)}"))
            at += 0.0 if numeric else 9.0 * (k - 0.5 * (len(lines) - 1))
            points.append((at, y.clipped(value), row, value))
        points.sort(key=lambda point: point[0])
        drawn.append(tag("g", *_line(points, measure, y, k, label, name, numeric), class_=f"s{k % 6}"))
    notes = [f"No finite value: drawn at the top ({infinite})."] if infinite else []
    notes += [f"Zero, none or below 1e-9: drawn at the bottom ({none})."] if none else []
    title = f"{measure.name}, over {name}"
    chart = tag("svg", *drawn, viewBox="0 0 360 246", role="img", aria_label=title)
    keys = tuple((label, f"s{k % 6}", _key(k)) for k, label in enumerate(lines))
    return Panel(title, chart, keys if len(lines) > 1 else (), tuple(notes))


def _line(
    points: list[tuple[float, float, Row, float]],
    measure: Measure,
    y: Scale,
    k: int,
    label: str,
    name: str,
    joined: bool,
) -> list[Markup]:
    made = [tag("path", d=path([(px, py) for px, py, _, _ in points]), class_="series", **_dash(k))] if joined else []
    for px, py, row, value in points:
        low, high = _value(row, measure.low), _value(row, measure.high)
        if low is not None and high is not None:
            made.append(tag("line", x1=px, x2=px, y1=y.clipped(low), y2=y.clipped(high), class_="whisker"))
        says = f"{label}{', ' if label else ''}{name} = {row.get(name)}: {_said(measure, value)}"
        made.append(_mark(k, px, py, says))
    return made


def _said(measure: Measure, value: float) -> str:
    return (brief_delta if measure.key.startswith("delta") else brief)(value, 4)


def _dash(k: int) -> dict[str, str]:
    return {} if k < 6 else {"stroke_dasharray": "5 3"}


def _mark(k: int, x: float, y: float, says: str) -> Markup:
    """Draw circles, squares, diamonds and triangles: readers can distinguish the lines without colour."""
    shapes: dict[int, list[tuple[float, float]]] = {
        0: [(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)],
        1: [(0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0)],
        2: [(-4, 3.4), (4, 3.4), (0, -4.2)],
    }
    if k % 4 == 0:
        return tag("circle", tag("title", says), cx=x, cy=y, r=3.4, class_="mark")
    shape = path([(x + a, y + b) for a, b in shapes[k % 4 - 1]]) + "Z"
    return tag("path", tag("title", says), d=shape, class_="mark")


def _key(k: int) -> Markup:
    """A line with its mark, for the legend."""
    line = tag("path", d="M1,6L25,6", class_="series", **_dash(k))
    return tag("svg", line, _mark(k, 13.0, 6.0, ""), viewBox="0 0 26 12", class_="key line", aria_hidden="true")


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


def _words(names: Sequence[str], x: Scale, frame: Frame, axis: str) -> list[Markup]:
    """Names below the axis, cut where they would meet their neighbours."""
    most = max(4, int((frame.right - frame.left) / max(len(names), 1) / 6.6))
    made = [
        tag("text", tag("title", word), _cut(word, most), class_="tick middle", x=x(k), y=frame.bottom + 17)
        for k, word in enumerate(names)
    ]
    middle = 0.5 * (frame.left + frame.right)
    return [*made, tag("text", axis, class_="label middle", x=middle, y=frame.bottom + 35)]


def _cut(word: str, most: int) -> str:
    return word if len(word) <= most else f"{word[: most - 1]}…"


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
