"""Runs that one already has, from files: CSV, NumPy or Parquet.

A line of a CSV file is a run. Its first line is a header unless it holds numbers only. One column is a number or a
category; columns x0, x1, ... of numbers are a vector; other columns stand for themselves. A NumPy file holds an array
with an entry or a row for each run; an archive (npz) holds columns.
"""

from __future__ import annotations

import gzip
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, regular, require
from dpsmc_audit.evidence.columns import Reader, shown
from dpsmc_audit.evidence.outputs import WIDEST, Outputs, read_by
from dpsmc_audit.targets import said

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_samples"]

LABELS = ("label", "x", "b")
FEWEST = 10
"""Runs of a member."""
_ENDS = (".csv", ".csv.gz", ".txt", ".npy", ".npz", ".parquet")


@dataclass(frozen=True)
class _File:
    """The columns of a file, or its only array, and how errors name its runs."""

    content: Any
    reader: Reader

    @property
    def columns(self) -> dict[str, Any]:
        return self.content if isinstance(self.content, dict) else {}


def read_samples(
    paths: str | Path | Sequence[str | Path], label: str | None = None, missing: bool = False
) -> tuple[Outputs, Outputs]:
    """Read runs of both members from files.

    Parameters
    ----------
    paths : path or sequence of path
        Two files, runs with x = 1 in the first and runs with x = 0 in the second; or one file with a column of labels.
        Files end in .csv, .csv.gz, .txt, .npy, .npz or .parquet.
    label : str, optional
        The column of labels (0 or 1) of one file. By default ``label``, ``x`` or ``b``.
    missing : bool
        Whether empty cells and nan are an outcome of their own.

    Returns
    -------
    ones, zeros : Outputs
        The runs with x = 1 and with x = 0, in the order of the files.

    Raises
    ------
    ParameterError
        If a file cannot be read or holds something else: one line that names the file, and the line if one is wrong.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("label,output\\n" + "1,0.5\\n0,0.25\\n" * 10)
    >>> ones, zeros = read_samples(path)
    >>> ones.runs, zeros.columns[0][:2].tolist()
    (10, [0.25, 0.25])
    """
    files = [paths] if isinstance(paths, (str, Path)) else list(paths)
    require(len(files) in (1, 2), f"samples must be one file or two, got {len(files)}")
    require(len(files) == 1 or label is None, "a label is a column of one file, but there are two files")
    loaded = [_load(Path(file), missing) for file in files]
    if len(files) == 1:
        ones, zeros = _labelled(loaded[0], label)
    else:
        ones, zeros = (_outputs(file) for file in loaded)
        ones.same_form(zeros, f"{files[1]}")
    for x, outputs, file in ((1, ones, files[0]), (0, zeros, files[-1])):
        got = f"got {outputs.runs}"
        require(outputs.runs >= FEWEST, f"{file} must hold at least {FEWEST} runs with x = {x}, {got}")
    return ones, zeros


def _labelled(file: _File, label: str | None) -> tuple[Outputs, Outputs]:
    """Cut the runs of one file by their labels."""
    reader, columns = file.reader, file.columns
    named = [name for name in LABELS if name in columns] if label is None else [label]
    if len(named) != 1 or named[0] not in columns:
        which = "named label, x or b" if label is None else f"named {label}"
        hint = f"(there are {', '.join(named)}: say which)" if len(named) > 1 else f"(columns: {_names(columns)})"
        raise reader.error(f"must have one column of labels {which} {hint}; or give two files")
    labels = replace(reader, missing=False).column(columns[named[0]], _runs(columns[named[0]]), "the labels")
    wrong = np.array([value not in (0.0, 1.0) for value in labels.tolist()], bool)
    if np.any(wrong):
        run = int(np.argmax(wrong))
        raise reader.at(f"must have labels 0 or 1, got {shown(labels.tolist()[run])}", run)
    rest = {name: column for name, column in columns.items() if name != named[0]}
    if not rest:
        raise reader.error("has labels only, and no outputs")
    outputs = _outputs(replace(file, content=rest))
    return outputs.take(labels == 1.0), outputs.take(labels == 0.0)


def _outputs(file: _File) -> Outputs:
    """Read the outputs of a file: one column, vectors, or columns."""
    content, columns = file.content, file.columns
    if len(columns) == 1:
        (content,) = columns.values()
    elif 1 < len(columns) <= WIDEST and _alike(list(columns)):
        parts = [file.reader.column(column, _runs(column), name) for name, column in columns.items()]
        if all(part.dtype != object and part.size == parts[0].size for part in parts):
            content = np.column_stack(parts)
    return read_by(file.reader, content, _runs(next(iter(columns.values())) if columns else content))


