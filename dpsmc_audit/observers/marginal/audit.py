"""The audit of what one released (tau, o) says about a sample to an observer who does not know the others."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, check_bin_width, require
from dpsmc_audit.evidence.game import Bounds, Game, Rules
from dpsmc_audit.evidence.intervals import lower_ends, upper_ends
from dpsmc_audit.evidence.judging import KnownLaws, rejudged
from dpsmc_audit.evidence.profiles import factor, worst_event
from dpsmc_audit.evidence.summary import finding_of
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Event
from dpsmc_audit.numerics.arrays import BoolArray, FloatArray, IntArray
from dpsmc_audit.observers.base import Claim, Engine, PairAudit, Resolution
from dpsmc_audit.observers.certificates import Certificate, certificate_of_event, proposals, ranges_of
from dpsmc_audit.observers.expected.verdicts import log_ratio, surest_event
from dpsmc_audit.observers.marginal.law import (
    NAMES,
    SIDES,
    Counts,
    MarginalLaw,
    SmoothedLaw,
    affordable_pairs,
    count_runs,
    marginal_law,
    smoothed_law,
)
from dpsmc_audit.observers.marginal.sentence import MarginalWords
from dpsmc_audit.observers.sentence import Words
from dpsmc_audit.runs.memory import NoRoomError
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent

__all__ = ["JointHistogram", "Marginal", "MarginalAudit"]

FEWEST = 10
"""The fewest runs of each member."""

_UNIT = 2.0**-53
"""The relative error of one operation."""

_TRACE = 1e-15
"""A bin that a member cannot reach may hold this much by rounding, or nothing."""


@dataclass(frozen=True, eq=False)
class JointHistogram:
    """P(tau in [lo, hi), decision) for both members, the check of their ratio, and Rao-Blackwell's estimates.

    Exact ratios are nan where the exact law is not known.

    Parameters
    ----------
    decision : ndarray
        The decision of each bin.
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
    smooth_p1, smooth_p1_low, smooth_p1_high : ndarray
        Rao-Blackwell's estimate of `p1`, with an interval for a bounded mean; nan for the exact engine.
    smooth_p0, smooth_p0_low, smooth_p0_high : ndarray
        The same of `p0`.
    """

    decision: NDArray[np.str_]
    lo: FloatArray
    hi: FloatArray
    p1: FloatArray
    p0: FloatArray
    log_ratio: FloatArray
    log_ratio_low: FloatArray
    log_ratio_high: FloatArray
    exact_log_ratio: FloatArray
    outside: BoolArray
    smooth_p1: FloatArray
    smooth_p1_low: FloatArray
    smooth_p1_high: FloatArray
    smooth_p0: FloatArray
    smooth_p0_low: FloatArray
    smooth_p0_high: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginalAudit(PairAudit):
    """What the marginal observer learns.

    Parameters
    ----------
    histogram : JointHistogram
        Bins of tau by decision.
    floor : float
        Bounds on epsilon are about events of this probability or more.
    runs : int
        Runs of each member that were used: half of the labelled runs.
    bounds : Bounds, optional
        Lower bounds from the runs on epsilon, on delta and on the privacy profile; None for the exact engine.
    leakage_from : {"exact", "sampled"}
        Whether the leakage is that of the exact laws.
    stopped : bool
        Whether the evidence, and not the number of runs allowed, ended the sampling.
    """

    observer: ClassVar[str] = "marginal"
    prose: ClassVar[type[Words]] = MarginalWords
    histogram: JointHistogram
    floor: float
    runs: int
    bounds: Bounds | None
    leakage_from: str
    stopped: bool

    def proof(self) -> Certificate | None:
        """Prove that the claim is violated.

        Returns
        -------
        Certificate or None
            None for other verdicts, and if the checker proves none of the most promising events.
        """
        if self.verdict != Verdict.VIOLATED:
            return None
        law, promise = marginal_law(self.pair), self.claim.promise
        events = [*ranges_of(self.witness), *proposals(law.p1[:2], law.p0[:2], promise)]
        return certificate_of_event("marginal", self.pair, promise, events)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        return {
            **super().as_dict(),
            "runs_used": self.runs if self.sampled else None,
            "bins": self.histogram.outside.size,
            "bins_outside": int(self.histogram.outside.sum()),
            "leakage_from": self.leakage_from,
        }


# --- exact ----------------------------------------------------------------------------------------------------------


def exact_verdict(law: MarginalLaw, epsilon: float, floor: float) -> Finding:
    """Give the verdict of the exact laws. Numerical errors are taken off every bound, and nothing else is.

    `epsilon_lower` is over tails of probability `floor` and more: the earliest tau are possible with x_n = 1 only, so
    without a floor it would be infinite and say little.

    Parameters
    ----------
    law : MarginalLaw
        The exact laws.
    epsilon : float
        The claim.
    floor : float
        The smallest probability of the tails.

    Returns
    -------
    Finding
        The verdict, its bounds and its witness.
    """
    best = law.best(floor, alone=not law.proven)
    bound, tail = _surely(best, epsilon, _bin_error(law) if law.proven else _tail_error(law))
    delta, witness = worst_event(law.p1.ravel(), law.p0.ravel(), epsilon)
    off = _off(law, epsilon)
    lower = max(delta - off, tail, _in_one_bin(law, epsilon), 0.0)
    if bound > epsilon or lower > 0.0:
        if max(witness.p1, witness.p0) == 0.0:  # nothing but outcomes next to the line, yet too much of them
            witness = surest_event((law.p1,) * 2, (law.p0,) * 2, epsilon)
        shown = best if best is not None and bound > epsilon else witness
        return Finding(Verdict.VIOLATED, bound, lower, shown)
    upper = delta + off if delta + law.surely > 0.0 else 0.0
    verdict = Verdict.CERTIFIED if upper == 0.0 else Verdict.UNDECIDED
    return Finding(verdict, bound, 0.0, None, delta_upper=min(upper, 1.0))


@dataclass(frozen=True, eq=False)
class ProvenOutcomes:
    """The exact laws of (tau, o), as `rejudged` takes them.

    Parameters
    ----------
    law : MarginalLaw
        The exact laws.
    """

    law: MarginalLaw

    @property
    def _all(self) -> KnownLaws:
        return KnownLaws(self.law.p1.ravel(), self.law.p0.ravel(), self.law.surely + 64.0 * _UNIT)

    def ends(self, epsilon: float, side: int) -> tuple[float, float]:
        """Bound the delta of one direction.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        law, (low, high) = self.law, self._all.ends(epsilon, side)
        direction = (law.p1, law.p0) if side == 1 else (law.p0, law.p1)
        return max(low, _in_one_bin(law, epsilon, (direction,))), high

    def event(self, epsilon: float, side: int) -> Event:
        """Collect the outcomes that need a delta.

        Parameters
        ----------
        epsilon : float
            The epsilon.
        side : {1, 0}
            The direction: the likelier member.

        Returns
        -------
        Event
            The event.
        """
        return self._all.event(epsilon, side)


