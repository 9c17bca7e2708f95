"""Write a formula as text. The parser reads the text back."""

from __future__ import annotations

from dpsmc_audit.stl import syntax
from dpsmc_audit.stl.syntax import Node, number_text

__all__ = ["text"]

# How tightly a text binds: terms first, then formulas. Atoms never need parentheses.
_SUM, _PRODUCT, _SIGNED = 1, 2, 3
_IMPLIES, _OR, _AND, _UNTIL, _PREDICATE, _UNARY = 1, 2, 3, 4, 5, 6
_ATOM = 9


def text(node: Node) -> str:
    """Write a node as text that parses back to it.

    Parameters
    ----------
    node : Node
        A term or a formula.

    Returns
    -------
    str
        The text, with the parentheses it needs and some that make it easier to read.
    """
    return _written(node)[0]


def _written(node: Node) -> tuple[str, int]:  # noqa: PLR0911, PLR0912  # one case for each kind of node
    """Write a node, and say how tightly the text binds."""
    match node:
        case syntax.Number(value):
            return number_text(value), _ATOM
        case syntax.Signal(name):
            return name, _ATOM
        case syntax.Call(function, arguments):
            return f"{function}({', '.join(map(text, arguments))})", _ATOM
        case syntax.Constant(value):
            return str(value).lower(), _ATOM
        case syntax.Negative(operand):
            return f"-{_inside(operand, _ATOM)}", _SIGNED
        case syntax.Arithmetic(sign, left, right):
            level = _SUM if sign in "+-" else _PRODUCT
            return f"{_inside(left, level)} {sign} {_inside(right, level + 1)}", level
        case syntax.Predicate(sign, left, right):
            return f"{text(left)} {sign} {text(right)}", _PREDICATE
        case syntax.Not(operand):
            return f"not {_inside(operand, _ATOM)}", _UNARY
        case syntax.And(operands):
            return " and ".join(_inside(operand, _UNTIL) for operand in operands), _AND
        case syntax.Or(operands):
            return " or ".join(_inside(operand, _AND) for operand in operands), _OR
        case syntax.Implies(left, right):
            return f"{_inside(left, _OR)} implies {_inside(right, _OR)}", _IMPLIES
        case syntax.Eventually(interval, operand):
            return f"eventually{_bounds(interval)} {_inside(operand, _ATOM)}", _UNARY
        case syntax.Always(interval, operand):
            return f"always{_bounds(interval)} {_inside(operand, _ATOM)}", _UNARY
        case syntax.Until(left, interval, right):
            return f"{_inside(left, _UNARY)} until{_bounds(interval)} {_inside(right, _UNARY)}", _UNTIL
    raise TypeError(node)


def _inside(node: Node, level: int) -> str:
    """Write a node, in parentheses if it binds less tightly than `level`."""
    written, own = _written(node)
    return written if own >= level else f"({written})"


def _bounds(interval: syntax.Interval) -> str:
    return "" if interval == syntax.WHOLE else str(interval)
