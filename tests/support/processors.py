"""Other processors, simulated: the same machine told to compute as an older or a different one would.

``python -m tests.support.processors run FOLDER`` runs `COMMANDS` one after the other in this process and leaves their
results below the folder, so that those of two processors can be compared (`differences`). ``python -m
tests.support.processors test`` runs the tests that are marked `processor` on every simulated processor, at the same
time.
"""

from __future__ import annotations

import csv
import ctypes
import json
import logging
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

TOP = Path(__file__).parents[2]
SAMPLER = '''
import numpy as np


def noisy(x, runs, rng):
    """A count with too little noise, and a decision that says nothing."""
    return np.floor(10 * (x + rng.exponential(size=runs))).astype(int), rng.integers(0, 2, runs)
'''


# --- processors -----------------------------------------------------------------------------------------------------


def cpu_features() -> list[str]:
    """What NumPy chooses its loops by on this machine, beyond what it was compiled for."""
    from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]

    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]]


def _wide(feature: str) -> bool:
    return "AVX512" in feature or feature == "X86_V4"


def blas_kernel() -> str | None:
    """For which processor OpenBLAS, as NumPy brings it along, computes in this process; None if it cannot be asked."""
    for path in sorted(Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*")):
        asked = getattr(ctypes.CDLL(f"{path}"), "scipy_openblas_get_corename64_", None)
        if asked is not None:
            asked.restype = ctypes.c_char_p
            return str(asked().decode())
    return None


def processors() -> dict[str, dict[str, str]]:
    """Environment variables by the name of the processor: Numba, NumPy, OpenBLAS and the C library are told apart.

    `generic` has none of AVX2, FMA and AVX512. `other` has all but AVX512, and OpenBLAS computes as neither here nor
    there.
    """
    present, oldest = cpu_features(), "Nehalem"
    able = {"SkylakeX": any(map(_wide, present)), "Haswell": any(x in present for x in ("AVX2", "X86_V3"))}
    kernels = [name for name, known in {**able, "Prescott": True}.items() if known and name != blas_kernel()]
    narrow = " ".join(filter(_wide, present))
    generic = {"NUMBA_CPU_NAME": "generic", "NPY_DISABLE_CPU_FEATURES": " ".join(present)}
    library = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4"}
    found = {
        "generic": {**generic, **library, "OPENBLAS_CORETYPE": oldest},
        "other": {"NPY_DISABLE_CPU_FEATURES": narrow, "OPENBLAS_CORETYPE": kernels[0]},
    }
    return {name: {key: value for key, value in told.items() if value} for name, told in found.items()}


def environment(name: str, cache: Path | None = None) -> dict[str, str]:
    """Of a process on this processor (`native`: this one); Numba keeps apart what it compiles for different ones."""
    told = {} if name == "native" else processors()[name]
    kept = {} if cache is None else {"NUMBA_CACHE_DIR": f"{cache}"}
    return {**os.environ, "PYTHONPATH": f"{TOP}", **kept, **told}


# --- commands -------------------------------------------------------------------------------------------------------


COARSE = "p=0.5 p_phi=0.6 delta=0.1 alpha=0.05"
FAIR = "p=0.5 p_phi=0.5 delta=0.2 alpha=0.05 epsilon=0.2"
ROUGH = "p=0.73 p_phi=0.84 delta=0.05 alpha=0.05 epsilon=0.2"
GAMMA = "mechanism=law mechanism.distribution=gamma 'mechanism.arguments={a: 2, scale: 5}'"
POISSON = "mechanism=law mechanism.distribution=poisson 'mechanism.arguments={mu: 3}'"
ALL = "mechanism=none,exponential,truncated,laplace"
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
    f"-m task=simulate {ALL} runs=3000 {COARSE} epsilon=0.1",
    f"-m task=simulate {ALL} runs=3000 {FAIR}",
    f"-m task=simulate {GAMMA} runs=3000",
    "-m task=simulate engine.kernel=steps mechanism=laplace alpha_fp=0.01 alpha_fn=0.1 delta=0.05 epsilon=0.3 runs=900",
    *(f"-m engine=exact notion=expected {ALL} {setting}" for setting in (ROUGH, FAIR)),
    f"-m engine=exact notion=expected bin_width=1 mechanism=exponential,laplace {ROUGH}",
    f"-m engine=exact notion=expected bin_width=5 mechanism=exponential,none {COARSE} epsilon=0.1",
    *(f"-m engine=exact notion=marginal {ALL} {setting}" for setting in (ROUGH, FAIR)),
    f"-m engine=exact notion=marginal {ALL} {COARSE} epsilon=0.1 entry=2",
    f"-m engine=exact notion=marginal bin_width=3 floor=0.001 mechanism=exponential,laplace {ROUGH} entry=5",
    *(f"-m engine=exact notion=marginal {law} {ROUGH}" for law in (GAMMA, POISSON)),
    *(
        f"-m notion=marginal early={how} runs=20000 pairs=40 mechanism=none,exponential {ROUGH}"
        for how in ("true", "false")
    ),
    f"-m notion=marginal early=false,true runs=20000 pairs=40 mechanism=truncated,laplace {FAIR}",
    *(f"-m notion=informed pairs=40 {ALL} {setting}" for setting in (ROUGH, FAIR)),
    f"-m notion=informed pairs=40 mechanism=none,exponential,laplace {COARSE} epsilon=0.1 'entry=[1,3]'",
    "notion=informed sequence=bits.txt mechanism=exponential epsilon=0.1",
    "notion=informed sequence=bits.txt mechanism=laplace epsilon=0.3 delta=0.05 floor=0.1",
    *(f"-m sampler=mine:noisy epsilon=0,1,10 runs=4000 early={how}" for how in ("true", "false")),
    "-m task=estimate model=bernoulli p_phi=0.3,0.84 runs=2000",
    "-m task=estimate model=powertrain runs=40",
    "task=verify insecure=true seed=3 mechanism=laplace delta=0.1 alpha=0.05 epsilon=0.3",
)
"""All tasks, observers, mechanisms, engines and methods; steps that share a lattice and steps that do not."""


