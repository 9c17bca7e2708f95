"""The privacy statement of a release against laws from other methods: the truth is never above what is stated.

Twins: the gambler's ruin (p = 1/2, where all steps are equal), all sequences of a few samples one by one, and a dynamic
programme in plain NumPy. None of them uses the suite's walks.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
from dpsmc_audit.observers.marginal.law import MarginalLaw, marginal_law
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify import statement
from dpsmc_audit.verify.bound import Bound, crossing, proven_bound, ruin, window
from dpsmc_audit.verify.decision import decision_alone
from dpsmc_audit.verify.release import sentences
from dpsmc_audit.verify.statement import near_p, privacy_statement, probabilities
from tests.support.strategies import sprts

NOISE: dict[str, Any] = {"exponential": Exponential, "laplace": Laplace, "truncated": Truncated}
LENGTH = 11


def needed(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The delta that the worse direction needs."""
    return float(max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((p, q), (q, p))))


def about(test: Sprt) -> list[float]:
    """p_phi at the ends, at p, at the edges of the indifference region and half way there."""
    parts = [test.p + part * test.delta for part in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    return [0.0, *parts, test.s_minus / test.step_sum, 1.0]


def said_of(said: dict[str, Any]) -> str:
    release = {"decision": "H_null", "tau": 7, "privacy": said, "insecure": False}
    return "\n".join(sentences(release, 0.5, "gt"))


def scaled(name: str, test: Sprt, epsilon: float, center: float) -> Mechanism:
    """Noise of scale c / epsilon about a center in its units; no error level is asked for, which costs little."""
    scale = test.step_sum / epsilon
    kinds: dict[str, Mechanism] = {
        "exponential": Exponential(1.0 / scale),
        "laplace": Laplace(center * scale, scale),
        "truncated": Truncated(center * scale, scale, 0.4 * test.no_room),
    }
    return kinds[name]


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the exact laws outside of the indifference region: they take seconds, and can only add worse cases."""

    def unknown(*_: Any) -> None:
        raise ParameterError("left out")

    monkeypatch.setattr(statement, "marginal_law", unknown)


# --- twins ----------------------------------------------------------------------------------------------------------


def ruined(p_phi: float, up: np.ndarray, low: np.ndarray, start: Any) -> np.ndarray:
    """P(reach `up` before -`low`) of a walk of unit steps: the gambler's ruin."""
    x, whole = low + start, low + up
    if p_phi == 0.5:
        return np.asarray(np.clip(x / whole, 0.0, 1.0))
    odds = math.log((1.0 - p_phi) / p_phi)
    sign = -abs(odds)  # ((odds)^x - 1) / ((odds)^whole - 1), without overflow
    share = np.expm1(sign * x) / np.expm1(sign * whole)
    return np.asarray(np.clip(share if odds < 0.0 else share * np.exp(sign * (whole - x)), 0.0, 1.0))


def decided(test: Sprt, law: Mechanism, p_phi: float) -> np.ndarray:
    """P(H_null) with x_1 = 1 and with x_1 = 0 where all steps are equal, L cut where either bound gains a step."""
    step = test.s_plus
    top = float(law.quantile(1.0 - 1e-13)) + test.b_up + test.b_low
    counts = np.arange(1.0, math.ceil(top / step) + 2.0)
    edges = np.unique(np.concatenate([counts * step - test.b_up, counts * step - test.b_low, [test.no_room]]))
    edges = edges[edges >= test.no_room]
    masses = -np.diff(law.survival(edges))
    middle = 0.5 * (edges[1:] + edges[:-1])
    up, low = (np.ceil((bound + middle) / step) for bound in (test.b_up, test.b_low))
    coin = 0.5 * (1.0 - float(law.survival(test.no_room)))
    return np.array([float(masses @ ruined(p_phi, up, low, start)) + coin for start in (1, -1)])


def by_decision(test: Sprt, law: Mechanism, p_phi: float, epsilon: float) -> float:
    one, zero = decided(test, law, p_phi)
    return needed(np.array([one, 1.0 - one]), np.array([zero, 1.0 - zero]), epsilon)


@lru_cache(maxsize=4)
def sequences(length: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=length)))


