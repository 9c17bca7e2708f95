"""Audits of any mechanism: from Python, with good samplers and bad ones."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from dpsmc_audit import audit_mechanism
from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.verdict import METHODS, Method
from dpsmc_audit.observers.black_box import Named, Sampler, SamplerError, _blocks
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.targets import load_target

Result = tuple[np.ndarray, np.ndarray]


def noisy(x: int, runs: int, rng: np.random.Generator) -> Result:
    return np.floor(10 * (x + rng.exponential(size=runs))), np.zeros(runs, int)


def geometric(x: int, runs: int, rng: np.random.Generator) -> Result:
    """Exactly 1-private."""
    share = -math.expm1(-1.0)
    return 100 + x + rng.geometric(share, runs) - rng.geometric(share, runs), rng.integers(0, 2, runs)


def test_a_million_runs_bound_epsilon_above_ten_and_a_half() -> None:
    """floor(10 (x + Exp(1))) at 99 %: the event tau <= 9 has probability .632 for one member and 0 for the other."""
    for method in METHODS[:2]:
        found = audit_mechanism(noisy, 1.0, confidence=0.99, runs=1_000_000, method=method)  # type: ignore[arg-type]
        assert found.epsilon_lower > 10.5
        assert found.witness is not None
        assert found.witness.name == "tau <= 9"


@pytest.mark.parametrize("method", METHODS)
def test_verdicts(method: Method) -> None:
    violated = audit_mechanism(noisy, 1.0, runs=20_000, method=method)
    assert violated.verdict == "violated"
    assert "tau <= 9" in violated.sentence
    assert (violated.runs < 200) == (method == "anytime")
    assert violated.histogram.runs_1.sum() == violated.histogram.runs_0.sum() == violated.runs
    consistent = audit_mechanism(geometric, 1.0, runs=20_000, method=method)
    assert consistent.verdict == "consistent"
    assert consistent.witness is None
    assert "would have shown" in consistent.sentence
    assert consistent.as_dict()["detectable"]["epsilon"] > 1.0
    assert audit_mechanism(geometric, 0.5, runs=20_000, method=method).verdict == "violated"
    assert audit_mechanism(geometric, 0.5, 0.4, runs=20_000, method=method).verdict == "consistent"


def test_the_numbers_depend_on_the_seed_alone() -> None:
    first, second, other = (audit_mechanism(noisy, 1.0, runs=5000, sampling=Sampling(seed=seed)) for seed in (7, 7, 8))
    assert first.as_dict() | {"seconds": 0} == second.as_dict() | {"seconds": 0}
    assert np.array_equal(first.histogram.runs_1, second.histogram.runs_1)
    assert first.delta_lower != other.delta_lower


def test_members_and_blocks_have_random_numbers_of_their_own() -> None:
    seen: list[tuple[int, float]] = []

    def spy(x: int, runs: int, rng: np.random.Generator) -> Result:
        seen.append((x, float(rng.random())))
        return np.zeros(runs, int), np.zeros(runs, int)

    audit_mechanism(spy, 1.0, runs=1000)
    assert [x for x, _ in seen] == [1, 0] * (len(seen) // 2)
    assert len({u for _, u in seen}) == len(seen)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_in_which_runs_come_does_not_matter(method: Method) -> None:
    """Runs that are sorted or grouped by the sampler are still independent: no alarm in 20 audits at 99.9 %."""

    def grouped(x: int, runs: int, rng: np.random.Generator) -> Result:
        return np.repeat(np.arange(60), rng.multinomial(runs, np.full(60, 1 / 60))), np.zeros(runs, int)

    def ordered(x: int, runs: int, rng: np.random.Generator) -> Result:
        return np.sort(geometric(x, runs, rng)[0]), np.zeros(runs, int)

    for seed in range(10):
        options: dict[str, Any] = {"confidence": 0.999, "runs": 3000, "sampling": Sampling(seed=seed), "method": method}
        assert audit_mechanism(grouped, 0.0, **options).verdict == "consistent"
        assert audit_mechanism(ordered, 1.0, **options).verdict == "consistent"
    assert audit_mechanism(ordered, 0.3, **options).verdict == "violated"


def test_a_sampler_that_does_not_use_its_generator_is_noticed() -> None:
    def fixed(x: int, runs: int, rng: np.random.Generator) -> Result:
        return geometric(x, runs, np.random.default_rng(5))

    with pytest.raises(SamplerError, match="the same runs again for x=1") as caught:
        audit_mechanism(fixed, 1.0, runs=10_000)
    assert caught.value.partial is not None

    def constant(x: int, runs: int, rng: np.random.Generator) -> Result:
        return np.arange(runs) % 3, np.zeros(runs, int)

    assert audit_mechanism(constant, 1.0, runs=1000).verdict == "consistent"


def test_decisions_have_no_meaning_here() -> None:
    def told(x: int, runs: int, rng: np.random.Generator) -> Result:
        return np.ones(runs, int), (rng.random(runs) < 0.1 + 0.8 * x).astype(int)

    found = audit_mechanism(told, 0.5, runs=5000)
    assert found.witness is not None
    assert found.witness.name in ("tau <= 1 and o = 1", "tau <= 1 and o = 0", "tau > 0 and o = 1", "tau > 0 and o = 0")


@pytest.mark.parametrize("runs", [20, 64, 65, 1000, 10**6])
def test_blocks_add_up(runs: int) -> None:
    blocks = list(_blocks(runs))
    assert sum(count for (_, count), _ in blocks) == runs
    ends = [end for _, end in blocks]
    assert ends == np.cumsum([count for (_, count), _ in blocks]).tolist()
    assert list(_blocks(runs, begun=ends[0])) == blocks[1:]


def _zeros(runs: int) -> np.ndarray:
    return np.zeros(runs, int)


BAD: dict[str, tuple[Any, str]] = {
    "shape": (lambda x, runs, rng: (np.zeros(3), _zeros(runs)), r"tau of shape \(64,\), got \(3,\)"),
    "columns": (lambda x, runs, rng: (np.zeros((runs, 1)), _zeros(runs)), r"got \(64, 1\)"),
    "decision shape": (lambda x, runs, rng: (_zeros(runs), 0), r"o of shape \(64,\), got \(\)"),
    "fraction": (lambda x, runs, rng: (np.full(runs, 2.5), _zeros(runs)), "integers as tau, got 2.5"),
    "nan": (lambda x, runs, rng: (np.full(runs, np.nan), _zeros(runs)), "finite integers as tau"),
    "text": (lambda x, runs, rng: (np.array(["1"] * runs), _zeros(runs)), "finite integers as tau"),
    "huge": (lambda x, runs, rng: (np.full(runs, 1e300), _zeros(runs)), "integers as tau, got 1e"),
    "negative": (lambda x, runs, rng: (np.full(runs, -1), _zeros(runs)), "tau that are integers >= 0"),
    "decision": (lambda x, runs, rng: (_zeros(runs), np.full(runs, 2)), "o that are 0 or 1, got 2"),
    "undecided": (lambda x, runs, rng: (_zeros(runs), np.full(runs, -1)), "o that are 0 or 1, got -1"),
    "ragged": (lambda x, runs, rng: ([[1], [2, 3]], _zeros(runs)), "no array"),
    "one array": (lambda x, runs, rng: _zeros(runs), "two arrays, got ndarray"),
    "none": (lambda x, runs, rng: None, "two arrays, got NoneType"),
    "raises": (lambda x, runs, rng: int("a"), "raised ValueError: invalid literal"),
    "exits": (lambda x, runs, rng: sys.exit(0), "raised SystemExit: 0"),
    "masked": (lambda x, runs, rng: (np.ma.masked_equal(np.arange(runs), 3), _zeros(runs)), "without masked values"),
    "wrong arguments": (lambda x: None, "raised TypeError"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_sampler_is_named_in_one_line(name: str) -> None:
    sampler, words = BAD[name]
    with pytest.raises(SamplerError, match=words) as caught:
        audit_mechanism(Named(sampler, "mine:sampler"), 1.0, runs=1000)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("sampler mine:sampler, called with x=1, runs=64 (block 0)")
    assert caught.value.partial is None


def test_what_was_gathered_before_a_failure_is_kept() -> None:
    def late(x: int, runs: int, rng: np.random.Generator) -> Result:
        if runs > 1000 and x == 0:
            raise RuntimeError("out of\ncheese")
        return noisy(x, runs, rng)

    with pytest.raises(SamplerError, match=r"x=0, runs=1024 \(block 5\) raised RuntimeError: out of cheese") as caught:
        audit_mechanism(late, 1.0, runs=10_000)
    kept = caught.value.partial
    assert kept is not None
    assert kept.runs == 64 + 64 + 128 + 256 + 512
    assert kept.verdict == "violated"


def test_a_keyboard_interrupt_is_no_sampler_error() -> None:
    def stopped(x: int, runs: int, rng: np.random.Generator) -> Result:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_mechanism(stopped, 1.0, runs=1000)


@pytest.mark.parametrize(
    ("change", "word"),
    [({"epsilon": -1.0}, "epsilon"), ({"epsilon": math.inf}, "epsilon"),
     ({"delta": 1.0}, "claimed_delta"), ({"confidence": 1.0}, "confidence"), ({"runs": 19}, "runs"),
     ({"seed": -1}, "seed"), ({"seed": 1.5}, "seed must be a whole"), ({"runs": 1e3}, "runs must be a whole"),
     ({"epsilon": "1"}, "epsilon must be a number"), ({"epsilon": 10**400}, "epsilon"),
     ({"method": "best"}, "method"), ({"floor": 0.0}, "floor")],
)  # fmt: skip
def test_impossible_requests_are_named(change: dict[str, Any], word: str) -> None:
    options = {"epsilon": 1.0} | change
    sampling = Sampling(seed=options.pop("seed", 1))
    with pytest.raises(ParameterError, match=word):
        audit_mechanism(noisy, **options, sampling=sampling)


@pytest.mark.parametrize(
    ("target", "words"),
    [("mine", "package.module:function"), (":f", "package.module:function"), ("mine:", "package.module:function"),
     ("no.such.module:f", "cannot import no.such.module: ModuleNotFoundError"), ("math:no", "math has no no"),
     ("math:pi", "pi is no function")],
)  # fmt: skip
def test_a_target_that_is_none_is_named(target: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        load_target("sampler", target)
    assert "\n" not in str(caught.value)


def test_a_sampler_may_be_any_callable() -> None:
    class Mine:
        def __call__(self, x: int, runs: int, rng: np.random.Generator) -> Result:
            return noisy(x, runs, rng)

    sampler: Sampler = Mine()
    assert audit_mechanism(sampler, 1.0, runs=1000).name == "Mine"
