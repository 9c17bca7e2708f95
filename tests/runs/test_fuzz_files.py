"""Files that the suite reads, damaged: each is taken for what it says or refused in one line, and never waited for.

Results and checkpoints are used only if nothing in them has changed. Everything starts from files that are right.
"""

from __future__ import annotations

import io
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.gathered import Gathered, Outcomes
from dpsmc_audit.mechanisms import Exponential, NoNoise
from dpsmc_audit.models.keys import read_formula
from dpsmc_audit.models.recorded import Recorded
from dpsmc_audit.models.simulated import PythonBits
from dpsmc_audit.observers.expected.picture import Picture
from dpsmc_audit.observers.informed.sequences import read_sequence
from dpsmc_audit.runs.checkpoints import Checkpoint
from dpsmc_audit.runs.files import POINT, RESULT, load_results, read_json, write_json
from dpsmc_audit.runs.resume import content_of, fingerprint_in, seal, set_aside, take_over
from dpsmc_audit.sampling.pairs import draw_excess, pair_sums
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.stl import parse
from dpsmc_audit.targets import load_target
from dpsmc_audit.tasks.simulate import Tally, Total
from tests.app.test_fuzz import FAST, no_longer_than
from tests.support.command import result_in, runner

ODD = (
    *(b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\r", b"-1", b"1e999", b"nan", b"9" * 5000, b'"', b","),
    *(b"\n\n", b"[" * 3000, b"{" * 99, b"(" * 3000, b"not " * 3000, b"  "),
)


def damaged(content: bytes, seed: int) -> bytes:
    """The same with one to three changes: cut off, bytes flipped, inserted or taken out, lines repeated."""
    rng = random.Random(seed)
    for _ in range(rng.choice([1, 1, 2, 3])):
        place, other = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        flipped = bytes([content[place] ^ (1 << rng.randrange(8))]) if place < len(content) else b""
        content = rng.choice(
            [
                content[:place],
                content[:place] + flipped + content[place + 1 :],
                content[:place] + rng.choice(ODD) + content[place:],
                content[:place] + rng.choice(ODD) + content[other:],
                content[:other] + content[place:other] + content[other:],
                content[: place // 2] + rng.randbytes(8) + content[place // 2 :],
                content.replace(b"\n", b"\r\n"),
            ]
        )
    return content


SEEDS = st.integers(0, 2**32 - 1)
few, many = settings(max_examples=13, **FAST), settings(max_examples=250, **FAST)
"""Of each of ten kinds; with the command lines 200 cases in CI, 5000 by hand."""


def outcome(read: Callable[[], Any], what: object) -> Any:
    """What was read, or the one line that refuses it."""
    with no_longer_than(60, what):
        try:
            return read()
        except ParameterError as error:
            refused = error
    assert len(f"{refused}".splitlines()) == 1
    return refused


# --- kinds of files: a function of the folder and of the seed of the damage -----------------------------------------


def check_result(folder: Path, seed: int) -> None:
    """Its meaning is unchanged, or it is nobody's."""
    made = seal({"parameters": {"alpha": 0.01}, "samples": 413.5, "provenance": {"version": "1"}}, "f" * 32)
    path = folder / "s" / "0" / RESULT
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, made)
    path.write_bytes(damaged(path.read_bytes(), seed))
    path.with_name(POINT).write_text("{}")
    read = outcome(lambda: read_json(path), path.read_bytes()[:200])
    assert fingerprint_in(path.parent) == (made["provenance"]["fingerprint"] if read == made else None)
    outcome(lambda: load_results(folder), seed)
    set_aside(folder / "s")
    (folder / "s" / "1").mkdir(exist_ok=True)
    assert take_over(folder / "s" / "1", folder / "s", "f" * 32) == (read == made)


def _sums(kind: str) -> Any:
    """Sums in their first state, and with something in them."""
    test, rng = Sprt(p=0.73, delta=0.05, alpha=0.05), np.random.default_rng(1)
    if kind == "total":
        full = Total()
        full.add(Tally(10, 6, 4, 0, 300, 9500))
        return Total(), full
    if kind == "gathered":
        begun, some = Gathered(), Gathered()
        begun.add(Outcomes(np.array([2]), np.array([3])))
        some.add(Outcomes(rng.integers(2, 60, 200), rng.integers(2, 60, 200)))
        return begun, some
    picture = Picture(7, seed=1)
    excess = draw_excess(Exponential.private(test, 0.5), 30, 1)
    picture.add(
        pair_sums(Adjacent(Setting(test, NoNoise(), 0.84), (1,)), excess, 5, sampling=Sampling(seed=1, max_steps=1000))
    )
    return Picture(7, seed=1), picture


def _bytes(saved: dict[str, Any]) -> dict[str, bytes]:
    return {name: np.asarray(value).tobytes() for name, value in saved.items()}


def check_checkpoint(folder: Path, seed: int, kind: str) -> None:
    """All of it is as it was, or it is not used and nothing has changed."""
    fresh, full = _sums(kind)
    Checkpoint(folder, "key").save("runs", 10, full)
    path = folder / "checkpoint-runs.npz"
    path.write_bytes(damaged(path.read_bytes(), seed))
    before = _bytes(fresh.saved())
    with no_longer_than(60, seed):
        done = Checkpoint(folder, "key").restore("runs", fresh)
    assert done in (0, 10)
    assert _bytes(fresh.saved()) == (_bytes(full.saved()) if done else before)


def check_outcomes(folder: Path, seed: int) -> None:
    bits = random.Random(seed).choices("01", k=40)
    path = folder / "outcomes.csv"
    path.write_bytes(damaged("".join(f"{bit}\n" for bit in bits).encode(), seed))
    column = random.Random(seed).choice([None, None, "0", "ok"])
    read = outcome(lambda: [*Recorded(f"{path}", column).batches(0)], path.read_bytes()[:200])
    if not isinstance(read, ParameterError) and column is None:
        lines = [line.strip() for line in path.read_bytes().decode("utf-8-sig").split("\n") if line.strip()]
        assert [int(bit) for batch in read for bit in batch.bits] == [int(bit) for bit in "\n".join(lines).split()]


def check_traces(folder: Path, seed: int) -> None:
    rows = [f"{trace},{k / 10},{trace - k}" for trace in range(4) for k in range(5)]
    path = folder / "traces.csv"
    path.write_bytes(damaged("\n".join(["trace,time,x", *rows, ""]).encode(), seed))
    outcome(lambda: [*Recorded(f"{path}", None, parse("always[0,0.2] x > 0")).batches(0)], path.read_bytes()[:200])


def check_parquet(folder: Path, seed: int) -> None:
    import pyarrow
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table({"ok": [1, 0, 1, 1] * 20}), buffer)
    path = folder / "outcomes.parquet"
    path.write_bytes(damaged(buffer.getvalue(), seed))
    read = outcome(lambda: [*Recorded(f"{path}", "ok").batches(0)], seed)
    assert isinstance(read, ParameterError) or sum(batch.bits.size for batch in read) <= 80


