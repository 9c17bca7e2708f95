"""From a formula to the operations that evaluate it at time 0, each on the samples that matter and no others."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpsmc_audit.errors import require
from dpsmc_audit.stl.kernels import Code
from dpsmc_audit.stl.syntax import (
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
)

__all__ = ["Program", "samples"]

Span = tuple[int, int]
Window = tuple[int, int, int]

_ROUNDING = 1e-9
_LONGEST = 2.0**53

_ARITHMETIC = {"+": Code.ADD, "-": Code.SUBTRACT, "*": Code.MULTIPLY, "/": Code.DIVIDE}
_FUNCTIONS = {"abs": Code.ABSOLUTE, "sqrt": Code.ROOT, "min": Code.SMALLER, "max": Code.LARGER}
_ALWAYS_FINITE = {Code.ABSOLUTE, Code.SMALLER, Code.LARGER}
_REVERSED = {"<", "<="}
_MARGINS: dict[str, tuple[tuple[Code, ...], Code]] = {
    ">": ((), Code.POSITIVE),
    ">=": ((), Code.NOT_NEGATIVE),
    "<": ((), Code.POSITIVE),
    "<=": ((), Code.NOT_NEGATIVE),
    "==": ((Code.ABSOLUTE, Code.NEGATIVE), Code.NOT_NEGATIVE),
    "!=": ((Code.ABSOLUTE,), Code.POSITIVE),
}
"""From left minus right (right minus left, if reversed) to robustness, and from there to truth: two floating-point
numbers have the difference 0 only if they are equal (IEEE 754), so nothing is lost on the way."""


def samples(interval: Interval, step: float) -> tuple[int, int | None]:
    """First and last sample of an interval, counted from now; None for the end of the trace.

    >>> samples(Interval(0.8, 1.0), 0.001)
    (800, 1000)
    """
    first = math.ceil(min(interval.begin / step, _LONGEST) * (1.0 - _ROUNDING))
    if math.isinf(interval.end):
        return first, None
    last = math.floor(min(interval.end / step, _LONGEST) * (1.0 + _ROUNDING))
    require(first <= last, f"the interval {interval} holds no sample: samples are {step:g} s apart")
    return first, last


@dataclass
class Program:
    """Operations for `dpsmc_audit.stl.kernels.run`, and the node that each is made from.

    Registers are used as a stack: the value of a node goes to the register that it is told, its operands' values to
    that one and those above.
    """

    step: float
    points: int
    quantitative: bool
    operations: list[tuple[int, ...]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    registers: int = 0
    samples: int = 0

    @property
    def read(self) -> Span:
        """Samples of signals that are read: from the first to before the second."""
        spans = [(first, last + 1) for code, _, _, first, last, *_ in self.operations if code == Code.LOAD]
        return min((begin for begin, _ in spans), default=0), max((end for _, end in spans), default=0)

    def emit(self, node: Node, code: Code, a: int, b: int, span: Span, window: Window = (0, 0, 0)) -> None:
        """Add an operation on register a with b at the samples of a span, its first and its last one."""
        self.operations.append((code, a, b, *span, *window))
        self.nodes.append(node)
        self.registers = max(self.registers, a + 3 if code is Code.UNTIL else a + 1)
        self.samples = max(self.samples, span[1] + 1)

    def build(self, node: Node, a: int, span: Span) -> None:
        """Operations that leave the value of a formula in register a."""
        match node:
            case Constant(value):
                self.fill(node, math.inf if value else -math.inf, a, span)
            case Predicate():
                self.predicate(node, a, span)
            case Not(operand):
                self.build(operand, a, span)
                self.emit(node, Code.NEGATIVE, a, a, span)
            case And(operands):
                self.join(node, Code.SMALLER, operands, a, span)
            case Or(operands):
                self.join(node, Code.LARGER, operands, a, span)
            case Implies(left, right):
                self.build(left, a, span)
                self.emit(node, Code.NEGATIVE, a, a, span)
                self.build(right, a + 1, span)
                self.emit(node, Code.LARGER, a, a + 1, span)
            case Eventually() | Always():
                self.temporal(node, a, span)
            case Until():
                self.until(node, a, span)

    def join(self, node: Node, code: Code, operands: tuple[Node, ...], a: int, span: Span) -> None:
        self.build(operands[0], a, span)
        for operand in operands[1:]:
            self.build(operand, a + 1, span)
            self.emit(node, code, a, a + 1, span)

    # --- temporal operators ---

    def window(self, interval: Interval, span: Span) -> Window:
        """First and last sample of an interval, seen from now, and the last one that exists for the span's last."""
        begin, last = samples(interval, self.step)
        end = self.points if last is None else last
        return begin, end, min(span[1] + end, self.points - 1)

    def temporal(self, node: Eventually | Always, a: int, span: Span) -> None:
        begin, end, final = self.window(node.interval, span)
        inner = (span[0] + begin, final)
        self.build(node.operand, a, inner)
        if isinstance(node, Eventually):
            self.emit(node, Code.SLIDE, a, a, span, (begin, end, final))
        else:
            self.always(node, a, inner, span, (begin, end, final))

    def always(self, node: Node, a: int, inner: Span, span: Span, window: Window) -> None:
        self.emit(node, Code.NEGATIVE, a, a, inner)
        self.emit(node, Code.SLIDE, a, a, span, window)
        self.emit(node, Code.NEGATIVE, a, a, span)

    def until(self, node: Until, a: int, span: Span) -> None:
        """As `dpsmc_audit.stl.semantics` takes it apart: left in a, right in a + 1, until without bounds in a + 2."""
        first, last = span
        begin, end, final = self.window(node.interval, span)
        if final == first:  # the right side at the present sample, which asks nothing of the left
            return self.build(node.right, a, span)
        self.build(node.left, a, (first, final - 1))
        self.build(node.right, a + 1, (first + begin, final))
        self.emit(node, Code.UNTIL, a, a + 1, (first + begin, final))
        if begin > 0:
            before = min(last + begin, final) - 1
            self.always(node, a, (first, before), span, (0, begin - 1, before))
        else:
            self.fill(node, math.inf, a, span)
        self.emit(node, Code.SLIDE, a + 1, a + 1, span, (begin, end, final))
        self.emit(node, Code.SMALLER, a, a + 1, span)
        return self.emit(node, Code.LATER, a, a + 2, (first, min(last, final - begin)), (begin, 0, 0))

    # --- terms and predicates ---

    def predicate(self, node: Predicate, a: int, span: Span) -> None:
        sides = (node.right, node.left) if node.sign in _REVERSED else (node.left, node.right)
        self.term(sides[0], a, span)
        self.term(sides[1], a + 1, span)
        margin, truth = _MARGINS[node.sign]
        self.emit(node, Code.SUBTRACT, a, a + 1, span)
        for code in margin if self.quantitative else (*margin, truth):
            self.emit(node, code, a, a, span)

    def term(self, node: Node, a: int, span: Span) -> None:
        match node:
            case Number(value):
                self.fill(node, value, a, span)
            case Signal(name):
                if name not in self.signals:
                    self.signals.append(name)
                self.emit(node, Code.LOAD, a, self.signals.index(name), span)
            case Negative(operand):
                self.term(operand, a, span)
                self.emit(node, Code.NEGATIVE, a, a, span)
            case Arithmetic(sign, left, right):
                self.operation(node, _ARITHMETIC[sign], (left, right), a, span)
            case Call(function, arguments):
                self.operation(node, _FUNCTIONS[function], arguments, a, span)

    def operation(self, node: Node, code: Code, arguments: tuple[Node, ...], a: int, span: Span) -> None:
        self.term(arguments[0], a, span)
        if len(arguments) == 1:
            self.emit(node, code, a, a, span)
        for argument in arguments[1:]:
            self.term(argument, a + 1, span)
            self.emit(node, code, a, a + 1, span)
        if code not in _ALWAYS_FINITE:
            self.emit(node, Code.CHECK, a, a, span)

    def fill(self, node: Node, value: float, a: int, span: Span) -> None:
        self.constants.append(value)
        self.emit(node, Code.FILL, a, len(self.constants) - 1, span)
