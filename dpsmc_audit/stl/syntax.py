"""The parts of a formula: terms (numbers and signals), predicates, Boolean operators and temporal operators.

Nodes are plain data. `parser` reads them from text, `writer` writes them as text, `semantics` evaluates them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from dpsmc_audit.errors import require

DEEPEST = 100
"""Largest depth of a formula. Evaluation is recursive, and Python limits recursion."""


def number_text(value: float) -> str:
    """Write a number so that it reads back as the same number.

    Parameters
    ----------
    value : float
        The number.

    Returns
    -------
    str
        The shortest such text. Whole numbers have no decimal point.
    """
    return repr(value).removesuffix(".0")


@dataclass(frozen=True)
class Interval:
    """A time interval, counted from now.

    Parameters
    ----------
    begin, end : float
        The two ends in seconds. Both belong to the interval. An end of inf is the end of the trace.
    """

    begin: float
    end: float

    def __post_init__(self) -> None:
        require(0.0 <= self.begin < math.inf, f"an interval begins at a time from 0 on, got {self}")
        require(self.begin <= self.end, f"an interval ends no earlier than it begins, got {self}")

    def __str__(self) -> str:
        return f"[{number_text(self.begin)},{number_text(self.end)}]"

    @property
    def reach(self) -> float:
        """Seconds that a trace must last: the end, or the begin if the end is inf."""
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
        """Yield the nodes directly below this one, from left to right.

        Yields
        ------
        Node
            Each of them.
        """
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            yield from (part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Node))


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes below it.

    Parameters
    ----------
    node : Node
        Where to start.

    Yields
    ------
    Node
        Each node, before the nodes below it.
    """
    yield node
    for part in node.parts():
        yield from walk(part)


def ahead(node: Node, reach: Callable[[Interval], float]) -> float:
    """Compute how far into the future a formula looks.

    Parameters
    ----------
    node : Node
        The formula.
    reach : callable
        How far one interval looks, in any unit.

    Returns
    -------
    float
        The largest sum of reaches over nested temporal operators.
    """
    below = max((ahead(part, reach) for part in node.parts()), default=0)
    return below + reach(node.interval) if isinstance(node, (Always, Eventually, Until)) else below


# --- terms ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number(Node):
    """A number, not negative. A negative number is a `Negative` of a `Number`.

    Parameters
    ----------
    value : float
        The number.
    """

    value: float

    def __post_init__(self) -> None:
        require(0.0 <= self.value < math.inf, f"a number must be finite, got {self.value}")
        super().__post_init__()


@dataclass(frozen=True)
class Signal(Node):
    """The value of a signal.

    Parameters
    ----------
    name : str
        The name of the signal.
    """

    name: str


@dataclass(frozen=True)
class Negative(Node):
    """Minus a term.

    Parameters
    ----------
    operand : Node
        The term.
    """

    operand: Node


@dataclass(frozen=True)
class Arithmetic(Node):
    """``left sign right`` with one of the signs + - * /.

    Parameters
    ----------
    sign : str
        The sign.
    left, right : Node
        The terms.
    """

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Call(Node):
    """abs or sqrt of one argument, min or max of several.

    Parameters
    ----------
    function : str
        The name of the function.
    arguments : tuple of Node
        The terms.
    """

    function: str
    arguments: tuple[Node, ...]


# --- formulas -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constant(Node):
    """true or false.

    Parameters
    ----------
    value : bool
        The truth value.
    """

    value: bool


@dataclass(frozen=True)
class Predicate(Node):
    """``left sign right`` with one of the signs < <= > >= == !=.

    Parameters
    ----------
    sign : str
        The sign.
    left, right : Node
        The terms.
    """

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Not(Node):
    """The negation of a formula.

    Parameters
    ----------
    operand : Node
        The formula.
    """

    operand: Node


@dataclass(frozen=True)
class And(Node):
    """The conjunction of two or more formulas.

    Parameters
    ----------
    operands : tuple of Node
        The formulas.
    """

    operands: tuple[Node, ...]


@dataclass(frozen=True)
class Or(Node):
    """The disjunction of two or more formulas.

    Parameters
    ----------
    operands : tuple of Node
        The formulas.
    """

    operands: tuple[Node, ...]


@dataclass(frozen=True)
class Implies(Node):
    """``left implies right``.

    Parameters
    ----------
    left, right : Node
        The formulas.
    """

    left: Node
    right: Node


@dataclass(frozen=True)
class Eventually(Node):
    """The operand holds at some sample of the interval.

    Parameters
    ----------
    interval : Interval
        When the operand is looked at.
    operand : Node
        The formula.
    """

    interval: Interval
    operand: Node


@dataclass(frozen=True)
class Always(Node):
    """The operand holds at every sample of the interval.

    Parameters
    ----------
    interval : Interval
        When the operand is looked at.
    operand : Node
        The formula.
    """

    interval: Interval
    operand: Node


@dataclass(frozen=True)
class Until(Node):
    """`right` holds at some sample of the interval, and `left` at every sample before it.

    Parameters
    ----------
    left : Node
        What holds before.
    interval : Interval
        When `right` is looked at.
    right : Node
        What holds in the end.
    """

    left: Node
    interval: Interval
    right: Node
