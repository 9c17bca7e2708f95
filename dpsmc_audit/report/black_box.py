"""The figure of an audit of a user's mechanism: what its runs looked like, and the ratio of every bin."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from dpsmc_audit.evidence.intervals import lower_ends, upper_ends
from dpsmc_audit.observers.black_box import BlackBoxAudit
from dpsmc_audit.report.figures import points_in_frame, two_histograms
from dpsmc_audit.report.style import new_figure, tidy

__all__ = ["black_box_figure"]

_BINS = 80


def black_box_figure(audit: BlackBoxAudit) -> Figure:
    """tau of both members, whatever was decided; below, the log ratio of every bin with its interval."""
    figure = new_figure(7.5, 6.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    lo, width, one, zero = _binned(audit)
    shares = (one / audit.runs, zero / audit.runs)
    two_histograms(above, lo - 0.5, width, *shares, audit.claim.epsilon, names=("$x=1$", "$x=0$", "$x=1$"))
    above.set_ylabel("share of the runs" + ("" if width == 1 else f" per bin of {width:g}"))
    above.legend(fontsize=8.5, frameon=False)
    tidy(above)
    tail = 0.25 * (1.0 - audit.claim.confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(one) - np.log(zero)
        low = np.log(lower_ends(one, audit.runs, tail)) - np.log(upper_ends(zero, audit.runs, tail))
        high = np.log(upper_ends(one, audit.runs, tail)) - np.log(lower_ends(zero, audit.runs, tail))
    solid = np.isfinite(ratio) & (one + zero > 20)
    limit = max(3.0 * audit.claim.epsilon, 1.3 * float(np.abs(ratio[solid]).max(initial=0.0)), 1e-3)
    seen = one + zero > 0
    middle = lo + 0.5 * (width - 1.0)
    below.axhspan(-audit.claim.epsilon, audit.claim.epsilon, color="0.85", label=r"$\pm\varepsilon$ (claimed)")
    ends = (np.clip(x[seen], -limit, limit) for x in (low, high))
    below.vlines(middle[seen], *ends, color="black", lw=0.7)
    label = f"sampled, {100 * audit.claim.confidence:g} % interval of each bin"
    points_in_frame(below, middle[seen], ratio[seen], limit, label, marker="o", ls="", ms=3, color="black")
    below.set_ylim(-1.08 * limit, 1.08 * limit)
    below.set_ylabel(r"$\ln(P_1 / P_0)$")
    below.set_xlabel("tau, whatever was decided")
    tidy(below)
    handles = below.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
    figure.suptitle(
        f"{audit.name}: {audit.verdict}\n{audit.claim.text}, {audit.runs} runs of either member", fontsize=9.5
    )
    return figure


def _binned(audit: BlackBoxAudit) -> tuple[np.ndarray, int, np.ndarray, np.ndarray]:
    """Counts by bins of tau that hold all but a thousandth of the runs at either end."""
    h = audit.histogram
    shares = np.cumsum(h.runs_1 + h.runs_0) / (2.0 * audit.runs)
    low, high = (int(h.tau[min(int(np.searchsorted(shares, u)), h.tau.size - 1)]) for u in (5e-4, 1.0 - 5e-4))
    width = max(1, math.ceil((high - low + 1) / _BINS))
    bins = (high - low) // width + 1
    place, inside = (h.tau - low) // width, (h.tau >= low) & (h.tau <= high)
    one, zero = (
        np.bincount(place[inside], weights=runs[inside], minlength=bins).astype(np.int64)
        for runs in (h.runs_1, h.runs_0)
    )
    return low + width * np.arange(bins, dtype=np.float64), width, one, zero
