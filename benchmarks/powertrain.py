"""Traces of the powertrain against the time that the paper's table implies for one, 134 ms in Simulink."""

from __future__ import annotations

from benchmarks.measure import Ratio, Ratios, alternate
from dpsmc_audit.models.powertrain import Powertrain

PAPER_SECONDS = 0.134
"""One sample in the paper: time over mean samples in the first row of its Table 1 (in the others 0.134 to 0.146)."""
TRACES = 500


def powertrain_ratios() -> Ratios:
    def work(step: float) -> int:
        return Powertrain(step=step).traces(0, TRACES, seed=1).count

    speed = alternate({"fine": lambda: work(0.001), "coarse": lambda: work(0.005)}, rounds=7)
    method = "traces of 1 s per second of thread time, one core, best of 7, against 134 ms each (another machine)"
    return {
        "powertrain_vs_paper": Ratio(PAPER_SECONDS * speed["fine"], f"steps of 1 ms; {method}"),
        "powertrain_5ms_vs_paper": Ratio(PAPER_SECONDS * speed["coarse"], f"steps of 5 ms; {method}"),
    }
