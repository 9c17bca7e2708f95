"""Values of terms and of the two sides of a comparison, on a few traces of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.models.traces import Traces
from dpsmc_audit.sprt import ParameterError
from dpsmc_audit.stl.syntax import Arithmetic, Call, Negative, Node, Number, Signal, text

__all__ = ["COMPARISONS", "MARGINS", "Reader"]

Rows = NDArray[np.float64]

_ARITHMETIC: dict[str, Callable[..., Rows]] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_FUNCTIONS: dict[str, Callable[..., Rows]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "min": lambda *arguments: reduce(np.minimum, arguments),
    "max": lambda *arguments: reduce(np.maximum, arguments),
}
COMPARISONS: dict[str, Callable[..., NDArray[np.bool_]]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def _above(left: Rows, right: Rows) -> Rows:
    return np.subtract(left, right)


def _below(left: Rows, right: Rows) -> Rows:
    return np.subtract(right, left)


MARGINS: dict[str, Callable[[Rows, Rows], Rows]] = {
    "<": _below,
    "<=": _below,
    ">": _above,
    ">=": _above,
    "==": lambda left, right: -np.abs(left - right),
    "!=": lambda left, right: np.abs(left - right),
}
"""By how much a comparison holds; the difference of two numbers is 0 only if they are equal (IEEE 754)."""


@dataclass(frozen=True)
class Reader:
    """Some traces of a batch: arrays of shape (traces, samples), or of shape () where no signal is read."""

    traces: Traces
    rows: slice

    @property
    def lanes(self) -> int:
        """How many traces these are."""
        return int(self.rows.stop - self.rows.start)

    def finite(self, term: Node, first: int, last: int) -> Rows:
        """The term at the samples from first to last; `ParameterError` where it has no value."""
        with np.errstate(all="ignore"):  # looked at right below
            values = self.values(term, first, last)
        if not isinstance(term, Signal) and not np.isfinite(values).all():
            raise ParameterError(f"the term {text(term)} is {self._where(values, first)}")
        return values

    def values(self, term: Node, first: int, last: int) -> Rows:
        match term:
            case Number(value):
                return np.asarray(value)
            case Signal(name):
                return self.signal(name, first, last)
            case Negative(operand):
                return -self.values(operand, first, last)
            case Arithmetic(sign, left, right):
                return _ARITHMETIC[sign](self.values(left, first, last), self.values(right, first, last))
            case Call(function, arguments):
                return _FUNCTIONS[function](*(self.values(argument, first, last) for argument in arguments))
        raise TypeError(term)

    def signal(self, name: str, first: int, last: int) -> Rows:
        """The samples that the formula reads; those it does not look at may be anything."""
        values = np.asarray(self.traces.signals[name][self.rows, first : last + 1], np.float64)
        if not np.isfinite(values).all():
            raise ParameterError(f"signal {name!r} is {self._where(values, first)}")
        return values

    def _where(self, values: NDArray[Any], first: int) -> str:
        """The first value that is not finite, and where it stands."""
        if values.ndim == 0:
            return f"{values}"
        row, column = np.argwhere(~np.isfinite(values))[0]
        time = (first + column) * self.traces.step
        return f"{values[row, column]} in trace {self.rows.start + row} at {time:.6g} s"
