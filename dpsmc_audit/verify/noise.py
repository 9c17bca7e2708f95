"""Exact noise in whole numbers: there is no floating point between the entropy and the decision.

A floating-point draw of L would have gaps and rounded probabilities. An outcome that is possible under one sample but
not under the other reveals the sample. So the walk, its bounds and L are counted in units of ``c / 2^k``, where c is by
how much one changed sample moves the walk. A sample moves the walk by a whole number of units, a changed one by exactly
2^k. L is geometric or discrete Laplace, sampled exactly, with ``P(L >= l + 2^k) = e^-epsilon P(L >= l)`` as an equality
of real numbers. Steps and bounds are those of the test up to half a unit, so after N samples the walk is within
``N c / 2^(k+1)`` of the paper's.

The time of a draw must not tell L. Our sampler asks for a fixed number of random integers. Samplers that are not ours
(OpenDP, quantiles of scipy) are given a fixed time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Self

from dpsmc_audit.mechanisms import Exponential, Laplace, Mechanism, NoNoise, Truncated
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.targets import said
from dpsmc_audit.verify.entropy import Entropy

__all__ = ["Grid", "coin", "draw_excess", "geometric", "loads", "opendp_version", "two_sided"]


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

WIDTH = 256
"""Random bits for one coin. With probability 2^-255 a coin needs more."""
Chance = Callable[[Context], Decimal]
"""Computes a probability to the precision of a context."""


def coin(chance: Chance, entropy: Entropy) -> bool:
    """Draw True with exactly a given probability: compare a uniform real number with it, digit by digit.

    Parameters
    ----------
    chance : callable
        Computes the probability.
    entropy : Entropy
        The source of integers. It is asked once, but for one draw in 2^255.

    Returns
    -------
    bool
        The draw.

    Examples
    --------
    >>> from dpsmc_audit.verify.entropy import SeededEntropy
    >>> entropy = SeededEntropy(1)
    >>> sum(coin(lambda context: context.divide(Decimal(1), Decimal(3)), entropy) for _ in range(900)) / 900
    0.34555555555555556
    """
    drawn = width = 0
    while True:
        drawn, width = drawn * 2**WIDTH + entropy.below(2**WIDTH), width + WIDTH
        context = Context(prec=width // 3 + 60, Emin=MIN_EMIN, Emax=MAX_EMAX)
        near = int(context.multiply(chance(context), Decimal(2**width)))  # within 1 of the true product
        if drawn < near - 1:
            return True
        if drawn > near + 1:
            return False


@lru_cache(maxsize=512)  # public numbers; many draws of one law share them
def _exp(exponent: Fraction, precision: int) -> Decimal:
    """exp(-exponent)."""
    context = Context(prec=precision, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return context.exp(context.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator)))


def geometric(scale: Fraction, entropy: Entropy) -> int:
    """Draw X with ``P(X >= x) = exp(-x / scale)`` for x = 0, 1, 2, ..., exactly.

    The binary digits of X are independent: that of 2^j is 1 with probability ``1 / (1 + exp(2^j / scale))``. So the
    number of coins, and with it the time, does not depend on X.

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
    places = max(math.ceil(math.log2(180 * scale)), 1)
    size = 0
    for place in range(places):
        size |= int(coin(_digit(2**place / scale), entropy)) << place
    while coin(lambda context: _exp(2**places / scale, context.prec), entropy):  # hardly ever: less than 2^-256
        size += 2**places
    return size


def _digit(exponent: Fraction) -> Chance:
    """``1 / (1 + exp(exponent))``."""

    def chance(context: Context) -> Decimal:
        small = _exp(exponent, context.prec)
        return context.divide(small, context.add(Decimal(1), small))

    return chance


def two_sided(scale: Fraction, lowest: int | None, entropy: Entropy) -> int:
    """Draw X with ``P(X = x)`` proportional to ``exp(-|x| / scale)`` for x >= lowest, exactly.

    A coin draws the sign. Negative values are -1, -2, ... with geometric probabilities. Down to a lowest value, that is
    a geometric draw modulo their number. The number of coins does not depend on X.

    Parameters
    ----------
    scale : Fraction
        The scale.
    lowest : int or None
        At most 0. None for no lowest value.
    entropy : Entropy
        The source of integers.

    Returns
    -------
    int
        The draw.
    """
    negative = coin(_sign(scale, lowest), entropy)
    size = geometric(scale, entropy)
    below = -1 - (size if lowest is None else size % max(-lowest, 1))
    return below if negative else size


def _sign(scale: Fraction, lowest: int | None) -> Chance:
    """``q (1 - q^a) / (1 + q - q^(a + 1))`` with q = exp(-1 / scale) and a = -lowest: P(X < 0)."""

    def chance(context: Context) -> Decimal:
        q, one = _exp(1 / scale, context.prec), Decimal(1)
        last = Decimal(0) if lowest is None else _exp(-lowest / scale, context.prec)
        rest = context.multiply(q, context.subtract(one, last))
        return context.divide(rest, context.add(one, rest))

    return chance


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
        found = version("opendp")
    except PackageNotFoundError:
        return None
    return found if loads() else None


@lru_cache(maxsize=1)
def loads() -> bool:
    """Tell whether OpenDP can be used, and warn if not. In the child process nobody would learn why it cannot.

    Returns
    -------
    bool
        True if its library loads.
    """
    try:
        import opendp.prelude  # noqa: F401
    except Exception as error:
        warn(f"OpenDP does not load ({said(error)}): L is drawn without it")
        return False
    return True


def _opendp_laplace(scale: Fraction) -> Callable[[], int]:
    """Make OpenDP's sampler of the discrete Laplace law. Its scale is a floating-point number, within 2^-53 of ours."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    draw = dp.m.make_laplace(*space, scale=float(scale))
    return lambda: int(draw(0))


FIXED_TIME = 0.1
"""Seconds that a draw of a sampler that is not ours takes. It needs less than a hundredth of them."""


def _in_fixed_time(draw: Callable[[], int]) -> int:
    """Draw, and wait until a time that does not depend on what was drawn."""
    end = time.monotonic() + FIXED_TIME
    drawn = draw()
    time.sleep(max(end - time.monotonic(), 0.0))
    return drawn


def draw_excess(test: Sprt, mechanism: Mechanism, grid: Grid, entropy: Entropy, *, opendp: bool = False) -> int:
    """Draw L. The time that this takes does not depend on L.

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
    center, least = 0, None
    match mechanism:
        case NoNoise():
            return 0
        case Exponential():
            least = 0
        case Laplace():
            center = grid.units(mechanism.center)
        case Truncated():
            center, least = grid.units(mechanism.center), grid.units(mechanism.lowest)
        case _:
            uniform = (entropy.below(2**53) + 0.5) / 2**53
            return _in_fixed_time(lambda: grid.units(float(mechanism.quantile(uniform))))
    # If the lowest value is above the center, the law is that of the tail beyond the center, moved.
    start = center if least is None else max(center, least)
    lowest, scale = None if least is None else least - start, grid.scale(test, mechanism.scale)
    if not opendp:
        return start + two_sided(scale, lowest, entropy)
    laplace = _opendp_laplace(scale)
    return start + _in_fixed_time(lambda: next(x for x in iter(laplace, None) if lowest is None or x >= lowest))
