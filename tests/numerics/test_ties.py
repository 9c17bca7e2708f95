"""What is chosen among floating-point numbers does not depend on how they were rounded."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsmc_audit.evidence.profiles import best_tail, largest, worst_event
from dpsmc_audit.evidence.shown import best_range
from dpsmc_audit.evidence.witness import Event, Outcomes
from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.numerics.sums import convolution, dot, tilted
from dpsmc_audit.numerics.ties import best_of, exceeds, ranked
from dpsmc_audit.observers.expected.edges import Tails
from dpsmc_audit.observers.expected.law import ExpectedLaw, SupportGap
from dpsmc_audit.observers.expected.verdicts import exact_verdict
from dpsmc_audit.observers.informed.audit import best_outcome
from dpsmc_audit.observers.informed.law import InformedLaw
from dpsmc_audit.observers.informed.outcomes import Ends
from dpsmc_audit.observers.marginal.law import MarginalLaw
from tests.support.documents import TOP

pytestmark = pytest.mark.processor

EPSILON = 0.1
SIZE = 60
OFF = 2.0**-52
shaken = arrays(np.float64, (2, SIZE), elements=st.integers(-3, 3).map(lambda k: 1.0 + k * OFF))
"""Factors by which rounding may change numbers: up to three units in the last place."""


def plateau() -> tuple[np.ndarray, np.ndarray]:
    """Laws of tau = 1, 2, ...: from the eleventh on every outcome is e^epsilon times as likely with x_n = 0."""
    zero = 0.9 ** np.arange(SIZE)
    zero /= zero.sum()
    one = zero * math.exp(-EPSILON)
    one[:10] = zero[:10] * (1.0 - one[10:].sum()) / zero[:10].sum()
    return one, zero


# --- the rules themselves -------------------------------------------------------------------------------------------


numbers = st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5, math.inf, -math.inf]), min_size=1, max_size=12)


@given(numbers, st.data())
def test_rounding_chooses_nothing(scores: list[float], data: st.DataObject) -> None:
    size = len(scores)
    sizes = data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=size, max_size=size))
    off = np.array(data.draw(st.lists(st.integers(-4, 4), min_size=size, max_size=size)))
    moved, resized = np.array(scores) * (1.0 + off * OFF), np.array(sizes) * (1.0 - off * OFF)
    assert best_of(moved, resized) == best_of(scores, sizes)
    assert ranked(moved, resized).tolist() == ranked(scores, sizes).tolist()
    assert ranked(moved).tolist() == ranked(scores).tolist()
    exact = sorted(range(size), key=lambda k: (-scores[k], -sizes[k], k))  # no two of these numbers are close
    assert ranked(scores, sizes).tolist() == exact
    assert best_of(scores, sizes) == exact[0]
    assert ranked(scores).tolist() == sorted(range(size), key=lambda k: (-scores[k], k))


def test_numbers_that_are_none_come_last() -> None:
    assert best_of([math.nan, 1.0, 2.0]) == 2
    assert ranked([math.nan, 1.0, 2.0]).tolist() == [2, 1, 0]
    assert exceeds(1.0 + 1e-8, 1.0)
    assert not exceeds(1.0 + 1e-14, 1.0)
    assert not exceeds(math.inf, math.inf)


@given(arrays(np.float64, 40, elements=st.floats(-1.0, 1.0)), arrays(np.float64, 40, elements=st.floats(-1.0, 1.0)))
def test_sums_in_one_order(a: np.ndarray, b: np.ndarray) -> None:
    """They carry their rounding along: as exact as the exact sum, rounded once, but for the products."""
    assert dot(a, b) == pytest.approx(math.fsum((a * b).tolist()), rel=1e-15, abs=1e-17)
    exact = math.fsum(x * math.exp(0.7 * y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert tilted(a, 0.7, b) == pytest.approx(exact, rel=1e-13, abs=1e-14)
    np.testing.assert_allclose(convolution(a, b[:7]), np.convolve(a, b[:7]), rtol=0, atol=1e-14)


# --- what they are used for -----------------------------------------------------------------------------------------


@given(shaken)
def test_the_best_tail_of_a_plateau_is_its_most_probable(factors: np.ndarray) -> None:
    """All tails from the eleventh outcome on have the same ratio: rounding would choose any."""
    one, zero = plateau()
    found = best_tail(one * factors[0], zero * factors[1], floor=1e-3)
    assert found is not None
    assert found.name == best_tail(one, zero, floor=1e-3).name == "tau > 10"  # type: ignore[union-attr]
    assert found.p0 == pytest.approx(zero[10:].sum(), rel=1e-12)


@given(shaken)
def test_the_best_tail_with_a_decision(factors: np.ndarray) -> None:
    """Tails with either decision are tied with those of tau alone where both decisions share the plateau."""
    one, zero = plateau()
    laws = [np.array([0.5 * p * f, 0.5 * p / f, np.zeros(SIZE)]) for p, f in zip((one, zero), factors, strict=True)]
    found = MarginalLaw(laws[0], laws[1], 0.0, 0.0, "made up").best(1e-3)
    assert found is not None
    assert found.name == "tau > 10"


@given(shaken)
def test_the_worst_event_leaves_out_what_sits_on_the_line(factors: np.ndarray) -> None:
    """Of sixty outcomes ten exceed the claim and thirty sit on it."""
    zero = 0.9 ** np.arange(SIZE) / 20.0
    one = zero * np.exp(np.repeat([3.0, 1.0, -1.0], [10, 30, 20]) * EPSILON)
    delta, event = worst_event(one * factors[0], zero * factors[1], EPSILON)
    assert event.name == "one of 10 outcomes over e^0.1 times as likely with x_n = 1"
    assert delta == pytest.approx(float((one - zero * math.exp(EPSILON))[:10].sum()), rel=1e-12)
    assert [event.p1, event.p0] == pytest.approx([one[:10].sum(), zero[:10].sum()])


def no_ends() -> Ends:
    """Laws that are made up here have no enclosures, and none is looked at."""
    raise AssertionError


@given(shaken, st.sampled_from([0.02, 0.1, 0.3]))
def test_an_informed_event_is_the_same_and_no_larger_than_it_must_be(factors: np.ndarray, floor: float) -> None:
    """One outcome reveals the sample, the others have one ratio each way: no more is taken than needed."""
    one, zero = plateau()
    one[0], zero[0] = one[0] + zero[0], 0.0
    laws = [
        InformedLaw(np.arange(1, SIZE + 1), np.ones(SIZE, np.int8), one * f[0], zero * f[1], SIZE, no_ends)
        for f in (np.ones((2, SIZE)), factors)
    ]
    exact, found = (best_outcome(law, floor) for law in laws)
    assert exact is not None
    assert found is not None
    assert found.name == exact.name
    assert found.p1 == pytest.approx(exact.p1, rel=1e-12)
    assert found.p0 == pytest.approx(exact.p0, rel=1e-12, abs=1e-15)


def test_the_smallest_outcome_that_is_enough_is_taken() -> None:
    """0.05 is revealed, and of three outcomes with one ratio the one that makes 0.1 of it is enough."""
    p1 = np.array([0.05, 0.2, 0.06, 0.3, 0.39])
    law = InformedLaw(
        np.arange(1, 6), np.ones(5, np.int8), p1, np.array([0.0, 0.1, 0.03 * (1 + 4 * OFF), 0.15, 0.72]), 5, no_ends
    )
    found = best_outcome(law, 0.1)
    assert found is not None
    assert found.name == "one of 2 outcomes that are likelier with x_n = 1"
    assert [found.p1, found.p0] == pytest.approx([0.11, 0.03])


@given(shaken)
def test_the_witness_of_an_expected_law_is_the_most_probable_bin(factors: np.ndarray) -> None:
    """Every bin from the eleventh on exceeds the claim by as much."""
    tail_1, tail_0 = (np.cumsum((p * f)[::-1])[::-1] for p, f in zip(plateau(), factors, strict=True))
    start = Enclosure.around(0.0, 0.0, "made up")
    one, zero = (Tails(tail, tail, tail, np.full(SIZE, math.nan)) for tail in (tail_1, tail_0))
    edges, gap = 10.0 * np.arange(float(SIZE)), SupportGap(0.0, 0.0, 0.0)
    law = ExpectedLaw(edges, one, zero, start, start, gap, "made up", np.zeros(SIZE, np.bool_), 1.0, 0.0)
    found = exact_verdict(law, 0.7 * EPSILON)
    assert found.witness is not None
    assert found.witness.name == "100 <= average termination time < 110"


def test_equal_events_are_chosen_by_their_probability() -> None:
    rare, common = Event(Outcomes(1, 1), 0.02, 0.01 * (1 + 4 * OFF)), Event(Outcomes(2, 1), 0.2, 0.1 * (1 - 4 * OFF))
    for events in ([rare, common], [common, rare], [None, rare, common]):
        assert largest(events) is common
    swapped = [Event(e.what, e.p1 * (1 + 8 * OFF), e.p0) for e in (rare, common)]
    assert largest([swapped[0], common]) is common


def test_the_cells_of_a_witness_are_the_same_whatever_the_rounding() -> None:
    """An event and its complement speak equally against a claim of 0: the one that begins first is shown."""
    counts = np.array([[30.0, 20.0, 10.0, 40.0], [10.0, 40.0, 30.0, 20.0]])
    usual = best_range(counts, 0.0)
    for seed in range(5):
        off = OFF * np.random.default_rng(seed).integers(-3, 4, counts.shape)
        assert best_range(counts * (1.0 + off), 0.0) == usual


# --- and where they are not -----------------------------------------------------------------------------------------


CHOOSING = {"argmax", "argmin", "nanargmax", "nanargmin", "idxmax", "idxmin", "argsort"}
ADDING = {"dot", "vdot", "inner", "matmul", "tensordot", "einsum", "convolve", "correlate", "linalg", "fastmath"}
EXCUSED = {
    "dpsmc_audit/numerics/ties.py": "the rules",
    "dpsmc_audit/numerics/sums.py": "the sums",
    "dpsmc_audit/tasks/simulate_model.py": "the first of some booleans",
    "dpsmc_audit/models/recorded.py": "the first of some booleans",
    "dpsmc_audit/verify/run.py": "the first of some booleans",
    "dpsmc_audit/evidence/codes.py": "whole numbers",
    "dpsmc_audit/evidence/columns.py": "the first of some booleans",
    "dpsmc_audit/evidence/derived.py": "entries of an output as they are",
    "dpsmc_audit/evidence/game.py": "the first of some booleans",
    "dpsmc_audit/evidence/samples.py": "the first of some booleans",
    "dpsmc_audit/evidence/scores.py": "scores are rounded to six digits before they are used",
    "dpsmc_audit/evidence/shown.py": "rounded to nine digits; the first of equals",
    "dpsmc_audit/evidence/events.py": "whole numbers, and their ratios, rounded once",
    "dpsmc_audit/observers/marginal/law.py": "whole numbers of any size",
    "dpsmc_audit/evidence/profiles.py": "the place of a number in a grid that holds it",
    "dpsmc_audit/certificate.py": "sums are enclosed, and rounded outwards to eight digits",
    "dpsmc_audit/observers/informed/audit.py": "the surest outcomes; a proof needs no particular ones of equals",
    "dpsmc_audit/exact/prefix.py": "walks in the order of their heights; equal ones are added up either way",
    "dpsmc_audit/sampling/pairs.py": "whole numbers below 2^53, which add up to the same in any order",
    "experiments/counterexample.py": "the one outcome of probability 1",
}


def _suspicious(tree: ast.AST) -> bool:
    """Does it choose among numbers, or add them, in ways that go with the processor?"""
    for node in ast.walk(tree):
        name = getattr(node, "attr", None) or (node.arg if isinstance(node, ast.keyword) else None)
        if name in CHOOSING | ADDING or isinstance(getattr(node, "op", None), ast.MatMult):
            module = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sums"
            if not module:
                return True
    return False


def test_no_other_code_leaves_a_choice_or_a_sum_to_the_processor() -> None:
    """A new use needs a rule of `ties`, a sum of `sums`, or an excuse here; an excuse that is not used goes."""
    sources = [*(TOP / "dpsmc_audit").rglob("*.py"), *(TOP / "experiments").glob("*.py")]
    found = {
        path.relative_to(TOP).as_posix() for path in sources if _suspicious(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found - {*EXCUSED} == set()
    assert {*EXCUSED} - found <= {"dpsmc_audit/numerics/sums.py"}
