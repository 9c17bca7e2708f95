"""Run Algorithm 1 or 2 many times and set the averages beside their exact values."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from dpsmc_audit.evidence.intervals import Interval, check_confidence, clopper_pearson, mean_interval
from dpsmc_audit.exact.averages import WorstErrors, exact_error, exact_mean, worst_errors
from dpsmc_audit.exact.enclosure import Enclosure, kind_of
from dpsmc_audit.numerics.sums import sum_of_squares
from dpsmc_audit.runs.checkpoints import Saved
from dpsmc_audit.runs.execution import accumulate, cut
from dpsmc_audit.sampling.kernels import ALT, NULL, UNFINISHED
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.runs import Kernel, Runs, block_size_for, check_runs, draw_block
from dpsmc_audit.setting import Setting

__all__ = [
    "MAX_STEPS",
    "Characteristics",
    "Simulation",
    "Tally",
    "Total",
    "exact_characteristics",
    "exact_numbers",
    "simulate",
]

MAX_STEPS = 10_000_000


@dataclass(frozen=True)
class Tally:
    """Integer sums over runs. They do not depend on the order of the blocks.

    Parameters
    ----------
    runs, null, alt, unfinished : int
        How many runs there were, returned H_null, returned H_alt, and stopped at the cap.
    samples, squares : int
        The sums of tau and of its squares.
    """

    runs: int = 0
    null: int = 0
    alt: int = 0
    unfinished: int = 0
    samples: int = 0
    squares: int = 0

    @classmethod
    def of(cls, runs: Runs) -> Tally:
        """Sum up a block of runs.

        Parameters
        ----------
        runs : Runs
            The outcomes of the runs.

        Returns
        -------
        Tally
            Their sums.
        """
        null, alt, unfinished = (int(np.count_nonzero(runs.decision == side)) for side in (NULL, ALT, UNFINISHED))
        return cls(runs.tau.size, null, alt, unfinished, int(runs.tau.sum()), sum_of_squares(runs.tau))

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))


class Total:
    """Sums over blocks of runs."""

    def __init__(self) -> None:
        self.tally = Tally()

    def add(self, tally: Tally) -> None:
        """Add a block of runs.

        Parameters
        ----------
        tally : Tally
            The sums of the block.
        """
        self.tally += tally

    def saved(self) -> Saved:
        """Return the sums by name, for a checkpoint."""
        return asdict(self.tally)

    def restore(self, saved: Saved) -> None:
        """Set the sums to those of a checkpoint.

        Parameters
        ----------
        saved : dict
            A state that `saved` returned.

        Raises
        ------
        KeyError
            If a sum is missing. The sums are then unchanged.
        """
        self.tally = Tally(**{part.name: int(saved[part.name]) for part in fields(Tally)})


@dataclass(frozen=True)
class Characteristics:
    """Exact values of runs without a cap.

    Parameters
    ----------
    samples : Enclosure
        Mean samples at p_phi.
    error : Enclosure
        The error probability at p_phi.
    worst : WorstErrors
        The worst errors over both hypotheses.
    """

    samples: Enclosure
    error: Enclosure
    worst: WorstErrors

    def as_dict(self) -> dict[str, Any]:
        """Return the exact part of ``result.json``."""
        named = {"samples_exact": self.samples, "error_exact": self.error}
        return exact_numbers({**named, "fp_worst": self.worst.fp, "fn_worst": self.worst.fn})


def exact_numbers(named: dict[str, Enclosure]) -> dict[str, float | str]:
    """List exact numbers, each beside its numerical error.

    Parameters
    ----------
    named : dict
        The numbers by name.

    Returns
    -------
    dict
        Values and errors by name, and whether all errors are proven.
    """
    values = {name: exact.value for name, exact in named.items()}
    errors = {f"{name}_error": exact.error for name, exact in named.items()}
    return {**values, **errors, "exact_errors_are": kind_of(all(exact.proven for exact in named.values()))}


@dataclass(frozen=True)
class Simulation:
    """What many runs of the test did, and the exact values that their averages estimate.

    `samples` counts what was drawn: a run stopped at the cap counts with all its samples and as `unfinished`,
    never as a decision.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    tally : Tally
        The sums over the runs.
    confidence : float
        The level of the intervals.
    exact : Characteristics
        The exact values.
    seconds : float
        How long the runs took.
    """

    setting: Setting
    tally: Tally
    confidence: float
    exact: Characteristics
    seconds: float = field(compare=False)

    @property
    def samples(self) -> float:
        """Mean number of samples drawn."""
        return self.tally.samples / self.tally.runs

    @property
    def samples_ci(self) -> Interval | None:
        """Student's interval for the mean number of samples. None for a single run."""
        return mean_interval(self.tally.runs, self.tally.samples, self.tally.squares, self.confidence)

    @property
    def _correct(self) -> int:
        return self.tally.null if self.setting.test.null_is_true(self.setting.p_phi) else self.tally.alt

    @property
    def accuracy(self) -> float:
        """Share of correct decisions among all runs; an unfinished run is not one."""
        return self._correct / self.tally.runs

    @property
    def accuracy_ci(self) -> Interval:
        """The Clopper-Pearson interval for the share of correct decisions."""
        return clopper_pearson(self._correct, self.tally.runs, self.confidence)

    @property
    def null_rate(self) -> float:
        """Share of runs that returned H_null: the paper's "Acc."."""
        return self.tally.null / self.tally.runs

    @property
    def decision(self) -> str:
        """The more frequent decision; "undecided" if no run finished."""
        if self.tally.null == self.tally.alt == 0:
            return "undecided"
        return "H_null" if self.tally.null >= self.tally.alt else "H_alt"

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        return {
            "samples": self.samples,
            "samples_ci": self.samples_ci,
            "accuracy": self.accuracy,
            "accuracy_ci": self.accuracy_ci,
            "null_rate": self.null_rate,
            "unfinished": self.tally.unfinished,
            "decision": self.decision,
            **self.exact.as_dict(),
            "steps": self.tally.samples,
            "seconds": self.seconds,
            "seconds_per_run": self.seconds / self.tally.runs,
        }


