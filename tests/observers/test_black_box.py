"""Audits of any mechanism: from Python, with good samplers and bad ones."""

from __future__ import annotations

import math
import re
import sys
from itertools import islice
from typing import Any

import numpy as np
import pytest

from dpsmc_audit import audit_mechanism
from dpsmc_audit.errors import ParameterError, SamplerError
from dpsmc_audit.evidence.claims import Dp
from dpsmc_audit.observers.black_box import (
    BlackBoxAudit,
    Named,
    Sampler,
    _blocks,
    audit_samples,
    ends_of_blocks,
)
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.targets import load_target

Result = tuple[np.ndarray, np.ndarray]


def noisy(x: int, runs: int, rng: np.random.Generator) -> Result:
    return np.floor(10 * (x + rng.exponential(size=runs))), np.zeros(runs, int)


def geometric(x: int, runs: int, rng: np.random.Generator) -> Result:
    """Exactly 1-private."""
    share = -math.expm1(-1.0)
    return 100 + x + rng.geometric(share, runs) - rng.geometric(share, runs), rng.integers(0, 2, runs)


def test_many_runs_bound_epsilon_above_eight() -> None:
    """floor(10 (x + Exp(1))) at 99 %: the event tau <= 9 has probability .632 for one member and 0 for the other."""
    found = audit_mechanism(noisy, 1.0, confidence=0.99, runs=100_000, early=False)
    assert found.verdict == "violated"
    assert found.epsilon_lower > 8.0
    assert 0.57 < found.delta_lower < -math.expm1(-1.0)
    assert max(found.used) == 100_000
    assert found.witness is not None
    assert found.witness.name == "tau <= 9"


@pytest.mark.slow
def test_a_million_runs_bound_epsilon_above_ten_and_a_half() -> None:
    found = audit_mechanism(noisy, 1.0, confidence=0.99, runs=1_000_000, early=False)
    assert found.epsilon_lower > 10.5


def test_verdicts() -> None:
    violated = audit_mechanism(noisy, 1.0, runs=20_000)
    assert violated.verdict == "violated"
    assert "tau" in (violated.words.witness or "")
    assert violated.runs < 200
    assert violated.histogram.runs_1.sum() == violated.used[1]
    assert violated.histogram.runs_0.sum() == violated.used[0]
    consistent = audit_mechanism(geometric, 1.0, runs=5000)
    assert consistent.verdict == "consistent"
    assert consistent.witness is None
    assert "they would have shown" in consistent.sentence
    assert consistent.as_dict()["detectable"]["epsilon_by_event_probability"]["0.5"] > 1.0
    assert audit_mechanism(geometric, 0.5, runs=20_000).verdict == "violated"
    assert audit_mechanism(geometric, Dp(0.5, 0.4), runs=2000).verdict == "consistent"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_single_value_among_ten_thousand_is_found(seed: int) -> None:
    """It has probability .01 with x = 1 and never comes with x = 0."""

    def told(x: int, runs: int, rng: np.random.Generator) -> np.ndarray:
        tau = rng.integers(0, 10_000, runs)
        tau[tau == 4321] = 4322
        tau[rng.random(runs) < 0.01 * x] = 4321
        return tau

    found = audit_mechanism(told, 1.0, runs=100_000, sampling=Sampling(seed=seed))
    assert found.verdict == "violated"
    assert found.witness is not None
    assert found.witness.name == "output = 4321"


def test_the_numbers_depend_on_the_seed_alone() -> None:
    first, second, other = (audit_mechanism(noisy, 1.0, runs=5000, sampling=Sampling(seed=seed)) for seed in (7, 7, 8))
    assert first.as_dict() | {"seconds": 0} == second.as_dict() | {"seconds": 0}
    assert np.array_equal(first.histogram.runs_1, second.histogram.runs_1)
    assert first.used != other.used or first.delta_lower != other.delta_lower


