"""``python -m dpsmc_audit``: the command line of `dpsmc_audit.app.cli`."""

from __future__ import annotations

import signal

from dpsmc_audit.app.streams import prepare

__all__ = ["start"]


def start() -> None:
    """Run the command line. During the imports Ctrl-C ends the process at once: there is nothing to keep."""
    prepare()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dpsmc_audit.app.cli import main
    from dpsmc_audit.app.interrupts import listen

    listen()
    main()


if __name__ == "__main__":
    start()
