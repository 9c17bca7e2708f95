"""Mechanisms from outside the package: ``mechanism=python mechanism.target=package.module:callable``."""

from __future__ import annotations

import numpy as np

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.targets import load_target, said

__all__ = ["own_mechanism"]


def own_mechanism(target: str, test: Sprt, epsilon: float) -> Mechanism:
    """Make the mechanism that a user's callable returns, and check that it is one.

    Parameters
    ----------
    target : str
        ``package.module:callable``. It is called as ``callable(test, epsilon)``.
    test : Sprt
        The test whose bounds are randomised.
    epsilon : float
        The privacy level.

    Returns
    -------
    Mechanism
        The law of L.

    Raises
    ------
    ParameterError
        If the callable cannot be imported, fails, or returns something else than a law for L.

    Examples
    --------
    >>> own_mechanism("dpsmc_audit:Exponential.private", Sprt(p=0.73, delta=0.01, alpha=0.01), 0.05).name
    'exponential'
    """
    make, where = load_target("mechanism.target", target), f"mechanism.target={target}"
    try:
        law = make(test, epsilon)
        lacking = [name for name in ("name", "atoms", "survival", "quantile") if not hasattr(law, name)]
        require(not lacking, f"{where} must return a Mechanism, got {type(law).__name__} without {', '.join(lacking)}")
        hash(law)
        _check_law(law, test, where)
    except (KeyboardInterrupt, ParameterError):
        raise
    except BaseException as error:  # a user's code may raise anything, SystemExit too
        raise ParameterError(f"{where} failed: {said(error)}") from error
    return law  # type: ignore[no-any-return]


def _check_law(law: Mechanism, test: Sprt, where: str) -> None:
    """Check that survival and quantile describe one law: P(L > q) <= 1 - u <= P(L >= q) at the quantile q of u."""
    shares = np.array([0.01, 0.25, 0.5, 0.75, 0.99])
    values = np.asarray(law.quantile(shares), np.float64)
    good = values.shape == shares.shape and bool(np.all(np.isfinite(values)) and np.all(np.diff(values) >= 0.0))
    require(good, f"{where}: quantile must return finite values that do not fall, got {values.tolist()}")
    above, from_here = (np.asarray(law.survival(at), np.float64) for at in (values, np.nextafter(values, -np.inf)))
    fits = above.shape == from_here.shape == shares.shape
    fits = fits and bool(np.all(above <= 1.0 - shares + 1e-6) and np.all(from_here >= 1.0 - shares - 1e-6))
    require(fits, f"{where}: survival(quantile(u)) must be 1 - u, got {above.tolist()} for u in {shares.tolist()}")
    room = float(law.survival(test.no_room)) > 1e-6
    require(room, f"{where}: no L leaves room between the bounds, a coin would decide every run")
