"""Show what is being done and how far it is: on a terminal at once, elsewhere now and then a line in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING

from tqdm import tqdm

from dpsmc_audit.app import status
from dpsmc_audit.app.interrupts import interrupted
from dpsmc_audit.sampling.plan import Sampling

if TYPE_CHECKING:
    from dpsmc_audit.app.config import Config
    from dpsmc_audit.runs.execution import Execution

__all__ = ["bar", "close_all", "doing", "hide", "progress", "sampling_of"]

log = logging.getLogger("dpsmc_audit")


_open: list[tqdm] = []
"""The bars on the terminal, the innermost last."""


class _Bar(tqdm):  # type: ignore[misc]
    """A bar that is known as long as it is open."""

    def close(self) -> None:
        super().close()
        if self in _open:
            _open.remove(self)


def bar(what: str, total: int | None, title: str = "drawing") -> tqdm:
    """Make a progress bar on standard error.

    Parameters
    ----------
    what : str
        What is counted.
    total : int or None
        How many there will be. None shows a count instead of a bar.
    title : str
        What is done with them.

    Returns
    -------
    tqdm
        A bar that vanishes in the end. It is silent if standard error is no terminal.
    """
    _lock_threads_only()
    if not _open:
        status.clear()
    shown = _Bar(total=total, desc=f"{title} {what}", unit=f" {what}", leave=False, dynamic_ncols=True, disable=None)
    if not shown.disable:
        _open.append(shown)
    return shown


def doing(what: str) -> None:
    """Show what is being done: beside the bar of a sweep, else in a line of its own.

    Parameters
    ----------
    what : str
        What is being done.
    """
    if _open:
        _open[-1].set_postfix_str(what)
    else:
        status.show(what)


def hide() -> None:
    """Erase what is shown before a line is printed. Bars come back with their next step."""
    for shown in reversed(_open):
        shown.clear()
    status.clear()


def close_all() -> None:
    """Remove all bars and the line of the status, before something else is printed."""
    while _open:
        _open[-1].close()
    status.clear()


@lru_cache(maxsize=1)
def _lock_threads_only() -> None:
    """Bars of one process need no semaphore of the system, which a killed process would leave behind."""
    tqdm.set_lock(RLock())


@contextmanager
def progress(what: str, total: int | None, every: float = 30.0) -> Iterator[Callable[[int], None]]:
    """Show the progress of a task.

    Parameters
    ----------
    what : str
        What is counted.
    total : int or None
        How many there will be, if that is known.
    every : float
        Seconds between two lines in the log, where there is no terminal.

    Yields
    ------
    callable
        The task calls it with the number that are done.
    """
    with bar(what, total) as shown:
        logged, last = time.monotonic(), 0

        def advance(done: int) -> None:
            nonlocal logged, last
            if interrupted():  # the code of a model, a sampler or a library dropped the interrupt
                raise KeyboardInterrupt
            if last == 0:
                shown.initial = done  # a checkpoint may have been restored: the rate is that of this process
            shown.update(done - last)
            last = done
            if total is not None and done >= total:
                shown.close()
                doing("computing bounds and exact values")
            if shown.disable and time.monotonic() - logged > every:
                logged = time.monotonic()
                log.info("%s %d of %s", what, done, total or "any number")

        yield advance


@contextmanager
def sampling_of(config: Config, execution: Execution, what: str, total: int) -> Iterator[Sampling]:
    """Show the progress of a task that draws runs.

    Parameters
    ----------
    config : Config
        The seed and the longest run.
    execution : Execution
        Where the work is done.
    what : str
        What is counted.
    total : int
        How many there will be.

    Yields
    ------
    Sampling
        How the task draws its runs.
    """
    if config.engine.name == "exact" and config.own is None:
        doing("computing exact laws")
        yield Sampling(config.seed, config.max_steps, execution)
        return
    with progress(what, total) as advance:
        yield Sampling(config.seed, config.max_steps, replace(execution, progress=advance))
