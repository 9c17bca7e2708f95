"""``benchmarks/README.md`` and its figures, made from ``results.json`` alone, so that they cannot disagree."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks import auditor_page
from benchmarks.results import Results, met

__all__ = ["MARKS", "sentence", "text", "write"]

HERE = Path(__file__).parent
MARKS = re.compile(r"(?<=<!-- bench -->\n).*?(?=<!-- /bench -->)", flags=re.S)
"""Where the project's README.md has the sentence."""

SENTENCE = (
    "On one core the sample-by-sample kernel draws {kernel_vs_c_scalar} times the samples per second of a "
    "scalar loop in C; binomial jumps make {jumps_vs_c_scalar} times as many, {jumps_vs_c_jumps} of what the "
    "same jumps make in C. One pass per pair answers 10^4 draws of L {records_vs_brute} times faster than "
    "running the test for each, and {records_vs_popcount} times faster than runs that skip words of 64 samples "
    "by counting. Computing the exact law is {exact_law_vs_monte_carlo} times faster than sampling its 1 % tail "
    "to a relative error of 0.1 %."
)

HEAD = """# How fast, against what, and how it grows

Written by `python -m benchmarks` (`make bench`) from [results.json](results.json); do not edit. Both sides of a ratio
take turns in one run, and the best of several rounds counts; one core is compared by thread time. So the ratios hold
on a loaded machine, the seconds and rates beside them do not. `python -m benchmarks kernels growth` measures these
parts anew and keeps the others. Above 1 the suite is faster, unless a line says otherwise.

Machine: {machine}.
"""

ASKED = """
## What is asked of the suite

{table}
"""

KERNELS = """
## Kernels

Samples of Algorithm 2 per second on one core (alpha = delta = epsilon = 0.01, p_phi = 0.84, about 1323 samples a
run). Jumps never make single samples: theirs is the number of samples that the runs took.

{table}

![Samples per second](kernels.png)

Two threads against one, by the clock on the wall ("control": the bare kernel in two threads that share nothing, which
is what the machine gave at that moment):

{threads}
"""

EXACT = """
## Exact against Monte Carlo

Thread time of the exact value, and of as many runs as bring one standard error down to 1e-3 of it (the mean, a tail
of 1 %, delta at the claimed epsilon; above 10^6 runs extrapolated from the rate).

{table}
"""

GROWTH = """
## Growth

{table}

![Growth of time](growth.png)

Peak memory of a process of its own, in MB:

{memory}
"""

REST = """
## All ratios

{table}
"""


def _number(value: float) -> str:
    """Three digits, in plain figures up to a million."""
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        digits = f"{value:.3g}"
        return f"{float(digits):,.0f}".replace(",", " ") if abs(value) >= 1000 else digits
    return f"{value:.2e}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    marks = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (heads, marks, *rows))


def _asked(results: Results) -> str:
    rows = []
    for name, entry in results.items():
        kept = met(entry)
        if kept is not None:
            asked = f"at least {entry['at_least']:g}" if "at_least" in entry else f"at most {entry['at_most']:g}"
            rows.append((f"`{name}`", _number(entry["ratio"]), asked, "yes" if kept else "**no**"))
    return _table(("ratio", "measured", "asked", "kept"), rows)


def rates(results: Results) -> dict[str, float]:
    """Samples per second by contender, from the rounds in which all took turns."""
    found: dict[str, float] = {}
    for name, entry in results.items():
        if name.endswith("_vs_c_scalar"):
            found |= entry.get("details", {}).get("samples_per_second", {})
    jumps = results.get("jumps_vs_c_jumps")
    if jumps is not None:
        found["C, jumps"] = found["suite, jumps"] / jumps["ratio"]
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _kernels(results: Results) -> str:
    found = rates(results)
    rows = [(name, f"{rate / 1e6:.3g}", _number(rate / found["C, scalar"])) for name, rate in found.items()]
    return _table(("kernel", "10^6 samples per second", "against scalar C"), rows)


def _threads(results: Results) -> str:
    rows = [
        (f"`{name}`", _number(entry["ratio"]), *(_number(entry["details"][k]) for k in ("control", "seconds_one")))
        for name, entry in results.items()
        if name.startswith("threads_2_vs_1")
    ]
    return _table(("ratio", "two against one", "control", "seconds on one"), rows)


def _exact(results: Results) -> str:
    keys = ("exact_seconds", "sampled_seconds", "runs")
    rows = [
        (name.split("_")[1], *(_number(entry["details"][key]) for key in keys), _number(entry["ratio"]))
        for name, entry in results.items()
        if name.endswith("_vs_monte_carlo")
    ]
    return _table(("value", "exact, s", "Monte Carlo, s", "runs", "ratio"), rows)


