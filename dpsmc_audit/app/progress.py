"""Show how far a long task is: a bar on a terminal, now and then a line in the log elsewhere."""

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

from dpsmc_audit.app.interrupts import interrupted
from dpsmc_audit.sampling.plan import Sampling

if TYPE_CHECKING:
    from dpsmc_audit.app.config import Config
    from dpsmc_audit.runs.execution import Execution

__all__ = ["bar", "progress", "sampling_of"]

log = logging.getLogger("dpsmc_audit")


def bar(what: str, total: int | None) -> tqdm:
    """Make a progress bar on standard error.

    Parameters
    ----------
    what : str
        What is counted.
    total : int or None
        How many there will be. None shows a count instead of a bar.

    Returns
    -------
    tqdm
        A bar that appears after a second and vanishes in the end. It is silent if standard error is no terminal.
    """
    _lock_threads_only()
    return tqdm(total=total, desc=what, unit=f" {what}", delay=1.0, leave=False, dynamic_ncols=True, disable=None)


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
    with progress(what, total) as advance:
        yield Sampling(config.seed, config.max_steps, replace(execution, progress=advance))
