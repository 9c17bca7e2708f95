"""The bins of a report's histogram: few enough to be drawn, each with its probabilities and their ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsmc_audit.evidence.intervals import lower_ends, upper_ends
from dpsmc_audit.evidence.shown import Histogram as Bars
from dpsmc_audit.numerics.arrays import FloatArray, IntArray
from dpsmc_audit.numerics.ties import ranked
from dpsmc_audit.observers.base import Audit
from dpsmc_audit.observers.expected.verdicts import Histogram, log_ratio
from dpsmc_audit.observers.informed.audit import OutcomeHistogram
from dpsmc_audit.observers.marginal.audit import JointHistogram
from dpsmc_audit.observers.phrases import brief

__all__ = ["Bin", "Bins", "bins_of", "ratio_limit"]


NAMED = 8
"""So many categories are named below a picture."""

MOST = 100
"""So many bins are drawn: finer ones are joined."""


@dataclass(frozen=True)
class Bin:
    """One bin of a picture.

    Parameters
    ----------
    lo, hi : float
        Where it lies.
    one, zero : float
        Its probability with x = 1 and with x = 0.
    ratio, low, high, exact : float
        ``ln(one / zero)``, its interval and its exact value; nan where there is none.
    outside, sure : bool
        Whether the ratio is beyond the claim, and whether the whole interval is.
    marked : tuple of float
        The parts of both probabilities that are outside the tolerance.
    """

    lo: float
    hi: float
    one: float
    zero: float
    ratio: float
    low: float = math.nan
    high: float = math.nan
    exact: float = math.nan
    outside: bool = False
    sure: bool = False
    marked: tuple[float, float] = (0.0, 0.0)

    @property
    def middle(self) -> float:
        """Halfway between its ends."""
        return 0.5 * (self.lo + self.hi)

    @property
    def has_interval(self) -> bool:
        """Whether the ratio and its interval can be drawn."""
        return math.isfinite(self.ratio) and not math.isnan(self.low)

    @property
    def has_exact(self) -> bool:
        """Whether the exact value is known."""
        return not math.isnan(self.exact)


@dataclass(frozen=True)
class Bins:
    """What is drawn, and in words what is not.

    Parameters
    ----------
    bins : tuple of Bin
        In order; empty ones may be missing.
    what : str
        What the bins are of.
    notes : tuple of str
        What is not drawn.
    mirrored : bool
        Whether one member is drawn up and the other down, instead of a panel of ratios.
    sampled : bool
        Whether the probabilities are shares of runs.
    """

    bins: tuple[Bin, ...]
    what: str
    notes: tuple[str, ...]
    mirrored: bool = False
    sampled: bool = False


def bins_of(audit: Audit) -> Bins | None:
    """Join the histogram of an audit to bins that can be drawn.

    Parameters
    ----------
    audit : Audit
        Of any observer.

    Returns
    -------
    Bins or None
        None for a histogram of a kind that the package does not know.
    """
    match audit.histogram:
        case JointHistogram():
            return _of_decisions(audit.histogram, audit)
        case Histogram():
            return _of_shares(audit.histogram, np.arange(audit.histogram.lo.size), "average running time", [], audit)
        case OutcomeHistogram():
            return _of_outcomes(audit.histogram)
        case Bars():
            return _of_runs(audit.histogram, audit)
    return None


def _of_decisions(h: JointHistogram, audit: Audit) -> Bins:
    """The more frequent decision; the others are named."""
    names = sorted(set(h.decision.tolist()))
    names = [names[k] for k in ranked([float((h.p1 + h.p0)[h.decision == name].sum()) for name in names])]
    notes = [
        f"Decision {name}, not drawn: {_shares(h.p1[h.decision == name], h.p0[h.decision == name])}"
        for name in names[1:]
    ]
    notes += _about_intervals(audit)
    kept = np.flatnonzero(h.decision == names[0])
    return _of_shares(h, kept, f"running time tau, decision {names[0]}", notes, audit)


def _shares(one: FloatArray, zero: FloatArray) -> str:
    return f"probability {brief(float(one.sum()))} (x = 1), {brief(float(zero.sum()))} (x = 0)."


def _of_shares(h: Histogram | JointHistogram, kept: IntArray, what: str, notes: list[str], audit: Audit) -> Bins:
    """Bins of equal width, as far as they hold all but a hundredth of both members together."""
    order = kept[np.isfinite(h.hi[kept])]
    left = np.cumsum((h.p1 + h.p0)[order][::-1])[::-1]
    shown = order[left > 1e-2] if np.any(left > 1e-2) else order
    if shown.size < order.size:
        beyond = np.setdiff1d(order, shown)
        notes.append(f"Beyond the picture: {_shares(h.p1[beyond], h.p0[beyond])}")
    lo, epsilon, width = h.lo[shown], audit.claim.epsilon, float(h.hi[shown[0]] - h.lo[shown[0]])
    joined = max(1, math.ceil(round((float(h.hi[shown].max()) - float(lo.min())) / width) / MOST))
    width, first = width * joined, float(lo.min())
    if joined > 1:
        notes.append(f"Bins are joined to a width of {width:g} for the picture; histogram.csv has them all.")
    place, bins = ((lo - first) // width).astype(np.int64), []
    for k in np.unique(place).tolist():
        mine = shown[place == k]
        one, zero = float(h.p1[mine].sum()), float(h.p0[mine].sum())
        known = (h.log_ratio_low, h.log_ratio_high, h.exact_log_ratio)
        low, high, exact = (float(column[mine[0]]) if joined == 1 else math.nan for column in known)
        far = bool(h.outside[mine].any())
        sure = far and (low > epsilon or high < -epsilon)
        start = first + k * width
        bins.append(Bin(start, start + width, one, zero, _ratio(one, zero), low, high, exact, far, sure))
    return Bins(tuple(bins), f"{what} (samples drawn)", tuple(notes), sampled=audit.sampled)


def _ratio(one: float, zero: float) -> float:
    return float(log_ratio(np.array(one), np.array(zero)))


def _middle(tau: IntArray, share: FloatArray) -> tuple[int, int, int]:
    """Where all but one part in two thousand at each end lie, and the width of the bins."""
    ends = (min(int(np.searchsorted(np.cumsum(share), u)), tau.size - 1) for u in (5e-4, 1.0 - 5e-4))
    low, high = (int(tau[k]) for k in ends)
    return low, high, max(1, math.ceil((high - low + 1) / MOST))


def _of_runs(h: Bars, audit: Audit) -> Bins:
    """A user's mechanism: counts of its first view, with Clopper-Pearson ends of each bin."""
    runs = int(h.runs_1.sum()), int(h.runs_0.sum())
    epsilon, tail = audit.claim.epsilon, 0.25 * (1.0 - audit.claim.confidence)
    width = h.high - h.low
    drawn = np.isclose(width, np.median(width), rtol=1e-6) & np.isfinite(width)  # tails are wider, or narrower
    shares = [n / max(total, 1) for n, total in zip((h.runs_1, h.runs_0), runs, strict=True)]
    low, high = (
        log_ratio(first(h.runs_1, runs[0], tail), second(h.runs_0, runs[1], tail))
        for first, second in ((lower_ends, upper_ends), (upper_ends, lower_ends))
    )
    bins, ratio = [], log_ratio(*shares)
    shift = 0.5 if np.all(h.low[drawn] == np.rint(h.low[drawn])) and np.all(width[drawn] == 1.0) else 0.0
    for k in np.flatnonzero(drawn).tolist():
        far = bool(abs(ratio[k]) > epsilon)
        sure = bool(low[k] > epsilon or high[k] < -epsilon)
        p, q, r, a, b = (float(x[k]) for x in (*shares, ratio, low, high))
        start, end = float(h.low[k]) - shift, float(h.high[k]) - shift
        bins.append(Bin(start, end, p, q, r, a, b, outside=far, sure=far and sure))
    rest = [int(n[~drawn].sum()) for n in (h.runs_1, h.runs_0)]
    notes = [f"Beyond the picture: {rest[0]} runs with x = 1, {rest[1]} with x = 0."] if sum(rest) else []
    return Bins(tuple(bins), _view(h, audit), (*notes, *_about_intervals(audit)), sampled=True)


