"""A formula of signal temporal logic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsmc_audit.numerics.arrays import BoolArray, FloatArray
from dpsmc_audit.stl import syntax
from dpsmc_audit.stl.parser import read
from dpsmc_audit.stl.writer import text

if TYPE_CHECKING:
    from dpsmc_audit.stl.traces import Traces

__all__ = ["Formula", "parse"]


@dataclass(frozen=True, repr=False)
class Formula:
    """A formula, made by `parse`. Its text parses back to an equal formula.

    Truth and robustness are those at time 0 in discrete time, as `dpsmc_audit.stl.semantics` defines them. Robustness
    is positive only where the formula is true and negative only where it is false. Where it is 0, the truth depends on
    whether a comparison is strict.

    Parameters
    ----------
    root : Node
        The syntax tree.

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
        """Names of the signals that the formula reads, in alphabetical order."""
        return tuple(sorted({node.name for node in syntax.walk(self.root) if isinstance(node, syntax.Signal)}))

    @property
    def horizon(self) -> float:
        """Seconds that a trace must last: the upper ends of nested intervals, added up.

        Where an upper end is inf, the lower end counts.

        Examples
        --------
        >>> parse("always[0,2] (x > 1 implies eventually[0,0.5] (x < 0))").horizon
        2.5
        """
        return float(syntax.ahead(self.root, lambda interval: interval.reach))

    @property
    def window(self) -> tuple[float, float] | None:
        """The interval of the outermost operator if that is always or eventually, else None.

        Examples
        --------
        >>> parse("always[0.8,1] (e < 0.05)").window
        (0.8, 1.0)
        """
        match self.root:
            case syntax.Always(interval, _) | syntax.Eventually(interval, _):
                return interval.begin, interval.end
        return None

    def check(self, traces: Traces) -> None:
        """Check that the formula can be evaluated on such traces.

        Parameters
        ----------
        traces : Traces
            A batch. It may hold no traces: only its signals, step and length matter.

        Raises
        ------
        ParameterError
            If a signal is missing, the traces are too short or an interval holds no sample.
        """
        from dpsmc_audit.stl import semantics

        semantics.check(self.root, traces)

    def truth(self, traces: Traces) -> BoolArray:
        """Evaluate whether each trace satisfies the formula.

        Parameters
        ----------
        traces : Traces
            The batch.

        Returns
        -------
        ndarray of bool
            One value for each trace.

        Raises
        ------
        ParameterError
            As for `check`, and if a value that the formula reads is not finite.
        """
        from dpsmc_audit.stl import semantics

        return semantics.evaluate(self.root, traces, quantitative=False) > 0.0

    def robustness(self, traces: Traces) -> FloatArray:
        """Evaluate by how much each trace satisfies the formula. Negative values are violations.

        Parameters
        ----------
        traces : Traces
            The batch.

        Returns
        -------
        ndarray of float
            One value for each trace.

        Raises
        ------
        ParameterError
            As for `truth`.
        """
        from dpsmc_audit.stl import semantics

        return semantics.evaluate(self.root, traces, quantitative=True)


def parse(source: str) -> Formula:
    """Read a formula.

    Parameters
    ----------
    source : str
        The text. `dpsmc_audit.stl.parser` describes the grammar.

    Returns
    -------
    Formula
        The formula.

    Raises
    ------
    ParameterError
        If the text is not a formula. The message names line and column.

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
