"""A whole command against the bare imports it cannot do without."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).parent.parent


def seconds(arguments: list[str], folder: str) -> float:
    started = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(TOP)}
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - started


def startup_ratios(rounds: int = 7) -> dict[str, tuple[float, str]]:
    table, bare = ["-m", "dpsmc_audit", "+sweep=table1"], ["-c", "import numba, hydra, pandas"]
    with tempfile.TemporaryDirectory() as folder:
        seconds(table, folder)  # fills the cache of compiled kernels
        times = [(seconds(table, folder), seconds(bare, folder)) for _ in range(rounds)]
    ratio = statistics.median(t for t, _ in times) / statistics.median(b for _, b in times)
    method = "+sweep=table1 with a warm cache against 'import numba, hydra, pandas'; medians of runs in turn"
    return {"table1_vs_bare_imports": (ratio, method)}
