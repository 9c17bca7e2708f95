"""Runs from files: every format is read, and what cannot be read is one line that names the file and the line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.outputs import Outputs
from dpsmc_audit.evidence.samples import read_samples

RUNS = 12
ONES, ZEROS = np.arange(RUNS) / 4.0, np.arange(RUNS) / 8.0
LABELS = np.tile([1, 0], RUNS)
BOTH = np.column_stack([ONES, ZEROS]).reshape(-1)


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def lines(*values: Any, head: str = "output") -> str:
    return "\n".join([head, *map(str, values)]) + "\n"


def numbers(outputs: Outputs) -> list[list[Any]]:
    return [column.tolist() for column in outputs.columns]


def write_labelled(path: Path) -> Path:
    frame = pd.DataFrame({"label": LABELS, "output": BOTH})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".npz":
        np.savez(path, label=LABELS, output=BOTH)
    elif path.suffix == ".npy":
        np.save(path, frame.to_records(index=False))
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("end", ["csv", "csv.gz", "txt", "npy", "npz", "parquet"])
def test_one_file_with_labels(tmp_path: Path, end: str) -> None:
    ones, zeros = read_samples(write_labelled(tmp_path / f"runs.{end}"))
    assert (ones.kind, zeros.kind) == ("numbers", "numbers")
    assert (numbers(ones), numbers(zeros)) == ([ONES.tolist()], [ZEROS.tolist()])


def test_two_files_of_unequal_numbers_of_runs(tmp_path: Path) -> None:
    one, zero = tmp_path / "one.npy", tmp_path / "zero.csv"
    np.save(one, ONES)
    np.savetxt(zero, ZEROS[:10])
    ones, zeros = read_samples([one, f"{zero}"])
    assert (numbers(ones), numbers(zeros)) == ([ONES.tolist()], [ZEROS[:10].tolist()])


@pytest.mark.parametrize(
    ("head", "row", "kind", "names"),
    [
        ("label,tau,o", "7,1", "columns", ("tau", "o")),
        ("label,x0,x1", "7,1", "vectors", ("x[0]", "x[1]")),
        ("label,x1,x2,x3", "7,1.5,0", "vectors", ("x[0]", "x[1]", "x[2]")),
        ("label,y[0],y[1]", "7,1", "vectors", ("x[0]", "x[1]")),
        ("label,x0,x1", "7,a", "columns", ("x0", "x1")),
        ("label,x0,y1", "7,2", "columns", ("x0", "y1")),
        ("label,x0,x2", "7,2", "columns", ("x0", "x2")),
        ("label,answer", "yes", "categories", ("output",)),
        ("label,answer", "True", "numbers", ("output",)),
        ("b, cost", "7", "numbers", ("output",)),
    ],
)
def test_columns_say_what_a_run_is(tmp_path: Path, head: str, row: str, kind: str, names: tuple[str, ...]) -> None:
    path = text(tmp_path / "runs.csv", lines(*[f"{label},{row}" for label in LABELS], head=head))
    ones, zeros = read_samples(path)
    assert (ones.kind, ones.names, ones.runs, zeros.runs) == (kind, names, RUNS, RUNS)


def test_the_label_can_be_named(tmp_path: Path) -> None:
    path = text(tmp_path / "runs.csv", lines(*[f"{1 - label},{label},5" for label in LABELS], head="x,member,cost"))
    ones, _ = read_samples(path, label="member")
    assert ones.names == ("x", "cost")
    assert numbers(ones)[0] == [0.0] * RUNS
    assert numbers(read_samples(path)[0])[0] == [0.0] * RUNS  # by x, the member is 0


def test_rows_of_an_array_are_vectors(tmp_path: Path) -> None:
    paths = [tmp_path / "one.npy", tmp_path / "zero.npz"]
    np.save(paths[0], np.ones((RUNS, 3)))
    np.savez(paths[1], np.zeros((RUNS, 3)))
    ones, zeros = read_samples(paths)
    assert (ones.kind, len(ones.columns), zeros.runs) == ("vectors", 3, RUNS)


def test_declared_missing_values_are_read(tmp_path: Path) -> None:
    path = text(tmp_path / "runs.csv", lines(*[f"{label},{'' if label else 2}" for label in LABELS], head="x,y"))
    ones, zeros = read_samples(path, missing=True)
    assert np.isnan(ones.columns[0]).all()
    assert zeros.columns[0].tolist() == [2.0] * RUNS


GOOD = [f"{label},0.5" for label in LABELS]


def bad(place: int, line: str) -> str:
    """A file with one line that is wrong."""
    return lines(*GOOD[:place], line, *GOOD[place + 1 :], head="label,output")


BAD: list[tuple[str, str, str]] = [
    ("a label of 2", bad(4, "2,0.5"), "must have labels 0 or 1, got 2.0 at line 6"),
    ("no label", bad(4, ",0.5"), "holds nan in the labels (missing values must be declared as an outcome) at line 6"),
    ("a word as label", bad(4, "yes,0.5"), "mixed numbers and other values in label: 1 at line 2, 'yes' at line 6"),
    ("words as labels", lines(*["yes,1"] * 30, head="label,output"), "must have labels 0 or 1, got 'yes' at line 2"),
    ("a word", bad(7, "1,five"), "mixed numbers and other values in output: 0.5 at line 2, 'five' at line 9"),
    ("nan", bad(3, "1,nan"), "holds nan (missing values must be declared as an outcome) at line 5"),
    ("an empty line", bad(3, ""), "at line 5"),
    ("a short line", bad(3, "1"), "at line 5"),
    ("a long line", bad(3, "1,2,3"), "line 5"),
    ("no runs", "label,output\n", "must hold at least 10 runs with x = 1, got 0"),
    ("few runs", lines(*["1,2"] * 9, *["0,2"] * 10, head="x,y"), "must hold at least 10 runs with x = 1, got 9"),
    ("one member", lines(*["1,2"] * 30, head="x,y"), "must hold at least 10 runs with x = 0, got 0"),
    ("no labels", lines(*["1,2"] * 30, head="y,z"), "labels named label, x or b (columns: y, z)"),
    ("no header", lines(*["1,2"] * 30, head="1,2"), "must have one column of labels"),
    ("two labels", lines(*["1,1,2"] * 30, head="x,b,z"), "(there are x, b: say which)"),
    ("labels only", lines(*[1, 0] * 30, head="label"), "has labels only, and no outputs"),
    ("equal names", lines(*["1,1,2"] * 30, head="x,y, y"), "has two columns of the same name"),
    ("empty", "", "is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "problem"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_file_is_one_line(tmp_path: Path, content: str, problem: str) -> None:
    _refused(text(tmp_path / "runs.csv", content), problem)


def _refused(paths: Any, problem: str, label: str | None = None) -> None:
    with pytest.raises(ParameterError) as caught:
        read_samples(paths, label)
    message = f"{caught.value}"
    assert problem in message
    assert "\n" not in message
    named = paths[-1] if isinstance(paths, list) else paths
    assert f"{named}" in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([{1}, {2}], object), allow_pickle=True)
    for name, content in (("a.npy", b"no"), ("a.npz", b"no"), ("a.parquet", b"no"), ("a.csv.gz", b"no")):
        (tmp_path / name).write_bytes(content)
        _refused(tmp_path / name, "cannot read")
    half = gzip.compress(lines(*RUNS * [1.5]).encode())
    (tmp_path / "half.csv.gz").write_bytes(half[: len(half) // 2])
    (tmp_path / "latin.csv").write_bytes("label,größe\n1,2\n".encode("latin-1"))
    for path in (tmp_path / "none.csv", folder, objects, tmp_path / "half.csv.gz", tmp_path / "latin.csv"):
        _refused(path, "cannot read")
    _refused(tmp_path / "runs.json", "must end in .csv")


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    one = text(tmp_path / "one.csv", lines(*range(RUNS)))
    word = text(tmp_path / "word.csv", lines(*["a"] * RUNS))
    short = text(tmp_path / "short.csv", lines(1, 2))
    _refused([one, word], "word.csv returned categories, but runs before it were numbers")
    _refused([one, short], "must hold at least 10 runs with x = 0, got 2")
    lengths = tmp_path / "lengths.npz"
    np.savez(lengths, label=LABELS, output=ONES)
    _refused(lengths, "must hold arrays of one length")
    np.savez(tmp_path / "empty.npz")
    _refused(tmp_path / "empty.npz", "holds no arrays")
    np.save(tmp_path / "nan.npy", np.append(ONES, np.nan))
    _refused([one, tmp_path / "nan.npy"], "holds nan (missing values must be declared as an outcome) at row 12")
    np.save(tmp_path / "scalar.npy", np.float64(3.0))
    _refused([one, tmp_path / "scalar.npy"], "must hold an entry or a row for each run, got an array of shape ()")
    np.save(tmp_path / "wide.npy", np.zeros((RUNS, 65)))
    _refused([one, tmp_path / "wide.npy"], "must hold a row for each of 12 runs and at most 64 columns")
    for paths, label, problem in (([one, one], "x", "a label is a column of one file"), ([], None, "one file or two")):
        with pytest.raises(ParameterError, match=problem):
            read_samples(paths, label)
    _refused(one, "must have one column of labels named member (columns: output)", label="member")
