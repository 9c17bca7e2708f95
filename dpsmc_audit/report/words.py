"""A verdict in plain words: one sentence for people who do not know the theory, true for those who do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpsmc_audit.evidence.intervals import percent
from dpsmc_audit.evidence.verdict import rounded_up
from dpsmc_audit.report.svg import brief

__all__ = ["TITLES", "Words", "changed", "in_words", "kind_of", "meaning", "number"]

TITLES = {
    "violated": "The claim does not hold",
    "consistent": "No violation found, which is no proof",
    "certified": "The claim holds, within these limits",
    "undecided": "Undecided",
}


@dataclass(frozen=True)
class Words:
    """The top of a report: `verdict` is a key of `TITLES`; epsilon and delta, claimed and audited."""

    verdict: str
    sentence: str
    sure: str
    claimed: str
    claimed_delta: str
    audited: str
    audited_delta: str

    @property
    def title(self) -> str:
        return TITLES[self.verdict]


def number(value: Any) -> float:
    """A number of a result, from memory or from result.json."""
    return math.nan if value is None else float(value)


def kind_of(result: dict[str, Any]) -> str:
    """The observer of an audit, or `sampler` for a user's mechanism."""
    parameters = result["parameters"]
    return "sampler" if parameters.get("sampler") is not None else str(parameters["notion"])


def sampled(result: dict[str, Any]) -> bool:
    """Whether the verdict rests on random runs; that of the informed audit is about given sequences, exactly."""
    kind = kind_of(result)
    return kind == "sampler" or (kind != "informed" and result["parameters"]["engine"] != "exact")


def verdict_of(result: dict[str, Any]) -> str:
    """`consistent` of an exact audit is `undecided`: its numerical error, or the end of a sequence, leaves it open."""
    exact = not sampled(result)
    return "undecided" if exact and result["verdict"] == "consistent" else str(result["verdict"])


def changed(result: dict[str, Any]) -> str:
    """What differs between the two members."""
    if kind_of(result) == "sampler":
        return "the entry under test"
    entry = result["parameters"]["entry"]
    entries = entry if isinstance(entry, list) else [entry]
    if len(entries) == 1:
        return f"sample {entries[0]}"
    return f"samples {', '.join(str(e) for e in entries[:-1])} and {entries[-1]} together"


def meaning(result: dict[str, Any]) -> str:
    """What x is."""
    if kind_of(result) == "sampler":
        return "x is the entry under test, as the sampler is told it"
    negated = result["parameters"].get("relation") in ("lt", "le")  # then the negated specification is tested
    entry = result["parameters"]["entry"]
    if isinstance(entry, list) and len(entry) > 1:
        return f"x = 1 means that they {'violate' if negated else 'satisfy'} the specification, x = 0 the opposite"
    return f"x = 1 means that it {'violates' if negated else 'satisfies'} the specification, x = 0 the opposite"


def _factors(claimed: float, found: float) -> tuple[str, str]:
    """e^claimed and, rounded down, e^found, with as many digits as it takes to tell them apart."""
    for digits in range(3, 9):
        texts = [brief(math.exp(claimed), digits) if claimed < 14 else "a million and more"]
        texts.append(brief(_down(math.exp(found), digits), digits) if found < 14 else "a million")
        if texts[0] != texts[1]:
            break
    return texts[0], texts[1]


def _down(value: float, digits: int) -> float:
    """With so many digits, and not above the value."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.floor(value / step) * step


def _delta(value: float) -> str:
    """A lower bound on delta, however small."""
    return brief(value, 4) if value >= 1e-6 or value == 0.0 else f"{value:.4g}"


def in_words(result: dict[str, Any]) -> Words:
    """Of any audit's result."""
    verdict, epsilon = verdict_of(result), number(result["epsilon_claimed"])
    delta = number(result.get("delta_claimed", 0.0))
    text = {"violated": _violated, "consistent": _consistent, "certified": _certified, "undecided": _undecided}[verdict]
    sure = "computed exactly, not sampled"
    if sampled(result):
        sure = f"at {percent(number(result['confidence']))} confidence"
    audited, audited_delta = _audited(result, verdict)
    return Words(verdict, text(result), sure, f"{epsilon:g}", f"{delta:g}", audited, audited_delta)


def _audited(result: dict[str, Any], verdict: str) -> tuple[str, str]:
    """The audited epsilon and delta beside the claimed ones."""
    epsilon, lower = number(result["epsilon_claimed"]), number(result["epsilon_lower"])
    least = number(result["delta_lower"])
    if verdict == "certified":
        return f"at most {epsilon:g}", "0"
    bets = result.get("method") == "anytime"
    if verdict == "violated":
        delta = f"more than {number(result.get('delta_claimed', 0.0)):g}" if bets else f"at least {_delta(least)}"
        if math.isinf(lower):
            return "no finite value", delta
        return (f"at least {brief(lower, 4)}" if lower > epsilon else f"more than {epsilon:g}"), delta
    most = number(result.get("delta_upper"))
    if verdict == "undecided" and not math.isnan(most):
        return "no bound found" if lower <= 0.0 else f"at least {brief(lower, 4)}", f"at most {rounded_up(most)}"
    if bets or lower <= 0.0:
        return "no bound found", "no bound found"
    return f"at least {brief(lower, 4)}", "no bound found" if least <= 0.0 else f"at least {_delta(least)}"


# --- violated -------------------------------------------------------------------------------------------------------


def _violated(result: dict[str, Any]) -> str:
    return f"The privacy claim does not hold: {_HOW[kind_of(result)](result)}"


