"""Sources of bits: the samples of a system, one truth value each, in the order in which they are drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from dpsmc_audit.errors import ParameterError, check_probability
from dpsmc_audit.numerics.arrays import BoolArray
from dpsmc_audit.stl.traces import Traces

if TYPE_CHECKING:
    from dpsmc_audit.stl import Formula

__all__ = ["BATCH", "Batch", "Bernoulli", "Negated", "Source", "SourceError", "evaluated"]


BATCH = 256
"""Samples that are drawn at once. A result never depends on samples beyond the last one used."""


class Batch(NamedTuple):
    """The next samples of a source.

    Parameters
    ----------
    bits : ndarray of bool
        Whether each sample satisfies the specification.
    traces : Traces, optional
        The traces, if the samples are traces.
    """

    bits: BoolArray
    traces: Traces | None = None


class Source(Protocol):
    """A model as estimation, simulation and verification see it. Sources are frozen and can be keys."""

    name: ClassVar[str]

    @property
    def repeatable(self) -> bool:
        """Whether another seed gives other samples. Recorded samples can be used once."""
        ...

    def __hash__(self) -> int: ...

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yield the samples of a stream. The stream ends only where recorded data end.

        Parameters
        ----------
        seed : int
            64 bits. The samples are a function of it.

        Yields
        ------
        Batch
            The next samples.

        Raises
        ------
        SourceError
            If a sample cannot be read or drawn, after all samples before it. Whether a reader sees the error
            depends only on how far it reads.
        """
        ...


class SourceError(ParameterError):
    """A sample cannot be read or drawn.

    Parameters
    ----------
    place : str
        Where the error is, without anything about the sample itself. A private release may show it.
    detail : str
        The rest of the message.
    """

    def __init__(self, place: str, detail: str = "") -> None:
        super().__init__(f"{place}{detail}")
        self.place = place


def evaluated(formula: Formula, traces: Traces, place: Callable[[int], str]) -> Iterator[Batch]:
    """Evaluate a formula on traces.

    Parameters
    ----------
    formula : Formula
        The specification.
    traces : Traces
        The batch.
    place : callable
        Names the place of a trace, given by its number in the batch.

    Yields
    ------
    Batch
        The traces with their bits. If one trace cannot be evaluated, the traces before it come one by one.

    Raises
    ------
    SourceError
        At the first trace that cannot be evaluated.
    """
    try:
        yield Batch(formula.truth(traces), traces)
        return
    except ParameterError:
        pass  # find the trace
    for k in range(traces.count):
        one = Traces(traces.step, {name: values[k : k + 1] for name, values in traces.signals.items()})
        try:
            bits = formula.truth(one)
        except ParameterError as error:
            raise SourceError(place(k), f": {error}") from None
        yield Batch(bits, one)


@dataclass(frozen=True)
class Bernoulli:
    """Independent samples that satisfy the specification with a given probability.

    Parameters
    ----------
    p_phi : float
        The probability.

    Examples
    --------
    >>> batch = next(Bernoulli(0.84).batches(seed=1))
    >>> batch.bits.size, bool(0.7 < batch.bits.mean() < 0.95)
    (256, True)
    """

    name: ClassVar[str] = "bernoulli"
    repeatable: ClassVar[bool] = True
    p_phi: float

    def __post_init__(self) -> None:
        check_probability("p_phi", self.p_phi)

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yield samples without end.

        Parameters
        ----------
        seed : int
            64 bits. The samples are a function of it.

        Yields
        ------
        Batch
            The next samples, without traces.
        """
        from dpsmc_audit.sampling.streams import uniforms  # the child of a release on recorded data needs no Numba

        for first in itertools.count(0, BATCH):
            yield Batch(uniforms(seed, first, BATCH) < self.p_phi)


@dataclass(frozen=True)
class Negated:
    """The same samples under the negated specification (the paper's Remark 2).

    Parameters
    ----------
    source : Source
        The samples.

    Examples
    --------
    >>> bool(next(Negated(Bernoulli(1.0)).batches(seed=1)).bits.any())
    False
    """

    name: ClassVar[str] = "negated"
    source: Source

    @property
    def repeatable(self) -> bool:
        """As the source."""
        return self.source.repeatable

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yield the negated samples.

        Parameters
        ----------
        seed : int
            The seed of the source.

        Yields
        ------
        Batch
            The next samples, with the traces of the source if it has any.

        Raises
        ------
        SourceError
            If the source cannot read or draw a sample, after all samples before it.
        """
        for batch in self.source.batches(seed):
            yield Batch(~batch.bits, batch.traces)
