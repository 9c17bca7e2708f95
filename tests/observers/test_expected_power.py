"""What the sampled expected audit says it would have found is found as often as said."""

from __future__ import annotations

import numpy as np

from dpsmc_audit.evidence.intervals import student_quantile
from dpsmc_audit.evidence.verdict import Verdict
from dpsmc_audit.observers.expected.verdicts import CANDIDATES, _Differences, _gap_verdict

HALF, AUDITS = 250, 300


def _half(rng: np.random.Generator, difference: float) -> _Differences:
    """Half of the pairs: the early member is earlier by `difference` at the smallest L, and by less at larger ones."""
    drift = np.linspace(0.0, 40.0, CANDIDATES)
    one, zero = (np.rint(rng.normal(mean, 40.0, size=(HALF, 1)) - drift) for mean in (difference, -60.0))
    sums, squares = ([[int(x) for x in (z**power).sum(axis=0)] for z in (one, zero)] for power in (1, 2))
    return _Differences(HALF, np.array(sums, object), np.array(squares, object), 1)


def test_the_detectable_difference_is_found_nine_times_in_ten() -> None:
    """Within 85 to 95 % of 300 audits; the standard error of the share is 1.7 %."""
    rng, level = np.random.default_rng(420), student_quantile(HALF - 1, 0.99)
    mass = np.linspace(0.01, 1.0, CANDIDATES)
    stated = [_gap_verdict(_half(rng, 0.0), _half(rng, 0.0), mass, level).detectable for _ in range(20)]
    difference = float(np.mean([each for each in stated if each is not None]))
    found = [_gap_verdict(_half(rng, difference), _half(rng, difference), mass, level).verdict for _ in range(AUDITS)]
    assert 0.85 <= np.mean([verdict == Verdict.VIOLATED for verdict in found]) <= 0.95
