"""Robustness of random formulas on random traces by rtamt 0.4.10, an independent monitor, in discrete time.

rtamt pins an ANTLR runtime that Hydra cannot use, so it runs in an environment of its own::

    python3 -m venv rtamt-env && rtamt-env/bin/pip install rtamt==0.4.10 numpy
    rtamt-env/bin/python tests/support/oracles/rtamt_answers.py

writes ``rtamt_answers.json`` next to this file. The formulas fit into the traces, as beyond their end the two programs
differ: there rtamt goes on with what is left and we refuse. Operators without an interval are among them.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

SEED, COUNT, TRACES, POINTS = 20, 720, 5, 28
STEPS = (1.0, 0.5, 0.1)
NAMES = ("x", "y", "z")


def walk(rng: random.Random) -> list[float]:
    """A random walk that often returns, in hundredths, so that margins of exactly 0 occur."""
    values, value = [], rng.uniform(-1.0, 1.0)
    for _ in range(POINTS):
        value = 0.8 * value + rng.gauss(0.0, 0.7)
        values.append(round(value, 2))
    return values


def term(rng: random.Random) -> str:
    number = f"{rng.randint(0, 15) / 10}"
    a, b = rng.choice(NAMES), rng.choice(NAMES)
    return rng.choice([a, a, a, f"abs({a})", f"({a} + {b})", f"({a} - {number})", f"({a} * {b})", f"abs({a} - {b})"])


def predicate(rng: random.Random) -> str:
    sign = rng.choice(("<", "<=", ">", ">=") * 2 + ("==", "!="))
    return f"({term(rng)} {sign} {rng.choice(['', '-'])}{rng.randint(0, 12) / 10})"


def interval(rng: random.Random, budget: int, step: float) -> tuple[str, int]:
    """An interval of whole samples within the budget, and how much of the budget it takes."""
    end = rng.randint(0, budget)
    begin = rng.randint(0, end) if rng.random() < 0.6 else 0
    return f"[{round(begin * step, 6)},{round(end * step, 6)}]", end


def formula(rng: random.Random, depth: int, budget: int, step: float, *, unbounded: bool) -> str:
    """A formula that needs at most `budget` samples of the future."""
    if depth == 0:
        return predicate(rng)

    def part(left: int) -> str:
        return formula(rng, depth - 1, left, step, unbounded=unbounded)

    kind = rng.choice(("until", "until", "until", "always", "eventually", "not", "and", "or", "implies", "predicate"))
    if kind == "predicate":
        return predicate(rng)
    if kind == "not":
        return f"(not {part(budget)})"
    if kind in {"and", "or", "implies"}:
        return f"({part(budget)} {kind} {part(budget)})"
    bounds, taken = ("", 0) if unbounded and rng.random() < 0.4 else interval(rng, budget, step)
    if kind == "until":
        return f"({part(budget - taken)} until{bounds} {part(budget - taken)})"
    return f"({kind}{bounds} {part(budget - taken)})"


def answers(text: str, step: float, traces: list[dict[str, list[float]]]) -> list[float]:
    import rtamt  # type: ignore[import-not-found]

    spec: Any = rtamt.StlDiscreteTimeSpecification()
    for name in (*NAMES, "out"):
        spec.declare_var(name, "float")
    spec.spec = f"out = {text.replace('!=', '!==')}"
    spec.set_sampling_period(round(step * 1000), "ms", 0.1)
    spec.parse()
    times = [round(j * step, 6) for j in range(POINTS)]
    return [spec.evaluate({"time": times} | trace)[0][1] for trace in traces]


def main() -> None:
    rng = random.Random(SEED)
    traces = [{name: walk(rng) for name in NAMES} for _ in range(TRACES)]
    cases = []
    for number in range(COUNT):
        step, depth = STEPS[number % 3], 1 + number // 3 % 3
        text = formula(rng, depth, POINTS - 1, step, unbounded=number % 4 == 0)
        cases.append({"formula": text, "step": step, "robustness": answers(text, step, traces)})
    lines = ",\n".join(json.dumps(case) for case in cases)
    signals = json.dumps({name: [trace[name] for trace in traces] for name in NAMES})
    path = Path(__file__).with_suffix(".json")
    path.write_text(f'{{"signals": {signals},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
