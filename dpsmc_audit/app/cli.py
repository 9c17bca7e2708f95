"""The command line, a thin layer over the library: ``python -m dpsmc_audit [key=value ...] [+sweep=table1]``.

Exit codes: 0 success, 1 a point of a sweep failed, 2 invalid input, 3 a verification without a decision, 130 Ctrl-C,
143 SIGTERM.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from dpsmc_audit.app.cautions import two_deltas, unread_keys
from dpsmc_audit.app.config import Config, as_typed, known_keys, read, register
from dpsmc_audit.app.folders import leave_nothing
from dpsmc_audit.app.interrupts import exit_code, ignore, interrupted
from dpsmc_audit.app.keys import UnknownKeyError, check_options, key_of, overrides_in, own_configuration
from dpsmc_audit.app.messages import one_line, unknown_to_hydra
from dpsmc_audit.app.progress import close_all, doing, hide
from dpsmc_audit.app.reference import unread
from dpsmc_audit.app.status import clear
from dpsmc_audit.app.sweep import Stopped
from dpsmc_audit.app.typed import as_hydra_reads
from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.runs import sweeps
from dpsmc_audit.runs.checkpoints import Checkpoint
from dpsmc_audit.runs.execution import SERIAL
from dpsmc_audit.runs.files import POINT, RESULT, near, read_json, remove_temporary, strict, write_json
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.runs.provenance import fingerprint
from dpsmc_audit.runs.resume import clean, complete, files_in, released_in, seal, take_over

if TYPE_CHECKING:
    from dpsmc_audit.app.dispatch import Done

__all__ = ["main"]

INSIDE, BESIDE = (Path(__file__).parents[n] / "conf" for n in (1, 2))
CONF = INSIDE if INSIDE.is_dir() else BESIDE  # a wheel holds conf/ in the package, a checkout at the top

TRACEBACK = "DPSMC_AUDIT_TRACEBACK"
"""The environment variable that remembers the user's HYDRA_FULL_ERROR, also for processes of a launcher."""

