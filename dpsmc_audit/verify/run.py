"""One run of the test in whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.models.sources import Source
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify.entropy import Entropy
from dpsmc_audit.verify.noise import Grid, draw_excess

__all__ = ["Outcome", "run_once"]


class Outcome(NamedTuple):
    """All that a run may release.

    Parameters
    ----------
    tau : int
        The number of samples.
    decision : {"H_null", "H_alt", "undecided"}
        The decision.
    """

    tau: int
    decision: str


def run_once(
    test: Sprt, mechanism: Mechanism, source: Source, max_steps: int, entropy: Entropy, *, opendp: bool = False
) -> Outcome:
    """Run the test once in whole numbers (see `dpsmc_audit.verify.noise`): draw L, then read samples in their order.

    Samples come in batches. Samples beyond tau change nothing, and an error beyond tau is never seen.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    source : Source
        The samples.
    max_steps : int
        The largest number of samples.
    entropy : Entropy
        Draws L, the coin and the seed of the source.
    opendp : bool
        Draw L with OpenDP.

    Returns
    -------
    Outcome
        The number of samples and the decision.

    Raises
    ------
    SourceError
        If a sample up to tau cannot be read or drawn.

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
    up, low = grid.b_up + excess, grid.b_low + excess
    steps = walk = 0  # Python integers have any size; within a batch 64 bits are enough
    for batch in samples:
        bits = batch.bits[: max_steps - steps]
        n, k = np.arange(1, bits.size + 1), np.cumsum(bits)
        moved = k * grid.up - (n - k) * grid.down
        above, below = moved >= min(up - walk, 2**62), moved <= max(-low - walk, -(2**62))
        if excess <= grid.no_room:  # after the work of the first batch: its time and its errors must not tell L
            return Outcome(1, "H_null" if heads else "H_alt")
        if np.any(above | below):
            first = int(np.argmax(above | below))
            return Outcome(steps + first + 1, "H_null" if above[first] else "H_alt")
        steps, walk = steps + bits.size, walk + int(moved[-1])
        if steps >= max_steps:
            break
    return Outcome(steps, "undecided")
