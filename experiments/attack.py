"""How often an observer guesses one sample right: ``python -m experiments.attack``.

The first sample is a fair coin, 1 or 0, and the observer guesses it from one run, by the likelihood ratio. Such a guess
is right with probability ``1/2 + TV/2``, TV the total variation of the two laws compared; TV is called advantage. An
algorithm that is epsilon-private keeps every observer's success below ``e^epsilon / (1 + e^epsilon)``. The same ceiling
holds for how sure an observer may be of ``x_1 = 1`` given any event: here the best event "the run stopped early" that
happens in at least 1 % of the runs with ``x_1 = 1`` or of those with ``x_1 = 0``.

Three observers, by what is compared:

*marginal* sees (tau, o) and nothing else. Exact, and by a simulated attack.
*informed* knows every other sample. Averages over random sequences; early means early for the sequence at hand.
*expected* is the paper's definition: the law of the termination time averaged over the other samples, in bins of width
1. This observer does not exist in practice: nobody is shown the average over all samples that might have been.

Writes ``experiments/results/attack.csv`` and ``figures/attack.png`` and ``.pdf``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dpsmc_audit.evidence.intervals import clopper_pearson
from dpsmc_audit.evidence.means import bounded_mean
from dpsmc_audit.evidence.profiles import total_variation
from dpsmc_audit.exact.calibration import MECHANISMS, private
from dpsmc_audit.mechanisms import Exponential, Laplace, Mechanism
from dpsmc_audit.numerics.ties import best_of, exceeds
from dpsmc_audit.observers.expected.law import expected_law
from dpsmc_audit.observers.informed.average import draw_pair
from dpsmc_audit.observers.informed.law import InformedLaw
from dpsmc_audit.observers.marginal.law import NAMES, SIDES, MarginalLaw, marginal_law
from dpsmc_audit.report.figures import save
from dpsmc_audit.report.style import DARK_BLUE, RED, new_figure, tidy
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import Runs, draw_runs
from dpsmc_audit.sampling.streams import derived
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.paper import P_PHI, P

TOP = Path(__file__).parent.parent
RESULTS = TOP / "experiments" / "results" / "attack.csv"
TEST = Sprt(P, delta=0.01, alpha=0.01)
ENTRIES = (1,)
EPSILONS = (0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.1, 2.0)
FLOOR = 0.01
CONFIDENCE = 0.99
RUNS = 2_000_000
SEQUENCES = 3_000
SEED = 1
ROUNDING = 1e-9
"""Far above the numerical error of what the definition compares: two-sided noise sits exactly on the ceiling there."""

MARGIN = 200
"""Averages that are left out below the largest one computed: the ladder misses walks that come back from beyond it."""


FloatArray = NDArray[np.float64]
Row = dict[str, Any]


# --- what is allowed, and what the best guess achieves --------------------------------------------------------------


def success_ceiling(epsilon: float) -> float:
    """The largest success rate, and posterior, that an epsilon-private algorithm allows from a prior of 1/2."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def advantage_ceiling(epsilon: float) -> float:
    """The same as ``2 success - 1``."""
    return math.tanh(0.5 * epsilon)


def success(advantage: float) -> float:
    return 0.5 + 0.5 * advantage


@dataclass(frozen=True)
class Early:
    """The event ``tau <= last``, with this decision if one is named, and its probabilities for x_1 = 1 and x_1 = 0."""

    last: int
    side: int | None
    p1: float
    p0: float

    @property
    def posterior(self) -> float:
        """P(x_1 = 1 | the event), from a prior of 1/2."""
        return self.p1 / (self.p1 + self.p0)

    @property
    def name(self) -> str:
        return f"tau <= {self.last}" + ("" if self.side is None else f" and {NAMES[self.side]}")


def surest_early(p1: FloatArray, p0: FloatArray, floor: float = FLOOR) -> Early:
    """The early stop that speaks most for x_1 = 1, among those that one of the members meets with at least `floor`.

    ``p1[side, k - 1]`` for the sides H_null, H_alt, ...: the observer may look at the decision or not. Of events that
    say the same but for rounding it is the earliest, and the first of the sides.
    """
    best: Early | None = None
    for side, one, zero in [(None, p1.sum(axis=0), p0.sum(axis=0)), *zip(SIDES, p1, p0, strict=False)]:
        below_1, below_0 = np.cumsum(one), np.cumsum(zero)
        often = np.maximum(below_1, below_0) >= floor
        if not np.any(often):
            continue
        k = best_of(np.where(often, below_1 / np.maximum(below_1 + below_0, 1e-300), -1.0))
        found = Early(k + 1, side, float(below_1[k]), float(below_0[k]))
        if best is None or exceeds(found.posterior, best.posterior):
            best = found
    assert best is not None
    return best


