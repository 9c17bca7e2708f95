"""Averages next to the edges of bins, and claims next to what is true: nothing is decided by a tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dpsmc_audit import Exponential, Laplace, NoNoise, Sprt, Truncated
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.mechanisms import Law, Mechanism
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.base import Engine
from dpsmc_audit.observers.expected.audit import Expected
from dpsmc_audit.observers.expected.edges import Tails
from dpsmc_audit.observers.expected.law import ExpectedLaw, expected_law
from dpsmc_audit.observers.informed.audit import Informed
from dpsmc_audit.observers.marginal.audit import Marginal
from dpsmc_audit.setting import Adjacent, Setting
from tests.support.strategies import examples

FloatArray = NDArray[np.float64]
PAPER = Sprt(0.73, 0.01, 0.01)
NEAR = Sprt(0.8, 0.05, 0.02)
"""With p_phi = 0.65, g_1 is 74.99994 before it jumps to 75.00055."""

TWIN_ERROR = 1e-11
"""Relative; the programme below adds up no more than thousands of positive numbers."""


# --- a second programme ---------------------------------------------------------------------------------------------


def plain_means(test: Sprt, p_phi: float, entries: tuple[int, ...], bit: int, excess: FloatArray) -> FloatArray:
    """``E[tau | L]`` with the entries forced, for several L at once: every number of ones, sample by sample."""
    up, low = ((b + excess)[:, None] for b in (test.b_up, test.b_low))
    alive, least, mean = np.ones((excess.size, 1)), 0, np.zeros(excess.size)  # column k has least + k ones
    for step in range(1, 20_000):
        mean += alive.sum(axis=1)  # P(tau >= step)
        chance = float(bit) if step in entries else p_phi
        more = np.zeros((excess.size, alive.shape[1] + 1))
        more[:, 1:] = chance * alive
        more[:, :-1] += (1.0 - chance) * alive
        ones = least + np.arange(more.shape[1])
        walk = ones * test.s_plus - (step - ones) * test.s_minus
        inside = (walk < up) & (walk > -low)
        some = np.flatnonzero(inside.any(axis=0))
        if some.size == 0:
            break
        first, end = some[0], some[-1] + 1
        alive, least = np.where(inside, more, 0.0)[:, first:end], least + first
        if float(alive.max()) < 1e-18:
            break
    return np.where(excess <= test.no_room, 1.0, mean)


def l_of(mechanism: Mechanism, tails: FloatArray, upwards: bool) -> FloatArray:
    """The L above which a share `tails` of the law lies; where rounding decides, the next number on that side."""
    inverse: Callable[[FloatArray], FloatArray]
    if isinstance(mechanism, Exponential):
        inverse = lambda tail: -np.log(tail) / mechanism.rate  # noqa: E731
    elif isinstance(mechanism, Laplace):
        inverse = mechanism.upper_quantile
    elif isinstance(mechanism, Truncated):
        whole = Laplace(mechanism.center, mechanism.scale)
        inverse = lambda tail: whole.upper_quantile(tail * whole.survival(mechanism.lowest))  # noqa: E731
    else:
        assert isinstance(mechanism, Law)
        inverse = getattr(stats, mechanism.distribution)(**dict(mechanism.arguments)).isf
    excess = np.asarray(inverse(tails), np.float64)
    for _ in range(200):
        share = np.asarray(mechanism.survival(excess))
        wrong = share > tails if upwards else share < tails
        if not np.any(wrong):
            break
        excess = np.where(wrong, np.nextafter(excess, math.inf if upwards else -math.inf), excess)
    return excess


def assert_enclosed(
    found: ExpectedLaw, test: Sprt, mechanism: Mechanism, p_phi: float, entries: tuple[int, ...]
) -> None:
    """``P(g >= edge) <= high`` if g is below the edge at an L beyond which a share `high` lies; `low` likewise.

    An enclosure wider than bisection makes it has a reason: g is on the edge there, but for rounding.
    """
    edges = found.edges
    for tails, bit in ((found.one, 1), (found.zero, 0)):
        told = (test, p_phi, entries, bit)
        some = (tails.high < 1.0) & (tails.high > 1e-7)
        if np.any(some):
            means = plain_means(*told, l_of(mechanism, tails.high[some], upwards=True))
            assert np.all(means < edges[some] * (1 + TWIN_ERROR)), "reached by more than stated"
        some = (tails.low < 1.0) & (tails.low > 1e-7)
        if np.any(some):
            means = plain_means(*told, l_of(mechanism, tails.low[some], upwards=False))
            assert np.all(means >= edges[some] * (1 - TWIN_ERROR)), "reached by less than stated"
        sure = (tails.low == 1.0) & (edges > 1.0)
        if np.any(sure):
            least = plain_means(*told, np.array([float(mechanism.quantile(0.0))]))
            assert np.all(least >= edges[sure] * (1 - TWIN_ERROR))
        wide = (tails.high - tails.low > 1e-7 * tails.high) & (tails.low > 1e-7)
        if np.any(wide):
            ends = (l_of(mechanism, tail[wide], upwards=True) for tail in (tails.low, tails.high))
            means = plain_means(*told, 0.5 * np.sum(list(ends), axis=0))
            np.testing.assert_allclose(means, edges[wide], rtol=1e-8)


@st.composite
def settings_near_edges(draw: st.DrawFn) -> tuple[Sprt, Mechanism, float, tuple[int, ...], int]:
    """Coarse tests, often of round numbers, where averages come close to whole numbers."""
    p = draw(st.sampled_from([0.5, 0.6, 0.8, 0.25]) | st.floats(0.2, 0.8))
    reach = min(p, 1.0 - p)
    delta = draw(st.sampled_from([share * reach for share in (0.25, 0.5, 0.8)]) | st.floats(0.2 * reach, 0.9 * reach))
    test = Sprt(p, delta, draw(st.sampled_from([0.02, 0.1, 0.2]) | st.floats(0.01, 0.3)))
    epsilon = draw(st.sampled_from([0.2, 0.5, 1.0]) | st.floats(0.2, 3.0))
    scale = test.step_sum / epsilon
    kind = draw(st.sampled_from(["exponential", "laplace", "truncated", "gamma"]))
    kinds: dict[str, Callable[[], Mechanism]] = {
        "exponential": lambda: Exponential(1.0 / scale),
        "laplace": lambda: Laplace(draw(st.floats(0.0, 2.0)) * scale, scale),
        "truncated": lambda: Truncated(draw(st.floats(-1.0, 1.0)) * scale, scale, 0.5 * test.no_room),
        "gamma": lambda: Law.of("gamma", a=2.0, scale=0.5 * scale),
    }
    p_phi = draw(st.sampled_from([0.5, 0.65, 0.75, 0.84]) | st.floats(0.05, 0.95))
    entries = draw(st.sampled_from([(1,), (1,), (2,), (5,), (1, 3)]))
    return test, kinds[kind](), p_phi, entries, draw(st.integers(1, 20))


@given(settings_near_edges())
@example((NEAR, Exponential.private(NEAR, 0.2), 0.65, (1,), 15))
@settings(max_examples=examples(60), deadline=None)
def test_edges_are_enclosed(setting: tuple[Sprt, Mechanism, float, tuple[int, ...], int]) -> None:
    """Against plain programmes at the ends of every enclosure."""
    test, mechanism, p_phi, entries, width = setting
    far = float(mechanism.quantile(1.0 - 1e-4))
    assume(test.wald(p_phi, max(far, 0.0)).samples < 120)
    found = expected_law(Adjacent(Setting(test, mechanism, p_phi), entries), width, upto=1e-4)
    assume(found.method != "grid")
    assert_enclosed(found, test, mechanism, p_phi, entries)
    for bins in found.enclosed():
        assert np.all((bins.low <= bins.value) & (bins.value <= bins.high))


@given(st.sampled_from([0.5, 0.6, 0.35]), st.floats(0.1, 0.9), st.integers(1, 6), st.sampled_from([(1,), (3,)]))
@settings(max_examples=examples(12), deadline=None)
def test_listed_l_are_looked_at_one_by_one(p: float, p_phi: float, width: int, entries: tuple[int, ...]) -> None:
    test = Sprt(p, 0.5 * min(p, 1.0 - p), 0.1)
    assume(test.wald(p_phi, 6.0).samples < 60)
    for mechanism in (NoNoise(), Law.of("poisson", mu=1.0, loc=-1)):
        assert mechanism.atoms is not None
        values, shares = (np.array(column) for column in zip(*mechanism.atoms, strict=True))
        found = expected_law(Adjacent(Setting(test, mechanism, p_phi), entries), width, upto=1e-4)
        for tails, bit in ((found.one, 1), (found.zero, 0)):
            means = plain_means(test, p_phi, entries, bit, values)
            sure, possible = (
                np.array([shares[means >= edge * (1 + sign * TWIN_ERROR)].sum() for edge in found.edges])
                for sign in (1, -1)
            )
            assert np.all(tails.low <= sure + 2e-12)
            assert np.all(tails.high >= np.minimum(possible, 1.0) - 1e-15)
            assert np.all(tails.high - tails.low <= possible - sure + 3e-12)


# --- known by hand --------------------------------------------------------------------------------------------------


def test_an_average_just_below_an_edge_is_below_it() -> None:
    """Values computed by other code, with bounds that move one by one; stated were .22634828 and .18531830, to 1e-8."""
    found = expected_law(Adjacent(Setting(NEAR, Exponential.private(NEAR, 0.2), 0.65)), bin_width=15)
    bins = [p[4] for p in found.probabilities()]
    assert found.edges[4] == 60
    assert bins == pytest.approx([0.22672873, 0.18562979], abs=5e-9)
    assert found.tail_error < 1e-9


HALF, STEP = Sprt(0.5, 0.25, 0.1), math.log(3.0)
"""Steps of ln 3 up and down, and bounds two steps away (nearer by one part in 10^9)."""


@cache
def ruin(m: int, bit: int) -> Fraction:
    """g with bounds m steps away at p_phi = 3/4: the gambler's ruin from one step up or down."""
    odds, start = Fraction(1, 3), 2 * bit - 1
    low = (odds ** (start + m) - odds ** (2 * m)) / (1 - odds ** (2 * m))
    return 1 + 2 * (m * (1 - 2 * low) - start)


