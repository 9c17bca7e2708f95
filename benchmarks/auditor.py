"""The auditor against peers: runs until a false claim is refuted, against an oracle; cost of 10^6 runs a side.

Every audit looks after each run and stops when the claim is refuted; runs of each member are half of the labelled
ones. An audit that refutes nothing counts with all its runs. `BASE` sets the seeds apart from those of any tuning.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.growth import peak_of
from benchmarks.measure import Ratio, Ratios
from benchmarks.pairs import Pair, algorithm2, oracle, six_pairs, small_pairs, unseen_pairs
from dpsmc_audit import audit_mechanism
from dpsmc_audit.sampling.plan import Sampling

__all__ = ["PUBLISHED", "SAMPLERS", "cost_ratios", "pair_ratios", "peer_ratios", "release_ratios", "unseen_ratios"]

BASE = 10**6
SMALL, SIX, UNSEEN, RELEASE, PEER = 1000, 200, 200, 400, 400
LONG = {"mu_08": 200, "pure_08": 200, "mu_05": 500, "pure_05": 500}
"""Repetitions; fewer of long audits."""

PUBLISHED: dict[str, dict[str, float]] = {
    "gaussian_001": {"APT": 59, "MMD": 264, "anytime": 92},
    "gaussian_01": {"APT": 68, "MMD": 562, "anytime": 111},
    "laplace_001": {"APT": 86, "MMD": 331, "anytime": 142},
    "laplace_01": {"APT": 114, "MMD": 920, "anytime": 186},
    "mu_05": {"APT": 198},
    "mu_08": {"APT": 1466},
    "pure_05": {"APT": 233},
    "pure_08": {"APT": 1720},
    "geometric_1": {"split": 12264, "union": 11734, "anytime": 4902, "jax_privacy": 9499},
    "geometric_03": {"split": 10081, "union": 11506, "anytime": 4606, "jax_privacy": 7403},
    "algorithm2_005": {"split": 16138, "union": 13933, "anytime": 5350, "jax_privacy": 7069},
    "response": {"split": 9362, "union": 8597, "anytime": 3245, "jax_privacy": 6797},
    "laplace_125": {"split": 4583, "union": 4322, "anytime": 1503, "jax_privacy": 2931},
    "gaussian_pure": {"split": 1636, "union": 1521, "anytime": 566, "jax_privacy": 1143},
    "release": {"split": 131000, "union": 92700, "anytime": 47700},
}
"""Runs of each member that others need. APT and MMD are published; the rest was measured before this auditor."""

SAMPLERS: dict[str, Callable[[int, int, np.random.Generator], Any]] = {
    "numbers": lambda x, runs, rng: x + rng.laplace(size=runs),
    "tau_and_o": lambda x, runs, rng: (20 + x + rng.geometric(0.1, runs), (rng.random(runs) < 0.6).astype(np.int64)),
    "vectors": lambda x, runs, rng: 0.5 * x + rng.normal(size=(runs, 3)),
    "categories": lambda x, runs, rng: np.array(["red", "green", "blue", "cyan", "grey"])[rng.integers(0, 5 - x, runs)],
}
MOST = 10**6

_MEMORY = """
from benchmarks.auditor import judged
judged("numbers", {size})
"""


def _audited(pair: Pair, repetitions: int) -> tuple[NDArray[np.float64], float]:
    """Audit so many times. Return the runs of each audit, and the share that refuted the claim."""
    runs, found = np.zeros(repetitions), 0
    for k in range(repetitions):
        plan = Sampling(seed=BASE + k)
        audit = audit_mechanism(pair.sampler, pair.claim, runs=pair.most, confidence=1.0 - pair.level, sampling=plan)
        runs[k] = audit.runs
        found += audit.verdict == "violated"
    return runs, found / repetitions


def _studied(name: str, pair: Pair, repetitions: int, goal_ratio: float | None = None) -> Ratio:
    """Audit a pair many times, and compare with the oracle."""
    started, best = time.process_time(), oracle(pair)
    runs, found = _audited(pair, repetitions)
    middle = name == "release"
    measured = float(np.median(runs) if middle else runs.mean())
    goal = pair.goal if goal_ratio is None else goal_ratio * best
    details: dict[str, Any] = {
        "pair": pair.name, "level": pair.level, "mean": float(f"{runs.mean():.4g}"), "median": float(np.median(runs)),
        "error": float(f"{runs.std() / math.sqrt(repetitions):.2g}"), "quantile_90": float(np.quantile(runs, 0.9)),
        "found": found, "oracle": float(f"{best:.4g}"), "repetitions": repetitions,
    }  # fmt: skip
    details |= {} if goal is None else {"goal": float(f"{goal:.4g}")}
    seconds = time.process_time() - started
    print(f"{name:<24} {json.dumps(details)} {seconds:.0f} s", flush=True)
    method = (
        f"{pair.name}: {'median' if middle else 'mean'} runs until refuted at {100 * (1 - pair.level):g} %, oracle's"
    )
    return Ratio(measured / best, method, at_most=None if goal is None else goal / best, details=details)


def pair_ratios() -> Ratios:
    """Runs to refute against the oracle's: the pairs that others measured, and the six pairs of the issue."""
    found = {f"auditor_{name}": _studied(name, pair, LONG.get(name, SMALL)) for name, pair in small_pairs().items()}
    six = {f"auditor_{name}": _studied(name, pair, SIX, 2.1) for name, pair in six_pairs().items()}
    average = float(np.mean([ratio.value for ratio in six.values()]))
    method = "runs to refute against the oracle's, average over the six pairs at 99 %"
    return found | six | {"auditor_average_of_six": Ratio(average, method, at_most=1.7)}


