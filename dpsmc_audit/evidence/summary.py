"""What a game says of its claim."""

from __future__ import annotations

from dpsmc_audit.evidence.game import Game
from dpsmc_audit.evidence.power import detectable
from dpsmc_audit.evidence.shown import witness_of
from dpsmc_audit.evidence.verdict import Finding, Verdict
from dpsmc_audit.numerics.ties import best_of

__all__ = ["finding_of"]


def finding_of(game: Game, floor: float) -> Finding:
    """Return the verdict of a game, with its bounds and its witness.

    Parameters
    ----------
    game : Game
        A game that is over, or that had all runs there are.
    floor : float
        The probability of the events for which the smallest detectable epsilon is reported.

    Returns
    -------
    Finding
        `violated` if the claim is refuted, otherwise `consistent`.
    """
    rules, predictor = game.rules, game.predictor
    assert predictor is not None
    bounds = game.bounds()
    cells = predictor.cells[0].ends.size
    could = detectable(rules.promise, game.labelled, rules.level, floor, cells)
    if not game.refuted:
        return Finding(Verdict.CONSISTENT, bounds.epsilon, bounds.delta, None, could=could)
    richest = best_of(game.bettor.capital.sum(axis=1))
    witness = witness_of(predictor, rules.promise.points[richest].epsilon)
    return Finding(Verdict.VIOLATED, bounds.epsilon, bounds.delta, witness, could=could)
