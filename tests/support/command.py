"""The command line in this process, for the tests of single tasks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra
from matplotlib.figure import Figure

from dpsmc_audit.app import cli
from dpsmc_audit.report import figures

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


def without_figures(monkeypatch: pytest.MonkeyPatch, but: str = "") -> None:
    """Figures are made, but their files are empty: for commands whose figures other tests draw; `but` is drawn here."""
    draw = figures.save

    def save(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "pdf")) -> None:
        if stem.name == but:
            draw(figure, stem, formats)
        else:
            for suffix in formats:
                Path(f"{stem}.{suffix}").touch()

    monkeypatch.setattr(figures, "save", save)


def result_in(folder: Path) -> dict[str, Any]:
    """The one result below a folder."""
    (path,) = folder.rglob("result.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found
