"""What large audits need: runs to refute Algorithm 2's claim, and what runs cost: ``python -m experiments.scaling``.

The observer sees one released (tau, o), the first sample is changed, and the claim is the epsilon that the noise was
made for. Of all tails of the exact law the one is taken that needs the fewest runs of either member to refute the
claim by `method=split` at 99 % with probability 0.9, once it is chosen. Costs are measured on one core, and the
bytes are those of a block's sums as a process or a cluster sends them.

Writes ``experiments/results/scaling.csv``, which docs/scaling.md quotes.
"""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsmc_audit.evidence.bounds import shows
from dpsmc_audit.exact.averages import exact_mean
from dpsmc_audit.mechanisms import Exponential
from dpsmc_audit.numerics.ties import ranked
from dpsmc_audit.observers.marginal.law import _block, marginal_law
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import MOST_RUNS, block_size_for
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.paper import P_PHI, P

TOP = Path(__file__).parent.parent
RESULTS = TOP / "experiments" / "results" / "scaling.csv"
TEST = Sprt(P, delta=0.01, alpha=0.01)
EPSILONS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.001, 0.0001)
MOST = 2**50
JUDGED = 0.6
"""Of the runs, by `split`."""


def runs_needed(epsilon: float, confidence: float = 0.99) -> tuple[int, str, float, float]:
    """Runs of either member, the event, and its two probabilities."""
    law = marginal_law(Adjacent(Setting(TEST, Exponential.private(TEST, epsilon), P_PHI)))
    one, zero = np.cumsum(law.p1.sum(axis=0)), np.cumsum(law.p0.sum(axis=0))
    gain = one - np.exp(epsilon) * zero
    # about as many runs as make the gain four of its standard deviations
    about = np.where(gain > 1e-9, (one + zero) / np.maximum(gain, 1e-12) ** 2, np.inf)
    best = min((_runs_for(one[k], zero[k], epsilon, confidence), int(k)) for k in ranked(-about)[:12])
    return best[0], f"tau <= {best[1] + 1}", float(one[best[1]]), float(zero[best[1]])


def _runs_for(likely: float, other: float, epsilon: float, confidence: float) -> int:
    low, high = 1, 2
    while high < MOST and not shows(round(JUDGED * high), likely, other, epsilon, 0.0, 0.25 * (1.0 - confidence)):
        low, high = high, 2 * high
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        found = shows(round(JUDGED * middle), likely, other, epsilon, 0.0, 0.25 * (1.0 - confidence))
        low, high = (low, middle) if found else (middle, high)
    return high


def cost(epsilon: float) -> tuple[float, int]:
    """Nanoseconds for a run of either member, and bytes that a block of runs sends."""
    law = Exponential.private(TEST, epsilon)
    size = min(block_size_for(Setting(TEST, law, P_PHI), 10**7), MOST_RUNS)
    best = np.inf
    for first in range(0, 6 * size, size):
        begun = time.thread_time()
        block = _block(Adjacent(Setting(TEST, law, P_PHI)), Sampling(), False, first, size)
        best = min(best, time.thread_time() - begun)
    return best / (2 * size) * 1e9, len(pickle.dumps(block))


def row(epsilon: float) -> dict[str, Any]:
    runs, event, p1, p0 = runs_needed(epsilon)
    nanoseconds, sent = cost(epsilon)
    samples = exact_mean(Setting(TEST, Exponential.private(TEST, epsilon), P_PHI)).value
    return {
        "epsilon": epsilon, "event": event, "p1": p1, "p0": p0, "runs": runs, "samples": samples,
        "nanoseconds_per_run": nanoseconds, "bytes_per_block": sent,
    }  # fmt: skip


def main() -> None:
    rows = pd.DataFrame([row(epsilon) for epsilon in EPSILONS])
    rows.to_csv(RESULTS, index=False, float_format="%.6g")
    print(rows.to_string())


if __name__ == "__main__":
    main()
