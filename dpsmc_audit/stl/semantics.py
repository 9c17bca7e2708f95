"""The meaning of a formula on sampled traces: truth and robustness at time 0, in discrete time.

Sample j of a trace is its value at time ``j * step``. The interval ``[a,b]`` at sample i holds the samples i + j with
``a <= j * step <= b`` (up to rounding). ``inf`` is the end of the trace. Robustness takes the larger value for `or`,
the smaller for `and`, the negative for `not`, and the difference of the two sides for a comparison:

========================  ============================================================================================
``f > g``, ``f >= g``     f - g. Equal sides make the first false and the second true
``f == g``, ``f != g``    -|f - g| and |f - g|. An equation is never robustly true
``phi until[a,b] psi``    psi holds at some sample of the interval, and phi at every sample from now to the one before
                          it (the paper's "for all t' < t"). If psi holds now and a = 0, phi is not needed
``eventually[a,b] phi``   phi holds at some sample of the interval: ``true until[a,b] phi``
``always[a,b] phi``       phi holds at all samples of the interval: ``not eventually[a,b] not phi``
========================  ============================================================================================

These are the paper's rules at the samples, and those of rtamt in discrete time. A trace must last as long as the upper
ends of nested intervals add up to. Inside an operator with ``inf`` a window can meet the end of the trace. It then
holds the samples that are left. If there are none, `eventually` and `until` are false and `always` is true.

Until takes linear time by two facts (Donzé, Ferrère and Maler 2013, here in discrete time). First, ``until[a,b]`` is
`always` on the left up to sample a - 1 and ``until[0,b-a]`` from sample a on. Second, ``until[0,c]`` is `until` without
bounds together with ``eventually[0,c]`` of the right side.
"""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.stl import kernels
from dpsmc_audit.stl.program import Program, samples
from dpsmc_audit.stl.syntax import Interval, Node, Signal, ahead, walk
from dpsmc_audit.stl.traces import Traces
from dpsmc_audit.stl.writer import text

__all__ = ["check", "evaluate"]

BLOCK, VALUES = 256, 2**20
"""Largest number of traces, and of values of a signal, that are copied at once. They bound the memory."""


def check(root: Node, traces: Traces) -> None:
    """Check that traces have the formula's signals and last as long as it looks ahead.

    Parameters
    ----------
    root : Node
        The formula.
    traces : Traces
        A batch. It may hold no traces.

    Raises
    ------
    ParameterError
        If they do not, or if an interval holds no sample.
    """
    for node in walk(root):
        if isinstance(node, Signal) and node.name not in traces.signals:
            close = get_close_matches(node.name, sorted(traces.signals), n=1)
            suggestion = f", did you mean {close[0]!r}?" if close else ""
            known = ", ".join(sorted(traces.signals))
            raise ParameterError(f"unknown signal {node.name!r}{suggestion} (known: {known})")

    def reach(interval: Interval) -> int:
        first, last = samples(interval, traces.step)
        return first if last is None else last

    needed = ahead(root, reach)
    require(
        needed < traces.points,
        f"the formula looks {needed * traces.step:.6g} s ahead, but the traces end at {traces.duration:.6g} s",
    )


def evaluate(root: Node, traces: Traces, *, quantitative: bool) -> FloatArray:
    """Evaluate a formula on each trace.

    Parameters
    ----------
    root : Node
        The formula.
    traces : Traces
        The batch.
    quantitative : bool
        Compute robustness. Otherwise compute truth: positive for true, negative for false.

    Returns
    -------
    ndarray of float
        One value for each trace.

    Raises
    ------
    ParameterError
        As for `check`, and if a value that the formula reads is not finite.
    """
    check(root, traces)
    program = Program(traces.step, traces.points, quantitative)
    program.build(root, 0, (0, 0))
    begin, end = program.read
    code, constants = np.array(program.operations, np.int64), np.array(program.constants)
    rows = min(_whole(traces.count), _whole(min(BLOCK, VALUES // traces.points + 1)))
    block = np.empty((len(program.signals), rows, end))
    registers = np.empty((program.registers + 1, program.samples, kernels.LANES))
    result = np.empty(_whole(traces.count))
    for start in range(0, traces.count, max(rows, 1)):
        part = result[start : start + rows]
        for number, name in enumerate(program.signals):
            values = traces.signals[name][start : start + rows, begin:end]
            block[number, : len(values), begin:] = values
            block[number, len(values) : part.size, begin:] = values[-1]
        number, trace, sample = kernels.run(code, constants, block, registers, part)
        if number >= 0:
            raise ParameterError(_not_finite(program.nodes[number], traces, start + trace, sample))
    return result[: traces.count] + 0.0  # -0 becomes 0


def _whole(traces: int) -> int:
    """Round up to full lanes. Copies of the last trace fill the rest."""
    return -(-traces // kernels.LANES) * kernels.LANES


def _not_finite(node: Node, traces: Traces, trace: int, sample: int) -> str:
    where = f"in trace {trace} at {sample * traces.step:.6g} s"
    if isinstance(node, Signal):
        return f"signal {node.name!r} is {traces.signals[node.name][trace, sample]} {where}"
    return f"the term {text(node)} is not finite {where}"
