"""Learn how the label of a run depends on one number: the probability of label 1 in cells of that number.

The runs so far are sorted into cells. Many small models explain the labels of the cells: straight lines and curves in
ranks, ramps with plateaus, tails, one step, one cell that stands out, and a tree of halves. Each has an evidence, the
probability that it gives to the labels it saw, its parameters averaged out. The prediction is the average of the
models, weighted by evidence.

Labels are fair: P(label = 1) = 1/2 whatever the mechanism does. Every curve uses this: its intercept follows from its
slope. A prediction that is wrong costs power, never the level of a verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpsmc_audit.numerics.jit import kernel

__all__ = ["Learnt", "cell_ends", "counted_by_cell", "learnt"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_CELLS = 256
"""About how many cells hold the runs. Tails have finer cells."""

_SCALES = np.array([0.05, 0.2, 0.7, 2.0])
"""The standard deviations of the prior of a slope. Effects near a small claim and large ones are both expected."""

_CENTERS, _WIDTHS, _KNOTS = (-0.9, 0.0, 0.9), (0.3, 0.8, 1.6), (2.0, 3.5)
"""Of the ramps, in normal scores; and where tails begin, as minus the logarithm of their probability."""

_SINGLES, _RAMPS, _TAILS = 5, len(_CENTERS) * len(_WIDTHS), 2 * len(_KNOTS)

_KINDS = np.repeat([0, 1, 2], [_SINGLES, _RAMPS, _TAILS])
"""The kind of each line: a score, a ramp or a tail."""

_FEW, _MANY = 400.0, 6000.0
_NAMES = (
    "nothing",
    "symmetric step",
    "step",
    "tree",
    "one cell",
    "quadratic",
    "exponential",
    "scores",
    "ramps",
    "tails",
)
_AT_FEW = np.array([0.02, 0.03, 0.06, 0.04, 0.03, 0.47, 0.07, 0.06, 0.1, 0.12])
_AT_MANY = np.array([0.02, 0.04, 0.08, 0.07, 0.05, 0.1, 0.06, 0.06, 0.1, 0.42])
"""The prior weight of each family of models, in the order of `_NAMES`, up to `_FEW` runs and from `_MANY` runs on.

A violation that everything shows is found with few runs. What is left to be found with many runs is in the tails. The
weights were chosen by trying them on known pairs; see benchmarks/README.md.
"""

_EARLY = {2: 0.11, 14: 0.56, 16: 0.08}
"""For running times, three lines have this prior weight in advance: they rise towards early ends. The rest is shared.

The fewer data a decision used, the more each of them tells: in released results of Algorithm 2 the log odds fall with
the logarithm of the rank of tau, and are flat later.
"""

_SCALE_WEIGHTS = np.array([[0.04, 0.03, 0.65, 0.28], [0.03, 0.15, 0.78, 0.04], [0.2, 0.6, 0.13, 0.07]])
"""The prior weight of each scale, for lines and curves, ramps, and tails."""

_LEAF = 1.5
"""The probability in a leaf has the prior Beta(1.5, 1.5)."""


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was learnt about one view.

    Parameters
    ----------
    evidence : float
        The logarithm of the probability that all models together give to the labels.
    chance : array
        The probability of label 1 in each cell.
    """

    evidence: float
    chance: FloatArray


@kernel
def _end_of_value(values, first):
    """Find where the next value begins, or the end."""
    last = first
    while last < values.size and values[last] == values[first]:
        last += 1
    return last


@kernel
def _cell_ends(values, most):
    """Cut sorted values into cells: a value of its own cell if it is frequent, smaller cells in the tails."""
    runs, distinct = values.size, 1
    for i in range(1, runs):
        distinct += values[i] != values[i - 1]
    fine = distinct <= most // 2
    ends, cells, held, i, before = np.empty(runs + 1), 0, 0, 0, 0
    j = _end_of_value(values, 0)
    while i < runs:
        following = _end_of_value(values, j)
        same = j - i
        beyond = min(i + 0.5 * same, runs - i - 0.5 * same)
        wanted = 1.0 if fine else max(1.0, min(2.0 * runs / most, beyond / 6.0))
        # a value that stands out from those beside it is alone
        spike = same >= max(8.0, wanted / 8.0) and same >= 4 * max(before, following - j)
        alone = spike or same >= wanted
        if alone and held > 0:
            ends[cells] = values[i - 1]
            cells, held = cells + 1, 0
        held += same
        if alone or held >= wanted:
            ends[cells] = values[j - 1]
            cells, held = cells + 1, 0
        i, j, before = j, following, same
    if held > 0:
        cells += 1
    ends[cells - 1] = np.inf
    return ends[:cells].copy()


