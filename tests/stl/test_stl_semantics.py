"""Truth and robustness of formulas: against the definition, against another monitor, and by laws of the logic."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.stl import Formula, parse, semantics, syntax
from dpsmc_audit.stl.program import samples
from dpsmc_audit.stl.syntax import Interval
from dpsmc_audit.stl.traces import Traces
from tests.support.strategies_stl import STEP, batches, cases, intervals, nodes
from tests.support.twins_stl import Twin

ANSWERS = json.loads((Path(__file__).parents[1] / "support" / "oracles" / "rtamt_answers.json").read_text())


def by_definition(formula: Formula, traces: Traces, *, robust: bool) -> list[Any]:
    """The twin's value at time 0 of each trace."""
    rows = [{name: list(values[i]) for name, values in traces.signals.items()} for i in range(traces.count)]
    return [Twin(row, traces.step, robust).values(formula.root)[0] for row in rows]


# --- against the definition and against another monitor ---


@settings(max_examples=300)
@given(cases(nodes()))
def test_truth_and_robustness_are_those_of_the_definition(case: tuple[Formula, Traces]) -> None:
    formula, traces = case
    assert formula.truth(traces).tolist() == by_definition(formula, traces, robust=False)
    assert formula.robustness(traces).tolist() == by_definition(formula, traces, robust=True)


@given(st.data(), nodes(leaves=2), nodes(leaves=2), intervals(12))
def test_until_is_that_of_the_definition(
    data: st.DataObject, left: syntax.Node, right: syntax.Node, interval: Interval
) -> None:
    formula = Formula(syntax.Until(left, interval, right))
    traces = data.draw(batches(formula, spare=20))
    assert formula.truth(traces).tolist() == by_definition(formula, traces, robust=False)
    assert formula.robustness(traces).tolist() == by_definition(formula, traces, robust=True)


def test_there_are_enough_answers_of_rtamt() -> None:
    texts = [case["formula"] for case in ANSWERS["cases"]]
    assert len(texts) >= 700
    assert sum("until[" in text for text in texts) >= 300
    values = np.array([case["robustness"] for case in ANSWERS["cases"]])
    assert 0.25 < np.mean(values > 0.0) < 0.75


def test_robustness_is_that_of_rtamt() -> None:
    signals = {name: np.array(values) for name, values in ANSWERS["signals"].items()}
    for case in ANSWERS["cases"]:
        formula, traces = parse(case["formula"]), Traces(case["step"], signals)
        expected = np.array(case["robustness"])
        np.testing.assert_array_equal(formula.robustness(traces), expected, err_msg=case["formula"])
        decided = expected != 0.0
        assert np.array_equal(formula.truth(traces)[decided], expected[decided] > 0.0), case["formula"]


@pytest.mark.parametrize("width", [1, 2, 7, 63, 64, 65, 499, 500, 998])
def test_long_windows_of_long_traces(width: int) -> None:
    x = np.random.default_rng(width).normal(size=(20, 1000))
    inner = np.lib.stride_tricks.sliding_window_view(x, width, axis=1).max(axis=2)  # sample, width
    outer = inner[:, 2 : 1000 - width + 1].min(axis=1)
    end = (1000 - width) / 1000
    formula = parse(f"always[0.002,{end}] eventually[0,{(width - 1) / 1000}] (x > 0)")
    np.testing.assert_array_equal(formula.robustness(Traces(0.001, {"x": x})), outer)


# --- laws of the logic ---


@given(cases(nodes()))
def test_the_sign_of_robustness_tells_the_truth(case: tuple[Formula, Traces]) -> None:
    formula, traces = case
    robustness, truth = formula.robustness(traces), formula.truth(traces)
    assert np.all(truth[robustness > 0.0])
    assert not np.any(truth[robustness < 0.0])


@given(cases(nodes()))
def test_negation_turns_truth_and_robustness_around(case: tuple[Formula, Traces]) -> None:
    formula, traces = case
    negated = Formula(syntax.Not(formula.root))
    assert np.array_equal(negated.truth(traces), ~formula.truth(traces))
    assert np.array_equal(negated.robustness(traces), -formula.robustness(traces))
    twice = Formula(syntax.Not(negated.root))
    assert np.array_equal(twice.robustness(traces), formula.robustness(traces))


