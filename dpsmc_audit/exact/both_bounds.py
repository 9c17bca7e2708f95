"""Means and error probabilities for all L of an interval, and their averages over L.

A walk that drifts up meets the bound at a first, or the other one at -b, with probability r. Under
``dP~ = exp(-h Lambda) dP`` it meets the one at a first with probability r~. With G(T) the probability of ever coming
down to -T, F(T) that of ever reaching T under P~, and g and f what both are times ``exp(h T)`` somewhere from a + b on,

    r = G(b) - g exp(-h b) r~,    r~ = F(a) - f exp(-h a) r,    E[tau] = m(a) - r m(a + b + an overshoot),

where m(T) is the mean time to reach T. Ladders know all of these (`ladder`). Wald's identities bound r and the mean as
well (`walk`). Where both leave much open, steps are coarse and h is small. There laws for fixed bounds help: tau grows
with L, and r falls with b and grows with a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.enclosure import Enclosure, meet
from dpsmc_audit.exact.fixed import BUDGET, ExitLaw, cells_needed, exit_law, walk_until_exit
from dpsmc_audit.exact.ladder import AWAY, Ladder
from dpsmc_audit.exact.walk import SLACK, Steps, Turned, turned_up, walds_mean, walds_ruin
from dpsmc_audit.mechanisms import Atoms
from dpsmc_audit.numerics.sums import tilted
from dpsmc_audit.numerics.ties import best_of
from dpsmc_audit.setting import Setting

__all__ = ["averaged"]

FloatArray = NDArray[np.float64]
Ends = tuple[FloatArray, FloatArray]

_CELLS = 3e8
"""Cells that each ladder may cost, and all laws for fixed bounds: about a second each."""

_CLOSE = 1e-4
"""Laws for fixed bounds are not asked if an interval is this narrow, relative to its middle."""

_PARTS = 1 << 16
"""Intervals of L."""


@lru_cache(maxsize=8)
def _ladder(walk: Steps, h: float, reach: float) -> Ladder:
    return Ladder.of(walk, h, reach, most=_CELLS)


def _mean_of(law: ExitLaw) -> Enclosure:
    return Enclosure.around(law.mean, law.mean_error, "fixed bounds")


@lru_cache(maxsize=1 << 14)
def _law(turned: Turned, near: float, far: float, rare: bool) -> Enclosure:
    """Enclose P(the far bound is met first), or the mean time, by the law for two bounds.

    For the probability the walk is followed under ``exp(-h Lambda)``, where it usually meets the far bound.
    """
    walk, h = turned.walk, turned.h
    law = walk_until_exit(walk.conjugate(h) if rare else walk, near, far)
    if not rare:
        return _mean_of(law)
    value = float(tilted(law.alt, -h, far + law.over_alt))
    error = value * (SLACK + law.probability_error) + law.probability_error * math.exp(-h * far)
    return Enclosure.around(value, error, "fixed bounds")


@dataclass(frozen=True, eq=False)
class _Between:
    """A walk between two bounds, and what is asked of it: P(the far bound is met first), or the mean time."""

    turned: Turned
    rare: bool
    up: Ladder | None
    down: Ladder | None

    @classmethod
    def of(cls, setting: Setting, rare: bool) -> _Between:
        """Compute the ladders of the walk. The mean also asks for that of large L, if it is affordable."""
        turned = turned_up(setting.test, setting.p_phi)
        h = turned.h
        if not 0.0 < h < math.inf:
            return cls(turned, rare, None, None)
        known, high = turned.span + AWAY / h, 0.0 if rare else float(setting.mechanism.quantile(1.0 - 1e-9))
        up = _ladder(turned.walk, h, max(known, turned.span + math.ldexp(1.0, math.frexp(max(high, 1e-9))[1])))
        if up.known == 0.0:
            up = _ladder(turned.walk, h, known)
        return cls(turned, rare, up, _ladder(turned.other, h, known))

    @property
    def method(self) -> str:
        """How bounds are computed."""
        return "wald" if self.up is None or self.up.known == 0.0 else "ladder"

    def bounds(self, low: FloatArray, high: FloatArray, points: FloatArray) -> Ends:
        """Bound the number for L between these ends, also by laws for the L of some points."""
        near, far = (self.turned.near + low, self.turned.near + high), (self.turned.far + low, self.turned.far + high)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            least, most = self._rare(near, far) if self.rare else self._mean(near, far)
        at_least, at_most = self._by_laws(low, high, points)
        return np.fmax(least, at_least), np.fmin(most, at_most)

    def _rare(self, a: Ends, b: Ends) -> Ends:
        """Bound r for intervals of both distances."""
        turned, h = self.turned, self.turned.h
        least, most = walds_ruin(turned, a[0], b[1])[0], walds_ruin(turned, a[1], b[0])[1]
        if self.up is None or self.down is None:
            return least, most
        f, g = (ladder.later(a[0] + b[0])[1] for ladder in (self.up, self.down))
        back, reached = (
            (self.down.ever(b[1])[0], self.down.ever(b[0])[1]),
            (self.up.ever(a[1])[0], self.up.ever(a[0])[1]),
        )

        def known(i: int, g: FloatArray) -> FloatArray:
            """r at least or at most; it is monotone in g."""
            slack = 1.0 - SLACK if i else 1.0 + SLACK
            room = 1.0 - f[i] * g * np.exp(-h * (a[1 - i] + b[1 - i])) / slack
            return (back[i] - g * np.exp(-h * b[i]) * reached[1 - i] * slack) / np.maximum(room, SLACK)

        least = np.maximum(least, np.minimum(known(0, g[0]), known(0, g[1])))
        return least, np.minimum(most, np.maximum(known(1, g[0]), known(1, g[1])))

    def _mean(self, a: Ends, b: Ends) -> Ends:
        """Bound the mean time for intervals of both distances."""
        turned, walk = self.turned, self.turned.walk
        if math.isinf(turned.h):  # a straight line
            return a[0] / walk.up, a[1] / walk.up + 1.0
        least, most = walds_mean(turned, a[0], b[0])[0], walds_mean(turned, a[1], b[1])[1]
        if self.up is not None:
            over, (seldom, often) = self.up.later(a[0] + b[0])[0], self._rare(a, b)
            further = (a[0] + b[0] + over[0]) * (1.0 - SLACK), (a[1] + b[1] + over[1] + walk.down) * (1.0 + SLACK)
            least = np.fmax(least, self.up.mean(a[0])[0] - often * further[1] / walk.drift)
            most = np.fmin(most, self.up.mean(a[1])[1] - seldom * further[0] / walk.drift)
        return np.maximum(least, 1.0), most

    def _by_laws(self, low: FloatArray, high: FloatArray, points: FloatArray) -> Ends:
        """Bound the number by laws at both ends of each interval of points: 0 and infinity elsewhere."""
        near, far = (self.turned.near + points).tolist(), (self.turned.far + points).tolist()
        least, most = [0.0], [math.inf]
        for i in range(points.size - 1):
            ends = ((near[i], far[i + self.rare]), (near[i + 1], far[i + 1 - self.rare]))
            least.append(_law(self.turned, *ends[0], self.rare).low)
            most.append(_law(self.turned, *ends[1], self.rare).high)
        place = np.searchsorted(points, low, side="right")
        place = np.where((place > 0) & (high <= np.append(points, -math.inf)[place]), place, 0)
        return np.array(least)[place], np.array(most)[place]

    def cells(self, excess: float) -> float:
        """Estimate how many cells the laws for an L visit. A step costs some cells more, and a law as well."""
        step = self.turned.walk.up + self.turned.walk.down
        more = step + min(excess, step / SLACK)
        near, far = self.turned.near + more, self.turned.far + more
        return (1.0 + self.rare) * (
            cells_needed(self.turned.walk, near, far) * (1.0 + 30.0 * step / (near + far)) + 1e5
        )


@dataclass(frozen=True, eq=False)
class _Parts:
    """Intervals of L above those where a coin decides, between increasing edges; one more holds all larger L."""

    setting: Setting
    edges: FloatArray

    @classmethod
    def of(cls, setting: Setting) -> _Parts:
        """Make intervals that double, up to where no L is."""
        test, mechanism = setting.test, setting.mechanism
        lowest = max(float(mechanism.quantile(0.0)), test.no_room)
        edges = lowest + test.step_sum * np.append(0.0, np.ldexp(1.0, np.arange(-30, 990)))
        return cls(setting, np.unique(edges[: np.count_nonzero(mechanism.survival(edges) > 0.0) + 1]))

    @property
    def masses(self) -> FloatArray:
        """The probability of each interval, and of all larger L."""
        above = np.array(self.setting.mechanism.survival(self.edges))
        above[0] = float(self.setting.mechanism.survival(self.setting.test.no_room))
        return np.append(np.maximum(-np.diff(above), 0.0), above[-1])

    def bounds(self, between: _Between, points: FloatArray) -> Ends:
        """Bound the number in each interval."""
        least, most = between.bounds(self.edges, np.append(self.edges[1:], self.edges[-1]), points)
        return least, np.append(most[:-1], 1.0 if between.rare else math.inf)

    def average(self, between: _Between, points: FloatArray, method: str) -> Enclosure:
        """Average the number over the intervals, and over the runs that a coin decides."""
        masses, bounds = self.masses, self.bounds(between, points)
        coin = (0.5 if between.rare else 1.0) * (
            1.0 - float(self.setting.mechanism.survival(self.setting.test.no_room))
        )
        low, high = (float(np.sum(masses[masses > 0.0] * end[masses > 0.0])) for end in bounds)
        rounding = 1e-15 * float(bounds[1][0])  # masses are differences of a function that is rounded
        return Enclosure(low * (1.0 - 1e-12) - rounding + coin, high * (1.0 + 1e-12) + rounding + coin, method)

    def loss(self, bounds: Ends) -> FloatArray:
        """Return by how much each interval but the last widens the average."""
        masses, width = self.masses[:-1], np.minimum(bounds[1] - bounds[0], 1e300)[:-1]
        return np.where(masses > 0.0, masses * width, 0.0)

    def cut(self, points: FloatArray) -> _Parts:
        """Cut intervals at further L."""
        return _Parts(self.setting, np.unique(np.append(self.edges, points)))

    def evenly(self, bounds: Ends, count: int) -> _Parts:
        """Cut them into so many parts of equal error."""
        total = np.cumsum(np.append(0.0, self.loss(bounds)))
        points = np.interp(np.arange(1, count) / count * total[-1], total, self.edges)
        return self.cut(points) if total[-1] > 0.0 else self


def averaged(setting: Setting, *, rare: bool, rough: bool = False) -> Enclosure:
    """Enclose an average over L: P(leave against the drift), or the mean number of samples. The coin is included.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.
    rare : bool
        Whether the probability is wanted.
    rough : bool
        Whether few intervals of L are enough, without laws for fixed bounds.

    Returns
    -------
    Enclosure
        The average. The upper end of a mean is infinite if nothing better is known.
    """
    if setting.mechanism.atoms is not None:
        return _of_atoms(setting, setting.mechanism.atoms, rare)
    between, none, begin = _Between.of(setting, rare), np.empty(0), _Parts.of(setting)
    cuts = begin
    for count in (_PARTS >> 4, _PARTS >> 2, _PARTS)[: 1 if rough else None]:
        cuts = cuts.evenly(cuts.bounds(between, none), count)
    by_all = cuts.average(between, none, between.method)
    if rough or by_all.error <= _CLOSE * by_all.value or math.isinf(between.turned.h):
        return by_all
    points = _laws_at(between, begin, begin.cut(cuts.edges[::16]))
    return meet([by_all, cuts.cut(points).average(between, points, "fixed bounds")])


def _laws_at(between: _Between, begin: _Parts, rough: _Parts) -> FloatArray:
    """Choose L for which laws for fixed bounds are computed: intervals with larger errors than others are halved."""
    affordable = [between.cells(x) <= _CELLS / 4.0 for x in begin.edges.tolist()]
    top, spent, wide = [*affordable, False].index(False) - 1, 0.0, np.ones(1, np.bool_)
    points = begin.edges[[0, top]] if top > 0 else np.empty(0)
    while points.size and spent < _CELLS and wide.any():
        rough = rough.cut(points)
        place = np.searchsorted(points, rough.edges[:-1], side="right") - 1
        shares = np.bincount(place, rough.loss(rough.bounds(between, points)), points.size)[:-1]
        wide = shares > 0.7 * shares.mean()
        middle = 0.5 * (points[:-1] + points[1:])[wide]
        spent += sum(between.cells(x) for x in middle.tolist())
        points = np.unique(np.append(points, middle))
    return points


def _of_atoms(setting: Setting, atoms: Atoms, rare: bool) -> Enclosure:
    """Average over values of L. If there are several, they are listed up to a probability of 1e-12."""
    test, turned, found = setting.test, turned_up(setting.test, setting.p_phi), []
    for x, _ in atoms:
        near, far, one = turned.near + x, turned.far + x, np.array([x])
        if x <= test.no_room:
            found.append(Enclosure.around(0.5 if rare else 1.0, 0.0, "coin"))
        elif cells_needed(turned.walk, near, far) <= BUDGET:
            found.append(_law(turned, near, far, rare) if rare else _mean_of(exit_law(test, setting.p_phi, x)))
        else:
            between = _Between.of(setting, rare)
            ends = between.bounds(one, one, np.empty(0))
            found.append(Enclosure(float(ends[0][0]), float(ends[1][0]), between.method))
    shares = np.array([share for _, share in atoms])
    low, high = math.fsum(shares * [each.low for each in found]), math.fsum(shares * [each.high for each in found])
    rest = 1e-12 * max(high, 1.0) * (len(found) > 1)
    return Enclosure(low - rest, high + rest, found[best_of(shares)].method)