def _about_intervals(audit: Audit) -> list[str]:
    """Say that intervals are for a number of runs that is fixed in advance, where the evidence ended the audit."""
    if not getattr(audit, "stopped", False):
        return []
    return ["Intervals are for a fixed number of runs. Here the evidence ended it."]


def _view(h: Bars, audit: Audit) -> str:
    """Name what is drawn; categories are listed in their order."""
    name = next(iter(getattr(audit, "views", {"output": 1.0})))
    categories = [text.removeprefix(f"{name} is ") for text in h.outcome.tolist()]
    listed = all(text.startswith(f"{name} is ") for text in h.outcome.tolist()) and len(categories) <= NAMED
    return (
        f"{name}: {', '.join(f'{int(k)} is {c}' for k, c in zip(h.low, categories, strict=True))}" if listed else name
    )


def _of_outcomes(h: OutcomeHistogram) -> Bins:
    """Informed: the outcomes of one sequence, joined in bins; outside is a part of each bin."""
    ended, notes, bins = h.decision != "running", [], []
    if max(h.p1[~ended].sum(), h.p0[~ended].sum()) > 1e-9:
        notes.append(f"Runs that outlast the sequence: {_shares(h.p1[~ended], h.p0[~ended])}")
    if ended.any():
        both = (h.p1 + h.p0)[ended]
        first, last, width = _middle(h.tau[ended], both / max(float(both.sum()), 1e-300))
        kept = ended & (h.tau >= first) & (h.tau <= last)
        rest = ended & ~kept
        if max(h.p1[rest].sum(), h.p0[rest].sum()) > 1e-9:
            notes.append(f"Beyond the picture: {_shares(h.p1[rest], h.p0[rest])}")
        place = (h.tau - first) // width
        for k in np.unique(place[kept]).tolist():
            mine, start = kept & (place == k), first + k * width - 0.5
            one, zero, *marked = (float(p[m].sum()) for m in (mine, mine & h.outside) for p in (h.p1, h.p0))
            parts = (marked[0], marked[1])
            far = bool(h.outside[mine].any())
            bins.append(Bin(start, start + width, one, zero, _ratio(one, zero), outside=far, marked=parts))
    return Bins(tuple(bins), "running time tau (samples drawn)", tuple(notes), mirrored=True)


def ratio_limit(bins: Bins, epsilon: float) -> float:
    """Choose where a panel of ratios ends: the tolerance and most intervals fit, rare bins do not set the scale.

    Parameters
    ----------
    bins : Bins
        What is drawn.
    epsilon : float
        The claim.

    Returns
    -------
    float
        The largest ratio that is drawn in its place.
    """
    solid = [each for each in bins.bins if each.one + each.zero > 2e-3]
    known = [each.exact if not math.isnan(each.exact) else each.ratio for each in solid]
    ends = sorted(abs(e) for each in solid for e in (each.low, each.high) if math.isfinite(e))
    typical = ends[int(0.6 * len(ends))] if ends else 0.0
    return max([3.0 * epsilon, 1.3 * typical, 1e-3, *(1.15 * abs(r) for r in known if math.isfinite(r))])
