"""The reports as files: what their sentences say, that nothing is fetched, that every value of a user is text."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsmc_audit.evidence.claims import Dp
from dpsmc_audit.evidence.power import POWER
from dpsmc_audit.evidence.verdict import Verdict
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.mechanisms import Laplace, NoNoise
from dpsmc_audit.observers.expected.verdicts import FEWEST_PAIRS
from dpsmc_audit.report.command import command_line, without_folders
from dpsmc_audit.report.html import greek, render
from dpsmc_audit.report.multiples import _x_scale
from dpsmc_audit.report.page_audit import meaning, write_report
from dpsmc_audit.report.page_sweep import summary, sweep_page
from dpsmc_audit.report.scales import Frame
from dpsmc_audit.report.terminal import as_table, colourful
from dpsmc_audit.tasks.other_observers import OtherObservers
from tests.app.test_cli import run
from tests.support import reports
from tests.support.command import Run

__all__ = ["run"]

FETCHING = {"src", "srcset", "action", "formaction", "poster", "data", "background", "ping"}


class Elements(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


def check_alone(page: str) -> Elements:
    """One file that fetches nothing and names no place of this machine."""
    found = Elements(page)
    assert len(page.encode()) < 2_000_000
    for tag, attributes in found.tags:
        assert not FETCHING & set(attributes), tag
        assert "style" not in attributes or "url(" not in (attributes["style"] or "")
        target = attributes.get("href") or ""
        assert not re.match(r"[a-z]+:|/", target) or target == "data:,", target
    assert "@import" not in page
    assert "url(" not in page
    assert sum(tag == "script" for tag, _ in found.tags) <= 2
    for place in (str(Path.cwd()), str(Path.home()), "/tmp/"):
        assert place == "/" or place not in page
    return found


CASES: dict[str, tuple[Any, str, str, str]] = {
    "expected, gap": (reports.expected, "violated", "no finite value", "averaged over all other samples"),
    "expected, sampled": (
        lambda f: reports.expected(f, "monte_carlo"), "violated", "no finite value", "averaged over all other samples",
    ),
    "expected, too few": (
        lambda f: reports.expected(f, "monte_carlo", pairs=20), "consistent", "no bound found", "cannot show any",
    ),
    "expected, consistent": (
        lambda f: reports.expected(f, "monte_carlo", private(Laplace, reports.TEST, 0.1)),
        "consistent", "no bound found", "may miss a smaller one",
    ),
    "expected, certified": (
        lambda f: reports.expected(f, "exact", private(Laplace, reports.TEST, 0.1), bin_width=100),
        "certified", "at most 0.1", "Single results are not covered",
    ),
    "marginal": (reports.marginal, "violated", "at least 1.034", "can shift the odds on sample 1"),
    "marginal, sampled": (
        lambda f: reports.marginal(f, "monte_carlo", NoNoise(), runs=20_000, early=False),
        "violated", "at least 1.552", "can shift the odds on sample 1",
    ),
    "marginal, consistent": (
        lambda f: reports.marginal(f, "monte_carlo", runs=60), "consistent", "no bound found", "in nine of ten audits",
    ),
    "marginal, certified": (
        lambda f: reports.marginal(f, "exact", NoNoise(), entry=5000).found(verdict=Verdict.CERTIFIED),
        "certified", "at most 0.1", "Observers who know other samples are not covered",
    ),
    "marginal, undecided": (  # {tau = 5000, H_null} takes x_n = 1: what it needs is far below the numerical error
        lambda f: reports.marginal(f, "exact", NoNoise(), entry=5000),
        "undecided", "no bound found", "The claim surely holds with a privacy delta of",
    ),
    "informed, given": (
        lambda f: reports.informed(f, np.ones(3000, int)), "violated", "no finite value", "the given sequence",
    ),
    "informed, drawn": (reports.informed, "violated", "no finite value", "with certainty"),
    "informed, certified": (
        lambda f: reports.informed(f, np.ones(3000, int), NoNoise(), entry=3000),
        "certified", "at most 0.1", "Other sequences",
    ),
    "informed, of little probability": (
        lambda f: reports.informed(f, np.ones(3000, int), entry=3000), "violated", "no finite value", "with certainty",
    ),
    "informed, undecided": (
        lambda f: reports.informed(f, np.tile([1, 1, 1, 0], 5), entry=20), "undecided", "no bound found", "outlast it",
    ),
    "sampler": (reports.sampler, "violated", "at least 4.75", "the entry under test"),
    "sampler, consistent": (
        lambda f: reports.sampler(f, reports.same), "consistent", "no bound found", "in nine of ten audits",
    ),
    "sampler, early": (
        lambda f: reports.sampler(f, early=True), "violated", "more than 1", "than epsilon = 1 allows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_verdict_is_a_plain_and_true_sentence(name: str, tmp_path: Path) -> None:
    make, verdict, audited, phrase = CASES[name]
    made = make(tmp_path)
    found, words = made.audit, made.audit.words
    assert (found.verdict, words.audited[0]) == (verdict, audited)
    assert phrase in found.sentence
    assert found.sentence == f"{verdict}: {words.finding}"
    assert not re.search(r"violated|consistent|certified|undecided|claim (does not )?hold", words.finding)
    assert found.sentence.isascii()
    assert ("no proof" in found.sentence) == (verdict == "consistent")
    exact = made.parameters.get("engine") == "exact" or name.startswith("informed")
    assert words.sure == ("computed, not sampled" if exact else "at 99 % confidence")
    assert (words.witness is None) == (verdict != "violated")
    promise = Elements(render("guarantee.html", audit=found)).words
    assert ("at most 1 %" in promise) == (not exact)
    assert ("approximation of a mean" in promise) == ("expected" in name and not exact)
    page = check_alone(made.page())
    (heading,) = [attributes for tag, attributes in page.tags if tag == "h1"]
    assert heading == {"id": "verdict"}
    finding = words.finding[0].upper() + words.finding[1:]
    assert page.words.count(f"{verdict} Privacy audit") == 1, "the verdict once, then what was found"
    for text in (finding, *words.audited, *words.claimed, words.sure, promise):
        assert greek(" ".join(text.split())) in page.words
    assert words.witness is None or words.witness in page.words
    assert made.result["sentence"] == found.sentence
    shown = " ".join(as_table(found, [], colour=False, width=80).split())
    assert shown.startswith(f"verdict {' '.join(found.sentence.split())}"), "the terminal has the same sentence"


def test_words_rest_on_the_numbers_of_the_code() -> None:
    """What the sentences say in words."""
    assert POWER == 0.9  # in nine of ten audits
    assert FEWEST_PAIRS == 200


def test_an_exact_audit_that_cannot_tell_is_undecided(tmp_path: Path) -> None:
    for made in (reports.expected(tmp_path / "a"), reports.marginal(tmp_path / "b")):
        open_ = made.found(verdict=Verdict.UNDECIDED, witness=None, epsilon_lower=0.0)
        assert open_.audit.sentence.startswith("undecided: ")
        assert "numerical error" in open_.audit.sentence


@pytest.mark.parametrize(("epsilon", "lower"), [(0.01, 0.0100004), (0.1, 1.034), (1.0, 8.868), (0.1, 30.0)])
def test_factors_never_say_more_than_the_bound(epsilon: float, lower: float, tmp_path: Path) -> None:
    made = reports.marginal(tmp_path).found(epsilon_lower=lower)
    found = replace(made.audit, claim=replace(made.audit.claim, promise=Dp(epsilon)))
    pattern = r"at least (\S+|a million), where the claim allows about ([\d.,]+)\."
    ((factor, allowed),) = re.findall(pattern, found.sentence)
    assert (float(factor.replace(",", "")) if factor != "a million" else 1e6) <= math.exp(lower)
    assert factor != allowed


def test_a_negated_specification_turns_x_around(tmp_path: Path) -> None:
    found = reports.marginal(tmp_path).audit
    assert "it satisfies" in meaning(found, "gt")
    assert "it violates" in meaning(found, "lt")
    both = replace(found, pair=replace(found.pair, entries=(1, 5)))
    assert "samples 1 and 5 together" in both.sentence
    assert "they violate" in meaning(both, "lt")
    assert "they satisfy" in meaning(both, "gt")


def test_the_exact_verdict_stands_beside_a_sampled_one(tmp_path: Path) -> None:
    sampled = reports.expected(tmp_path, "monte_carlo")
    assert "violated, no finite epsilon holds" in sampled.audit.words.exact
    assert "Computed without sampling: violated, no finite ε holds" in Elements(sampled.page()).words
    assert reports.expected(tmp_path).audit.words.exact is None


def test_hostile_values_are_text(tmp_path: Path) -> None:
    hostile = reports.HOSTILE
    made = reports.sampler(tmp_path, name=hostile)
    made = made.found(witness=replace(made.audit.witness, what=reports.Odd(hostile)))
    origin = {hostile: hostile, "version": "1", "code": "/home/somebody/src/x.py"}
    given = made.parameters | {hostile: hostile, "sequence": f"/home/somebody/{hostile.replace('/', '')}"}
    page = made.page([hostile], [f"sampler={hostile}"], provenance=origin, parameters=given)
    found = check_alone(page)
    assert not [tag for tag, attributes in found.tags if tag == "img" or "onerror" in attributes]
    assert found.words.count(hostile) >= 6
    assert "somebody" not in page


def test_hostile_values_are_text_in_a_sweep_and_its_figures(tmp_path: Path) -> None:
    hostile, points = reports.HOSTILE, reports.estimates(tmp_path, [reports.HOSTILE, "x < 1"])
    found = check_alone(sweep_page(tmp_path, hostile, points, [f"{hostile}: in /home/somebody/x.py"], [hostile]))
    assert not [tag for tag, attributes in found.tags if tag in ("img", "b") or "onerror" in attributes]
    assert found.words.count(hostile) >= 4
    assert "somebody" not in found.words
    assert [a["href"] for tag, a in found.tags if tag == "a"] == ["%3Cb%3E0/result.json", "%3Cb%3E1/result.json"]


def test_a_run_writes_its_report_before_its_result(run: Run, tmp_path: Path) -> None:
    small = ["engine=exact", "notion=marginal", "epsilon=0.1", "delta=0.03", "alpha=0.05"]
    code, out, err = run(*small, "hydra.run.dir=here")
    assert (code, err) == (0, "")
    folder = tmp_path / "here"
    report, result = folder / "report.html", folder / "result.json"
    assert report.stat().st_mtime_ns <= result.stat().st_mtime_ns
    found = check_alone(report.read_text(encoding="utf-8"))
    links = [a["href"] for tag, a in found.tags if tag == "a"]
    assert len(links) == 6
    assert all((folder / str(link)).exists() for link in links)
    assert f"python -m dpsmc_audit {' '.join(small)}" in found.words
    assert "hydra" not in found.words
    curves = list(csv.DictReader((folder / "observers.csv").read_text().splitlines()))
    assert {row["observer"] for row in curves} == {"expected", "informed"}
    assert "report.html" in out


def test_a_sweep_links_its_points(run: Run, tmp_path: Path) -> None:
    code, _, _ = run("-m", "task=simulate", "engine=exact", "alpha=0.01,0.7,0.05", "epsilon=0.5", "hydra.sweep.dir=s")
    assert code == 1
    found = check_alone((tmp_path / "s" / "report.html").read_text(encoding="utf-8"))
    assert "1 point failed and is named below" in found.words
    assert "alpha must lie in (0, 0.5), got 0.7" in found.words
    links = [str(a["href"]) for tag, a in found.tags if tag == "a"]
    assert [link for link in links if "/" in link] == ["0/result.json", "2/result.json"]
    assert all((tmp_path / "s" / link).exists() for link in links)
    assert "python -m dpsmc_audit -m task=simulate engine=exact alpha=0.01,0.7,0.05 epsilon=0.5" in found.words


def test_a_report_is_written_and_named(tmp_path: Path) -> None:
    made = reports.sampler(tmp_path)
    assert write_report(tmp_path, made.audit, made.others, made.result, [], [])[0] == "report.html"
    assert (tmp_path / "report.html").exists()


def test_a_page_that_fails_does_not_cost_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = reports.sampler(tmp_path)
    assert write_report(tmp_path, made.audit, made.others, {"parameters": None}, [], []) == []
    assert "warning: report.html could not be made: AttributeError" in capsys.readouterr().err


def test_the_observers_left_out_are_named(tmp_path: Path) -> None:
    others = OtherObservers(left_out={"informed": "it would take more than a second here"})
    page = replace(reports.marginal(tmp_path), others=others).page()
    assert "Informed (all others known) is left out: it would take more than a second here." in Elements(page).words


def test_many_bins_are_joined_for_the_picture(tmp_path: Path) -> None:
    made = reports.expected(tmp_path, bin_width=1)
    rows = (tmp_path / "histogram.csv").read_text().count("\n") - 1
    found = Elements(made.page())
    drawn = [a for tag, a in found.tags if tag == "g" and a.get("class") == "bin"]
    assert rows > 1000
    assert len(drawn) <= 2 * 101
    assert "histogram.csv has them all" in found.words


def test_a_sweep_in_one_sentence() -> None:
    rows: list[dict[str, Any]] = [{"task": "audit", "verdict": v} for v in ("violated", "violated", "consistent")]
    assert summary(rows, 0) == "Of 3 audits 2 refute the privacy claim and 1 find no violation, which is no proof."
    assert summary(rows[:2], 2).startswith("All 2 audits refute the privacy claim. 2 points failed")
    rows = [{"task": "simulate", "samples_exact": x, "distance": d} for x, d in ((100.0, 1.0), (200.0, -4.0))]
    assert summary(rows, 0).endswith("1 of the paper's 2 rows agree with the exact means to 3 of its standard errors.")


def test_the_command_and_texts_name_no_folder() -> None:
    text, shortened = command_line(["notion=informed", "sequence=/home/me/my bits.txt", "hydra.run.dir=/x"])
    assert (text, shortened) == ("python -m dpsmc_audit notion=informed 'sequence=my bits.txt'", True)
    assert command_line(["alpha=0.01,0.02"], sweep=True)[0] == "python -m dpsmc_audit -m alpha=0.01,0.02"
    assert command_line(["+sweep=table1"], sweep=True)[0] == "python -m dpsmc_audit +sweep=table1"
    formula = 'formula="always[0, 1](a /b/ c < 1)"'
    assert formula in command_line([formula])[0]
    assert without_folders(f"in {Path.cwd()}/x.py") == "in …/x.py"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(stream: io.StringIO, environment: dict[str, str], wanted: bool) -> None:
    assert colourful(stream, environment) is wanted


@pytest.mark.parametrize("name", ["expected, gap", "marginal, consistent", "informed, drawn", "sampler"])
def test_the_table_on_the_terminal_is_aligned(name: str, tmp_path: Path) -> None:
    found = CASES[name][0](tmp_path).audit
    plain = as_table(found, ["report.html", "result.json"], colour=False, width=80)
    lines = plain.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert {len(line) - len(line[15:]) for line in lines} == {15}
    assert all(line[13:15] == "  " for line in lines)
    names = [line[:13].strip() for line in lines if line[:13].strip()]
    assert names[:3] == ["verdict", "epsilon", "privacy delta"]
    assert names[-3:] == ["method", "confidence", "files"]
    assert ("witness" in names) == (found.verdict == "violated")
    assert plain.isascii()
    painted = as_table(found, ["report.html", "result.json"], colour=True, width=80)
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == plain
    assert painted != plain


@example(values=[9.999999999545455e299])  # a tick that rounding puts beyond the end
@given(values=st.lists(st.floats(-1e300, 1e300) | st.integers(2**64 - 3, 2**64 - 1).map(float), min_size=1, max_size=4))
def test_any_value_of_a_key_has_its_place_in_the_frame(values: list[float]) -> None:
    """One large value too: a seed has up to 20 digits."""
    frame = Frame(50.0, 350.0, 14.0, 200.0)
    x = _x_scale(values, frame)
    assert all(frame.left <= x(value) <= frame.right for value in (*values, *x.ticks()))


def test_a_terminal_is_given_no_control_characters(tmp_path: Path) -> None:
    made = reports.sampler(tmp_path)
    found = made.found(witness=replace(made.audit.witness, what=reports.Odd("\x1b[2Jtau"))).audit
    assert "\x1b" not in as_table(found, [], colour=False)