@given(st.data(), nodes(), intervals())
def test_always_is_not_eventually_not_and_eventually_is_true_until(
    data: st.DataObject, node: syntax.Node, interval: Interval
) -> None:
    always, eventually = Formula(syntax.Always(interval, node)), Formula(syntax.Eventually(interval, node))
    dual = Formula(syntax.Not(syntax.Eventually(interval, syntax.Not(node))))
    until = Formula(syntax.Until(syntax.Constant(True), interval, node))
    traces = data.draw(batches(always))
    assert np.array_equal(always.robustness(traces), dual.robustness(traces))
    assert np.array_equal(eventually.robustness(traces), until.robustness(traces))
    assert np.array_equal(always.truth(traces), dual.truth(traces))
    assert np.array_equal(eventually.truth(traces), until.truth(traces))


@given(st.data(), nodes(unbounded=False), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_a_wider_window_makes_eventually_easier_and_always_harder(
    data: st.DataObject, node: syntax.Node, begin: int, more: int, wider: int
) -> None:
    narrow = Interval(begin * STEP, (begin + more) * STEP)
    wide = Interval(0.0, (begin + more + wider) * STEP)
    traces = data.draw(batches(Formula(syntax.Always(wide, node))))
    for kind, sign in ((syntax.Eventually, 1.0), (syntax.Always, -1.0)):
        values = [Formula(kind(interval, node)).robustness(traces) for interval in (narrow, wide)]
        assert np.all(sign * values[0] <= sign * values[1])


@given(cases(nodes(negation=False)), st.integers(0, 8))
def test_adding_to_every_predicate_adds_to_robustness(case: tuple[Formula, Traces], quarters: int) -> None:
    """Without negation robustness moves with the margins: f - g + c in place of f - g everywhere adds c."""
    formula, traces = case
    shifted = Formula(_shifted(formula.root, syntax.Number(quarters / 4)))
    assert np.array_equal(shifted.robustness(traces), formula.robustness(traces) + quarters / 4)
    assert np.all(shifted.truth(traces) >= formula.truth(traces))


def _shifted(node: syntax.Node, by: syntax.Number) -> syntax.Node:
    match node:
        case syntax.Predicate(sign, left, right):
            return syntax.Predicate(sign, syntax.Arithmetic("+", left, by), right)
        case syntax.And(operands) | syntax.Or(operands):
            return type(node)(tuple(_shifted(operand, by) for operand in operands))
        case syntax.Always(interval, operand) | syntax.Eventually(interval, operand):
            return type(node)(interval, _shifted(operand, by))
        case syntax.Until(left, interval, right):
            return syntax.Until(_shifted(left, by), interval, _shifted(right, by))
    return node


@given(cases(nodes()), st.integers(1, 4))
def test_the_trace_before_an_interval_does_not_matter(case: tuple[Formula, Traces], late: int) -> None:
    """eventually[t,t] phi is phi on the trace from t on."""
    formula, traces = case
    moved = Formula(syntax.Eventually(Interval(late * STEP, late * STEP), formula.root))
    rng = np.random.default_rng(late)
    longer = {
        name: np.hstack([rng.normal(size=(traces.count, late)), values]) for name, values in traces.signals.items()
    }
    assert np.array_equal(moved.robustness(Traces(STEP, longer)), formula.robustness(traces))


# --- the paper ---


@pytest.mark.parametrize(
    ("velocity", "battery", "satisfied"),
    [
        (lambda t: 20.0 + 0.0 * t, lambda t: 1.0 - 0.1 * t, True),  # low at 8 s and fast until then
        (lambda t: 20.0 + 0.0 * t, lambda t: 1.0 - 0.07 * t, False),  # not yet low at 10 s
        (lambda t: 20.0 - 2.5 * t, lambda t: 1.0 - 0.1 * t, False),  # too slow from 6 s on
        (lambda t: np.where(t < 8.05, 6.0, 0.0), lambda t: 1.0 - 0.1 * t, True),  # slow once it is low: not asked
        (lambda t: 0.0 * t, lambda t: 0.1 + 0.0 * t, True),  # low from the start: nothing asked of the velocity
        (lambda t: np.where(t == 3.0, 5.0, 6.0), lambda t: 1.0 - 0.1 * t, False),  # once not above 5
    ],
)
def test_the_papers_electric_vehicle(velocity: Any, battery: Any, satisfied: bool) -> None:
    """Example 1: the velocity is above 5 until the battery drops below 0.2, which it does within 10 time units."""
    times = np.arange(121) * 0.1
    traces = Traces(0.1, {"velocity": velocity(times)[None], "battery": battery(times)[None]})
    formula = parse("(velocity > 5) until[0,10] (battery < 0.2)")
    assert formula.truth(traces).tolist() == [satisfied]
    robustness = formula.robustness(traces)[0]
    assert robustness == 0.0 or (robustness > 0.0) == satisfied


def test_the_papers_powertrain_property() -> None:
    e = np.zeros((4, 1001))
    e[0, :800] = 1.0  # before the interval
    e[1, 800], e[2, 1000], e[3, 900] = 0.06, -0.05, 0.0499  # begin, end (on the bound), inside
    traces = Traces(0.001, {"e": e})
    formula = parse("always[0.8,1] (abs(e) < 0.05)")
    assert formula.truth(traces).tolist() == [True, False, False, True]
    assert formula.robustness(traces) == pytest.approx([0.05, -0.01, 0.0, 0.0001])


@pytest.mark.parametrize("sign", [">", ">="])
def test_comparisons_are_as_in_the_paper(sign: str) -> None:
    """f >= 0 is not (-f > 0)."""
    traces = Traces(1.0, {"f": np.array([[-1.0], [0.0], [1.0]])})
    assert parse(f"f {sign} 0").truth(traces).tolist() == [False, sign == ">=", True]
    assert np.array_equal(parse("f >= 0").truth(traces), parse("not (-f > 0)").truth(traces))


# --- the end of the trace, samples, batches ---


def test_windows_inside_an_open_interval_meet_the_end_of_the_trace() -> None:
    traces = Traces(1.0, {"x": np.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])})
    assert parse("always eventually[0,1] (x > 0)").truth(traces).tolist() == [True, False]
    assert parse("always eventually[1,1] (x != 9)").truth(traces).tolist() == [False, False]
    assert parse("always always[1,1] (x != 9)").truth(traces).tolist() == [True, True]
    assert parse("always ((x != 9) until[1,1] (x != 9))").truth(traces).tolist() == [False, False]


