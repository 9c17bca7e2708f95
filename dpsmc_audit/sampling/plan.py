"""How things are sampled: the seed, the longest run, and where the work is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpsmc_audit.runs.execution import SERIAL, Execution

__all__ = ["USUAL", "Sampling"]


@dataclass(frozen=True)
class Sampling:
    """How runs are drawn.

    Parameters
    ----------
    seed : int
        The same seed gives the same numbers, on every machine and backend.
    max_steps : int
        A run that has drawn so many samples stops without a decision.
    execution : Execution
        Where blocks of runs are computed. It does not change a result.

    Examples
    --------
    >>> Sampling(seed=3).max_steps
    10000000
    """

    seed: int = 1
    max_steps: int = 10_000_000
    execution: Execution = SERIAL

    def alone(self) -> Sampling:
        """Return what a block of work needs: the same without its execution, so that workers can receive it."""
        return Sampling(self.seed, self.max_steps)

    def with_progress(self, progress: Callable[[int], None] | None) -> Sampling:
        """Replace the receiver of progress.

        Parameters
        ----------
        progress : callable or None
            Called with the number of runs that are done. None for no progress.

        Returns
        -------
        Sampling
            A copy with this receiver.
        """
        return replace(self, execution=replace(self.execution, progress=progress))


USUAL = Sampling()
"""Seed 1, runs of up to ten million samples, in this process."""
