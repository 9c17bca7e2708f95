"""The table of a sweep. It is made when the sweep ends, whichever launcher ran its jobs and however many failed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from dpsmc_audit.app.config import as_typed, known_keys
from dpsmc_audit.app.keys import key_of, paths
from dpsmc_audit.app.messages import one_line
from dpsmc_audit.app.progress import bar
from dpsmc_audit.errors import require
from dpsmc_audit.report import columns, tables
from dpsmc_audit.report.html import REPORT
from dpsmc_audit.report.page_sweep import sweep_page, swept
from dpsmc_audit.runs.files import KEPT, near, read_json, write_text
from dpsmc_audit.runs.processes import guard
from dpsmc_audit.runs.resume import fingerprint_in
from dpsmc_audit.runs.sweeps import Sweep, begin

__all__ = ["SweepTable", "tabulate"]

Rows = list[dict[str, Any]]


@contextmanager
def _or_stop() -> Iterator[None]:
    """End the sweep with exit code 2 after an error in a callback. Hydra alone would warn and go on."""
    try:
        yield
    except Exception as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        raise SystemExit(2) from error


class SweepTable(Callback):
    """Hydra callback that records what a sweep is to do, and joins its results when it ends."""

    _bar: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Launchers copy the callback into other processes. The copy has no progress bar."""
        return {}

    @_or_stop()
    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Refuse unknown keys, lock the folder and write down what was asked for.

        Parameters
        ----------
        config : DictConfig
            The configuration of the sweep.
        **kwargs
            Not used.
        """
        _refuse_swept(config)
        empty = [key for key, values in _swept(config).items() if not values]
        require(not empty, f"the sweep has no points: {', '.join(empty)} has no values")
        points, given = prod(map(len, _swept(config).values())), tuple(as_typed(config.hydra.overrides.task))
        if not config.hydra.launcher._target_.endswith(".BasicLauncher"):
            guard()
        self._sweep = begin(Path(config.hydra.sweep.dir).absolute(), config.get("study"), given, points)
        self._bar = bar("points", points)

    def on_job_end(self, config: DictConfig, job_return: Any, **kwargs: Any) -> None:
        """Count a point that ran in this process.

        Parameters
        ----------
        config : DictConfig
            The configuration of the point.
        job_return
            Not used.
        **kwargs
            Not used.
        """
        if self._bar is not None:
            self._bar.update()

    @_or_stop()
    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Write and print the table. Exit with code 1 if a point has no result.

        Parameters
        ----------
        config : DictConfig
            The configuration of the sweep.
        **kwargs
            Not used.
        """
        self._bar.close()
        if not tabulate(self._sweep):
            raise SystemExit(1)


def _swept(config: DictConfig) -> dict[str, list[Any]]:
    """Return the values that each key takes: of the sweep's file, then of the command line, which replaces them."""
    params = OmegaConf.to_container(config.hydra.sweeper.get("params") or OmegaConf.create({}), resolve=False)
    assert isinstance(params, dict)
    texts = [*(f"{key!s}={value}" for key, value in params.items()), *as_typed(config.hydra.overrides.task)]
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    found = {}
    for override in parser.parse_overrides(texts):
        values = list(override.sweep_iterator()) if override.is_discrete_sweep() else [override.value()]
        found[override.get_key_element()] = values
    return found


def _refuse_swept(config: DictConfig) -> None:
    """Raise `UnknownKeyError` for a key that does not exist, at any depth. The user's own groups are known here."""
    groups = GlobalHydra.instance().config_loader().list_groups("")
    for name, values in _swept(config).items():
        key = key_of(name)
        known_keys().refuse([key] if key.partition("/")[0] not in groups else [])
        for value in values:
            known_keys().refuse(paths(value, f"{key}.") if isinstance(value, dict) else [])


