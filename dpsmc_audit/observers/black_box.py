"""The audit of any mechanism, known only by its runs: a function that draws outputs for a bit x.

The bit is the entry under test; whatever else the mechanism reads (the other samples, its noise) is up to the
sampler, and so is who the observer is: fix the other samples for one who knows them, draw them for one who does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, SamplerError, require
from dpsmc_audit.evidence.claims import Promise, as_promise
from dpsmc_audit.evidence.game import Bounds, Game, Rules
from dpsmc_audit.evidence.intervals import check_confidence
from dpsmc_audit.evidence.outputs import Outputs, read_outputs
from dpsmc_audit.evidence.scores import Classifier, ClassifierScore
from dpsmc_audit.evidence.shown import Histogram, TradeOff, trade_off
from dpsmc_audit.evidence.summary import finding_of
from dpsmc_audit.observers.base import Audit, Claim
from dpsmc_audit.observers.sentence import BlackBoxWords, Words
from dpsmc_audit.runs.execution import accumulate
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.streams import check_seed
from dpsmc_audit.targets import said

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["FEWEST", "BlackBoxAudit", "Named", "Sampler", "audit_mechanism", "audit_samples"]

FLOOR = 0.01
"""The result tells the smallest epsilon that would have shown on events of this probability, and of others."""

FEWEST = 10
"""The fewest runs of each member."""

_ENDS = (2, 4, 6, 8, 10, 12.5, 15, 20, 25, 30, 40, 50, 60, 80, 100)
"""Blocks end at these numbers of runs times a power of ten: round numbers of runs are ends of blocks."""

LARGEST_BLOCK = 50_000
COMPARED = 20
"""So many runs of a block are compared with the block before."""

_ONE_AT_A_TIME = Lock()
"""A user's function may not allow two calls at once, also not from the threads of a worker."""

_SHUFFLED = 2
"""The number of the first of two streams that put runs into random order."""


class Sampler(Protocol):
    """A function that draws `runs` independent runs with the entry under test set to `x`.

    It returns an array or a list of outputs, or a tuple of columns such as (tau, o). All its randomness must come from
    `rng`.
    """

    def __call__(self, x: int, runs: int, rng: np.random.Generator) -> Any: ...


@dataclass(frozen=True, eq=False)
class LowerProfile:
    """A lower bound on the privacy profile. All values hold together, at the confidence of the audit.

    Parameters
    ----------
    epsilon, delta_lower : array
        At each epsilon the mechanism needs at least this delta.
    """

    epsilon: NDArray[np.float64]
    delta_lower: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class BlackBoxAudit(Audit):
    """What the runs say about the claim that a mechanism is private in the bit x.

    Parameters
    ----------
    histogram : Histogram
        How often each outcome was seen.
    name : str
        Of the sampler.
    runs : int
        Runs of each member that were used: half of the labelled runs.
    used : tuple of int
        How many runs had x = 0, and x = 1.
    bounds : Bounds
        Lower bounds on epsilon, on delta and on the privacy profile.
    curve : TradeOff
        False alarms against misses, with bands.
    views : dict
        The weight of each view of the output in the last prediction.
    stopped : bool
        Whether the evidence, and not the number of runs allowed, ended the audit.
    """

    observer: ClassVar[str] = "black_box"
    prose: ClassVar[type[Words]] = BlackBoxWords
    histogram: Histogram
    name: str
    runs: int
    used: tuple[int, int]
    bounds: Bounds
    curve: TradeOff
    views: dict[str, float]
    stopped: bool

    @property
    def profile(self) -> LowerProfile:
        """The lower bound on the privacy profile, as columns."""
        return LowerProfile(self.bounds.profile_epsilon, self.bounds.profile_delta)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        used = {"runs_used": self.runs, "runs_used_0": self.used[0], "runs_used_1": self.used[1]}
        return {**super().as_dict(), **used, "views": self.views}


