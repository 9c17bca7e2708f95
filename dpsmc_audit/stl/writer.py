"""From syntax to text, the way back of the parser."""

from __future__ import annotations

from dpsmc_audit.stl.syntax import (
    WHOLE,
    Always,
    And,
    Arithmetic,
    Call,
    Constant,
    Eventually,
    Implies,
    Interval,
    Negative,
    Node,
    Not,
    Number,
    Or,
    Predicate,
    Signal,
    Until,
    number_text,
)

__all__ = ["text"]

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
