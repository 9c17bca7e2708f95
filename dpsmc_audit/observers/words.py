"""The prose of a verdict: one sentence, how sure it is, what was found, how, and what is promised.

Every text is plain ASCII; a page may write epsilon and delta as Greek letters. `Words` serves any audit, also one of an
observer from outside the package. The package's own observers say more in the subclasses, and an audit names its own
by `Audit.prose`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from dpsmc_audit.evidence.intervals import percent
from dpsmc_audit.evidence.verdict import Detectable, Finding, Verdict, rounded_up

if TYPE_CHECKING:
    from dpsmc_audit.observers.base import Audit
    from dpsmc_audit.observers.black_box import BlackBoxAudit
    from dpsmc_audit.observers.expected.audit import ExpectedAudit
    from dpsmc_audit.observers.informed.audit import InformedAudit
    from dpsmc_audit.observers.marginal.audit import MarginalAudit

__all__ = [
    "BlackBoxWords",
    "ExpectedWords",
    "InformedWords",
    "MarginalWords",
    "Words",
    "brief",
    "could_have_shown",
    "named_entries",
]

TITLES = {
    Verdict.VIOLATED: "The claim does not hold",
    Verdict.CONSISTENT: "No violation found, which is no proof",
    Verdict.CERTIFIED: "The claim holds, within these limits",
    Verdict.UNDECIDED: "Undecided",
}

BETS = (
    "A fair coin gives each run its x. A predictor that has seen earlier runs guesses x from the result, and a capital"
    " is bet on the guesses. If the claim holds, the capital grows large only by chance, so a large capital refutes it,"
    " at any moment one looks."
)
"""How runs refute a claim."""


def brief(value: float, digits: int = 3) -> str:
    """Write a number for a reader: only 0 itself is shown as 0, an infinity is a word.

    Parameters
    ----------
    value : float
        The number; nan is called unknown.
    digits : int
        Significant digits.

    Returns
    -------
    str
        The number as text.

    Examples
    --------
    >>> brief(0.0099270), brief(1322.7469, 5), brief(3.14159e-12), brief(math.inf), brief(0.0), brief(2e6)
    ('0.00993', '1322.7', '3.14e-12', 'infinite', '0', '2,000,000')
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    if abs(value) >= 1e4 and value == round(value):
        return f"{value:,.0f}"
    text = f"{value + 0.0:.{digits}g}"
    return text if "e+" not in text else f"{value:,.0f}" if abs(value) < 1e12 else text


def named_entries(entries: Sequence[int]) -> str:
    """Name the samples that differ between the two members.

    Parameters
    ----------
    entries : sequence of int
        The samples, counted from 1.

    Returns
    -------
    str
        Their names.

    Examples
    --------
    >>> named_entries([3]), named_entries([1, 4, 5])
    ('sample 3', 'samples 1, 4 and 5 together')
    """
    *others, last = entries
    return f"samples {', '.join(f'{n}' for n in others)} and {last} together" if others else f"sample {last}"


def could_have_shown(could: Detectable) -> str:
    """Say which violation these runs would have found: at the asked probability, else at the smallest that shows any.

    Parameters
    ----------
    could : Detectable
        The smallest violations that would have been found with probability 0.9.

    Returns
    -------
    str
        A sentence without its capital.

    Examples
    --------
    >>> could_have_shown(Detectable(0.01, None, None))
    'so few runs could have shown nothing.'
    """
    seen = {p: x for p, x in {**could.by_probability, could.probability: could.epsilon}.items() if x is not None}
    if seen:
        p = could.probability if could.epsilon is not None else min(seen)
        factor = brief(math.exp(min(seen[p], 700.0)))
        what = f"an epsilon of {brief(seen[p])} (a factor of {factor}) on a tail or a frequent value of"
        what += f" probability {p:g}"
    elif could.delta is not None:
        what = f"a tail or a frequent value of probability {brief(could.delta)} that is impossible with the other value"
        what += " of x"
    else:
        return "so few runs could have shown nothing."
    return f"{what} would have been found nine times out of ten, other violations perhaps not."


def _factors(claimed: float, found: float) -> tuple[str, str]:
    """Write e^claimed and, rounded down, e^found, with as many digits as it takes to distinguish them."""
    texts = ("", "")
    for digits in range(3, 9):
        allowed = brief(math.exp(claimed), digits) if claimed < 14 else "a million and more"
        texts = allowed, brief(_down(math.exp(found), digits), digits) if found < 14 else "a million"
        if texts[0] != texts[1]:
            break
    return texts


