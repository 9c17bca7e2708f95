"""The one table that a sweep ends with, whatever launched its jobs and however many of them failed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hydra.core.global_hydra import GlobalHydra
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from dpsmc_audit.config import known_keys, refuse_unknown
from dpsmc_audit.errors import one_line
from dpsmc_audit.keys import key_of
from dpsmc_audit.report.files import FAILED, KEPT_NOTE, RESULT, near, read_json, write_text
from dpsmc_audit.report.page_sweep import write_sweep_report
from dpsmc_audit.report.progress import Points
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
from dpsmc_audit.resume import KEPT, fingerprint_in, set_aside
from dpsmc_audit.sprt import ParameterError

__all__ = ["SweepTable", "finish_interrupted", "interrupted_sweep"]

_running: dict[str, Any] = {}
_held: list[IO[str]] = []


def _release() -> None:
    """The sweep is over."""
    _running.clear()
    while _held:
        lock = _held.pop()
        Path(lock.name).unlink(missing_ok=True)
        lock.close()


@contextmanager
def _or_stop() -> Iterator[None]:
    """An error of a callback ends the sweep: to Hydra it would be a warning."""
    try:
        yield
    except Exception as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        raise SystemExit(2) from error


class SweepTable(Callback):
    """Hydra callback: remembers where the sweep goes, and joins its results when it ends."""

    @_or_stop()
    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        _release()
        _refuse_swept(config)
        folder, study = Path(config.hydra.sweep.dir).absolute(), config.get("study")
        lock = locked(folder)
        started = os.fstat(lock.fileno()).st_mtime  # by the clock of the disk, which may be another machine's
        _held.append(lock)
        _running.update(folder=folder, study=study, started=started)
        _running["given"] = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)  # as they were typed
        set_aside(folder)
        self._composed = _running["points"] = _compose_once()
        self._points = Points()

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        _release()  # a sweep before it, in the same process, may have ended in an error

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        if _running:  # not in a process of a launcher
            self._points.begin(len(self._composed))

    def on_job_end(self, config: DictConfig, job_return: Any, **kwargs: Any) -> None:
        if _running:
            self._points.end()

    @_or_stop()
    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        self._points.close()
        complete = tabulate(**_running)
        _release()
        if not complete:
            raise SystemExit(1)


def _refuse_swept(config: DictConfig) -> None:
    """Raise `UnknownKeyError` for a key that a sweep's file goes through and that does not exist."""
    params = OmegaConf.select(config, "hydra.sweeper.params")
    groups = GlobalHydra.instance().config_loader().list_groups("")
    swept = [key_of(str(name)) for name in params] if isinstance(params, DictConfig) else []
    known_keys().refuse(key for key in swept if key not in groups)


