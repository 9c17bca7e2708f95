"""Lookup tables of the powertrain benchmark, read along the charge at one engine speed.

The speed is constant over a trace, so a table over (speed, charge) becomes a piecewise linear function of the charge
before the trace starts. The published model extrapolates linearly beyond the ends. A real engine does not: the film's
time constant falls below zero at the charges that an idling engine reaches from about 3540 rpm on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsmc_audit.numerics.arrays import FloatArray

__all__ = ["DELAY", "DRY", "KAPPA", "TAU", "WET", "Table", "pieces"]


@dataclass(frozen=True, eq=False)
class Table:
    """A table over engine speed and charge.

    Parameters
    ----------
    speeds : ndarray
        Engine speeds in rpm.
    charges : ndarray
        Charges in g of air per cylinder.
    values : ndarray
        ``values[i, j]`` is the value at ``speeds[i]`` and ``charges[j]``.
    """

    speeds: FloatArray
    charges: FloatArray
    values: FloatArray


def _table(speeds: list[float], charges: list[float], *rows: list[float]) -> Table:
    return Table(np.array(speeds), np.array(charges), np.array(rows))


KAPPA = _table(
    [1000, 1500, 2000, 2500, 3000],
    [0.1, 0.2, 0.3, 0.4],
    [0.8, 0.7, 0.66, 0.6],
    [0.7, 0.66, 0.66, 0.6],
    [0.7, 0.65, 0.63, 0.6],
    [0.8, 0.73, 0.66, 0.6],
    [0.9, 0.85, 0.8, 0.7],
)
"""Share of the injected fuel that enters the cylinder at once. The rest wets the wall of the port."""

TAU = _table(
    [1000, 1500, 2000, 2500, 3000],
    [0.1, 0.2, 0.3, 0.4],
    [0.4, 0.22, 0.2, 0.35],
    [0.3, 0.22, 0.22, 0.3],
    [0.35, 0.4, 0.5, 0.45],
    [0.3, 0.35, 0.4, 0.5],
    [0.2, 0.5, 0.35, 0.4],
)
"""Time constant, in seconds, with which the film on the wall evaporates."""

DELAY = _table(
    [800, 1000, 1500, 2000, 3000],
    [0.05, 0.15, 0.2, 0.25],
    [0.8, 0.4, 0.3, 0.25],
    [0.6, 0.3, 0.25, 0.2],
    [0.4, 0.2, 0.2, 0.2],
    [0.3, 0.2, 0.2, 0.2],
    [0.2, 0.2, 0.2, 0.2],
)
"""Seconds from the cylinder to the sensor."""

WET = (np.array([1000.0, 2000.0, 3000.0]), np.array([0.4, 0.65, 0.5]))
DRY = (np.array([1000.0, 2000.0, 3000.0]), np.array([0.5, 0.95, 0.9]))
"""The closed-loop variant's film compensation over speed: shares that stay on the wall, of new fuel and of the film."""


def pieces(table: Table, speed: FloatArray, *, extrapolate: bool = True) -> FloatArray:
    """Read a table at one speed for each trace, as a piecewise linear function of the charge.

    Parameters
    ----------
    table : Table
        The table.
    speed : ndarray
        The speed of each trace.
    extrapolate : bool
        Extend the table linearly. Otherwise hold its last values.

    Returns
    -------
    ndarray, shape (traces, 5, 2)
        Intercept and slope below the first column, in the three cells, and beyond the last column.

    Examples
    --------
    >>> line = pieces(TAU, np.array([1250.0]))[0]
    >>> round(float(line[1, 0] + line[1, 1] * 0.1), 3)  # between .4 and .3
    0.35
    """
    read = speed if extrapolate else np.clip(speed, table.speeds[0], table.speeds[-1])
    row = np.clip(np.searchsorted(table.speeds, read, side="right") - 1, 0, table.speeds.size - 2)
    share = (read - table.speeds[row]) / (table.speeds[row + 1] - table.speeds[row])
    values = table.values[row] + share[:, None] * (table.values[row + 1] - table.values[row])
    slope = np.diff(values, axis=1) / np.diff(table.charges)
    cells = np.stack([values[:, :-1] - slope * table.charges[:-1], slope], axis=2)
    below, beyond = cells[:, :1], cells[:, -1:]
    if not extrapolate:
        held = np.stack([values, np.zeros_like(values)], axis=2)
        below, beyond = held[:, :1], held[:, -1:]
    return np.ascontiguousarray(np.concatenate([below, cells, beyond], axis=1))
