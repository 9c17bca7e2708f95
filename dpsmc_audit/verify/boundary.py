"""The boundary: private samples and noise stay in a child process. Only tau and a decision come out.

The child runs the model and the test. Its standard streams lead to the null device and its only way out is a pipe that
carries one short answer. What the pipe may carry is checked here, as code of the model may write to it. When the answer
is there, the child is killed with everything that it has started, so nothing of the model's code outlives the run. The
boundary is not a sandbox: code that opens files, sockets or terminals of its own, or the streams of other processes,
can write to them, and a process that hides its environment is not found.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.runs.processes import end_marked, guard
from dpsmc_audit.verify.places import is_public
from dpsmc_audit.verify.run import Outcome

__all__ = ["Allowed", "VerificationError", "sealed"]

KEPT_BACK = (
    "the model failed while its samples were drawn; the reason is kept back, as it may hold samples "
    "(task=estimate on data that are not private shows it)"
)
DECISIONS = ("H_null", "H_alt", "undecided")
LONGEST_ANSWER = 1000
"""In bytes. An outcome takes about forty, and a place names a file or a function."""
MARK = "DPSMC_AUDIT_RELEASE"
"""The environment variable by which everything that the child has started is found."""


class VerificationError(ParameterError):
    """A run could not be finished. The message holds nothing about its samples."""


@dataclass(frozen=True)
class Allowed:
    """What the answer of a run may hold. Everything else is a failure whose reason is kept back.

    Parameters
    ----------
    max_steps : int
        The largest tau.
    names : tuple of str
        Names that an error may repeat: of the file, its columns and signals, or of the function.
    recorded : bool
        Whether the samples are recorded. Their errors name a line.
    """

    max_steps: int = 2**40
    names: tuple[str, ...] = ()
    recorded: bool = False

    def outcome(self, answer: bytes) -> Outcome:
        """Read the answer.

        Parameters
        ----------
        answer : bytes
            What the child wrote.

        Returns
        -------
        Outcome
            The number of samples and the decision.

        Raises
        ------
        VerificationError
            If the run failed, or if the answer is no outcome.
        """
        try:
            found = json.loads(answer)
        except (ValueError, RecursionError):  # the child ended before it could answer
            found = None
        match found:
            case {"tau": int(tau), "decision": str(decision), **rest} if not rest:
                if not isinstance(tau, bool) and 0 <= tau <= self.max_steps and decision in DECISIONS:
                    return Outcome(tau, decision)
            case {"place": str(place), **rest} if not rest:
                if is_public(place, self.names, recorded=self.recorded):
                    raise VerificationError(place)
        raise VerificationError(KEPT_BACK)


def sealed(run: Callable[[], Outcome], allowed: Allowed | None = None) -> Outcome:
    """Call a function in a child process and return its outcome.

    Parameters
    ----------
    run : callable
        Takes nothing and returns an `Outcome`. It is sent to the child by cloudpickle, so it may be a closure.
    allowed : Allowed, optional
        What the answer may hold. Without it, errors name nothing.

    Returns
    -------
    Outcome
        The number of samples and the decision.

    Raises
    ------
    VerificationError
        If the child fails or ends without an answer. The message never depends on samples or noise.

    Examples
    --------
    >>> sealed(lambda: Outcome(17, "H_null"))
    Outcome(tau=17, decision='H_null')
    """
    import cloudpickle

    guard()
    order = pickle.dumps(sys.path) + cloudpickle.dumps(run)
    order_read, order_write = os.pipe()
    answer_read, answer_write = os.pipe()
    try:
        with _child((order_read, answer_write)) as process:
            _hand_over(order, order_write)
            answer = _first_line(answer_read, process)
    finally:
        for descriptor in (order_write, answer_read):
            os.close(descriptor)
    return (allowed or Allowed()).outcome(answer)


@contextmanager
def _child(descriptors: tuple[int, int]) -> Iterator[subprocess.Popen[bytes]]:
    """Start the child with its ends of the pipes. At the end kill it with all that it has started."""
    command = [sys.executable, "-m", "dpsmc_audit.verify.child", *map(str, descriptors)]
    nowhere, mark = subprocess.DEVNULL, secrets.token_hex(16)
    try:
        process = subprocess.Popen(
            command,
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
            pass_fds=descriptors,
            start_new_session=True,
            env=os.environ | {MARK: mark},
        )
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        end_marked(MARK, mark)  # what has left the process group


def _hand_over(order: bytes, descriptor: int) -> None:
    """Write the order. If the child has ended, its missing answer shows that."""
    left = memoryview(order)
    with suppress(BrokenPipeError):
        while left:
            left = left[os.write(descriptor, left) :]


def _first_line(descriptor: int, process: subprocess.Popen[bytes]) -> bytes:
    """Read the first line of the answer. The rest is never read.

    The end of the child also ends the wait: something that it has started may keep the pipe open.
    """
    said = b""
    with selectors.DefaultSelector() as ready:
        ready.register(descriptor, selectors.EVENT_READ)
        while b"\n" not in said and len(said) <= LONGEST_ANSWER:
            ended = _has_ended(process)  # asked before the pipe: what it wrote last is still read
            if ready.select(timeout=0.0 if ended else 0.2):
                more = os.read(descriptor, LONGEST_ANSWER)
                said += more
                if not more:
                    break
            elif ended:
                break
    return said.partition(b"\n")[0]


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether a child has ended, without collecting it: its number must stay that of its process group."""
    return bool(psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)
