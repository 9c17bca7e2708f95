"""Where the blocks of a task are computed: here, by threads, by processes or on a dask cluster.

A task is cut into blocks of path indices. What a block contains is a function of the parameters and of its indices;
blocks come back in the order of their indices and are added up there. So nothing in this module can change a result.
"""

from __future__ import annotations

import atexit
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, Protocol, TypeVar

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.runs.checkpoints import Checkpoint, Sums

__all__ = ["BACKENDS", "SERIAL", "Backend", "Execution", "accumulate", "cut"]

Backend = Literal["serial", "threads", "processes", "dask"]
BACKENDS = ("serial", "threads", "processes", "dask")
_JOBLIB = {"threads": "threading", "processes": "loky", "dask": "dask"}

MOST_WORKERS = 1024
LARGEST_BLOCK = 1 << 20
LONGEST = 4
"""A block may be at most so many times as large as usual."""
AHEAD = 16
"""Blocks per worker that are under way or wait to be added: a bound on memory."""

Result = TypeVar("Result")
Added_contra = TypeVar("Added_contra", contravariant=True)
Block = tuple[int, ...]


class Accumulator(Sums, Protocol[Added_contra]):
    """Adds up blocks; True if no more are needed."""

    def add(self, result: Added_contra) -> bool | None: ...


@dataclass(frozen=True)
class Execution:
    """How a task is carried out; the result is the same for all of them.

    `workers` are threads or processes (for dask without an `address`: processes of a local cluster). `block_size` is
    the number of runs or pairs in a block, by default about as many as take some hundredths of a second. `progress` is
    told how many are done, and `checkpoint` keeps their sums.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Sampling, Setting, Sprt, simulate
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> setting = Setting(test, Exponential.private(test, epsilon=0.05), 0.84)
    >>> two = Execution("threads", workers=2, block_size=1000)
    >>> simulate(setting, runs=20_000, sampling=Sampling(execution=two)).tally == simulate(setting, runs=20_000).tally
    True
    """

    backend: Backend = "serial"
    workers: int = 1
    address: str | None = None
    block_size: int | None = None
    progress: Callable[[int], None] | None = field(default=None, compare=False)
    checkpoint: Checkpoint | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        require(self.backend in BACKENDS, f"backend must be one of {', '.join(BACKENDS)}, got {self.backend}")
        workers, size = self.workers, self.block_size
        require(1 <= workers <= MOST_WORKERS, f"backend.workers must lie in [1, {MOST_WORKERS}], got {workers}")
        known = size is None or 1 <= size <= LARGEST_BLOCK
        require(known, f"backend.block_size must lie in [1, 2^20], got {size}")
        given = self.address is None or self.backend == "dask"
        require(given, f"backend.address is for backend=dask, got backend={self.backend}")

    @property
    def spent(self) -> float:
        """Seconds of earlier attempts that this one goes on from."""
        return 0.0 if self.checkpoint is None else self.checkpoint.spent

    def size(self, usual: int) -> int:
        """Runs or pairs in a block: the usual number, or as asked but no more than a second of work.

        Ctrl-C is noticed between two blocks, so no block may take long.
        """
        return min(self.block_size or usual, LONGEST * usual)

    def told_after(self, offset: int) -> Callable[[int], None] | None:
        """Progress of a part that begins after so many."""
        progress = self.progress
        return None if progress is None else lambda done: progress(offset + done)

    def map(self, work: Callable[..., Result], blocks: Iterable[Block], ahead: int = AHEAD) -> Iterator[Result]:
        """``work(*block)`` of every block, in their order."""
        waiting = iter(blocks)
        if self.backend == "serial" or (self.backend == "threads" and self.workers == 1):
            yield from (work(*block) for block in waiting)
            return
        first = list(islice(waiting, 2))
        if len(first) == 1 and self.backend == "threads":
            yield work(*first[0])
        elif first:
            yield from self._elsewhere(work, first, waiting, ahead)

    def _elsewhere(
        self, work: Callable[..., Result], first: list[Block], waiting: Iterator[Block], ahead: int
    ) -> Iterator[Result]:
        """By joblib, a window of blocks at a time: it hands out all that it is given, however slowly it is read."""
        from joblib import Parallel, delayed, parallel_config

        options: dict[str, Any] = {"max_nbytes": None} if self.backend != "dask" else {}
        workers = self.workers
        if self.backend == "dask":
            options["client"] = client = _client(self.address, self.workers)
            workers = max(sum(client.ncores().values()), 1)
        with (
            parallel_config(backend=_JOBLIB[self.backend], n_jobs=workers, **options),
            Parallel(return_as="generator", batch_size=1) as parallel,
        ):
            window = [*first, *islice(waiting, ahead * workers - len(first))]
            while window:
                results = parallel(delayed(work)(*block) for block in window)
                try:
                    for result in results:  # noqa: UP028 - "yield from" would close them without what follows
                        yield result
                finally:
                    with warnings.catch_warnings():  # blocks that nobody waits for any more are no one's mistake
                        warnings.simplefilter("ignore")
                        results.close()
                window = list(islice(waiting, ahead * workers))


