"""The suite's kernels against plain alternatives and against C, on the first row of Table 1, one core."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import in_c, plain
from benchmarks.measure import LAW, P_PHI, TEST, Ratio, Ratios, alternate
from dpsmc_audit.exact.averages import exact_mean, exact_sd
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Setting

__all__ = ["kernel_ratios"]

ROUNDS, JUMP_ROUNDS, MANY = 15, 400, 8_192
CHECKED = {"python": 300, "numpy": 2_000}
"""Runs whose mean is checked, where 40 000 would take too long."""


def _times() -> dict[str, tuple[int, Callable[[int, int], Any]]]:
    """By name: runs in a turn, and (runs, seed) to their termination times."""
    return {
        "python": (10, plain.pure_python),
        "numpy": (1_000, plain.numpy_blocks),
        "numba, np.random": (1_000, plain.numba_random),
        "numba, own generator": (2_000, plain.numba_generator),
        "C, scalar": (4_000, lambda runs, seed: in_c.scalar_steps(runs, seed)[0]),
        "suite, steps": (
            4_000,
            lambda runs, seed: (
                draw_runs(Setting(TEST, LAW, P_PHI), runs, kernel="steps", sampling=Sampling(seed=seed)).tau
            ),
        ),
        "C, jumps": (MANY, lambda runs, seed: in_c.binomial_jumps(runs, seed)[0]),
        "suite, jumps": (
            MANY,
            lambda runs, seed: draw_runs(Setting(TEST, LAW, P_PHI), runs, sampling=Sampling(seed=seed)).tau,
        ),
    }


def _check(times: dict[str, tuple[int, Callable[[int, int], Any]]]) -> None:
    """All sample the same law (means within five standard errors of the exact one); both jumps make the same runs."""
    mean, spread = exact_mean(Setting(TEST, LAW, P_PHI)).value, exact_sd(Setting(TEST, LAW, P_PHI)).value
    for name, (_, draw) in times.items():
        runs = CHECKED.get(name, 40_000)
        assert abs(np.mean(draw(runs, 1)) - mean) < 5 * spread / runs**0.5, f"{name} samples another law"
    tau, decision = in_c.binomial_jumps(40_000, 1)
    ours = draw_runs(Setting(TEST, LAW, P_PHI), 40_000, sampling=Sampling(seed=1))
    assert np.array_equal(tau, ours.tau), "the two jumps disagree"
    assert np.array_equal(decision, ours.decision), "the two jumps disagree"


def _turns(draw: Callable[[int, int], Any], runs: int) -> Callable[[], float]:
    """Samples of new runs every time: on the same ones a processor learns how to guess the branches."""
    seeds = itertools.count(1)
    return lambda: float(np.sum(draw(runs, next(seeds))))


def _million() -> Ratio:
    """10^6 runs by jumps, and a tenth as many in scalar C."""
    started = time.thread_time()
    in_c.scalar_steps(100_000, 1)
    tenth = time.thread_time() - started
    started = time.thread_time()
    draw_runs(Setting(TEST, LAW, P_PHI), 1_000_000)
    return Ratio(
        10 * tenth / (time.thread_time() - started), "10^6 runs by jumps against ten times 10^5 runs in scalar C"
    )


def kernel_ratios() -> Ratios:
    """Samples per second of thread time, taking turns."""
    if in_c.library() is None:
        print("no C compiler: kernels are not compared with C, and nothing of this part is written")
        return {}
    times = _times()
    _check(times)
    turns = {name: _turns(draw, runs) for name, (runs, draw) in times.items()}
    speed = alternate(turns, ROUNDS)
    jumps = alternate({name: turns[name] for name in ("C, jumps", "suite, jumps")}, JUMP_ROUNDS)
    what = "samples per second of thread time, one core, best of {} rounds in turn, alpha = delta = epsilon = 0.01"
    method = what.format(ROUNDS)

    def ratio(one: str, other: str, text: str, at_least: float | None = None) -> Ratio:
        measured = jumps if other == "C, jumps" else speed
        rates = {name: float(f"{measured[name]:.4g}") for name in (one, other)}
        return Ratio(measured[one] / measured[other], text, at_least, details={"samples_per_second": rates})

    c = "C, scalar"
    return {
        "python_vs_c_scalar": ratio("python", c, f"plain Python against scalar C; {method}"),
        "numpy_vs_c_scalar": ratio("numpy", c, f"NumPy, blocks of 64 samples of many runs, against scalar C; {method}"),
        "numba_vs_c_scalar": ratio("numba, np.random", c, f"Numba with np.random against scalar C; {method}"),
        "numba_generator_vs_c_scalar": ratio(
            "numba, own generator", c, f"Numba with the suite's generator, a word a sample, against scalar C; {method}"
        ),
        "kernel_vs_c_scalar": ratio("suite, steps", c, f"sample by sample against scalar C; {method}", 1.0),
        "jumps_vs_c_scalar": ratio("suite, jumps", c, f"binomial jumps against scalar C; {method}"),
        "jumps_vs_c_jumps": ratio(
            "suite, jumps",
            "C, jumps",
            "binomial jumps, draws of L included, against the same in C with four walks interleaved, identical runs"
            f" checked; {what.format(JUMP_ROUNDS)}",
            0.9,
        ),
        "million_runs_vs_c_scalar": _million(),
    }
