"""The command line, a thin layer over the library: ``python -m dpsmc_audit [key=value ...] [+sweep=table1]``."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from dpsmc_audit.config import Config, known_keys, read, register
from dpsmc_audit.errors import one_line, unknown_to_hydra
from dpsmc_audit.interrupts import INTERRUPTED, end_now, end_soon_after_interrupt, interrupted
from dpsmc_audit.keys import UnknownKeyError, key_of, overrides_in, own_configuration
from dpsmc_audit.notes import warn
from dpsmc_audit.provenance import fingerprint
from dpsmc_audit.report.files import FAILED, KEPT_NOTE, near, strict
from dpsmc_audit.sprt import require

INSIDE, BESIDE = Path(__file__).parent / "conf", Path(__file__).parent.parent / "conf"
CONF = INSIDE if INSIDE.is_dir() else BESIDE  # a wheel carries conf/ inside, a checkout has it at the top

UNDECIDED = 3
"""Exit code of a verification that the data or max_steps ended."""

TRACEBACK = "DPSMC_AUDIT_TRACEBACK"

log = logging.getLogger("dpsmc_audit")

_state: dict[str, Any] = {"verify": False, "interrupted": False, "checkpoint": None}
_closing = threading.Lock()
CLOSING = 10.0
"""Seconds that one thread waits for the other to close an interrupted run."""


def _run(config: Config, folder: Path, fingerprint: str) -> None:
    """Do the task; write result.json, last of all files; a single run prints its row."""
    from dpsmc_audit.checkpoints import Checkpoint
    from dpsmc_audit.report.files import RESULT, write_json
    from dpsmc_audit.report.page_audit import write_report
    from dpsmc_audit.report.tables import as_text, flatten
    from dpsmc_audit.resume import files_in, seal
    from dpsmc_audit.tasks import run, warnings_for

    released = config.task.name == "verify"
    _state["verify"] = released
    require(not (released and _in_sweep()), "task=verify cannot be swept: each run adds to the loss of privacy")
    execution, every = config.backend.execution, config.backend.checkpoint
    checkpoint = None if released or every is None else Checkpoint(folder, fingerprint, every)
    _state["checkpoint"] = checkpoint
    result = run(config, folder, replace(execution, checkpoint=checkpoint))
    notes = warnings_for(config, result)
    files = write_report(config, folder, result, notes, HydraConfig.get().overrides.task, alone=not _in_sweep())
    if not released:
        result = seal({**result, "warnings": notes}, fingerprint, files_in(folder))
    write_json(folder / RESULT, result)
    if checkpoint is not None:
        checkpoint.clear()
    for note in notes:
        warn(note, _where())
    if released:
        _show_release(config, result, folder)
    elif not _in_sweep():
        if config.task.name == "audit":
            from dpsmc_audit.report.terminal import as_table

            print(as_table(result, files))
        else:
            print(as_text([flatten(result)]))
        if "sentence" in result:
            print(result["sentence"])
        print(f"result in {folder}")


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
    from dpsmc_audit.report.files import RESULT, read_json, write_text
    from dpsmc_audit.resume import clean, take_over

    if interrupted():  # in the job before, and not heard there
        raise KeyboardInterrupt
    folder = Path(HydraConfig.get().runtime.output_dir)
    try:
        config = read(composed, HydraConfig.get().overrides.task)
        key, sweep = _key(config), Path(HydraConfig.get().runtime.cwd, HydraConfig.get().sweep.dir)
        if _in_sweep() and take_over(folder, sweep, key):
            for note in read_json(folder / RESULT).get("warnings", []):
                warn(note, _where())
            write_text(folder / KEPT_NOTE, f"{HydraConfig.get().job.override_dirname}\n")
            return
        clean(folder)
        _run(config, folder, key)
    except Exception as error:
        if interrupted():
            raise KeyboardInterrupt from None
        log.exception("this run failed")
        if not _in_sweep() or isinstance(error, UnknownKeyError):
            _stop(error)
        try:
            write_text(folder / FAILED, f"{_where()}{one_line(error)}\n")
        except OSError as full:  # then no other point could be written either
            _stop(full)


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
    """Run; what is impossible ends in one clear line and a non-zero exit (HYDRA_FULL_ERROR=1: in a traceback)."""
    register()
    logging.raiseExceptions = False  # a log that cannot be written (a full disk) is no second error
    os.environ[TRACEBACK] = os.environ.get("HYDRA_FULL_ERROR", "0")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra lets its own exceptions through to here
    _state["interrupted"] = False
    try:
        _refuse_unknown(sys.argv[1:])
        _job()
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, Exception) and not interrupted():
            _stop(error)
        _close()
        sys.exit(INTERRUPTED)


def _close() -> None:
    """After Ctrl-C, once: tabulate what a sweep has finished, say what was kept and how to go on."""
    from dpsmc_audit.report.sweep import finish_interrupted

    if not _closing.acquire(timeout=CLOSING):
        return
    try:
        if not _state["interrupted"]:
            _state["interrupted"] = True
            with suppress(OSError):  # other processes of a launcher may still be at work there
                finish_interrupted()
            print(f"\n{_interrupted()}", file=sys.stderr)
    finally:
        _closing.release()


def _interrupted() -> str:
    """What was kept, and how to go on."""
    from dpsmc_audit.report.sweep import interrupted_sweep

    sweep, checkpoint = interrupted_sweep(), _state["checkpoint"]
    if _state["verify"]:
        return "interrupted: nothing is released"
    if sweep is not None:
        return f"interrupted: finished points are kept; go on with the same command and hydra.sweep.dir={near(sweep)}"
    if checkpoint is None or not checkpoint.kept:
        return "interrupted: nothing was kept"
    kept = ", ".join(f"{done} {stage}" for stage, done in checkpoint.kept.items())
    return f"interrupted: kept {kept}; go on with the same command and hydra.run.dir={near(checkpoint.folder)}"


def command() -> NoReturn:
    """The process of the command line.

    After a verification it ends at once, and nothing of the model speaks later; after Ctrl-C too, whatever still runs.
    """
    end_soon_after_interrupt(_close)
    code: int | str | None = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    if not _state["verify"] and not _state["interrupted"]:
        sys.exit(code)
    if isinstance(code, str):
        print(code, file=sys.stderr)
    logging.shutdown()
    end_now(code if isinstance(code, int) else int(code is not None))