def row(
    epsilon: float, advantage: tuple[float, float, float], posterior: tuple[float, float, float], **more: Any
) -> Row:
    """Advantage and posterior as (value, low, high); a ceiling counts as exceeded where the low end is above it."""
    found: Row = {"epsilon": epsilon}
    for name, value in zip(("", "_low", "_high"), advantage, strict=True):
        found[f"success{name}"] = success(value)
    for name, value in zip(("", "_low", "_high"), advantage, strict=True):
        found[f"advantage{name}"] = value
    for name, value in zip(("", "_low", "_high"), posterior, strict=True):
        found[f"posterior{name}"] = value
    for name, level in (("epsilon", epsilon), ("2_epsilon", 2.0 * epsilon)):
        found[f"success_allowed_{name}"] = success_ceiling(level)
        found[f"advantage_allowed_{name}"] = advantage_ceiling(level)
        found[f"advantage_exceeds_{name}"] = advantage[1] > advantage_ceiling(level)
        found[f"posterior_exceeds_{name}"] = posterior[1] > success_ceiling(level)
    return found | more


# --- the marginal observer ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attack:
    """Guesses about simulated runs: how many were right, and how many runs with x_1 = 1 were among the early ones."""

    runs: int
    right: int
    early: int
    early_ones: int


def simulated_attack(mechanism: Mechanism, law: MarginalLaw, early: Early, runs: int, seed: int) -> Attack:
    """Runs whose first sample is a fair coin, each guessed by the likelihood ratio of the exact law.

    Runs are independent, so it is enough to draw how many of them have x_1 = 1.
    """
    ones = int(np.random.default_rng(seed).binomial(runs, 0.5))
    right, seen = 0, [0, 0]
    for bit, count in ((1, ones), (0, runs - ones)):
        drawn = draw_runs(
            Setting(TEST, mechanism, P_PHI),
            count,
            entries=ENTRIES,
            bit=bit,
            sampling=Sampling(seed=int(derived(seed, 100 + bit))),
        )
        right += int(np.sum(guesses(law, drawn) == bit))
        seen[bit] = int(
            np.sum((drawn.tau <= early.last) & (True if early.side is None else drawn.decision == early.side))
        )
    return Attack(runs, right, sum(seen), seen[1])


def guesses(law: MarginalLaw, drawn: Runs) -> NDArray[np.int64]:
    """1 where the outcome is likelier with x_1 = 1, else 0."""
    likelier = np.pad(law.p1 > law.p0, ((0, 0), (0, 1)))  # what the law does not list counts as a zero
    side = np.array([SIDES.index(decision) for decision in (-1, 0, 1)])[drawn.decision + 1]
    place = np.minimum(drawn.tau, law.p1.shape[1] + 1) - 1
    return np.asarray(likelier[side, place], np.int64)


def marginal(mechanism: Mechanism, epsilon: float, runs: int = RUNS) -> Row:
    law = marginal_law(Adjacent(Setting(TEST, mechanism, P_PHI), ENTRIES))
    value = total_variation(law.p1.ravel(), law.p0.ravel())
    early = surest_early(law.p1, law.p0)
    low, high = (replaced.posterior for replaced in _shifted(early, law.error))
    attack = simulated_attack(mechanism, law, early, runs, SEED)
    success_low, success_high = clopper_pearson(attack.right, attack.runs, CONFIDENCE)
    early_low, early_high = clopper_pearson(attack.early_ones, attack.early, CONFIDENCE)
    return row(
        epsilon,
        (value, value - law.scatter, value + law.scatter),
        (early.posterior, low, high),
        event=early.name,
        event_p1=early.p1,
        event_p0=early.p0,
        simulated_runs=attack.runs,
        simulated_success=attack.right / attack.runs,
        simulated_success_low=success_low,
        simulated_success_high=success_high,
        simulated_posterior=attack.early_ones / attack.early,
        simulated_posterior_low=early_low,
        simulated_posterior_high=early_high,
    )


def _shifted(early: Early, error: float) -> Iterator[Early]:
    """The event with its probabilities off by the numerical error, against x_1 = 1 and for it."""
    for sign in (-1.0, 1.0):
        yield Early(early.last, early.side, early.p1 + sign * error, max(early.p0 - sign * error, 0.0))


# --- the informed observer ------------------------------------------------------------------------------------------


def informed_early(law: InformedLaw) -> Early:
    """For one sequence: outcomes are in the order of tau, the decision may be looked at."""
    seen = [law.decision == side for side in SIDES[:2]]
    found = surest_early(np.stack([law.p1 * s for s in seen]), np.stack([law.p0 * s for s in seen]))
    return Early(int(law.tau[found.last - 1]), found.side, found.p1, found.p0)