def check_sequence(folder: Path, seed: int) -> None:
    path = folder / "bits.txt"
    path.write_bytes(damaged(b"1\n0\n1 1,0\n0110\n" * 3, seed))
    read = outcome(lambda: read_sequence(path, [2]), path.read_bytes()[:200])
    if not isinstance(read, ParameterError):
        assert read.tolist() == [byte - 48 for byte in path.read_bytes() if byte in b"01"]


def check_formula(folder: Path, seed: int) -> None:
    path = folder / "spec.stl"
    path.write_bytes(
        damaged(b"always[0.8, 1.0] (abs(e) < 0.05 and\n not (x - 2 * y > 1)) or eventually[0,2] z > 1", seed)
    )
    read = outcome(lambda: read_formula(None, f"{path}"), path.read_bytes()[:200])
    if not isinstance(read, ParameterError):
        assert f"{parse(f'{read}')}" == f"{read}"


def check_module(folder: Path, seed: int) -> None:
    source = b"import numpy as np\n\n\ndef f(rng, n):\n    return rng.random(n) < 0.84\n"
    name = f"fuzzed_{os.getpid()}_{seed}"
    (folder / f"{name}.py").write_bytes(damaged(source, seed))
    sys.path.insert(0, f"{folder}")
    try:
        made = outcome(lambda: PythonBits(f"{name}:f"), seed)
        if isinstance(made, PythonBits):
            outcome(lambda: [*islice(made.batches(0), 2)], seed)
        outcome(lambda: load_target("sampler", f"{name}:f"), seed)
    finally:
        sys.path.remove(f"{folder}")
        sys.modules.pop(name, None)


