"""Events that tell two laws apart, with their structure: a report shows them, and anyone can count them again."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Event", "Outcomes", "Ranges", "Share", "SmallestNoise", "View", "What"]

Seen = Literal["outcome", "test", "average"]

_DECISIONS = {"outcome": ("o = 0", "o = 1", "undecided"), "test": ("H_alt", "H_null", "undecided")}


@dataclass(frozen=True)
class Share:
    """Ranges of time that count for one decision.

    Parameters
    ----------
    ranges : tuple of pairs
        Half-open ranges ``low <= time < high``; -inf and inf stand for no end.
    decision : {0, 1, -1}, optional
        The decision that is part of the event (-1: none was made); None for any decision.
    """

    ranges: tuple[tuple[float, float], ...]
    decision: int | None = None


@dataclass(frozen=True)
class Ranges:
    """An event of running times, or of their averages.

    Parameters
    ----------
    shares : tuple of Share
        The event is their union.
    seen : {"outcome", "test", "average"}
        What the times are: tau of any mechanism, tau of the test (its decisions have names), or an average of tau.

    Examples
    --------
    >>> Ranges((Share(((-math.inf, 4), (7, 10), (11, 12), (21, math.inf))),)).name
    'tau <= 3 or 7 <= tau <= 9 or tau = 11 or tau > 20'
    >>> Ranges((Share(((-math.inf, 4),), 1),), "test").name
    'tau <= 3 and H_null'
    >>> Ranges((Share(((140.0, 280.0),)),), "average").name
    '140 <= average termination time < 280'
    >>> Ranges((Share(((-math.inf, math.inf),)),), "average").name
    'any average termination time'
    """

    shares: tuple[Share, ...]
    seen: Seen = "outcome"

    @property
    def name(self) -> str:
        """The event in words."""
        return " or ".join(self._named(share) for share in self.shares)

    def _named(self, share: Share) -> str:
        named = _average_range if self.seen == "average" else _tau_range
        times = " or ".join(named(*ends) for ends in share.ranges)
        if share.decision is None:
            return times
        decision = _DECISIONS[self.seen][share.decision]
        return f"({times}) and {decision}" if len(share.ranges) > 1 else f"{times} and {decision}"

    def as_dict(self) -> dict[str, Any]:
        """Return the structure as ``result.json`` holds it; null stands for no end."""
        shares = [
            {
                "ranges": [[None if math.isinf(end) else end for end in ends] for ends in share.ranges],
                "decision": share.decision,
            }
            for share in self.shares
        ]
        return {"kind": "ranges", "seen": self.seen, "shares": shares}


def _tau_range(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "any tau"
    if math.isinf(high):
        return f"tau > {int(low) - 1}"
    if math.isinf(low):
        return f"tau <= {int(high) - 1}"
    return f"tau = {low}" if high == low + 1 else f"{low} <= tau <= {int(high) - 1}"


def _average_range(low: float, high: float) -> str:
    name = "average termination time"
    if math.isinf(low) and math.isinf(high):
        return f"any {name}"
    if math.isinf(high):
        return f"{name} >= {low:g}"
    return f"{name} < {high:g}" if math.isinf(low) else f"{low:g} <= {name} < {high:g}"


@dataclass(frozen=True)
class Outcomes:
    """A set of single outcomes that are likelier with one value of the sample.

    Parameters
    ----------
    count : int
        How many outcomes the event holds.
    likelier : {0, 1}
        The value of the sample with which they are likelier.
    epsilon : float, optional
        They are more than ``e^epsilon`` times as likely.

    Examples
    --------
    >>> Outcomes(3, 1, 0.1).name
    'one of 3 outcomes over e^0.1 times as likely with x_n = 1'
    """

    count: int
    likelier: int
    epsilon: float | None = None

    @property
    def name(self) -> str:
        """The event in words."""
        if self.epsilon is None:
            return f"one of {self.count} outcomes that are likelier with x_n = {self.likelier}"
        return f"one of {self.count} outcomes over e^{self.epsilon:g} times as likely with x_n = {self.likelier}"

    def as_dict(self) -> dict[str, Any]:
        """Return the structure as ``result.json`` holds it."""
        return {"kind": "outcomes", **asdict(self)}


@dataclass(frozen=True)
class SmallestNoise:
    """The average termination time is below the one that a member has at the smallest noise L.

    Parameters
    ----------
    member : {0, 1}
        The value of the sample in that member.
    """

    member: int

    @property
    def name(self) -> str:
        """The event in words."""
        return f"average termination time below that of x_n = {self.member} at the smallest L"

    def as_dict(self) -> dict[str, Any]:
        """Return the structure as ``result.json`` holds it."""
        return {"kind": "smallest_noise", **asdict(self)}


@dataclass(frozen=True)
class View:
    """A range of one view of the output, such as the output itself or the sum of its coordinates.

    Parameters
    ----------
    view : str
        The name of the view.
    low, high : float
        ``low <= view < high``, in the numbers of the view.
    words : str
        The event in words.
    """

    view: str
    low: float
    high: float
    words: str

    @property
    def name(self) -> str:
        """The event in words."""
        return self.words

    def as_dict(self) -> dict[str, Any]:
        """Return the structure as ``result.json`` holds it; null stands for no end."""
        ends = [None if math.isinf(end) else end for end in (self.low, self.high)]
        return {"kind": "view", "view": self.view, "range": ends}


What = Ranges | Outcomes | SmallestNoise | View


@dataclass(frozen=True)
class Event:
    """An event and its probability for x_n = 1 and for x_n = 0.

    Parameters
    ----------
    what : Ranges, Outcomes, SmallestNoise or View
        The outcomes that the event holds.
    p1, p0 : float
        Its probability for each member, or its share of the runs.
    """

    what: What
    p1: float
    p0: float

    @property
    def name(self) -> str:
        """The event in words."""
        return self.what.name

    @property
    def log_ratio(self) -> float:
        """``ln(p1 / p0)``, infinite where one of them is 0."""
        if min(self.p1, self.p0) <= 0.0:
            return 0.0 if self.p1 == self.p0 else math.copysign(math.inf, self.p1 - self.p0)
        return math.log(self.p1 / self.p0)

    def as_dict(self) -> dict[str, Any]:
        """Return the event as ``result.json`` holds it."""
        return {"event": self.name, "p1": self.p1, "p0": self.p0, "what": self.what.as_dict()}