def enumerated(test: Sprt, law: Mechanism, p_phi: float, entry: int) -> tuple[np.ndarray, np.ndarray]:
    """P(tau, o) with x_n = 1 and with x_n = 0 over all sequences of LENGTH samples; to run on is one outcome."""
    others, found = sequences(LENGTH - 1), []
    ones = others.sum(axis=1)
    weights = p_phi**ones * (1.0 - p_phi) ** (LENGTH - 1 - ones)
    for bit in (1, 0):
        bits = np.insert(others, entry - 1, bit, axis=1)
        k, held = np.arange(1, LENGTH + 1), np.cumsum(bits, axis=1)
        walk = held * test.s_plus - (k - held) * test.s_minus
        up, low = walk - test.b_up, -walk - test.b_low
        record = np.maximum(np.maximum.accumulate(np.maximum(up, low), axis=1), test.no_room)
        room = float(law.survival(test.no_room))
        stopped = weights[:, None] * -np.diff(np.minimum(law.survival(record), room), axis=1, prepend=room)
        null, alt = (np.where((up >= low) == side, stopped, 0.0).sum(axis=0) for side in (True, False))
        null[0], alt[0] = null[0] + 0.5 * (1.0 - room), alt[0] + 0.5 * (1.0 - room)
        found.append(np.concatenate([null, alt, [float(weights @ law.survival(record[:, -1]))]]))
    return found[0], found[1]


def programmed(test: Sprt, law: Mechanism, epsilon: float, widest: int, last: int) -> float:
    """A delta that (tau, o) of the first sample surely needs where steps are equal and p_phi = p = 1/2.

    The law for each number of steps between start and bounds; wider bounds and longer runs are one outcome each.
    """
    step = test.s_plus
    total = np.zeros((2, 2, last))
    for steps in range(1, widest + 1):
        ends = np.maximum(np.array([steps - 1.0, steps]) * step - test.b_up, test.no_room)
        share = float(-np.diff(law.survival(ends))[0])
        for row, first in enumerate((1, -1)):
            alive = np.zeros(2 * steps + 1)
            alive[steps + first] = 1.0
            for k in range(last):
                for side, end in enumerate((2 * steps, 0)):
                    total[row, side, k] += share * alive[end]
                    alive[end] = 0.0
                alive = 0.5 * (np.roll(alive, 1) + np.roll(alive, -1))
    coin = 0.5 * (1.0 - float(law.survival(test.no_room)))
    total[:, :, 0] += coin
    rest = 1.0 - total.sum(axis=(1, 2))
    return needed(np.append(total[0], rest[0]), np.append(total[1], rest[1]), epsilon)


# --- the settings in which a grid without p_phi near p was wrong ----------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "epsilon", "least", "varies"),
    [
        (0.2, 0.01, 0.01222, 0.01716),
        (0.05, 0.001, 0.00167, 0.00217),
        (0.45, 0.001, 0.0028, 0.0033),
    ],
)
@pytest.mark.usefixtures("apart")
def test_without_drift_the_decision_leaks_and_the_statement_says_so(
    delta: float, epsilon: float, least: float, varies: float
) -> None:
    test = Sprt(0.5, delta, 0.05)
    law = Exponential.private(test, epsilon)
    truth, varied = (by_decision(test, law, 0.5, level) for level in (epsilon, 0.0))
    assert truth >= least
    assert varied >= varies
    said = privacy_statement(test, law, epsilon)
    assert said["delta_at_epsilon"] >= truth - said["numerical_error"]
    assert said["total_variation"] >= varied - said["total_variation_error"]
    assert said["at_most"]["delta_at_epsilon"] >= max(truth, said["delta_at_epsilon"] - said["numerical_error"])
    assert said["at_most"]["total_variation"] >= max(varied, said["total_variation"] - said["total_variation_error"])
    assert truth > window(test, law)  # one bound alone would promise too much
    assert said["worst_seen"] == "decision alone"
    assert abs(said["worst_p_phi"] - 0.5) < 0.1 * delta