def ends_of_blocks() -> Iterator[int]:
    """Yield how many runs are drawn after each block, without end. It does not depend on how many are wanted.

    The first two blocks are of one size: a sampler that brings its own seed returns the same runs for both.

    Yields
    ------
    int
        20, 40, 60, 80, 100, 125, 150, 200, ...
    """
    end, scale = 0, 10
    while True:
        for part in _ENDS:
            while end + LARGEST_BLOCK < int(part * scale):
                end += LARGEST_BLOCK
                yield end
            if int(part * scale) > end:
                end = int(part * scale)
                yield end
        scale *= 10


def _blocks(runs: int, begun: int = 0) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield ((number of the block, its runs), runs done after it), beyond what was `begun`."""
    done = 0
    for number, end in enumerate(ends_of_blocks()):
        if done >= runs:
            return
        if end > begun:
            yield (number, end - done), end
        done = end


def _drawn(sampler: Sampler, name: str, x: int, runs: int, seed: int, block: int, missing: bool) -> Outputs:
    """Draw runs in one call and check them. The random numbers depend on (seed, x, block) alone."""
    call = f"sampler {name}, called with x={x}, runs={runs} (block {block})"
    rng = np.random.default_rng([seed, x, block])
    try:
        with _ONE_AT_A_TIME:
            result = sampler(x, runs, rng)
    except (Exception, SystemExit) as error:
        raise SamplerError(f"{call} raised {said(error)}") from error
    try:
        return read_outputs(result, runs, call, missing=missing)
    except ParameterError as error:
        raise SamplerError(f"{error}") from error


@dataclass(frozen=True, eq=False)
class _Block:
    """Runs with x = 0 and with x = 1, and the beginning of each as it was drawn."""

    members: tuple[Outputs, Outputs]
    begun: tuple[Outputs, Outputs]


def _block(sampler: Sampler, name: str, seed: int, missing: bool, block: int, runs: int) -> _Block:
    """Draw a block of each member and put it into random order, wherever this is called.

    A sampler may sort or group its runs; bets must not see that, and a random order of independent runs is a sequence
    of independent runs.
    """
    drawn = [_drawn(sampler, name, x, runs, seed, block, missing) for x in (0, 1)]
    orders = [np.random.default_rng([seed, _SHUFFLED + x, block]).permutation(runs) for x in (0, 1)]
    mixed = [member.take(order) for member, order in zip(drawn, orders, strict=True)]
    first = [member.take(np.arange(min(COMPARED, runs))) for member in drawn]
    return _Block((mixed[0], mixed[1]), (first[0], first[1]))


class _Evidence:
    """The runs so far, checked to be new ones of one form."""

    def __init__(self, name: str, game: Game) -> None:
        self.name, self.game, self.blocks = name, game, 0
        self._before: list[list[list[Any]]] = []
        self._form: Outputs | None = None

    def add(self, block: _Block) -> bool:
        """Check a block and play with it."""
        begun = [[column.tolist() for column in member.columns] for member in block.begun]
        for x, member in enumerate(block.members):
            call = f"sampler {self.name}, called with x={x} (block {self.blocks})"
            if self._form is None:
                self._form = member.take(np.arange(1))
            try:
                self._form.same_form(member, call)
            except ParameterError as error:
                raise SamplerError(f"{error}") from error
            different = len(set(zip(*begun[x], strict=True)))
            if self._before and self._before[x] == begun[x] and different >= 8:
                raise SamplerError(f"{call} returned the same runs again: all its randomness must come from rng")
        self._before, self.blocks = begun, self.blocks + 1
        return self.game.add(*block.members)

    def saved(self) -> Saved:
        """Return the state of the game. The next block is not compared with the one before."""
        return self.game.saved() | {"blocks": self.blocks}

    def restore(self, saved: Saved) -> None:
        """Restore the state of the game."""
        self.game.restore(saved)
        self.blocks = int(saved["blocks"])


def audit_mechanism(
    sampler: Sampler,
    epsilon: float | Promise,
    *,
    runs: int = 100_000,
    confidence: float = 0.99,
    early: bool = True,
    predictor: Callable[[], Classifier] | None = None,
    missing: bool = False,
    sampling: Sampling = USUAL,
) -> BlackBoxAudit:
    """Audit the claim that a mechanism is differentially private in one bit, from its runs alone.

    A fair coin says for each run whether x is 1 or 0. A predictor guesses it from the output, and bets on the guesses
    refute the claim as soon as they can. P(violated although the claim holds) <= 1 - confidence, and so is P(the bound
    on epsilon exceeds the truth) and P(the bound on delta exceeds the truth), each by itself.

    Parameters
    ----------
    sampler : Sampler
        ``sampler(x, runs, rng)`` returns the outputs of so many independent runs with the bit set to x, in any order:
        an array or a list, or a tuple of columns such as (tau, o). All randomness comes from rng. An attribute `name`
        stands in results and errors.
    epsilon : float or Promise
        The claim: an epsilon with delta = 0, or ``Dp(epsilon, delta)``, ``Gdp(mu)`` or a `Curve`.
    runs : int
        The largest number of runs of each member that is used. Runs are drawn in blocks, and the last block is drawn
        whole; with a round number such as 1000 or 25000 no run is drawn in vain.
    confidence : float
        The confidence of the verdict.
    early : bool
        Whether to stop as soon as the claim is refuted. Otherwise all runs are used, and the bounds are sharper.
    predictor : callable, optional
        Makes a classifier with `fit` and `predict_proba`, as in scikit-learn. It can add power, and never changes the
        guarantee.
    missing : bool
        Whether nan and None are outcomes of their own.
    sampling : Sampling
        The seed, and where runs are drawn. How long a run may be is up to the sampler.

    Returns
    -------
    BlackBoxAudit
        The verdict with its bounds, witness, profile, trade-off curve and histogram.

    Raises
    ------
    SamplerError
        If the sampler or the predictor fails, or returns something else.
    ParameterError
        If something cannot be audited.

    Examples
    --------
    >>> def noisy(x, runs, rng):
    ...     return x + rng.laplace(size=runs)
    >>> found = audit_mechanism(noisy, epsilon=0.5)
    >>> f"{found.verdict}", found.runs < 400
    ('violated', True)
    >>> audit_mechanism(noisy, epsilon=1.0, runs=1000).verdict.value
    'consistent'
    """
    rules = _rules(as_promise(epsilon), runs, confidence, early, sampling)
    name, execution = sampler_name(sampler), sampling.execution
    score = None if predictor is None else ClassifierScore(predictor, sampler_name(predictor))
    evidence, started = _Evidence(name, Game(rules, score)), time.perf_counter()

    def audit() -> BlackBoxAudit:
        seconds = time.perf_counter() - started + execution.spent
        return _found(evidence.game, name, Claim(rules.promise, confidence), seconds)

    here = execution
    if execution.backend == "threads":
        here = replace(execution, backend="serial")  # a user's function may not allow two calls at once
    work = partial(_block, sampler, name, int(sampling.seed), missing)
    try:
        accumulate(work, lambda done: _blocks(runs, done), evidence, here, "runs", 2)
    except ParameterError as error:
        failed = error if isinstance(error, SamplerError) else SamplerError(f"{error}")
        failed.partial = audit() if min(evidence.game.used) >= FEWEST else None
        raise failed from error
    return audit()


def audit_samples(
    ones: Any,
    zeros: Any,
    epsilon: float | Promise,
    *,
    confidence: float = 0.99,
    early: bool = False,
    predictor: Callable[[], Classifier] | None = None,
    missing: bool = False,
    seed: int = 1,
) -> BlackBoxAudit:
    """Audit a claim with runs that one already has.

    The runs of each member are put into random order, and a fair coin says from which member the next one is taken. So
    about as many runs of both members are used, up to the number of the member that has fewer.

    Parameters
    ----------
    ones, zeros : array, list, tuple or Outputs
        Independent runs with x = 1 and with x = 0, as a sampler would return them.
    epsilon : float or Promise
        The claim.
    confidence, early, predictor, missing
        As for `audit_mechanism`.
    seed : int
        Of the random order and of the coin. Choose it before you look at the runs.

    Returns
    -------
    BlackBoxAudit
        The verdict.

    Raises
    ------
    ParameterError
        If the runs cannot be audited.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> audit_samples(1 + rng.laplace(size=2000), rng.laplace(size=3000), 0.5).verdict.value
    'violated'
    """
    members = [_given(runs, x, missing) for x, runs in ((0, zeros), (1, ones))]
    fewest = min(member.runs for member in members)
    require(fewest >= FEWEST, f"audit_samples needs at least {FEWEST} runs of each member, got {fewest}")
    members[0].same_form(members[1], "runs with x=1")
    rules = _rules(as_promise(epsilon), fewest, confidence, early, Sampling(seed))
    score = None if predictor is None else ClassifierScore(predictor, sampler_name(predictor))
    game, started = Game(rules, score), time.perf_counter()
    orders = [
        np.random.default_rng([seed, _SHUFFLED + x, 0]).permutation(member.runs) for x, member in enumerate(members)
    ]
    game.add(members[0].take(orders[0]), members[1].take(orders[1]))
    return _found(game, "samples", Claim(rules.promise, confidence), time.perf_counter() - started)


def _given(runs: Any, x: int, missing: bool) -> Outputs:
    if isinstance(runs, Outputs):
        return runs
    columns = isinstance(runs, tuple) and len(runs) > 0
    count = len(runs[0]) if columns and hasattr(runs[0], "__len__") else len(runs) if hasattr(runs, "__len__") else 0
    return read_outputs(runs, count, f"runs with x={x}", missing=missing)


def _rules(promise: Promise, runs: int, confidence: float, early: bool, sampling: Sampling) -> Rules:
    """Check the numbers of an audit."""
    require(isinstance(confidence, (int, float, np.number)), f"confidence must be a number, got {confidence!r}")
    check_confidence(confidence)
    for what, count in (("runs", runs), ("seed", sampling.seed)):
        require(isinstance(count, (int, np.integer)), f"{what} must be a whole number, got {count!r}")
    require(runs >= FEWEST, f"runs must be at least {FEWEST}, got {runs}")
    check_seed(sampling.seed)
    return Rules(promise, 1.0 - confidence, int(sampling.seed), int(runs), early)


def _found(game: Game, name: str, claim: Claim, seconds: float) -> BlackBoxAudit:
    """Make the result of a game."""
    predictor = game.predictor
    assert predictor is not None
    weights, stopped = np.round(predictor.weights, 6).tolist(), max(game.used) < game.rules.most
    return BlackBoxAudit(
        name=name,
        claim=claim,
        finding=finding_of(game, FLOOR),
        runs=(game.labelled + 1) // 2,
        used=(game.used[0], game.used[1]),
        bounds=game.bounds(),
        curve=trade_off(predictor, game.rules.level, stopped=stopped),
        histogram=Histogram.of(predictor),
        views=dict(zip(predictor.names, weights, strict=True)),
        stopped=stopped,
        seconds=seconds,
    )


@dataclass(frozen=True)
class Named:
    """A user's function with a name for results and errors.

    Parameters
    ----------
    function : callable
        The function: a sampler, or the factory of a predictor.
    name : str
        How it is called.
    """

    function: Callable[..., Any]
    name: str

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the function."""
        return self.function(*given, **named)


def sampler_name(function: Any) -> str:
    """Return the name of a sampler or of a predictor.

    Parameters
    ----------
    function : callable
        The user's code.

    Returns
    -------
    str
        Its attribute `name` if it has one, otherwise the name of its function or class.
    """
    known = getattr(function, "name", None) or getattr(function, "__name__", type(function).__name__)
    return str(known)
