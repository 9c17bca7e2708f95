"""The child process of a private release. It runs the test and returns one short answer.

`dpsmc_audit.verify.boundary` starts it with every standard stream on the null device. It reads its order from one
pipe and writes its answer to another. Nothing else that it does is visible from outside, unless the model's code
opens files, sockets or terminals of its own.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from typing import IO

from dpsmc_audit.verify.run import Outcome

__all__ = ["main"]


def _end_with_parent(order: IO[bytes]) -> None:
    """Wait until the parent closes its end of the pipe, then end this process and its children."""
    order.read()
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _answer(run: Callable[[], Outcome]) -> dict[str, int | str]:
    """Return the outcome, or after a failure its public place, or nothing."""
    from dpsmc_audit.models.sources import SourceError

    try:
        tau, decision = run()
    except SourceError as error:
        return {"place": error.place}
    except BaseException:
        return {}
    return {"tau": int(tau), "decision": decision}


def main(order_descriptor: int, answer_descriptor: int) -> None:
    """Read the order, run the test, write the answer.

    Parameters
    ----------
    order_descriptor, answer_descriptor : int
        The ends of the two pipes that belong to this process.
    """
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold the samples
    order = os.fdopen(order_descriptor, "rb")
    try:
        sys.path[:] = pickle.load(order)
        run = pickle.load(order)
    except BaseException:
        os.write(answer_descriptor, b"{}\n")
        return
    threading.Thread(target=_end_with_parent, args=(order,), daemon=True).start()
    os.write(answer_descriptor, json.dumps(_answer(run)).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
