"""The order in which recorded samples are verified: uniform, from fresh entropy, each sample once, and said."""

from __future__ import annotations

import itertools
import math
import secrets
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.mechanisms import Exponential, NoNoise
from dpsmc_audit.models.recorded import Recorded
from dpsmc_audit.models.sources import BATCH, Batch, Bernoulli
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.stl import parse
from dpsmc_audit.verify import release
from dpsmc_audit.verify.boundary import VerificationError
from dpsmc_audit.verify.entropy import Entropy, SeededEntropy, SystemEntropy
from dpsmc_audit.verify.order import Shuffled, shuffle
from dpsmc_audit.verify.release import Samples, verify
from dpsmc_audit.verify.run import run_once
from tests.support.command import Run, result_in, runner

HALF = ("p=0.5", "delta=0.1", "alpha=0.01", "epsilon=0.5")
SORTED = "1\n" * 300 + "0\n" * 2700


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    return runner(monkeypatch, capsys, tmp_path)


@dataclass
class Chosen:
    """Entropy that gives the integers it was told, and notes what it was asked for."""

    integers: tuple[int, ...]
    asked: list[int] = field(default_factory=list)

    def below(self, n: int) -> int:
        self.asked.append(n)
        found = self.integers[len(self.asked) - 1]
        assert 0 <= found < n
        return found


@dataclass(frozen=True)
class Given:
    """A source of known samples that end."""

    name: ClassVar[str] = "given"
    repeatable: ClassVar[bool] = False
    bits: tuple[bool, ...]

    def batches(self, seed: int) -> Iterator[Batch]:
        for begin in range(0, len(self.bits), BATCH):
            yield Batch(np.array(self.bits[begin : begin + BATCH]))


def drawn(source: Shuffled, seed: int = 0) -> list[bool]:
    return [bool(bit) for batch in source.batches(seed) for bit in batch.bits]


# --- uniform, and each sample once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 7))
def test_every_order_comes_from_one_run_of_the_entropy(n: int) -> None:
    """All n! answers of the entropy, which are equally likely, give all n! orders: exact, no draw is left to chance."""
    found: Counter[tuple[int, ...]] = Counter()
    for answers in itertools.product(*(range(n - place) for place in range(n))):
        items, entropy = np.arange(n), Chosen(answers)
        shuffle(items, 0, n, entropy)
        assert entropy.asked == list(range(n, 0, -1))
        found[tuple(items.tolist())] += 1
    assert found == dict.fromkeys(itertools.permutations(range(n)), 1)


def test_samples_of_a_source_come_in_every_order_equally_often() -> None:
    """Two ones and three zeros: each of the ten sequences from 2! 3! of the 5! answers."""
    source, found = Given((True, True, False, False, False)), Counter[tuple[bool, ...]]()
    for answers in itertools.product(*(range(5 - place) for place in range(5))):
        found[tuple(drawn(Shuffled(source, Chosen(answers))))] += 1
    assert len(found) == math.comb(5, 2)
    assert set(found.values()) == {12}


@given(n=st.integers(1, 900), width=st.integers(1, 400))
def test_every_sample_is_used_once_whatever_the_batches(n: int, width: int) -> None:
    items, whole = np.arange(n), np.arange(n)
    entropy: Entropy = SeededEntropy(n)
    for begin in range(0, n, width):
        shuffle(items, begin, begin + width, entropy)
    shuffle(whole, 0, n, SeededEntropy(n))
    assert items.tolist() == whole.tolist()
    assert sorted(items.tolist()) == list(range(n))


@given(bits=st.lists(st.booleans(), min_size=1, max_size=700))
def test_the_samples_are_those_of_the_source(bits: list[bool]) -> None:
    assert Counter(drawn(Shuffled(Given(tuple(bits)), SystemEntropy()))) == Counter(bits)


def test_only_samples_that_are_used_are_put_into_order() -> None:
    """A batch asks for its own places; the rest of the data draws nothing."""
    entropy = Chosen((0,) * BATCH)
    next(Shuffled(Given((True,) * 5000), entropy).batches(0))
    assert entropy.asked == list(range(5000, 5000 - BATCH, -1))


def test_a_sample_takes_a_byte(tmp_path: Path) -> None:
    peaks = []
    for size in (5_000, 55_000):
        (tmp_path / "o.csv").write_text("1\n" * size)
        source = Shuffled(Recorded(f"{tmp_path / 'o.csv'}"), Chosen((0,) * BATCH))
        tracemalloc.start()
        next(source.batches(0))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 4 * 50_000  # a buffer that grows is there twice for a moment


# --- fresh entropy --------------------------------------------------------------------------------------------------


