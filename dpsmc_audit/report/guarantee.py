"""What exactly an audit promises: its method, its confidence, and what it leaves open."""

from __future__ import annotations

import math
from typing import Any

from dpsmc_audit.evidence.intervals import percent
from dpsmc_audit.evidence.verdict import rounded_up
from dpsmc_audit.report.svg import brief
from dpsmc_audit.report.words import changed, kind_of, number, sampled, verdict_of

__all__ = ["exact_beside", "guarantee", "method_name", "observer_is", "witness_in_words"]

OBSERVERS = {
    "expected": "Expected (the paper's Definition 3): compares average running times; the other samples are"
    " averaged away.",
    "marginal": "Marginal: sees one released result (running time tau and decision o), knows no other sample.",
    "informed": "Informed (standard differential privacy): sees one released result and knows every other sample.",
    "sampler": "Whoever sees what the sampler returns: the running time tau and the decision o of one run.",
}


def observer_is(result: dict[str, Any]) -> str:
    """Whose view was audited."""
    return OBSERVERS[kind_of(result)]


def method_name(result: dict[str, Any]) -> str:
    """In a few words, for a line of a table."""
    kind = kind_of(result)
    if kind == "informed":
        return f"exact laws of single sequences; the verdict is on {result['worst_sequence']}"
    if not sampled(result):
        return "exact laws, nothing sampled"
    if kind == "expected":
        return f"{brief(number(result['parameters']['pairs']))} pairs of sequences, a paired comparison"
    return f"{result['method']}, {brief(number(result['runs_used']))} runs with x = 1 and as many with x = 0"


def witness_in_words(result: dict[str, Any]) -> str | None:
    """The event that shows the violation, with its two probabilities."""
    witness = result.get("witness")
    if witness is None:
        return None
    one, zero = number(witness["p1"]), number(witness["p0"])
    kind = kind_of(result)
    least = "at least " if kind == "expected" and sampled(result) else ""
    shares = [f"{least if p > 0.0 else ''}{brief(p, 4)}" for p in (one, zero)]
    event = str(witness["event"]).replace("x_n", "x")
    what = "its share of the runs" if kind != "expected" and sampled(result) else "its probability"
    text = f"“{event}”: {what} is {shares[0]} with x = 1 and {shares[1]} with x = 0."
    side = 1 if one > zero else 0
    if min(one, zero) <= 0.0:
        if kind == "expected":
            return f"{text} With x = {1 - side} it is impossible."
        known = (
            f"It was never seen with x = {1 - side}." if sampled(result) else f"Whoever sees it knows that x = {side}."
        )
        return f"{text} {known}"
    ratio = brief(max(one, zero) / min(one, zero), 4)
    if kind == "expected":
        return f"{text} It is {ratio} times as likely with x = {side}."
    about = "about " if sampled(result) else ""
    return f"{text} To whoever sees it, the odds on x = {side} are {about}{ratio} times what they were before."


def exact_beside(result: dict[str, Any]) -> str | None:
    """The exact verdict beside a sampled one."""
    exact = result.get("exact")
    if exact is None or not sampled(result):
        return None
    lower, verdict = number(exact["epsilon_lower"]), exact["verdict"]
    verdict = "undecided" if verdict == "consistent" else verdict
    bound = "no finite ε holds" if math.isinf(lower) else f"ε is at least {brief(lower, 4)}"
    if verdict == "violated":
        delta = f"{number(exact['delta_lower']):.4g}"
        return f"Computed without sampling: violated, {bound}, δ at the claimed ε is {delta}."
    most = number(exact.get("delta_upper"))
    known = (
        f", δ at the claimed ε is at most {rounded_up(most)}" if verdict == "undecided" and not math.isnan(most) else ""
    )
    return f"Computed without sampling: {verdict}{known}."


def guarantee(result: dict[str, Any]) -> list[str]:
    """Paragraphs: how the verdict was made, what is promised, what is not."""
    kind = kind_of(result)
    made = {"expected": _expected, "marginal": _marginal, "informed": _informed, "sampler": _runs}[kind](result)
    if kind == "sampler":
        return [*made, "Other entries, other inputs and events that were not looked at are not covered."]
    here = result["parameters"]
    scope = f"p_φ = {here['p_phi']:g}, mechanism {here['mechanism']}, and a change of {changed(result)}"
    return [*made, f"All of this is for {scope}; other settings need their own audit."]


