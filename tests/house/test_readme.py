"""Every command and every block of Python in the README runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.app.test_cli import run
from tests.support.command import Run
from tests.support.documents import TOP, blocks, commands, same_text, write_files

__all__ = ["run"]

README = (TOP / "README.md").read_text(encoding="utf-8")
PYTHON = [block.text for block in blocks(TOP / "README.md") if block.language == "python"]

ELSEWHERE = {
    "--help": "test_help_names_the_keys",
    "+sweep=observers": "test_cli.test_observers_side_by_side",
    "+sweep=epsilon task=audit": "test_cli.test_every_sweep_audits",
    "+sweep=table1 alpha=0.01": "test_cli.test_overrides_narrow_a_sweep_and_tables_do_not_depend_on_the_clock",
    "-m task=simulate alpha=0.01,0.02 p_phi=0.8,0.9": "test_cli.test_a_users_own_sweep",
}
"""Commands with a test of their own."""


@pytest.mark.parametrize("command", [c for c in commands(README) if c not in ELSEWHERE])
def test_commands_run(run: Run, command: str, tmp_path: Path) -> None:
    """With fewer runs where the command leaves their number open."""
    few = (
        []
        if any(word in command for word in ("runs=", "task=verify", "model=recorded"))
        else ["runs=20" if "model=" in command else "runs=200"]
    )
    own = any(word in command for word in ("pairs=", "+sweep=pairs", "sampler=", "model="))
    few += [] if own else ["pairs=50"]
    write_files(tmp_path)
    code, out, err = run(*shlex.split(command), *few)
    if "task=verify" in command:
        assert code in (0, 3)
        assert "is p_phi" in out
        return
    assert code == 0, err
    assert "exact mean" in out or "verdict" in out or "p_phi" in out


def test_help_names_the_keys(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    for key in ("p_phi", "epsilon", "max_steps", "sweep"):
        assert key in out


def test_python_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert PYTHON
    for block in PYTHON:
        exec(compile(block, "README.md", "exec"), {})
    assert "1322.747" in capsys.readouterr().out


def test_setup_commands_are_marked_and_self_contained() -> None:
    """CI runs the second one as it stands; the first ends in the sweep that test_cli runs."""
    for mark, end in (("table1", "python -m dpsmc_audit +sweep=table1"), ("tests", "python -m pytest")):
        (command,) = re.findall(rf"<!-- {mark} -->\n```sh\n(.*?)\n```", README)
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert command.endswith(end)


def test_verdicts_shown_are_the_verdicts_made(run: Run, tmp_path: Path) -> None:
    """Each block of output stands below its command."""
    write_files(tmp_path)
    shown = re.findall(r"```sh\n(python -m dpsmc_audit [^\n]*)\n```\n\n```text\n(verdict.*?)```", README, flags=re.S)
    assert len(shown) == README.count("```text\nverdict") == 2
    for line, text in shown:
        (command,) = commands(line)
        _, out, _ = run(*shlex.split(command))
        assert same_text(text) in same_text(out)


def test_the_table_shown_is_the_table_made(run: Run) -> None:
    """But for the times."""
    _, out, _ = run("+sweep=table1")

    def without_times(text: str) -> list[str]:
        return [re.sub(r"\s+[\d.]+ us", "", line) for line in text.splitlines()]

    (shown,) = re.findall(r"```text\n(1-alpha.*?)```", README, flags=re.S)
    assert without_times(shown) == without_times(out)[:10]
