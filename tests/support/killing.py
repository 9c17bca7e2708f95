"""Run commands in forks of one process, and kill each at a chosen file operation: ``python -m tests.support.killing``.

Lines of standard input are JSON: the folder, the number of the operation, and the words of the command. Each is
answered by a line: the exit code or the negative signal, and how many operations there were if it was not killed.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout

OPERATIONS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"}


def kill_at(number: int, folder: str) -> list[int]:
    """From now on count what changes files in the folder, and kill this process before the given operation."""
    count = [0]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        written = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        path = arguments[0] if arguments else None
        if not (written or event in OPERATIONS) or not isinstance(path, (str, os.PathLike)):
            return
        count[0] += os.path.abspath(os.fspath(path)).startswith(folder)
        if count[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def run(folder: str, number: int, words: list[str], answer: int) -> None:
    """In the fork: run the command."""
    from dpsmc_audit.app import cli, interrupts

    os.chdir(folder)
    for descriptor in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    sys.argv = ["dpsmc_audit", *words]
    interrupts.listen()
    count, code = kill_at(number, folder), 0
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    os.write(answer, json.dumps([code, count[0]]).encode())
    os._exit(code)


WARM = (
    ["-m", "task=simulate", "runs=200", "alpha=0.05,0.1"],
    ["-m", "notion=marginal", "runs=200", "pairs=4", "alpha=0.05,0.1"],
)
"""Commands that load all code and compile all kernels."""
QUICK = ("delta=0.05", "epsilon=0.5", "backend=serial")


def warm() -> None:
    """Do once in this process what every fork would do."""
    from hydra.core.global_hydra import GlobalHydra

    from dpsmc_audit.app import cli

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for words in WARM:
            sys.argv = ["dpsmc_audit", *words, *QUICK, f"hydra.sweep.dir={folder}"]
            cli.main()
            GlobalHydra.instance().clear()


def main() -> None:
    """Load everything once, then serve."""
    warm()
    for line in sys.stdin:
        folder, number, words = json.loads(line)
        there, here = os.pipe()
        child = os.fork()
        if child == 0:
            run(folder, number, words, here)
        os.close(here)
        said = b""
        while more := os.read(there, 1000):
            said += more
        os.close(there)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps([code, json.loads(said)[1] if said else None]), flush=True)


if __name__ == "__main__":
    main()
