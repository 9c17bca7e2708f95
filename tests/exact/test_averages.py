from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsmc_audit.exact import averages
from dpsmc_audit.exact.averages import exact_error, exact_mean, exact_null_probability, exact_sd, worst_errors
from dpsmc_audit.exact.both_bounds import averaged
from dpsmc_audit.exact.calibration import mechanism_named
from dpsmc_audit.exact.enclosure import Enclosure
from dpsmc_audit.exact.fixed import cells_needed, exit_law, walk_until_exit
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.exact.renewal import renewal
from dpsmc_audit.exact.walk import Steps, turned_up, walds_mean, walds_ruin
from dpsmc_audit.mechanisms import Exponential, Law, NoNoise
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from tests.support.strategies import epsilons, examples, mechanisms, sprts

PAPER = Sprt(0.73, 0.01, 0.01)


def ladder_identity(test: Sprt, law: Exponential, p_phi: float) -> float:
    """Mean of Algorithm 2 by the ladder identity, which no other part of the suite uses.

    ``E[time to reach T] = E[tau+] sum_N P(Lambda_1 > 0, ..., Lambda_N > 0, Lambda_N < T)``, the far bound left out;
    averaged over L each position x counts with P(L > x - B). ``1 / E[tau+]`` is the chance of never coming back to 0.
    """
    mass, base, total, steps = np.ones(1), 0, 1.0, 0
    while True:
        steps += 1
        mass = np.convolve(mass, [1 - p_phi, p_phi])
        ones = base + np.arange(mass.size)
        position = ones * test.s_plus - (steps - ones) * test.s_minus
        keep = (position > 0) & (mass > 1e-20)
        mass, position, base = mass[keep], position[keep], int(ones[keep][0])
        counted = float(mass @ law.survival(position - test.b_up))
        total += counted
        if counted < 1e-13:
            return total / float(mass.sum())


@pytest.mark.parametrize(("alpha", "epsilon"), [(0.01, 0.05), (0.05, 0.2), (0.2, 1.0)])
def test_renewal_equals_the_ladder_identity(alpha: float, epsilon: float) -> None:
    test = Sprt(0.73, 0.01, alpha)
    law = Exponential.private(test, epsilon)
    exact = exact_mean(Setting(test, law, 0.84))
    assert exact.method == "renewal"
    assert exact.value == pytest.approx(ladder_identity(test, law, 0.84), abs=1e-5)


@given(sprts(finest=0.02), epsilons, st.floats(0.05, 0.95), st.sampled_from(["none", "exponential"]))
@settings(max_examples=examples(60), derandomize=True)
def test_exact_values_lie_where_many_runs_say(test: Sprt, epsilon: float, p_phi: float, name: str) -> None:
    """Five standard errors and the stated numerical error; 180 comparisons raise a false alarm once in 10^4 suites."""
    law = mechanism_named(name, test, epsilon)
    runs = 40_000
    drawn = draw_runs(Setting(test, law, p_phi), runs, sampling=Sampling(seed=5))
    mean = exact_mean(Setting(test, law, p_phi))
    assert abs(drawn.tau.mean() - mean.value) <= 5 * drawn.tau.std() / np.sqrt(runs) + mean.error
    null = exact_null_probability(Setting(test, law, p_phi))
    spread = np.sqrt(null.value * (1 - null.value) / runs) + 3 / runs
    assert abs(np.mean(drawn.decision == 1) - null.value) <= 5 * spread + null.error
    sd = exact_sd(Setting(test, law, p_phi))
    if not np.isnan(sd.value):
        kurtosis = float(np.mean((drawn.tau - drawn.tau.mean()) ** 4) / max(drawn.tau.var(), 1e-9) ** 2)
        spread = sd.value * np.sqrt(max(kurtosis - 1, 0) / (4 * runs))
        assert abs(drawn.tau.std() - sd.value) <= 6 * spread + sd.error + 1e-9


@given(sprts(finest=0.03), st.floats(0.1, 5.0), st.floats(0.1, 0.9))
@settings(max_examples=examples(25), derandomize=True)
def test_stated_errors_cover_a_rigorous_bracket(test: Sprt, epsilon: float, p_phi: float) -> None:
    """tau grows with L, so the means at the ends of fine strata of L bracket the mean; the top is cut at 1e-4."""
    law = Exponential.private(test, epsilon)
    edges = np.linspace(0, 1 - 1e-4, 401)
    means = np.array([exit_law(test, p_phi, float(x)).mean for x in law.quantile(edges)])
    share = np.diff(edges)
    longest = exit_law(test, p_phi, float(law.quantile(1 - 1e-9))).mean
    low, high = share @ means[:-1] + 1e-4 * means[-1], share @ means[1:] + 1e-4 * longest
    mean = exact_mean(Setting(test, law, p_phi))
    assert low - mean.error <= mean.value <= high + mean.error


