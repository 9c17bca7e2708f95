"""Errors for the user, and checks that all modules use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "ParameterError",
    "SamplerError",
    "check_bin_width",
    "check_entries",
    "check_probability",
    "in_order",
    "regular",
    "require",
]


class ParameterError(ValueError):
    """A parameter is invalid. The message is one line for the user."""


class SamplerError(ParameterError):
    """A sampler failed, or what it returned is no sample. `partial` is the audit of the runs before, if any.

    Parameters
    ----------
    message : str
        What went wrong.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.partial: Any = None


def require(condition: bool, message: str) -> None:
    """Raise an error unless a condition holds. A comparison with nan never holds.

    Parameters
    ----------
    condition : bool
        The condition.
    message : str
        One line for the user.

    Raises
    ------
    ParameterError
        If the condition does not hold.
    """
    if not condition:
        raise ParameterError(message)


def regular(path: Path) -> Path:
    """Check that a path is not a pipe or a device. A pipe would block its reader, or be empty the second time.

    Parameters
    ----------
    path : Path
        The path. Missing files and folders pass: opening them raises an error of its own.

    Returns
    -------
    Path
        The same path.

    Raises
    ------
    ParameterError
        If the path is a pipe or a device.
    """
    require(path.is_file() or not path.exists() or path.is_dir(), f"{path} is not a regular file")
    return path


def in_order(entry: int | Sequence[int]) -> tuple[int, ...]:
    """Sort entries.

    Parameters
    ----------
    entry : int or sequence of int
        One or several samples, counted from 1.

    Returns
    -------
    tuple of int
        The entries in increasing order.

    Raises
    ------
    ParameterError
        If there is none, one is below 1 or two are equal.
    """
    entries = (entry,) if isinstance(entry, int) else tuple(sorted(entry))
    require(len(entries) > 0, "entry must name at least one sample")
    require(entries[0] >= 1, f"entry must be at least 1, got {entries[0]}")
    require(len(set(entries)) == len(entries), f"entry must name different samples, got {list(entries)}")
    return entries


def check_bin_width(width: int | None) -> None:
    """Check the width of bins. No run is longer than the largest one, so one bin of it holds all runs.

    Parameters
    ----------
    width : int or None
        The width in samples. None if it is chosen later.

    Raises
    ------
    ParameterError
        If it lies outside [1, 2^40].
    """
    require(width is None or 1 <= width <= 2**40, f"bin_width must lie in [1, 2^40], got {width}")


def check_entries(entries: tuple[int, ...], max_steps: int) -> None:
    """Check that entries are samples that can be drawn.

    Parameters
    ----------
    entries : tuple of int
        The entries. There may be none.
    max_steps : int
        The largest number of samples.

    Raises
    ------
    ParameterError
        If they are not.
    """
    if entries:
        in_order(entries)
        require(entries[-1] <= max_steps, f"entry must lie in [1, max_steps], got {entries[-1]}")


def check_probability(name: str, value: float) -> None:
    """Check a probability.

    Parameters
    ----------
    name : str
        Its name, for the message.
    value : float
        The probability.

    Raises
    ------
    ParameterError
        If it lies outside [0, 1], or within 1e-12 of 0 or 1 without being 0 or 1.
    """
    require(0.0 <= value <= 1.0, f"{name} must lie in [0, 1], got {value}")
    edge = min(value, 1.0 - value)
    require(edge == 0.0 or edge >= 1e-12, f"{name} must be 0, 1 or at least 1e-12 away from them, got {value}")
