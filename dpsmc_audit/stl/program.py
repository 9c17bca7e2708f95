"""Translate a formula into the operations that evaluate it at time 0, each on the samples that matter."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpsmc_audit.errors import require
from dpsmc_audit.stl import syntax
from dpsmc_audit.stl.kernels import Code
from dpsmc_audit.stl.syntax import Interval, Node

__all__ = ["Program", "samples"]

Span = tuple[int, int]
Window = tuple[int, int, int]

_ARITHMETIC = {"+": Code.ADD, "-": Code.SUBTRACT, "*": Code.MULTIPLY, "/": Code.DIVIDE}
_FUNCTIONS = {"abs": Code.ABSOLUTE, "sqrt": Code.ROOT, "min": Code.SMALLER, "max": Code.LARGER}
_MARGINS = {"==": (Code.ABSOLUTE, Code.NEGATIVE), "!=": (Code.ABSOLUTE,)}
"""From the difference of two sides to robustness. Truth is the sign of robustness: two floating-point numbers have the
difference 0 only if they are equal (IEEE 754)."""


def samples(interval: Interval, step: float) -> tuple[int, int | None]:
    """Find the first and the last sample of an interval.

    Parameters
    ----------
    interval : Interval
        The interval.
    step : float
        Seconds between two samples.

    Returns
    -------
    first : int
        Counted from now.
    last : int or None
        None for the end of the trace.

    Raises
    ------
    ParameterError
        If the interval holds no sample.

    Examples
    --------
    >>> samples(Interval(0.8, 1.0), 0.001)
    (800, 1000)
    """
    rounding, longest = 1e-9, 2.0**53  # 0.3 / 0.1 is below 3; larger floats are not exact integers
    first = math.ceil(min(interval.begin / step, longest) * (1.0 - rounding))
    if math.isinf(interval.end):
        return first, None
    last = math.floor(min(interval.end / step, longest) * (1.0 + rounding))
    require(first <= last, f"the interval {interval} holds no sample: samples are {step:g} s apart")
    return first, last


@dataclass
class Program:
    """Operations for `dpsmc_audit.stl.kernels.run`, and the node that each comes from.

    Registers form a stack. The value of a node goes to a given register. The values of its operands go to that register
    and those above.

    Parameters
    ----------
    step : float
        Seconds between two samples.
    points : int
        Number of samples of a trace.
    quantitative : bool
        Compute robustness, not truth.
    """

    step: float
    points: int
    quantitative: bool
    operations: list[tuple[int, ...]] = field(init=False, default_factory=list)
    nodes: list[Node] = field(init=False, default_factory=list)
    constants: list[float] = field(init=False, default_factory=list)
    signals: list[str] = field(init=False, default_factory=list)
    registers: int = field(init=False, default=0)
    samples: int = field(init=False, default=0)

    @property
    def read(self) -> Span:
        """The samples of signals that are read: the first one, and the one after the last."""
        spans = [(first, last + 1) for code, _, _, first, last, *_ in self.operations if code == Code.LOAD]
        return min((begin for begin, _ in spans), default=0), max((end for _, end in spans), default=0)

    def build(self, node: Node, a: int, span: Span) -> None:  # noqa: PLR0912  # one case for each kind of node
        """Add the operations that leave the value of a node in register a.

        Parameters
        ----------
        node : Node
            A formula or a term.
        a : int
            The register.
        span : tuple of int
            The first and the last sample at which the value is needed.
        """
        match node:
            case syntax.Number(value):
                self._fill(node, value, a, span)
            case syntax.Constant(value):
                self._fill(node, math.inf if value else -math.inf, a, span)
            case syntax.Signal(name):
                if name not in self.signals:
                    self.signals.append(name)
                self._emit(node, Code.LOAD, a, self.signals.index(name), span)
            case syntax.Negative(operand) | syntax.Not(operand):
                self.build(operand, a, span)
                self._emit(node, Code.NEGATIVE, a, a, span)
            case syntax.Arithmetic(sign, left, right):
                self._join(node, _ARITHMETIC[sign], (left, right), a, span)
                self._emit(node, Code.CHECK, a, a, span)
            case syntax.Call(function, arguments):
                self._join(node, _FUNCTIONS[function], arguments, a, span)
                if function == "sqrt":
                    self._emit(node, Code.CHECK, a, a, span)
            case syntax.And(operands):
                self._join(node, Code.SMALLER, operands, a, span)
            case syntax.Or(operands):
                self._join(node, Code.LARGER, operands, a, span)
            case syntax.Implies(left, right):
                self._join(node, Code.LARGER, (syntax.Not(left), right), a, span)
            case syntax.Predicate():
                self._predicate(node, a, span)
            case syntax.Eventually() | syntax.Always():
                window = self._window(node.interval, span)
                inner = (span[0] + window[0], window[2])
                self.build(node.operand, a, inner)
                if isinstance(node, syntax.Eventually):
                    self._emit(node, Code.SLIDE, a, a, span, window)
                else:
                    self._always(node, a, inner, span, window)
            case syntax.Until():
                self._until(node, a, span)

    def _emit(self, node: Node, code: Code, a: int, b: int, span: Span, window: Window = (0, 0, 0)) -> None:
        """Add an operation on registers a and b at the samples of a span."""
        self.operations.append((code, a, b, *span, *window))
        self.nodes.append(node)
        self.registers = max(self.registers, a + 3 if code is Code.UNTIL else a + 1)
        self.samples = max(self.samples, span[1] + 1)

    def _fill(self, node: Node, value: float, a: int, span: Span) -> None:
        self.constants.append(value)
        self._emit(node, Code.FILL, a, len(self.constants) - 1, span)

    def _join(self, node: Node, code: Code, operands: tuple[Node, ...], a: int, span: Span) -> None:
        """Apply an operation of one operand, or one of two operands from left to right."""
        self.build(operands[0], a, span)
        if len(operands) == 1:
            self._emit(node, code, a, a, span)
        for operand in operands[1:]:
            self.build(operand, a + 1, span)
            self._emit(node, code, a, a + 1, span)

    def _predicate(self, node: syntax.Predicate, a: int, span: Span) -> None:
        sides = (node.right, node.left) if node.sign in ("<", "<=") else (node.left, node.right)
        self._join(node, Code.SUBTRACT, sides, a, span)
        for code in _MARGINS.get(node.sign, ()):
            self._emit(node, code, a, a, span)
        if not self.quantitative:
            truth = Code.NOT_NEGATIVE if node.sign in (">=", "<=", "==") else Code.POSITIVE
            self._emit(node, truth, a, a, span)

    def _window(self, interval: Interval, span: Span) -> Window:
        """First and last sample of an interval, seen from now, and the last one that exists for the span's last."""
        begin, last = samples(interval, self.step)
        end = self.points if last is None else last
        return begin, end, min(span[1] + end, self.points - 1)

    def _always(self, node: Node, a: int, inner: Span, span: Span, window: Window) -> None:
        self._emit(node, Code.NEGATIVE, a, a, inner)
        self._emit(node, Code.SLIDE, a, a, span, window)
        self._emit(node, Code.NEGATIVE, a, a, span)

    def _until(self, node: syntax.Until, a: int, span: Span) -> None:
        """Decompose until as `semantics` describes: left in a, right in a + 1, until without bounds in a + 2."""
        first, last = span
        begin, end, final = self._window(node.interval, span)
        if final == first:  # only the right side at the present sample matters
            self.build(node.right, a, span)
            return
        self.build(node.left, a, (first, final - 1))
        self.build(node.right, a + 1, (first + begin, final))
        self._emit(node, Code.UNTIL, a, a + 1, (first + begin, final))
        if begin > 0:
            before = min(last + begin, final) - 1
            self._always(node, a, (first, before), span, (0, begin - 1, before))
        else:
            self._fill(node, math.inf, a, span)
        self._emit(node, Code.SLIDE, a + 1, a + 1, span, (begin, end, final))
        self._emit(node, Code.SMALLER, a, a + 1, span)
        self._emit(node, Code.LATER, a, a + 2, (first, min(last, final - begin)), (begin, 0, 0))
