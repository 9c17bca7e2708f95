"""Models that do all they can to be heard beside a release, in processes of their own: not a byte of them is found."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.verify.test_verify import QUICK

MODEL = """
import atexit, ctypes, logging, os, signal, subprocess, sys, threading, time

SAID = "SECRET ones so far 226 of 256"
SPEAKER = f"import os, sys, time\\nwhile True:\\n    [os.write(k, b'{SAID}') for k in (1, 2)]; time.sleep(0.001)"

def say():
    print(SAID, flush=True)
    print(SAID, file=sys.__stderr__, flush=True)
    logging.getLogger("dpsmc_audit").error(SAID)
    for descriptor in (1, 2):
        os.write(descriptor, SAID.encode())

def speak():
    while True:
        say()
        time.sleep(0.001)

def draw(rng, n):
    if threading.active_count() < 3:
        logging.basicConfig(level=0)
        threading.Thread(target=speak).start()
        threading.Thread(target=speak, daemon=True).start()
        subprocess.Popen([sys.executable, "-c", SPEAKER])
        subprocess.Popen([sys.executable, "-c", SPEAKER], start_new_session=True)
        atexit.register(say)
        time.sleep(0.05)
    return rng.random(n) < 0.9

def crashes(rng, n):
    draw(rng, n)
    ctypes.string_at(0)

def leaves(rng, n):
    draw(rng, n)
    os._exit(0)

def patches(rng, n):
    import json
    sys.exit = os._exit = lambda *_: say()
    json.dumps = lambda *_: '{"place": "SECRET ones so far"}'
    return draw(rng, n)
"""


def leaves_nothing(folder: Path, function: str, to_files: bool, unbuffered: str) -> None:
    """Run a verification of the model. No stream, file or process holds a word of it."""
    (folder / "shouting.py").write_text(MODEL)
    for name in ("out", "tmp"):
        (folder / name).mkdir()
    command = [sys.executable, "-m", "dpsmc_audit", "task=verify", *QUICK, "model=python", "hydra.run.dir=out/r"]
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).parents[2]}"}
    environment |= {"PYTHONUNBUFFERED": unbuffered, "TMPDIR": f"{folder / 'tmp'}", "LEAKS": f"{folder}"}
    paths = [folder / "out" / "stdout", folder / "out" / "stderr"]
    with paths[0].open("w") as out, paths[1].open("w") as err:
        given: dict[str, Any] = {"stdout": out, "stderr": err} if to_files else {"capture_output": True}
        shouting = [*command, f"model.target=shouting:{function}"]
        done = subprocess.run(shouting, cwd=folder, env=environment, check=False, **given)
    time.sleep(0.1)  # a hundred times as long as those who speak wait
    left = [path for name in ("out", "tmp") for path in (folder / name).rglob("*") if path.is_file()]
    heard = [done.stdout or b"", done.stderr or b"", *(path.read_bytes() for path in left)]
    assert not [text for text in heard if b"SECRET" in text]
    assert done.returncode == (0 if function == "draw" else 2), b"".join(heard).decode()
    assert (folder / "out" / "r" / "result.json").exists() == (function == "draw")
    assert not list((folder / "tmp").rglob("*")) + list(folder.glob("core*"))
    deadline = time.monotonic() + 5.0
    while left_of(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left_of(folder)


def left_of(folder: Path) -> list[psutil.Process]:
    """Processes of this run that are alive."""
    everyone = psutil.process_iter(["environ"])
    return [process for process in everyone if (process.info["environ"] or {}).get("LEAKS") == f"{folder}"]


CASES = [
    *(
        (function, to_files, unbuffered)
        for function in ("draw",)
        for to_files in (True, False)
        for unbuffered in ("", "1")
    ),
    *((function, False, "1") for function in ("crashes", "leaves", "patches")),
]


@pytest.mark.parametrize(("function", "to_files", "unbuffered"), CASES)
def test_a_model_that_speaks_all_the_time_is_not_heard(
    tmp_path: Path, function: str, to_files: bool, unbuffered: str
) -> None:
    leaves_nothing(tmp_path, function, to_files, unbuffered)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(50))
def test_fifty_models_that_speak_all_the_time_are_not_heard(tmp_path: Path, number: int) -> None:
    leaves_nothing(tmp_path, *CASES[number % len(CASES)])