def _down(value: float, digits: int) -> float:
    """Round a value down to so many digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.floor(value / step) * step


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
    def title(self) -> str:
        """The verdict in a few words."""
        return TITLES[self.found.verdict]

    @property
    def changed(self) -> str:
        """What differs between the two members."""
        return named_entries(self.audit.pair.entries)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, for readers who do not know the theory."""
        match self.found.verdict:
            case Verdict.VIOLATED:
                return f"The privacy claim does not hold: {self._violated() if self._plain else self._beyond()}"
            case Verdict.CERTIFIED:
                return (
                    f"The privacy claim holds {self._certified() if self._plain else self._within()} {self.uncovered}"
                )
            case Verdict.UNDECIDED:
                return f"Undecided: {self._undecided()}"
        return f"No violation of the privacy claim was found. That is no proof: {self.could}"

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
            return f"violated, {bound}, delta at the claimed epsilon is {exact.delta_lower:.4g}"
        if exact.verdict == Verdict.UNDECIDED and exact.delta_upper is not None:
            return f"undecided, delta at the claimed epsilon is at most {rounded_up(exact.delta_upper)}"
        return f"{exact.verdict}"

    @property
    def guarantee(self) -> list[str]:
        """Paragraphs: how the verdict was made, and what is promised."""
        if self.audit.sampled:
            return [f"Promised: a verdict of violated although the claim holds has {self._chance}."]
        return ["Nothing was sampled, so there is no confidence level.", *self._bounds()]

    @property
    def could(self) -> str:
        """Which violation would have been found."""
        could = self.found.could
        return "what could have been found is not known." if could is None else could_have_shown(could)

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
        needed = f"delta is at least {self.found.delta_lower:.4g} at epsilon = {self.claim.epsilon:g}"
        endless = "; no finite epsilon holds with the claimed delta" if math.isinf(self.found.epsilon_lower) else ""
        return f"{text}: {needed}{endless}."

    def _within(self) -> str:
        """What a certificate of such a claim says."""
        return (
            f"at this resolution: {self.sees} tells no more about {self.changed} than {self.claim.promise.text} allows."
        )

    @property
    def _ratio(self) -> str | None:
        """The factor that was found; None where only a delta contradicts the claim."""
        if not self.claim.epsilon < self.found.epsilon_lower < math.inf:
            return None
        allowed, found = _factors(self.claim.epsilon, self.found.epsilon_lower)
        return f"by a factor of at least {found}, where the claim allows about {allowed}"

    @property
    def _allowed(self) -> str:
        return f"a factor of about {_factors(self.claim.epsilon, 2.0 * self.claim.epsilon)[0]}"

    @property
    def _chance(self) -> str:
        return f"a probability of at most {percent(1.0 - self.claim.confidence)}"

    def _violated(self) -> str:
        what, who = self.changed, self.sees
        if math.isinf(self.found.epsilon_lower):
            return f"{who} can be one that is impossible with the other value of {what}: no finite epsilon holds."
        if self._ratio is not None:
            return f"{who} can shift the odds on {what} {self._ratio}."
        if not self._main_fails:  # bets that stopped early: the bounds are those of the claim
            return self._beyond()
        return (
            f"{who} tells more about {what} than epsilon = {self.claim.epsilon:g} allows, with a delta of at least"
            f" {self.found.delta_lower:.4g} where the claim has {self.claim.delta:g}."
        )

    def _certified(self) -> str:
        return f"for this observer: {self.changed} changes no probability by more than {self._allowed}."

    def _undecided(self) -> str:
        upper = self.found.delta_upper
        known = "" if upper is None else f": the claim surely holds with a delta of {rounded_up(upper)}"
        known += "" if self.claim.pure or upper is None else f" at epsilon = {self.claim.epsilon:g}"
        return f"no violation exceeds the numerical error of the computation, and it cannot rule one out{known}."

    def _bounds(self) -> list[str]:
        """What an exact audit can say of its numerical error."""
        error = getattr(self.audit, "numerical_error", math.nan)
        return [] if math.isnan(error) else [f"The laws are off by at most {error:.1g}."]

    @property
    def _measured(self) -> str:
        return "its share of the runs is" if self.audit.sampled else "its probability is"

    def _probability(self, p: float) -> str:
        return brief(p, 4)

    def _impossible(self, side: int) -> str:
        if self.audit.sampled:
            return f"It was never seen with x = {1 - side}."
        return f"Whoever sees it knows that x = {side}."

    def _likelier(self, side: int, ratio: str) -> str:
        about = "about " if self.audit.sampled else ""
        return f"To whoever sees it, the odds on x = {side} are {about}{ratio} times what they were before."