@given(st.integers(0, 5000), st.integers(0, 5000), st.sampled_from([0.001, 0.01, 0.1, 0.3, 1 / 3, 1e-6, 7.0]))
def test_intervals_hold_their_ends(a: int, b: int, step: float) -> None:
    first, last = min(a, b), max(a, b)
    assert samples(Interval(first * step, last * step), step) == (first, last)
    decimal = Interval(float(f"{first * step:.12g}"), float(f"{last * step:.12g}"))
    assert samples(decimal, step) == (first, last)
    assert samples(Interval((first + 0.01) * step, (last + 1.99) * step), step) == (first + 1, last + 1)


@pytest.mark.parametrize(("block", "values"), [(16, 2**20), (256, 1000), (256, 10)])
def test_a_batch_is_its_traces_one_by_one(monkeypatch: pytest.MonkeyPatch, block: int, values: int) -> None:
    monkeypatch.setattr(semantics, "BLOCK", block)
    monkeypatch.setattr(semantics, "VALUES", values)
    x = np.random.default_rng(3).normal(size=(37, 50))
    formula = parse("(x < 1.5) until[0.5,2] always[0,1] (x > -1 + 1 / (3 + abs(x)))")
    whole = formula.robustness(Traces(0.1, {"x": x}))
    assert len(np.unique(whole)) > 10
    assert np.array_equal(whole, [formula.robustness(Traces(0.1, {"x": x[i : i + 1]}))[0] for i in range(37)])
    assert np.array_equal(whole[::2], formula.robustness(Traces(0.1, {"x": x[::2]})))
    assert np.array_equal(whole, formula.robustness(Traces(0.1, {"x": np.asfortranarray(x)})))


