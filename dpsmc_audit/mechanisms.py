"""Barrier mechanisms: laws for the excess L that is drawn once and added to both bounds of the test.

A walk with excess record ``X_k = max_j max(Lambda_j - b_up, -Lambda_j - b_low)`` stops at the first k with
``X_k >= L``. So the law of L determines the mechanism: ``P(tau > k) = survival(X_k)``. If L leaves no room between the
bounds (``Sprt.no_room``), the release is tau = 1 and a fair coin, whatever the sample.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from dpsmc_audit.errors import require
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.sprt import Sprt

__all__ = ["Exponential", "Laplace", "Law", "Mechanism", "NoNoise", "Truncated"]

Atoms = tuple[tuple[float, float], ...]


class Mechanism(Protocol):
    """A law for L, as the walks and the exact laws use it."""

    name: ClassVar[str]

    @property
    def atoms(self) -> Atoms | None:
        """The values of L and their probabilities, up to 1e-12 in total. None if they cannot be listed."""
        ...

    def __hash__(self) -> int:
        """Mechanisms are frozen, so results can be cached by them."""
        ...

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess), the probability that a walk with this excess record still runs.

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            The probabilities.
        """
        ...

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L. The quantile of a uniform number is a draw of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies.
        """
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
        """Make the law. Algorithm 1 has no noise, so the privacy level is not used.

        Parameters
        ----------
        test : Sprt
            The test.
        epsilon : float
            The privacy level.

        Returns
        -------
        NoNoise
            The law.
        """
        return cls()

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess).

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            1 below 0, and 0 from 0 on.
        """
        return np.where(np.asarray(excess, dtype=np.float64) < 0.0, 1.0, 0.0)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            Zeros: L is always 0.
        """
        return np.zeros_like(np.asarray(u, dtype=np.float64))


@dataclass(frozen=True)
class Exponential:
    """Algorithm 2: ``L ~ Exp(epsilon / (s_plus + s_minus))``, the paper's randomised stopping condition.

    Parameters
    ----------
    rate : float
        One over the mean of L.

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
        """Make the law for which the paper proves ``2 epsilon``.

        Parameters
        ----------
        test : Sprt
            The test.
        epsilon : float
            The privacy level.

        Returns
        -------
        Exponential
            The law.
        """
        check_epsilon(cls.name, epsilon)
        return cls(epsilon / test.step_sum)

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess).

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            The probabilities.
        """
        return np.exp(-self.rate * np.maximum(np.asarray(excess, dtype=np.float64), 0.0))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies.
        """
        return np.log1p(-np.asarray(u, dtype=np.float64)) / -self.rate

    def nodes(self, count: int, tilt: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Make a quadrature for means over L: ``E[exp(-tilt L) g(L)] ~ sum(weights * g(points))``, g varying slowly.

        It is Gauss-Laguerre for the tilted law, which is exponential with rate ``rate + tilt``.

        Parameters
        ----------
        count : int
            The number of points.
        tilt : float
            The tilt.

        Returns
        -------
        points, weights : ndarray
            The quadrature.
        """
        points, weights = _laguerre(count)
        rate = self.rate + tilt
        return points / rate, weights * (self.rate / rate)


@lru_cache(maxsize=32)
def _laguerre(count: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.laguerre.laggauss(count)


@dataclass(frozen=True)
class Laplace:
    """Two-sided noise: ``L ~ center + Laplace(scale)``.

    Parameters
    ----------
    center : float
        The median of L. `dpsmc_audit.private` chooses it so that the test keeps its error levels.
    scale : float
        The scale.

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
        """Compute P(L > excess).

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            The probabilities.
        """
        z = (np.asarray(excess, dtype=np.float64) - self.center) / self.scale
        half = 0.5 * np.exp(-np.abs(z))
        return np.where(z >= 0.0, half, 1.0 - half)

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies. It is minus infinity at 0.
        """
        return self.upper_quantile(1.0 - np.asarray(u, dtype=np.float64))

    def upper_quantile(self, tail: FloatArray) -> FloatArray:
        """Compute quantiles from the upper end.

        Parameters
        ----------
        tail : ndarray
            Shares of the law.

        Returns
        -------
        ndarray
            The L above which these shares lie.
        """
        with np.errstate(divide="ignore"):
            side = np.where(tail > 0.5, np.log(2.0 * (1.0 - tail)), -np.log(2.0 * tail))
        return np.asarray(self.center + self.scale * side)


@dataclass(frozen=True)
class Truncated:
    """Laplace noise that leaves some room between the bounds: the law of `Laplace` given ``L >= lowest``.

    It needs no coin, and no bound is so near that the first samples decide. Like Algorithm 2 it has a support gap, but
    only with the small probability that L is within a changed sample of `lowest`. For the marginal observer it hides
    more than Algorithm 2 for as many samples.

    Parameters
    ----------
    center, scale : float
        As for `Laplace`.
    lowest : float
        The smallest L.

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
        """The mean of L, from ``E[L; L >= lowest]`` of the whole law in units of the scale from its center."""
        start = (self.lowest - self.center) / self.scale
        part = 0.5 * (1.0 - start) * math.exp(start) if start < 0.0 else 0.5 * (1.0 + start) * math.exp(-start)
        return self.center + self.scale * part / float(self._whole.survival(self.lowest))

    @property
    def _whole(self) -> Laplace:
        return Laplace(self.center, self.scale)

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess).

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            The probabilities. They are 1 up to `lowest`.
        """
        inside = np.maximum(np.asarray(excess, dtype=np.float64), self.lowest)
        return np.asarray(self._whole.survival(inside) / self._whole.survival(self.lowest))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies. It is exactly `lowest` at 0.
        """
        given = np.asarray(u, dtype=np.float64)
        tail = (1.0 - given) * self._whole.survival(self.lowest)
        inside = np.maximum(self._whole.upper_quantile(tail), self.lowest)
        return np.where(given > 0.0, inside, self.lowest)  # exactly the smallest L, because records can equal it


