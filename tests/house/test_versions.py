"""The lowest versions of libraries that are allowed, and what differs between versions."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from dpsmc_audit.runs.checkpoints import Checkpoint
from tests.support.documents import TOP

CONSTRAINTS = (TOP / "tests" / "constraints-lowest.txt").read_text()


def lowest_allowed() -> dict[str, Version]:
    """What pyproject.toml asks for, to run and to test."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for name, lines in extras.items() if name != "lint" for line in lines)]
    found = {}
    for requirement in map(Requirement, asked):
        if requirement.name != project["name"]:
            (bound,) = requirement.specifier
            assert bound.operator == ">=", requirement
            found[requirement.name] = Version(bound.version)
    return found


def pinned(text: str) -> dict[str, Version]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: Version(version) for name, version in (line.split("==") for line in lines)}


def test_the_lowest_versions_are_those_that_are_tested() -> None:
    ours, _ = CONSTRAINTS.split("# Not ours", 1)
    assert pinned(ours) == lowest_allowed()


def test_libraries_of_libraries_are_not_ours() -> None:
    _, others = CONSTRAINTS.split("# Not ours", 1)
    named = pinned(others.partition("\n")[2])
    assert named
    assert not named.keys() & lowest_allowed().keys()


# --- checkpoints ----------------------------------------------------------------------------------------------------


def savez_of_numpy_2_0(file: BinaryIO, *unnamed: Any, **named: Any) -> None:
    """Before NumPy 2.2 it had no options: every keyword was the name of an array."""
    assert not unnamed
    with zipfile.ZipFile(file, "w") as archive:
        for name, value in named.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asanyarray(value), allow_pickle=False)


class Counts:
    """A number and an array."""

    def __init__(self, runs: int, counts: list[int]) -> None:
        self.runs, self.counts = runs, np.array(counts)

    def saved(self) -> dict[str, Any]:
        return {"runs": self.runs, "counts": self.counts}

    def restore(self, saved: dict[str, Any]) -> None:
        self.runs, self.counts = saved["runs"], saved["counts"]


def test_a_checkpoint_holds_what_was_summed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "savez", savez_of_numpy_2_0)
    Checkpoint(tmp_path, "key").save("runs", 500, Counts(3**50, [4, 5]))
    (path,) = tmp_path.iterdir()
    with np.load(path, allow_pickle=False) as file:
        assert sorted(file.files) == ["counts", "head"]
    again = Counts(0, [])
    assert Checkpoint(tmp_path, "key").restore("runs", again) == 500
    assert (again.runs, again.counts.tolist()) == (3**50, [4, 5])
