"""What is learnt in cells: every jitted model beside a second way to compute it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import betaln, expit, logsumexp

from dpsmc_audit.evidence import shapes
from dpsmc_audit.evidence.predictor import Cells
from dpsmc_audit.evidence.shapes import _LEAF, _SCALES, cell_ends, counted_by_cell, learnt, starts

COUNTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=7).filter(
    lambda rows: all(sum(row) > 0 for row in rows)
)


def leaf(ones: float, zeros: float) -> float:
    """The log probability that a leaf gives to its labels."""
    return float(betaln(_LEAF + ones, _LEAF + zeros) - betaln(_LEAF, _LEAF))


def mean(ones: float, zeros: float) -> float:
    return (_LEAF + ones) / (2 * _LEAF + ones + zeros)


# --- steps and trees, by enumeration --------------------------------------------------------------------------------


@given(COUNTS, st.booleans())
def test_steps_are_averaged_over_all_places(rows: list[tuple[int, int]], symmetric: bool) -> None:
    ones, zeros = np.array(rows, float).T
    chance, weights, curves = np.empty(ones.size), [], []
    for cut in range(1, ones.size):
        left, right = (ones[:cut].sum(), zeros[:cut].sum()), (ones[cut:].sum(), zeros[cut:].sum())
        if symmetric:
            agree, differ = right[0] + left[1], right[1] + left[0]
            weights.append(leaf(agree, differ))
            levels = 1.0 - mean(agree, differ), mean(agree, differ)
        else:
            weights.append(leaf(*left) + leaf(*right))
            levels = mean(*left), mean(*right)
        curves.append(np.repeat(levels, [cut, ones.size - cut]))
    evidence = shapes._steps(ones, zeros, _LEAF, symmetric, chance)
    assert evidence == pytest.approx(logsumexp(weights) - math.log(len(weights)), abs=1e-8)
    share = np.exp(np.array(weights) - logsumexp(weights))
    assert np.allclose(chance, share @ np.array(curves), atol=1e-9)


def pruned(sums: np.ndarray, first: int, last: int) -> list[tuple[float, list[tuple[int, int]]]]:
    """All ways to prune the tree below these cells: prior log probability and leaves."""
    if last - first == 1:
        return [(0.0, [(first, last)])]
    half = 0.5 * (sums[first] + sums[last])
    cut = min(range(first + 1, last), key=lambda k: (abs(sums[k] - half), -k))
    below = itertools.product(pruned(sums, first, cut), pruned(sums, cut, last))
    grown = [(math.log(0.5) + a + b, left + right) for (a, left), (b, right) in below]
    return [(math.log(0.5), [(first, last)]), *grown]


@given(COUNTS)
@settings(max_examples=50)
def test_a_tree_is_averaged_over_all_prunings(rows: list[tuple[int, int]]) -> None:
    ones, zeros = np.array(rows, float).T
    sums = np.append(0.0, np.cumsum(ones + zeros))
    weights, curves = [], []
    for prior, leaves in pruned(sums, 0, ones.size):
        weights.append(prior + sum(leaf(ones[a:b].sum(), zeros[a:b].sum()) for a, b in leaves))
        curves.append(np.concatenate([np.full(b - a, mean(ones[a:b].sum(), zeros[a:b].sum())) for a, b in leaves]))
    chance = np.empty(ones.size)
    assert shapes._tree(ones, zeros, _LEAF, chance) == pytest.approx(logsumexp(weights), abs=1e-8)
    assert np.allclose(chance, np.exp(np.array(weights) - logsumexp(weights)) @ np.array(curves), atol=1e-9)


@given(COUNTS)
@settings(max_examples=50)
def test_one_cell_that_stands_out_is_averaged_over_all_cells(rows: list[tuple[int, int]]) -> None:
    ones, zeros = np.array(rows, float).T
    weights, curves = [], []
    for cell in range(ones.size):
        rest = ones.sum() - ones[cell], zeros.sum() - zeros[cell]
        weights.append(leaf(ones[cell], zeros[cell]) + leaf(*rest))
        curves.append(np.where(np.arange(ones.size) == cell, mean(ones[cell], zeros[cell]), mean(*rest)))
    chance = np.empty(ones.size)
    expected = logsumexp(weights) - math.log(ones.size)
    assert shapes._spikes(ones, zeros, _LEAF, chance) == pytest.approx(expected, abs=1e-8)
    assert np.allclose(chance, np.exp(np.array(weights) - logsumexp(weights)) @ np.array(curves), atol=1e-9)


# --- curves, by another optimiser -----------------------------------------------------------------------------------


def intercept(score: np.ndarray, sizes: np.ndarray) -> float:
    """What makes the fitted labels fair, by bisection."""
    low, high = -60.0, 60.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sum(sizes * (expit(score + middle) - 0.5)) < 0 else (low, middle)
    return 0.5 * (low + high)


def log_likelihood(score: np.ndarray, ones: np.ndarray, zeros: np.ndarray) -> float:
    return float(np.sum(ones * -np.logaddexp(0, -score) + zeros * -np.logaddexp(0, score)))


@pytest.mark.parametrize("seed", range(6))
def test_a_curve_is_the_one_that_another_optimiser_finds(seed: int) -> None:
    """Slopes at the top of likelihood times widest prior, and the evidence by Laplace's method there."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-1.5, 1.5, 12)
    y = (x**2 - 1.0) if seed % 2 else np.zeros(12)
    sizes = rng.integers(20, 60, 12)
    truth = expit(0.6 * x - 0.3 * y)
    ones = rng.binomial(sizes, truth / (truth * sizes).sum() * sizes.sum() / 2).astype(float)
    zeros = sizes - ones
    widest = _SCALES[-1]

    def cost(slopes: np.ndarray) -> float:
        b, c = float(slopes[0]), float(slopes[1]) if seed % 2 else 0.0
        score = b * x + c * y
        score = score + intercept(score, sizes)
        return float(-log_likelihood(score, ones, zeros) + 0.5 * (b**2 + c**2) / widest**2)

    best = minimize(cost, np.zeros(1 + seed % 2), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}).x
    at, chance = np.zeros(3), np.empty(12)
    weights = np.array([0.0, 0.0, 0.0, 1.0]) + 1e-300
    evidence = shapes._curve(x, y, ones, zeros, _SCALES, weights, at, chance)
    assert np.allclose(at[1 : best.size + 1], best, atol=5e-3)
    grid = np.linspace(-6.0, 6.0, 241)
    if not seed % 2:  # one slope: its evidence by a sum over a fine grid
        logs = [-cost(np.array([b])) - 0.5 * math.log(2 * math.pi * widest**2) for b in grid]
        exact = float(logsumexp(logs) + math.log(grid[1] - grid[0]))
        assert evidence == pytest.approx(exact, abs=0.05)
        curves = [expit(b * x + intercept(b * x, sizes)) for b in grid]
        assert np.allclose(chance, np.exp(np.array(logs) - logsumexp(logs)) @ np.array(curves), atol=0.01)
    assert np.sum(sizes * chance) == pytest.approx(0.5 * sizes.sum(), rel=0.01)


