"""How often each method raises a false alarm, and how many runs it needs: ``python -m experiments.calibration``.

False alarms are counted on pairs of laws that are private with exactly the claimed epsilon: two-sided geometric
noise, Laplace noise rounded to integers, and randomised response. For all of them some events sit on the bound.
Beside the three methods stands the naive one, which chooses an event and judges it on the same runs.

Power is measured on ``floor(10 (x + Exp(1)))``, which no epsilon covers, with a claim of 1, and on one released
result of Algorithm 2 (alpha = delta = epsilon = 0.01, n = 1), with the theorem's claim of 2 epsilon.

Writes ``experiments/results/calibration.csv`` and ``figures/calibration.png`` and ``.pdf``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpsmc_audit.evidence.anytime import Anytime
from dpsmc_audit.evidence.bounds import PARTS, Parts, bounded_verdict, part_of
from dpsmc_audit.evidence.events import Counted, outcome_code
from dpsmc_audit.evidence.intervals import clopper_pearson
from dpsmc_audit.evidence.verdict import Method
from dpsmc_audit.mechanisms import Exponential
from dpsmc_audit.observers.marginal.law import MarginalLaw, marginal_law
from dpsmc_audit.report.figures import save
from dpsmc_audit.report.style import DARK_BLUE, GREEN, GREY, RED, new_figure, tidy
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.paper import P_PHI, P

TOP = Path(__file__).parent.parent
RESULTS = TOP / "experiments" / "results" / "calibration.csv"
LEVEL, REPETITIONS, RUNS = 0.05, 2_500, 2_000
POWER_REPETITIONS = 200
METHODS = ("split", "union", "anytime", "naive")

IntArray = NDArray[np.int64]
Draw = Callable[[int, int, np.random.Generator], IntArray]
"""draw(x, runs, rng): outcome codes."""


def _coded(tau: NDArray[Any]) -> IntArray:
    whole = tau.astype(np.int64)
    return outcome_code(whole, np.zeros_like(whole))


def geometric(epsilon: float) -> Draw:
    """x plus two-sided geometric noise of ratio e^-epsilon: every outcome's ratio is e^epsilon or its inverse."""
    share = -math.expm1(-epsilon)
    return lambda x, runs, rng: _coded(1_000 + x + rng.geometric(share, runs) - rng.geometric(share, runs))


def rounded_laplace(epsilon: float) -> Draw:
    """x plus Laplace noise, rounded: tails that end between the two means have the ratio e^epsilon."""
    return lambda x, runs, rng: _coded(1_000 + np.floor(x + rng.laplace(0.0, 1.0 / epsilon, runs)))


def response(epsilon: float) -> Draw:
    """Randomised response: the bit, or with probability 1 / (1 + e^epsilon) the other one; tau has nothing to say."""
    lie = 1.0 / (1.0 + math.exp(epsilon))

    def draw(x: int, runs: int, rng: np.random.Generator) -> IntArray:
        return outcome_code(np.ones(runs, np.int64), np.where(rng.random(runs) < lie, 1 - x, x))

    return draw


def one_sided(x: int, runs: int, rng: np.random.Generator) -> IntArray:
    """floor(10 (x + Exp(1)))."""
    return _coded(np.floor(10.0 * (x + rng.exponential(size=runs))))


@cache
def _algorithm2_law() -> MarginalLaw:
    test = Sprt(P, delta=0.01, alpha=0.01)
    return marginal_law(Adjacent(Setting(test, Exponential.private(test, 0.01), P_PHI)))


