"""How cost grows: slopes of log time over log size, and peak memory, which does not grow.

Times are thread time, best of a few, sizes in turn; memory is the peak of a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks.measure import EPSILON, LAW, P_PHI, TEST, Ratio, Ratios, alternate
from dpsmc_audit.exact.fixed import exit_law
from dpsmc_audit.exact.laws import _exact_law, exact_law
from dpsmc_audit.mechanisms import Exponential, NoNoise
from dpsmc_audit.observers.expected.picture import BATCH
from dpsmc_audit.sampling.pairs import draw_excess, pair_sums
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["growth_ratios", "memory_ratios", "peak_of"]

Work = Callable[[float], object]

_PEAK = """
from pathlib import Path
from benchmarks.measure import EPSILON, LAW, P_PHI, TEST
from dpsmc_audit.runs.execution import Execution
{work}
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in lines if line.startswith("VmHWM")).split()[1])
"""
"""The peak of this very process: what getrusage tells also counts the process that started it."""
_SIMULATE = """
from dpsmc_audit.tasks.simulate import simulate
simulate(Setting(TEST, LAW, P_PHI), {size}, Sampling(execution=Execution("threads", 2)))
"""
_PAIRS = """
from dpsmc_audit.sampling.pairs import draw_excess, pair_sums
pair_sums(Adjacent(Setting(TEST, LAW, P_PHI)), draw_excess(LAW, 10_000, 1), {size}, Sampling())
"""


def _slope(work: Work, sizes: Iterable[float], rounds: int = 4) -> tuple[float, list[list[float]]]:
    """Least squares through (log size, log time) of the larger half of the sizes, and all points."""
    points = [float(size) for size in sizes]

    def turn(size: float) -> Callable[[], float]:
        def once() -> float:
            work(size)
            return 1.0

        return once

    speed = alternate({f"{size}": turn(size) for size in points}, rounds)
    seconds = [1.0 / speed[f"{size}"] for size in points]
    half = len(points) // 2  # below, what is paid once hides the growth
    slope = float(np.polyfit(np.log(points[half:]), np.log(seconds[half:]), 1)[0])
    return slope, [[size, float(f"{time:.4g}")] for size, time in zip(points, seconds, strict=True)]


def _sums(pairs: int, draws: int) -> None:
    """As an audit does it: a batch of draws of L after the other, all of them on the same pairs."""
    for first in range(0, draws, BATCH):
        excess = draw_excess(LAW, min(BATCH, draws - first), 1, first)
        pair_sums(
            Adjacent(Setting(TEST, NoNoise(), P_PHI), (1,)), excess, pairs, sampling=Sampling(seed=1, max_steps=10**7)
        )


def _law(setting: Setting, entry: int = 0) -> object:
    _exact_law.cache_clear()
    return exact_law(setting, {entry: 1} if entry else None)


def _at(delta: float, epsilon: float) -> Setting:
    test = Sprt(0.73, delta, 0.01)
    return Setting(test, Exponential.private(test, epsilon), P_PHI)


def growth_ratios() -> Ratios:
    """Slopes in every size that a user chooses."""
    epsilons, deltas = 1.0 / np.geomspace(0.1, 0.002, 6), 1.0 / np.geomspace(0.08, 0.005, 6)
    studies: dict[str, tuple[str, Work, Iterable[float], float | None]] = {
        "runs": (
            "runs by jumps",
            lambda x: draw_runs(Setting(TEST, LAW, P_PHI), int(x)),
            2.0 ** np.arange(14, 21),
            1.1,
        ),
        "pairs": (
            "one pass over pairs, 10^4 draws of L",
            lambda x: _sums(int(x), 10_000),
            2.0 ** np.arange(7, 13),
            1.1,
        ),
        "draws": ("draws of L on 500 pairs", lambda x: _sums(500, int(x)), 4.0 ** np.arange(5, 11), 1.15),
        "entry": (
            "exact law with entry n given",
            lambda x: _law(Setting(TEST, LAW, P_PHI), int(x)),
            2.0 ** np.arange(4, 11),
            None,
        ),
        "entry_runs": (
            "2^16 runs with entry n given",
            lambda x: draw_runs(Setting(TEST, LAW, P_PHI), 1 << 16, entries=(int(x),)),
            2.0 ** np.arange(4, 11),
            None,
        ),
        "inverse_epsilon": (
            "2^16 runs by jumps at this 1/epsilon",
            lambda x: draw_runs(_at(0.01, 1.0 / x), 1 << 16),
            epsilons,
            None,
        ),
        "inverse_epsilon_law": (
            "exact law at this 1/epsilon",
            lambda x: _law(_at(0.01, 1.0 / x)),
            epsilons,
            None,
        ),
        "inverse_delta": (
            "2^16 runs by jumps at this 1/delta",
            lambda x: draw_runs(_at(1.0 / x, EPSILON), 1 << 16),
            deltas,
            None,
        ),
        "inverse_delta_law": (
            "exact law for fixed bounds at this 1/delta",
            lambda x: exit_law(_at(1.0 / x, EPSILON).test, P_PHI, 0.0, {1: 1}),
            deltas,
            None,
        ),
    }
    found = {}
    for name, (what, work, sizes, at_most) in studies.items():
        slope, points = _slope(work, sizes)
        method = (
            f"{what}: slope of log thread time over log size, larger half of the sizes, one core, best of 4 in turn"
        )
        found[f"slope_{name}"] = Ratio(slope, method, at_most=at_most, details={"points": points})
    return found


def peak_of(work: str, size: int) -> float:
    """Megabytes, of a process that does only this."""
    program = _PEAK.format(work=work.format(size=size))
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return round(float(done.stdout) / 1024.0, 1)


def memory_ratios() -> Ratios:
    """Peak memory of the largest job against that of the smallest."""
    if not Path("/proc/self/status").exists():
        print("no /proc: peak memory is not measured")
        return {}
    studies = {
        "memory_100_times_the_runs": ("simulate, two threads", _SIMULATE, (10**6, 10**7, 10**8)),
        "memory_100_times_the_pairs": ("one pass over pairs, 10^4 draws of L", _PAIRS, (10**3, 10**4, 10**5)),
    }
    found = {}
    for name, (what, work, sizes) in studies.items():
        points = [[float(size), peak_of(work, size)] for size in sizes]
        method = f"{what}: peak resident memory (in MB in the details) of a process of its own, largest to smallest"
        found[name] = Ratio(points[-1][1] / points[0][1], method, at_most=1.05, details={"points": points})
    return found
