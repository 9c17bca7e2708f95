"""Sources whose samples are simulated: the powertrain with a specification, and functions of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.models.powertrain import SIGNALS, Powertrain
from dpsmc_audit.models.sources import BATCH, Batch, SourceError, evaluated
from dpsmc_audit.stl import Formula
from dpsmc_audit.stl.traces import Traces
from dpsmc_audit.targets import load_target, said

__all__ = ["CASE_STUDY", "PowertrainBits", "PythonBits"]

CASE_STUDY = "always[0.8,1.0] (abs(e) < 0.05)"
"""The specification of the paper's case study."""


@dataclass(frozen=True)
class PowertrainBits:
    """Traces of the powertrain, judged by a formula.

    Parameters
    ----------
    model : Powertrain
        The model.
    formula : Formula
        The specification.
    threads : int
        Threads that simulate. They do not change the samples.

    Raises
    ------
    ParameterError
        If the formula does not fit the traces of the model.

    Examples
    --------
    >>> from dpsmc_audit.stl import parse
    >>> batch = next(PowertrainBits(Powertrain(), parse(CASE_STUDY)).batches(seed=1))
    >>> batch.bits.size, batch.traces.points
    (256, 101)
    """

    name: ClassVar[str] = "powertrain"
    repeatable: ClassVar[bool] = True
    model: Powertrain
    formula: Formula
    threads: int = field(default=1, compare=False)

    def __post_init__(self) -> None:
        nothing = np.empty((0, self.model.points))
        self.formula.check(Traces(self.model.sample_step, dict.fromkeys(SIGNALS, nothing)))

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yield samples without end.

        Parameters
        ----------
        seed : int
            64 bits. The samples are a function of it.

        Yields
        ------
        Batch
            The next samples, with their traces.

        Raises
        ------
        SourceError
            If a trace does not fit the formula, after all samples before it.
        """
        first, signals = 0, self.formula.signals or ("e",)
        while True:
            traces = self.model.traces(first, BATCH, seed=seed, signals=signals, threads=self.threads)
            yield from evaluated(self.formula, traces, lambda _: "a trace of the powertrain does not fit the formula")
            first += BATCH


@dataclass(frozen=True)
class PythonBits:
    """The samples of a user's function.

    Parameters
    ----------
    target : str
        The function as ``package.module:function``. It takes ``(rng, n)`` and returns n bits or, with a formula, n
        traces as arrays (n, points) by signal.
    formula : Formula, optional
        The specification of traces.
    step : float, optional
        The step of traces in seconds.

    Raises
    ------
    SourceError
        If the function cannot be imported.

    Examples
    --------
    >>> source = PythonBits("numpy.random:Generator.integers")  # takes (rng, 2^8) and returns one number
    >>> next(source.batches(seed=1))
    Traceback (most recent call last):
    dpsmc_audit.models.sources.SourceError: model.target=numpy.random:Generator.integers: expected 256 bits, got int64
    """

    name: ClassVar[str] = "python"
    repeatable: ClassVar[bool] = True
    target: str
    formula: Formula | None = None
    step: float | None = None
    function: Callable[..., Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "function", load_target("model.target", self.target))
        except ParameterError as error:
            raise SourceError(f"model.target={self.target} cannot be used", f" ({error})") from error

    def batches(self, seed: int) -> Iterator[Batch]:
        """Yield samples without end.

        Parameters
        ----------
        seed : int
            The seed of the generator that the function receives.

        Yields
        ------
        Batch
            The next samples.

        Raises
        ------
        SourceError
            If the function fails, if it does not return samples, or if its traces do not fit the formula.
        """
        rng = np.random.default_rng(seed)
        misfit = f"model.target={self.target}: its traces do not fit the formula"
        while True:
            try:
                given = self.function(rng, BATCH)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise SourceError(f"model.target={self.target} failed", f": {said(error)}") from error
            if self.formula is None:
                yield self._bits(given)
            else:
                yield from evaluated(self.formula, self._traces(given), lambda _: misfit)

    def _bits(self, given: Any) -> Batch:
        if isinstance(given, Mapping):
            raise self._wrong("returns traces, so a formula is needed")
        values = self._array(given)
        if values.shape != (BATCH,):
            raise self._wrong(f"expected {BATCH} bits", f", got {_shape(given)}")
        others = values[(values != 0.0) & (values != 1.0)]
        if others.size:
            raise self._wrong("bits must be 0 or 1", f", got {others[0]}")
        return Batch(values == 1.0)

    def _traces(self, given: Any) -> Traces:
        if not isinstance(given, Mapping) or not given:
            raise self._wrong("expected arrays (n, points) by signal, as there is a formula", f", got {_shape(given)}")
        assert self.step is not None
        signals = {f"{name}": self._array(values) for name, values in given.items()}
        for name, values in signals.items():
            if values.ndim != 2 or values.shape[0] != BATCH:
                raise self._wrong(f"expected signals of shape ({BATCH}, points)", f", got {values.shape} for {name}")
        try:
            return Traces(self.step, signals)
        except ParameterError as error:
            raise self._wrong("its signals do not fit together", f": {error}") from error

    def _array(self, given: Any) -> np.ndarray:
        try:
            return np.asarray(given, np.float64)
        except (TypeError, ValueError) as error:
            raise self._wrong("expected numbers", f": {said(error)}") from error

    def _wrong(self, what: str, detail: str = "") -> SourceError:
        return SourceError(f"model.target={self.target}: {what}", detail)


def _shape(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return f"an array of shape {shape}" if shape else type(given).__name__
