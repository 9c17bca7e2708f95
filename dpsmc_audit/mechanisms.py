"""Barrier mechanisms: laws for the excess L that is drawn once and added to both bounds of the test.

A walk with excess record ``X_k = max_j max(Lambda_j - b_up, -Lambda_j - b_low)`` stops at the first k with
``X_k >= L``. So a law for L is all there is to know about a mechanism: ``P(tau > k) = survival(X_k)``. An L that leaves
no room between the bounds (``Sprt.no_room``) releases tau = 1 and a fair coin, whatever the sample.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsmc_audit.errors import require
from dpsmc_audit.sprt import Sprt

__all__ = [
    "Exponential",
    "Laplace",
    "Law",
    "Mechanism",
    "NoNoise",
    "Truncated",
    "sample",
]

FloatArray = NDArray[np.float64]
Atoms = tuple[tuple[float, float], ...]


class Mechanism(Protocol):
    """What the walks and the exact laws ask of a law for L."""

    name: ClassVar[str]

    @property
    def atoms(self) -> Atoms | None:
        """The values of L and their probabilities where they can be listed (but for 1e-12 of them); else None."""
        ...

    def __hash__(self) -> int:
        """Mechanisms are frozen: what was computed for one is remembered."""
        ...

    def survival(self, excess: ArrayLike) -> FloatArray:
        """P(L > excess): the chance that a walk with this excess record is still running."""
        ...

    def quantile(self, u: ArrayLike) -> FloatArray:
        """The L below which a share u of the law lies; of a uniform u, a draw of L."""
        ...


@dataclass(frozen=True)
class NoNoise:
    """Algorithm 1: L = 0, the plain test.

    Examples
    --------
    >>> NoNoise().quantile([0.1, 0.9]).tolist()
    [0.0, 0.0]
    """

    name: ClassVar[str] = "none"
    atoms: ClassVar[Atoms | None] = ((0.0, 1.0),)

    @classmethod
    def private(cls, test: Sprt, epsilon: float) -> Self:
        """Algorithm 1 has no noise to calibrate; the privacy level is not used."""
        return cls()

    def survival(self, excess: ArrayLike) -> FloatArray:
        return np.where(np.asarray(excess, dtype=np.float64) < 0.0, 1.0, 0.0)

    def quantile(self, u: ArrayLike) -> FloatArray:
        return np.zeros_like(np.asarray(u, dtype=np.float64))


@dataclass(frozen=True)
class Exponential:
    """Algorithm 2: ``L ~ Exp(epsilon / (s_plus + s_minus))``, the paper's randomised stopping condition.

    Examples
    --------
    >>> law = Exponential.private(Sprt(p=0.73, delta=0.01, alpha=0.01), epsilon=0.05)
    >>> round(1 / law.rate, 3)
    2.03
    >>> float(law.survival(law.quantile(0.25)))
    0.75
    """

    name: ClassVar[str] = "exponential"
    atoms: ClassVar[Atoms | None] = None
    rate: float

    def __post_init__(self) -> None:
        require(0.0 < self.rate < math.inf, f"the rate of L must be positive and finite, got {self.rate}")

    @property
    def scale(self) -> float:
        """The mean of L, over which its density falls by a factor of e."""
        return 1.0 / self.rate

    @classmethod
    def private(cls, test: Sprt, epsilon: float) -> Self:
        """The law the paper proves ``2 epsilon`` for."""
        check_epsilon(cls.name, epsilon)
        return cls(epsilon / test.step_sum)

    def survival(self, excess: ArrayLike) -> FloatArray:
        return np.exp(-self.rate * np.maximum(np.asarray(excess, dtype=np.float64), 0.0))

    def quantile(self, u: ArrayLike) -> FloatArray:
        return np.log1p(-np.asarray(u, dtype=np.float64)) / -self.rate

    def nodes(self, count: int, tilt: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Points and weights with ``E[exp(-tilt L) g(L)] ~ sum(weights * g(points))`` for a slowly varying g.

        Gauss-Laguerre for the tilted law, which is again exponential, with rate ``rate + tilt``.
        """
        points, weights = _laguerre(count)
        rate = self.rate + tilt
        return points / rate, weights * (self.rate / rate)


