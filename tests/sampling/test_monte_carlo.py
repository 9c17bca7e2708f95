from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.calibration import mechanism_named
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.mechanisms import Exponential, NoNoise
from dpsmc_audit.runs.execution import cut
from dpsmc_audit.sampling import runs as monte_carlo
from dpsmc_audit.sampling.jump_tables import JUMP_SIZES, jump_tables
from dpsmc_audit.sampling.kernels import UNFINISHED
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import Kernel, Runs, draw_block, draw_runs
from dpsmc_audit.sampling.streams import Purpose, derived
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from tests.support import twins
from tests.support.statistics import chi_square
from tests.support.strategies import epsilons, examples, mechanisms, sprts

kernels = st.sampled_from(["jumps", "steps"])


@given(
    sprts(finest=0.03),
    epsilons,
    st.sampled_from([0.0, 1.0, 0.5, 0.75]) | st.floats(0.02, 0.98),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**40),
    st.sampled_from([1, 7, 300, 10**6]),
    kernels,
)
@settings(max_examples=150)
def test_kernels_equal_their_plain_python_twins_bit_for_bit(
    test: Sprt, epsilon: float, p_phi: float, seed: int, first: int, max_steps: int, kernel: Kernel
) -> None:
    law = Exponential.private(test, epsilon)
    drawn = draw_block(
        Setting(test, law, p_phi), first, 5, kernel=kernel, sampling=Sampling(seed=seed, max_steps=max_steps)
    )
    cut, alias, log2 = jump_tables(p_phi)
    for i in range(5):
        stream = twins.words(seed, first + i)
        excess = float(law.quantile((next(stream) >> 11) / 2**53))
        if kernel == "steps":
            expected = twins.walk(test, excess, twins.samples(stream, p_phi), max_steps)
        else:
            sizes = int(log2[-1]) + 1
            expected = twins.jump_walk(test, excess, stream, (cut.tolist(), alias.tolist()), max_steps, sizes)
        assert (drawn.tau[i], drawn.decision[i]) == expected


@given(st.just(0.0) | st.floats(1e-12, 1.0), st.integers(0, JUMP_SIZES - 1))
def test_alias_tables_hold_the_binomial_law(p_phi: float, e: int) -> None:
    cut, alias, _ = jump_tables(p_phi)
    columns = 2 ** (e + 1)
    kept = cut[columns : 2 * columns].astype(float) / (2.0**64 / columns)
    kept[alias[columns : 2 * columns] == np.arange(columns)] = 1.0
    law = np.zeros(columns)
    np.add.at(law, np.arange(columns), np.minimum(kept, 1.0) / columns)
    np.add.at(law, alias[columns : 2 * columns].astype(int), (1 - np.minimum(kept, 1.0)) / columns)
    size = 2**e
    np.testing.assert_allclose(law[: size + 1], binom.pmf(np.arange(size + 1), size, p_phi), atol=1e-13)
    assert law[size + 1 :].sum() < 1e-13


@given(sprts(finest=0.02), epsilons, st.floats(0.05, 0.95), kernels, st.sampled_from(["none", "exponential"]))
@settings(max_examples=examples(120), derandomize=True)
def test_sampled_and_exact_laws_agree(test: Sprt, epsilon: float, p_phi: float, kernel: Kernel, name: str) -> None:
    """Chi-square on (tau, decision) at level 1e-6 a case: all cases together raise a false alarm once in 8000 suites.

    Where the exact law is known by strata of L only, the sample is of a size that its bracket cannot disturb.
    """
    law = mechanism_named(name, test, epsilon)
    try:
        exact = exact_law(Setting(test, law, p_phi))
    except ParameterError:  # too little drift: the law is refused, and there is nothing to compare
        reject()
    runs = 20_000 if exact.error < 1e-3 else 2_000
    drawn = draw_runs(Setting(test, law, p_phi), runs, kernel=kernel, sampling=Sampling(seed=11))
    assert chi_square(drawn.tau, drawn.decision, exact.null, exact.alt) > 1e-6


def test_the_chi_square_test_can_fail() -> None:
    """The same test rejects runs of a p_phi that is off by two percent."""
    test = Sprt(0.73, 0.03, 0.05)
    law = Exponential.private(test, 0.2)
    exact = exact_law(Setting(test, law, 0.84))
    drawn = draw_runs(Setting(test, law, 0.86), 20_000, sampling=Sampling(seed=11))
    assert chi_square(drawn.tau, drawn.decision, exact.null, exact.alt) < 1e-6


@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(1, 500), kernels)
@settings(max_examples=40)
def test_results_depend_on_the_seed_alone(seed: int, runs: int, block_size: int, kernel: Kernel) -> None:
    test = Sprt(0.73, 0.03, 0.05)
    law = Exponential.private(test, 0.1)
    setting, sampling = Setting(test, law, 0.8), Sampling(seed, 10**6)
    whole = draw_runs(setting, runs, sampling, kernel=kernel)
    blocks = [draw_block(setting, first, count, sampling, kernel=kernel) for (first, count), _ in cut(runs, block_size)]
    assert np.concatenate([b.tau for b in blocks]).tolist() == whole.tau.tolist()
    assert np.concatenate([b.decision for b in blocks]).tolist() == whole.decision.tolist()