def cell_ends(values: FloatArray) -> FloatArray:
    """Choose cells for values: frequent values have one of their own, tails are cut finer than the middle.

    Parameters
    ----------
    values : array
        The values so far, sorted, at least one.

    Returns
    -------
    array
        The largest value of each cell, increasing. The last one is infinite.

    Examples
    --------
    >>> cell_ends(np.array([0.0, 0.0, 1.0, 3.0])).tolist()
    [0.0, 1.0, inf]
    """
    found: FloatArray = _cell_ends(values, MOST_CELLS)
    return found


def counted_by_cell(cells: int, place: IntArray, labels: IntArray) -> FloatArray:
    """Count runs by label and cell.

    Parameters
    ----------
    cells : int
        How many there are.
    place, labels : array of int
        The cell and the label (0 or 1) of each run.

    Returns
    -------
    array
        ``counts[label, cell]``.
    """
    return np.bincount(place + cells * labels, minlength=2 * cells).reshape(2, cells).astype(np.float64)


@kernel
def _logistic(s):
    if s >= 0.0:
        return 1.0 / (1.0 + math.exp(-s))
    e = math.exp(s)
    return e / (1.0 + e)


@kernel
def _log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@kernel
def _scores(x, y, at, out):
    for c in range(x.size):
        out[c] = at[0] + at[1] * x[c] + at[2] * y[c]


@kernel
def _balance(x, y, ones, zeros, at, score):
    """Move the intercept until the fitted labels are fair. Return its derivatives by both slopes."""
    for _ in range(6):
        _scores(x, y, at, score)
        off, weight, runs = 0.0, 0.0, 0.0
        for c in range(x.size):
            n = ones[c] + zeros[c]
            p = _logistic(score[c])
            off += n * (p - 0.5)
            weight += n * p * (1.0 - p)
            runs += n
        if weight < 1e-9 * runs:
            break
        move = min(max(-off / weight, -2.0), 2.0)
        at[0] += move
        if abs(move) < 1e-3:
            break
    _scores(x, y, at, score)
    weight, on_x, on_y = 1e-300, 0.0, 0.0
    for c in range(x.size):
        p = _logistic(score[c])
        w = (ones[c] + zeros[c]) * p * (1.0 - p)
        weight += w
        on_x += w * x[c]
        on_y += w * y[c]
    return -on_x / weight, -on_y / weight


@kernel
def _information(x, y, ones, zeros, score, by_x, by_y):
    """Gradient and curvature of the log-likelihood by both slopes; the intercept moves with them."""
    gx, gy, hxx, hxy, hyy = 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(x.size):
        n = ones[c] + zeros[c]
        p = _logistic(score[c])
        w, r = n * p * (1.0 - p), ones[c] - n * p
        u, v = x[c] + by_x, y[c] + by_y
        gx += r * u
        gy += r * v
        hxx += w * u * u
        hxy += w * u * v
        hyy += w * v * v
    return gx, gy, hxx, hxy, hyy


@kernel
def _likelihood(ones, zeros, score):
    total = 0.0
    for c in range(score.size):
        small = -math.log1p(math.exp(-abs(score[c])))
        likely, other = (small, small - abs(score[c]))
        if score[c] < 0.0:
            likely, other = other, likely
        total += ones[c] * likely + zeros[c] * other
    return total


