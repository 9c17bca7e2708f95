"""How far a long task is: a bar with rate and time left on a terminal, a line in the log now and then elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Points", "progress"]

PATIENCE = 1.0
"""Seconds before a bar appears: what is done sooner needs none."""
LOGGED = 30.0
"""Seconds between two lines in the log."""

log = logging.getLogger("dpsmc_audit")

_prefix = ""


class _Bar:
    """Tells how many of a total are done; the rate is that of this run, not of what it went on from."""

    def __init__(self, what: str, total: int | None) -> None:
        self.what, self.total = what, total
        self.started, self.last, self.shown = time.monotonic(), time.monotonic(), False
        self.first: int | None = None

    def tell(self, done: int) -> None:
        now = time.monotonic()
        self.first = done if self.first is None else self.first
        terminal = sys.stderr.isatty()
        if now - self.started < PATIENCE or now - self.last < (0.1 if terminal else LOGGED):
            return
        self.last = now
        text = self._text(done, (done - self.first) / (now - self.started), terminal)
        if terminal:
            self.shown = True
            print(f"\r{_prefix}{text} ", end="", file=sys.stderr, flush=True)
        else:
            log.info("%s", text)

    def _text(self, done: int, rate: float, terminal: bool) -> str:
        if self.total is None:
            return f"{self.what} {done}, {rate:.0f}/s"
        left = f"{_duration((self.total - done) / rate)} left" if rate > 0.0 else "..."
        bar = f" [{'#' * int(30 * done / self.total):<30}]" if terminal else ""
        return f"{self.what}{bar} {done}/{self.total}, {rate:.{0 if rate >= 10 else 2}f}/s, {left}"

    def clear(self) -> None:
        if self.shown:
            print("\r" + " " * (len(_prefix) + 100) + "\r", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    """Examples
    --------
    >>> _duration(7.2), _duration(130), _duration(8000)
    ('7 s', '2 min', '2.2 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that is told how many are done (without a total: a count)."""
    bar = _Bar(what, total)
    try:
        yield bar.tell
    finally:
        bar.clear()


class Points:
    """The points of a sweep, as far as they run in this process; bars of single points say which one it is."""

    def __init__(self, total: int) -> None:
        self._bar, self._done = _Bar("points", total), 0

    def begin(self) -> None:
        """A point starts."""
        global _prefix  # noqa: PLW0603
        self._bar.tell(self._done)
        _prefix = f"point {self._done + 1} of {self._bar.total}: "

    def end(self) -> None:
        """It is done."""
        self._done += 1

    def close(self) -> None:
        """So are all of them."""
        global _prefix  # noqa: PLW0603
        _prefix = ""
        self._bar.clear()
