"""What the decision alone reveals about the first sample, for any p_phi.

Near p the law of tau cannot be computed. Without drift, P(H_null) depends on the first sample by
``c / (b_up + b_low + 2 L)``, and the observer of (tau, o) learns at least that. If the bounds are few steps apart, a
dynamic programme computes it. Otherwise Wald's identity does, with the overshoots of the widest programme.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsmc_audit.exact.fixed import cells_needed, walk_until_exit
from dpsmc_audit.exact.walk import Steps
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify.bound import ruin

__all__ = ["Decision", "decision_alone"]


@dataclass(frozen=True)
class Decision:
    """The law of the decision given the first sample.

    Parameters
    ----------
    one, zero : float
        P(H_null) given a first sample of 1, and given one of 0.
    error, error_zero : float
        Errors of their difference, and of `zero`.
    """

    one: float
    zero: float
    error: float
    error_zero: float

    def delta(self, epsilon: float) -> float:
        """Compute the delta that the worse direction needs. At epsilon = 0 this is the total variation.

        Parameters
        ----------
        epsilon : float
            The privacy level.

        Returns
        -------
        float
            The delta.

        Examples
        --------
        >>> round(Decision(0.75, 0.25, 0.0, 0.0).delta(math.log(2.0)), 9)
        0.25
        """
        times = math.exp(min(epsilon, 700.0))
        return max(self.one - times * self.zero, (1.0 - self.zero) - times * (1.0 - self.one), 0.0)

    def delta_error(self, epsilon: float) -> float:
        """Compute by how much `delta` may be off.

        Parameters
        ----------
        epsilon : float
            The privacy level.

        Returns
        -------
        float
            The error.
        """
        return self.error + math.expm1(min(epsilon, 700.0)) * (self.error + self.error_zero)


def decision_alone(setting: Setting) -> Decision:
    """Compute the law of the decision given the first sample, averaged over L.

    Parameters
    ----------
    setting : Setting
        The test, its noise and p_phi.

    Returns
    -------
    Decision
        The law. Its errors are estimates.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.5, delta=0.2, alpha=0.05)
    >>> setting = Setting(test, Exponential.private(test, 0.01), 0.5)
    >>> round(decision_alone(setting).delta(0.0), 5)  # the sum of P(L) / ceil(b / s)
    0.01717
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    walk, h = Steps.of(test, p_phi), test.exponent(p_phi)
    widest = _widest(test, walk)
    nodes, weights = _nodes(test, mechanism, widest)
    near = max(test.b_up, test.b_low) + nodes <= widest
    over, other = (_overshoots(test, walk, scale * widest) for scale in (1.0, 0.6))
    values = _by_wald(test, h, nodes, over)
    for place in np.flatnonzero(near):
        values[:, place] = _by_programme(test, walk, float(nodes[place]))
    coin = 1.0 - float(mechanism.survival(test.no_room))
    one, zero = (float((row * weights).sum()) + 0.5 * coin for row in values)
    if widest == 0.0:
        other = (0.0, 0.0)
    far = ((_by_wald(test, h, nodes, other) - values) * weights)[:, ~near].sum(axis=1)
    error, error_zero = (
        (_roughness(test, row[near], weights[near]) if mechanism.atoms is None else 0.0) + 3.0 * abs(float(off)) + 1e-9
        for row, off in ((values[0] - values[1], far[0] - far[1]), (values[1], far[1]))
    )
    return Decision(one, zero, error, error_zero)


def _widest(test: Sprt, walk: Steps) -> float:
    """The widest bounds for the programme. 0 if one kind of sample is so rare that all bounds cost too much."""
    c, affordable = test.step_sum, 5e6  # cells for one L
    return next((w * c for w in (12.0, 6.0, 3.0) if cells_needed(walk, w * c, w * c) <= affordable), 0.0)


