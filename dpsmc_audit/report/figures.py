"""Figures as files: the two histograms of an audit with their ratio, its privacy profile, and one for each sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpsmc_audit.evidence.profiles import factor
from dpsmc_audit.mechanisms import Law, Mechanism
from dpsmc_audit.observers.base import Audit, PairAudit
from dpsmc_audit.observers.black_box import BlackBoxAudit
from dpsmc_audit.observers.expected.audit import ExpectedAudit
from dpsmc_audit.report.bins import Bins, bins_of, ratio_limit
from dpsmc_audit.report.scales import ROUNDING
from dpsmc_audit.report.style import BLUE, DARK_BLUE, GREEN, GREY, ORANGE, RED, new_figure, tidy
from dpsmc_audit.report.trade_off_chart import least_misses
from dpsmc_audit.runs.files import write_bytes

__all__ = ["audit_figure", "profile_figure", "save", "sweep_figure", "title_of", "trade_off_figure"]


def save(figure: Figure, path: Path, suffixes: Sequence[str] = ("png", "pdf")) -> None:
    """Write a figure to files that are the same every time the same figure is drawn.

    Parameters
    ----------
    figure : Figure
        What is written.
    path : Path
        Without suffix.
    suffixes : sequence of str
        One file for each.
    """
    for suffix in suffixes:
        metadata = {"CreationDate": None} if suffix == "pdf" else {"Software": None}
        drawn = BytesIO()
        figure.savefig(drawn, format=suffix, dpi=200, metadata=metadata)
        write_bytes(path.with_suffix(f".{suffix}"), drawn.getvalue())  # a link is replaced, not followed


# --- audits ---------------------------------------------------------------------------------------------------------


def title_of(audit: Audit) -> str:
    """Name what was audited, in one line.

    Parameters
    ----------
    audit : Audit
        Of any observer.

    Returns
    -------
    str
        With symbols in TeX.
    """
    how = "sampled" if audit.sampled else "exact"
    if isinstance(audit, BlackBoxAudit):
        return f"{audit.name}: {audit.verdict}\n{audit.claim.text}, {audit.runs} runs of each case"
    if not isinstance(audit, PairAudit):
        return f"{audit.observer}: {audit.verdict}, {how}"
    setting, entries = audit.pair.setting, ", ".join(str(entry) for entry in audit.pair.entries)
    test = setting.test
    levels = rf"$\alpha$={test.fp:g}" if test.fp == test.fn else rf"$\alpha$={test.fp:g}, {test.fn:g}"
    return (
        rf"$p$={test.p:g}, $p_\varphi$={setting.p_phi:g}, {levels}, $\delta$={test.delta:g}, "
        rf"$\varepsilon$={audit.claim.epsilon:g}, $n$={entries}, {_noise(setting.mechanism)}, {how}"
    )


def _noise(mechanism: Mechanism) -> str:
    if isinstance(mechanism, Law):
        return f"L {mechanism.distribution}({', '.join(f'{name}={value:g}' for name, value in mechanism.arguments)})"
    return f"mechanism {mechanism.name}"


def audit_figure(audit: Audit) -> Figure | None:
    """Draw both members: with the tolerance and the log ratio of every bin, or, for one sequence, up and down.

    Parameters
    ----------
    audit : Audit
        Of any observer.

    Returns
    -------
    Figure or None
        None where there are no bins to draw.
    """
    bins = bins_of(audit)
    if bins is None or not bins.bins:
        return None
    figure = new_figure(7.5, 4.6 if bins.mirrored else 6.6)
    figure.suptitle(title_of(audit), fontsize=9.5)
    if bins.mirrored:
        _up_and_down(figure.subplots(), bins)
        return figure
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    _two_histograms(above, bins, audit.claim.epsilon)
    _ratios(below, bins, audit)
    figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5, frameon=False)
    return figure


def trade_off_figure(audit: BlackBoxAudit) -> Figure:
    """Draw the trade-off curve of a user's mechanism with its bands.

    Parameters
    ----------
    audit : BlackBoxAudit
        The audit.

    Returns
    -------
    Figure
        Misses against false alarms.
    """
    curve = audit.curve
    figure = new_figure(5.2, 5.0)
    figure.suptitle(title_of(audit), fontsize=9.5)
    axes = figure.subplots()
    axes.plot([0.0, 1.0], [1.0, 0.0], color=GREY, ls=":", lw=1.0, label="guessing")
    alpha = np.linspace(0.0, 1.0, 401)
    allowed = least_misses(audit.claim.promise, alpha)
    axes.plot(alpha, allowed, color=GREEN, ls="--", label="least misses that the claim allows")
    axes.fill_betweenx(curve.beta, curve.alpha_low, curve.alpha_high, color="0.85", lw=0)
    axes.fill_between(curve.alpha, curve.beta_low, curve.beta_high, color="0.85", lw=0, label=_band(audit))
    axes.plot(curve.alpha, curve.beta, color=RED, label="learnt test, on fresh runs")
    axes.set(
        xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel="false alarms (x = 0 taken for 1)", ylabel="misses (x = 1 taken for 0)"
    )
    axes.legend(fontsize=8.5, frameon=False)
    tidy(axes)
    return figure


def _band(audit: BlackBoxAudit) -> str:
    return f"{100 * audit.claim.confidence:g} % band of the whole curve"


def _column(bins: Bins, name: str) -> np.ndarray:
    return np.array([getattr(each, name) for each in bins.bins], np.float64)


def _stairs(bins: Bins, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heights and edges of a histogram whose missing bins are empty."""
    lo, width = _column(bins, "lo"), bins.bins[0].hi - bins.bins[0].lo
    place = np.rint((lo - lo[0]) / width).astype(int)
    heights = np.zeros(place[-1] + 1)
    heights[place] = values
    return heights, lo[0] + width * np.arange(heights.size + 1)


