"""Claims as objects: their points against a second computation, and impossible claims."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.claims import Curve, Dp, Gdp, Point, as_promise

mus = st.floats(-12.0, 3.0).map(lambda power: 10.0**power)


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """The Gaussian profile as it is usually written, in 400 digits: nothing is lost by cancellation."""
    with mpmath.workdps(400):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def phi(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        return phi(m / 2 - e / m) - mpmath.exp(e) * phi(-m / 2 - e / m)


@given(mus)
def test_points_of_a_gaussian_claim_are_implied_and_tight(mu: float) -> None:
    points = Gdp(mu).points
    assert len(points) == 7
    for point in points:
        assert point.delta_1 == point.delta_0
        assert 0.0 < point.delta < 1.0
        ratio = mpmath.mpf(point.delta) / exact_delta(point.epsilon, mu)
        assert 1 <= ratio <= 1 + 1e-10 + 1e-13 * mu


@pytest.mark.parametrize("mu", [1e-300, 1e-100, 1e-3, 0.999, 1.0, 1.001, 9.99, 10.0, 10.01, 40.0, 1e6])
def test_points_exist_for_every_mu(mu: float) -> None:
    points = Gdp(mu).points
    assert all(one.epsilon < two.epsilon and one.delta > two.delta for one, two in pairwise(points))
    assert Gdp(mu).main in points
    if mu <= 10.0:
        assert Gdp(mu).main.epsilon == mu
    Curve(points, "the same")  # in order


THEIRS = """
import json, sys
from dp_accounting.pld import privacy_loss_mechanism
asked = json.load(sys.stdin)
loss = {mu: privacy_loss_mechanism.GaussianPrivacyLoss(1.0 / mu) for mu, _ in asked}
print(json.dumps([loss[mu].get_delta_for_epsilon(epsilon) for mu, epsilon in asked]))
"""


def test_gaussian_claims_are_those_of_dp_accounting() -> None:
    """In a process of its own: importing it hands the standard error stream to a logger that closes it."""
    points = [(mu, point) for mu in (0.25, 1.0, 3.0) for point in Gdp(mu).points]
    asked = json.dumps([(mu, point.epsilon) for mu, point in points])
    done = subprocess.run([sys.executable, "-c", THEIRS], input=asked, capture_output=True, text=True, check=True)
    for (_, point), theirs in zip(points, json.loads(done.stdout), strict=True):
        assert point.delta == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf, 1e7])
def test_an_impossible_mu_is_refused(mu: float) -> None:
    with pytest.raises(ParameterError, match="mu must be positive"):
        Gdp(mu)


@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [(-1.0, 0.0, "epsilon"), (math.inf, 0.0, "epsilon"), (math.nan, 0.0, "epsilon"),
     (1.0, 1.0, "delta"), (1.0, -0.1, "delta"), (1.0, math.nan, "delta")],
)  # fmt: skip
def test_an_impossible_point_is_refused(epsilon: float, delta: float, words: str) -> None:
    for make in (lambda: Dp(epsilon, delta), lambda: Point(epsilon, 0.0, delta), lambda: Point(epsilon, delta, 0.0)):
        with pytest.raises(ParameterError, match=words):
            make()


def test_a_curve_is_in_order() -> None:
    low, high = Point(0.1, 0.2, 0.1), Point(0.3, 0.1, 0.1)
    assert Curve((low, high), "mine").main == high
    for points in ((), (high, low), (low, low), (low, Point(0.3, 0.3, 0.1)), (low, Point(0.3, 0.1, 0.2))):
        with pytest.raises(ParameterError, match="curve"):
            Curve(points, "mine")


def test_claims_say_what_they_are() -> None:
    assert Dp(0.5).text == "epsilon = 0.5"
    assert Dp(0.5, 1e-5).text == "epsilon = 0.5, privacy delta = 1e-05"
    assert Gdp(0.5).text == "mu = 0.5 (Gaussian DP)"
    curve = Curve((Point(0.1, 0.2, 0.1),), "a.csv")
    assert curve.text == "the curve of a.csv"
    assert Dp(0.5, 0.1).as_dict() == {"kind": "dp", "epsilon": 0.5, "delta": 0.1}
    assert curve.as_dict()["points"] == [{"epsilon": 0.1, "delta_1": 0.2, "delta_0": 0.1}]
    assert (Gdp(0.5).as_dict()["kind"], len(Gdp(0.5).as_dict()["points"])) == ("gdp", 7)


def test_a_number_is_a_pure_claim() -> None:
    assert as_promise(1) == Dp(1.0)
    assert as_promise(Gdp(1.0)) == Gdp(1.0)
