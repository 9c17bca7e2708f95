"""Where the blocks of a task are computed: in this process, by threads, by processes or on a dask cluster.

A task is cut into blocks of path indices. The content of a block depends only on the parameters and on its indices.
Blocks come back in the order of their indices and are added up in that order. So nothing here can change a result.
"""

from __future__ import annotations

import atexit
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, tee
from typing import Any, Literal, Protocol, TypeVar, get_args
from urllib.parse import urlsplit

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.runs.checkpoints import Checkpoint, Sums
from dpsmc_audit.runs.processes import guard

__all__ = ["AHEAD", "BACKENDS", "SERIAL", "Backend", "Execution", "accumulate", "cut"]

Backend = Literal["serial", "threads", "processes", "dask"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)

AHEAD = 16
"""Blocks per worker that may be under way or wait to be added. This bounds the memory."""

Result = TypeVar("Result")
Added_contra = TypeVar("Added_contra", contravariant=True)
Block = tuple[int, ...]


class Accumulator(Sums, Protocol[Added_contra]):
    """Sums of the results of blocks."""

    def add(self, result: Added_contra) -> bool | None:
        """Add the result of a block.

        Parameters
        ----------
        result : object
            The result.

        Returns
        -------
        bool or None
            True if no more blocks are needed.
        """
        ...


@dataclass(frozen=True)
class Execution:
    """How a task is carried out. The result does not depend on it.

    Parameters
    ----------
    backend : {"serial", "threads", "processes", "dask"}
        Where blocks are computed.
    workers : int
        The number of threads or processes. For dask without an address: the processes of a local cluster.
    address : str or None
        The address of a dask scheduler. None starts a local cluster.
    block_size : int or None
        The number of runs or pairs in a block. None: as many as take some hundredths of a second.
    progress : callable or None
        Called with the number of runs that are done.
    checkpoint : Checkpoint or None
        Where sums are kept while the task runs.
    client : distributed.Client or None
        An open connection to a dask cluster; see `connected`.

    Raises
    ------
    ParameterError
        If a value is impossible.

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
    client: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        size, dask = self.block_size, self.backend == "dask"
        require(self.backend in BACKENDS, f"backend must be one of {', '.join(BACKENDS)}, got {self.backend}")
        require(1 <= self.workers <= 1024, f"backend.workers must lie in [1, 1024], got {self.workers}")
        require(size is None or 1 <= size <= 2**20, f"backend.block_size must lie in [1, 2^20], got {size}")
        require(self.address is None or dask, f"backend.address is for backend=dask, got backend={self.backend}")

    @property
    def spent(self) -> float:
        """Seconds that earlier attempts at this task took."""
        return 0.0 if self.checkpoint is None else self.checkpoint.spent

    def size(self, usual: int) -> int:
        """Choose the number of runs or pairs in a block.

        Parameters
        ----------
        usual : int
            As many as take some hundredths of a second.

        Returns
        -------
        int
            `block_size` if given, else `usual`; at most four times `usual`, because Ctrl-C waits for a block to end.
        """
        return min(self.block_size or usual, 4 * usual)

    def told_after(self, offset: int) -> Callable[[int], None] | None:
        """Make the progress function of a part of the task.

        Parameters
        ----------
        offset : int
            How many are done when the part begins.

        Returns
        -------
        callable or None
            It takes how many of the part are done. None if nobody wants to know.
        """
        progress = self.progress
        return None if progress is None else lambda done: progress(offset + done)

    @contextmanager
    def connected(self) -> Iterator[Execution]:
        """Open one connection to the dask cluster for several tasks. Other backends need none.

        Without it every call of `map` opens and closes a connection of its own.

        Yields
        ------
        Execution
            The same with a `client`.

        Raises
        ------
        ParameterError
            If dask is not installed, no scheduler answers, or its workers run other versions.
        """
        if self.backend != "dask" or self.client is not None:
            yield self
            return
        with _dask_client(self.address, self.workers) as client:
            yield replace(self, client=client)

    def map(self, work: Callable[..., Result], blocks: Iterable[Block], ahead: int = AHEAD) -> Iterator[Result]:
        """Compute blocks and yield their results in the order of the blocks.

        Parameters
        ----------
        work : callable
            Called as ``work(*block)``, possibly in another process.
        blocks : iterable
            The blocks.
        ahead : int
            The number of blocks per worker that may be under way or wait to be read.

        Yields
        ------
        object
            The result of each block.
        """
        waiting = iter(blocks)
        first = list(islice(waiting, 2))
        in_threads = self.backend == "threads" and self.workers > 1 and len(first) > 1
        if in_threads or (self.backend in ("processes", "dask") and first):
            with self.connected() as ready:
                yield from ready._elsewhere(work, chain(first, waiting), ahead)
        else:
            yield from (work(*block) for block in chain(first, waiting))

    def _elsewhere(self, work: Callable[..., Result], waiting: Iterator[Block], ahead: int) -> Iterator[Result]:
        """Compute blocks with joblib, one window at a time: joblib starts all that it is given at once."""
        from joblib import Parallel, delayed, parallel_config

        workers, options = self.workers, dict[str, Any](backend="loky", max_nbytes=None)
        if self.backend == "processes":
            guard()
        if self.backend == "threads":
            options["backend"] = "threading"
        elif self.backend == "dask":
            workers, options = max(sum(self.client.ncores().values()), 1), {"backend": "dask", "client": self.client}
        with (
            parallel_config(n_jobs=workers, **options),
            Parallel(return_as="generator", batch_size=1) as parallel,
        ):
            while window := list(islice(waiting, ahead * workers)):
                results = parallel(delayed(work)(*block) for block in window)
                try:
                    for result in results:  # noqa: UP028 - "yield from" would close them without what follows
                        yield result
                finally:
                    with warnings.catch_warnings():  # joblib warns of blocks that nobody waits for
                        warnings.simplefilter("ignore")
                        results.close()


SERIAL = Execution()


def cut(total: int, size: int, done: int = 0) -> Iterator[tuple[Block, int]]:
    """Cut the runs that are left into blocks.

    Parameters
    ----------
    total : int
        The number of runs of the task.
    size : int
        The number of runs in a block.
    done : int
        The number of runs that are done.

    Yields
    ------
    tuple
        A block (first, count), and the number of runs that are done after it.

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
    """Compute blocks and add them up, starting from the checkpoint of an earlier attempt if there is one.

    Parameters
    ----------
    work : callable
        Called as ``work(*block)``.
    blocks : callable
        ``blocks(done)`` yields the blocks that are left after `done` runs, each with the number done after it.
    sums : Accumulator
        The sums.
    execution : Execution
        Where blocks are computed and where sums are kept.
    stage : str
        The name of this part of the task, for its checkpoint.
    ahead : int
        The number of blocks per worker that may be under way or wait to be added.
    """
    checkpoint, progress = execution.checkpoint, execution.progress
    done = begun = 0 if checkpoint is None else checkpoint.restore(stage, sums)
    handed_out, ends = tee(blocks(begun))
    indices = (block for block, _ in handed_out)
    whole = True
    try:
        for result, (_, end) in zip(execution.map(work, indices, ahead), ends, strict=False):
            whole = False  # an interrupt during `add` must not save half of a block
            if sums.add(result):
                return
            done, whole = end, True
            if progress is not None:
                progress(done)
            if checkpoint is not None:
                checkpoint.offer(stage, done, sums)
    except KeyboardInterrupt:
        if checkpoint is not None and whole and done > begun:
            with suppress(OSError):
                checkpoint.save(stage, done, sums)
        raise
    if checkpoint is not None and checkpoint.kept.get(stage, done) != done:
        with suppress(OSError):  # another stage follows, and may be interrupted
            checkpoint.save(stage, done, sums)


