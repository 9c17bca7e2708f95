"""Where blocks are computed, how they are cut and where a task was interrupted: nothing of it changes a result."""

from __future__ import annotations

import logging
import math
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsmc_audit import Exponential, ParameterError, Sprt, audit_mechanism, simulate
from dpsmc_audit.evidence.anytime import Anytime
from dpsmc_audit.mechanisms import NoNoise
from dpsmc_audit.models.sources import Bernoulli
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.expected import audit as expected
from dpsmc_audit.observers.expected.audit import Expected
from dpsmc_audit.observers.expected.verdicts import support_gap_evidence
from dpsmc_audit.observers.informed.average import average
from dpsmc_audit.observers.marginal.law import Counts, count_runs
from dpsmc_audit.runs.checkpoints import Checkpoint
from dpsmc_audit.runs.execution import AHEAD, Backend, Execution, accumulate, cut
from dpsmc_audit.sampling.pairs import draw_excess, pair_sums
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.tasks.simulate import Tally
from dpsmc_audit.tasks.simulate_model import simulate_model

TEST = Sprt(0.73, 0.03, 0.05)
LAW = Exponential.private(TEST, 0.2)
PAPER = Sprt(0.73, 0.01, 0.01)
LONG = Exponential.private(PAPER, 0.05)


def sampler(x: int, runs: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    return np.floor(3 * x + rng.exponential(9.0, size=runs)), rng.integers(0, 2, runs)


def _tables(counts: Counts) -> list[Any]:
    return [(part.codes.tolist(), part.counts.tolist()) for member in counts.parts.members for part in member]


def _bets(way: Execution) -> Any:
    bets = Anytime(0.15, 0.0, 0.99)
    counts = count_runs(
        Adjacent(Setting(TEST, LAW, 0.84)), 1500, bets=bets, sampling=Sampling(seed=2, max_steps=10**6, execution=way)
    )
    return _tables(counts), bets.pairs, bets.capital, bets.rejected


def _pairs(way: Execution) -> Any:
    excess = draw_excess(LAW, 60, 1)
    found = pair_sums(
        Adjacent(Setting(TEST, NoNoise(), 0.8), (2,)),
        excess,
        101,
        sampling=Sampling(seed=4, max_steps=10**5, execution=way),
    )
    return found.sums.tolist(), found.sizes.tolist(), found.unfinished, found.steps


def _informed(way: Execution) -> Any:
    found = average(
        Adjacent(Setting(TEST, LAW, 0.84)),
        23,
        np.linspace(0, 1, 7),
        sampling=Sampling(seed=3, max_steps=10**5, execution=way),
    )
    return found.reveal_1, found.reveal_0, found.total_variation, found.profile.delta_1_over_0.tolist(), found.steps


def _audit(way: Execution) -> Any:
    found = audit(
        Setting(PAPER, LONG, 0.84), 0.05, Expected(pairs=60, draws=150, bin_width=140), sampling=Sampling(execution=way)
    )
    columns = [
        getattr(found.histogram, name).tolist() for name in ("lo", "p1", "p0", "log_ratio_low", "log_ratio_high")
    ]
    assert found.given_pairs is not None
    return columns, found.verdict, found.given_pairs.as_dict(), found.steps, found.gap


def _black_box(method: str) -> Callable[[Execution], Any]:
    def run(way: Execution) -> Any:
        options: dict[str, Any] = {"method": method, "sampling": Sampling(execution=way)}
        found = audit_mechanism(sampler, 0.5, runs=900, confidence=0.999, **options)  # type: ignore[arg-type]
        return found.as_dict() | {"seconds": 0}, found.histogram.runs_1.tolist()

    return run


WORK: dict[str, Callable[[Execution], Any]] = {
    "simulate": lambda way: (
        simulate(Setting(TEST, LAW, 0.84), 900, sampling=Sampling(seed=3, max_steps=300, execution=way)).tally
    ),
    "marginal": lambda way: _tables(
        count_runs(
            Adjacent(Setting(TEST, LAW, 0.84), (1, 4)), 900, sampling=Sampling(seed=3, max_steps=10**6, execution=way)
        )
    ),
    "anytime": _bets,
    "pairs": _pairs,
    "gap": lambda way: support_gap_evidence(
        Adjacent(Setting(TEST, LAW, 0.84)),
        240,
        confidence=0.99,
        sampling=Sampling(seed=1, max_steps=10**5, execution=way),
    ),
    "informed": _informed,
    "audit": _audit,
    "split": _black_box("split"),
    "bets on a sampler": _black_box("anytime"),
    "model": lambda way: simulate_model(TEST, LAW, Bernoulli(0.84), 30, Sampling(execution=way)).simulation.tally,
}


class Serial(dict[str, str]):
    """The results without a backend, each computed when it is first asked for."""

    def __missing__(self, name: str) -> str:
        self[name] = str(WORK[name](Execution()))
        return self[name]


EXPECTED = Serial()


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("way", [Execution(block_size=37), Execution("threads", 3, block_size=11)], ids=str)
def test_threads_and_blocks_change_nothing(name: str, way: Execution) -> None:
    assert str(WORK[name](way)) == EXPECTED[name]


def test_processes_change_nothing() -> None:
    way = Execution("processes", 2, block_size=100)
    assert {name: str(work(way)) for name, work in WORK.items()} == {name: EXPECTED[name] for name in WORK}


@pytest.mark.filterwarnings("default")
def test_a_cluster_changes_nothing_even_if_a_worker_is_killed() -> None:
    """One worker, and two of which one is killed after the first blocks of each task."""
    names = ("simulate", "pairs", "audit", "anytime")
    with Execution("dask", 1, block_size=300).connected() as one:
        assert {name: str(WORK[name](one)) for name in names} == {name: EXPECTED[name] for name in names}
    killed: list[int] = []

    def kill(done: int) -> None:
        if not killed:
            pids = two.client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    with Execution("dask", 2, block_size=90).connected() as two:
        assert str(WORK["simulate"](replace(two, progress=kill))) == EXPECTED["simulate"]
        assert len(killed) == 1
        assert str(WORK["pairs"](two)) == EXPECTED["pairs"]


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_a_task_started_itself_is_gone_after_it() -> None:
    from distributed import Client

    assert list(Execution("dask", 1).map(_sum, [(0, 3), (3, 2)])) == [3, 7]
    with pytest.raises(ValueError, match="No client"):
        Client.current()  # type: ignore[no-untyped-call]


# --- interruptions --------------------------------------------------------------------------------------------------


def interrupted_after(blocks: int, checkpoint: Checkpoint, size: int | None) -> Execution:
    """KeyboardInterrupt after so many blocks."""
    seen = [0]

    def tell(done: int) -> None:
        seen[0] += 1
        if seen[0] >= blocks:
            raise KeyboardInterrupt

    return Execution(block_size=size, progress=tell, checkpoint=checkpoint)


@given(st.data())
@settings(max_examples=60)
def test_an_interrupted_task_goes_on_to_the_same_result(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Interrupted up to three times, each time cut into other blocks."""
    name = data.draw(st.sampled_from(sorted(WORK)))
    folder = tmp_path_factory.mktemp("checkpoint")
    sizes, stopped = st.integers(5, 80), False
    for _ in range(data.draw(st.integers(1, 3))):
        checkpoint = Checkpoint(folder, "key", every=data.draw(st.sampled_from([0.0, math.inf])))
        way = interrupted_after(data.draw(st.integers(1, 6)), checkpoint, data.draw(sizes))
        try:
            assert str(WORK[name](way)) == EXPECTED[name]
        except KeyboardInterrupt:
            stopped = True
            assert checkpoint.kept
    last = Checkpoint(folder, "key")
    assert str(WORK[name](Execution(block_size=data.draw(sizes), checkpoint=last))) == EXPECTED[name]
    assert bool(last.kept) or not stopped


@pytest.mark.parametrize("blocks", [1, 7, 12, 25])
def test_batches_of_draws_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, blocks: int) -> None:
    """150 draws of L in batches of 64: another bootstrap than in one batch, the same after an interruption."""
    monkeypatch.setattr(expected, "BATCH", 64)
    whole = str(_audit(Execution()))
    with pytest.raises(KeyboardInterrupt):
        _audit(interrupted_after(blocks, Checkpoint(tmp_path, "key"), 7))
    again = Checkpoint(tmp_path, "key")
    assert str(_audit(Execution(checkpoint=again))) == whole
    assert again.kept


def test_in_batches_all_but_the_bootstrap_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    one = audit(Setting(PAPER, LONG, 0.84), 0.05, Expected(pairs=60, draws=150, bin_width=140))
    monkeypatch.setattr(expected, "BATCH", 64)
    three = audit(Setting(PAPER, LONG, 0.84), 0.05, Expected(pairs=60, draws=150, bin_width=140))
    for name in ("lo", "hi", "p1", "p0", "log_ratio", "outside"):
        assert getattr(one.histogram, name).tolist() == getattr(three.histogram, name).tolist()
    assert (one.verdict, one.gap, one.by_chance) == (three.verdict, three.gap, three.by_chance)


def stuck(x: int, runs: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A sampler with a seed of its own."""
    own = np.random.default_rng([runs, x])
    return own.integers(0, 99, runs), own.integers(0, 2, runs)


def test_a_sampler_that_repeats_itself_is_noticed_after_an_interruption_too(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        audit_mechanism(
            stuck, 1.0, runs=250, sampling=Sampling(execution=interrupted_after(1, Checkpoint(tmp_path, "key"), None))
        )
    with pytest.raises(ParameterError, match="same runs again"):
        audit_mechanism(
            stuck, 1.0, runs=250, sampling=Sampling(execution=Execution(checkpoint=Checkpoint(tmp_path, "key")))
        )


def test_times_of_earlier_attempts_count(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path, "key")
    first.spent = 1000.0
    first.save("runs", 0, Sum())
    way = Execution(checkpoint=Checkpoint(tmp_path, "key"))
    accumulate(_sum, lambda done: cut(100, 5, done), Sum(), way, "runs")
    assert way.spent >= 1000.0


def test_a_checkpoint_that_cannot_be_written_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    total = Sum()
    way = Execution(checkpoint=Checkpoint(tmp_path / "nowhere", "key", every=0.0))
    accumulate(_sum, lambda done: cut(100, 5, done), total, way, "runs")
    assert total.total == sum(range(100))
    assert capsys.readouterr().err.count("no more checkpoints") == 1


class Sum:
    """The least that can be accumulated."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, result: int) -> bool:
        self.total += result
        return self.total >= 10**6

    def saved(self) -> dict[str, Any]:
        return {"total": self.total}

    def restore(self, saved: dict[str, Any]) -> None:
        self.total = int(saved["total"])


def _sum(first: int, count: int) -> int:
    return sum(range(first, first + count))


def damaged(content: bytes) -> Iterator[bytes]:
    yield b""
    yield b"not a checkpoint"
    yield content[: len(content) // 2]
    yield content[:-30]
    yield content.replace(b"total", b"totil")


def test_a_damaged_or_foreign_checkpoint_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = Sum()
    one.total = 77
    Checkpoint(tmp_path, "a").save("runs", 10, one)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for content in damaged(whole):
        path.write_bytes(content)
        other = Sum()
        with caplog.at_level(logging.WARNING):
            assert Checkpoint(tmp_path, "a").restore("runs", other) == 0
        assert other.total == 0
        assert "begins anew" in caplog.text
        caplog.clear()
    path.write_bytes(whole)
    assert Checkpoint(tmp_path, "b").restore("runs", Sum()) == 0
    assert Checkpoint(tmp_path, "a").restore("runs", other) == 10
    assert other.total == 77


def test_a_block_that_is_being_added_is_no_part_of_the_checkpoint(tmp_path: Path) -> None:
    class Fragile(Sum):
        def add(self, result: int) -> bool:
            super().add(result)
            if self.total > 50:
                raise KeyboardInterrupt
            return False

    checkpoint = Checkpoint(tmp_path, "key", every=0.0)
    with pytest.raises(KeyboardInterrupt):
        accumulate(_sum, lambda done: cut(100, 5, done), Fragile(), Execution(checkpoint=checkpoint), "runs")
    again = Sum()
    accumulate(_sum, lambda done: cut(100, 7, done), again, Execution(checkpoint=checkpoint), "runs")
    assert again.total == sum(range(100))


def test_no_more_blocks_are_under_way_than_may_be() -> None:
    """A slow reader does not make results pile up."""
    handed: list[int] = []

    def blocks() -> Iterator[tuple[int, int]]:
        for first in range(0, 10_000, 10):
            handed.append(first)
            yield first, 10

    results = Execution("threads", 2).map(_sum, blocks())
    for k, total in enumerate(results):
        assert total == _sum(10 * k, 10)
        assert len(handed) <= k + 1 + 2 * AHEAD
    assert len(handed) == 1000


def test_what_stops_early_computes_little_more() -> None:
    computed: list[int] = []

    def work(first: int, count: int) -> int:
        computed.append(first)
        return _sum(first, count)

    accumulate(work, lambda done: cut(10**9, 10**4, done), Sum(), Execution("threads", 2), "runs", ahead=2)
    assert len(computed) <= 4


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"backend": "gpu"}, "one of serial, threads"),
        ({"workers": 0}, "workers"),
        ({"workers": 10**6}, "workers"),
        ({"block_size": 0}, "block_size"),
        ({"address": "tcp://127.0.0.1:1"}, "backend=dask"),
    ],
)
def test_impossible_requests_are_named(change: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        Execution(**change)


@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_does_not_answer_is_named() -> None:
    way = Execution("dask", 1, address="tcp://127.0.0.1:1")
    with pytest.raises(ParameterError, match="no dask scheduler answers"):
        list(way.map(_sum, [(0, 1), (1, 1)]))


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_errors_of_a_block_come_through(backend: Backend) -> None:
    def broken(first: int, count: int) -> int:
        if first == 20:
            raise ParameterError("block 20")
        return first

    with pytest.raises(ParameterError, match="block 20"):
        list(Execution(backend, 2).map(broken, [(k, 1) for k in range(0, 100, 10)]))


def test_tallies_of_any_size_survive_a_checkpoint(tmp_path: Path) -> None:
    from dpsmc_audit.tasks.simulate import Total

    total = Total()
    total.add(Tally(1, 1, 0, 0, 2**40, 2**100 + 1))
    Checkpoint(tmp_path, "a").save("runs", 1, total)
    again = Total()
    Checkpoint(tmp_path, "a").restore("runs", again)
    assert again.tally == total.tally
