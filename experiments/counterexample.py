"""What one changed sample does to a given sequence: ``python -m experiments.counterexample``.

The paper's Example 2 and a sequence that does what it says, the standard exponential mechanism on a query of bounded
sensitivity, and the sequence on which an observer who knows all other samples is certain of the changed one.
Writes ``experiments/results/counterexample.csv`` and ``figures/counterexample.png`` and ``.pdf``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Exponential, Mechanism, NoNoise
from dpsmc_audit.observers.informed.average import average
from dpsmc_audit.observers.informed.law import InformedLaw, given_sequence
from dpsmc_audit.observers.informed.sequences import oscillating_sequence
from dpsmc_audit.report.figures import save
from dpsmc_audit.report.style import BLUE, DARK_BLUE, GREY, RED, new_figure, tidy
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.paper import P_PHI, P

TOP = Path(__file__).parent.parent
LONGEST = 10**6
EPSILONS = (0.01, 0.1, 1.0)
COVERAGE = 0.999

Row = dict[str, Any]


def row(
    part: str, quantity: str, value: float, test: Sprt | None = None, epsilon: float | None = None, samples: int = 0
) -> Row:
    """`samples` is how long the sequence is; what does not apply is left empty."""
    settings = {name: getattr(test, name, None) for name in ("p", "delta", "alpha")}
    return {
        "part": part,
        **settings,
        "epsilon": epsilon,
        "samples": samples or None,
        "quantity": quantity,
        "value": value,
    }


# --- (a) and (b): sequences on which Algorithm 1 is told apart ------------------------------------------------------


def just_below(test: Sprt) -> int:
    """The paper's K_1: so many ones that one more is enough."""
    return math.ceil(test.b_up / test.s_plus) - 1


def alternating(test: Sprt) -> Iterator[int]:
    """The paper's tail 0, 1, 0, 1, ..."""
    return itertools.cycle((0, 1))


def balancing(test: Sprt) -> Iterator[int]:
    """A tail that pushes Lambda of the member with a zero back towards 0, from where K_1 ones and the zero left it."""
    ones, steps = just_below(test), just_below(test) + 1
    while True:
        bit = int(ones * test.s_plus - (steps - ones) * test.s_minus <= 0.0)
        ones, steps = ones + bit, steps + 1
        yield bit


def stops(test: Sprt, tail: Iterator[int], samples: int) -> tuple[float, float]:
    """tau of Algorithm 1 after K_1 ones and a one, and after K_1 ones and a zero; infinite if still running."""
    start = just_below(test)
    bits = np.array([1] * start + [0, *itertools.islice(tail, samples - start - 1)])
    law = given_sequence(test, NoNoise(), bits, [start + 1])
    one, zero = (int(np.argmax(p)) for p in (law.p1, law.p0))
    tau = np.where(law.decision < 0, math.inf, law.tau.astype(np.float64))
    return float(tau[one]), float(tau[zero])


def example2() -> list[Row]:
    rows = []
    for p in (0.5, P):
        test = Sprt(p, 0.01, 0.01)
        one, zero = stops(test, alternating(test), LONGEST)
        rows += [row("a: Example 2", f"tau, x_n = {x}", tau, test, samples=LONGEST) for x, tau in ((1, one), (0, zero))]
    return rows


def never_stopping() -> list[Row]:
    rows = []
    for p in (0.5, P, 0.9):
        test = Sprt(p, 0.01, 0.01)
        for samples in (10**3, 10**4, 10**5, 10**6):
            one, zero = stops(test, balancing(test), samples)
            assert zero == math.inf
            rows.append(row("b: balancing tail", "tau differs by at least", samples - one, test, samples=samples))
    return rows


# --- (c): the standard exponential mechanism ------------------------------------------------------------------------


def exponential_mechanism(query: int, epsilon: float, most: int) -> NDArray[np.float64]:
    """``P(k)`` for k = 0, ..., most, proportional to ``exp(-epsilon |query - k|)`` on all naturals (sensitivity 1)."""
    r = math.exp(-epsilon)
    normal = sum(r**j for j in range(1, query + 1)) + 1.0 / (1.0 - r)
    return np.asarray(r ** np.abs(query - np.arange(most + 1.0)) / normal)


