"""DP-SPRT audited by an observer who knows all other samples: ``python -m experiments.dpsprt``.

As published, with noise a tenth as large, and with the two slips of its history (independent noise on the two
thresholds; scales 2/epsilon and 1/epsilon instead of 4 and 2). For each, sequences are searched by their exact laws:
the sum climbs to a share of its way to the upper threshold, stays there for a while, and goes on up or all the way
down; the sample under test is an early or a later one. The best of them is then audited from runs alone. Beside them
stand Algorithm 2, two-sided noise and the plain test, at the same error and audited in the same way.

What to expect (the slips are told in the changelog of version 1.2.0 of the package): halved scales double epsilon.
Independent noise does no harm, on the contrary. If a changed sample moves later sums towards the threshold where the
run stops, a shift of that threshold's noise by at most 1 (a factor of e^{epsilon/2}) gives the same stop, and the other
threshold is farther away than it was. If it moves them away, the other threshold's noise takes a shift of at most 1 and
the last Y_n one of 1 (e^{epsilon/4}): together 3/4 epsilon. A shared noise has to be followed by the last Y_n with a
shift of 2, hence epsilon.

Writes ``experiments/results/dpsprt.csv`` and ``figures/dpsprt.png`` and ``.pdf``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpsmc_audit.exact.averages import exact_mean, worst_errors
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.mechanisms import Exponential, Laplace, Mechanism, NoNoise, Truncated
from dpsmc_audit.numerics.sums import dot
from dpsmc_audit.numerics.ties import best_of, ranked
from dpsmc_audit.observers.black_box import BlackBoxAudit, Sampler, audit_mechanism
from dpsmc_audit.observers.informed.law import given_sequence, lowest_record
from dpsmc_audit.observers.informed.sequences import oscillating_sequence
from dpsmc_audit.report.figures import save
from dpsmc_audit.report.style import DARK_BLUE, GREY, RED, new_figure, tidy
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.records import records_of
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.zoo.dpsprt import DpSprt

TOP = Path(__file__).parent.parent
RESULTS = TOP / "experiments" / "results" / "dpsprt.csv"
MU0, MU1, LEVEL, EPSILON = 0.3, 0.7, 0.05, 1.0
RUNS, CONFIDENCE, SEED, FLOOR = 1_000_000, 0.99, 1, 0.01
LONGEST, SAMPLED = 2_000, 100_000
PAPER = {"p": 0.73, "delta": 0.01, "alpha": 0.01, "epsilon": 0.01, "p_phi": 0.84}

FloatArray = NDArray[np.float64]
Bits = NDArray[np.int64]
PUBLISHED = DpSprt(MU0, MU1, LEVEL, LEVEL, EPSILON)
VARIANTS = {
    "as published": PUBLISHED,
    "a tenth of the noise": PUBLISHED.with_noise(0.1),
    "two independent threshold noises": replace(PUBLISHED, shared=False),
    "noise scales 2/eps and 1/eps": PUBLISHED.with_noise(0.5),
}


# --- sequences ------------------------------------------------------------------------------------------------------


def climbing(test: DpSprt, share: float, stay: int, last: int, longest: int = LONGEST) -> Bits:
    """Ones up to a share of the way from the middle to the upper threshold, `stay` samples there, then only `last`."""
    low, high = test.thresholds(longest)
    middle, room = 0.5 * (low + high), 0.5 * (high - low)
    bits, total, arrived = np.full(longest, last, np.int64), 0, -1
    for n in range(longest):
        if arrived < 0 and n > 0 and total - middle[n - 1] >= share * room[n - 1]:
            arrived = n
        if 0 <= arrived <= n - stay:
            break
        bits[n] = 1 if arrived < 0 else int(total < middle[n] + share * room[n])
        total += int(bits[n])
    return bits


def candidates(test: DpSprt) -> Iterator[tuple[str, Bits, int]]:
    """Sequences and entries, with a name."""
    coarse = not test.shared
    shares = (0.8, 0.9, 1.0) if coarse else (0.5, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)
    for share in shares:
        for stay in (0, 20, 400) if coarse else (0, 10, 20, 50, 100, 200, 400, 800):
            for last in (0,) if coarse else (0, 1):
                for entry in (1,) if coarse else (1, 60):
                    name = f"to {share:g}, stay {stay}, then {last}s; entry {entry}"
                    yield name, climbing(test, share, stay, last), entry


def best_ratio(one: FloatArray, zero: FloatArray, floor: float) -> float:
    """``ln`` ratio, either way, of the outcomes with the largest ratios that have a probability of `floor` together.

    Where single outcomes are as likely as the floor, other sets may have larger ratios: this is a lower bound. Of
    outcomes with the same ratio but for rounding the most probable come first.
    """
    found = 0.0
    for p, q in ((one, zero), (zero, one)):
        with np.errstate(divide="ignore", invalid="ignore"):
            order = ranked(np.where(p > 1e-15, np.log(p) - np.log(q), -np.inf), p, close=1e-6)
        likely, other = np.cumsum(p[order]), np.cumsum(q[order])
        k = min(int(np.searchsorted(likely, floor)), order.size - 1)
        found = max(found, math.log(likely[k] / other[k]) if other[k] > 0.0 else math.inf)
    return found


@dataclass(frozen=True)
class Found:
    """The best sequence for a variant, with its exact ratios."""

    name: str
    bits: Bits
    entry: int
    ratio: float
    rare_ratio: float


def search(test: DpSprt) -> Found:
    """The candidate with the largest exact ratio on an event of probability FLOOR; the first of those that tie."""
    found: list[Found] = []
    for name, bits, entry in candidates(test):
        given = test.on(bits, entry)
        one, zero = given.law(1).ravel(), given.law(0).ravel()
        ratios = (best_ratio(one, zero, FLOOR), best_ratio(one, zero, 1e-4))
        found.append(Found(name, bits, entry, *ratios))
    return found[best_of([each.ratio for each in found])]


# --- barrier mechanisms on a given sequence -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BarrierOnSequence:
    """Algorithm 1 or 2 on given samples: L is drawn, and the first record of the walk that reaches it ends the run."""

    test: Sprt
    mechanism: Mechanism
    bits: Bits
    entry: int

    def __call__(self, x: int, runs: int, rng: np.random.Generator) -> tuple[Bits, Bits]:
        bits = self.bits.copy()
        bits[self.entry - 1] = x
        records = records_of(self.test, bits, lowest_record(self.test, self.mechanism))
        excess = self.mechanism.quantile(rng.random(runs))
        place = np.searchsorted(records.excess, excess)
        outlasts, place = place == records.times.size, np.minimum(place, records.times.size - 1)
        tau = np.where(outlasts, bits.size, records.times[place])
        decision = np.where(outlasts, 1, records.decision[place]).astype(np.int64)
        coin = excess <= self.test.no_room
        tossed = rng.integers(0, 2, runs)
        return np.where(coin, 1, tau), np.where(coin, tossed, decision)


def equal_error(level: float) -> dict[str, tuple[Sprt, Mechanism]]:
    """The barrier mechanisms with the larger of their two exact errors at most `level`.

    Two-sided noise is moved up until it keeps the level; for the others alpha is raised as far as the level allows. On
    this coarse lattice of steps not all of them come close to it.
    """
    p, delta = 0.5 * (MU0 + MU1), 0.5 * (MU1 - MU0)

    def made(kind: str, alpha: float) -> tuple[Sprt, Mechanism]:
        test = Sprt(p, delta, alpha)
        return test, NoNoise() if kind == "none" else Exponential.private(test, EPSILON)

    def error(kind: str, alpha: float) -> float:
        worst = worst_errors(*made(kind, alpha))
        return max(worst.fp.value + worst.fp.error, worst.fn.value + worst.fn.error)

    chosen: dict[str, tuple[Sprt, Mechanism]] = {}
    for kind in ("none", "exponential"):
        alphas = [alpha for alpha in np.linspace(0.01, 0.49, 97).tolist() if error(kind, alpha) <= level]
        chosen[kind] = made(kind, max(alphas))
    base = Sprt(p, delta, level)
    chosen["truncated"] = (base, private(Truncated, base, EPSILON))
    chosen["laplace"] = (base, private(Laplace, base, EPSILON))
    return chosen


# --- rows -----------------------------------------------------------------------------------------------------------


def tuned(level: float) -> DpSprt:
    """DP-SPRT with the correction made smaller as far as the level allows: its noise, and so its privacy, stay."""
    low, high = 0.05, 1.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if error_of(replace(PUBLISHED, correction=middle)) <= level else (middle, high)
    return replace(PUBLISHED, correction=high)


def error_of(test: DpSprt) -> float:
    """The larger exact error: H_0 at mu1 or H_1 at mu0 (equal here, by symmetry)."""
    return max(float(test.law(test.mu1)[0].sum()), float(test.law(test.mu0)[1].sum()))


def mean_of(law: FloatArray) -> float:
    return float(dot(law.sum(axis=0), np.arange(1.0, law.shape[1] + 1.0)))


def audited(sampler: Sampler, runs: int = RUNS) -> BlackBoxAudit:
    return audit_mechanism(sampler, EPSILON, confidence=CONFIDENCE, runs=runs, sampling=Sampling(seed=SEED))


def row(name: str, sequence: str, exact: float, rare: float, found: BlackBoxAudit, **numbers: Any) -> dict[str, Any]:
    could, witness = found.finding.could, found.witness
    return {
        "mechanism": name,
        "claimed": EPSILON,
        "sequence": sequence,
        "exact_ratio": exact,
        "exact_ratio_rare": rare,
        "verdict": found.verdict,
        "epsilon_lower": found.epsilon_lower,
        "delta_lower": found.delta_lower,
        "detectable_epsilon": None if could is None else could.epsilon,
        "witness": None if witness is None else witness.name,
        "runs": found.runs,
        **numbers,
    }


def variant_row(name: str, test: DpSprt, runs: int = RUNS) -> dict[str, Any]:
    """One variant of DP-SPRT: searched, audited, and its price on fresh samples."""
    best = search(test)
    found = audited(test.on(best.bits, best.entry), runs)
    if test.shared:
        numbers = {"samples": mean_of(test.law(MU1)), "error": error_of(test)}
    else:
        tau, decision = test.runs(MU1, SAMPLED, np.random.default_rng(SEED))
        numbers = {"samples": float(tau.mean()), "error": float(np.mean(decision == 0))}
        numbers["samples_se"] = float(tau.std(ddof=1) / math.sqrt(SAMPLED))
    return row(f"DP-SPRT, {name}", best.name, best.ratio, best.rare_ratio, found, **numbers)


def barrier_row(name: str, test: Sprt, mechanism: Mechanism, runs: int = RUNS) -> dict[str, Any]:
    """A barrier mechanism on the sequence made to be the worst for it."""
    bits, said = np.ones(50, np.int64), "ones; entry 1"  # enough against the plain test
    if not isinstance(mechanism, NoNoise):
        bits, said = oscillating_sequence(test, mechanism).astype(np.int64), "oscillating; entry 1"
    law = given_sequence(test, mechanism, bits, [1])
    ratios = [best_ratio(law.p1, law.p0, floor) for floor in (FLOOR, 1e-4)]
    found = audited(BarrierOnSequence(test, mechanism, bits, 1), runs)
    worst = worst_errors(test, mechanism)
    numbers = {
        "samples": exact_mean(Setting(test, mechanism, MU1)).value,
        "error": max(worst.fp.value, worst.fn.value),
    }
    return row(name, said, ratios[0], ratios[1], found, **numbers)


def at_the_papers_parameters(runs: int = 2_000) -> dict[str, Any]:
    """What DP-SPRT costs where the paper's Table 1 begins; sampled, with its standard error."""
    p, delta, alpha = PAPER["p"], PAPER["delta"], PAPER["alpha"]
    test = DpSprt(p - delta, p + delta, alpha, alpha, PAPER["epsilon"])
    tau, _ = test.runs(PAPER["p_phi"], runs, np.random.default_rng(SEED))
    return {
        "mechanism": "DP-SPRT, as published, at Table 1's first row",
        "claimed": PAPER["epsilon"],
        "samples": float(tau.mean()),
        "samples_se": float(tau.std(ddof=1) / math.sqrt(runs)),
        "runs": runs,
    }


