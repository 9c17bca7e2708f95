"""Every command and block of code in docs/ runs and prints what is shown; links resolve; named tests exist."""

from __future__ import annotations

import ast
import contextlib
import csv
import doctest
import io
import itertools
import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsmc_audit
from dpsmc_audit import Exponential, NoNoise, Sprt, certificate, exact_error, exit_law, marginal_law, worst_errors
from dpsmc_audit.observers.expected.law import expected_law
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.tasks.paper import P_PHI, TABLE1, P, compare
from experiments import dpsprt, figure1, table1
from tests.app.test_cli import run
from tests.house import test_errata as errata
from tests.support.command import Run
from tests.support.documents import README, TOP, Block, blocks, commands, page_paths, same_text, write_files

__all__ = ["run"]

DOCS = [path for path in page_paths() if path != README]
SETUP = {
    "python3 -m venv .venv",
    ". .venv/bin/activate",
    "pip install .",
    "mkdir -p tour && cd tour",
    "mkdir -p mine && cd mine",
}
"""Tried by hand in an empty environment; CI sets itself up by the README's commands."""

IN_README = set(commands(README.read_text(encoding="utf-8")))


# --- what is shown runs ---------------------------------------------------------------------------------------------


def _few(command: str) -> list[str]:
    """Fewer runs where a command leaves their number open and no output is shown for it."""
    if any(word in command for word in ("runs=", "task=verify", "model=recorded", "engine=exact", "samples=")):
        return []
    return ["runs=20" if "model=" in command else "runs=2000"]


def _shell(text: str, run: Run, folder: Path, *, shown: bool) -> str:
    """The output of a block: files are written, the command is called, everything else is known setup."""
    for name, content in re.findall(r"^cat > (\S+) <<'END'\n(.*?)^END$", text, flags=re.M | re.S):
        (folder / name).write_text(content)
    rest = re.sub(r"^cat > \S+ <<'END'\n.*?^END$", "", text, flags=re.M | re.S)
    printed = []
    for line in filter(None, rest.splitlines()):
        if not line.startswith("python -m dpsmc_audit"):
            assert line in SETUP, line
            continue
        (command,) = commands(line)
        if command.startswith(".certificate "):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                assert certificate.main([str(TOP / command.split()[1])]) == 0
            printed.append(said.getvalue())
            continue
        if command in IN_README and not shown:
            continue  # test_readme runs it
        code, out, err = run(*shlex.split(command), *([] if shown else _few(command)))
        assert code in ((0, 3) if "task=verify" in command else (0,)), err
        printed.append(out)
    return "\n".join(printed)


def _doctest(text: str, names: dict[str, Any], page: Path) -> None:
    found: list[str] = []
    examples = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    doctest.DocTestRunner(verbose=False).run(examples, out=found.append, clear_globs=False)
    names.update(examples.globs)
    assert not found, "".join(found)


def _pairs(page: Path) -> Iterator[tuple[Block, Block | None]]:
    """Blocks, each with the output that is shown for it."""
    every = [*blocks(page), Block("", "")]
    for block, after in itertools.pairwise(every):
        if block.language != "text":
            yield block, after if after.language == "text" else None


