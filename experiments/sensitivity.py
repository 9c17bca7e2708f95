"""How the effect of sample n fades, or does not: ``python -m experiments.sensitivity``.

For each mechanism and n: by how many samples a run is longer on average with ``x_n = 0`` than with ``x_n = 1``, the
delta that the claimed epsilon needs, and the largest ratio among tails of probability 1 % or more. The observer sees
one released (tau, o), tau in bins of `WIDTH` samples. Algorithms 1 and 2 have exact laws for every n, two-sided noise
up to `EARLY`; beyond, that law's bracket is too wide, and the exact laws for fixed bounds are averaged over `NODES`
values of L in equal shares. Every second node makes a coarser rule: `delta_error` is how far delta by the two coarser
rules lies from that by all nodes, and for exact laws the bound of their error.

Writes ``experiments/results/sensitivity.csv`` and ``figures/sensitivity.png`` and ``.pdf``.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpsmc_audit.evidence.profiles import Leakage
from dpsmc_audit.exact.calibration import MECHANISMS, private
from dpsmc_audit.exact.fixed import exit_law
from dpsmc_audit.mechanisms import Exponential, Mechanism, NoNoise
from dpsmc_audit.numerics.sums import dot
from dpsmc_audit.observers.marginal.law import MarginalLaw, marginal_law
from dpsmc_audit.report.figures import save
from dpsmc_audit.report.style import DARK_BLUE, GREEN, GREY, RED, new_figure, tidy
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.paper import P_PHI, P

TOP = Path(__file__).parent.parent
RESULTS = TOP / "experiments" / "results" / "sensitivity.csv"
TEST = Sprt(P, delta=0.01, alpha=0.01)
EPSILON, FLOOR, WIDTH, NODES, EARLY = 0.01, 0.01, 20, 4_000, 10
ENTRIES = (1, 3, 10, 30, 100, 200, 300, 400, 600, 800, 1_000, 1_400, 2_000, 3_000, 4_500, 7_000)
MANY = 1_500
"""Bins: termination times beyond the last one belong to it."""

FloatArray = NDArray[np.float64]
Row = dict[str, Any]

LOOKS = {
    "none": ("Algorithm 1 (no noise)", GREY, ":", "x"),
    "exponential": ("Algorithm 2 (exponential)", RED, "-", "o"),
    "truncated": ("two-sided, truncated", GREEN, "--", "^"),
    "laplace": ("two-sided (Laplace)", DARK_BLUE, "-.", "s"),
}
"""How a mechanism is called and drawn, here and in the price of privacy."""


def fold(null: FloatArray, alt: FloatArray, width: int) -> FloatArray:
    """P(tau in bin, decision) from P(tau = 1, ...), P(tau = 2, ...).

    Rows are H_null, H_alt and undecided, bins begin with [0, width).
    """
    folded = np.zeros((3, MANY))
    for row, side in zip(folded, (null, alt), strict=False):
        np.add.at(row, np.minimum(np.arange(1, side.size + 1) // width, MANY - 1), side)
    return folded


def averaged(test: Sprt, mechanism: Mechanism, entry: int, nodes: int) -> tuple[FloatArray, float]:
    """The laws in bins by (every second node, member x, decision, bin), and E[tau | x = 0] - E[tau | x = 1]."""
    laws, longer = np.zeros((2, 2, 3, MANY)), 0.0
    for k, excess in enumerate(mechanism.quantile((np.arange(nodes) + 0.5) / nodes).tolist()):
        for x in (0, 1):
            if excess <= test.no_room:
                laws[k % 2, x, :2, 0] += 1.0 / nodes  # tau = 1 and a fair coin: half to either decision, of nodes / 2
                continue
            law = exit_law(test, P_PHI, excess, {entry: x})
            laws[k % 2, x] += fold(law.null, law.alt, WIDTH) * (2.0 / nodes)
            longer += (1 - 2 * x) * law.mean / nodes
    return laws, longer


def leakage(one: FloatArray, zero: FloatArray, epsilons: Iterable[float]) -> Leakage:
    return MarginalLaw(one, zero, 0.0, 0.0, "bins").leakage(np.array(list(epsilons)), FLOOR)


@dataclass(frozen=True, eq=False)
class Effect:
    """Of one sample: the laws in bins for x = 1 and x = 0, the mean difference, and how exact a delta from them is."""

    one: FloatArray
    zero: FloatArray
    mean_difference: float
    halves: tuple[tuple[FloatArray, FloatArray], ...]
    error: float

    def delta_error(self, epsilon: float) -> float:
        if not self.halves:
            return self.error
        best, *coarser = (
            leakage(one, zero, [epsilon]).profile.at(epsilon) for one, zero in ((self.one, self.zero), *self.halves)
        )
        return max(abs(delta - best) for delta in coarser)


def effect(test: Sprt, mechanism: Mechanism, entry: int, nodes: int = NODES) -> Effect:
    if isinstance(mechanism, (NoNoise, Exponential)) or entry <= EARLY:
        law = marginal_law(Adjacent(Setting(test, mechanism, P_PHI), (entry,)))
        one, zero = (fold(p[0], p[1], WIDTH) for p in (law.p1, law.p0))
        longer = float(dot((law.p0 - law.p1).sum(axis=0), np.arange(1.0, law.p1.shape[1] + 1.0)))
        return Effect(one, zero, longer, (), law.scatter)
    halves, longer = averaged(test, mechanism, entry, nodes)
    both = 0.5 * (halves[0] + halves[1])
    return Effect(both[1], both[0], longer, tuple((half[1], half[0]) for half in halves), 0.0)


def row(name: str, entry: int, nodes: int = NODES) -> Row:
    found = effect(TEST, private(MECHANISMS[name], TEST, EPSILON), entry, nodes)
    tells = leakage(found.one, found.zero, [0.0, EPSILON])
    event = tells.best
    assert event is not None  # the whole range is a tail of probability 1
    return {
        "mechanism": name,
        "entry": entry,
        "mean_difference": found.mean_difference,
        "total_variation": tells.total_variation,
        "delta_at_epsilon": tells.profile.at(EPSILON),
        "delta_error": found.delta_error(EPSILON),
        "log_ratio": event.log_ratio,
        "event_p1": event.p1,
        "event_p0": event.p0,
    }


def table() -> pd.DataFrame:
    names, entries = zip(*((name, entry) for name in LOOKS for entry in ENTRIES), strict=True)
    with ProcessPoolExecutor(2) as pool:
        return pd.DataFrame(list(pool.map(row, names, entries)))


def figure(rows: pd.DataFrame) -> Figure:
    drawn = new_figure(11.0, 4.6)
    longer, delta, ratio = drawn.subplots(1, 3)
    _lines(
        longer,
        rows,
        "mean_difference",
        "A run is longer with $x_n=0$ than with $x_n=1$\nby so many samples, on average",
    )
    longer.axhline(TEST.expected_sensitivity(P_PHI), color="black", lw=0.8)
    longer.annotate(r"$\Delta_\tau$ of the paper's lemma", (1, TEST.expected_sensitivity(P_PHI) + 0.3), fontsize=8.5)
    longer.set_ylim(0.0, 10.4)
    _lines(
        delta,
        rows,
        "delta_at_epsilon",
        rf"$\delta$ that the claimed $\varepsilon={EPSILON:g}$ needs" + "\n(one released result)",
    )
    delta.set_yscale("log")
    delta.set_ylim(5e-5, 0.1)
    _lines(
        ratio,
        rows.assign(log_ratio=rows.log_ratio.abs()),
        "log_ratio",
        "largest $|\\ln(P_1/P_0)|$ of a tail of tau\n(probability 1 % or more)",
    )
    ratio.set_yscale("log")
    ratio.set_ylim(5e-3, 1.0)
    ratio.axhline(EPSILON, color="black", lw=0.8)
    ratio.annotate(r"claimed $\varepsilon$", (1, EPSILON * 0.82), fontsize=8.5, va="top")
    handles, labels = longer.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    drawn.suptitle(
        rf"What changing sample n changes: $p$={P:g}, $p_\varphi$={P_PHI:g}, $\alpha=\delta=\varepsilon={EPSILON:g}$, "
        f"times in bins of {WIDTH} samples",
        fontsize=10.5,
    )
    return drawn


def _lines(axes: Axes, rows: pd.DataFrame, column: str, title: str) -> None:
    for name, (label, colour, style, marker) in LOOKS.items():
        mine = rows[rows.mechanism == name]
        axes.plot(mine.entry, mine[column], color=colour, ls=style, marker=marker, ms=4, lw=1.5, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("n, the sample that is changed")
    axes.set_title(title, fontsize=9.5)
    tidy(axes)


def main() -> None:
    rows = table()
    rows.to_csv(RESULTS, index=False, lineterminator="\n", float_format="%.10g")
    save(figure(rows), TOP / "figures" / "sensitivity")
    print(rows.to_string(index=False))


if __name__ == "__main__":
    main()
