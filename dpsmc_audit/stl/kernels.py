"""The jitted machine that evaluates a formula: a few operations on registers.

A register holds a value for every sample of `LANES` traces. The values of one sample lie side by side, so each step of
a recurrence over time is one vector operation. All traces use the same registers, so memory does not grow with their
number. Every operation is linear in the number of samples.

Truth is 1 or -1, robustness any number. For both, `or` is the larger value, `and` the smaller and `not` the negative.
All jitted functions stay in this file, because Numba's cache does not notice edits in other files.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial

import numpy as np

from dpsmc_audit.numerics.jit import kernel

__all__ = ["LANES", "Code", "run"]

LANES = 8
"""Traces that are evaluated at once: one vector register of the widest common processors holds 8 numbers."""


class Code(IntEnum):
    """The operations. a is the register that changes. Samples run from first to last, both included."""

    LOAD = 0  # a = signal number b, which must be finite
    FILL = 1  # a = constant number b
    CHECK = 2  # stop unless a is finite
    NEGATIVE = 3
    ABSOLUTE = 4
    ROOT = 5
    POSITIVE = 6  # a = 1 where a > 0, else -1
    NOT_NEGATIVE = 7  # a = 1 where a >= 0, else -1
    SLIDE = 8  # a = the largest a in the window from begin to end
    UNTIL = 9  # a + 2 = a until a + 1, without bounds
    ADD = 10  # a = a + b, and so on
    SUBTRACT = 11
    MULTIPLY = 12
    DIVIDE = 13
    SMALLER = 14
    LARGER = 15
    LATER = 16  # a = smaller of a and of b as it is begin samples later


# Without "+ 0.0" the compiler skips the store of an unchanged value by a branch, which is 2.5 times slower. The
# addition also turns -0 into 0.


@kernel
def _larger(a, b):
    return (a if a > b else b) + 0.0


@kernel
def _smaller(a, b):
    return (a if a < b else b) + 0.0


# --- single samples -------------------------------------------------------------------------------------------------


@kernel
def _load(signal, trace, x, nothing, first, last):
    """Copy rows of samples to samples of rows. `nothing` stays 0 as long as all values are finite."""
    source = signal[trace : trace + LANES]
    for j in range(first, last + 1):
        for k in range(LANES):
            x[j, k] = source[k, j]
            nothing[k] += source[k, j] * 0.0


@kernel
def _check(x, nothing, first, last):
    for j in range(first, last + 1):
        for k in range(LANES):
            nothing[k] += x[j, k] * 0.0


@kernel
def _culprit(x, first):
    """Find lane and sample of the first value that is not finite."""
    position = first * LANES
    while np.isfinite(x[position // LANES, position % LANES]):
        position += 1
    return position % LANES, position // LANES


@kernel
def _alone(code, x):
    """Apply an operation to single values."""
    if code == Code.NEGATIVE:
        for k in range(x.size):
            x[k] = -x[k]
    elif code == Code.ABSOLUTE:
        for k in range(x.size):
            x[k] = abs(x[k])
    elif code == Code.ROOT:
        for k in range(x.size):
            x[k] = np.sqrt(x[k])
    elif code == Code.POSITIVE:
        for k in range(x.size):
            x[k] = 1.0 if x[k] > 0.0 else -1.0
    elif code == Code.NOT_NEGATIVE:
        for k in range(x.size):
            x[k] = 1.0 if x[k] >= 0.0 else -1.0


@partial(kernel, error_model="numpy")
def _pairs(code, x, y):
    """Apply an operation to pairs of values."""
    if code == Code.ADD:
        for k in range(x.size):
            x[k] += y[k]
    elif code == Code.SUBTRACT:
        for k in range(x.size):
            x[k] -= y[k]
    elif code == Code.MULTIPLY:
        for k in range(x.size):
            x[k] *= y[k]
    elif code == Code.DIVIDE:
        for k in range(x.size):
            x[k] /= y[k]
    elif code == Code.SMALLER:
        for k in range(x.size):
            x[k] = _smaller(x[k], y[k])
    elif code == Code.LARGER:
        for k in range(x.size):
            x[k] = _larger(x[k], y[k])


# --- recurrences over time ------------------------------------------------------------------------------------------


@kernel
def _larger_rows(out, x, y):
    for k in range(LANES):
        out[k] = _larger(x[k], y[k])


@kernel
def _slide(x, rest, first, last, begin, end, final):
    """Replace sample i by the largest of the samples i + begin to i + end, up to `final`. No sample gives -inf.

    This is van Herk's algorithm. It cuts the samples into blocks of the window's length. A window is the rest of the
    block in which it begins, and the start of the next block. One pass computes the maxima of all rests and starts.
    """
    base = first + begin
    width = min(end - begin + 1, final - base + 1)
    for block in range(base, final + 1, width):
        stop = min(block + width - 1, final)
        rest[stop] = x[stop]
        for j in range(stop - 1, block - 1, -1):
            _larger_rows(rest[j], x[j], rest[j + 1])
        if first == last:  # one window, which is the first block
            break
        for j in range(block + 1, stop + 1):
            _larger_rows(x[j], x[j], x[j - 1])
    block = base if first == last else final - (final - base) % width  # windows from here on end in their own block
    inside, within = min(last, block - begin - 1), min(last, final - begin)
    for i in range(first, inside + 1):
        _larger_rows(x[i], rest[i + begin], x[min(i + begin + width - 1, final)])
    x[inside + 1 : within + 1] = rest[inside + 1 + begin : within + 1 + begin]
    x[within + 1 : last + 1] = -np.inf


@kernel
def _until(left, right, out, first, last):
    """Evaluate until without bounds from each sample on. `left` is not read at the last sample."""
    out[last] = right[last]
    for j in range(last - 1, first - 1, -1):
        x, y, after, own = left[j], right[j], out[j + 1], out[j]
        for k in range(LANES):
            own[k] = _larger(y[k], _smaller(x[k], after[k]))


@kernel
def run(program, constants, signals, registers, result):
    """Run a program on all traces. The result is register 0 at sample 0.

    Parameters
    ----------
    program : ndarray of int, shape (operations, 8)
        Operation, registers a and b, first and last sample, begin, end and final of the window.
    constants : ndarray of float
        The numbers that FILL uses.
    signals : ndarray of float, shape (signals, traces, samples)
        The number of traces is a multiple of `LANES`.
    registers : ndarray of float, shape (registers + 1, samples, LANES)
        Memory to work in.
    result : ndarray of float, shape (traces,)
        Where the results go.

    Returns
    -------
    tuple of int
        Operation, trace and sample of the first value that is not finite, or -1 three times.
    """
    rest, nothing = registers[-1], np.zeros(LANES)
    flat = registers.reshape(registers.shape[0], registers.shape[1] * LANES)
    for trace in range(0, result.size, LANES):
        for number in range(program.shape[0]):
            code, a, b, first, last, begin, end, final = program[number]
            x, values = registers[a], flat[a, first * LANES : (last + 1) * LANES]
            if code == Code.LOAD:
                _load(signals[b], trace, x, nothing, first, last)
            elif code == Code.FILL:
                values[:] = constants[b]
            elif code == Code.SLIDE:
                _slide(x, rest, first, last, begin, end, final)
            elif code == Code.UNTIL:
                _until(x, registers[a + 1], registers[a + 2], first, last)
            elif code == Code.LATER:
                _pairs(Code.SMALLER, values, flat[b, (first + begin) * LANES : (last + begin + 1) * LANES])
            elif code >= Code.ADD:
                _pairs(code, values, flat[b, first * LANES : (last + 1) * LANES])
            elif code == Code.CHECK:
                _check(x, nothing, first, last)
            else:
                _alone(code, values)
            if code <= Code.CHECK and np.isnan(nothing).any():
                lane, sample = _culprit(x, first)
                return number, trace + lane, sample
        result[trace : trace + LANES] = registers[0, 0]
    return -1, -1, -1