def _two_histograms(axes: Axes, bins: Bins, epsilon: float) -> None:
    """Both members and the tolerance around x = 1."""
    (zero, edges), (one, _) = (_stairs(bins, _column(bins, name)) for name in ("zero", "one"))
    axes.stairs(zero, edges, fill=True, color=BLUE, label="$x=0$")
    axes.stairs(one, edges, color=RED, linewidth=1.5, label="$x=1$")
    tolerance, times = r"tolerance $e^{\pm\varepsilon}$ times $x=1$", factor(epsilon)
    for bound, label in ((1.0 / times, tolerance), (times, None)):
        axes.stairs(one * bound, edges, color=GREEN, linestyle="--", linewidth=1.0, label=label)
    axes.set_ylim(0.0, 1.15 * max(one.max(), zero.max()))
    axes.set_ylabel(f"probability per bin of {edges[1] - edges[0]:g}")
    axes.legend(fontsize=8.5, frameon=False, title="\n".join(bins.notes), title_fontsize=8)
    tidy(axes)


def _ratios(axes: Axes, bins: Bins, audit: Audit) -> None:
    """The log ratio of every bin over the claimed band; what is beyond the frame is a triangle at its edge."""
    epsilon, ratio, exact = audit.claim.epsilon, _column(bins, "ratio"), _column(bins, "exact")
    middle, limit = 0.5 * (_column(bins, "lo") + _column(bins, "hi")), ratio_limit(bins, epsilon)
    if isinstance(audit, PairAudit):
        axes.axhspan(-2 * epsilon, 2 * epsilon, color="0.93", label=r"$\pm 2\varepsilon$ (the paper's theorem)")
    axes.axhspan(-epsilon, epsilon, color="0.82", label=r"$\pm\varepsilon$ (claimed)")
    if bins.sampled:
        low, high = (np.clip(_column(bins, name), -limit, limit) for name in ("low", "high"))
        axes.vlines(middle, np.where(np.isfinite(ratio), low, math.nan), high, color="black", lw=0.7)
        label = f"sampled, {100 * audit.claim.confidence:g} % interval of each bin"
        _points(axes, middle, ratio, limit, label, marker="o", ls="", ms=3, color="black")
        _points(axes, middle, exact, limit, "exact", marker="x", ls="", ms=4, color=RED)
    else:
        _points(axes, middle, ratio, limit, "exact", marker=".", ls="-", lw=1.0, ms=5, color=RED)
    if isinstance(audit, ExpectedAudit) and audit.gap.end > audit.gap.start and np.any(np.isinf(ratio)):
        text = f"support gap: {audit.gap.start:.1f} to {audit.gap.end:.1f} is reached by one side only"
        place = int(np.flatnonzero(np.isinf(ratio))[0])
        at = (middle[place], math.copysign(0.85 * limit, ratio[place]))
        axes.annotate(text, at, xytext=(14, 0), textcoords="offset points", fontsize=8, va="center")
    axes.set_ylim(-1.08 * limit, 1.08 * limit)
    axes.set_ylabel(r"$\ln(P_1 / P_0)$")
    axes.set_xlabel(bins.what)
    tidy(axes)


def _points(axes: Axes, x: np.ndarray, y: np.ndarray, limit: float, label: str, **style: Any) -> None:
    """Points inside the frame as they are; those beyond it as open triangles at its edge."""
    if not np.any(~np.isnan(y)):
        return
    axes.plot(x, np.where(np.abs(y) <= limit, y, math.nan), label=label, **style)
    name: str | None = f"{label.split(',', maxsplit=1)[0]}, beyond the frame"
    for sign, marker in ((1.0, "^"), (-1.0, "v")):
        beyond = sign * y > limit
        if np.any(beyond):
            edge = np.full(beyond.sum(), sign * limit)
            axes.plot(x[beyond], edge, marker, color=style["color"], mfc="none", label=name)
            name = None


