"""What each observer learns from each mechanism: ``python -m experiments.observers``.

The claimed epsilon with the delta it needs, and the whole profile: the delta for every other epsilon. The first sample
is changed, alpha = delta = epsilon = 0.01. `expected` is in bins of 140 samples as in Figure 1, the others at single
samples; `informed` is an average over 500 random sequences.

Writes ``observers.csv`` and ``profiles.csv`` in ``experiments/results``, and the figures of these names.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpsmc_audit.exact.averages import exact_mean, worst_errors
from dpsmc_audit.exact.calibration import MECHANISMS, private
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.expected.audit import Expected, ExpectedAudit
from dpsmc_audit.observers.informed.audit import Informed, InformedAudit
from dpsmc_audit.observers.marginal.audit import Marginal, MarginalAudit
from dpsmc_audit.report.figures import save, sweep_figure
from dpsmc_audit.report.style import new_figure, tidy
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Setting
from dpsmc_audit.tasks.paper import P_PHI, P
from experiments.sensitivity import LOOKS, TEST

TOP = Path(__file__).parent.parent
RESULTS = TOP / "experiments" / "results"
EPSILON, SEQUENCES = 0.01, 500
EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 31), EPSILON * (1.0 - np.geomspace(1e-4, 0.1, 10))])
TITLES = {
    "expected": "expected: the paper's definition\n(an average, in bins of 140)",
    "marginal": "marginal: sees one released result",
    "informed": "informed: knows all other samples\n(average of 500 sequences)",
}


def audited(name: str, notion: str) -> ExpectedAudit | MarginalAudit | InformedAudit:
    mechanism, grid = private(MECHANISMS[name], TEST, EPSILON), EPSILONS.tolist()
    if notion == "expected":
        return audit(Setting(TEST, mechanism, P_PHI), EPSILON, Expected(epsilons=grid), engine="exact")
    if notion == "marginal":
        return audit(Setting(TEST, mechanism, P_PHI), EPSILON, Marginal(epsilons=grid), engine="exact")
    return audit(
        Setting(TEST, mechanism, P_PHI),
        EPSILON,
        Informed(sequences=SEQUENCES, epsilons=grid),
        sampling=Sampling(seed=1),
    )


def rows_of(name: str, notion: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """The row of one mechanism and observer, and its profile."""
    mechanism, judged = private(MECHANISMS[name], TEST, EPSILON), audited(name, notion)
    worst, found = worst_errors(TEST, mechanism), judged.leakage
    row = {
        "mechanism": name,
        "notion": notion,
        "epsilon": EPSILON,
        "samples_exact": exact_mean(Setting(TEST, mechanism, P_PHI)).value,
        "fp_worst": worst.fp.value,
        "fn_worst": worst.fn.value,
        "verdict": judged.verdict,
        "total_variation": found.total_variation,
        "privacy_delta_at_epsilon": found.profile.at(EPSILON),
        "privacy_delta_at_2_epsilon": found.profile.at(2.0 * EPSILON),
        "log_ratio": math.nan if found.best is None else found.best.log_ratio,
    }
    delta = np.maximum(found.profile.delta_1_over_0, found.profile.delta_0_over_1)
    profile = pd.DataFrame({"mechanism": name, "notion": notion, "epsilon": found.profile.epsilon, "delta": delta})
    return row, profile


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    rows, profiles = zip(*(rows_of(name, notion) for name in LOOKS for notion in TITLES), strict=True)
    return pd.DataFrame(rows), pd.concat(profiles, ignore_index=True)


def observers_figure(rows: pd.DataFrame) -> Figure:
    """That of ``+sweep=observers``, wide enough for its longest numbers."""
    points = [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]
    drawn = sweep_figure([point | {"observer": point["notion"]} for point in points], ["mechanism"])
    drawn.set_size_inches(9.5, 4.6)
    return drawn


def profiles_figure(profiles: pd.DataFrame) -> Figure:
    drawn = new_figure(11.0, 4.6)
    panels = drawn.subplots(1, 3, sharey=True)
    for axes, (notion, title) in zip(panels, TITLES.items(), strict=True):
        for name, (label, colour, style, _) in LOOKS.items():
            mine = profiles[(profiles.mechanism == name) & (profiles.notion == notion) & (profiles.epsilon > 0.0)]
            axes.plot(mine.epsilon, mine.delta.clip(lower=1e-12), color=colour, ls=style, lw=1.8, label=label)
        axes.axvline(EPSILON, color="black", lw=0.8)
        axes.annotate(r"claimed $\varepsilon$", (EPSILON * 1.08, 1.4e-6), fontsize=8.5)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(1e-6, 2.0)
        axes.set_xlabel(r"$\varepsilon'$")
        axes.set_title(title, fontsize=9.5)
        tidy(axes)
    panels[0].set_ylabel(r"$\delta$ that $(\varepsilon', \delta)$-privacy needs")
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    drawn.suptitle(
        rf"Privacy profiles: $p$={P:g}, $p_\varphi$={P_PHI:g}, $\alpha=\delta=\varepsilon={EPSILON:g}$, $n=1$",
        fontsize=10.5,
    )
    return drawn


def main() -> None:
    rows, profiles = tables()
    for name, frame in (("observers", rows), ("profiles", profiles)):
        frame.to_csv(RESULTS / f"{name}.csv", index=False, lineterminator="\n", float_format="%.10g")
    save(observers_figure(rows), TOP / "figures" / "observers")
    save(profiles_figure(profiles), TOP / "figures" / "profiles")
    print(rows.to_string(index=False))


if __name__ == "__main__":
    main()
