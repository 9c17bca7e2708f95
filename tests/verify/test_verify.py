"""task=verify: the law of what is released, and that nothing else leaves.

Secrets are injected: a test knows the entropy, L, the samples and all that follows from them, and looks for it in
every file and stream of the run. Statistical tests raise a false alarm once in a million.
"""

from __future__ import annotations

import math
import os
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import chi2

from dpsmc_audit.exact.averages import exact_mean
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
from dpsmc_audit.models.keys import ModelKeys, source_of
from dpsmc_audit.models.recorded import Recorded
from dpsmc_audit.models.sources import BATCH, Batch, Bernoulli, SourceError
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.informed.law import given_sequence
from dpsmc_audit.observers.marginal.law import marginal_law
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.stl import parse
from dpsmc_audit.verify import noise, release, statement
from dpsmc_audit.verify import run as once
from dpsmc_audit.verify.boundary import KEPT_BACK, Allowed, VerificationError, sealed
from dpsmc_audit.verify.constant_data import constant_data_deltas
from dpsmc_audit.verify.entropy import SeededEntropy, SystemEntropy
from dpsmc_audit.verify.noise import Grid, coin, draw_excess, geometric, two_sided
from dpsmc_audit.verify.order import ordered
from dpsmc_audit.verify.places import is_public
from dpsmc_audit.verify.release import Samples
from dpsmc_audit.verify.run import Outcome, run_once
from dpsmc_audit.verify.statement import expected_cost, privacy_statement, probabilities
from tests.runs.test_faults import start, wait_for
from tests.support.command import Run, result_in, runner
from tests.support.statistics import chi_square
from tests.support.strategies import sprts

TEST = Sprt(0.73, 0.05, 0.05)
QUICK = ("epsilon=0.2", "delta=0.05", "alpha=0.05")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    return runner(monkeypatch, capsys, tmp_path)


# --- exact noise ----------------------------------------------------------------------------------------------------


def goodness(draws: list[int], pmf: dict[int, float]) -> float:
    """p-value of draws against probabilities; what is not listed is one cell."""
    cells = [(sum(draw == x for draw in draws), len(draws) * p) for x, p in pmf.items()]
    rest = len(draws) - sum(seen for seen, _ in cells)
    cells.append((rest, len(draws) * (1.0 - sum(pmf.values()))))
    return float(chi2.sf(sum((seen - due) ** 2 / due for seen, due in cells), len(cells) - 1))


@pytest.mark.parametrize("width", [1, 256], ids=["digit by digit", ""])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5, 2), Fraction(7)])
def test_samplers_follow_their_laws(monkeypatch: pytest.MonkeyPatch, scale: Fraction, width: int) -> None:
    """Also where one random bit seldom decides a coin, so that more are drawn."""
    monkeypatch.setattr(noise, "WIDTH", width)
    entropy, q = SeededEntropy(11), math.exp(-1 / scale)
    one = [geometric(scale, entropy) for _ in range(1000)]
    assert goodness(one, {x: (1 - q) * q**x for x in range(4)}) > 1e-6
    two = [two_sided(scale, None, entropy) for _ in range(1000)]
    assert goodness(two, {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-3, 4)}) > 1e-6
    for lowest in (0, -1, -3):
        drawn = [two_sided(scale, lowest, entropy) for _ in range(1000)]
        mass = {x: q ** abs(x) for x in range(lowest, 60)}
        assert goodness(drawn, {x: mass[x] / sum(mass.values()) for x in range(lowest, 4)}) > 1e-6


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 5), Fraction(1), Fraction(17, 5)])
def test_a_coin_with_an_exponential_probability(exponent: Fraction) -> None:
    entropy, p = SeededEntropy(12), math.exp(-exponent)
    heads = sum(coin(lambda context: noise._exp(exponent, context.prec), entropy) for _ in range(5000))
    assert abs(heads - 5000 * p) <= 5 * (5000 * p * (1 - p)) ** 0.5


def test_a_coin_that_is_close_asks_for_more_digits() -> None:
    """p = 1/2: the first draw is the middle one and decides nothing; the next one does."""

    class Given:
        def __init__(self, *values: int) -> None:
            self.values = list(values)

        def below(self, n: int) -> int:
            return self.values.pop(0)

    for last, heads in ((0, True), (2**noise.WIDTH - 1, False)):
        given_values = Given(2 ** (noise.WIDTH - 1) - 1 + (not heads), last)
        assert coin(lambda context: context.divide(Decimal(1), Decimal(2)), given_values) == heads
        assert not given_values.values


class Counted:
    """Entropy that notes what it is asked for."""

    def __init__(self, seed: int) -> None:
        self.known, self.asked = SeededEntropy(seed), list[int]()

    def below(self, n: int) -> int:
        self.asked.append(n)
        return self.known.below(n)


LARGE_AND_SMALL = [
    Exponential.private(TEST, 0.3),
    Laplace(1.0, 2.0),
    Truncated(1.0, 2.0, -2.0),
    Truncated(-4.0, 2.0, -2.0),
]


