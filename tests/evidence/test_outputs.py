"""What samplers return: every kind is read, everything else is refused in one line that names the run."""

from __future__ import annotations

import pickle
from collections import namedtuple
from datetime import datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.outputs import Outputs, read_outputs

NAN = float("nan")


class Colour(Enum):
    RED = 1
    BLUE = 2


Pair = namedtuple("Pair", ["cost", "state"])
STRUCTURED = np.array([(1, "a"), (2, "b")], dtype=[("n", int), ("s", "U1")])


def read(result: Any, missing: bool = False) -> Outputs:
    return read_outputs(result, 2, "sampler f", missing=missing)


def content(outputs: Outputs) -> list[list[Any]]:
    return [column.tolist() for column in outputs.columns]


READ: list[tuple[str, Any, str, tuple[str, ...], list[list[Any]]]] = [
    ("integers", np.array([3, 1]), "numbers", ("output",), [[3.0, 1.0]]),
    ("a list", [3, 1.5], "numbers", ("output",), [[3.0, 1.5]]),
    ("bools", [True, False], "numbers", ("output",), [[1.0, 0.0]]),
    ("infinities", [np.inf, -np.inf], "numbers", ("output",), [[np.inf, -np.inf]]),
    ("exact numbers", [Fraction(1, 2), Decimal("1.5")], "numbers", ("output",), [[0.5, 1.5]]),
    ("scalars of numpy", [np.float32(0.5), np.int8(2)], "numbers", ("output",), [[0.5, 2.0]]),
    ("arrays without axes", [np.array(0.5), np.array(2)], "numbers", ("output",), [[0.5, 2.0]]),
    ("a series", pd.Series([3, 1]), "numbers", ("output",), [[3.0, 1.0]]),
    ("nullable integers", pd.Series([3, 1], dtype="Int64"), "numbers", ("output",), [[3.0, 1.0]]),
    ("strings", ["a", "b"], "categories", ("output",), [["a", "b"]]),
    ("an array of strings", np.array(["a", "b"]), "categories", ("output",), [["a", "b"]]),
    ("scalar strings", [np.str_("a"), np.str_("b")], "categories", ("output",), [["a", "b"]]),
    ("a series of strings", pd.Series(["a", "b"]), "categories", ("output",), [["a", "b"]]),
    ("categorical", pd.Series(["a", "b"], dtype="category"), "categories", ("output",), [["a", "b"]]),
    ("enums", [Colour.RED, Colour.BLUE], "categories", ("output",), [["Colour.RED", "Colour.BLUE"]]),
    ("bytes", [b"a", b"b"], "categories", ("output",), [["b'a'", "b'b'"]]),
    ("sets", [frozenset("ba"), frozenset()], "categories", ("output",), [["{'a', 'b'}", "{}"]]),
    ("vectors", np.array([[1, 2], [4, 5]]), "vectors", ("x[0]", "x[1]"), [[1.0, 4.0], [2.0, 5.0]]),
    ("a list of arrays", [np.array([1, 2]), np.array([3, 4])], "vectors", ("x[0]", "x[1]"), [[1.0, 3.0], [2.0, 4.0]]),
    ("tau and o", ([2**60, 0], [0, 1]), "columns", ("tau", "o"), [[2.0**60, 0.0], [0.0, 1.0]]),
    ("no tau", ([0.5, 0], [0, 1]), "columns", ("column 1", "column 2"), [[0.5, 0.0], [0.0, 1.0]]),
    ("no o", ([5, 0], [0, -1]), "columns", ("column 1", "column 2"), [[5.0, 0.0], [0.0, -1.0]]),
    ("columns", ([1, 2], ["a", "b"]), "columns", ("column 1", "column 2"), [[1.0, 2.0], ["a", "b"]]),
    ("named columns", Pair([1, 2], ["a", "b"]), "columns", ("cost", "state"), [[1.0, 2.0], ["a", "b"]]),
    ("a mapping", {"u": [1, 2]}, "columns", ("u",), [[1.0, 2.0]]),
    ("a frame", pd.DataFrame({"u": [1, 2], "v": ["a", "b"]}), "columns", ("u", "v"), [[1.0, 2.0], ["a", "b"]]),
    ("structured", STRUCTURED, "columns", ("n", "s"), [[1.0, 2.0], ["a", "b"]]),
    ("transcripts", [[1, 2], (3,)], "transcripts", ("transcript of numbers",), [[(1.0, 2.0), (3.0,)]]),
    ("of equal length", [[1, 2], [3, 4]], "transcripts", ("transcript of numbers",), [[(1.0, 2.0), (3.0, 4.0)]]),
    ("of words", [["a"], []], "transcripts", ("transcript",), [[("a",), ()]]),
    ("of nothing", [[], []], "transcripts", ("empty transcript",), [[(), ()]]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("result", "kind", "names", "columns"), [row[1:] for row in READ], ids=[row[0] for row in READ]
)
def test_every_kind_is_read(result: Any, kind: str, names: tuple[str, ...], columns: list[list[Any]]) -> None:
    outputs = read(result)
    assert (outputs.kind, outputs.names, outputs.runs) == (kind, names, 2)
    assert content(outputs) == columns
    again = pickle.loads(pickle.dumps(outputs))
    assert content(again) == columns


REFUSED: list[tuple[str, Any, str]] = [
    ("too few", np.zeros(1), "must return 2 runs, got 1 runs"),
    ("a short list", [1, 2, 3], "must return 2 runs, got 3 runs"),
    ("a scalar", 3.5, "must return 2 runs, got 3.5"),
    ("nothing", None, "must return 2 runs, got None"),
    ("a string", "ab", "must return an array, a list of runs or a tuple of columns, got str"),
    ("a set", {1, 2}, "got set"),
    ("a generator", (k for k in range(2)), "got generator"),
    ("three axes", np.zeros((2, 2, 2)), "must return 2 runs, got an array of shape (2, 2, 2)"),
    ("another shape", np.zeros((3, 2)), "got an array of shape (3, 2)"),
    ("too wide", np.zeros((2, 65)), "at most 64 columns, got an array of shape (2, 65)"),
    ("no width", np.zeros((2, 0)), "got an array of shape (2, 0)"),
    ("words in vectors", np.array([["a", "b"], ["c", "d"]]), "return a tuple of columns"),
    ("mixed", [1, "a"], "mixed numbers and other values: 1 at run 0 (counted from 0), 'a' at run 1"),
    ("nan", [1.0, NAN], "returned nan (missing values must be declared as an outcome) at run 1 (counted from 0)"),
    ("nan in an array", np.array([NAN, 1.0]), "at run 0"),
    ("None", ["a", None], "returned None (missing values must be declared as an outcome) at run 1"),
    ("pandas NA", pd.Series([1, None], dtype="Int64"), "missing values must be declared as an outcome) at run 1"),
    ("masked", np.ma.array([1, 2], mask=[True, False]), "must be declared as an outcome) at run 0"),
    ("nan in a vector", np.array([[1, 2], [3, NAN]]), "returned nan in x[1]"),
    ("huge", [1, 10**400], "returned a number beyond the range of floats at run 1"),
    ("complex", np.array([1j, 2]), "returned complex numbers: return their parts as columns"),
    ("a complex one", ["a", 1j], "returned a complex number (return its parts as columns) at run 1"),
    ("dates", np.array(["2020-01-01"] * 2, "M8[D]"), "returned dates or times: convert them to numbers"),
    ("durations", pd.Series(pd.to_timedelta([1, 2])), "returned dates or times: convert them to numbers"),
    ("a date", ["a", datetime(2020, 1, 1)], "returned a date or a time (convert it to a number) at run 1"),
    ("arrays in an array", np.array([np.zeros(2), np.zeros(3)], object), "returned an array of shape (2,)"),
    ("arrays of two lengths", [np.zeros(2), np.zeros(3)], "returned 3 numbers after 2"),
    ("unhashable", ["a", {1}], "returned {1} of type set, which is neither a number nor a category, at run 1"),
    ("without a text", ["a", object()], "of type object, which is neither a number nor a category, at run 1"),
    ("no columns", (), "returned an empty tuple"),
    ("an empty mapping", {}, "returned no columns"),
    ("numbers in a tuple", (1, 2), "must return columns of 2 runs in a tuple, got 1"),
    ("a short column", ([1, 2], [1]), "must return 2 runs as column 2, got 1 runs"),
    ("a wide column", ([1, 2], np.zeros((2, 2))), "must return 2 runs as column 2, got an array of shape (2, 2)"),
    ("nan in a column", ([1, 2], [1, NAN]), "returned nan in column 2"),
    ("many columns", tuple([1, 2] for _ in range(65)), "must return at most 64 columns, got 65"),
    ("equal names", {1: [1, 2], "1": [1, 2]}, "returned two columns of the same name"),
    ("equal names in a frame", pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "two columns of the same name"),
    ("a transcript and a number", [[1], 2], "returned transcripts and 2, which is none, at run 1"),
    ("a mixed transcript", [[1], [1, "a"]], "run 1 (counted from 0), mixed numbers and other values in a transcript"),
    ("mixed transcripts", [[1], ["a"]], "mixed numbers and other entries in transcripts at run 1"),
    ("nan in a transcript", [[1], [2, NAN]], "run 1 (counted from 0), returned nan in a transcript"),
    ("a nested transcript", [["a"], [["b"]]], "run 1 (counted from 0), returned ['b'] of type list"),
]  # fmt: skip


@pytest.mark.parametrize(("result", "problem"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_everything_else_is_refused_in_one_line(result: Any, problem: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read(result)
    message = f"{caught.value}"
    assert message.startswith("sampler f")
    assert problem in message
    assert "\n" not in message
    assert len(message) < 250


def test_missing_values_are_an_outcome_if_they_are_declared() -> None:
    assert np.isnan(read([1.0, NAN], missing=True).columns[0]).tolist() == [False, True]
    assert np.isnan(read([1, None], missing=True).columns[0]).tolist() == [False, True]
    assert np.isnan(read(pd.Series([1, None], dtype="Int64"), missing=True).columns[0]).tolist() == [False, True]
    assert content(read(np.ma.array(["a", "b"], mask=[True, False]), missing=True)) == [[None, "b"]]
    assert content(read(["a", pd.NA], missing=True)) == [["a", None]]
    assert content(read([[1, None], None], missing=True)) == [[(1.0, None), None]]
    assert content(read([["a", NAN], ["b"]], missing=True)) == [[("a", None), ("b",)]]


def test_arrays_of_other_libraries_are_no_categories() -> None:
    """They have a hash and a text, but the text may leave out most of their numbers."""

    class Tensor:
        ndim, shape = 1, (3,)

        def __repr__(self) -> str:
            return "tensor(...)"

    with pytest.raises(ParameterError, match=r"^sampler f returned an array of shape \(3,\) .* at run 0"):
        read([Tensor(), Tensor()])


def test_there_is_one_zero() -> None:
    for zeros in (np.array([-0.0, 0.0]), [-0.0, 0.0], [-0.0, Fraction(0)], np.array([[-0.0], [0.0]])):
        assert not np.signbit(read(zeros).columns[0]).any()


def test_a_category_that_fails_is_refused() -> None:
    class Broken:
        def __hash__(self) -> int:
            return 1

        def __repr__(self) -> str:
            raise RuntimeError("no text")

    with pytest.raises(ParameterError, match=r"^sampler f returned a Broken of type Broken.* at run 1"):
        read(["a", Broken()])


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        ([1, 2], [0.5, 1], False),
        ([1, 2], ["a", "b"], True),
        ([1, 2], np.zeros((2, 1)), True),
        (np.zeros((2, 2)), np.zeros((2, 3)), True),
        (([1, 2], [0, 1]), ([-1, 2], [0, 1]), False),
        (([1, 2], [0, 1]), ([1, 2], ["a", "b"]), True),
        ({"a": [1, 2]}, {"b": [1, 2]}, True),
        ([[1], [2]], [["a"], ["b"]], True),
        ([[1], [2]], [[], []], False),
        ([[], []], [["a"], ["b"]], False),
    ],
)
def test_blocks_must_have_one_form(before: Any, after: Any, differ: bool) -> None:
    """Columns without names stay one form, whether or not their values can be tau and o."""
    first, second = read(before), read(after)
    if not differ:
        first.same_form(second, "sampler f")
        assert Outputs.joined([first, second]).runs == 4
        return
    with pytest.raises(ParameterError, match=r"^sampler f returned .*, but runs before it were "):
        first.same_form(second, "sampler f")
    with pytest.raises(ParameterError, match=r"^a part of the runs returned"):
        Outputs.joined([first, second])


SHAPES = st.sampled_from(["numbers", "vectors", "categories", "columns", "transcripts"])


@given(SHAPES, st.lists(st.floats(allow_nan=False), min_size=1, max_size=40), st.data())
def test_joining_undoes_taking(kind: str, values: list[float], data: st.DataObject) -> None:
    made: dict[str, Any] = {
        "numbers": values,
        "vectors": np.column_stack([values, values[::-1]]),
        "categories": [repr(value) for value in values],
        "columns": {"value": values, "text": [repr(value) for value in values]},
        "transcripts": [[value] * (place % 3) for place, value in enumerate(values)],
    }
    outputs = read_outputs(made[kind], len(values), "sampler f")
    order = np.array(data.draw(st.permutations(range(len(values)))))
    cut = data.draw(st.integers(0, len(values)))
    again = Outputs.joined([outputs.take(order[:cut]), outputs.take(order[cut:])]).take(np.argsort(order))
    assert content(again) == content(outputs)
    assert again.names == outputs.names
