"""What every observer has in common: the claim that is audited, and the results of audits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, get_args

from dpsmc_audit.errors import require
from dpsmc_audit.evidence.claims import Promise
from dpsmc_audit.evidence.intervals import check_confidence
from dpsmc_audit.evidence.profiles import Leakage, check_floor, epsilon_grid
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Event
from dpsmc_audit.exact.enclosure import kind_of
from dpsmc_audit.numerics.arrays import FloatArray
from dpsmc_audit.observers.certificates import Certificate
from dpsmc_audit.observers.sentence import Words
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent

__all__ = ["Audit", "Claim", "Engine", "Observer", "PairAudit", "Resolution"]

Engine = Literal["monte_carlo", "exact"]


@dataclass(frozen=True)
class Claim:
    """A privacy claim, and how it is audited.

    Parameters
    ----------
    promise : Promise
        What is claimed of the samples that change, such as ``Dp(epsilon, delta)``.
    confidence : float
        The level of sampled verdicts and of intervals.
    engine : {"monte_carlo", "exact"}
        Whether the laws are sampled or computed.
    """

    promise: Promise
    confidence: float = 0.99
    engine: Engine = "monte_carlo"

    @property
    def epsilon(self) -> float:
        """The epsilon of the claim's main point."""
        return self.promise.main.epsilon

    @property
    def delta(self) -> float:
        """The delta of the claim's main point, for both directions."""
        return self.promise.main.delta

    @property
    def pure(self) -> bool:
        """Whether the claim is an epsilon with delta = 0 and nothing else."""
        return len(self.promise.points) == 1 and self.delta == 0.0

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"the claimed {self.promise.text.removeprefix('the ')}"

    @property
    def certainty(self) -> float:
        """The confidence of the verdict: 1 for the exact engine."""
        return 1.0 if self.engine == "exact" else self.confidence

    def check(self) -> None:
        """Check that the claim can be audited.

        Raises
        ------
        ParameterError
            If epsilon is not positive and finite, or if the confidence is impossible.
        """
        check_confidence(self.confidence)
        require(self.engine in get_args(Engine), f"engine must be monte_carlo or exact, got {self.engine}")
        require(0.0 < self.epsilon < math.inf, f"epsilon must be positive to be audited, got {self.epsilon}")


@dataclass(frozen=True)
class Resolution:
    """The events and the grid on which the leakage is computed.

    Parameters
    ----------
    floor : float
        Bounds on epsilon are about events of this probability or more.
    epsilons : sequence of float, optional
        The grid of the privacy profile; by default from 0 to far beyond the claim.
    """

    floor: float = 0.01
    epsilons: Sequence[float] | None = None

    def grid(self, epsilon: float) -> FloatArray:
        """Check the fields and return the grid of the privacy profile.

        Parameters
        ----------
        epsilon : float
            The claim.

        Returns
        -------
        ndarray
            The grid in increasing order. It holds the claim and its double.

        Raises
        ------
        ParameterError
            If `floor` is not in (0, 1), or if `epsilons` is empty or holds a negative or infinite value.
        """
        check_floor(self.floor)
        return epsilon_grid(epsilon, self.epsilons)


class Observer(Protocol):
    """Someone who sees something of a run. To add an observer, write a class with these members.

    `name` stands on the command line and in results. `unit` and `amount` say what progress counts.
    """

    name: ClassVar[str]
    unit: ClassVar[str]

    @property
    def amount(self) -> int:
        """How many units of work a sampled audit does."""
        ...

    def audit(self, pair: Adjacent, claim: Claim, sampling: Sampling) -> PairAudit:
        """Audit the claim on a pair.

        Parameters
        ----------
        pair : Adjacent
            The setting and the entries. They are checked before the call.
        claim : Claim
            The claim. It is checked before the call.
        sampling : Sampling
            How runs are drawn.

        Returns
        -------
        PairAudit
            The result.
        """
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit:
    """The result of any audit.

    Parameters
    ----------
    claim : Claim
        What was audited.
    finding : Finding
        The verdict, its bounds and its witness. They are also attributes of the audit itself.
    histogram : dataclass of arrays
        What was seen: each array is a column of ``histogram.csv``.
    seconds : float
        How long the audit took.
    """

    observer: ClassVar[str]
    prose: ClassVar[type[Words]] = Words
    claim: Claim
    finding: Finding
    histogram: Any
    seconds: float = field(compare=False)

    @property
    def verdict(self) -> Verdict:
        """What the audit says of the claim."""
        return self.finding.verdict

    @property
    def epsilon_lower(self) -> float:
        """A lower bound on epsilon, at the claimed delta."""
        return self.finding.epsilon_lower

    @property
    def delta_lower(self) -> float:
        """A lower bound on delta, at the claimed epsilon."""
        return self.finding.delta_lower

    @property
    def delta_upper(self) -> float | None:
        """With this delta the claim surely holds; None where no such delta is known."""
        return self.finding.delta_upper

    @property
    def witness(self) -> Event | None:
        """The event that breaks the claim; None if none was found."""
        return self.finding.witness

    @property
    def sampled(self) -> bool:
        """Whether the verdict rests on random runs."""
        return self.claim.engine != "exact"

    @property
    def words(self) -> Words:
        """The texts of a report about this audit."""
        return self.prose(self)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return self.words.sentence

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        return {
            **self.finding.as_dict(),
            "observer": self.observer,
            "epsilon_claimed": self.claim.epsilon,
            "privacy_delta_claimed": self.claim.delta,
            "claim": self.claim.promise.as_dict(),
            "confidence": self.claim.certainty,
            "sentence": self.sentence,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class PairAudit(Audit):
    """The result of an audit whose two laws are known, or can be.

    Parameters
    ----------
    pair : Adjacent
        The two inputs that were compared.
    leakage : Leakage
        The privacy profile, the total variation and the best event of the two laws.
    exact : Finding, optional
        What the exact laws say of the same claim, where they are known.
    numerical_error : float
        Of the exact laws; nan where they are not known.
    proven : bool
        Whether that is a bound. Otherwise it is an estimate, and no exact verdict rests on it.
    unfinished : int
        Runs that reached `max_steps` without a decision.
    steps : int
        Samples that were drawn.
    """

    pair: Adjacent
    leakage: Leakage
    exact: Finding | None
    numerical_error: float
    unfinished: int
    steps: int
    proven: bool = True

    @cached_property
    def certificate(self) -> Certificate | None:
        """The proof of an exact verdict that anyone can check; None where there is none."""
        return self.proof() if self.claim.engine == "exact" else None

    def proof(self) -> Certificate | None:
        """Make the certificate of an exact verdict. An observer that has none need not define this.

        Returns
        -------
        Certificate or None
            The certificate, if the verdict can be proven by it.
        """
        return None

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        return {
            **super().as_dict(),
            **self.leakage.as_dict(self.claim.epsilon),
            "exact": None if self.exact is None else self.exact.as_dict(),
            "numerical_error": self.numerical_error,
            "numerical_error_is": None if math.isnan(self.numerical_error) else kind_of(self.proven),
            "unfinished": self.unfinished,
            "steps": self.steps,
        }
