"""p_phi of a model and its specification, from samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.evidence.intervals import Interval, check_confidence, clopper_pearson
from dpsmc_audit.models.sources import Batch, Source
from dpsmc_audit.sampling.runs import derived
from dpsmc_audit.stl.traces import Traces

__all__ = ["Estimate", "Examples", "estimate"]

_SAMPLES = 40
"""Purpose of the stream of samples: no other task draws the same ones."""
_SHOWN = 6


@dataclass(eq=False)
class Examples:
    """The first traces that satisfy the specification, and the first that violate it; step and lengths of all."""

    step: float = 0.0
    points: tuple[int, int] | None = None
    satisfying: list[dict[str, np.ndarray]] = field(default_factory=list)
    violating: list[dict[str, np.ndarray]] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Keep what is still missing; `points` are the samples of the shortest and of the longest trace so far."""
        if batch.traces is None:
            return
        self.step = self.step or batch.traces.step
        shortest, longest = self.points or (batch.traces.points, batch.traces.points)
        self.points = min(shortest, batch.traces.points), max(longest, batch.traces.points)
        for kept, wanted in ((self.satisfying, True), (self.violating, False)):
            for trace in np.flatnonzero(batch.bits == wanted)[: _SHOWN - len(kept)]:
                kept.append(_one(batch.traces, int(trace)))


def _one(traces: Traces, trace: int) -> dict[str, np.ndarray]:
    return {name: np.array(values[trace]) for name, values in traces.signals.items()}


@dataclass(frozen=True)
class Estimate:
    """How many of the samples satisfied the specification."""

    satisfied: int
    runs: int
    confidence: float
    examples: Examples = field(compare=False, repr=False)
    seconds: float = field(compare=False)

    @property
    def p_phi(self) -> float:
        return self.satisfied / self.runs

    @property
    def p_phi_ci(self) -> Interval:
        """Clopper and Pearson's."""
        return clopper_pearson(self.satisfied, self.runs, self.confidence)

    def as_dict(self) -> dict[str, Any]:
        """The content of ``result.json``, parameters apart."""
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
    """Draw `runs` samples (None: all that were recorded) and count those that satisfy the specification.

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
    for batch in source.batches(int(derived(seed, _SAMPLES))):
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
