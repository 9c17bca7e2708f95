"""The walk of a test, and what Wald's identities prove of it between two bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import check_probability
from dpsmc_audit.sprt import Sprt

__all__ = ["SLACK", "TIE", "Steps", "Turned", "turned_up", "walds_mean", "walds_ruin"]

FloatArray = NDArray[np.float64]
Ends = tuple[FloatArray, FloatArray]

TIE = 1e-9
"""A walk this close to its last record, in parts of both steps, is back at it up to rounding."""


SLACK = 1e-9
"""More than the relative error of ``exp(-h x)``, as h is rounded."""


@dataclass(frozen=True)
class Steps:
    """A random walk with two step sizes.

    Parameters
    ----------
    p_up : float
        The probability of a step up. Otherwise the step goes down.
    up, down : float
        The sizes of the steps.
    """

    p_up: float
    up: float
    down: float

    @classmethod
    def of(cls, test: Sprt, p_phi: float) -> Steps:
        """Make the walk of a test.

        Parameters
        ----------
        test : Sprt
            The test.
        p_phi : float
            The satisfaction probability.

        Returns
        -------
        Steps
            The walk.

        Raises
        ------
        ParameterError
            If p_phi is not a probability, or within 1e-12 of 0 or 1 without being 0 or 1.
        """
        check_probability("p_phi", p_phi)
        return cls(p_phi, test.s_plus, test.s_minus)

    def mirrored(self) -> Steps:
        """Turn the walk upside down.

        Returns
        -------
        Steps
            The mirrored walk.
        """
        return Steps(1.0 - self.p_up, self.down, self.up)

    def conjugate(self, exponent: float) -> Steps:
        """Make the walk under ``dP~ = exp(-h Lambda) dP``. Its drift has the other sign, so rare exits become common.

        Parameters
        ----------
        exponent : float
            The exponent h of the walk (`Sprt.exponent`).

        Returns
        -------
        Steps
            The conjugate walk.
        """
        return Steps(min(self.p_up * math.exp(-exponent * self.up), 1.0), self.up, self.down)

    @property
    def drift(self) -> float:
        """Mean step."""
        return self.p_up * self.up - (1.0 - self.p_up) * self.down

    @property
    def variance(self) -> float:
        """Variance of a step."""
        return self.p_up * (1.0 - self.p_up) * (self.up + self.down) ** 2

    def at(self, steps: NDArray[np.int64] | np.int64, ones: NDArray[np.int64]) -> FloatArray:
        """Compute the position after some samples. It is computed afresh, as everywhere in the suite.

        Parameters
        ----------
        steps : array or int
            The number of samples.
        ones : array
            How many of them went up.

        Returns
        -------
        array
            The positions.
        """
        return ones * self.up - (steps - ones) * self.down


@dataclass(frozen=True)
class Turned:
    """The walk of a setting, turned so that it does not drift down.

    Parameters
    ----------
    walk : Steps
        The walk.
    near, far : float
        Distances of the bound that it drifts to and of the other one from 0, without L.
    h : float
        Its exponent, not negative.
    over : bool
        Whether the walk was turned upside down.
    other : Steps
        The walk upside down under ``exp(-h Lambda)``. It does not drift down either.
    """

    walk: Steps
    near: float
    far: float
    h: float
    over: bool
    other: Steps

    @property
    def span(self) -> float:
        """Distance between the two bounds, without L."""
        return self.near + self.far


def turned_up(test: Sprt, p_phi: float) -> Turned:
    """Return the walk and its bounds, upside down if the walk drifts down.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The satisfaction probability.

    Returns
    -------
    Turned
        The walk.
    """
    walk, h = Steps.of(test, p_phi), abs(test.exponent(p_phi))
    other = walk.conjugate(test.exponent(p_phi))
    edges = test.p - test.delta, test.p + test.delta
    if p_phi in edges:  # each is the other one under exp(-Lambda), which is a likelihood ratio
        other, h = Steps.of(test, edges[p_phi == edges[0]]), 1.0
    if walk.drift < 0.0:
        return Turned(walk.mirrored(), test.b_low, test.b_up, h, True, other)
    return Turned(walk, test.b_up, test.b_low, h, False, other.mirrored())


def _slack(turned: Turned, span: FloatArray) -> FloatArray:
    """Bound the relative rounding error of Wald's identities. That of h is a unit of rounding over h times a step.

    It matters as far as ``exp(-h x)`` does.
    """
    reach = np.minimum(span, 40.0 / turned.h) if turned.h > 0.0 else span
    return SLACK + 4e-16 * reach / max(turned.walk.up, turned.walk.down)


def walds_ruin(turned: Turned, near: FloatArray, far: FloatArray) -> Ends:
    """Bound P(leave at the far bound), for walks with a drift or without.

    The martingale ``exp(-h Lambda)`` ends within a step beyond one of the bounds.

    Parameters
    ----------
    turned : Turned
        The walk.
    near, far : array
        Distances of the bounds from 0.

    Returns
    -------
    tuple of array
        The lower and the upper ends.
    """
    walk, slack = turned.walk, _slack(turned, near + far)
    low, high = _ruin(turned.h, near, far + walk.down), _ruin(turned.h, near + walk.up, far)
    return low * (1.0 - slack), np.minimum(high * (1.0 + slack) + 1e-300, 1.0)


def _ruin(h: float, ahead: FloatArray, behind: FloatArray) -> FloatArray:
    """Compute the probability for a walk that ends at exactly these distances."""
    return _scaled_ruin(h, ahead, behind) * np.exp(-h * behind)


def _scaled_ruin(h: float, ahead: FloatArray, behind: FloatArray) -> FloatArray:
    """Compute `_ruin` times ``exp(h behind)``."""
    if h == 0.0:
        return ahead / (ahead + behind)
    return np.asarray(np.expm1(-h * ahead) / np.expm1(-h * (ahead + behind)))


def walds_mean(turned: Turned, near: FloatArray, far: FloatArray) -> Ends:
    """Bound the mean time to leave.

    There is ``m(x) = K + beta exp(-h x) - x / D`` that is 0 at two distances, and concave between them. m(Lambda) plus
    the number of samples is a martingale. So m(0) is at most the mean if the distances are those of the bounds, since
    the walk ends where m is not positive. It is at least the mean if they are a step more. With
    ``f(x) = (exp(-h x) - 1 + h x) / (h D)``, m(0) is the average of f over both distances; without drift f is ``x^2``
    over the mean square of a step.

    Parameters
    ----------
    turned : Turned
        The walk.
    near, far : array
        Distances of the bounds from 0.

    Returns
    -------
    tuple of array
        The lower and the upper ends.
    """
    h, walk, flat = turned.h, turned.walk, 1e-4  # below this, functions of h x are used as power series
    second = walk.p_up * walk.up**2 + (1.0 - walk.p_up) * walk.down**2
    third = walk.p_up * walk.up**3 - (1.0 - walk.p_up) * walk.down**3
    steep = h * max(walk.up, walk.down)
    gain = 0.5 * (second - h * third / 3.0) if steep < 1e-3 else walk.drift / h  # h D over h^2, a power series

    def series(x: FloatArray) -> FloatArray:
        return np.asarray(0.5 * x**2 * (1.0 - h * x / 3.0 + (h * x) ** 2 / 12.0) / gain)

    def above(x: FloatArray) -> FloatArray:
        if h == 0.0:
            return series(x)
        return np.where(h * x < flat, series(x), (np.expm1(-h * x) + h * x) / (h**2 * gain))

    def below(ahead: FloatArray, behind: FloatArray) -> FloatArray:
        """f(-behind) times the probability to end there."""
        scaled, rare = _scaled_ruin(h, ahead, behind), np.exp(-h * behind)
        if h == 0.0:
            return scaled * series(-behind)
        steeply = scaled * (1.0 - rare * (1.0 + h * behind)) / (h**2 * gain)
        return np.where(h * behind < flat, scaled * rare * series(-behind), steeply)

    def mean(ahead: FloatArray, behind: FloatArray) -> FloatArray:
        """The mean for a walk that ends at exactly these distances."""
        return (1.0 - _ruin(h, ahead, behind)) * above(ahead) + below(ahead, behind)

    slack = _slack(turned, near + far) + (steep**2 if steep < 1e-3 else 0.0) + 1e-11
    return mean(near, far) * (1.0 - slack), mean(near + walk.up, far + walk.down) * (1.0 + slack)
