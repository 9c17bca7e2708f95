"""Errors for the user, and the checks that every room makes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["ParameterError", "check_entries", "check_probability", "in_order", "regular", "require"]


class ParameterError(ValueError):
    """A parameter that no run can be made with; its message is one line for the user."""


def require(condition: bool, message: str) -> None:
    """Raise `ParameterError` unless the condition holds (a comparison with nan never does)."""
    if not condition:
        raise ParameterError(message)


def regular(path: Path) -> Path:
    """The path of a file that can be read again: a pipe would make its reader wait, or be empty the second time."""
    require(path.is_file() or not path.exists() or path.is_dir(), f"{path} is not a regular file")
    return path


def in_order(entry: int | Sequence[int]) -> tuple[int, ...]:
    """One or several entries, counted from 1, in the order in which the walks meet them."""
    entries = (entry,) if isinstance(entry, int) else tuple(sorted(entry))
    require(len(entries) > 0, "entry must name at least one sample")
    require(entries[0] >= 1, f"entry must be at least 1, got {entries[0]}")
    require(len(set(entries)) == len(entries), f"entry must name different samples, got {list(entries)}")
    return entries


def check_entries(entries: tuple[int, ...], max_steps: int) -> None:
    """Entries are samples that can be drawn."""
    if entries:
        in_order(entries)
        require(entries[-1] <= max_steps, f"entry must lie in [1, max_steps], got {entries[-1]}")


def check_probability(name: str, value: float) -> None:
    """A probability lies in [0, 1]."""
    require(0.0 <= value <= 1.0, f"{name} must lie in [0, 1], got {value}")
    edge = min(value, 1.0 - value)
    require(edge == 0.0 or edge >= 1e-12, f"{name} must be 0, 1 or at least 1e-12 away from them, got {value}")