def barriers(edge: float, bit: int) -> int:
    """How far away bounds are, in steps, from where on the average reaches the edge."""
    return next(m for m in range(2, 10_000) if ruin(m, bit) >= edge)


def true_tails(mechanism: Mechanism, edges: FloatArray, bit: int) -> FloatArray:
    """P(g >= edge): bounds are m steps away for L above m - 1 steps less the bound."""
    at = np.array([(barriers(edge, bit) - 1) * STEP for edge in edges.tolist()]) - HALF.b_up
    return np.where(at < 0.0, 1.0, mechanism.survival(at))


def test_an_average_that_cannot_be_told_from_its_edge_is_on_either_side() -> None:
    """p_phi = 3/4: g_1 is 2 m - 1 less what the far bound cuts off: 3^-m and below rounding from m = 35 on.

    So the edges 77, 91, ... are not reached by an average that looks as if it were on them.
    """
    mechanism = Exponential.private(HALF, 0.1)
    found = expected_law(Adjacent(Setting(HALF, mechanism, 0.75)), bin_width=7)
    unsure = 0
    for tails, bit in ((found.one, 1), (found.zero, 0)):
        truth = true_tails(mechanism, found.edges, bit)
        assert np.all((tails.low <= truth) & (truth <= tails.high))
        stated = found.tail_error * tails.value
        assert np.all(np.abs(tails.value - truth) <= stated)
        unsure += int(np.sum(tails.value - truth > 1e-3 * truth))
    assert unsure > 10, "what is shown counts them as reached"
    assert found.tail_error == pytest.approx(-math.expm1(-0.05), rel=1e-6), "a step of ln 3"


