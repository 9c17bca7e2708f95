"""What a formula means on sampled traces: truth and robustness at time 0, in discrete time.

Sample j of a trace is its value at time ``j * step``. The interval ``[a,b]`` at sample i holds the samples i + j with
``a <= j * step <= b`` (up to rounding); ``inf`` is the end of the trace. Robustness puts the larger for `or`, the smaller
for `and`, the negative for `not`, and for a comparison the difference of its sides:

========================  ============================================================================================
``f > g``, ``f >= g``     f - g; equal sides make the first false and the second true
``f == g``, ``f != g``    -|f - g| and |f - g|: an equation is never robustly true
``phi until[a,b] psi``    psi at some sample of the interval, and phi at every sample from now to the one before it (the
                          paper's "for all t' < t"): with psi right now and a = 0, nothing is asked of phi
``eventually[a,b] phi``   phi at some sample of the interval: ``true until[a,b] phi``
``always[a,b] phi``       phi at all samples of the interval: ``not eventually[a,b] not phi``
========================  ============================================================================================

These are the paper's rules read at the samples, and those of rtamt in discrete time. A trace must last as long as the
upper ends of nested intervals add up to. Inside an operator with ``inf``, though, a window meets the end of the trace: it
then holds the samples that are left, and if there are none `eventually` and `until` are false and `always` is true.

Until takes linear time by two facts (Donzé, Ferrère and Maler 2013, here in discrete time): ``until[a,b]`` is `always`
on the left up to sample a - 1 and ``until[0,b-a]`` from sample a on; and ``until[0,c]`` is `until` without bounds
together with ``eventually[0,c]`` of the right side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.models.traces import Traces
from dpsmc_audit.sprt import require
from dpsmc_audit.stl import kernels
from dpsmc_audit.stl.syntax import (
    Always,
    And,
    Constant,
    Eventually,
    Implies,
    Interval,
    Node,
    Not,
    Or,
    Predicate,
    Signal,
    Until,
    walk,
)
from dpsmc_audit.stl.terms import COMPARISONS, MARGINS, Reader

__all__ = ["check", "evaluate", "samples"]

Values = NDArray[Any]

CHUNK = 2**15
"""Values of a signal that are worked on at once: all arrays of a chunk stay in the cache of a core."""

FEWEST_LANES = 8
"""Traces that are worked on together at least, however long they are."""

_ROUNDING = 1e-9
_LONGEST = 2.0**53


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


def check(root: Node, traces: Traces) -> None:
    """Raise `ParameterError` unless the traces have the formula's signals and last as long as it looks ahead."""
    for node in walk(root):
        if isinstance(node, Signal):
            require(node.name in traces.signals, _unknown(node.name, sorted(traces.signals)))
    ahead = _reach(root, traces.step)
    require(
        ahead < traces.points,
        f"the formula looks {ahead * traces.step:.6g} s ahead, but the traces end at {traces.duration:.6g} s",
    )


def evaluate(root: Node, traces: Traces, kind: np.dtype[Any]) -> Values:
    """Robustness of each trace (float64), or its truth as 1 and -1 (int8)."""
    check(root, traces)
    result = np.empty(traces.count, kind)
    lanes = max(FEWEST_LANES, CHUNK // traces.points)
    for begin in range(0, traces.count, lanes):
        rows = slice(begin, min(begin + lanes, traces.count))
        result[rows] = _Evaluation(Reader(traces, rows), kind).values(root, 0, 0)[0]
    return result


def _unknown(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    suggestion = f", did you mean {close[0]!r}?" if close else ""
    return f"unknown signal {name!r}{suggestion} (known: {', '.join(known)})"


def _reach(node: Node, step: float) -> int:
    """Samples after the present one that the node needs."""
    below = max((_reach(part, step) for part in node.parts()), default=0)
    match node:
        case Always(interval, _) | Eventually(interval, _) | Until(_, interval, _):
            first, last = samples(interval, step)
            return below + (first if last is None else last)
    return below


@dataclass(frozen=True)
class _Evaluation:
    """Values of nodes on some traces: arrays of shape (samples, traces) for the samples that are asked for."""

    reader: Reader
    kind: np.dtype[Any]

    def values(self, node: Node, first: int, last: int) -> Values:
        """The node's value at the samples from first to last, both included."""
        match node:
            case Predicate():
                return self.predicate(node, first, last)
            case Constant(value):
                return np.full((last - first + 1, self.reader.lanes), self.top if value else -self.top, self.kind)
            case Not(operand):
                return -self.values(operand, first, last)
            case And(operands):
                return reduce(np.minimum, (self.values(operand, first, last) for operand in operands))
            case Or(operands):
                return reduce(np.maximum, (self.values(operand, first, last) for operand in operands))
            case Implies(left, right):
                return np.maximum(-self.values(left, first, last), self.values(right, first, last))
            case Eventually() | Always():
                return self.temporal(node, first, last)
            case Until():
                return self.until(node, first, last)
        raise TypeError(node)

    @property
    def top(self) -> float:
        """What `true` is worth."""
        return np.inf if self.kind == np.float64 else 1

    def predicate(self, node: Predicate, first: int, last: int) -> Values:
        """A comparison at each sample: the difference of its sides, or 1 and -1."""
        left, right = (self.reader.finite(term, first, last) for term in (node.left, node.right))
        if self.kind == np.float64:
            with np.errstate(over="ignore"):  # finite sides may lie further apart than the largest number
                rows = MARGINS[node.sign](left, right)
        else:
            rows = COMPARISONS[node.sign](left, right).view(np.int8)
        lanes = np.ascontiguousarray(np.broadcast_to(rows, (self.reader.lanes, last - first + 1)).T)
        return lanes if self.kind == np.float64 else 2 * lanes - np.int8(1)

    def window(self, interval: Interval) -> tuple[int, int]:
        """Samples of an interval; its end is that of the trace where it has none."""
        first, last = samples(interval, self.reader.traces.step)
        return first, self.reader.traces.points if last is None else last

    def clipped(self, sample: int) -> int:
        return min(sample, self.reader.traces.points - 1)

    def temporal(self, node: Eventually | Always, first: int, last: int) -> Values:
        begin, end = self.window(node.interval)
        inner = self.values(node.operand, first + begin, self.clipped(last + end))
        width, count = end - begin + 1, last - first + 1
        if isinstance(node, Eventually):
            return self.sliding_max(inner, width, count)
        return -self.sliding_max(-inner, width, count)

    def until(self, node: Until, first: int, last: int) -> Values:
        begin, end = self.window(node.interval)
        final, count = self.clipped(last + end), last - first + 1
        right = self.values(node.right, first + begin, final)
        result = self.sliding_max(right, end - begin + 1, count)
        if final == first:  # psi at the present sample, which asks nothing of phi
            return result
        left = self.values(node.left, first, final - 1)
        unbounded = np.empty_like(right)
        kernels.until(left[begin:], right, unbounded)
        within = min(count, len(right))
        np.minimum(result[:within], unbounded[:within], out=result[:within])
        if begin > 0:
            np.minimum(result, -self.sliding_max(-left, begin, count), out=result)
        return result

    def sliding_max(self, inner: Values, width: int, count: int) -> Values:
        """The largest of `width` values from each sample on; windows that lie beyond the trace are false."""
        out = np.empty((count, self.reader.lanes), self.kind)
        within = min(count, len(inner))
        kernels.sliding_max(inner, min(width, len(inner)), out[:within])
        out[within:] = -self.top
        return out
