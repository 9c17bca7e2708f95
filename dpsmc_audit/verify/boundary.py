"""The boundary: private samples and noise go in, tau and a decision come out, and nothing else does.

Whatever the samples' code prints, logs or warns of is dropped, and an error in it is replaced by words that hold
nothing of the samples: its message, its traceback and the exceptions behind it stay inside.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

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


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No output, no log, no warning of the code inside."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(_Nowhere()),
            contextlib.redirect_stderr(_Nowhere()),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def sealed(run: Callable[[], Outcome]) -> Outcome:
    """Run in silence. Errors are raised afresh outside of their handlers, so that no chain leads back inside."""
    interrupted, reason = False, KEPT_BACK
    try:
        with _silence():
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
    grid = Grid.of(test, max_steps)
    excess = draw_excess(test, mechanism, grid, entropy, opendp=opendp)
    heads = entropy.below(2) == 1
    samples = source.batches(entropy.below(2**64))
    if excess <= grid.no_room:
        return Outcome(1, "H_null" if heads else "H_alt")
    up, low = (min(bound + excess, 2**62) for bound in (grid.b_up, grid.b_low))
    steps = ones = 0
    for batch in samples:
        bits = batch.bits[: max_steps - steps]
        n, k = steps + np.arange(1, bits.size + 1), ones + np.cumsum(bits)
        walk = k * grid.up - (n - k) * grid.down
        out = (walk >= up) | (walk <= -low)
        if np.any(out):
            first = int(np.argmax(out))
            return Outcome(int(n[first]), "H_null" if walk[first] >= up else "H_alt")
        steps, ones = int(n[-1]), int(k[-1])
        if steps >= max_steps:
            break
    return Outcome(steps, "undecided")
