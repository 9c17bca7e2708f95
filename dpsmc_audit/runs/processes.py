"""End the processes that a command has started, even if the command is killed.

A process that this package starts carries a mark in its environment, and so does everything that it starts in turn:
also what has left its process group or lost its parent. A small process, the guard, waits until the command ends and
then kills what still carries the mark. Only a process that has changed its own environment escapes.

This file is also run as the guard. It must not import the package.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import psutil

__all__ = ["end_marked", "guard"]

MARK = "DPSMC_AUDIT_PARENT"
"""The environment variable that names the process that children end with."""


def end_marked(name: str, value: str) -> None:
    """Kill all other processes whose environment has a variable with this value, until none is left.

    Parameters
    ----------
    name : str
        The environment variable.
    value : str
        Its value.
    """
    for _ in range(20):  # processes can start others while they are looked for
        found = [process for process in psutil.process_iter(["environ"]) if _carries(process, name, value)]
        if not found:
            return
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=0.5)


def _carries(process: psutil.Process, name: str, value: str) -> bool:
    environment = process.info["environ"] or {}  # None: the process is another user's, or has ended
    return process.pid != os.getpid() and environment.get(name) == value


def guard() -> None:
    """Let all processes that this one starts from now on end with it, also if it is killed."""
    _guard()


@lru_cache(maxsize=1)
def _guard() -> subprocess.Popen[bytes]:
    """Start the guard, once. It notices the end of this process by that of the pipe between them."""
    mark = f"{os.getpid()}-{psutil.Process().create_time()}"
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__)), mark],
        stdin=subprocess.PIPE,
        stdout=nowhere,
        stderr=nowhere,
        env=environment,
        start_new_session=True,
    )
    os.environ[MARK] = mark
    return process


def _wait_and_end(mark: str) -> None:
    """Wait until the process with this mark has ended. Its end closes the pipe, unless a copy of it holds the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a batch system sends them to every process of a job
        signal.signal(number, signal.SIG_IGN)
    parent = int(mark.partition("-")[0])
    while os.getppid() == parent and not select.select([sys.stdin], [], [], 0.5)[0]:
        pass
    end_marked(MARK, mark)


if __name__ == "__main__":
    _wait_and_end(sys.argv[1])
