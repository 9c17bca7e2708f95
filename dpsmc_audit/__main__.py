"""``python -m dpsmc_audit``: the command line of `dpsmc_audit.app.cli`, and nothing to say before it is there."""

from __future__ import annotations

import signal
from typing import NoReturn

__all__ = ["start"]


def start() -> NoReturn:
    """Until the imports are done a Ctrl-C just ends the process, without a traceback: there is nothing to keep."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dpsmc_audit.app.cli import command

    command()


if __name__ == "__main__":
    start()