def release_ratios() -> Ratios:
    """One released result of Algorithm 2 with the claim of 2 epsilon."""
    pair = algorithm2(0.01, 0.01, 0.01, 0.02, 34_000, 200_000)
    return {"auditor_release": _studied("release", pair, RELEASE)}


def unseen_ratios() -> Ratios:
    """Pairs that were not used to choose the prior weights and the shares of the gamblers."""
    return {f"auditor_unseen_{name}": _studied(name, pair, UNSEEN) for name, pair in unseen_pairs().items()}


def peer_ratios() -> Ratios:
    """Run jax_privacy side by side, if it is installed: its bound over all thresholds, with Bonferroni's correction."""
    if find_spec("jax_privacy") is None:
        print("jax_privacy is not installed: it is not run side by side")
        return {}
    peer, found = import_module("jax_privacy.auditing").CanaryScoreAuditor, {}
    for name, pair in six_pairs().items():
        runs = int(PUBLISHED[name]["jax_privacy"])
        sizes = {"found": runs, "found_with_twice_the_oracle": round(2.0 * oracle(pair))}
        details = {"runs": runs} | {key: _peer_finds(peer, pair, size) for key, size in sizes.items()}
        print(f"{name:<24} jax_privacy {details}", flush=True)
        method = f"{pair.name}: share of {PEER} audits of {runs} runs of each member in which jax_privacy refutes, 99 %"
        found[f"auditor_peer_{name}"] = Ratio(details["found"], method, details=details)
    return found


def _peer_finds(peer: Any, pair: Pair, runs: int) -> float:
    """Count refutations. The evidence about Algorithm 2 is in small running times, so they are the large scores."""
    found = 0
    for seed in range(PEER):
        rng = np.random.default_rng([BASE, seed])
        drawn = [pair.sampler(x, runs, rng) for x in (1, 0)]
        one, zero = (-1.0 * x[0] if isinstance(x, tuple) else 1.0 * x for x in drawn)
        found += peer(one, zero).epsilon_clopper_pearson(pair.level) > pair.claim.main.epsilon
    return float(found / PEER)


def judged(kind: str, most: int) -> tuple[float, float]:
    """Audit so many runs of each member without an early end. Return the seconds of the sampler, and the others."""
    inside = 0.0

    def timed(x: int, runs: int, rng: np.random.Generator) -> Any:
        nonlocal inside
        started = time.thread_time()
        try:
            return SAMPLERS[kind](x, runs, rng)
        finally:
            inside += time.thread_time() - started

    started = time.thread_time()
    audit_mechanism(timed, 1.0, runs=most, early=False)
    return inside, time.thread_time() - started - inside


def _one_sided(x: int, runs: int, rng: np.random.Generator) -> Any:
    return np.floor(10.0 * (x + rng.exponential(size=runs)))


def cost_ratios() -> Ratios:
    """Seconds to judge 10^6 runs a side beyond the sampler's own time, peak memory, and the bound without a limit."""
    found = {}
    for kind in SAMPLERS:
        judged(kind, 20_000)
        inside, beyond = min((judged(kind, MOST) for _ in range(2)), key=lambda pair: pair[1])
        method = f"seconds to judge 10^6 runs of each member, {kind.replace('_', ' ')}, one core, best of 2"
        details = {"sampler_seconds": float(f"{inside:.3g}")}
        found[f"auditor_seconds_{kind}"] = Ratio(beyond, method, at_most=3.0, details=details)
        print(f"{kind:<24} {beyond:.2f} s beyond {inside:.2f} s of the sampler", flush=True)
    if Path("/proc/self/status").exists():
        points = [[float(size), peak_of(_MEMORY, size)] for size in (10**5, 10**6, 10**7)]
        method = (
            "audit of a sampler, runs of each member: peak resident memory of a process of its own, the last two sizes"
        )
        peaks: dict[str, Any] = {"points": points}
        ratio = points[-1][1] / points[1][1]  # up to 2^16 labelled runs are kept, and arrays grow with them
        found["memory_10_times_the_audited_runs"] = Ratio(ratio, method, at_most=1.05, details=peaks)
        print(f"memory {points}", flush=True)
    bound = audit_mechanism(_one_sided, 1.0, runs=MOST, early=False).epsilon_lower
    method = (
        "floor(10 (x + Exp(1))), for which no epsilon is enough: lower bound on epsilon from 10^6 runs of each member"
    )
    return found | {"auditor_bound_without_limit": Ratio(float(bound), f"{method}, 99 %", at_least=10.5)}