def test_the_order_is_drawn_by_the_operating_system(monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> None:
    """Beside L, the coin and the stream's number nothing but the order is drawn: 3000, 2999, ... as far as needed."""
    asked, randbelow = list[int](), secrets.randbelow

    def noted(n: int) -> int:
        asked.append(n)
        return randbelow(n)

    monkeypatch.setattr(secrets, "randbelow", noted)
    monkeypatch.setattr(release, "sealed", lambda run, allowed: run())  # in this process
    (tmp_path / "o.csv").write_text(SORTED)
    assert run("task=verify", *HALF, "mechanism=none", "model=recorded", "model.path=o.csv")[0] == 0
    assert asked == [2, 2**64, *range(3000, 3000 - BATCH, -1)]


def test_the_order_is_no_function_of_the_seed() -> None:
    """Two equal ones of C(2000, 1000) sequences: once in 10^600."""
    source = Given((True, False) * 1000)
    assert drawn(Shuffled(source, SystemEntropy()), seed=7) != drawn(Shuffled(source, SystemEntropy()), seed=7)


def test_a_seed_gives_the_order_away_and_the_release_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("1\n0\n0\n" * 1000)
    seen = []
    for k in range(2):
        arguments = ("model=recorded", "model.path=o.csv", "insecure=true", "seed=3", f"hydra.run.dir={k}")
        code, out, _ = run("task=verify", *HALF, *arguments)
        assert code == 0
        assert "equally likely, drawn from a seed" in out
        seen.append(result_in(tmp_path / f"{k}")["tau"])
    assert seen[0] == seen[1]


# --- what is answered and what is said ------------------------------------------------------------------------------


def sorted_data(folder: Path, kind: str) -> tuple[str, ...]:
    """300 samples that satisfy the specification and then 2700 that violate it, as options of the command."""
    if kind == "outcomes":
        (folder / "o.csv").write_text(SORTED)
        return ("model.path=o.csv",)
    rows = [(k, time, 1.0 if k < 300 else -1.0) for k in range(3000) for time in (0.0, 1.0)]
    specification = 'formula="always[0,1] (x > 0)"'
    if kind == "traces":
        (folder / "t.csv").write_text("trace,time,x\n" + "".join(f"{k},{time},{x}\n" for k, time, x in rows))
        return ("model.path=t.csv", "model.step=1", specification)
    import pandas as pd

    pd.DataFrame(rows, columns=["trace", "time", "x"]).to_parquet(folder / "t.parquet")
    return ("model.path=t.parquet", "model.step=1", specification)


@pytest.mark.parametrize("kind", ["outcomes", "traces", "parquet"])
def test_sorted_data_are_answered_for_all_of_them(run: Run, tmp_path: Path, kind: str) -> None:
    """p_phi is 0.1. In file order the answer is yes (L above 117 would prevent it: e^-72).

    In random order it is no: for a yes at least 12 more ones than zeros must be drawn at some time (below 1e-11,
    computed here), and the data end before the bound only for L above 900 (e^-550).
    """
    test = Sprt(0.5, 0.1, 0.01)
    more = math.ceil(test.b_up / test.s_plus)
    drawn = np.arange(1, 3001)
    wrong = float(np.sum(hypergeom.sf(np.ceil((drawn + more) / 2) - 1, 3000, 300, drawn)))
    assert (more, wrong < 1e-11) == (12, True)
    data = sorted_data(tmp_path, kind)
    answers = {}
    for name, order in {"default": (), "random": ("model.order=random",), "file": ("model.order=file",)}.items():
        code, out, _ = run("task=verify", *HALF, "model=recorded", *data, *order, f"hydra.run.dir={name}")
        assert code == 0
        answers[name] = result_in(tmp_path / name)["decision"]
        said = result_in(tmp_path / name)["privacy"]["samples"]
        assert f"samples: {said}\n" in out
        assert ("order of the file (model.order=file)" in said) == (name == "file")
        assert ("random order" in said) == ("exchangeable" in said) == (name != "file")
        assert "are for independent samples" in said
    assert answers == {"default": "H_alt", "random": "H_alt", "file": "H_null"}
    assert result_in(tmp_path / "default")["parameters"]["model_order"] == "random"
    assert result_in(tmp_path / "file")["parameters"]["model_order"] == "file"


def test_data_that_are_used_up_leave_it_undecided(run: Run, tmp_path: Path) -> None:
    """Twenty samples of 1/2 each: 23 of a kind are the fewest that decide, in any order."""
    (tmp_path / "o.csv").write_text("1\n" * 10 + "0\n" * 10)
    code, out, _ = run("task=verify", "p=0.5", "delta=0.05", "epsilon=0.5", "model=recorded", "model.path=o.csv")
    assert code == 3
    result = result_in(tmp_path)
    assert (result["decision"], result["tau"]) == ("undecided", 20)
    assert "undecided after tau = 20 samples" in out


def test_a_mistake_anywhere_ends_a_run_in_random_order(run: Run, tmp_path: Path) -> None:
    """All data are read first, so that neither the order nor tau decides whether it is met: where it is, is public."""
    for line in (1, 23, 5000):
        (tmp_path / "o.csv").write_text("1\n" * (line - 1) + "private\n" + "1\n" * 50)
        arguments = ("mechanism=none", "model=recorded", "model.path=o.csv", f"hydra.run.dir={line}")
        code, out, err = run("task=verify", *HALF, *arguments)
        assert (code, err) == (2, f"error: o.csv, line {line}: outcomes must be 0 or 1\n")
        left = "".join(path.read_text() for path in (tmp_path / f"{line}").iterdir())
        assert "private" not in out + left


def test_every_order_of_traces_is_answered(tmp_path: Path) -> None:
    """Traces of several lengths keep their truth values: as many of each as in the file."""
    lines = [f"{k},{j},{1 - 2 * (k % 3 == 0)}\n" for k in range(40) for j in range(2 + k % 4)]
    (tmp_path / "t.csv").write_text("trace,time,x\n" + "".join(lines))
    source = Recorded(f"{tmp_path / 't.csv'}", formula=parse("always[0,1] (x > 0)"))
    assert Counter(drawn(Shuffled(source, SystemEntropy()))) == {False: 14, True: 26}


BAD = {
    "task=estimate model=recorded model.path=x model.order=file": "model.order=file is for task=verify: task=estimate",
    "task=verify model=recorded model.path=x model.order=sorted": "model.order must be one of random, file",
    "task=verify model=powertrain +model.order=file": "model.order has no meaning with model=powertrain",
}


@pytest.mark.parametrize("arguments", BAD)
def test_orders_without_a_meaning_are_refused(run: Run, tmp_path: Path, arguments: str) -> None:
    (tmp_path / "x").write_text("1\n")
    code, out, err = run(*arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {BAD[arguments]}")


def test_an_estimate_counts_all_and_names_no_order(run: Run, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text(SORTED)
    assert run("task=estimate", "model=recorded", "model.path=o.csv")[0] == 0
    result = result_in(tmp_path)
    assert (result["satisfied"], result["samples_drawn"]) == (300, 3000)
    assert "order" not in f"{result['parameters']}"


# --- from Python ----------------------------------------------------------------------------------------------------


def test_a_recorded_source_is_put_into_random_order_unless_told_otherwise() -> None:
    test, source = Sprt(0.5, 0.1, 0.01), Given((True,) * 300 + (False,) * 2700)
    law = Exponential.private(test, 0.5)
    assert verify(test, law, source, epsilon=0.5)["decision"] == "H_alt"  # but for 1e-11, as above
    assert verify(test, law, Samples.of(source, "file"), epsilon=0.5)["decision"] == "H_null"
    assert verify(test, law, Samples(lambda: source, "random"), epsilon=0.5)["decision"] == "H_alt"
    assert "samples" not in verify(test, law, Bernoulli(0.9), epsilon=0.5)["privacy"]


def test_what_has_no_order_or_an_unknown_one_is_refused() -> None:
    test, source = Sprt(0.5, 0.1, 0.01), Given((True,) * 300)
    with pytest.raises(VerificationError, match="recorded samples need an order, random or file"):
        verify(test, NoNoise(), Samples(lambda: source), epsilon=0.5)
    with pytest.raises(VerificationError, match="an order is for recorded samples"):
        verify(test, NoNoise(), Samples.of(Bernoulli(0.9), "random"), epsilon=0.5)
    with pytest.raises(ParameterError, match="order must be one of random, file, got sorted"):
        verify(test, NoNoise(), Samples.of(source, "sorted"), epsilon=0.5)


def test_the_law_of_a_run_on_a_small_file_is_that_of_all_its_orders() -> None:
    """Four ones and three zeros, bounds of three steps: all 7! answers of the entropy against all C(7, 4) orders."""
    test = Sprt(0.5, 0.2, 0.1)
    assert math.ceil(test.b_up / test.s_plus) == 3
    source, found, wanted = Given((True,) * 4 + (False,) * 3), Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for answers in itertools.product(*(range(7 - place) for place in range(7))):
        entropy = Chosen((0, 0, *answers))  # the coin and the stream's number come first
        outcome = run_once(test, NoNoise(), Shuffled(source, entropy), 100, entropy)
        found[outcome.tau, outcome.decision] += 1
    for ones in itertools.combinations(range(7), 4):
        walk = np.cumsum([1 if place in ones else -1 for place in range(7)])
        stops = np.flatnonzero(np.abs(walk) >= 3)
        tau = int(stops[0]) + 1 if stops.size else 7
        decision = ("H_null" if walk[tau - 1] > 0 else "H_alt") if stops.size else "undecided"
        wanted[tau, decision] += math.factorial(4) * math.factorial(3)
    assert found == wanted
