"""Claims on the command line: claimed_delta, mu and curve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Run, runner, without_figures

EXACT = ("notion=marginal", "engine=exact", "alpha=0.05", "delta=0.03", "epsilon=0.1", "hydra.run.dir=here")
"""An audit that needs a delta of 0.033."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    without_figures(monkeypatch)
    return runner(monkeypatch, capsys, tmp_path)


def result(folder: Path) -> dict[str, Any]:
    (path,) = folder.rglob("result.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize(("claimed", "verdict"), [("0.03", "violated"), ("0.04", "certified")])
def test_a_claimed_delta_counts(run: Run, tmp_path: Path, claimed: str, verdict: str) -> None:
    code, out, err = run(*EXACT, f"claimed_delta={claimed}")
    assert (code, err) == (0, "")
    found = result(tmp_path)
    assert found["verdict"] == verdict
    assert found["claim"] == {"kind": "dp", "epsilon": 0.1, "delta": float(claimed)}
    assert (found["epsilon_claimed"], found["privacy_delta_claimed"]) == (0.1, float(claimed))
    assert found["parameters"]["claimed_delta"] == float(claimed)
    assert f"delta = {claimed}" in " ".join(out.split())


def test_a_pure_claim_is_as_it_was(run: Run, tmp_path: Path) -> None:
    code, _, _ = run(*EXACT)
    assert code == 0
    found = result(tmp_path)
    assert (found["verdict"], found["privacy_delta_claimed"]) == ("violated", 0.0)
    assert not {"claimed_delta", "mu", "curve"} & set(found["parameters"])


@pytest.mark.parametrize(("mu", "verdict"), [(0.01, "violated"), (1.0, "certified")])
def test_a_mu_is_a_claim(run: Run, tmp_path: Path, mu: float, verdict: str) -> None:
    code, out, err = run(*EXACT, f"mu={mu}")
    assert (code, err) == (0, "")
    found = result(tmp_path)
    assert found["verdict"] == verdict
    assert (found["claim"]["kind"], found["claim"]["mu"], len(found["claim"]["points"])) == ("gdp", mu, 7)
    assert found["parameters"]["mu"] == mu
    assert "Gaussian DP" in " ".join(out.split())


def test_a_curve_is_a_claim_and_an_input(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "claim.csv"
    digests = []
    for delta, verdict in ((0.02, "violated"), (0.04, "certified")):
        file.write_text(f"epsilon,delta\n0.1,{delta}\n")
        code, out, err = run(*EXACT, "curve=claim.csv")
        assert (code, err) == (0, "")
        found = result(tmp_path)  # the file is another one: the earlier result is not taken for this one's
        assert found["verdict"] == verdict
        assert found["claim"]["name"] == "claim.csv"
        assert "the curve of claim.csv" in " ".join(out.split())
        digests.append(found["provenance"]["digest"])
    assert digests[0] != digests[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [(["mu=1", "claimed_delta=0.1"], "claimed_delta and mu are different claims"),
     (["mu=1", "curve=a.csv"], "mu and curve are different claims"),
     (["claimed_delta=0.1", "curve=a.csv"], "claimed_delta and curve are different claims"),
     (["claimed_delta=1"], "claimed_delta must lie in [0, 1)"), (["claimed_delta=-0.1"], "claimed_delta must lie"),
     (["mu=0"], "mu must be positive"), (["mu=nan"], "mu must be positive"), (["curve=a.csv"], "cannot read a.csv"),
     (["curve=''"], "curve must name a file"), (["task=simulate", "mu=1"], "mu is for task=audit"),
     (["task=verify", "curve=a.csv"], "curve is for task=audit")],
)  # fmt: skip
def test_an_impossible_claim_ends_in_one_line(run: Run, options: list[str], words: str, tmp_path: Path) -> None:
    code, out, err = run(*options)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.rglob("result.json"))
