"""The same numbers on every processor: centers of noise, runs, events, fingerprints; others are simulated."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpsmc_audit.app.cli import _key
from dpsmc_audit.app.config import Config
from dpsmc_audit.app.groups import Named, Noise
from dpsmc_audit.exact import calibration
from dpsmc_audit.exact.averages import WorstErrors, worst_errors
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.mechanisms import Exponential, Laplace, Truncated
from dpsmc_audit.observers.marginal.law import marginal_law
from dpsmc_audit.runs.checkpoints import Checkpoint
from dpsmc_audit.sampling.jump_tables import jump_tables
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.simulate import Tally, Total, simulate
from tests.support.processors import COMMANDS, TOP, blas_kernel, cpu_features, differences, environment, processors

PAPER = Sprt(0.73, 0.01, 0.01)
ROUGH = Sprt(0.73, 0.05, 0.05)

CENTERS = [
    (Laplace, Sprt(0.5, 0.2, 0.05), 0.05, 52.6171875),
    (Laplace, Sprt(0.5, 0.1, 0.05), 0.01, 128.7734375),
    (Laplace, Sprt(0.9, 0.05, 0.1), 0.05, 21.62109375),
    (Laplace, ROUGH, 0.3, 1.65087890625),
    (Laplace, PAPER, 0.3, 0.10491943359375),
    (Truncated, PAPER, 0.05, 1.98193359375),
    (Truncated, PAPER, 0.01, 5.046054840087891),
    (Truncated, Sprt(0.5, 0.2, 0.05), 0.05, 6.614355087280273),
]
"""Found on one processor; the grid makes them those of all."""


@pytest.mark.processor
@pytest.mark.parametrize(("kind", "test", "epsilon", "center"), CENTERS)
def test_centers_are_the_same_everywhere(
    kind: type[Laplace] | type[Truncated], test: Sprt, epsilon: float, center: float
) -> None:
    assert private(kind, test, epsilon).center == center


@pytest.mark.processor
@pytest.mark.parametrize(
    ("kind", "test", "epsilon"), [(Laplace, ROUGH, 0.3), (Laplace, ROUGH, 0.05), (Truncated, PAPER, 0.05)]
)
def test_a_center_is_the_first_point_of_its_grid_that_keeps_the_levels(
    kind: type[Laplace] | type[Truncated], test: Sprt, epsilon: float
) -> None:
    law = private(kind, test, epsilon)
    unit = calibration.unit_below(1e-4 * law.scale)
    assert law.center % unit == 0.0
    assert 0.5e-4 * law.scale < unit <= 1e-4 * law.scale
    worst, less = (worst_errors(test, each) for each in (law, replace(law, center=law.center - unit)))
    assert max(error.value + error.error for error in (worst.fp, worst.fn)) < test.alpha * (1.0 - 0.9e-9)
    assert max(error.value + error.error for error in (less.fp, less.fn)) > test.alpha * (1.0 - 1.1e-9)


@pytest.mark.parametrize(("kind", "test", "epsilon"), [(Laplace, ROUGH, 0.3), (Truncated, PAPER, 0.05)])
def test_rounding_moves_no_center(
    monkeypatch: pytest.MonkeyPatch, kind: type[Laplace] | type[Truncated], test: Sprt, epsilon: float
) -> None:
    """Errors that are off by 1e-13 of themselves, each time they are computed: more than sums in any order differ."""
    center = private(kind, test, epsilon).center
    for seed in range(3):
        rng = np.random.default_rng(seed)

        def shaken(exact: Enclosure, rng: np.random.Generator = rng) -> Enclosure:
            low, high = (end * (1.0 + 1e-13 * rng.uniform(-1.0, 1.0)) for end in (exact.low, exact.high))
            return replace(exact, low=low, high=high)

        def rounded(*given: object, rough: bool, shaken: object = shaken) -> WorstErrors:
            found = worst_errors(*given, rough=rough)  # type: ignore[arg-type]
            return WorstErrors(shaken(found.fp), shaken(found.fn))  # type: ignore[operator]

        monkeypatch.setattr(calibration, "worst_errors", rounded)
        assert private(kind, test, epsilon).center == center


# --- runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.processor
@pytest.mark.parametrize(("kind", "epsilon", "samples"), [(Truncated, 0.05, 12_266_704), (Laplace, 0.3, 8_449_635)])
def test_the_same_samples_are_drawn_everywhere(
    kind: type[Laplace] | type[Truncated], epsilon: float, samples: int
) -> None:
    tally = simulate(Setting(PAPER, private(kind, PAPER, epsilon), 0.84), 20_000).tally
    assert (tally.runs, tally.null, tally.samples) == (20_000, 20_000, samples)


@pytest.mark.processor
@pytest.mark.parametrize(
    ("p_phi", "digest"), [(0.3, "ee59082ae5e60792"), (0.5, "038f259f9e644747"), (0.84, "2ced0df174cc3b02")]
)
def test_tables_of_jumps_are_the_same_everywhere(p_phi: float, digest: str) -> None:
    tables = jump_tables(p_phi)[:2]
    assert hashlib.sha256(b"".join(table.tobytes() for table in tables)).hexdigest()[:16] == digest


@pytest.mark.processor
@pytest.mark.parametrize(("entry", "name"), [(1, "tau <= 365"), (400, "tau <= 418"), (1000, "tau > 1331")])
def test_the_best_event_is_the_same_everywhere(entry: int, name: str) -> None:
    """From the thousandth sample on the ratio is exp(-epsilon) for every tail that is late enough."""
    best = marginal_law(Adjacent(Setting(PAPER, Exponential.private(PAPER, 0.01), 0.84), (entry,))).best(0.01)
    assert best is not None
    assert best.name == name


# --- fingerprints ---------------------------------------------------------------------------------------------------


def _config(mechanism: str) -> Config:
    return Config(p_phi=0.84, epsilon=0.05, delta=0.05, task=Named("simulate"), mechanism=Noise(mechanism))


def test_a_fingerprint_holds_the_law_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with another center are other runs: neither a checkpoint nor a finished point is taken for theirs."""
    before = {name: _key(_config(name)) for name in ("exponential", "laplace", "truncated")}
    assert before == {name: _key(_config(name)) for name in before}

    usual = calibration.calibrated_center
    monkeypatch.setattr(calibration, "calibrated_center", lambda *given: usual(*given) + 2.0**-40)
    after = {name: _key(_config(name)) for name in before}
    assert {name for name in before if before[name] != after[name]} == {"laplace", "truncated"}