@lru_cache(maxsize=32)
def _laguerre(count: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.laguerre.laggauss(count)


@dataclass(frozen=True)
class Laplace:
    """Two-sided noise: ``L ~ center + Laplace(scale)``, the center so far up that the test keeps its error levels.

    Examples
    --------
    >>> law = Laplace(center=30.0, scale=10.0)
    >>> float(law.survival(30.0)), round(float(law.survival(law.quantile(0.02))), 12)
    (0.5, 0.98)
    """

    name: ClassVar[str] = "laplace"
    atoms: ClassVar[Atoms | None] = None
    center: float
    scale: float

    def __post_init__(self) -> None:
        require(0.0 < self.scale < math.inf, f"the scale of L must be positive and finite, got {self.scale}")
        require(math.isfinite(self.center), f"the center of L must be finite, got {self.center}")

    def survival(self, excess: ArrayLike) -> FloatArray:
        z = (np.asarray(excess, dtype=np.float64) - self.center) / self.scale
        half = 0.5 * np.exp(-np.abs(z))
        return np.where(z >= 0.0, half, 1.0 - half)

    def quantile(self, u: ArrayLike) -> FloatArray:
        return self.upper_quantile(1.0 - np.asarray(u, dtype=np.float64))

    def upper_quantile(self, tail: FloatArray) -> FloatArray:
        """The L above which a share `tail` of the law lies."""
        with np.errstate(divide="ignore"):
            side = np.where(tail > 0.5, np.log(2.0 * (1.0 - tail)), -np.log(2.0 * tail))
        return np.asarray(self.center + self.scale * side)


@dataclass(frozen=True)
class Truncated:
    """Laplace noise that leaves some room between the bounds: the law of `Laplace` given ``L >= lowest``.

    No coin is needed, and no bound is so near that the first samples show. It costs a support gap, as Algorithm 2 has
    one, but of the small probability that L is within a changed sample of `lowest`. For the marginal observer it hides
    more than Algorithm 2 for as many samples.

    Examples
    --------
    >>> law = Truncated(center=5.0, scale=10.0, lowest=-3.0)
    >>> float(law.survival(-3.0)), round(float(law.survival(law.quantile(0.02))), 12)
    (1.0, 0.98)
    """

    name: ClassVar[str] = "truncated"
    atoms: ClassVar[Atoms | None] = None
    center: float
    scale: float
    lowest: float

    def __post_init__(self) -> None:
        _ = self._whole
        require(math.isfinite(self.lowest), f"the smallest L must be finite, got {self.lowest}")

    @property
    def mean(self) -> float:
        """E[L]: from ``E[L; L >= lowest]`` of the whole law, in units of the scale from its center."""
        start = (self.lowest - self.center) / self.scale
        part = 0.5 * (1.0 - start) * math.exp(start) if start < 0.0 else 0.5 * (1.0 + start) * math.exp(-start)
        return self.center + self.scale * part / float(self._whole.survival(self.lowest))

    @property
    def _whole(self) -> Laplace:
        return Laplace(self.center, self.scale)

    def survival(self, excess: ArrayLike) -> FloatArray:
        inside = np.maximum(np.asarray(excess, dtype=np.float64), self.lowest)
        return np.asarray(self._whole.survival(inside) / self._whole.survival(self.lowest))

    def quantile(self, u: ArrayLike) -> FloatArray:
        given = np.asarray(u, dtype=np.float64)
        tail = (1.0 - given) * self._whole.survival(self.lowest)
        inside = np.maximum(self._whole.upper_quantile(tail), self.lowest)
        return np.where(given > 0.0, inside, self.lowest)  # the smallest L to the last digit: records may equal it


@dataclass(frozen=True)
class Law:
    """Any law of ``scipy.stats`` for L, by name and arguments: ``Law("gamma", (("a", 2.0), ("scale", 5.0)))``.

    Examples
    --------
    >>> law = Law.of("gamma", a=2.0, scale=5.0)
    >>> round(float(law.survival(law.quantile(0.3))), 12)
    0.7
    >>> from scipy import stats
    >>> Law.frozen(stats.gamma(2.0, scale=5.0)) == law
    True
    """

    name: ClassVar[str] = "law"
    distribution: str
    arguments: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        _ = _frozen(self.distribution, self.arguments)

    @classmethod
    def of(cls, distribution: str, **arguments: float) -> Self:
        """By name: shapes, `loc` and `scale` as scipy calls them."""
        return cls(distribution, tuple(sorted((name, float(value)) for name, value in arguments.items())))

    @classmethod
    def frozen(cls, law: Any) -> Self:
        """From a frozen distribution of scipy."""
        shapes = [name.strip() for name in (law.dist.shapes or "").split(",") if name.strip()]
        continuous = hasattr(law.dist, "pdf")
        names = [*shapes, "loc", *(["scale"] if continuous else [])]
        return cls.of(law.dist.name, **dict(zip(names, law.args, strict=False)), **law.kwds)

    @property
    def atoms(self) -> Atoms | None:
        """Of a discrete law: the integers that matter."""
        law = _frozen(self.distribution, self.arguments)
        if hasattr(law.dist, "pdf"):
            return None
        first, last = (float(law.ppf(u)) for u in (1e-13, 1.0 - 1e-13))
        require(last - first < 5_000, f"mechanism law {self.distribution} has more than 5000 values: too many to list")
        values = first + np.arange(round(last - first) + 1)
        return tuple(zip(values.tolist(), law.pmf(values).tolist(), strict=True))

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and variance of L; infinite where they do not exist."""
        with np.errstate(all="ignore"):
            mean, variance = (float(x) for x in _frozen(self.distribution, self.arguments).stats("mv"))
        return (mean if math.isfinite(mean) else math.inf, variance if math.isfinite(variance) else math.inf)

    def beyond(self, excess: float) -> float:
        """``E[(L - excess)+]``."""
        from scipy.integrate import quad

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(quad(_frozen(self.distribution, self.arguments).sf, excess, math.inf, limit=200)[0])

    def survival(self, excess: ArrayLike) -> FloatArray:
        return np.asarray(_frozen(self.distribution, self.arguments).sf(np.asarray(excess, dtype=np.float64)))

    def quantile(self, u: ArrayLike) -> FloatArray:
        return np.asarray(_frozen(self.distribution, self.arguments).ppf(np.asarray(u, dtype=np.float64)), np.float64)


@lru_cache(maxsize=32)
def _frozen(distribution: str, arguments: tuple[tuple[str, float], ...]) -> Any:
    """The distribution, or a `ParameterError` that says what is wrong with the request."""
    from scipy import stats

    family = getattr(stats, distribution, None)
    known = isinstance(family, (stats.rv_continuous, stats.rv_discrete))
    require(known, f"mechanism.distribution must be a distribution of scipy.stats, got {distribution}")
    assert family is not None
    shapes = [name.strip() for name in (family.shapes or "").split(",") if name.strip()]
    takes = [*shapes, "loc", *(["scale"] if hasattr(family, "pdf") else [])]
    given = f"{distribution}({', '.join(f'{name}={value:g}' for name, value in arguments)})"
    names = [name for name, _ in arguments]
    fits = set(shapes) <= set(names) <= set(takes)
    require(fits, f"mechanism law {given}: {distribution} takes {', '.join(takes)} (loc and scale may be left out)")
    law = family(**dict(arguments))
    with np.errstate(all="ignore"):
        middle = float(law.ppf(0.5))
    require(math.isfinite(middle), f"mechanism law {given}: these arguments are outside the family's domain")
    return law


def check_epsilon(name: str, epsilon: float) -> None:
    """A privacy level that noise can be scaled to."""
    require(0.0 < epsilon < math.inf, f"epsilon must be positive for mechanism {name}, got {epsilon}")
    require(1e-9 <= epsilon <= 1e9, f"epsilon must lie in [1e-9, 1e9], got {epsilon}")


def sample(law: Mechanism, rng: np.random.Generator, size: int) -> FloatArray:
    """Independent draws of L, by inversion.

    Examples
    --------
    >>> draws = sample(Exponential(rate=2.0), np.random.default_rng(1), 100_000)
    >>> abs(float(draws.mean()) - 0.5) < 0.01
    True
    """
    return law.quantile(rng.random(size))