@pytest.mark.parametrize("mechanism", LARGE_AND_SMALL, ids=lambda law: law.name)
def test_the_work_of_a_draw_does_not_depend_on_what_is_drawn(mechanism: Mechanism) -> None:
    asked, sizes = [], []
    for seed in range(60):
        entropy = Counted(seed)
        sizes.append(abs(draw_excess(TEST, mechanism, Grid.of(TEST), entropy)))
        asked.append(entropy.asked)
    assert max(sizes) > 10 * min(sizes)
    assert all(each == asked[0] for each in asked)


@pytest.mark.parametrize("spent", [0.0, 0.03])
def test_what_others_draw_takes_a_fixed_time(monkeypatch: pytest.MonkeyPatch, spent: float) -> None:
    """By a clock of our own: OpenDP and scipy draw for a time that may tell L, and the rest is waited out."""
    now = [0.0]
    laws: list[tuple[Mechanism, bool]] = [(Exponential.private(TEST, 0.3), True), (Law.of("gamma", a=2.0), False)]

    def passes(seconds: float, drawn: int = 7) -> int:
        now[0] += seconds
        return drawn

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", passes)
    monkeypatch.setattr(noise, "_opendp_laplace", lambda scale: lambda: passes(spent))
    monkeypatch.setattr(Law, "quantile", lambda law, u: float(passes(spent)))
    for law, opendp in laws:
        now[0] = 0.0
        draw_excess(TEST, law, Grid.of(TEST), SeededEntropy(1), opendp=opendp)
        assert now[0] == noise.FIXED_TIME


def unreadable(number: int) -> Batch:
    raise SourceError(f"line {number}")


def test_a_coin_instead_of_a_walk_reads_its_samples_too() -> None:
    """L so small that a coin decides. Whether the samples are read, and can be, must not tell that."""

    class Unreadable:
        name, repeatable = "unreadable", False

        def batches(self, seed: int) -> Iterator[Batch]:
            return map(unreadable, range(3))

    with pytest.raises(SourceError):
        run_once(TEST, Laplace(-1e9, 1.0), Unreadable(), 10**6, SeededEntropy(1))  # type: ignore[arg-type]
    found = run_once(TEST, Laplace(-1e9, 1.0), Bernoulli(1.0), 10**6, SeededEntropy(1))
    assert found.tau == 1


def test_opendp_draws_the_same_law() -> None:
    scale, q = Fraction(5, 2), math.exp(-0.4)
    draw = noise._opendp_laplace(scale)
    draws = [draw() for _ in range(1500)]
    assert goodness(draws, {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-3, 4)}) > 1e-6


def test_opendp_is_used_where_it_is_installed_and_wide_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    law, grid = Exponential.private(TEST, 0.1), Grid.of(TEST)
    assert noise.opendp_version(TEST, law, grid) is not None
    for mechanism in (NoNoise(), Law.of("gamma", a=2.0), Exponential.private(TEST, 1e-6)):
        assert noise.opendp_version(TEST, mechanism, grid) is None
    monkeypatch.setattr("importlib.metadata.distribution", _missing)
    assert noise.opendp_version(TEST, law, grid) is None


def _missing(name: str) -> None:
    from importlib.metadata import PackageNotFoundError

    raise PackageNotFoundError(name)


@given(test=sprts())
def test_a_changed_sample_is_a_whole_number_of_units(test: Sprt) -> None:
    grid = Grid.of(test)
    assert grid.up + grid.down == 2**grid.bits
    assert BATCH * 2**grid.bits < 2**62  # a batch stays within 64-bit integers
    assert abs(grid.up * grid.unit - test.s_plus) <= 0.51 * grid.unit
    assert abs(grid.b_up * grid.unit - test.b_up) <= 0.51 * grid.unit + 1e-12


def test_long_runs_are_those_of_the_real_test() -> None:
    """Tiny steps and 2.5 million samples: a grid that got coarser with max_steps was off by a third."""
    test = Sprt(1e-6, 9e-7, 0.01)
    exact = math.ceil(test.b_low / test.s_minus)
    found = run_once(test, NoNoise(), Bernoulli(0.0), 2**40, SeededEntropy(1))
    assert found.decision == "H_alt"
    assert found.tau == pytest.approx(exact, rel=1e-5)


def test_epsilon_is_the_decimal_number_that_was_meant() -> None:
    grid = Grid.of(TEST)
    assert grid.scale(TEST, 1.0 / Exponential.private(TEST, 0.01).rate) == 100 * 2**grid.bits


MECHANISMS: list[Mechanism] = [
    NoNoise(),
    Exponential.private(TEST, 0.3),
    Laplace(1.0, 2.0),
    Truncated(1.0, 2.0, -2.0),
    Truncated(-4.0, 2.0, -2.0),
    Law.of("gamma", a=2.0, scale=1.5),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda law: law.name)
def test_a_release_follows_the_exact_law(monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism) -> None:
    monkeypatch.setattr(noise, "FIXED_TIME", 0.0)
    entropy, source = SeededEntropy(5), Bernoulli(0.8)
    found = [run_once(TEST, mechanism, source, 10**6, entropy) for _ in range(1500)]
    tau = np.array([outcome.tau for outcome in found])
    decision = np.array([outcome.decision == "H_null" for outcome in found]).astype(int)
    law = exact_law(Setting(TEST, mechanism, 0.8))
    assert chi_square(tau, decision, law.null, law.alt) > 1e-6


