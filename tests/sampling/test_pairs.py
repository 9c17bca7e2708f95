from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.fixed import exit_law
from dpsmc_audit.mechanisms import Exponential, NoNoise
from dpsmc_audit.runs.execution import Execution
from dpsmc_audit.sampling.pairs import draw_excess, pair_sums, pair_times
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.streams import Purpose, derived
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from tests.support import twins
from tests.support.strategies import epsilons, sprts


def brute_force(
    test: Sprt, p_phi: float, excess: np.ndarray, count: int, entries: tuple[int, ...], seed: int, cap: int
) -> np.ndarray:
    """Sums of tau by running Algorithm 2 on every sequence with every L, sample by sample in plain Python."""
    sums = np.zeros((2, excess.size), np.int64)
    stream = int(derived(seed, Purpose.SEQUENCES))
    for path in range(count):
        bits = list(itertools.islice(twins.samples(twins.words(stream, path), p_phi), cap))
        for member, bit in enumerate((1, 0)):
            changed = [bit if k in entries else x for k, x in enumerate(bits, start=1)]
            for j, x in enumerate(excess):
                coin = x <= test.no_room
                sums[member, j] += 1 if coin else twins.walk(test, float(x), iter(changed), cap)[0]
    return sums


@given(
    sprts(finest=0.05),
    epsilons,
    st.floats(0.05, 0.95),
    st.sets(st.integers(1, 40), min_size=1, max_size=3),
    st.integers(0, 2**64 - 1),
    st.integers(5, 300),
)
@settings(max_examples=60)
def test_one_pass_equals_brute_force_for_every_l(
    test: Sprt, epsilon: float, p_phi: float, entries: set[int], seed: int, cap: int
) -> None:
    """The same integers, drifting either way or not at all, one or more entries, with a cap, and with L that
    leave less room than the test has, or none.
    """
    given, most = tuple(sorted(entries)), max(cap, *entries)
    below = np.array([1.5, 1.0, 0.7, 0.2]) * test.no_room
    excess = np.sort(np.concatenate([below, [0.0], draw_excess(Exponential.private(test, epsilon), 12, seed)]))
    found = pair_sums(
        Adjacent(Setting(test, NoNoise(), p_phi), given), excess, 4, sampling=Sampling(seed=seed, max_steps=most)
    )
    assert found.sums.sum(axis=0).tolist() == brute_force(test, p_phi, excess, 4, given, seed, most).tolist()


@pytest.mark.parametrize("p_phi", [0.84, 0.6, 0.74])
@pytest.mark.parametrize("entry", [(1,), (10,), (100,), (400,), (1, 5), (3, 200, 201)])
def test_one_pass_equals_brute_force_at_the_papers_parameters(entry: tuple[int, ...], p_phi: float) -> None:
    """Walks that climb, that descend, and that do neither for long."""
    test = Sprt(0.73, 0.01, 0.01)
    excess = draw_excess(Exponential.private(test, 0.05), 30, 7)
    found = pair_sums(
        Adjacent(Setting(test, NoNoise(), p_phi), entry), excess, 6, sampling=Sampling(seed=9, max_steps=5000)
    )
    assert found.sums.sum(axis=0).tolist() == brute_force(test, p_phi, excess, 6, entry, 9, 5000).tolist()
    few = pair_times(
        Adjacent(Setting(test, NoNoise(), p_phi), entry), excess, 0, 6, sampling=Sampling(seed=9, max_steps=5000)
    )
    assert few.sum(axis=0).tolist() == found.sums.sum(axis=0).tolist()


@pytest.mark.parametrize(
    ("execution", "groups"),
    [
        (Execution("threads", 2, block_size=4), 25),
        (Execution(), 7),
        (Execution("threads", 3, block_size=11), 1),
    ],
)
def test_sums_do_not_depend_on_threads_or_groups(execution: Execution, groups: int) -> None:
    test = Sprt(0.73, 0.03, 0.05)
    excess = draw_excess(Exponential.private(test, 0.1), 200, 1)
    pair = Adjacent(Setting(test, NoNoise(), 0.8), (2,))
    one = pair_sums(pair, excess, 150, Sampling(4, 10**6))
    other = pair_sums(pair, excess, 150, Sampling(4, 10**6, execution), groups=groups)
    assert one.sums.sum(axis=0).tolist() == other.sums.sum(axis=0).tolist()
    assert other.sizes.sum() == 150
    assert other.steps == one.steps


@pytest.mark.parametrize(("p_phi", "entry"), [(0.84, (1,)), (0.84, (30,)), (0.6, (1,)), (0.73, (5,)), (0.84, (1, 5))])
def test_averages_approach_their_exact_means(p_phi: float, entry: tuple[int, ...]) -> None:
    """Within four standard errors at three L, both members; seed fixed."""
    test = Sprt(0.73, 0.03, 0.05)
    excess = np.array([0.0, 1.0, 4.0])
    tau = pair_times(
        Adjacent(Setting(test, NoNoise(), p_phi), entry), excess, 0, 20_000, sampling=Sampling(seed=3, max_steps=10**6)
    )
    for member, bit in enumerate((1, 0)):
        for j, x in enumerate(excess):
            exact = exit_law(test, p_phi, float(x), dict.fromkeys(entry, bit)).mean
            sample = tau[:, member, j]
            assert abs(sample.mean() - exact) < 4 * sample.std() / np.sqrt(sample.size)


def test_the_cap_is_counted() -> None:
    test = Sprt(0.73, 0.01, 0.01)
    found = pair_sums(
        Adjacent(Setting(test, NoNoise(), 0.84), (1,)),
        np.array([0.0, 1.0]),
        10,
        sampling=Sampling(seed=1, max_steps=20),
    )
    assert found.unfinished == 40
    assert set(found.sums.sum(axis=0).ravel().tolist()) == {200}


def test_members_can_be_independent_sequences_of_one_law() -> None:
    test = Sprt(0.73, 0.03, 0.05)
    tau = pair_times(
        Adjacent(Setting(test, NoNoise(), 0.84), (1,)),
        np.zeros(1),
        0,
        5000,
        bits=(1, 1),
        shift=5000,
        sampling=Sampling(seed=3, max_steps=10**6),
    )[:, :, 0]
    assert abs(np.asarray(np.corrcoef(tau.T))[0, 1]) < 4 / np.sqrt(5000)
    assert abs(tau[:, 0].mean() - tau[:, 1].mean()) < 4 * tau.std() * np.sqrt(2 / 5000)


def test_a_single_pair_is_no_sample() -> None:
    with pytest.raises(ParameterError, match="pairs"):
        pair_sums(
            Adjacent(Setting(Sprt(0.73, 0.01, 0.01), NoNoise(), 0.84), (1,)),
            np.zeros(1),
            1,
            sampling=Sampling(seed=1, max_steps=10),
        )