def _runs(column: Any) -> int:
    return int(np.shape(column)[0]) if np.ndim(column) else 0


def _names(columns: Mapping[str, Any]) -> str:
    return ", ".join(columns) or "none"


def _alike(names: list[str]) -> bool:
    """Are these x0, x1, ... or y[1], y[2], ...?"""
    found = [re.fullmatch(r"(\D+?)\[?(\d+)\]?", name) for name in names]
    stems = {match[1] for match in found if match is not None}
    places = [int(match[2]) for match in found if match is not None]
    return len(stems) == 1 and len(places) == len(names) and places == list(range(places[0], places[0] + len(names)))


def _load(path: Path, missing: bool) -> _File:
    """Read a file. What a library says about a bad one becomes one line."""
    reader = Reader(f"{path}", missing, "row", verb="holds")
    require(path.name.endswith(_ENDS), f"{path} must end in {', '.join(_ENDS)}")
    try:
        regular(path)
        if path.suffix in (".npy", ".npz"):
            return _File(_of_numpy(path), reader)
        if path.suffix == ".parquet":
            return _File(_of_parquet(path), reader)
        return _of_csv(path, reader)
    except ParameterError:
        raise
    except OSError as error:
        raise ParameterError(f"cannot read {path}: {error.strerror or said(error)}") from error
    except Exception as error:  # a damaged file can raise anything
        raise ParameterError(f"cannot read {path}: {said(error)}") from error


def _of_numpy(path: Path) -> Any:
    found = np.load(path, allow_pickle=False)
    if isinstance(found, np.ndarray):
        require(
            found.ndim in (1, 2),
            f"{path} must hold an entry or a row for each run, got an array of shape {found.shape}",
        )
        return {name: found[name] for name in found.dtype.names} if found.dtype.names else found
    with found:
        columns = {name: found[name] for name in found.files}
    sizes = {name: _runs(column) for name, column in columns.items()}
    require(len(set(sizes.values())) <= 1, f"{path} must hold arrays of one length, got {sizes}")
    require(bool(columns), f"{path} holds no arrays")
    return columns


def _of_parquet(path: Path) -> dict[str, Any]:
    import pandas as pd

    try:
        return _columns(pd.read_parquet(path), path)
    except ImportError:
        raise ParameterError(f"{path}: Parquet needs pyarrow: pip install 'dpsmc-audit[parquet]'") from None


def _of_csv(path: Path, reader: Reader) -> _File:
    import pandas as pd

    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        head = file.readline()
    require(bool(head.strip()), f"{path} is empty, or begins with an empty line")
    header = not all(map(_is_number, head.strip().split(",")))
    reader = replace(reader, unit="line", first=2 if header else 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a line that is longer than the header
        frame = pd.read_csv(
            path, header=0 if header else None, index_col=False, skip_blank_lines=False, low_memory=False
        )
    if not header:
        frame.columns = pd.Index(["output"] if frame.shape[1] == 1 else [f"x{k}" for k in range(frame.shape[1])])
    found = _columns(frame, path)
    return _File({name: _sorted_out(column, name, reader) for name, column in found.items()}, reader)


def _columns(frame: pd.DataFrame, path: Path) -> dict[str, Any]:
    names = [str(name).strip() for name in frame.columns]
    require(len(set(names)) == len(names), f"{path} has two columns of the same name")
    require(bool(names), f"{path} has no columns")
    return {name: frame.iloc[:, place] for place, name in enumerate(names)}


def _is_number(text: str) -> bool:
    try:
        float(text.strip().strip('"'))
    except ValueError:
        return False
    return True


def _sorted_out(column: pd.Series[Any], name: str, reader: Reader) -> Any:
    """Tell categories from numbers of which one cannot be read: a reader of CSV files makes texts of both."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column
    numbers: NDArray[np.float64] = np.asarray(pd.to_numeric(column, errors="coerce"), np.float64)
    there = np.asarray(column.notna(), bool)
    numeric = ~np.isnan(numbers)
    if not np.any(numeric):
        return column
    if np.any(there & ~numeric):
        other = int(np.argmax(there & ~numeric))
        number = int(np.argmax(numeric))
        both = f"{numbers[number]:g} at {reader.numbered(number)}, {shown(str(column.iloc[other]))}"
        raise reader.at(f"mixed numbers and other values in {name}: {both}", other)
    return numbers