def _greeted(address: str, seconds: float = 10.0) -> None:
    """Wait until the scheduler says something, as it does to every new connection: dask itself would wait for ever."""
    found = urlsplit(address)
    if found.scheme == "tcp" and found.hostname is not None and found.port is not None:
        with socket.create_connection((found.hostname, found.port), timeout=seconds) as connection:
            if not connection.recv(1):
                raise OSError("it closes the connection")


def _local_cluster(workers: int) -> Any:
    """Start a cluster of processes that end with this one."""
    from distributed import LocalCluster
    from distributed.deploy.spec import close_clusters

    guard()
    started: Any = LocalCluster
    try:
        return started(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=40)
    except KeyboardInterrupt:
        atexit.unregister(close_clusters)  # a cluster that has not started cannot be closed: it would raise at the end
        raise


@contextmanager
def _dask_client(address: str | None, workers: int) -> Iterator[Any]:
    """Connect to a scheduler, or start a local cluster. The workers must run the same code as this process."""
    try:
        import distributed
    except ImportError as error:
        raise ParameterError("backend=dask needs dask: pip install 'dpsmc-audit[dask]'") from error
    from dpsmc_audit.runs.provenance import environment

    dask: Any = distributed
    place: Any = address
    with ExitStack() as opened:
        if address is None:
            place = opened.enter_context(_local_cluster(workers))
        try:
            if address is not None:
                _greeted(address)
            client = opened.enter_context(dask.Client(place, timeout="10s"))
        except (OSError, TimeoutError, ValueError) as error:
            raise ParameterError(f"backend.address={address}: no dask scheduler answers there ({error})") from error
        client.wait_for_workers(1, timeout=30)
        others = {*client.run(environment).values()} - {environment()}
        found = "; ".join(sorted(others))
        require(not others, f"backend=dask: workers run other versions: {found}, not {environment()}")
        yield client
