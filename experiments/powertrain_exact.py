"""p_phi of the powertrain without sampling: the share of the random inputs whose trace satisfies the specification.

The inputs determine a trace, so p_phi is the measure of a set of inputs. In one variable the set is a few intervals,
whose ends are found by bisection. In levels (the quantile's argument, uniform on [0, 1]) its measure is their total
length, the point masses where the speed saturates included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import require
from dpsmc_audit.models.powertrain import TOLERANCES, Inputs, Powertrain
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.stl.traces import Traces

__all__ = ["ExactProbability", "exact_p_phi"]

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ExactProbability:
    """`p_phi` of the model at its step. `edges` are the speeds where the verdict changes (speed alone random)."""

    p_phi: float
    error: float
    edges: FloatArray


def exact_p_phi(model: Powertrain, holds: Callable[[Traces], Bools], *, scan: int = 512) -> ExactProbability:
    """Compute P(holds) where the speed, or the speed and one tolerance, is random.

    Verdicts are compared at `scan` levels in equal distance and, for the speed, as many more out to seven standard
    deviations. An interval between two neighbours is not seen, and `error` does not cover that. With a tolerance, its
    share at each speed is integrated over the speed by Gauss-Hermite quadrature. `error` is then the difference to
    half of the nodes.
    """
    from scipy.special import ndtr

    widths = {name: getattr(model, name) for name in TOLERANCES if getattr(model, name) > 0.0}
    require(len(widths) <= 1, f"exact p_phi is for one tolerance at most, got {', '.join(widths)}")

    def verdicts(inputs: Inputs) -> Bools:
        return holds(model.respond(inputs))

    if not widths:
        levels = np.union1d(_even(scan), ndtr(np.linspace(-7.0, 7.0, scan)))
        share, levels = _measure(lambda level: verdicts(Inputs.nominal(model.speed_quantile(level))), levels)
        return ExactProbability(share, 2.0**-38, model.speed_quantile(levels))
    ((name, width),) = widths.items()

    def given(speed: float) -> float:
        def at(level: FloatArray) -> Bools:
            nominal = Inputs.nominal(np.full(level.size, speed))
            return verdicts(replace(nominal, **{name: 1.0 + width * (2.0 * level - 1.0)}))

        return _measure(at, _even(max(scan // 8, 8)))[0]

    fine, coarse = (_over_normal(given, model, nodes) for nodes in (32, 16))
    return ExactProbability(fine, abs(fine - coarse), np.empty(0))


def _even(scan: int) -> FloatArray:
    return (np.arange(scan) + 0.5) / scan


def _measure(holds: Callable[[FloatArray], Bools], level: FloatArray) -> tuple[float, FloatArray]:
    """Length of the levels in [0, 1] at which it holds, and where it starts or ends to."""
    truth = holds(level)
    change = np.flatnonzero(truth[1:] != truth[:-1])
    low, high = level[change], level[change + 1]
    for _ in range(32 if change.size else 0):
        middle = 0.5 * (low + high)
        same = holds(middle) == truth[change]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    ends = np.concatenate([[0.0], 0.5 * (low + high), [1.0]])
    return float(np.diff(ends)[truth[np.concatenate([[0], change + 1])]].sum()), ends[1:-1]


def _over_normal(share: Callable[[float], float], model: Powertrain, nodes: int) -> float:
    """Mean of a share over the speed."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    speeds = np.clip(model.speed_mean + model.speed_sd * points, *model.speed_range)
    return math.fsum(w * share(float(x)) for w, x in zip(weights, speeds, strict=True)) / math.fsum(weights)
