"""Barrier mechanisms: laws for the excess L that is drawn once and added to both bounds of the test.

A walk with excess record ``X_k = max_j max(Lambda_j - b_up, -Lambda_j - b_low)`` stops at the first k with
``X_k >= L``. So the law of L determines the mechanism: ``P(tau > k) = survival(X_k)``. If L leaves no room between the
bounds (``Sprt.no_room``), the release is tau = 1 and a fair coin, whatever the sample.
"""

from __future__ import annotations

from dpsmc_audit.mechanisms.any_law import Law
from dpsmc_audit.mechanisms.exponential import Exponential, NoNoise
from dpsmc_audit.mechanisms.laplace import Laplace, Truncated
from dpsmc_audit.mechanisms.protocol import Atoms, Mechanism, check_epsilon

__all__ = ["Atoms", "Exponential", "Laplace", "Law", "Mechanism", "NoNoise", "Truncated", "check_epsilon"]
