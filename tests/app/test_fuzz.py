"""Any command line ends in a whole result or in one clear line: no traceback, no hang, nothing that only looks whole.

An exception that nobody expected shows as ``error: TypeError: ...`` and counts as a traceback here. Warnings are errors
in the tests, so that careless arithmetic shows too.
"""

from __future__ import annotations

import faulthandler
import math
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from dpsmc_audit.runs.resume import fingerprint_in
from tests.support.command import Run, runner, without_figures
from tests.support.strategies_fuzz import commands, releases, sweeps

HANGS = 30
"""Seconds of work of a run, or twice as long by the clock: others may be at work here too.

Those that take long by right are no cases.
"""
UNEXPECTED = re.compile(r"^(?:error|failed): .*?\b(\w+(?:Error|Warning|Exception|Exit)): ")
USERS = re.compile(r"sampler \S+, called with .* raised |model\.target=\S+ failed: ")
"""What comes before an exception of the user's own function."""
EXIT_CODES = (0, 1, 2, 3)
LEFT_OVER = (".tmp", ".npz")

FAST: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "phases": [Phase.generate],  # a case is short as it is: shrinking would run hundreds
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
}


@contextmanager
def no_longer_than(seconds: int, what: object) -> Iterator[None]:
    """Fail with `what` after so many seconds; where compiled code does not look up, end the process, with a trace."""

    def stop(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"still running after {seconds} s of work or twice as long: {what}")

    limits = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, 2 * seconds))
    before = [signal.signal(number, stop) for _, number, _ in limits]
    faulthandler.dump_traceback_later(5 * seconds, exit=True, file=2)
    for timer, _, most in limits:
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for timer, _, _ in limits:
            signal.setitimer(timer, 0)
        faulthandler.cancel_dump_traceback_later()
        for (_, number, _), handler in zip(limits, before, strict=True):
            signal.signal(number, handler)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """The command in this process; figures are files, but empty."""
    without_figures(monkeypatch)
    return runner(monkeypatch, capsys, tmp_path)


def settled(run: Run, folder: Path, command: list[str]) -> int:
    """Run in an empty folder and check what must hold of any command line; its exit code."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    points = math.prod(1 + word.count(",") for word in command if "[" not in word) if command[0] == "-m" else 1
    with no_longer_than(HANGS * points, command):
        code, out, err = run(*command)
    results, swept = list(folder.rglob("result.json")), command[0] == "-m"
    assert code in EXIT_CODES, (command, err)
    assert "Traceback" not in out + err, (command, err)
    assert not [line for line in err.splitlines() if UNEXPECTED.match(line) and not USERS.search(line)], (command, err)
    assert not [path for path in folder.rglob("*") if path.suffix in LEFT_OVER], command
    if code in (1, 2):
        assert re.search("^(?:error|failed): ", err, re.M), (command, err)
        assert swept or (not results and len(err.splitlines()) == 1), (command, err)
    else:
        assert swept or len(results) == 1, command
    for path in results:
        released = '"task": "verify"' in path.read_text()
        assert released or fingerprint_in(path.parent) is not None, command
        if released:
            assert not re.search(rf'"seed"|"path"|{re.escape(str(folder))}', path.read_text()), command
    return code


def check_sweep(run: Run, folder: Path, command: list[str]) -> None:
    code = settled(run, folder, command)
    points = [path for path in folder.rglob("*") if path.is_dir() and path.name.isdigit()]
    whole = [path for path in points if (path / "result.json").exists()]
    notes = [path / ".point.json" for path in points]
    failed = [path.parent for path in notes if path.exists() and '"state": "failed"' in path.read_text()]
    assert not set(whole) & set(failed), command
    if code == 0:
        assert whole == points, command
        assert len(list(folder.rglob("table.csv"))) == 1, command


@settings(max_examples=60, **FAST)
@given(command=commands())
def test_any_command_line_ends_well(run: Run, tmp_path: Path, command: list[str]) -> None:
    settled(run, tmp_path, command)


@settings(max_examples=10, **FAST)
@given(command=sweeps())
def test_any_sweep_ends_well(run: Run, tmp_path: Path, command: list[str]) -> None:
    check_sweep(run, tmp_path, command)


def lot_of(number: int, cases: SearchStrategy[list[str]], start: int, check: Callable[[list[str]], object]) -> None:
    """So many random cases, which depend on `start`: one that fails ends its lot only, and lots can go side by side."""

    @seed(start)
    @settings(max_examples=number, **(FAST | {"derandomize": False}))
    @given(command=cases)
    def one(command: list[str]) -> None:
        check(command)

    one()


@pytest.mark.slow
@pytest.mark.parametrize("lot", range(22))
def test_thousands_of_command_lines_end_well(run: Run, tmp_path: Path, lot: int) -> None:
    lot_of(100, commands(), lot, lambda command: settled(run, tmp_path, command))


@pytest.mark.slow
@pytest.mark.parametrize("lot", range(10))
def test_a_thousand_more_command_lines_end_well(run: Run, tmp_path: Path, lot: int) -> None:
    """One more in five is a release, with a ledger or without."""
    lot_of(80, commands(), 1000 + lot, lambda command: settled(run, tmp_path, command))
    lot_of(20, releases(), 2000 + lot, lambda command: settled(run, tmp_path, command))


@pytest.mark.slow
@pytest.mark.parametrize("lot", range(15))
def test_hundreds_of_sweeps_end_well(run: Run, tmp_path: Path, lot: int) -> None:
    lot_of(20, sweeps(), lot, lambda command: check_sweep(run, tmp_path, command))
