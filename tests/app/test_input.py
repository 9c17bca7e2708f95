"""Input that cost hours, memory or a result: each ends soon, in one line or with its result."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpsmc_audit.app.keys import check_options
from dpsmc_audit.errors import ParameterError
from dpsmc_audit.observers.informed import sequences
from dpsmc_audit.report import latex, tables
from dpsmc_audit.runs import execution
from dpsmc_audit.verify import noise
from tests.app.test_fuzz import no_longer_than
from tests.support.command import Run, result_in, runner

OWN = """
import numpy as np
class Odd(BaseException): pass
def odd(x, runs, rng): raise Odd("no")
def leaves(x, runs, rng): raise SystemExit(0)
def large(rng, n): return {"x": np.where(rng.random((n, 3)) < 0.5, 1e308, -1e308)}
def small(rng, n): return {"x": rng.random((n, 3))}
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    (tmp_path / "own_input.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("own_input", None)
    return runner(monkeypatch, capsys, tmp_path)


def refused(run: Run, *words: str) -> str:
    """The one line that refuses a command."""
    with no_longer_than(60, words):
        code, out, err = run(*words)
    assert (code, len(err.splitlines())) == (2, 1), (out, err)
    return err


@pytest.mark.parametrize("backend", ["serial", "threads"])
@pytest.mark.parametrize("name", ["odd", "leaves"])
def test_a_sampler_may_raise_anything(run: Run, tmp_path: Path, name: str, backend: str) -> None:
    err = refused(run, f"sampler=own_input:{name}", "epsilon=1", "runs=1000", f"backend={backend}")
    assert "raised" in err
    assert not list(tmp_path.rglob("result.json"))


def test_a_sweep_without_points_is_refused(run: Run) -> None:
    assert refused(run, "-m", "task=simulate", "seed=range(3,1,1)") == (
        "error: the sweep has no points: seed has no values\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nope"], "unknown option --nope: --help lists all options"),
        (["-z", "p=0.5"], "unknown option -z: --help lists all options"),
        (["--cfg", "nope"], "--cfg must be one of job, hydra, all, got nope"),
        (["--cfg"], "--cfg must be one of job, hydra, all, got nothing"),
        (["--info=nope"], "--info must be one of all, config, defaults, defaults-tree, plugins, searchpath, got nope"),
        (["--config-dir"], "--config-dir needs a value"),
        (["-m=1"], "-m takes no value, got 1"),
    ],
)
def test_wrong_options_end_in_one_line(run: Run, words: list[str], said: str) -> None:
    assert refused(run, *words) == f"error: {said}\n"


@pytest.mark.parametrize("line", ["--cfg job", "--help", "--info searchpath", "--info", "-c=job", "-m -p x p=1 -sc y"])
def test_right_options_are_left_to_hydra(line: str) -> None:
    check_options(line.split())


def test_right_options_are_answered_by_hydra(run: Run) -> None:
    code, out, _ = run("--cfg", "job")
    assert (code, out.startswith("p: 0.73")) == (0, True)


def test_ten_thousand_conjuncts_do_not_hang(run: Run, tmp_path: Path) -> None:
    (tmp_path / "spec.stl").write_text(" and ".join(f"(x < {1 + k})" for k in range(10_000)))
    with no_longer_than(60, "conjuncts"):
        code, _, err = run(
            *("task=estimate", "model=python", "model.target=own_input:small", "model.step=1"),
            *("formula_file=spec.stl", "runs=300", "hydra.run.dir=r"),
        )
    assert (code, err) == (0, "")
    assert result_in(tmp_path)["p_phi"] == 1.0


