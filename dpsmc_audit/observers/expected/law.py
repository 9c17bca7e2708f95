"""What an observer compares: two laws over the same events, one for x_n = 1 and one for x_n = 0.

*Expected* (the paper's Definition 3): the other samples are averaged away first, L is the only randomness left. The
laws compared are those of ``g_x(L) = E[tau | L, x_n = x]``; g_x does not fall when L grows, so
``P(g_x(L) >= a) = P(L >= the L at which g_x reaches a)`` and no L has to be drawn. `edges` encloses that L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpsmc_audit.errors import require
from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import BUDGET, cells_needed
from dpsmc_audit.exact.walk import Steps
from dpsmc_audit.mechanisms import Laplace
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray
from dpsmc_audit.observers.expected.averages import average_at, forced_moments, lowest_excess, start_of
from dpsmc_audit.observers.expected.bisection import by_bisection
from dpsmc_audit.observers.expected.edges import Tails, by_line, tails_between, tails_of_atoms
from dpsmc_audit.observers.expected.first_entry import by_ladder
from dpsmc_audit.observers.expected.grid import GRID, by_grid
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["ExpectedLaw", "SupportGap", "bins_between", "expected_law"]


_LISTED = 1e9
"""Cells that the laws for a list of L may cost together."""

_FOLLOWED = 2e11
"""Cells that may be visited for all L of a grid up to the last entry: half a minute."""

MOST_BINS = 50_000
"""A histogram with more bins is a request for wider ones."""


@dataclass(frozen=True)
class SupportGap:
    """Averages that one member reaches and the other never.

    The definition's events are sets of integers, so `integer` makes one of them whatever the width of the bins.

    Parameters
    ----------
    start, end : float
        Where the averages lie.
    mass : float
        Their probability.
    integer : int, optional
        The largest with ``start < integer <= end``: the average of one member falls below it, that of the other never.
    below : float
        The probability of that, less its numerical error.
    below_at_most : float
        The probability of that, with its numerical error.
    """

    start: float
    end: float
    mass: float
    integer: int | None = None
    below: float = 0.0
    below_at_most: float = 1.0


@dataclass(frozen=True, eq=False)
class ExpectedLaw:
    """Laws of ``g_x(L)`` at the edges of bins.

    Each tail is enclosed. The ends are bounds, but for the `grid`, where they are an estimate. An average that comes
    within its numerical error of an edge may be on it or below: `tail_1` and `tail_0` count it as on the edge, the ends
    allow for both.

    Parameters
    ----------
    edges : ndarray
        Where bins begin.
    one, zero : Tails
        ``P(g_x(L) >= edges[i])`` for x_n = 1 and for x_n = 0.
    start_1, start_0 : Enclosure
        g_x at the smallest L.
    gap : SupportGap
        Averages that one member alone reaches.
    method : str
        How the tails were computed.
    shifted : ndarray
        In which bins the L of the two members are the same but for a shift by `step`, exactly.
    step : float
        That shift.
    scale : float
        Of two-sided exponential noise; 0 for other laws.
    """

    edges: FloatArray
    one: Tails
    zero: Tails
    start_1: Enclosure
    start_0: Enclosure
    gap: SupportGap
    method: str
    shifted: BoolArray
    step: float
    scale: float

    @property
    def tail_1(self) -> FloatArray:
        """``P(g_1(L) >= edge)`` for each edge."""
        return self.one.value

    @property
    def tail_0(self) -> FloatArray:
        """``P(g_0(L) >= edge)`` for each edge."""
        return self.zero.value

    @property
    def tail_error(self) -> float:
        """The largest relative numerical error of a tail."""
        wide = (np.maximum(tails.high - tails.value, tails.value - tails.low) for tails in (self.one, self.zero))
        values = (np.maximum(tails.value, 1e-300) for tails in (self.one, self.zero))
        return max(float(np.max(off / value)) for off, value in zip(wide, values, strict=True))

    def probabilities(self) -> tuple[FloatArray, FloatArray]:
        """Return P_1 and P_0 of the bins ``[edges[i], edges[i + 1])``. The last bin is open."""
        return bins_between(self.tail_1), bins_between(self.tail_0)

    def enclosed(self) -> tuple[Tails, Tails]:
        """Return the probabilities of the bins with the ends between which they surely are."""
        return self.one.bins(), self.zero.bins()

    def hidden(self, epsilon: float) -> BoolArray:
        """Find the bins that keep to epsilon whatever the rounding.

        They are those of two-sided noise of scale ``step / epsilon`` or more, where one law is the other shifted.
        The density of the noise changes by a factor of ``exp(step / scale)`` at most under such a shift, and so does
        the probability of any set. The scale is compared as it is made: noise calibrated to this epsilon keeps to it.

        Parameters
        ----------
        epsilon : float
            The claim.

        Returns
        -------
        ndarray of bool
            One value for each bin.
        """
        return self.shifted & (epsilon > 0.0 and 0.0 < self.step / epsilon <= self.scale)

    def log_ratio_ends(self) -> tuple[FloatArray, FloatArray]:
        """Compute two numbers between which ``ln(P_1 / P_0)`` surely is, in each bin."""
        one, zero = self.enclosed()
        return _log_quotient(one.low, zero.high, -math.inf), _log_quotient(one.high, zero.low, math.inf)


def _log_quotient(p: FloatArray, q: FloatArray, unknown: float) -> FloatArray:
    """Compute ``ln(p / q)``: infinite where one of them is 0, `unknown` where both are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((p == 0.0) & (q == 0.0), unknown, np.log(p) - np.log(q))