@pytest.mark.usefixtures("apart")
def test_without_drift_and_with_steps_that_share_no_lattice() -> None:
    """Wald's identity with the largest overshoots, which a programme in plain NumPy finds to be too small at five L."""
    test, epsilon = Sprt(0.73, 0.1, 0.05), 0.003
    law, still = Exponential.private(test, epsilon), test.s_minus / test.step_sum

    def wald(excess: np.ndarray) -> np.ndarray:
        return test.step_sum / (test.b_up + test.b_low + 2.0 * excess + test.step_sum)

    for excess in (0.3, 1.1, 2.0, 3.4, 5.0):
        null = [_null_probability(test, still, excess, bit) for bit in (1, 0)]
        assert null[0] - null[1] >= 0.99 * float(wald(np.array(excess)))
    quantiles = law.quantile((np.arange(200_000) + 0.5) / 200_000)
    varied = float(wald(quantiles).mean())
    said = privacy_statement(test, law, epsilon)
    assert varied > 2.0 * window(test, law)
    assert said["total_variation"] >= 0.99 * varied
    assert said["delta_at_epsilon"] >= 1.5 * 0.00299  # 0.00299 is the worst of the grid outside of p +- delta
    assert said["at_most"]["delta_at_epsilon"] >= said["delta_at_epsilon"]


def _null_probability(test: Sprt, p_phi: float, excess: float, first: int) -> float:
    """P(H_null) for one L, the first sample given: mass by number of ones, sample after sample."""
    mass, null = {first: 1.0}, 0.0
    for k in range(1, 4000):
        inside: dict[int, float] = {}
        for ones, share in mass.items():
            place = ones * test.s_plus - (k - ones) * test.s_minus
            if place >= test.b_up + excess:
                null += share
            elif place > -test.b_low - excess:
                inside[ones] = inside.get(ones, 0.0) + share * (1.0 - p_phi)
                inside[ones + 1] = inside.get(ones + 1, 0.0) + share * p_phi
        mass = inside
    assert sum(mass.values()) < 1e-6
    return null


# --- the bound ------------------------------------------------------------------------------------------------------


@given(
    test=sprts(),
    name=st.sampled_from(sorted(NOISE)),
    epsilon=st.floats(0.02, 4.0),
    place=st.integers(0, 7),
    entry=st.integers(1, LENGTH),
    center=st.floats(-1.0, 4.0),
)
def test_no_sample_and_no_p_phi_leaks_more_than_is_proven(
    test: Sprt, name: str, epsilon: float, place: int, entry: int, center: float
) -> None:
    law = scaled(name, test, epsilon, center)
    bound = proven_bound(test, law, fine=1)
    assert bound is not None
    assert bound.epsilon == pytest.approx(epsilon)
    one, zero = enumerated(test, law, about(test)[place], entry)
    for level in (0.0, 0.5 * epsilon, epsilon, 2.0 * epsilon):
        assert bound.at(level) >= needed(one, zero, level) - 1e-12


@pytest.mark.parametrize("name", sorted(NOISE))
@pytest.mark.parametrize("delta", [0.1, 0.3, 0.4])
def test_coarse_steps_come_near_the_bound(name: str, delta: float) -> None:
    """Over all entries and p_phi: never above, and not far below either, so that a smaller bound would be noticed."""
    test, epsilon = Sprt(0.55, delta, 0.1), 1.0
    law = private(NOISE[name], test, epsilon)
    bound = proven_bound(test, law, fine=1)
    assert bound is not None
    laws = [enumerated(test, law, p_phi, n) for p_phi in np.linspace(0.0, 1.0, 21).tolist() for n in range(1, 9)]
    for level in (0.0, epsilon):
        worst = max(needed(one, zero, level) for one, zero in laws)
        assert 0.25 * bound.at(level) <= worst <= bound.at(level)