def test_an_estimate_is_not_lost_to_its_picture(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [
        "task=estimate",
        "model=python",
        "model.target=own_input:large",
        "model.step=1",
        'formula="x > 0"',
        "runs=300",
    ]
    code, _, err = run(*words, "hydra.run.dir=r")
    assert (code, err) == (0, "")
    assert (tmp_path / "r" / "traces.png").exists()
    assert 0.0 < result_in(tmp_path / "r")["p_phi"] < 1.0

    def fails(*arguments: Any) -> None:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr("dpsmc_audit.report.traces.traces_figure", fails)
    code, _, err = run(*words, "hydra.run.dir=other")
    assert (code, err) == (0, "warning: the traces could not be drawn: LinAlgError: Singular matrix\n")
    assert result_in(tmp_path / "other")["p_phi"] == result_in(tmp_path / "r")["p_phi"]


def test_a_sequence_that_is_too_long_is_refused_unread(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "long.txt").open("wb") as file:
        file.truncate(10**8)  # a file with a hole: reading it would find no 0 or 1
    err = refused(run, "notion=informed", "sequence=long.txt", "epsilon=0.5", "delta=0.1")
    assert "long.txt holds more than 10000000 samples" in err
    monkeypatch.setattr(sequences, "LONGEST", 5)
    (tmp_path / "short.txt").write_text("010101")
    with pytest.raises(ParameterError, match="holds more than 5 samples"):
        sequences.read_sequence(tmp_path / "short.txt", [1])


@pytest.mark.parametrize("task", ["estimate", "verify"])
def test_a_device_is_no_file_of_samples(run: Run, task: str) -> None:
    words = ("model=recorded", "model.path=/dev/zero", "epsilon=0.5", "delta=0.1")
    given = words if task == "verify" else words[:2]
    assert refused(run, f"task={task}", *given) == "error: /dev/zero is a device\n"


def test_a_line_without_an_end_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1\n" + "1" * 2**20)
    err = refused(run, "task=estimate", "model=recorded", "model.path=data.csv")
    assert err == "error: data.csv, line 2: the line is too long\n"


@pytest.fixture
def silent() -> Iterator[str]:
    """A port that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(5)
        yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"


def test_a_scheduler_that_never_answers_is_not_waited_for(
    run: Run, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    greeted = execution._greeted
    monkeypatch.setattr(execution, "_greeted", lambda address: greeted(address, 0.2))
    err = refused(run, "task=simulate", "runs=1000", "backend=dask", f"backend.address={silent}")
    assert err == f"error: backend.address={silent}: no dask scheduler answers there (timed out)\n"


def test_opendp_that_does_not_load_is_not_blamed_on_the_model(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found before the run, and the sampler of this package draws L."""
    (tmp_path / "opendp").mkdir()
    (tmp_path / "opendp" / "__init__.py").write_text("")
    (tmp_path / "opendp" / "prelude.py").write_text("raise OSError('libopendp.so: cannot open')\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "opendp"]:
        monkeypatch.delitem(sys.modules, name)
    noise.loads.cache_clear()
    code, _, err = run("task=verify", "epsilon=0.5", "delta=0.1", "alpha=0.05", "hydra.run.dir=r")
    noise.loads.cache_clear()
    assert (code, err) == (
        0,
        "warning: OpenDP does not load (OSError: libopendp.so: cannot open): L is drawn without it\n",
    )
    assert result_in(tmp_path)["noise"]["sampler"].startswith("exact sampler in whole numbers")


ODD_CELL = "a|b_c\\d%e&f#g{h}$~^\ni<j>"


def test_tables_escape_what_has_a_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [SimpleNamespace(heading="model", latex="model", show=lambda row: ODD_CELL)]
    for module in (tables, latex):
        monkeypatch.setattr(module, "columns_for", lambda rows: columns)
    markdown, table = tables.as_markdown([{}]), latex.as_latex([{}])
    assert "a\\|b_c\\\\d%e&f#g{h}$~^ i<j>" in markdown
    assert len(markdown.splitlines()) == 3
    assert r"a\textbar{}b\_c\textbackslash{}d\%e\&f\#g\{h\}\$\~{}\^{} i$<$j$>$ \\" in table.splitlines()
