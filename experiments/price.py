"""The price of privacy: mean samples against epsilon, and what they buy: ``python -m experiments.price``.

Mechanisms with the same epsilon do not hide the same. So beside the price stand two audited numbers for an observer of
one released (tau, o): the delta that the claimed epsilon needs, and the total variation (the delta that epsilon = 0
needs), which compares mechanisms whatever they claim. Two samples are changed in turn: the first, and the one at the
mean termination time, where two-sided noise hides least. Means and errors are exact; laws are those of
`experiments.sensitivity`, tau in bins of 20 samples.

Writes ``experiments/results/price.csv`` and ``figures/price.png`` and ``.pdf``.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpsmc_audit.exact.averages import exact_mean, worst_errors
from dpsmc_audit.exact.calibration import MECHANISMS, private
from dpsmc_audit.report.figures import save
from dpsmc_audit.report.style import new_figure, tidy
from dpsmc_audit.setting import Setting
from dpsmc_audit.tasks.paper import P_PHI, P
from experiments.sensitivity import LOOKS, TEST, WIDTH, effect, leakage

TOP = Path(__file__).parent.parent
RESULTS = TOP / "experiments" / "results" / "price.csv"
EPSILONS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
NODES = 2_000


def row(name: str, epsilon: float, nodes: int = NODES) -> dict[str, Any]:
    mechanism = private(MECHANISMS[name], TEST, epsilon)
    samples, worst = exact_mean(Setting(TEST, mechanism, P_PHI)), worst_errors(TEST, mechanism)
    found: dict[str, Any] = {
        "mechanism": name,
        "epsilon": epsilon,
        "samples": samples.value,
        "samples_error": samples.error,
        "error_worst": max(worst.fp.value, worst.fn.value),
        "mean_entry": WIDTH * round(samples.value / WIDTH),  # where a bin begins
    }
    for label, entry in (("first", 1), ("mean", found["mean_entry"])):
        laws = effect(TEST, mechanism, entry, nodes)
        told = leakage(laws.one, laws.zero, [epsilon])
        found[f"total_variation_{label}"] = told.total_variation
        found[f"delta_{label}"] = told.profile.at(epsilon)
        found[f"delta_{label}_error"] = laws.delta_error(epsilon)
    return found


def table() -> pd.DataFrame:
    names, epsilons = zip(*((name, epsilon) for name in LOOKS for epsilon in EPSILONS), strict=True)
    with ProcessPoolExecutor(2) as pool:
        return pd.DataFrame(list(pool.map(row, names, epsilons)))


def figure(rows: pd.DataFrame) -> Figure:
    drawn = new_figure(11.0, 4.8)
    price, delta, fair = drawn.subplots(1, 3)
    shown = rows.assign(gained=rows[["total_variation_first", "total_variation_mean"]].max(axis=1))
    for name, (label, colour, style, marker) in LOOKS.items():
        mine = shown[shown.mechanism == name]
        look: dict[str, Any] = {"color": colour, "ls": style, "marker": marker, "ms": 4.5, "lw": 1.5, "label": label}
        price.plot(mine.epsilon, mine.samples, **look)
        delta.plot(mine.epsilon, mine.delta_first, **look)
        small = mine[mine.epsilon <= 0.2]  # beyond, what is left of a late sample is smaller than a bin
        delta.plot(small.epsilon, small.delta_mean, **look, mfc="white", alpha=0.55)
        fair.plot(mine.gained, mine.samples, **look)
    delta.set_ylim(1e-5, 0.1)
    for axes in (price, delta):
        axes.set_xlabel(r"claimed $\varepsilon$")
    fair.set_xlabel("total variation, the worse of the two samples\n(0: nothing is learnt)")
    price.set_title("What it costs: mean samples", fontsize=9.5)
    delta.set_title(
        r"What the claim lacks: $\delta$ needed at $\varepsilon$" + "\n(full: $n=1$; open, pale: $n$ at the mean)",
        fontsize=9.5,
    )
    fair.set_title("The fair comparison: mean samples\nagainst what an observer gains", fontsize=9.5)
    for axes in (price, delta, fair):
        axes.set_xscale("log")
        axes.set_yscale("log")
        tidy(axes)
    fair.set_xticks([0.002, 0.005, 0.01, 0.02, 0.05], ["0.002", "0.005", "0.01", "0.02", "0.05"])
    for axes in (price, fair):
        axes.set_yticks([400, 1_000, 2_000, 5_000], ["400", "1000", "2000", "5000"])
        axes.minorticks_off()
    drawn.legend(*price.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    drawn.suptitle(
        rf"The price of privacy: $p$={P:g}, $p_\varphi$={P_PHI:g}, $\alpha=\delta=0.01$; "
        f"one released result, times in bins of {WIDTH} samples",
        fontsize=10.5,
    )
    return drawn


def main() -> None:
    rows = table()
    rows.to_csv(RESULTS, index=False, lineterminator="\n", float_format="%.10g")
    save(figure(rows), TOP / "figures" / "price")
    print(rows.to_string(index=False))


if __name__ == "__main__":
    main()