def _ratio(result: dict[str, Any]) -> str | None:
    """The factor that was found, or None where only a delta contradicts the claim."""
    epsilon, lower = number(result["epsilon_claimed"]), number(result["epsilon_lower"])
    if not lower > epsilon or math.isinf(lower):
        return None
    allowed, found = _factors(epsilon, lower)
    return f"by a factor of at least {found}, where the claim allows about {allowed}"


def _likelier(result: dict[str, Any]) -> int:
    return 1 if number(result["witness"]["p1"]) > number(result["witness"]["p0"]) else 0


def _expected(result: dict[str, Any]) -> str:
    what = changed(result)
    if math.isinf(number(result["epsilon_lower"])):
        return (
            "averaged over all other samples, some running times are possible with one value of"
            f" {what} (x = {_likelier(result)}) and impossible with the other. No finite ε allows that."
        )
    return f"averaged over all other samples, {what} changes the chance of some running times {_ratio(result)}."


def _one_result(result: dict[str, Any]) -> str:
    """Marginal, and users' mechanisms."""
    what, who = changed(result), "a single released result (running time and decision)"
    if result.get("method") == "anytime":
        return (
            f"{who} tells more about {what} than it allows. {brief(number(result['runs_used']))} runs with either value"
            " were enough to refute it."
        )
    if math.isinf(number(result["epsilon_lower"])):
        return f"{who} can occur with one value of {what} and is impossible with the other."
    ratio = _ratio(result)
    if ratio is not None:
        return f"{who} can shift the odds on {what} {ratio}."
    beyond = number(result["delta_lower"])
    allowed = number(result.get("delta_claimed", 0.0))
    return (
        f"{who} tells more about {what} than ε = {number(result['epsilon_claimed']):g} allows, with a δ of at least"
        f" {_delta(beyond)} where the claim has {allowed:g}."
    )


def _informed(result: dict[str, Any]) -> str:
    what, where = changed(result), result["worst_sequence"]
    if math.isinf(number(result["epsilon_lower"])):
        return (
            f"to someone who knows all other samples, some results give {what} away with certainty"
            f" (found on {where}). No finite ε allows that."
        )
    ratio = _ratio(result)
    if ratio is not None:
        return f"to someone who knows all other samples, {what} changes the chance of some result {ratio} ({where})."
    return (
        f"to someone who knows all other samples, the result tells more about {what} than the claim allows, with a δ of"
        f" {_delta(number(result['delta_lower']))} ({where})."
    )


_HOW = {"expected": _expected, "marginal": _one_result, "sampler": _one_result, "informed": _informed}


# --- not violated ---------------------------------------------------------------------------------------------------


def _consistent(result: dict[str, Any]) -> str:
    return f"No violation of the privacy claim was found. That is no proof: {_could(result)}"


def _could(result: dict[str, Any]) -> str:
    """What these runs would have shown with probability 0.9."""
    if kind_of(result) == "expected":
        difference = result.get("detectable_difference")
        if difference is None:
            return "with so few pairs, or runs all alike, nothing could have been found."
        return (
            f"a difference of {brief(number(difference))} samples or more between the two averages would have been"
            " found nine times out of ten, a smaller one perhaps not."
        )
    could = result["detectable"]
    known = {float(p): x for p, x in could["epsilon_by_event_probability"].items() if x is not None}
    asked = number(could["event_probability"])
    if could["epsilon"] is not None:
        known[asked] = could["epsilon"]
    if known:
        p = asked if asked in known else min(known)
        ratio = brief(math.exp(known[p]))
        what = f"a tail or bin of running times of probability {p:g} that differs by a factor of {ratio}"
    elif could["delta"] is not None:
        share = brief(number(could["delta"]))
        what = f"a tail or bin of running times of probability {share} that is impossible with the other value"
    else:
        return "so few runs could have shown nothing."
    return f"{what} would have been found nine times out of ten, other violations perhaps not."


def _certified(result: dict[str, Any]) -> str:
    what, epsilon = changed(result), number(result["epsilon_claimed"])
    allowed = _factors(epsilon, 2.0 * epsilon)[0]
    kind = kind_of(result)
    if kind == "expected":
        width = result["parameters"]["bin_width"]
        bins = "In the bins looked at" if width is None else f"In bins of {width:g} samples"
        return (
            f"The privacy claim holds for averages. {bins}, no running time averaged over the other samples"
            " is more than"
            f" about {allowed} times as likely with one value of {what} as with the other. Single results are"
            " not covered."
        )
    if kind == "marginal":
        return (
            f"The privacy claim holds for one released result: {what} changes no chance by more than a factor of"
            f" about {allowed}. Observers who know other samples are not covered."
        )
    return (
        f"The privacy claim holds on {result['worst_sequence']}: even to someone who knows all other samples, {what}"
        f" changes the chance of no result by more than a factor of about {allowed}. Other sequences are not covered."
    )


def _undecided(result: dict[str, Any]) -> str:
    runs_on = max((number(x) for x in result.get("shown_running", {}).values()), default=0.0)
    if kind_of(result) == "informed" and runs_on > 0.0:
        return (
            f"Undecided: no violation on {result['worst_sequence']}, but {brief(runs_on)} of the runs outlast it, and"
            " what they would show is not known."
        )
    most = number(result.get("delta_upper"))
    known = "" if math.isnan(most) else f": the claim surely holds with a δ of {rounded_up(most)}"
    return f"Undecided: no violation exceeds the numerical error of the computation, and it cannot rule one out{known}."