log = logging.getLogger("dpsmc_audit")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM during a task. The message says what was kept and how to go on."""


@dataclass(frozen=True)
class _Job:
    """Where Hydra runs a task: alone, or as a point of the sweep in the folder `sweep`."""

    folder: Path
    overrides: list[str]
    sweep: Path | None

    @classmethod
    def current(cls) -> _Job:
        now = HydraConfig.get()
        sweep = Path(now.runtime.cwd, now.sweep.dir) if now.mode == RunMode.MULTIRUN else None
        return cls(Path(now.runtime.output_dir), as_typed(now.overrides.task), sweep)

    @property
    def name(self) -> str:
        """The keys that the point changes, with their values."""
        return f"{HydraConfig.get().job.override_dirname}"

    def warn(self, notes: Sequence[str]) -> None:
        hide()
        for note in notes:
            warn(note, "" if self.sweep is None else f"{self.name}: ")

    def note(self, state: sweeps.State, error: str = "") -> None:
        """Record how the point ended."""
        sweep = None if self.sweep is None else sweeps.Sweep.read(self.sweep)
        if sweep is not None:
            sweep.note(self.folder, state, self.name, error)


def _key(config: Config) -> str:
    """Compute the fingerprint of a result. A release has none: it is never reused, and its data are not read here."""
    return "" if config.task.name == "verify" else fingerprint(strict(config.parameters()), config.inputs())


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _hydra_main(composed: DictConfig) -> None:
    """Run one task. The failure of a point of a sweep must not end the other points."""
    if interrupted():  # a library dropped the interrupt of the job before
        raise KeyboardInterrupt
    job = _Job.current()
    try:
        _run(job, read(composed, job.overrides))
    except Exception as error:
        if interrupted():
            raise KeyboardInterrupt from None
        if type(error) not in (ParameterError, UnknownKeyError):  # of these the line says all; a sampler's has more
            log.exception("this run failed")
        if job.sweep is None or isinstance(error, UnknownKeyError):
            _stop(error)
        try:
            job.note("failed", one_line(error))
        except OSError as full:  # no other point could be written either
            _stop(full)


def _run(job: _Job, config: Config) -> None:
    """Take the result over from an earlier run, or compute it."""
    _refuse_release(job.folder, config)
    key = _key(config)
    if job.sweep is not None and take_over(job.folder, job.sweep, key):
        Checkpoint(job.folder, key).clear(others=True)  # an attempt can be killed between its result and the end
        job.warn(read_json(job.folder / RESULT).get("warnings", []))
        job.note("kept")
        return
    alone = job.sweep is None and not (job.folder / POINT).exists()  # a point of a sweep can have fewer files
    if alone and complete(job.folder, key):
        Checkpoint(job.folder, key).clear()
        remove_temporary(job.folder.iterdir())
        _print_finished(job)
        return
    clean(job.folder)
    job.note("begun")
    _compute(job, config, key)
    if job.sweep is not None:
        Checkpoint(job.folder, key).clear(others=True)
    job.note("done")


def _refuse_release(folder: Path, config: Config) -> None:
    """Refuse a folder with a release, which nothing may replace. A release is not put beside any other result."""
    require(not released_in(folder), f"{near(folder)} holds a release already: choose another folder")
    new = config.task.name != "verify" or not os.path.lexists(folder / RESULT)
    require(new, f"{near(folder)} holds a result already: a release needs a folder of its own")


def _print_finished(job: _Job) -> None:
    """Print the result of an earlier run with the same parameters, files and code."""
    from dpsmc_audit.report.tables import as_text, flatten

    ignore()
    close_all()
    result = read_json(job.folder / RESULT)
    job.warn(result.get("warnings", []))
    print(as_text([flatten(result)]))
    print(f"result in {job.folder}: it was there already")


def _compute(job: _Job, config: Config, key: str) -> None:
    """Run the task and write result.json, the last of its files. A single run prints its result."""
    from dpsmc_audit.app.audits import Audited
    from dpsmc_audit.app.dispatch import run
    from dpsmc_audit.report.tables import as_text, flatten

    folder, released, every = job.folder, config.task.name == "verify", config.backend.checkpoint
    alone = job.sweep is None
    require(alone or not released, "task=verify cannot be swept: each run adds to the loss of privacy")
    backend = SERIAL if released else config.backend.execution
    checkpoint = None if released or every is None else Checkpoint(folder, key, every)
    try:
        with backend.connected() as execution:
            done = run(config, folder, replace(execution, checkpoint=checkpoint), alone=alone)
        if released:
            job.warn(_unread(config))
            _release(config, done, folder)
            return
        result, notes, found, files = done.as_dict(), done.notes, done.result, list[str]()
        if isinstance(found, Audited):  # other tasks have their tables
            from dpsmc_audit.report.page_audit import write_report

            doing("writing the page")
            files = write_report(folder, found.audit, found.others, result, notes, job.overrides)
        result = seal({**result, "warnings": notes}, key, files_in(folder))
        _write(folder, result, last=alone)
    except KeyboardInterrupt:
        raise Interrupted("nothing is released" if released else _kept(checkpoint)) from None
    if checkpoint is not None:
        checkpoint.clear()
    if alone:
        close_all()
        job.warn(_unread(config))
    job.warn(notes)
    if alone:
        if isinstance(found, Audited):
            from dpsmc_audit.report.terminal import as_table

            print(as_table(found.audit, files, two_deltas(config)))
        else:
            print(as_text([flatten(result)]))
        print(f"result in {folder}")


def _write(folder: Path, result: dict[str, Any], *, last: bool) -> None:
    """Write result.json. An interrupt after that does not take it back: words and exit code are those of the result.

    If the command ends with it (`last`), nothing interrupts from then on.
    """
    try:
        write_json(folder / RESULT, result)
        if last:
            ignore()
    except KeyboardInterrupt:
        with suppress(ParameterError):
            if read_json(folder / RESULT) == strict(result):
                return
        raise


def _release(config: Config, done: Done, folder: Path) -> None:
    """Write a release and print it. Exit with code 3 if the data or max_steps ended before a decision."""
    from dpsmc_audit.verify.release import sentences

    release = done.as_dict()
    words = "\n".join(sentences(release, config.p, config.relation))
    _write(folder, release, last=True)
    close_all()
    print(f"{words}\nrelease in {folder / RESULT}")
    if release["decision"] == "undecided":
        sys.exit(3)


def _unread(config: Config) -> list[str]:
    """Name the keys that changed nothing. A sweep does it before its points."""
    return unread_keys(unread(config.given, [config.cases]), config.chosen)


def _kept(checkpoint: Checkpoint | None) -> str:
    """Say what an interrupted task leaves and how to go on from it."""
    if checkpoint is None or not checkpoint.kept:
        return "nothing new was kept"
    kept = ", ".join(f"{done} {stage}" for stage, done in checkpoint.kept.items())
    return f"kept {kept}; go on with the same command and hydra.run.dir={near(checkpoint.folder)}"


def _stop(error: Exception, typed: Sequence[str] = ()) -> NoReturn:
    """Print one line and exit with code 2, or raise the error if the user asked for tracebacks."""
    leave_nothing()
    close_all()
    if os.environ.get(TRACEBACK) == "1":
        raise error
    key = unknown_to_hydra(error)
    known = key is None or known_keys().knows(key)
    print(f"error: {one_line(error, typed) if known else known_keys().message(f'{key}')}", file=sys.stderr)
    sys.exit(2)


def _refuse_unknown(arguments: Sequence[str]) -> None:
    """Refuse unknown keys before Hydra reads the command line: it would accept those with a plus.

    Files of the user can have groups of their own, so names without a dot are then left to Hydra and to `read`.
    """
    check_options(arguments)
    own = own_configuration(arguments)
    keys = (key_of(word) for word in overrides_in(arguments))
    known_keys().refuse(key for key in keys if not own or "." in key)


def _answered(arguments: Sequence[str]) -> bool:
    """Answer --help and --version. Hydra's own answers are a dump of the configuration and Hydra's version."""
    from dpsmc_audit.app.help import asked_for_help, asked_for_version, help_text, version_text

    clear()
    if asked_for_version(arguments):
        print(version_text())
        return True
    if asked_for_help(arguments):
        print(help_text(arguments, f"{CONF}", sorted(path.stem for path in (CONF / "sweep").glob("*.yaml"))))
        return True
    return False


def main() -> None:
    """Run the command line.

    Raises
    ------
    SystemExit
        With the exit code of the run, unless that is 0. Invalid input prints one line and exits with 2; with
        HYDRA_FULL_ERROR=1 it raises the error instead.
    """
    register()
    logging.raiseExceptions = False  # a log that cannot be written (a full disk) is no second error
    os.environ[TRACEBACK] = os.environ.get("HYDRA_FULL_ERROR", "0")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra passes exceptions on
    typed = sys.argv[1:]
    try:
        _refuse_unknown(typed)
        sys.argv[1:] = as_hydra_reads(typed)
        if not _answered(sys.argv[1:]):
            _hydra_main()
    except (KeyboardInterrupt, Stopped, Exception) as error:
        refused = error.__cause__ if isinstance(error, Stopped) else error
        if isinstance(refused, Exception) and not interrupted():
            _stop(refused, typed)
        code = exit_code()
        close_all()
        print(file=sys.stderr)  # the terminal has written ^C
        print(f"interrupted: {_closed(error)}", file=sys.stderr)
        ignore()
        sys.exit(code)
    finally:
        sweeps.end()


def _closed(error: BaseException) -> str:
    """After Ctrl-C, print the table of a sweep's finished points. Return what was kept and how to go on."""
    sweep = sweeps.running()
    if sweep is None:
        return f"{error}" if isinstance(error, Interrupted) else "nothing new was kept"
    from dpsmc_audit.app.sweep import tabulate

    with suppress(OSError):  # other processes of a launcher may still write there
        tabulate(sweep, drawn=False)
    return f"finished points are kept; go on with the same command and hydra.sweep.dir={near(sweep.folder)}"