def _off(law: MarginalLaw, epsilon: float) -> float:
    """Bound by how much a sum of ``P_1 - e^epsilon P_0`` over outcomes may be off.

    The error of both laws, and rounding: of a product and a difference for each outcome, and of the sum.
    """
    return (1.0 + factor(epsilon)) * (law.surely + 64.0 * _UNIT)


def _tail_error(law: MarginalLaw) -> float:
    """Bound the error of the probability of a tail: that of the law, and of adding up its outcomes one by one."""
    return law.error + _UNIT * int(law.p1.shape[1])


def _bin_error(law: MarginalLaw) -> float:
    """Bound the error of the probability of a bin with a decision: a difference of two tails of added outcomes.

    Where the law is proven, what is wrong with a tail is wrong with one decision.
    """
    return min(law.surely, 4.0 * law.error if law.proven else math.inf) + 2.0 * _UNIT * int(law.p1.shape[1])


def _in_one_bin(
    law: MarginalLaw, epsilon: float, directions: Sequence[tuple[FloatArray, FloatArray]] | None = None
) -> float:
    """Compute the delta that some interval of tau with a decision surely needs: no bin is outside without it."""
    times, most = factor(epsilon), 0.0
    for p, q in directions or ((law.p1, law.p0), (law.p0, law.p1)):
        excess = np.cumsum(np.pad(p - times * q, ((0, 0), (1, 0))), axis=1)
        most = max(most, float((excess - np.minimum.accumulate(excess, axis=1)).max()))
    return most - (1.0 + times) * _bin_error(law)


def _surely(event: Event | None, epsilon: float, error: float) -> tuple[float, float]:
    """Bound epsilon and delta by one event whose probabilities are off by as much as they may be."""
    if event is None:
        return 0.0, 0.0
    likely, other = max(event.p1, event.p0) - error, min(event.p1, event.p0) + error
    if likely <= 0.0:
        return 0.0, 0.0
    bound = math.inf if other <= 0.0 else max(math.log(likely / other), 0.0)
    return bound, max(likely - factor(epsilon) * other, 0.0)


def auto_width(p1: FloatArray, p0: FloatArray) -> int:
    """Choose a width with which about eighty bins hold all but one part in 10^3 of the termination times.

    Parameters
    ----------
    p1, p0 : ndarray
        The laws of both members, ``[side][tau - 1]``.

    Returns
    -------
    int
        The width, at least 1.
    """
    stopped = np.cumsum(p1.sum(axis=0) + p0.sum(axis=0)) / 2.0
    low, high = (int(np.searchsorted(stopped, u)) for u in (1e-4, min(0.999, float(stopped[-1]))))
    return max(1, round((high - low) / 80.0))


