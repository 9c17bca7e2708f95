"""Check that a formula and its traces use one unit of time.

An interval that covers a single sample is usually a mistake of the unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpsmc_audit.stl.program import samples
from dpsmc_audit.stl.syntax import WHOLE, Always, Eventually, Interval, Until, walk

if TYPE_CHECKING:
    from dpsmc_audit.stl.formula import Formula

__all__ = ["depends_on_step", "unit_notes"]


def depends_on_step(formula: Formula) -> bool:
    """Say whether `unit_notes` can find something when it knows the step alone.

    Parameters
    ----------
    formula : Formula
        The formula.

    Returns
    -------
    bool
        True if some interval has a finite end and covers more than one moment.
    """
    return any(math.isfinite(interval.end) for _, interval in _intervals(formula))


def unit_notes(formula: Formula, step: float, points: tuple[int, int] | None = None) -> list[str]:
    """Describe each interval of a formula that covers a single sample of the traces.

    Intervals with equal ends ask for one sample and are left out. So is ``[0,inf]``, which is the whole trace in any
    unit. Evaluation refuses intervals that cover no sample or look beyond the end of the traces.

    Parameters
    ----------
    formula : Formula
        The formula. Nested intervals count too.
    step : float
        Time between two samples of a trace.
    points : tuple of int, optional
        Number of samples of the shortest and of the longest trace. Without it, intervals up to inf are not examined,
        because they end with the trace.

    Returns
    -------
    list of str
        One line for each interval, from left to right, without repetitions.

    Examples
    --------
    >>> from dpsmc_audit.stl import parse
    >>> (note,) = unit_notes(parse("always[0,15] (x < 1)"), 20.0, (201, 201))
    >>> note.split(". ")[0]
    'The interval [0,15] of always covers 1 sample: traces have a step of 20 and last 4000 time units'
    """
    traces = f"a step of {step:.6g} time units"
    if points is not None:
        short, long = (f"{(count - 1) * step:.6g}" for count in points)
        traces = f"a step of {step:.6g} and last {short if short == long else f'{short} to {long}'} time units"
    notes = (
        f"The interval {interval} of {name} covers 1 sample: traces have {traces}. Check the unit of the formula."
        for name, interval in _intervals(formula)
        if _covers_one(interval, step, points)
    )
    return list(dict.fromkeys(notes))


def _intervals(formula: Formula) -> Iterator[tuple[str, Interval]]:
    """Yield operators with their intervals, if these depend on the unit of time and are longer than a moment."""
    for node in walk(formula.root):
        if isinstance(node, (Always, Eventually, Until)):
            interval = node.interval
            if interval != WHOLE and interval.begin != interval.end:
                yield type(node).__name__.lower(), interval


def _covers_one(interval: Interval, step: float, points: tuple[int, int] | None) -> bool:
    first, last = samples(interval, step)
    if last is None:  # up to the end of the longest trace
        return points is not None and first == points[1] - 1
    return first == last