class ExpectedWords(Words):
    """About averages: the paper's Definition 3."""

    audit: ExpectedAudit
    sees = "an average running time"
    observer = "Expected (the paper's Definition 3): compares average running times, over all other samples."
    uncovered = "Single results are not covered."

    @property
    def method(self) -> str:
        """How the verdict was made, in a few words."""
        if not self.audit.sampled:
            return super().method
        return f"{brief(self.audit.pairs or 0)} pairs of sequences, a paired comparison"

    @property
    def could(self) -> str:
        """Which difference would have been found."""
        if self.found.detectable is None:
            return "with so few pairs, or runs all alike, nothing could have been found."
        return (
            f"a difference of {brief(self.found.detectable)} samples or more between the two averages would have been"
            " found nine times out of ten, a smaller one perhaps not."
        )

    @property
    def guarantee(self) -> list[str]:
        """Paragraphs: how the verdict was made, and what is promised."""
        audit, chance = self.audit, self.audit.by_chance
        if not audit.sampled:
            sure = self.found.verdict == Verdict.CERTIFIED and self.claim.pure
            held = f"Every bin's log ratio is within {self.claim.text}. " if sure else ""
            return [
                "Both laws of the average running time, with x = 1 and with x = 0, were computed and compared in bins."
                " A gap between them counts only if it holds a whole number. Nothing was sampled, so there is no"
                " confidence level: the probabilities of tails are off by at most a share of about"
                f" {audit.numerical_error:.1g}.",
                "An average as near to the edge of a bin as it is uncertain may lie on either side. So every"
                " probability has a lower and an upper end, and a bin counts as outside or inside only if both are.",
                f"{held}A certificate is about unions of these bins. Finer bins may tell more.",
            ]
        made = [
            "Half of the drawn pairs of sequences choose where to look. The other half judges it, once, by a paired"
            " comparison of averages.",
            f"Promised: a verdict of violated although the claim holds has {self._chance}, up to the normal"
            " approximation of a mean (from 200 pairs on; fewer give no verdict). The bound on delta holds together"
            " with it.",
        ]
        if chance is not None:
            made.append(
                f"The histogram is not the evidence: {audit.bins_outside} of {audit.histogram.lo.size} bins lie outside"
                f" the tolerance. About {brief(chance)} of the bins that are exactly within it, or on its edge, would"
                " be put there by chance alone."
            )
        return made

    @property
    def curve(self) -> str:
        """What the privacy profile is of."""
        return "exact, averages in bins"

    def _violated(self) -> str:
        if math.isinf(self.found.epsilon_lower):
            side = 1 if self.found.witness is None or self.found.witness.p1 > self.found.witness.p0 else 0
            return (
                f"averaged over all other samples, some running times are possible with one value of {self.changed}"
                f" (x = {side}) and impossible with the other, so no finite epsilon holds."
            )
        if self._ratio is None:
            return super()._violated()
        changes = f"{self.changed} changes the chance of some running times {self._ratio}"
        return f"averaged over all other samples, {changes}."

    def _certified(self) -> str:
        h = self.audit.histogram
        return (
            f"for averages in bins of {h.hi[0] - h.lo[0]:g} samples: {self.changed} changes the chance of no average"
            f" running time by more than {self._allowed}."
        )

    @property
    def _measured(self) -> str:
        return "its probability is"

    def _probability(self, p: float) -> str:
        return f"{'at least ' if self.audit.sampled and p > 0.0 else ''}{brief(p, 4)}"

    def _impossible(self, side: int) -> str:
        return f"With x = {1 - side} it is impossible."

    def _likelier(self, side: int, ratio: str) -> str:
        return f"It is {ratio} times as likely with x = {side}."


class _RunWords(Words):
    """About one released result, from independent runs."""

    audit: MarginalAudit | BlackBoxAudit
    sees = "a single released result (running time and decision)"

    @property
    def method(self) -> str:
        """How the verdict was made, in a few words."""
        if not self.audit.sampled:
            return super().method
        return f"bets on x, {brief(2 * self.audit.runs)} runs, about half of them with x = 1"

    @property
    def guarantee(self) -> list[str]:
        """Paragraphs: how the verdict was made, and what is promised."""
        promised = f"Promised: a verdict of violated although the claim holds has {self._chance}"
        return [
            BETS,
            f"{promised}, whenever the runs stop. So has a bound on epsilon that exceeds the truth, and so has a bound"
            " on delta. No approximation is involved.",
        ]


