"""A formula of signal temporal logic and what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.stl import syntax
from dpsmc_audit.stl.parser import read
from dpsmc_audit.stl.writer import text

if TYPE_CHECKING:
    from dpsmc_audit.stl.traces import Traces

__all__ = ["Formula", "parse"]


@dataclass(frozen=True, repr=False)
class Formula:
    """A formula, made by `parse`; its text parses back to an equal formula.

    Truth and robustness are those at time 0 in discrete time, as `dpsmc_audit.stl.semantics` defines them. Robustness
    is positive only where the formula is true and negative only where it is false; where it is 0, the truth depends on
    whether a comparison is strict.

    Examples
    --------
    >>> formula = parse("(velocity > 5) until[0,10] (battery < 0.2)")
    >>> formula.signals, formula.horizon
    (('battery', 'velocity'), 10.0)
    >>> parse(str(formula)) == formula
    True
    """

    root: syntax.Node

    def __str__(self) -> str:
        return text(self.root)

    def __repr__(self) -> str:
        return f"parse({str(self)!r})"

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals it reads, in alphabetical order."""
        return tuple(sorted({node.name for node in syntax.walk(self.root) if isinstance(node, syntax.Signal)}))

    @property
    def horizon(self) -> float:
        """Seconds that a trace must last: upper ends of nested intervals add up (lower ends, where the upper is inf).

        >>> parse("always[0,2] (x > 1 implies eventually[0,0.5] (x < 0))").horizon
        2.5
        """
        return _horizon(self.root)

    @property
    def window(self) -> tuple[float, float] | None:
        """The interval of the outermost operator, if that is always or eventually; None otherwise.

        >>> parse("always[0.8,1] (e < 0.05)").window
        (0.8, 1.0)
        """
        match self.root:
            case syntax.Always(interval, _) | syntax.Eventually(interval, _):
                return interval.begin, interval.end
        return None

    def check(self, traces: Traces) -> None:
        """Raise `ParameterError` unless the formula can be asked of such traces (a batch of none of them will do)."""
        from dpsmc_audit.stl import semantics

        semantics.check(self.root, traces)

    def truth(self, traces: Traces) -> NDArray[np.bool_]:
        """Whether each trace satisfies the formula, an array of shape (traces,)."""
        from dpsmc_audit.stl import semantics

        return semantics.evaluate(self.root, traces, quantitative=False) > 0.0

    def robustness(self, traces: Traces) -> NDArray[np.float64]:
        """By how much each trace satisfies the formula (negative: violates it), an array of shape (traces,)."""
        from dpsmc_audit.stl import semantics

        return semantics.evaluate(self.root, traces, quantitative=True)


def parse(source: str) -> Formula:
    """Read a formula; `ParameterError` says where it is wrong.

    Examples
    --------
    >>> parse("always[0.8,1] abs(e) < 0.05")
    parse('always[0.8,1] (abs(e) < 0.05)')
    >>> parse("x > 1 -> F[0,2] !(y >= 3 | z == 0)")
    parse('x > 1 implies eventually[0,2] (not (y >= 3 or z == 0))')
    >>> parse("always[0.8 1] (e < 0.05)")
    Traceback (most recent call last):
    dpsmc_audit.errors.ParameterError: formula, line 1, column 12: unexpected '1'; expected ','
    """
    return Formula(read(source))


def _horizon(node: syntax.Node) -> float:
    below = max((_horizon(part) for part in node.parts()), default=0.0)
    match node:
        case syntax.Always(interval, _) | syntax.Eventually(interval, _) | syntax.Until(_, interval, _):
            return interval.reach + below
    return below