def test_bins_are_undecided_where_edges_are() -> None:
    """The same with two-sided noise: the delta that is needed, by the true laws, is within what is left open."""
    mechanism = Laplace(3.0 * STEP, HALF.step_sum / 0.1)
    found = audit(Setting(HALF, mechanism, 0.75), 0.1, Expected(bin_width=7), engine="exact")
    assert found.verdict == "undecided"
    assert found.sentence.startswith("undecided")
    assert "numerical error" in found.sentence
    law = expected_law(Adjacent(Setting(HALF, mechanism, 0.75)), bin_width=7)
    one, zero = (Tails(t, t, t, t).bins().value for t in (true_tails(mechanism, law.edges, x) for x in (1, 0)))
    delta = max(np.maximum(one - math.exp(0.1) * zero, 0).sum(), np.maximum(zero - math.exp(0.1) * one, 0).sum())
    assert found.delta_upper is not None
    assert delta <= found.delta_upper


# --- claims -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.6, 1.0, 2.0])
def test_a_claim_that_needs_a_delta_is_violated(epsilon: float) -> None:
    """One released result at the paper's parameters: 7.8e-7 is needed at epsilon = 1, six digits above the error."""
    found = audit(Setting(PAPER, Exponential.private(PAPER, epsilon), 0.84), epsilon, "marginal", engine="exact")
    needed = found.leakage.profile.at(epsilon)
    assert needed > 3 * (1 + math.exp(epsilon)) * found.numerical_error
    assert found.verdict == "violated"
    assert 0.9 * needed < found.delta_lower <= needed
    assert found.witness is not None
    assert abs(found.witness.log_ratio) > epsilon


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 5.0, 8.0])
def test_no_bin_is_outside_a_claim_that_is_not_violated(epsilon: float) -> None:
    """And an exact audit that refutes nothing says which delta it leaves open."""
    mechanism = Exponential.private(PAPER, 1.0)
    found = audit(Setting(PAPER, mechanism, 0.84), epsilon, "marginal", engine="exact")
    if found.verdict != "violated":
        assert not found.histogram.outside.any()
        assert found.verdict == "undecided", "some tau are possible with x_n = 1 only"
        assert found.delta_upper is not None
        assert found.leakage.profile.at(epsilon) < found.delta_upper
        assert "numerical error" in found.sentence
    assert (found.verdict == "violated") == (epsilon < 2.0)


