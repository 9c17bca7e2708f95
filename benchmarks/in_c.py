"""walks.c, compiled here and now, and its two functions."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import LAW, P_PHI, TEST
from dpsmc_audit.sampling.jump_tables import JUMP_SIZES, jump_tables

__all__ = ["binomial_jumps", "compiler", "library", "scalar_steps"]

Outcomes = tuple[NDArray[np.int64], NDArray[np.int8]]


def compiler() -> str | None:
    """gcc, or whatever is called cc."""
    return shutil.which("gcc") or shutil.which("cc")


@cache
def library() -> ctypes.CDLL | None:
    """None where there is no C compiler."""
    found = compiler()
    if found is None:
        return None
    target = Path(tempfile.mkdtemp()) / "walks.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run([found, *flags, "-o", target, Path(__file__).with_name("walks.c"), "-lm"], check=True)
    return ctypes.CDLL(str(target))


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def _doubles(*numbers: float) -> list[ctypes.c_double]:
    return [ctypes.c_double(x) for x in numbers]


def scalar_steps(runs: int, seed: int) -> Outcomes:
    """(tau, decision), a generator call and a comparison per sample."""
    made, tau, decision = library(), np.empty(runs, np.int64), np.empty(runs, np.int8)
    assert made is not None
    numbers = _doubles(LAW.rate, TEST.s_plus, TEST.s_minus, TEST.b_up, P_PHI)
    made.scalar_steps(ctypes.c_uint64(seed), ctypes.c_int64(runs), *numbers, _pointer(tau), _pointer(decision))
    return tau, decision


def binomial_jumps(runs: int, seed: int) -> Outcomes:
    """(tau, decision) by jumps from the suite's alias tables, four runs in turn."""
    made, tau, decision = library(), np.empty(runs, np.int64), np.empty(runs, np.int8)
    assert made is not None
    cut, alias, _ = jump_tables(P_PHI)
    numbers = _doubles(LAW.rate, TEST.s_plus, TEST.s_minus, TEST.b_up)
    tables = (ctypes.c_int(JUMP_SIZES), _pointer(cut), _pointer(alias))
    outcome = (_pointer(tau), _pointer(decision))
    made.binomial_jumps(ctypes.c_uint64(seed), ctypes.c_int64(runs), *numbers, *tables, *outcome)
    return tau, decision