class MarginalWords(_RunWords):
    """About one released result, to someone who knows no other sample."""

    audit: MarginalAudit
    observer = "Marginal: sees one released result (running time tau and decision o), knows no other sample."
    uncovered = "Observers who know other samples are not covered."

    @property
    def guarantee(self) -> list[str]:
        """Paragraphs: how the verdict was made, and what is promised."""
        if self.audit.sampled:
            return super().guarantee
        return [
            "Both laws of (tau, o) were computed outcome by outcome. Nothing was sampled, so there is no confidence"
            f" level: the laws as a whole are off by at most {self.audit.numerical_error:.1g}, which is taken off every"
            " bound.",
            f"The bound on epsilon is over tails of tau of probability {self.audit.floor:g} and more: rarer ones can"
            " have any ratio. The delta is over all events.",
        ]

    @property
    def curve(self) -> str:
        """What the privacy profile is of."""
        return "of the sampled runs" if self.audit.leakage_from == "sampled" else "exact, one released result"

    def _certified(self) -> str:
        return f"for one released result: {self.changed} changes no chance by more than {self._allowed}."


class BlackBoxWords(_RunWords):
    """About the runs of a user's mechanism."""

    observer = "Whoever sees what the sampler returns for one run."
    sees = "a single result"
    changed = "the entry under test"

    @property
    def guarantee(self) -> list[str]:
        """Paragraphs: how the verdict was made, and what is promised."""
        more = "Other entries, other inputs and events that were not looked at are not covered."
        return [*super().guarantee, more]


class InformedWords(Words):
    """About one released result, to someone who knows every other sample."""

    audit: InformedAudit
    sees = "to someone who knows all other samples, a single released result"
    observer = "Informed (standard differential privacy): sees one released result and knows every other sample."
    uncovered = "Other sequences are not covered."

    @property
    def method(self) -> str:
        """How the verdict was made, in a few words."""
        return f"exact laws of single sequences; the verdict is on {self.audit.worst}"

    @property
    def confidence(self) -> str:
        """The level of the verdict, and that of averages over sequences."""
        averages = f"; averages over sequences at {percent(self.claim.confidence)}" if self.audit.averages else ""
        return f"exact, not sampled{averages}"

    @property
    def guarantee(self) -> list[str]:
        """Paragraphs: how the verdict was made, and what is promised."""
        made = [
            "For a given sequence only the noise is random, and the law of the result was computed outcome by outcome."
            f" The verdict is a fact about {self.audit.worst}; it does not depend on luck."
        ]
        averages = self.audit.averages
        if averages is not None:
            one, zero = (
                f"{brief(mean.mean)} [{brief(mean.low)}, {brief(mean.high)}]"
                for mean in (averages.reveal_1, averages.reveal_0)
            )
            made.append(
                f"On average over {averages.sequences} drawn sequences the result reveals x = 1 with certainty with"
                f" probability {one}, and x = 0 with {zero}. Each interval holds at {percent(self.claim.confidence)}."
                " The privacy profile is an average over these sequences."
            )
        if self.found.verdict == Verdict.CERTIFIED:
            held = f"Every outcome's log ratio is within {self.claim.text}. " if self.claim.pure else ""
            made.append(f"{held}A certificate is about this one sequence.")
        return made

    @property
    def curve(self) -> str:
        """What the privacy profile is of."""
        averages = self.audit.averages
        if averages is None:
            return "exact, the given sequence"
        return f"average over {averages.sequences} drawn sequences, each exact"

    def _violated(self) -> str:
        who, where = "to someone who knows all other samples,", f"({self.audit.worst})"
        if math.isinf(self.found.epsilon_lower):
            return f"{who} some results give {self.changed} away with certainty {where}, so no finite epsilon holds."
        if self._ratio is not None:
            return f"{who} {self.changed} changes the chance of some result {self._ratio} {where}."
        delta = f"with a delta of {self.found.delta_lower:.4g}"
        return f"{who} the result tells more about {self.changed} than the claim allows, {delta} {where}."

    def _certified(self) -> str:
        return (
            f"on {self.audit.worst}: even to someone who knows all other samples, {self.changed} changes the chance of"
            f" no result by more than {self._allowed}."
        )

    def _undecided(self) -> str:
        running = max(self.audit.law.running)
        if running <= 0.0:
            return super()._undecided()
        return (
            f"there is no violation on {self.audit.worst}, but {brief(running)} of the runs outlast it, and what they"
            " would show is not known."
        )