def _chance(result: dict[str, Any]) -> str:
    return percent(1.0 - number(result["confidence"]))


def _expected(result: dict[str, Any]) -> list[str]:
    if not sampled(result):
        return [
            "Both laws of the average running time, with x = 1 and with x = 0, were computed and compared in"
            " bins; a gap"
            " between them counts only if it holds a whole number. Nothing was sampled, so there is no"
            " confidence level:"
            f" the probabilities of tails are off by at most a share of about {number(result['numerical_error']):.1g}.",
            "An average as near to the edge of a bin as it is uncertain may lie on either side: probabilities are"
            " enclosed from both, and bins count as outside, or as inside, only if all of their enclosure is.",
            "A certificate is about unions of these bins. Finer bins may tell more.",
        ]
    made = [
        "Half of the drawn pairs of sequences choose where to look, the other half judge it, once, by a"
        " paired comparison"
        " of averages.",
        f"Promised: “violated” although the claim holds has a probability of at most {_chance(result)}, up to"
        " the normal"
        " approximation of a mean (from 200 pairs on; fewer give no verdict). The bound on δ holds together with it.",
    ]
    chance = result.get("bins_outside_expected_by_chance")
    if chance is not None:
        made.append(
            f"The histogram is not the evidence: {result['bins_outside']} of {result['bins']} bins lie outside the"
            f" tolerance, and about {brief(number(chance))} of the bins that are exactly within it or on its"
            " edge would be"
            " put there by chance alone."
        )
    return made


def _marginal(result: dict[str, Any]) -> list[str]:
    if sampled(result):
        return _runs(result)
    floor = number(result["parameters"]["floor"])
    return [
        "Both laws of (tau, o) were computed outcome by outcome. Nothing was sampled, so there is no"
        " confidence level: the"
        f" laws as a whole are off by at most {number(result['numerical_error']):.1g}, which is taken off every bound.",
        f"The bound on ε is over tails of tau of probability {floor:g} and more: rarer ones can have any"
        " ratio. The δ is"
        " over all events.",
    ]


def _informed(result: dict[str, Any]) -> list[str]:
    made = [
        "For a given sequence only the noise is random, and the law of the result was computed outcome by outcome."
        f" The verdict is a fact about {result['worst_sequence']}; it does not depend on luck.",
    ]
    if result.get("sequences") is not None:
        (low_1, high_1), (low_0, high_0) = result["reveal_1_ci"], result["reveal_0_ci"]
        made.append(
            f"On average over {result['sequences']} drawn sequences the result reveals x = 1 with certainty with"
            f" probability {brief(number(result['reveal_1']))} [{brief(number(low_1))},"
            f" {brief(number(high_1))}], and x = 0"
            f" with {brief(number(result['reveal_0']))} [{brief(number(low_0))}, {brief(number(high_0))}];"
            " each interval"
            f" holds at {percent(number(result['confidence']))}. The profile below is an average over these sequences."
        )
    if verdict_of(result) == "certified":
        made.append("A certificate is about this one sequence.")
    return made


_METHODS = {
    "split": "A tenth of the runs makes candidate events, three tenths choose among them, and six tenths"
    " judge the chosen"
    " ones by Clopper-Pearson bounds, which hold for every sample size.",
    "union": "A tenth of the runs makes candidate events, the rest judges all of them, each with its share"
    " of the level, by"
    " Clopper-Pearson bounds, which hold for every sample size.",
    "anytime": "Bets against the claim, looked at after every pair of runs and stopped as soon as the claim"
    " is refuted. No"
    " correction for looking often is needed; beyond the claim nothing is bounded.",
}


def _runs(result: dict[str, Any]) -> list[str]:
    promised = f"Promised: “violated” although the claim holds has a probability of at most {_chance(result)}"
    if result["method"] == "anytime":
        return [_METHODS["anytime"], f"{promised}, whenever the runs stop."]
    return [
        _METHODS[result["method"]],
        f"{promised}; and so has a bound on ε or on δ that exceeds the truth. No approximation is involved.",
    ]
