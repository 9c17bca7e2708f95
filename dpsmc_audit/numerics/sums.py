"""Sums of products that do not depend on the processor: each is added in one order, on every machine.

The products of a linear algebra library (``@``, ``np.dot``, ``np.convolve``) add in an order that depends on the
processor. Their last digits depend on it too. Where such a digit is stored or decides anything, these functions
replace them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsmc_audit.numerics.arrays import FloatArray, IntArray
from dpsmc_audit.numerics.jit import kernel

__all__ = ["convolution", "dot", "sum_of_squares", "tilted", "total"]


@kernel
def dot(a, b):
    """Compute ``sum(a * b)``. The rounding error of each addition is carried along (Kahan and Neumaier).

    Parameters
    ----------
    a, b : array
        Arrays of the same size.

    Returns
    -------
    float
        The sum.
    """
    total, carried = 0.0, 0.0
    for i in range(a.size):
        term = a[i] * b[i]
        new = total + term
        carried += (total - new) + term if abs(total) >= abs(term) else (term - new) + total
        total = new
    return total + carried


@kernel
def tilted(weights, rate, x):
    """Compute ``sum(weights * exp(rate * x))``. The rounding error of each addition is carried along.

    Parameters
    ----------
    weights : array
        The weights. A weight of 0 gives 0, even if the exponential overflows.
    rate : float
        The rate.
    x : array
        The exponents without the rate, as many as weights.

    Returns
    -------
    float
        The sum.
    """
    total, carried = 0.0, 0.0
    for i in range(x.size):
        term = weights[i] * math.exp(rate * x[i]) if weights[i] != 0.0 else 0.0
        new = total + term
        carried += (total - new) + term if abs(total) >= abs(term) else (term - new) + total
        total = new
    return total + carried


@kernel
def convolution(a, b):
    """Compute the full ``np.convolve(a, b)``. The terms of each entry are added in the order of the shorter array.

    Parameters
    ----------
    a, b : array
        The arrays, not empty.

    Returns
    -------
    array
        The convolution, of size ``a.size + b.size - 1``.
    """
    out = np.zeros(a.size + b.size - 1)
    if a.size > b.size:
        a, b = b, a
    for i in range(a.size):
        factor, into = a[i], out[i : i + b.size]
        for j in range(b.size):
            into[j] += factor * b[j]
    return out


def total(rows: Sequence[FloatArray]) -> FloatArray:
    """Add arrays of different lengths. The shorter ones are continued by 0.

    Parameters
    ----------
    rows : sequence of array
        The arrays, at least one.

    Returns
    -------
    array
        The sum, as long as the longest array.
    """
    total = np.zeros(max(row.size for row in rows))
    for row in rows:
        total[: row.size] += row
    return total


def sum_of_squares(values: IntArray) -> int:
    """Sum up the squares of integers without overflow.

    The integers are cut into halves of 20 bits, so that no sum overflows.

    Parameters
    ----------
    values : ndarray of int64
        Up to 2^20 integers below 2^41.

    Returns
    -------
    int
        The sum, exactly.

    Examples
    --------
    >>> sum_of_squares(np.array([2**40, -3])) == 2**80 + 9
    True
    """
    high, low = values >> 20, values & 0xFFFFF
    return (int(high @ high) << 40) + (int(high @ low) << 21) + int(low @ low)