@pytest.mark.parametrize("name", sorted(NOISE))
def test_tau_and_decision_without_drift(name: str) -> None:
    test = Sprt(0.5, 0.2, 0.05)
    law = private(NOISE[name], test, 1.0)
    bound = proven_bound(test, law, fine=1)
    assert bound is not None
    for level in (0.0, 1.0):
        least = programmed(test, law, level, 16, 600)
        assert by_decision(test, law, 0.5, level) - 1e-3 <= least <= bound.at(level)


@pytest.mark.parametrize("p_phi", [0.05, 0.4, 0.5, 0.51, 0.9])
def test_the_crossing_is_that_of_the_walk(p_phi: float) -> None:
    """P(come within 2 c of the lower bound, stop above), by the gambler's ruin for each L, is below its bound."""
    test = Sprt(0.5, 0.05, 0.05)
    law = Exponential.private(test, 0.05)
    counts = np.arange(1.0, 6000.0)
    masses = -np.diff(law.survival(np.maximum(counts * test.s_plus - test.b_up, test.step_sum)))
    steps = counts[1:]
    near = np.maximum(steps - 4.0, 0.0)  # c is two steps
    reached = 1.0 - ruined(p_phi, steps, near, 0)
    back = ruined(p_phi, steps, steps, 4.0 - steps)
    assert float(masses @ (reached * back)) <= crossing(test, law, fine=1)


def test_a_finer_bound_is_a_smaller_one() -> None:
    test = Sprt(0.73, 0.1, 0.05, alpha_fp=0.01)
    law = private(Laplace, test, 0.1)
    bounds = [proven_bound(test, law, fine=fine) for fine in (1, 2, 4)]
    deltas = [bound.delta for bound in bounds if bound is not None]
    assert sorted(deltas, reverse=True) == deltas
    assert deltas[0] < 1.1 * deltas[-1]


@pytest.mark.usefixtures("apart")
def test_laws_of_unknown_smoothness_have_no_bound() -> None:
    test = Sprt(0.73, 0.05, 0.05)
    for law in (NoNoise(), Law.of("gamma", a=2.0, scale=5.0)):
        assert proven_bound(test, law) is None
        said = privacy_statement(test, law, 0.2)
        assert said["at_most"] is None
        assert "nothing is proven" in said_of(said)
        assert "not covered" in said_of(said)


@given(p=st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6), q=st.data(), epsilon=st.floats(0.0, 3.0))
def test_a_bound_at_one_epsilon_bounds_all(p: list[float], q: Any, epsilon: float) -> None:
    other = q.draw(st.lists(st.floats(0.01, 1.0), min_size=len(p), max_size=len(p)))
    one, zero = np.array(p) / sum(p), np.array(other) / sum(other)
    bound = Bound(epsilon, needed(one, zero, epsilon))
    for level in (0.0, 0.3 * epsilon, epsilon, 2.0 * epsilon):
        assert bound.at(level) >= needed(one, zero, level) - 1e-12


def test_ruin_is_monotone_and_does_not_overflow() -> None:
    exponents = np.concatenate([-np.geomspace(1e5, 1e-14, 300), [0.0], np.geomspace(1e-14, 1e5, 300)])
    shares = ruin(exponents, np.array(3.0), np.array(8.0))
    assert np.all(np.diff(shares) >= -1e-8)
    assert np.all((shares >= 0.0) & (shares <= 1.0))
    np.testing.assert_allclose(
        ruin(np.array([math.log(1.5)]), np.array(3.0), np.array(8.0)), [(1 - 1.5**-3) / (1 - 1.5**-8)]
    )


