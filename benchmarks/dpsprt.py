"""DP-SPRT: runs of the authors' package against ours, for the same mechanism on fresh samples."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.measure import Ratio, Ratios, alternate
from dpsmc_audit.zoo.dpsprt import DpSprt

__all__ = ["dpsprt_ratios"]

TEST, P, LONGEST, FEW, MANY, ROUNDS = DpSprt(0.3, 0.7, 0.05, 0.05, 1.0), 0.7, 640, 20, 2_000, 15
"""The study's test; samples that the package is given at once (it needs to be told), and runs in a turn."""


def dpsprt_ratios() -> Ratios:
    """Samples that decided runs took, per second; the package both at once and sample by sample."""
    try:
        from dpsprt.core import DPSPRT, dp_sprt_laplace
    except ImportError:
        print("no package dpsprt: the comparison with it is left out")
        return {}
    numbers, seeds = (TEST.mu0, TEST.mu1, TEST.alpha, TEST.beta, TEST.epsilon), itertools.count(1)

    def at_once() -> float:
        rng, total = np.random.default_rng(next(seeds)), 0
        for _ in range(FEW):
            data = (rng.random(LONGEST) < P).astype(int)
            total += dp_sprt_laplace(data, *numbers, int(rng.integers(2**31)))[1]
        return float(total)

    def one_by_one() -> float:
        rng, total = np.random.default_rng(next(seeds)), 0
        test = DPSPRT(*numbers)
        test.reset()
        stopped = False
        while not stopped:
            stopped = test.add_sample(int(rng.random() < P))[0]
            total += 1
        return float(total)

    def ours() -> float:
        return float(TEST.runs(P, MANY, np.random.default_rng(next(seeds)))[0].sum())

    speed = alternate({"at once": at_once, "one by one": one_by_one, "suite": ours}, ROUNDS)
    rates = {name: float(f"{rate:.4g}") for name, rate in speed.items()}
    method = f"samples per second of thread time, fresh samples with p = {P}, one core, best of {ROUNDS} rounds in turn"
    details = {"samples_per_second": rates}
    return {
        "dpsprt_vs_package": Ratio(
            speed["suite"] / speed["at once"],
            f"against dp_sprt_laplace, given {LONGEST} samples at once; {method}",
            details=details,
        ),
        "dpsprt_vs_package_streaming": Ratio(
            speed["suite"] / speed["one by one"], f"against DPSPRT.add_sample; {method}", details=details
        ),
    }
