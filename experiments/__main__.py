"""Every figure of ``figures/``: ``python -m experiments [name ...] [--recompute]``.

Studies of more than a minute are drawn from their reference results in ``experiments/results``; `--recompute` computes
those anew, too. Numbers behind the figures depend on fixed seeds only.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module

import pandas as pd

QUICK = ("table1", "figure1", "counterexample", "observers", "powertrain")
LONG = ("attack", "dpsprt", "sensitivity", "price")


def redraw(name: str) -> None:
    """A long study's figure from its reference results."""
    from dpsmc_audit.report.figures import save

    study = import_module(f"experiments.{name}")
    save(study.figure(pd.read_csv(study.RESULTS)), study.TOP / "figures" / name)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Draw every figure of figures/.")
    parser.add_argument("names", nargs="*", help=f"studies, of {', '.join(QUICK + LONG)}; default: all")
    parser.add_argument("--recompute", action="store_true", help=f"compute these anew, too: {', '.join(LONG)}")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - {*QUICK, *LONG})
    if unknown:
        parser.error(f"no such study: {', '.join(unknown)}")
    for name in given.names or QUICK + LONG:
        begun = time.perf_counter()
        if name in LONG and not given.recompute:
            redraw(name)
        else:
            import_module(f"experiments.{name}").main()
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
