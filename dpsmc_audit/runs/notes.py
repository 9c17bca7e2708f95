"""What a user must hear of, without an end to the run: one line, and the same in the log."""

from __future__ import annotations

import logging
import sys

__all__ = ["warn"]

log = logging.getLogger("dpsmc_audit")


def warn(note: str, where: str = "") -> None:
    """On standard error, begun by the point of a sweep that it concerns."""
    log.warning(note)
    print(f"warning: {where}{note}", file=sys.stderr)
