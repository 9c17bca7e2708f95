"""Random tests, laws for L and lists of forced entries, with the L at which the plain programme follows walks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from tests.support.plain_law import lattice_ends, quantile_ends

_RATIOS = ((1, 1), (1, 2), (2, 1), (2, 3), (3, 1), (3, 5))
"""Of the two steps: with small whole numbers the plain programme needs few L."""


@dataclass(frozen=True)
class Forced:
    setting: Setting
    forced: dict[int, int]
    ends: np.ndarray

    def __str__(self) -> str:
        return f"{self.setting} forced={self.forced}"


def random_setting(number: int, *, exponential: bool = False) -> Forced:
    """The setting of this number, the same on every machine.

    With `exponential` noise only, the walk also drifts faster and the bounds are further apart: without entries the far
    bound hardly matters then, and the renewal is tried.
    """
    rng = np.random.default_rng([15, number])
    whole = rng.random() < 0.85
    while True:
        delta = float(rng.uniform(0.08, 0.3))
        ratio = _RATIOS[rng.integers(len(_RATIOS))]
        p = _p_of_ratio(delta, ratio) if whole else float(rng.uniform(delta + 0.03, 0.97 - delta))
        away = float(rng.uniform(1.3 if exponential else 0.6, 2.5)) * delta * (1.0 if rng.random() < 0.5 else -1.0)
        if p is not None and 0.03 < p + away < 0.97:
            break
    least, most = (0.002, 0.06) if exponential else (0.005, 0.15)
    p_phi, levels = p + away, [math.exp(rng.uniform(math.log(least), math.log(most))) for _ in range(3)]
    test = Sprt(p, delta, levels[0], *(levels[1:] if rng.random() < 0.4 else ()))
    mechanism = _mechanism(rng, test, exponential)
    unit = test.s_plus / ratio[0]
    ends = lattice_ends(test, mechanism, unit) if whole else quantile_ends(test, mechanism, 1500)
    return Forced(Setting(test, mechanism, p_phi), _entries(rng, test, p_phi), ends)


def _p_of_ratio(delta: float, ratio: tuple[int, int]) -> float | None:
    """The p with ``s_plus : s_minus`` as wanted, by bisection: s_plus falls in p and s_minus grows."""

    def off(p: float) -> float:
        test = Sprt(p, delta, 0.1)
        return test.s_plus * ratio[1] - test.s_minus * ratio[0]

    low, high = delta + 0.01, 0.99 - delta
    if off(low) < 0.0 or off(high) > 0.0:
        return None
    while low < 0.5 * (low + high) < high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if off(middle) > 0.0 else (low, middle)
    return high


def _mechanism(rng: np.random.Generator, test: Sprt, exponential: bool) -> Mechanism:
    epsilon = math.exp(rng.uniform(math.log(0.12), math.log(3.0)))
    scale, kind = test.step_sum / epsilon, rng.random()
    center, lowest = float(rng.uniform(0.0, 3.0)) * scale, float(rng.uniform(0.0, 0.9)) * test.no_room
    if exponential or kind < 0.6:
        return Exponential.private(test, epsilon)
    if kind < 0.7:
        return Laplace(center, scale)
    if kind < 0.82:
        return Truncated(center - scale, scale, lowest)
    if kind < 0.94:
        return Law.of("gamma", a=float(rng.uniform(0.7, 3.0)), scale=scale)
    return NoNoise()


def _entries(rng: np.random.Generator, test: Sprt, p_phi: float) -> dict[int, int]:
    """Up to sixty: a run or several, or scattered; early or late; one value, or one and some of the other."""
    count, kind = int(rng.integers(0, 61)), rng.random()
    typical = (test.b_up + test.b_low) / abs(test.drift(p_phi))
    start = 1 + int(rng.uniform(0.0, 1.0) ** 2 * 3.0 * typical)
    if kind < 0.4:
        places = start + np.arange(count)
    elif kind < 0.6:
        places = np.concatenate([start + np.arange(count // 2), start + count + np.arange(count - count // 2) * 2])
    else:
        spread = max(int(rng.uniform(1.0, 4.0) * count), 1)
        places = start + rng.choice(spread, size=count, replace=False)
    against = int(test.drift(p_phi) < 0.0)
    bit = against if rng.random() < 0.7 else 1 - against
    mixed = rng.uniform(0.0, 0.5) if rng.random() < 0.3 else 0.0
    return {int(n): 1 - bit if rng.random() < mixed else bit for n in sorted(places)}
