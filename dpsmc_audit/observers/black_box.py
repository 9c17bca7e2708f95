"""The audit of any sequential mechanism, known only by its runs: a function that draws (tau, o) for a bit x.

The bit is the entry under test; whatever else the mechanism reads (the other samples, its noise) is up to the
sampler, and so is who the observer is: fix the other samples for one who knows them, draw them for one who does not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.evidence.bounds import FEWEST, bounded_verdict
from dpsmc_audit.evidence.events import LONGEST, Counted, joined, outcome_code
from dpsmc_audit.evidence.gathered import Gathered, Outcomes
from dpsmc_audit.evidence.intervals import check_confidence
from dpsmc_audit.evidence.profiles import check_floor
from dpsmc_audit.evidence.verdict import METHODS, Method
from dpsmc_audit.observers.base import Audit, Claim
from dpsmc_audit.observers.sentence import BlackBoxWords, Words
from dpsmc_audit.runs.execution import AHEAD, accumulate
from dpsmc_audit.sampling.plan import USUAL, Sampling
from dpsmc_audit.sampling.streams import check_seed
from dpsmc_audit.targets import said

if TYPE_CHECKING:
    from dpsmc_audit.evidence.anytime import Anytime
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["BlackBoxAudit", "Named", "Sampler", "SamplerError", "audit_mechanism"]

IntArray = NDArray[np.int64]
FIRST_BLOCK, LARGEST_BLOCK = 64, 65_536
_ONE_AT_A_TIME = Lock()
"""A user's function may not allow two calls at once, also not from the threads of a worker."""


class Sampler(Protocol):
    """A function that draws `runs` independent runs with the entry under test set to `x`.

    It returns their tau (integers >= 0) and o (0 or 1). All its randomness must come from `rng`.
    """

    def __call__(
        self, x: int, runs: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.integer], NDArray[np.integer]]: ...


class SamplerError(ParameterError):
    """A sampler failed, or what it returned is no sample. `partial` is the audit of the runs before, if any.

    Parameters
    ----------
    message : str
        What went wrong.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.partial: BlackBoxAudit | None = None


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often each outcome was seen in both members, in the order of tau.

    Parameters
    ----------
    tau, decision : ndarray
        The outcomes.
    runs_1, runs_0 : ndarray
        How many runs of each member had them.
    """

    tau: IntArray
    decision: IntArray
    runs_1: IntArray
    runs_0: IntArray

    @classmethod
    def of(cls, one: Counted, zero: Counted) -> Histogram:
        """Join the counts of both members.

        Parameters
        ----------
        one, zero : Counted
            The outcomes of the runs with x = 1 and with x = 0.

        Returns
        -------
        Histogram
            A row for each outcome that at least one member had.
        """
        both = joined([one, zero])
        seen = [np.zeros(both.codes.size, np.int64) for _ in range(2)]
        for counts, member in zip(seen, (one, zero), strict=True):
            counts[np.searchsorted(both.codes, member.codes)] = member.counts
        return cls(both.tau, both.decision, *seen)


@dataclass(frozen=True, eq=False, kw_only=True)
class BlackBoxAudit(Audit):
    """What the runs say about the claim that a mechanism is (epsilon, delta)-private in the bit x.

    Parameters
    ----------
    histogram : Histogram
        How often each outcome was seen.
    name : str
        Of the sampler.
    method : {"split", "union", "anytime"}
        How the verdict came from runs.
    runs : int
        Runs of each member that were drawn.
    """

    observer: ClassVar[str] = "black_box"
    prose: ClassVar[type[Words]] = BlackBoxWords
    histogram: Histogram
    name: str
    method: Method
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        return {**super().as_dict(), "method": self.method, "runs_used": self.runs}


