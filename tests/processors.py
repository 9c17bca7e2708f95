"""Other processors, simulated: the same machine told to compute as an older or a different one would.

``python -m tests.processors FOLDER`` runs `COMMANDS` one after the other in this process and leaves their results below
the folder, so that those of two processors can be compared (`differences`).
"""

from __future__ import annotations

import csv
import json
import logging
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

TOP = Path(__file__).parent.parent
FILES = ("result.json", "table.csv", "histogram.csv", "profile.csv")
SAMPLER = """
import numpy as np


def noisy(x, runs, rng):
    return np.maximum(np.floor(10 * (x + rng.exponential(size=runs))).astype(int), 0)
"""


def cpu_features() -> list[str]:
    """What NumPy would choose its loops by on this machine, beyond what it was compiled for."""
    from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]

    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]]


def processors() -> dict[str, dict[str, str]]:
    """Environment variables by the name of the processor: Numba, NumPy, OpenBLAS and the C library are told apart."""
    loops = {"NPY_DISABLE_CPU_FEATURES": " ".join(cpu_features())} if cpu_features() else {}
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", **loops}
    library = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4"}
    return {
        "generic": {**generic, **library, "OPENBLAS_CORETYPE": "Nehalem"},
        "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    }


def environment(name: str, cache: Path) -> dict[str, str]:
    """Of a process on this processor; code compiled for it is kept apart."""
    told = {"NUMBA_CACHE_DIR": f"{cache}", "PYTHONPATH": f"{TOP}", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **(processors()[name] if name != "native" else {}), **told}


COARSE = "p=0.5 p_phi=0.6 delta=0.1 alpha=0.05"
FAIR = "p=0.5 p_phi=0.5 delta=0.2 alpha=0.05 epsilon=0.2"
ROUGH = "p=0.73 p_phi=0.84 delta=0.05 alpha=0.05 epsilon=0.2"
COMMANDS = (
    "-m +sweep=table1 runs=2000",
    "-m +sweep=observers pairs=40 draws=500 runs=2000 delta=0.03 alpha=0.05 epsilon=0.1",
    "-m +sweep=p_phi engine=exact p_phi=0.55,0.72,0.735,0.84",
    "-m +sweep=epsilon runs=2000 epsilon=0.01,0.2,2",
    "-m +sweep=entry engine=exact notion=marginal entry=1,400,1000",
    "-m +sweep=entry engine=exact notion=marginal mechanism=truncated,laplace entry=1,10",
    "-m +sweep=alpha_delta engine=exact alpha=0.01,0.05 delta=0.01,0.05",
    "-m +sweep=pairs pairs=20,100 draws=500",
    *(f"-m task=simulate mechanism={law} epsilon=0.05,0.3 runs=3000" for law in ("truncated", "laplace", "none")),
    f"-m task=simulate mechanism=truncated,laplace,exponential runs=3000 {ROUGH}",
    f"-m task=simulate mechanism=truncated,laplace,exponential,none runs=3000 {COARSE} epsilon=0.1",
    f"-m task=simulate mechanism=truncated,laplace,exponential,none runs=3000 {FAIR}",
    "-m task=simulate mechanism=law mechanism.distribution=gamma 'mechanism.arguments={a: 2, scale: 5}' runs=3000",
    "-m task=simulate engine.kernel=steps mechanism=laplace alpha_fp=0.01 alpha_fn=0.1 delta=0.05 epsilon=0.3 runs=900",
    *(f"-m engine=exact notion=expected mechanism=none,exponential,truncated,laplace {x}" for x in (ROUGH, FAIR)),
    f"-m engine=exact notion=expected bin_width=1 mechanism=exponential,laplace {ROUGH}",
    f"-m engine=exact notion=expected bin_width=5 mechanism=exponential,none {COARSE} epsilon=0.1",
    *(f"-m engine=exact notion=marginal mechanism=none,exponential,truncated,laplace {x}" for x in (ROUGH, FAIR)),
    f"-m engine=exact notion=marginal mechanism=none,exponential,truncated,laplace {COARSE} epsilon=0.1 entry=2",
    f"-m engine=exact notion=marginal bin_width=3 floor=0.001 mechanism=exponential,laplace {ROUGH} entry=5",
    f"-m engine=exact notion=marginal mechanism=law mechanism.distribution=gamma 'mechanism.arguments={{a: 2, scale: 5}}' {ROUGH}",
    f"-m engine=exact notion=marginal mechanism=law mechanism.distribution=poisson 'mechanism.arguments={{mu: 3}}' {ROUGH}",
    *(f"-m notion=marginal method={how} runs=20000 pairs=40 mechanism=none,exponential {ROUGH}" for how in ("split", "union", "anytime")),
    f"-m notion=marginal method=split,union,anytime runs=20000 pairs=40 mechanism=truncated,laplace {FAIR}",
    *(f"-m notion=informed pairs=40 mechanism=none,exponential,truncated,laplace {x}" for x in (ROUGH, FAIR)),
    f"-m notion=informed pairs=40 mechanism=none,exponential,laplace {COARSE} epsilon=0.1 'entry=[1,3]'",
    "notion=informed sequence=bits.txt mechanism=exponential epsilon=0.1",
    "notion=informed sequence=bits.txt mechanism=laplace epsilon=0.3 delta=0.05 floor=0.1",
    *(f"-m sampler=mine:noisy epsilon=0,1,10 runs=4000 method={how}" for how in ("split", "union", "anytime")),
    "-m task=estimate model=bernoulli p_phi=0.3,0.84 runs=2000",
    "-m task=estimate model=powertrain runs=40",
    "task=verify insecure=true seed=3 mechanism=laplace delta=0.1 alpha=0.05 epsilon=0.3",
)  # fmt: skip
"""All tasks, observers, mechanisms, engines and methods; steps that share a lattice and steps that do not."""


def run_all(folder: Path) -> None:
    """Every command in its own folder, with its exit code."""
    import shlex

    from hydra.core.global_hydra import GlobalHydra

    from dpsmc_audit import cli

    rng = np.random.default_rng(1)
    sys.path.insert(0, f"{folder}")
    (folder / "mine.py").write_text(SAMPLER)
    (folder / "bits.txt").write_text("".join(f"{x}" for x in (rng.random(3000) < 0.84).astype(int)))
    for number, line in enumerate(COMMANDS):
        place = folder / f"{number:02d}"
        place.mkdir()
        GlobalHydra.instance().clear()
        os.chdir(folder)
        where = "hydra.sweep.dir" if line.startswith("-m") else "hydra.run.dir"
        sys.argv = ["dpsmc_audit", *shlex.split(line), f"{where}={place}", "backend=serial", "hydra.verbose=false"]
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        (place / "code.txt").write_text(f"{code}")
    logging.shutdown()


# --- what may differ ------------------------------------------------------------------------------------------------


def found_in(folder: Path) -> Iterator[tuple[str, Any]]:
    """Name and content of everything that is compared."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.name == "code.txt" or path.name == "failed.txt":
            yield name, path.read_text()
        elif path.name == "result.json":
            yield name, json.loads(path.read_text())
        elif path.name in FILES:
            with path.open() as file:
                yield name, list(csv.DictReader(file))


if __name__ == "__main__":
    run_all(Path(sys.argv[1]).resolve())
