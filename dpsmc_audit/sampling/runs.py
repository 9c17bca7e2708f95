"""Independent runs of the test: (tau, decision) of many paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import check_entries, check_probability, require
from dpsmc_audit.numerics.arrays import FloatArray, IntArray
from dpsmc_audit.sampling import kernels
from dpsmc_audit.sampling.jump_tables import jump_tables
from dpsmc_audit.sampling.kernels import ALT, NULL, UNFINISHED
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.streams import Purpose, check_seed, derived
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

__all__ = ["Kernel", "Runs", "block_size_for", "check_runs", "draw_block", "draw_runs", "walk_arguments"]

Kernel = Literal["jumps", "steps"]
FEWEST_RUNS, MOST_RUNS = 64, 65_536
"""In a block of runs."""
_PIECE = 8192
"""Runs of a block that are drawn together: their arrays stay in the processor's cache."""
MAX_STEPS = 2**40


@dataclass(frozen=True, eq=False)
class Runs:
    """Outcomes of independent runs.

    Parameters
    ----------
    tau : ndarray
        Samples drawn.
    decision : ndarray
        NULL (1), ALT (0) or UNFINISHED (-1).
    """

    tau: IntArray
    decision: NDArray[np.int8]


def walk_arguments(test: Sprt, p_phi: float) -> tuple[object, ...]:
    """Return the arguments of the kernels that describe the walk.

    Parameters
    ----------
    test : Sprt
        The test.
    p_phi : float
        The probability that a sample holds.

    Returns
    -------
    tuple
        The steps up and down, the upper and the lower bound, p_phi as a threshold for 64-bit words, and whether p_phi
        is 1.

    Raises
    ------
    ParameterError
        If `p_phi` is not a probability.
    """
    check_probability("p_phi", p_phi)
    threshold = np.uint64(0 if p_phi == 1.0 else int(p_phi * 2.0**64))
    return test.s_plus, test.s_minus, test.b_up, test.b_low, threshold, p_phi == 1.0


