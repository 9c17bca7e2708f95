"""Print a warning without stopping the run."""

from __future__ import annotations

import logging
import sys

__all__ = ["warn"]

log = logging.getLogger("dpsmc_audit")


def warn(note: str, where: str = "") -> None:
    """Print one line to standard error and to the log.

    Parameters
    ----------
    note : str
        The warning.
    where : str
        The point of a sweep that it is about, printed in front of it.
    """
    log.warning(note)
    print(f"warning: {where}{note}", file=sys.stderr)
