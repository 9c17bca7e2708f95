"""``python -m dpsmc_audit``: the command line of `dpsmc_audit.app.cli`."""

from __future__ import annotations

import signal
import sys

from dpsmc_audit.app.status import show
from dpsmc_audit.app.streams import prepare

__all__ = ["start"]


def start() -> None:
    """Run the command line. During the imports Ctrl-C ends the process at once: there is nothing to keep."""
    prepare()
    if {"-sc", "--shell-completion"}.isdisjoint(sys.argv):  # it asks while the user types
        show("starting")
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dpsmc_audit.app.cli import main
    from dpsmc_audit.app.interrupts import exit_code, ignore, listen

    try:
        listen()
        main()
        ignore()  # what was done is done: Python itself would end with the signal
    except KeyboardInterrupt:  # before the command took over, or after it
        print("\ninterrupted", file=sys.stderr)
        sys.exit(exit_code())


if __name__ == "__main__":
    start()
