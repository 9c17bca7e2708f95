"""Ctrl-C: the first one raises KeyboardInterrupt, later ones are ignored while the run is closed."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import NoReturn

__all__ = ["INTERRUPTED", "interrupted", "listen"]

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

_received = threading.Event()


def interrupted() -> bool:
    """Whether Ctrl-C was pressed. Libraries may turn the interrupt into an error of their own or drop it."""
    return _received.is_set()


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _received.set()
    raise KeyboardInterrupt


def listen() -> None:
    """Handle Ctrl-C from now on, unless this process was started to ignore it (in the background of a shell)."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