def test_a_law_that_is_off_would_be_noticed() -> None:
    entropy, mechanism = SeededEntropy(5), Exponential.private(TEST, 0.3)
    found = [run_once(TEST, mechanism, Bernoulli(0.8), 10**6, entropy) for _ in range(1500)]
    law = exact_law(Setting(TEST, Exponential.private(TEST, 0.2), 0.8))
    tau, decision = (np.array(column) for column in zip(*found, strict=True))
    assert chi_square(tau, (decision == "H_null").astype(int), law.null, law.alt) < 1e-6


# --- the boundary ---------------------------------------------------------------------------------------------------


def numbers_in(text: str) -> set[float]:
    return {float(token) for token in re.findall(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)}


@dataclass
class Spy:
    """What a run must not tell: the same run again in this process, with the entropy that the child was given."""

    entropy: list[int] = field(default_factory=list)
    excess: list[int] = field(default_factory=list)
    bits: list[bool] = field(default_factory=list)
    outcome: Outcome | None = None

    @classmethod
    def of(cls, monkeypatch: pytest.MonkeyPatch, seed: int, source: Any) -> Spy:
        found, known = cls(), SeededEntropy(seed)

        class Noted:
            def __init__(self, samples: Any) -> None:
                self.samples = samples

            def below(self, n: int) -> int:
                found.entropy.append(known.below(n))
                return found.entropy[-1]

            def batches(self, seed: int) -> Iterator[Batch]:
                for batch in self.samples.batches(seed):
                    found.bits += batch.bits.tolist()
                    yield batch

        def excess(*arguments: Any, **options: Any) -> int:
            found.excess.append(draw_excess(*arguments, **options))
            return found.excess[-1]

        with monkeypatch.context() as patched, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patched.setattr(once, "draw_excess", excess)
            order = None if source.repeatable else "random"
            noted = Noted(ordered(source, order, Noted(None)))
            found.outcome = run_once(TEST, Exponential.private(TEST, 0.2), noted, 10**7, noted)  # type: ignore[arg-type]
        return found

    def numbers(self, tau: int, test: Sprt, max_steps: int) -> dict[str, float]:
        """L, K, the walk and the bounds, in units and as they are, and all seeds."""
        (excess,), grid = self.excess, Grid.of(test)
        ones = sum(self.bits[:tau])
        walk = ones * grid.up - (tau - ones) * grid.down
        units = {"L": excess, "B + L": grid.b_up + excess, "Lambda": walk, "over": abs(walk) - grid.b_up - excess}
        plain = {f"{name}, plain": value * grid.unit for name, value in units.items()}
        drawn = {f"draw {k}": float(value) for k, value in enumerate(self.entropy) if value > 10**6}
        return units | plain | drawn | {"K": ones, "N - K": tau - ones, "read": len(self.bits), "share": ones / tau}


OWN = """
import logging, sys, warnings
def draw(rng, n):
    bits = rng.random(n) < 0.97
    print("bits", bits.tolist())
    print("bits", bits.tolist(), file=sys.stderr)
    logging.getLogger("own").critical("bits %s", bits.tolist())
    warnings.warn(f"bits {bits.tolist()}")
    return bits
"""