@given(COUNTS)
@settings(max_examples=15)
def test_models_are_weighted_by_evidence_and_give_probabilities(rows: list[tuple[int, int]]) -> None:
    zeros, ones = np.array(rows, float).T
    found = learnt(np.array([zeros, ones]), starts())
    assert np.all((found.chance > 0.0) & (found.chance < 1.0))
    runs = float(np.sum(zeros + ones))
    assert found.evidence >= math.log(0.02) - runs * math.log(2.0)
    # what all runs have in common says nothing: no probability of all labels is above the best one in hindsight
    hindsight = sum(a * math.log(a / (a + b)) if a else 0.0 for r in rows for a, b in (r, r[::-1]))
    assert found.evidence <= hindsight + 1.0


def test_swapped_labels_swap_the_predictions() -> None:
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 30, (2, 9)).astype(float)
    one, other = (learnt(c, starts()) for c in (counts, counts[::-1].copy()))
    assert one.evidence == pytest.approx(other.evidence, abs=1e-6)
    assert np.allclose(one.chance, 1.0 - other.chance, atol=1e-6)


def test_prior_weights_add_up() -> None:
    for runs in (1.0, 400.0, 2000.0, 1e6):
        for times in (False, True):
            assert shapes._prior(runs, times).sum() == pytest.approx(1.0)
    assert np.allclose(shapes._SCALE_WEIGHTS.sum(axis=1), 1.0)


