"""Mechanisms that are exactly as private as a claim says: for studies of how often an audit is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpsmc_audit.evidence.claims import Curve, Dp, Gdp, Point, Promise
from dpsmc_audit.evidence.events import outcome_code
from dpsmc_audit.observers.black_box import Sampler

FloatArray = np.ndarray
Laws = tuple[np.ndarray, np.ndarray]
"""The probabilities of the outcomes with x = 0 and with x = 1."""


@dataclass(frozen=True)
class Private:
    """A mechanism on the boundary of a claim.

    `epsilon` is the truth at the delta of the claim's main point, `profile` the truth at any epsilon. Outputs may be
    missing. There are so many times more runs with x = 0 than with x = 1.
    """

    draw: Sampler
    claim: Promise
    epsilon: float
    profile: Callable[[float], float]
    missing: bool = False
    more: float = 1.0
    predictor: Callable[[], Any] | None = None


def profile_of(laws: Laws) -> Callable[[float], float]:
    """The exact privacy profile of two laws on few outcomes, in the worse direction."""
    zero, one = laws

    def profile(epsilon: float) -> float:
        times = math.exp(epsilon)
        return float(max(np.maximum(one - times * zero, 0).sum(), np.maximum(zero - times * one, 0).sum()))

    return profile


def finite(laws: Laws, epsilon: float, shown: Callable[[np.ndarray, np.random.Generator], Any], **more: Any) -> Private:
    """Two laws on few outcomes at (epsilon, the delta they need there); `shown` makes outputs of outcomes."""
    cumulative = [np.cumsum(law) / law.sum() for law in laws]
    profile = profile_of(laws)
    exact = profile(epsilon)
    delta = exact if exact > 1e-12 else 0.0

    def draw(x: int, runs: int, rng: np.random.Generator) -> Any:
        return shown(np.searchsorted(cumulative[x], rng.random(runs), side="right"), rng)

    return Private(draw, more.pop("claim", Dp(epsilon, delta)), epsilon, profile, **more)


def response(epsilon: float, delta: float = 0.0, values: int = 2) -> Laws:
    """Randomised response: half of the values speak for each member; two more tell it, with probability delta."""
    high = (1.0 - delta) / (1.0 + math.exp(-epsilon)) / (values // 2)
    low = (1.0 - delta) / (1.0 + math.exp(epsilon)) / (values // 2)
    law = np.repeat([low, high], values // 2)
    ends = ([0.0], [delta]) if delta else ([], [])
    one = np.concatenate([ends[0], law, ends[1]])
    return one[::-1].copy(), one


def geometric(epsilon: float) -> Laws:
    """Two-sided geometric noise."""
    noise = np.exp(-epsilon * np.abs(np.arange(-400, 402)))
    zero, one = noise / noise.sum(), np.roll(noise, 1)
    return zero, one / noise.sum()


def many(values: int, epsilon: float) -> Laws:
    """Every value on one of the two ends, in random order, with very different probabilities."""
    rng = np.random.default_rng(7)
    weight = rng.dirichlet(np.full(values // 2, 0.3))
    share = 1.0 / (1.0 + math.exp(-epsilon))
    one = np.concatenate([share * weight, (1.0 - share) * weight])
    order = rng.permutation(one.size)
    return np.concatenate([(1.0 - share) * weight, share * weight])[order], one[order]


def pure(epsilon: float) -> Callable[[float], float]:
    """The largest profile of a mechanism with this epsilon and delta = 0 (that of randomised response)."""
    return lambda at: max(0.0, (math.exp(epsilon) - math.exp(at)) / (1.0 + math.exp(epsilon)))


def numbers(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    return outcome.astype(float)


def texts(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    return np.array([f"value {k}" for k in outcome.tolist()])


def different(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    return [f"{k} {u:.15f}" for k, u in zip(outcome.tolist(), rng.random(outcome.size).tolist(), strict=True)]


def in_order(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    return np.sort(outcome).astype(float)


def with_heavy_tail(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    return np.where(outcome == 1, 1.0, -1.0) * (1.0 + rng.pareto(1.1, outcome.size))


def often_the_same(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    sign = np.where(outcome == 1, 1.0, -1.0)
    return np.where(rng.random(outcome.size) < 0.5, sign, sign * rng.exponential(size=outcome.size))


def time_and_decision(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    return rng.geometric(0.05, outcome.size) + outcome // 2, outcome % 2


def three_columns(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    sign = np.where(outcome == 1, 1.0, -1.0)
    return rng.normal(size=outcome.size), sign * rng.exponential(size=outcome.size), texts(outcome % 2, rng)


def bits_with_noise(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    lengths = rng.integers(1, 5, outcome.size).tolist()
    return [[f"{k}", *rng.choice(["up", "down"], n).tolist()] for k, n in zip(outcome.tolist(), lengths, strict=True)]


def transcript_of_numbers(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    lengths = rng.integers(1, 5, outcome.size).tolist()
    return [[float(k), *rng.normal(size=n).tolist()] for k, n in zip(outcome.tolist(), lengths, strict=True)]


def missing_or_not(outcome: np.ndarray, rng: np.random.Generator) -> Any:
    return np.where(outcome == 1, rng.normal(size=outcome.size), np.nan)


def laplace(x: int, runs: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=runs)


def laplace_vector(x: int, runs: int, rng: np.random.Generator) -> Any:
    return 0.3 * x + rng.laplace(size=(runs, 3))


def shifted(x: int, runs: int, rng: np.random.Generator) -> Any:
    return 0.1 * x + rng.exponential(size=runs)


def normal(x: int, runs: int, rng: np.random.Generator) -> Any:
    return x + rng.normal(size=runs)


def smaller_normal(x: int, runs: int, rng: np.random.Generator) -> Any:
    return 0.3 * x + rng.normal(size=runs)


def noise(x: int, runs: int, rng: np.random.Generator) -> Any:
    return rng.normal(size=runs)


def constant(x: int, runs: int, rng: np.random.Generator) -> Any:
    return np.ones(runs)


def of_gaussian(mu: float) -> Callable[[float], float]:
    """The privacy profile of N(0, 1) against N(mu, 1)."""
    return lambda at: float(ndtr(mu / 2 - at / mu) - math.exp(at) * ndtr(-mu / 2 - at / mu))


def of_laplace(epsilon: float) -> Callable[[float], float]:
    """The privacy profile of Laplace noise."""
    return lambda at: max(0.0, -math.expm1((at - epsilon) / 2))


def of_shift(at: float) -> float:
    """The privacy profile of Exp(1) against 0.1 + Exp(1)."""
    return max(-math.expm1(-0.1), 1.0 - math.exp(at - 0.1)) if at < 0.1 else -math.expm1(-0.1)


class Predictor:
    """A classifier for which everything goes wrong that may."""

    def fit(self, features: np.ndarray, labels: np.ndarray) -> None:
        """Remember what was seen."""
        self.features, self.labels = features.copy(), labels.copy()

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class AlwaysOne(Predictor):
    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        return np.ones(len(features))


class KnowsThePair(Predictor):
    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        return np.where(features[:, 0] > 0.5 * (features.min() + features.max()), 1 - 1e-9, 1e-9)


class CountsLabels(Predictor):
    """It bets on the label that is behind, as if the numbers had to be equal in the end."""

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        return np.full(len(features), 0.99 if 2 * self.labels.sum() < self.labels.size else 0.01)


class Parity(Predictor):
    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        return np.where((self.labels.size + np.arange(len(features))) % 2 == 0, 0.999, 0.001)


class KeepsState(Predictor):
    """It doubles what it says after each call, and looks at all outputs of a batch."""

    calls = 0

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        self.calls += 1
        first = features[:, 0]
        far = np.clip(self.calls * (first - first.mean() + np.max(first)), -40, 40)
        return np.asarray(1.0 / (1.0 + np.exp(-far)))


class KnowsPositions(Predictor):
    """It says more of the runs that come last in a batch if the first ones were unusual."""

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        place = np.arange(len(features)) / max(len(features) - 1, 1)
        usual = features[:, 0] > np.median(self.features[:, 0])
        return np.where(usual, 0.5 + 0.49 * place, 0.5 - 0.49 * place[::-1])


HOSTILE = {
    "always 1": AlwaysOne,
    "knows the pair": KnowsThePair,
    "counts labels": CountsLabels,
    "parity": Parity,
    "keeps state": KeepsState,
    "knows positions": KnowsPositions,
}


def _curve() -> Private:
    laws = (np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1]))
    profile = profile_of(laws)
    points = tuple(Point(at, profile(at), profile(at)) for at in (0.1, 0.4, 0.9))
    return finite(laws, 0.4, numbers, claim=Curve(points, "itself"))


PAIRS: dict[str, Private] = {
    "two values, 1": finite(response(1.0), 1.0, numbers),
    "two values, 0.1": finite(response(0.1), 0.1, numbers),
    "one atom": Private(constant, Dp(0.0), 0.0, pure(0.0)),
    "ties, 0": finite((np.full(10, 0.1), np.full(10, 0.1)), 0.0, numbers),
    "noise, 0": Private(noise, Dp(0.0), 0.0, pure(0.0)),
    "geometric, 0.5": finite(geometric(0.5), 0.5, numbers),
    "Laplace, 1": Private(laplace, Dp(1.0), 1.0, of_laplace(1.0)),
    "10^4 values, 0.7": finite(many(10_000, 0.7), 0.7, numbers),
    "51 values, 0.3": finite(many(52, 0.3), 0.3, numbers),
    "mixture, 1": finite(response(1.0), 1.0, often_the_same),
    "Pareto, 1": finite(response(1.0), 1.0, with_heavy_tail),
    "delta, 0.5 and 0.1": finite(response(0.5, 0.1), 0.5, numbers),
    "delta alone, 0.05": finite(response(0.0, 0.05), 0.0, numbers),
    "shifted, 0.1 and 0.095": Private(shifted, Dp(0.1, -math.expm1(-0.1)), 0.1, of_shift),
    "geometric, 0.2 and its delta": finite(geometric(0.5), 0.2, numbers),
    "vectors, 0.9": Private(laplace_vector, Dp(0.9), 0.9, pure(0.9)),
    "categories, 0.5": finite(response(0.5, values=20), 0.5, texts),
    "different texts, 1": finite(response(1.0), 1.0, different),
    "transcripts, 0.6": finite(response(0.6), 0.6, bits_with_noise),
    "transcripts of numbers, 0.6": finite(response(0.6), 0.6, transcript_of_numbers),
    "tau and o, 0.8": finite(response(0.8, values=4), 0.8, time_and_decision),
    "three columns, 0.8": finite(response(0.8), 0.8, three_columns),
    "Gaussian, mu = 1": Private(normal, Gdp(1.0), 1.0, of_gaussian(1.0)),
    "Gaussian, mu = 0.3": Private(smaller_normal, Gdp(0.3), 0.3, of_gaussian(0.3)),
    "curve": _curve(),
    "missing values, 0.7": finite(response(0.7), 0.7, missing_or_not, missing=True),
    "unequal numbers, 1": finite(response(1.0), 1.0, often_the_same, more=3.0),
    "in order, 0.5": finite(geometric(0.5), 0.5, in_order),
}
"""Claims that hold, with nothing to spare."""

for _name, _hostile in HOSTILE.items():
    PAIRS[f"{_name}, 1"] = finite(response(1.0), 1.0, numbers, predictor=_hostile)
    PAIRS[f"{_name}, delta"] = finite(response(0.2, 0.1), 0.2, numbers, predictor=_hostile)


def coded(tau: np.ndarray) -> np.ndarray:
    """Outcome codes of running times."""
    whole = tau.astype(np.int64)
    return outcome_code(whole, np.zeros_like(whole))


CodedRuns = Callable[[int, int, np.random.Generator], np.ndarray]


def geometric_runs(epsilon: float) -> CodedRuns:
    """Two-sided geometric noise: every outcome's ratio is e^epsilon or its inverse."""
    share = -math.expm1(-epsilon)
    return lambda x, runs, rng: coded(1_000 + x + rng.geometric(share, runs) - rng.geometric(share, runs))


