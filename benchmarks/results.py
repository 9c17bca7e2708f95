"""``results.json``: a flat map of named ratios, each with its method and the machine it was measured on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.in_c import compiler
from benchmarks.measure import Ratios

__all__ = ["PATH", "Results", "machine", "met", "read", "write"]

PATH = Path(__file__).with_name("results.json")
Results = dict[str, dict[str, Any]]


def machine() -> str:
    """In general terms: cores, vector instructions, and the versions that make code."""
    import numba
    import numpy as np

    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split() if Path("/proc/cpuinfo").exists() else []
    vectors = next((name for name in ("avx512f", "avx2") if name in flags), None)
    found = compiler()
    made = "no C compiler"
    if found is not None:
        said = subprocess.run([found, "-dumpfullversion"], check=True, capture_output=True, text=True)
        made = f"{Path(found).name} {said.stdout.strip()}"
    cores = f"{os.cpu_count()} cores, {platform.machine()}" + ("" if vectors is None else f" with {vectors.upper()}")
    return f"{cores}; {made}; Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"


def read() -> Results:
    """What was measured last."""
    found: Results = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    return found


def write(results: Results, ratios: Ratios) -> Results:
    """The same with these ratios in it, or anew; on disk too."""
    here = machine()
    merged = results | {name: ratio.as_dict(here) for name, ratio in ratios.items()}
    PATH.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")
    return merged


def met(entry: dict[str, Any]) -> bool | None:
    """Does the ratio keep what is asked of it? None where nothing is."""
    if "at_least" in entry:
        return bool(entry["ratio"] >= entry["at_least"])
    if "at_most" in entry:
        return bool(entry["ratio"] <= entry["at_most"])
    return None
