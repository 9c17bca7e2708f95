"""Run the test many times on samples of a model: Table 1 with simulated traces.

Alpha, delta and epsilon enter only through the walk and its bounds. So one stream of samples for each run serves every
row of a table, and is kept for the next row. Keeping never changes a result, because sample j of run i is a function of
the seed, i and j.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.evidence.intervals import Interval
from dpsmc_audit.exact.averages import exact_mean
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.models.sources import Batch, Negated, Source
from dpsmc_audit.numerics.arrays import BoolArray
from dpsmc_audit.runs.execution import accumulate, cut
from dpsmc_audit.sampling.kernels import ALT, NULL, UNFINISHED
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.runs import Runs
from dpsmc_audit.sampling.streams import Purpose, derived, uniforms
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.estimate import Estimate, estimate
from dpsmc_audit.tasks.simulate import Simulation, Tally, Total, exact_characteristics

__all__ = ["ModelSimulation", "Streams", "simulate_model"]

ESTIMATED_FROM = 10_000
"""Samples from which p_phi is estimated, as in the paper."""


@dataclass(eq=False)
class Streams:
    """The samples of many runs, drawn as far as they were needed.

    Parameters
    ----------
    source : Source
        The model.
    seed : int
        The seed of all runs.
    most : int
        Samples that are kept for the next row of a table, a byte each.
    seconds : float
        The time that drawing took.
    drawn : int
        The number of samples drawn.
    """

    source: Source
    seed: int
    most: int = 1 << 27
    seconds: float = 0.0
    drawn: int = 0
    _open: dict[int, Iterator[Batch]] = field(default_factory=dict)
    _bits: dict[int, list[BoolArray]] = field(default_factory=dict)

    def run(self, number: int) -> Iterator[BoolArray]:
        """Yield the samples of one run, from the first one on. They are kept as long as there is room.

        Parameters
        ----------
        number : int
            The number of the run.

        Yields
        ------
        ndarray of bool
            The next samples.
        """
        if number not in self._bits and self.drawn >= self.most:
            again = self._begun(number)
            while True:
                yield self._next(again)
        known = self._bits.setdefault(number, [])
        place = 0
        while True:
            if place == len(known):
                known.append(self._next(self._open.setdefault(number, self._begun(number))))
            yield known[place]
            place += 1

    def _begun(self, number: int) -> Iterator[Batch]:
        return self.source.batches(int(derived(int(derived(self.seed, Purpose.MODEL_RUNS)), number)))

    def _next(self, batches: Iterator[Batch]) -> BoolArray:
        started = time.perf_counter()
        bits = next(batches).bits
        self.seconds += time.perf_counter() - started
        self.drawn += bits.size
        return bits

    @property
    def seconds_per_sample(self) -> float:
        """The mean time of a sample. nan if none was drawn."""
        return self.seconds / self.drawn if self.drawn else math.nan


@lru_cache(maxsize=1)
def _streams(source: Source, seed: int) -> Streams:
    next(source.batches(seed))  # compile before the clock starts
    return Streams(source, seed)


@lru_cache(maxsize=1)
def _estimated(source: Source, seed: int, confidence: float) -> Estimate:
    return estimate(source, ESTIMATED_FROM, seed=seed, confidence=confidence)


def stop(test: Sprt, excess: float, blocks: Iterator[BoolArray], max_steps: int) -> tuple[int, int]:
    """Run the test once on samples that come in blocks.

    Parameters
    ----------
    test : Sprt
        The test.
    excess : float
        By how much the bounds are enlarged.
    blocks : iterator of ndarray
        The samples.
    max_steps : int
        The largest number of samples.

    Returns
    -------
    tau, decision : int
        The number of samples and the decision.
    """
    steps = ones = 0
    for bits in blocks:
        part = bits[: max_steps - steps]
        n, k = steps + np.arange(1, part.size + 1), ones + np.cumsum(part)
        walk = k * test.s_plus - (n - k) * test.s_minus
        above, below = walk >= test.b_up + excess, walk <= -(test.b_low + excess)
        out = above | below
        if np.any(out):
            first = int(np.argmax(out))
            return int(n[first]), NULL if above[first] else ALT
        steps, ones = steps + part.size, int(k[-1])
        if steps >= max_steps:
            break
    return steps, UNFINISHED


@dataclass(frozen=True, eq=False)
class ModelSimulation:
    """Simulated runs, beside the exact numbers at the estimated p_phi.

    Parameters
    ----------
    simulation : Simulation
        The runs and the exact numbers, for the specification that is tested (the relations lt and le negate it).
    estimate : Estimate
        The estimate of p_phi, for the specification as the user gave it.
    samples_exact_ci : tuple of float, optional
        Exact mean samples at the ends of the interval of p_phi.
    seconds_per_sample : float
        The mean time of a sample.
    """

    simulation: Simulation
    estimate: Estimate
    samples_exact_ci: Interval | None
    seconds_per_sample: float

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json``, without the parameters.

        Returns
        -------
        dict
            The numbers. ``seconds_per_run`` is the mean number of samples times the measured time of one.
        """
        found, result = self.estimate, self.simulation.as_dict()
        del result["seconds"]
        return result | {
            "p_phi": found.p_phi,
            "p_phi_ci": found.p_phi_ci,
            "samples_exact_ci": self.samples_exact_ci,
            "seconds_per_sample": self.seconds_per_sample,
            "seconds_per_run": self.simulation.samples * self.seconds_per_sample,
        }


