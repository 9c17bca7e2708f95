"""Whole commands against the bare imports they cannot do without, in processor time of processes of their own."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Ratio, Ratios

__all__ = ["startup_ratios"]

TOP = Path(__file__).parent.parent
ROUNDS = 5


def _spent() -> float:
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seconds(arguments: list[str], folder: str, compiled: str) -> float:
    before = _spent()
    environment = os.environ | {"PYTHONPATH": str(TOP), "NUMBA_CACHE_DIR": compiled}
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment)
    return _spent() - before


def startup_ratios() -> Ratios:
    """Cold is with an empty cache of compiled kernels, once; the others are medians of runs in turn."""
    bare, first = ["-c", "import numba, hydra, pandas"], ["-m", "dpsmc_audit", "task=simulate"]
    warm = {"help": ["-m", "dpsmc_audit", "--help"], "first": first, "table1": ["-m", "dpsmc_audit", "+sweep=table1"]}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as compiled:
        cold = _seconds(first, folder, compiled)
        _seconds(warm["table1"], folder, compiled)  # fills the cache
        times: dict[str, list[float]] = {name: [] for name in ("bare", *warm)}
        for _ in range(ROUNDS):
            for name, arguments in {"bare": bare, **warm}.items():
                times[name].append(_seconds(arguments, folder, compiled))
    middle = {name: statistics.median(each) for name, each in times.items()} | {"cold": cold}
    method = f"against 'import numba, hydra, pandas'; processor time, medians of {ROUNDS} runs in turn"
    said = {
        "help_vs_bare_imports": ("help", "--help"),
        "first_result_vs_bare_imports": ("first", "task=simulate with a warm cache"),
        "cold_result_vs_bare_imports": ("cold", "task=simulate, every kernel compiled anew, once,"),
        "table1_vs_bare_imports": ("table1", "+sweep=table1 with a warm cache"),
    }
    return {
        name: Ratio(
            middle[which] / middle["bare"],
            f"{what} {method}",
            details={"seconds": round(middle[which], 2), "bare_seconds": round(middle["bare"], 2)},
        )
        for name, (which, what) in said.items()
    }
