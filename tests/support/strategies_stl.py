"""Formulas and traces that properties of signal temporal logic are tested over."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from dpsmc_audit.stl import Formula, syntax
from dpsmc_audit.stl.syntax import Interval, Node
from dpsmc_audit.stl.traces import Traces

NAMES = ("x", "y", "speed")
STEP = 0.1

halves = st.integers(0, 6).map(lambda k: k / 2)
"""Few values, so that signals and thresholds are often equal."""


def terms(numbers: st.SearchStrategy[float] = halves) -> st.SearchStrategy[Node]:
    """Terms that have a value everywhere, if the numbers are small."""

    def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        return st.one_of(
            inner.map(syntax.Negative),
            st.builds(syntax.Arithmetic, st.sampled_from("+-*"), inner, inner),
            inner.map(lambda node: syntax.Call("abs", (node,))),
            st.builds(syntax.Call, st.sampled_from(("min", "max")), st.lists(inner, min_size=2, max_size=3).map(tuple)),
        )

    leaves = st.sampled_from(NAMES).map(syntax.Signal) | numbers.map(syntax.Number)
    return st.recursive(leaves, larger, max_leaves=3)


def intervals(longest: int = 6, *, unbounded: bool = True) -> st.SearchStrategy[Interval]:
    """Intervals of whole samples, their ends with the rounding errors of a product."""

    def between(a: int, b: int) -> Interval:
        return Interval(min(a, b) * STEP, max(a, b) * STEP)

    bounded = st.builds(between, st.integers(0, longest), st.integers(0, longest))
    open_ended = st.integers(0, longest).map(lambda a: Interval(a * STEP, math.inf))
    return bounded | open_ended if unbounded else bounded


def nodes(*, unbounded: bool = True, negation: bool = True, leaves: int = 5) -> st.SearchStrategy[Node]:
    """Formulas; without negation they are monotone in their predicates."""

    def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        some, window = st.lists(inner, min_size=2, max_size=3).map(tuple), intervals(unbounded=unbounded)
        kinds: list[st.SearchStrategy[Node]] = [
            st.builds(syntax.Until, inner, window, inner),
            st.builds(syntax.Eventually, window, inner),
            st.builds(syntax.Always, window, inner),
            some.map(syntax.And),
            some.map(syntax.Or),
        ]
        if negation:
            kinds += [inner.map(syntax.Not), st.builds(syntax.Implies, inner, inner)]
        return st.one_of(kinds)

    return st.recursive(predicates() if negation else predicates((">", ">=")), larger, max_leaves=leaves)


def predicates(signs: tuple[str, ...] = ("<", "<=", ">", ">=", "==", "!=")) -> st.SearchStrategy[Node]:
    compared = st.builds(syntax.Predicate, st.sampled_from(signs), terms(), terms())
    return st.one_of(compared, compared, compared, st.booleans().map(syntax.Constant))


@st.composite
def batches(draw: st.DrawFn, formula: Formula, spare: int = 5) -> Traces:
    """Traces of few different values that the formula fits into."""
    points = round(formula.horizon / STEP) + 1 + draw(st.integers(0, spare))
    count = draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Traces(STEP, {name: rng.integers(-4, 5, (count, points)) / 2 for name in NAMES})


@st.composite
def cases(draw: st.DrawFn, inner: st.SearchStrategy[Node]) -> tuple[Formula, Traces]:
    formula = Formula(draw(inner))
    return formula, draw(batches(formula))
