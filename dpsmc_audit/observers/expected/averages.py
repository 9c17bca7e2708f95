"""The average termination time and decision at one L, and how entries change them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import Steps, cells_needed, exit_law, walk_until_forced
from dpsmc_audit.exact.overshoot import BUDGET, overshoots
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.observers.expected.bisection import mean_of
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["average_at", "forced_moments", "lowest_excess", "output_sensitivity", "start_of"]


_CHEAP = 3e6
"""Cells that the law for one L may cost where hundreds of L are asked for."""


def forced_moments(test: Sprt, p_phi: float, excess: float, forced: Mapping[int, int]) -> tuple[float, float]:
    """Compute E[tau | L] and P(H_null | L) with forced entries.

    If the exact law is expensive, Wald's identities give the part after the last forced entry.

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
        E[tau | L] and P(H_null | L).
    """
    walk, b_up, b_low = Steps.of(test, p_phi), test.b_up + excess, test.b_low + excess
    if cells_needed(walk, b_up, b_low) <= _CHEAP:
        law = exit_law(test, p_phi, excess, forced)
        return law.mean, law.null_probability
    last = max(forced)
    begun = walk_until_forced(walk, b_up, b_low, forced)
    smooth = overshoots(test, p_phi)
    mean, null = begun.law.mean + begun.law.alive * last, begun.law.null_probability
    for position, mass in zip(begun.positions.tolist(), begun.cells.tolist(), strict=True):
        ahead, behind = b_up - position, b_low + position
        rare = smooth.rare(ahead, behind)
        mean += mass * smooth.mean(ahead, behind)
        null += mass * (rare if smooth.turned else 1.0 - rare)
    return mean, null


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


def average_at(test: Sprt, p_phi: float, entries: tuple[int, ...], bit: int, excess: float) -> Enclosure:
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

    Returns
    -------
    Enclosure
        The average, with its numerical error.
    """
    if excess <= test.no_room:
        return Enclosure.around(1.0, 0.0, "coin")
    walk = Steps.of(test, p_phi)
    if cells_needed(walk, test.b_up + excess, test.b_low + excess) <= BUDGET:
        law = exit_law(test, p_phi, excess, dict.fromkeys(entries, bit))
        return Enclosure.around(*mean_of(law), "fixed bounds")
    mean = forced_moments(test, p_phi, excess, dict.fromkeys(entries, bit))[0]
    scale = overshoots(test, p_phi, 0.6).mean(test.b_up, test.b_low) - overshoots(test, p_phi).mean(
        test.b_up, test.b_low
    )
    return Enclosure.estimate(mean, 3.0 * abs(scale) + 1e-9 * mean, "overshoots")


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
