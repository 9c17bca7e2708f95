"""The command line, a thin layer over the library: ``python -m dpsmc_audit [key=value ...] [+sweep=table1]``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from dpsmc_audit.config import Config, read, register
from dpsmc_audit.sprt import ParameterError

INSIDE, BESIDE = Path(__file__).parent / "conf", Path(__file__).parent.parent / "conf"
CONF = INSIDE if INSIDE.is_dir() else BESIDE  # a wheel carries conf/ inside, a checkout has it at the top

log = logging.getLogger("dpsmc_audit")


def _run(config: Config, folder: Path) -> None:
    """Do the task; write result.json; a single run prints its row."""
    from dpsmc_audit.report.files import RESULT, write_json
    from dpsmc_audit.report.tables import as_text, flatten
    from dpsmc_audit.tasks import run, warnings_for

    result = run(config)
    write_json(folder / RESULT, result)
    for note in warnings_for(config, result):
        log.warning(note)
        print(f"warning: {_where()}{note}", file=sys.stderr)
    if not _in_sweep():
        print(as_text([flatten(result)]))
        print(f"result in {folder}")


def _in_sweep() -> bool:
    return bool(HydraConfig.get().mode == RunMode.MULTIRUN)


def _where() -> str:
    return f"{HydraConfig.get().job.override_dirname}: " if _in_sweep() else ""


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _job(composed: DictConfig) -> None:
    """One run, or one job of a sweep, which must not take the others down."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    if not _in_sweep():
        _run(read(composed), folder)
        return
    from dpsmc_audit.report.files import write_text
    from dpsmc_audit.report.sweep import FAILED

    try:
        _run(read(composed), folder)
    except Exception as error:
        log.exception("this job failed")
        write_text(folder / FAILED, f"{_where()}{_line(error)}\n")


def _line(error: BaseException) -> str:
    """One line for the user: Hydra puts the reason into the cause."""
    text = (
        f"{error}"
        if isinstance(error, (ParameterError, HydraException, OSError))
        else f"{type(error).__name__}: {error}"
    )
    cause = error.__cause__
    lines = [*text.splitlines(), *(f"{cause}".splitlines()[:1] if isinstance(cause, OmegaConfBaseException) else [])]
    return " ".join(line.strip() for line in lines if line.strip())


def main() -> None:
    """Run, and end in one clear line and a non-zero exit where that is impossible (HYDRA_FULL_ERROR=1: a traceback)."""
    register()
    wants_traceback = os.environ.get("HYDRA_FULL_ERROR") == "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"  # let exceptions through to here
    try:
        _job()
    except KeyboardInterrupt:
        from dpsmc_audit.report.sweep import finish_interrupted

        finish_interrupted()
        sys.exit("interrupted")
    except Exception as error:
        if wants_traceback:
            raise
        print(f"error: {_line(error)}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
