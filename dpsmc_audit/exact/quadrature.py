"""Averages over L by quadrature of the exact law for fixed bounds; the stated errors are estimates.

The steps that the law for fixed bounds makes in L limit the accuracy. Means and errors are therefore averaged in two
parts: a smooth part, by Wald's identities with measured overshoots, and the small difference of the law from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import Steps, cells_needed, exit_law, walk_until_exit
from dpsmc_audit.exact.overshoot import BUDGET, overshoots
from dpsmc_audit.mechanisms import Exponential, Mechanism
from dpsmc_audit.numerics.sums import tilted
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = [
    "average_over",
    "fixed",
    "mean_by_quadrature",
    "nodes_of",
    "rare_by_overshoots",
    "rare_by_quadrature",
    "refine",
]

FloatArray = NDArray[np.float64]


def refine(average: Callable[[int], float], tolerance: float, most: int) -> Enclosure:
    """Double the number of nodes until three refinements in a row hardly change the average.

    The error reported is three times the largest of these changes: a single one can be small by chance.

    Parameters
    ----------
    average : callable
        The average for a number of nodes.
    tolerance : float
        The relative error at which to stop, from 8 nodes on.
    most : int
        The number of nodes at which to stop.

    Returns
    -------
    Enclosure
        The last average and the estimate of its error.
    """
    nodes = 1
    values, error = [average(nodes)], math.inf
    while nodes < most and (nodes < 8 or error > tolerance * abs(values[-1])):
        nodes *= 2
        values.append(average(nodes))
        error = 3.0 * float(np.abs(np.diff(values[-4:])).max())
    return Enclosure.estimate(values[-1], error + 1e-13 * abs(values[-1]), "quadrature")


@lru_cache(maxsize=4096)
def fixed(test: Sprt, p_phi: float, excess: float, budget: float = BUDGET) -> tuple[float, float]:
    """Compute the first two moments of tau for a fixed L.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    excess : float
        The value of L.
    budget : float
        If the exact law would visit more cells than this, Wald's identities replace it.

    Returns
    -------
    mean, second : float
        E[tau | L] and E[tau^2 | L]. The latter is nan if only Wald's identities are affordable.
    """
    walk = Steps.of(test, p_phi)
    if cells_needed(walk, test.b_up + excess, test.b_low + excess) <= budget:
        law = exit_law(test, p_phi, excess)
        return law.mean, law.second_moment
    return overshoots(test, p_phi).mean(test.b_up + excess, test.b_low + excess), math.nan


@lru_cache(maxsize=4096)
def fixed_rare(test: Sprt, p_phi: float, excess: float) -> float:
    """Compute P(leave against the drift | L), times ``exp(|h| L)``. The conjugate walk usually leaves on that side.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    excess : float
        The value of L.

    Returns
    -------
    float
        The scaled probability. Wald's identities give it if the exact law is not affordable.
    """
    h, walk = test.exponent(p_phi), Steps.of(test, p_phi)
    b_up, b_low = test.b_up + excess, test.b_low + excess
    if cells_needed(walk, b_up, b_low) > BUDGET:
        return overshoots(test, p_phi).rare(b_up, b_low) * math.exp(abs(h) * excess)
    law = walk_until_exit(walk.conjugate(h), b_up, b_low, alive=1e-9)
    if h < 0.0:
        return float(tilted(law.null, h, law.over_null)) * math.exp(h * test.b_up)
    return float(tilted(law.alt, -h, law.over_alt)) * math.exp(-h * test.b_low)


def nodes_of(mechanism: Exponential, count: int, tilt: float, share: float) -> list[tuple[float, float]]:
    """Make nodes and weights for averages over L, without nodes of small weight.

    Parameters
    ----------
    mechanism : Exponential
        The law of L.
    count : int
        The number of nodes before small ones are removed.
    tilt : float
        The weights include the factor ``exp(-tilt L)``.
    share : float
        A node is removed if its weight is at most this share of the largest weight.

    Returns
    -------
    list of (float, float)
        Nodes with their weights.
    """
    points, weights = mechanism.nodes(count, tilt)
    keep = weights > share * weights.max()
    return list(zip(points[keep].tolist(), weights[keep].tolist(), strict=True))


@lru_cache(maxsize=1)
def _panels() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights of the unit exponential law, on panels that double from 3e-11 to 30."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.concatenate([[0.0], 30.0 * 0.5 ** np.arange(40.0, -1.0, -1.0)])
    half = 0.5 * np.diff(edges)[:, None]
    y = (half * (nodes + 1.0) + edges[:-1, None]).ravel()
    return y, (half * weights).ravel() * np.exp(-y)


def average_over(mechanism: Mechanism, function: Callable[[float], float]) -> float:
    """Compute E[function(L)] by quadrature in ``-ln(survival)``.

    Parameters
    ----------
    mechanism : Mechanism
        The law of L.
    function : callable
        A smooth function that is cheap to evaluate.

    Returns
    -------
    float
        The average.
    """
    y, weights = _panels()
    excess = mechanism.quantile(-np.expm1(-y))
    return math.fsum(w * function(x) for x, w in zip(excess.tolist(), weights.tolist(), strict=True))


def mean_by_quadrature(setting: Setting) -> Enclosure:
    """Compute the mean number of samples for an exponential L.

    It is the average of Wald's identities over L, plus the difference of the law for fixed bounds from them at a few
    nodes.

    Parameters
    ----------
    setting : Setting
        The test, its noise (`Exponential`) and the system.

    Returns
    -------
    Enclosure
        The mean and an estimate of its error.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    assert isinstance(mechanism, Exponential)
    walk = Steps.of(test, p_phi)

    def wald(excess: float, scale: float = 1.0) -> float:
        return overshoots(test, p_phi, scale).mean(test.b_up + excess, test.b_low + excess)

    nodes = nodes_of(mechanism, 8, 0.0, 1e-8)
    affordable = [(x, w) for x, w in nodes if cells_needed(walk, test.b_up + x, test.b_low + x) <= BUDGET]
    differences = [(w, fixed(test, p_phi, x)[0] - wald(x)) for x, w in affordable]
    base = average_over(mechanism, wald)
    value = base + math.fsum(w * d for w, d in differences)
    error = max((abs(d) for _, d in differences), default=0.0) + 1e-12 * value
    if len(affordable) < len(nodes):
        error += 3.0 * abs(base - average_over(mechanism, lambda x: wald(x, 0.6)))
    return Enclosure.estimate(value, error, "quadrature")


