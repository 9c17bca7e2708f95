"""Ctrl-C and SIGTERM: the first one raises KeyboardInterrupt. Later ones are ignored while the run is closed."""

from __future__ import annotations

import signal
from types import FrameType

__all__ = ["exit_code", "ignore", "interrupted", "listen"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what batch systems send before they kill."""


class _Stop(KeyboardInterrupt):
    """The interrupt of a signal.

    A plain KeyboardInterrupt that leaves a source text in execution, such as that of a dataclass, makes Python end with
    SIGINT, whatever exit code the command chooses.
    """


class _Once:
    """A handler of signals that raises an interrupt once."""

    received: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = number
            raise _Stop


def _received() -> int | None:
    """The signal that came after `listen`. None if none did."""
    handlers = [signal.getsignal(number) for number in SIGNALS]
    return next((handler.received for handler in handlers if isinstance(handler, _Once)), None)


def interrupted() -> bool:
    """Tell whether a signal came. Libraries may turn the interrupt into an error of their own, or drop it.

    Returns
    -------
    bool
        True if one came after `listen`.
    """
    return _received() is not None


def exit_code() -> int:
    """Return the exit code of an interrupted run.

    Returns
    -------
    int
        130 after Ctrl-C, 143 after SIGTERM.
    """
    return 128 + (_received() or signal.SIGINT)


def listen() -> None:
    """Handle the signals from now on, unless the process was started to ignore them (in the background of a shell)."""
    handler = _Once()
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def ignore() -> None:
    """Ignore the signals from now on, if `listen` was called: Python removes its handlers before the process ends."""
    for number in SIGNALS:
        if isinstance(signal.getsignal(number), _Once):
            signal.signal(number, signal.SIG_IGN)
