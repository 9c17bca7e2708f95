"""Measure, print and write ``benchmarks/results.json``, a flat map of named ratios each with its method."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.figure1 import figure1_ratios
from benchmarks.kernels import kernel_ratios
from benchmarks.powertrain import powertrain_ratios
from benchmarks.startup import startup_ratios
from benchmarks.stl import stl_ratios


def main() -> None:
    ratios = kernel_ratios() | figure1_ratios() | powertrain_ratios() | stl_ratios() | startup_ratios()
    width = max(map(len, ratios))
    for name, (value, method) in ratios.items():
        print(f"{name:<{width}}  {value:8.2f}  {method}")
    results = {name: {"ratio": round(value, 3), "method": method} for name, (value, method) in ratios.items()}
    path = Path(__file__).with_name("results.json")
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
