from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit import Exponential, NoNoise, Sprt, simulate
from dpsmc_audit.runs.execution import Execution
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import Runs
from dpsmc_audit.setting import Setting
from dpsmc_audit.tasks.simulate import Tally

TEST = Sprt(0.73, 0.03, 0.05)
LAW = Exponential.private(TEST, 0.1)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 2**40), st.sampled_from([1, 0, -1])), min_size=1, max_size=9), max_size=5
    )
)
def test_tallies_are_exact_integer_sums(blocks: list[list[tuple[int, int]]]) -> None:
    tally = Tally()
    for block in blocks:
        tally += Tally.of(Runs(np.array([t for t, _ in block]), np.array([o for _, o in block], dtype=np.int8)))
    flat = [pair for block in blocks for pair in block]
    assert tally.samples == sum(t for t, _ in flat)
    assert tally.squares == sum(t * t for t, _ in flat)
    assert (tally.null, tally.alt, tally.unfinished) == tuple(sum(o == side for _, o in flat) for side in (1, 0, -1))
    assert tally.runs == len(flat)


@pytest.mark.parametrize(
    "execution",
    [Execution("threads", 2, block_size=500), Execution(block_size=1), Execution("threads", 3, block_size=77)],
)
def test_threads_and_blocks_change_nothing(execution: Execution) -> None:
    reference = simulate(Setting(TEST, LAW, 0.84), 3000, sampling=Sampling(seed=4))
    assert simulate(Setting(TEST, LAW, 0.84), 3000, sampling=Sampling(seed=4, execution=execution)) == reference
    assert simulate(Setting(TEST, LAW, 0.84), 3000, sampling=Sampling(seed=5)) != reference


def test_kernels_agree_in_law_not_in_numbers() -> None:
    jumps, steps = (
        simulate(Setting(TEST, LAW, 0.84), 50_000, kernel=kernel, sampling=Sampling(seed=4))
        for kernel in ("jumps", "steps")
    )
    assert jumps.tally != steps.tally
    for result in (jumps, steps):
        low, high = result.samples_ci or (0, 0)
        assert low < result.exact.samples.value < high


def test_the_truth_decides_what_is_correct() -> None:
    below = simulate(Setting(TEST, LAW, 0.6), 2000)
    assert (below.decision, below.accuracy, below.null_rate) == ("H_alt", 1.0, 0.0)
    inside = simulate(Setting(TEST, NoNoise(), 0.735), 2000)
    assert inside.accuracy == inside.null_rate == pytest.approx(1 - inside.exact.error.value, abs=0.05)


def test_unfinished_runs_are_reported_and_are_no_decisions() -> None:
    result = simulate(Setting(TEST, LAW, 0.84), 1000, sampling=Sampling(max_steps=3))
    assert (result.tally.unfinished, result.tally.null, result.decision) == (1000, 0, "undecided")
    assert (result.samples, result.accuracy) == (3.0, 0.0)


def test_intervals_cover_at_their_level() -> None:
    """400 repetitions of 2000 runs at 90 %: coverage within four standard deviations of its level, seeds fixed."""
    exact = simulate(Setting(TEST, LAW, 0.84), 2).exact.samples.value
    covered = 0
    for seed in range(400):
        low, high = simulate(
            Setting(TEST, LAW, 0.84), 2000, confidence=0.9, sampling=Sampling(seed=seed)
        ).samples_ci or (0, 0)
        covered += low <= exact <= high
    assert abs(covered / 400 - 0.9) < 4 * np.sqrt(0.09 / 400)


def test_results_are_frozen() -> None:
    result = simulate(Setting(TEST, LAW, 0.84), 10)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.confidence = 0.5  # type: ignore[misc]