def tabulate(sweep: Sweep, drawn: bool = True) -> bool:
    """Write and print the table of the finished points and name the failed ones.

    Parameters
    ----------
    sweep : Sweep
        The sweep that has ended or was interrupted.
    drawn : bool
        Whether to make a figure and a page too. After Ctrl-C they would take too long.

    Returns
    -------
    bool
        True if every point that was asked for has a result.
    """
    ended = sweep.ended()
    kept, failed = ([point for point in ended if point.state == state] for state in ("kept", "failed"))
    whole = [point.result for point in ended if point.state != "failed" and fingerprint_in(point.folder) is not None]
    rows = [tables.flatten(read_json(path)) for path in whole]
    lacking = sweep.points - len(rows) - len(failed)
    if rows:
        _write(sweep.folder, sweep.study, rows, drawn)
        _print(sweep.folder, rows)
    if kept:
        print(f"{len(kept)} of them were there already:")
        print("\n".join(f"  {point.folder.name}: {point.overrides}" for point in kept))
    problems = [f"{point.overrides}: {point.error}" for point in failed]
    for problem in problems:
        print(f"failed: {problem}", file=sys.stderr)
    if lacking > 0 and drawn:
        print(f"failed: {lacking} of {sweep.points} points have no result", file=sys.stderr)
    _print_others(sweep.folder)
    if rows and drawn:
        points = list(zip(whole, rows, strict=True))
        write_text(sweep.folder / REPORT, sweep_page(sweep.folder, sweep.study, points, problems, sweep.given))
    return not failed and lacking <= 0


def _write(folder: Path, study: str | None, rows: Rows, drawn: bool) -> None:
    """Write the table in four formats and, except for Table 1, draw a figure."""
    write_text(folder / "table.md", tables.as_markdown(rows))
    write_text(folder / "table.tex", tables.as_latex(rows))
    if rows[0].get("observer") == "black_box":
        write_text(folder / "table.csv", tables.as_csv(rows, tables.SAMPLER_COLUMNS))
        return
    task, others, published = rows[0]["task"], columns.varying(rows), study == "table1"
    modelled = task == "simulate" and rows[0].get("model") != "bernoulli"
    names = [*others, *columns.PARAMETERS, *columns.CSV_COLUMNS.get(task, tuple(rows[0]))]
    names += [*(tables.MODEL_COLUMNS if modelled else ()), *(tables.PAPER_COLUMNS if published else ())]
    times = [*others, *tables.TIMING_COLUMNS, *(tables.PAPER_TIMES if published and modelled else ())]
    write_text(folder / "table.csv", tables.as_csv(rows, list(dict.fromkeys(names))))
    write_text(folder / "timing.csv", tables.as_csv(rows, times))
    if drawn and not published and len(rows) > 1 and task in ("audit", "simulate"):
        from dpsmc_audit.report.figures import save, sweep_figure

        save(sweep_figure(rows, swept(rows)), folder / "table", ("png",))


def _print(folder: Path, rows: Rows) -> None:
    """Print the table and the lines that explain it."""
    first = rows[0]
    print(tables.as_text(rows))
    same = len({(row.get("p_phi"), row.get("p_phi_low")) for row in rows}) == 1
    if first.get("task") == "simulate" and same and first.get("p_phi_low") is not None:
        value, low, high = (columns.decimals(first[f"p_phi{end}"], ".4f") for end in ("", "_low", "_high"))
        print(f"p_phi estimated as {value} [{low}, {high}]; exact means at that estimate and at its ends")
    if any(row.get("distance") is not None for row in rows):
        print("distance: paper minus exact in standard errors of the paper's 10^4 runs, beyond rounding; * above 3")
    print(f"{len(rows)} results in {near(folder)}")


def _print_others(folder: Path) -> None:
    """Print how many results in the folder belong to no point of this sweep."""
    with suppress(OSError):  # it is not there, or not empty
        (folder / KEPT).rmdir()
    with suppress(FileNotFoundError):
        others = len(list((folder / KEPT).iterdir()))
        print(f"{others} results of other parameters or versions are in {near(folder / KEPT)}")