def test_other_kinds_of_numbers_and_empty_batches() -> None:
    formula = parse("eventually (n >= 2)")
    assert formula.truth(Traces(1.0, {"n": np.array([[0, 1, 2], [0, 1, 1]])})).tolist() == [True, False]
    assert formula.truth(Traces(1.0, {"n": np.empty((0, 3))})).shape == (0,)
    assert parse("true").robustness(Traces(1.0, {"n": np.zeros((2, 3))})).tolist() == [np.inf, np.inf]


# --- errors ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("velocty > 5", "unknown signal 'velocty', did you mean 'velocity'? (known: a_b, velocity)"),
        ("q > 5", "unknown signal 'q' (known: a_b, velocity)"),
        ("always[0,1.1] (a_b > 5)", "the formula looks 1.1 s ahead, but the traces end at 1 s"),
        ("always[0,0.6] eventually[0,0.6] (a_b > 5)", "the formula looks 1.2 s ahead, but the traces end at 1 s"),
        ("always[1.1,inf] (a_b > 5)", "the formula looks 1.1 s ahead, but the traces end at 1 s"),
        ("always[0,1e300] (a_b > 5)", "the formula looks 9.0072e+14 s ahead, but the traces end at 1 s"),
        ("always[0.11,0.19] (a_b > 5)", "the interval [0.11,0.19] holds no sample: samples are 0.1 s apart"),
        ("a_b / (velocity - 3) > 5", "the term a_b / (velocity - 3) is not finite in trace 2 at 0 s"),
        ("always max(1, sqrt(velocity)) > 0", "the term sqrt(velocity) is not finite in trace 9 at 0.7 s"),
        ("1e300 * 1e300 > 0", "the term 1e+300 * 1e+300 is not finite in trace 0 at 0 s"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(text: str, message: str) -> None:
    velocity = np.ones((10, 11))
    velocity[2, 0], velocity[9, 7] = 3.0, -1.0
    traces = Traces(0.1, {"velocity": velocity, "a_b": np.ones((10, 11))})
    for ask in (parse(text).truth, parse(text).robustness):
        with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
            ask(traces)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("trace", [0, 7, 8, 299])
def test_signals_must_be_finite_where_they_are_read(value: float, trace: int) -> None:
    x = np.zeros((300, 11))
    x[trace, 9] = value
    traces = Traces(0.1, {"x": x, "y": np.zeros((300, 11))})
    with pytest.raises(ParameterError, match=rf"^signal 'x' is {value} in trace {trace} at 0.9 s$"):
        parse("always[0.8,1] (x < 1 or y < 1)").truth(traces)
    assert np.all(parse("always[0,0.8] (x < 1 or y < 1)").truth(traces))


def test_nothing_is_asked_of_the_left_side_at_the_end_of_until() -> None:
    traces = Traces(0.1, {"x": np.array([[1.0, 1.0, np.nan]]), "y": np.array([[0.0, 0.0, 1.0]])})
    assert parse("(x > 0) until[0.1,0.2] (y > 0)").truth(traces).tolist() == [True]


@pytest.mark.parametrize("count", [1, 3, 8, 9])
def test_lanes_without_a_trace_raise_no_errors(count: int) -> None:
    assert parse("1 / x > 0").truth(Traces(1.0, {"x": np.ones((count, 1))})).tolist() == [True] * count


def test_a_formula_can_be_checked_before_there_are_traces() -> None:
    none = Traces(0.1, {"x": np.empty((0, 11))})
    parse("always[0,1] (x > 0)").check(none)
    with pytest.raises(ParameterError, match="looks 2 s ahead"):
        parse("always[0,2] (x > 0)").check(none)
