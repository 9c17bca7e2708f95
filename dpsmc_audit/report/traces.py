"""A few traces of a model, those that satisfy the specification and those that violate it, with its window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpsmc_audit.report.columns import decimals
from dpsmc_audit.report.style import DARK_BLUE, GREY, RED, new_figure, tidy
from dpsmc_audit.stl import Formula
from dpsmc_audit.stl.syntax import Call, Negative, Node, Number, Predicate, Signal, walk
from dpsmc_audit.tasks.estimate import Estimate, Examples

__all__ = ["draw_traces", "traces_figure"]

_PANELS = 3
_BOUNDS = 20
_LETTERS = 300
_LARGEST = 1e100
"""The most panels, bounds of the formula in a panel, letters of the formula, and the largest value that are drawn."""


def traces_figure(found: Estimate, formula: Formula, title: str) -> Figure:
    """Draw one panel for each signal of the formula, three at most.

    Parameters
    ----------
    found : Estimate
        The traces, and how many of them satisfy the formula.
    formula : Formula
        The specification.
    title : str
        Where the traces come from.

    Returns
    -------
    Figure
        With the window and the bounds of the formula.
    """
    names = list(formula.signals[:_PANELS])
    figure = new_figure(7.5, 1.4 + 2.6 * len(names))
    panels = np.atleast_1d(figure.subplots(len(names), 1, sharex=True))
    for axes, name in zip(panels, names, strict=True):
        draw_traces(axes, found.examples, formula, name)
        axes.set_ylabel(name)
    panels[-1].set_xlabel("time (s)")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8.5, frameon=False
    )
    low, high = (decimals(end, ".4f") for end in found.p_phi_ci)
    share = f"{100 * found.confidence:g} % interval {low} to {high}"
    text = f"{formula}"
    shown = text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…"
    figure.suptitle(f"{title}: {shown}\n{found.satisfied} of {found.runs} traces satisfy it, {share}", fontsize=9.5)
    return figure


def draw_traces(axes: Axes, examples: Examples, formula: Formula, name: str) -> None:
    """Draw one signal of each trace; the window is shaded, and what the signal is compared with is a dotted line.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    examples : Examples
        Traces that satisfy the formula, and traces that violate it.
    formula : Formula
        The specification.
    name : str
        Of the signal.
    """
    ends = []
    for kept, colour, label in (
        (examples.satisfying, DARK_BLUE, "satisfies the formula"),
        (examples.violating, RED, "violates the formula"),
    ):
        for k, trace in enumerate(kept):
            values = np.clip(trace[name], -_LARGEST, _LARGEST)
            ends.append(float((values.size - 1) * examples.step))
            times = examples.step * np.arange(values.size)
            style = "-" if colour == DARK_BLUE else "--"
            axes.plot(times, values, style, color=colour, lw=1.0, alpha=0.85, label=label if k == 0 else None)
    if formula.window is not None and ends:
        begin, end = formula.window
        axes.axvspan(begin, min(end, max(ends)), color="0.9", zorder=0, label="window of the formula")
    for k, level in enumerate(sorted({*_levels(formula, name)})[:_BOUNDS]):
        axes.axhline(level, color=GREY, ls=":", lw=1.2, label="bound of the formula" if k == 0 else None)
    if ends:
        axes.set_xlim(0.0, max(ends))
    tidy(axes)


def _levels(formula: Formula, name: str) -> Iterator[float]:
    """Numbers that the signal, or its absolute value, is compared with."""
    for node in walk(formula.root):
        if isinstance(node, Predicate):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                value = _number(other)
                if value is None:
                    continue
                if side == Signal(name):
                    yield value
                if side == Call("abs", (Signal(name),)):
                    yield value
                    yield -value


def _number(node: Node) -> float | None:
    match node:
        case Number(value):
            return value
        case Negative(Number(value)):
            return -value
    return None