def test_members_and_blocks_have_random_numbers_of_their_own() -> None:
    seen: list[tuple[int, float]] = []

    def spy(x: int, runs: int, rng: np.random.Generator) -> Result:
        seen.append((x, float(rng.random())))
        return np.zeros(runs, int), np.zeros(runs, int)

    audit_mechanism(spy, 1.0, runs=1000)
    assert [x for x, _ in seen] == [0, 1] * (len(seen) // 2)
    assert len({u for _, u in seen}) == len(seen)


def test_the_order_in_which_runs_come_does_not_matter() -> None:
    """Runs that are sorted or grouped by the sampler are still independent: no alarm in 20 audits at 99.9 %."""

    def grouped(x: int, runs: int, rng: np.random.Generator) -> Result:
        return np.repeat(np.arange(60), rng.multinomial(runs, np.full(60, 1 / 60))), np.zeros(runs, int)

    def ordered(x: int, runs: int, rng: np.random.Generator) -> Result:
        return np.sort(geometric(x, runs, rng)[0]), np.zeros(runs, int)

    for seed in range(10):
        options: dict[str, Any] = {"confidence": 0.999, "runs": 1500, "sampling": Sampling(seed=seed)}
        assert audit_mechanism(grouped, 0.0, **options).verdict == "consistent"
        assert audit_mechanism(ordered, 1.0, **options).verdict == "consistent"
    assert audit_mechanism(ordered, 0.3, **options | {"runs": 20_000}).verdict == "violated"


def test_a_sampler_that_does_not_use_its_generator_is_noticed() -> None:
    def fixed(x: int, runs: int, rng: np.random.Generator) -> Result:
        return geometric(x, runs, np.random.default_rng(5))

    with pytest.raises(SamplerError, match=r"x=0 \(block 1\) returned the same runs again") as caught:
        audit_mechanism(fixed, 1.0, runs=10_000)
    assert caught.value.partial is None or min(caught.value.partial.used) >= 10

    def constant(x: int, runs: int, rng: np.random.Generator) -> Result:
        return np.arange(runs) % 3, np.zeros(runs, int)

    assert audit_mechanism(constant, 1.0, runs=1000).verdict == "consistent"


def test_decisions_have_no_meaning_here() -> None:
    def told(x: int, runs: int, rng: np.random.Generator) -> Result:
        return np.ones(runs, int), (rng.random(runs) < 0.1 + 0.8 * x).astype(int)

    found = audit_mechanism(told, 0.5, runs=5000)
    assert found.witness is not None
    assert re.search(r"\bo = [01]\b", found.witness.name)


@pytest.mark.parametrize("runs", [20, 64, 65, 1000, 10**6])
def test_blocks_add_up(runs: int) -> None:
    blocks = list(_blocks(runs))
    ends = [end for _, end in blocks]
    assert ends[-2:-1] < [runs] <= ends[-1:]
    assert [number for (number, _), _ in blocks] == list(range(len(blocks)))
    assert ends == list(islice(ends_of_blocks(), len(ends)))
    assert ends == np.cumsum([count for (_, count), _ in blocks]).tolist()
    assert list(_blocks(runs, begun=ends[0])) == blocks[1:]


def _zeros(runs: int) -> np.ndarray:
    return np.zeros(runs, int)


BAD: dict[str, tuple[Any, str]] = {
    "shape": (lambda x, runs, rng: (np.zeros(3), _zeros(runs)), "column 1"),
    "too few": (lambda x, runs, rng: np.zeros(runs - 1), "20"),
    "too many": (lambda x, runs, rng: np.zeros(runs + 1), "20"),
    "three axes": (lambda x, runs, rng: np.zeros((runs, 2, 2)), "shape"),
    "transposed": (lambda x, runs, rng: np.zeros((2, runs)), "shape"),
    "wide": (lambda x, runs, rng: np.zeros((runs, 65)), "shape"),
    "decision shape": (lambda x, runs, rng: (_zeros(runs), 0), "columns of 20 runs"),
    "nan": (lambda x, runs, rng: np.where(np.arange(runs) == 3, np.nan, 0.5), "nan"),
    "None": (lambda x, runs, rng: [None if k == 3 else "a" for k in range(runs)], "None"),
    "mixed": (lambda x, runs, rng: ["a" if k == 3 else 0.5 for k in range(runs)], "mixed"),
    "mixed transcripts": (lambda x, runs, rng: [["a"] if k == 3 else [0.5] for k in range(runs)], "mixed"),
    "complex": (lambda x, runs, rng: np.zeros(runs, complex), "complex"),
    "no columns": (lambda x, runs, rng: (), "empty tuple"),
    "none": (lambda x, runs, rng: None, "None"),
    "raises": (lambda x, runs, rng: int("a"), "raised ValueError: invalid literal"),
    "exits": (lambda x, runs, rng: sys.exit(0), "raised SystemExit: 0"),
    "masked": (lambda x, runs, rng: np.ma.masked_equal(np.arange(runs), 3), "missing values must be declared"),
    "wrong arguments": (lambda x: None, "raised TypeError"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_sampler_is_named_in_one_line(name: str) -> None:
    sampler, words = BAD[name]
    with pytest.raises(SamplerError, match=words) as caught:
        audit_mechanism(Named(sampler, "mine:sampler"), 1.0, runs=1000)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("sampler mine:sampler, called with x=0, runs=20 (block 0)")
    assert caught.value.partial is None


def test_what_was_gathered_before_a_failure_is_kept() -> None:
    def late(x: int, runs: int, rng: np.random.Generator) -> Result:
        if runs == 25 and x == 1:
            raise RuntimeError("out of\ncheese")
        return geometric(x, runs, rng)

    with pytest.raises(SamplerError, match=r"x=1, runs=25 \(block 5\) raised RuntimeError: out of cheese") as caught:
        audit_mechanism(late, 1.0, runs=10_000)
    kept = caught.value.partial
    assert kept is not None
    assert 80 <= max(kept.used) <= 100
    assert kept.verdict == "consistent"


def test_other_outputs_in_a_later_block_are_named() -> None:
    def changed(x: int, runs: int, rng: np.random.Generator) -> Any:
        return rng.normal(size=runs) if runs == 20 else rng.normal(size=(runs, 2))

    with pytest.raises(SamplerError, match="vectors of 2 numbers, but runs before it were numbers") as caught:
        audit_mechanism(changed, 1.0, runs=1000)
    assert caught.value.partial is not None
    assert "\n" not in f"{caught.value}"


def test_a_keyboard_interrupt_is_no_sampler_error() -> None:
    def stopped(x: int, runs: int, rng: np.random.Generator) -> Result:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_mechanism(stopped, 1.0, runs=1000)


@pytest.mark.parametrize(
    ("change", "word"),
    [({"epsilon": -1.0}, "epsilon"), ({"epsilon": math.inf}, "epsilon"),
     ({"confidence": 1.0}, "confidence"), ({"runs": 9}, "runs"), ({"confidence": "x"}, "confidence"),
     ({"seed": -1}, "seed"), ({"seed": 1.5}, "seed must be a whole"), ({"runs": 1e3}, "runs must be a whole")],
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


# --- runs that exist already ----------------------------------------------------------------------------------------


def test_existing_runs_are_judged() -> None:
    rng = np.random.default_rng(3)
    ones, zeros = 1.0 + rng.laplace(size=3000), rng.laplace(size=2000)
    found = audit_samples(ones, zeros, 0.5)
    assert found.verdict == "violated"
    assert max(found.used) == 2000
    assert 0.5 <= found.epsilon_lower < 1.0
    assert audit_samples(ones, zeros, 1.0).verdict == "consistent"


@pytest.mark.parametrize(
    ("ones", "zeros", "words"),
    [
        (np.zeros(9), np.zeros(20), "at least 10 runs of each member, got 9"),
        (np.zeros(20), np.zeros((20, 2)), "runs with x=1 returned numbers, but"),
        (np.zeros(20), ["a"] * 20, "runs with x=1 returned numbers, but"),
        (np.append(np.zeros(20), np.nan), np.zeros(20), "runs with x=1 .*nan"),
        (np.zeros(20), 7, "runs with x=0"),
        ([], [], "at least 10"),
        ((np.zeros(20), np.zeros(19)), (np.zeros(20), np.zeros(20)), "runs with x=1"),
    ],
)
def test_bad_runs_are_named_in_one_line(ones: Any, zeros: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        audit_samples(ones, zeros, 0.5)
    assert "\n" not in f"{caught.value}"


# --- predictors of the user's ---------------------------------------------------------------------------------------


class Bad:
    """A classifier that returns something else."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def fit(self, features: np.ndarray, labels: np.ndarray) -> None: ...

    def predict_proba(self, features: np.ndarray) -> Any:
        return self.answer(len(features))


class Made:
    """A factory with a name."""

    name = "mine:bad"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self) -> Bad:
        return Bad(self.answer)


BAD_PREDICTORS: dict[str, tuple[Any, str]] = {
    "nan": (lambda n: np.full(n, np.nan), "nan is no probability"),
    "above 1": (lambda n: np.full(n, 1.5), "1.5 is no probability"),
    "below 0": (lambda n: np.full(n, -1e-9), "-1e-09 is no probability"),
    "shape": (lambda n: np.zeros((n, 3)), r"shape \(\d+, 3\)"),
    "one number": (lambda n: 0.5, r"shape \(\)"),
    "texts": (lambda n: ["a"] * n, "raised ValueError"),
    "nothing": (lambda n: None, "no probability|shape|raised"),
    "raises": (lambda n: 1 / 0, "raised ZeroDivisionError: division by zero"),
    "exits": (lambda n: sys.exit(3), "raised SystemExit: 3"),
}


def with_predictor(predictor: Any) -> BlackBoxAudit:
    return audit_mechanism(noisy, 30.0, runs=200, predictor=predictor)


@pytest.mark.parametrize("name", BAD_PREDICTORS)
def test_a_bad_predictor_is_named_in_one_line(name: str) -> None:
    answer, words = BAD_PREDICTORS[name]
    with pytest.raises(ParameterError, match=words) as caught:
        with_predictor(Made(answer))
    assert f"{caught.value}".startswith("predictor mine:bad, predict_proba on ")
    assert "\n" not in f"{caught.value}"


def test_a_predictor_that_cannot_be_made_or_fitted_is_named() -> None:
    class NoFit:
        def fit(self, features: np.ndarray, labels: np.ndarray) -> None:
            raise ValueError("no\nway")

        predict_proba = fit

    for predictor, words in ((NoFit, "raised ValueError: no way"), (lambda: 1 / 0, "raised ZeroDivisionError")):
        with pytest.raises(ParameterError, match=words) as caught:
            with_predictor(predictor)
        assert "\n" not in f"{caught.value}"


def test_a_good_predictor_adds_power() -> None:
    """The leak is in the sign of a product of three coordinates, which no view of the auditor shows as well."""

    class Product:
        def fit(self, features: np.ndarray, labels: np.ndarray) -> None:
            signs = np.prod(np.sign(features), axis=1)
            self.sign = 1.0 if np.mean(signs[labels == 1]) > np.mean(signs[labels == 0]) else -1.0

        def predict_proba(self, features: np.ndarray) -> np.ndarray:
            return np.asarray(0.5 + 0.4 * self.sign * np.prod(np.sign(features), axis=1))

    def hidden(x: int, runs: int, rng: np.random.Generator) -> np.ndarray:
        found = rng.normal(size=(runs, 3))
        told = np.sign(found[:, 0] * found[:, 1]) * np.where(rng.random(runs) < 0.9, 2 * x - 1, 1 - 2 * x)
        found[:, 2] = np.abs(found[:, 2]) * told
        return found

    alone, helped = (audit_mechanism(hidden, 0.5, runs=2000, predictor=p) for p in (None, Product))
    assert helped.verdict == "violated"
    assert helped.runs < alone.runs
    assert helped.views["predictor"] > 0.9