def rows() -> pd.DataFrame:
    every = [variant_row(name, test) for name, test in VARIANTS.items()]
    every.append(variant_row("correction tuned to the error", tuned(LEVEL)))
    names = {"none": "Algorithm 1", "exponential": "Algorithm 2", "truncated": "truncated", "laplace": "laplace"}
    every += [barrier_row(names[kind], *made) for kind, made in equal_error(LEVEL).items()]
    return pd.DataFrame([*every, at_the_papers_parameters()])


# --- figure ---------------------------------------------------------------------------------------------------------


def figure(table: pd.DataFrame) -> Figure:
    """Left: what the best sequence found reveals, exactly and from runs; right: what the mechanism costs."""
    shown = table[table.verdict.notna()].reset_index(drop=True)
    fig = new_figure(10.0, 5.2)
    left, right = fig.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    place = np.arange(len(shown))[::-1]
    top = 12.0
    exact, bound = (np.minimum(shown[name].to_numpy(float), top) for name in ("exact_ratio", "epsilon_lower"))
    finite = np.isfinite(shown.exact_ratio.to_numpy(float))
    left.axvline(EPSILON, color=GREY, lw=1.2, ls="--", label=f"claimed: {EPSILON:g}")
    left.barh(place, bound, 0.5, color="0.8", label=f"at least, from $10^6$ runs a side ({100 * CONFIDENCE:g} %)")
    label = f"exactly, best event of probability {FLOOR:g}"
    left.plot(exact[finite], place[finite], "D", color=RED, ms=6, ls="", label=label)
    left.plot(exact[~finite] + 0.3, place[~finite], ">", color=RED, ms=7, ls="", label="exactly: infinite")
    for y, each in zip(place, shown.to_dict("records"), strict=True):
        end = max(min(each["exact_ratio"], top), each["epsilon_lower"], EPSILON)
        said = f"at least {each['epsilon_lower']:.2f}: {each['verdict']}"
        left.annotate(said, (end, y), (12, -3), textcoords="offset points", fontsize=8)
        sampled = "" if math.isnan(each["samples_se"]) else ", sampled"
        price = f"{each['samples']:.0f} (error {each['error']:.2g}{sampled})"
        right.annotate(price, (each["samples"], y), (4, -3), textcoords="offset points", fontsize=8)
    left.set_yticks(place, shown.mechanism, fontsize=8.5)
    left.set_xlim(0.0, top * 1.5)
    left.set_xlabel(r"$\varepsilon$, all other samples known")
    fig.legend(*left.get_legend_handles_labels(), fontsize=8.5, frameon=False, loc="outside lower center", ncols=4)
    right.barh(place, shown.samples, 0.5, color=DARK_BLUE)
    right.set_xlim(0.0, 1.75 * float(shown.samples.max()))
    right.set_xlabel(rf"mean samples at $p_\varphi$={MU1:g}")
    for axes in (left, right):
        tidy(axes)
    fig.suptitle(
        f"What is told of the first sample to who knows all others, and the price: mean {MU0:g} against {MU1:g}, "
        rf"error level {LEVEL:g}, claimed $\varepsilon$={EPSILON:g}",
        fontsize=9.5,
    )
    return fig


def main() -> None:
    table = rows()
    table.to_csv(RESULTS, index=False)
    save(figure(table), TOP / "figures" / "dpsprt")
    columns = ["mechanism", "exact_ratio", "verdict", "epsilon_lower", "detectable_epsilon", "samples", "error"]
    print(table[columns].to_string(index=False))


if __name__ == "__main__":
    main()