def draw_block(
    setting: Setting,
    first: int,
    count: int,
    sampling: Sampling,
    *,
    kernel: Kernel = "jumps",
    entries: tuple[int, ...] = (),
    bit: int = 1,
) -> Runs:
    """Draw the runs of paths first, ..., first + count - 1.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    first, count : int
        The number of the first path, and the number of paths.
    sampling : Sampling
        The seed and the longest run.
    kernel : {"jumps", "steps"}
        How the samples are drawn. Both kernels follow the same law.
    entries : tuple of int
        The samples that are set to `bit`, counted from 1, in increasing order.
    bit : int
        Their value.

    Returns
    -------
    Runs
        The outcome of each path, in the order of the paths.

    Raises
    ------
    ParameterError
        If `p_phi` is not a probability.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    seed, max_steps = sampling.seed, sampling.max_steps
    runs, walk = Runs(np.empty(count, np.int64), np.empty(count, np.int8)), walk_arguments(test, p_phi)

    def walked(paths: IntArray, begun: IntArray, held: IntArray, excess: FloatArray, drawn: Runs) -> None:
        start, outcome = (np.uint64(seed), paths, begun, held, excess), (max_steps, drawn.tau, drawn.decision)
        if kernel == "jumps":
            kernels._jumps(*start, *walk[:4], *jump_tables(p_phi), *outcome)  # type: ignore[call-arg]
        else:
            kernels._steps(*start, *walk, *outcome)  # type: ignore[call-arg]

    size = min(count, _PIECE)
    numbers, uniforms, none = np.arange(first, first + size), np.empty(size), np.zeros(size, np.int64)
    for begin in range(0, count, _PIECE):
        part = slice(begin, min(begin + _PIECE, count))
        drawn, here = Runs(runs.tau[part], runs.decision[part]), slice(part.stop - begin)
        kernels._uniforms(np.uint64(seed), first + begin, uniforms[here])
        excess, paths = mechanism.quantile(uniforms[here]), numbers[here]
        coin = excess <= test.no_room
        if not (entries or coin.any()):
            walked(paths, none[here], none[here], excess, drawn)
        else:
            begun, held = np.zeros(paths.size, np.int64), np.zeros(paths.size, np.int64)
            drawn.decision[:] = UNFINISHED
            if entries:
                given, stream = np.array(entries, np.int64), derived(seed, Purpose.BEGINNING)
                kernels._until_given(stream, paths, given, bit, excess, *walk, begun, held, drawn.decision)  # type: ignore[call-arg]
                drawn.tau[:] = begun
            if coin.any():
                kernels._uniforms(derived(seed, Purpose.COIN), first + begin, uniforms[here])
                drawn.tau[coin], drawn.decision[coin] = 1, np.where(uniforms[here][coin] < 0.5, NULL, ALT)
            alive = np.flatnonzero(drawn.decision == UNFINISHED)
            rest = Runs(np.empty(alive.size, np.int64), np.empty(alive.size, np.int8))
            walked(paths[alive], begun[alive], held[alive], excess[alive], rest)
            drawn.tau[alive], drawn.decision[alive] = rest.tau, rest.decision
        numbers += size
    return runs


def check_runs(
    p_phi: float, runs: int, sampling: Sampling, *, kernel: Kernel = "jumps", entries: tuple[int, ...] = ()
) -> None:
    """Check that runs can be drawn.

    Parameters
    ----------
    p_phi : float
        The probability that a sample holds.
    runs : int
        The number of runs.
    sampling : Sampling
        The seed and the longest run.
    kernel : {"jumps", "steps"}
        How the samples are drawn.
    entries : tuple of int
        The samples that are set, counted from 1, in increasing order.

    Raises
    ------
    ParameterError
        If a value is impossible.
    """
    check_probability("p_phi", p_phi)
    check_seed(sampling.seed)
    require(runs >= 1, f"runs must be at least 1, got {runs}")
    within = 1 <= sampling.max_steps <= MAX_STEPS
    require(within, f"max_steps must lie in [1, 2^40], got {sampling.max_steps}")
    require(kernel in ("jumps", "steps"), f"kernel must be jumps or steps, got {kernel}")
    check_entries(entries, sampling.max_steps)


def block_size_for(setting: Setting, max_steps: int) -> int:
    """Return how many runs make some hundredths of a second of work.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    max_steps : int
        The largest number of samples of a run.

    Returns
    -------
    int
        The number of runs, from `FEWEST_RUNS` to `MOST_RUNS`. It is smaller if runs are long.
    """
    test, mechanism, p_phi = setting.test, setting.mechanism, setting.p_phi
    excess = max(float(mechanism.quantile(0.63)), 0.0)
    samples = min(test.wald(p_phi, excess).samples, float(max_steps))
    return min(max(int(2.0**29 / max(samples, 1.0)), FEWEST_RUNS), MOST_RUNS)


def draw_runs(
    setting: Setting,
    runs: int,
    sampling: Sampling = USUAL,
    *,
    kernel: Kernel = "jumps",
    entries: tuple[int, ...] = (),
    bit: int = 1,
) -> Runs:
    """Draw (tau, decision) of many independent runs, in this process.

    Parameters
    ----------
    setting : Setting
        The test with its noise, and the system.
    runs : int
        How many runs are drawn.
    sampling : Sampling
        The seed and the longest run.
    kernel : {"jumps", "steps"}
        Draw several samples at once, or every single one. Both follow the same law.
    entries : tuple of int
        These samples are not drawn but set to `bit`.
    bit : {0, 1}
        The value of the entries.

    Returns
    -------
    Runs
        Arrays `tau` and `decision` (1: H_null, 0: H_alt, -1: none was made).

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import NoNoise
    >>> setting = Setting(Sprt(p=0.73, delta=0.01, alpha=0.01), NoNoise(), 0.84)
    >>> drawn = draw_runs(setting, runs=1000, sampling=Sampling(seed=7))
    >>> drawn.tau.shape, set(drawn.decision.tolist())
    ((1000,), {1})
    """
    check_runs(setting.p_phi, runs, sampling, kernel=kernel, entries=entries)
    return draw_block(setting, 0, runs, sampling, kernel=kernel, entries=entries, bit=bit)
