"""What all benchmarks share: a ratio with its method, contenders that take turns, and the parameters of the paper."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpsmc_audit.mechanisms import Exponential
from dpsmc_audit.sprt import Sprt

__all__ = ["EPSILON", "LAW", "P_PHI", "TEST", "Ratio", "Ratios", "alternate", "seconds_of"]

P_PHI, EPSILON = 0.84, 0.01
TEST = Sprt(0.73, 0.01, 0.01)
LAW = Exponential.private(TEST, EPSILON)


@dataclass(frozen=True)
class Ratio:
    """A measured ratio (or slope), how it was measured, what is asked of it, and the numbers behind it."""

    value: float
    method: str
    at_least: float | None = None
    at_most: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def as_dict(self, machine: str) -> dict[str, Any]:
        """As ``results.json`` has it; parts may have been measured on different machines, so each names its own."""
        asked = {"at_least": self.at_least, "at_most": self.at_most}
        found: dict[str, Any] = {"ratio": float(f"{self.value:.4g}"), "method": self.method, "machine": machine}
        found |= {name: bound for name, bound in asked.items() if bound is not None}
        return found | ({"details": self.details} if self.details else {})


Ratios = dict[str, Ratio]


def alternate(
    contenders: dict[str, Callable[[], float]], rounds: int = 15, clock: Callable[[], float] = time.thread_time
) -> dict[str, float]:
    """Work per second, best of several rounds in which the contenders take turns; work() says how much it did."""
    best = dict.fromkeys(contenders, 0.0)
    for turn in range(rounds + 1):
        for name, work in contenders.items():
            started = clock()
            done = work()
            if turn:  # the first turn compiles and warms up
                best[name] = max(best[name], done / (clock() - started))
    return best


def seconds_of(work: Callable[[], object], rounds: int = 3, clock: Callable[[], float] = time.thread_time) -> float:
    """Of one call, best of several."""
    best = float("inf")
    for _ in range(rounds):
        started = clock()
        work()
        best = min(best, clock() - started)
    return best
