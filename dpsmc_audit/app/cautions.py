"""What a reader must know before using the numbers of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsmc_audit.app.config import Config

if TYPE_CHECKING:
    from dpsmc_audit.exact.averages import WorstErrors
    from dpsmc_audit.stl import Formula
    from dpsmc_audit.tasks.estimate import Estimate

__all__ = ["doubtful_units", "levels_exceeded", "outside_assumption", "two_deltas", "unfinished", "unread_keys"]


def unread_keys(names: Sequence[str], chosen: str | None = None) -> list[str]:
    """Say that keys were given that change nothing.

    Parameters
    ----------
    names : sequence of str
        The keys.
    chosen : str, optional
        What does not read them: ``task=simulate``. None for all points of a sweep.

    Returns
    -------
    list of str
        At most one note.

    Examples
    --------
    >>> unread_keys(["pairs", "draws"], "task=simulate")
    ['task=simulate does not read pairs and draws; --help task=simulate lists what it reads']
    """
    *others, last = names or [""]
    said = f"{', '.join(others)} and {last}" if others else last
    if chosen is None:
        return [f"no point of this sweep reads {said}"] if names else []
    return [f"{chosen} does not read {said}; --help {chosen} lists what it reads"] if names else []


def outside_assumption(config: Config, p_phi: float | None) -> list[str]:
    """Say that p_phi is in the region where no error level is promised.

    Parameters
    ----------
    config : Config
        Checked.
    p_phi : float
        The satisfaction probability.

    Returns
    -------
    list of str
        At most one note.
    """
    assert p_phi is not None
    test = config.test
    if test.assumption_holds(1.0 - p_phi if config.negated else p_phi):
        return []
    return [
        f"Assumption 1 does not hold: |p_phi - p| = {abs(p_phi - config.p):.6g} <= delta = {test.delta:g};"
        " the test promises no error level here"
    ]


def two_deltas(config: Config) -> str | None:
    """Say which delta the key `delta` is, to a user who gave it and may have meant the other one.

    Parameters
    ----------
    config : Config
        Checked.

    Returns
    -------
    str or None
        None if `delta` was not given, or the claim has a privacy delta of its own.
    """
    if "delta" not in config.given or config.claimed_delta or config.mu is not None or config.curve is not None:
        return None
    return (
        f"delta={config.delta:g} is the indifference parameter of the test. The claim is epsilon ="
        f" {config.epsilon:g} with a privacy delta of 0; claimed_delta={config.delta:g} would claim more."
    )


def unfinished(config: Config, count: int) -> list[str]:
    """Say that runs stopped at the cap.

    Parameters
    ----------
    config : Config
        Checked.
    count : int
        How many.

    Returns
    -------
    list of str
        At most one note.
    """
    if not count:
        return []
    return [
        f"{count} runs drew max_steps={config.max_steps} samples without a decision; means count them with these"
        " samples, exact values have no such limit (a larger max_steps lets the runs end)"
    ]


def levels_exceeded(config: Config, worst: WorstErrors) -> list[str]:
    """Say which error probability exceeds its level.

    Parameters
    ----------
    config : Config
        Checked.
    worst : WorstErrors
        Both errors where the hypotheses begin.

    Returns
    -------
    list of str
        A note for each.
    """
    named = (
        ("fp_worst", worst.fp, config.test.fp, "H_alt at p + delta"),
        ("fn_worst", worst.fn, config.test.fn, "H_null at p - delta"),
    )
    return [
        f"{name} = {exact.value:.4g} exceeds its level {level:g}: P({kind}); Wald's bounds are approximate"
        for name, exact, level, kind in named
        if exact.value - exact.error > level
    ]


def doubtful_units(formula: Formula | None, found: Estimate) -> list[str]:
    """Name the intervals of a formula that cover one sample of the traces that were drawn.

    Parameters
    ----------
    formula : Formula, optional
        The specification.
    found : Estimate
        With the traces.

    Returns
    -------
    list of str
        A note for each.
    """
    from dpsmc_audit.stl.units import unit_notes

    traces = found.examples
    return [] if formula is None or traces.points is None else unit_notes(formula, traces.step, traces.points)
