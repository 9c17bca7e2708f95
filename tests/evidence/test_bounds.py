"""Lower bounds on epsilon and delta: their level on exactly private laws, what they find, what they say they find."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.evidence import bounds
from dpsmc_audit.evidence.bounds import PARTS, Parts, bounded_verdict, part_of, shows
from dpsmc_audit.evidence.claims import Dp
from dpsmc_audit.evidence.events import Counted, outcome_code
from dpsmc_audit.evidence.power import detectable
from dpsmc_audit.evidence.profiles import privacy_profile
from dpsmc_audit.evidence.verdict import Detectable, Finding
from dpsmc_audit.observers.phrases import could_have_shown
from tests.support.private_pairs import CODED, one_sided


def parts_of(one: np.ndarray, zero: np.ndarray) -> Parts:
    part = part_of(0, one.size)
    members = [tuple(Counted.of(codes[part == k]) for k in range(PARTS)) for codes in (one, zero)]
    return Parts((members[0], members[1]))


def judged(one: np.ndarray, zero: np.ndarray, epsilon: float, confidence: float, **more: Any) -> Finding:
    """The verdict of runs."""
    return bounded_verdict(parts_of(one, zero), epsilon, more.pop("delta", 0.0), confidence, **more)


def rejects(one: np.ndarray, zero: np.ndarray, epsilon: float, confidence: float) -> bool:
    return judged(one, zero, epsilon, confidence, floor=None).verdict == "violated"


def naive(one: np.ndarray, zero: np.ndarray, epsilon: float, confidence: float) -> bool:
    """The error to avoid: the same runs make the events, choose among them and judge."""
    members = [tuple(Counted.of(codes) for _ in range(PARTS)) for codes in (one, zero)]
    found = bounded_verdict(Parts((members[0], members[1])), epsilon, 0.0, confidence, floor=None)
    return found.verdict == "violated"


def test_every_run_has_one_part_and_parts_do_not_depend_on_blocks() -> None:
    whole = part_of(0, 100)
    assert np.array_equal(np.concatenate([part_of(0, 37), part_of(37, 63)]), whole)
    assert np.bincount(whole).tolist() == [10, 30, 60]


@pytest.mark.parametrize("name", ["geometric, 0.5", "rounded Laplace, 1", "randomised response, 2"])
def test_false_alarms_keep_to_the_level(name: str) -> None:
    """200 audits of 600 runs at 80 %: at most 40 false alarms and three standard deviations."""
    (draw, epsilon), alarms = CODED[name], 0
    for seed in range(200):
        rng = np.random.default_rng([3, seed])
        alarms += rejects(draw(1, 600, rng), draw(0, 600, rng), epsilon, 0.8)
    assert alarms <= 40 + 3 * math.sqrt(200 * 0.2 * 0.8)


def test_choosing_and_judging_on_the_same_runs_does_not() -> None:
    """The same study would find the common error: it alarms in most of the audits."""
    draw, epsilon = CODED["geometric, 0.1"]
    alarms = 0
    for seed in range(50):
        rng = np.random.default_rng([3, seed])
        alarms += naive(draw(1, 600, rng), draw(0, 600, rng), epsilon, 0.8)
    assert alarms > 25


@given(
    st.lists(st.floats(0.05, 1.0), min_size=2, max_size=6),
    st.lists(st.floats(0.05, 1.0), min_size=6, max_size=6),
    st.floats(0.0, 1.0),
    st.integers(0, 2**32),
)
@settings(max_examples=60)
def test_bounds_stay_below_the_truth(first: list[float], second: list[float], epsilon: float, seed: int) -> None:
    """On random laws: epsilon for delta = 0 and delta for epsilon, exactly known; at 1 - 1e-6 none may be exceeded."""
    p1, p0 = np.array(first) / sum(first), np.array(second[: len(first)]) / sum(second[: len(first)])
    rng = np.random.default_rng(seed)
    one, zero = (outcome_code(rng.choice(p.size, 3000, p=p) + 1, np.zeros(3000, int)) for p in (p1, p0))
    found = bounded_verdict(parts_of(one, zero), epsilon, 0.0, 1 - 1e-6, floor=None)
    assert found.epsilon_lower <= np.abs(np.log(p1 / p0)).max()
    assert found.delta_lower <= privacy_profile(p1, p0, np.array([epsilon])).at(epsilon) + 1e-12


@pytest.mark.parametrize("delta", [0.0, 0.1, 0.6])
def test_bounds_find_what_is_there(delta: float) -> None:
    """floor(10 (x + Exp(1))): no epsilon holds, delta at epsilon = 1 is 1 - 1/e; 10^5 runs a side."""
    rng = np.random.default_rng(3)
    one, zero = one_sided(1, 100_000, rng), one_sided(0, 100_000, rng)
    found = judged(one, zero, 1.0, 0.99, delta=delta)
    assert found.verdict == "violated"
    assert found.epsilon_lower > (8.0 if delta == 0.0 else 5.0)
    assert 0.62 < found.delta_lower <= 1 - math.exp(-1)
    assert found.witness is not None
    assert found.witness.name == "tau <= 9"
    assert found.witness.p1 == 0.0
    too_much = judged(one, zero, 1.0, 0.99, delta=0.64)
    assert too_much.verdict == "consistent"


def test_either_direction_and_either_decision_is_found() -> None:
    """The leak is in the decision alone, or in the parity of tau, whichever member it favours."""
    rng, runs = np.random.default_rng(8), 4000
    tau = [rng.integers(1, 5, runs) for _ in range(2)]
    decision = [rng.random(runs) < p for p in (0.5, 0.9)]
    tossed = [rng.random(runs) < 0.5 for _ in range(2)]
    odd = [2 * rng.integers(1, 20, runs) + (rng.random(runs) < p) for p in (0.5, 0.9)]
    for taus, decisions in ((tau, decision), (odd, tossed)):
        codes = [outcome_code(t, d.astype(int)) for t, d in zip(taus, decisions, strict=True)]
        for one, zero in (codes, codes[::-1]):
            assert judged(one, zero, 0.2, 0.99).verdict == "violated"
            assert judged(one, zero, 2.5, 0.99).verdict == "consistent"


@pytest.mark.parametrize(("runs", "probability", "epsilon"), [(2000, 0.1, 0.1), (20_000, 0.01, 0.3), (3000, 0.5, 0.05)])
def test_what_is_called_detectable_is_detected(runs: int, probability: float, epsilon: float) -> None:
    """An event with the stated epsilon is found in at least 90 % of 60 audits, less three standard deviations.

    And one with 40 % of the distance to the claim in at most two thirds of them: the statement is not idle.
    """
    nothing = np.zeros(runs, int)
    same = outcome_code(1 + nothing, nothing)
    could = judged(same, same, epsilon, 0.95, floor=probability).could
    assert could is not None
    assert could.epsilon is not None
    assert could.epsilon > epsilon
    found = {1.0: 0, 0.4: 0}
    for share in found:
        excess = epsilon + share * (could.epsilon - epsilon)
        for seed in range(60):
            rng = np.random.default_rng([4, seed])
            one = outcome_code(1 + (rng.random(runs) > probability), nothing)
            zero = outcome_code(1 + (rng.random(runs) > probability * math.exp(-excess)), nothing)
            found[share] += rejects(one, zero, epsilon, 0.95)
    assert found[1.0] >= 60 * 0.9 - 3 * math.sqrt(60 * 0.9 * 0.1)
    assert found[0.4] <= 40


@given(st.integers(50, 10**5), st.floats(1e-3, 0.5), st.floats(0.0, 1.0), st.floats(1e-4, 0.1))
def test_more_runs_and_larger_violations_show_better(runs: int, p: float, epsilon: float, level: float) -> None:
    if shows(runs, p, p * math.exp(-2.0 - epsilon), epsilon, 0.0, level):
        assert shows(2 * runs, p, p * math.exp(-2.0 - epsilon), epsilon, 0.0, level)
        assert shows(runs, p, p * math.exp(-3.0 - epsilon), epsilon, 0.0, level)
    assert not shows(runs, p, p * math.exp(-epsilon), epsilon, 0.0, level)


def test_a_value_in_the_middle_of_many_is_looked_at() -> None:
    """Of 41 values of tau one inner one leaks, with the epsilon that is called detectable: found as often as said."""
    runs, epsilon = 20_000, 0.1
    p = np.full(41, 0.99 / 40)
    p[20] = 0.01
    rng = np.random.default_rng(11)
    same = [outcome_code(rng.choice(41, runs, p=p), np.zeros(runs, int)) for _ in range(2)]
    could = judged(same[0], same[1], epsilon, 0.95, floor=0.01).could
    assert could is not None
    assert could.epsilon is not None
    q = p.copy()
    q[20] *= math.exp(-could.epsilon)
    found = 0
    for _ in range(40):
        one, zero = (outcome_code(rng.choice(41, runs, p=law / law.sum()), np.zeros(runs, int)) for law in (p, q))
        found += rejects(one, zero, epsilon, 0.95)
    assert found >= 40 * 0.9 - 3 * math.sqrt(40 * 0.9 * 0.1)


def test_the_ends_that_are_judged_share_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two proportions for every judged event and direction: together their levels are 1 - confidence."""
    asked: list[tuple[int, float]] = []
    of = bounds._Ends.of

    def spy(one: np.ndarray, zero: np.ndarray, runs: tuple[int, int], level: float) -> bounds._Ends:
        asked.append((one.size, level))
        return of(one, zero, runs, level)

    rng = np.random.default_rng(1)
    one, zero = one_sided(1, 2000, rng), one_sided(0, 2000, rng)
    chosen: list[list[tuple[int, int]]] = []
    choose = bounds._chosen

    def spied_choice(*arguments: Any) -> list[tuple[int, int]]:
        chosen.append(choose(*arguments))
        return chosen[-1]

    monkeypatch.setattr(bounds._Ends, "of", staticmethod(spy))
    monkeypatch.setattr(bounds, "_chosen", spied_choice)
    bounded_verdict(parts_of(one, zero), 1.0, 0.0, 0.9, floor=None)
    events, level = asked[-1]
    assert events > 2
    assert 2 * len(chosen[0]) * level == pytest.approx(0.1)


