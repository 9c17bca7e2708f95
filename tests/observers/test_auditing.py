from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpsmc_audit import Exponential, NoNoise, ParameterError, Sprt
from dpsmc_audit.evidence.bounds import Parts
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.base import Engine
from dpsmc_audit.observers.expected import audit as module
from dpsmc_audit.observers.expected import picture
from dpsmc_audit.observers.expected.audit import Expected, auto_bin_width
from dpsmc_audit.observers.expected.law import expected_law
from dpsmc_audit.observers.expected.picture import Picture
from dpsmc_audit.observers.expected.verdicts import support_gap_evidence
from dpsmc_audit.sampling.pairs import PairSums
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent, Setting

PAPER = Sprt(0.73, 0.01, 0.01)
LAW = Exponential.private(PAPER, 0.01)


@pytest.fixture
def one_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits that differ in their seeds only share the exact law beside them."""
    monkeypatch.setattr(module, "expected_law", cache(expected_law))


def test_exact_audit_of_the_papers_parameters() -> None:
    found = audit(Setting(PAPER, LAW, 0.84), 0.01, engine="exact")
    assert (found.verdict, found.epsilon_lower) == ("violated", math.inf)
    assert found.delta_lower == pytest.approx(0.009218, abs=1e-5)
    assert found.bins_outside == 1
    assert found.start_0 - found.start_1 == pytest.approx(PAPER.expected_sensitivity(0.84), abs=0.003)
    assert "no finite epsilon holds" in found.sentence


def test_sampled_audit_at_the_papers_size() -> None:
    found = audit(Setting(PAPER, LAW, 0.84), 0.01)
    assert found.verdict == "violated"
    assert 0 < found.delta_lower <= found.exact.delta_lower + 1e-4
    # the exact law sits on the tolerance line: most of what is outside is there by chance
    assert found.by_chance == pytest.approx(found.bins_outside, abs=12)
    assert found.bins_outside > 10


def test_the_violation_is_found_on_its_own_in_99_of_100_seeds() -> None:
    pair = Adjacent(Setting(PAPER, LAW, 0.84))
    verdicts = [f"{support_gap_evidence(pair, 500, Sampling(s), confidence=0.99)[0].verdict}" for s in range(100)]
    assert verdicts.count("violated") >= 99


@pytest.mark.parametrize(("p_phi", "confidence", "pairs"), [(0.84, 0.99, 500), (0.6, 0.95, 200), (0.84, 0.8, 240)])
def test_alarms_on_a_true_null_keep_to_their_level(p_phi: float, confidence: float, pairs: int) -> None:
    """Both members x_n = 1, independent sequences, 300 seeds: alarms within three sigma of the nominal rate."""
    options: dict[str, Any] = {"confidence": confidence, "bits": (1, 1), "shift": pairs}
    pair = Adjacent(Setting(PAPER, LAW, p_phi))
    alarms = sum(support_gap_evidence(pair, pairs, Sampling(s), **options)[0].verdict == "violated" for s in range(300))
    rate = 1 - confidence
    assert alarms <= 300 * rate + 3 * math.sqrt(300 * rate * confidence)


@pytest.mark.usefixtures("one_law")
def test_intervals_cover_the_exact_ratio() -> None:
    """Bins with at least 100 draws on either side, 20 audits: at 99 % no more than 5 % are missed."""
    test = Sprt(0.73, 0.03, 0.05)
    law = Exponential.private(test, 0.05)
    missed = total = 0
    for seed in range(20):
        h = audit(
            Setting(test, law, 0.84), 0.05, Expected(pairs=100, draws=2000, bin_width=60), sampling=Sampling(seed=seed)
        ).histogram
        solid = (np.minimum(h.p1, h.p0) >= 0.05) & np.isfinite(h.exact_log_ratio)
        missed += int(np.sum(solid & ((h.exact_log_ratio < h.log_ratio_low) | (h.exact_log_ratio > h.log_ratio_high))))
        total += int(solid.sum())
    assert total > 60
    assert missed <= 0.05 * total


@pytest.mark.parametrize("engine", ["exact", "monte_carlo"])
def test_below_the_threshold_the_members_change_places(engine: Engine) -> None:
    found = audit(Setting(PAPER, LAW, 0.6), 0.01, Expected(bin_width=None), engine=engine)
    assert found.verdict == "violated"
    assert found.witness is not None
    assert found.witness.p1 == 0
    assert found.witness.p0 > 0


def test_without_noise_everything_is_revealed() -> None:
    for engine in ("exact", "monte_carlo"):
        found = audit(Setting(PAPER, NoNoise(), 0.84), 0.01, engine=engine)
        assert (found.verdict, found.delta_lower) == ("violated", 1.0)


def test_an_entry_that_no_run_reaches_shows_nothing() -> None:
    found = audit(Setting(PAPER, NoNoise(), 0.84), 0.01, Expected(pairs=300, draws=10), entry=3000)
    assert found.verdict == "consistent"
    assert found.exact.verdict == "certified"
    capped = audit(Setting(PAPER, LAW, 0.84), 0.01, Expected(pairs=300, draws=10), sampling=Sampling(max_steps=5))
    assert capped.finding.detectable is None
    later = audit(Setting(PAPER, LAW, 0.84), 0.01, Expected(pairs=300, draws=10), entry=1000)
    assert later.verdict == "consistent"
    assert later.finding.detectable is not None
    assert "they would have shown" in later.sentence


@pytest.mark.parametrize(
    ("test", "p_phi", "epsilon", "entry"),
    [
        (Sprt(0.114815, 0.069961, 0.1, 0.01853, 0.3017), 0.0026583, 0.1, 3),
        (Sprt(0.930687, 0.021633, 0.1, 0.15868, 0.02385), 0.972292, 0.1, 3),
        (Sprt(0.836096, 0.055352, 0.1, 0.38901, 0.06474), 0.991782, 0.1, 1),
    ],
)
@pytest.mark.parametrize("pairs", [10, 500])
def test_rare_sequences_do_not_make_false_alarms(
    test: Sprt, p_phi: float, epsilon: float, entry: int, pairs: int
) -> None:
    """Where ten pairs look alike and a rare one decides the mean: any alarm must be a true one, in 60 seeds."""
    law = Exponential.private(test, epsilon)
    exact = audit(Setting(test, law, p_phi), epsilon, Expected(bin_width=None), entry=entry, engine="exact")
    for seed in range(60):
        pair, sampling = Adjacent(Setting(test, law, p_phi), (entry,)), Sampling(seed, 10**6)
        found, _ = support_gap_evidence(pair, pairs, sampling, confidence=0.99)
        assert found.delta_lower <= exact.gap.mass + 1e-6
        assert pairs >= 200 or found.verdict == "consistent"


def test_the_tail_of_the_histogram_is_not_cut_off() -> None:
    """Largest log ratio 0.5 against a claim of 1: nothing is violated, in the last bins neither."""
    test = Sprt(0.73, 0.1, 0.1)
    found = audit(
        Setting(test, Exponential.private(test, 0.5), 0.84), 1.0, Expected(bin_width=10), entry=100, engine="exact"
    )
    assert found.verdict in ("certified", "undecided")
    solid = (found.histogram.p1 > 1e-7) & (found.histogram.p0 > 1e-7)
    assert np.max(np.abs(found.histogram.log_ratio[solid])) == pytest.approx(0.5, abs=0.02)


def test_delta_is_not_overstated() -> None:
    """Values computed by other code: at entry 10 the true delta is 0.0092176; over integers 0.3379, not 0.4071."""
    late = audit(Setting(PAPER, LAW, 0.84), 0.01, entry=10, engine="exact")
    assert 0.0091 < late.delta_lower <= 0.0092177
    test = Sprt(0.73, 0.1, 0.1)
    coarse = audit(
        Setting(test, Exponential.private(test, 1.0), 0.84), 1.0, Expected(bin_width=50), entry=5, engine="exact"
    )
    assert 0.25 < coarse.delta_lower <= 0.3380


def test_a_gap_that_ends_on_an_integer_counts() -> None:
    """p_phi = 0: 63 samples with x_1 = 0, 64 with x_1 = 1, exactly."""
    found = audit(Setting(PAPER, LAW, 0.0), 0.01, engine="exact")
    assert (found.gap.start, found.gap.end) == pytest.approx((63, 64))
    assert found.gap.integer == 64
    assert (found.verdict, found.epsilon_lower) == ("violated", math.inf)
    # after 63 samples the walk is 63 s_minus - b_low beyond its bound, and stops for every L up to there
    stopped = 1 - float(LAW.survival(63 * PAPER.s_minus - PAPER.b_low))
    assert found.delta_lower == pytest.approx(stopped, abs=1e-9)


def test_bins_are_chosen_where_asked() -> None:
    assert auto_bin_width(Setting(PAPER, LAW, 0.84)) == pytest.approx(140, rel=0.1)
    found = audit(Setting(PAPER, LAW, 0.73), 0.01, Expected(pairs=20, draws=50, bin_width=None))
    assert 4 < found.histogram.lo.size < 100


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"entry": 0}, "entry"),
        ({"entry": 11, "max_steps": 10}, "entry"),
        ({"bin_width": 0}, "bin_width"),
        ({"pairs": 3}, "pairs"),
        ({"draws": 1}, "draws"),
        ({"confidence": 1.0}, "confidence"),
        ({"engine": "exakt"}, "engine must be"),
        ({"epsilon": 0.0}, "epsilon"),
    ],
)
def test_impossible_requests_are_named(change: dict[str, Any], word: str) -> None:
    options: dict[str, Any] = {"epsilon": 0.01} | change
    own = {name: options.pop(name) for name in change if name in ("bin_width", "pairs", "draws")}
    sampling = Sampling(max_steps=options.pop("max_steps", 10**7))
    with pytest.raises(ParameterError, match=word):
        audit(Setting(PAPER, LAW, 0.84), observer=Expected(**own), sampling=sampling, **options)


@pytest.mark.usefixtures("one_law")
@pytest.mark.parametrize(("epsilon", "entry"), [(0.01, 1), (0.05, 1), (0.01, 400)])
def test_what_chance_puts_outside_is_what_it_does_put_outside(epsilon: float, entry: int) -> None:
    """Bins whose exact ratio is fair, averaged over 16 seeds: within four standard errors of the prediction."""
    law = Exponential.private(PAPER, epsilon)
    observed: list[int] = []
    expected: list[float] = []
    for seed in range(16):
        found = audit(
            Setting(PAPER, law, 0.84), epsilon, Expected(draws=5000), entry=entry, sampling=Sampling(seed=seed)
        )
        fair = np.abs(found.histogram.exact_log_ratio) <= epsilon + 1e-6
        observed.append(int(np.sum(found.histogram.outside & fair)))
        assert found.by_chance is not None
        expected.append(found.by_chance)
    error = float(np.std(observed, ddof=1)) / 4
    assert float(np.mean(observed)) == pytest.approx(float(np.mean(expected)), abs=4 * error)


# --- the verdict on the drawn pairs ---------------------------------------------------------------------------------


def _sums(one: np.ndarray, zero: np.ndarray) -> PairSums:
    """Averages of a made-up group of a thousand pairs, by sorted L."""
    return PairSums(np.arange(float(one.size)), np.array([[one, zero]]), np.array([1000]), 0, 0)


def _given_pairs(one: np.ndarray, zero: np.ndarray, epsilon: float) -> Finding | None:
    found = Picture(140, seed=1)
    found.add(_sums(one, zero))
    return found.given_pairs(epsilon, 0.99, 0.01)


def test_given_pairs_see_what_one_member_alone_can_reach() -> None:
    """Averages from 100 on for one member and from 104.5 on for the other; 10^4 draws, claimed epsilon 0.5."""
    rng = np.random.default_rng(1)
    excess = np.sort(rng.exponential(300.0, 10_000))
    one, zero = ((1000 * (start + excess)).astype(np.int64) for start in (100.0, 104.5))
    found = _given_pairs(one, zero, 0.5)
    assert found is not None
    assert found.verdict == "violated"
    assert found.witness is not None
    assert found.witness.name == "average termination time < 104"
    assert found.witness.p0 == 0.0
    assert found.delta_lower < 1 - np.exp(-4.5 / 300)
    same = _given_pairs(one, one, 1e-6)
    assert same is not None
    assert same.verdict == "consistent"
    assert _given_pairs(one[:19], zero[:19], 0.5) is None


def test_given_pairs_are_split_at_random_and_not_by_the_order_of_l(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws of L are sorted; each part is a random tenth, third or so of them, not every twentieth."""
    caught: list[Parts] = []

    def spy(parts: Parts, *arguments: object, **more: object) -> Finding:
        caught.append(parts)
        return Finding(Verdict.CONSISTENT, 0.0, 0.0, None)

    monkeypatch.setattr(picture, "bounded_verdict", spy)
    every = 1000 * np.arange(2000)
    _given_pairs(every, every, 0.5)
    places = caught[0].members[0][0].tau
    assert places.size == 200
    assert len(set(np.diff(places).tolist())) > 10


def test_a_witness_made_of_the_likeliest_averages_has_a_name() -> None:
    """With coarse steps the drawn pairs are told apart by a set of bins; averages come without a decision."""
    test = Sprt(0.5, 0.2, 0.05)
    setting = Setting(test, Exponential.private(test, 0.2), 0.5)
    found = audit(setting, 0.2, Expected(bin_width=5, pairs=40, draws=500))
    assert found.given_pairs is not None
    assert found.given_pairs.witness is not None
    assert "average termination time" in found.given_pairs.witness.name
    assert "and o" not in found.given_pairs.witness.name


def test_no_delta_above_one_is_stated() -> None:
    """A claim without drift whose edges are only estimated: what the error leaves open is at most all."""
    test = Sprt(0.5, 0.2, 0.05)
    setting = Setting(test, Exponential.private(test, 0.2), 0.5)
    found = audit(setting, 5.0, Expected(bin_width=5), engine="exact")
    assert (found.verdict, found.delta_upper) == ("undecided", 1.0)
