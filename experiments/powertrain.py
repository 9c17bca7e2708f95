"""p_phi of the case study under each reading of its text, exact beside sampled: ``python -m experiments.powertrain``.

The model follows public copies of the benchmark and was not compared with MATLAB. Writes
``experiments/results/powertrain.csv`` and ``figures/powertrain.png`` and ``.pdf``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpsmc_audit.models.powertrain import Powertrain
from dpsmc_audit.models.simulated import CASE_STUDY, PowertrainBits
from dpsmc_audit.report.figures import save
from dpsmc_audit.report.style import GREY, RED, new_figure, tidy
from dpsmc_audit.report.traces import draw_traces
from dpsmc_audit.stl import parse
from dpsmc_audit.tasks.estimate import Estimate, estimate
from dpsmc_audit.tasks.paper import P_PHI, P
from experiments.powertrain_exact import exact_p_phi

TOP = Path(__file__).parent.parent
FORMULA = parse(CASE_STUDY)
TRACES = 40_000
READINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "as_written": ("the text as written:\nspeed of sd 40", {}),
    "tolerance": ("sd 40 and air-flow sensor\noff by up to 5.2 %", {}),
    "sd_1600": ("1600 taken for the sd\n(speeds above 3540 rpm leave the frame)", {}),
    "documented": ("sd 40 and air-flow sensor\noff by up to 5 %", {"setting": "tolerance", "maf": 0.05}),
    "sd_1600_held": ("1600 taken for the sd,\ntables end at 3000 rpm", {"setting": "sd_1600", "extrapolate": False}),
    "closed_loop": (
        "1600 taken for the sd,\nfeedback from the start",
        {"setting": "sd_1600", "variant": "closed_loop"},
    ),
}
"""Named settings first, and others that tell what they rest on: how each is called, and what it changes."""
SHOWN = ("as_written", "tolerance", "sd_1600")


def model_of(name: str) -> Powertrain:
    changes = dict(READINGS[name][1])
    return Powertrain.named(changes.pop("setting", name), **changes)


def sampled(name: str) -> Estimate:
    return estimate(PowertrainBits(model_of(name), FORMULA, threads=2), TRACES, seed=1)


def table(found: dict[str, Estimate]) -> pd.DataFrame:
    rows = []
    for name, result in found.items():
        exact = exact_p_phi(model_of(name), FORMULA.truth)
        low, high = result.p_phi_ci
        row = {"setting": name, "p_phi_exact": exact.p_phi, "p_phi_exact_error": exact.error}
        rows.append(row | {"p_phi": result.p_phi, "p_phi_low": low, "p_phi_high": high, "traces": result.runs})
    return pd.DataFrame(rows)


def figure(found: dict[str, Estimate], rows: pd.DataFrame) -> Figure:
    """Traces of the three named settings, and p_phi of all."""
    fig = new_figure(10.0, 6.4)
    halves: Any = fig.subfigures(2, 1, height_ratios=[1.3, 1.0])
    above, below = halves
    panels = dict(zip(SHOWN, above.subplots(1, len(SHOWN), sharey=True), strict=True))
    for name, axes in panels.items():
        draw_traces(axes, found[name].examples, FORMULA, "e")
        axes.set_title(f"{name}\n{READINGS[name][0]}", fontsize=9)
        axes.set_xlabel("time (s)")
        axes.set_ylim(-0.35, 0.65)
    panels[SHOWN[0]].set_ylabel("e, relative deviation\nof the air-fuel ratio")
    _probabilities(below.subplots(), rows)
    handles, labels = panels["tolerance"].get_legend_handles_labels()
    above.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8.5, frameon=False)
    fig.suptitle(f"Toyota powertrain, {FORMULA}; this model was not compared with MATLAB", fontsize=10)
    return fig


def _probabilities(axes: Axes, rows: pd.DataFrame) -> None:
    place = range(len(rows))
    half = [rows.p_phi - rows.p_phi_low, rows.p_phi_high - rows.p_phi]
    label = f"sampled, {TRACES} traces, 99 % interval"
    axes.plot(rows.p_phi_exact, place, "x", ms=8, mew=2, color=RED, label="exact")
    axes.errorbar(rows.p_phi, place, xerr=half, fmt="o", ms=3, color="black", capsize=3, label=label)
    axes.axvline(P_PHI, color=GREY, ls="--", lw=1, label=f"the paper's {P_PHI}")
    axes.axvline(P, color=GREY, ls=":", lw=1, label=f"threshold p = {P}")
    axes.set_yticks(list(place), [_label(name) for name in rows.setting])
    axes.invert_yaxis()
    axes.set_xlim(0.72, 1.01)
    axes.set_xlabel(r"$p_\varphi$, the probability that a trace satisfies the formula")
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(0.56, 0.95))
    tidy(axes)
    axes.tick_params(axis="y", labelsize=8)


def _label(name: str) -> str:
    return f"{name}: {READINGS[name][0].replace(chr(10), ' ').partition(' (')[0]}"


def main() -> None:
    found = {name: sampled(name) for name in READINGS}
    rows = table(found)
    rows.to_csv(TOP / "experiments" / "results" / "powertrain.csv", index=False, lineterminator="\n")
    save(figure(found, rows), TOP / "figures" / "powertrain")
    print(rows.to_string(index=False))


if __name__ == "__main__":
    main()