KINDS: dict[str, Callable[[Path, int], None]] = {
    "result": check_result,
    "total": lambda folder, seed: check_checkpoint(folder, seed, "total"),
    "gathered": lambda folder, seed: check_checkpoint(folder, seed, "gathered"),
    "picture": lambda folder, seed: check_checkpoint(folder, seed, "picture"),
    "outcomes": check_outcomes,
    "traces": check_traces,
    "parquet": check_parquet,
    "sequence": check_sequence,
    "formula": check_formula,
    "module": check_module,
}


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Empty folders."""
    return lambda: tmp_path_factory.mktemp("fuzz")


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # of damaged modules
@pytest.mark.parametrize("kind", KINDS)
@few
@given(seed=SEEDS)
def test_damaged_files(folder: Callable[[], Path], kind: str, seed: int) -> None:
    KINDS[kind](folder(), seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("kind", KINDS)
@many
@given(seed=SEEDS)
def test_thousands_of_damaged_files(folder: Callable[[], Path], kind: str, seed: int) -> None:
    KINDS[kind](folder(), seed)


# --- what is no file --------------------------------------------------------------------------------------------------


def _nothing_to_read(folder: Path) -> Iterator[Path]:
    """A folder, a pipe that nobody writes to, a link to nowhere."""
    (folder / "directory").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(folder / "nowhere")
    yield from (folder / name for name in ("directory", "pipe", "link"))


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    for path in _nothing_to_read(tmp_path):
        for read in (
            lambda path=path: read_json(path),
            lambda path=path: read_sequence(path, [1]),
            lambda path=path: read_formula(None, f"{path}"),
        ):
            assert isinstance(outcome(read, path), ParameterError)
        run, kept = tmp_path / f"run-{path.name}", Total()
        run.mkdir()
        for name in (RESULT, "checkpoint-runs.npz"):
            (run / name).symlink_to(path)
        assert fingerprint_in(run) is None
        assert Checkpoint(run, "key").restore("runs", kept) == 0


def test_a_pipe_of_data_is_left_to_its_reader(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("1\n0\n1\n",), daemon=True)
    writer.start()
    with no_longer_than(60, "a pipe"):
        code, _, err = runner(monkeypatch, capsys, tmp_path)("task=estimate", "model=recorded", "model.path=pipe")
    assert (code, err.count("error")) == (0, 0)
    assert result_in(tmp_path)["p_phi"] == pytest.approx(2 / 3)
    assert content_of(tmp_path / "pipe") != content_of(tmp_path / "pipe")


def test_a_package_that_exits_is_no_end_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name = f"leaving_{os.getpid()}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("import sys\nsys.exit(0)\n")
    code, _, err = runner(monkeypatch, capsys, tmp_path)(f"sampler={name}.part:f")
    assert code == 2
    assert err.startswith(f"error: sampler={name}.part:f: cannot import {name}.part: SystemExit")
