"""Check a certificate of an exact verdict: ``python -m dpsmc_audit.certificate FILE``.

This programme shares nothing with the engine that wrote the file. A walk between fixed bounds has an exact law, sample by
sample: sums of products of positive numbers, whose rounding is counted. The noise L moves both bounds apart, and tau does
not fall when they move apart, so laws at the ends of a range of L bracket the law in between. Steps, bounds and positions
are rounded as if L were off by `margin`. So the ends that are found here are proven, and a certificate is verified if
they break (or keep) the claim and the stated ends are these ends, rounded outwards to six digits.

The walk is ``K s_plus - (N - K) s_minus`` after N samples with K ones. It stops at ``b_up + L`` (decision 1) or
``-b_low - L`` (decision 0), where a walk within one part in 10^9 of a bound without L has reached it. If L leaves no room
between the bounds, tau is 1 and the decision a fair coin. Ranges of an event are ``[low, high, decision]``: half-open, of
tau or of its average given L; null stands for no end and for any decision.
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

__all__ = ["SCHEMA", "Case", "RejectedError", "UnreadableError", "check", "digest", "enclose", "main", "refutes", "rounded"]

SCHEMA = 1
NUMBERS = {
    "none": (),
    "exponential": ("rate",),
    "laplace": ("center", "scale"),
    "truncated": ("center", "scale", "lowest"),
}
LONGEST, UNIT, TINY, DIGITS = 100_000, 2.0**-53, 1e-300, 6

Array = NDArray[np.float64]
Ends = tuple[Array, Array]


class UnreadableError(Exception):
    """The file is no certificate that can be checked here."""


class RejectedError(Exception):
    """The certificate proves nothing."""


class Case:
    """What a certificate is about: the test, the law of L, and the samples.

    Parameters
    ----------
    setting : mapping
        The setting, as a certificate holds it.
    """

    def __init__(self, setting: Mapping[str, Any]) -> None:
        p, delta, fp, fn = (Fraction(float(setting[name])) for name in ("p", "delta", "fp", "fn"))
        self.law = {key: value if key == "name" else float(value) for key, value in setting["mechanism"].items()}
        self.entries = [int(entry) for entry in setting["entries"]]
        self.p_phi = float(setting.get("p_phi", 0.0))
        self.bits = np.array([int(bit) for bit in setting.get("sequence", "")], np.int64)
        if self.law["name"] not in NUMBERS:
            raise UnreadableError(f"cannot be checked here: there are no safe tails of a law {self.law['name']}")
        scale = [self.law[name] for name in NUMBERS[self.law["name"]]]
        fits = all(map(math.isfinite, scale)) and all(self.law.get(name, 1.0) > 0.0 for name in ("rate", "scale"))
        fits &= 0 < delta < min(p, 1 - p) and 0 < fp < Fraction(1, 2) > fn > 0 and 0.0 <= self.p_phi <= 1.0
        if not fits or not self.entries or self.entries != sorted({*self.entries}) or self.entries[0] < 1:
            raise UnreadableError("no certificate: its setting is impossible")
        self.up, self.down = _log1p(2 * delta / (p - delta)), _log1p(2 * delta / (1 - p - delta))
        self.step = self.up + self.down
        self.b_up, self.b_low = ((1.0 - 1e-9) * _log1p(odds - 1) for odds in ((1 - fp) / fn, (1 - fn) / fp))
        self.no_room = -min(self.b_up, self.b_low)
        self.margin = 2.0**-47 * (LONGEST * self.step + self.b_up + self.b_low)
        least = {"none": 0.0, "exponential": 0.0, "laplace": -math.inf}
        self.least = least.get(self.law["name"], self.law.get("lowest", 0.0))

    def tail(self, excess: Any) -> Ends:
        """Enclose P(L > excess).

        Parameters
        ----------
        excess : array_like
            Values of L.

        Returns
        -------
        tuple of array
            The lower and the upper ends.
        """
        law, x = self.law, np.asarray(excess, np.float64)
        if law["name"] == "none":
            return (some := (x < 0.0).astype(np.float64)), some
        if law["name"] == "exponential":
            return _exp(law["rate"] * np.maximum(x, 0.0))
        if law["name"] == "laplace":
            return _laplace((x - law["center"]) / law["scale"])
        low, high = _laplace((np.maximum(x, law["lowest"]) - law["center"]) / law["scale"])
        whole = _laplace(np.asarray((law["lowest"] - law["center"]) / law["scale"]))
        low, high = low / whole[1] * (1.0 - 4.0 * UNIT), np.minimum(high / whole[0] * (1.0 + 4.0 * UNIT), 1.0)
        return np.where(x <= law["lowest"], 1.0, low), high

    def between(self, low: Any, high: Any) -> Ends:
        """Enclose P(low < L <= high).

        Parameters
        ----------
        low, high : array_like
            The ends of ranges of L.

        Returns
        -------
        tuple of array
            The lower and the upper ends.
        """
        (a, b), (c, d) = self.tail(low), self.tail(high)
        off = 2.0 * UNIT * (b + d)
        return np.maximum(a - d - off, 0.0), np.where(b == c, 0.0, np.clip(b - c + off, 0.0, 1.0))

    def coin(self) -> tuple[float, float]:
        """Enclose the probability that the coin decides."""
        low, high = self.between(-math.inf, [self.no_room - self.margin, self.no_room + self.margin])
        return float(low[0]), float(high[1])


def _log1p(x: Fraction) -> float:
    return math.log1p(float(x))


def _exp(y: Array) -> Ends:
    """Enclose exp(-y), where y is not negative and was rounded a few times."""
    y = np.minimum(y, 1e4)
    value, off = np.exp(-y), (y + 8.0) * 2.0**-50
    low, high = np.maximum(value * (1.0 - off) - TINY, 0.0), np.minimum(value * (1.0 + off) + TINY, 1.0)
    return np.where(y == 0.0, 1.0, low), high


def _laplace(z: Array) -> Ends:
    low, high = (0.5 * end for end in _exp(np.abs(z)))
    ends = np.where(z >= 0.0, low, 1.0 - high - UNIT), np.where(z >= 0.0, high, 1.0 - low + UNIT)
    return ends[0], np.minimum(ends[1], 1.0)


# --- walks between fixed bounds -------------------------------------------------------------------------------------


class _Walks:
    """Many walks at once, each between its own bounds: the probabilities to stop at each sample, ``[tau - 1, walk]``."""

    def __init__(self, case: Case, bit: int, up: Array, low: Array, last: int | None) -> None:
        rows, forced = np.arange(up.size), dict.fromkeys(case.entries, float(bit))
        speed = abs(case.p_phi * case.up - (1.0 - case.p_phi) * case.down) * (1.0 - 1e-9) - 1e-12 * case.step
        # Wald: the mean time that a walk inside its bounds needs after the last entry
        self.longest = (up + low + 2.0 * case.step) / max(speed, TINY) + case.entries[-1]
        cells = int((float(up.max()) + float(low.max())) / case.step) + 200
        mass, base, begin, end = np.zeros((up.size, 3 * cells)), -1, 1, 2  # column i: base + i ones
        mass[:, 1], self.lost, self.steps = 1.0, np.zeros(up.size), 0
        null, alt = [], []
        while last is None or self.steps < last:
            self.steps += 1
            p = forced.get(self.steps, case.p_phi)
            if end + 2 >= mass.shape[1]:
                mass[:, 1 : end - begin + 1] = mass[:, begin:end].copy()
                mass[:, end - begin + 1 :] = 0.0
                base, begin, end = base + begin - 1, 1, end - begin + 1
            moved = p * mass[:, begin:end]
            mass[:, begin:end] *= 1.0 - p
            mass[:, begin + 1 : end + 1] += moved
            far = self.steps * case.down  # at most one cell is beyond each bound
            top = np.ceil((far + up) / case.step).astype(np.int64) - base
            bottom = np.floor((far - low) / case.step).astype(np.int64) - base
            place = np.clip(top, 0, mass.shape[1] - 1), np.clip(bottom, 0, mass.shape[1] - 1)
            null.append(mass[rows, place[0]])
            alt.append(mass[rows, place[1]])
            mass[rows, place[0]] = mass[rows, place[1]] = 0.0
            begin, end = max(begin, int(bottom.min()) + 1), min(end + 1, int(top.max()))
            if end <= begin:
                break
            if self.steps % 64 == 0:
                keep = np.flatnonzero(mass[:, begin:end].max(axis=0) > 1e-40)
                first, after = (begin + int(keep[0]), begin + int(keep[-1]) + 1) if keep.size else (begin, begin)
                for part in (mass[:, begin:first], mass[:, after:end]):
                    self.lost += part.sum(axis=1)
                    part[:] = 0.0
                begin, end = first, max(after, first + 1)
                alive = mass[:, begin:end].sum(axis=1)
                if last is None and float(((alive + self.lost) * (self.steps + self.longest)).max()) < 1e-9:
                    break
            if self.steps >= LONGEST:
                raise UnreadableError(f"cannot be checked here: walks take more than {LONGEST} samples")
        self.null, self.alt = np.array(null), np.array(alt)
        self.alive = mass[:, begin:end].sum(axis=1) + self.lost
        self.slack = (8.0 * self.steps + 8.0 * cells + 64.0) * UNIT

    def mean(self) -> Ends:
        """Enclose E[tau]."""
        known = np.arange(1.0, self.steps + 1.0) @ (self.null + self.alt)
        low = (known + (self.alive - self.lost) * self.steps) * (1.0 - self.slack) - TINY
        return low, (known + self.alive * (self.steps + self.longest)) * (1.0 + self.slack) + TINY

    def upto(self, last: float, decision: int | None) -> Ends:
        """Enclose P(tau <= last, decision)."""
        stopped = {None: self.null + self.alt, 1: self.null, 0: self.alt}[decision]
        found = stopped[: int(min(last, self.steps))].sum(axis=0)
        left = self.alive if last > self.steps else self.lost
        return found * (1.0 - self.slack) - TINY, np.minimum((found + left) * (1.0 + self.slack) + TINY, 1.0)


# --- observers: the ends of the probability of an event -------------------------------------------------------------


def enclose(content: Mapping[str, Any], bit: int) -> tuple[float, float]:
    """Enclose the probability of the event of a certificate.

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
    case, ends = Case(content["setting"]), []
    ranges = _ranges(content["event"])
    for low, high, decision in ranges:
        if content["observer"] == "expected":
            ends.append(_of_average(case, bit, low, high))
        elif content["observer"] == "marginal":
            ends.append(_of_time(case, bit, low, high, decision, int(content["strata"])))
    if content["observer"] == "informed":
        ends = [_of_sequence(case, bit, ranges)]
    off = 1.0 + 4.0 * len(ends) * UNIT
    return sum(low for low, _ in ends) / off, min(sum(high for _, high in ends) * off, 1.0)


