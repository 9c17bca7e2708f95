"""The two recurrences of temporal operators, linear in the length of the traces; all of the package's jitted code.

Arrays are (points, lanes): time goes down, traces stand side by side, so that each step is one vector operation on all
of them. Values are floats (robustness) or the integers 1 and -1 (truth); for both, `or` is the larger one.
"""

from __future__ import annotations

from numba import njit

__all__ = ["sliding_max", "until"]


@njit(cache=True, nogil=True)
def _larger(a, b):
    return a if a > b else b


@njit(cache=True, nogil=True)
def _smaller(a, b):
    return a if a < b else b


@njit(cache=True, nogil=True)
def sliding_max(values, window, out):
    """``out[i] = max(values[i : i + window])``, as much of the window as there is; ``values[i]`` must exist.

    Van Herk's way: cut the points into blocks of a window's length. A window is the rest of the block it begins in and
    the start of the next one, and the maxima of all rests and all starts take one pass each.
    """
    points, lanes = values.shape
    rest, start = values.copy(), values[0].copy()
    for i in range(points - 2, -1, -1):
        if i % window != window - 1:
            for k in range(lanes):
                rest[i, k] = _larger(rest[i, k], rest[i + 1, k])
    for i in range(out.shape[0]):
        last = i + window - 1  # in the block after that of i, unless i begins a block
        if last < points and i % window != 0:
            begins = last % window == 0
            for k in range(lanes):
                start[k] = values[last, k] if begins else _larger(start[k], values[last, k])
        if i % window == 0 or i + window - i % window >= points:
            for k in range(lanes):
                out[i, k] = rest[i, k]
        else:
            for k in range(lanes):
                out[i, k] = _larger(rest[i, k], start[k])


@njit(cache=True, nogil=True)
def until(left, right, out):
    """Until without bounds: right holds at some point and left at all points before it, the point itself not asked.

    ``left`` has one point less than ``right``, as nothing is before the last point that matters.
    """
    points, lanes = right.shape
    for k in range(lanes):
        out[points - 1, k] = right[points - 1, k]
    for i in range(points - 2, -1, -1):
        for k in range(lanes):
            out[i, k] = _larger(right[i, k], _smaller(left[i, k], out[i + 1, k]))
