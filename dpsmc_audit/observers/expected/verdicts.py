"""From two laws, or from samples of them, to a histogram with the e^{±epsilon} check of each bin and to a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.intervals import student_quantile
from dpsmc_audit.evidence.judging import enclosed_delta
from dpsmc_audit.evidence.power import POWER
from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Event, Outcomes, Ranges, Share, SmallestNoise
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray
from dpsmc_audit.numerics.sums import sum_of_squares
from dpsmc_audit.numerics.ties import CLOSE, best_of
from dpsmc_audit.observers.expected.law import ExpectedLaw
from dpsmc_audit.runs.execution import accumulate, cut
from dpsmc_audit.sampling.pairs import pair_times, pairs_in_a_block
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = [
    "Histogram",
    "average_range",
    "delta_ends",
    "exact_histogram",
    "exact_verdict",
    "log_ratio",
    "support_gap_evidence",
    "surest_event",
]


FEWEST_PAIRS = 200
"""A sampled verdict needs this many pairs: its bound is asymptotic, and rare sequences need a chance to show."""

_MARGIN = 3.0
"""By how many standard errors more than the judgement needs a difference must show where it is chosen."""

CANDIDATES = 17


@dataclass(frozen=True, eq=False)
class Histogram:
    """Probabilities of the average termination time in bins ``[lo, hi)`` and the check of their ratio.

    Parameters
    ----------
    lo, hi : ndarray
        The bins.
    p1, p0 : ndarray
        Their probabilities with x = 1 and with x = 0.
    log_ratio, log_ratio_low, log_ratio_high : ndarray
        ``ln(p1 / p0)`` with its interval.
    exact_log_ratio : ndarray
        Its exact value.
    outside : ndarray
        Whether it is beyond the claim.
    """

    lo: FloatArray
    hi: FloatArray
    p1: FloatArray
    p0: FloatArray
    log_ratio: FloatArray
    log_ratio_low: FloatArray
    log_ratio_high: FloatArray
    exact_log_ratio: FloatArray
    outside: BoolArray

    def kept(self, keep: BoolArray) -> Histogram:
        """Keep some bins.

        Parameters
        ----------
        keep : ndarray of bool
            Which bins are kept.

        Returns
        -------
        Histogram
            These bins.
        """
        return replace(self, **{column.name: getattr(self, column.name)[keep] for column in fields(self)})


# --- exact ----------------------------------------------------------------------------------------------------------


def log_ratio(p1: FloatArray, p0: FloatArray) -> FloatArray:
    """Compute ``ln(p1 / p0)``.

    Parameters
    ----------
    p1, p0 : ndarray
        Probabilities.

    Returns
    -------
    ndarray
        The log ratios: infinite where one probability is 0, nan where both are.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(p1) - np.log(p0)


def delta_ends(
    one: tuple[FloatArray, FloatArray], zero: tuple[FloatArray, FloatArray], epsilon: float
) -> tuple[float, float]:
    """Bound the delta that (epsilon, delta) needs on unions of these outcomes, from below and from above.

    Both are for the worse of the two directions.

    Parameters
    ----------
    one, zero : tuple of two arrays
        The lower and the upper ends of the probability of each outcome, for x = 1 and for x = 0.
    epsilon : float
        The claim.

    Returns
    -------
    tuple of float
        The lower and the upper end of delta.

    Examples
    --------
    >>> half, most = (np.array([0.5]),) * 2, (np.array([0.8]), np.array([0.9]))
    >>> [round(delta, 3) for delta in delta_ends(most, half, epsilon=0.0)]
    [0.3, 0.4]
    """
    found = [enclosed_delta(p, q, epsilon) for p, q in ((one, zero), (zero, one))]
    return max(low for low, _ in found), max(high for _, high in found)


def surest_event(
    one: tuple[FloatArray, FloatArray],
    zero: tuple[FloatArray, FloatArray],
    epsilon: float,
    wanted: int | None = None,
) -> Event:
    """Collect the outcomes that surely break the claim, in the direction that needs more delta (see `delta_ends`).

    Parameters
    ----------
    one, zero : tuple of two arrays
        The lower and the upper ends of the probability of each outcome, for x = 1 and for x = 0.
    epsilon : float
        The claim.
    wanted : {1, 0}, optional
        The likelier member, if the direction is given.

    Returns
    -------
    Event
        The outcomes. Its probabilities are the middles between the ends.

    Examples
    --------
    >>> half, most = (np.array([0.5, 0.5]),) * 2, (np.array([0.8, 0.1]), np.array([0.9, 0.2]))
    >>> event = surest_event(most, half, epsilon=0.0)
    >>> event.name, round(event.p1, 6), event.p0
    ('one of 1 outcomes over e^0 times as likely with x_n = 1', 0.85, 0.5)
    """
    times, found = factor(epsilon), []
    for p, q, side in ((one, zero, 1), (zero, one, 0)):
        event = p[0] > times * q[1]
        p1, p0 = (float(0.5 * (low[event] + high[event]).sum()) for low, high in (one, zero))
        found.append(
            (float((p[0] - times * q[1])[event].sum()), Event(Outcomes(int(event.sum()), side, epsilon), p1, p0))
        )
    (forth, one_likelier), (back, zero_likelier) = found
    if wanted is not None:
        return one_likelier if wanted == 1 else zero_likelier
    return zero_likelier if back > forth * (1.0 + CLOSE) else one_likelier