def test_runs_that_judge_have_no_say_in_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other runs in the part that judges: the same events are chosen; in the part that chooses: others may be."""
    rng, seen = np.random.default_rng(2), []
    choose = bounds._chosen

    def spy(family: Any, *arguments: Any) -> list[tuple[int, int]]:
        found = choose(family, *arguments)
        seen.append([(direction, family.what(event)) for direction, event in found])
        return found

    monkeypatch.setattr(bounds, "_chosen", spy)
    draw = CODED["geometric, 0.5"][0]
    one, zero = draw(1, 2000, rng), draw(0, 2000, rng)
    for part in (2, 2, 1, 1, 1):
        bounded_verdict(parts_of(one, zero), 0.5, 0.0, 0.9, floor=None)
        mine = part_of(0, 2000) == part
        one[mine], zero[mine] = draw(1, int(mine.sum()), rng), draw(0, int(mine.sum()), rng)
    assert seen[0] == seen[1] == seen[2]
    assert any(other != seen[0] for other in seen[3:])


def test_what_could_have_been_seen_is_said_of_what_is_seen() -> None:
    """Nothing at the asked probability does not mean nothing at all."""
    could = Detectable(0.01, None, 0.2, {0.5: 2.7, 0.1: None})
    assert "an epsilon of 2.7 (a factor of 14.9) on an event of probability 0.5 " in could_have_shown(could)
    asked = could_have_shown(Detectable(0.01, 1.5, 0.2, {0.5: 1.1}))
    assert "an epsilon of 1.5 (a factor of 4.48) on an event of probability 0.01 " in asked
    never = could_have_shown(Detectable(0.01, None, 0.2, {0.5: None}))
    assert "of probability 0.2 that is impossible" in never
    assert "cannot show any violation" in could_have_shown(Detectable(0.01, None, None, {0.5: None}))


def test_what_could_have_shown_names_the_events_that_are_looked_at() -> None:
    """Fixed runs are judged on tails, bins and sets of bins; bets on tails and frequent values of the output."""
    rng = np.random.default_rng(3)
    one, zero = (outcome_code(rng.integers(0, 90, 2000), np.zeros(2000, int)) for _ in range(2))
    could = judged(one, zero, 0.5, 0.99).could
    assert could is not None
    assert could.as_dict()["events"] == "a tail, a bin or a set of bins"
    bets = detectable(Dp(0.5), 2000, 0.01, 0.01, 50)
    assert bets.as_dict()["events"] == "a tail of the output or a frequent value"


def test_few_runs_say_that_nothing_could_have_shown() -> None:
    nothing = np.zeros(30, int)
    found = judged(outcome_code(nothing, nothing), outcome_code(nothing, nothing), 1.0, 0.99)
    assert found.verdict == "consistent"
    assert found.could is not None
    assert found.could.epsilon is None