def worst_log_ratio(epsilon: float, bits: int = 6) -> float:
    """Largest log ratio of the released number of ones, over all sequences of so many bits and all their neighbours.

    Beyond k = bits the ratio does not change with k.
    """
    worst = 0.0
    for sequence in itertools.product((0, 1), repeat=bits):
        law = exponential_mechanism(sum(sequence), epsilon, bits)
        for bit in sequence:
            neighbour = exponential_mechanism(sum(sequence) + 1 - 2 * bit, epsilon, bits)
            worst = max(worst, float(np.abs(np.log(law / neighbour)).max()))
    return worst


def bounded_query() -> list[Row]:
    """The lemma states epsilon, its proof gives 2 epsilon."""
    name = "worst log ratio, noisy count of 6 bits"
    return [row("c: exponential mechanism", name, worst_log_ratio(x), epsilon=x) for x in EPSILONS]


# --- (d): the oscillating sequence ----------------------------------------------------------------------------------


def oscillation(test: Sprt, mechanism: Mechanism) -> tuple[NDArray[np.int8], InformedLaw]:
    bits = oscillating_sequence(test, mechanism, coverage=COVERAGE)
    return bits, given_sequence(test, mechanism, bits, [1])


def oscillating() -> list[Row]:
    test, rows = Sprt(P, 0.01, 0.01), []
    for epsilon in (None, *EPSILONS):
        mechanism = NoNoise() if epsilon is None else Exponential.private(test, epsilon)
        bits, law = oscillation(test, mechanism)
        part = f"d: oscillating, {mechanism.name}"
        rows.append(row(part, "total variation", law.total_variation, test, epsilon, bits.size))
    return rows


def random_sequences() -> list[Row]:
    """For comparison: what the same observer learns from random sequences."""
    test, rows = Sprt(P, 0.01, 0.01), []
    for epsilon in EPSILONS:
        found = average(
            Adjacent(Setting(test, Exponential.private(test, epsilon), P_PHI)),
            1000,
            np.array([epsilon]),
            sampling=Sampling(seed=1),
        )
        for quantity, mean in (("total variation", found.total_variation), ("revealed, x_n = 1", found.reveal_1)):
            rows.append(row("d: random sequences, mean of 1000", quantity, mean.mean, test, epsilon))
    return rows


# --- the figure -----------------------------------------------------------------------------------------------------


def figure(rows: pd.DataFrame) -> Figure:
    """Both walks on the oscillating sequence, the law of tau that follows, and how certain the observer is."""
    test = Sprt(P, delta=0.03, alpha=0.05)  # larger steps than in the paper's figure, so that they can be seen
    bits, law = oscillation(test, Exponential.private(test, 1.0))
    shown = 420
    drawn = new_figure(8.0, 8.6)
    above, middle, below = drawn.subplots(3, 1, height_ratios=[5, 2.4, 2.6])
    middle.sharex(above)
    _walks(above, test, bits, shown)
    _tau(middle, law, shown)
    _certainty(below, rows)
    drawn.suptitle(
        "On this sequence, whoever knows every sample but the first learns it from the termination time,\n"
        r"whatever the law of the noise $L\geq 0$ that is added to both bounds",
        fontsize=11,
    )
    return drawn


def title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=9.5, loc="left")