def _compose_once() -> set[tuple[str, ...]]:
    """Hydra composes the configuration of each job twice, to validate and to launch it; let it keep the first.

    Returns the jobs seen, all of them before the first one is launched.
    """
    loader: Any = GlobalHydra.instance().config_loader()
    compose: Callable[[DictConfig, list[str]], DictConfig] = loader.load_sweep_config
    made: dict[tuple[str, ...], DictConfig] = {}
    seen: set[tuple[str, ...]] = set()

    def load_sweep_config(master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        key = tuple(sweep_overrides)
        if key not in seen:
            seen.add(key)
            made[key] = compose(master_config, sweep_overrides)
            refuse_unknown(made[key])
            return made[key]
        # a point that is listed twice gets its own: a configuration that has been launched is read-only
        return made.pop(key) if key in made else compose(master_config, sweep_overrides)

    loader.load_sweep_config = load_sweep_config
    return seen


def interrupted_sweep() -> Path | None:
    """The folder of the sweep that is under way."""
    return _running.get("folder")


def finish_interrupted() -> None:
    """Tabulate what a sweep that was stopped has finished; quickly, so without a figure."""
    if _running:
        tabulate(**_running, drawn=False)


def _made_since(folder: Path, name: str, started: float) -> list[Path]:
    """Files of this sweep's jobs, in the order of the jobs; older ones in the same folder belong to another sweep."""
    ours = [path for path in folder.rglob(name) if KEPT not in path.parts]
    found = [path for path in ours if path.stat().st_mtime >= started - 0.01]
    return sorted(found, key=lambda path: (len(str(path)), str(path)))


def _results(folder: Path, started: float) -> tuple[list[Path], list[Path]]:
    """Results of this sweep's jobs, and the notes of those that were there already."""
    kept = _made_since(folder, KEPT_NOTE, started)
    new = [path for path in _made_since(folder, RESULT, started) if fingerprint_in(path.parent) is not None]
    both = {*new, *(path.with_name(RESULT) for path in kept)}
    return sorted(both, key=lambda path: (len(str(path)), str(path))), kept


def _write(folder: Path, study: str | None, rows: list[dict[str, Any]], drawn: bool) -> None:
    """The table in four forms and, but for Table 1, which must be quick, a figure."""
    if rows[0].get("sampler") is not None:
        write_text(folder / "table.csv", as_csv(rows, SAMPLER_COLUMNS))
        write_text(folder / "table.md", as_markdown(rows))
        write_text(folder / "table.tex", as_latex(rows))
        return
    others = varying(rows)
    task = CSV_COLUMNS[rows[0]["task"]]
    modelled = rows[0]["task"] == "simulate" and rows[0].get("model") != "bernoulli"
    extra = [*(MODEL_COLUMNS if modelled else ()), *(PAPER_COLUMNS if study == "table1" else ())]
    names = dict.fromkeys([*others, *PARAMETERS, *task, *extra])
    times = [*TIMING_COLUMNS, *(PAPER_TIMES if study == "table1" and modelled else ())]
    write_text(folder / "table.csv", as_csv(rows, list(names)))
    write_text(folder / "timing.csv", as_csv(rows, [*others, *times]))
    write_text(folder / "table.md", as_markdown(rows))
    write_text(folder / "table.tex", as_latex(rows))
    if drawn and study != "table1" and len(rows) > 1 and rows[0]["task"] != "estimate":
        from dpsmc_audit.report.figures import save, sweep_figure

        swept = [name for name in (*PARAMETERS, "entry", *others) if len({str(row[name]) for row in rows}) > 1]
        swept.sort(key=lambda name: -len({str(row[name]) for row in rows}))
        save(sweep_figure(rows, swept), folder / "table", ("png",))


def _say_estimate(row: dict[str, Any]) -> None:
    if row.get("p_phi_low") is not None:
        value, low, high = (decimals(row[f"p_phi{end}"], ".4f") for end in ("", "_low", "_high"))
        print(f"p_phi estimated as {value} [{low}, {high}]; exact means at that estimate and at its ends")


def tabulate(
    folder: Path,
    study: str | None,
    started: float,
    given: Sequence[str] = (),
    points: Collection[tuple[str, ...]] = (),
    drawn: bool = True,
) -> bool:
    """Write and print the table of the finished jobs and name the failed ones; True if there are none."""
    results, kept = _results(folder, started)
    rows = [flatten(read_json(path)) for path in results]
    failed = [path.read_text(encoding="utf-8").strip() for path in _made_since(folder, FAILED, started)]
    if rows:
        _write(folder, study, rows, drawn)
        print(as_text(rows))
        if rows[0].get("task") == "simulate" and len({(row.get("p_phi"), row.get("p_phi_low")) for row in rows}) == 1:
            _say_estimate(rows[0])
        if any(row.get("distance") is not None for row in rows):
            print("distance: paper minus exact in standard errors of the paper's 10^4 runs, beyond rounding; * above 3")
        print(f"{len(rows)} results in {near(folder)}")
    if kept:
        print(f"{len(kept)} of them were there already:")
    for path in kept:
        print(f"  {path.parent.name}: {path.read_text(encoding='utf-8').strip()}")
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    _say_others(folder)
    if rows and drawn:
        write_sweep_report(folder, study, list(zip(results, rows, strict=True)), failed, given)
    lacking = len(points) - len(rows) - len(failed)
    if lacking > 0 and drawn:
        print(f"failed: {lacking} of {len(points)} points have no result", file=sys.stderr)
    return not failed and lacking <= 0


def _say_others(folder: Path) -> None:
    """Results that were in the folder and belong to no point of this sweep."""
    with suppress(OSError):
        (folder / KEPT).rmdir()  # if there are none
    others = len(list((folder / KEPT).iterdir())) if (folder / KEPT).is_dir() else 0
    if others:
        print(f"{others} results of other parameters or versions are in {near(folder / KEPT)}")


def locked(folder: Path) -> IO[str]:
    """A file that one sweep at a time holds in its folder; it goes with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / ".lock").open("w", encoding="utf-8")
    try:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on this system
        pass
    except OSError as error:
        lock.close()
        raise ParameterError(f"another sweep is under way in {near(folder)}") from error
    os.utime(lock.fileno())
    return lock
