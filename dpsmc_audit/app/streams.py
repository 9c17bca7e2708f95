"""Streams cannot cost a run: a stream that is closed, full or cannot show a letter loses words, and nothing else."""

from __future__ import annotations

import os
import sys
from typing import IO, Any

__all__ = ["Patient", "prepare"]


class Patient:
    """A text stream that drops what cannot be written.

    Parameters
    ----------
    stream : file object
        The stream.

    Examples
    --------
    >>> with open(os.devnull, "w") as closed:
    ...     pass
    >>> print("these words are lost", file=Patient(closed))
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream, self._lost = stream, False

    def write(self, text: str) -> int:
        """Write a text if that is possible.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        int
            Its length.
        """
        try:
            if not self._lost:
                self._stream.write(text)
        except (OSError, ValueError):  # a closed stream raises ValueError
            self._lost = True
        return len(text)

    def flush(self) -> None:
        """Write what is buffered if that is possible."""
        try:
            if not self._lost:
                self._stream.flush()
        except (OSError, ValueError):
            self._lost = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare() -> None:
    """Open standard streams that are closed, and let none of them end the run.

    A closed stream leaves its number to the next file that is opened, and libraries would write into that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it takes the free number
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
        setattr(sys, name, Patient(stream))
