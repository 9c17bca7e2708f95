"""What CONTRIBUTING.md shows: a mechanism, an observer, a model, a task and a sweep from outside the package."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.app.test_cli import run
from tests.support.command import Run, result_in
from tests.support.documents import TOP

__all__ = ["run"]

TEXT = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to add")[2]


def shown(language: str, text: str = TEXT) -> list[str]:
    """The blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


def command(kind: str) -> list[str]:
    """The words of the command that a section shows."""
    (section,) = (part for part in TEXT.split("### ") if part.startswith(kind))
    (line,) = shown("sh", section)
    return shlex.split(line.removeprefix("python -m dpsmc_audit "))


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with all examples; its name is new in every test, as modules are imported once."""
    name = f"mine_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text("\n\n".join(shown("python")), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_every_example_takes_few_lines() -> None:
    """Ten lines each, blank ones and decorators apart."""
    for block in (*shown("python"), *shown("yaml")):
        assert len([line for line in block.splitlines() if line.strip() and not line.startswith("@")]) <= 10


@pytest.mark.parametrize(
    ("kind", "key"),
    [("A mechanism", "samples"), ("An observer", "sentence"), ("A model", "p_phi"), ("A task", "up")],
)
def test_a_toy_from_outside_runs(run: Run, tmp_path: Path, mine: str, kind: str, key: str) -> None:
    words = [word.replace("mine:", f"{mine}:") for word in command(kind)]
    code, out, err = run(*words, "hydra.run.dir=r")
    assert (code, err) == (0, "")
    result = result_in(tmp_path / "r")
    assert result[key]
    assert out


def test_the_decision_alone_says_less_than_the_released_result(run: Run, tmp_path: Path, mine: str) -> None:
    """Of the same setting: what the toy observer sees is a part of what the marginal one sees."""
    words = [word.replace("mine:", f"{mine}:") for word in command("An observer")]
    assert run(*words, "hydra.run.dir=toy")[0] == 0
    assert run("notion=marginal", *words[2:], "hydra.run.dir=marginal")[0] == 0
    toy, marginal = (result_in(tmp_path / name) for name in ("toy", "marginal"))
    assert 0.0 < toy["total_variation"] < marginal["total_variation"]
    assert toy["observer"] == "decision"


def test_a_sweep_from_outside_runs(run: Run, tmp_path: Path) -> None:
    (block,) = shown("yaml")
    (tmp_path / "own" / "sweep").mkdir(parents=True)
    (tmp_path / "own" / "sweep" / "mine.yaml").write_text(block, encoding="utf-8")
    words = ["--config-dir", str(tmp_path / "own"), *command("A sweep")[2:]]
    code, out, err = run(*words, "hydra.sweep.dir=s")
    assert (code, err) == (0, "")
    assert "2 results in s" in out


def test_a_sweep_of_a_task_from_outside_shows_what_varies(run: Run, tmp_path: Path, mine: str) -> None:
    words = [word.replace("mine:", f"{mine}:") for word in command("A task")]
    code, out, _ = run("-m", *words, "alpha=0.05,0.1", "hydra.sweep.dir=s")
    assert code == 0
    header, _, *lines = out.splitlines()
    assert header.split() == ["alpha", "up"]
    assert [line.split()[0] for line in lines[:2]] == ["0.05", "0.1"]
