"""Sums of products that do not depend on the processor: each is added in one order, on every machine.

The products of a linear algebra library (``@``, ``np.dot``, ``np.convolve``) add in an order that goes with the
processor, and their last digits with it. Where such a digit is stored, or decides anything, these stand in for them.
"""

from __future__ import annotations

import math

import numpy as np

from dpsmc_audit.numerics.jit import kernel

__all__ = ["convolution", "dot", "tilted"]


@kernel
def dot(a, b):
    """``sum(a * b)``, with the rounding of each addition carried along (Kahan and Neumaier)."""
    total, carried = 0.0, 0.0
    for i in range(a.size):
        term = a[i] * b[i]
        new = total + term
        carried += (total - new) + term if abs(total) >= abs(term) else (term - new) + total
        total = new
    return total + carried


@kernel
def tilted(weights, rate, x):
    """``sum(weights * exp(rate * x))``, likewise."""
    total, carried = 0.0, 0.0
    for i in range(x.size):
        term = weights[i] * math.exp(rate * x[i]) if weights[i] != 0.0 else 0.0
        new = total + term
        carried += (total - new) + term if abs(total) >= abs(term) else (term - new) + total
        total = new
    return total + carried


@kernel
def convolution(a, b):
    """All of ``np.convolve(a, b)``; each entry is added in the order of the shorter one's entries."""
    out = np.zeros(a.size + b.size - 1)
    if a.size > b.size:
        a, b = b, a
    for i in range(a.size):
        factor, into = a[i], out[i : i + b.size]
        for j in range(b.size):
            into[j] += factor * b[j]
    return out