def test_early_ends_of_running_times_are_expected() -> None:
    """The early lines are those that fall with the rank, and fastest at its start. Late ends are learnt too."""
    rank = np.linspace(0.001, 0.999, 999)
    lines = shapes._lines(rank)
    early = {k for k, line in enumerate(lines) if np.all(np.diff(line) <= 0) and line[0] - line[1] > 0.4}
    assert early == set(shapes._EARLY)
    chance = expit(0.2 * np.maximum(-np.log((np.arange(200) + 0.5) / 200) - 2.0, 0.0))
    counts = 50.0 * np.array([1.0 - chance, chance])
    for shown, gain in ((counts, 0.5), (counts[:, ::-1].copy(), math.log(0.25))):
        plain, times = (learnt(shown, starts(), times=known) for known in (False, True))
        assert times.evidence > plain.evidence + gain
    assert times.chance[-1] > 0.6


def test_one_cell_tells_nothing() -> None:
    found = learnt(np.array([[30.0], [10.0]]), starts())
    assert found.chance.tolist() == [0.5]
    assert found.evidence == pytest.approx(-40 * math.log(2))


# --- cells ----------------------------------------------------------------------------------------------------------


VALUES = st.lists(st.one_of(st.integers(-5, 5).map(float), st.floats(-1e300, 1e300)), min_size=1, max_size=300)


@given(VALUES)
def test_every_value_lies_in_one_cell(values: list[float]) -> None:
    """Ends increase, no cell is empty, and equal values are never parted."""
    ends = cell_ends(np.sort(np.array(values)))
    assert np.all(np.diff(ends) > 0)
    assert ends[-1] == math.inf
    counts = counted_by_cell(ends.size, np.searchsorted(ends, np.array(values)), np.arange(len(values)) % 2)
    assert counts.sum() == len(values)
    assert np.all(counts.sum(axis=0) > 0)


def cell_of(ends: np.ndarray, value: float) -> tuple[float, float]:
    place = int(np.searchsorted(ends, value))
    return (float(ends[place - 1]) if place else -math.inf), float(ends[place])


@pytest.mark.parametrize("runs", [1000, 20_000])
def test_frequent_values_are_alone(runs: int) -> None:
    """Half of all runs, one in a hundred, and one in two hundred among many that come rarely."""
    rng = np.random.default_rng(runs)
    values = rng.integers(0, 10_000, runs).astype(float)
    for value, share in ((5000.0, 0.5), (2000.0, 0.01), (7000.0, 0.015)):
        values[rng.random(runs) < share] = value
    values.sort()
    ends = cell_ends(values)
    for value in (5000.0, 2000.0, 7000.0):
        low, high = cell_of(ends, value)
        inside = values[(values > low) & (values <= high)]
        assert np.all(inside == value)


def test_few_values_have_a_cell_each_and_tails_finer_cells() -> None:
    few = np.sort(np.random.default_rng(1).integers(0, 100, 5000).astype(float))
    assert cell_ends(few).tolist() == [*np.arange(99.0), math.inf]
    many = np.sort(np.random.default_rng(2).normal(size=50_000))
    ends = cell_ends(many)
    sizes = np.bincount(np.searchsorted(ends, many))
    assert 128 <= ends.size <= 512
    middle = sizes.size // 2
    assert sizes[0] < 0.1 * sizes[middle]
    assert sizes[-1] < 0.1 * sizes[middle]


def test_a_cell_without_runs_predicts_like_its_neighbour() -> None:
    cells = Cells()
    values, labels = np.repeat([0.0, 1.0, 2.0], 40), np.tile([0, 1], 60)
    cells.cut(values, labels)
    cells.counts[:, 1] = 0.0
    cells.learn()
    assert cells.chance[1] in (cells.chance[0], cells.chance[2])
