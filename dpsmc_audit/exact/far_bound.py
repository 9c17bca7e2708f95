"""The far-bound correction: how often a walk meets the bound that it drifts away from, and what that changes.

`laws` adds up the passage over the near bound alone and, where both bounds can be met, the change by the far one.
`strata` averages this change over L. It falls like ``exp(-h L)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.fixed import ExitLaw, Steps, walk_until_exit
from dpsmc_audit.exact.overshoot import turned_up
from dpsmc_audit.numerics.sums import total
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["FAR", "OFTEN", "change", "far_share", "splits"]

FloatArray = NDArray[np.float64]

FAR = 23.0
"""A bound further than this over h against the drift is reached with probability exp(-23), 1e-10."""

OFTEN = 0.03
"""If the far bound is met more often than this, the passage over the near one does not help. Strata do everything."""


def change(
    test: Sprt, p_phi: float, excess: float, forced: Mapping[int, int], law: ExitLaw
) -> tuple[FloatArray, FloatArray]:
    """Compute by how much the far bound changes P(tau = k, H_null) and P(tau = k, H_alt).

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    excess : float
        The value of L.
    forced : mapping
        Samples that are given (entry: bit), counted from 1.
    law : ExitLaw
        The law with both bounds.

    Returns
    -------
    null, alt : array
        The law less that of the passage over the near bound alone.
    """
    deep = FAR / abs(test.exponent(p_phi)) + len(forced) * test.step_sum  # forced entries may lead there
    up, low = (test.b_up + excess, deep) if test.drift(p_phi) > 0.0 else (deep, test.b_low + excess)
    alone = walk_until_exit(Steps.of(test, p_phi), up, low, forced=forced)
    if test.drift(p_phi) > 0.0:
        return total([law.null, -alone.null]), law.alt
    return law.null, total([law.alt, -alone.alt])


def splits(test: Sprt, p_phi: float, forced: Mapping[int, int]) -> tuple[float, float]:
    """Find the two values of L that split the average.

    From the first on, no bound is met before the last forced entry. From the second on, the far bound is never met.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.
    forced : mapping
        Samples that are given (entry: bit), counted from 1.

    Returns
    -------
    settled, apart : float
        The two values. The second one is infinite without drift.
    """
    h, (_, walk, near, far), last = abs(test.exponent(p_phi)), turned_up(test, p_phi), max(forced, default=0)
    settled = max(last * walk.down - far, (last + 1) * walk.up - near)
    return settled, max(FAR / h + last * walk.down - far, settled) if h > 0.0 else math.inf


def far_share(setting: Setting) -> float:
    """Estimate how often the far bound is met: ``E[exp(-h (b_far + L))]``.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.

    Returns
    -------
    float
        The probability, up to overshoot.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    h, far = abs(test.exponent(p_phi)), turned_up(test, p_phi)[3]
    excess = np.maximum(mechanism.quantile((np.arange(200) + 0.5) / 200), test.no_room)
    return float(np.exp(-h * (far + excess)).mean())
