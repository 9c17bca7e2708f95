"""Ctrl-C: the first one raises KeyboardInterrupt. Later ones are ignored while the run is closed."""

from __future__ import annotations

import signal
from types import FrameType

__all__ = ["interrupted", "listen"]


class _Once:
    """A handler of SIGINT that raises KeyboardInterrupt once."""

    received = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.received:
            self.received = True
            raise KeyboardInterrupt


def interrupted() -> bool:
    """Tell whether Ctrl-C was pressed. Libraries may turn the interrupt into an error of their own, or drop it.

    Returns
    -------
    bool
        True if it was pressed after `listen`.
    """
    handler = signal.getsignal(signal.SIGINT)
    return isinstance(handler, _Once) and handler.received


def listen() -> None:
    """Handle Ctrl-C from now on, unless the process was started to ignore it (in the background of a shell)."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _Once())