@given(st.data(), sprts(finest=0.02), epsilons, st.floats(0.05, 0.95))
@settings(max_examples=examples(40), deadline=None)
def test_proven_intervals_of_a_mean_meet(data: st.DataObject, test: Sprt, epsilon: float, p_phi: float) -> None:
    """The renewal, the staircases and a plain bracket of laws for fixed bounds hold the same number."""
    setting = Setting(test, data.draw(mechanisms(test)), p_phi)
    found = [exact_mean(setting), averaged(setting, rare=False)]
    if isinstance(setting.mechanism, Exponential) and (records := renewal(setting)) is not None:
        found.append(records.mean())
    if setting.mechanism.atoms is None and cells_needed(Steps.of(test, p_phi), test.b_up + 9.0, test.b_low + 9.0) < 1e6:
        found.append(plain_mean(setting))
    assert all(each.proven for each in found)
    assert max(each.low for each in found) <= min(each.high for each in found)


def plain_mean(setting: Setting) -> Enclosure:
    """tau grows with L: the means at both ends of 400 strata, with Wald's bound for the highest L."""
    test, law, p_phi = setting.test, setting.mechanism, setting.p_phi
    shares = np.append(np.arange(400) / 400, 1.0 - 1e-4)
    inside = np.maximum(law.quantile(shares), test.least_room)
    means = [1.0 if x <= test.least_room else exit_law(test, p_phi, float(x)).mean for x in inside]
    turned, top = turned_up(test, p_phi), inside[-1]
    far = top + max(float(law.quantile(0.9)) - test.no_room, 1e-6) * np.expm1(np.arange(1 << 20) * 2e-5)
    tail = float(np.sum(np.diff(far) * law.survival(far[:-1]))) / 1e-4  # at least E[L - top; L > top]
    high = walds_mean(turned, np.array(turned.near + top), np.array(turned.far + top))[1]
    drift = turned.walk.drift
    rest = (turned.near + top + turned.walk.up + tail) / drift if drift > 0.0 else math.inf
    weights = np.diff(shares)
    low = float(np.sum(weights * means[:-1])) + 1e-4 * means[-1]
    return Enclosure(
        low * (1 - 1e-9), float(np.sum(weights * means[1:])) + 1e-4 * max(rest, float(high)) + 1e-6, "plain"
    )


@given(sprts(finest=0.02), st.floats(-2.0, 2.0), st.floats(0.0, 30.0), st.floats(0.0, 30.0))
@settings(max_examples=examples(60), deadline=None)
def test_walds_bounds_hold_the_law_for_fixed_bounds(test: Sprt, where: float, more: float, other: float) -> None:
    """Near the threshold and beyond it, for coarse and fine steps, and bounds of any width."""
    turned = turned_up(test, min(max(test.p + where * test.delta, 0.01), 0.99))
    step = turned.walk.up + turned.walk.down
    near, far = (0.1 + more) * step, (0.1 + other) * step
    law = walk_until_exit(turned.walk, near, far)
    rare, mean = (ends(turned, np.array(near), np.array(far)) for ends in (walds_ruin, walds_mean))
    assert rare[0] - 1e-12 <= law.alt_probability <= rare[1] + 1e-12
    assert mean[0] - law.mean_error <= law.mean <= mean[1] + law.mean_error


