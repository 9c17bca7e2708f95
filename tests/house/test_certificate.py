"""Certificates: observers write them, the checker verifies them by its own numbers, and a changed one is refused."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit import (
    Certificate,
    Dp,
    Expected,
    Exponential,
    Informed,
    Laplace,
    Law,
    NoNoise,
    PairAudit,
    Promise,
    Setting,
    Sprt,
    Truncated,
    audit,
    certificate,
    given_sequence,
    marginal_law,
)
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.observers.expected.law import expected_law
from dpsmc_audit.setting import Adjacent
from tests.app.test_cli import run
from tests.support.command import Run, without_figures
from tests.support.documents import TOP
from tests.support.strategies import examples, sprts

__all__ = ["run"]

THEOREM_1 = TOP / "experiments" / "certificates" / "theorem1.json"

TEST = Sprt(0.6, 0.1, 0.1)
SEQUENCE = np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])


def made(
    epsilon: float | Promise, mechanism: Mechanism, observer: Any, p_phi: float = 0.8, **options: Any
) -> PairAudit:
    found: PairAudit = audit(Setting(TEST, mechanism, p_phi), epsilon, observer, engine="exact", **options)
    return found


NOISE = Exponential.private(TEST, 0.5)
TWO_SIDED = Laplace(2.0, TEST.step_sum / 0.5)
AUDITS: dict[str, Callable[[], PairAudit]] = {
    "expected": lambda: made(0.5, NOISE, Expected(bin_width=1)),
    "expected, both possible": lambda: made(0.3, Laplace(0.5, TEST.step_sum / 0.5), Expected(bin_width=3)),
    "expected, truncated": lambda: made(0.5, Truncated(1.0, 1.0, 0.2), Expected(bin_width=2), p_phi=0.3),
    "expected, none": lambda: made(0.5, NoNoise(), Expected(bin_width=1)),
    "marginal": lambda: made(0.5, NOISE, "marginal"),
    "marginal, two entries": lambda: made(0.5, NOISE, "marginal", entry=(1, 3)),
    "marginal, delta": lambda: made(Dp(0.1, 0.05), TWO_SIDED, "marginal"),
    "marginal, none": lambda: made(0.5, NoNoise(), "marginal", p_phi=0.3),
    "informed": lambda: made(0.5, NOISE, Informed(sequence=SEQUENCE), entry=2),
    "informed, delta": lambda: made(Dp(0.1, 0.2), TWO_SIDED, Informed(sequence=SEQUENCE)),
    "certified": lambda: made(0.5, TWO_SIDED, Expected(bin_width=30)),
    "certified, below p": lambda: made(0.5, TWO_SIDED, Expected(bin_width=30), p_phi=0.3),
    "certified, with room": lambda: made(0.8, TWO_SIDED, Expected(bin_width=30)),
    "certified, delta": lambda: made(Dp(0.4, 0.2), TWO_SIDED, Expected(bin_width=30)),
    "certified, on a lattice": lambda: audit(
        Setting(Sprt(0.5, 0.1, 0.1), Laplace(3.0, Sprt(0.5, 0.1, 0.1).step_sum / 0.5), 0.75),
        0.5,
        Expected(bin_width=40),
        engine="exact",
    ),
}


@cache
def text_of(name: str) -> str:
    found = AUDITS[name]().certificate
    assert found is not None
    return found.text


def signed(content: dict[str, Any]) -> str:
    """A certificate whose digest fits, whatever it says: for what the checker's own numbers refuse."""
    content["digest"] = certificate.digest(json.loads(json.dumps(content), parse_float=Decimal))
    return json.dumps(content)


def refused(text: str) -> bool:
    try:
        certificate.check(text)
    except (certificate.RejectedError, certificate.UnreadableError):
        return True
    return False


# --- what is written is verified ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AUDITS)
def test_every_observer_writes_what_is_verified(name: str) -> None:
    said = certificate.check(text_of(name))
    assert (" holds " if name.startswith("certified") else " fails on ") in said


