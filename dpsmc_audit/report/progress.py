"""A bar with rate and time left, on a terminal only; nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(what: str, total: int | None, patience: float = 1.0) -> Iterator[Callable[[int], None]]:
    """Yield a function that is told how many are done; the bar appears after a second (without a total: a count)."""
    started = time.monotonic()
    shown = 0.0

    def advance(done: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if not sys.stderr.isatty() or now - started < patience or now - shown < 0.1:
            return
        shown = now
        rate = done / (now - started)
        if total is None:
            print(f"\r{what} {done}, {rate:.0f}/s ", end="", file=sys.stderr, flush=True)
            return
        share = done / total
        bar = "#" * int(30 * share)
        left = (total - done) / rate if rate > 0 else 0.0
        print(
            f"\r{what} [{bar:<30}] {done}/{total}, {rate:.0f}/s, {left:.0f} s left ",
            end="",
            file=sys.stderr,
            flush=True,
        )

    try:
        yield advance
    finally:
        if shown:
            print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)