def algorithm2(x: int, runs: int, rng: np.random.Generator) -> IntArray:
    """One released (tau, o) of Algorithm 2, drawn from its exact law."""
    law = _algorithm2_law()
    p = (law.p1 if x == 1 else law.p0)[:2].ravel()
    place = np.searchsorted(np.cumsum(p / p.sum()), rng.random(runs))
    size = law.p1.shape[1]
    return outcome_code(place % size + 1, 1 - place // size)


PRIVATE: dict[str, tuple[Draw, float]] = {
    **{f"geometric, {e:g}": (geometric(e), e) for e in (0.1, 0.5, 1.0, 2.0)},
    **{f"rounded Laplace, {e:g}": (rounded_laplace(e), e) for e in (0.1, 0.5, 1.0, 2.0)},
    **{f"randomised response, {e:g}": (response(e), e) for e in (0.1, 0.5, 1.0, 2.0)},
}
VIOLATIONS: dict[str, tuple[Draw, float, float, tuple[int, ...]]] = {
    "one-sided exponential": (one_sided, 1.0, 0.95, (20, 30, 40, 50, 60, 80, 100, 150, 200, 300)),
    "Algorithm 2, marginal": (algorithm2, 0.02, 0.99, tuple(int(x) for x in np.geomspace(1e4, 1e6, 9))),
}


# --- methods --------------------------------------------------------------------------------------------------------


def _parts(one: IntArray, zero: IntArray) -> Parts:
    part = part_of(0, one.size)
    first, second = (tuple(Counted.of(codes[part == k]) for k in range(PARTS)) for codes in (one, zero))
    return Parts((first, second))


def _same(one: IntArray, zero: IntArray) -> Parts:
    """The error to avoid: the same runs make the events, choose among them and judge."""
    first, second = Counted.of(one), Counted.of(zero)
    return Parts(((first,) * PARTS, (second,) * PARTS))


def rejects(method: str, one: IntArray, zero: IntArray, epsilon: float, confidence: float) -> bool:
    """Does the method refute the claim on these runs? The anytime method looks after every pair of them."""
    if method == "anytime":
        return Anytime(epsilon, 0.0, confidence).update(one, zero)
    parts = _same(one, zero) if method == "naive" else _parts(one, zero)
    chosen: Method = "union" if method == "union" else "split"
    return bounded_verdict(parts, epsilon, 0.0, confidence, chosen, floor=None).verdict == "violated"


@dataclass(frozen=True)
class _Counted:
    study: str
    law: str
    method: str
    runs: int
    level: float
    rejected: int
    repetitions: int

    def row(self) -> dict[str, Any]:
        low, high = clopper_pearson(self.rejected, self.repetitions, 0.99)
        return {**self.__dict__, "rate": self.rejected / self.repetitions, "rate_low": low, "rate_high": high}


def false_alarms(name: str, repetitions: int = REPETITIONS, runs: int = RUNS) -> Iterator[_Counted]:
    """All methods on the same runs of a private pair."""
    draw, epsilon = PRIVATE[name]
    rejected = dict.fromkeys(METHODS, 0)
    for seed in range(repetitions):
        rng = np.random.default_rng([1, seed])
        one, zero = draw(1, runs, rng), draw(0, runs, rng)
        for method in METHODS:
            rejected[method] += rejects(method, one, zero, epsilon, 1.0 - LEVEL)
    for method in METHODS:
        yield _Counted("false alarms", name, method, runs, LEVEL, rejected[method], repetitions)


def power(name: str, repetitions: int = POWER_REPETITIONS) -> Iterator[_Counted]:
    """How often each method refutes a false claim, by the number of runs."""
    draw, epsilon, confidence, sizes = VIOLATIONS[name]
    found = {(method, size): 0 for method in METHODS[:3] for size in sizes}
    for seed in range(repetitions):
        rng = np.random.default_rng([2, seed])
        one, zero = draw(1, sizes[-1], rng), draw(0, sizes[-1], rng)
        bets = Anytime(epsilon, 0.0, confidence)
        bets.update(one, zero)
        for size in sizes:
            found["anytime", size] += bets.rejected and bets.pairs <= size
            for method in METHODS[:2]:
                found[method, size] += rejects(method, one[:size], zero[:size], epsilon, confidence)
    for (method, size), count in found.items():
        yield _Counted("power", name, method, size, 1.0 - confidence, count, repetitions)


def table() -> pd.DataFrame:
    with ProcessPoolExecutor() as pool:  # every law by itself; the numbers depend on seeds alone
        rows = [row for found in pool.map(_study, [*PRIVATE, *VIOLATIONS]) for row in found]
    return pd.DataFrame([row.row() for row in rows])


def _study(name: str) -> list[_Counted]:
    return list(false_alarms(name) if name in PRIVATE else power(name))


# --- figure ---------------------------------------------------------------------------------------------------------

STYLE = {"split": (DARK_BLUE, "o"), "union": (GREEN, "s"), "anytime": (RED, "D"), "naive": (GREY, "x")}


def figure(rows: pd.DataFrame) -> Figure:
    """Above, false alarms on private pairs; below, power against the number of runs."""
    fig = new_figure(8.5, 8.0)
    grid = fig.add_gridspec(2, 2, height_ratios=[5, 4])
    top, alarms = fig.add_subplot(grid[0, :]), rows[rows.study == "false alarms"]
    laws = list(dict.fromkeys(alarms.law))
    for k, method in enumerate(METHODS):
        mine = alarms[alarms.method == method]
        y = np.array([len(laws) - 1 - laws.index(law) for law in mine.law]) + 0.18 * (1.5 - k)
        color, marker = STYLE[method]
        top.hlines(y, 100 * mine.rate_low, 100 * mine.rate_high, color=color, lw=1.0)
        name = "naive (same runs choose and judge)" if method == "naive" else method
        top.plot(100 * mine.rate, y, marker, color=color, ms=4.5, label=name, clip_on=False)
    top.axvline(100 * LEVEL, color="black", lw=1.0, ls="--", label=f"nominal {100 * LEVEL:g} %")
    names = [law.replace(", ", r", $\varepsilon$=") for law in laws]
    top.set_yticks(range(len(laws)), names[::-1], fontsize=8.5)
    top.set_xlabel(f"false alarms in % of {int(alarms.repetitions.max())} audits, {RUNS} runs a side (99 % intervals)")
    top.set_xscale("symlog", linthresh=1.0)  # room for rates near 0 and for the naive ones
    top.set_xticks([0, 0.5, 1, 2, 5, 10, 20, 50, 100], ["0", "0.5", "1", "2", "5", "10", "20", "50", "100"])
    top.minorticks_off()
    top.set_xlim(-0.05, 130)
    top.set_title("How often a mechanism is accused that keeps its claim exactly", fontsize=9.5)
    fig.legend(*top.get_legend_handles_labels(), fontsize=8.5, frameon=False, loc="outside upper center", ncols=5)
    tidy(top)
    for k, law in enumerate(VIOLATIONS):
        axes = fig.add_subplot(grid[1, k])
        for method in METHODS[:3]:
            mine = rows[(rows.study == "power") & (rows.law == law) & (rows.method == method)]
            color, marker = STYLE[method]
            axes.fill_between(mine.runs, mine.rate_low, mine.rate_high, color=color, alpha=0.15, lw=0)
            axes.plot(mine.runs, mine.rate, marker=marker, ms=4, lw=1.2, color=color, label=method)
        _, epsilon, confidence, _ = VIOLATIONS[law]
        axes.set_title(
            f"False claim: {law}\nclaimed {epsilon:g}, level {100 * (1 - confidence):.0f} %",
            fontsize=9,
        )
        axes.set_xscale("log")
        if mine.runs.max() < 1000:
            axes.set_xticks([20, 50, 100, 200], ["20", "50", "100", "200"])
            axes.minorticks_off()
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("runs a side")
        axes.set_ylabel("share of audits that refute")
        axes.legend(fontsize=8.5, frameon=False)
        tidy(axes)
    return fig


def main() -> None:
    rows = table()
    rows.to_csv(RESULTS, index=False)
    save(figure(rows), TOP / "figures" / "calibration")
    shown = rows.pivot_table(index=["study", "law", "runs"], columns="method", values="rate", sort=False)
    print(shown.to_string())


if __name__ == "__main__":
    main()
