"""The suite's kernels against a plain scalar loop in C, on the first row of Table 1, one core."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dpsmc_audit.mechanisms import Exponential
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.walks.averages import exact_sd
from dpsmc_audit.walks.monte_carlo import draw_runs

Ratios = dict[str, tuple[float, str]]

P_PHI, EPSILON = 0.84, 0.01
TEST = Sprt(0.73, 0.01, 0.01)
LAW = Exponential.private(TEST, EPSILON)


def alternate(contenders: dict[str, Callable[[], int]], rounds: int = 15) -> dict[str, float]:
    """Runs per second of thread time, best of several rounds in which the contenders take turns."""
    best = dict.fromkeys(contenders, 0.0)
    for turn in range(rounds + 1):
        for name, work in contenders.items():
            started = time.thread_time()
            runs = work()
            if turn:  # the first turn compiles and warms up
                best[name] = max(best[name], runs / (time.thread_time() - started))
    return best


def compiled() -> ctypes.CDLL | None:
    """walks.c, compiled here and now; None where there is no C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    library = Path(tempfile.mkdtemp()) / "walks.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", library, Path(__file__).with_name("walks.c"), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def scalar_c(library: ctypes.CDLL, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """(tau, decision) by the scalar loop in C."""
    tau, decision = np.empty(runs, np.int64), np.empty(runs, np.int8)
    numbers = (LAW.rate, TEST.s_plus, TEST.s_minus, TEST.b_up, P_PHI)
    pointers = (tau.ctypes.data_as(ctypes.c_void_p), decision.ctypes.data_as(ctypes.c_void_p))
    library.scalar_steps(ctypes.c_uint64(1), ctypes.c_int64(runs), *map(ctypes.c_double, numbers), *pointers)
    return tau, decision


def kernel_ratios() -> Ratios:
    library = compiled()
    if library is None:
        print("no C compiler: the comparison with C is left out")
        return {}
    few, many = 4_000, 40_000

    def c() -> int:
        return int(scalar_c(library, few)[0].size)

    def steps() -> int:
        return draw_runs(TEST, LAW, P_PHI, few, kernel="steps").tau.size

    def jumps() -> int:
        return draw_runs(TEST, LAW, P_PHI, many, kernel="jumps").tau.size

    # the three sample the same law: means within five standard errors of each other
    sampled = [
        scalar_c(library, many)[0],
        *(draw_runs(TEST, LAW, P_PHI, many, kernel=k).tau for k in ("steps", "jumps")),
    ]
    assert np.ptp([tau.mean() for tau in sampled]) < 5 * exact_sd(TEST, LAW, P_PHI).value * np.sqrt(2 / many)
    speed = alternate({"c": c, "steps": steps, "jumps": jumps})
    started = time.thread_time()
    scalar_c(library, 100_000)
    tenth = time.thread_time() - started
    million = time.thread_time()
    draw_runs(TEST, LAW, P_PHI, 1_000_000)
    million = time.thread_time() - million
    method = "runs per second of thread time, best of 15 rounds in turn, alpha = delta = epsilon = 0.01"
    return {
        "kernel_vs_c_scalar": (speed["steps"] / speed["c"], f"sample by sample against scalar C; {method}"),
        "jumps_vs_c_scalar": (speed["jumps"] / speed["c"], f"binomial jumps against scalar C; {method}"),
        "million_runs_vs_c_scalar": (
            10 * tenth / million,
            "10^6 runs by jumps against ten times 10^5 runs in scalar C",
        ),
    }