def _up_and_down(axes: Axes, bins: Bins) -> None:
    """Outcomes of one sequence: upwards with x = 1, downwards with x = 0; strong colours are outside the tolerance."""
    marked = np.array([each.marked for each in bins.bins])
    for k, (name, colours, sign) in enumerate((("one", (ORANGE, RED), 1.0), ("zero", (BLUE, DARK_BLUE), -1.0))):
        axes.stairs(*_stairs(bins, sign * _column(bins, name)), fill=True, color=colours[0], label=f"$x={1 - k}$")
        label = rf"$x={1 - k}$, outside $e^{{\pm\varepsilon}}$: {marked[:, k].sum():.3g}"
        axes.stairs(*_stairs(bins, sign * marked[:, k]), fill=True, color=colours[1], label=label)
    axes.axhline(0.0, color="black", lw=0.8)
    axes.set_xlabel(bins.what)
    axes.set_ylabel("probability over L, per bin\n(down: $x=0$)")
    axes.yaxis.set_major_formatter(lambda y, _: f"{abs(y):g}")
    axes.legend(fontsize=8.5, frameon=False)
    tidy(axes)


def profile_figure(audit: PairAudit) -> Figure:
    """Draw the delta that is needed for each epsilon, in both directions, with the claim and its double.

    Parameters
    ----------
    audit : PairAudit
        Of any observer.

    Returns
    -------
    Figure
        On a logarithmic scale; what numerical error could make is not drawn.
    """
    figure = new_figure(7.0, 4.6)
    axes, profile, epsilon = figure.subplots(), audit.leakage.profile, audit.claim.epsilon
    largest = np.maximum(profile.delta_1_over_0, profile.delta_0_over_1)
    seen, drawn = profile.epsilon[largest > ROUNDING], largest[largest > ROUNDING]
    end = max(4.0 * epsilon, min(float(seen.max(initial=0.0)) * 1.1, 30.0 * epsilon))
    least = max(float(drawn.min()), 1e-5 * float(drawn.max())) if drawn.size else ROUNDING
    bottom = 10.0 ** math.floor(math.log10(max(least, ROUNDING)) - 0.5) if drawn.size else ROUNDING
    for delta, colour, style, name in (
        (profile.delta_1_over_0, RED, "-", r"$P_1 \leq e^{\varepsilon'} P_0 + \delta$"),
        (profile.delta_0_over_1, DARK_BLUE, "--", r"$P_0 \leq e^{\varepsilon'} P_1 + \delta$"),
    ):
        label = f"needed for {name}" + ("" if delta[0] > ROUNDING else ": below 1e-9" if delta[0] > 0.0 else ": none")
        axes.plot(profile.epsilon, np.maximum(delta, 0.1 * ROUNDING), style, color=colour, lw=1.6, label=label)
    for x, marker, name in (
        (epsilon, "o", f"claimed: delta {audit.claim.delta:g}"),
        (2 * epsilon, "s", "the paper's theorem: delta 0"),
    ):
        value = profile.at(x)
        axes.plot([x, x], [bottom, max(value, bottom)], ":", color=GREY, lw=1.0)
        needs = f"{value:.3g}" if value > ROUNDING else "below 1e-9"
        label = rf"$\varepsilon'$={x:g} ({name}): needs {needs}"
        axes.plot([x], [max(value, bottom)], marker, color="black", ms=5, mfc="none", label=label, clip_on=False)
    axes.set(yscale="log", ylim=(bottom, 2.0), xlim=(0.0, end))
    axes.set_xlabel(r"$\varepsilon'$")
    axes.set_ylabel(r"$\delta$ that is needed")
    axes.legend(fontsize=8, frameon=False, loc="upper right")
    tidy(axes)
    about = f"privacy profile, {audit.observer} observer: {audit.words.curve}"
    figure.suptitle(f"{about}\n{title_of(audit)}", fontsize=9.5)
    return figure


# --- sweeps ---------------------------------------------------------------------------------------------------------


def sweep_figure(rows: Sequence[dict[str, Any]], over: Sequence[str]) -> Figure:
    """Draw mean samples, or what an audit found, over the first swept parameter; a line for each value of the others.

    Parameters
    ----------
    rows : sequence of dict
        The points.
    over : sequence of str
        The swept parameters, the one for the axis first.

    Returns
    -------
    Figure
        Bars by observer where several observers were swept.
    """
    if len({row.get("observer") for row in rows}) > 1:
        return _observers_figure(rows)
    figure = new_figure(7.0, 4.2)
    audited = rows[0]["task"] == "audit"
    name, *others = over
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
    observers = list(dict.fromkeys(row["observer"] for row in rows))
    smallest = 1e-6
    for k, observer in enumerate(observers):
        mine = [row for row in rows if row["observer"] == observer]
        place = [mechanisms.index(row["mechanism"]) + 0.26 * (k - 0.5 * (len(observers) - 1)) for row in mine]
        height = [max(row["delta_at_epsilon"], smallest) for row in mine]
        bars = axes.bar(place, height, 0.24, color=(BLUE, ORANGE, RED)[k % 3], label=observer)
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