def bins_between(tail: FloatArray) -> FloatArray:
    """Compute the probabilities of bins from those beyond each edge.

    Parameters
    ----------
    tail : ndarray
        The probability of reaching each edge.

    Returns
    -------
    ndarray
        The probability between each edge and the next one. The last bin is open.
    """
    return np.maximum(-np.diff(np.append(tail, 0.0)), 0.0)


def expected_law(pair: Adjacent, bin_width: int, upto: float = 1e-9) -> ExpectedLaw:
    """Compute the laws of the averages g_1(L) and g_0(L) in bins, without sampling.

    Where a coin decides, both averages are 1.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.
    bin_width : int
        Of the bins; the first begins at 0.
    upto : float
        Bins are made until less than this probability is left above.

    Returns
    -------
    ExpectedLaw
        Enclosures of the tails at every edge.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> law = expected_law(Adjacent(Setting(test, Exponential.private(test, 0.01), 0.84)), bin_width=140)
    >>> one, zero = law.probabilities()
    >>> f"{one[2]:.6f}", float(zero[2]), f"{np.log(one[4] / zero[4]):.6f}"
    ('0.009218', 0.0, '-0.010000')
    """
    setting, entries = pair.setting, pair.entries
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    _require_early(setting, entries[-1])
    start_1, start_0 = (start_of(setting, entries, bit) for bit in (1, 0))
    far = max(float(mechanism.quantile(1.0 - upto)), test.no_room + test.step_sum)
    longest = max(forced_moments(test, p_phi, far, dict.fromkeys(entries, bit))[0] for bit in (1, 0))
    count = math.ceil(longest / bin_width) + 1
    require(count <= MOST_BINS, f"bin_width={bin_width} makes {count} bins, more than {MOST_BINS}: choose wider ones")
    edges = bin_width * np.arange(float(count))
    far = _beyond(test, p_phi, entries, far, float(edges[-1]))
    early, late = sorted((start_1, start_0), key=lambda start: start.value)
    integer = math.floor(late.value - late.error)
    # slightly below the end: the staircase of the other member takes the same value there, up to rounding
    points = np.append(edges, [late.value - 1e-6 - early.error - late.error, float(integer)])
    one, zero, same, method = _tails(setting, entries, points, far)
    whole = mechanism.quantile(0.0) == -math.inf
    alike = same[:count] | (whole & (edges <= 1.0))  # of all L up to the next edge, too, one is the other shifted
    first = one if start_1.value <= start_0.value else zero
    gap = SupportGap(early.value, late.value, 1.0 - float(first.value[-2]))
    below = 1.0 - float(first.high[-1])
    if below > 0.0:
        gap = replace(gap, integer=integer, below=below, below_at_most=1.0 - float(first.low[-1]))
    scale = mechanism.scale if isinstance(mechanism, Laplace) else 0.0
    shifted = alike & np.append(alike[1:], True)
    tails = (one.cut(count), zero.cut(count))
    return ExpectedLaw(edges, *tails, start_1, start_0, gap, method, shifted, test.step_sum, scale)