# --- the decision alone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(NOISE))
@pytest.mark.parametrize(("delta", "epsilon"), [(0.2, 0.05), (0.05, 0.003), (0.45, 0.01)])
def test_the_decision_is_that_of_the_gamblers_ruin(name: str, delta: float, epsilon: float) -> None:
    test = Sprt(0.5, delta, 0.05)
    law = private(NOISE[name], test, epsilon)
    for p_phi in (0.5, 0.5 + 0.03 * delta, 0.5 - 0.5 * delta, 0.5 + delta):
        found, (one, zero) = decision_alone(Setting(test, law, p_phi)), decided(test, law, p_phi)
        assert abs((found.one - found.zero) - (one - zero)) <= found.error < 0.02 * (one - zero) + 2e-9
        assert abs(found.zero - zero) <= found.error_zero
        assert abs(found.delta(epsilon) - by_decision(test, law, p_phi, epsilon)) <= found.delta_error(epsilon)


@pytest.mark.parametrize("law", [Exponential(0.5), Laplace(3.0, 2.0), NoNoise(), Law.of("poisson", mu=3.0)])
def test_the_decision_is_that_of_the_exact_law(law: Mechanism) -> None:
    test = Sprt(0.73, 0.15, 0.05, alpha_fp=0.02)
    for p_phi in (0.58, 0.7, 0.88):
        found, exact = decision_alone(Setting(test, law, p_phi)), marginal_law(Adjacent(Setting(test, law, p_phi)))
        one, zero = (float(p[0].sum()) for p in (exact.p1, exact.p0))
        assert abs((found.one - found.zero) - (one - zero)) <= found.error + 2.0 * exact.scatter


def test_the_decision_where_one_kind_of_sample_is_rare() -> None:
    """No programme is affordable there: the stated error covers overshoots from nothing to more than a step."""
    test = Sprt(1e-6, 9e-7, 0.01)
    law = Exponential.private(test, 0.05)
    found = decision_alone(Setting(test, law, test.s_minus / test.step_sum))
    wald = [test.step_sum / (test.b_up + test.b_low + 2.0 * law.quantile(np.arange(0.5, 1e5) / 1e5) + over)
            for over in (0.0, test.step_sum)]  # fmt: skip
    assert found.one - found.zero - found.error <= float(wald[1].mean()) < float(wald[0].mean())
    assert float(wald[0].mean()) <= found.one - found.zero + found.error
    assert found.error < found.one - found.zero


