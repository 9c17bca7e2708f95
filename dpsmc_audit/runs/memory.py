"""Requests that cannot fit into memory are refused before they start."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from pathlib import Path

from dpsmc_audit.errors import ParameterError

__all__ = ["NoRoomError", "available", "require_room"]


_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Where version 2 and version 1 of control groups tell the limit of a container, its use, and the cache in it."""


class NoRoomError(ParameterError):
    """More memory would be needed than there is."""


def available() -> float:
    """Bytes that can still be taken: what the system has left, less where a limit is set for this process."""
    found = [float(sys.maxsize)]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [1024.0 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    found += [_left_in_group(*names) for names in _GROUPS]
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit_here, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        if limit_here != resource.RLIM_INFINITY:
            found.append(float(limit_here - pages * resource.getpagesize()))
    return max(min(found), 0.0)


def _left_in_group(folder: str, limit: str, used: str, cache: str) -> float:
    """What a control group may still take; caches of files make room when they must."""
    with suppress(OSError, ValueError):  # "max" is no number: there is no limit
        group = Path(folder)
        most, now = (float((group / name).read_text(encoding="ascii")) for name in (limit, used))
        rows = [line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines()]
        return most - now + sum(float(value) for name, value in rows if name == cache)
    return math.inf


def require_room(need: float, what: str) -> None:
    """Raise `NoRoomError` if there are not `need` bytes left.

    Examples
    --------
    >>> require_room(1e18, "a histogram of this size")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    dpsmc_audit.runs.memory.NoRoomError: a histogram of this size would take about 1000000000.0 GB of memory, ...
    """
    free = available()
    if need > free:
        raise NoRoomError(f"{what} would take about {need / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free")