def rounded_laplace(epsilon: float) -> CodedRuns:
    """Laplace noise, rounded: tails that end between the two means have the ratio e^epsilon."""
    return lambda x, runs, rng: coded(1_000 + np.floor(x + rng.laplace(0.0, 1.0 / epsilon, runs)))


def response_runs(epsilon: float) -> CodedRuns:
    """Randomised response in the decision; tau has nothing to say."""
    lie = 1.0 / (1.0 + math.exp(epsilon))

    def draw(x: int, runs: int, rng: np.random.Generator) -> np.ndarray:
        return outcome_code(np.ones(runs, np.int64), np.where(rng.random(runs) < lie, 1 - x, x))

    return draw


def one_sided(x: int, runs: int, rng: np.random.Generator) -> np.ndarray:
    """floor(10 (x + Exp(1))): no epsilon holds."""
    return coded(np.floor(10.0 * (x + rng.exponential(size=runs))))


CODED: dict[str, tuple[CodedRuns, float]] = {
    "geometric, 0.1": (geometric_runs(0.1), 0.1),
    "geometric, 0.5": (geometric_runs(0.5), 0.5),
    "rounded Laplace, 1": (rounded_laplace(1.0), 1.0),
    "randomised response, 2": (response_runs(2.0), 2.0),
}
"""Exactly private runs of (tau, o), as outcome codes."""
