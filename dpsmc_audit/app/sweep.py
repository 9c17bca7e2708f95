"""The one table that a sweep ends with, whatever launched its jobs and however many of them failed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from dpsmc_audit.app.config import known_keys
from dpsmc_audit.app.keys import key_of, paths
from dpsmc_audit.app.messages import one_line
from dpsmc_audit.app.progress import Points
from dpsmc_audit.report.page_sweep import write_sweep_report
from dpsmc_audit.report.tables import (
    CSV_COLUMNS,
    MODEL_COLUMNS,
    PAPER_COLUMNS,
    PAPER_TIMES,
    PARAMETERS,
    SAMPLER_COLUMNS,
    TIMING_COLUMNS,
    as_csv,
    as_latex,
    as_markdown,
    as_text,
    decimals,
    flatten,
    varying,
)
from dpsmc_audit.runs.files import near, read_json, write_text
from dpsmc_audit.runs.resume import KEPT, fingerprint_in
from dpsmc_audit.runs.sweeps import Sweep, begin

__all__ = ["SweepTable", "tabulate"]


@contextmanager
def _or_stop() -> Iterator[None]:
    """An error of a callback ends the sweep: to Hydra it would be a warning."""
    try:
        yield
    except Exception as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        raise SystemExit(2) from error


class SweepTable(Callback):
    """Hydra callback: notes what a sweep is to do, and joins its results when it ends."""

    def __init__(self) -> None:
        self._points: Points | None = None

    @_or_stop()
    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        _refuse_swept(config)
        count, folder = count_points(config), Path(config.hydra.sweep.dir).absolute()
        self._sweep = begin(folder, config.get("study"), tuple(_given(config)), count)
        self._points = Points(count)

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        if self._points is not None:  # not in a process of a launcher
            self._points.begin()

    def on_job_end(self, config: DictConfig, job_return: Any, **kwargs: Any) -> None:
        if self._points is not None:
            self._points.end()

    @_or_stop()
    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        if self._points is not None:
            self._points.close()
        if not tabulate(self._sweep):
            raise SystemExit(1)


def _given(config: DictConfig) -> list[str]:
    """The overrides of the command line as they were typed: references to other keys stay references."""
    given = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    assert isinstance(given, list)
    return [str(override) for override in given]


def _overrides(config: DictConfig) -> list[Override]:
    """The keys that Hydra goes through: those of the sweep's file, then those of the command line."""
    params = OmegaConf.to_container(config.hydra.sweeper.get("params") or OmegaConf.create({}), resolve=False)
    assert isinstance(params, dict)
    texts = [*(f"{key!s}={value}" for key, value in params.items()), *_given(config)]
    return OverridesParser.create(config_loader=GlobalHydra.instance().config_loader()).parse_overrides(texts)


def _choices(override: Override) -> list[Any]:
    """The values that one key takes in turn."""
    return list(override.sweep_iterator()) if override.is_discrete_sweep() else [override.value()]


def count_points(config: DictConfig) -> int:
    """How many points Hydra will make of the swept keys; a key that is given twice counts as given last."""
    return prod({override.get_key_element(): len(_choices(override)) for override in _overrides(config)}.values())


def _refuse_swept(config: DictConfig) -> None:
    """Raise `UnknownKeyError` for a key of the command line, or of a sweep's file, that does not exist, at any depth.

    Here all groups are known, those of the user's files too.
    """
    groups = GlobalHydra.instance().config_loader().list_groups("")
    for override in _overrides(config):
        key = key_of(override.get_key_element())
        if key.partition("/")[0] not in groups:
            known_keys().refuse([key])
        for choice in _choices(override):
            if isinstance(choice, dict):
                known_keys().refuse(paths(choice, f"{key}."))


