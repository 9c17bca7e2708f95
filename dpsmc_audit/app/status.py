"""Show what is being done, in one line on a terminal. It needs no library, as it is shown before they are loaded."""

from __future__ import annotations

import os
import sys

__all__ = ["clear", "on_terminal", "show"]

CLEAR = "\r\x1b[2K"


def on_terminal() -> bool:
    """Tell whether standard error is a terminal that can erase a line.

    Returns
    -------
    bool
        True if it is.
    """
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def show(text: str) -> None:
    """Show what is being done, in place of what was shown before.

    Parameters
    ----------
    text : str
        One line. Nothing is shown without a terminal.
    """
    if on_terminal():
        print(f"{CLEAR}{text} ...", end="", file=sys.stderr, flush=True)


def clear() -> None:
    """Erase the line."""
    if on_terminal():
        print(CLEAR, end="", file=sys.stderr, flush=True)
