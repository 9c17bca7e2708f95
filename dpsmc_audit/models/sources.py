"""Sources of bits: the samples of a system, one truth value each, in the order in which they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, check_probability
from dpsmc_audit.stl.traces import Traces

if TYPE_CHECKING:
    from dpsmc_audit.stl import Formula

__all__ = ["BATCH", "Batch", "Bernoulli", "Bits", "Negated", "Source", "SourceError", "evaluated"]

Bits = NDArray[np.bool_]

BATCH = 256
"""Samples that are drawn at once. A result never depends on those drawn beyond the last one used."""


class Batch(NamedTuple):
    """The next samples: whether each satisfies the specification, and its trace where there is one."""

    bits: Bits
    traces: Traces | None = None


class Source(Protocol):
    """What estimation, simulation and verification ask of a model; frozen, so that it can be a key."""

    name: ClassVar[str]

    @property
    def repeatable(self) -> bool:
        """Whether another seed gives other samples; recorded ones are there once."""
        ...

    def __hash__(self) -> int: ...

    def batches(self, seed: int) -> Iterator[Batch]:
        """The samples of a stream, a function of the seed (64 bits); it ends only where data end.

        A sample that cannot be had raises `SourceError`, after all those before it were yielded: whether a reader
        meets the error depends on how far it reads and on nothing else.
        """
        ...


class SourceError(ParameterError):
    """A sample that cannot be had. `place` says where, in words that hold nothing of the sample itself."""

    def __init__(self, place: str, detail: str = "") -> None:
        super().__init__(f"{place}{detail}")
        self.place = place


def evaluated(formula: Formula, traces: Traces, place: Callable[[int], str]) -> Iterator[Batch]:
    """Traces with their bits; if one of them has none, those before it and then an error at its `place`."""
    try:
        yield Batch(formula.truth(traces), traces)
        return
    except ParameterError as error:
        first, reason = 0, error

    def alone(trace: int) -> Traces:
        return Traces(traces.step, {name: values[trace : trace + 1] for name, values in traces.signals.items()})

    while first < traces.count:
        try:
            bits = formula.truth(alone(first))
        except ParameterError as error:
            reason = error
            break
        yield Batch(bits, alone(first))
        first += 1
    raise SourceError(place(first), f": {reason}")


@dataclass(frozen=True)
class Bernoulli:
    """Samples that satisfy the specification with probability `p_phi`, independently.

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
        from dpsmc_audit.sampling.runs import _uniforms  # the child of a release on recorded data needs no Numba

        uniforms, first = np.empty(BATCH), 0
        while True:
            _uniforms(np.uint64(seed), first, uniforms)
            first += BATCH
            yield Batch(uniforms < self.p_phi)


@dataclass(frozen=True)
class Negated:
    """The same samples under the negated specification (the paper's Remark 2).

    Examples
    --------
    >>> bool(next(Negated(Bernoulli(1.0)).batches(seed=1)).bits.any())
    False
    """

    name: ClassVar[str] = "negated"
    source: Source

    @property
    def repeatable(self) -> bool:
        return self.source.repeatable

    def batches(self, seed: int) -> Iterator[Batch]:
        for batch in self.source.batches(seed):
            yield Batch(~batch.bits, batch.traces)