def rare_by_quadrature(setting: Setting) -> Enclosure:
    """Compute P(leave against the drift) by Gauss nodes for the law of L tilted by exp(-|h| L), more and more of them.

    Parameters
    ----------
    setting : Setting
        The test, its noise (`Exponential`) and the system.

    Returns
    -------
    Enclosure
        The probability and an estimate of its error.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    assert isinstance(mechanism, Exponential)
    h = abs(test.exponent(p_phi))

    def average(count: int) -> float:
        return math.fsum(w * fixed_rare(test, p_phi, x) for x, w in nodes_of(mechanism, count, h, 1e-6))

    return refine(average, 3e-3, most=64)


def rare_by_overshoots(setting: Setting) -> Enclosure:
    """Compute P(leave against the drift) for an exponential L.

    It is the average of Wald's identities over L, plus the difference of the law for fixed bounds from them at a few
    places. The difference is noise around 0. The choice of the places matters little, so mechanisms share them if they
    can.

    Parameters
    ----------
    setting : Setting
        The test, its noise (`Exponential`) and the system. There must be a drift.

    Returns
    -------
    Enclosure
        The probability and an estimate of its error.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    assert isinstance(mechanism, Exponential)
    h, walk = abs(test.exponent(p_phi)), Steps.of(test, p_phi)

    def wald(excess: float, scale: float = 1.0) -> float:
        if h * min(test.b_up, test.b_low) > 15.0:  # too rare to measure its overshoot, and simply exponential
            return 0.0
        return overshoots(test, p_phi, scale).rare(test.b_up + excess, test.b_low + excess)

    ((center, weight),) = nodes_of(mechanism, 1, h, 0.0)  # mean and mass of the law of L tilted by exp(-h L)
    scale = 1.0 / h if center > 0.5 / h else center
    places = [scale * x for x in (0.2, 0.8, 2.0, 4.5)]
    differences = np.array([fixed_rare(test, p_phi, x) - math.exp(h * x) * wald(x) for x in places])
    base = average_over(mechanism, wald)
    value = base + weight * float(differences.mean())
    error = 4.0 * weight * float(np.abs(differences - differences.mean()).max()) + 1e-9 * value
    if max(cells_needed(walk, test.b_up + x, test.b_low + x) for x in places) > BUDGET:
        error += 3.0 * abs(base - average_over(mechanism, lambda x: wald(x, 0.6)))
    return Enclosure.estimate(value, error, "overshoots")
