"""The two nouns that every audit is about: a test with its noise on a system, and the samples that change."""

from __future__ import annotations

from dataclasses import dataclass

from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt

__all__ = ["Setting"]


@dataclass(frozen=True)
class Setting:
    """A test with its noise, run on a system.

    Parameters
    ----------
    test : Sprt
        The sequential test and its bounds.
    mechanism : Mechanism
        The law of the noise L that is added to both bounds.
    p_phi : float
        The probability that a sample of the system satisfies the specification.

    Examples
    --------
    >>> from dpsmc_audit import Exponential, Sprt
    >>> test = Sprt(p=0.73, delta=0.01, alpha=0.01)
    >>> Setting(test, Exponential.private(test, epsilon=0.01), p_phi=0.84).p_phi
    0.84
    """

    test: Sprt
    mechanism: Mechanism
    p_phi: float
