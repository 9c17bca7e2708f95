"""Claims with a delta, a mu or a curve, judged by the built-in observers on both sides of the boundary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.evidence.claims import Curve, Dp, Gdp, Point, Promise
from dpsmc_audit.evidence.judging import KnownLaws, OneEvent, rejudged
from dpsmc_audit.evidence.profiles import one_direction, privacy_profile
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.evidence.witness import Event, Outcomes
from dpsmc_audit.mechanisms import Exponential
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.base import Claim, PairAudit
from dpsmc_audit.observers.expected.audit import Expected
from dpsmc_audit.observers.informed.audit import Informed
from dpsmc_audit.observers.known_laws import audit_of_laws
from dpsmc_audit.observers.marginal.audit import Marginal
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt

TEST = Sprt(0.73, 0.01, 0.01)
SETTING = Setting(TEST, Exponential.private(TEST, 0.01), 0.84)
LONG = np.tile(np.array([1, 1, 0, 1, 1, 1, 1, 1, 1, 1], np.int8), 6000)  # hardly any run outlasts it
OBSERVERS = [
    Expected(),
    Expected(bin_width=420),
    Expected(bin_width=100),
    Marginal(),
    Informed(sequence=LONG),
]


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize("epsilon", [0.01, 0.005])
def test_the_verdict_changes_at_the_delta_of_the_profile(observer: Any, epsilon: float) -> None:
    pure = audit(SETTING, epsilon, observer, engine="exact")
    needed = pure.leakage.profile.at(epsilon)
    assert 0.001 < needed < 0.5
    below = audit(SETTING, Dp(epsilon, needed * (1.0 - 1e-6)), observer, engine="exact")
    above = audit(SETTING, Dp(epsilon, needed * (1.0 + 1e-6)), observer, engine="exact")
    assert (below.verdict, above.verdict) == ("violated", "certified")
    assert below.witness is not None
    one, other = sorted((below.witness.p1, below.witness.p0), reverse=True)
    assert one - math.exp(epsilon) * other > 0.999 * needed
    assert below.delta_lower == pytest.approx(needed, rel=1e-6)
    assert below.delta_upper is None
    assert above.witness is None
    assert above.delta_upper == pytest.approx(needed, rel=1e-6)
    assert below.epsilon_lower >= epsilon >= above.epsilon_lower
    assert audit(SETTING, Dp(epsilon), observer, engine="exact").finding == pure.finding


@pytest.mark.parametrize("observer", [Expected(), Marginal(), Informed(sequence=LONG)])
def test_a_curve_fails_where_one_point_does(observer: Any) -> None:
    profile = audit(SETTING, 0.01, observer, engine="exact").leakage.profile
    deltas = [profile.at(epsilon) for epsilon in (0.01, 0.02)]
    kept = [Point(x, 1.001 * delta, 1.001 * delta) for x, delta in zip((0.01, 0.02), deltas, strict=True)]
    assert audit(SETTING, Curve(tuple(kept), "mine"), observer, engine="exact").verdict == "certified"
    broken = Point(0.01, 0.999 * deltas[0], 0.999 * deltas[0])
    last = Point(0.02, min(kept[1].delta, broken.delta), min(kept[1].delta, broken.delta))
    found = audit(SETTING, Curve((broken, last), "mine"), observer, engine="exact")
    assert found.verdict == "violated"
    assert "the curve of mine" in found.sentence
    assert found.as_dict()["claim"]["kind"] == "curve"


def test_a_gaussian_claim_of_the_marginal_observer() -> None:
    for mu, verdict in ((0.001, "violated"), (0.5, "certified")):
        found = audit(SETTING, Gdp(mu), "marginal", engine="exact")
        assert found.verdict == verdict
        assert (found.claim.epsilon, found.claim.delta) == (mu, Gdp(mu).main.delta)
        assert f"mu = {mu:g} (Gaussian DP)" in found.sentence


def test_a_sampled_claim_with_a_delta() -> None:
    """The support gap has a mass of 0.0099: a claim of more is not refuted, one of less is."""
    observer = Expected(pairs=500, draws=20)
    pure = audit(SETTING, 0.01, observer)
    assert pure.verdict == "violated"
    refuted = audit(SETTING, Dp(0.01, 0.9 * pure.delta_lower), observer)
    assert (refuted.verdict, refuted.epsilon_lower, refuted.delta_upper) == ("violated", math.inf, None)
    assert refuted.witness == pure.witness
    kept = audit(SETTING, Dp(0.01, 1.1 * pure.delta_lower), observer)
    assert (kept.verdict, kept.epsilon_lower, kept.witness) == ("consistent", 0.0, None)
    assert kept.delta_lower == pytest.approx(pure.delta_lower, rel=1e-9)
    assert kept.exact.verdict == audit(SETTING, Dp(0.01, 1.1 * pure.delta_lower), observer, engine="exact").verdict


weights = st.lists(st.integers(0, 20), min_size=3, max_size=6).filter(lambda values: sum(values) > 0)


@given(weights, weights, st.floats(0.01, 2.0), st.floats(1e-6, 0.99), st.floats(0.0, 0.99))
@settings(max_examples=200, deadline=None)
def test_known_laws_are_judged_in_each_direction(
    one: list[int], zero: list[int], epsilon: float, delta_1: float, delta_0: float
) -> None:
    size = min(len(one), len(zero))
    p1, p0 = (np.array([*row[:size], 1.0]) / (sum(row[:size]) + 1.0) for row in (one, zero))
    profile = privacy_profile(p1, p0, np.array([epsilon]))
    gaps = float(profile.delta_1_over_0[0]) - delta_1, float(profile.delta_0_over_1[0]) - delta_0
    claim = Curve((Point(epsilon, delta_1, delta_0),), "mine")
    found = rejudged(Finding(Verdict.UNDECIDED, 0.0, 0.0, None), claim, KnownLaws(p1, p0, 1e-13))
    if max(gaps) > 1e-9:
        assert found.verdict == "violated"
        assert found.epsilon_lower >= epsilon
        side = 1 if gaps[0] > gaps[1] else 0
        if abs(gaps[0] - gaps[1]) > 1e-9:
            assert found.witness == one_direction(p1, p0, epsilon, side)[1]
    elif max(gaps) < -1e-9:
        assert found.verdict == "certified"
        assert found.epsilon_lower <= epsilon


def test_epsilon_lower_is_where_the_claimed_delta_begins_to_suffice() -> None:
    p1, p0 = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    found = audit_of_laws(PairAudit, Adjacent(SETTING), Claim(Dp(0.5, 0.1)), p1, p0)
    assert found.verdict == "violated"
    assert found.epsilon_lower == pytest.approx(math.log((0.75 - 0.1) / 0.25), abs=1e-9)
    assert found.delta_lower == pytest.approx(0.75 - math.exp(0.5) * 0.25, abs=1e-12)
    unbounded = audit_of_laws(
        PairAudit, Adjacent(SETTING), Claim(Dp(0.5, 0.1)), np.array([0.2, 0.8]), np.array([0, 1.0])
    )
    assert unbounded.epsilon_lower > 20.0  # rounding of the laws is taken off: no proof that it is infinite


def test_numerical_errors_leave_a_claim_undecided() -> None:
    p1, p0 = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    needed = 0.75 - math.exp(0.5) * 0.25
    for claimed, verdict in ((needed - 0.1, "violated"), (needed, "undecided"), (needed + 0.1, "certified")):
        found = audit_of_laws(PairAudit, Adjacent(SETTING), Claim(Dp(0.5, claimed)), p1, p0, error=0.01)
        assert found.verdict == verdict


@pytest.mark.parametrize("claim", [Gdp(0.5), Dp(1.0, 0.1), Curve((Point(1.0, 0.1, 0.2),), "mine")])
def test_one_event_refutes_in_its_own_direction_only(claim: Promise) -> None:
    pure = Finding(Verdict.VIOLATED, math.inf, 0.0, None)
    for p, verdict in ((0.99, "violated"), (1e-9, "consistent")):
        for ends in ((p, 0.0), (0.0, p)):
            event = Event(Outcomes(1, int(ends[0] > 0)), *ends)
            assert rejudged(pure, claim, OneEvent(event), Verdict.CONSISTENT).verdict == verdict
    one_sided = Curve((Point(1.0, 0.5, 0.0),), "mine")
    found = [rejudged(pure, one_sided, OneEvent(Event(Outcomes(1, 1), *p)), Verdict.CONSISTENT).verdict
             for p in ((0.4, 0.0), (0.0, 0.4))]  # fmt: skip
    assert found == ["consistent", "violated"]
