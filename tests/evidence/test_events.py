"""Outcomes, cells and events."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.evidence.events import Cells, Counted, family_of, joined, outcome_code

outcomes = st.lists(st.tuples(st.integers(0, 300), st.sampled_from([-1, 0, 1])), min_size=1, max_size=80)
Outcomes = list[tuple[int, int]]


def coded(sample: Outcomes) -> np.ndarray:
    tau, decision = np.array(sample).T
    return outcome_code(tau, decision)


@given(outcomes)
def test_a_code_keeps_tau_and_decision(sample: Outcomes) -> None:
    counted = Counted.of(coded(sample))
    again = [
        (int(tau), int(decision))
        for tau, decision, count in zip(counted.tau, counted.decision, counted.counts, strict=True)
        for _ in range(count)
    ]
    assert again == sorted(sample)
    assert counted.runs == len(sample)


@given(outcomes, outcomes)
def test_joining_is_counting_together(one: Outcomes, zero: Outcomes) -> None:
    both, together = joined([Counted.of(coded(one)), Counted.of(coded(zero))]), Counted.of(coded(one + zero))
    assert np.array_equal(both.codes, together.codes)
    assert np.array_equal(both.counts, together.counts)


@given(outcomes, st.lists(st.integers(-1, 310), min_size=1, max_size=20, unique=True))
def test_cells_are_a_partition(sample: Outcomes, edges: list[int]) -> None:
    cells = Cells(np.array(sorted(edges)))
    counts = cells.count(Counted.of(coded(sample)))
    assert counts.sum() == len(sample)
    for tau, decision in sample:
        place = int(cells.place(outcome_code(np.array([tau]), np.array([decision])))[0])
        assert place // 3 == sum(edge < tau for edge in edges)
        assert place % 3 == decision + 1


def _holds(name: str, tau: int, decision: int) -> bool:
    """Is an outcome in the event with this name? The words are all there is to go by."""
    text = name.replace(" = ", " == ").replace("any tau", "True")
    for word, side in {"o == 0": 0, "o == 1": 1, "undecided": -1}.items():
        text = text.replace(word, f"decision == {side}")
    return bool(eval(text, {"tau": tau, "decision": decision}))


@given(outcomes, outcomes)
def test_the_name_of_an_event_says_what_it_holds(one: Outcomes, zero: Outcomes) -> None:
    """Of every tail, bin and set of cells: counted by its cells and by its words."""
    family = family_of(Counted.of(coded(one)), Counted.of(coded(zero)), most=8)
    assert set(family.kind) == {"tail", "bin", "ratio"}
    counts = family.count(Counted.of(coded(one)))
    for event in range(family.kind.size):
        name = family.what(event).name
        assert counts[event] == sum(_holds(name, *outcome) for outcome in one), name


def test_the_family_has_what_is_possible_for_one_member_only() -> None:
    one, zero = (Counted.of(outcome_code(np.arange(k, k + 200), np.zeros(200, int))) for k in (10, 0))
    family = family_of(one, zero, most=12)
    names = [family.what(event).name for event in range(family.kind.size)]
    assert "tau <= 9" in names
    assert "tau > 199" in names


@given(outcomes, outcomes)
def test_ratio_sets_hold_the_largest_ratios(one: Outcomes, zero: Outcomes) -> None:
    """No cell outside has a larger smoothed ratio than one inside, for the sets that start from the largest."""
    first, second = Counted.of(coded(one)), Counted.of(coded(zero))
    family = family_of(first, second)
    a, b = (family.cells.count(member) for member in (first, second))
    ratio, seen = (a + 0.5) / (b + 0.5), a + b > 0
    rows = family.holds[family.kind == "ratio"]
    for row in rows[: len(rows) // 2]:
        if np.any(seen & ~row):
            assert ratio[row].min() >= ratio[seen & ~row].max() - 1e-12
