"""Exact noise in whole numbers: there is no floating point between the entropy and the decision.

A floating-point draw of L would have gaps and rounded probabilities. An outcome that is possible under one sample but
not under the other reveals the sample. So the walk, its bounds and L are counted in units of ``c / 2^k``, where c is by
how much one changed sample moves the walk. A sample moves the walk by a whole number of units, a changed one by exactly
2^k. L is geometric or discrete Laplace, sampled exactly (Canonne, Kamath and Steinke 2020), with
``P(L >= l + 2^k) = e^-epsilon P(L >= l)`` as an equality of real numbers. Steps and bounds are those of the test up to
half a unit, so after N samples the walk is within ``N c / 2^(k+1)`` of the paper's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpsmc_audit.mechanisms import Exponential, Laplace, Mechanism, NoNoise, Truncated
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify.entropy import Entropy

__all__ = ["Grid", "bernoulli_exp", "discrete_laplace", "draw_excess", "geometric", "opendp_version"]


@dataclass(frozen=True)
class Grid:
    """The test in whole units.

    Parameters
    ----------
    bits : int
        A changed sample moves the walk by 2^bits units.
    unit : float
        The length of a unit.
    up, down : int
        The two steps of the walk.
    b_up, b_low : int
        The distances of the bounds.

    Examples
    --------
    >>> grid = Grid.of(Sprt(p=0.73, delta=0.01, alpha=0.01))
    >>> grid.bits, grid.up + grid.down == 2**grid.bits
    (40, True)
    """

    bits: int
    unit: float
    up: int
    down: int
    b_up: int
    b_low: int

    @classmethod
    def of(cls, test: Sprt) -> Self:
        """Make the grid of a test.

        Parameters
        ----------
        test : Sprt
            The test.

        Returns
        -------
        Grid
            The grid.
        """
        bits = 40  # a batch of samples stays within 64-bit integers
        unit = test.step_sum / 2**bits
        up = round(Fraction(test.s_plus) / Fraction(test.step_sum) * 2**bits)
        return cls(bits, unit, up, 2**bits - up, round(test.b_up / unit), round(test.b_low / unit))

    @property
    def no_room(self) -> int:
        """The L at and below which a fair coin decides."""
        return -min(self.b_up, self.b_low)

    def units(self, excess: float) -> int:
        """Convert a length to units.

        Parameters
        ----------
        excess : float
            The length.

        Returns
        -------
        int
            The nearest number of units.
        """
        return round(excess / self.unit)

    def scale(self, test: Sprt, length: float) -> Fraction:
        """Convert the scale of a noise to units.

        Parameters
        ----------
        test : Sprt
            The test.
        length : float
            The scale. ``c / length`` is epsilon, read as a decimal number of 12 digits.

        Returns
        -------
        Fraction
            The scale in units.
        """
        return Fraction(2**self.bits) / Fraction(f"{test.step_sum / length:.12g}")


# --- exact samplers -------------------------------------------------------------------------------------------------


def bernoulli_exp(exponent: Fraction, entropy: Entropy) -> bool:
    """Draw True with probability ``exp(-exponent)``, exactly.

    Parameters
    ----------
    exponent : Fraction
        Not negative.
    entropy : Entropy
        The source of integers.

    Returns
    -------
    bool
        The draw.

    Examples
    --------
    >>> from dpsmc_audit.verify.entropy import SeededEntropy
    >>> entropy = SeededEntropy(1)
    >>> sum(bernoulli_exp(Fraction(1, 2), entropy) for _ in range(10_000)) / 10_000  # exp(-1/2) is 0.6065
    0.6076
    """
    while exponent > 1:
        if not _bernoulli_exp_below_one(Fraction(1), entropy):
            return False
        exponent -= 1
    return _bernoulli_exp_below_one(exponent, entropy)


def _bernoulli_exp_below_one(exponent: Fraction, entropy: Entropy) -> bool:
    """Use von Neumann's series: the first failure of Bernoulli(exponent / k), k = 1, 2, ..., comes at an odd k."""
    k = 1
    while entropy.below(exponent.denominator * k) < exponent.numerator:
        k += 1
    return k % 2 == 1


def geometric(scale: Fraction, entropy: Entropy) -> int:
    """Draw X with ``P(X >= x) = exp(-x / scale)`` for x = 0, 1, 2, ..., exactly.

    Parameters
    ----------
    scale : Fraction
        The scale.
    entropy : Entropy
        The source of integers.

    Returns
    -------
    int
        The draw.
    """
    t, s = scale.numerator, scale.denominator
    while True:
        part = entropy.below(t)
        if bernoulli_exp(Fraction(part, t), entropy):
            break
    whole = 0
    while bernoulli_exp(Fraction(1), entropy):
        whole += 1
    return (part + t * whole) // s


def discrete_laplace(scale: Fraction, entropy: Entropy) -> int:
    """Draw X with ``P(X = x)`` proportional to ``exp(-|x| / scale)``, exactly.

    Parameters
    ----------
    scale : Fraction
        The scale.
    entropy : Entropy
        The source of integers.

    Returns
    -------
    int
        The draw.
    """
    while True:
        size, negative = geometric(scale, entropy), entropy.below(2)
        if size or not negative:
            return -size if negative else size


# --- L --------------------------------------------------------------------------------------------------------------


def opendp_version(test: Sprt, mechanism: Mechanism, grid: Grid) -> str | None:
    """Find the version of OpenDP if its sampler can draw L. It is then preferred.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    grid : Grid
        The units.

    Returns
    -------
    str or None
        The version. None if OpenDP is not installed, or if draws could leave its 64-bit integers.
    """
    from importlib.metadata import PackageNotFoundError, version

    if not isinstance(mechanism, (Exponential, Laplace, Truncated)) or grid.scale(test, mechanism.scale) > 2**50:
        return None
    try:
        return version("opendp")
    except PackageNotFoundError:
        return None


def _opendp_laplace(scale: Fraction) -> int:
    """Draw from the discrete Laplace law by OpenDP. Its scale is a floating-point number, within 2^-53 of ours."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    return int(dp.m.make_laplace(*space, scale=float(scale))(0))


def draw_excess(test: Sprt, mechanism: Mechanism, grid: Grid, entropy: Entropy, *, opendp: bool = False) -> int:
    """Draw L.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    grid : Grid
        The units.
    entropy : Entropy
        The source of integers.
    opendp : bool
        Use OpenDP's sampler, which has its own entropy.

    Returns
    -------
    int
        L in units. It is exact for the noise of this package, and a rounded quantile for other laws.
    """
    center, lowest = 0, -math.inf
    match mechanism:
        case NoNoise():
            return 0
        case Exponential():
            lowest = 0
        case Laplace():
            center = grid.units(mechanism.center)
        case Truncated():
            center, lowest = grid.units(mechanism.center), grid.units(mechanism.lowest)
        case _:
            uniform = (entropy.below(2**53) + 0.5) / 2**53
            return grid.units(float(mechanism.quantile(uniform)))
    scale, start = grid.scale(test, mechanism.scale), int(max(center, lowest))
    while True:  # until L has at least its lowest value; above the center the law is that of its tail, moved
        drawn = start + (_opendp_laplace(scale) if opendp else discrete_laplace(scale, entropy))
        if drawn >= lowest:
            return drawn
