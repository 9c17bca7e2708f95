"""Exact noise in whole numbers: no floating point between the entropy and the decision.

A floating-point draw of L would have holes and rounded probabilities, and what is possible under one sample but not
under the other reveals the sample. So the walk, its bounds and L are counted in units of ``c / 2^k`` (c is by how much
one changed sample moves the walk). A sample moves the walk by a whole number of units, a changed one by exactly 2^k,
and L is geometric or discrete Laplace, sampled exactly (Canonne, Kamath and Steinke 2020) with
``P(L >= l + 2^k) = e^-epsilon P(L >= l)`` as an equality of real numbers. The price: steps and bounds are those of the
test up to half a unit, so that after N samples the walk is within ``N c / 2^(k+1)`` of the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify.entropy import Entropy

__all__ = ["Grid", "bernoulli_exp", "discrete_laplace", "draw_excess", "geometric", "opendp_version"]

BITS = 40


@dataclass(frozen=True)
class Grid:
    """The test in units: steps, bounds, and 2^bits units to a changed sample.

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
        """So fine that a batch of samples stays within 64-bit integers."""
        bits = BITS
        unit = test.step_sum / 2**bits
        up = round(Fraction(test.s_plus) / Fraction(test.step_sum) * 2**bits)
        return cls(bits, unit, up, 2**bits - up, round(test.b_up / unit), round(test.b_low / unit))

    @property
    def no_room(self) -> int:
        """The L at and below which a fair coin decides."""
        return -min(self.b_up, self.b_low)

    def units(self, excess: float) -> int:
        return round(excess / self.unit)

    def scale(self, test: Sprt, length: float) -> Fraction:
        """A scale of noise in units. ``c / length`` is epsilon, taken as the decimal number that was meant."""
        return Fraction(2**self.bits) / Fraction(f"{test.step_sum / length:.12g}")


# --- exact samplers -------------------------------------------------------------------------------------------------


def bernoulli_exp(exponent: Fraction, entropy: Entropy) -> bool:
    """True with probability ``exp(-exponent)``, exactly, for an exponent >= 0.

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
    """Von Neumann's series: the first failure of Bernoulli(exponent / k), k = 1, 2, ..., comes at an odd k."""
    k = 1
    while entropy.below(exponent.denominator * k) < exponent.numerator:
        k += 1
    return k % 2 == 1


def geometric(scale: Fraction, entropy: Entropy) -> int:
    """``P(X >= x) = exp(-x / scale)`` for x = 0, 1, 2, ..., exactly."""
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
    """``P(X = x)`` proportional to ``exp(-|x| / scale)``, exactly."""
    while True:
        size, negative = geometric(scale, entropy), entropy.below(2)
        if size or not negative:
            return -size if negative else size


# --- OpenDP's -------------------------------------------------------------------------------------------------------


WIDEST = 2.0**50
"""Scales above it could meet the end of OpenDP's 64-bit integers."""


def opendp_version(test: Sprt, mechanism: Mechanism, grid: Grid) -> str | None:
    """The version of OpenDP where its sampler can draw this L: it is then preferred. None otherwise."""
    from importlib.metadata import PackageNotFoundError, version

    length = 1.0 / mechanism.rate if isinstance(mechanism, Exponential) else getattr(mechanism, "scale", None)
    if isinstance(mechanism, Law) or length is None or grid.scale(test, length) > WIDEST:
        return None
    try:
        return version("opendp")
    except PackageNotFoundError:
        return None


def _opendp_laplace(scale: Fraction) -> int:
    """The same law, by OpenDP; its scale is a floating-point number, within 2^-53 of ours."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    return int(dp.m.make_laplace(*space, scale=float(scale))(0))


# --- L --------------------------------------------------------------------------------------------------------------


def draw_excess(test: Sprt, mechanism: Mechanism, grid: Grid, entropy: Entropy, *, opendp: bool = False) -> int:
    """L in units."""

    def two_sided(scale: Fraction) -> int:
        return _opendp_laplace(scale) if opendp else discrete_laplace(scale, entropy)

    def one_sided(scale: Fraction) -> int:
        """The two-sided law given that it is not negative."""
        while (drawn := two_sided(scale)) < 0:
            pass
        return drawn

    if isinstance(mechanism, NoNoise):
        return 0
    if isinstance(mechanism, Exponential):
        return one_sided(grid.scale(test, 1.0 / mechanism.rate))
    if isinstance(mechanism, Laplace):
        return grid.units(mechanism.center) + two_sided(grid.scale(test, mechanism.scale))
    if isinstance(mechanism, Truncated):
        scale, center, lowest = (
            grid.scale(test, mechanism.scale),
            *map(grid.units, (mechanism.center, mechanism.lowest)),
        )
        if center <= lowest:
            return lowest + one_sided(scale)
        while (drawn := center + two_sided(scale)) < lowest:
            pass
        return drawn
    uniform = (entropy.below(2**53) + 0.5) / 2**53
    return grid.units(float(mechanism.quantile(uniform)))
