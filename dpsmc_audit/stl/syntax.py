"""What a formula is made of: terms (numbers and signals), predicates over them, Boolean and temporal operators.

Nodes are plain data: `parser` reads them from text, `writer` writes them, `semantics` gives them their meaning.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from dpsmc_audit.errors import require

__all__ = [
    "DEEPEST",
    "WHOLE",
    "Always",
    "And",
    "Arithmetic",
    "Call",
    "Constant",
    "Eventually",
    "Implies",
    "Interval",
    "Negative",
    "Node",
    "Not",
    "Number",
    "Or",
    "Predicate",
    "Signal",
    "Until",
    "number_text",
    "walk",
]

DEEPEST = 100
"""Levels of nesting that a formula may have: few enough for recursion, more than a person writes."""


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number; whole numbers without a point."""
    return repr(value).removesuffix(".0")


@dataclass(frozen=True)
class Interval:
    """Seconds from now, both ends included; an end of inf is the end of the trace."""

    begin: float
    end: float

    def __post_init__(self) -> None:
        require(0.0 <= self.begin < math.inf, f"an interval begins at a time from 0 on, got {self}")
        require(self.begin <= self.end, f"an interval ends no earlier than it begins, got {self}")

    def __str__(self) -> str:
        return f"[{number_text(self.begin)},{number_text(self.end)}]"

    @property
    def reach(self) -> float:
        """How much of the future the interval needs at least: up to its end, or its begin if it has no end."""
        return self.begin if math.isinf(self.end) else self.end


WHOLE = Interval(0.0, math.inf)


class Node:
    """Any part of a formula."""

    depth: int

    def __post_init__(self) -> None:
        depth = 1 + max((part.depth for part in self.parts()), default=0)
        require(depth <= DEEPEST, f"the formula is nested more than {DEEPEST} levels deep")
        object.__setattr__(self, "depth", depth)

    def parts(self) -> Iterator[Node]:
        """The nodes right below this one, from left to right."""
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Node):
                    yield part


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it."""
    yield node
    for part in node.parts():
        yield from walk(part)


# --- terms ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number(Node):
    """A number from 0 on; negative ones are a `Negative` of it."""

    value: float

    def __post_init__(self) -> None:
        require(0.0 <= self.value < math.inf, f"a number must be finite, got {self.value}")
        super().__post_init__()


@dataclass(frozen=True)
class Signal(Node):
    name: str


@dataclass(frozen=True)
class Negative(Node):
    operand: Node


@dataclass(frozen=True)
class Arithmetic(Node):
    """``left sign right`` with one of the signs + - * /."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Call(Node):
    """abs or sqrt of one argument, min or max of several."""

    function: str
    arguments: tuple[Node, ...]


# --- formulas -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constant(Node):
    value: bool


@dataclass(frozen=True)
class Predicate(Node):
    """``left sign right`` with one of the signs < <= > >= == !=."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Not(Node):
    operand: Node


@dataclass(frozen=True)
class And(Node):
    operands: tuple[Node, ...]


@dataclass(frozen=True)
class Or(Node):
    operands: tuple[Node, ...]


@dataclass(frozen=True)
class Implies(Node):
    left: Node
    right: Node


@dataclass(frozen=True)
class Eventually(Node):
    interval: Interval
    operand: Node


@dataclass(frozen=True)
class Always(Node):
    interval: Interval
    operand: Node


@dataclass(frozen=True)
class Until(Node):
    left: Node
    interval: Interval
    right: Node