@given(st.data(), sprts(finest=0.02), st.floats(-2.0, 2.0))
@settings(max_examples=examples(40), deadline=None)
def test_error_probabilities_lie_in_a_plain_bracket(data: st.DataObject, test: Sprt, where: float) -> None:
    """Near the threshold, in units of delta. Both bounds apart: P(leave against the drift) at the corners of strata."""
    p_phi = min(max(test.p + where * test.delta, 0.01), 0.99)
    setting = Setting(test, data.draw(mechanisms(test)), p_phi)
    if setting.mechanism.atoms is not None or cells_needed(Steps.of(test, p_phi), test.b_up + 9, test.b_low + 9) > 3e5:
        return  # hundreds of laws of that size are for another day
    turned, law = turned_up(test, p_phi), setting.mechanism
    shares = np.append(np.arange(200) / 200, 1.0 - 1e-4)
    excess = np.maximum(law.quantile(shares), test.least_room)
    low, high = 0.0, 1e-4
    for left, right, weight in zip(excess[:-1].tolist(), excess[1:].tolist(), np.diff(shares).tolist(), strict=True):
        if right <= test.least_room:
            low, high = low + 0.5 * weight, high + 0.5 * weight
            continue
        coin = 0.5 if left <= test.least_room else 0.0
        corners = (turned.near + left, turned.far + right), (turned.near + right, turned.far + left)
        least, most = (walk_until_exit(turned.walk, *bounds).alt_probability for bounds in corners)
        low, high = low + weight * (min(least, coin) if coin else least), high + weight * max(most, coin)
    found = averaged(setting, rare=True)
    assert found.proven
    assert low - 1e-9 <= found.high
    assert found.low <= high + 1e-9
    assert found.error <= 0.02 * found.value + 2e-3


@given(sprts(finest=0.02), st.floats(-3.0, 3.0))
@settings(max_examples=examples(60))
def test_without_noise_everything_is_the_law_for_fixed_bounds(test: Sprt, where: float) -> None:
    p_phi = min(max(test.p + where * test.delta, 0.01), 0.99)
    law = exit_law(test, p_phi)
    null = exact_null_probability(Setting(test, NoNoise(), p_phi))
    assert abs(null.value - law.null_probability) <= null.error + 1e-10
    assert null.error <= 1e-8
    mean = exact_mean(Setting(test, NoNoise(), p_phi))
    assert mean.value == law.mean
    assert mean.error <= 1e-6 * mean.value
    assert exact_sd(Setting(test, NoNoise(), p_phi)).value == pytest.approx(
        np.sqrt(law.second_moment - law.mean**2), rel=1e-6
    )


@pytest.mark.parametrize("p_phi", [0.5, 0.72, 0.74, 0.84])
def test_mirrored_tests_are_mirrored(p_phi: float) -> None:
    """Swapping satisfied and violated, p and 1 - p, the two error levels: the same test upside down."""
    test, mirror = Sprt(0.73, 0.01, 0.01, 0.02, 0.05), Sprt(0.27, 0.01, 0.01, 0.05, 0.02)
    law, mirrored = Exponential.private(test, 0.05), Exponential.private(mirror, 0.05)
    one, other = exact_mean(Setting(test, law, p_phi)), exact_mean(Setting(mirror, mirrored, 1 - p_phi))
    assert one.value == pytest.approx(other.value, rel=1e-6, abs=one.error + other.error)
    up, down = (
        exact_null_probability(Setting(test, law, p_phi)),
        exact_null_probability(Setting(mirror, mirrored, 1 - p_phi)),
    )
    assert up.value == pytest.approx(1 - down.value, abs=up.error + down.error + 1e-9)


def test_error_can_exceed_alpha_with_coarse_steps() -> None:
    """Wald's bounds promise alpha / (1 - alpha), the paper's theorem alpha."""
    test = Sprt(0.9, 0.09, 0.1186)
    worst = worst_errors(test, NoNoise())
    assert worst.fn.value == pytest.approx(0.1267, abs=5e-5)
    assert test.alpha < worst.fn.value <= test.alpha / (1 - test.alpha)
    assert worst.fn.value == pytest.approx(exit_law(test, 0.81).null_probability, abs=1e-9)


@given(sprts(apart=False, finest=0.02), epsilons, st.sampled_from(["none", "exponential"]))
@settings(max_examples=examples(30))
def test_worst_errors_keep_walds_promise(test: Sprt, epsilon: float, name: str) -> None:
    worst = worst_errors(test, mechanism_named(name, test, epsilon))
    promise = test.alpha / (1 - test.alpha)
    assert worst.fp.value - worst.fp.error <= promise
    assert worst.fn.value - worst.fn.error <= promise