def informed(mechanism: Mechanism, epsilon: float, sequences: int = SEQUENCES) -> Row:
    """Means over sequences of the advantage, and of the posterior after a stop that is early for the sequence."""
    numbers = np.empty((4, sequences))
    for path in range(sequences):
        law = draw_pair(Adjacent(Setting(TEST, mechanism, P_PHI), ENTRIES), path, sampling=Sampling(seed=SEED))
        early = informed_early(law)
        numbers[:, path] = law.total_variation, early.posterior, early.p1, early.p0
    apart, sure = (bounded_mean(np.clip(values, 0.0, 1.0), CONFIDENCE) for values in numbers[:2])
    return row(
        epsilon,
        (apart.mean, apart.low, apart.high),
        (sure.mean, sure.low, sure.high),
        event="tau early for the sequence",
        event_p1=float(numbers[2].mean()),
        event_p0=float(numbers[3].mean()),
        sequences=sequences,
    )


# --- the observer of the paper's definition -------------------------------------------------------------------------


@cache
def crossings() -> tuple[FloatArray, FloatArray]:
    """The L at which the average termination time reaches 0, 1, 2, ..., with x_1 = 1 and with x_1 = 0.

    They have nothing to do with the law of L, so they are computed once, with a law that can be inverted, and for as
    many averages as matter: beyond the last one every bin is likelier with x_1 = 0, and all are one event.
    """
    probe = Laplace(center=20.0, scale=10.0)
    law = expected_law(Adjacent(Setting(TEST, probe, P_PHI), ENTRIES), bin_width=1, upto=0.1)
    tails = law.tail_1[:-MARGIN], law.tail_0[:-MARGIN]
    one, zero = (np.where(tail < 1.0, probe.quantile(1.0 - tail), -math.inf) for tail in tails)
    return one, zero


def expected_bins(mechanism: Mechanism) -> tuple[FloatArray, FloatArray]:
    """P_1 and P_0 of the bins [0, 1), [1, 2), ... of the average termination time, the last one open."""
    lowest = float(mechanism.quantile(0.0))
    tails = (np.where(at <= lowest, 1.0, mechanism.survival(np.maximum(at, TEST.no_room))) for at in crossings())
    one, zero = (np.maximum(-np.diff(tail, append=0.0), 0.0) for tail in tails)
    return one, zero


def expected(mechanism: Mechanism, epsilon: float) -> Row:
    one, zero = expected_bins(mechanism)
    value = total_variation(one, zero)
    early = surest_early(one[None, :-1], zero[None, :-1])
    even = one.size - one.size % 2
    coarser = total_variation(*(np.append(p[:even].reshape(-1, 2).sum(axis=1), p[even:].sum()) for p in (one, zero)))
    return row(
        epsilon,
        (value, value - ROUNDING, value + ROUNDING),
        (early.posterior, early.posterior - ROUNDING, min(early.posterior + ROUNDING, 1.0)),
        event=f"average < {early.last}",
        event_p1=early.p1,
        event_p0=early.p0,
        bin_width=1,
        advantage_at_twice_the_width=coarser,
    )


# --- all of them ----------------------------------------------------------------------------------------------------


def table() -> pd.DataFrame:
    rows: list[Row] = []
    for law in (Exponential, Laplace):
        for epsilon in EPSILONS:
            mechanism = private(MECHANISMS[law.name], TEST, epsilon)
            rows += [
                {"mechanism": law.name, "notion": observe.__name__, **observe(mechanism, epsilon)}
                for observe in (marginal, informed, expected)
            ]
    return pd.DataFrame(rows)


OBSERVERS = {
    "informed": ("observer sees it and knows all other samples", DARK_BLUE, "-", "s"),
    "expected": (
        "the paper's definition: an observer that does not exist, who sees an average over all other samples",
        "black",
        ":",
        "",
    ),
    "marginal": ("observer sees the result of one run and knows nothing else", RED, "-", "o"),
}
TITLES = {
    "exponential": "Algorithm 2 of the paper: more is learnt than allowed",
    "laplace": "Two-sided noise, same error levels: close to what is allowed",
}
SHADES = ((2.0, "0.91"), (1.0, "0.78"))


def figure(rows: pd.DataFrame) -> Figure:
    """A row for each mechanism: how often the guess is right, and how sure the observer is after an early stop."""
    drawn = new_figure(10.0, 9.6)
    parts: Any = drawn.subfigures(2, 1, hspace=0.04)
    for k, (mechanism, title) in enumerate(TITLES.items()):
        part = parts[k]
        left, right = part.subplots(1, 2)
        mine = rows[rows.mechanism == mechanism]
        _guesses(left, mine)
        _sureness(right, mine)
        part.suptitle(f"{'AB'[k]}   {title}", fontsize=11.5, fontweight="bold", x=0.01, ha="left")
    drawn.suptitle(
        "Someone sees how long ONE run took and what it decided, and guesses whether its first sample was 1 or 0",
        fontsize=11.5,
    )
    drawn.legend(handles=_keys(), loc="outside lower center", ncols=1, fontsize=9, frameon=False)
    return drawn


