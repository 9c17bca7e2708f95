"""Figure 1 of the paper with what it hides, and one figure for each sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.mechanisms import Law, Mechanism
from dpsmc_audit.observers.base import PairAudit
from dpsmc_audit.observers.expected.audit import ExpectedAudit
from dpsmc_audit.report.style import BLUE, GREEN, GREY, ORANGE, RED, new_figure, tidy

__all__ = ["audit_figure", "points_in_frame", "save", "sweep_figure", "title_of", "two_histograms"]


def save(figure: Figure, path: Path, suffixes: Sequence[str] = ("png", "pdf")) -> None:
    """As files that are the same every time the same figure is drawn."""
    for suffix in suffixes:
        metadata = {"CreationDate": None} if suffix == "pdf" else {"Software": None}
        figure.savefig(path.with_suffix(f".{suffix}"), dpi=200, metadata=metadata)


def audit_figure(audit: ExpectedAudit) -> Figure:
    """Histograms and tolerance as in the paper's Figure 1; below them the log ratio of every bin."""
    figure = new_figure(7.5, 6.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    shown = _shown(audit)
    _histograms(above, audit, shown)
    _ratios(below, audit, shown)
    figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
    figure.suptitle(f"{title_of(audit)}, {_how(audit)}", fontsize=9.5)
    return figure


def title_of(audit: PairAudit) -> str:
    """The parameters of any audit, in one line."""
    setting, entries = audit.pair.setting, ", ".join(str(entry) for entry in audit.pair.entries)
    test = setting.test
    levels = rf"$\alpha$={test.fp:g}" if test.fp == test.fn else rf"$\alpha$={test.fp:g}, {test.fn:g}"
    return (
        rf"$p$={test.p:g}, $p_\varphi$={setting.p_phi:g}, {levels}, $\delta$={test.delta:g}, "
        rf"$\varepsilon$={audit.claim.epsilon:g}, $n$={entries}, {_noise(setting.mechanism)}"
    )


def _noise(mechanism: Mechanism) -> str:
    if isinstance(mechanism, Law):
        return f"L {mechanism.distribution}({', '.join(f'{name}={value:g}' for name, value in mechanism.arguments)})"
    return f"mechanism {mechanism.name}"


def _how(audit: ExpectedAudit) -> str:
    return "exact" if audit.claim.engine == "exact" else "sampled"


def _shown(audit: ExpectedAudit) -> np.ndarray:
    """The bins that hold all but half a percent of either side: beyond, the intervals say nothing."""
    mass = np.cumsum(audit.histogram.p1[::-1] + audit.histogram.p0[::-1])[::-1]
    return np.flatnonzero((mass > 1e-2) & np.isfinite(audit.histogram.hi))


def _histograms(axes: Axes, audit: ExpectedAudit, shown: np.ndarray) -> None:
    h = audit.histogram
    two_histograms(axes, h.lo[shown], h.hi[0] - h.lo[0], h.p1[shown], h.p0[shown], audit.claim.epsilon)
    axes.set_ylabel(f"probability per bin of {h.hi[0] - h.lo[0]:g} samples")
    axes.legend(fontsize=8.5, frameon=False)
    tidy(axes)


MEMBERS = (r"$x_n=1$ (it satisfies the specification)", r"$x_n=0$ (sample $n$ violates the specification)", "$x_n=1$")


def two_histograms(
    axes: Axes,
    lo: np.ndarray,
    width: float,
    p1: np.ndarray,
    p0: np.ndarray,
    epsilon: float,
    names: tuple[str, str, str] = MEMBERS,
) -> None:
    """Both members and the tolerance around x_n = 1; bins that are not listed are empty."""
    place = np.rint((lo - lo[0]) / width).astype(int)
    one, zero = np.zeros(place[-1] + 1), np.zeros(place[-1] + 1)
    one[place], zero[place] = p1, p0
    edges = lo[0] + width * np.arange(one.size + 1)
    axes.stairs(zero, edges, fill=True, color=BLUE, label=names[1])
    axes.stairs(one, edges, color=RED, linewidth=1.5, label=names[0])
    for k, bound in enumerate((1.0 / factor(epsilon), factor(epsilon))):
        label = rf"tolerance $e^{{\pm\varepsilon}}$ times {names[2]}" if k == 0 else None
        axes.stairs(one * bound, edges, color=GREEN, linestyle="--", linewidth=1.0, label=label)
    axes.set_ylim(0.0, 1.15 * max(one.max(), zero.max()))


def points_in_frame(axes: Axes, x: np.ndarray, y: np.ndarray, limit: float, label: str, **style: Any) -> None:
    """Points inside the frame as they are; those beyond it as open triangles at its edge that say so."""
    inside = np.abs(y) <= limit
    axes.plot(x[inside], y[inside], label=label, **style)
    name: str | None = f"{label.split(',', maxsplit=1)[0]}, beyond the frame"
    for sign, marker in ((1.0, "^"), (-1.0, "v")):
        beyond = ~np.isnan(y) & (sign * y > limit)
        if np.any(beyond):
            y_edge = np.full(beyond.sum(), sign * limit)
            axes.plot(x[beyond], y_edge, marker, color=style["color"], mfc="none", label=name)
            name = None


def _ratios(axes: Axes, audit: ExpectedAudit, shown: np.ndarray) -> None:
    h, epsilon = audit.histogram, audit.claim.epsilon
    middle = 0.5 * (h.lo + h.hi)[shown]
    ratio, exact = h.log_ratio[shown], h.exact_log_ratio[shown]
    limit = _limit(h.log_ratio_low[shown], h.log_ratio_high[shown], epsilon)
    axes.axhspan(-2 * epsilon, 2 * epsilon, color="0.93", label=r"$\pm 2\varepsilon$ (the paper's theorem)")
    axes.axhspan(-epsilon, epsilon, color="0.82", label=r"$\pm\varepsilon$ (claimed)")
    finite = np.isfinite(ratio)
    if audit.claim.engine != "exact":
        low, high = (np.clip(x[shown][finite], -limit, limit) for x in (h.log_ratio_low, h.log_ratio_high))
        label = f"sampled, {100 * audit.claim.confidence:g} % interval"
        axes.vlines(middle[finite], low, high, color="black", lw=0.8)
        points_in_frame(axes, middle[finite], ratio[finite], limit, label, marker="o", ls="", ms=3, color="black")
    known = np.isfinite(exact)
    points_in_frame(axes, middle[known], exact[known], limit, "exact", marker="x", ls="", ms=5, color=RED)
    infinite = np.flatnonzero(np.isinf(ratio))
    for k in infinite:
        _point_out(axes, middle[k], math.copysign(limit, ratio[k]), audit, explain=k == infinite[0])
    axes.set_ylim(-1.05 * limit, 1.05 * limit)
    axes.set_ylabel(r"$\ln(P_1 / P_0)$")
    axes.set_xlabel("average termination time (samples drawn, averaged over the other samples)")
    tidy(axes)


def _limit(low: np.ndarray, high: np.ndarray, epsilon: float) -> float:
    """Room for most intervals and for the bands, without letting the rare bins of the tail set the scale."""
    widths = np.concatenate([np.abs(low[np.isfinite(low)]), np.abs(high[np.isfinite(high)])])
    typical = float(np.quantile(widths, 0.6)) if widths.size else 0.0
    return max(6.0 * epsilon, 1.3 * typical)


def _point_out(axes: Axes, x: float, y: float, audit: ExpectedAudit, *, explain: bool) -> None:
    """An infinite ratio: an arrow at the edge of the picture."""
    axes.annotate("", (x, y), (x, 0.6 * y), arrowprops={"arrowstyle": "->", "color": GREY, "lw": 1.4})
    if explain and x <= audit.gap.end + 2 * (audit.histogram.hi[0] - audit.histogram.lo[0]):
        text = f"support gap: ratio infinite\n{audit.gap.start:.1f} to {audit.gap.end:.1f} is reached by one side only"
        axes.annotate(text, (x, 0.8 * y), xytext=(14, 0), textcoords="offset points", fontsize=8, va="center")


def sweep_figure(rows: Sequence[dict[str, Any]], over: Sequence[str]) -> Figure:
    """Mean samples, or what an audit found, over the first swept parameter; one line for each value of the others."""
    if len({row["notion"] for row in rows}) > 1:
        return _observers_figure(rows)
    figure = new_figure(7.0, 4.2)
    audited = rows[0]["task"] == "audit"
    name, others = (over[0], over[1:]) if over else ("seed", ())
    axes = figure.subplots()
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(", ".join(f"{key}={row[key]}" for key in others), []).append(row)
    for k, (label, members) in enumerate(groups.items()):
        x = [row[name] for row in members]
        numeric = all(isinstance(value, (int, float)) for value in x)
        place = x if numeric else list(range(len(x)))
        style: dict[str, Any] = {"marker": "osD^vP*X"[k % 8], "ms": 5, "lw": 1.0, "color": f"C{k % 10}"}
        if audited:
            axes.plot(place, [row["delta_lower"] for row in members], label=f"audit {label}".strip(), **style)
            exact = [(row.get("exact") or {}).get("delta_lower", math.nan) for row in members]
            axes.plot(place, exact, ls="--", color=GREY, lw=1.0)
        else:
            axes.plot(place, [_drawn(row["samples_exact"]) for row in members], label=label or "exact mean", **style)
            if members[0].get("samples") is not None:
                half = [0.5 * (_drawn(row["samples_high"]) - _drawn(row["samples_low"])) for row in members]
                axes.errorbar(
                    place, [row["samples"] for row in members], half, fmt="none", color="black", capsize=3, lw=1
                )
        if not numeric:
            axes.set_xticks(place, x)
        elif min(place) > 0 and max(place) / min(place) > 20:
            axes.set_xscale("log")
    axes.set_xlabel(name)
    if audited:
        axes.plot([], [], ls="--", color=GREY, label="exact")
        axes.set_ylabel("delta at the claimed epsilon (lower bound)")
        axes.set_ylim(bottom=0)
    else:
        axes.set_ylabel("mean samples (bars: sampled)")
        if any(math.isfinite(_drawn(row["samples_exact"])) for row in rows):
            axes.set_yscale("log")
    axes.legend(fontsize=8, frameon=False)
    tidy(axes)
    return figure


def _drawn(value: Any) -> float:
    """A number, or a gap where there is none: one run has no interval, and with some L tau has no mean."""
    return float(value) if isinstance(value, (int, float)) else math.nan


def _observers_figure(rows: Sequence[dict[str, Any]]) -> Figure:
    """What each observer needs at the claimed epsilon, a group of bars for each mechanism with its price."""
    figure = new_figure(7.5, 4.4)
    axes = figure.subplots()
    mechanisms = list(dict.fromkeys(row["mechanism"] for row in rows))
    notions = list(dict.fromkeys(row["notion"] for row in rows))
    smallest = 1e-6
    for k, notion in enumerate(notions):
        mine = [row for row in rows if row["notion"] == notion]
        place = [mechanisms.index(row["mechanism"]) + 0.26 * (k - 0.5 * (len(notions) - 1)) for row in mine]
        height = [max(row["delta_at_epsilon"], smallest) for row in mine]
        bars = axes.bar(place, height, 0.24, color=(BLUE, ORANGE, RED)[k % 3], label=notion)
        said = [f"{row['delta_at_epsilon']:.2g}" if row["delta_at_epsilon"] > smallest else "< 1e-6" for row in mine]
        axes.bar_label(bars, said, fontsize=8)
    names = []
    for mechanism in mechanisms:
        row = next(row for row in rows if row["mechanism"] == mechanism)
        error = max(row["fp_worst"], row["fn_worst"])
        mean = _drawn(row["samples_exact"])
        shown = f"{mean:.0f}" if math.isfinite(mean) else row["samples_exact"]
        names.append(f"{mechanism}\n{shown} samples\nerror {error:.2g}")
    axes.set_xticks(range(len(mechanisms)), names)
    axes.set_yscale("log")
    axes.set_ylim(smallest, 5.0)
    axes.set_ylabel(rf"$\delta$ needed at the claimed $\varepsilon$={rows[0]['epsilon']:g}")
    axes.legend(fontsize=8.5, frameon=False, title="observer", title_fontsize=8.5, ncols=3, loc="upper right")
    tidy(axes)
    return figure