@kernel
def _curve(x, y, ones, zeros, scales, weights, at, chance):
    """Fit ``logit P(1) = a + b x + c y`` with fair labels; average over the prior's scales. y = 0 is a line.

    Newton's method finds the best slopes at the widest scale; a normal approximation there gives the evidence and the
    slopes of every scale. `at` is the start and the end of the search. Returns the log evidence.
    """
    cells, widest = x.size, scales[-1]
    score = np.empty(cells)
    for _ in range(14):
        by_x, by_y = _balance(x, y, ones, zeros, at, score)
        gx, gy, hxx, hxy, hyy = _information(x, y, ones, zeros, score, by_x, by_y)
        prior = 1.0 / widest**2
        gx, gy = gx - prior * at[1], gy - prior * at[2]
        det = (hxx + prior) * (hyy + prior) - hxy * hxy
        dx, dy = ((hyy + prior) * gx - hxy * gy) / det, ((hxx + prior) * gy - hxy * gx) / det
        size = max(abs(dx), abs(dy))
        cut = 1.0 if size < 1.5 else 1.5 / size
        at[1] += cut * dx
        at[2] += cut * dy
        if size < 1e-3:
            break
    by_x, by_y = _balance(x, y, ones, zeros, at, score)
    _, _, hxx, hxy, hyy = _information(x, y, ones, zeros, score, by_x, by_y)
    fit = _likelihood(ones, zeros, score)
    log_weight, spread = np.empty(scales.size), np.empty((scales.size, 5))
    for t in range(scales.size):
        prior = 1.0 / scales[t] ** 2
        # beside the best slopes the log-likelihood falls by half d'Hd and rises by the widest prior's pull
        gx, gy = (1.0 / widest**2 - prior) * at[1], (1.0 / widest**2 - prior) * at[2]
        det = (hxx + prior) * (hyy + prior) - hxy * hxy
        vxx, vyy, vxy = (hyy + prior) / det, (hxx + prior) / det, -hxy / det
        dx, dy = vxx * gx + vxy * gy, vxy * gx + vyy * gy
        log_weight[t] = (
            fit
            + math.log(weights[t] * prior)
            - 0.5 * prior * (at[1] ** 2 + at[2] ** 2)
            + 0.5 * (gx * dx + gy * dy)
            - 0.5 * math.log(det)
        )
        spread[t] = np.array([dx, dy, vxx, vxy, vyy])
    top = log_weight.max()
    share = np.exp(log_weight - top)
    total = share.sum()
    chance[:] = 0.0
    for t in range(scales.size):
        if share[t] < 1e-6 * total:
            continue
        dx, dy, vxx, vxy, vyy = spread[t]
        for c in range(cells):
            u, v = x[c] + by_x, y[c] + by_y
            s = score[c] + dx * u + dy * v
            variance = vxx * u * u + 2.0 * vxy * u * v + vyy * v * v
            chance[c] += share[t] / total * _logistic(s / math.sqrt(1.0 + math.pi * variance / 8.0))
    return top + math.log(total)


@kernel
def _steps(ones, zeros, leaf, symmetric, chance):
    """Average over all places of one step; with `symmetric` both sides share one level. Returns the log evidence."""
    cells = ones.size
    log_weight, low, high = np.empty(cells - 1), np.empty(cells - 1), np.empty(cells - 1)
    all_ones, all_zeros, left_ones, left_zeros = ones.sum(), zeros.sum(), 0.0, 0.0
    flat = _log_beta(leaf, leaf)
    for c in range(cells - 1):
        left_ones += ones[c]
        left_zeros += zeros[c]
        right_ones, right_zeros = all_ones - left_ones, all_zeros - left_zeros
        if symmetric:
            agree, differ = right_ones + left_zeros, right_zeros + left_ones
            log_weight[c] = _log_beta(leaf + agree, leaf + differ) - flat
            high[c] = (leaf + agree) / (2.0 * leaf + agree + differ)
            low[c] = 1.0 - high[c]
        else:
            log_weight[c] = (
                _log_beta(leaf + left_ones, leaf + left_zeros) + _log_beta(leaf + right_ones, leaf + right_zeros)
            ) - 2.0 * flat
            high[c] = (leaf + right_ones) / (2.0 * leaf + right_ones + right_zeros)
            low[c] = (leaf + left_ones) / (2.0 * leaf + left_ones + left_zeros)
    top = log_weight.max()
    share = np.exp(log_weight - top)
    total = share.sum()
    # from the left end, where all steps are ahead; each difference is added from the nearer end
    chance[:] = 0.0
    behind = 0.0
    for c in range(1, cells):
        behind += share[c - 1] / total * high[c - 1]
        chance[c] += behind
    ahead = 0.0
    for c in range(cells - 2, -1, -1):
        ahead += share[c] / total * low[c]
        chance[c] += ahead
    return top + math.log(total / (cells - 1))