def everything(folder: Path, *streams: str) -> str:
    """All that a run left: names and contents of files, and its streams."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return "\n".join([*(f"{path.name}\n{path.read_bytes().decode('latin-1')}" for path in paths), *streams])


MODELS = {
    "bernoulli": ("p_phi=0.97",),
    "powertrain": ("model=powertrain", "model.step=0.005", "model.setting=as_written"),
    "recorded": ("model=recorded", "model.path=../data.csv"),
    "python": ("model=python", "model.target=own_model:draw"),
}


def source_again(model: str, folder: Path) -> Any:
    """The source that the command makes of `MODELS`."""
    keys: dict[str, dict[str, Any]] = {
        "bernoulli": {},
        "powertrain": {"step": 0.005, "setting": "as_written"},
        "recorded": {"path": f"{folder / 'data.csv'}"},
        "python": {"target": "own_model:draw"},
    }
    return source_of(ModelKeys(model, **keys[model]), None, 0.97)


def prepared(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    rng = np.random.default_rng(3)
    (folder / "data.csv").write_text("".join(f"{bit:d}\n" for bit in rng.random(20_000) < 0.9))
    (folder / "modules").mkdir()
    (folder / "modules" / "own_model.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(folder / "modules"))
    sys.modules.pop("own_model", None)
    (folder / "work").mkdir()


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("options", [(), ("hydra.output_subdir=.hydra", "hydra.verbose=true")], ids=["", "verbose"])
def test_nothing_private_is_left_anywhere(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    model: str,
    options: tuple[str, ...],
) -> None:
    prepared(monkeypatch, tmp_path)
    run = runner(monkeypatch, capsys, tmp_path / "work")
    monkeypatch.setattr(release, "opendp_version", lambda *_: None)
    public: set[float] = set()
    for seed in (2024, 2025):  # what a run with other secrets says too is public
        monkeypatch.setattr(release, "SystemEntropy", partial(SeededEntropy, seed))
        shutil.rmtree(tmp_path / "work" / "r", ignore_errors=True)
        code, out, err = run("task=verify", *QUICK, *MODELS[model], *options, "hydra.run.dir=r")
        assert (code, err) == (0, "")
        left = everything(tmp_path / "work", out)
        tau = result_in(tmp_path / "work")["tau"]
        there, public = numbers_in(left) - {float(tau)} - public, numbers_in(left) - {float(tau)}
    spy = Spy.of(monkeypatch, 2025, source_again(model, tmp_path))
    assert spy.outcome == Outcome(tau, "H_null")
    for name, value in spy.numbers(tau, TEST, 10**7).items():
        near = {number for number in there if abs(number - abs(value)) <= 1e-5 * abs(value)}
        assert not near, (name, near)
        assert value != int(value) or abs(value) < 10**6 or f"{int(value):x}" not in left.lower()
    told = "".join(f"{bit:d}" for bit in spy.bits[:24])
    for form in (told, ",".join(told), ", ".join(told), " ".join(told), f"{spy.bits[:12]}"[1:-1]):
        assert form not in left
    assert "bits" not in left.replace("2^", "")


@pytest.mark.parametrize("model", ["bernoulli", "powertrain", "python", "recorded"])
def test_what_is_left_is_a_function_of_the_outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, model: str
) -> None:
    """Two runs with other samples, seeds and noise leave the same bytes, but for tau."""
    prepared(monkeypatch, tmp_path)
    run, texts = runner(monkeypatch, capsys, tmp_path / "work"), []
    for _ in range(2):
        code, out, err = run("task=verify", *QUICK, *MODELS[model], "hydra.run.dir=r")
        assert code == 0
        tau = result_in(tmp_path / "work")["tau"]
        left = everything(tmp_path / "work", out, err)
        texts.append(left.replace(f'"tau": {tau},', "TAU").replace(f"tau = {tau} samples", "TAU"))
        shutil.rmtree(tmp_path / "work" / "r")
    assert texts[0] == texts[1]
    assert all(text.count("TAU") == 2 for text in texts)


def test_runs_differ(run: Run, tmp_path: Path) -> None:
    taus = []
    for k in range(5):
        assert run("task=verify", *QUICK, f"hydra.run.dir={k}")[0] == 0
        taus.append(result_in(tmp_path / f"{k}")["tau"])
    assert len(set(taus)) > 1  # five equal ones: below one in a million


def test_a_release_holds_what_may_be_released(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1\n" * 1000)
    code, out, _ = run("task=verify", *QUICK, "model=recorded", "model.path=data.csv", "hydra.run.dir=r")
    assert code == 0
    result = result_in(tmp_path)
    assert set(result) == {"schema", "parameters", "decision", "tau", "insecure", "privacy", "noise", "provenance"}
    assert set(result["provenance"]) == {"version", "commit", "code", "python", "numpy", "numba"}
    assert set(result["parameters"]) == {
        "task", "p", "p_phi", "relation", "alpha", "alpha_fp", "alpha_fn", "delta", "epsilon", "max_steps", "mechanism",
        "model", "model_order",
    }  # fmt: skip
    assert "seconds" not in f"{result}"
    assert "data.csv" not in f"{result}"
    assert "is p_phi > 0.73? yes (H_null)" in out
    assert "adds to the loss" in out
    assert out.index("it takes on average") < out.index("is p_phi")


ERRORS = {
    "raise ValueError(f'bits {bits.tolist()}')": KEPT_BACK,
    "sys.exit(int(bits.sum()))": KEPT_BACK,
    "raise KeyError from ValueError(f'bits {bits.tolist()}')": KEPT_BACK,
    "return bits * 0.5": "model.target=own_model:draw: bits must be 0 or 1",
    "return {'x': bits}": "model.target=own_model:draw: returns traces, so a formula is needed",
    "return bits[:3]": "model.target=own_model:draw: expected 256 bits",
}


@pytest.mark.parametrize(("body", "full"), [*zip(ERRORS, "000000", strict=True), *zip(ERRORS, "11", strict=False)])
def test_errors_tell_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, body: str, full: str
) -> None:
    prepared(monkeypatch, tmp_path)
    text = OWN.replace("return bits", f"note = 'secret-{{}}'.format(bits.sum())\n    {body}")
    (tmp_path / "modules" / "own_model.py").write_text(text)
    work = tmp_path / "work"
    run = runner(monkeypatch, capsys, work, full=full)
    arguments = ("task=verify", *QUICK, *MODELS["python"], "hydra.run.dir=r")
    if full == "0":
        code, out, err = run(*arguments)
        assert code == 2
        assert err == f"error: {_said(body)}\n"
        left = everything(work, out, err)
    else:
        with pytest.raises(VerificationError) as caught:
            run(*arguments)
        shown = "".join(traceback.format_exception(caught.value))
        left = everything(work, shown, *capsys.readouterr())
    assert "Traceback" in left  # the log has one, and it ends at the boundary
    for word in ("secret", "True, ", "ValueError", "KeyError", "own_model.py", "During handling", "direct cause"):
        assert word not in left
    assert not list(work.rglob("result.json"))


def _said(body: str) -> str:
    return "model.target=own_model:draw failed" if body.startswith(("raise", "sys.exit")) else ERRORS[body]


def failing(place: str) -> Outcome:
    try:
        raise ValueError("17 ones")
    except ValueError as error:
        raise SourceError(place, ", got 17 ones") from error


def test_no_chain_leads_back_inside() -> None:
    with pytest.raises(VerificationError) as caught:
        sealed(partial(failing, "a.csv, line 3: not CSV"), Allowed(names=("a.csv",), recorded=True))
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    assert f"{caught.value}" == "a.csv, line 3: not CSV"


def ends_at_once() -> Outcome:
    os._exit(0)


def crashes() -> Outcome:
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)
    return Outcome(1, "H_null")


def answers(text: str) -> Outcome:
    """The model finds the pipe and writes to it before the package does."""
    os.write(int(sys.argv[2]), text.encode() + b"\n")
    return Outcome(1, "H_null")


def speaks_instead() -> Outcome:
    raise SourceError("17\nones")


def names_samples() -> Outcome:
    raise SourceError("226 of 256")


def leaves_the_pipe_open() -> Outcome:
    """A grandchild in a session of its own holds the pipe, and the child ends without an answer."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    os._exit(0)