def exact_characteristics(setting: Setting) -> Characteristics:
    """Compute everything that is known of the test without sampling.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.

    Returns
    -------
    Characteristics
        The mean number of samples, the probability of an error, and the worst errors, each with its numerical error.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Sprt
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> known = exact_characteristics(Setting(test, Exponential.private(test, epsilon=0.05), 0.84))
    >>> round(known.samples.value, 2), round(known.worst.fp.value, 4)
    (272.4, 0.0066)
    """
    samples, error = exact_mean(setting), exact_error(setting)
    return Characteristics(samples, error, worst_errors(setting.test, setting.mechanism))


def _block(setting: Setting, sampling: Sampling, kernel: Kernel, first: int, count: int) -> Tally:
    """Draw runs first, ..., first + count - 1 and sum them up. The result does not depend on the process."""
    return Tally.of(draw_block(setting, first, count, sampling, kernel=kernel))


def simulate(
    setting: Setting,
    runs: int = 10_000,
    sampling: Sampling = USUAL,
    *,
    confidence: float = 0.99,
    kernel: Kernel = "jumps",
) -> Simulation:
    """Simulate independent runs of the test, and compute what they must average to.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    runs : int
        How many runs are drawn.
    sampling : Sampling
        How they are drawn. Its execution does not change the result.
    confidence : float
        The level of the intervals.
    kernel : {"jumps", "steps"}
        Draw several samples at once, or every single one. Both follow the same law.

    Returns
    -------
    Simulation
        The averages with their intervals, and the exact values beside them.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Sprt
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> setting = Setting(test, Exponential.private(test, epsilon=0.05), 0.84)
    >>> result = simulate(setting, runs=20_000, sampling=Sampling(seed=3))
    >>> result.decision, result.accuracy, round(result.exact.samples.value, 2)
    ('H_null', 1.0, 272.4)
    >>> low, high = result.samples_ci
    >>> low < result.exact.samples.value < high
    True
    """
    check_confidence(confidence)
    check_runs(setting.p_phi, runs, sampling, kernel=kernel)
    execution, work = sampling.execution, partial(_block, setting, sampling.alone(), kernel)
    size = execution.size(block_size_for(setting, sampling.max_steps))
    draw_block(setting, 0, 1, Sampling(sampling.seed, 1), kernel=kernel)  # compiled before the clock starts
    total, started = Total(), time.perf_counter()
    accumulate(work, lambda done: cut(runs, size, done), total, execution, "runs")
    seconds, exact = time.perf_counter() - started + execution.spent, exact_characteristics(setting)
    return Simulation(setting, total.tally, confidence, exact, seconds)
