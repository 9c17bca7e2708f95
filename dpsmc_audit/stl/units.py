"""Whether a formula and its traces have one unit of time: an interval that covers one sample was seldom meant so."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpsmc_audit.stl.program import samples
from dpsmc_audit.stl.syntax import WHOLE, Always, Eventually, Interval, Node, Until, walk

if TYPE_CHECKING:
    from dpsmc_audit.stl.formula import Formula

__all__ = ["depends_on_step", "unit_notes"]

_NAMES = {Always: "always", Eventually: "eventually", Until: "until"}


def depends_on_step(formula: Formula) -> bool:
    """Whether `unit_notes` can find something with the step alone."""
    return any(math.isfinite(interval.end) for _, interval in _intervals(formula.root))


def unit_notes(formula: Formula, step: float, points: tuple[int, int] | None = None) -> list[str]:
    """One line for each interval of the formula that covers a single sample of the traces.

    An interval with equal ends asks for one sample and is left out. So is ``[0,inf]``, which is the whole trace in any
    unit. Intervals that cover no sample or look beyond the end of the traces are errors, which evaluation raises.

    Parameters
    ----------
    formula
        The formula; nested intervals are looked at like the outermost one.
    step
        Time between two samples of a trace.
    points
        Samples of the shortest and of the longest trace; None if they are not known. Intervals up to inf are then not
        looked at, as they end with the trace.

    Returns
    -------
    list of str
        The lines, each once, from left to right in the formula.

    Examples
    --------
    >>> from dpsmc_audit.stl import parse
    >>> (note,) = unit_notes(parse("always[0,15] (x < 1)"), 20.0, (201, 201))
    >>> note.split(". ")[0]
    'The interval [0,15] of always covers 1 sample: traces have a step of 20 and last 4000 time units'
    """
    traces = _traces(step, points)
    longest = None if points is None else points[1]
    notes = (
        f"The interval {interval} of {name} covers 1 sample: {traces}. Check the unit of the formula."
        for name, interval in _intervals(formula.root)
        if _covers_one(interval, step, longest)
    )
    return list(dict.fromkeys(notes))


def _intervals(root: Node) -> Iterator[tuple[str, Interval]]:
    """Operators with the intervals that depend on the unit of time and are longer than a moment."""
    for node in walk(root):
        if isinstance(node, (Always, Eventually, Until)):
            interval = node.interval
            if interval != WHOLE and interval.begin != interval.end:
                yield _NAMES[type(node)], interval


def _covers_one(interval: Interval, step: float, longest: int | None) -> bool:
    if math.isinf(interval.end) and longest is None:
        return False
    first, last = samples(interval, step)
    end = last if last is not None else (longest or 0) - 1
    return end == first


def _traces(step: float, points: tuple[int, int] | None) -> str:
    if points is None:
        return f"traces have a step of {step:.6g} time units"
    short, long = (f"{(count - 1) * step:.6g}" for count in points)
    return f"traces have a step of {step:.6g} and last {short if short == long else f'{short} to {long}'} time units"