def _block(
    test: Sprt, mechanism: Mechanism, streams: Streams, seed: int, max_steps: int, first: int, count: int
) -> Tally:
    """Make runs first, ..., first + count - 1, with bounds from the seed and samples from their streams."""
    excess = mechanism.quantile(uniforms(seed, first, count))
    coin = uniforms(derived(seed, Purpose.COIN), first, count)
    outcome = Runs(np.ones(count, np.int64), np.where(coin < 0.5, NULL, ALT).astype(np.int8))
    for i in np.flatnonzero(excess > test.no_room):
        samples = streams.run(first + int(i))
        outcome.tau[i], outcome.decision[i] = stop(test, float(excess[i]), samples, max_steps)
    return Tally.of(outcome)


def simulate_model(
    test: Sprt,
    mechanism: Mechanism,
    source: Source,
    runs: int = 100,
    sampling: Sampling = USUAL,
    *,
    negated: bool = False,
    confidence: float = 0.99,
) -> ModelSimulation:
    """Run the test many times on new samples of a source. Its p_phi is estimated first.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    source : Source
        The model. It must draw new samples for each run.
    runs : int
        The number of runs.
    sampling : Sampling
        How runs are drawn. They are made in this process.
    negated : bool
        Test the negated specification (the paper's Remark 2).
    confidence : float
        The confidence of all intervals.

    Returns
    -------
    ModelSimulation
        The runs and the exact numbers.

    Raises
    ------
    ParameterError
        If a parameter is wrong, or a sample cannot be drawn.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> from dpsmc_audit.models.sources import Bernoulli
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> found = simulate_model(test, Exponential.private(test, epsilon=0.5), Bernoulli(0.84), runs=200)
    >>> low, high = found.simulation.samples_ci
    >>> low < found.simulation.exact.samples.value < high
    True
    """
    require(runs >= 1, f"runs must be at least 1, got {runs}")
    require(source.repeatable, f"samples of model={source.name} are there once: they cannot make many runs")
    seed, execution = sampling.seed, sampling.execution
    found, streams = _estimated(source, seed, confidence), _streams(Negated(source) if negated else source, seed)
    work = partial(_block, test, mechanism, streams, seed, sampling.max_steps)
    # blocks of 4 runs, because each run simulates thousands of traces
    total, here = Total(), replace(execution, backend="serial", address=None)
    accumulate(work, lambda done: cut(runs, execution.size(4), done), total, here, "runs")
    p_phi = 1.0 - found.p_phi if negated else found.p_phi
    exact = exact_characteristics(Setting(test, mechanism, p_phi))
    simulation = Simulation(Setting(test, mechanism, p_phi), total.tally, confidence, exact, 0.0)
    ends = _exact_between(test, mechanism, found.p_phi_ci, negated)
    return ModelSimulation(simulation, found, ends, streams.seconds_per_sample)


def _exact_between(test: Sprt, mechanism: Mechanism, ends: Interval, negated: bool) -> Interval | None:
    """Exact means at the ends of the interval of p_phi. None if p lies between them, near the largest mean."""
    low, high = (1.0 - ends[1], 1.0 - ends[0]) if negated else ends
    if low <= test.p <= high:
        return None
    try:
        means = sorted(exact_mean(Setting(test, mechanism, p_phi)).value for p_phi in (low, high))
    except ParameterError:
        return None
    return means[0], means[1]