def _ranges(event: Mapping[str, Any]) -> list[tuple[float, float, int | None]]:
    """The ranges of an event, which must not overlap."""
    found = []
    for low, high, decision in event["ranges"]:
        ends = -math.inf if low is None else float(low), math.inf if high is None else float(high)
        found.append((*ends, None if decision is None else int(decision)))
    for place, (low, high, decision) in enumerate(found):
        before = [end for _, end, other in found[:place] if None in {other, decision} or other == decision]
        if not low < high or decision not in {None, 0, 1} or any(end > low for end in before):
            raise UnreadableError("no certificate: the ranges of its event are not in order")
    return found


def _of_average(case: Case, bit: int, low: float, high: float) -> tuple[float, float]:
    below, upto = _average_below(case, bit, low), _average_below(case, bit, high)
    return max(upto[0] - below[1] - UNIT, 0.0), min(max(upto[1] - below[0] + UNIT, 0.0), 1.0) if upto[1] else 0.0


def _average_below(case: Case, bit: int, edge: float) -> tuple[float, float]:
    """Enclose P(g(L) < edge), where g(L) = E[tau | L] does not fall: the L at which it reaches the edge, on a grid."""
    if edge <= 1.0 or math.isinf(edge):
        return (0.0, 0.0) if edge <= 1.0 else (1.0, 1.0)
    start, grid = max(case.least, case.no_room), 2.0 ** (math.floor(math.log2(case.step)) - 20)

    def mean(excess: list[float]) -> Ends:
        return _Walks(case, bit, case.b_up + np.array(excess), case.b_low + np.array(excess), None).mean()

    if case.least > case.no_room:
        if mean([start - case.margin])[0][0] >= edge:
            return 0.0, 0.0
        if case.law["name"] == "none":
            return (1.0, 1.0) if mean([start + case.margin])[1][0] < edge else (0.0, 1.0)
    near, far = 0, 1 << 20  # points of the grid: g is surely not below the edge at `far`
    while (beyond := case.tail(start + grid * far)[1] > 1e-30) and mean([start + grid * far])[0][0] < edge:
        near, far = far, far * 4
    while beyond and far - near > 1:
        points = sorted({near + (far - near) * k // 16 for k in range(1, 16)} - {near, far})
        ends = mean([start + grid * point for point in points])[0]
        far = min([far, *(point for point, end in zip(points, ends, strict=True) if end >= edge)])
        near = max([near, *(point for point in points if point < far)])
    back = 1
    while near > 0 and mean([start + grid * near])[1][0] >= edge:  # g may be below the edge here
        near, back = max(near - back, 0), 2 * back
    below, least = case.tail(start + grid * near - case.margin)[1], case.tail(start + grid * far + case.margin)[0]
    return max(1.0 - float(below) - UNIT, 0.0), min(1.0 - float(least) + UNIT, 1.0)


def _of_time(
    case: Case, bit: int, low: float, high: float, decision: int | None, strata: int
) -> tuple[float, float]:
    """Enclose P(low <= tau < high, decision): laws at both ends of many ranges of L bracket those between them."""
    before, last = max(math.ceil(low) - 1, 0) if low > -math.inf else 0, high if math.isinf(high) else math.ceil(high) - 1
    reach = max(int(last if last < math.inf else before), 1) if last < math.inf or decision is None else None
    cuts, off = _cuts(case, reach, strata), case.margin
    weights, end = case.between(cuts[:-1], cuts[1:]), case.tail(cuts[-1])
    if case.law["name"] == "none":
        weights = (np.ones(1), np.ones(1))
    near, far = cuts[:-1] - off, cuts[1:] + off
    one, zero = decision in {None, 1}, decision in {None, 0}

    def stopped(up: Array, low: Array, which: int) -> tuple[Array, Array]:
        """By `before` and by `last`, for the ranges and for all L beyond them."""
        top = cuts[-1:] - off
        walks = _Walks(case, bit, case.b_up + np.append(up, top), case.b_low + np.append(low, top), reach)
        found = []
        for time in (before, last):
            ends, any_decision = walks.upto(time, decision)[which], walks.upto(time, None)[which]
            ends[-1] = any_decision[-1] if which else 0.0
            if math.isinf(time):
                ends = np.ones(ends.size) if decision is None else np.append(ends[:-1], float(which))
            found.append(np.maximum(ends, 0.0))
        return found[0], found[1]

    most = stopped(near if one else far, near if zero else far, 1)
    least = stopped(far if one else near, far if zero else near, 0)
    lows, highs = np.maximum(least[1] - most[0] - UNIT, 0.0), np.clip(most[1] - least[0] + UNIT, 0.0, 1.0)
    highs[most[1] == 0.0] = 0.0
    coin = case.coin() if low <= 1.0 < high else (0.0, 0.0)
    share, slack = 1.0 if decision is None else 0.5, (4.0 * cuts.size + 8.0) * UNIT
    total = weights[0] @ lows[:-1] + end[0] * lows[-1], weights[1] @ highs[:-1] + end[1] * highs[-1]
    return float(total[0] + share * coin[0]) * (1.0 - slack), float(total[1] + share * coin[1]) * (1.0 + slack)


def _cuts(case: Case, reach: float | None, strata: int) -> Array:
    """Cut the values of L at which a walk may stop by `reach` into ranges."""
    if not 1 <= strata <= 1 << 14 or strata * (reach or 4e4) > 5e6:
        raise UnreadableError("cannot be checked here: too many ranges of L")
    start, room = max(case.least, case.no_room), case.step
    while case.tail(start + room)[1] > 1e-9:
        room *= 1.5
    if reach is not None:  # Hoeffding: hardly a walk deviates from its mean by more than 4 c sqrt(N)
        drift = abs(case.p_phi * case.up - (1.0 - case.p_phi) * case.down)
        far = min(reach * max(case.up, case.down), reach * drift + 4.0 * case.step * math.sqrt(reach)) + case.no_room - start
        room = max(min(room, far), case.step)
    return start + room * (np.zeros(2) if case.law["name"] == "none" else np.linspace(0.0, 1.0, strata + 1))


def _of_sequence(case: Case, bit: int, ranges: list[tuple[float, float, int | None]]) -> tuple[float, float]:
    """Enclose the probability that a fixed sequence stops in the ranges, from the excess over the bounds at each sample."""
    bits, tau = case.bits.copy(), np.arange(1.0, case.bits.size + 1.0)
    if case.entries[-1] > bits.size or bits.size == 0 or not np.all((bits == 0) | (bits == 1)):
        raise UnreadableError("no certificate: its sequence is impossible")
    bits[np.array(case.entries) - 1] = bit
    ones = np.cumsum(bits)
    walk = ones * case.up - (tau - ones) * case.down
    off = 2.0**-48 * (tau * case.step + case.b_up + case.b_low)
    sides = walk - case.b_up, -walk - case.b_low
    excess = np.maximum(*sides)
    low, high = (np.maximum.accumulate(np.append(case.no_room + sign * off[0], excess + sign * off)) for sign in (-1, 1))
    least, most = case.between(high[:-1], low[1:])[0], case.between(low[:-1], high[1:])[1]
    most[excess + off <= low[:-1]] = 0.0  # surely no record
    unsure, up = np.abs(sides[0] - sides[1]) <= 2.0 * off, sides[0] > sides[1]
    coin, total = case.coin(), np.zeros(2)
    for begin, end, decision in ranges:
        if end > tau.size + 1:
            raise UnreadableError("no certificate: its event lies beyond its sequence")
        here = (tau >= begin) & (tau < end)
        mine = here if decision is None else here & (up == decision)
        total[0] += least[mine if decision is None else mine & ~unsure].sum()
        total[1] += most[mine if decision is None else mine | (here & unsure)].sum()
        total += np.array(coin) * ((1.0 if decision is None else 0.5) if begin <= 1.0 < end else 0.0)
    slack = (2.0 * tau.size + 8.0 * len(ranges)) * UNIT
    return float(total[0]) * (1.0 - slack), min(float(total[1]) * (1.0 + slack), 1.0)


# --- the check ------------------------------------------------------------------------------------------------------


def rounded(low: float, high: float) -> tuple[Decimal, Decimal]:
    """Round ends outwards to the digits that a certificate states.

    Parameters
    ----------
    low, high : float
        The ends.

    Returns
    -------
    tuple of Decimal
        The stated ends. A part in 10^11 is added first: other processors round sums differently.
    """
    ends = []
    for end, sign, way in ((low, -1, ROUND_FLOOR), (high, 1, ROUND_CEILING)):
        moved = Decimal(end) * (1 + sign * Decimal("1e-11"))
        ends.append(min(moved.quantize(_unit(moved), way), Decimal(1)) if end else Decimal(0))
    return ends[0], ends[1]


def _unit(value: Decimal) -> Decimal:
    return Decimal(1).scaleb(value.adjusted() - DIGITS + 1)


def _fits(found: tuple[float, float], stated: list[Decimal]) -> bool:
    """Whether the stated ends are those found, rounded outwards by one unit of the last digit and a hundredth at most."""
    (low, high), ends = (Decimal(found[0]), Decimal(found[1])), stated
    room = [_unit(end) * Decimal("1.01") if end else Decimal(0) for end in (low, high)]
    return 0 <= low - ends[0] <= room[0] and 0 <= ends[1] - high <= room[1] and 0 <= ends[0] <= ends[1] <= 1


def refutes(claim: Mapping[str, Any], likely: Any, other: Any) -> bool:
    """Compare two probabilities with a claim, exactly: ``likely > e^epsilon other + delta``.

    Parameters
    ----------
    claim : mapping
        The claimed `epsilon` and `delta`.
    likely : float or Decimal
        A lower end of the probability for the likelier member.
    other : float or Decimal
        An upper end for the other member.

    Returns
    -------
    bool
        Whether the claim fails.
    """
    epsilon, delta = float(claim["epsilon"]), Fraction(float(claim["delta"]))
    if not 0.0 <= epsilon < math.inf or not 0 <= delta < 1:
        raise UnreadableError("no certificate: its claim is impossible")
    times = Fraction(math.exp(min(epsilon, 700.0))) * (1 + Fraction(1, 2**50))
    return Fraction(likely) > times * Fraction(other) + delta if epsilon <= 700.0 or other == 0 else False


def digest(content: Mapping[str, Any]) -> str:
    """Compute the digest of everything but the digest itself.

    Parameters
    ----------
    content : mapping
        The certificate as it was read.

    Returns
    -------
    str
        SHA-256, in hexadecimal digits.
    """
    rest = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()


def check(text: str) -> str:
    """Check a certificate.

    Parameters
    ----------
    text : str
        The content of the file.

    Returns
    -------
    str
        What is verified, in one line.

    Raises
    ------
    UnreadableError
        If it is no certificate of this version, or about something that cannot be checked here.
    RejectedError
        If it proves nothing.
    """
    try:
        content = json.loads(text, parse_float=Decimal, parse_constant=_refused)
        if content["certificate"] != "dpsmc_audit":
            raise KeyError("certificate")
        if content["schema"] != SCHEMA:
            raise UnreadableError(f"schema {content['schema']} is not {SCHEMA}, the one that is checked here")
        if content["digest"] != digest(content):
            raise RejectedError("the digest does not fit: something was changed")
        return _violated(content)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise UnreadableError(f"no certificate, or a damaged one ({type(error).__name__})") from error


def _refused(name: str) -> None:
    raise ValueError(name)


def _violated(content: dict[str, Any]) -> str:
    claim, likelier, found = content["claim"], content["event"]["likelier"], {}
    if likelier not in (0, 1) or content["observer"] not in ("expected", "marginal", "informed"):
        raise ValueError("likelier")
    stated = {bit: [Decimal(end) for end in content[f"p{bit}"]] for bit in (1, 0)}
    for bit, ends in stated.items():
        found[bit] = enclose(content, bit)
        if not all(end == 0 or -400 < end.adjusted() < 1 for end in ends) or not _fits(found[bit], ends):
            text = " to ".join(map(str, ends))
            raise RejectedError(f"P_{bit} is stated from {text}, and found from {found[bit][0]!r} to {found[bit][1]!r}")
    low, high = found[likelier][0], found[1 - likelier][1]
    if not refutes(claim, low, high) or not refutes(claim, stated[likelier][0], stated[1 - likelier][1]):
        raise RejectedError(f"the claim allows P_{likelier} from {low!r} where P_{1 - likelier} is up to {high!r}")
    ends = ", ".join(f"P_{bit} from {found[bit][0]:.9g} to {found[bit][1]:.9g}" for bit in (1, 0))
    return f"epsilon={claim['epsilon']}, delta={claim['delta']} fails on {_words(content)}: {ends}"


def _words(content: dict[str, Any]) -> str:
    seen, said = ("average" if content["observer"] == "expected" else "tau"), []
    for low, high, decision in content["event"]["ranges"]:
        times = f"{'' if low is None else f'{low} <= '}{seen}{'' if high is None else f' < {high}'}"
        said.append(times if decision is None else f"{times}, decision {decision}")
    return " or ".join(said[:3]) + (f" or {len(said) - 3} ranges more" if len(said) > 3 else "")


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
        print(f"{arguments[0] if arguments else 'no file'}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
