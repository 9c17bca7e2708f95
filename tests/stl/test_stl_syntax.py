"""Formulas as text: what is read, how it groups, how it is written, and what is said of text that is no formula."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.stl import Formula, parse, syntax
from tests.support.strategies_stl import nodes, terms

TOP = Path(__file__).parents[2]


@given(nodes(leaves=12))
def test_the_text_of_a_formula_parses_back_to_it(node: syntax.Node) -> None:
    formula = Formula(node)
    assert parse(str(formula)) == formula
    assert hash(parse(str(formula))) == hash(formula)
    assert eval(repr(formula)) == formula


X = syntax.Predicate(">", syntax.Signal("x"), syntax.Number(0.0))
OPERATORS: dict[str, Callable[[syntax.Node, syntax.Node], syntax.Node]] = {
    "not": lambda a, _: syntax.Not(a),
    "always": lambda a, _: syntax.Always(syntax.Interval(0.0, 1.0), a),
    "eventually": lambda a, _: syntax.Eventually(syntax.WHOLE, a),
    "and": lambda a, b: syntax.And((a, b)),
    "or": lambda a, b: syntax.Or((a, b)),
    "implies": syntax.Implies,
    "until": lambda a, b: syntax.Until(a, syntax.Interval(0.0, 1.0), b),
}


@pytest.mark.parametrize("outer", OPERATORS)
@pytest.mark.parametrize("inner", OPERATORS)
def test_every_operator_inside_every_other_parses_back(outer: str, inner: str) -> None:
    nested = OPERATORS[inner](X, X)
    for operands in ((nested, X), (X, nested)):
        formula = Formula(OPERATORS[outer](*operands))
        assert parse(str(formula)) == formula


finite = st.floats(0.0, allow_nan=False, allow_infinity=False)


@given(terms(finite), st.sampled_from(("<", "<=", ">", ">=", "==", "!=")))
def test_any_numbers_parse_back(term: syntax.Node, sign: str) -> None:
    formula = Formula(syntax.Predicate(sign, term, syntax.Call("sqrt", (syntax.Arithmetic("/", term, term),))))
    assert parse(str(formula)) == formula


@given(finite, st.floats(0.0, allow_nan=False))
def test_any_intervals_parse_back(begin: float, length: float) -> None:
    formula = Formula(syntax.Always(syntax.Interval(begin, begin + length), syntax.Constant(True)))
    assert parse(str(formula)) == formula


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a > 0 implies b > 0 implies c > 0", "(a > 0) implies ((b > 0) implies (c > 0))"),
        ("a > 0 or b > 0 and c > 0", "(a > 0) or ((b > 0) and (c > 0))"),
        ("a > 0 implies b > 0 or c > 0", "(a > 0) implies ((b > 0) or (c > 0))"),
        ("a > 0 and b > 0 until c > 0", "(a > 0) and ((b > 0) until (c > 0))"),
        ("a > 0 until b > 0 until[1,2] c > 0", "(a > 0) until ((b > 0) until[1,2] (c > 0))"),
        ("not a > 0 until b > 0", "(not (a > 0)) until (b > 0)"),
        ("always[0,1] a > 0 and b > 0", "(always[0,1] (a > 0)) and (b > 0)"),
        ("not always eventually[0,1] a > 0", "not (always (eventually[0,1] (a > 0)))"),
        ("a - b - c > 0", "((a - b) - c) > 0"),
        ("a / b * c > 0", "((a / b) * c) > 0"),
        ("a + b * -c > -1", "(a + (b * (-c))) > (-1)"),
        ("-a * b > 0", "((-a) * b) > 0"),
    ],
)
def test_precedence(text: str, grouped: str) -> None:
    assert parse(text) == parse(grouped)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("!(a > 0) & b > 0 | c > 0 -> d > 0", "not (a > 0) and b > 0 or c > 0 implies d > 0"),
        ("a > 0 && b > 0 || c > 0", "a > 0 and b > 0 or c > 0"),
        ("globally[0,1] finally[0,1] a > 0", "always[0,1] eventually[0,1] (a > 0)"),
        ("G[0,1] F [0,1] (a > 0 U[0,2] b > 0)", "always[0,1] eventually[0,1] ((a > 0) until[0,2] (b > 0))"),
        ("always[0,inf] a > 0", "always (a > 0)"),
        ("always[ 1e-1 , .5 ]\n\t(a>0)", "always[0.1,0.5] (a > 0)"),
        ("a<-1", "a < -1"),
        ("((((a)) > ((1))))", "a > 1"),
    ],
)
def test_other_ways_to_write_the_same(text: str, same: str) -> None:
    assert parse(text) == parse(same)


def test_names_of_signals() -> None:
    """Letters and words are names wherever they cannot be operators."""
    formula = parse("F > G and U < android - notes and max > abs(min) and λ_1 > infinity * truex")
    assert formula.signals == ("F", "G", "U", "android", "infinity", "max", "min", "notes", "truex", "λ_1")


@pytest.mark.parametrize(
    ("text", "horizon", "window"),
    [
        ("x > 0", 0.0, None),
        ("always[1,2] (x > 0)", 2.0, (1.0, 2.0)),
        ("eventually[1,inf] (x > 0)", 1.0, (1.0, float("inf"))),
        ("(eventually[0,3] (x > 0)) until[1,2] (eventually[0,4] (x > 0))", 6.0, None),
        ("always[0,3] (x > 0) and always[0,5] (x > 0)", 5.0, None),
    ],
)
def test_horizon_and_window(text: str, horizon: float, window: tuple[float, float] | None) -> None:
    assert (parse(text).horizon, parse(text).window) == (horizon, window)


COMPARISON, ARITHMETIC = "a comparison (< <= > >= == !=)", "arithmetic (+ - * /)"
TERM, OPERATOR = "a number, a signal or abs(), sqrt(), min(), max()", "an operator (and or implies until)"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the formula ends too early; expected a formula"),
        ("x > 0 and ", 1, 10, "the formula ends too early; expected a formula"),
        ("x >", 1, 4, f"the formula ends too early; expected {TERM}"),
        ("x", 1, 2, f"the formula ends too early; expected {COMPARISON} or {ARITHMETIC}"),
        ("x = 3", 1, 3, f"unexpected '='; expected {COMPARISON} or {ARITHMETIC}"),
        ("(x > 3", 1, 7, f"the formula ends too early; expected {ARITHMETIC} or {OPERATOR} or ')'"),
        ("x > 3)", 1, 6, f"unexpected ')'; expected {ARITHMETIC} or {OPERATOR} or the end"),
        ("0 < x < 1", 1, 7, f"unexpected '<'; expected {ARITHMETIC} or {OPERATOR} or the end"),
        ("x > 0 and\n  always y @ 3", 2, 12, f"unexpected '@'; expected {COMPARISON} or {ARITHMETIC}"),
        ("always[0 1] x > 0", 1, 10, "unexpected '1'; expected ','"),
        ("always[0,1 x > 0", 1, 12, "unexpected 'x'; expected ']'"),
        ("always[] x > 0", 1, 8, "unexpected ']'; expected a time in seconds"),
        ("until > 0", 1, 1, "unexpected 'until'; expected a formula"),
        ("min(x) > 0", 1, 6, f"unexpected ')'; expected {ARITHMETIC} or ','"),
        ("x > 0 and [0,1]", 1, 11, "unexpected '['; expected a formula"),
        ("always[2,1] x > 0", 1, 7, "an interval ends no earlier than it begins, got [2,1]"),
        ("x > 0\nuntil[-1,1] x > 0", 2, 6, "an interval begins at a time from 0 on, got [-1,1]"),
        ("always[inf,inf] x > 0", 1, 7, "an interval begins at a time from 0 on, got [inf,inf]"),
        ("x > 1e999", 1, 5, "a number must be finite, got inf"),
    ],
)
def test_errors_say_where_and_what_was_expected(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(f'formula, line {line}, column {column}: {message}')}$"):
        parse(text)


@given(st.text(alphabet="xyFGU01.,e-+*/()[]<>=! \n&|", max_size=30) | st.text(max_size=10))
def test_any_other_text_is_refused_in_one_line(text: str) -> None:
    said = refusal(text)
    assert said is None or re.fullmatch(r"formula, line \d+, column \d+: .* .+", said)
    if said is None:
        assert parse(str(parse(text))) == parse(text)


def refusal(text: str) -> str | None:
    """What is said of a text, None if it is a formula."""
    try:
        parse(text)
    except ParameterError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "text",
    ["not " * 10_000 + "x > 0", "-" * 10_000 + "x > 0", "always " * 101 + "x > 0", "x > " + "(x + " * 10_000 + "1"],
)
def test_deep_nesting_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(
        ParameterError, match=r"^(the formula is nested more than 100 levels deep|formula, line 1, .*)$"
    ):
        parse(text)


def test_deep_parentheses_and_long_chains_are_fine() -> None:
    assert parse("(" * 10_000 + "x > 0" + ")" * 10_000) == parse("x > 0")
    assert str(parse(" and ".join(["x > 0"] * 5_000))).count("and") == 4_999
    with pytest.raises(ParameterError, match=r"^formula, line 1, column 10006: the formula ends too early; [^\n]*$"):
        parse("(" * 10_000 + "x > 0")


@pytest.mark.parametrize("value", [None, 3, ["x > 0"]])
def test_a_formula_must_be_text(value: object) -> None:
    with pytest.raises(ParameterError, match=r"^a formula must be text, got "):
        parse(value)  # type: ignore[arg-type]


def test_reading_formulas_needs_no_compiler() -> None:
    """Parser and jit compiler are imported when they are used, not before."""
    code = (
        "import sys, dpsmc_audit.stl as stl; early = 'lark' in sys.modules; stl.parse('x > 0');"
        "print(early, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TOP)
    assert done.stdout.split() == ["False", "False"]
