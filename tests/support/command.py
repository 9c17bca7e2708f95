"""The command line in this process, for the tests of single tasks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra

from dpsmc_audit.app import cli

Run = Callable[..., tuple[int, str, str]]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, full: str = "0") -> Run:
    """A function that runs the command in a folder: exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        GlobalHydra.instance().clear()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("HYDRA_FULL_ERROR", full)
        monkeypatch.setattr(sys, "argv", ["dpsmc_audit", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        out, err = capsys.readouterr()
        return code, out, err

    return call


def result_in(folder: Path) -> dict[str, Any]:
    """The one result below a folder."""
    (path,) = folder.rglob("result.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found