def _blocks(runs: int, begun: int = 0) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield ((number of the block, its runs), runs done after it), beyond what was `begun`.

    Small ones come first, so that a quick rejection costs little.

    The first two are of one size: a sampler that brings its own seed returns the same runs for both.
    """
    done, number = 0, 0
    while done < runs:
        count = min(FIRST_BLOCK << min(max(number - 1, 0), 10), LARGEST_BLOCK, runs - done)
        done, number = done + count, number + 1
        if done > begun:
            yield (number - 1, count), done


def _drawn(sampler: Sampler, name: str, x: int, runs: int, seed: int, block: int) -> IntArray:
    """Draw runs in one call and check them. The random numbers depend on (seed, x, block) alone."""
    call = f"sampler {name}, called with x={x}, runs={runs} (block {block})"
    rng = np.random.default_rng([seed, x, block])
    try:
        with _ONE_AT_A_TIME:
            result = sampler(x, runs, rng)
    except (Exception, SystemExit) as error:
        raise SamplerError(f"{call} raised {said(error)}") from error
    pair = result if isinstance(result, (tuple, list)) and len(result) == 2 else None
    if pair is None:
        raise SamplerError(f"{call} must return (tau, o), two arrays, got {type(result).__name__}")
    return outcome_code(*(_column(call, what, values, runs) for what, values in zip(("tau", "o"), pair, strict=True)))


def _column(call: str, what: str, values: Any, runs: int) -> IntArray:
    """Convert `tau` or `o` to integers, or raise an error that says what is wrong with it."""
    try:
        array = np.asarray(values)
    except Exception as error:
        raise SamplerError(f"{call} returned {what} that is no array: {said(error)}") from error
    if np.ma.is_masked(values):
        raise SamplerError(f"{call} must return {what} without masked values")
    if array.shape != (runs,):
        raise SamplerError(f"{call} must return {what} of shape ({runs},), got {array.shape}")
    if array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        raise SamplerError(f"{call} must return finite integers as {what}, got {array.dtype}")
    whole = array.astype(np.int64) if array.dtype.kind != "f" or np.all(np.abs(array) <= 2.0**62) else None
    if whole is None or not np.array_equal(whole, array):
        raise SamplerError(f"{call} must return integers as {what}, got {_first(array, array != np.rint(array))}")
    low, high = (0, LONGEST) if what == "tau" else (0, 1)
    wrong = (whole < low) | (whole > high)
    if np.any(wrong):
        allowed = "integers >= 0 (at most 2^60)" if what == "tau" else "0 or 1"
        raise SamplerError(f"{call} must return {what} that are {allowed}, got {_first(whole, wrong)}")
    return whole


def _same_again(name: str, x: int, block: int, before: IntArray | None, codes: IntArray) -> None:
    """Refuse a sampler that returns the runs of the block before: it does not use its generator."""
    same = min(codes.size, FIRST_BLOCK)
    if before is not None and np.array_equal(before[:same], codes[:same]) and np.unique(codes[:same]).size >= 8:
        raise SamplerError(
            f"sampler {name} returned the same runs again for x={x} (block {block}):"
            " all its randomness must come from rng"
        )


def _block(sampler: Sampler, name: str, seed: int, block: int, runs: int) -> tuple[Outcomes, Outcomes]:
    """Draw a block of each member, in random order and as drawn (its beginning), wherever this is called.

    A sampler may sort or group its runs; parts and bets must not see that, and a random order of independent runs is
    a sequence of independent runs.
    """
    drawn = {x: _drawn(sampler, name, x, runs, seed, block) for x in (1, 0)}
    one, zero = (np.random.default_rng([seed, 2 + x, block]).permutation(drawn[x]) for x in (1, 0))
    return Outcomes(one, zero), Outcomes(drawn[1][:FIRST_BLOCK], drawn[0][:FIRST_BLOCK])


def _first(array: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
    return f"{array[np.argmax(wrong)]}" if np.any(wrong) else f"{array[np.argmax(np.abs(array))]}"


class _Evidence(Gathered):
    """The runs so far, checked to be new ones."""

    def __init__(self, name: str, bets: Anytime | None) -> None:
        super().__init__(bets)
        self.name, self.blocks = name, 0
        self._before: Outcomes | None = None

    def add(self, block: tuple[Outcomes, Outcomes]) -> bool:  # type: ignore[override]
        shuffled, drawn = block
        for x, codes in ((1, drawn.one), (0, drawn.zero)):
            before = None if self._before is None else (self._before.one if x == 1 else self._before.zero)
            _same_again(self.name, x, self.blocks, before, codes)
        self._before, self.blocks = drawn, self.blocks + 1
        return super().add(shuffled)

    def saved(self) -> Saved:
        before = {} if self._before is None else {"before_1": self._before.one, "before_0": self._before.zero}
        return super().saved() | {"blocks": self.blocks} | before

    def restore(self, saved: Saved) -> None:
        blocks, before = int(saved["blocks"]), (np.asarray(saved[f"before_{x}"], np.int64) for x in (1, 0))
        super().restore(saved)
        self.blocks, self._before = blocks, Outcomes(*before)


def audit_mechanism(
    sampler: Sampler,
    epsilon: float,
    delta: float = 0.0,
    *,
    runs: int = 100_000,
    confidence: float = 0.99,
    method: Method = "split",
    floor: float = 0.01,
    sampling: Sampling = USUAL,
) -> BlackBoxAudit:
    """Audit the claim that a mechanism is (epsilon, delta)-differentially private in one bit, from its runs alone.

    P(violated although the claim holds) <= 1 - confidence; so is P(epsilon_lower or delta_lower exceeds the truth).

    Parameters
    ----------
    sampler : Sampler
        ``sampler(x, runs, rng)`` returns (tau, o) of so many independent runs with the bit set to x, in any order, all
        randomness from rng. An attribute `name` stands in results and errors.
    epsilon, delta : float
        The claim.
    runs : int
        Runs of each member; `anytime` stops as soon as the claim is refuted.
    confidence : float
        The level of the verdict.
    method : {"split", "union", "anytime"}
        How the verdict comes from runs.
    floor : float
        The result tells the smallest epsilon that would have shown on events of this probability.
    sampling : Sampling
        The seed, and where runs are drawn. How long a run may be is up to the sampler.

    Returns
    -------
    BlackBoxAudit
        The verdict with its bounds, witness and histogram.

    Raises
    ------
    SamplerError
        If the sampler fails or returns something else than samples.
    ParameterError
        If something cannot be audited.

    Examples
    --------
    >>> def noisy(x, runs, rng):
    ...     return np.floor(10 * (x + rng.exponential(size=runs))), np.zeros(runs, int)
    >>> found = audit_mechanism(noisy, epsilon=1.0, runs=20_000)
    >>> f"{found.verdict}", round(found.epsilon_lower, 1), found.witness.name
    ('violated', 7.2, 'tau <= 9')
    >>> audit_mechanism(noisy, epsilon=1.0, confidence=0.95, method="anytime").runs < 100
    True
    """
    check_floor(floor)
    _check_claim(epsilon, delta, confidence)
    for what, count in (("runs", runs), ("seed", sampling.seed)):
        require(isinstance(count, (int, np.integer)), f"{what} must be a whole number, got {count!r}")
    require(method in METHODS, f"method must be one of {', '.join(METHODS)}, got {method}")
    require(runs >= FEWEST, f"runs must be at least {FEWEST}, got {runs}")
    check_seed(sampling.seed)
    name, execution = sampler_name(sampler), sampling.execution
    bets = _bets(epsilon, delta, confidence) if method == "anytime" else None
    started, evidence = time.perf_counter(), _Evidence(name, bets)

    def audit() -> BlackBoxAudit:
        parts = evidence.parts()
        claim = (epsilon, delta, confidence)
        return BlackBoxAudit(
            name=name,
            claim=Claim(*claim),
            method=method,
            runs=evidence.runs,
            finding=bounded_verdict(parts, *claim, method, floor) if bets is None else bets.verdict(floor),
            histogram=Histogram.of(*parts.part(0, 1, 2)),
            seconds=time.perf_counter() - started + execution.spent,
        )

    here = execution
    if execution.backend == "threads":
        here = replace(execution, backend="serial")  # a user's function may not allow two calls at once
    work, ahead = partial(_block, sampler, name, int(sampling.seed)), 2 if bets is not None else AHEAD
    try:
        accumulate(work, lambda done: _blocks(runs, done), evidence, here, "runs", ahead)
    except SamplerError as error:
        error.partial = audit() if evidence.runs >= FEWEST else None
        raise
    return audit()


@dataclass(frozen=True)
class Named:
    """A sampler with a name for results and errors.

    Parameters
    ----------
    sampler : Sampler
        What draws the runs.
    name : str
        How it is called.
    """

    sampler: Sampler
    name: str

    def __call__(self, x: int, runs: int, rng: np.random.Generator) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Draw runs of the sampler."""
        return self.sampler(x, runs, rng)


def sampler_name(sampler: Sampler) -> str:
    """Return the name of a sampler.

    Parameters
    ----------
    sampler : Sampler
        The sampler.

    Returns
    -------
    str
        Its attribute `name` if it has one, otherwise the name of its function or class.
    """
    known = getattr(sampler, "name", None) or getattr(sampler, "__name__", type(sampler).__name__)
    return str(known)


def _check_claim(epsilon: float, delta: float, confidence: float) -> None:
    for what, value in (("epsilon", epsilon), ("claimed_delta", delta), ("confidence", confidence)):
        require(isinstance(value, (int, float, np.number)), f"{what} must be a number, got {value!r}")
    check_confidence(confidence)
    require(0.0 <= epsilon <= 1e300, f"epsilon must be finite and not negative, got {epsilon}")
    require(0.0 <= delta < 1.0, f"claimed_delta must lie in [0, 1), got {delta}")


def _bets(epsilon: float, delta: float, confidence: float) -> Anytime:
    from dpsmc_audit.evidence.anytime import Anytime

    return Anytime(epsilon, delta, confidence)
