"""The command line, a thin layer over the library: ``python -m dpsmc_audit [key=value ...] [+sweep=table1]``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from dpsmc_audit.app.config import Config, known_keys, read, register
from dpsmc_audit.app.interrupts import INTERRUPTED, interrupted, listen
from dpsmc_audit.app.keys import UnknownKeyError, key_of, overrides_in, own_configuration
from dpsmc_audit.app.messages import one_line, unknown_to_hydra
from dpsmc_audit.errors import require
from dpsmc_audit.runs import sweeps
from dpsmc_audit.runs.files import near, strict
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.runs.provenance import fingerprint

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Checkpoint

INSIDE, BESIDE = (Path(__file__).parents[n] / "conf" for n in (1, 2))
CONF = INSIDE if INSIDE.is_dir() else BESIDE  # a wheel carries conf/ inside, a checkout has it at the top

UNDECIDED = 3
"""Exit code of a verification that the data or max_steps ended."""

TRACEBACK = "DPSMC_AUDIT_TRACEBACK"

log = logging.getLogger("dpsmc_audit")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a task, with what was kept of it and how to go on."""


def _run(config: Config, folder: Path, fingerprint: str) -> None:
    """Do the task; write result.json, last of all files; a single run prints its row."""
    from dpsmc_audit.app.tasks import Audited, run
    from dpsmc_audit.report.page_audit import write_report
    from dpsmc_audit.report.tables import as_text, flatten
    from dpsmc_audit.report.terminal import as_table
    from dpsmc_audit.runs.checkpoints import Checkpoint
    from dpsmc_audit.runs.files import RESULT, write_json
    from dpsmc_audit.runs.resume import files_in, seal

    released = config.task.name == "verify"
    require(not (released and _in_sweep()), "task=verify cannot be swept: each run adds to the loss of privacy")
    execution, every = config.backend.execution, config.backend.checkpoint
    checkpoint = None if released or every is None else Checkpoint(folder, fingerprint, every)
    try:
        done = run(config, folder, replace(execution, checkpoint=checkpoint), alone=not _in_sweep())
        result, notes, found, files = done.as_dict(), done.notes, done.result, list[str]()
        if isinstance(found, Audited):  # a release says no more than it must, and other tasks have their tables
            given = HydraConfig.get().overrides.task
            files = write_report(folder, found.audit, found.others, result, notes, given)
        if not released:
            result = seal({**result, "warnings": notes}, fingerprint, files_in(folder))
        write_json(folder / RESULT, result)
    except KeyboardInterrupt:
        raise Interrupted("nothing is released" if released else _kept(checkpoint)) from None
    if checkpoint is not None:
        checkpoint.clear()
    for note in notes:
        warn(note, _where())
    if released:
        _show_release(config, result, folder)
    elif not _in_sweep():
        print(as_table(found.audit, files) if isinstance(found, Audited) else as_text([flatten(result)]))
        print(f"result in {folder}")


def _kept(checkpoint: Checkpoint | None) -> str:
    """What an interrupted task leaves, and how to go on from it."""
    if checkpoint is None or not checkpoint.kept:
        return "nothing was kept"
    kept = ", ".join(f"{done} {stage}" for stage, done in checkpoint.kept.items())
    return f"kept {kept}; go on with the same command and hydra.run.dir={near(checkpoint.folder)}"


def _show_release(config: Config, release: dict[str, Any], folder: Path) -> None:
    """In sentences; a run that came to no decision ends with its own exit code."""
    from dpsmc_audit.verify.release import sentences

    print("\n".join(sentences(release, config.p, config.relation)))
    print(f"release in {folder / 'result.json'}")
    if release["decision"] == "undecided":
        sys.exit(UNDECIDED)


def _in_sweep() -> bool:
    return bool(HydraConfig.get().mode == RunMode.MULTIRUN)


def _where() -> str:
    return f"{HydraConfig.get().job.override_dirname}: " if _in_sweep() else ""


