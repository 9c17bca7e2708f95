"""Two threads against one, by the clock on the wall, beside what the machine gives to two threads that share nothing.

On a machine that others use the ratios say little; the control says how much. It runs the bare jumps kernel, which
never asks for the interpreter, once in one thread and at the same time in two.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import cast

import numpy as np

from benchmarks.measure import EPSILON, LAW, P_PHI, TEST, Ratio, Ratios
from dpsmc_audit.mechanisms import NoNoise
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.expected.audit import Expected
from dpsmc_audit.runs.execution import Execution
from dpsmc_audit.sampling import kernels
from dpsmc_audit.sampling.jump_tables import jump_tables
from dpsmc_audit.sampling.pairs import draw_excess, pair_sums
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import MOST_RUNS, walk_arguments
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.tasks.simulate import simulate

__all__ = ["thread_ratios"]

TWO = Execution("threads", 2)
RUNS, PAIRS, FEW_PAIRS, ROUNDS, TARGET = 4_000_000, 40_000, 5_000, 5, 1.7


def _control(threads: int) -> None:
    """As many runs as `simulate` makes, split between threads beforehand; every block has the same draws of L."""
    numbers, none = np.arange(MOST_RUNS), np.zeros(MOST_RUNS, np.int64)
    excess = LAW.quantile((numbers + 0.5) / MOST_RUNS)
    start = (np.uint64(1), numbers, none, none, excess, *walk_arguments(TEST, P_PHI)[:4])
    kernel = cast(Callable[..., None], kernels._jumps)

    def work() -> None:
        tau, decision = np.empty(MOST_RUNS, np.int64), np.empty(MOST_RUNS, np.int8)
        for _ in range(0, RUNS // threads, MOST_RUNS):
            kernel(*start, *jump_tables(P_PHI), 10**7, tau, decision)

    others = [Thread(target=work) for _ in range(threads)]
    for other in others:
        other.start()
    for other in others:
        other.join()


def _seconds(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Wall seconds, best of several rounds in turn."""
    best = dict.fromkeys(works, float("inf"))
    for turn in range(rounds + 1):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if turn:
                best[name] = min(best[name], time.perf_counter() - started)
    return best


def thread_ratios() -> Ratios:
    """The results are compared too: threads change none."""

    def simulated(execution: Execution) -> object:
        return simulate(Setting(TEST, LAW, P_PHI), RUNS, sampling=Sampling(execution=execution)).tally

    def audited(execution: Execution) -> object:
        found = audit(Setting(TEST, LAW, P_PHI), EPSILON, Expected(pairs=PAIRS), sampling=Sampling(execution=execution))
        return found.verdict, found.histogram.p1.tolist(), found.histogram.p0.tolist()

    assert simulated(Execution()) == simulated(TWO), "threads change a simulation"
    assert audited(Execution()) == audited(TWO), "threads change an audit"
    excess = draw_excess(LAW, 10_000, 1)

    def passed(execution: Execution) -> object:
        return pair_sums(
            Adjacent(Setting(TEST, NoNoise(), P_PHI), (1,)),
            excess,
            FEW_PAIRS,
            sampling=Sampling(seed=1, max_steps=10**7, execution=execution),
        ).sums.sum()

    assert passed(Execution()) == passed(TWO), "threads change the sums over pairs"
    short = _seconds(
        {
            "records_one": lambda: passed(Execution()),
            "records_two": lambda: passed(TWO),
            "one": lambda: simulated(Execution()),
            "two": lambda: simulated(TWO),
            "control_one": lambda: _control(1),
            "control_two": lambda: _control(2),
        },
        ROUNDS,
    )
    long = _seconds({"one": lambda: audited(Execution()), "two": lambda: audited(TWO)}, 2)
    possible = short["control_one"] / short["control_two"]
    method = "seconds on the wall, best of {} rounds in turn, identical results checked; control in the details"

    def ratio(found: dict[str, float], what: str, rounds: int) -> Ratio:
        details = {
            "seconds_one": round(found["one"], 3),
            "seconds_two": round(found["two"], 3),
            "control": round(possible, 3),
        }
        return Ratio(found["one"] / found["two"], f"{what}; {method.format(rounds)}", TARGET, details=details)

    records = {"one": short["records_one"], "two": short["records_two"]}
    return {
        "threads_2_vs_1": ratio(short, f"simulate, {RUNS} runs", ROUNDS),
        "threads_2_vs_1_audit": ratio(long, f"audit, {PAIRS} pairs, 10^4 draws of L, exact laws included", 2),
        "threads_2_vs_1_records": ratio(records, f"sums over {FEW_PAIRS} pairs for 10^4 draws of L", ROUNDS),
    }
