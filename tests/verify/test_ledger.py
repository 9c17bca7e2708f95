"""The ledger of releases: it counts attempts about the same people, and stops at the budget."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.mechanisms import Laplace
from dpsmc_audit.models.recorded import Recorded
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify import release
from dpsmc_audit.verify.bound import proven_bound
from dpsmc_audit.verify.ledger import Ledger, file_digest
from dpsmc_audit.verify.run import Outcome
from dpsmc_audit.verify.statement import privacy_statement
from tests.support.command import Run, result_in, runner
from tests.support.documents import TOP
from tests.verify.test_verify import _stops

ONE = ("task=verify", "delta=0.1", "alpha=0.05", "epsilon=0.5", "model=recorded")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    return runner(monkeypatch, capsys, tmp_path)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Statements are computed once, and runs are noted instead of done."""
    stated, noted = dict[str, Any](), list[Any]()
    state = privacy_statement

    def statement(*arguments: Any, **options: Any) -> dict[str, Any]:
        key = f"{arguments} {options}"
        if key not in stated:
            stated[key] = state(*arguments, **options)
        return dict(stated[key])

    def sealed(*arguments: Any) -> Outcome:
        noted.append(arguments)
        return Outcome(17, "H_null")

    monkeypatch.setattr(release, "privacy_statement", statement)
    monkeypatch.setattr(release, "sealed", sealed)
    return noted


def two_files(folder: Path) -> tuple[Path, Path]:
    """Data, and the same data with one changed sample."""
    bits = np.random.default_rng(1).random(500) < 0.9
    files = folder / "data.csv", folder / "other.csv"
    for path in files:
        path.write_text("".join(f"{bit:d}\n" for bit in bits))
        bits[17] = not bits[17]
    return files


def test_two_files_that_differ_in_one_sample_share_a_budget(quick: list[Any], tmp_path: Path) -> None:
    """200 attempts, on one file and the other in turn: three fit into the budget."""
    files, ledger = two_files(tmp_path), Ledger(tmp_path / "releases", budget=0.03)
    test, taus, refusals = Sprt(0.5, 0.01, 0.05), list[int](), list[str]()
    law = private(Laplace, test, 0.01)
    for attempt in range(200):
        path = files[attempt % 2]
        record = partial(ledger.record, data=file_digest(path))
        try:
            taus.append(release.verify(test, law, Recorded(f"{path}"), epsilon=0.01, record=record)["tau"])
        except ParameterError as error:
            refusals.append(f"{error}")
    refused = "ledger: 3 releases took epsilon = 0.03 of a budget of 0.03, another 0.01 is too much"
    assert (taus, refusals) == ([17] * 3, [refused] * 197)
    assert len(quick) == 3  # no run was started after that
    assert [ledger.attempts(file_digest(path) or b"") for path in files] == [2, 1]


def test_the_command_stops_at_the_budget(run: Run, quick: list[Any], tmp_path: Path) -> None:
    files = two_files(tmp_path)
    ledger = ("ledger=releases", "budget=0.02", "mechanism=laplace", "epsilon=0.01", "delta=0.01", "p=0.5")
    for attempt, expected in enumerate((0, 0, 2, 2)):
        code, _, err = run(*ONE, *ledger, f"model.path={files[attempt % 2]}", f"hydra.run.dir={attempt}")
        assert (code, "another 0.01 is too much" in err) == (expected, expected == 2)
    assert len(quick) == len(list(tmp_path.rglob("result.json"))) == 2


def test_a_release_says_what_all_of_them_leak_together(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1\n" * 500)
    alone = private(Laplace, Sprt(0.73, 0.1, 0.05), 0.5)
    for attempt in (1, 2):
        given = ("mechanism=laplace", "model.path=data.csv", "ledger=releases", f"hydra.run.dir={attempt}")
        code, out, _ = run(*ONE, *given)
        assert code == 0
        found = result_in(tmp_path / f"{attempt}")
        delta = found["privacy"]["at_most"]["delta_at_epsilon"]
        assert 0.0 < delta < 0.5, alone
        spent = {"releases": attempt, "epsilon": 0.5 * attempt, "delta": pytest.approx(attempt * delta), "budget": None}
        assert found["ledger"] == spent
        assert f"the {attempt} releases in this ledger together leak at most" in out
        assert "releases" not in found["parameters"]
        assert "ledger" not in found["parameters"]
    left = (tmp_path / "releases").read_text() + (tmp_path / "1" / "result.json").read_text()
    assert "data.csv" not in left


def test_what_has_no_proven_bound_is_not_counted(run: Run, quick: list[Any], tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1\n" * 500)
    code, _, err = run(*ONE, "mechanism=none", "model.path=data.csv", "ledger=releases")
    assert (code, len(quick)) == (2, 0)
    assert err.startswith("error: ledger: nothing is proven for one release with these parameters")
    assert not (tmp_path / "releases").exists()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["task=simulate", "ledger=x"], "ledger is for task=verify"),
        (["task=verify", "budget=1"], "budget needs ledger=PATH"),
        (["task=verify", "ledger=x", "budget=-1"], "budget must be positive"),
        (["task=verify", "ledger=x", "budget=nan"], "budget must be positive"),
        (["task=verify", "ledger=x", "insecure=true", "seed=1"], "ledger has no meaning with insecure=true"),
        (["task=verify", "ledger=''"], "ledger must name a file"),
        (["task=verify", "ledger=nowhere/x"], "ledger: there is no folder nowhere"),
        (["task=verify", "ledger=/dev/null"], "is not a regular file"),
        (["task=verify", "ledger=."], "ledger"),
    ],
)
def test_ledgers_that_cannot_be_are_refused(run: Run, quick: list[Any], keys: list[str], words: str) -> None:
    code, _, err = run(*keys, "delta=0.1", "alpha=0.05", "epsilon=0.5")
    assert (code, len(quick), len(err.splitlines())) == (2, 0, 1)
    assert words in err


