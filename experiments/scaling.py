"""What large audits need: runs to refute Algorithm 2's claim, and what runs cost: ``python -m experiments.scaling``.

The observer sees one released (tau, o), the first sample is changed, and the claim is the epsilon that the noise was
made for. From the exact law of tau follows how many runs of either member an oracle needs on average to refute the
claim at 99 %, who knows both laws, and how many the auditor needs to refute it with probability 0.9, who has to learn
them. Costs are measured on one core, and the bytes are those of a block's runs as a process or a cluster sends them.

Writes ``experiments/results/scaling.csv``, which docs/scaling.md quotes.
"""

from __future__ import annotations

import math
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsmc_audit.evidence.claims import Dp
from dpsmc_audit.evidence.power import Laws, finds
from dpsmc_audit.exact.averages import exact_mean
from dpsmc_audit.mechanisms import Exponential
from dpsmc_audit.observers.marginal.law import _block, marginal_law
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import MOST_RUNS, block_size_for
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.paper import P_PHI, P

TOP = Path(__file__).parent.parent
RESULTS = TOP / "experiments" / "results" / "scaling.csv"
TEST = Sprt(P, delta=0.01, alpha=0.01)
EPSILONS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
MOST, LEVEL, CELLS = 2**50, 0.01, 2
"""The most runs that are tried, the level, and the number of cells for what learning costs: as with two, because the
auditor looks at early ends of a running time first. In 90 % of audits it took at most 50 400 runs for epsilon = 0.01
and a claim of 0.02, and 4 840 for the pair with epsilon = 0.05 of the benchmarks; this says 55 800 and 4 930."""


def laws_of_tau(epsilon: float) -> Laws:
    """The exact laws of the running time; the decision adds next to nothing."""
    law = marginal_law(Adjacent(Setting(TEST, Exponential.private(TEST, epsilon), P_PHI)))
    one, zero = (np.maximum(p.sum(axis=0), 0.0) for p in (law.p1, law.p0))
    kept = (one > 0.0) & (zero > 0.0)
    return one[kept], zero[kept]


def oracle(laws: Laws, epsilon: float) -> float:
    """Runs of either member on average: log(1/level) over the growth of the log capital per pair of runs."""
    one, zero = laws
    size = np.abs(np.log(one) - np.log(zero))
    right = np.where(size > epsilon, math.log1p(math.exp(-epsilon)) - np.log1p(np.exp(-size)), 0.0)
    wrong = np.where(size > epsilon, right - size + epsilon, 0.0)
    return float(math.log(1.0 / LEVEL) / (np.maximum(one, zero) * right + np.minimum(one, zero) * wrong).sum())


def runs_needed(laws: Laws, epsilon: float) -> int:
    """Runs of either member that refute the claim with probability 0.9."""
    claim = Dp(epsilon).points
    low, high = 1, 2
    while high < MOST and not finds(laws, claim, 2 * high, LEVEL, CELLS):
        low, high = high, 2 * high
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if finds(laws, claim, 2 * middle, LEVEL, CELLS) else (middle, high)
    return high


def event_runs(share: float, epsilon: float, excess: float = 0.1) -> int:
    """The same for an event of this probability, whose log ratio exceeds epsilon by a tenth of it."""
    other = share * math.exp(-(1.0 + excess) * epsilon)
    return runs_needed((np.array([share, 1.0 - share]), np.array([other, 1.0 - other])), epsilon)


def cost(epsilon: float) -> tuple[float, int]:
    """Nanoseconds for a run of either member, and bytes that a block of runs sends."""
    law = Exponential.private(TEST, epsilon)
    size = min(block_size_for(Setting(TEST, law, P_PHI), 10**7), MOST_RUNS)
    best = np.inf
    for first in range(0, 6 * size, size):
        begun = time.thread_time()
        block = _block(Adjacent(Setting(TEST, law, P_PHI)), Sampling(), first, size)
        best = min(best, time.thread_time() - begun)
    return best / (2 * size) * 1e9, len(pickle.dumps(block))


def row(epsilon: float) -> dict[str, Any]:
    laws = laws_of_tau(epsilon)
    nanoseconds, sent = cost(epsilon)
    samples = exact_mean(Setting(TEST, Exponential.private(TEST, epsilon), P_PHI)).value
    return {
        "epsilon": epsilon, "oracle": oracle(laws, epsilon), "runs": runs_needed(laws, epsilon), "samples": samples,
        "nanoseconds_per_run": nanoseconds, "bytes_per_block": sent,
    }  # fmt: skip


def main() -> None:
    rows = pd.DataFrame([row(epsilon) for epsilon in EPSILONS])
    rows.to_csv(RESULTS, index=False, float_format="%.6g")
    print(rows.to_string())


if __name__ == "__main__":
    main()
