"""Certificates of exact verdicts: `dpsmc_audit.certificate` checks them by its own small programme.

An audit proposes events, the likeliest to be proven first. The ends that a certificate states are those that the
checker finds, so whatever the engine computed, nothing is written that the checker does not prove. Only for a list of
all bins the walks are left to the reader: they take seconds to minutes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsmc_audit.certificate import LONGEST, SCHEMA, RejectedError, UnreadableError, digest, found_ends, rounded
from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.evidence.witness import Event, Ranges
from dpsmc_audit.mechanisms import Exponential, Laplace, NoNoise, Truncated
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.numerics.ties import best_of
from dpsmc_audit.runs.files import write_text
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt

if TYPE_CHECKING:
    from dpsmc_audit.evidence.claims import Point, Promise

__all__ = [
    "Certificate",
    "Proposal",
    "certificate_of_bins",
    "certificate_of_event",
    "proposals",
    "ranges_of",
    "with_hulls",
]

End = float | None
Range = tuple[End, End, int | None]

_STRATA, _CELLS, _LONGEST = (64, 512, 4096), 2e9, 10_000.0
"""Ranges of L into which the marginal law is cut, until the event is proven; what that may cost; and how long walks may
be whose averages are compared. An audit should not wait for its certificate."""

_EVENTS, _RANGES, _EDGES = 4, 2000, 400
"""Events that are tried, ranges of one event, and edges of bins."""


@dataclass(frozen=True)
class Certificate:
    """A proof of an exact verdict that ``python -m dpsmc_audit.certificate`` checks.

    Parameters
    ----------
    text : str
        The file.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting, Sprt, audit
    >>> test = Sprt(p=0.73, delta=0.05, alpha=0.05)
    >>> setting = Setting(test, Exponential.private(test, 0.1), p_phi=0.84)
    >>> found = audit(setting, epsilon=0.1, observer="marginal", engine="exact")
    >>> found.certificate.content["event"]["likelier"]
    1
    """

    text: str = field(repr=False)

    @property
    def content(self) -> dict[str, Any]:
        """The setting, the claim, the event or the bins, and the proven ends of their probabilities."""
        content: dict[str, Any] = json.loads(self.text)
        return content

    def save(self, path: str | Path) -> None:
        """Write the file.

        Parameters
        ----------
        path : str or Path
            The file. An existing file is replaced.
        """
        write_text(Path(path), self.text)


@dataclass(frozen=True)
class Proposal:
    """An event that may prove a violation.

    Parameters
    ----------
    ranges : sequence of (low, high, decision)
        Half-open ranges of tau or of its average; None stands for no end and for any decision.
    p1, p0 : float
        Its probabilities, as the engine knows them.
    """

    ranges: Sequence[Range]
    p1: float
    p0: float

    def margin(self, point: Point, side: int) -> float:
        """Compute by how much it breaks one point of a claim.

        Parameters
        ----------
        point : Point
            The point.
        side : {1, 0}
            The likelier member.

        Returns
        -------
        float
            ``P_side - e^epsilon P_other - delta``.
        """
        likely, other, delta = (self.p1, self.p0, point.delta_1) if side == 1 else (self.p0, self.p1, point.delta_0)
        return likely - factor(point.epsilon) * other - delta


def certificate_of_event(
    observer: str, pair: Adjacent, promise: Promise, events: Iterable[Proposal], sequence: str | None = None
) -> Certificate | None:
    """Prove that a claim is violated.

    Parameters
    ----------
    observer : {"expected", "marginal", "informed"}
        Who observes.
    pair : Adjacent
        The setting and the entries.
    promise : Promise
        The claim.
    events : iterable of Proposal
        Events to try, in this order.
    sequence : str, optional
        The samples that the informed observer knows.

    Returns
    -------
    Certificate or None
        None if the checker proves none of them.
    """
    setting = _setting(pair, sequence)
    if setting is None:
        return None
    for proposal, _ in zip(events, range(_EVENTS), strict=False):
        point, side = max(((x, s) for x in promise.points for s in (1, 0)), key=lambda key: proposal.margin(*key))
        if proposal.margin(point, side) <= 0.0 or len(proposal.ranges) > _RANGES:
            continue
        claim = {"epsilon": _plain(point.epsilon), "delta": _plain(point.delta_1 if side == 1 else point.delta_0)}
        event = {"likelier": side, "ranges": [[_plain(x) for x in each] for each in proposal.ranges]}
        content = {"verdict": "violated", "observer": observer, "setting": setting, "claim": claim, "event": event}
        last = max(abs(x) for low, high, _ in proposal.ranges for x in (low, high) if x is not None)
        if observer == "expected" and _length(pair.setting, last) > _LONGEST:
            continue
        for strata in _STRATA if observer == "marginal" else (None,):
            if strata is not None and strata * last**2 > _CELLS:
                break
            try:
                return _stated(content if strata is None else {**content, "strata": strata})
            except (RejectedError, UnreadableError):
                continue
    return None


def certificate_of_bins(
    pair: Adjacent, promise: Promise, edges: FloatArray, reached: dict[int, list[tuple[float, float]]]
) -> Certificate | None:
    """Prove that a claim holds for the averages in all bins.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.
    promise : Promise
        The claim.
    edges : ndarray
        Where bins begin.
    reached : dict
        For x_n = 1 and 0, what the L lies between at which the average reaches each edge.

    Returns
    -------
    Certificate or None
        None if the bins are too many, or if their probabilities leave the claim open.
    """
    setting = _setting(pair, None)
    first = max(int(np.searchsorted(edges, 1.0, side="right")) - 1, 0)  # every average is 1 or more
    symmetric = len(promise.points) == 1 and promise.main.delta_1 == promise.main.delta_0
    if setting is None or not symmetric or edges.size - first > _EDGES:
        return None
    listed = [
        {"average": _plain(edge), **{f"L{bit}": _with_room(pair.setting.test, *reached[bit][k]) for bit in (1, 0)}}
        for k, edge in enumerate(edges.tolist())
        if k >= first
    ]
    claim = {"epsilon": _plain(promise.main.epsilon), "delta": _plain(promise.main.delta_1)}
    content = {"verdict": "certified", "observer": "expected", "setting": setting, "claim": claim, "edges": listed}
    try:
        return _stated(content, walks=False)
    except (RejectedError, UnreadableError):
        return None


def _stated(content: dict[str, Any], walks: bool = True) -> Certificate:
    """Add the ends that the checker finds, and the digest."""
    found, whole = found_ends(content, walks), {"certificate": "dpsmc_audit", "schema": SCHEMA, **content}
    for bit in (1, 0):
        ends = [[_plain(float(end)) for end in rounded(*each)] for each in found[bit]]
        whole[f"p{bit}"] = ends[0] if content["verdict"] == "violated" else ends
    whole["digest"] = digest(json.loads(json.dumps(whole), parse_float=Decimal))
    return Certificate(json.dumps(whole, indent=1, allow_nan=False) + "\n")


def _length(setting: Setting, average: float) -> float:
    """Estimate the length of all but one in 10^10 walks of this average: tails fall by D^2 / (2 variance) a step."""
    test, p_phi = setting.test, setting.p_phi
    drift, variance = test.drift(p_phi), p_phi * (1.0 - p_phi) * test.step_sum**2
    return average + 50.0 * variance / drift**2 if drift != 0.0 else math.inf


def _plain(x: float | None) -> float | None:
    """Write whole numbers as such, and no end as None."""
    return None if x is None or math.isinf(x) else int(x) if x == int(x) else x


def _with_room(test: Sprt, low: float, high: float) -> list[float | None]:
    """Move the ends of an L outwards, by more than rounding, to few digits. Without a lower end all L do."""
    if math.isinf(low):
        return [None, _plain(high)]
    unit = 10.0 ** math.ceil(math.log10(2.0**-44 * (LONGEST * test.step_sum + test.b_up + test.b_low)))
    digits = -round(math.log10(unit))
    return [round((math.floor(low / unit) - 1) * unit, digits), round((math.ceil(high / unit) + 1) * unit, digits)]


def _setting(pair: Adjacent, sequence: str | None) -> dict[str, Any] | None:
    """Write down a setting; None if the checker does not know the law of L."""
    test, mechanism = pair.setting.test, pair.setting.mechanism
    if not isinstance(mechanism, (NoNoise, Exponential, Laplace, Truncated)):
        return None
    setting = {"p": test.p, "delta": test.delta, "fp": test.fp, "fn": test.fn}
    samples = {"p_phi": pair.setting.p_phi} if sequence is None else {"sequence": sequence}
    noise = {"name": mechanism.name, **asdict(mechanism)}
    return {**setting, "mechanism": noise, **samples, "entries": list(pair.entries)}


def ranges_of(event: Event | None) -> list[Proposal]:
    """Take an event of ranges as it is.

    Parameters
    ----------
    event : Event, optional
        The witness of an audit.

    Returns
    -------
    list of Proposal
        The event, or nothing if it is of another kind.
    """
    if event is None or not isinstance(event.what, Ranges):
        return []
    ranges = [(_plain(a), _plain(b), share.decision) for share in event.what.shares for a, b in share.ranges]
    return [Proposal(ranges, event.p1, event.p0)]


def with_hulls(events: list[Proposal]) -> list[Proposal]:
    """Replace events of many ranges by the one range around them, which may break the claim as well.

    Parameters
    ----------
    events : list of Proposal
        Events about averages.

    Returns
    -------
    list of Proposal
        Events of one range.
    """
    ends = [(event.ranges[0][0], event.ranges[-1][1], None) for event in events]
    return [Proposal([end], event.p1, event.p0) for end, event in zip(ends, events, strict=True)]


def proposals(p1: FloatArray, p0: FloatArray, promise: Promise) -> list[Proposal]:
    """Find intervals of tau that break a claim, with a decision or without, the surest first.

    Parameters
    ----------
    p1, p0 : ndarray
        The laws of both members, ``[side][tau - 1]``, for the sides H_null and H_alt.
    promise : Promise
        The claim.

    Returns
    -------
    list of Proposal
        The intervals.
    """
    found: list[tuple[float, Proposal]] = []
    for decision, one, zero in ((None, p1.sum(axis=0), p0.sum(axis=0)), (1, p1[0], p0[0]), (0, p1[1], p0[1])):
        for point in promise.points:
            for side, p, q in ((1, one, zero), (0, zero, one)):
                delta = point.delta_1 if side == 1 else point.delta_0
                for a, b in _intervals(p, q, factor(point.epsilon), delta):
                    ends = None if a == 0 else float(a + 1), None if b == p.size and decision is None else float(b + 1)
                    proposal = Proposal([(*ends, decision)], float(one[a:b].sum()), float(zero[a:b].sum()))
                    margin, size = proposal.margin(point, side), max(proposal.p1, proposal.p0)
                    if margin > 0.0:
                        found.append((margin**2 / size, proposal))  # its square: nearer ends need more ranges of L
    return [proposal for _, proposal in sorted(found, key=lambda each: -each[0])]


def _intervals(p: FloatArray, q: FloatArray, times: float, delta: float) -> list[tuple[int, int]]:
    """Find the surest tail below, the surest tail above and the interval with the largest margin, as slices."""
    likely, other = np.append(0.0, np.cumsum(p)), np.append(0.0, np.cumsum(q))
    excess = likely - times * other

    def surest(margin: FloatArray, size: FloatArray) -> int:
        return best_of(np.where(margin > 0.0, margin * margin / np.maximum(size, 1e-10), 0.0))

    below = surest(excess - delta, likely)
    above = surest(excess[-1] - excess - delta, likely[-1] - likely)
    end = best_of(excess - np.minimum.accumulate(excess))
    start = best_of(-excess[: end + 1])
    return [(a, b) for a, b in ((0, below), (above, p.size), (start, end)) if a < b]
