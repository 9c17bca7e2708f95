"""Numbers and formulas as people type them, and what the refusals show."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import MissingConfigException
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.app.messages import one_line
from dpsmc_audit.app.typed import as_hydra_reads, plain_number, quoted
from tests.support.command import Run, result_in, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    return runner(monkeypatch, capsys, tmp_path)


@pytest.mark.parametrize("number", ["1e3", "10^3", "1_000", "1E3", "1x10^3", "1*10^3", "0.1e4", "1000"])
def test_a_thousand_runs_in_every_spelling(run: Run, tmp_path: Path, number: str) -> None:
    code, _, err = run("task=simulate", f"runs={number}", "epsilon=10^-1", "hydra.run.dir=r")
    assert (code, err) == (0, "")
    made = result_in(tmp_path)["parameters"]
    assert (made["runs"], made["epsilon"]) == (1000, 0.1)


@given(st.integers(0, 10**18))
def test_whole_numbers_stay_what_they_are(value: int) -> None:
    assert plain_number(f"{value}", True) == plain_number(f"{value:_}", True) == f"{value}"
    zeros = len(f"{value}") - len(f"{value}".rstrip("0")) if value else 0
    short = f"{value // 10**zeros}"
    assert plain_number(f"{short}e{zeros}", True) == plain_number(f"{short}*10^{zeros}", True) == f"{value}"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_other_numbers_stay_what_they_are(value: float) -> None:
    assert float(plain_number(repr(value), False)) == value


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1))
def test_quoted_text_is_read_back(text: str) -> None:
    (word,) = as_hydra_reads([f"formula={quoted(text)}"])
    assert OverridesParser.create().parse_override(word).value() == text


FORMULAS = [
    "always[0.8, 1.0](abs(e) < 0.05)",
    "(air_fuel > 10) until[0.1,0.5] (e < 1)",
    "max(e, 0.1) < 0.2 and not (e > 1)",
    "eventually[0,inf] (e < 0.05 or mode >= 1)",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_needs_quotes_for_the_shell_only(run: Run, tmp_path: Path, formula: str) -> None:
    words = ["task=estimate", "model=powertrain", "runs=20", "hydra.run.dir=r"]
    for word in (f"formula={formula}", f'formula="{formula}"'):
        code, _, err = run(*words, word)
        assert (code, err) == (0, "")
    assert "formula" in result_in(tmp_path)["parameters"]


def test_several_formulas_are_a_sweep(run: Run, tmp_path: Path) -> None:
    words = ["-m", "task=estimate", "model=powertrain", "runs=20", "hydra.sweep.dir=s"]
    assert run(*words, 'formula="e < 0.05","abs(e) < 0.1"')[0] == 0
    assert len(list(tmp_path.rglob("result.json"))) == 2


def test_a_formula_that_the_shell_took_apart_is_shown_in_quotes(run: Run, tmp_path: Path) -> None:
    """The command to copy, quoted, is read as it was meant."""
    words = ["task=estimate", "model=powertrain", "runs=20"]
    code, out, err = run(*words, "formula=always[0.8,", "1.0](e<0.05)")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    shown = "'formula=always[0.8, 1.0](e<0.05)'"
    assert shown in err
    assert run(*words, *shlex.split(shown))[0] == 0


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("runs=ten", "runs must be a whole number, such as 1000 or 1e3, got ten"),
        ("runs=1.5", "runs must be a whole number, such as 1000 or 1e3, got 1.5"),
        ("alpha=", "alpha must be a number, such as 0.05, got nothing"),
        ("early=maybe", "early must be true or false, got maybe"),
        ("notion=all", "notion must be one of expected, informed, marginal, python, got all"),
    ],
)
def test_a_refusal_of_hydra_is_cut_to_the_line_that_matters(run: Run, word: str, shown: str) -> None:
    assert run(word) == (2, "", f"error: {shown}\n")


@pytest.mark.parametrize("name", ["joblib", "submitit_local", "submitit_slurm"])
def test_a_launcher_that_is_missing_names_the_extra(name: str) -> None:
    error = MissingConfigException("Could not find", f"hydra/launcher/{name}", ["basic"])
    assert one_line(error) == f"hydra/launcher={name} is not installed: pip install 'dpsmc-audit[launchers]'"
