"""Sources of bits: what they yield, in which order, how much memory they take, and what they say of bad input."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.models import recorded
from dpsmc_audit.models.keys import MODELS, ModelKeys, read_formula, source_of
from dpsmc_audit.models.powertrain import Powertrain
from dpsmc_audit.models.recorded import Recorded
from dpsmc_audit.models.simulated import CASE_STUDY, PowertrainBits, PythonBits
from dpsmc_audit.models.sources import BATCH, Bernoulli, Negated, Source, SourceError
from dpsmc_audit.stl import parse

ABOVE = parse("always[0,0.2] (x > 0)")


def bits_of(source: Source, count: int | None = None, seed: int = 1) -> list[bool]:
    found: list[bool] = []
    for batch in source.batches(seed):
        found += batch.bits.tolist()
        if count is not None and len(found) >= count:
            return found[:count]
    return found


def until_error(source: Source) -> tuple[list[bool], str]:
    found: list[bool] = []
    batches = source.batches(0)

    def all_of_them() -> None:
        for batch in batches:
            found.extend(batch.bits.tolist())

    with pytest.raises(SourceError) as caught:
        all_of_them()
    assert len(f"{caught.value}".splitlines()) == 1
    return found, f"{caught.value}"


# --- simulated ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [Bernoulli(0.84), PowertrainBits(Powertrain(step=0.005), parse(CASE_STUDY))])
def test_samples_are_a_function_of_the_seed(source: Source) -> None:
    first, again, other = (bits_of(source, 600, seed) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    assert abs(np.mean(first) - 0.84) < 0.08  # five standard errors


def test_negated_samples_are_the_complement() -> None:
    source = Bernoulli(0.3)
    assert [not bit for bit in bits_of(source, 500)] == bits_of(Negated(source), 500)


def test_the_powertrain_is_judged_by_its_formula() -> None:
    source = PowertrainBits(Powertrain(step=0.005), parse("always[0.8,1] (abs(e) < 0.05)"))
    batch = next(source.batches(3))
    assert batch.traces is not None
    late = np.abs(batch.traces.signals["e"][:, 80:]) < 0.05
    assert batch.bits.tolist() == late.all(axis=1).tolist()


def test_threads_do_not_change_the_samples() -> None:
    source = PowertrainBits(Powertrain(step=0.005), parse(CASE_STUDY))
    assert bits_of(source, 300) == bits_of(replace(source, threads=2), 300)


@pytest.mark.parametrize(
    ("formula", "word"),
    [
        ("always[0,1] (ee < 1)", "unknown signal 'ee', did you mean 'e'"),
        ("always[0,1.5] (e < 1)", "1.5 s ahead"),
        ("always[0,1 (e < 1)", "column 12"),
    ],
)
def test_a_formula_that_does_not_fit_is_refused_at_once(formula: str, word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        source_of(ModelKeys("powertrain"), read_formula(formula, None))


def module_of(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> str:
    name = f"own_{abs(hash((text, str(folder))))}"
    (folder / f"{name}.py").write_text("import numpy as np\n" + text)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop(name, None)
    return f"{name}:draw"


def test_a_users_function_yields_bits_or_traces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bits = module_of(monkeypatch, tmp_path, "def draw(rng, n): return rng.random(n) < 0.6\n")
    assert 0.5 < np.mean(bits_of(PythonBits(bits), 2000)) < 0.7
    assert bits_of(PythonBits(bits), 300, seed=5) == bits_of(PythonBits(bits), 300, seed=5)
    traces = module_of(monkeypatch, tmp_path, "def draw(rng, n): return {'x': rng.normal(1, 1, (n, 4))}\n")
    share = np.mean(bits_of(PythonBits(traces, ABOVE, 0.1), 5000))
    assert abs(share - 0.8413447**3) < 0.03  # three independent samples above 0; five standard errors


@pytest.mark.parametrize(
    ("body", "formula", "word"),
    [
        ("def draw(rng, n): return rng.random(n - 1) < 0.5", None, "expected 256 bits"),
        ("def draw(rng, n): return rng.random(n)", None, "0 or 1"),
        ("def draw(rng, n): return ['a'] * n", None, "expected numbers"),
        ("def draw(rng, n): return {'x': np.ones((n, 4))}", None, "formula is needed"),
        ("def draw(rng, n): return None", None, "expected"),
        ("def draw(rng, n): raise OSError('no engine')", None, "OSError: no engine"),
        ("def draw(rng): return 1", None, "TypeError"),
        ("def draw(rng, n): return np.ones(n)", ABOVE, "by signal"),
        ("def draw(rng, n): return {'x': np.ones((n, 2))}", ABOVE, "0.2 s ahead"),
        ("def draw(rng, n): return {'y': np.ones((n, 4))}", ABOVE, "unknown signal"),
        ("def draw(rng, n): return {'x': np.ones((3, 4))}", ABOVE, "shape (256, points)"),
        ("def draw(rng, n): return {'x': np.ones((n, 4)), 'y': np.ones((n, 5))}", ABOVE, "one shape"),
        ("def draw(rng, n): return {'x': np.full((n, 4), np.nan)}", ABOVE, "nan"),
    ],
)
def test_a_function_that_returns_the_wrong_thing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, formula: Any, word: str
) -> None:
    target = module_of(monkeypatch, tmp_path, body + "\n")
    message = until_error(PythonBits(target, formula, None if formula is None else 0.1))[1]
    assert word in message
    assert target in message


@pytest.mark.parametrize("target", ["nothing.here:f", "math:nothing", "math", "math:pi"])
def test_a_target_that_is_not_there(target: str) -> None:
    with pytest.raises(ParameterError, match=r"model\.target"):
        PythonBits(target)


# --- recorded -------------------------------------------------------------------------------------------------------


def written(folder: Path, text: str, name: str = "data.csv") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@given(st.lists(st.booleans(), min_size=1, max_size=700))
def test_outcomes_come_as_they_stand(tmp_path_factory: pytest.TempPathFactory, given_bits: list[bool]) -> None:
    folder = tmp_path_factory.mktemp("outcomes")
    bare = written(folder, "".join(f"{bit:d}\n" for bit in given_bits), "bare.txt")
    column = written(folder, "id,ok\n" + "".join(f"{k},{bit:d}\n" for k, bit in enumerate(given_bits)), "column.csv")
    assert bits_of(Recorded(bare)) == given_bits
    assert bits_of(Recorded(column, "ok")) == given_bits


def long_format(traces: list[list[float]], step: float = 0.1) -> str:
    lines = [f"{i},{j * step:.6g},{x!r}\n" for i, trace in enumerate(traces) for j, x in enumerate(trace)]
    return "trace,time,x\n" + "".join(lines)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=6), min_size=1, max_size=30))
def test_traces_of_any_length_keep_their_order(
    tmp_path_factory: pytest.TempPathFactory, traces: list[list[float]]
) -> None:
    path = written(tmp_path_factory.mktemp("traces"), long_format(traces))
    assert bits_of(Recorded(path, formula=ABOVE)) == [all(x > 0 for x in trace[:3]) for trace in traces]


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    import pandas as pd

    traces = [[1.0, 2.0, 3.0], [1.0, -1.0, 1.0], [0.5, 0.5, 0.5, -1.0]]
    frame = pd.DataFrame([(i, 0.1 * j, x) for i, trace in enumerate(traces) for j, x in enumerate(trace)])
    frame.columns = pd.Index(["trace", "time", "x"])
    frame.to_parquet(tmp_path / "t.parquet")
    assert bits_of(Recorded(str(tmp_path / "t.parquet"), formula=ABOVE)) == [True, False, True]
    pd.DataFrame({"ok": [True, False, True], "n": [1, 2, 3]}).to_parquet(tmp_path / "o.parquet")
    assert bits_of(Recorded(str(tmp_path / "o.parquet"), "ok")) == [True, False, True]
    with pytest.raises(ParameterError, match=r"model\.column must name"):
        Recorded(str(tmp_path / "o.parquet"))
    with pytest.raises(ParameterError, match="no column 'good'"):
        Recorded(str(tmp_path / "o.parquet"), "good")
    assert "row 2" in until_error(Recorded(str(tmp_path / "o.parquet"), "n"))[1]
    with pytest.raises(ParameterError, match="not a Parquet file"):
        Recorded(written(tmp_path, "0\n1\n", "no.parquet"))


def test_parquet_without_its_library_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ParameterError, match=r"pip install 'dpsmc-audit\[parquet\]'"):
        Recorded(written(tmp_path, "", "t.parquet"))


@pytest.mark.parametrize(
    ("text", "column", "bits", "word"),
    [
        ("1\n0\n2\n", None, 2, "line 3: outcomes must be 0 or 1, got '2'"),
        ("1\n\n0\nnan\n", None, 2, "line 4"),
        ("1,0\n", None, 0, "model.column=NAME"),
        ("", None, 0, "no samples"),
        ("ok\n", "ok", 0, "no samples"),
        ("id,ok\n1,1\n2\n", "ok", 1, "line 3: expected 2 values, got 1"),
        ("id,ok\n1,1\n2,x\n", "ok", 1, "line 3"),
        ('id,ok\n1,1\n2,"0\n', "ok", 1, "not CSV"),
    ],
)
def test_bad_outcomes_are_named_by_their_line(
    tmp_path: Path, text: str, column: str | None, bits: int, word: str
) -> None:
    path = written(tmp_path, text)
    found, message = until_error(Recorded(path, column))
    assert len(found) == bits
    assert word in message
    assert "data.csv" in message


GOOD = "0,0,1\n0,0.1,1\n0,0.2,1\n"


@pytest.mark.parametrize(
    ("lines", "good", "word"),
    [
        (GOOD + "1,0,1\n1,0.1,nan\n1,0.2,1\n", 1, "line 6: samples must be finite"),
        (GOOD + "1,0,1\n1,0.1,x\n1,0.2,1\n", 1, "line 6: samples must be numbers"),
        (GOOD + "1,0,1\n1,0.1,1\n", 1, "line 5: the trace that begins here is too short"),
        (GOOD + "1,0,1\n1,0.15,1\n1,0.2,1\n", 1, "line 6: times must be 0, 0.1, 0.2"),
        (GOOD + "1,0.1,1\n1,0.2,1\n1,0.3,1\n", 1, "line 5: times must be 0"),
        (GOOD + "1,0,1\n1,0.1\n1,0.2,1\n", 1, "line 6: expected 3 values"),
        (GOOD + "1,0,1\n1,0.1,1\n1,0.2,1\n0,0.3,1\n", 2, "line 8: times must be 0"),
        ("0,0,1\n", 0, "must increase"),
    ],
)
def test_bad_traces_are_named_by_their_line(tmp_path: Path, lines: str, good: int, word: str) -> None:
    path = written(tmp_path, "trace,time,x\n" + lines)
    found, message = until_error(Recorded(path, formula=ABOVE))
    assert found == [True] * good
    assert word in message
    assert "data.csv" in message


def test_a_term_without_value_ends_at_its_trace(tmp_path: Path) -> None:
    """Those before it in the same batch are still had."""
    path = written(tmp_path, long_format([[1.0] * 3, [-1.0] * 3, [0.0] * 3, [1.0] * 3]))
    found, message = until_error(Recorded(path, formula=parse("always[0,0.2] (1 / x > 0)")))
    assert found == [True, False]
    assert "line 8" in message


@pytest.mark.parametrize(("path", "word"), [("nothing.csv", "cannot read"), (".", "cannot read")])
def test_files_that_cannot_be_read(path: str, word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        list(Recorded(path).batches(0))


def test_a_missing_column_names_those_that_are_there(tmp_path: Path) -> None:
    path = written(tmp_path, "trace,time,y\n0,0,1\n")
    with pytest.raises(ParameterError, match=r"no column 'x' \(its columns: trace, time, y\)"):
        Recorded(path, formula=ABOVE)
    with pytest.raises(ParameterError, match="several columns 'y'"):
        Recorded(written(tmp_path, "y,y\n0,1\n"), column="y")


def test_a_byte_that_is_no_text_is_met_where_it_stands(tmp_path: Path) -> None:
    """Files are decoded in chunks; the samples before the byte are there, and the error names its line."""
    (tmp_path / "b.csv").write_bytes(b"1\n" * 100 + b"\xff\n")
    batches = Recorded(str(tmp_path / "b.csv")).batches(0)
    assert next(batches).bits.size == 100
    with pytest.raises(ParameterError, match="line 101: outcomes must be 0 or 1"):
        next(batches)


def peak_of(source: Source) -> int:
    for _ in source.batches(0):
        break  # what is imported on first use does not count
    tracemalloc.start()
    for _ in source.batches(0):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_files_are_read_as_streams(tmp_path: Path) -> None:
    """Five times the samples, the same memory."""
    outcomes, traces = [], []
    for size in (2_000, 10_000):
        outcomes.append(peak_of(Recorded(written(tmp_path, "1\n" * size, "o.csv"))))
        path = written(tmp_path, long_format([[1.0] * 5] * (size // 5)), "t.csv")
        traces.append(peak_of(Recorded(path, formula=ABOVE)))
    for small, large in (outcomes, traces):
        assert large < 1.5 * small + 20_000


def test_nothing_is_read_beyond_the_batch_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source, read = Recorded(written(tmp_path, "1\n" * 5000)), 0
    lines = recorded.Recorded._csv

    def counted(self: Recorded) -> Iterator[Any]:
        nonlocal read
        for record in lines(self):
            read += 1
            yield record

    monkeypatch.setattr(Recorded, "_csv", counted)
    next(source.batches(0))
    assert read == BATCH


# --- keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MODELS))
def test_keys_without_a_meaning_are_refused_by_name(name: str) -> None:
    values: Mapping[str, Any] = {"path": "x", "target": "a:b", "setting": "tolerance", "maf": 0.1, "column": "ok"}
    for key, value in values.items():
        keys = ModelKeys(name, **{key: value})
        if key in MODELS[name]:
            keys.check()
        else:
            with pytest.raises(ParameterError, match=rf"model\.{key} has no meaning with model={name}"):
                keys.check()


def test_formulas_come_from_text_or_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, "# none\n", "f.stl")
    with pytest.raises(ParameterError, match=r"f\.stl: formula, line 1, column 1"):
        read_formula(None, path)
    path = written(tmp_path, "always[0, 0.2]\n  (x > 0)\n", "f.stl")
    assert read_formula(None, path) == ABOVE
    with pytest.raises(ParameterError, match="cannot be given together"):
        read_formula("x > 0", path)
    with pytest.raises(ParameterError, match="cannot read"):
        read_formula(None, "nothing.stl")


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        (ModelKeys("recorded"), "model.path"),
        (ModelKeys("python"), "model.target"),
        (ModelKeys("steam"), "model must be one of"),
        (ModelKeys("powertrain", setting="none"), "setting must be one of"),
        (ModelKeys("powertrain", speed_range=[1.0]), "speed_range"),
        (ModelKeys("python", target="math:sqrt", step=0.1), "model.step is for traces"),
    ],
)
def test_models_that_cannot_be_made(keys: ModelKeys, word: str) -> None:
    with pytest.raises(ParameterError, match=word.replace(".", r"\.")):
        source_of(keys, None)