@given(sprts(finest=0.05), st.data(), st.sampled_from([(), (3,)]), st.integers(1, 60), kernels)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_of_a_block_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
    test: Sprt,
    data: st.DataObject,
    entries: tuple[int, ...],
    piece: int,
    kernel: Kernel,
) -> None:
    law = data.draw(mechanisms(test))

    def drawn() -> Runs:
        return draw_runs(
            Setting(test, law, 0.7), 100, kernel=kernel, entries=entries, sampling=Sampling(seed=3, max_steps=5000)
        )

    whole = drawn()
    with monkeypatch.context() as cut_up:
        cut_up.setattr(monte_carlo, "_PIECE", piece)
        parts = drawn()
    assert parts.tau.tolist() == whole.tau.tolist()
    assert parts.decision.tolist() == whole.decision.tolist()


@pytest.mark.parametrize("kernel", ["jumps", "steps"])
def test_a_run_at_the_cap_is_unfinished_and_no_decision(kernel: Kernel) -> None:
    test = Sprt(0.73, 0.01, 0.01)
    drawn = draw_runs(Setting(test, NoNoise(), 0.84), 4000, kernel=kernel, sampling=Sampling(seed=5, max_steps=300))
    unfinished = drawn.decision == UNFINISHED
    assert set(drawn.tau[unfinished].tolist()) == {300}
    assert drawn.tau[~unfinished].max() <= 300
    expected = exact_law(Setting(test, NoNoise(), 0.84)).survival()[300]
    assert unfinished.mean() == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 4000))


@given(
    sprts(finest=0.05), st.data(), st.floats(0.05, 0.95), st.integers(0, 2**64 - 1),
    st.sets(st.integers(1, 90), max_size=3), st.integers(0, 1), kernels,
)  # fmt: skip
@settings(max_examples=80)
def test_entries_and_coins_are_those_of_the_twin(
    test: Sprt, data: st.DataObject, p_phi: float, seed: int, entries: set[int], bit: int, kernel: Kernel
) -> None:
    """Word for word: the beginning up to the last entry from its own stream, the rest as without entries, the coin."""
    law = data.draw(mechanisms(test))
    given_, most = tuple(sorted(entries)), 5000
    drawn = draw_block(
        Setting(test, law, p_phi),
        3,
        4,
        kernel=kernel,
        entries=given_,
        bit=bit,
        sampling=Sampling(seed=seed, max_steps=most),
    )
    beginning, tosses = (int(derived(seed, purpose)) for purpose in (Purpose.BEGINNING, Purpose.COIN))
    for i in range(4):
        stream = twins.words(seed, 3 + i)
        excess = float(law.quantile(np.array([(next(stream) >> 11) / 2**53]))[0])
        if excess <= test.no_room:
            heads = (next(twins.words(tosses, 3 + i)) >> 11) / 2**53 < 0.5
            assert (drawn.tau[i], drawn.decision[i]) == (1, 1 if heads else 0)
            continue
        begun = itertools.islice(twins.samples(twins.words(beginning, 3 + i), p_phi), max(given_, default=0))
        bits = [bit if k in entries else x for k, x in enumerate(begun, start=1)]
        early = twins.walk(test, excess, iter(bits), len(bits)) if bits else (0, -1)
        if early[1] != -1:
            assert (drawn.tau[i], drawn.decision[i]) == early
        elif kernel == "steps":
            rest = itertools.chain(bits, twins.samples(stream, p_phi))
            assert (drawn.tau[i], drawn.decision[i]) == twins.walk(test, excess, rest, most)
        else:
            cut, alias, _ = jump_tables(p_phi)
            tables, start = (cut.tolist(), alias.tolist()), (len(bits), sum(bits))
            expected = twins.jump_walk(test, excess, stream, tables, most, JUMP_SIZES, start)
            assert (drawn.tau[i], drawn.decision[i]) == expected


def test_no_two_paths_share_a_stream() -> None:
    keys = {next(twins.words(3, path)) for path in range(20_000)}
    assert len(keys) == 20_000


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"runs": 0}, "runs"),
        ({"max_steps": 0}, "max_steps"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"p_phi": 1.1}, "p_phi"),
    ],
)
def test_impossible_requests_are_named(change: dict[str, float], word: str) -> None:
    arguments = {"p_phi": 0.84, "runs": 10, "seed": 1, "max_steps": 10} | change
    setting = Setting(Sprt(0.73, 0.01, 0.01), NoNoise(), arguments.pop("p_phi"))
    sampling = Sampling(int(arguments.pop("seed")), int(arguments.pop("max_steps")))
    with pytest.raises(ParameterError, match=word):
        draw_runs(setting, int(arguments["runs"]), sampling)
