"""Ctrl-C ends the process soon, even where a compiled kernel keeps the main thread from hearing of it."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

__all__ = ["INTERRUPTED", "end_soon_after_interrupt"]

INTERRUPTED = 130
"""Exit code, as shells have it."""


def end_soon_after_interrupt(say: Callable[[], str], patience: float = 1.5) -> None:
    """From now on, end the process `patience` seconds after a Ctrl-C, with a word, if it has not ended by itself.

    Python raises KeyboardInterrupt only between two steps of the main thread; the signal itself is written to a socket
    at once, which a second thread reads.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        with writer:  # kept open as long as this thread
            while signal.SIGINT not in reader.recv(16):
                pass
            time.sleep(patience)
            print(say(), file=sys.stderr, flush=True)
            os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()
