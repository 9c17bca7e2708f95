"""What is audited: a mechanism, the system it runs on, the samples that change, and the epsilon that is claimed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import check_entries, in_order, require
from dpsmc_audit.evidence.intervals import check_confidence, percent
from dpsmc_audit.evidence.profiles import check_floor, epsilon_grid
from dpsmc_audit.evidence.verdict import rounded_up
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt

__all__ = ["Claim", "Engine", "checked", "undecided"]

Engine = Literal["monte_carlo", "exact"]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Claim:
    """That changing the entries (all 1 in one member, all 0 in the other) is hidden up to epsilon; and how it is
    looked at.
    """

    test: Sprt
    mechanism: Mechanism
    p_phi: float
    epsilon: float
    entries: tuple[int, ...]
    engine: Engine
    confidence: float

    @property
    def text(self) -> str:
        return f"the claimed epsilon = {self.epsilon:g}"

    @property
    def how(self) -> str:
        """How sure a verdict is."""
        return "exactly" if self.engine == "exact" else f"at {percent(self.confidence)} confidence"

    @property
    def certainty(self) -> float:
        return 1.0 if self.engine == "exact" else self.confidence

    def parts(self) -> dict[str, Any]:
        """The fields by name: an audit has those of its claim."""
        return {field.name: getattr(self, field.name) for field in fields(Claim)}


def undecided(delta_upper: float | None, claim: str) -> str:
    """What is known where the deciding quantity is as near to the claim as its numerical error.

    Examples
    --------
    >>> undecided(3e-13, "the claimed epsilon = 1")
    'the claimed epsilon = 1 holds with a delta of 3e-13; the numerical error leaves open whether with a smaller one'
    """
    least = rounded_up(1.0 if delta_upper is None else delta_upper)
    return f"{claim} holds with a delta of {least}; the numerical error leaves open whether with a smaller one"


def checked(claim: Claim, max_steps: int, floor: float, epsilons: Sequence[float] | None) -> FloatArray:
    """Raise `ParameterError` for what cannot be audited; the grid of the privacy profile."""
    check_confidence(claim.confidence)
    check_floor(floor)
    require(0.0 < claim.epsilon < math.inf, f"epsilon must be positive to be audited, got {claim.epsilon}")
    check_entries(in_order(claim.entries), max_steps)
    return epsilon_grid(claim.epsilon, epsilons)
