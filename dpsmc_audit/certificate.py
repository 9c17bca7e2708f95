"""Check a certificate of an exact verdict: ``python -m dpsmc_audit.certificate FILE``.

This programme shares nothing with the engine that wrote the file. The walk is ``K s_plus - (N - K) s_minus`` after N
samples with K ones. It stops at ``b_up + L`` (decision 1) or ``-b_low - L`` (decision 0); both bounds are reduced by
one part in 10^9, so that a walk on its bound has reached it. If L leaves no room between them, tau is 1 and the
decision a fair coin. Between fixed bounds, the law of tau is a sum of products of positive numbers, whose rounding is
counted. tau does not fall when L grows, so laws at the ends of a range of L bracket those between them. Rounded
steps, bounds and positions act as if L were off by `margin`. So the ends found here are proven, and stated ends must
be these ends, rounded outwards to `DIGITS` digits.

`violated` states an event: ranges ``[low, high, decision]``, half-open, of tau or of its average given L; null stands
for no end and for any decision. `certified` states the L at which each average reaches the edge of a bin. Where both
members reach both edges of a bin at L that are apart by the same shift, exactly, Laplace noise changes the
probability of the bin by a factor of at most exp(shift / scale). Claims are compared with an epsilon that is larger
by one part in 10^12: noise made for a claim lies on it, up to the rounding of its scale.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SCHEMA", "RejectedError", "UnreadableError", "check", "digest", "enclose", "found_ends", "main", "rounded"]

SCHEMA, DIGITS, LONGEST, UNIT, TINY = 1, 8, 100_000, 2.0**-53, 1e-300
NUMBERS = {"none": "", "exponential": "rate", "laplace": "center scale", "truncated": "center scale lowest"}

Array = NDArray[np.float64]
Ends = tuple[Array, Array]
Range = tuple[float, float, int | None]


class UnreadableError(Exception):
    """The file is no certificate, or none that can be checked here."""


class RejectedError(Exception):
    """The certificate proves nothing."""


class _Case:
    """What a certificate is about: the test, the law of L and the samples."""

    def __init__(self, setting: Mapping[str, Any]) -> None:
        p, delta, fp, fn = (Fraction(float(setting[name])) for name in ("p", "delta", "fp", "fn"))
        self.name, numbers = setting["mechanism"]["name"], setting["mechanism"]
        if self.name not in NUMBERS:
            raise UnreadableError(f"cannot be checked here: the tails of a law {self.name} are not known")
        self.law = {name: float(numbers[name]) for name in NUMBERS[self.name].split()}
        self.entries, self.p_phi = [int(entry) for entry in setting["entries"]], float(setting.get("p_phi", 0.0))
        self.bits = np.array([int(bit) for bit in setting.get("sequence", "")], np.int64)
        fits = all(math.isfinite(x) and (x > 0.0 or name in {"center", "lowest"}) for name, x in self.law.items())
        fits &= 0 < delta < min(p, 1 - p) and 0 < fp < Fraction(1, 2) > fn > 0 and 0.0 <= self.p_phi <= 1.0
        if not fits or not self.entries or self.entries != sorted({*self.entries}) or self.entries[0] < 1:
            raise UnreadableError("no certificate: its setting is impossible")
        self.up, self.down, above, below = (
            math.log1p(float(x))
            for x in (2 * delta / (p - delta), 2 * delta / (1 - p - delta), (1 - fp) / fn - 1, (1 - fn) / fp - 1)
        )
        self.step, self.b_up, self.b_low = self.up + self.down, (1.0 - 1e-9) * above, (1.0 - 1e-9) * below
        if min(self.up, self.down) < 1e-9 * self.step:
            raise UnreadableError("cannot be checked here: one step is too small beside the other")
        self.even = p == Fraction(1, 2) and fp == fn  # all positions and both bounds are on one lattice
        self.drift = abs(self.p_phi * self.up - (1.0 - self.p_phi) * self.down)
        self.margin = 2.0**-47 * (LONGEST * self.step + above + below)
        self.no_room = -min(self.b_up, self.b_low)
        self.least = -math.inf if self.name == "laplace" else self.law.get("lowest", 0.0)

    def tail(self, excess: Any) -> Ends:
        """Enclose P(L > excess)."""
        law, x = self.law, np.asarray(excess, np.float64)
        if self.name == "none":
            return (tail := (x < 0.0).astype(np.float64)), tail
        if self.name == "exponential":
            return _exp(law["rate"] * np.maximum(x, 0.0))
        if self.name == "laplace":
            return _laplace((x - law["center"]) / law["scale"])
        low, high = _laplace((np.maximum(x, law["lowest"]) - law["center"]) / law["scale"])
        whole = _laplace(np.asarray((law["lowest"] - law["center"]) / law["scale"]))
        low, high = low / whole[1] * (1.0 - 4.0 * UNIT), np.minimum(high / whole[0] * (1.0 + 4.0 * UNIT), 1.0)
        return np.where(x <= law["lowest"], 1.0, low), high

    def between(self, low: Any, high: Any) -> Ends:
        """Enclose P(low < L <= high)."""
        (a, b), (c, d) = self.tail(low), self.tail(high)
        off = 2.0 * UNIT * (b + d)
        return np.maximum(a - d - off, 0.0), np.where(b == c, 0.0, np.clip(b - c + off, 0.0, 1.0))

    def coin(self) -> Array:
        """Enclose P(the coin decides)."""
        low, high = self.between(-math.inf, [self.no_room - self.margin, self.no_room + self.margin])
        return np.array([low[0], high[1]])


def _exp(y: Array) -> Ends:
    """Enclose exp(-y), where y >= 0 was rounded a few times."""
    y = np.minimum(y, 1e4)
    value, off = np.exp(-y), (y + 8.0) * 2.0**-50
    low, high = np.maximum(value * (1.0 - off) - TINY, 0.0), np.minimum(value * (1.0 + off) + TINY, 1.0)
    return np.where(y == 0.0, 1.0, low), high


def _laplace(z: Array) -> Ends:
    low, high = (0.5 * end for end in _exp(np.abs(z)))
    return np.where(z >= 0.0, low, 1.0 - high - UNIT), np.where(z >= 0.0, high, np.minimum(1.0 - low + UNIT, 1.0))


class _Walks:
    """Walks between bounds of their own: the probability of each to stop at each sample, ``[tau - 1, walk]``."""

    def __init__(self, case: _Case, bit: int, up: Array, low: Array, last: int | None = None) -> None:
        rows, forced = np.arange(up.size), dict.fromkeys(case.entries, float(bit))
        speed = max(case.drift * (1.0 - 1e-9) - 1e-12 * case.step, TINY)
        longest = (up + low + 2.0 * case.step) / speed + case.entries[-1]  # Wald: the mean time left to a walk inside
        cells = int((float(up.max()) + float(low.max())) / case.step) + 200
        mass, base, begin, end = np.zeros((up.size, 3 * cells)), -1, 1, 2  # column i: base + i ones
        mass[:, 1], self.lost, self.steps = 1.0, np.zeros(up.size), 0
        stopped: list[list[Array]] = [[], []]
        while end > begin and self.steps != last:
            self.steps += 1
            if end + 2 >= mass.shape[1]:
                mass[:, 1 : end - begin + 1] = mass[:, begin:end].copy()
                mass[:, end - begin + 1 :] = 0.0
                base, begin, end = base + begin - 1, 1, end - begin + 1
            p = forced.get(self.steps, case.p_phi)
            moved = p * mass[:, begin:end]
            mass[:, begin:end] *= 1.0 - p
            mass[:, begin + 1 : end + 1] += moved
            far = (
                self.steps * case.down
            )  # only one cell can be beyond each bound: a step is less than the cells' distance
            top, bottom = np.ceil((far + up) / case.step) - base, np.floor((far - low) / case.step) - base
            for side, place in ((1, top), (0, bottom)):
                column = np.clip(place, 0, mass.shape[1] - 1).astype(np.int64)
                stopped[side].append(mass[rows, column])
                mass[rows, column] = 0.0
            begin, end = max(begin, int(bottom.min()) + 1), min(end + 1, int(top.max()))
            if self.steps % 64 == 0 and end > begin:
                keep = begin + np.flatnonzero(mass[:, begin:end].max(axis=0) > 1e-40)
                first, after = (int(keep[0]), int(keep[-1]) + 1) if keep.size else (begin, begin)
                for part in (mass[:, begin:first], mass[:, after:end]):
                    self.lost += part.sum(axis=1)
                    part[:] = 0.0
                begin, end = first, after
                unseen = mass[:, begin:end].sum(axis=1) + self.lost
                if last is None and float((unseen * (self.steps + longest)).max()) < 1e-9:
                    break
            if self.steps >= LONGEST:
                raise UnreadableError(f"cannot be checked here: walks take more than {LONGEST} samples")
        alive, (self.alt, self.null) = mass[:, begin:end].sum(axis=1), map(np.array, stopped)
        slack, known = (8.0 * self.steps + 8.0 * cells + 64.0) * UNIT, np.arange(1.0, self.steps + 1.0)
        self.less, self.more, mean = 1.0 - slack, 1.0 + slack, known @ (self.null + self.alt) + alive * self.steps
        self.mean = (
            mean * self.less - TINY,
            (mean + self.lost * self.steps + (alive + self.lost) * longest) * self.more + TINY,
        )

    def upto(self, last: int, decision: int | None) -> Ends:
        """Enclose P(tau <= last, decision)."""
        found = (self.null if decision == 1 else self.alt if decision == 0 else self.null + self.alt)[:last].sum(axis=0)
        return np.maximum(found * self.less - TINY, 0.0), np.minimum((found + self.lost) * self.more + TINY, 1.0)


# --- the probability of an event, for each observer -----------------------------------------------------------------


def enclose(content: Mapping[str, Any], bit: int) -> tuple[float, float]:
    """Enclose the probability of an event.

    Parameters
    ----------
    content : mapping
        The certificate.
    bit : {1, 0}
        The value of the entries.

    Returns
    -------
    tuple of float
        The lower and the upper end.
    """
    case, ranges = _Case(content["setting"]), list[Range]()
    for begin, end, decision in content["event"]["ranges"]:
        low, high = -math.inf if begin is None else float(begin), math.inf if end is None else float(end)
        known = [top for _, top, other in ranges if other == decision or None in (other, decision)]
        if not low < high or decision not in (None, 0, 1) or any(top > low for top in known):
            raise UnreadableError("no certificate: the ranges of its event are not in order")
        ranges.append((low, high, decision))
    if content["observer"] == "informed":
        ends = [_of_sequence(case, bit, ranges)]
    elif content["observer"] == "marginal":
        ends = [_of_time(case, bit, each, int(content["strata"])) for each in ranges]
    elif content["observer"] == "expected" and all(decision is None for *_, decision in ranges):
        ends = [_of_average(case, bit, *each[:2]) for each in ranges]
    else:
        raise ValueError("observer")
    off = 4.0 * len(ends) * UNIT
    return sum(low for low, _ in ends) * (1.0 - off), min(sum(high for _, high in ends) * (1.0 + off), 1.0)


def _of_average(case: _Case, bit: int, low: float, high: float) -> tuple[float, float]:
    """Enclose P(low <= g(L) < high), where g(L) = E[tau | L] does not fall."""
    (a, b), (c, d) = _reached(case, bit, low), _reached(case, bit, high)
    least, most = case.between(b, c)[0], case.between(a, d)[1]
    if case.name == "none":
        least, most = np.array(float(b < 0.0 <= c)), np.array(float(a < 0.0 <= d))
    return float(least), float(most)


def _reached(case: _Case, bit: int, edge: float) -> tuple[float, float]:
    """Enclose the L at which g reaches an edge: on a grid, which makes the answer the same on every processor."""
    if edge <= 1.0 or math.isinf(edge):
        return (-math.inf, -math.inf) if edge <= 1.0 else (math.inf, math.inf)

    def mean(*excess: float) -> Ends:
        return _Walks(case, bit, case.b_up + np.array(excess), case.b_low + np.array(excess)).mean

    start, grid, off = max(case.least, case.no_room), 2.0 ** (math.floor(math.log2(case.step)) - 20), case.margin
    if case.least > case.no_room and mean(start - off)[0][0] >= edge:
        return -math.inf, -math.inf
    if case.name == "none":
        return (math.inf, math.inf) if mean(start + off)[1][0] < edge else (-math.inf, math.inf)
    at, width = max(int((edge * case.drift - case.b_up - start) / grid), 0), 1 << 14  # a guess among points of the grid
    at = max(at + int((edge - float(mean(start + grid * at)[0][0])) * case.drift / grid), 0)
    while True:  # at `near` g may be below the edge, at `far` it surely is not
        near, far, width = max(at - width, 0), at + width, 8 * width
        low, high = mean(start + grid * near, start + grid * far)[0]
        some = float(case.tail(start + grid * far)[1]) > 1e-30
        if (near == 0 or low < edge) and (high >= edge or not some):
            break
    while some and far - near > 1:
        points = sorted({near + (far - near) * k // 32 for k in range(1, 32)} - {near, far})
        ends = mean(*(start + grid * point for point in points))[0]
        far = min([far, *(point for point, end in zip(points, ends, strict=True) if end >= edge)])
        near = max([near, *(point for point in points if point < far)])
    back = 1
    while near > 0 and mean(start + grid * near)[1][0] >= edge:  # it may be below the edge here
        near, back = max(near - back, 0), 2 * back
    return start + grid * near - off, start + grid * far + off if some else math.inf


def _of_time(case: _Case, bit: int, event: Range, strata: int) -> tuple[float, float]:
    """Enclose P(low <= tau < high, decision) from laws at both ends of many ranges of L."""
    low, high, decision = event
    if math.isinf(high) and decision is not None:
        raise UnreadableError("cannot be checked here: an event without an end has a decision")
    before, end = (math.ceil(min(max(x, 1.0), 1e9)) - 1 for x in (low, high))
    last = max(before if math.isinf(high) else end, 1)
    if not 1 <= strata <= 1 << 14 or strata * last > 5e6:
        raise UnreadableError("cannot be checked here: too many ranges of L")
    start, room, off = max(case.least, case.no_room), case.step, case.margin
    while case.tail(start + room)[1] > 1e-9:
        room *= 1.5
    # beyond this L hardly a walk stops by then (Hoeffding); whether one does is counted in any case
    far = min(last * max(case.up, case.down), last * case.drift + 4.0 * case.step * math.sqrt(last)) + case.no_room
    cuts = np.linspace(start, start + max(min(room, far - start), case.step), strata + 1)
    weights, beyond = case.between(cuts[:-1], cuts[1:]), case.tail(cuts[-1])
    if case.name == "none":
        cuts, weights = np.zeros(2), (np.ones(1), np.ones(1))
    near, wide = np.append(cuts[:-1], cuts[-1]) - off, np.append(cuts[1:] + off, cuts[-1] - off)  # the last: L beyond
    up, down = (near, wide) if decision != 0 else (wide, near), (near, wide) if decision != 1 else (wide, near)

    def stopped(which: int, time: int, always: bool = False) -> Array:
        ends = walks[which].upto(time, decision)[1 - which]
        ends[-1] = 0.0 if which else walks[0].upto(time, None)[1][-1]
        return np.ones(near.size) if always else ends

    walks = [_Walks(case, bit, case.b_up + up[which], case.b_low + down[which], last) for which in (0, 1)]
    some = math.isinf(high)
    ends = stopped(1, end, some) - stopped(0, before) - UNIT, stopped(0, end, some) - stopped(1, before)
    least, most = np.maximum(ends[0], 0.0), np.where(ends[1] > 0.0, np.minimum(ends[1] + UNIT, 1.0), 0.0)
    share, slack = (1.0 if decision is None else 0.5) * (low <= 1.0 < high), (4.0 * cuts.size + 8.0) * UNIT
    coin, unsure = share * case.coin(), float(case.between(case.no_room - off, case.no_room + off)[1])
    total = (
        coin[0] + weights[0] @ least[:-1] + beyond[0] * least[-1],
        coin[1] + weights[1] @ most[:-1] + beyond[1] * most[-1],
    )
    return max(float(total[0]) * (1.0 - slack) - unsure, 0.0), min(float(total[1]) * (1.0 + slack) + unsure, 1.0)


def _of_sequence(case: _Case, bit: int, ranges: list[Range]) -> tuple[float, float]:
    """Enclose P(a fixed sequence stops in the ranges): tau > k exactly if L > the largest excess of k samples."""
    bits, tau = case.bits.copy(), np.arange(1.0, case.bits.size + 1.0)
    fits = case.entries[-1] <= bits.size and np.all((bits == 0) | (bits == 1))
    if not fits or any(high > tau.size + 1 for _, high, _ in ranges):
        raise UnreadableError("no certificate: its sequence does not fit")
    bits[np.array(case.entries) - 1] = bit
    walk = (ones := np.cumsum(bits)) * case.up - (tau - ones) * case.down
    off = 2.0**-48 * (tau * case.step + case.b_up + case.b_low)
    over, under = walk - case.b_up, -walk - case.b_low
    low, high = (
        np.maximum.accumulate(np.append(case.no_room + sign * off[0], np.maximum(over, under) + sign * off))
        for sign in (-1.0, 1.0)
    )
    least, most = case.between(high[:-1], low[1:])[0], case.between(low[:-1], high[1:])[1]
    most[np.maximum(over, under) + off <= low[:-1]] = 0.0  # surely no record
    unsure, total = np.abs(over - under) <= 2.0 * off, np.zeros(2)
    for begin, end, decision in ranges:
        here, side = (tau >= begin) & (tau < end), (over > under) == decision
        surely, perhaps = (here, here) if decision is None else (here & side & ~unsure, here & (side | unsure))
        coin = case.coin() * ((1.0 if decision is None else 0.5) * (begin <= 1.0 < end))
        total += np.array([least[surely].sum(), most[perhaps].sum()]) + coin
    slack = (2.0 * tau.size + 8.0 * len(ranges)) * UNIT
    return float(total[0]) * (1.0 - slack), min(float(total[1]) * (1.0 + slack), 1.0)


# --- every bin of averages ------------------------------------------------------------------------------------------


def _bins(content: Mapping[str, Any], walks: bool) -> tuple[dict[int, list[tuple[float, float]]], Array]:
    """Enclose the probabilities of all bins, and find those where one member's L are the other's, shifted a little."""
    case, epsilon, reached = _Case(content["setting"]), float(content["claim"]["epsilon"]), {}
    averages = np.array([float(edge["average"]) for edge in content["edges"]])
    fits = content["observer"] == "expected" and case.name != "none" and bool(averages[0] <= 1.0)
    if not fits or np.any(np.diff(averages) <= 0.0):
        raise UnreadableError("cannot be checked here: bins of another kind")
    ends, steps = {}, 4.0 * averages + 1000.0  # a guess, where walks are not followed
    for bit in (1, 0):
        found = [[-math.inf if x is None else float(x) for x in edge[f"L{bit}"]] for edge in content["edges"]]
        found[0] = [-math.inf, -math.inf]
        low, high = reached[bit] = np.array(found).T.copy()
        if walks:
            steps = np.maximum(_followed(case, bit, averages, low, high), steps if bit == 0 else 0.0)
        least = case.between(high, np.append(low[1:], math.inf))[0]
        most = case.between(low, np.append(high[1:], math.inf))[1]
        ends[bit] = [(float(a), float(b)) for a, b in zip(least, most, strict=True)]
    shift = [
        _shift(case, reached[1][:, k].tolist(), reached[0][:, k].tolist(), int(steps[k]))
        for k in range(1, averages.size)
    ]
    before, after = np.array([*(shift[:1] or [math.nan]), *shift]), np.array([*shift, *(shift[-1:] or [math.nan])])
    small = np.abs(before) * case.step <= epsilon * case.law.get("scale", 0.0) * (1.0 + 2.0**-40)
    return ends, (before == after) & small & (case.name == "laplace")


def _followed(case: _Case, bit: int, averages: Array, low: Array, high: Array) -> Array:
    """Follow walks at both ends of each L, which must be below their edge and not below it. Return their length."""
    steps, off, start = np.ones(low.size), case.margin, max(case.least, case.no_room)
    for first in range(1, low.size, 8):
        mine = slice(first, min(first + 8, low.size))
        under = np.maximum(low[mine] + off, start + off)  # up to `start` an average is 1, or has no probability
        excess = np.concatenate([under, high[mine] - off, high[mine] + off])
        if not np.all((excess > case.no_room) & (excess < math.inf)):
            raise RejectedError("an edge is said to be reached where no room is left between the bounds")
        walks = _Walks(case, bit, case.b_up + excess, case.b_low + excess)
        (below, _, _), (_, above, _) = np.split(walks.mean[1] + 1e-8, 3), np.split(walks.mean[0] - 1e-8, 3)
        wrong = ((below >= averages[mine]) & (low[mine] > start - off)) | (above < averages[mine])
        if np.any(wrong):
            average = float(averages[mine][wrong][0])
            raise RejectedError(f"the average of x_n = {bit} does not reach {average:g} where it is said to")
        steps[mine] = walks.steps
    return steps


def _shift(case: _Case, one: list[float], zero: list[float], steps: int) -> float:
    """Find how much larger the L is at which x_n = 1 reaches an edge, exactly, in units of c; nan if that is unknown.

    Averages change only at an excess that walks can have. If one such excess is in the range of L, they change there.
    """
    n, found = np.arange(1.0, steps + 1.0), []
    for low, high in (one, zero):
        middle, half, keys = 0.5 * (low + high), 0.5 * (high - low) + 2.0 * case.margin, set[tuple[int, int, int]]()
        if not half < 0.01 * case.step:
            return math.nan
        for side, bound in ((1, case.b_up), (-1, case.b_low)):
            ones = np.round((side * (middle + bound) + n * case.down) / case.step)
            away = np.abs(side * (ones * case.step - n * case.down) - bound - middle)
            here = (away <= half) & (ones >= 0.0) & (ones <= n)
            pairs = zip(n[here].astype(int).tolist(), ones[here].astype(int).tolist(), strict=True)
            keys |= {(0, side * (2 * k - m), 0) if case.even else (m, k, side) for m, k in pairs}
        found.append(keys)
    if len(found[0]) != 1 or len(found[1]) != 1:
        return math.nan
    ((m1, k1, side1),), ((m0, k0, side0),) = found
    if case.even:
        return 0.5 * (k1 - k0)
    return float(side1 * (k1 - k0)) if (m1, side1) == (m0, side0) else math.nan


# --- the check ------------------------------------------------------------------------------------------------------


def found_ends(content: Mapping[str, Any], walks: bool = True) -> dict[int, list[tuple[float, float]]]:
    """Enclose what a certificate is about, and compare it with the claim.

    Parameters
    ----------
    content : mapping
        The certificate.
    walks : bool
        Whether the L of bins are proven; otherwise they are taken as they are.

    Returns
    -------
    dict
        For x_n = 1 and 0, the ends of the probability of the event or of each bin.

    Raises
    ------
    UnreadableError, RejectedError
        If it cannot be checked, or proves nothing.
    """
    claim, event = content["claim"], content.get("event", {})
    epsilon, delta = float(claim["epsilon"]), Fraction(float(claim["delta"]))
    if not 0.0 <= epsilon <= 700.0 or not 0 <= delta < 1 or event.get("likelier", 1) not in (0, 1):
        raise UnreadableError("no certificate, or one of a claim that cannot be checked here")
    times = Fraction(math.exp(epsilon)) * (1 + Fraction(epsilon) / 10**12 + Fraction(1, 2**50))
    if content["verdict"] == "violated":
        ends, side = {bit: [enclose(content, bit)] for bit in (1, 0)}, event["likelier"]
        low, high = ends[side][0][0], ends[1 - side][0][1]
        if not Fraction(low) > times * Fraction(high) + delta:
            raise RejectedError(f"the claim allows P_{side} from {low!r} where P_{1 - side} is up to {high!r}")
        return ends
    if content["verdict"] != "certified":
        raise ValueError("verdict")
    ends, inside = _bins(content, walks)
    for p, q in ((ends[1], ends[0]), (ends[0], ends[1])):
        pairs = [(Fraction(a[1]), Fraction(b[0])) for a, b, fine in zip(p, q, inside.tolist(), strict=True) if not fine]
        needed = [a - b * Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**50)) for a, b in pairs]
        if sum(max(x, Fraction(0)) for x in needed) > delta:
            raise RejectedError("the claim is not proven to hold in all bins")
    return ends


def rounded(low: float, high: float) -> list[Decimal]:
    """Round ends outwards. A part in 10^12 is added first: processors add sums in different orders.

    Parameters
    ----------
    low, high : float
        The ends.

    Returns
    -------
    list of Decimal
        The ends as they are stated.
    """
    ends = []
    for end, sign, way in ((low, -1, ROUND_FLOOR), (high, 1, ROUND_CEILING)):
        moved = Decimal(end) * (1 + sign * Decimal("1e-12"))
        ends.append(min(moved.quantize(_unit(moved), way), Decimal(1)) if end else Decimal(0))
    return ends


def _unit(value: Decimal) -> Decimal:
    return Decimal(1).scaleb(value.adjusted() - DIGITS + 1)


def digest(content: Mapping[str, Any]) -> str:
    """Compute SHA-256 of everything but the digest itself.

    Parameters
    ----------
    content : mapping
        The certificate, with its numbers as they are written.

    Returns
    -------
    str
        Hexadecimal digits.
    """
    rest = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()


def check(text: str) -> str:
    """Check a certificate.

    Parameters
    ----------
    text : str
        The file.

    Returns
    -------
    str
        What is verified, in one line.

    Raises
    ------
    UnreadableError
        If it is no certificate of this version, or one that cannot be checked here.
    RejectedError
        If it proves nothing.
    """
    try:
        content = json.loads(text, parse_float=Decimal, parse_constant=Decimal)
        if content["certificate"] != "dpsmc_audit":
            raise ValueError("certificate")
        if content["schema"] != SCHEMA:
            raise UnreadableError(f"its schema is {content['schema']}; {SCHEMA} is checked here")
        if content["digest"] != digest(content):
            raise RejectedError("its digest does not fit: something was changed")
        with np.errstate(all="ignore"):
            found, violated = found_ends(content), content["verdict"] == "violated"
        for bit in (1, 0):
            for each, ends in zip(found[bit], [content[f"p{bit}"]] if violated else content[f"p{bit}"], strict=True):
                _compare(bit, each, [Decimal(end) for end in ends])
        return _words(content, found)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise UnreadableError(f"no certificate, or a damaged one ({type(error).__name__})") from error


def _compare(bit: int, found: tuple[float, float], stated: list[Decimal]) -> None:
    """Refuse ends that are not those found, rounded outwards: by one unit of the last digit and a hundredth at most."""
    low, high = (Decimal(end) for end in found)
    room = [_unit(end) * Decimal("1.01") if end else Decimal(0) for end in (low, high)]
    if len(stated) != 2 or not (
        0 <= low - stated[0] <= room[0] and 0 <= stated[1] - high <= room[1] and stated[1] <= 1
    ):
        raise RejectedError(
            f"P_{bit} is stated from {' to '.join(map(str, stated))}, and found from {low:.12g} to {high:.12g}"
        )


def _words(content: Mapping[str, Any], found: dict[int, list[tuple[float, float]]]) -> str:
    claim = f"epsilon={content['claim']['epsilon']}, delta={content['claim']['delta']}"
    if content["verdict"] == "certified":
        return f"{claim} holds for the averages in all {len(found[1])} bins"
    seen, said = "average of tau" if content["observer"] == "expected" else "tau", []
    for low, high, decision in content["event"]["ranges"]:
        times = f"{'' if low is None else f'{low} <= '}{seen}{'' if high is None else f' < {high}'}"
        said.append(times if decision is None else f"{times} with decision {decision}")
    ends = ", ".join(f"P_{bit} from {found[bit][0][0]:.9g} to {found[bit][0][1]:.9g}" for bit in (1, 0))
    return f"{claim} fails on {' or '.join(said[:3])}{' or others' if said[3:] else ''}: {ends}"


def main(arguments: list[str]) -> int:
    """Check a file and print one line.

    Parameters
    ----------
    arguments : list of str
        The path of the file.

    Returns
    -------
    int
        0 if the certificate is verified, 1 if it proves nothing, 2 if it is none that can be checked.
    """
    try:
        if len(arguments) != 1:
            raise UnreadableError("usage: python -m dpsmc_audit.certificate FILE")
        print(f"verified: {check(Path(arguments[0]).read_text(encoding='utf-8'))}")
    except RejectedError as error:
        print(f"rejected: {error}")
        return 1
    except (OSError, UnicodeError, UnreadableError) as error:
        print(
            f"{arguments[0] if arguments else 'certificate'}: {getattr(error, 'strerror', None) or error}",
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
