"""Ranges of parameters that properties are tested over."""

from __future__ import annotations

import os
from collections.abc import Callable

from hypothesis import strategies as st

from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
from dpsmc_audit.sprt import Sprt


def examples(count: int) -> int:
    """Of a property that takes a second an example: a quarter on CI, where they are the same every time."""
    return max(count // 4, 5) if os.environ.get("CI") else count


@st.composite
def sprts(draw: st.DrawFn, *, finest: float = 0.01, apart: bool = True) -> Sprt:
    """Valid tests, from fine steps to very coarse ones, with one error level or two."""
    p = draw(st.floats(0.1, 0.9))
    delta = draw(st.floats(finest, 0.95 * min(p, 1.0 - p)))
    alpha = draw(st.floats(0.005, 0.3))
    levels = st.none() | st.floats(0.005, 0.3) if apart else st.none()
    return Sprt(p, delta, alpha, draw(levels), draw(levels))


@st.composite
def mechanisms(draw: st.DrawFn, test: Sprt) -> Mechanism:
    """Any law for L, scaled to the test: none, one-sided, two-sided (with and without a coin), smooth, discrete."""
    epsilon = draw(epsilons)
    scale = test.step_sum / epsilon
    kinds: list[Callable[[], Mechanism]] = [
        NoNoise,
        lambda: Exponential.private(test, epsilon),
        lambda: Laplace(draw(st.floats(0.0, 4.0)) * scale, scale),
        lambda: Truncated(draw(st.floats(-1.0, 3.0)) * scale, scale, draw(st.floats(0.0, 0.9)) * test.no_room),
        lambda: Law.of("gamma", a=draw(st.floats(0.5, 4.0)), scale=scale),
        lambda: Law.of("norm", loc=draw(st.floats(-1.0, 3.0)) * scale, scale=scale),
        lambda: Law.of("poisson", mu=draw(st.floats(0.5, 5.0)), loc=draw(st.integers(-2, 1))),
    ]
    return draw(st.sampled_from(kinds))()


probabilities = st.floats(0.02, 0.98)
epsilons = st.floats(0.02, 5.0)
