"""The sentence of a verdict, and the other texts about an audit. The verdict is said once, by its own word.

Every text is plain ASCII; a page may write epsilon and delta as Greek letters. `Words` serves any audit, also one of an
observer from outside the package. The package's own observers say more in the file `sentence.py` of their room, and an
audit names its own by `Audit.prose`. What is promised beside a verdict is in `report/templates/guarantee.html`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from dpsmc_audit.evidence.intervals import percent
from dpsmc_audit.evidence.verdict import Finding, Verdict, rounded_up
from dpsmc_audit.observers.phrases import brief, could_have_shown, factors, named_entries

if TYPE_CHECKING:
    from dpsmc_audit.observers.base import Audit
    from dpsmc_audit.observers.black_box import BlackBoxAudit
    from dpsmc_audit.observers.marginal.audit import MarginalAudit

__all__ = ["BlackBoxWords", "RunWords", "Words"]


class Words:
    """The texts about an audit.

    Parameters
    ----------
    audit : Audit
        What is described.
    """

    audit: Any
    observer: ClassVar[str] = "An observer from outside the package."
    sees: ClassVar[str] = "what this observer sees"
    uncovered: ClassVar[str] = "Other observers are not covered."

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.found, self.claim = audit.finding, audit.claim

    @property
    def changed(self) -> str:
        """What differs between the two cases."""
        return named_entries(self.audit.pair.entries)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, for readers who do not know the theory."""
        return f"{self.found.verdict}: {self.finding}"

    @property
    def finding(self) -> str:
        """The sentence without the verdict's word."""
        match self.found.verdict:
            case Verdict.VIOLATED:
                return self._violated() if self._plain else self._beyond()
            case Verdict.CERTIFIED:
                return f"{self._certified() if self._plain else self._within()} {self.uncovered}"
            case Verdict.UNDECIDED:
                return self._undecided()
        return f"these runs show no violation of the claim. This is no proof: {self.could}"

    @property
    def sure(self) -> str:
        """How sure the verdict is."""
        return f"at {percent(self.claim.confidence)} confidence" if self.audit.sampled else "computed, not sampled"

    @property
    def claimed(self) -> tuple[str, str]:
        """The claimed epsilon and delta."""
        return f"{self.claim.epsilon:g}", f"{self.claim.delta:g}"

    @property
    def audited(self) -> tuple[str, str]:
        """The audited epsilon, and the audited delta at the claimed epsilon."""
        found, claim = self.found, self.claim
        epsilon = f"at least {brief(found.epsilon_lower, 4)}" if found.epsilon_lower > 0.0 else "no bound found"
        if found.verdict == Verdict.CERTIFIED:
            return f"at most {claim.epsilon:g}", f"{claim.delta:g}"
        if found.verdict == Verdict.VIOLATED:
            delta = (
                f"at least {found.delta_lower:.4g}" if found.delta_lower > claim.delta else f"more than {claim.delta:g}"
            )
            if math.isinf(found.epsilon_lower):
                return "no finite value", delta
            shown = found.epsilon_lower > claim.epsilon or not (claim.pure or self._main_fails)
            return epsilon if shown else f"more than {claim.epsilon:g}", delta
        if found.delta_upper is not None:
            return epsilon, f"at most {rounded_up(found.delta_upper)}"
        if found.epsilon_lower <= 0.0:
            return "no bound found", "no bound found"
        return epsilon, f"at least {found.delta_lower:.4g}" if found.delta_lower > 0.0 else "no bound found"

    @property
    def method(self) -> str:
        """How the verdict was made, in a few words."""
        return "sampled runs" if self.audit.sampled else "exact laws, nothing sampled"

    @property
    def confidence(self) -> str:
        """The level of the verdict."""
        return percent(self.claim.confidence) if self.audit.sampled else "exact, not sampled"

    @property
    def witness(self) -> str | None:
        """The event that breaks the claim, with its two probabilities; None if there is none."""
        event = self.found.witness
        if event is None:
            return None
        one, zero = (self._probability(p) for p in (event.p1, event.p0))
        text = f"{event.name.replace('x_n', 'x')}: {self._measured} {one} with x = 1 and {zero} with x = 0."
        side = 1 if event.p1 > event.p0 else 0
        low, high = sorted((event.p1, event.p0))
        return f"{text} {self._impossible(side) if low <= 0.0 else self._likelier(side, brief(high / low, 4))}"

    @property
    def exact(self) -> str | None:
        """What the exact laws say beside a sampled verdict; None where there is no such thing."""
        exact: Finding | None = getattr(self.audit, "exact", None)
        if exact is None or not self.audit.sampled:
            return None
        if exact.verdict == Verdict.VIOLATED:
            bound = f"epsilon is at least {brief(exact.epsilon_lower, 4)}"
            bound = "no finite epsilon holds" if math.isinf(exact.epsilon_lower) else bound
            return f"violated, {bound}, the privacy delta at the claimed epsilon is {exact.delta_lower:.4g}"
        if exact.verdict == Verdict.UNDECIDED and exact.delta_upper is not None:
            return f"undecided, the privacy delta at the claimed epsilon is at most {rounded_up(exact.delta_upper)}"
        return f"{exact.verdict}"

    @property
    def could(self) -> str:
        """Which violation would have been found."""
        could = self.found.could
        return "which violations they would have shown is not known." if could is None else could_have_shown(could)

    @property
    def curve(self) -> str:
        """What the privacy profile is of."""
        return "exact" if not self.audit.sampled else "of the sampled runs"

    # --- parts that observers say in their own way --------------------------------------------------------------------

    @property
    def _plain(self) -> bool:
        """Whether the claim is an epsilon alone."""
        return self.claim.pure

    @property
    def _main_fails(self) -> bool:
        return self.found.delta_lower > self.claim.delta

    def _beyond(self) -> str:
        """What breaks a claim with a delta, a mu or a curve."""
        text = f"{self.sees} tells more about {self.changed} than {self.claim.promise.text} allows"
        if not self._main_fails:
            return f"{text}."
        needed = f"the privacy delta is at least {self.found.delta_lower:.4g} at epsilon = {self.claim.epsilon:g}"
        endless = ""
        if math.isinf(self.found.epsilon_lower):
            endless = "; no finite epsilon holds with the claimed privacy delta"
        return f"{text}: {needed}{endless}."

    def _within(self) -> str:
        """What a certificate of such a claim says."""
        return (
            f"at this resolution, {self.sees} tells no more about {self.changed} than {self.claim.promise.text} allows."
        )

    @property
    def _ratio(self) -> str | None:
        """The factor that was found; None where only a delta contradicts the claim."""
        if not self.claim.epsilon < self.found.epsilon_lower < math.inf:
            return None
        allowed, found = factors(self.claim.epsilon, self.found.epsilon_lower)
        return f"by a factor of at least {found}, where the claim allows about {allowed}"

    @property
    def _allowed(self) -> str:
        return f"a factor of about {factors(self.claim.epsilon, 2.0 * self.claim.epsilon)[0]}"

    def _violated(self) -> str:
        what, who = self.changed, self.sees
        if math.isinf(self.found.epsilon_lower):
            return f"{who} can be impossible with the other value of {what}, so no finite epsilon holds."
        if self._ratio is not None:
            return f"{who} can shift the odds on {what} {self._ratio}."
        if not self._main_fails:  # bets that stopped early: the bounds are those of the claim
            return self._beyond()
        return (
            f"{who} tells more about {what} than epsilon = {self.claim.epsilon:g} allows: the privacy delta is at least"
            f" {self.found.delta_lower:.4g}, and the claim has {self.claim.delta:g}."
        )

    def _certified(self) -> str:
        return f"for this observer, {self.changed} changes no probability by more than {self._allowed}."

    def _undecided(self) -> str:
        upper = self.found.delta_upper
        known = "" if upper is None else f". The claim surely holds with a privacy delta of {rounded_up(upper)}"
        known += "" if self.claim.pure or upper is None else f" at epsilon = {self.claim.epsilon:g}"
        return f"no violation exceeds the numerical error of the computation, but a smaller one is possible{known}."

    @property
    def _measured(self) -> str:
        return "its share of the runs is" if self.audit.sampled else "its probability is"

    def _probability(self, p: float) -> str:
        return brief(p, 4)

    def _impossible(self, side: int) -> str:
        if self.audit.sampled:
            return f"It was never seen with x = {1 - side}."
        return f"An observer who sees it knows that x = {side}."

    def _likelier(self, side: int, ratio: str) -> str:
        about = "about " if self.audit.sampled else ""
        return f"An observer who sees it multiplies the odds on x = {side} by {about}{ratio}."


class RunWords(Words):
    """About one released result, from independent runs."""

    audit: MarginalAudit | BlackBoxAudit
    sees = "a single released result (running time and decision)"

    @property
    def method(self) -> str:
        """How the verdict was made, in a few words."""
        if not self.audit.sampled:
            return super().method
        return f"bets on x, {brief(2 * self.audit.runs)} runs, about half of them with x = 1"


class BlackBoxWords(RunWords):
    """About the runs of a user's mechanism."""

    observer = "An observer who sees what the sampler returns for one run."
    sees = "a single result"
    changed = "the entry under test"