def _tails(
    setting: Setting, entries: tuple[int, ...], points: FloatArray, far: float
) -> tuple[Tails, Tails, BoolArray, str]:
    """Compute ``P(g_x(L) >= points)`` of both members, the points they reach at the same barrier, and the method."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    nowhere, lowest = np.zeros(points.size, np.bool_), lowest_excess(test, mechanism)
    if mechanism.atoms is not None:
        values = [excess for excess, _ in mechanism.atoms]
        if sum(_cells(test, p_phi, excess) for excess in values) <= _LISTED:
            averages = ([average_at(test, p_phi, entries, bit, excess) for excess in values] for bit in (1, 0))
            one, zero = (tails_of_atoms(mechanism.atoms, found, points) for found in averages)
            return one, zero, nowhere, "list"
    same, method = nowhere, "line"
    reached = by_line(test, p_phi, entries, points) if p_phi in (0.0, 1.0) else None
    if reached is None:
        ladder, method = by_ladder(setting, entries, points, lowest, far), "ladder"
        if ladder is not None:
            reached, same = ladder[:2], ladder[2]
    if reached is None and mechanism.atoms is None:
        reached, method = by_bisection(test, p_phi, entries, points, lowest, far), "bisection"
    if reached is None:
        reached, method = by_grid(setting, entries, points, far), "grid"
    one, zero = (tails_between(test, mechanism, points, found) for found in reached)
    return one, zero, same, method


def _cells(test: Sprt, p_phi: float, excess: float) -> float:
    """Count the cells of the law for one L. Wald's identities replace an expensive law, and a coin costs nothing."""
    room = excess > test.no_room
    cells = cells_needed(Steps.of(test, p_phi), test.b_up + excess, test.b_low + excess) if room else 0.0
    return cells if cells <= BUDGET else 0.0


def _require_early(setting: Setting, last: int) -> None:
    """Refuse a late entry without drift: walks would have to be followed up to it for hundreds of L."""
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    walk, excess = Steps.of(test, p_phi), max(lowest_excess(test, mechanism), float(mechanism.quantile(1.0 - 1e-3)))
    b_up, b_low = test.b_up + excess, test.b_low + excess
    width = min(b_up + b_low, 16.0 * math.sqrt(walk.variance * last)) / test.step_sum + 1.0
    cells = 2.0 * GRID * min(last * width, 2.0 * cells_needed(walk, b_up, b_low))
    message = f"entry {last} is late: the exact law at p_phi={p_phi:g} would visit {cells:.0e} cells, more than"
    require(cells <= _FOLLOWED, f"{message} {_FOLLOWED:.0e}; choose an earlier one, or p_phi further from p")


def _beyond(test: Sprt, p_phi: float, entries: tuple[int, ...], far: float, edge: float) -> float:
    """Find an L, at least `far`, whose averages are past the last edge for both members: no bin is cut off."""
    for _ in range(60):
        if min(forced_moments(test, p_phi, far, dict.fromkeys(entries, bit))[0] for bit in (1, 0)) > edge:
            break
        far += 0.1 * abs(far) + test.step_sum
    return far