def _growth(results: Results) -> str:
    rows = []
    for name, entry in results.items():
        if name.startswith("slope_"):
            points = entry["details"]["points"]
            span = f"{_number(points[0][0])} to {_number(points[-1][0])}"
            times = f"{1e3 * points[0][1]:.3g} to {1e3 * points[-1][1]:.3g}"
            rows.append((entry["method"].split(":")[0], span, times, f"{entry['ratio']:.2f}"))
    return _table(("what", "size", "ms", "slope, larger half"), rows)


def _memory(results: Results) -> str:
    rows = []
    for name, entry in results.items():
        if name.startswith("memory_"):
            sizes = "; ".join(f"{_number(size)}: {_number(peak)}" for size, peak in entry["details"]["points"])
            rows.append((entry["method"].split(":")[0], sizes, f"{entry['ratio']:.2f}"))
    return _table(("what", "size: MB", "largest to smallest"), rows)


def _rest(results: Results) -> str:
    rows = [(f"`{name}`", _number(entry["ratio"]), entry["method"]) for name, entry in results.items()]
    return _table(("name", "ratio", "method"), rows).replace("| ---: | ---: |", "| ---: | --- |")


def text(results: Results) -> str:
    """The page; parts that were not measured are left out."""
    machines = " / ".join(dict.fromkeys(entry["machine"] for entry in results.values()))
    page = HEAD.format(machine=machines) + ASKED.format(table=_asked(results))
    if "kernel_vs_c_scalar" in results:
        page += KERNELS.format(table=_kernels(results), threads=_threads(results))
    if "exact_mean_vs_monte_carlo" in results:
        page += EXACT.format(table=_exact(results))
    if "slope_runs" in results:
        page += GROWTH.format(table=_growth(results), memory=_memory(results))
    if "auditor_gaussian_001" in results:
        page += auditor_page.section(results, _table, _number)
    return page + REST.format(table=_rest(results))


def _draw_kernels(results: Results) -> None:
    from dpsmc_audit.report.figures import save
    from dpsmc_audit.report.style import BLUE, GREY, RED, new_figure, tidy

    found = rates(results)
    figure = new_figure(7.0, 3.2)
    axes = figure.subplots()
    colors = [RED if "suite" in name else (GREY if name.startswith("C") else BLUE) for name in found]
    bars = axes.barh(list(found), list(found.values()), color=colors)
    axes.bar_label(bars, [f"{rate / found['C, scalar']:.3g}" for rate in found.values()], padding=3, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("samples per second on one core (numbers: against scalar C)")
    tidy(axes)
    save(figure, HERE / "kernels", ("png",))


def _draw_growth(results: Results) -> None:
    from dpsmc_audit.report.figures import save
    from dpsmc_audit.report.style import new_figure, tidy

    figure = new_figure(7.5, 4.2)
    axes = figure.subplots()
    for marker, (name, entry) in zip(
        "os^vD<>Px", ((n, e) for n, e in results.items() if n.startswith("slope_")), strict=False
    ):
        sizes, times = zip(*entry["details"]["points"], strict=True)
        label = f"{name.removeprefix('slope_').replace('_', ' ')}: {entry['ratio']:.2f}"
        axes.loglog(sizes, times, marker=marker, ms=4, lw=1.1, label=label)
    axes.set_xlabel("size")
    axes.set_ylabel("thread time, s")
    axes.legend(title="slope, larger half", fontsize=8, title_fontsize=8, frameon=False, loc="upper left", ncols=2)
    tidy(axes)
    save(figure, HERE / "growth", ("png",))


def sentence(results: Results) -> str:
    """For the project's README.md, to two digits."""

    def said(value: float) -> str:
        return f"{float(f'{value:.2g}'):g}"

    filled = SENTENCE.format(**{name: said(entry["ratio"]) for name, entry in results.items()})
    return textwrap.fill(filled, 125, break_long_words=False, break_on_hyphens=False) + "\n"


def write(results: Results) -> None:
    """README.md, the figures beside it, and the sentence in the project's README.md if all it says was measured."""
    (HERE / "README.md").write_text(text(results), encoding="utf-8")
    if set(re.findall(r"{(\w+)}", SENTENCE)) <= set(results):
        top = HERE.parent / "README.md"
        said = sentence(results)
        top.write_text(MARKS.sub(lambda _: said, top.read_text(encoding="utf-8")), encoding="utf-8")
    if "kernel_vs_c_scalar" in results:
        _draw_kernels(results)
    if "slope_runs" in results:
        _draw_growth(results)
    if "auditor_gaussian_001" in results:
        auditor_page.draw(results, HERE)