@pytest.mark.parametrize("page", DOCS, ids=lambda path: path.stem)
def test_blocks_run_and_print_what_is_shown(
    page: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": page.stem}
    for block, after in _pairs(page):
        printed = ""
        if block.language == "sh":
            printed = _shell(block.text, run, tmp_path, shown=after is not None)
        elif block.language == "pycon":
            _doctest(block.text, names, page)
        else:
            assert block.language == "python"
            exec(compile(block.text, page.name, "exec", dont_inherit=True), names)
            printed = capsys.readouterr().out
        if after is not None:
            for piece in _sentences(after.text):
                assert piece in same_text(printed)


def _sentences(shown: str) -> list[str]:
    """What is shown, apart where one verdict or row ends and another begins."""
    starts = re.sub(r"\n(?=violated|consistent|Witness|\s*[\w.]+(?: [\w.]+)?  |\d+\.\d+ )", "\n\0", shown)
    return [same_text(piece) for piece in starts.split("\0") if piece.strip()]


def test_every_public_name_has_an_example() -> None:
    shown = "\n".join(block.text for block in blocks(TOP / "docs" / "api.md"))
    page = (TOP / "docs" / "api.md").read_text(encoding="utf-8")
    for name in set(dpsmc_audit.__all__) - {"__version__"}:
        assert re.search(rf"\b{name}\b", shown) or name in {"Mechanism", "Simulation"}, name
        assert f"`{name}`" in page, name


# --- what is referred to exists -------------------------------------------------------------------------------------


def _anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", page_paths(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_links_resolve(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        target, _, anchor = link.partition("#")
        assert not target.startswith(("http", "/")), link
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        assert not anchor or anchor in _anchors(path), link


def test_named_tests_exist() -> None:
    found = set()
    for page in page_paths():
        found |= set(re.findall(r"`(tests/\w+/\w+\.py)::(\w+)`", page.read_text(encoding="utf-8")))
    assert len(found) > 20
    for name, function in found:
        tree = ast.parse((TOP / name).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{name}::{function}"


def test_every_erratum_names_a_test_or_is_wording() -> None:
    rows = [row for row in _rows("errata.md") if row[0] != "where"]
    assert len(rows) == 23
    for row in rows:
        assert row[3] == "wording" or re.fullmatch(r"`tests/\w+/\w+\.py::\w+`", row[3]), row[0]


# --- numbers in tables ----------------------------------------------------------------------------------------------


def _rows(name: str) -> list[list[str]]:
    text = (TOP / "docs" / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_table_1_row_by_row() -> None:
    with (TOP / "experiments" / "results" / "table1.csv").open() as file:
        ours = {(float(row["alpha"]), float(row["delta"]), float(row["epsilon"])): row for row in csv.DictReader(file)}
    shown = [row for row in _rows("reproduction.md") if len(row) == 9 and row[0].startswith("0.9")]
    made = []
    for (alpha, delta, epsilon), paper in TABLE1.items():
        test = Sprt(P, delta, alpha)
        law = Exponential.private(test, epsilon)
        distance = compare(Setting(test, law, P_PHI), epsilon)["distance"]
        mine = ours[alpha, delta, epsilon]
        assert distance is not None
        made.append(
            [
                f"{1 - alpha:g}",
                f"{delta:g}",
                f"{epsilon:g}",
                f"{paper.samples:.0f} ± {paper.samples_halfwidth:.0f}",
                f"{float(mine['samples']):.1f}",
                f"{dpsmc_audit.exact_mean(Setting(test, law, P_PHI)).value:.1f}",
                f"{distance:+.1f}",
                f"{exact_error(Setting(test, law, P_PHI)).value:.2g}",
                "yes" if abs(distance) < 3 else "no",
            ]
        )
    assert shown == made
    assert table1.TOP == TOP


def test_figure_1_bin_by_bin() -> None:
    with (figure1.TOP / "experiments" / "results" / "figure1.csv").open() as file:
        sampled = list(csv.DictReader(file))
    law = expected_law(Adjacent(Setting(errata.PAPER, Exponential.private(errata.PAPER, 0.01), P_PHI)), bin_width=140)
    one, zero = law.probabilities()
    shown = [row for row in _rows("reproduction.md") if " to " in row[0]]
    for row, mine in zip(shown, sampled, strict=False):
        place = int(np.searchsorted(law.edges, float(mine["lo"])))
        ratio = math.log(one[place] / zero[place]) if zero[place] > 0 else math.inf
        where = "outside" if ratio > 0.01 else "on the line" if abs(ratio + 0.01) < 1e-9 else "inside"
        made = [
            f"{float(mine['lo']):.0f} to {float(mine['hi']):.0f}",
            f"{float(mine['p1']):.4f}",
            f"{float(mine['p0']):.4f}",
        ]
        assert row == [*made, f"{ratio:.4f}" if zero[place] > 0 else "inf", where]
    outside = sum(mine["outside"] == "True" for mine in sampled)
    assert f"{outside} of our {len(sampled)} sampled bins" in (TOP / "docs" / "reproduction.md").read_text()


def _deciding() -> dict[str, list[str]]:
    """The numbers that decide about each statement of the paper, computed."""
    paper, noise = errata.PAPER, Exponential.private(errata.PAPER, 0.01)
    b, drift = paper.b_up, paper.drift(P_PHI)
    free, one, zero = (exit_law(paper, P_PHI, 0.0, forced).mean for forced in ({}, {1: 1}, {1: 0}))
    late = [exit_law(paper, P_PHI, 0.0, {400: bit}).mean for bit in (1, 0)]
    laws = [errata.two_sided(mean, 0.01, paper.expected_sensitivity(P_PHI)) for mean in (one, zero, free)]
    other = Sprt(P, 0.03, 0.05)
    outputs = [
        exit_law(other, p_phi, 0.0, {1: 1}).null_probability - exit_law(other, p_phi, 0.0, {1: 0}).null_probability
        for p_phi in (0.84, 0.76)
    ]
    gap = expected_law(Adjacent(Setting(paper, noise, P_PHI)), bin_width=140).gap
    coarse = Sprt(0.9, 0.09, 0.1208)
    share = max(
        max(worst.fp.value, worst.fn.value) / alpha
        for alpha, delta, epsilon in TABLE1
        for worst in [worst_errors(Sprt(P, delta, alpha), Exponential.private(Sprt(P, delta, alpha), epsilon))]
    )
    return {
        "Lemma 2: far": [
            f"{math.exp(-b):.4f}",
            f"{exact_error(Setting(paper, NoNoise(), 0.74)).value:.4f}",
            f"{exact_error(Setting(paper, NoNoise(), P_PHI)).value:.2g}",
        ],
        "Lemma 2: mean": [f"{b * (1 - 2 * math.exp(-b)) / drift:.1f}", f"{free:.1f}"],
        "Lemma 3": [f"{paper.expected_sensitivity(P_PHI):.4f}", f"{zero - one:.4f}", f"{late[1] - late[0]:.3f}"],
        "Lemma 4": [f"{np.abs(np.log(laws[0] / laws[1])).max():.4f}"],
        "Lemma 5": [f"{laws[2][: math.ceil(free)].sum():.3f}"],
        "Lemma 6": [f"{outputs[0]:.1e}", f"{outputs[1]:.4f}"],
        "Theorem 1": [f"{gap.below:.4f}", f"{gap.mass:.5f}"],
        "Theorem 2": [f"{share:.3f}", f"{worst_errors(coarse, Exponential.private(coarse, 1000.0)).fn.value:.4f}"],
    }


def test_numbers_that_decide_about_lemmas_and_theorems() -> None:
    rows = {row[0]: row[2] for row in _rows("reproduction.md") if row[0].startswith(("Lemma", "Theorem"))}
    assert len(rows) == 9
    for name, numbers in _deciding().items():
        (cell,) = [cell for statement, cell in rows.items() if statement.startswith(name)]
        assert re.findall(r"`([^`]+)`", cell) == numbers, name
    law = marginal_law(Adjacent(Setting(errata.PAPER, Exponential.private(errata.PAPER, 0.01), P_PHI)))
    told = law.leakage(np.array([0.01]), 0.01)
    text = (TOP / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert f"`{told.profile.at(0.01):.5f}`" in text
    assert told.best is not None
    assert told.best.name in text
    assert f"`{told.best.log_ratio:.4f}`, {told.best.log_ratio / 0.01:.0f} times" in text


def test_numbers_of_the_studies() -> None:
    """In how-it-works.md, against the reference results."""
    text = (TOP / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    with dpsprt.RESULTS.open() as file:
        rows = {row["mechanism"]: row for row in csv.DictReader(file)}
    published, tuned = rows["DP-SPRT, as published"], rows["DP-SPRT, correction tuned to the error"]
    assert f"its exact epsilon is {float(published['exact_ratio']):.2f}" in text
    for name in ("DP-SPRT, a tenth of the noise", "DP-SPRT, noise scales 2/eps and 1/eps"):
        assert rows[name]["verdict"] == "violated"
    cost = [float(row["samples"]) for row in (published, tuned, rows["laplace"], rows["Algorithm 2"])]
    words = "{:.0f} samples on average as published and {:.0f} when tuned to an error of 0.05, where two-sided noise"
    words += " on the bounds takes {:.0f} and Algorithm 2 takes {:.0f}"
    assert words.format(*cost) in " ".join(text.split())
