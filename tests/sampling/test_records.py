from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.mechanisms import NoNoise
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.records import Records, draw_records, records_of
from dpsmc_audit.sampling.streams import Purpose, derived
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from tests.support import twins
from tests.support.strategies import sprts

Found = tuple[list[int], list[float], list[int], int]


def brute_force(test: Sprt, bits: list[int], lowest: float, top: float = np.inf) -> Found:
    """Records sample by sample, until one reaches `top`."""
    times, excesses, decisions, ones, best, steps = [], [], [], 0, lowest, 0
    for steps, bit in enumerate(bits, start=1):
        ones += bit
        walk = ones * test.s_plus - (steps - ones) * test.s_minus
        above, below = walk - test.b_up, -walk - test.b_low
        if max(above, below) > best:
            best = max(above, below)
            times.append(steps)
            excesses.append(best)
            decisions.append(int(above >= below))
        if best >= top:
            break
    return times, excesses, decisions, steps


def as_lists(records: Records) -> Found:
    return records.times.tolist(), records.excess.tolist(), records.decision.tolist(), records.samples


lows = st.sampled_from([-5.0, -0.5, float(np.nextafter(0.0, -1.0)), 0.0, 0.5])


@given(sprts(finest=0.02), st.lists(st.integers(0, 1), min_size=1, max_size=200), lows)
def test_records_of_a_sequence_equal_brute_force(test: Sprt, bits: list[int], lowest: float) -> None:
    assert as_lists(records_of(test, np.array(bits), lowest)) == brute_force(test, bits, lowest)


@given(
    sprts(finest=0.02),
    st.floats(0.0, 1.0).filter(lambda p: p in (0.0, 1.0) or 1e-12 < p < 1 - 1e-12),
    st.integers(0, 2**40),
    st.sets(st.integers(1, 130), min_size=1, max_size=4),
    st.integers(0, 1),
    lows,
    st.floats(0.6, 20.0),
    st.integers(0, 2**64 - 1),
    st.integers(1, 400),
)
@settings(max_examples=80, deadline=None)
def test_drawn_records_equal_brute_force(
    test: Sprt, p_phi: float, path: int, forced: set[int], bit: int, lowest: float, top: float, seed: int, cap: int
) -> None:
    """The same to the last digit, with several entries, drifting either way, ended by `top` or by the cap."""
    entries = tuple(sorted(forced))
    found = draw_records(
        Adjacent(Setting(test, NoNoise(), p_phi), entries),
        path,
        bit,
        lowest,
        top,
        sampling=Sampling(seed=seed, max_steps=cap),
    )
    stream = twins.words(int(derived(seed, Purpose.SEQUENCES)), path)
    bits = list(itertools.islice(twins.samples(stream, p_phi), cap))
    changed = [bit if k in forced else x for k, x in enumerate(bits, start=1)]
    assert as_lists(found) == brute_force(test, changed, lowest, top)


def test_members_of_a_pair_share_their_other_samples() -> None:
    """After the entry the walks are one changed sample apart: records of both at a time differ by s_plus + s_minus."""
    test = Sprt(0.73, 0.01, 0.01)
    one, zero = (
        draw_records(
            Adjacent(Setting(test, NoNoise(), 0.84), (7,)), 3, x, 0.0, 9.0, sampling=Sampling(seed=5, max_steps=10**6)
        )
        for x in (1, 0)
    )
    _, first, second = np.intersect1d(one.times, zero.times, return_indices=True)
    assert first.size > 100
    np.testing.assert_allclose(one.excess[first] - zero.excess[second], test.step_sum, rtol=1e-9)


def test_more_records_than_were_made_room_for() -> None:
    """Every sample of a certain walk is a record."""
    found = draw_records(
        Adjacent(Setting(Sprt(0.73, 0.01, 0.01), NoNoise(), 1.0), (1,)),
        0,
        1,
        -10.0,
        np.inf,
        sampling=Sampling(seed=1, max_steps=70_000),
    )
    assert found.times.tolist() == list(range(1, 70_001))