@pytest.mark.parametrize(
    ("share", "verdict"), [(1.0, "certified"), (1.0 - 1e-7, "violated"), (1.0 + 1e-7, "certified")]
)
def test_a_claim_next_to_the_truth(share: float, verdict: str) -> None:
    """Two-sided noise of scale c / 0.1 has bins with a log ratio of 0.1, exactly: a claim of a bit less is false."""
    test = Sprt(0.73, 0.03, 0.05)
    found = audit(
        Setting(test, private(Laplace, test, 0.1), 0.84), 0.1 * share, Expected(bin_width=100), engine="exact"
    )
    assert found.verdict == verdict
    assert found.bins_outside == 0 or verdict == "violated"


def test_what_outlasts_a_sequence_counts_however_little_it_is() -> None:
    """The last of 3000 ones, changed: tau = 3000 takes x_n = 1, with a probability of 6e-37."""
    test = Sprt(0.73, 0.03, 0.05)
    found = audit(
        Setting(test, Exponential.private(test, 0.1), 0.84), 0.1, Informed(sequence=np.ones(3000, int)), entry=3000
    )
    assert (found.verdict, found.epsilon_lower) == ("violated", math.inf)
    assert 0 < found.delta_lower < 1e-20
    certain = audit(Setting(test, NoNoise(), 0.84), 0.1, Informed(sequence=np.ones(3000, int)), entry=3000)
    assert (certain.verdict, certain.delta_upper) == ("certified", 0.0)
    before = audit(
        Setting(test, Exponential.private(test, 0.1), 0.84), 0.1, Informed(sequence=np.tile([1, 0], 3)), entry=2
    )
    assert before.verdict == "undecided"
    assert "outlast it" in before.sentence
    assert before.delta_upper == pytest.approx(1.0, abs=1e-9)


@given(st.floats(0.2, 0.8), st.floats(0.1, 0.9), st.floats(0.02, 2.0), st.integers(1, 50))
@settings(max_examples=examples(30), deadline=None)
def test_rounding_violates_nothing(p: float, p_phi: float, epsilon: float, width: int) -> None:
    """Where both members have left the gap behind, the exponential law sits on the line: no bin is outside."""
    test = Sprt(p, 0.2 * min(p, 1.0 - p), 0.05)
    assume(abs(p_phi - p) > 2.0 * test.delta)
    found = audit(
        Setting(test, Exponential.private(test, epsilon), p_phi), epsilon, Expected(bin_width=5 * width), engine="exact"
    )
    h, ends = found.histogram, max(found.start_1, found.start_0)
    above = h.lo > ends + 1.0
    line = np.abs(np.abs(h.log_ratio) - epsilon) < 1e-7
    assert not np.any(h.outside & above & line)
    assert np.all((h.log_ratio_low <= h.log_ratio) & (h.log_ratio <= h.log_ratio_high))


@pytest.mark.parametrize("observer", [Expected, Marginal])
@pytest.mark.parametrize("engine", ["exact", "monte_carlo"])
def test_the_widest_bin_holds_all_runs(observer: type[Expected | Marginal], engine: Engine) -> None:
    """It is much wider than the law, and is not filled up with what is not there."""
    sampled = {"runs": 200} if observer is Marginal else {"draws": 50}
    wide = observer(bin_width=2**40, pairs=6, **sampled)  # type: ignore[arg-type]
    found = audit(Setting(NEAR, Exponential.private(NEAR, 0.5), 0.9), 0.5, wide, engine=engine).histogram
    assert set(found.lo) == {0}
    assert set(found.hi) == {2**40}
    assert sum(found.p1) == pytest.approx(1.0, abs=1e-9)
    assert sum(found.p0) == pytest.approx(1.0, abs=1e-9)
