"""The exact law of (tau, o) averaged over L, with any entries forced: what the marginal observer sees.

- *renewal* for the memoryless L of Algorithm 2;
- *passage* for any law of L, as far as only the bound that the walk drifts to matters;
- *strata* of L for what is left: tau grows with L, so the laws at the two ends of each stratum bracket P(tau > k).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.mechanisms import Atoms, Exponential, Mechanism
from dpsmc_audit.sprt import ParameterError, Sprt, require
from dpsmc_audit.walks.exact import Steps, TerminationLaw, cells_needed, exit_law, walk_until_exit
from dpsmc_audit.walks.overshoot import turned_up
from dpsmc_audit.walks.passage import passage_cost, passage_survival
from dpsmc_audit.walks.renewal import renewal

__all__ = ["exact_law"]

FloatArray = NDArray[np.float64]

_FAR = 23.0
"""A bound further than this over h against the drift is reached with probability exp(-23), 1e-10."""

_CELLS = 1.5e9
"""Cells that the passage, or all strata together, may visit."""

_VAGUE = 0.02
"""A law with a larger error in some P(tau > k) is refused."""

_OFTEN = 0.03
"""Where the far bound is met more often than this the passage over the near one is no help, and strata do it all."""

_LATE = 300
"""A last forced entry after this is left to strata."""

_MOST_STRATA, _FEWEST_STRATA = 1024, 10


def exact_law(
    test: Sprt, mechanism: Mechanism, p_phi: float, forced: Mapping[int, int] | None = None
) -> TerminationLaw:
    """Law of (tau, o), with or without forced entries (entry: bit).

    Examples
    --------
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.05)
    >>> law = exact_law(test, Exponential.private(test, 0.05), 0.84)
    >>> f"{law.survival()[200]:.4f}", law.error < 1e-5, law.method
    ('0.5449', True, 'renewal')
    """
    for entry, bit in (forced or {}).items():
        require(entry >= 1, f"entry must be at least 1, got {entry}")
        require(bit in (0, 1), f"a forced sample is 0 or 1, got {bit}")
    return _exact_law(test, mechanism, p_phi, tuple(sorted((forced or {}).items())))


@lru_cache(maxsize=32)
def _exact_law(test: Sprt, mechanism: Mechanism, p_phi: float, forced: tuple[tuple[int, int], ...]) -> TerminationLaw:
    given = dict(forced)
    if p_phi in (0.0, 1.0):
        return _certain_law(test, mechanism, p_phi, given)
    if mechanism.atoms is not None:
        return _listed_law(test, mechanism.atoms, p_phi, given)
    records = renewal(test, mechanism, p_phi) if isinstance(mechanism, Exponential) else None
    if records is None:
        return _known(p_phi, _mixed_law(test, mechanism, p_phi, given))
    renewed = records.law(given)
    if renewed.error <= 1e-5:
        return renewed
    try:
        other = _mixed_law(test, mechanism, p_phi, given)
    except ParameterError:
        return _known(p_phi, renewed)
    return _known(p_phi, min((renewed, other), key=lambda law: law.error))


def _known(p_phi: float, law: TerminationLaw) -> TerminationLaw:
    """A law whose bracket is this wide would say nothing."""
    message = "the law at p_phi={:g} is only known to ±{:.2g}: too little drift; means and errors are affordable"
    require(law.error <= _VAGUE, message.format(p_phi, law.error))
    return law


# --- samples that are certain ---------------------------------------------------------------------------------------


def _certain_law(test: Sprt, mechanism: Mechanism, p_phi: float, forced: Mapping[int, int]) -> TerminationLaw:
    """All samples are known, and with them the excess record after each: ``P(tau > k) = survival(record)``."""
    step, bound = (test.s_plus, test.b_up) if p_phi == 1.0 else (test.s_minus, test.b_low)
    reach = bound + float(mechanism.quantile(1.0 - 1e-13)) + len(forced) * test.step_sum
    last = max(forced, default=0) + math.ceil(max(reach, 0.0) / step) + 2
    require(last <= 10**8, f"the law at p_phi={p_phi:g} reaches {last:.0e} samples")
    bits = np.full(last, p_phi)
    for entry, bit in forced.items():
        bits[entry - 1] = bit
    ones, steps = np.cumsum(bits), np.arange(1, last + 1)
    walk = ones * test.s_plus - (steps - ones) * test.s_minus
    above, below = walk - test.b_up, -walk - test.b_low
    record = np.maximum.accumulate(np.maximum(np.maximum(above, below), test.floor))
    running = mechanism.survival(record)
    coin = 1.0 - float(mechanism.survival(test.floor))
    stopped = -np.diff(running, prepend=1.0 - coin)
    null, alt = np.where(above >= below, stopped, 0.0), np.where(above >= below, 0.0, stopped)
    null[0] += 0.5 * coin
    alt[0] += 0.5 * coin
    error = float(running[-1]) + 1e-15
    return TerminationLaw(null, alt, error, error, "certain", 2.0 * error * last)


# --- an L that takes few values -------------------------------------------------------------------------------------


def _listed_law(test: Sprt, atoms: Atoms, p_phi: float, forced: Mapping[int, int]) -> TerminationLaw:
    """The average over the values of L, one by one; a single one for Algorithm 1."""
    _affordable(p_phi, math.fsum(_cost(test, p_phi, x, 0.0) for x, _ in atoms if x > test.floor))
    coin = np.array([0.5])
    null, alt, error, late = [], [], 1e-12 * (len(atoms) > 1), 0.0
    for excess, share in atoms:
        law = exit_law(test, p_phi, excess, forced) if excess > test.floor else None
        null.append(share * (coin if law is None else law.null))
        alt.append(share * (coin if law is None else law.alt))
        if law is not None:
            error += share * law.probability_error
            late += share * law.mean_error
    return TerminationLaw(_total(null), _total(alt), error, error, "fixed bounds", late + error * _total(null).size)


# --- any law of L ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """A share of the law: the runs whose L lies in some interval, or a bound on what is wrong with them."""

    null: FloatArray
    alt: FloatArray
    error: float
    scatter: float
    mean_error: float


def _mixed_law(test: Sprt, mechanism: Mechanism, p_phi: float, forced: Mapping[int, int]) -> TerminationLaw:
    """The coin, the passage over the near bound, and what both bounds change where both can be met.

    Where a bound may be met before the last forced entry, or the passage would cost too much, strata take its place.
    """
    lowest = max(float(mechanism.quantile(0.0)), test.floor)
    coin = 1.0 - float(mechanism.survival(test.floor))
    parts = [_Part(np.array([0.5 * coin]), np.array([0.5 * coin]), 0.0, 0.0, 0.0)]
    settled, apart = _splits(test, p_phi, forced)
    if _far_share(test, mechanism, p_phi) > _OFTEN:
        settled = math.inf
    apart = min(apart, float(mechanism.quantile(1.0 - 1e-12)))
    begin = max(settled, lowest)
    passage = _passage(test, mechanism, p_phi, forced, begin) if begin < math.inf else None
    if passage is None:
        parts.append(_strata(test, mechanism, p_phi, forced, lowest, None))
    else:
        parts.append(passage)
        if begin > lowest:
            parts.append(_strata(test, mechanism, p_phi, forced, lowest, begin))
        if apart > begin:
            parts.append(_strata(test, mechanism, p_phi, forced, begin, apart, beyond_passage=True))
    null, alt = _total([part.null for part in parts]), _total([part.alt for part in parts])
    columns = zip(*((part.error, part.scatter, part.mean_error) for part in parts), strict=True)
    error, scatter, late = (math.fsum(column) for column in columns)
    method = "passage" if passage is not None and len(parts) == 2 else "strata"
    size = max(null.size, alt.size)
    null, alt = (np.maximum(np.pad(side, (0, size - side.size)), 0.0) for side in (null, alt))
    astray = abs(1.0 - float(null.sum() + alt.sum()))
    return TerminationLaw(null, alt, max(error, astray), max(scatter, astray), method, late + astray * size)


def _splits(test: Sprt, p_phi: float, forced: Mapping[int, int]) -> tuple[float, float]:
    """The L from which on no bound is met before the last forced entry; and from which on the far bound never is."""
    h, (_, walk, near, far), last = abs(test.exponent(p_phi)), turned_up(test, p_phi), max(forced, default=0)
    settled = max(last * walk.down - far, (last + 1) * walk.up - near)
    return settled, max(_FAR / h + last * walk.down - far, settled) if h > 0.0 else math.inf


def _far_share(test: Sprt, mechanism: Mechanism, p_phi: float) -> float:
    """About how often the far bound is met: ``E[exp(-h (b_far + L))]``."""
    h, far = abs(test.exponent(p_phi)), turned_up(test, p_phi)[3]
    excess = np.maximum(mechanism.quantile((np.arange(200) + 0.5) / 200), test.floor)
    return float(np.exp(-h * (far + excess)).mean())


def _starts(walk: Steps, turned: bool, forced: Mapping[int, int]) -> dict[float, float]:
    """Where the walk may be after the last forced entry, and how likely."""
    ups = np.ones(1)
    for entry in range(1, max(forced, default=0) + 1):
        p_up = walk.p_up if entry not in forced else float(forced[entry] != turned)
        ups = np.convolve(ups, [1.0 - p_up, p_up])
    steps = ups.size - 1
    return {k * walk.up - (steps - k) * walk.down: float(share) for k, share in enumerate(ups) if share > 1e-18}


def _passage(test: Sprt, mechanism: Mechanism, p_phi: float, forced: Mapping[int, int], begin: float) -> _Part | None:
    """The runs with L > begin, as if there were no far bound; None if that would cost too much."""
    h, (turned, walk, near, _) = abs(test.exponent(p_phi)), turned_up(test, p_phi)
    last, share = max(forced, default=0), float(mechanism.survival(begin))
    if h == 0.0 or last > _LATE:
        return None
    for tail in 10.0 ** -np.arange(14.0, 5.0, -2.0):
        top = near + float(mechanism.quantile(1.0 - tail))
        if not math.isinf(top) and passage_cost(walk, h, top) <= _CELLS:
            break
    else:
        return None
    weight: Callable[[FloatArray], FloatArray] = lambda x: mechanism.survival(np.maximum(x - near, begin))  # noqa: E731
    running, off = passage_survival(walk, h, weight, _starts(walk, turned, forced), near + begin, top)
    time = np.concatenate([np.zeros(last), np.maximum(-np.diff(running), 0.0)])
    never = np.zeros(time.size)
    error = abs(share - float(time.sum())) + share * math.exp(-_FAR) + off
    null, alt = (never, time) if turned else (time, never)
    return _Part(null, alt, error, error, 2.0 * error * time.size)


def _strata(
    test: Sprt,
    mechanism: Mechanism,
    p_phi: float,
    forced: Mapping[int, int],
    lowest: float,
    highest: float | None,
    *,
    beyond_passage: bool = False,
) -> _Part:
    """The runs with L between `lowest` and `highest` (None: all but a small rest), by the trapezoid rule in F(L).

    With `beyond_passage`, only by what they differ from the passage over the near bound alone.
    """
    top, rest = (highest, 0.0) if highest is not None else _affordable_top(test, mechanism, p_phi)
    tilt = abs(test.exponent(p_phi)) if beyond_passage else 0.0  # what the far bound changes falls like exp(-h L)
    ends = _ends(test, mechanism, p_phi, lowest, top, tilt)
    laws = [_between(test, p_phi, float(x), forced, beyond_passage) for x in ends]
    masses = -np.diff(mechanism.survival(np.concatenate([[lowest], ends[1:]])))
    fine = _weighted(laws, _weights(mechanism, lowest, ends, tilt))
    coarse = _weighted(laws[::2], _weights(mechanism, lowest, ends[::2], tilt))
    # every second stratum left out changes as much as this; the rest of the error has been seen to be up to 1.8 of it
    scatter = 3.0 * float(sum(np.abs(_total([a, -b])).sum() for a, b in zip(fine, coarse, strict=True)))
    share = float(masses.sum())
    inside = 1e-11 * share + rest
    # tau grows with L: P(tau > k) lies between its values at the two ends of each stratum
    half = scatter if beyond_passage else 0.5 * float(masses.max())
    moved = abs(_mean(laws[-1]) - _mean(laws[0]))
    late = 0.5 * float(masses.max()) * moved + 2.0 * inside * max(law[0].size for law in laws)
    return _Part(*fine, half + inside, scatter + inside, late)


def _between(
    test: Sprt, p_phi: float, excess: float, forced: Mapping[int, int], beyond_passage: bool
) -> tuple[FloatArray, FloatArray]:
    """P(tau = k, H_null) and P(tau = k, H_alt) for this L; or by how much the far bound changes them."""
    law = exit_law(test, p_phi, excess, forced)
    if not beyond_passage:
        return law.null, law.alt
    deep = _FAR / abs(test.exponent(p_phi)) + len(forced) * test.step_sum  # forced entries may lead there
    up, low = (test.b_up + excess, deep) if test.drift(p_phi) > 0.0 else (deep, test.b_low + excess)
    alone = walk_until_exit(Steps.of(test, p_phi), up, low, forced=forced)
    if test.drift(p_phi) > 0.0:
        return _total([law.null, -alone.null]), law.alt
    return law.null, _total([law.alt, -alone.alt])


def _mean(law: tuple[FloatArray, FloatArray]) -> float:
    return float(sum(np.arange(1.0, side.size + 1.0) @ side for side in law))


def _ends(test: Sprt, mechanism: Mechanism, p_phi: float, lowest: float, top: float, tilt: float) -> FloatArray:
    """Ends of an even number of strata of equal probability, each L counted with ``exp(-tilt L)``.

    Without a tilt none is wider than the law for a fixed L is smooth.
    """
    start = max(lowest, test.floor + 1e-9 * test.step_sum)
    grid = np.linspace(start, top, 20_001)
    weights = -np.diff(mechanism.survival(grid)) * np.exp(-tilt * (grid[1:] - start))
    cumulative = np.concatenate([[0.0], np.cumsum(weights)]) / max(float(weights.sum()), 1e-300)
    middle = np.interp((np.arange(16) + 0.5) / 16.0, cumulative, grid)
    each = float(np.mean([_cost(test, p_phi, float(x), tilt) for x in middle])) + 5e4
    enough = int(1e6 * float(weights.sum())) + _FEWEST_STRATA
    count = min(int(_CELLS / each), _MOST_STRATA, enough)
    _affordable(p_phi, each * _FEWEST_STRATA)
    inner = np.interp(np.arange(1, count) / count, cumulative, grid)
    even = np.linspace(start, top, count // 4 if tilt == 0.0 else _even_count(test, p_phi, start, top, tilt))
    ends = np.unique(np.concatenate([[start, top], inner, even]))
    return ends if ends.size % 2 == 1 else np.insert(ends, -1, 0.5 * (ends[-2] + ends[-1]))


def _even_count(test: Sprt, p_phi: float, start: float, top: float, tilt: float) -> int:
    """Enough evenly spaced L for ``exp(-tilt L)`` to fall by half an e-fold between them, if that is affordable."""
    count = math.ceil(2.0 * tilt * (top - start)) + 2
    middle = np.linspace(start, top, 8)
    each = float(np.mean([_cost(test, p_phi, float(x), tilt) for x in middle]))
    return count if count * each <= 0.5 * _CELLS else 2


def _cost(test: Sprt, p_phi: float, excess: float, tilt: float) -> float:
    """Cells for one L; with a tilt both with and without the far bound."""
    _, walk, near, far = turned_up(test, p_phi)
    cells = cells_needed(walk, near + excess, far + excess)
    return cells if tilt == 0.0 else cells + cells_needed(walk, near + excess, _FAR / tilt)


def _weights(mechanism: Mechanism, lowest: float, ends: FloatArray, tilt: float) -> FloatArray:
    """Weights of the ends: half the probability of the strata on either side.

    With a tilt, those that are right where ``exp(tilt L) f(L)`` is linear between the ends, but for wide strata.
    """
    masses = -np.diff(mechanism.survival(np.concatenate([[lowest], ends[1:]])))
    halves = 0.5 * masses
    if tilt == 0.0:
        return np.asarray(np.append(halves, 0.0) + np.insert(halves, 0, 0.0))
    cells = 64
    grid = np.append((ends[:-1, None] + np.diff(ends)[:, None] * (np.arange(cells) / cells)).ravel(), ends[-1])
    masses = -np.diff(mechanism.survival(grid)).reshape(-1, cells)
    narrow = tilt * np.diff(ends) <= 4.0  # beyond, the weight of the right end would outgrow the stratum's
    right = (np.arange(cells) + 0.5) / cells
    ahead = np.diff(ends)[:, None] * right
    left_share = (masses * (1.0 - right) * np.exp(-tilt * ahead)).sum(axis=1)
    right_share = (masses * right * np.exp(tilt * (np.diff(ends)[:, None] - ahead))).sum(axis=1)
    left_share, right_share = (np.where(narrow, share, halves) for share in (left_share, right_share))
    return np.asarray(np.append(left_share, 0.0) + np.insert(right_share, 0, 0.0))


def _weighted(laws: Sequence[tuple[FloatArray, FloatArray]], weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    null, alt = (_total([w * law[side] for w, law in zip(weights, laws, strict=True)]) for side in (0, 1))
    return null, alt


def _affordable_top(test: Sprt, mechanism: Mechanism, p_phi: float) -> tuple[float, float]:
    """Up to which L strata go, and the probability of what is beyond."""
    walk = Steps.of(test, p_phi)
    for tail in 10.0 ** -np.arange(9.0, 2.0, -1.0):
        top = float(mechanism.quantile(1.0 - tail))
        if cells_needed(walk, test.b_up + top, test.b_low + top) <= 0.05 * _CELLS:
            return top, float(tail)
    return float(mechanism.quantile(1.0 - 1e-2)), 1e-2


def _affordable(p_phi: float, cells: float) -> None:
    message = "the law at p_phi={:g} would visit {:.0e} cells: without drift only means and errors are affordable"
    require(cells <= _CELLS, message.format(p_phi, cells))


def _total(rows: Sequence[FloatArray]) -> FloatArray:
    """Sum of rows of different lengths, continued by 0."""
    total = np.zeros(max(row.size for row in rows))
    for row in rows:
        total[: row.size] += row
    return total
