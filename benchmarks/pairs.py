"""Pairs of laws with claims that do not hold, and what an oracle needs to refute each claim.

A pair has a sampler and the two laws on a grid of outcomes. The oracle knows both laws and bets with the true
probability of the label, on the point of the claim that serves it best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, softmax

from dpsmc_audit import Dp, Exponential, Gdp, Setting, Sprt, marginal_law
from dpsmc_audit.observers.black_box import Sampler
from dpsmc_audit.setting import Adjacent

__all__ = ["Pair", "oracle", "six_pairs", "small_pairs", "unseen_pairs"]

FloatArray = NDArray[np.float64]
Law = Callable[[FloatArray], FloatArray]

POINTS = 400_001
CAPS = np.append(np.linspace(0.0, 5.0, 61), 20.0)
"""How far beyond the claim the oracle may trust itself. With a delta, trust has a price."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two laws and a claim about them.

    Parameters
    ----------
    name : str
        In words.
    sampler : callable
        ``sampler(x, runs, rng)``.
    one, zero : array
        The probability of each outcome, or of each cell of a fine grid, with x = 1 and with x = 0.
    claim : Dp or Gdp
        It does not hold.
    level : float
        Of the test.
    goal : float, optional
        The runs of either member that issue 18 asks for.
    most : int
        The most runs of either member.
    """

    name: str
    sampler: Sampler
    one: FloatArray
    zero: FloatArray
    claim: Dp | Gdp
    level: float
    goal: float | None = None
    most: int = 10_000


def _chance_at(log_odds: FloatArray | float) -> FloatArray:
    return np.asarray(expit(log_odds), dtype=np.float64)


def _growth(pair: Pair, epsilon: float, delta: float) -> float:
    """Compute the best expected growth of the log capital per run of either member, against one point of the claim."""
    kept = pair.one + pair.zero > 0.0
    one, zero = pair.one[kept], pair.zero[kept]
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(one) - np.log(zero), -700.0, 700.0)
    best = 0.0
    for cap in CAPS if delta > 0.0 else CAPS[-1:]:
        size = np.minimum(np.abs(odds), epsilon + cap)
        right = np.where(size > epsilon, np.log1p(math.exp(-epsilon)) - np.log1p(np.exp(-size)), 0.0)
        wrong = np.where(size > epsilon, right - size + epsilon, 0.0)
        gain = np.where(odds > 0.0, one * right + zero * wrong, zero * right + one * wrong)
        price = math.log1p(
            0.5 * delta * math.expm1(math.log1p(math.exp(-epsilon)) - math.log1p(math.exp(-epsilon - cap)))
        )
        best = max(best, gain[odds > 0.0].sum() - 2.0 * price, gain[odds < 0.0].sum() - 2.0 * price)
        both = math.log1p(math.expm1(price) * 2.0)
        best = max(best, gain.sum() - 2.0 * both)
    return float(best)


def oracle(pair: Pair) -> float:
    """Compute how many runs of either member one needs who knows both laws: log(1/level) over the growth per pair.

    Parameters
    ----------
    pair : Pair
        The pair.

    Returns
    -------
    float
        The runs.
    """
    return math.log(1.0 / pair.level) / max(_growth(pair, at.epsilon, at.delta) for at in pair.claim.points)


# --- laws -----------------------------------------------------------------------------------------------------------


def _cells(low: float, high: float, *laws: Law) -> list[FloatArray]:
    """Integrate densities over a fine grid."""
    x, step = np.linspace(low, high, POINTS, retstep=True)
    return [law(x) * step for law in laws]


def _from_table(*laws: FloatArray, names: list[Any] | None = None) -> Sampler:
    """Draw the number of an outcome, or its name, with the probabilities of the table."""
    ends = [np.cumsum(law) / law.sum() for law in reversed(laws)]
    given = None if names is None else np.array(names)

    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        place = np.minimum(np.searchsorted(ends[x], rng.random(runs), side="right"), ends[x].size - 1)
        return place if given is None else given[place]

    return sampler


def _not_private(kind: str, epsilon: float, goal: float) -> Pair:
    """Sum over n plus noise of scale 2 / (n epsilon): n, which depends on the data (0) or (0, 1), is not protected."""
    scale = 2.0 / epsilon * (math.sqrt(2.0 * math.log(1.25e5)) if kind == "Gaussian" else 1.0)
    noise, law = ("normal", stats.norm) if kind == "Gaussian" else ("laplace", stats.laplace)
    far = 40.0 * scale if kind == "Laplace" else 9.0 * scale

    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        return 0.5 * x + getattr(rng, noise)(size=runs) * scale / (1 + x)

    one, zero = _cells(-far, far, law(0.5, scale / 2.0).pdf, law(0.0, scale).pdf)
    claim = Dp(epsilon, 1e-5 if kind == "Gaussian" else 0.0)
    return Pair(f"NonDP {kind} noise, epsilon {epsilon:g}", sampler, one, zero, claim, 0.05, goal)


def _gaussian(claim: Dp | Gdp, level: float, goal: float | None) -> Pair:
    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        return x + rng.normal(size=runs)

    one, zero = _cells(-9.0, 10.0, stats.norm(1.0).pdf, stats.norm(0.0).pdf)
    said = f"mu {claim.mu:g}" if isinstance(claim, Gdp) else f"epsilon {claim.epsilon:g}"
    return Pair(f"Gaussian mu = 1, claim {said}", sampler, one, zero, claim, level, goal)


def _laplace(true: float, claimed: float, level: float, goal: float | None) -> Pair:
    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        return true * x + rng.laplace(size=runs)

    one, zero = _cells(-40.0, 40.0, stats.laplace(true).pdf, stats.laplace(0.0).pdf)
    return Pair(f"Laplace epsilon {true:g}, claim {claimed:g}", sampler, one, zero, Dp(claimed), level, goal)


def _geometric(true: float, claimed: float) -> Pair:
    """x plus the difference of two geometric numbers."""
    ratio, k = math.exp(-true), np.arange(-200, 201)

    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        return x + rng.geometric(1.0 - ratio, runs) - rng.geometric(1.0 - ratio, runs)

    one, zero = ((1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(k - x) for x in (1, 0))
    return Pair(f"two-sided geometric, epsilon {true:g}, claim {claimed:g}", sampler, one, zero, Dp(claimed), 0.01)


def _response() -> Pair:
    one, zero = np.array([0.25, 0.75]), np.array([0.75, 0.25])
    return Pair(
        "randomised response 3:1, claim 0.9 ln 3", _from_table(one, zero), one, zero, Dp(0.9 * math.log(3)), 0.01
    )


@cache
def _released(alpha: float, delta: float, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """The exact laws of (tau, o) of Algorithm 2 with its first sample set; only o = 0 and o = 1 have a probability."""
    test = Sprt(0.73, delta, alpha)
    law = marginal_law(Adjacent(Setting(test, Exponential.private(test, epsilon), 0.84), (1,)))
    one, zero = (np.maximum(p[:2], 0.0) for p in (law.p1, law.p0))
    return one, zero


def algorithm2(alpha: float, delta: float, epsilon: float, claimed: float, goal: float | None, most: int) -> Pair:
    """One released (tau, o) of Algorithm 2, drawn from its exact law."""
    one, zero = _released(alpha, delta, epsilon)
    draw, size = _from_table(one.ravel(), zero.ravel()), one.shape[1]

    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        place = draw(x, runs, rng)
        return place % size + 1, 1 - place // size

    name = f"Algorithm 2, alpha {alpha:g}, delta {delta:g}, epsilon {epsilon:g}, claim {claimed:g}"
    return Pair(name, sampler, one.ravel(), zero.ravel(), Dp(claimed), 0.01, goal, most)


def small_pairs() -> dict[str, Pair]:
    """Return the pairs that others measured too, at 5 %."""
    return {
        "gaussian_001": _not_private("Gaussian", 0.01, 42),
        "gaussian_01": _not_private("Gaussian", 0.1, 50),
        "laplace_001": _not_private("Laplace", 0.01, 72),
        "laplace_01": _not_private("Laplace", 0.1, 92),
        "mu_05": _gaussian(Gdp(0.5), 0.05, 140),
        "mu_08": _gaussian(Gdp(0.8), 0.05, 850),
        "pure_05": _laplace(1.0, 0.5, 0.05, 180),
        "pure_08": _laplace(1.0, 0.8, 0.05, 1100),
    }


def six_pairs() -> dict[str, Pair]:
    """Return the six pairs of the issue, at 1 %."""
    return {
        "geometric_1": _geometric(1.0, 0.9),
        "geometric_03": _geometric(0.3, 0.2),
        "algorithm2_005": algorithm2(0.05, 0.03, 0.05, 0.05, None, 10_000),
        "response": _response(),
        "laplace_125": _laplace(1.25, 1.0, 0.01, None),
        "gaussian_pure": _gaussian(Dp(1.0), 0.01, None),
    }


# --- pairs that no choice was tuned on ------------------------------------------------------------------------------


def _discrete_gaussian() -> Pair:
    k = np.arange(-12, 14)
    one, zero = (np.exp(-0.5 * (k - x) ** 2) for x in (1, 0))
    one, zero = one / one.sum(), zero / zero.sum()
    return Pair(
        "discrete Gaussian, sigma 1, claim mu 0.7", _from_table(one, zero, names=k.tolist()), one, zero, Gdp(0.7), 0.05
    )


def _staircase() -> Pair:
    """The staircase mechanism of sensitivity 1, epsilon 1, with the step that has the least mean absolute error."""
    ratio, step = math.exp(-1.0), 1.0 / (1.0 + math.exp(0.5))
    height = (1.0 - ratio) / (2.0 * (step + ratio * (1.0 - step)))

    def density(x: FloatArray) -> FloatArray:
        whole = np.floor(np.abs(x))
        low = np.abs(x) - whole >= step
        return np.asarray(height * ratio ** (whole + low))

    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        sign, whole = rng.choice((-1.0, 1.0), runs), rng.geometric(1.0 - ratio, runs) - 1
        low = rng.random(runs) >= step / (step + ratio * (1.0 - step))
        inside = rng.random(runs)
        return x + sign * (whole + np.where(low, step + (1.0 - step) * inside, step * inside))

    one, zero = _cells(-40.0, 41.0, lambda x: density(x - 1.0), density)
    return Pair("staircase, epsilon 1, claim 0.7", sampler, one, zero, Dp(0.7), 0.05)


def _exponential_mechanism() -> Pair:
    """Five candidates, epsilon 2; the entry moves the utility of two by one."""
    one, zero = softmax(np.array([1.0, 3.0, 2.0, 4.0, 1.0])), softmax(np.array([2.0, 3.0, 2.0, 3.0, 1.0]))
    sampler = _from_table(one, zero, names=["red", "green", "blue", "cyan", "grey"])
    return Pair("exponential mechanism, 5 categories, claim 0.8", sampler, one, zero, Dp(0.8), 0.05)


def _sparse_vector() -> Pair:
    """Eight queries whose values are all x; "above" is said once, and the transcript ends with it."""
    threshold, step = np.linspace(-60.0, 60.0, 12_001, retstep=True)
    weight = stats.laplace(2.0, 2.0).pdf(threshold) * step

    def law(x: int) -> FloatArray:
        above = stats.laplace(x, 4.0).sf(threshold)
        found = np.array([(weight * (1.0 - above) ** k * above).sum() for k in range(8)])
        return np.append(found, 1.0 - found.sum())

    one, zero = law(1), law(0)
    draw = _from_table(one, zero)
    said = [("below",) * k + ("above",) for k in range(8)] + [("below",) * 8]

    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        return [said[k] for k in draw(x, runs, rng)]

    return Pair("sparse vector, transcripts of up to 8 answers, claim 0.1", sampler, one, zero, Dp(0.1), 0.05)


def _student() -> Pair:
    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        return x + rng.standard_t(3, runs)

    one, zero = _cells(-300.0, 301.0, stats.t(3, 1.0).pdf, stats.t(3).pdf)
    return Pair("Student-t noise, 3 degrees, shift 1, claim 0.5", sampler, one, zero, Dp(0.5), 0.05)


def _subsampled() -> Pair:
    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        return x * (rng.random(runs) < 0.2) + 0.5 * rng.normal(size=runs)

    one, zero = _cells(
        -5.0,
        6.0,
        lambda x: 0.8 * stats.norm(0.0, 0.5).pdf(x) + 0.2 * stats.norm(1.0, 0.5).pdf(x),
        stats.norm(0.0, 0.5).pdf,
    )
    return Pair("Gaussian, sigma 0.5, subsampled at 0.2, claim (0.3, 0.001)", sampler, one, zero, Dp(0.3, 0.001), 0.05)


def _vector() -> Pair:
    flat = _gaussian(Gdp(0.7), 0.05, None)

    def sampler(x: int, runs: int, rng: np.random.Generator) -> Any:
        return x / math.sqrt(3.0) + rng.normal(size=(runs, 3))

    return Pair("Gaussian vector of 3, mu = 1, claim mu 0.7", sampler, flat.one, flat.zero, Gdp(0.7), 0.05)


def unseen_pairs() -> dict[str, Pair]:
    """Return pairs that were not used to choose anything."""
    return {
        "discrete_gaussian": _discrete_gaussian(),
        "staircase": _staircase(),
        "exponential_mechanism": _exponential_mechanism(),
        "sparse_vector": _sparse_vector(),
        "student": _student(),
        "subsampled": _subsampled(),
        "vector": _vector(),
    }