SERIAL = Execution()


def cut(total: int, size: int, done: int = 0) -> Iterator[tuple[Block, int]]:
    """Blocks (first, count) of what is left to do, each with how many are done after it.

    Examples
    --------
    >>> list(cut(10, 4, done=2))
    [((2, 4), 6), ((6, 4), 10)]
    """
    for first in range(done, total, size):
        count = min(size, total - first)
        yield (first, count), first + count


def accumulate(
    work: Callable[..., Result],
    blocks: Callable[[int], Iterable[tuple[Block, int]]],
    sums: Accumulator[Result],
    execution: Execution,
    stage: str,
    ahead: int = AHEAD,
) -> None:
    """Add the blocks up, from where an earlier attempt got to; ``blocks(done)`` are those that are left.

    A checkpoint holds whole blocks: one that is being added when an interruption comes is not part of it.
    """
    checkpoint, progress = execution.checkpoint, execution.progress
    done = begun = 0 if checkpoint is None else checkpoint.restore(stage, sums)
    ends: deque[int] = deque()

    def handed_out() -> Iterator[Block]:
        for block, end in blocks(begun):
            ends.append(end)
            yield block

    adding = False
    try:
        for result in execution.map(work, handed_out(), ahead):
            adding = True
            over = sums.add(result)
            if over:  # interrupted here, it is added again: sums on disk always want more
                return
            done, adding = ends.popleft(), False
            if progress is not None:
                progress(done)
            if checkpoint is not None:
                checkpoint.offer(stage, done, sums)
    except KeyboardInterrupt:
        if checkpoint is not None and not adding and done > begun:
            with suppress(OSError):
                checkpoint.save(stage, done, sums)
        raise
    if checkpoint is not None and checkpoint.kept.get(stage, done) != done:
        with suppress(OSError):
            checkpoint.save(stage, done, sums)  # another stage follows, and may be interrupted


# --- dask -----------------------------------------------------------------------------------------------------------


_open: dict[tuple[str | None, int], Any] = {}


def _client(address: str | None, workers: int) -> Any:
    """One client at a time, kept for the next task."""
    if (address, workers) not in _open:
        _close()
        _open[address, workers] = _connected(address, workers)
    return _open[address, workers]


@atexit.register
def _close() -> None:
    """The client, and the local cluster that was started for it."""
    while _open:
        _, client = _open.popitem()
        cluster = client.cluster
        client.close()
        if cluster is not None:
            cluster.close()


def _connected(address: str | None, workers: int) -> Any:
    """A client of a running scheduler, or of a local cluster; its workers must run this very code."""
    try:
        import distributed
    except ImportError as error:
        raise ParameterError("backend=dask needs dask: pip install 'dpsmc-audit[dask]'") from error
    from dpsmc_audit.runs.provenance import environment

    package: Any = distributed
    if address is None:
        cluster = package.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=40)
        client = package.Client(cluster)
    else:
        try:
            client = package.Client(address, timeout="10s")
        except (OSError, TimeoutError, ValueError) as error:
            raise ParameterError(f"backend.address={address}: no dask scheduler answers there ({error})") from error
    client.wait_for_workers(1, timeout=30)
    others = set(client.run(environment).values()) - {environment()}
    if others:
        client.close()
        raise ParameterError(
            f"backend=dask: workers run other versions: {'; '.join(sorted(others))}, not {environment()}"
        )
    return client
