"""Privacy claims as objects: (epsilon, delta), Gaussian differential privacy, and a curve from a file.

A claim says something about all events at once. An audit looks at a few points (epsilon, delta) that the claim implies:
if one of them fails, so does the claim. Rounding of a point makes it weaker, never stronger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import erfcx, ndtr

from dpsmc_audit.errors import require

__all__ = ["Curve", "Dp", "Gdp", "Point", "Promise", "as_promise"]

_UNIT = 2.0**-53
"""The relative error of one operation."""


@dataclass(frozen=True)
class Point:
    """One point of a claim.

    For every event S, ``P_1(S) <= e^epsilon P_0(S) + delta_1`` and ``P_0(S) <= e^epsilon P_1(S) + delta_0``.

    Parameters
    ----------
    epsilon : float
        Not negative, finite.
    delta_1, delta_0 : float
        The delta of each direction, in [0, 1).

    Raises
    ------
    ParameterError
        If a value is out of range.
    """

    epsilon: float
    delta_1: float
    delta_0: float

    def __post_init__(self) -> None:
        require(0.0 <= self.epsilon < math.inf, f"epsilon must be finite and not negative, got {self.epsilon}")
        for value in (self.delta_1, self.delta_0):
            require(0.0 <= value < 1.0, f"a claimed delta must lie in [0, 1), got {value}")

    @property
    def delta(self) -> float:
        """The delta that covers both directions."""
        return max(self.delta_1, self.delta_0)


class Promise(Protocol):
    """A privacy claim of any kind."""

    @property
    def points(self) -> tuple[Point, ...]:
        """A few points of the claim, with increasing epsilon. The claim implies each of them."""
        ...

    @property
    def main(self) -> Point:
        """The point that tables show as epsilon and delta."""
        ...

    @property
    def text(self) -> str:
        """The claim in words."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Return the claim as ``result.json`` holds it."""
        ...


def _listed(points: Sequence[Point]) -> list[dict[str, float]]:
    return [asdict(point) for point in points]


@dataclass(frozen=True)
class Dp:
    """The claim of (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float
        Not negative, finite.
    delta : float
        In [0, 1).

    Raises
    ------
    ParameterError
        If a value is out of range.

    Examples
    --------
    >>> Dp(0.5, 1e-5).text
    'epsilon = 0.5, privacy delta = 1e-05'
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        _ = self.main

    @property
    def points(self) -> tuple[Point, ...]:
        """The claim itself."""
        return (self.main,)

    @property
    def main(self) -> Point:
        """The claim itself."""
        return Point(self.epsilon, self.delta, self.delta)

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"epsilon = {self.epsilon:g}" + (f", privacy delta = {self.delta:g}" if self.delta > 0.0 else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the claim as ``result.json`` holds it."""
        return {"kind": "dp", "epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True)
class Gdp:
    """The claim of mu-Gaussian differential privacy: no event tells more than one draw of N(0, 1) or N(mu, 1) does.

    Its points have epsilon = c mu for a few c. Above mu = 10 their delta would round to 1, and c grows with mu instead.

    Parameters
    ----------
    mu : float
        From 1e-300 to 10^6.

    Raises
    ------
    ParameterError
        If mu is out of range.

    Examples
    --------
    >>> claim = Gdp(1.0)
    >>> f"{claim.main.epsilon:g}", f"{claim.main.delta:.6f}"
    ('1', '0.126937')
    """

    mu: float

    def __post_init__(self) -> None:
        require(1e-300 <= self.mu <= 1e6, f"mu must be positive, from 1e-300 to 10^6, got {self.mu}")

    @property
    def points(self) -> tuple[Point, ...]:
        """Seven points of the Gaussian profile, the same in both directions."""
        return tuple(self._point(c) for c in (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0))

    @property
    def main(self) -> Point:
        """The point at epsilon = mu, or above mu = 10 the third point."""
        return self._point(1.0)

    def _point(self, c: float) -> Point:
        epsilon = (c + max(0.5 * self.mu - 5.0, 0.0)) * self.mu
        delta = _gaussian_delta(epsilon, self.mu)
        return Point(epsilon, delta, delta)

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"mu = {self.mu:g} (Gaussian DP)"

    def as_dict(self) -> dict[str, Any]:
        """Return the claim as ``result.json`` holds it."""
        return {"kind": "gdp", "mu": self.mu, "points": _listed(self.points)}


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """Compute the delta of N(0, 1) against N(mu, 1), rounded up by at most one part in 10^11.

    It is ``phi(x) (M(x) - M(x + mu))`` with Mills' ratio M and ``x = epsilon / mu - mu / 2``. Below mu = 1 the
    difference is an integral of ``-M'(t) = 1 - t M(t)``: nothing cancels.
    """
    x = epsilon / mu - 0.5 * mu
    x -= 4.0 * _UNIT * (epsilon / mu + 0.5 * mu)  # delta falls in x: this covers the rounding of x
    root = math.sqrt(0.5)
    if mu > 1.0:
        delta = float(ndtr(-x) * (1.0 - erfcx(root * (x + mu)) / erfcx(root * x)))
    else:
        t = x + 0.5 * mu * (_NODES + 1.0)
        slope = 1.0 - math.sqrt(0.5 * math.pi) * t * erfcx(root * t)
        density = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
        delta = density * 0.5 * mu * math.fsum(_WEIGHTS * slope)
    return delta * (1.0 + 1e-11)


@dataclass(frozen=True)
class Curve:
    """A claim given by points, such as those of a privacy profile or a trade-off curve.

    Parameters
    ----------
    points : tuple of Point
        The points, with increasing epsilon. No delta may grow.
    name : str
        Where they come from, for the reader.

    Raises
    ------
    ParameterError
        If there is no point, or if the points are not in order.
    """

    points: tuple[Point, ...]
    name: str

    def __post_init__(self) -> None:
        require(len(self.points) > 0, "a curve needs at least one point")
        for one, two in zip(self.points, self.points[1:], strict=False):
            require(one.epsilon < two.epsilon, "the epsilon of a curve must grow from point to point")
            fall = one.delta_1 >= two.delta_1 and one.delta_0 >= two.delta_0
            require(fall, "the delta of a curve must not grow with epsilon")

    @property
    def main(self) -> Point:
        """The point in the middle."""
        return self.points[len(self.points) // 2]

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"the curve of {self.name}"

    def as_dict(self) -> dict[str, Any]:
        """Return the claim as ``result.json`` holds it."""
        return {"kind": "curve", "name": self.name, "points": _listed(self.points)}


def as_promise(claim: float | Promise) -> Promise:
    """Make a claim of a number.

    Parameters
    ----------
    claim : float or Promise
        A number is an epsilon, with delta = 0.

    Returns
    -------
    Promise
        The claim.
    """
    return Dp(float(claim)) if isinstance(claim, (int, float, np.number)) else claim
