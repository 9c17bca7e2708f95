"""Ctrl-C ends the process soon, even where a compiled kernel keeps the main thread from hearing of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

__all__ = ["INTERRUPTED", "end_now", "end_soon_after_interrupt", "interrupted"]

INTERRUPTED = 130
"""Exit code, as shells have it."""

_heard = threading.Event()


def interrupted() -> bool:
    """Whether there was a Ctrl-C: code that it breaks off may turn it into an error of its own, or lose it."""
    return _heard.is_set()


def end_now(code: int) -> NoReturn:
    """Without waiting for threads, and with all that was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """The first Ctrl-C is heard; more of them would only break off the last words."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _heard.set()
    raise KeyboardInterrupt


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """A Ctrl-C that came in a finaliser cannot be raised there; it is not forgotten (`interrupted`) and no news."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def end_soon_after_interrupt(close: Callable[[], None], patience: float = 1.5) -> None:
    """From now on, end the process `patience` seconds after a Ctrl-C, closed, if it has not ended by itself.

    Python raises KeyboardInterrupt only between two steps of the main thread; the signal itself is written to a socket
    at once, which a second thread reads. `close` must bear to be called by both threads.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
        return
    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        with writer:  # kept open as long as this thread
            while signal.SIGINT not in reader.recv(16):
                pass
            time.sleep(patience)
            try:
                close()
            finally:
                end_now(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()
