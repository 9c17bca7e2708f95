"""A batch of sampled signals: what a model yields and a specification reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpsmc_audit.errors import require
from dpsmc_audit.numerics.arrays import FloatArray

__all__ = ["Traces"]


@dataclass(frozen=True, eq=False)
class Traces:
    """Traces of equal length, sampled at equal distances.

    Parameters
    ----------
    step : float
        Seconds between two samples.
    signals : mapping of str to ndarray
        ``signals[name][i, j]`` is the value of a signal of trace i at time ``j * step``. All arrays have one shape.

    Raises
    ------
    ParameterError
        If the step is not positive or the shapes do not fit together.

    Examples
    --------
    >>> batch = Traces(0.5, {"e": np.zeros((3, 11))})
    >>> batch.count, batch.points, batch.duration
    (3, 11, 5.0)
    """

    step: float
    signals: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        require(0.0 < self.step < np.inf, f"the sampling step must be positive, got {self.step}")
        shapes = {signal.shape for signal in self.signals.values()}
        require(len(shapes) == 1, f"signals must share one shape (traces, points), got {sorted(shapes)}")
        (shape,) = shapes
        require(len(shape) == 2 and shape[1] >= 1, f"signals must have the shape (traces, points), got {shape}")

    @property
    def count(self) -> int:
        """The number of traces."""
        return len(next(iter(self.signals.values())))

    @property
    def points(self) -> int:
        """The number of samples of each trace."""
        return int(next(iter(self.signals.values())).shape[1])

    @property
    def duration(self) -> float:
        """The time of the last sample."""
        return (self.points - 1) * self.step
