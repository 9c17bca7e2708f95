"""Any law of `scipy.stats`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpsmc_audit.errors import require
from dpsmc_audit.mechanisms.protocol import Atoms
from dpsmc_audit.numerics.arrays import FloatArray

__all__ = ["Law"]


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