@dataclass(frozen=True)
class Law:
    """Any law of ``scipy.stats`` for L, by name and arguments: ``Law("gamma", (("a", 2.0), ("scale", 5.0)))``.

    Parameters
    ----------
    distribution : str
        The name in ``scipy.stats``.
    arguments : tuple of (str, float)
        Shapes, `loc` and `scale`, sorted by name.

    Raises
    ------
    ParameterError
        If the distribution is unknown or the arguments do not fit it.

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
        _ = self._scipy

    @cached_property
    def _scipy(self) -> Any:
        return _frozen(self.distribution, self.arguments)

    @classmethod
    def of(cls, distribution: str, **arguments: float) -> Self:
        """Make a law from keyword arguments.

        Parameters
        ----------
        distribution : str
            The name in ``scipy.stats``.
        **arguments : float
            Shapes, `loc` and `scale`, with scipy's names.

        Returns
        -------
        Law
            The law.
        """
        return cls(distribution, tuple(sorted((name, float(value)) for name, value in arguments.items())))

    @classmethod
    def frozen(cls, law: Any) -> Self:
        """Make a law from a frozen distribution of scipy.

        Parameters
        ----------
        law : frozen distribution
            For example ``scipy.stats.gamma(2.0)``.

        Returns
        -------
        Law
            The law.
        """
        shapes, others = _parameters(law.dist)
        return cls.of(law.dist.name, **dict(zip(shapes + others, law.args, strict=False)), **law.kwds)

    @property
    def atoms(self) -> Atoms | None:
        """The integers that matter of a discrete law. None for a continuous law."""
        law = self._scipy
        if hasattr(law.dist, "pdf"):
            return None
        first, last = (float(law.ppf(u)) for u in (1e-13, 1.0 - 1e-13))
        require(last - first < 5_000, f"mechanism law {self.distribution} has more than 5000 values: too many to list")
        values = first + np.arange(round(last - first) + 1)
        return tuple(zip(values.tolist(), law.pmf(values).tolist(), strict=True))

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and variance of L, infinite if they do not exist."""
        with np.errstate(all="ignore"):
            mean, variance = (float(x) for x in self._scipy.stats("mv"))
        return (mean if math.isfinite(mean) else math.inf, variance if math.isfinite(variance) else math.inf)

    def beyond(self, excess: float) -> float:
        """Compute ``E[(L - excess)+]``.

        Parameters
        ----------
        excess : float
            The threshold.

        Returns
        -------
        float
            The mean.
        """
        from scipy.integrate import quad

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(quad(self._scipy.sf, excess, math.inf, limit=200)[0])

    def survival(self, excess: ArrayLike) -> FloatArray:
        """Compute P(L > excess).

        Parameters
        ----------
        excess : array_like
            Excess records.

        Returns
        -------
        ndarray
            The probabilities, by scipy.
        """
        return np.asarray(self._scipy.sf(np.asarray(excess, dtype=np.float64)))

    def quantile(self, u: ArrayLike) -> FloatArray:
        """Compute quantiles of L.

        Parameters
        ----------
        u : array_like
            Levels in [0, 1).

        Returns
        -------
        ndarray
            The L below which a share u of the law lies, by scipy.
        """
        return np.asarray(self._scipy.ppf(np.asarray(u, dtype=np.float64)), np.float64)


def _frozen(distribution: str, arguments: tuple[tuple[str, float], ...]) -> Any:
    """Make the distribution, or raise `ParameterError`."""
    from scipy import stats

    family = getattr(stats, distribution, None)
    known = isinstance(family, (stats.rv_continuous, stats.rv_discrete))
    require(known, f"mechanism.distribution must be a distribution of scipy.stats, got {distribution}")
    assert family is not None
    shapes, others = _parameters(family)
    takes = [*shapes, *others]
    given = f"{distribution}({', '.join(f'{name}={value:g}' for name, value in arguments)})"
    names = [name for name, _ in arguments]
    fits = set(shapes) <= set(names) <= set(takes)
    require(fits, f"mechanism law {given}: {distribution} takes {', '.join(takes)} (loc and scale may be left out)")
    law = family(**dict(arguments))
    with np.errstate(all="ignore"):
        middle = float(law.ppf(0.5))
    require(math.isfinite(middle), f"mechanism law {given}: these arguments are outside the family's domain")
    return law


def _parameters(family: Any) -> tuple[list[str], list[str]]:
    """The names of a family's shapes, and its other parameters. Discrete families have no scale."""
    shapes = [name.strip() for name in (family.shapes or "").split(",") if name.strip()]
    return shapes, ["loc", "scale"] if hasattr(family, "pdf") else ["loc"]


def check_epsilon(name: str, epsilon: float) -> None:
    """Check a privacy level that noise is scaled to.

    Parameters
    ----------
    name : str
        The mechanism.
    epsilon : float
        The level.

    Raises
    ------
    ParameterError
        If the level is not in [1e-9, 1e9].
    """
    require(0.0 < epsilon < math.inf, f"epsilon must be positive for mechanism {name}, got {epsilon}")
    require(1e-9 <= epsilon <= 1e9, f"epsilon must lie in [1e-9, 1e9], got {epsilon}")