# --- what is printed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "delta", "alpha", "epsilon", "name"),
    [
        (0.5, 0.3, 0.1, 1.0, "exponential"),
        (0.73, 0.2, 0.05, 0.5, "exponential"),
        (0.2, 0.1, 0.1, 0.3, "laplace"),
        (0.9, 0.05, 0.05, 0.5, "truncated"),
    ],
)
@pytest.mark.usefixtures("apart")
def test_what_is_stated_covers_what_is_true(p: float, delta: float, alpha: float, epsilon: float, name: str) -> None:
    test = Sprt(p, delta, alpha)
    law = private(NOISE[name], test, epsilon)
    said = privacy_statement(test, law, epsilon)
    most = said["at_most"]
    for p_phi in about(test):
        for entry in (1, 2, 3, 6):
            one, zero = enumerated(test, law, p_phi, entry)
            assert most["delta_at_epsilon"] >= needed(one, zero, epsilon)
            assert most["delta_at_2_epsilon"] >= needed(one, zero, 2.0 * epsilon)
            assert most["total_variation"] >= needed(one, zero, 0.0)
    for key, error in (("delta_at_epsilon", "numerical_error"), ("total_variation", "total_variation_error")):
        assert said[error] < said[key] <= most[key] + said[error]
    assert f"= {said['delta_at_epsilon']:.3g} ± {said['numerical_error']:.1g}" in said_of(said)
    assert f"({epsilon:g}, {most['delta_at_epsilon']:.3g})" in said_of(said)
    assert {test.p, round(test.p + delta, 6), round(test.p - delta, 6)} <= set(said["p_phi_decision"])


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact laws that are lost in their numerical error: 0.0293 with an error of 0.585."""
    p1, p0 = np.array([[0.5293, 0.4707]] * 3) / 3.0, np.array([[0.5, 0.5]] * 3) / 3.0
    monkeypatch.setattr(statement, "marginal_law", lambda *_: MarginalLaw(p1, p0, 0.3, 0.585, "strata"))


@pytest.mark.usefixtures("lost")
def test_no_delta_is_stated_that_is_smaller_than_its_error() -> None:
    test = Sprt(0.5, 0.45, 0.05)
    law = private(Laplace, test, 0.003)
    said = privacy_statement(test, law, 0.003)
    assert said["numerical_error"] < said["delta_at_epsilon"] < 0.002
    assert said["total_variation_error"] < said["total_variation"] < 0.002
    assert said["at_most"]["delta_at_epsilon"] < 0.005
    assert said["p_phi_unknown"] == list(probabilities(test))
    assert "not known: p_phi = 0, 0.0125," in said_of(said)


@pytest.mark.usefixtures("lost")
def test_nothing_above_the_error_is_said_to_be_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement, "_decisions", lambda *_: ())
    monkeypatch.setattr(statement, "_constant_data", lambda *_: ())
    test = Sprt(0.5, 0.45, 0.05)
    said = privacy_statement(test, private(Laplace, test, 0.003), 0.003)
    assert said["delta_at_epsilon"] is said["numerical_error"] is said["total_variation"] is None
    assert "no case needs a privacy delta above its numerical error" in said_of(said)


def test_p_phi_near_p_lie_within_the_indifference_region() -> None:
    for test in (Sprt(0.5, 0.2, 0.05), Sprt(0.73, 0.01, 0.01), Sprt(0.05, 0.04, 0.05), Sprt(1e-6, 9e-7, 0.01)):
        near = near_p(test)
        assert near[0] == pytest.approx(test.p - test.delta)
        assert near[-1] == pytest.approx(test.p + test.delta)
        assert min(abs(test.drift(p_phi)) for p_phi in near) < 1e-9 * test.step_sum


@pytest.mark.slow
def test_the_noise_that_was_stated_as_a_number() -> None:
    """The same with the laws that the suite computes, which takes seconds."""
    test = Sprt(0.5, 0.45, 0.05)
    said = privacy_statement(test, private(Laplace, test, 0.003), 0.003)
    assert said["numerical_error"] < said["delta_at_epsilon"] < 0.002
    assert len(said["p_phi_unknown"]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_statements_over_many_parameters(seed: int) -> None:
    """Bounds above and examined cases below the truth of three twins; no delta below its error."""
    rng = np.random.default_rng(seed)
    p = 0.5 if seed % 2 else float(rng.uniform(0.1, 0.9))
    delta = float(rng.uniform(0.2, 0.95)) * min(p, 1.0 - p)
    alpha, epsilon = float(rng.choice([0.01, 0.05, 0.2])), float(10.0 ** rng.uniform(-3.0, 0.3))
    name = sorted(NOISE)[0 if seed % 6 else 1 + seed // 6 % 2]
    test = Sprt(p, delta, alpha)
    law = private(NOISE[name], test, epsilon)
    said = privacy_statement(test, law, epsilon)
    most, levels = said["at_most"], {"delta_at_epsilon": epsilon, "total_variation": 0.0}
    errors = {"delta_at_epsilon": said["numerical_error"], "total_variation": said["total_variation_error"]}
    for key, level in levels.items():
        assert errors[key] < said[key] <= most[key] + errors[key]
        for p_phi in about(test):
            assert most[key] >= max(needed(*enumerated(test, law, p_phi, n), level) for n in (1, 2, 4, 9))
        if p == 0.5:
            for p_phi in near_p(test):
                assert said[key] + errors[key] >= by_decision(test, law, p_phi, level)