def _keys() -> list[Any]:
    lines = {
        notion: Line2D([], [], color=colour, ls=style, marker=marker, ms=4, lw=1.8, label=label)
        for notion, (label, colour, style, marker) in OBSERVERS.items()
    }
    text = f"the same attack carried out on {RUNS / 1e6:g} million simulated runs, {100 * CONFIDENCE:g} % interval"
    simulated = Line2D([], [], color=RED, marker="o", mfc="none", ms=8, ls="", label=text)
    allowed = [
        Patch(color="0.78", label=r"allowed by a promise of $\varepsilon$: no observer should get above this"),
        Patch(color="0.91", label=r"allowed by $2\varepsilon$, which is what the paper's theorem states"),
    ]
    return [lines["marginal"], simulated, lines["informed"], lines["expected"], *allowed]


def _draw(axes: Axes, rows: pd.DataFrame, quantity: str, offset: float, bottom: float) -> None:
    """Curves, simulated points and the allowed region, in percent above `offset`."""
    epsilons = np.geomspace(EPSILONS[0], EPSILONS[-1], 200)
    for factor, shade in SHADES:
        top = [100.0 * (success_ceiling(factor * x) - offset) for x in epsilons]
        axes.fill_between(epsilons, bottom, top, color=shade, lw=0)
    for notion, (_, colour, style, marker) in OBSERVERS.items():
        mine = rows[rows.notion == notion]
        axes.plot(mine.epsilon, 100.0 * (mine[quantity] - offset), color=colour, ls=style, marker=marker, ms=4, lw=1.8)
    seen = rows[rows.notion == "marginal"]
    middle, low, high = (seen[f"simulated_{quantity}{end}"].to_numpy() for end in ("", "_low", "_high"))
    bars = 100.0 * np.array([middle - low, high - middle])
    axes.errorbar(
        seen.epsilon, 100.0 * (middle - offset), bars, fmt="o", color=RED, mfc="none", ms=8, lw=1.0, capsize=3
    )
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlim(EPSILONS[0] / 1.1, EPSILONS[-1] * 1.1)
    axes.set_xlabel(r"privacy promised, $\varepsilon$ (smaller = more private)")


def _guesses(axes: Axes, rows: pd.DataFrame) -> None:
    """On a scale that shows small excesses over 50 %."""
    _draw(axes, rows, "success", 0.5, 0.1)
    axes.set_yscale("log")
    axes.set_ylim(0.1, 60.0)
    ticks = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50]
    axes.set_yticks(ticks, [f"{50 + tick:g} %" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylabel("right guesses (flipping a coin: 50 %)")
    axes.set_title("How often is the guess right?", fontsize=10, loc="left")
    axes.text(0.012, 14.0, "more than allowed", fontsize=9.5, style="italic")
    axes.text(0.4, 0.3, "allowed", fontsize=9.5, style="italic")
    tidy(axes)


def _sureness(axes: Axes, rows: pd.DataFrame) -> None:
    _draw(axes, rows, "posterior", 0.0, 50.0)
    axes.set_ylim(48.0, 102.0)
    axes.set_yticks(range(50, 101, 10), [f"{tick} %" for tick in range(50, 101, 10)])
    axes.minorticks_off()
    axes.set_ylabel("chance that the sample was 1 (before: 50 %)")
    title = f"How sure is the guess after an early stop (earliest {100 * FLOOR:g} %)?"
    axes.set_title(title, fontsize=10, loc="left")
    axes.text(0.012, 80.0, "more than allowed", fontsize=9.5, style="italic")
    axes.text(0.95, 53.5, "allowed", fontsize=9.5, style="italic")
    first = rows[rows.notion == "marginal"].iloc[0]
    text = f"{100 * first.posterior:.1f} %, allowed {100 * first.success_allowed_epsilon:.2f} %"
    axes.annotate(
        text,
        (first.epsilon, 100.0 * first.posterior + 1.0),
        xytext=(12, 40),
        textcoords="offset points",
        fontsize=9,
        color=RED,
        arrowprops={"arrowstyle": "-", "color": RED, "lw": 0.8},
    )
    tidy(axes)


def main() -> None:
    rows = table()
    rows.to_csv(RESULTS, index=False, lineterminator="\n")
    save(figure(rows), TOP / "figures" / "attack")
    shown = ["mechanism", "notion", "epsilon", "success", "success_allowed_epsilon", "advantage_exceeds_epsilon"]
    print(
        rows[[*shown, "posterior", "posterior_exceeds_epsilon", "posterior_exceeds_2_epsilon"]].to_string(index=False)
    )


if __name__ == "__main__":
    main()