def _walks(axes: Axes, test: Sprt, bits: NDArray[np.int8], shown: int) -> None:
    times = np.arange(1, shown + 1)
    for bit, colour in ((1, RED), (0, DARK_BLUE)):
        changed = bits[:shown].astype(np.int64)
        changed[0] = bit
        ones = np.cumsum(changed)
        walk = ones * test.s_plus - (times - ones) * test.s_minus
        excess = np.maximum(walk - test.b_up, -walk - test.b_low)
        record = excess > np.maximum.accumulate(np.append(0.0, excess))[:-1]
        axes.plot(times, walk, color=colour, lw=1.1, label=rf"walk, $x_1={bit}$")
        label = rf"can stop here, $x_1={bit}$"
        axes.plot(times[record], walk[record], "os"[1 - bit], color=colour, ms=4, label=label)
    for k, bound in enumerate((test.b_up, -test.b_low)):
        axes.axhline(bound, color=GREY, ls="--", lw=0.9, label=r"bounds $\pm B$" if k == 0 else None)
    axes.set_ylabel(r"log-likelihood ratio $\Lambda$")
    axes.set_xlim(0, shown)
    axes.tick_params(labelbottom=False)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))
    axes.legend(fontsize=8.5, frameon=False, loc="upper left", ncols=3)
    title(axes, "The sequence swings so that only one walk at a time goes further out than it ever was")
    tidy(axes)


def _tau(axes: Axes, law: InformedLaw, shown: int) -> None:
    seen = (law.tau <= shown) & (law.decision >= 0)
    axes.bar(law.tau[seen], law.p1[seen], width=1.5, color=RED)
    axes.bar(law.tau[seen], -law.p0[seen], width=1.5, color=DARK_BLUE)
    axes.axhline(0.0, color="black", lw=0.6)
    limit = 1.15 * float(max(law.p1[seen].max(), law.p0[seen].max()))
    axes.set_ylim(-limit, limit)
    axes.set_yticks([-0.4, -0.2, 0.0, 0.2, 0.4], ["0.4", "0.2", "0", "0.2", "0.4"])
    title(axes, "So each termination time is possible for one value of the sample only")
    axes.set_ylabel(r"$P(\tau=k)$")
    axes.set_xlabel(r"samples drawn; $L$ exponential with $\varepsilon=1$, $p=0.73$, $\delta=0.03$, $\alpha=0.05$")
    for y, name, colour, bit in ((0.88, "null", RED, 1), (0.12, "alt", DARK_BLUE, 0)):
        text = rf"$x_1={bit}$: always returns H$_\mathrm{{{name}}}$"
        axes.text(0.99, y, text, color=colour, transform=axes.transAxes, ha="right", va="center", fontsize=9)
    tidy(axes)


def _certainty(axes: Axes, rows: pd.DataFrame) -> None:
    """Total variation, this sequence against random ones, with the paper's steps."""
    apart = rows[(rows.quantity == "total variation") & rows.epsilon.notna()]
    for offset, kind, colour in ((0.2, "d: random", BLUE), (-0.2, "d: oscillating", RED)):
        values = apart[apart.part.str.startswith(kind)].value.to_numpy()
        place = np.arange(values.size) + offset
        axes.barh(place, values, height=0.36, color=colour)
        for y, value in zip(place, values, strict=True):
            axes.text(value + 0.01, y, f"{value:.3g}" if value < 0.9 else f"{value:.4f}", va="center", fontsize=8.5)
    axes.text(0.02, -0.2, "oscillating sequence, as above", color="white", va="center", fontsize=9)
    axes.text(0.12, 0.2, r"average of random sequences, $p_\varphi=0.84$", va="center", fontsize=9)
    axes.set_yticks(range(len(EPSILONS)), [rf"$\varepsilon={epsilon:g}$" for epsilon in EPSILONS])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 1.1)
    title(axes, "What the observer learns, on this kind of sequence and on random ones")
    axes.set_xlabel(
        "total variation: 0 nothing is learnt, 1 the sample is known for certain\n"
        r"(Algorithm 2, $p=0.73$, $\delta=\alpha=0.01$; sequences cut where 0.1 % of the runs go on)"
    )
    tidy(axes)


def main() -> None:
    rows = pd.DataFrame([*example2(), *never_stopping(), *bounded_query(), *oscillating(), *random_sequences()]).astype(
        {"samples": "Int64"}
    )
    path = TOP / "experiments" / "results" / "counterexample.csv"
    rows.to_csv(path, index=False, lineterminator="\n", float_format="%.10g")
    save(figure(rows), TOP / "figures" / "counterexample")
    print(rows.to_string(index=False))


if __name__ == "__main__":
    main()
