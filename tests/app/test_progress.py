"""What a terminal shows: what is being done from the first second, and clean lines after the end and after Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.documents import TOP

COLUMNS = 200


def screen(text: str) -> list[str]:
    """The lines that a terminal shows after a text: it knows what progress bars use."""
    lines, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[\d*[A-Za-z]|.", text, flags=re.S):
        if piece == "\r":
            column = 0
        elif piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece == "\x1b[A":
            row = max(row - 1, 0)
        elif piece == "\x1b[2K":
            lines[row] = ""
        elif not piece.startswith("\x1b"):
            lines[row] = lines[row].ljust(column)[:column] + piece + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


def on_terminal(
    words: list[str], folder: Path, stop: Callable[[str], bool] = lambda text: False
) -> tuple[int, str, float]:
    """Run the command with a terminal: exit code, all that it wrote, and seconds until the first letter.

    Ctrl-C is typed when `stop` says so of what was written.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = os.environ | {"PYTHONPATH": str(TOP), "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "dpsmc_audit", *words]
    begun, first, stopped, written = time.monotonic(), 0.0, False, b""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, start_new_session=True, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    while True:
        if select.select([master], [], [], 0.2)[0]:
            try:
                more = os.read(master, 4096)
            except OSError:  # the terminal is closed
                break
            if not more:
                break
            first = first or time.monotonic() - begun
            written += more
        if not stopped and stop(written.decode("utf-8", "replace")):
            stopped = True
            process.send_signal(signal.SIGINT)
    os.close(master)
    return process.wait(timeout=60), written.decode("utf-8", "replace"), first


def test_a_terminal_is_read_as_it_shows() -> None:
    assert screen("a bar\r\x1b[2Kword\r\n\r\nend\x1b[A\x1b[A\rW") == ["Word", "", "end"]


def test_a_run_says_at_once_what_it_does(tmp_path: Path) -> None:
    code, text, first = on_terminal(["task=simulate", "runs=2000", "epsilon=0.05", "hydra.run.dir=r"], tmp_path)
    assert code == 0
    assert "starting" in text.partition("drawing runs")[0]
    assert "2000" in text
    assert first < 1.0 or first < 0.5 * _time_of_imports()  # on a busy machine Python itself may take a second
    lines = screen(text)
    assert lines[0].startswith("1-alpha")
    assert lines[3] == f"result in {tmp_path / 'r'}"


def _time_of_imports() -> float:
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import dpsmc_audit.app.cli"], cwd=TOP, check=True)
    return time.monotonic() - begun


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["engine=exact", "notion=marginal", "epsilon=0.3", "delta=0.05"], ["computing exact laws", "drawing figures"]),
        (["task=estimate", "runs=500"], ["drawing samples"]),
    ],
)
def test_what_takes_time_is_named(tmp_path: Path, words: list[str], said: list[str]) -> None:
    code, text, _ = on_terminal([*words, "hydra.run.dir=r"], tmp_path)
    assert code == 0
    assert all(each in text for each in said)
    assert not [each for each in (*said, "...", "starting") if each in "\n".join(screen(text))]


def test_a_sweep_names_its_points_and_its_table_stands_alone(tmp_path: Path) -> None:
    sweep = ["-m", "task=simulate", "runs=500", "p_phi=0.735,0.84", "hydra.sweep.dir=s"]
    code, text, _ = on_terminal(sweep, tmp_path)
    assert code == 0
    assert "point 1 of 2: p_phi=0.735" in text
    lines = [line for line in screen(text) if line]
    assert re.match(r"warning: p_phi=0\.735\S*: Assumption 1 does not hold", lines[0])
    assert lines[1].startswith("1-alpha")
    assert lines[-1] == "2 results in s"


def test_after_ctrl_c_every_line_is_clean(tmp_path: Path) -> None:
    """The second point takes long. The table of the first one is not glued to the bar."""
    slow = ["-m", "task=simulate", "runs=200000", "p_phi=0.73", "delta=0.05,0.0001", "engine.kernel=steps", "alpha=0.1"]
    words = [*slow, "backend=serial", "hydra.sweep.dir=s"]
    code, text, _ = on_terminal(words, tmp_path, lambda shown: "point 2 of 2" in shown)
    assert code == 130
    lines = [line for line in screen(text) if line and not line.startswith("warning: ")]
    assert lines[0].startswith("1-alpha")
    assert [line for line in lines if "point" in line] == [lines[-1]]
    assert lines[-1].startswith("interrupted: finished points are kept")
    assert "1 results in s" in lines
