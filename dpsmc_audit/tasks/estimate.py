"""Estimate p_phi of a model and its specification from samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.evidence.intervals import Interval, check_confidence, clopper_pearson
from dpsmc_audit.models.sources import Batch, Source
from dpsmc_audit.sampling.streams import Purpose, derived

__all__ = ["Estimate", "Examples", "estimate"]


@dataclass(eq=False)
class Examples:
    """The first traces that satisfy the specification, and the first that violate it.

    Parameters
    ----------
    shown : int
        The largest number of traces of each kind.
    step : float
        The step of all traces.
    points : tuple of int, optional
        The number of samples of the shortest and of the longest trace so far.
    satisfying, violating : list of dict
        The traces: arrays by signal.
    """

    shown: int = 6
    step: float = 0.0
    points: tuple[int, int] | None = None
    satisfying: list[dict[str, np.ndarray]] = field(default_factory=list)
    violating: list[dict[str, np.ndarray]] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Keep the traces that are still missing.

        Parameters
        ----------
        batch : Batch
            The next samples.
        """
        if batch.traces is None:
            return
        self.step = self.step or batch.traces.step
        shortest, longest = self.points or (batch.traces.points, batch.traces.points)
        self.points = min(shortest, batch.traces.points), max(longest, batch.traces.points)
        for kept, wanted in ((self.satisfying, True), (self.violating, False)):
            for trace in np.flatnonzero(batch.bits == wanted)[: self.shown - len(kept)]:
                kept.append({name: np.array(values[trace]) for name, values in batch.traces.signals.items()})


@dataclass(frozen=True)
class Estimate:
    """The number of samples that satisfied the specification.

    Parameters
    ----------
    satisfied, runs : int
        Samples that satisfied it, and all samples.
    confidence : float
        The confidence of the interval.
    examples : Examples
        Some traces.
    seconds : float
        The time that the samples took.
    """

    satisfied: int
    runs: int
    confidence: float
    examples: Examples = field(compare=False, repr=False)
    seconds: float = field(compare=False)

    @property
    def p_phi(self) -> float:
        """The share of the samples."""
        return self.satisfied / self.runs

    @property
    def p_phi_ci(self) -> Interval:
        """The interval of Clopper and Pearson."""
        return clopper_pearson(self.satisfied, self.runs, self.confidence)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json``, without the parameters.

        Returns
        -------
        dict
            The numbers.
        """
        return {
            "p_phi": self.p_phi,
            "p_phi_ci": self.p_phi_ci,
            "satisfied": self.satisfied,
            "samples_drawn": self.runs,
            "seconds": self.seconds,
            "seconds_per_sample": self.seconds / self.runs,
        }


def estimate(
    source: Source,
    runs: int | None = 10_000,
    *,
    seed: int = 1,
    confidence: float = 0.99,
    progress: Callable[[int], None] | None = None,
) -> Estimate:
    """Draw samples and count those that satisfy the specification.

    Parameters
    ----------
    source : Source
        The samples.
    runs : int or None
        The number of samples. None for all recorded samples.
    seed : int
        The seed.
    confidence : float
        The confidence of the interval.
    progress : callable, optional
        Receives the number of samples so far.

    Returns
    -------
    Estimate
        The estimate.

    Raises
    ------
    ParameterError
        If a parameter is wrong, or a sample cannot be read or drawn.

    Examples
    --------
    >>> from dpsmc_audit.models.sources import Bernoulli
    >>> found = estimate(Bernoulli(0.84), runs=10_000, seed=1)
    >>> low, high = found.p_phi_ci
    >>> low < 0.84 < high
    True
    """
    check_confidence(confidence)
    require(runs is not None or not source.repeatable, f"runs is needed: samples of {source.name} never end")
    satisfied, done, examples = 0, 0, Examples()
    started = time.perf_counter()
    for batch in source.batches(int(derived(seed, Purpose.ESTIMATE))):
        bits = batch.bits if runs is None else batch.bits[: runs - done]
        satisfied, done = satisfied + int(np.count_nonzero(bits)), done + bits.size
        examples.add(batch)
        if progress is not None:
            progress(done)
        if done == runs:
            break
    if done == 0:
        raise ParameterError(f"{source.name}: there are no samples")
    return Estimate(satisfied, done, confidence, examples, time.perf_counter() - started)
