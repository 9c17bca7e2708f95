"""Measure, print, and write ``results.json``, ``README.md`` and the figures: all of it, or the parts that are named."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib import import_module
from typing import cast

from benchmarks import page, results
from benchmarks.measure import Ratios

PARTS = {
    "kernels": ("kernels", "kernel_ratios"),
    "figure1": ("figure1", "figure1_ratios"),
    "threads": ("threads", "thread_ratios"),
    "exact": ("exact", "exact_ratios"),
    "growth": ("growth", "growth_ratios"),
    "memory": ("growth", "memory_ratios"),
    "naive": ("naive", "naive_ratios"),
    "pairs": ("auditor", "pair_ratios"),
    "release": ("auditor", "release_ratios"),
    "unseen": ("auditor", "unseen_ratios"),
    "peers": ("auditor", "peer_ratios"),
    "judging": ("auditor", "cost_ratios"),
    "dpsprt": ("dpsprt", "dpsprt_ratios"),
    "startup": ("startup", "startup_ratios"),
    "powertrain": ("powertrain", "powertrain_ratios"),
    "stl": ("stl", "stl_ratios"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}, or page to write README.md anew")
    chosen: list[str] = parser.parse_args().parts
    unknown = set(chosen) - {*PARTS, "page"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    known = results.read() if chosen else {}
    for part in chosen or PARTS:
        if part != "page":
            module, function = PARTS[part]
            started = time.perf_counter()
            ratios = cast(Callable[[], Ratios], getattr(import_module(f"benchmarks.{module}"), function))()
            for name, ratio in ratios.items():
                print(f"{name:<36} {ratio.value:10.4g}  {ratio.method}")
            print(f"({part}: {time.perf_counter() - started:.0f} s)", flush=True)
            known = results.write(known, ratios)
    page.write(known)


if __name__ == "__main__":
    main()
