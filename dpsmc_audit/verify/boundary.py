"""The boundary: private samples and noise go in, tau and a decision come out, and nothing else does.

Whatever the samples' code prints, logs or warns of while the run lasts is dropped, by way of Python or of the standard
streams, and an error in it is replaced by words that hold nothing of the samples: its message, its traceback and the
exceptions behind it stay inside. The command ends its process at once after a release (`dpsmc_audit.cli.command`),
so that threads, exit handlers and finalisers of that code do not speak later. It is no sandbox: code that opens files,
sockets or terminals of its own can write what it likes to them.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TextIO

import numpy as np

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.models.sources import Source, SourceError
from dpsmc_audit.sprt import ParameterError, Sprt
from dpsmc_audit.verify.entropy import Entropy
from dpsmc_audit.verify.noise import Grid, draw_excess

__all__ = ["Outcome", "VerificationError", "run_once", "sealed"]

KEPT_BACK = (
    "the model failed while its samples were drawn; the reason is kept back, as it may hold samples "
    "(task=estimate on data that are not private shows it)"
)


class Outcome(NamedTuple):
    """All that a run may tell."""

    tau: int
    decision: str


class VerificationError(ParameterError):
    """A run that could not be finished, in words that hold nothing of its samples."""


class _Nowhere(io.TextIOBase):
    """A stream that forgets."""

    def write(self, text: str) -> int:
        return len(text)


def _flush(streams: Iterable[TextIO | None]) -> None:
    """What waits in buffers of Python or of the C library for standard output and error goes where they lead now."""
    for stream in streams:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()  # type: ignore[union-attr]
    with contextlib.suppress(AttributeError, OSError, TypeError):  # systems name their C library in other ways
        ctypes.CDLL(None).fflush(None)


@contextlib.contextmanager
def _closed_streams() -> Iterator[None]:
    """Standard output and error lead nowhere, for C code and child processes too."""
    kept, streams = [], (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    _flush(streams)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream in (1, 2):
            with contextlib.suppress(OSError):
                kept.append((stream, os.dup(stream)))
                os.dup2(nowhere, stream)
        yield
    finally:
        _flush(streams)
        for stream, copy in kept:
            os.dup2(copy, stream)
            os.close(copy)
        os.close(nowhere)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No output, no log, no warning of the code inside."""
    before, handlers = logging.root.manager.disable, logging.root.handlers[:]
    logging.disable(logging.CRITICAL)
    logging.root.handlers[:] = []
    try:
        with (
            _closed_streams(),
            contextlib.redirect_stdout(_Nowhere()),
            contextlib.redirect_stderr(_Nowhere()),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.root.handlers[:] = handlers
        logging.disable(before)


def sealed(run: Callable[[], Outcome]) -> Outcome:
    """Run in silence. Errors are raised afresh outside of their handlers, so that no chain leads back inside."""
    interrupted, reason = False, KEPT_BACK
    with _silence():  # errors are let go of in here: what they hold may speak when it is
        try:
            return run()
        except KeyboardInterrupt:
            interrupted = True
        except SourceError as error:
            reason = error.place
        except BaseException:
            pass
    if interrupted:
        raise KeyboardInterrupt
    raise VerificationError(reason)


def run_once(
    test: Sprt, mechanism: Mechanism, source: Source, max_steps: int, entropy: Entropy, *, opendp: bool = False
) -> Outcome:
    """One run in whole numbers (`dpsmc_audit.verify.noise`): L first, then sample after sample in their order.

    Samples come in batches; those beyond tau change nothing, and an error beyond tau is never met.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> from dpsmc_audit.models.sources import Bernoulli
    >>> from dpsmc_audit.verify.entropy import SeededEntropy
    >>> run_once(Sprt(0.73, 0.03, 0.05), NoNoise(), Bernoulli(1.0), 10**6, SeededEntropy(1))
    Outcome(tau=36, decision='H_null')
    """
    grid = Grid.of(test)
    excess = draw_excess(test, mechanism, grid, entropy, opendp=opendp)
    heads = entropy.below(2) == 1
    samples = source.batches(entropy.below(2**64))
    if excess <= grid.no_room:
        return Outcome(1, "H_null" if heads else "H_alt")
    up, low = grid.b_up + excess, grid.b_low + excess
    steps = walk = 0  # whole numbers of any size; within a batch 64 bits are enough
    for batch in samples:
        bits = batch.bits[: max_steps - steps]
        n, k = np.arange(1, bits.size + 1), np.cumsum(bits)
        moved = k * grid.up - (n - k) * grid.down
        above, below = moved >= min(up - walk, 2**62), moved <= max(-low - walk, -(2**62))
        if np.any(above | below):
            first = int(np.argmax(above | below))
            return Outcome(steps + first + 1, "H_null" if above[first] else "H_alt")
        steps, walk = steps + bits.size, walk + int(moved[-1])
        if steps >= max_steps:
            break
    return Outcome(steps, "undecided")