def _key(config: Config) -> str:
    """What a result is found again by; a release is never, and its data and code are looked at in one place only."""
    return "" if config.task.name == "verify" else fingerprint(strict(config.parameters()), config.inputs())


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _job(composed: DictConfig) -> None:
    """One run, or one job of a sweep, which must not take the others down."""
    from dpsmc_audit.runs.resume import clean

    if interrupted():  # during the job before, where a library dropped it
        raise KeyboardInterrupt
    folder = Path(HydraConfig.get().runtime.output_dir)
    try:
        config = read(composed, HydraConfig.get().overrides.task)
        if _in_sweep():
            _point(config, folder)
        else:
            clean(folder)
            _run(config, folder, _key(config))
    except Exception as error:
        if interrupted():
            raise KeyboardInterrupt from None
        log.exception("this run failed")
        if not _in_sweep() or isinstance(error, UnknownKeyError):
            _stop(error)
        try:
            _note(folder, "failed", one_line(error))
        except OSError as full:  # then no other point could be written either
            _stop(full)


def _point(config: Config, folder: Path) -> None:
    """A point of a sweep: taken over from an earlier one in the same folder, or computed."""
    from dpsmc_audit.runs.files import RESULT, read_json
    from dpsmc_audit.runs.resume import clean, take_over

    key = _key(config)
    if take_over(folder, _sweep_folder(), key):
        for note in read_json(folder / RESULT).get("warnings", []):
            warn(note, _where())
        _note(folder, "kept")
        return
    clean(folder)
    _run(config, folder, key)
    _note(folder, "done")


def _note(folder: Path, state: sweeps.State, error: str = "") -> None:
    sweep = sweeps.Sweep.read(_sweep_folder())
    if sweep is not None:
        sweep.note(folder, state, HydraConfig.get().job.override_dirname, error)


def _sweep_folder() -> Path:
    return Path(HydraConfig.get().runtime.cwd, HydraConfig.get().sweep.dir)


def _stop(error: Exception) -> NoReturn:
    """End in one clear line, or in a traceback where the user asked for it."""
    if os.environ.get(TRACEBACK) == "1":
        raise error
    key = unknown_to_hydra(error)
    told = one_line(error) if key is None or known_keys().knows(key) else known_keys().message(key)
    print(f"error: {told}", file=sys.stderr)
    sys.exit(2)


def _refuse_unknown(arguments: Sequence[str]) -> None:
    """Look at every key of the command line before Hydra does: it would take unknown ones with a plus.

    Files of the user can have groups of their own. Then single names are left to Hydra and to `read`.
    """
    own = own_configuration(arguments)
    keys = (key_of(word) for word in overrides_in(arguments))
    known_keys().refuse(key for key in keys if not own or "." in key)


def main() -> None:
    """Run; invalid input prints one line and exits with 2 (HYDRA_FULL_ERROR=1: with a traceback)."""
    register()
    logging.raiseExceptions = False  # a log that cannot be written (a full disk) is no second error
    os.environ[TRACEBACK] = os.environ.get("HYDRA_FULL_ERROR", "0")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra lets its own exceptions through to here
    try:
        _refuse_unknown(sys.argv[1:])
        _job()
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, Exception) and not interrupted():
            _stop(error)
        print(f"\ninterrupted: {_closed(error)}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        sweeps.end()


def _closed(error: BaseException) -> str:
    """After Ctrl-C: print the table of a sweep's finished points, and say what was kept and how to go on."""
    sweep = sweeps.running()
    if sweep is None:
        return f"{error}" if isinstance(error, Interrupted) else "nothing was kept"
    from dpsmc_audit.app.sweep import tabulate

    with suppress(OSError):  # other processes of a launcher may still be at work there
        tabulate(sweep, drawn=False)
    return f"finished points are kept; go on with the same command and hydra.sweep.dir={near(sweep.folder)}"


def command() -> NoReturn:
    """The process of the command line."""
    listen()
    main()
    sys.exit(0)
