"""Random settings over all that the exact engine may be asked, and a plain second programme in a compiled loop.

The second programme follows all walks for each L of a list, as `tests.support.plain_law` does: a run whose L lies
between two neighbours of the list gets the outcome of the lower one, and the probability of those that might differ is
its `slack`. Where that would take too long, runs are drawn, and the slack is that of DKW's inequality.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from dpsmc_audit.exact.calibration import mechanism_named
from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from tests.support.entry_settings import _RATIOS, _p_of_ratio
from tests.support.plain_law import lattice_ends, quantile_ends

CELLS = 3e8
"""Cells that the second programme may visit."""

RUNS, LEVEL = 40_000, 1e-9
"""Runs that are drawn otherwise, and how likely they lie outside their slack."""


@dataclass(frozen=True)
class Asked:
    """A setting, its forced entries, and the unit of both steps if there is one."""

    number: int
    setting: Setting
    forced: dict[int, int]
    unit: float | None


@dataclass(frozen=True)
class Second:
    """P(tau > k), P(H_null) and the mean by the second programme, each within its slack."""

    how: str
    survival: np.ndarray
    null: float
    mean: tuple[float, float]
    slack: float


def asked(number: int) -> Asked:
    """The setting of this number, the same on every machine."""
    rng = np.random.default_rng([19, number])
    unit = None
    while True:
        delta = math.exp(rng.uniform(math.log(2e-3), math.log(0.3)))
        p = delta + (1.0 - 2.0 * delta) * float(rng.beta(0.6, 0.6))
        if delta > 0.02 and rng.random() < 0.5:
            ratio = _RATIOS[rng.integers(len(_RATIOS))]
            p = _p_of_ratio(delta, ratio) or p
        if p - delta > 1e-4 and p + delta < 1.0 - 1e-4:
            break
    levels = np.exp(rng.uniform(math.log(1e-6), math.log(0.2), 3)).tolist()
    test = Sprt(p, delta, levels[0], *(levels[1:] if rng.random() < 0.2 else ()))
    for up, down in _RATIOS:
        if abs(test.s_plus * down - test.s_minus * up) < 1e-12:
            unit = test.s_plus / up
    kind = rng.random()
    if kind < 0.15:
        p_phi = float(rng.integers(2))
    elif kind < 0.4:
        p_phi = float(np.clip(p + float(rng.uniform(-1.0, 1.0)) * delta, 1e-4, 1.0 - 1e-4))
    else:
        p_phi = float(rng.uniform(0.001, 0.999))
    count = int(rng.integers(0, 4))
    places = sorted({max(1, int(math.exp(rng.uniform(0.0, math.log(500.0))))) for _ in range(count)})
    bit = int(rng.integers(2))
    return Asked(number, Setting(test, _noise(rng, test), p_phi), dict.fromkeys(places, bit), unit)


def _noise(rng: np.random.Generator, test: Sprt) -> Mechanism:
    epsilon = math.exp(rng.uniform(math.log(1e-4), math.log(20.0)))
    scale, kind = test.step_sum / epsilon, rng.random()
    center, lowest = float(rng.uniform(0.0, 3.0)) * scale, float(rng.uniform(0.0, 0.9)) * test.no_room
    if kind < 0.3:
        return Exponential.private(test, epsilon)
    if kind < 0.4:
        return Laplace(center, scale)
    if kind < 0.5:
        return Truncated(center - scale, scale, lowest)
    if kind < 0.6:
        return mechanism_named("laplace" if rng.random() < 0.5 else "truncated", test, max(epsilon, 1e-2))
    if kind < 0.67:
        return NoNoise()
    laws = [
        Law.of("gamma", a=float(rng.uniform(0.5, 4.0)), scale=scale),
        Law.of("norm", loc=float(rng.uniform(-1.0, 3.0)) * scale, scale=scale),
        Law.of("uniform", loc=lowest, scale=2.0 * scale),
        Law.of("lognorm", s=float(rng.uniform(0.3, 1.5)), scale=scale),
        Law.of("pareto", b=float(rng.uniform(1.1, 4.0)), scale=scale),
        Law.of("t", df=float(rng.uniform(1.5, 5.0)), loc=scale, scale=scale),
        Law.of("weibull_min", c=float(rng.uniform(0.7, 3.0)), scale=scale),
        Law.of("poisson", mu=float(rng.uniform(0.5, 8.0)), loc=int(rng.integers(-2, 2))),
    ]
    return laws[rng.integers(len(laws))]


def second(case: Asked) -> Second:
    """What the second programme finds, by rows where they are affordable and by runs elsewhere."""
    found = _by_rows(case)
    return found if found is not None else _by_runs(case)


def _by_rows(case: Asked) -> Second | None:
    setting, forced = case.setting, case.forced
    test, law, p_phi = setting.test, setting.mechanism, setting.p_phi
    if law.atoms is not None:
        excess, weights = (np.array(column) for column in zip(*law.atoms, strict=True))
        room = excess > test.no_room
        coin, tail, gaps = float(weights[~room].sum()), 1e-12, np.zeros(int(room.sum()))
        excess, weights = excess[room], weights[room]
    else:
        ends = quantile_ends(test, law, 2000)
        if case.unit is not None:
            top = float(law.quantile(1.0 - 1e-8))
            if math.isfinite(top) and (top - test.no_room) / case.unit < 20_000:
                ends = lattice_ends(test, law, case.unit)
        above = np.concatenate([[1.0], law.survival(ends[1:])])
        coin = 1.0 - float(law.survival(test.no_room)) if ends[0] <= test.no_room else 0.0
        above[0] -= coin
        excess, weights, gaps, tail = ends[:-1] + 1e-11, -np.diff(above), np.diff(ends) - 2e-11, float(above[-1])
    last = max(forced, default=0)
    cells = np.array([_cells(test, p_phi, float(x), last) for x in excess])
    if cells.size and cells.sum() > CELLS:
        if case.unit is not None or law.atoms is not None or cells.sum() > 8.0 * CELLS:
            return None
        keep = np.unique(np.append(np.arange(0, ends.size, math.ceil(cells.sum() / CELLS)), ends.size - 1))
        ends, above = ends[keep], above[keep]
        excess, weights, gaps = ends[:-1] + 1e-11, -np.diff(above), np.diff(ends) - 2e-11
    ones = np.full(last + 1, p_phi)
    for entry, bit in forced.items():
        ones[entry - 1] = bit
    longest = 400_000
    out = np.zeros((2, longest))
    unseen = _rows(ones, test.s_plus, test.s_minus, test.b_up + excess, test.b_low + excess, weights, gaps, out)
    out[:, 0] += 0.5 * coin
    stopped = out.sum(axis=0)
    survival = np.maximum(1.0 - np.concatenate([[0.0], np.cumsum(stopped)]), 0.0)
    slack = unseen + tail + 1e-9
    mean = float(stopped @ np.arange(1, longest + 1))
    return Second("rows", survival, float(out[0].sum()), (mean, mean if slack < 1e-6 else math.inf), slack)


def _cells(test: Sprt, p_phi: float, excess: float, last: int) -> float:
    drift, span = abs(test.drift(p_phi)), test.b_up + test.b_low + 2.0 * excess
    variance = max(p_phi * (1.0 - p_phi), 1e-12) * test.step_sum**2
    decay = drift**2 / (2.0 * variance) + math.pi**2 * variance / (2.0 * span**2)
    steps = last + 20.0 / decay + min(span / max(drift, 1e-300), span**2 / variance)
    return steps * (span / test.step_sum + 2.0)


@numba.njit(cache=True)
def _rows(ones, up, down, above, below, weights, gaps, out):  # type: ignore[no-untyped-def]
    """Follow the walks of each row; cell i has i + base ones. Add the exits to `out`, return what may be wrong."""
    unseen = 0.0
    for row in range(above.size):
        size = int((above[row] + below[row]) / (up + down)) + 5
        mass, fresh = np.zeros(size), np.zeros(size)
        mass[0], count, base, steps = weights[row], 1, 0, 0
        alive = weights[row]
        while alive > 1e-9 * weights[row] and steps < out.shape[1]:
            p = ones[min(steps, ones.size - 1)]
            steps += 1
            fresh[0] = (1.0 - p) * mass[0]
            for i in range(1, count):
                fresh[i] = p * mass[i - 1] + (1.0 - p) * mass[i]
            fresh[count] = p * mass[count - 1]
            first, end, alive = 0, count + 1, 0.0
            for i in range(count + 1):
                at = (base + i) * up - (steps - base - i) * down
                if at >= above[row]:
                    out[0, steps - 1] += fresh[i]
                    if at - above[row] < gaps[row]:
                        unseen += fresh[i]
                    end = min(end, i)
                elif -at >= below[row]:
                    out[1, steps - 1] += fresh[i]
                    if -at - below[row] < gaps[row]:
                        unseen += fresh[i]
                    first = i + 1
            count = max(end - first, 0)
            base += first
            for i in range(count):
                mass[i] = fresh[first + i]
                alive += mass[i]
            if count == 0:
                break
        unseen += alive
    return unseen


def _by_runs(case: Asked) -> Second:
    setting, forced = case.setting, case.forced
    entries, bit = tuple(forced), next(iter(forced.values()), 1)
    runs = draw_runs(setting, RUNS, Sampling(seed=case.number, max_steps=10**9), entries=entries, bit=bit)
    slack = math.sqrt(math.log(2.0 / LEVEL) / (2.0 * RUNS))
    longest = int(min(runs.tau.max(), 1 << 22))
    counts = np.bincount(np.minimum(runs.tau, longest), minlength=longest + 1)
    survival = 1.0 - np.cumsum(counts) / RUNS
    return Second("runs", survival, float(np.mean(runs.decision == 1)), (0.0, math.inf), slack)
