"""Means and error probabilities for all L of an interval, and their averages over L.

A walk that drifts up meets the bound at a first, or the other one at -b, with probability r. Under
``dP~ = exp(-h Lambda) dP`` it meets the one at a first with probability r~. With G(T) the probability of ever coming
down to -T, F(T) that of ever reaching T under P~, and g and f what both are times ``exp(h T)`` for some T from a + b on,

    r = G(b) - g exp(-h b) r~,    r~ = F(a) - f exp(-h a) r,    E[tau] = m(a) - r m(a + b + an overshoot),

where m(T) is the mean time to reach T. Ladders know all of these (`ladder`). Wald's identities bound r and the mean as
well (`walk`). Where both leave much open, steps are coarse and h is small. There laws for fixed bounds help: tau grows
with L, and r falls with b and grows with a.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.exact.enclosure import Enclosure, meet
from dpsmc_audit.exact.fixed import BUDGET, cells_needed, walk_until_exit
from dpsmc_audit.exact.ladder import AWAY, Ladder
from dpsmc_audit.exact.walk import Steps, Turned, turned_up, walds_mean, walds_ruin
from dpsmc_audit.mechanisms import Atoms
from dpsmc_audit.numerics.sums import tilted
from dpsmc_audit.setting import Setting

__all__ = ["averaged", "law_between"]

FloatArray = NDArray[np.float64]
Ends = tuple[FloatArray, FloatArray]

_CELLS = 3e8
"""Cells that both ladders may cost, and all laws for fixed bounds: about a second each."""

_CLOSE = 1e-4
"""Laws for fixed bounds are not asked if an interval is this narrow, relative to its middle."""

PARTS = 1 << 16
"""Intervals of L."""

_LAWS = 512
"""Laws for fixed bounds. They are chosen in eight rounds."""

_SLACK = 1e-9
"""More than the relative rounding error of exp(-h x)."""


@lru_cache(maxsize=8)
def _ladder(walk: Steps, h: float, known: float) -> Ladder:
    return Ladder.of(walk, h, known)


@dataclass(frozen=True, eq=False)
class Between:
    """A walk between two bounds.

    Parameters
    ----------
    turned : Turned
        The walk.
    ladders : tuple of Ladder, or None
        That of the walk, and that of the walk upside down under ``exp(-h Lambda)``. None if they are not affordable.
    """

    turned: Turned
    ladders: tuple[Ladder, Ladder] | None

    @classmethod
    def of(cls, turned: Turned, high: float) -> Between:
        """Compute the ladders of a walk, for L up to about `high` or as far as they are affordable.

        Parameters
        ----------
        turned : Turned
            The walk.
        high : float
            The largest L of interest.

        Returns
        -------
        Between
            The walk between its bounds.
        """
        h, walks = turned.h, (turned.walk, turned.other)
        for reach in (math.ldexp(1.0, math.frexp(high)[1]), 0.0) if 0.0 < h < math.inf else ():
            known = turned.span + max(AWAY / h, reach)
            if sum(Ladder.cost(walk, h, known) for walk in walks) <= _CELLS:
                return cls(turned, (_ladder(walks[0], h, known), _ladder(walks[1], h, known)))
        return cls(turned, None)

    @property
    def method(self) -> str:
        """How its numbers are computed."""
        return "wald" if self.ladders is None else "ladder"

    def rare(self, low: FloatArray, high: FloatArray) -> Ends:
        """Bound P(the far bound is met first) for L between these ends.

        Parameters
        ----------
        low, high : array
            The ends.

        Returns
        -------
        tuple of array
            The lower and the upper bounds.
        """
        turned, h = self.turned, self.turned.h
        a, b = (turned.near + low, turned.near + high), (turned.far + low, turned.far + high)
        least, most = walds_ruin(turned, a[0], b[1])[0], walds_ruin(turned, a[1], b[0])[1]
        if self.ladders is not None:
            up, down = self.ladders
            f, g = up.factor(a[0] + b[0]), down.factor(a[0] + b[0])
            down_b, up_a = (down.ever(b[1])[0], down.ever(b[0])[1]), (up.ever(a[1])[0], up.ever(a[0])[1])

            def known(i: int, g: FloatArray) -> FloatArray:
                """r at least or at most; it is monotone in g."""
                slack = 1.0 - _SLACK if i else 1.0 + _SLACK
                less = g * np.exp(-h * b[i]) * up_a[1 - i] * slack
                room = 1.0 - f[i] * g * np.exp(-h * (a[1 - i] + b[1 - i])) / slack
                return (down_b[i] - less) / np.maximum(room, _SLACK)

            least = np.maximum(least, np.minimum(known(0, g[0]), known(0, g[1])))
            most = np.minimum(most, np.maximum(known(1, g[0]), known(1, g[1])))
        return least, most

    def mean(self, low: FloatArray, high: FloatArray) -> Ends:
        """Bound the mean time for L between these ends.

        Parameters
        ----------
        low, high : array
            The ends.

        Returns
        -------
        tuple of array
            The lower and the upper bounds.
        """
        turned = self.turned
        if math.isinf(turned.h):  # a straight line
            return (turned.near + low) / turned.walk.up, (turned.near + high) / turned.walk.up + 1.0
        a, b = (turned.near + low, turned.near + high), (turned.far + low, turned.far + high)
        least, most = walds_mean(turned, a[0], b[0])[0], walds_mean(turned, a[1], b[1])[1]
        if self.ladders is not None:
            up, walk = self.ladders[0], turned.walk
            over, (seldom, often) = up.over(a[0] + b[0]), self.rare(low, high)
            longest = (a[1] + b[1] + walk.down + over[1]) / walk.drift * (1.0 + _SLACK)
            shortest = (a[0] + b[0] + over[0]) / walk.drift * (1.0 - _SLACK)
            least = np.maximum(least, up.mean(a[0])[0] - often * longest)
            most = np.minimum(most, up.mean(a[1])[1] - seldom * shortest)
        return np.maximum(least, 1.0), most


def law_between(turned: Turned, near: float, far: float, *, rare: bool) -> Enclosure:
    """Compute P(the far bound is met first), or the mean time, by the law for two bounds.

    For the probability the walk is followed under ``exp(-h Lambda)``, where it usually meets the far bound.

    Parameters
    ----------
    turned : Turned
        The walk.
    near, far : float
        Distances of the bounds from 0.
    rare : bool
        Whether the probability is wanted.

    Returns
    -------
    Enclosure
        The number.
    """
    walk, h = turned.walk, turned.h
    if not rare:
        law = walk_until_exit(walk, near, far)
        return Enclosure.around(law.mean, law.mean_error, "fixed bounds")
    law = walk_until_exit(walk.conjugate(h), near, far)
    value = float(tilted(law.alt, -h, far + law.over_alt))
    error = value * (_SLACK + law.probability_error) + law.probability_error * math.exp(-h * far)
    return Enclosure.around(value, error, "fixed bounds")


@lru_cache(maxsize=1 << 14)
def _law(turned: Turned, near: float, far: float, rare: bool) -> tuple[float, float]:
    found = law_between(turned, near, far, rare=rare)
    return found.low, found.high


def _by_laws(turned: Turned, points: FloatArray, low: FloatArray, high: FloatArray, *, rare: bool) -> Ends:
    """Bound a number for L in intervals by laws for the L of some points. The bounds are 0 and infinity elsewhere."""
    near, far = (turned.near + points).tolist(), (turned.far + points).tolist()
    least, most = [0.0], []
    for i in range(points.size - 1):
        least.append(_law(turned, near[i], far[i + 1] if rare else far[i], rare)[0])
        most.append(_law(turned, near[i + 1], far[i] if rare else far[i + 1], rare)[1])
    place = np.searchsorted(points, low, side="right")
    ends = np.append(points, -math.inf)  # beyond the last point nothing is known
    place = np.where((place > 0) & (high <= ends[place]), place, 0)
    return np.array(least)[place], np.array([math.inf, *most])[place]


@dataclass(frozen=True, eq=False)
class _Parts:
    """Intervals of L above those where a coin decides.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.
    edges : array
        Their ends, increasing.
    """

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

    def average(self, bounds: Ends) -> tuple[float, float]:
        """Average bounds over the intervals. Those of the last one hold for all larger L."""
        masses = self.masses
        low, high = (float(np.sum(masses[masses > 0.0] * end[masses > 0.0])) for end in bounds)
        rounding = 1e-15 * float(bounds[1][0])  # masses are differences of a function that is rounded
        return low * (1.0 - 1e-12) - rounding, high * (1.0 + 1e-12) + rounding

    def shares(self, bounds: Ends, count: int) -> FloatArray:
        """Return the L that cut all of them into so many parts of equal error."""
        total = np.cumsum(np.append(0.0, self.loss(bounds)))
        return np.interp(np.arange(1, count) / count * total[-1], total, self.edges) if total[-1] > 0.0 else np.empty(0)

    def loss(self, bounds: Ends) -> FloatArray:
        """Return by how much each interval but the last widens the average."""
        masses, width = self.masses[:-1], np.minimum(bounds[1] - bounds[0], 1e300)[:-1]
        return np.where(masses > 0.0, masses * width, 0.0)

    def cut(self, points: FloatArray) -> _Parts:
        """Cut intervals at further L."""
        return _Parts(self.setting, np.unique(np.append(self.edges, points)))


def _of_atoms(setting: Setting, atoms: Atoms, *, rare: bool) -> Enclosure:
    """Average over values of L. If there are several, they are listed up to a probability of 1e-12."""
    test, turned = setting.test, turned_up(setting.test, setting.p_phi)
    found = []
    for x, _ in atoms:
        if x <= test.no_room:
            found.append(Enclosure.around(0.5 if rare else 1.0, 0.0, "coin"))
        elif cells_needed(turned.walk, turned.near + x, turned.far + x) <= BUDGET:
            found.append(law_between(turned, turned.near + x, turned.far + x, rare=rare))
        else:
            between = Between.of(turned, 0.0)
            least, most = (between.rare if rare else between.mean)(np.array([x]), np.array([x]))
            found.append(Enclosure(float(least[0]), float(most[0]), between.method))
    low, high = (math.fsum(share * getattr(part, end) for (_, share), part in zip(atoms, found)) for end in ("low", "high"))
    rest = 1e-12 * max(high, 1.0) * (len(found) > 1)
    return Enclosure(low - rest, high + rest, found[int(np.argmax([share for _, share in atoms]))].method)


def averaged(setting: Setting, *, rare: bool, parts: int = PARTS) -> Enclosure:
    """Enclose an average over L: P(leave against the drift), or the mean number of samples. The coin is included.

    Parameters
    ----------
    setting : Setting
        The test, its noise and the system.
    rare : bool
        Whether the probability is wanted.
    parts : int
        Intervals of L.

    Returns
    -------
    Enclosure
        The average. The upper end of a mean is infinite if nothing better is known.
    """
    test, mechanism = setting.test, setting.mechanism
    if mechanism.atoms is not None:
        return _of_atoms(setting, mechanism.atoms, rare=rare)
    turned, limit = turned_up(test, setting.p_phi), 1.0 if rare else math.inf
    between = Between.of(turned, 0.0 if rare else max(float(mechanism.quantile(1.0 - 1e-9)), 0.0))
    coin = (0.5 if rare else 1.0) * (1.0 - float(mechanism.survival(test.no_room)))

    def bounds(cuts: _Parts, points: FloatArray) -> Ends:
        low = cuts.edges
        high = np.append(low[1:], low[-1])
        with np.errstate(over="ignore", invalid="ignore"):
            least, most = (between.rare if rare else between.mean)(low, high)
            by_law = _by_laws(turned, points, low, high, rare=rare)
            least, most = np.fmax(least, by_law[0]), np.fmin(most, by_law[1])
        return least, np.append(most[:-1], limit)

    def enclosed(cuts: _Parts, found: Ends, method: str) -> Enclosure:
        least, most = cuts.average(found)
        return Enclosure(least + coin, most + coin, method)

    points, cuts = np.empty(0), _Parts.of(setting)
    begin, found = cuts, bounds(cuts, points)
    for count in (parts >> 4, parts >> 2, parts):
        cuts = cuts.cut(cuts.shares(found, count))
        found = bounds(cuts, points)
    by_all = enclosed(cuts, found, between.method)
    if by_all.error <= _CLOSE * by_all.value:
        return by_all
    points = _laws_at(begin, begin.cut(cuts.edges[::16]), bounds, (turned, rare))
    cuts = cuts.cut(points)
    return meet([by_all, enclosed(cuts, bounds(cuts, points), "fixed bounds")])


def _laws_at(begin: _Parts, rough: _Parts, bounds: Callable[[_Parts, FloatArray], Ends], which: tuple[Turned, bool]) -> FloatArray:
    """Choose L for which laws for fixed bounds are computed: the intervals with the largest errors are halved."""
    turned, rare = which
    affordable = [_cells(turned, x) <= _CELLS / 8.0 for x in begin.edges.tolist()]
    loss = np.cumsum(rough.loss(bounds(rough, np.empty(0))))
    last = np.searchsorted(begin.edges, np.interp(0.999 * loss[-1], loss, rough.edges[1:]))
    top = min(int(last), [*affordable, False].index(False) - 1)
    points, wide, spent = begin.edges[[0, top]] if top > 0 else np.empty(0), np.ones(1, np.bool_), 0.0
    while 1 < points.size < _LAWS and spent < _CELLS and wide.any():
        rough = rough.cut(points)
        place = np.searchsorted(points, rough.edges[:-1], side="right") - 1
        shares = np.bincount(place, rough.loss(bounds(rough, points)), points.size)[:-1]
        wide = shares > 0.7 * shares.mean()
        middle = 0.5 * (points[:-1] + points[1:])[wide]
        spent += (4.0 if rare else 1.0) * sum(_cells(turned, x) + 1e5 for x in middle.tolist())
        points = np.unique(np.append(points, middle))
    return points


def _cells(turned: Turned, excess: float) -> float:
    room = turned.walk.up + turned.walk.down
    more = room + min(excess, room / _SLACK)
    return cells_needed(turned.walk, turned.near + more, turned.far + more)
