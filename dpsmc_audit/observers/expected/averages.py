"""The average termination time and decision at one L, and how entries change them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import BUDGET, cells_needed, exit_law, walk_for
from dpsmc_audit.exact.walk import Ends, Steps, turned_up, walds_mean, walds_ruin
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.sums import dot
from dpsmc_audit.observers.expected.bisection import mean_of
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["CHEAP", "average_at", "forced_moments", "lowest_excess", "output_sensitivity", "start_of"]


CHEAP = 3e6
"""Cells that the law for one L may cost where hundreds of L are asked for."""


def forced_moments(test: Sprt, p_phi: float, excess: float, forced: Mapping[int, int]) -> tuple[float, float]:
    """Compute E[tau | L] and P(H_null | L) with forced entries.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds.
    excess : float
        L.
    forced : mapping
        The value of each forced sample, counted from 1.

    Returns
    -------
    tuple of float
        E[tau | L] and P(H_null | L): the middles of what `_enclosed` knows if the exact law is expensive.
    """
    if cells_needed(Steps.of(test, p_phi), test.b_up + excess, test.b_low + excess) <= CHEAP:
        law = exit_law(test, p_phi, excess, forced)
        return law.mean, law.null_probability
    mean, null = _enclosed(test, p_phi, excess, forced)
    return mean.value, null.value


def _enclosed(test: Sprt, p_phi: float, excess: float, forced: Mapping[int, int]) -> tuple[Enclosure, Enclosure]:
    """Enclose E[tau | L] and P(H_null | L): the programme up to the last forced entry, then Wald's identities."""
    turned, last = turned_up(test, p_phi), max(forced)
    begun = walk_for(Steps.of(test, p_phi), test.b_up + excess, test.b_low + excess, last, forced)
    moved = -begun.positions if turned.over else begun.positions
    near, far = turned.near + excess - moved, turned.far + excess + moved
    mean, rare = walds_mean(turned, near, far), walds_ruin(turned, near, far)
    null = rare if turned.over else (1.0 - rare[1], 1.0 - rare[0])
    lost, longest = begun.law.lost, float(np.max(mean[1], initial=0.0))
    slack = 1e-12 * last

    def enclosed(before: float, after: Ends, unseen: float) -> Enclosure:
        low, high = (before + float(dot(begun.cells, end)) for end in after)
        return Enclosure(low * (1.0 - slack), high * (1.0 + slack) + unseen, "wald")

    return (
        enclosed(begun.law.mean + begun.law.alive * last, mean, lost * (last + longest)),
        enclosed(begun.law.null_probability, null, lost),
    )


def lowest_excess(test: Sprt, mechanism: Mechanism) -> float:
    """Return the smallest L that leaves room between the bounds. It is slightly above where a coin decides.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.

    Returns
    -------
    float
        The value of L.
    """
    return max(float(mechanism.quantile(0.0)), test.least_room)


def start_of(setting: Setting, entries: tuple[int, ...], bit: int) -> Enclosure:
    """Compute g_x at the smallest L.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    entries : tuple of int
        The samples that differ, counted from 1.
    bit : int
        Their value.

    Returns
    -------
    Enclosure
        The average, with its numerical error.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    return average_at(test, p_phi, entries, bit, float(mechanism.quantile(0.0)))


def average_at(
    test: Sprt, p_phi: float, entries: tuple[int, ...], bit: int, excess: float, most: float = BUDGET
) -> Enclosure:
    """Compute g_x at an L: 1 where a coin decides, a whole number where samples are certain.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds.
    entries : tuple of int
        The samples that differ, counted from 1.
    bit : int
        Their value.
    excess : float
        L.
    most : float
        The cells that the exact law may visit. Wald's identities bound the average if it needs more.

    Returns
    -------
    Enclosure
        The average, with its numerical error.
    """
    if excess <= test.no_room:
        return Enclosure.around(1.0, 0.0, "coin")
    walk = Steps.of(test, p_phi)
    if cells_needed(walk, test.b_up + excess, test.b_low + excess) <= most:
        law = exit_law(test, p_phi, excess, dict.fromkeys(entries, bit))
        return Enclosure.around(*mean_of(law), "fixed bounds")
    return _enclosed(test, p_phi, excess, dict.fromkeys(entries, bit))[0]


def output_sensitivity(pair: Adjacent) -> float:
    """Compute ``|E[o | L, x_n = 1] - E[o | L, x_n = 0]|``, the largest over a grid of L that starts at the smallest.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.

    Returns
    -------
    float
        The largest difference on the grid.
    """
    setting, entries = pair.setting, pair.entries
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    shares = np.linspace(0.0, 0.95, 11)
    largest = 0.0
    for excess in np.unique(np.maximum(mechanism.quantile(shares), lowest_excess(test, mechanism))):
        one, zero = (forced_moments(test, p_phi, float(excess), dict.fromkeys(entries, bit))[1] for bit in (1, 0))
        largest = max(largest, abs(one - zero))
    return largest