def test_a_budget_is_set_once(tmp_path: Path) -> None:
    Ledger(tmp_path / "a", 1.0).record(0.5, 0.1, None)
    with pytest.raises(ParameterError, match=r"its first release set budget=1\.0, got budget=2\.0"):
        Ledger(tmp_path / "a", 2.0).record(0.1, 0.1, None)
    assert Ledger(tmp_path / "a").record(0.5, 0.1, None).budget == 1.0
    with pytest.raises(ParameterError, match=r"another 0\.1 is too much"):
        Ledger(tmp_path / "a").record(0.1, 0.1, None)


def test_deltas_that_add_up_to_one_are_no_bound(tmp_path: Path) -> None:
    Ledger(tmp_path / "a", 9.0).record(0.5, 0.6, None)
    with pytest.raises(ParameterError, match=r"deltas add up to 1\.2, which is no bound"):
        Ledger(tmp_path / "a").record(0.5, 0.6, None)
    Ledger(tmp_path / "b").record(0.5, 0.6, None)
    assert Ledger(tmp_path / "b").record(0.5, 0.6, None).words.startswith("no bound is left for the 2 releases")


def test_sums_of_decimals_fit_into_their_budget(tmp_path: Path) -> None:
    for _ in range(10):
        Ledger(tmp_path / "a", 1.0).record(0.1, 0.01, None)
    with pytest.raises(ParameterError):
        Ledger(tmp_path / "a").record(1e-6, 0.01, None)


CHANGES: dict[str, Callable[[str], str]] = {
    "a number": lambda text: text.replace('"epsilon": 0.1', '"epsilon": 0.01', 1),
    "a line is gone": lambda text: "".join(text.splitlines(keepends=True)[1:]),
    "lines in another order": lambda text: "".join(text.splitlines(keepends=True)[::-1]),
    "no ledger": lambda text: "1\n",
    "bytes": lambda text: "\0\0\n",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_ledger_is_refused(tmp_path: Path, change: str) -> None:
    ledger = Ledger(tmp_path / "a", 1.0)
    for _ in range(3):
        ledger.record(0.1, 0.01, b"data")
    ledger.path.write_text(CHANGES[change](ledger.path.read_text()))
    with pytest.raises(ParameterError, match=r"ledger: line \d of a was changed"):
        ledger.record(0.1, 0.01, b"data")


def test_a_ledger_that_was_removed_is_missed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a", 1.0)
    ledger.record(0.1, 0.01, None)
    key = (tmp_path / "a.key").read_bytes()
    (tmp_path / "a.key").unlink()
    with pytest.raises(ParameterError, match=r"a\.key is missing"):
        ledger.record(0.1, 0.01, None)
    (tmp_path / "a.key").write_bytes(key)
    ledger.path.unlink()
    with pytest.raises(ParameterError, match="a was removed, and its key is still there"):
        ledger.record(0.1, 0.01, None)


@pytest.mark.parametrize("rest", ["", '{"release": 2, "epsi', "half of a key"])
def test_a_process_that_was_killed_leaves_a_ledger_that_goes_on(tmp_path: Path, rest: str) -> None:
    ledger = Ledger(tmp_path / "a", 1.0)
    if rest == "half of a key":
        ledger.path.touch()
        (tmp_path / "a.key").write_text("12ab")
    else:
        ledger.record(0.1, 0.01, b"data")
        with ledger.path.open("a") as file:
            file.write(rest)
    before = 0 if rest == "half of a key" else 1
    assert ledger.record(0.1, 0.01, b"data").releases == before + 1
    assert ledger.attempts(b"data") == before + 1


def test_a_ledger_tells_nothing_of_small_data_without_its_key(tmp_path: Path) -> None:
    """Two lines on the same data share nothing but public numbers, and only the owner can read either file."""
    ledger = Ledger(tmp_path / "a")
    for _ in range(2):
        ledger.record(0.1, 0.01, b"data")
    first, second = (json.loads(line) for line in ledger.path.read_text().splitlines())
    assert {name for name in first if first[name] == second[name]} == {"epsilon", "delta", "budget"}
    for path in (tmp_path / "a", tmp_path / "a.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_attempt_that_is_killed_counts(tmp_path: Path) -> None:
    """The model kills the command that waits for it."""
    (tmp_path / "own.py").write_text(
        "import os, signal, time\ndef draw(rng, n):\n    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "dpsmc_audit", *ONE[:-1], "model=python", "model.target=own:draw", "ledger=a"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{TOP}"}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert len((tmp_path / "a").read_text().splitlines()) == 1
    assert not list(tmp_path.rglob("result.json"))


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_two_releases_keep_the_sum_of_their_bounds(epsilon: float) -> None:
    """Exactly, over all data of ten samples with p_phi = 1/2: two releases on the same data, the third sample changed.

    The other samples are common to both releases, so the second one tells more than a release on new data would.
    """
    test = Sprt(0.5, 0.2, 0.2)
    law = private(Laplace, test, epsilon)
    bound = proven_bound(test, law)
    assert bound is not None
    both = [np.zeros((22, 22)), np.zeros((22, 22))]
    for others in product((0, 1), repeat=9):
        for bit in (0, 1):
            once = _stops(test, law, np.array([*others[:2], bit, *others[2:]]))
            both[bit] += np.outer(once, once) / 2**9
    needed = [np.maximum(p - np.exp(2 * epsilon) * q, 0.0).sum() for p, q in (both, both[::-1])]
    assert 0.0 < max(needed) <= 2.0 * bound.at(epsilon)
