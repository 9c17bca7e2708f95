"""What a formula is made of: terms (numbers and signals), predicates over them, Boolean and temporal operators.

Nodes are plain data. Their text is made by `text`, their meaning is given in `dpsmc_audit.stl.semantics`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from dpsmc_audit.sprt import require

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
    "text",
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


# --- text -----------------------------------------------------------------------------------------------------------

_SUM, _PRODUCT, _SIGNED, _ATOM = 1, 2, 3, 9
_IMPLIES, _OR, _AND, _UNTIL, _PREDICATE, _UNARY = 1, 2, 3, 4, 5, 6


def text(node: Node) -> str:
    """The node as text that parses back to it, with the parentheses it needs and some that help to read."""
    return _written(node)[0]


def _written(node: Node) -> tuple[str, int]:  # noqa: PLR0911  # one line for each kind of node
    """Text of a node and how tightly it holds together."""
    match node:
        case Number(value):
            return number_text(value), _ATOM
        case Signal(name):
            return name, _ATOM
        case Call(function, arguments):
            return f"{function}({', '.join(map(text, arguments))})", _ATOM
        case Constant(value):
            return str(value).lower(), _ATOM
        case Negative(operand):
            return f"-{_inside(operand, _ATOM)}", _SIGNED
        case Arithmetic(sign, left, right):
            level = _SUM if sign in "+-" else _PRODUCT
            return f"{_inside(left, level)} {sign} {_inside(right, level + 1)}", level
        case Predicate(sign, left, right):
            return f"{text(left)} {sign} {text(right)}", _PREDICATE
        case _:
            return _written_operator(node)


def _written_operator(node: Node) -> tuple[str, int]:  # noqa: PLR0911
    match node:
        case Not(operand):
            return f"not {_inside(operand, _ATOM)}", _UNARY
        case And(operands):
            return " and ".join(_inside(operand, _UNTIL) for operand in operands), _AND
        case Or(operands):
            return " or ".join(_inside(operand, _AND) for operand in operands), _OR
        case Implies(left, right):
            return f"{_inside(left, _OR)} implies {_inside(right, _OR)}", _IMPLIES
        case Eventually(interval, operand):
            return f"eventually{_bounds(interval)} {_inside(operand, _ATOM)}", _UNARY
        case Always(interval, operand):
            return f"always{_bounds(interval)} {_inside(operand, _ATOM)}", _UNARY
        case Until(left, interval, right):
            return f"{_inside(left, _UNARY)} until{_bounds(interval)} {_inside(right, _UNARY)}", _UNTIL
    raise TypeError(node)


def _inside(node: Node, level: int) -> str:
    """Text of a node, in parentheses if it holds together less tightly than its place asks for."""
    written, own = _written(node)
    return written if own >= level else f"({written})"


def _bounds(interval: Interval) -> str:
    return "" if interval == WHOLE else str(interval)
