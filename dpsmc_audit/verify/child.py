"""The child process of a private release. It runs the test and returns one short answer.

`dpsmc_audit.verify.boundary` starts it with every standard stream on the null device. It reads its order from one
pipe and writes its answer to another. Nothing else that it does is visible from outside, unless the model's code
opens files, sockets or terminals of its own. It is killed with the answer, or when its parent ends.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable

from dpsmc_audit.verify.run import Outcome

__all__ = ["main"]


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


def _without_core_dumps() -> None:
    """Let no crash write the samples to a file. A limit of 1 also stops programs that collect dumps, unlike 0."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    least = most if most == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (least, least))


def main(order_descriptor: int, answer_descriptor: int) -> None:
    """Read the order, run the test, write the answer.

    Parameters
    ----------
    order_descriptor, answer_descriptor : int
        The ends of the two pipes that belong to this process.
    """
    _without_core_dumps()
    for descriptor in (order_descriptor, answer_descriptor):
        os.set_inheritable(descriptor, False)
    try:
        with os.fdopen(order_descriptor, "rb") as order:
            sys.path[:] = pickle.load(order)
            run = pickle.load(order)
        answer = _answer(run)
    except BaseException:
        answer = {}
    os.write(answer_descriptor, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