@pytest.mark.parametrize("p_phi", [0.0, 1.0])
@pytest.mark.parametrize("name", ["none", "exponential"])
def test_certain_samples_walk_a_straight_line(p_phi: float, name: str) -> None:
    law = mechanism_named(name, PAPER, 0.05)
    drawn = draw_runs(Setting(PAPER, law, p_phi), 20_000, sampling=Sampling(seed=2))
    exact = exact_mean(Setting(PAPER, law, p_phi))
    assert abs(drawn.tau.mean() - exact.value) <= 4 * drawn.tau.std() / np.sqrt(20_000) + 1e-6
    assert exact_error(Setting(PAPER, law, p_phi)).value == 0
    assert set(drawn.decision.tolist()) == {int(p_phi)}


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_walk_exactly_on_its_bound_has_reached_it(steps: int) -> None:
    """p = 1/2 and a bound of whole steps: gambler's ruin, by its closed form and by both kernels."""
    odds = 3.0  # (p + delta) / (p - delta)
    test = Sprt(0.5, 0.25, 1 / (1 + odds**steps))
    law = exit_law(test, 0.75)
    ruin = 1 / (1 + odds**-steps)
    assert law.null_probability == pytest.approx(ruin, abs=1e-9)
    assert law.mean == pytest.approx(steps * (2 * ruin - 1) / 0.5, abs=1e-9)
    for kernel in ("jumps", "steps"):
        drawn = draw_runs(Setting(test, NoNoise(), 0.75), 20_000, kernel=kernel, sampling=Sampling(seed=3))
        assert np.all((drawn.tau - steps) % 2 == 0)
        assert drawn.tau.min() == steps


@pytest.mark.parametrize(
    ("test", "epsilon", "p_phi", "truth"),
    [
        (Sprt(0.73, 0.1, 0.01), 1e-6, 0.95, 4.59e-14),
        (Sprt(0.7517875009093071, 0.11114817019600401, 0.2), 1.2542587558627255e-06, 0.847476295132896, 2.54e-7),
        (Sprt(0.3322851544307872, 0.11748700377044871, 0.17925574757815382), 10.0, 0.3322851544307872, 0.50597),
        (Sprt(0.05, 0.015, 0.4), 2.0, 0.035, 0.25355),
    ],
)
def test_error_probabilities_computed_by_other_code(test: Sprt, epsilon: float, p_phi: float, truth: float) -> None:
    found = exact_null_probability(Setting(test, Exponential.private(test, epsilon), p_phi))
    value = (
        min(found.value, 1 - found.value, key=lambda x: abs(x - truth))
        if truth > 1e-3
        else (averages._rare(Setting(test, Exponential.private(test, epsilon), p_phi)).value)
    )
    assert value == pytest.approx(truth, rel=5e-3, abs=found.error if truth > 1e-3 else 0.0)


def test_truth_inside_the_indifference_region_is_p_phi_above_p() -> None:
    law = Exponential.private(PAPER, 0.05)
    wrong = exact_error(Setting(PAPER, law, 0.7301))
    assert wrong.value == pytest.approx(1 - exact_null_probability(Setting(PAPER, law, 0.7301)).value)
    at_threshold = exact_error(Setting(PAPER, law, 0.73))
    assert at_threshold.value == pytest.approx(exact_null_probability(Setting(PAPER, law, 0.73)).value)


def test_law_by_renewal_and_by_strata_agree() -> None:
    test = Sprt(0.73, 0.03, 0.05)
    law = Exponential.private(test, 0.1)
    records = renewal(Setting(test, law, 0.84))
    assert records is not None
    by_records = records.law()
    k = np.arange(1, by_records.null.size + 1)
    assert k @ (by_records.null + by_records.alt) == pytest.approx(exact_mean(Setting(test, law, 0.84)).value, abs=0.02)
    medians = law.quantile((np.arange(400) + 0.5) / 400)
    strata = np.zeros(by_records.null.size + 1)
    for x in medians:
        tail = exit_law(test, 0.84, float(x)).survival()[: strata.size]
        strata[: tail.size] += tail / 400
    assert np.max(np.abs(by_records.survival() - strata)) < 1 / 400
    assert exact_law(Setting(test, law, 0.84)).method == "renewal"


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("p_phi", [0.73, 0.84])
def test_tiny_indifference_regions_do_not_hang(delta: float, p_phi: float) -> None:
    """Wald's identities take over; their answer approaches Wald's approximation as steps shrink."""
    test = Sprt(0.73, delta, 0.01)
    exact = exact_mean(Setting(test, NoNoise(), p_phi))
    assert exact.value == pytest.approx(test.wald(p_phi).samples, rel=5 * delta + 1e-6)
    assert exact.error < 1e-3 * exact.value


def test_steps_too_small_to_show_beside_the_bounds_still_leave_room() -> None:
    test, law = Sprt(p=0.73, delta=1e-9, alpha=0.01), Law.of("norm")
    assert test.least_room > test.no_room
    assert 0.0 < exact_mean(Setting(test, law, 0.84)).value < 1e12