def exact_verdict(law: ExpectedLaw, epsilon: float) -> Finding:
    """Give the verdict of the exact laws.

    A support gap counts if it holds an integer, as the definition's events are of integers. Bins are compared with the
    claim at their ends: `violated` takes one bin that is outside wherever in its enclosure it is, `certified` takes
    all of them inside. Calibrated two-sided noise has bins exactly on the line, where the ends cannot decide; they are
    inside because both laws are the same noise, shifted (`ExpectedLaw.hidden`).

    Parameters
    ----------
    law : ExpectedLaw
        The laws of the averages.
    epsilon : float
        The claim.

    Returns
    -------
    Finding
        The verdict, its bounds and its witness.
    """
    p1, p0 = law.probabilities()
    low, high = law.log_ratio_ends()
    surely, one, zero = np.maximum(np.maximum(low, -high), 0.0), *law.enclosed()
    # of bins that are outside by the same ratio but for rounding, the most probable
    worst = best_of(np.where(surely > epsilon, surely, 0.0), np.maximum(p1, p0))
    delta = delta_ends((one.low, one.high), (zero.low, zero.high), epsilon)[0]
    if law.gap.integer is not None:
        one_early = law.start_1.value < law.start_0.value
        p = (law.gap.below, 0.0) if one_early else (0.0, law.gap.below)
        event = average_range(-math.inf, law.gap.integer)
        return Finding(Verdict.VIOLATED, math.inf, max(delta, law.gap.below), Event(event, *p))
    upper = float(law.edges[worst + 1]) if worst + 1 < law.edges.size else math.inf
    witness = Event(average_range(float(law.edges[worst]), upper), float(p1[worst]), float(p0[worst]))
    bound = float(surely.max())
    if bound > epsilon:
        return Finding(Verdict.VIOLATED, bound, delta, witness)
    inside = law.hidden(epsilon) | ((one.high == 0.0) & (zero.high == 0.0)) | (np.maximum(high, -low) <= epsilon)
    if np.all(inside):
        return Finding(Verdict.CERTIFIED, bound, 0.0, None, delta_upper=0.0)
    open_1, open_0 = ((tails.low[~inside], tails.high[~inside]) for tails in (one, zero))
    return Finding(Verdict.UNDECIDED, bound, 0.0, None, delta_upper=min(delta_ends(open_1, open_0, epsilon)[1], 1.0))


def average_range(low: float, high: float) -> Ranges:
    """Make the event that the average termination time lies in ``[low, high)``.

    Parameters
    ----------
    low, high : float
        The ends. They may be infinite.

    Returns
    -------
    Ranges
        The event.
    """
    return Ranges((Share(((low, high),)),), "average")


def exact_histogram(law: ExpectedLaw, epsilon: float) -> Histogram:
    """Make the histogram of the exact laws.

    Parameters
    ----------
    law : ExpectedLaw
        The laws of the averages.
    epsilon : float
        The claim.

    Returns
    -------
    Histogram
        All bins that hold more than 1e-12 or are outside. A bin is outside if its ratio is beyond the tolerance
        wherever in its enclosure it is.
    """
    p1, p0 = law.probabilities()
    ratio, (low, high) = log_ratio(p1, p0), law.log_ratio_ends()
    outside = np.maximum(low, -high) > epsilon
    keep = ((p1 + p0) > 1e-12) | outside
    hi = np.append(law.edges[1:], math.inf)
    return Histogram(law.edges, hi, p1, p0, ratio, low, high, ratio, outside).kept(keep)


# --- sampled --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Differences:
    """Sums over pairs of tau(late member, smallest L) - tau(early member, L), ``[early, L]``, and those of squares.

    They are integers of Python, which do not overflow.
    """

    pairs: int
    sums: NDArray[np.object_]
    squares: NDArray[np.object_]
    steps: int

    def mean_and_error(self, early: int) -> tuple[FloatArray, FloatArray]:
        """Compute mean and standard error for each L."""
        n, total, square = self.pairs, self.sums[early], self.squares[early]
        variances = (n * square - total * total) / (n * n * (n - 1))
        return (total / n).astype(np.float64), np.sqrt(variances.astype(np.float64))


def _differences(
    pair: Adjacent,
    excess: FloatArray,
    sampling: Sampling,
    bits: tuple[int, int],
    shift: int,
    first: int,
    count: int,
) -> _Differences:
    """Compute the sums of pairs first, ..., first + count - 1. The result does not depend on the process."""
    tau = pair_times(pair, excess, first, count, sampling, bits=bits, shift=shift)
    each = [tau[:, 1 - early, :1] - tau[:, early, :] for early in (0, 1)]
    sums = np.array([found.sum(axis=0).tolist() for found in each], object)
    squares = [[sum_of_squares(np.ascontiguousarray(column)) for column in found.T] for found in each]
    return _Differences(count, sums, np.array(squares, object), int(tau.max(axis=2).sum()))


