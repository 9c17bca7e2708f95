"""Runs as real numbers: finite, in order, remembered; and events in words that hold what their range holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.outputs import Outputs, read_outputs
from dpsmc_audit.evidence.scales import FEW, MANY
from dpsmc_audit.evidence.views import Views

RUNS = 64
WORDS = ["red", "green", "blue"]


def read(result: Any, runs: int | None = None) -> Outputs:
    return read_outputs(result, len(result) if runs is None else runs, "sampler f", missing=True)


def made(kind: str, seed: int) -> Outputs:
    return read(MADE[kind](np.random.default_rng(seed)), RUNS)


def encoded(result: Any, runs: int | None = None) -> np.ndarray:
    outputs = read(result, runs)
    return Views(outputs).encode(outputs)


MADE: dict[str, Callable[[np.random.Generator], Any]] = {
    "numbers": lambda rng: rng.normal(size=RUNS),
    "missing": lambda rng: [None, np.inf, -np.inf, 1.5] * (RUNS // 4),
    "categories": lambda rng: rng.choice(WORDS, RUNS),
    "tau_o": lambda rng: (rng.integers(0, 900, RUNS), rng.integers(0, 2, RUNS)),
    "mixed": lambda rng: {
        "colour": rng.choice(WORDS, RUNS),
        "x": rng.normal(size=RUNS),
        "text": [*map(str, range(RUNS))],
    },
    "words": lambda rng: (rng.choice(WORDS, RUNS), rng.choice(WORDS, RUNS)),
    "bits": lambda rng: tuple(rng.integers(0, 2, (3, RUNS))),
    "wide": lambda rng: tuple(rng.integers(0, 900, (20, RUNS))),
    "vectors": lambda rng: rng.normal(size=(RUNS, 20)),
    "line": lambda rng: rng.normal(size=(RUNS, 1)),
    "transcripts": lambda rng: [rng.normal(size=k % 12).tolist() for k in range(RUNS)],
    "answers": lambda rng: [rng.choice(WORDS, k % 12).tolist() for k in range(RUNS)],
}
NAMES = {
    "numbers": ("output",),
    "missing": ("output",),
    "categories": ("output",),
    "tau_o": ("tau", "o then tau"),
    "mixed": ("x", "text", "colour then x", "text then x"),
    "words": ("column 1", "column 2 then column 1"),
    "bits": ("column 1", "all columns", "column 2 then column 1", "column 3 then column 1"),
    "wide": tuple(f"column {k}" for k in range(1, 13)),
    "vectors": (*(f"x[{k}]" for k in range(16)), "sum", "norm", "largest", "index of largest"),
    "line": ("x[0]", "norm"),
    "transcripts": ("length", "transcript", "first", "last", "sum", "position of largest"),
    "answers": ("length", "transcript", "first", "last"),
}
FEATURES = {"numbers": 1, "missing": 2, "categories": 16, "tau_o": 2, "mixed": 33, "words": 32, "bits": 3, "wide": 20}
FEATURES |= {"vectors": 20, "line": 1, "transcripts": 11, "answers": 10}


@pytest.mark.parametrize("kind", MADE)
def test_views_are_finite_and_named(kind: str) -> None:
    outputs = made(kind, 1)
    views = Views(outputs)
    rows, features = views.encode(outputs), views.features(outputs)
    assert views.names == NAMES[kind]
    assert rows.shape == (len(views.names), RUNS)
    assert features.shape == (RUNS, FEATURES[kind])
    assert np.isfinite(rows).all()
    assert np.isfinite(features).all()


@pytest.mark.parametrize("kind", MADE)
def test_a_restored_encoder_goes_on_as_the_saved_one(kind: str) -> None:
    first, later = made(kind, 1), made(kind, 2)
    views = Views(first)
    views.encode(first)
    views.features(first)
    again = Views.restore({**views.saved(), "other": 1})
    assert again.names == views.names
    rows = views.encode(later)
    assert np.array_equal(again.encode(later), rows)
    assert np.array_equal(again.features(later), views.features(later))
    for view in range(len(views.names)):
        low, high = np.quantile(rows[view], [0.2, 0.7], method="nearest")
        assert again.named(view, low, high) == views.named(view, low, high)


@pytest.mark.parametrize("kind", MADE)
def test_a_run_depends_on_earlier_runs_only(kind: str) -> None:
    """The runs in one call, and one by one."""
    form, outputs = made(kind, 1), made(kind, 2)
    together, apart = Views(form), Views(form)
    single = [outputs.take(np.array([run])) for run in range(RUNS)]
    assert np.array_equal(together.encode(outputs), np.hstack([apart.encode(run) for run in single]))
    assert np.array_equal(together.features(outputs), np.vstack([apart.features(run) for run in single]))


def test_what_is_not_a_saved_state_is_refused() -> None:
    saved = Views(read([1, 2])).saved()
    with pytest.raises(KeyError):
        Views.restore({})
    with pytest.raises(ValueError, match=r"."):
        Views.restore({"views": saved["views"][:2]})


@given(st.lists(st.floats(), min_size=1, max_size=40))
def test_the_order_of_numbers_is_kept(values: list[float]) -> None:
    """Missing values lie below everything, infinities at the ends, and nothing but the same number is equal to them."""
    (row,) = encoded(values)
    order = sorted((not np.isnan(value), value if not np.isnan(value) else 0.0) for value in values)
    assert np.isfinite(row).all()
    for (_, small), (_, large), low, high in zip(order, order[1:], np.sort(row), np.sort(row)[1:], strict=False):
        assert low <= high
        assert low < high or small == large or min(abs(small), abs(large)) > 1.79e308
    for special in (-np.inf, np.inf):
        assert len({*row[np.equal(values, special)]} & {*row[np.isfinite(values)]}) == 0
        assert len({*row[np.equal(values, special)]} & {*row[np.isnan(values)]}) == 0


@given(st.lists(st.tuples(st.integers(0, 2**60), st.integers(0, 1)), min_size=2, max_size=30))
def test_pairs_are_in_the_order_of_category_then_number(runs: list[tuple[int, int]]) -> None:
    tau, o = zip(*runs, strict=True)
    outputs = read((list(tau), list(o)), len(runs))
    views = Views(outputs)
    rows = dict(zip(views.names, views.encode(outputs), strict=True))
    pair = rows.get("o then tau")
    if pair is None:  # tau has few values and o is the first
        return
    codes = {value: code for code, value in enumerate(dict.fromkeys(o))}
    for k, (tau_k, o_k) in enumerate(runs):
        for j, (tau_j, o_j) in enumerate(runs):
            if (codes[o_k], tau_k) < (codes[o_j], tau_j):
                assert pair[k] < pair[j] or (o_k == o_j and tau_j >= 2**50)
                assert pair[k] <= pair[j]


@given(st.integers(0, 2**50 - 2), st.integers(0, 1))
def test_neighbours_below_2_to_the_50_stay_apart(tau: int, o: int) -> None:
    form = read((list(range(40)), [0, 1] * 20), 40)
    views = Views(form)
    views.encode(form)
    rows = views.encode(read(([tau, tau + 1], [o, o]), 2))
    assert np.all(rows[:, 0] < rows[:, 1])
    code = f"o = {o} and "
    assert views.named(1, rows[1, 0], rows[1, 1]) == f"{code}tau = {tau}"
    assert views.named(0, -np.inf, rows[0, 1]) == f"tau <= {tau}"


def _holds(words: str, tau: float, o: int) -> bool:
    """Is a run in the event with these words? They are all there is to go by."""
    text = words.replace("any tau", "True").replace("any o", "True").replace("no tau", "False")
    text = re.sub(r"is not (\d)", r"!= \1", text)
    text = re.sub(r"(?<![<>!=])= (\d) or (\d)", r"in (\1, \2)", text)
    text = re.sub(r"(?<![<>!=])= ", "== ", text).replace(", or ", " or ")
    return bool(eval(text, {"tau": tau, "o": o}))


@given(st.lists(st.tuples(st.integers(-4, 60), st.integers(0, 1)), min_size=2, max_size=40), st.booleans(), st.data())
def test_the_words_of_a_range_say_what_it_holds(runs: list[tuple[int, int]], half: bool, data: st.DataObject) -> None:
    """Ends at runs and between them, of numbers and of pairs; whole numbers and halves."""
    tau, o = np.array(runs, float).T
    tau = tau / 2.0 if half else tau
    form = read(({"tau": np.arange(40.0) / (2.0 if half else 1.0), "o": [0, 1] * 20}), 40)
    views = Views(form)
    views.encode(form)
    outputs = read({"tau": tau, "o": o}, len(runs))
    rows = views.encode(outputs)
    for view, row in enumerate(rows):
        ends = [-np.inf, *np.unique(row), np.inf]
        low, high = sorted(data.draw(st.tuples(st.sampled_from(ends), st.sampled_from(ends))))
        if low == high:
            continue
        words = views.named(view, low, high)
        if words.startswith("no "):
            assert not np.any((row >= low) & (row < high))
            continue
        for value, decision, place in zip(tau.tolist(), o.astype(int).tolist(), row.tolist(), strict=True):
            assert _holds(words, value, decision) == (low <= place < high), words


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-np.inf, np.inf, "any output"),
        ("missing", "-inf", "output is missing"),
        (-np.inf, "2.5", "output < 2.5 or missing"),
        ("-inf", "2.5", "output < 2.5 and not missing"),
        ("-inf", np.inf, "output is not missing"),
        ("2.5", "inf", "2.5 <= output < inf"),
        ("2.5", np.inf, "output >= 2.5"),
        ("inf", np.inf, "output = inf"),
        ("-inf", "-8", "output < -8 and not missing"),
    ],
)
def test_words_for_what_is_missing_or_infinite(low: float | str, high: float | str, words: str) -> None:
    values = {"missing": np.nan, "-inf": -np.inf, "-8": -8.0, "2.5": 2.5, "inf": np.inf}
    outputs = read(list(values.values()))
    views = Views(outputs)
    (row,) = views.encode(outputs)
    ends = [row[list(values).index(end)] if isinstance(end, str) else end for end in (low, high)]
    assert views.named(0, *ends) == words


def test_words_for_categories() -> None:
    outputs = read(["a", "b", None, "c"])
    views = Views(outputs)
    assert views.encode(outputs).tolist() == [[0.0, 1.0, 2.0, 3.0]]
    assert views.named(0, 1.0, 2.0) == "output is 'b'"
    assert views.named(0, 0.5, 2.5) == "output is 'b' or missing"
    assert views.named(0, -np.inf, np.inf) == "any output"
    assert views.named(0, 1.0, np.inf) == "output is not 'a'"
    assert views.named(0, 3.0, 9.0) == "output is 'c'"
    assert views.named(0, 3.0, np.inf) == "output is 'c'"
    assert views.named(0, 7.0, 9.0) == "output is none of the values seen"


def test_late_categories_share_a_code() -> None:
    views = Views(read(["a"]))
    (row,) = views.encode(read([f"{k}" for k in range(MANY + 10)]))
    assert row.tolist() == [*range(MANY), *[float(MANY)] * 10]
    assert views.named(0, MANY, np.inf).endswith("a rare value")
    form = read((list(range(40)), [0, 1] * 20), 40)
    few = Views(form)
    late = few.encode(read((list(range(60)), list(range(60))), 60))[1]
    codes = few.encode(read(([5] * 60, list(range(60))), 60))[1]
    assert np.all(np.diff(late[FEW:]) > 0)  # one category, in the order of tau
    assert np.unique(codes).size == FEW + 1


def test_what_is_derived_from_vectors_and_transcripts() -> None:
    outputs = read(np.array([[3.0, 4.0], [np.nan, 1.0], [-1.0, -1.0]]))
    views = Views(outputs)
    rows = dict(zip(views.names, views.encode(outputs), strict=True))
    missing = rows["x[0]"][1]
    assert rows["sum"].tolist() == [7.0, missing, -2.0]
    assert rows["norm"].tolist() == [5.0, missing, np.sqrt(2.0)]
    assert rows["largest"].tolist() == [4.0, missing, -1.0]
    assert rows["index of largest"].tolist() == [1.0, missing, 0.0]
    outputs = read([[1, 5, 2], [], [-1], [1, 5, 2], None, [-np.inf]])
    views = Views(outputs)
    rows = dict(zip(views.names, views.encode(outputs), strict=True))
    missing, least = rows["length"][4], rows["first"][5]
    assert rows["length"].tolist() == [3.0, 0.0, 1.0, 3.0, missing, 1.0]
    assert rows["transcript"].tolist() == [0.0, 1.0, 2.0, 0.0, 3.0, 4.0]
    assert rows["first"].tolist() == [1.0, missing, -1.0, 1.0, missing, least]
    assert rows["last"].tolist() == [2.0, missing, -1.0, 2.0, missing, least]
    assert rows["sum"].tolist() == [8.0, 0.0, -1.0, 8.0, missing, least]
    assert rows["position of largest"].tolist() == [2.0, missing, 1.0, 2.0, missing, 1.0]
    assert views.features(outputs)[0].tolist() == [3.0, 1.0, 5.0, 2.0, *[0.0] * 5, 2.0, 8.0, 0.0]
    assert views.features(outputs)[4].tolist() == [0.0] * 11 + [1.0]


def test_other_runs_are_refused() -> None:
    views = Views(read([1, 2]))
    for use in (views.encode, views.features):
        with pytest.raises(
            ParameterError, match=r"^a later call returned categories, but runs before it were numbers$"
        ):
            use(read(["a", "b"]))