def test_a_checkpoint_of_another_center_is_not_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = Total()
    total.add(Tally(5, 5, 0, 0, 50, 500))
    Checkpoint(tmp_path, _key(_config("laplace"))).save("runs", 5, total)
    assert Checkpoint(tmp_path, _key(_config("laplace"))).restore("runs", Total()) == 5
    usual = calibration.calibrated_center
    monkeypatch.setattr(calibration, "calibrated_center", lambda *given: usual(*given) + 2.0**-40)
    assert Checkpoint(tmp_path, _key(_config("laplace"))).restore("runs", Total()) == 0


# --- simulated processors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", processors())
def test_a_simulated_processor_is_another_one(name: str) -> None:
    """Its variables reach NumPy, OpenBLAS and Numba."""
    code = (
        "import json; from numba.core import config; from tests.support.processors import *;"
        "print(json.dumps([cpu_features(), blas_kernel(), config.CPU_NAME]))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment(name), cwd=TOP, capture_output=True, text=True, check=True)
    features, kernel, numba = json.loads(done.stdout)
    told = processors()[name]
    assert not {*features} & {*told.get("NPY_DISABLE_CPU_FEATURES", "").split()}
    assert {*features} <= {*cpu_features()}
    if blas_kernel() is not None:
        assert kernel == told["OPENBLAS_CORETYPE"] != blas_kernel()
    assert (numba == "generic") == (name == "generic")


@pytest.mark.slow
def test_commands_give_the_same_results_on_every_processor(tmp_path: Path) -> None:
    """All tables and results of over thirty commands, up to stated errors, with the same events (`differences`)."""
    assert len(COMMANDS) >= 30
    running = {}
    for name in ("native", *processors()):
        folder, cache = tmp_path / name, tmp_path / f"cache-{name}"
        folder.mkdir()
        command = [sys.executable, "-W", "ignore", "-m", "tests.support.processors", "run", f"{folder}"]
        with (tmp_path / f"{name}.txt").open("w") as log:
            told = environment(name, cache)
            running[name] = subprocess.Popen(command, cwd=TOP, env=told, stdout=log, stderr=subprocess.STDOUT)
    assert {name: process.wait() for name, process in running.items()} == dict.fromkeys(running, 0)
    codes = [path.read_text() for path in (tmp_path / "native").glob("*/code.txt")]
    assert codes == ["0"] * len(COMMANDS)
    for name in processors():
        wrong, compared = differences(tmp_path / "native", tmp_path / name)
        print(f"{name}: {compared} values of {len(COMMANDS)} commands compared, {len(wrong)} differ")
        assert compared > 300_000
        assert wrong == []
