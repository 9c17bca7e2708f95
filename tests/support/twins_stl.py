"""Plain-Python twin of the evaluator: signal temporal logic straight from its definition, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsmc_audit.stl import syntax
from dpsmc_audit.stl.syntax import Interval, Node

Signals = Mapping[str, Sequence[float]]

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda f, g: f < g,
    "<=": lambda f, g: f <= g,
    ">": lambda f, g: f > g,
    ">=": lambda f, g: f >= g,
    "==": lambda f, g: f == g,
    "!=": lambda f, g: f != g,
}
MARGIN: dict[str, Callable[[float, float], float]] = {
    "<": lambda f, g: g - f,
    "<=": lambda f, g: g - f,
    ">": lambda f, g: f - g,
    ">=": lambda f, g: f - g,
    "==": lambda f, g: -abs(f - g),
    "!=": lambda f, g: abs(f - g),
}
TERMS: dict[str, Callable[..., float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "abs": abs,
    "sqrt": math.sqrt,
    "min": min,
    "max": max,
}


def term(node: Node, signals: Signals, i: int) -> float:
    match node:
        case syntax.Number(value):
            return value
        case syntax.Signal(name):
            return signals[name][i]
        case syntax.Negative(operand):
            return -term(operand, signals, i)
        case syntax.Arithmetic(name, left, right):
            return TERMS[name](term(left, signals, i), term(right, signals, i))
        case syntax.Call(name, arguments):
            return TERMS[name](*(term(argument, signals, i) for argument in arguments))
    raise TypeError(node)


@dataclass
class Twin:
    """Values of a formula at every sample: bool for truth, where min is `and` and max is `or`; float for robustness."""

    signals: Signals
    step: float
    robust: bool

    @property
    def points(self) -> int:
        return len(next(iter(self.signals.values())))

    @property
    def true(self) -> Any:
        return math.inf if self.robust else True

    def negated(self, value: Any) -> Any:
        return -value if self.robust else not value

    def window(self, interval: Interval, i: int) -> list[int]:
        """Samples j of the trace with begin <= (j - i) * step <= end, up to rounding."""
        slack = 1e-6 * self.step
        times = {j: (j - i) * self.step for j in range(i, self.points)}
        return [j for j, time in times.items() if interval.begin - slack <= time <= interval.end + slack]

    def values(self, node: Node) -> list[Any]:  # noqa: PLR0911  # one line for each kind of node
        here = range(self.points)
        match node:
            case syntax.Constant(value):
                return [self.true if value else self.negated(self.true)] * self.points
            case syntax.Predicate(sign, left, right):
                side = (MARGIN if self.robust else COMPARE)[sign]
                return [side(term(left, self.signals, i), term(right, self.signals, i)) for i in here]
            case syntax.Not(operand):
                return [self.negated(value) for value in self.values(operand)]
            case syntax.And(operands):
                return [min(values) for values in zip(*map(self.values, operands), strict=True)]
            case syntax.Or(operands):
                return [max(values) for values in zip(*map(self.values, operands), strict=True)]
            case syntax.Implies(left, right):
                pairs = zip(self.values(left), self.values(right), strict=True)
                return [max(self.negated(a), b) for a, b in pairs]
            case syntax.Until(left, interval, right):
                phi, psi = self.values(left), self.values(right)
                return [self.until(phi, psi, i, self.window(interval, i)) for i in here]
            case syntax.Eventually(interval, operand):
                return self.values(syntax.Until(syntax.Constant(True), interval, operand))
            case syntax.Always(interval, operand):
                inner = self.values(operand)
                return [min((inner[j] for j in self.window(interval, i)), default=self.true) for i in here]
        raise TypeError(node)

    def until(self, phi: list[Any], psi: list[Any], i: int, window: list[int]) -> Any:
        """psi at some sample of the window, phi at all from now to before it."""
        return max((min([psi[j], *phi[i:j]]) for j in window), default=self.negated(self.true))
