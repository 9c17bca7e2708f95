from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.exact.averages import exact_mean, worst_errors
from dpsmc_audit.exact.calibration import private
from dpsmc_audit.exact.laws import exact_law
from dpsmc_audit.mechanisms import Laplace, Truncated
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.expected.audit import Expected
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import draw_runs
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt
from tests.support.strategies import epsilons, sprts

PAPER = Sprt(0.73, 0.01, 0.01)


@pytest.mark.processor
def test_laplace_at_the_papers_parameters() -> None:
    """Bound, price and errors, the errors by two exact ways: a bracket over L, and the law of (tau, o)."""
    law = private(Laplace, PAPER, 0.01)
    assert PAPER.b_up + law.center == pytest.approx(34.15, abs=0.05)
    assert exact_mean(Setting(PAPER, law, 0.84)).value == pytest.approx(3078, abs=6)
    worst = worst_errors(PAPER, law)
    assert worst.fp.value + worst.fp.error <= 0.01
    assert worst.fn.value + worst.fn.error <= 0.01
    assert max(worst.fp.value, worst.fn.value) > 0.0099  # no more room than needed


@pytest.mark.processor
@pytest.mark.parametrize("kind", [Laplace, Truncated])
def test_errors_by_the_law_are_those_of_the_bracket(kind: type[Laplace] | type[Truncated]) -> None:
    test = Sprt(0.73, 0.03, 0.05)
    law = private(kind, test, 0.2)
    worst = worst_errors(test, law)
    above, below = exact_law(Setting(test, law, 0.76)), exact_law(Setting(test, law, 0.70))
    assert above.alt.sum() == pytest.approx(worst.fp.value, abs=worst.fp.error + above.scatter)
    assert below.null.sum() == pytest.approx(worst.fn.value, abs=worst.fn.error + below.scatter)
    assert max(above.alt.sum(), below.null.sum()) <= 0.05 + 2e-4


@given(sprts(finest=0.04), epsilons)
@settings(max_examples=8, deadline=None, derandomize=True)
def test_calibrated_noise_keeps_both_levels(test: Sprt, epsilon: float) -> None:
    """Exactly, and in 4000 runs at either end of the indifference region within 5 standard errors."""
    for kind in (Laplace, Truncated):
        law = private(kind, test, epsilon)
        worst = worst_errors(test, law)
        assert worst.fp.value + worst.fp.error <= test.fp + 1e-12
        assert worst.fn.value + worst.fn.error <= test.fn + 1e-12
        for p_phi, wrong, level in ((test.p + test.delta, 0, test.fp), (test.p - test.delta, 1, test.fn)):
            drawn = draw_runs(Setting(test, law, p_phi), 4000, sampling=Sampling(seed=3))
            assert np.mean(drawn.decision == wrong) <= level + 5 * np.sqrt(level / 4000)


@pytest.mark.parametrize(("width", "verdict"), [(140, "certified"), (1, "violated")])
def test_laplace_keeps_the_papers_definition_at_the_papers_resolution(width: int, verdict: str) -> None:
    """Every log ratio of bins of 140 samples within epsilon; with single samples the first steps show, delta 3.0e-4."""
    found = audit(Setting(PAPER, private(Laplace, PAPER, 0.01), 0.84), 0.01, Expected(bin_width=width), engine="exact")
    assert found.verdict == verdict
    if width == 140:
        known = (found.histogram.p1 + found.histogram.p0) > 1e-8
        assert np.max(np.abs(found.histogram.log_ratio[known])) <= 0.01 + 1e-6
        assert found.leakage.profile.at(0.01) < 1e-12
    else:
        assert found.leakage.profile.at(0.01) == pytest.approx(3.0e-4, abs=1e-6)


def test_what_cannot_be_reached_is_said() -> None:
    with pytest.raises(ParameterError, match=r"cannot keep alpha=1e-06.*raise epsilon or delta"):
        private(Laplace, Sprt(0.5, 1e-6, 1e-6), 1e-6)
