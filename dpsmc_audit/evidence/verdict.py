"""The result of an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dpsmc_audit.evidence.witness import Event

__all__ = ["Detectable", "Finding", "Verdict", "rounded_up"]


def rounded_up(value: float) -> str:
    """Format an upper bound for a reader: two digits, and not below the value.

    Parameters
    ----------
    value : float
        The bound, not negative.

    Returns
    -------
    str
        The rounded bound.

    Examples
    --------
    >>> rounded_up(1.51e-10), rounded_up(0.0), rounded_up(0.25), rounded_up(1.0)
    ('1.6e-10', '0', '0.25', '1')
    """
    text = f"{value:.2g}"
    if float(text) >= value:
        return text
    return f"{value + 0.5 * 10.0 ** (math.floor(math.log10(value)) - 1):.2g}"


@dataclass(frozen=True)
class Detectable:
    """The smallest violations that these samples would have shown with probability 0.9.

    The violation is an event that is likelier with one value of x by a factor of e^epsilon, such as a tail or a
    frequent value, while everything else has the same law.

    Parameters
    ----------
    probability : float
        The probability of the event that `epsilon` belongs to.
    epsilon : float or None
        The smallest epsilon that would have shown; None if no violation would have.
    delta : float or None
        The smallest probability that would have shown, of an event that is impossible for the other member; None
        likewise.
    by_probability : dict
        The smallest epsilon for events of other probabilities.
    mu : float, optional
        For a claim of Gaussian differential privacy: the smallest mu of two normal laws that would have shown.
    events : str
        The events that the evidence looks at.
    """

    probability: float
    epsilon: float | None
    delta: float | None
    by_probability: dict[float, float | None] = field(default_factory=dict)
    mu: float | None = None
    events: str = "a tail of the output or a frequent value"

    def as_dict(self) -> dict[str, Any]:
        """Return the violations as ``result.json`` holds them."""
        return {
            "events": self.events,
            "event_probability": self.probability,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "epsilon_by_event_probability": {f"{p:g}": x for p, x in self.by_probability.items()},
            **({} if self.mu is None else {"mu": self.mu}),
        }


class Verdict(StrEnum):
    """The answer of an audit to a claim."""

    VIOLATED = "violated"
    """The claim does not hold: by proof (exact) or at the stated confidence (sampled)."""
    CONSISTENT = "consistent"
    """The runs show no violation; that is no proof."""
    CERTIFIED = "certified"
    """The claim holds, at this resolution."""
    UNDECIDED = "undecided"
    """An exact audit refutes nothing, and its numerical error leaves a violation possible."""


@dataclass(frozen=True)
class Finding:
    """A verdict with its bounds and its witness.

    The claim is compared with ends that are proven or stated, and with nothing else: an exact verdict is `violated` if
    the claim fails at the end that favours it, and `certified` if it holds at the other end. Between them it is
    `undecided`, and `delta_upper` says how much of a delta the numerical error leaves open.

    Parameters
    ----------
    verdict : Verdict
        What the audit says of the claim.
    epsilon_lower, delta_lower : float
        Lower bounds: on epsilon at the claimed delta, and on delta at the claimed epsilon.
    witness : Event, optional
        The event that breaks the claim.
    detectable : float, optional
        Sampled expected audit only: the difference of averages, in samples, that would have been found with
        probability 0.9; None where nothing could have been.
    could : Detectable, optional
        What sampled runs could have shown.
    delta_upper : float, optional
        Exact audits that refute nothing: with this delta the claim surely holds, at this resolution.
    """

    verdict: Verdict
    epsilon_lower: float
    delta_lower: float
    witness: Event | None
    detectable: float | None = None
    could: Detectable | None = None
    delta_upper: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as ``result.json`` holds it."""
        return {
            "verdict": self.verdict,
            "epsilon_lower": self.epsilon_lower,
            "privacy_delta_lower": self.delta_lower,
            "witness": None if self.witness is None else self.witness.as_dict(),
            **({} if self.delta_upper is None else {"privacy_delta_upper": self.delta_upper}),
        } | ({} if self.could is None else {"detectable": self.could.as_dict()})
