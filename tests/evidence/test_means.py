"""Means of values in [0, 1]: level, twin, power."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.means import betting_interval, betting_intervals, bounded_mean, lower_means

Draw = Callable[[np.random.Generator, int], np.ndarray]
LAWS: dict[str, tuple[Draw, float]] = {
    "bits": (lambda rng, n: (rng.random(n) < 0.02).astype(float), 0.02),
    "rare and large": (lambda rng, n: 0.9 * (rng.random(n) < 0.005), 0.0045),
    "two values": (lambda rng, n: np.where(rng.random(n) < 0.9, 0.3, 0.8), 0.35),
    "beta": (lambda rng, n: rng.beta(0.2, 3.8, n), 0.05),
    "beta, U-shaped": (lambda rng, n: rng.beta(0.5, 0.5, n), 0.5),
    "near one": (lambda rng, n: 1.0 - rng.beta(0.5, 9.5, n), 0.95),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("n", [10, 100, 1000])
def test_the_level_is_kept(name: str, n: int) -> None:
    """90 % intervals, 500 of them: each end is missed with at most 5 % and three standard deviations.

    At 10 values with a rare large one, normal intervals miss the mean nearly always.
    """
    draw, mean = LAWS[name]
    rng = np.random.default_rng(5)
    values = np.array([draw(rng, n) for _ in range(500)]).T
    low, high = betting_intervals(values, 0.9)
    allowed = 25 + 3 * math.sqrt(500 * 0.05 * 0.95)
    assert np.count_nonzero(low > mean) <= allowed
    assert np.count_nonzero(high < mean) <= allowed
    assert np.all((low >= 0) & (high <= 1) & (low <= high))


def _plain(values: list[float], level: float) -> float:
    """The smallest mean on a grid that the gambler has not refuted, bet by bet."""

    def refuted(mean: float) -> bool:
        capital, total, squares = 1.0, 0.0, 0.0
        for k, x in enumerate(values):
            variance = (0.25 + squares) / (k + 1)
            stake = min(math.sqrt(2 * math.log(1 / level) / (len(values) * variance)), 0.75 / mean)
            guess = (0.5 + total) / (k + 1)
            squares += (x - guess) ** 2
            total += x
            capital *= 1 + stake * (x - mean)
            if capital >= 1 / level:
                return True
        return False

    grid = np.linspace(0.0005, 1.0, 2000)
    return float(next((m for m in grid if not refuted(m)), 1.0))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0.001, 0.3))
@settings(max_examples=40)
def test_the_bound_is_that_of_a_gambler_who_bets_value_by_value(values: list[float], level: float) -> None:
    bound = float(lower_means(np.array(values)[:, None], level)[0])
    assert bound == pytest.approx(_plain(values, level), abs=6e-4)


def test_intervals_close_in_on_the_mean() -> None:
    """Width near twice 2.58 standard deviations of the mean, not more than twice that."""
    draw, mean = LAWS["beta"]
    values = draw(np.random.default_rng(1), 100_000)
    low, high = betting_interval(values, 0.99)
    normal = 2 * 2.576 * float(values.std()) / math.sqrt(values.size)
    assert low < mean < high
    assert normal < high - low < 2 * normal
    assert bounded_mean(values, 0.99).mean == pytest.approx(values.mean())


@pytest.mark.parametrize("values", [[-0.1], [1.1], [float("nan")], []])
def test_values_outside_are_refused(values: list[float]) -> None:
    with pytest.raises(ParameterError):
        betting_interval(np.array(values), 0.9)
