"""A guard against doing more work: random words, walks, samples, cells and transforms are counted, never timed.

Counts are those of the code under test: of plain-Python twins whose results equal the kernels' (a word more or less
would change them), or of wrappers around the functions that do the work. Each may exceed what is known by 2 % at most;
a count that falls much below is good news, and asks for a new number here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dpsmc_audit.exact import averages, both_bounds, laws, passage, renewal
from dpsmc_audit.exact import fixed as exact
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.mechanisms import Exponential, NoNoise
from dpsmc_audit.numerics import sums
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.expected.audit import Expected
from dpsmc_audit.observers.informed.average import draw_pair
from dpsmc_audit.observers.marginal import law as marginal
from dpsmc_audit.observers.marginal.audit import Marginal
from dpsmc_audit.sampling import kernels, pairs
from dpsmc_audit.sampling.jump_tables import JUMP_SIZES, jump_tables
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import Kernel, draw_block, draw_runs
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from tests.support import twins

P_PHI, EPSILON = 0.84, 0.01
TEST = Sprt(0.73, 0.01, 0.01)
LAW = Exponential.private(TEST, EPSILON)


REMEMBERED: list[Any] = [
    *(exact._free_exit_law, laws._exact_law, renewal.renewal, marginal.marginal_law),
    *(averages.exact_mean, averages._rare, both_bounds._ladder, both_bounds._law),
]
"""What earlier tests may have computed already."""


def check(count: float, known: float) -> None:
    assert 0.9 * known <= count <= 1.02 * known, f"{count} where {known} is known"


class Counted(Iterator[int]):
    """A stream of words that knows how many were taken."""

    def __init__(self, words: Iterator[int]) -> None:
        self.words, self.taken = words, 0

    def __next__(self) -> int:
        self.taken += 1
        return next(self.words)


def words_of(kernel: Kernel, runs: int, sizes: int = JUMP_SIZES) -> tuple[int, list[tuple[int, int]]]:
    """Words that so many runs take, L included, and their outcomes."""
    cut, alias, _ = jump_tables(P_PHI)
    tables, taken, outcomes = (cut.tolist(), alias.tolist()), 0, []
    for path in range(runs):
        stream = Counted(twins.words(1, path))
        excess = float(LAW.quantile((next(stream) >> 11) / 2**53))
        if kernel == "jumps":
            outcomes.append(twins.jump_walk(TEST, excess, stream, tables, 10**7, sizes))
        else:
            outcomes.append(twins.walk(TEST, excess, twins.samples(stream, P_PHI), 10**7))
        taken += stream.taken
    return taken, outcomes


@pytest.mark.parametrize(("kernel", "runs", "known"), [("jumps", 500, 17.98), ("steps", 20, 185.7)])
def test_random_words_per_run(kernel: Kernel, runs: int, known: float) -> None:
    taken, outcomes = words_of(kernel, runs)
    drawn = draw_runs(Setting(TEST, LAW, P_PHI), runs, kernel=kernel, sampling=Sampling(seed=1))
    assert outcomes == list(zip(drawn.tau.tolist(), drawn.decision.tolist(), strict=True))
    check(taken / runs, known)


def test_the_guard_sees_a_twentieth_more() -> None:
    """Jumps of at most 128 samples instead of 512 take more words, and the check fails."""
    taken, _ = words_of("jumps", 200, JUMP_SIZES - 2)
    few, _ = words_of("jumps", 200)
    assert taken > 1.05 * few
    with pytest.raises(AssertionError, match="is known"):
        check(taken, few)


@pytest.mark.parametrize(("entries", "known"), [((1,), 6424.6), ((400,), 6424.0)])
def test_samples_per_pair(entries: tuple[int, ...], known: float) -> None:
    """Both members and every L in one pass: as many samples as the largest L takes, and not once more."""
    excess = pairs.draw_excess(LAW, 1000, 1)
    found = pairs.pair_sums(
        Adjacent(Setting(TEST, NoNoise(), P_PHI), entries), excess, 100, sampling=Sampling(seed=1, max_steps=10**7)
    )
    check(found.steps / 100, known)


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Cells that dynamic programmes visit, and programmes: the kernel is called sample by sample."""
    seen, kernel, begun = {"cells": 0, "programmes": 0}, exact._advance, exact._begun

    def advance(
        mass: Any, other: Any, low: int, high: int, base: int, steps: int, *rest: Any
    ) -> tuple[int, int, float, int]:
        numbers, exits = rest[:-4], rest[-4:]
        lost, taken = 0.0, 0
        while taken < exits[0].size and high > low:
            seen["cells"] += high - low + 1
            here = [each[taken : taken + 1] for each in exits]
            low, high, dropped, _ = kernel(mass, other, low, high, base, steps + taken, *numbers, *here)
            mass, other = other, mass
            lost, taken = lost + dropped, taken + 1
        return low, high, lost, taken

    def begin(*arguments: Any) -> Any:
        seen["programmes"] += 1
        return begun(*arguments)

    monkeypatch.setattr(exact, "_advance", advance)
    monkeypatch.setattr(exact, "_begun", begin)
    for known in REMEMBERED:
        known.cache_clear()
    return seen


