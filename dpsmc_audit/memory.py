"""Requests that cannot fit into memory are refused before they start."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from dpsmc_audit.sprt import ParameterError

__all__ = ["NoRoomError", "available", "require_room"]


class NoRoomError(ParameterError):
    """More memory would be needed than there is."""


def available() -> float:
    """Bytes that can still be taken: what the system has left, less where a limit is set for this process."""
    found = [float(sys.maxsize)]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found.append(1024.0 * next(float(line.split()[1]) for line in lines if line.startswith("MemAvailable:")))
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current"))
        found.append(float(limit) - float(used))  # "max" is no number: there is no limit
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit_here, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        if limit_here != resource.RLIM_INFINITY:
            found.append(float(limit_here - pages * resource.getpagesize()))
    return max(min(found), 0.0)


def require_room(need: float, what: str) -> None:
    """Raise `NoRoomError` if there are not `need` bytes left.

    Examples
    --------
    >>> require_room(1e18, "a histogram of this size")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    dpsmc_audit.memory.NoRoomError: a histogram of this size would take about 1000000000.0 GB of memory, ...
    """
    free = available()
    if need > free:
        raise NoRoomError(f"{what} would take about {need / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free")
