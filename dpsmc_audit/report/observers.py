"""Figures of what an observer learns: termination times, the outcomes of one sequence, and privacy profiles."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpsmc_audit.numerics.ties import ranked
from dpsmc_audit.observers.base import PairAudit
from dpsmc_audit.observers.expected.audit import ExpectedAudit
from dpsmc_audit.observers.informed.audit import InformedAudit
from dpsmc_audit.observers.marginal.audit import JointHistogram, MarginalAudit
from dpsmc_audit.report.figures import audit_figure, points_in_frame, title_of, two_histograms
from dpsmc_audit.report.style import BLUE, DARK_BLUE, GREY, ORANGE, RED, new_figure, tidy

__all__ = ["informed_figure", "marginal_figure", "profile_figure"]


_SMALLEST = 1e-9
"""Deltas below this are not drawn: numerical error is of that size."""


# --- marginal -------------------------------------------------------------------------------------------------------


def marginal_figure(audit: MarginalAudit) -> Figure:
    """Termination times of both members for the more frequent decision; below, the log ratio of every bin."""
    figure = new_figure(7.5, 6.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    shown, decision, rest = _main_decision(audit.histogram)
    h = audit.histogram
    two_histograms(above, h.lo[shown], h.hi[0] - h.lo[0], h.p1[shown], h.p0[shown], audit.claim.epsilon)
    above.set_ylabel(f"P(tau in a bin of {h.hi[0] - h.lo[0]:g} samples, {decision})")
    above.legend(fontsize=8.5, frameon=False, title=rest, title_fontsize=8.5)
    tidy(above)
    _marginal_ratios(below, audit, shown)
    handles = below.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
    figure.suptitle(f"{title_of(audit)}, {'exact' if audit.claim.engine == 'exact' else 'sampled'}", fontsize=9.5)
    return figure


def _main_decision(h: JointHistogram) -> tuple[np.ndarray, str, str]:
    """Bins of the more frequent decision that hold all but one part in a thousand; and what the others hold."""
    names = sorted(set(h.decision.tolist()))
    names = [names[k] for k in ranked([float((h.p1 + h.p0)[h.decision == name].sum()) for name in names])]
    mine = np.flatnonzero(h.decision == names[0])
    left = np.cumsum((h.p1 + h.p0)[mine][::-1])[::-1]
    shown = mine[left > 4e-3]
    others = []
    for name in names[1:]:
        one, zero = (float(p[h.decision == name].sum()) for p in (h.p1, h.p0))
        others.append(f"{name}, not drawn: {one:.3g} ($x_n=1$), {zero:.3g} ($x_n=0$)")
    full = np.arange(shown[0], shown[-1] + 1)
    return full, names[0], "\n".join(others)


def _marginal_ratios(axes: Axes, audit: MarginalAudit, shown: np.ndarray) -> None:
    h, epsilon = audit.histogram, audit.claim.epsilon
    middle, ratio = 0.5 * (h.lo + h.hi)[shown], h.log_ratio[shown]
    exact = h.exact_log_ratio[shown]
    solid = (h.p1 + h.p0)[shown] > 2e-3
    known = exact[np.isfinite(exact) & solid] if np.any(np.isfinite(exact)) else ratio[np.isfinite(ratio) & solid]
    limit = max(min(6.0 * epsilon, epsilon + 1.0), 1.2 * float(np.abs(known).max(initial=0.0)))
    axes.axhspan(-2 * epsilon, 2 * epsilon, color="0.93", label=r"$\pm 2\varepsilon$ (the paper's theorem)")
    axes.axhspan(-epsilon, epsilon, color="0.82", label=r"$\pm\varepsilon$ (claimed)")
    if audit.claim.engine != "exact":
        low, high = (np.clip(x[shown], -limit, limit) for x in (h.log_ratio_low, h.log_ratio_high))
        finite = np.isfinite(ratio)
        axes.vlines(middle[finite], low[finite], high[finite], color="black", lw=0.7)
        label = f"sampled, {100 * audit.claim.confidence:g} % interval"
        points_in_frame(axes, middle, ratio, limit, label, marker="o", ls="", ms=2.5, color="black")
    points_in_frame(axes, middle, exact, limit, "exact", marker=".", ls="-", lw=1.2, ms=3, color=RED)
    axes.set_ylim(-1.05 * limit, 1.05 * limit)
    axes.set_ylabel(r"$\ln(P_1 / P_0)$")
    axes.set_xlabel("termination time tau (samples drawn)")
    tidy(axes)


# --- informed -------------------------------------------------------------------------------------------------------


def informed_figure(audit: InformedAudit) -> Figure:
    """Outcomes of one sequence: upwards with x_n = 1, downwards with x_n = 0; in colour what reveals the sample."""
    figure = new_figure(7.5, 4.6)
    axes = figure.subplots()
    law = audit.law
    finished = law.decision >= 0
    mass = np.cumsum((law.p1 + law.p0)[finished])
    last = int(law.tau[finished][np.searchsorted(mass, 0.995 * mass[-1])]) if mass.size else 1
    first = int(law.tau[finished][np.searchsorted(mass, 1e-4 * mass[-1])]) if mass.size else 0
    edges = np.linspace(max(first - 0.05 * (last - first) - 1.0, 0.0), last + 1.0, 81)
    only_1, only_0 = law.reveals
    for p, only, sign, color, name in ((law.p1, only_1, 1, RED, 1), (law.p0, only_0, -1, DARK_BLUE, 0)):
        every, revealing = (
            np.histogram(law.tau[keep & finished], edges, weights=p[keep & finished])[0]
            for keep in (np.ones(p.size, bool), only)
        )
        shared = BLUE if name == 0 else ORANGE
        axes.stairs(sign * every, edges, fill=True, color=shared, label=rf"$x_n={name}$")
        label = rf"$x_n={name}$, impossible with $x_n={1 - name}$: {float(p[only].sum()):.3g}"
        axes.stairs(sign * revealing, edges, fill=True, color=color, label=label)
    axes.axhline(0.0, color="black", lw=0.8)
    axes.set_xlabel("termination time tau (samples drawn)")
    axes.set_ylabel("probability over L, per bin\n(down: $x_n=0$)")
    axes.yaxis.set_major_formatter(lambda y, _: f"{abs(y):g}")
    axes.legend(fontsize=8.5, frameon=False)
    tidy(axes)
    running = max(law.running)
    if running > 1e-3:
        axes.set_title(f"{running:.3g} of the runs outlast the sequence", fontsize=9)
    figure.suptitle(f"{audit.shown}; all other samples known\n{title_of(audit)}", fontsize=9.5)
    return figure


# --- profiles -------------------------------------------------------------------------------------------------------


def profile_figure(audit: PairAudit) -> Figure:
    """delta over epsilon in both directions, with the claim, the paper's theorem, and the truth at these points."""
    figure = new_figure(6.6, 4.4)
    axes = figure.subplots()
    profile, epsilon = audit.leakage.profile, audit.claim.epsilon
    for delta, color, style, name in (
        (profile.delta_1_over_0, RED, "-", r"$P_1 \leq e^{\varepsilon'} P_0 + \delta$"),
        (profile.delta_0_over_1, DARK_BLUE, "--", r"$P_0 \leq e^{\varepsilon'} P_1 + \delta$"),
    ):
        label = f"needed for {name}" + ("" if delta[0] > _SMALLEST else ": below 1e-9" if delta[0] > 0.0 else ": none")
        axes.plot(profile.epsilon, np.maximum(delta, 0.1 * _SMALLEST), style, color=color, lw=1.6, label=label)
    largest = np.maximum(profile.delta_1_over_0, profile.delta_0_over_1)
    seen = profile.epsilon[largest > _SMALLEST]
    end = max(4.0 * epsilon, min(float(seen.max(initial=0.0)) * 1.1, 30.0 * epsilon))
    bottom = _SMALLEST if not seen.size else 10.0 ** math.floor(math.log10(max(_floor_of(largest), _SMALLEST)) - 0.5)
    for x, marker, name in ((epsilon, "o", "claimed: delta 0"), (2 * epsilon, "s", "the paper's theorem: delta 0")):
        value = profile.at(x)
        axes.plot([x, x], [bottom, max(value, bottom)], ":", color=GREY, lw=1.0)
        said = f"{value:.3g}" if value > _SMALLEST else "below 1e-9"
        label = rf"$\varepsilon'$={x:g} ({name}): needs {said}"
        axes.plot([x], [max(value, bottom)], marker, color="black", ms=5, mfc="none", label=label, clip_on=False)
    axes.set_yscale("log")
    axes.set_ylim(bottom, 2.0)
    axes.set_xlim(0.0, end)
    axes.set_xlabel(r"$\varepsilon'$")
    axes.set_ylabel(r"$\delta$ that is needed")
    axes.legend(fontsize=8, frameon=False, loc="upper right")
    tidy(axes)
    figure.suptitle(f"privacy profile, {_observer(audit)}\n{title_of(audit)}", fontsize=9.5)
    return figure


def _floor_of(delta: np.ndarray) -> float:
    """Where the drawing may end: at 1e-5 of the largest, or at the smallest that is not negligible."""
    seen = delta[delta > _SMALLEST]
    return max(float(seen.min()), 1e-5 * float(seen.max())) if seen.size else _SMALLEST


def _observer(audit: PairAudit) -> str:
    if isinstance(audit, MarginalAudit):
        return "marginal observer: one released (tau, o)" + (" (sampled)" if audit.leakage_from == "sampled" else "")
    if isinstance(audit, InformedAudit):
        over = "the given sequence" if audit.averages is None else f"average of {audit.averages.sequences} sequences"
        return f"informed observer, {over}"
    h = audit.histogram
    return f"expected (Definition 3), averages in bins of {h.hi[0] - h.lo[0]:g} samples"


def figure_of(audit: PairAudit) -> tuple[Figure, str]:
    """Draw the histogram of an audit; beside the figure, the name of its file without suffix."""
    if isinstance(audit, MarginalAudit):
        return marginal_figure(audit), "marginal"
    if isinstance(audit, InformedAudit):
        return informed_figure(audit), "informed"
    assert isinstance(audit, ExpectedAudit)
    return audit_figure(audit), "figure1"
