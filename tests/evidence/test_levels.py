"""How often an audit is wrong on exactly private mechanisms, looked at after every run.

By hand: ``python -m tests.evidence.test_levels 5000 --log levels.log`` (one repetition takes about 30 ms).
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dpsmc_audit.evidence.game import Game, Rules, _largest
from dpsmc_audit.evidence.scores import ClassifierScore
from dpsmc_audit.observers.black_box import _block, _blocks
from tests.support.private_pairs import PAIRS, Private

LEVEL, RUNS = 0.05, 500
ERRORS = ("refuted", "epsilon", "delta", "profile")
"""A claim that holds is refuted; a lower bound, or any of the profile, exceeds the truth."""


def played(pair: Private, seed: int, runs: int = RUNS, level: float = LEVEL) -> Game:
    """All runs of a game, whatever it finds."""
    score = None if pair.predictor is None else ClassifierScore(pair.predictor, "hostile")
    game = Game(Rules(pair.claim, level, seed, runs, early=False), score)
    for (block, count), _ in _blocks(runs):
        zero, one = _block(pair.draw, "pair", seed, pair.missing, block, int(count * pair.more)).members
        game.add(zero, one.take(np.arange(count)))
    return game


def errors(pair: Private, game: Game) -> list[bool]:
    """What is wrong. Bounds are those of the ledgers, before the verdict corrects them."""
    enough = math.log(1.0 / game.rules.level)
    epsilon = _largest(game.at_delta.epsilon, game.at_delta.best[:, 0] >= enough)
    ledger, main, found = game.profile, game.rules.promise.main, game.bounds()
    own = int(np.argmax(ledger.epsilon == main.epsilon))
    delta = _largest(ledger.delta[0], ledger.best[own] >= enough)
    truth = np.array([pair.profile(at) for at in found.profile_epsilon])
    wrong_band = bool(np.any(found.profile_delta > truth + 1e-9))
    return [game.refuted, epsilon > pair.epsilon + 1e-9, delta > pair.profile(main.epsilon) + 1e-9, wrong_band]


def counted(name: str, first: int, count: int) -> np.ndarray:
    """How many of so many repetitions are wrong, in each way."""
    pair = PAIRS[name]
    return np.asarray(np.sum([errors(pair, played(pair, seed)) for seed in range(first, first + count)], axis=0))


def most(repetitions: int) -> float:
    """The level and three standard deviations: a right auditor fails for less than one pair in 700."""
    return LEVEL + 3.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_a_claim_that_holds_is_refuted_at_the_level(name: str) -> None:
    repetitions = 300
    assert np.all(counted(name, 10**6, repetitions) <= repetitions * most(repetitions))


def study(repetitions: int, processes: int, log: Path, part: int = 50) -> None:
    """Repeat every pair, a part at a time, and write how far it is after each part of all pairs."""
    total = dict.fromkeys(PAIRS, np.zeros(len(ERRORS), int))
    with ProcessPoolExecutor(processes) as pool:
        for first in range(0, repetitions, part):
            count = min(part, repetitions - first)
            for name, found in zip(PAIRS, pool.map(partial(counted, first=first, count=count), PAIRS), strict=True):
                total[name] = total[name] + found
                done, share = first + count, total[name] / (first + count)
                mark = "ABOVE" if share.max() > most(done) else ""
                with log.open("a") as file:
                    figures = "  ".join(f"{what} {x:.4f}" for what, x in zip(ERRORS, share, strict=True))
                    file.write(f"{done:5d} {name:30s} {figures} {mark}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", type=int)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--log", type=Path, required=True)
    given = parser.parse_args()
    study(given.repetitions, given.processes, given.log)