@kernel
def _spikes(ones, zeros, leaf, chance):
    """Average over all cells: one stands out from all others together. Returns the log evidence."""
    cells = ones.size
    log_weight = np.empty(cells)
    all_ones, all_zeros = ones.sum(), zeros.sum()
    flat = 2.0 * _log_beta(leaf, leaf)
    for c in range(cells):
        own = _log_beta(leaf + ones[c], leaf + zeros[c])
        log_weight[c] = own + _log_beta(leaf + all_ones - ones[c], leaf + all_zeros - zeros[c]) - flat
    top = log_weight.max()
    share = np.exp(log_weight - top)
    total = share.sum()
    runs, rest = all_ones + all_zeros + 2.0 * leaf, 0.0
    for c in range(cells):
        rest += share[c] / total * (leaf + all_ones - ones[c]) / (runs - ones[c] - zeros[c])
    for c in range(cells):
        n = ones[c] + zeros[c]
        own = (leaf + ones[c]) / (2.0 * leaf + n) - (leaf + all_ones - ones[c]) / (runs - n)
        chance[c] = rest + share[c] / total * own
    return top + math.log(total / cells)


@kernel
def _middle(sums, first, last):
    """Where to cut cells first, ..., last - 1 so that both halves hold about as many runs."""
    half = 0.5 * (sums[first] + sums[last])
    low, high = first + 1, last - 1
    while low < high:
        at = (low + high) // 2
        if sums[at] < half:
            low = at + 1
        else:
            high = at
    if low - 1 > first and half - sums[low - 1] < sums[low] - half:
        return low - 1
    return low


@kernel
def _tree(ones, zeros, leaf, chance):
    """Average over all ways to prune a tree of halves (context-tree weighting). Returns the log evidence."""
    cells = ones.size
    sum1, sum0 = np.zeros(cells + 1), np.zeros(cells + 1)
    sum1[1:], sum0[1:] = np.cumsum(ones), np.cumsum(zeros)
    sums = sum1 + sum0
    first, last = np.zeros(2 * cells, np.int64), np.full(2 * cells, cells)
    child, nodes, i = np.full(2 * cells, -1), 1, 0
    while i < nodes:
        if last[i] - first[i] > 1:
            cut = _middle(sums, first[i], last[i])
            child[i] = nodes
            first[nodes], last[nodes] = first[i], cut
            first[nodes + 1], last[nodes + 1] = cut, last[i]
            nodes += 2
        i += 1
    log_weight, own = np.empty(nodes), np.ones(nodes)
    flat = _log_beta(leaf, leaf)
    for i in range(nodes - 1, -1, -1):
        n1, n0 = sum1[last[i]] - sum1[first[i]], sum0[last[i]] - sum0[first[i]]
        log_weight[i] = _log_beta(leaf + n1, leaf + n0) - flat
        if child[i] >= 0:
            pruned, grown = log_weight[i], log_weight[child[i]] + log_weight[child[i] + 1]
            top = max(pruned, grown)
            total = math.exp(pruned - top) + math.exp(grown - top)
            own[i] = math.exp(pruned - top) / total
            log_weight[i] = top + math.log(0.5 * total)
    reached, gathered = np.ones(nodes), np.zeros(nodes)
    for i in range(nodes):
        n1, n0 = sum1[last[i]] - sum1[first[i]], sum0[last[i]] - sum0[first[i]]
        here = gathered[i] + reached[i] * own[i] * (leaf + n1) / (2.0 * leaf + n1 + n0)
        if child[i] < 0:
            chance[first[i]] = here
        for k in range(child[i], child[i] + 2 if child[i] >= 0 else child[i]):
            reached[k], gathered[k] = reached[i] * (1.0 - own[i]), here
    return log_weight[0]