LAWS: dict[str, tuple[Callable[[], Any], int, int]] = {
    "fixed bounds": (lambda: exact.exit_law(TEST, P_PHI), 109_538, 1),
    "renewal": (lambda: exact_law(Setting(TEST, LAW, P_PHI)), 133_515, 2),
    "marginal": (lambda: marginal.marginal_law(Adjacent(Setting(TEST, LAW, P_PHI))), 353_341, 4),
}


@pytest.mark.parametrize("name", LAWS)
def test_cells_per_exact_law(cells: dict[str, int], name: str) -> None:
    work, known, programmes = LAWS[name]
    work()
    assert cells["programmes"] == programmes
    check(cells["cells"], known)


def _recorded(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    """Products of direct convolutions, and lengths of those by the fast Fourier transform."""
    import scipy.signal

    direct: list[int] = []
    fast: list[int] = []
    convolve, transform = sums.convolution, scipy.signal.fftconvolve

    def plain(a: Any, b: Any) -> Any:
        direct.append(a.size * b.size)
        return convolve(a, b)

    def transformed(a: Any, b: Any) -> Any:
        fast.append(a.size + b.size - 1)
        return transform(a, b)

    monkeypatch.setattr(passage, "convolution", plain)
    monkeypatch.setattr(scipy.signal, "fftconvolve", transformed)
    return direct, fast


def test_transforms_per_exact_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """One direct convolution at the paper's epsilon; for long laws Newton's few transforms, ten lengths in all."""
    direct, fast = _recorded(monkeypatch)
    laws._exact_law.cache_clear()
    size = exact_law(Setting(TEST, LAW, P_PHI)).null.size
    assert (len(direct), fast) == (1, [])
    check(direct[0] / size, 523.0)
    laws._exact_law.cache_clear()
    monkeypatch.setattr(renewal, "_DIRECT", 0.0)  # as if the law were long
    monkeypatch.setattr(passage, "_FFT", 1e6)
    assert exact_law(Setting(TEST, LAW, P_PHI)).null.size == size
    assert len(fast) == 12
    check(sum(fast) / size, 9.462)


def test_work_of_a_marginal_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many walks as were asked for, both members; two exact laws; every sequence once."""
    walks, sequences, draw, pair = [], [], draw_block, draw_pair

    def drawn(*arguments: Any, **options: Any) -> Any:
        walks.append(arguments[2])
        return draw(*arguments, **options)

    def paired(*arguments: Any, **options: Any) -> Any:
        sequences.append(arguments[1])
        return pair(*arguments, **options)

    monkeypatch.setattr(marginal, "draw_block", drawn)
    monkeypatch.setattr(marginal, "draw_pair", paired)
    for known in REMEMBERED:
        known.cache_clear()
    audit(Setting(TEST, LAW, P_PHI), EPSILON, Marginal(runs=3000, pairs=10))
    assert sum(walks) == 2 * 3000
    assert sequences == list(range(10))
    assert laws._exact_law.cache_info().misses == 2


def test_work_of_an_expected_audit(monkeypatch: pytest.MonkeyPatch, cells: dict[str, int]) -> None:
    """Every pair is passed once for all L, and once for the verdict; exact laws stay as few as they are."""
    passed, judged, kernel, times = [], [], kernels._pairs, kernels._pair_times

    def one_pass(*arguments: Any) -> Any:
        passed.append(arguments[2])
        return kernel(*arguments)

    def one_verdict(*arguments: Any) -> Any:
        judged.append(arguments[-1].shape[0])
        return times(*arguments)

    monkeypatch.setattr(kernels, "_pairs", one_pass)
    monkeypatch.setattr(kernels, "_pair_times", one_verdict)
    found = audit(Setting(TEST, LAW, P_PHI), EPSILON, Expected(pairs=300, draws=2000))
    assert (sum(passed), sum(judged)) == (300, 300)
    check(found.steps / 300, 11_477.5)
    assert cells["programmes"] == 30
    check(cells["cells"], 5_899_304)
