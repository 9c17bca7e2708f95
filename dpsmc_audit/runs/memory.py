"""Refuse a request before it starts if it cannot fit into memory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

from dpsmc_audit.errors import ParameterError

__all__ = ["NoRoomError", "available", "require_room"]


class NoRoomError(ParameterError):
    """A request needs more memory than there is."""


def available() -> float:
    """Find out how much memory this process can still take.

    Returns
    -------
    float
        Bytes: the smallest of what the system, the container and the limit of the process leave.
    """
    left = [float(psutil.virtual_memory().available)]
    for folder, limit, used, cache in (  # of a container: control groups, versions 2 and 1
        ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with suppress(OSError, ValueError, KeyError):  # "max" is no number: the group has no limit
            most, now = (float(Path(folder, name).read_text()) for name in (limit, used))
            rows = dict(line.split() for line in Path(folder, "memory.stat").read_text().splitlines())
            left.append(most - now + float(rows[cache]))  # the system drops cached files when it needs room
    process = psutil.Process()
    if hasattr(process, "rlimit"):  # on Linux
        most, _ = process.rlimit(psutil.RLIMIT_AS)
        left += [most - process.memory_info().vms] if most != psutil.RLIM_INFINITY else []
    return max(min(left), 0.0)


def require_room(need: float, what: str) -> None:
    """Refuse a request that needs more memory than is available.

    Parameters
    ----------
    need : float
        Bytes.
    what : str
        The request, as the subject of the message.

    Raises
    ------
    NoRoomError
        If fewer than `need` bytes are available.

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
