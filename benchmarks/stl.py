"""Temporal formulas on 10^5 traces of 1001 points: against NumPy by hand, a loop in Python and, if there is one, rtamt.

rtamt needs an environment of its own (see ``tests/support/oracles/rtamt_answers.py``); ``RTAMT_PYTHON`` names its
interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Ratio, Ratios, alternate
from dpsmc_audit.stl import parse
from dpsmc_audit.stl.traces import Traces

ALWAYS = "always[0.8,1] (abs(e) < 0.05)"
UNTIL = "always[0,0.5] ((abs(e) < 0.05) until[0.1,0.3] (x > 0))"
COUNT, POINTS, FEW, ROUNDS = 100_000, 1001, 20, 5
RTAMT_SECONDS = 0.003
"""What rtamt 0.4 took for such a trace of 1000 points in discrete time, on a machine like the others'."""

RTAMT = """
import json, sys, time, rtamt
text, columns = json.load(sys.stdin)
spec = rtamt.StlDiscreteTimeSpecification()
for name in ("e", "x", "out"):
    spec.declare_var(name, "float")
spec.spec = "out = " + text
spec.set_sampling_period(1, "ms", 0.1)
spec.parse()
best = float("inf")
for _ in range(3):
    columns["time"] = [j / 1000 for j in range(len(columns["e"]))]
    started = time.thread_time()
    value = spec.evaluate(dict(columns))[0][1]
    best = min(best, time.thread_time() - started)
print(json.dumps([best, value]))
"""


def batch(count: int) -> Traces:
    """Random walks that leave and enter the regions of the formulas."""
    rng = np.random.default_rng(1)
    e, x = np.empty((count, POINTS)), np.empty((count, POINTS))
    for rows in np.array_split(np.arange(count), max(1, count // 1000)):
        e[rows] = 0.002 * np.cumsum(rng.normal(size=(rows.size, POINTS)), axis=1)
        x[rows] = np.cumsum(rng.normal(size=(rows.size, POINTS)), axis=1)
    return Traces(0.001, {"e": e, "x": x})


def by_hand(traces: Traces) -> np.ndarray:
    return np.asarray(np.all(np.abs(traces.signals["e"][:, 800:1001]) < 0.05, axis=1))


def in_python(e: list[float], x: list[float]) -> bool:
    """The until formula by loops that look no further than they must."""

    def holds(i: int) -> bool:
        for j in range(i, i + 301):
            if j >= i + 100 and x[j] > 0.0:
                return True
            if not abs(e[j]) < 0.05:
                return False
        return False

    return all(holds(i) for i in range(501))


def by_rtamt(text: str, traces: Traces) -> float | None:
    """Seconds that rtamt takes for the first trace, its answer compared with ours; None where there is no rtamt."""
    interpreter = os.environ.get("RTAMT_PYTHON")
    if interpreter is None:
        return None
    question = json.dumps([text, {name: values[0].tolist() for name, values in traces.signals.items()}])
    done = subprocess.run([interpreter, "-c", RTAMT], input=question, capture_output=True, text=True, check=True)
    seconds, value = json.loads(done.stdout)
    assert value == parse(text).robustness(traces)[0], "the two monitors disagree"
    return float(seconds)


def stl_ratios(count: int = COUNT) -> Ratios:
    traces = batch(count)
    always, until = parse(ALWAYS), parse(UNTIL)
    few = [(traces.signals["e"][i].tolist(), traces.signals["x"][i].tolist()) for i in range(FEW)]
    assert np.array_equal(always.truth(traces), by_hand(traces)), "the two ways disagree"
    assert [in_python(*row) for row in few] == until.truth(traces)[:FEW].tolist(), "the two ways disagree"
    contenders: dict[str, Callable[[], float]] = {
        "always": lambda: always.truth(traces).size,
        "by_hand": lambda: by_hand(traces).size,
        "until": lambda: until.truth(traces).size,
        "in_python": lambda: len([in_python(*row) for row in few]),
    }
    best = alternate(contenders, ROUNDS)
    ratios = {
        "stl_always_vs_numpy": Ratio(best["always"] / best["by_hand"], f"traces per second, {ALWAYS}, one core"),
        "stl_vs_rtamt": Ratio(
            best["always"] * RTAMT_SECONDS, f"traces per second, {ALWAYS}, against rtamt's 3 ms a trace"
        ),
        "stl_until_vs_python": Ratio(best["until"] / best["in_python"], f"traces per second, {UNTIL}, one core"),
    }
    for name, text in (("always", ALWAYS), ("until", UNTIL)):
        seconds = by_rtamt(text, traces)
        if seconds is not None:
            ratios[f"stl_{name}_vs_rtamt"] = Ratio(best[name] * seconds, f"traces per second, {text}, one core")
    return ratios
