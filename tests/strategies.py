"""Ranges of parameters that properties are tested over."""

from __future__ import annotations

from hypothesis import strategies as st

from dpsmc_audit.sprt import Sprt


@st.composite
def sprts(draw: st.DrawFn, *, finest: float = 0.01, apart: bool = True) -> Sprt:
    """Valid tests, from fine steps to very coarse ones, with one error level or two."""
    p = draw(st.floats(0.1, 0.9))
    delta = draw(st.floats(finest, 0.95 * min(p, 1.0 - p)))
    alpha = draw(st.floats(0.005, 0.3))
    levels = st.none() | st.floats(0.005, 0.3) if apart else st.none()
    return Sprt(p, delta, alpha, draw(levels), draw(levels))


probabilities = st.floats(0.02, 0.98)
epsilons = st.floats(0.02, 5.0)