NO_ANSWERS = (
    '{"tau": "17 ones", "decision": "H_null"}',
    '{"tau": 17, "decision": "17 ones"}',
    '{"tau": true, "decision": "H_null"}',
    '{"tau": 17.0, "decision": "H_null"}',
    '{"tau": -17, "decision": "H_null"}',
    '{"tau": 1%s, "decision": "H_null"}' % ("0" * 13),
    '{"tau": 17, "decision": "H_null", "ones": 226}',
    '{"place": "226 of 256"}',
    '{"place": "own:draw, line 226: not CSV"}',
    '{"place": "model.target=own:draw failed: 226"}',
    "[" * 900,
    "x" * 5000,
)
FAILURES = [ends_at_once, crashes, speaks_instead, names_samples, leaves_the_pipe_open]


@pytest.mark.parametrize("run", FAILURES, ids=lambda run: run.__name__)
def test_a_child_without_an_answer_is_a_failure(run: Callable[[], Outcome]) -> None:
    with pytest.raises(VerificationError) as caught:
        sealed(run, Allowed(names=("own:draw",)))
    assert f"{caught.value}" == KEPT_BACK


@pytest.mark.parametrize("text", NO_ANSWERS, ids=lambda text: text[:40])
def test_what_is_no_outcome_is_a_failure(text: str) -> None:
    with pytest.raises(VerificationError) as caught:
        Allowed(max_steps=10**12, names=("own:draw",)).outcome(text.encode())
    assert f"{caught.value}" == KEPT_BACK


def test_an_answer_of_the_model_itself_is_no_more_than_an_answer() -> None:
    """Code that draws the samples can choose tau and the decision anyway."""
    assert sealed(partial(answers, '{"tau": 17, "decision": "H_alt"}')) == Outcome(17, "H_alt")
    with pytest.raises(VerificationError):
        sealed(partial(answers, NO_ANSWERS[-1]))


def limit_of_dumps() -> Outcome:
    return Outcome(max(resource.getrlimit(resource.RLIMIT_CORE)), "H_null")


def test_the_child_dumps_no_core() -> None:
    """A limit of 0 would still hand the dump to a program, where the system collects them; 1 does not."""
    assert sealed(limit_of_dumps).tau <= 1


def patched() -> Outcome:
    """Every module that could write the answer or end the child is the model's."""
    import json

    changed: dict[str, Any] = {"dumps": lambda *_: '{"tau": 1, "decision": "226 of 256"}'}
    for module, name in ((json, "dumps"), (sys, "exit"), (os, "_exit"), (os, "kill"), (signal, "signal")):
        setattr(module, name, changed.get(name, lambda *_: None))
    threading.Thread(target=time.sleep, args=(600,)).start()
    return Outcome(17, "H_alt")


def test_patched_modules_change_no_more_than_the_answer() -> None:
    with pytest.raises(VerificationError) as caught:
        sealed(patched)
    assert f"{caught.value}" == KEPT_BACK


BROKEN = (
    ("", None, ""),
    ("1\n2\n", None, ""),
    ("1,2\n", None, ""),
    ("a,b\n1,0\n", "ok", ""),
    ("ok,ok\n1,0\n", "ok", ""),
    ("ok,b\n1\n", "ok", ""),
    ('ok\n"1" 2\n', "ok", ""),
    ("trace,time,x\n1,0,1\n1,0.1,one\n", None, "x > 0"),
    ("trace,time,x\n1,0,1\n1,0.1,nan\n", None, "x > 0"),
    ("trace,time,x\n1,0,1\n1,0,1\n", None, "x > 0"),
    ("trace,time,x\n1,0,1\n1,0.1,1\n1,0.3,1\n", None, "x > 0"),
    ("trace,time,x\n1,0,1\n1,0.1,1\n", None, "always[0,9] x > 0"),
    ("trace,time,y\n1,0,1\n1,0.1,1\n", None, "x > 0"),
    ("trace,time,x\n1,0,1e308\n1,0.1,-1e308\n", None, "x * x - x * x > 0"),
)
"""Files that cannot be read; the column, and the formula."""