@pytest.mark.processor
def test_theorem_1_fails_at_the_papers_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(THEOREM_1.read_text())
    assert certificate.main([str(THEOREM_1)]) == 0
    assert capsys.readouterr().out.startswith(
        "verified: epsilon=0.02, delta=0 fails on average of tau < 420: P_1 from 0.00921"
    )
    mechanism = {"name": "exponential", "rate": pytest.approx(0.01 / Sprt(0.73, 0.01, 0.01).step_sum, rel=1e-15)}
    paper = {"p": 0.73, "delta": 0.01, "fp": 0.01, "fn": 0.01, "mechanism": mechanism, "p_phi": 0.84, "entries": [1]}
    assert content["setting"] == paper
    assert content["p1"][0] > 0.0092
    assert content["p0"] == [0, 0]


def test_the_command_writes_it_beside_the_result(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_figures(monkeypatch)
    words = ["p=0.6", "delta=0.1", "alpha=0.1", "epsilon=0.5", "p_phi=0.8", "notion=marginal", "hydra.run.dir=a"]
    code, _, err = run("engine=exact", *words)
    assert code == 0, err
    assert " fails on tau " in certificate.check((tmp_path / "a" / "certificate.json").read_text())


def test_sampled_audits_and_unknown_laws_have_none() -> None:
    assert made(0.5, Law.of("gamma", a=2.0, scale=1.0), "marginal").certificate is None
    exact = made(0.5, NOISE, "marginal")
    assert replace(exact, claim=replace(exact.claim, engine="monte_carlo")).certificate is None
    assert made(20.0, TWO_SIDED, "marginal").certificate is None  # no event is known to break it


def test_the_checker_stands_alone(tmp_path: Path) -> None:
    """It imports numpy and the standard library only, and runs where there is no package around it."""
    path = TOP / "dpsmc_audit" / "certificate.py"
    found = {name.split(".")[0] for node in ast.walk(ast.parse(path.read_text())) for name in _imported(node)}
    assert found - sys.stdlib_module_names == {"numpy"}
    (tmp_path / "alone.py").write_text(path.read_text())
    (tmp_path / "file.json").write_text(text_of("marginal"))
    command = [sys.executable, "-I", "alone.py", "file.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "verified:", "")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}"]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def test_a_certificate_is_saved(tmp_path: Path) -> None:
    Certificate(text_of("marginal")).save(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == text_of("marginal")


# --- what is changed is refused -------------------------------------------------------------------------------------


NUMBER = re.compile(r"(?<![\w.\"])-?\d+(?:\.\d+)?(?:e-?\d+)?")


@pytest.mark.parametrize("name", ["expected", "marginal", "informed", "certified"])
def test_any_digit_that_changes_is_noticed(name: str) -> None:
    """The last digit of every number, in both directions. The digest notices what no probability depends on."""
    text = text_of(name)
    places = [found for found in NUMBER.finditer(text) if text[: found.start()].count('"') % 2 == 0]
    assert len(places) > 10
    for found in places:
        value = Decimal(found.group())
        unit = Decimal((0, (1,), value.as_tuple().exponent))  # type: ignore[arg-type]
        for moved in (value - unit, value + unit):
            changed = f"{text[: found.start()]}{moved}{text[found.end() :]}"
            with pytest.raises((certificate.RejectedError, certificate.UnreadableError)):
                certificate.check(changed)


VIOLATED = [name for name in AUDITS if not name.startswith("certified")]


@pytest.mark.parametrize("name", VIOLATED)
def test_stated_ends_are_refused_if_they_move_by_a_unit(name: str) -> None:
    """By the checker's own ends, with a digest that fits: inwards they claim too much, outwards they are not those."""
    for bit in ("p1", "p0"):
        for end, sign in ((0, 1), (1, -1), (0, -1)):
            content = json.loads(text_of(name))
            value = Decimal(repr(content[bit][end]))
            if value in (0, 1):
                continue
            unit = Decimal(1).scaleb(value.adjusted() - certificate.DIGITS + 1)
            content[bit][end] = float(value + sign * unit)
            assert refused(signed(content)), (bit, end, sign)


@pytest.mark.parametrize("name", VIOLATED)
def test_another_event_and_the_other_direction_are_refused(name: str) -> None:
    content = json.loads(text_of(name))
    low, high, decision = content["event"]["ranges"][0]
    others: list[list[Any]] = [[low, None if high is None else high + 1, decision]]
    others += [[high, None, decision]] if high is not None else [[None, low, decision]]
    others += [[low, high, 1 - decision]] if decision is not None else []
    for ranges in others:
        assert refused(signed({**content, "event": {**content["event"], "ranges": [ranges]}})), ranges
    flipped = {"likelier": 1 - content["event"]["likelier"], "ranges": content["event"]["ranges"]}
    assert refused(signed({**content, "event": flipped}))
    assert refused(signed({**content, "p1": content["p0"], "p0": content["p1"]}))
    twice = {**content["event"], "ranges": 2 * content["event"]["ranges"]}
    assert refused(signed({**content, "event": twice}))


@pytest.mark.parametrize("name", ["expected, both possible", "marginal, two entries", "marginal, delta", "certified"])
def test_every_parameter_is_refused_if_it_changes(name: str) -> None:
    """By the checker's own numbers, with a digest that fits. An average can reach its edge at the same L after a change
    of a hundredth: the statement is then true, and only the digest tells.
    """
    content = json.loads(text_of(name))
    for key, value in content["setting"].items():
        for other in _others(key, value):
            assert refused(signed({**content, "setting": {**content["setting"], key: other}})), (key, other)


def _others(key: str, value: Any) -> list[Any]:
    if key == "mechanism":
        moved = [{**value, name: 1.01 * number} for name, number in value.items() if name != "name"]
        return [*moved, {"name": "exponential", "rate": 0.7}, {"name": "gamma", "a": 2.0}]
    if key == "entries":
        return [[40], [*value, 7], [], [0], [3, 1]]
    return [1.05 * value, 2.0]


def test_other_samples_of_a_sequence_are_refused() -> None:
    content = json.loads(text_of("informed"))
    sequence = content["setting"]["sequence"]
    for other in ("0" + sequence[1:], sequence[1:], "", "2" + sequence[1:]):
        assert refused(signed({**content, "setting": {**content["setting"], "sequence": other}})), other


def test_claims_that_hold_are_not_refuted() -> None:
    content = json.loads(text_of("marginal"))
    for claim in ({"epsilon": 50.0, "delta": 0.0}, {"epsilon": 0.5, "delta": 0.5}, {"epsilon": -1.0, "delta": 0.0}):
        assert refused(signed({**content, "claim": claim}))
    content = json.loads(text_of("certified"))
    assert refused(signed({**content, "claim": {"epsilon": 0.499, "delta": 0.0}}))


@pytest.mark.parametrize("step", [-1e-7, 1e-7])
@pytest.mark.parametrize("bit", ["L1", "L0"])
def test_edges_elsewhere_are_refused(bit: str, step: float) -> None:
    content = json.loads(text_of("certified"))
    content["edges"][2][bit] = [end + step for end in content["edges"][2][bit]]
    with pytest.raises(certificate.RejectedError, match=r"does not reach|stated from"):
        certificate.check(signed(content))


def test_a_bin_that_is_no_shift_of_the_other_is_not_certified() -> None:
    """The L of one member a little off, as if its staircase were another: the ratio on the line is not proven."""
    content = json.loads(text_of("certified"))
    for bit in ("L1", "L0"):
        content["edges"][2][bit][0] -= 0.05  # a wider range of L, true but of several excesses
    with pytest.raises(certificate.RejectedError, match="not proven to hold"):
        certificate.check(signed(content))


# --- files that are none --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '"certificate"',
        "null",
        "[" * 100_000,
        '{"certificate": "another"}',
        '{"certificate": "dpsmc_audit", "schema": 2}',
        '{"certificate": "dpsmc_audit", "schema": 1}',
        '{"certificate": "dpsmc_audit", "schema": NaN}',
        '{"certificate": {"a": 1}, "schema": 1, "digest": []}',
        None,
        "cut",
    ],
)
def test_other_files_get_one_line(text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.json"
    if text is not None:
        path.write_text(text_of("marginal")[:-40] if text == "cut" else text)
    assert certificate.main([str(path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), len(err) < 300) == ("", 1, True)


def test_usage_and_bytes_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for arguments in ([], ["a", "b"], [str(tmp_path / "bytes")], [str(tmp_path)]):
        assert certificate.main(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("key", ["verdict", "observer", "setting", "claim", "event", "p1", "strata"])
@pytest.mark.parametrize("value", [None, [], {}, "x", -1, 1e300])
def test_nonsense_is_refused_without_a_traceback(key: str, value: Any) -> None:
    assert refused(signed({**json.loads(text_of("marginal")), key: value}))


def test_a_changed_file_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.json"
    path.write_text(text_of("marginal").replace('"p_phi": 0.8', '"p_phi": 0.81'))
    assert certificate.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("rejected: its digest does not fit")


# --- the checker and the engine -------------------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[Adjacent, dict[str, Any]]:
    """Small settings with a law that the checker knows, and how a certificate writes them."""
    test = draw(sprts(finest=0.05))
    scale = test.step_sum / draw(st.floats(0.3, 3.0))
    kinds: list[Mechanism] = [
        NoNoise(),
        Exponential(1.0 / scale),
        Laplace(draw(st.floats(-1.0, 3.0)) * scale, scale),
        Truncated(draw(st.floats(-1.0, 3.0)) * scale, scale, draw(st.floats(0.0, 0.9)) * test.no_room),
    ]
    mechanism = draw(st.sampled_from(kinds))
    p_phi = draw(st.sampled_from([test.p + 1.2 * test.delta, test.p - 1.2 * test.delta, test.p + 0.3 * test.delta]))
    entries = draw(st.sampled_from([(1,), (2,), (1, 3)]))
    numbers = {name: getattr(mechanism, name) for name in certificate.NUMBERS[mechanism.name].split()}
    p_phi = min(max(p_phi, 0.01), 0.99)
    setting = {"p": test.p, "delta": test.delta, "fp": test.fp, "fn": test.fn, "entries": list(entries)}
    setting |= {"mechanism": {"name": mechanism.name, **numbers}, "p_phi": p_phi}
    return Adjacent(Setting(test, mechanism, p_phi), entries), setting


def ends_of(setting: dict[str, Any], observer: str, ranges: list[Any], bit: int) -> tuple[float, float]:
    content = {"setting": setting, "observer": observer, "event": {"ranges": ranges}, "strata": 32}
    return certificate.enclose(content, bit)


@settings(max_examples=examples(40), deadline=None)
@given(cases(), st.integers(1, 9), st.integers(1, 5), st.sampled_from([None, 0, 1]))
def test_marginal_ends_meet_the_engines(
    case: tuple[Adjacent, dict[str, Any]], first: int, length: int, decision: int | None
) -> None:
    pair, setting = case
    law = marginal_law(pair)
    off = law.error + law.p1.shape[1] * 2.0**-52
    ranges = [[None, first + length, decision], [first, first + length, decision]]
    ranges += [[first, None, None]] if decision is None else []
    for low, high, _ in ranges:
        for bit, p in ((1, law.p1), (0, law.p0)):
            rows = p.sum(axis=0) if decision is None else p[1 - decision]
            known = float(rows[slice((low or 1) - 1, None if high is None else high - 1)].sum())
            ends = ends_of(setting, "marginal", [[low, high, decision]], bit)
            assert ends[0] - 2.0 * off <= known <= ends[1] + 2.0 * off
            assert 0.0 <= ends[0] <= ends[1] <= 1.0


@settings(max_examples=examples(24), deadline=None)
@given(cases(), st.integers(1, 5))
def test_expected_ends_meet_the_engines(case: tuple[Adjacent, dict[str, Any]], width: int) -> None:
    pair, setting = case
    law = expected_law(pair, width)
    place = min(3, law.edges.size - 1)
    for bit, tails in ((1, law.one), (0, law.zero)):
        low, high = ends_of(setting, "expected", [[None, float(law.edges[place]), None]], bit)
        assert low <= 1.0 - tails.low[place] + 1e-15
        assert 1.0 - tails.high[place] <= high + 1e-15
        assert high - low < 1e-4 or setting["mechanism"]["name"] == "none"


@settings(max_examples=examples(80), deadline=None)
@given(cases(), st.lists(st.integers(0, 1), min_size=4, max_size=40))
def test_informed_ends_meet_the_engines(case: tuple[Adjacent, dict[str, Any]], bits: list[int]) -> None:
    pair, setting = case
    law = given_sequence(pair.setting.test, pair.setting.mechanism, np.array(bits, np.int8), pair.entries)
    written, engine = {**setting, "sequence": "".join(map(str, bits))}, law.ends.kept(law.ends.shown)
    for bit, (least, most) in ((1, engine.one), (0, engine.zero)):
        for k in np.flatnonzero(law.decision >= 0)[:12].tolist():
            tau = int(law.tau[k])
            low, high = ends_of(written, "informed", [[tau, tau + 1, int(law.decision[k])]], bit)
            assert low <= most[k]
            assert least[k] <= high
            assert high - low < 1e-9