def _without_traces(law: MarginalLaw, width: int) -> tuple[FloatArray, FloatArray]:
    """Compute the probabilities of the bins. Those that rounding made become 0."""
    one, zero = (np.where(p > _TRACE, p, 0.0) for p in law.binned(width))
    return one, zero


def exact_histogram(law: MarginalLaw, width: int, epsilon: float) -> JointHistogram:
    """Make the histogram of the exact laws.

    Parameters
    ----------
    law : MarginalLaw
        The exact laws.
    width : int
        The width of the bins of tau.
    epsilon : float
        The claim.

    Returns
    -------
    JointHistogram
        All bins that hold more than 1e-12. A bin is outside if its ratio is beyond the tolerance after the numerical
        error is taken off.
    """
    p1, p0 = _without_traces(law, width)
    ratio, off = log_ratio(p1, p0), _bin_error(law)
    lows, highs = (np.clip(np.array([p1, p0]) + sign * off, 0.0, 1.0) for sign in (-1.0, 1.0))
    low, high = log_ratio(lows[0], highs[1]), log_ratio(highs[0], lows[1])
    outside = np.any(lows > factor(epsilon) * highs[::-1], axis=0)
    unknown = [np.full(p1.shape, math.nan)] * 6
    return _joined(width, p1, p0, ratio, low, high, ratio, outside, *unknown, 1e-12)


def _joined(width: int, p1: FloatArray, p0: FloatArray, *columns: Any) -> JointHistogram:
    """Make rows of (decision, bin), without the empty ones."""
    *arrays, least = columns
    bins = np.arange(float(p1.shape[1]))
    decision = np.repeat(np.array([NAMES[side] for side in SIDES]), bins.size)
    keep = (p1 + p0).ravel() > least
    lo = np.tile(width * bins, len(SIDES))[keep]
    rest = [array.ravel()[keep] for array in (p1, p0, *arrays)]
    return JointHistogram(decision[keep], lo, lo + width, *rest)


# --- sampled --------------------------------------------------------------------------------------------------------


def sampled_histogram(
    counts: Counts,
    law: MarginalLaw | None,
    smooth: SmoothedLaw,
    width: int,
    epsilon: float,
    confidence: float,
) -> JointHistogram:
    """Make the histogram of runs: shares by bin and decision. Empty bins are left out.

    Intervals of the ratio come from the Clopper-Pearson ends of both shares.

    Parameters
    ----------
    counts : Counts
        The outcomes of the runs.
    law : MarginalLaw or None
        The exact laws, for the column `exact_log_ratio`. None if they are not known.
    smooth : SmoothedLaw
        The estimates of the columns `smooth_*`.
    width : int
        The width of the bins of tau.
    epsilon : float
        The claim. A bin is outside if the ratio of its shares is beyond it.
    confidence : float
        The confidence of the intervals of the ratio.

    Returns
    -------
    JointHistogram
        The bins.
    """
    found = counts.law()
    p1, p0 = found.binned(width)
    bins, runs = p1.shape[1], (counts.one.runs, counts.zero.runs)
    ones, zeros = (np.rint(p * n).astype(np.int64) for p, n in zip((p1, p0), runs, strict=True))
    low, high = _ratio_interval(ones, zeros, runs, confidence)
    ratio = log_ratio(p1, p0)
    exact = np.full(p1.shape, math.nan)
    if law is not None:
        known = log_ratio(*_without_traces(law, width))
        exact[:, : min(bins, known.shape[1])] = known[:, :bins]
    with np.errstate(invalid="ignore"):
        outside = np.abs(ratio) > epsilon
    fitted = np.full((3, 2, 3, bins), math.nan)  # beyond the last bin that a sequence reached there is no interval
    fitted[0] = 0.0 if smooth.mean.size else math.nan
    known_bins = min(bins, smooth.mean.shape[2])
    fitted[..., :known_bins] = np.array([smooth.mean, smooth.low, smooth.high])[..., :bins]
    return _joined(width, p1, p0, ratio, low, high, exact, outside, *fitted[:, 0], *fitted[:, 1], 0.0)


def _ratio_interval(
    ones: IntArray, zeros: IntArray, runs: tuple[int, int], confidence: float
) -> tuple[FloatArray, FloatArray]:
    tail = 0.25 * (1.0 - confidence)  # two shares, two ends
    low_1, high_1, low_0, high_0 = (
        ends(seen, n, tail) for seen, n in zip((ones, zeros), runs, strict=True) for ends in (lower_ends, upper_ends)
    )
    with np.errstate(divide="ignore"):
        return np.log(low_1) - np.log(high_0), np.log(high_1) - np.log(low_0)