@pytest.mark.parametrize(("text", "column", "formula"), BROKEN, ids=range(len(BROKEN)))
@pytest.mark.parametrize("step", [None, 0.1])
def test_the_place_of_an_error_in_a_file_is_shown(
    tmp_path: Path, text: str, column: str | None, formula: str, step: float | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)

    def read() -> list[Batch]:
        given = parse(formula) if formula else None
        return [*Recorded(f"{path}", column, given, step if formula else None).batches(0)]

    with np.errstate(all="ignore"), pytest.raises(SourceError) as caught:
        read()
    names = (*Samples.of(Bernoulli(0.5)).names, f"{path}", "ok", "x")
    assert is_public(caught.value.place, names, recorded=True), caught.value.place
    assert not is_public(caught.value.place, names, recorded=False)
    assert not is_public(caught.value.place.replace("a.csv", "b.csv"), names, recorded=True)


WRITER = "import sys, time\nwhile True:\n    open(sys.argv[1], 'a').write('x'); time.sleep(0.01)\n"
"""Writes to the file again and again."""


def lingers(path: str) -> Outcome:
    """A thread that is no daemon, a grandchild, one in a session of its own, and one without a parent."""
    subprocess.Popen([sys.executable, "-c", WRITER, f"{path}.child"])
    subprocess.Popen([sys.executable, "-c", WRITER, f"{path}.session"], start_new_session=True)
    if os.fork() == 0:  # its child loses its parent, and is in a session of its own
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", WRITER, f"{path}.orphan"])
        os._exit(0)

    def write() -> None:
        while True:
            Path(f"{path}.thread").write_text("x")
            time.sleep(0.01)

    threading.Thread(target=write).start()
    while not all(Path(f"{path}.{name}").exists() for name in ("child", "session", "orphan", "thread")):
        time.sleep(0.01)
    return Outcome(17, "H_alt")