def run_all(folder: Path) -> None:
    """Every command in its own folder, with its exit code."""
    from hydra.core.global_hydra import GlobalHydra

    from dpsmc_audit.app import cli

    sys.path.insert(0, f"{folder}")
    (folder / "mine.py").write_text(SAMPLER)
    bits = (np.random.default_rng(1).random(3000) < 0.84).astype(int)
    (folder / "bits.txt").write_text("".join(map(str, bits)))
    for number, line in enumerate(COMMANDS):
        place = folder / f"{number:02d}"
        place.mkdir()
        GlobalHydra.instance().clear()
        os.chdir(folder)
        where = "hydra.sweep.dir" if line.startswith("-m") else "hydra.run.dir"
        sys.argv = ["dpsmc_audit", *shlex.split(line), f"{where}={place}", "backend=serial"]
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        (place / "code.txt").write_text(f"{code}")
    logging.shutdown()


# --- what may differ ------------------------------------------------------------------------------------------------


def found_in(folder: Path) -> Iterator[tuple[str, Any]]:
    """Name and content of every result and table."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.name in {"code.txt", "failed.txt"}:
            yield name, path.read_text()
        elif path.name == "result.json":
            yield name, json.loads(path.read_text())
        elif path.name in {"table.csv", "histogram.csv", "profile.csv"}:
            with path.open() as file:
                yield name, list(csv.DictReader(file))


def differences(one: Path, other: Path) -> tuple[list[str], int]:
    """Where two folders of results differ by more than they may, and how many values were compared.

    Equal must be: which files there are, rows, words (verdicts, events, witnesses), and whole numbers (counts, samples
    drawn). Other numbers may differ by 1e-9 of themselves or 1e-12. More may differ, by half of its stated error, what
    is stated with one: ``x`` beside ``x_error``, and a log ratio by the rounding error (1e-15) of the probabilities
    that stand beside it. A stated error may differ by a millionth of itself, and so the ends of an interval made of it.
    """
    left, right, counter = dict(found_in(one)), dict(found_in(other)), [0]
    wrong = [f"{name}: in one of them only" for name in sorted({*left} ^ {*right})]
    for name in sorted({*left} & {*right}):
        wrong += _differences(left[name], right[name], name, 0.0, counter)
    return wrong, counter[0]


def _differences(one: Any, other: Any, where: str, allowed: float, counter: list[int]) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        if {*one} != {*other}:
            return [f"{where}: keys {sorted({*one} ^ {*other})}"]
        names = [name for name in one if name not in {"provenance", "folder"} and "seconds" not in name]
        return [x for n in names for x in _differences(one[n], other[n], f"{where}/{n}", _allowed(one, n), counter)]
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return [f"{where}: {len(one)} and {len(other)} entries"]
        pairs = enumerate(zip(one, other, strict=True))
        return [x for k, (a, b) in pairs for x in _differences(a, b, f"{where}[{k}]", allowed, counter)]
    counter[0] += 1
    a, b = _number(one), _number(other)
    if one == other or (a is not None and b is not None and _agree(a, b, allowed)):
        return []
    return [f"{where}: {one} and {other}"]


def _number(value: Any) -> float | None:
    """Of a floating-point number, also of one in a table; None of all that must be equal."""
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, float) else None


def _agree(one: float, other: float, allowed: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if math.isinf(one) or math.isinf(other):
        return one == other
    return abs(one - other) <= max(allowed, 1e-9 * abs(one), 1e-12)


def _allowed(row: dict[str, Any], name: str) -> float:
    """By how much a value of this row may differ because of what stands beside it."""
    value, error = (_number(row.get(key)) for key in (name, f"{name}_error"))
    if error is not None:
        return 0.5 * error
    if value is not None and name.endswith("_error"):
        return 1e-6 * value
    least = min((_number(row.get(key)) or 0.0 for key in ("p1", "p0")), default=0.0)
    if "log_ratio" not in name or least <= 0.0 or value is None or not math.isfinite(value):
        return 0.0
    middle = _number(row.get("log_ratio"))
    return 1e-15 / least + (1e-6 * abs(value - middle) if middle is not None else 0.0)


# --- the marked tests -----------------------------------------------------------------------------------------------


def marked_tests() -> int:
    """The marked tests on every simulated processor; how many processors failed."""
    cache = TOP / ".pytest_cache" / "processors"
    command = [sys.executable, "-m", "pytest", "-m", "processor", "-n", "0", "-q", "-p", "no:cacheprovider"]
    running = {
        name: subprocess.Popen([*command, "tests"], cwd=TOP, env=environment(name, cache / name))
        for name in processors()
    }
    failed = {name for name, process in running.items() if process.wait() != 0}
    print("".join(f"processor {name}: {'FAILED' if name in failed else 'passed'}\n" for name in running), end="")
    return len(failed)


if __name__ == "__main__":
    if sys.argv[1:] == ["test"]:
        sys.exit(marked_tests())
    run_all(Path(sys.argv[2]).resolve())