class _TotalDifferences:
    """Sums over blocks of pairs."""

    def __init__(self, candidates: int) -> None:
        nothing = np.zeros((2, candidates), object)
        self.total = _Differences(0, nothing, nothing, 0)

    def add(self, block: _Differences) -> None:
        self.total = _Differences(*(getattr(self.total, x.name) + getattr(block, x.name) for x in fields(block)))

    def saved(self) -> Saved:
        found = self.total
        state: Saved = {"pairs": found.pairs, "steps": found.steps}
        for name, rows in (("sums", found.sums), ("squares", found.squares)):
            state |= {f"{name}{k}": int(value) for k, value in enumerate(rows.ravel())}
        return state

    def restore(self, saved: Saved) -> None:
        shape, size = self.total.sums.shape, self.total.sums.size
        sums, squares = (
            np.array([int(saved[f"{name}{k}"]) for k in range(size)], object).reshape(shape)
            for name in ("sums", "squares")
        )
        self.total = _Differences(int(saved["pairs"]), sums, squares, int(saved["steps"]))


def support_gap_evidence(
    pair: Adjacent,
    pairs: int,
    sampling: Sampling,
    *,
    confidence: float,
    bits: tuple[int, int] = (1, 0),
    shift: int = 0,
) -> tuple[Finding, int]:
    """Test whether one member's average at some L* > 0 is a whole sample below the other's at the smallest L.

    On one half of the pairs the member and L* are chosen; on the other half Student's lower bound for the mean of the
    paired differences is taken, once, at the stated confidence. A difference of 1 leaves room for an integer between
    the two averages; the event "below it" then has probability at least P(L <= L*) for one member, 0 for the other.
    P(verdict is violated although no such L* exists) <= 1 - confidence, up to the normal approximation of a mean: an
    approximation that sequences too rare to be in the sample can upset, so fewer than 200 pairs
    never give the verdict `violated`.

    Parameters
    ----------
    pair : Adjacent
        The setting and the entries.
    pairs : int
        Pairs of sequences that are drawn.
    sampling : Sampling
        How they are drawn.
    confidence : float
        The confidence of the verdict.
    bits : tuple of int
        The value of the entries in both members.
    shift : int
        If it is not 0, the members are independent sequences; with equal `bits` they then follow the same law.

    Returns
    -------
    tuple of Finding and int
        The verdict, and how many samples were drawn.
    """
    test, mechanism, execution = pair.setting.test, pair.setting.mechanism, sampling.execution
    lowest = max(float(mechanism.quantile(0.0)), test.no_room)
    excess = lowest + test.step_sum * np.linspace(0.0, 1.0, CANDIDATES)
    mass = 1.0 - mechanism.survival(excess)
    half = pairs // 2
    level = student_quantile(pairs - half - 1, confidence)
    work = partial(_differences, pair, excess, sampling.alone(), bits, shift)
    size = execution.size(pairs_in_a_block(pair.setting, float(excess[-1]), sampling.max_steps))
    choice, judged = _TotalDifferences(excess.size), _TotalDifferences(excess.size)
    quiet = replace(execution, progress=None)
    accumulate(work, lambda done: cut(half, size, done), choice, quiet, "choice")
    accumulate(work, lambda done: cut(pairs, size, max(half, done)), judged, quiet, "judged")
    return _gap_verdict(choice.total, judged.total, mass, level), choice.total.steps + judged.total.steps


def _gap_verdict(choice: _Differences, judged: _Differences, mass: FloatArray, level: float) -> Finding:
    """Choose the member and L* on one half of the pairs, judge on the other."""
    best: tuple[float, int, int] | None = None
    for early in (0, 1):
        mean, error = choice.mean_and_error(early)
        promising = np.flatnonzero((mean - 1.0 >= (level + _MARGIN) * error) & (mass > 0.0) & (mean > 0.0))
        if promising.size and (best is None or mass[promising[-1]] > best[0]):
            best = (float(mass[promising[-1]]), early, int(promising[-1]))
    enough = choice.pairs + judged.pairs >= FEWEST_PAIRS
    spread = max(float(choice.mean_and_error(m)[1].max()) for m in (0, 1))
    # the choice asks for more than the judgement
    needed = level + _MARGIN + NormalDist().inv_cdf(POWER)
    detectable = 1.0 + needed * spread if enough and spread > 0.0 else None
    if best is not None and enough:
        share, early, k = best
        mean, error = judged.mean_and_error(early)
        if mean[k] - level * error[k] >= 1.0:
            p = (share, 0.0) if early == 0 else (0.0, share)
            return Finding(Verdict.VIOLATED, math.inf, share, Event(SmallestNoise(early), *p), detectable)
    return Finding(Verdict.CONSISTENT, 0.0, 0.0, None, detectable)
