"""Table 1 of the paper, row by row against the exact means: ``python -m experiments.table1``.

Writes ``experiments/results/table1.csv`` and ``figures/table1.png`` and ``.pdf``.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from dpsmc_audit import Exponential, Sprt, exact_sd, simulate
from dpsmc_audit.report.figures import save
from dpsmc_audit.report.style import DARK_BLUE, RED, new_figure, tidy
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Setting
from dpsmc_audit.tasks.paper import P_PHI, RUNS, TABLE1, P, compare

TOP = Path(__file__).parent.parent


def table() -> pd.DataFrame:
    rows = []
    for (alpha, delta, epsilon), published in TABLE1.items():
        test = Sprt(P, delta, alpha)
        law = Exponential.private(test, epsilon)
        result = simulate(Setting(test, law, P_PHI), RUNS, sampling=Sampling(seed=1))
        low, high = result.samples_ci or (float("nan"), float("nan"))
        exact = result.exact
        rows.append(
            {
                "alpha": alpha,
                "delta": delta,
                "epsilon": epsilon,
                "samples": result.samples,
                "samples_low": low,
                "samples_high": high,
                "samples_exact": exact.samples.value,
                "samples_exact_error": exact.samples.error,
                "sd_exact": exact_sd(Setting(test, law, P_PHI)).value,
                "paper_samples": published.samples,
                "paper_halfwidth": published.samples_halfwidth,
                "distance": compare(Setting(test, law, P_PHI), epsilon)["distance"],
                "error_exact": exact.error.value,
                "fp_worst": exact.worst.fp.value,
                "fn_worst": exact.worst.fn.value,
            }
        )
    return pd.DataFrame(rows)


def figure(rows: pd.DataFrame) -> Figure:
    """Deviation from the exact mean, in standard errors of 10^4 runs: the paper's row with its rounding, and ours."""
    fig = new_figure(7.5, 4.8)
    axes = fig.subplots()
    unit = rows.sd_exact / RUNS**0.5
    place = range(len(rows))
    paper = (rows.paper_samples - rows.samples_exact) / unit
    ours = (rows.samples - rows.samples_exact) / unit
    axes.axvspan(-3, 3, color="0.92", zorder=0, label="within 3 standard errors")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.errorbar(
        paper, place, xerr=5.0 / unit, fmt="s", color=RED, capsize=4, label="paper, ± its rounding to 10 samples"
    )
    axes.plot(
        ours, [y + 0.22 for y in place], "o", color=DARK_BLUE, mfc="white", label="this suite, $10^4$ runs, seed 1"
    )
    for y, row in enumerate(rows.itertuples()):
        text = f"paper {row.paper_samples:.0f}\nexact {row.samples_exact:.1f}"
        axes.annotate(text, (12.4, y), va="center", ha="left", fontsize=8, annotation_clip=False)
    labels = [rf"$\alpha$={r.alpha}, $\delta$={r.delta}, $\varepsilon$={r.epsilon}" for r in rows.itertuples()]
    axes.set_yticks(list(place), labels)
    axes.invert_yaxis()
    axes.set_xlim(-8, 12)
    axes.set_xlabel("mean samples minus exact mean, in standard errors of $10^4$ runs")
    axes.set_title("Table 1 of the paper: two rows lie further off than rounding and chance explain", fontsize=10)
    tidy(axes)
    fig.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return fig


def main() -> None:
    rows = table()
    results = TOP / "experiments" / "results"
    results.mkdir(exist_ok=True)
    rows.to_csv(results / "table1.csv", index=False, lineterminator="\n")
    save(figure(rows), TOP / "figures" / "table1")
    print(
        rows[["alpha", "delta", "epsilon", "samples", "samples_exact", "paper_samples", "distance"]].to_string(
            index=False
        )
    )


if __name__ == "__main__":
    main()
