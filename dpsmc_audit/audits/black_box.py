"""The audit of any sequential mechanism, known only by its runs: a function that draws (tau, o) for a bit x.

The bit is the entry under test; whatever else the mechanism reads (the other samples, its noise) is up to the
sampler, and so is who the observer is: fix the other samples for one who knows them, draw them for one who does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.bounds import FEWEST, PARTS, Parts, bounded_verdict, part_of
from dpsmc_audit.evidence.events import LONGEST, Counted, joined, outcome_code
from dpsmc_audit.evidence.intervals import check_confidence, percent
from dpsmc_audit.evidence.verdict import METHODS, Method, Verdict
from dpsmc_audit.profiles import Event, check_floor
from dpsmc_audit.sprt import ParameterError, require
from dpsmc_audit.targets import said

__all__ = ["BlackBoxAudit", "Sampler", "SamplerError", "audit_mechanism"]

IntArray = NDArray[np.int64]
FIRST_BLOCK, LARGEST_BLOCK = 64, 65_536
GATHERED = 16
"""Blocks that are counted one by one before they are counted together."""


class Sampler(Protocol):
    """Draws `runs` independent runs with the entry under test set to `x`: their tau (integers >= 0) and o (0 or 1)."""

    def __call__(
        self, x: int, runs: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.integer], NDArray[np.integer]]: ...


class SamplerError(ParameterError):
    """A sampler that failed, or returned what is no sample; `partial` is the audit of the runs before, if any."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.partial: BlackBoxAudit | None = None


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often each outcome was seen in both members, in the order of tau."""

    tau: IntArray
    decision: IntArray
    runs_1: IntArray
    runs_0: IntArray

    @classmethod
    def of(cls, one: Counted, zero: Counted) -> Histogram:
        both = joined([one, zero])
        seen = [np.zeros(both.codes.size, np.int64) for _ in range(2)]
        for counts, member in zip(seen, (one, zero), strict=True):
            counts[np.searchsorted(both.codes, member.codes)] = member.counts
        return cls(both.tau, both.decision, *seen)


@dataclass(frozen=True, eq=False)
class BlackBoxAudit:
    """What the runs say about the claim that the mechanism is (epsilon, delta)-private in the bit x."""

    name: str
    epsilon: float
    delta: float
    confidence: float
    method: Method
    runs: int
    found: Verdict
    histogram: Histogram
    seconds: float = field(compare=False)

    @property
    def verdict(self) -> str:
        return self.found.verdict

    @property
    def epsilon_lower(self) -> float:
        return self.found.epsilon_lower

    @property
    def delta_lower(self) -> float:
        return self.found.delta_lower

    @property
    def witness(self) -> Event | None:
        return self.found.witness

    @property
    def claim(self) -> str:
        return f"the claimed epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta > 0.0 else "")

    @property
    def sentence(self) -> str:
        """The verdict for a reader in a hurry."""
        how = f"at {percent(self.confidence)} confidence with {self.runs} runs of either member"
        found = self.found
        if found.witness is None:
            assert found.could is not None
            return f"consistent with {self.claim}: no violation found {how}; {found.could.sentence}"
        bounds = ""
        if self.method != "anytime":
            bounds = (
                f": epsilon is at least {found.epsilon_lower:.4g} (with delta = {self.delta:g}),"
                f" or delta at least {found.delta_lower:.4g} (with epsilon = {self.epsilon:g})"
            )
        event = f"{found.witness.name}: {found.witness.p1:.4g} for x = 1, {found.witness.p0:.4g} for x = 0"
        return f"violated: {self.claim} does not hold {how}{bounds}. Witness: {event}"

    def as_dict(self) -> dict[str, Any]:
        """The content of ``result.json``, parameters apart."""
        return {
            **self.found.as_dict(),
            "epsilon_claimed": self.epsilon,
            "delta_claimed": self.delta,
            "confidence": self.confidence,
            "method": self.method,
            "runs_used": self.runs,
            "sentence": self.sentence,
            "seconds": self.seconds,
        }


def _blocks(runs: int) -> Iterator[tuple[int, int]]:
    """(number of the block, its runs): small ones first, so that a quick rejection costs little.

    The first two are of one size: a sampler that brings its own seed returns the same runs for both.
    """
    done, number = 0, 0
    while done < runs:
        count = min(FIRST_BLOCK << min(max(number - 1, 0), 10), LARGEST_BLOCK, runs - done)
        yield number, count
        done, number = done + count, number + 1


def _drawn(sampler: Sampler, name: str, x: int, runs: int, seed: int, block: int) -> IntArray:
    """Checked outcome codes of one call; its random numbers depend on (seed, x, block) alone."""
    call = f"sampler {name}, called with x={x}, runs={runs} (block {block})"
    rng = np.random.default_rng([seed, x, block])
    try:
        result = sampler(x, runs, rng)
    except (Exception, SystemExit) as error:
        raise SamplerError(f"{call} raised {said(error)}") from error
    pair = result if isinstance(result, (tuple, list)) and len(result) == 2 else None
    if pair is None:
        raise SamplerError(f"{call} must return (tau, o), two arrays, got {type(result).__name__}")
    return outcome_code(*(_column(call, what, values, runs) for what, values in zip(("tau", "o"), pair, strict=True)))


def _column(call: str, what: str, values: Any, runs: int) -> IntArray:
    """`tau` or `o` as integers, or one line that says what is wrong with it."""
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


class _Members:
    """Draws blocks of either member, and notices a sampler that does not use its generator."""

    def __init__(self, sampler: Sampler, name: str, seed: int) -> None:
        self.sampler, self.name, self.seed = sampler, name, seed
        self._before: dict[int, IntArray] = {}

    def draw(self, x: int, runs: int, block: int) -> IntArray:
        """Outcome codes in random order: a sampler may sort or group its runs, parts and bets must not see that.

        A random order of independent runs is a sequence of independent runs.
        """
        codes = _drawn(self.sampler, self.name, x, runs, self.seed, block)
        before, same = self._before.get(x), min(runs, FIRST_BLOCK)
        if before is not None and np.array_equal(before[:same], codes[:same]) and np.unique(codes[:same]).size >= 8:
            raise SamplerError(
                f"sampler {self.name} returned the same runs again for x={x} (block {block}):"
                " all its randomness must come from rng"
            )
        self._before[x] = codes
        return np.random.default_rng([self.seed, 2 + x, block]).permutation(codes)


def _first(array: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
    return f"{array[np.argmax(wrong)]}" if np.any(wrong) else f"{array[np.argmax(np.abs(array))]}"


class _Evidence:
    """Runs gathered so far, counted by part; for bets also the syndicate."""

    def __init__(self, epsilon: float, delta: float, confidence: float, method: Method, floor: float) -> None:
        self.claim = (epsilon, delta, confidence)
        self.method, self.floor = method, floor
        self.runs = 0
        self._parts: list[list[list[Counted]]] = [[[] for _ in range(PARTS)] for _ in range(2)]
        self._bets = None
        if method == "anytime":
            from dpsmc_audit.evidence.anytime import Anytime

            self._bets = Anytime(*self.claim)

    def add(self, one: IntArray, zero: IntArray) -> bool:
        """With a block of either member; True if no more are needed."""
        over = False
        if self._bets is not None:
            before = self._bets.pairs
            over = self._bets.update(one, zero)
            used = self._bets.pairs - before
            one, zero = one[:used], zero[:used]
        part = part_of(self.runs, one.size)
        for member, codes in zip(self._parts, (one, zero), strict=True):
            for k in range(PARTS):
                member[k].append(Counted.of(codes[part == k]))
                if len(member[k]) >= GATHERED:
                    member[k] = [joined(member[k])]
        self.runs += one.size
        return over

    def parts(self) -> Parts:
        one, zero = (tuple(joined(part) for part in member) for member in self._parts)
        return Parts((one, zero))

    def verdict(self) -> Verdict:
        if self._bets is not None:
            return self._bets.verdict(self.floor)
        return bounded_verdict(self.parts(), *self.claim, method=self.method, floor=self.floor)


def audit_mechanism(
    sampler: Sampler,
    claimed_epsilon: float,
    claimed_delta: float = 0.0,
    *,
    confidence: float = 0.99,
    runs: int = 100_000,
    seed: int = 1,
    method: Method = "split",
    floor: float = 0.01,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> BlackBoxAudit:
    """Audit the claim that a mechanism is (epsilon, delta)-differentially private in one bit, from its runs alone.

    ``sampler(x, runs, rng)`` returns (tau, o) of so many independent runs with the bit set to x, in any order, all
    randomness from rng. `runs` is the number of runs of either member; `anytime` stops as soon as the claim is
    refuted. P(violated although the claim holds) <= 1 - confidence; so is P(epsilon_lower or delta_lower exceeds the
    truth).

    Examples
    --------
    >>> def noisy(x, runs, rng):
    ...     return np.floor(10 * (x + rng.exponential(size=runs))), np.zeros(runs, int)
    >>> found = audit_mechanism(noisy, claimed_epsilon=1.0, runs=20_000)
    >>> found.verdict, round(found.epsilon_lower, 1), found.witness.name
    ('violated', 7.2, 'tau <= 9')
    >>> audit_mechanism(noisy, claimed_epsilon=1.0, confidence=0.95, method="anytime").runs < 100
    True
    """
    check_floor(floor)
    numbers = (("epsilon", claimed_epsilon), ("claimed_delta", claimed_delta), ("confidence", confidence))
    for what, value in numbers:
        require(isinstance(value, (int, float, np.number)), f"{what} must be a number, got {value!r}")
    for what, count in (("runs", runs), ("seed", seed)):
        require(isinstance(count, (int, np.integer)), f"{what} must be a whole number, got {count!r}")
    check_confidence(confidence)
    require(0.0 <= claimed_epsilon <= 1e300, f"epsilon must be finite and not negative, got {claimed_epsilon}")
    require(0.0 <= claimed_delta < 1.0, f"claimed_delta must lie in [0, 1), got {claimed_delta}")
    require(method in METHODS, f"method must be one of {', '.join(METHODS)}, got {method}")
    require(runs >= FEWEST, f"runs must be at least {FEWEST}, got {runs}")
    require(0 <= seed < 2**64, f"seed must lie in [0, 2^64), got {seed}")
    known = name or str(getattr(sampler, "__name__", type(sampler).__name__))
    members = _Members(sampler, known, int(seed))
    started, evidence = time.perf_counter(), _Evidence(claimed_epsilon, claimed_delta, confidence, method, floor)

    def audit() -> BlackBoxAudit:
        parts = evidence.parts()
        seen = Histogram.of(*parts.part(0, 1, 2))
        claim = (claimed_epsilon, claimed_delta, confidence, method)
        numbers = (evidence.runs, evidence.verdict(), seen, time.perf_counter() - started)
        return BlackBoxAudit(known, *claim, *numbers)

    for block, count in _blocks(runs):
        try:
            one, zero = (members.draw(x, count, block) for x in (1, 0))
        except SamplerError as error:
            error.partial = audit() if evidence.runs >= FEWEST else None
            raise
        if evidence.add(one, zero):
            break
        if progress is not None:
            progress(evidence.runs)
    return audit()