@kernel
def _all_curves(lines, kinds, ones, zeros, scales, weights, prior, starts, log_evidence, chance):
    """Fit two curves of two parameters, and a line to each row of `lines`."""
    nothing = np.zeros(ones.size)
    log_evidence[0] = prior[0] + _curve(lines[0], lines[1], ones, zeros, scales, weights[0], starts[0], chance[0])
    log_evidence[1] = prior[1] + _curve(lines[2], lines[3], ones, zeros, scales, weights[0], starts[1], chance[1])
    for j in range(lines.shape[0]):
        own = weights[kinds[j]]
        log_evidence[2 + j] = prior[2 + j] + _curve(
            lines[j], nothing, ones, zeros, scales, own, starts[2 + j], chance[2 + j]
        )


def _lines(rank: FloatArray) -> FloatArray:
    """Compute what lines are straight in: scores of the rank of each cell, ramps between plateaus, and tails."""
    normal, low, high = ndtri(rank), -np.log(rank), -np.log1p(-rank)
    single = [normal, 0.7 * (normal**2 - 1.0), low - 1.0, high - 1.0, np.maximum(low, high) - 1.7]
    ramps = [np.clip((normal - center) / width, -1.0, 1.0) for center in _CENTERS for width in _WIDTHS]
    tails = [np.maximum(side - knot, 0.0) for knot in _KNOTS for side in (low, high)]
    return np.array([*single, *ramps, *tails])


def _prior(runs: float, times: bool) -> FloatArray:
    """Compute the prior weight of each model after so many runs."""
    share = min(max(math.log(runs / _FEW) / math.log(_MANY / _FEW), 0.0), 1.0)
    families = (1.0 - share) * _AT_FEW + share * _AT_MANY
    sizes = np.array([_SINGLES, _RAMPS, _TAILS])
    weight = np.concatenate([families[:7], (families[7:] / sizes)[_KINDS]])
    if times:
        weight *= 1.0 - sum(_EARLY.values())
        weight[[7 + line for line in _EARLY]] += list(_EARLY.values())
    return weight


def starts() -> FloatArray:
    """Return where the search for the best slopes begins, for every curve.

    Returns
    -------
    array
        To be passed to `learnt`, which changes it: the next search begins at the last result.
    """
    return np.zeros((2 + _SINGLES + _RAMPS + _TAILS, 3))


def learnt(counts: FloatArray, start: FloatArray, times: bool = False) -> Learnt:
    """Learn from runs in cells.

    Parameters
    ----------
    counts : array
        ``counts[label, cell]``, at least one run in each cell.
    start : array
        Where searches begin (`starts`). It is changed.
    times : bool
        Whether the number is a running time: then its early end is the likely place of evidence.

    Returns
    -------
    Learnt
        The evidence and the predictions.

    Examples
    --------
    >>> found = learnt(np.array([[90.0, 10.0], [10.0, 90.0]]), starts())
    >>> bool(found.chance[0] < 0.15), bool(found.chance[1] > 0.85)
    (True, True)
    """
    zeros, ones = counts
    sizes = ones + zeros
    runs, cells = float(sizes.sum()), ones.size
    if cells == 1:
        return Learnt(-runs * math.log(2.0), np.array([0.5]))
    rank = np.clip((np.cumsum(sizes) - 0.5 * sizes) / runs, 0.25 / runs, 1.0 - 0.25 / runs)
    lines = _lines(rank)
    evidence, chance = np.empty(7 + len(lines)), np.empty((7 + len(lines), cells))
    prior = np.log(_prior(runs, times))
    evidence[0], chance[0] = prior[0] - runs * math.log(2.0), 0.5
    evidence[1] = prior[1] + _steps(ones, zeros, _LEAF, True, chance[1])
    evidence[2] = prior[2] + _steps(ones, zeros, _LEAF, False, chance[2])
    evidence[3] = prior[3] + _tree(ones, zeros, _LEAF, chance[3])
    evidence[4] = prior[4] + _spikes(ones, zeros, _LEAF, chance[4])
    _all_curves(lines, _KINDS, ones, zeros, _SCALES, _SCALE_WEIGHTS, prior[5:], start, evidence[5:], chance[5:])
    top = float(evidence.max())
    weight = np.exp(evidence - top)
    total = float(weight.sum())
    return Learnt(top + math.log(total), np.asarray((weight / total)[:, None] * chance).sum(axis=0))