def test_threads_and_children_end_with_the_answer(tmp_path: Path) -> None:
    assert sealed(partial(lingers, f"{tmp_path / 'left'}")) == Outcome(17, "H_alt")
    files = [*tmp_path.iterdir()]
    assert len(files) == 4
    sizes = [(path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    time.sleep(0.3)  # thirty times what they wait between two writes
    assert [(path.stat().st_size, path.stat().st_mtime_ns) for path in files] == sizes


def test_an_interruption_ends_the_child(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, pathlib, time\n"
        "def draw(rng, n):\n    pathlib.Path('pid').write_text(f'{os.getpid()}')\n    time.sleep(600)\n"
    )
    process = start(
        ["task=verify", *QUICK, "model=python", "model.target=slow:draw", "hydra.run.dir=r"],
        tmp_path,
        env=dict(os.environ) | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"},
    )
    wait_for((tmp_path / "pid").exists, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "\ninterrupted: nothing is released\n")
    assert not list(tmp_path.rglob("result.json"))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_child_ends_with_a_killed_parent(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, time\nfrom dpsmc_audit.verify.boundary import sealed\n"
        f"def run():\n    pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n    time.sleep(600)\n"
        "sealed(run)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    with pytest.raises(ProcessLookupError):  # noqa: PT012
        while time.monotonic() < deadline:
            os.kill(int((tmp_path / "pid").read_text()), 0)
            time.sleep(0.05)


# --- data that end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "options", "tau"), [(20, (), 20), (5000, ("max_steps=30",), 30), (1, ("max_steps=1",), 1)]
)
def test_undecided_is_an_outcome(run: Run, tmp_path: Path, lines: int, options: tuple[str, ...], tau: int) -> None:
    (tmp_path / "data.csv").write_text("1\n0\n" * lines)
    (tmp_path / "data.csv").write_text("".join(f"{k % 2}\n" for k in range(lines)))
    code, out, err = run("task=verify", "epsilon=0.01", "delta=0.01", "model=recorded", "model.path=data.csv", *options)
    assert (code, err) == (3, "")
    result = result_in(tmp_path)
    assert (result["decision"], result["tau"]) == ("undecided", tau)
    assert "undecided" in out
    assert "max_steps" in result["privacy"]["undecided"]


def test_a_mistake_is_met_only_by_a_run_that_reaches_it(run: Run, tmp_path: Path) -> None:
    """Without noise tau is 22 on ones alone; a batch would have read further."""
    for line, code in ((20, 2), (22, 2), (23, 0), (30, 0)):
        (tmp_path / "data.csv").write_text("1\n" * (line - 1) + "private\n" + "1\n" * 50)
        arguments = ("mechanism=none", "model=recorded", "model.path=data.csv", f"hydra.run.dir={line}")
        found, out, err = run("task=verify", *QUICK, *arguments, "model.order=file")
        assert found == code
        assert (f"data.csv, line {line}: outcomes must be 0 or 1\n" in err) == (code == 2)
        assert "private" not in everything(tmp_path / f"{line}", out, err)


# --- seeds and sweeps -----------------------------------------------------------------------------------------------


def test_a_seed_is_refused_unless_the_release_says_so(run: Run, tmp_path: Path) -> None:
    code, out, err = run("task=verify", "seed=5")
    assert (code, out) == (2, "")
    assert "insecure=true" in err
    code, _, err = run("task=verify", "insecure=true")
    assert code == 2
    assert "seed" in err
    taus = []
    for k in range(2):
        code, out, _ = run("task=verify", *QUICK, "seed=71234567", "insecure=true", f"hydra.run.dir={k}")
        result = result_in(tmp_path / f"{k}")
        assert result["insecure"] is True
        assert "seed" in result["privacy"]["protection"]
        assert "can repeat this run" in out
        assert "71234567" not in everything(tmp_path / f"{k}", out)
        taus.append(result["tau"])
    assert taus[0] == taus[1]


def test_without_a_seed_the_configured_one_is_not_used(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(release, "SeededEntropy", None)
    assert run("task=verify", *QUICK)[0] == 0


def test_a_sweep_is_refused(run: Run, tmp_path: Path) -> None:
    code, _, err = run("-m", "task=verify", "epsilon=0.1,0.2", "hydra.sweep.dir=s")
    assert code != 0
    assert err.count("cannot be swept") == 2
    assert not list(tmp_path.rglob("result.json"))


def test_the_operating_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda n: n - 1)
    assert SystemEntropy().below(10) == 9
    law = Exponential.private(TEST, 0.3)
    drawn = {draw_excess(TEST, law, Grid.of(TEST), SeededEntropy(k)) for k in range(20)}
    assert len(drawn) == 20


# --- the statement --------------------------------------------------------------------------------------------------


def test_the_statement_is_the_worst_of_exact_audits() -> None:
    law = Exponential.private(TEST, 0.2)
    said = privacy_statement(TEST, law, 0.2)
    assert said["p_phi_grid"] == list(probabilities(TEST))
    audits = [
        audit(Setting(TEST, law, p_phi), epsilon=0.2, observer="marginal", engine="exact")
        for p_phi in probabilities(TEST)[1:-1]
    ]
    deltas = [found.leakage.profile.at(0.2) for found in audits]
    assert said["delta_at_epsilon"] >= max(deltas) > 0
    assert said["total_variation"] >= max(found.leakage.total_variation for found in audits)
    ends = [marginal_law(Adjacent(Setting(TEST, law, p_phi))).leakage(np.array([0.2]), 0.01) for p_phi in (0.0, 1.0)]
    assert said["delta_at_epsilon"] == max(*deltas, *(end.profile.at(0.2) for end in ends))


def _stops(test: Sprt, law: Mechanism, bits: np.ndarray) -> np.ndarray:
    """P(tau, o) on given samples from the survival function alone; the coin, and what runs on at the end."""
    k, ones = np.arange(1, bits.size + 1), np.cumsum(bits)
    walk = ones * test.s_plus - (k - ones) * test.s_minus
    up, low = walk - test.b_up, -walk - test.b_low
    record = np.maximum(np.maximum.accumulate(np.maximum(up, low)), test.no_room)
    alive = np.concatenate([[float(law.survival(np.array(test.no_room)))], law.survival(record)])
    out = np.zeros((bits.size + 1, 2))
    out[np.arange(bits.size), np.where(up >= low, 0, 1)] = -np.diff(alive)
    out[0] += 0.5 * (1.0 - alive[0])
    out[-1, 0] = alive[-1]
    return out.ravel()


@pytest.mark.parametrize("name", ["exponential", "laplace", "truncated"])
def test_no_sample_of_uniform_data_leaks_more_than_is_stated(name: str) -> None:
    """Data of ones, and of zeros, with any one of the first 80 samples changed: delta and total variation, by hand.

    For two-sided noise a later sample is worse than the first, by a factor of two and more.
    """
    kinds: dict[str, Mechanism] = {
        "exponential": Exponential.private(TEST, 0.2),
        "laplace": private(Laplace, TEST, 0.2),
        "truncated": private(Truncated, TEST, 0.2),
    }
    law, worst, first = kinds[name], 0.0, 0.0
    said = privacy_statement(TEST, law, 0.2)
    for bit in (0, 1):
        for entry in range(1, 81):
            data = np.full(3000, bit)
            changed = data.copy()
            changed[entry - 1] = 1 - bit
            p, q = _stops(TEST, law, data), _stops(TEST, law, changed)
            delta = max(np.maximum(a - np.exp(0.2) * b, 0.0).sum() for a, b in ((p, q), (q, p)))
            worst = max(worst, delta)
            first = max(first, delta) if entry == 1 else first
            assert 0.5 * np.abs(p - q).sum() <= said["total_variation"] + 1e-8
    assert worst <= said["delta_at_epsilon"] + 1e-8  # what runs on where the data end is 1e-9 at most
    assert (worst > 2.0 * first) == (name != "exponential")


def test_p_phi_where_nothing_is_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsmc_audit.errors import ParameterError

    def unknown(*_: Any) -> None:
        raise ParameterError("too little drift")

    monkeypatch.setattr(statement, "marginal_law", unknown)
    said = privacy_statement(TEST, NoNoise(), 0.2)
    assert said["worst_sample"] is not None  # of uniform data everything is known
    assert said["p_phi_unknown"] == list(probabilities(TEST))


@pytest.mark.parametrize("law", [Exponential, Laplace, Truncated])
def test_the_cost_is_the_mean(law: Any) -> None:
    mechanism = private(law, TEST, 0.2)
    cost = expected_cost(TEST, mechanism)
    assert {0.68, 0.78, 0.0, 1.0} <= set(cost)
    for p_phi, samples in cost.items():
        mean = exact_mean(Setting(TEST, mechanism, p_phi))
        assert abs(samples - mean.value) <= 0.01 * samples + mean.error


def test_the_cost_is_said_in_three_digits() -> None:
    law = Exponential.private(TEST, 0.2)
    cost = expected_cost(TEST, law)
    said = release.announcement(TEST, law)
    assert f"{cost[0.78]:.0f}" in said
    assert "0.78" in said
    assert "0.22" in release.announcement(TEST, law, negated=True)


def test_below_is_answered_for_the_specification_as_it_was_given(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("0\n" * 500)
    arguments = ("p=0.27", "relation=lt", "model=recorded", "model.path=data.csv", "hydra.run.dir=r")
    code, out, _ = run("task=verify", *QUICK, *arguments)
    assert code == 0
    assert "is p_phi < 0.27? yes (H_null)" in out
    assert result_in(tmp_path)["privacy"]["p_phi_grid"][0] == 0.0


@pytest.mark.parametrize(
    ("law", "delta", "sample"),
    [(Exponential, 0.00992, 1), (Truncated, 0.00634, 351), (Laplace, 0.00498, 1245)],
)
def test_the_statement_at_the_papers_parameters(law: Any, delta: float, sample: int) -> None:
    """Two-sided noise is at its worst about where runs on uniform data stop, not at the first sample."""
    test = Sprt(0.73, 0.01, 0.01)
    said = privacy_statement(test, private(law, test, 0.01), 0.01)
    assert said["delta_at_epsilon"] == pytest.approx(delta, abs=6e-6)
    assert said["worst_sample"] == sample


LOUD = """
import atexit, ctypes, logging, os, subprocess, sys, threading, time

class Late:
    def __del__(self):
        os.write(1, b"SECRET finaliser")

kept = Late()

def draw(rng, n):
    bits = rng.random(n) < 0.9
    os.write(1, b"SECRET descriptor")
    print("SECRET stream", file=sys.__stdout__)
    ctypes.CDLL(None).printf(b"SECRET library")
    subprocess.run(["echo", "SECRET child"])
    logging.disable(logging.NOTSET)
    logging.getLogger("mine").error("SECRET log")
    atexit.register(print, "SECRET exit")
    threading.Thread(target=lambda: (time.sleep(0.5), print("SECRET thread"))).start()
    return bits

def fails(rng, n):
    held = Late()
    raise ValueError("SECRET message")
"""


@pytest.mark.parametrize(("function", "unbuffered"), [("draw", ""), ("draw", "1"), ("fails", "")])
def test_a_loud_model_is_not_heard(tmp_path: Path, function: str, unbuffered: str) -> None:
    """In a process of its own: descriptors, streams and their buffers, children, logs, threads, exit handlers."""
    (tmp_path / "loud.py").write_text(LOUD)
    (tmp_path / "quiet").mkdir()
    command = [sys.executable, "-m", "dpsmc_audit", "task=verify", *QUICK, "model=python"]
    command += [f"model.target=loud:{function}", "hydra.run.dir=quiet"]
    environment = dict(os.environ) | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"}
    environment["PYTHONUNBUFFERED"] = unbuffered
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if function == "draw" else 2), done.stderr
    left = "".join(path.read_text() for path in (tmp_path / "quiet").iterdir())
    assert "SECRET" not in done.stdout + done.stderr + left
    assert ("is p_phi" in done.stdout) == (function == "draw")


def test_opening_private_data_tells_nothing_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A file without its header: the first sample would stand in the list of columns."""
    run = runner(monkeypatch, capsys, tmp_path)
    (tmp_path / "bare.csv").write_text("patient-17,1\npatient-18,0\n")
    options = ("model=recorded", "model.path=bare.csv", "model.column=ok", "hydra.run.dir=r")
    code, out, err = run("task=verify", *QUICK, *options)
    assert code == 2
    assert err == "error: bare.csv has no column 'ok'\n"
    left = "".join(path.read_text() for path in (tmp_path / "r").iterdir())
    assert "patient" not in out + err + left


@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize("p", [0.5, 0.73, 0.95])
@pytest.mark.parametrize(
    "law", [NoNoise(), Exponential(0.4), Laplace(0.0, 3.0), Truncated(4.0, 2.0, -1.0), Law.of("gamma", a=2.0)]
)
def test_data_that_are_alike_cost_one_pass_and_give_what_each_sequence_gives(
    law: Mechanism, p: float, bit: int
) -> None:
    test, levels = Sprt(p=p, delta=0.03, alpha=0.05), [0.0, 0.3, 0.6, 800.0]
    length = math.ceil((5.0 + float(law.quantile(1.0 - 1e-6))) / (test.s_plus if bit else test.s_minus))
    entries = sorted({*np.geomspace(1, length, 9).astype(int).tolist(), 2, length - 1})
    found = constant_data_deltas(test, law, bit, length, entries, levels)
    for entry, deltas in zip(entries, found, strict=True):
        profile = given_sequence(test, law, np.full(length, bit), [entry]).profile(np.array(levels))
        wanted = np.maximum(profile.delta_1_over_0, profile.delta_0_over_1)
        np.testing.assert_allclose(deltas, wanted, atol=1e-13)
