"""The boundary: private samples and noise stay in a child process. Only tau and a decision come out.

The child runs the model and the test. Its standard streams lead to the null device and its only way out is a pipe that
carries one short answer. The parent kills the child and its process group as soon as the answer is there, so nothing
of the model's code outlives the run. The boundary is not a sandbox: code that opens files, sockets or terminals of its
own can write to them.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.verify.run import Outcome

__all__ = ["VerificationError", "sealed"]

KEPT_BACK = (
    "the model failed while its samples were drawn; the reason is kept back, as it may hold samples "
    "(task=estimate on data that are not private shows it)"
)
DECISIONS = ("H_null", "H_alt", "undecided")
LONGEST_ANSWER = 1000
"""In bytes. An outcome takes about forty, and a place names a file or a function."""


class VerificationError(ParameterError):
    """A run could not be finished. The message holds nothing about its samples."""


def sealed(run: Callable[[], Outcome]) -> Outcome:
    """Call a function in a child process and return its outcome.

    Parameters
    ----------
    run : callable
        Takes nothing and returns an `Outcome`. It is sent to the child by cloudpickle, so it may be a closure.

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

    order = pickle.dumps(sys.path) + cloudpickle.dumps(run)
    order_read, order_write = os.pipe()
    answer_read, answer_write = os.pipe()
    ours, theirs = (order_write, answer_read), (order_read, answer_write)
    try:
        with _child(theirs):
            _hand_over(order, order_write)
            answer = _first_line(answer_read)
    finally:
        for descriptor in ours:
            os.close(descriptor)
    return _outcome(answer)


@contextmanager
def _child(descriptors: tuple[int, int]) -> Iterator[None]:
    """Start the child with its ends of the pipes. At the end kill it with all of its process group."""
    command = [sys.executable, "-m", "dpsmc_audit.verify.child", *map(str, descriptors)]
    nowhere = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, stdin=nowhere, stdout=nowhere, stderr=nowhere, pass_fds=descriptors, start_new_session=True
        )
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _hand_over(order: bytes, descriptor: int) -> None:
    """Write the order. If the child has ended, its missing answer shows that."""
    left = memoryview(order)
    with suppress(BrokenPipeError):
        while left:
            left = left[os.write(descriptor, left) :]


def _first_line(descriptor: int) -> bytes:
    """Read the first line of the answer. The rest is never read."""
    said = b""
    while b"\n" not in said and len(said) <= LONGEST_ANSWER and (more := os.read(descriptor, LONGEST_ANSWER)):
        said += more
    return said.partition(b"\n")[0]


def _outcome(answer: bytes) -> Outcome:
    """Decode the outcome. Every other answer is a failure."""
    try:
        found = json.loads(answer)
    except ValueError:  # the child ended before it could answer
        found = None
    match found:
        case {"tau": int(tau), "decision": str(decision)} if tau >= 0 and decision in DECISIONS:
            return Outcome(tau, decision)
        case {"place": str(place)} if place.isprintable():
            raise VerificationError(place)
    raise VerificationError(KEPT_BACK)