def _write(folder: Path, study: str | None, rows: list[dict[str, Any]], drawn: bool) -> None:
    """The table in four forms and, but for Table 1, which must be quick, a figure."""
    if rows[0].get("sampler") is not None:
        write_text(folder / "table.csv", as_csv(rows, SAMPLER_COLUMNS))
        write_text(folder / "table.md", as_markdown(rows))
        write_text(folder / "table.tex", as_latex(rows))
        return
    others = varying(rows)
    task = CSV_COLUMNS.get(rows[0]["task"], tuple(rows[0]))
    modelled = rows[0]["task"] == "simulate" and rows[0].get("model") != "bernoulli"
    extra = [*(MODEL_COLUMNS if modelled else ()), *(PAPER_COLUMNS if study == "table1" else ())]
    names = dict.fromkeys([*others, *PARAMETERS, *task, *extra])
    times = [*TIMING_COLUMNS, *(PAPER_TIMES if study == "table1" and modelled else ())]
    write_text(folder / "table.csv", as_csv(rows, list(names)))
    write_text(folder / "timing.csv", as_csv(rows, [*others, *times]))
    write_text(folder / "table.md", as_markdown(rows))
    write_text(folder / "table.tex", as_latex(rows))
    if drawn and study != "table1" and len(rows) > 1 and rows[0]["task"] in ("audit", "simulate"):
        from dpsmc_audit.report.figures import save, sweep_figure

        swept = [name for name in (*PARAMETERS, "entry", *others) if len({str(row[name]) for row in rows}) > 1]
        swept.sort(key=lambda name: -len({str(row[name]) for row in rows}))
        save(sweep_figure(rows, swept), folder / "table", ("png",))


def _say_estimate(row: dict[str, Any]) -> None:
    if row.get("p_phi_low") is not None:
        value, low, high = (decimals(row[f"p_phi{end}"], ".4f") for end in ("", "_low", "_high"))
        print(f"p_phi estimated as {value} [{low}, {high}]; exact means at that estimate and at its ends")


def tabulate(sweep: Sweep, drawn: bool = True) -> bool:
    """Write and print the table of the finished points and name the failed ones.

    Parameters
    ----------
    sweep : Sweep
        The sweep that has ended or was interrupted.
    drawn : bool
        Whether a figure and a page are made too. After Ctrl-C they are not, as they take time.

    Returns
    -------
    bool
        True if every point that was asked for has a result.
    """
    folder, ended = sweep.folder, sweep.ended()
    kept, failed = ([point for point in ended if point.state == state] for state in ("kept", "failed"))
    whole = [point.result for point in ended if point.state != "failed" and fingerprint_in(point.folder) is not None]
    rows = [flatten(read_json(path)) for path in whole]
    if rows:
        _write(folder, sweep.study, rows, drawn)
        _say(folder, rows)
    if kept:
        print(f"{len(kept)} of them were there already:")
    for point in kept:
        print(f"  {point.folder.name}: {point.overrides}")
    lines = [f"{point.overrides}: {point.error}" for point in failed]
    for line in lines:
        print(f"failed: {line}", file=sys.stderr)
    _say_others(folder)
    if rows and drawn:
        write_sweep_report(folder, sweep.study, list(zip(whole, rows, strict=True)), lines, sweep.given)
    lacking = sweep.points - len(rows) - len(failed)
    if lacking > 0 and drawn:
        print(f"failed: {lacking} of {sweep.points} points have no result", file=sys.stderr)
    return not failed and lacking <= 0


def _say(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Print the table and what a reader needs beside it."""
    print(as_text(rows))
    if rows[0].get("task") == "simulate" and len({(row.get("p_phi"), row.get("p_phi_low")) for row in rows}) == 1:
        _say_estimate(rows[0])
    if any(row.get("distance") is not None for row in rows):
        print("distance: paper minus exact in standard errors of the paper's 10^4 runs, beyond rounding; * above 3")
    print(f"{len(rows)} results in {near(folder)}")


def _say_others(folder: Path) -> None:
    """Results that were in the folder and belong to no point of this sweep."""
    with suppress(OSError):
        (folder / KEPT).rmdir()  # if there are none
    others = len(list((folder / KEPT).iterdir())) if (folder / KEPT).is_dir() else 0
    if others:
        print(f"{others} results of other parameters or versions are in {near(folder / KEPT)}")
