"""Tasks and observers from outside the package: they get a result, a table, a page and figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.test_cli import run
from tests.report.test_report_html import check_alone
from tests.support.command import Run, result_in

__all__ = ["run"]

OWN = """
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from dpsmc_audit.observers.base import PairAudit
from dpsmc_audit.observers.marginal.audit import Marginal


@dataclass(frozen=True, eq=False)
class Columns:
    odd: object


@dataclass(frozen=True, eq=False, kw_only=True)
class EarlyAudit(PairAudit):
    observer: ClassVar[str] = "early <b>"

    @property
    def sentence(self):
        return "My own words about <b>."


class Early:
    name, unit, amount = "early", "laws", 1
    kind, keeps = EarlyAudit, False

    def audit(self, pair, claim, sampling):
        found = Marginal().audit(pair, replace(claim, engine="exact"), sampling)
        kept = {part.name: getattr(found, part.name) for part in fields(PairAudit)}
        histogram = found.histogram if self.keeps else Columns(found.histogram.lo)
        return self.kind(**(kept | {"histogram": histogram, "claim": claim}))


class Silent(PairAudit):
    observer: ClassVar[str] = "silent"


class Quiet(Early):
    kind, keeps = Silent, True


class Wrong:
    name = "wrong"


class Nothing(Early):
    def audit(self, pair, claim, sampling):
        return 3


@dataclass(frozen=True)
class Doubled:
    value: float
    notes: tuple = ("mind the gap",)

    def as_dict(self):
        return {"doubled": self.value, "steps": 7, "list": [1, 2]}


def doubled(config, execution):
    return Doubled(2.0 * config.epsilon)


def number(config, execution):
    return 3
"""

SMALL = ("engine=exact", "epsilon=0.1", "delta=0.03", "alpha=0.05")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"own_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("kind", ["Early", "Quiet"])
def test_an_observer_from_outside_has_a_page_a_table_and_figures(run: Run, tmp_path: Path, own: str, kind: str) -> None:
    """One with words and columns of its own, and one that leaves both to the package."""
    code, out, err = run("notion=python", f"notion.target={own}:{kind}", *SMALL, "hydra.run.dir=a")
    assert (code, err) == (0, "")
    result, folder = result_in(tmp_path / "a"), tmp_path / "a"
    assert (result["verdict"], result["parameters"]["notion_target"]) == ("violated", f"{own}:{kind}")
    page = check_alone((folder / "report.html").read_text(encoding="utf-8"))
    sentence = (
        "My own words about <b>." if kind == "Early" else "what this observer sees can shift the odds on sample 1"
    )
    assert sentence in " ".join(out.split())
    assert sentence[1:] in page.words  # it begins with a capital there
    assert sentence in result["sentence"]
    assert result["observer"] == ("early <b>" if kind == "Early" else "silent")
    assert {"Marginal (one result)", "Privacy profile"} <= set(page.text)
    assert (folder / "profile.png").exists()
    assert (folder / "histogram.png").exists() == (kind == "Quiet")
    assert (folder / "histogram.csv").exists()


def test_a_sweep_over_an_observer_from_outside_has_its_table(run: Run, tmp_path: Path, own: str) -> None:
    words = ("-m", "notion=python", f"notion.target={own}:Quiet", *SMALL[:1], *SMALL[2:], "epsilon=0.1,0.2")
    code, out, err = run(*words, "hydra.sweep.dir=s")
    assert (code, err) == (0, "")
    assert [line.split()[3] for line in out.splitlines()[2:4]] == ["violated", "violated"]
    assert "All 2 audits refute the privacy claim." in (tmp_path / "s" / "report.html").read_text(encoding="utf-8")


def test_a_task_from_outside_is_run_and_swept(run: Run, tmp_path: Path, own: str) -> None:
    code, out, err = run("task=python", f"task.target={own}:doubled", "epsilon=0.2", "hydra.run.dir=a")
    assert (code, err) == (0, "warning: mind the gap\n")
    result = result_in(tmp_path / "a")
    assert (result["doubled"], result["provenance"]["steps"], result["warnings"]) == (0.4, 7, ["mind the gap"])
    assert result["parameters"]["task_target"] == f"{own}:doubled"
    assert out.splitlines()[0].split() == ["doubled"]
    code, out, _ = run("-m", "task=python", f"task.target={own}:doubled", "epsilon=0.1,0.2", "hydra.sweep.dir=s")
    assert code == 0
    assert out.splitlines()[2].split()[-1] == "0.2"
    assert (tmp_path / "s" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("notion=python", "notion=python needs notion.target=package.module:name"),
        ("task=python", "task=python needs task.target=package.module:name"),
        ("notion=marginal notion.target=x:y", "notion.target is for notion=python, got notion=marginal"),
        ("notion=python notion.target=OWN:Missing", "notion.target=OWN:Missing: OWN has no Missing"),
        ("notion=python notion.target=OWN:Wrong", "is no observer: it has no unit, amount, audit"),
        ("notion=python notion.target=OWN:Doubled", "called without arguments it raised TypeError"),
        ("notion=python notion.target=OWN:Nothing", "OWN:Nothing must return a PairAudit, got int"),
        ("task=python task.target=OWN:number", "task.target=OWN:number must return an object with as_dict()"),
        ("task=python task.target=no_module:x", "cannot import no_module"),
    ],
)
def test_what_is_no_task_or_observer_is_refused_in_one_line(run: Run, own: str, words: str, message: str) -> None:
    code, out, err = run(*words.replace("OWN", own).split(), *SMALL)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert message.replace("OWN", own) in line