# --- the audit ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Marginal(Resolution):
    """The observer who sees one released (tau, o) and knows no other sample.

    The sampled verdict comes from bets on the label, like that of any mechanism (`audit_mechanism`): the probability
    of a wrong violation is at most 1 - confidence, and so is that of each bound.

    Parameters
    ----------
    runs : int
        The largest number of runs of each member, for the sampled engine.
    early : bool
        Whether sampling ends as soon as the claim is refuted.
    pairs : int
        Sequences for Rao-Blackwell's estimate, which stands beside the shares of the runs.
    bin_width : int, optional
        Of the bins of tau; None chooses one.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Setting, Sprt, audit
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> setting = Setting(test, Exponential.private(test, 0.01), 0.84)
    >>> found = audit(setting, epsilon=0.01, observer="marginal", engine="exact")
    >>> f"{found.verdict}", round(found.epsilon_lower, 4), round(found.delta_lower, 5)
    ('violated', 0.2549, 0.00703)
    """

    name: ClassVar[str] = "marginal"
    unit: ClassVar[str] = "runs"
    runs: int = 1_000_000
    pairs: int = 500
    early: bool = True
    bin_width: int | None = None

    @property
    def amount(self) -> int:
        """Runs of each member."""
        return self.runs

    def audit(self, pair: Adjacent, claim: Claim, sampling: Sampling) -> MarginalAudit:
        """Audit the claim that one released (tau, o) is `epsilon`-private.

        Parameters
        ----------
        pair : Adjacent
            The setting and the entries.
        claim : Claim
            The claim, the engine and the confidence.
        sampling : Sampling
            How runs are drawn. The exact engine does not draw.

        Returns
        -------
        MarginalAudit
            The result.

        Raises
        ------
        ParameterError
            If a field of the observer is impossible, or if the engine is exact and the exact laws are too expensive to
            compute.
        """
        grid, width = self.grid(claim.epsilon), self.bin_width
        check_bin_width(width)
        require(self.runs >= FEWEST, f"runs must be at least {FEWEST}, got {self.runs}")
        require(self.pairs >= 2, f"pairs must be at least 2, got {self.pairs}")
        started = time.perf_counter()
        law = _affordable_law(pair, claim.engine)
        exact = None if law is None else judged_exactly(law, claim, self.floor)
        if claim.engine == "exact":
            assert law is not None
            known, width = law, width or auto_width(law.p1, law.p0)
            histogram = exact_histogram(law, width, claim.epsilon)
            found: dict[str, Any] = {"finding": exact, "histogram": histogram, "unfinished": 0, "steps": 0}
        else:
            game = Game(Rules(claim.promise, 1.0 - claim.confidence, sampling.seed, self.runs, self.early))
            counts = count_runs(pair, game, sampling)
            known = counts.law() if law is None else law
            width = width or auto_width(known.p1, known.p0)
            few = min(self.pairs, affordable_pairs(pair.setting, sampling.max_steps))
            smooth = smoothed_law(pair, few, width, sampling.with_progress(None), confidence=claim.confidence)
            found = {
                "runs": (game.labelled + 1) // 2,
                "bounds": game.bounds(),
                "stopped": max(game.used) < game.rules.most,
                "finding": finding_of(game, self.floor),
                "histogram": sampled_histogram(counts, law, smooth, width, claim.epsilon, claim.confidence),
                "unfinished": counts.unfinished,
                "steps": counts.samples + smooth.steps,
            }
        return MarginalAudit(
            claim=claim,
            pair=pair,
            exact=exact,
            numerical_error=math.nan if law is None else law.scatter,
            proven=law is None or law.proven,
            floor=self.floor,
            leakage=known.leakage(grid, self.floor),
            leakage_from="sampled" if law is None else "exact",
            **{"runs": self.runs, "bounds": None, "stopped": False, **found},
            seconds=time.perf_counter() - started + sampling.execution.spent,
        )


def judged_exactly(law: MarginalLaw, claim: Claim, floor: float) -> Finding:
    """Give the verdict of the exact laws on a claim of any kind.

    Parameters
    ----------
    law : MarginalLaw
        The exact laws.
    claim : Claim
        The claim.
    floor : float
        The smallest probability of the tails behind the bound on epsilon.

    Returns
    -------
    Finding
        The verdict.
    """
    return rejudged(exact_verdict(law, claim.epsilon, floor), claim.promise, ProvenOutcomes(law))


def _affordable_law(pair: Adjacent, engine: Engine) -> MarginalLaw | None:
    """Compute the exact law. A sampled audit does without it where it is too expensive."""
    try:
        return marginal_law(pair)
    except NoRoomError:
        raise  # what is affordable is a matter of the parameters, not of the machine
    except ParameterError:
        if engine == "exact":
            raise
        return None