def _nodes(test: Sprt, mechanism: Mechanism, widest: float) -> tuple[FloatArray, FloatArray]:
    """Choose values of L with their probabilities: all atoms, or two in each interval.

    Where the bounds are few steps apart, intervals end where one of the bounds is a whole number of the smaller steps.
    With p = 1/2 the law for a fixed L is constant in between.
    """
    if mechanism.atoms is not None:
        values, shares = (np.array(column) for column in zip(*mechanism.atoms, strict=True))
        room = values > test.no_room
        return values[room], shares[room]
    c, step, low = test.step_sum, min(test.s_plus, test.s_minus), min(test.b_up, test.b_low)
    lowest = max(float(mechanism.quantile(0.0)), test.no_room)
    top = max(float(mechanism.quantile(1.0 - 1e-12)), lowest + c)
    wide = widest - max(test.b_up, test.b_low)
    edges = np.array([lowest])
    if wide > lowest:
        each = max(step, (wide - lowest) / 48)  # about 48 intervals for the programme
        steps = np.arange(1, math.ceil((widest + wide) / each) + 1) * each
        ends = np.concatenate([steps - test.b_up, steps - test.b_low])
        edges = np.unique(np.concatenate([edges, ends[(ends > lowest) & (ends < wide)], [wide]]))
        edges = np.append(edges[:-1][np.diff(edges) > 1e-9 * c], edges[-1])
    if top > edges[-1]:
        ahead = low + edges[-1] + c
        more = np.geomspace(ahead, ahead + top - edges[-1], 4_000)[1:]
        edges = np.concatenate([edges, edges[-1] + more - ahead])
    masses = -np.diff(mechanism.survival(edges))
    masses[-1] += float(mechanism.survival(edges[-1]))
    quarter = 0.25 * np.diff(edges)
    return np.column_stack([edges[:-1] + quarter, edges[1:] - quarter]).ravel(), np.repeat(0.5 * masses, 2)


def _by_programme(test: Sprt, walk: Steps, excess: float) -> tuple[float, float]:
    """Compute P(H_null) for one L. The few walks that still run count half."""
    one, zero = (
        walk_until_exit(walk, test.b_up + excess, test.b_low + excess, forced={1: bit}, alive=1e-10) for bit in (1, 0)
    )
    return one.null_probability + 0.5 * one.alive, zero.null_probability + 0.5 * zero.alive


def _overshoots(test: Sprt, walk: Steps, widest: float) -> tuple[float, float]:
    """Compute mean overshoots above and below, averaged over bounds that differ by parts of a step.

    Without a programme they are half a step.
    """
    if widest == 0.0:
        return 0.5 * test.s_plus, 0.5 * test.s_minus
    up = low = above = below = 0.0
    for part in (0.125, 0.375, 0.625, 0.875):
        bound = widest - part * min(test.s_plus, test.s_minus)
        law = walk_until_exit(walk, bound, bound, alive=1e-10)
        up, low = up + law.null_probability, low + law.alt_probability
        above += float((law.null * law.over_null).sum())
        below += float((law.alt * law.over_alt).sum())
    return above / max(up, 1e-12), below / max(low, 1e-12)


def _by_wald(test: Sprt, h: float, excess: FloatArray, over: tuple[float, float]) -> FloatArray:
    """Compute P(H_null) for each L with bounds moved out by the mean overshoots, for a first sample of 1 and of 0."""
    up, low = test.b_up + over[0] + excess, test.b_low + over[1] + excess
    starts = (np.clip(low + step, 0.0, low + up) for step in (test.s_plus, -test.s_minus))
    return np.array([ruin(np.full_like(excess, h), start, low + up) for start in starts])


def _roughness(test: Sprt, values: FloatArray, weights: FloatArray) -> float:
    """Estimate the error of the sum over L. The law is assumed to jump at random between neighbouring L.

    Where all steps are equal it jumps only at the ends of intervals, which are known.
    """
    jumps = 0.5 * (weights[1:] + weights[:-1]) * np.diff(values)
    if test.s_plus == test.s_minus:
        jumps = jumps[::2]
    return 3.0 * float(np.sqrt((jumps**2).sum()))
