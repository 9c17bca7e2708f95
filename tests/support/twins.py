"""Plain-Python twins of the jitted kernels: unbounded integers masked to 64 bits, one sample after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dpsmc_audit.sprt import Sprt

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def rotate(x: int, k: int) -> int:
    return (x << k | x >> (64 - k)) & MASK


def words(seed: int, path: int) -> Iterator[int]:
    """The stream of a path: xoshiro256++ from a splitmix64 seed."""
    key = mix((mix((seed + GOLDEN) & MASK) + path * GOLDEN) & MASK)
    s = [mix((key + GOLDEN * j) & MASK) for j in (1, 2, 3, 4)]
    while True:
        yield (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        shifted = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotate(s[3], 45)


def samples(stream: Iterator[int], p_phi: float) -> Iterator[int]:
    """Bernoulli(p_phi) bits: 64 uniforms compared with p_phi digit by digit; a random word gives one digit to all."""
    digits = f"{int(p_phi * 2**64):064b}" if p_phi < 1 else ""
    while True:
        outcome: list[int | None] = [None if p_phi < 1 else 1] * 64
        for digit in digits.rstrip("0"):
            if None not in outcome:
                break
            word = next(stream)
            for j in range(64):
                if outcome[j] is None and (word >> j & 1) != int(digit):
                    outcome[j] = int(digit)
        for bit in outcome:
            yield bit or 0


def walk(test: Sprt, excess: float, bits: Iterator[int], max_steps: int) -> tuple[int, int]:
    """(tau, decision) of Algorithm 2 with this L, word for word."""
    ones = 0
    for steps, bit in enumerate(itertools.islice(bits, max_steps), start=1):
        ones += bit
        position = ones * test.s_plus - (steps - ones) * test.s_minus
        if position >= test.b_up + excess:
            return steps, 1
        if position <= -(test.b_low + excess):
            return steps, 0
    return max_steps, -1


def jump_walk(
    test: Sprt,
    excess: float,
    stream: Iterator[int],
    tables: tuple[list[int], list[int]],
    max_steps: int,
    sizes: int,
    start: tuple[int, int] = (0, 0),
) -> tuple[int, int]:
    """The same by binomial jumps from alias tables, begun with (samples, ones)."""
    cut, alias = tables
    up, low = test.b_up + excess, test.b_low + excess
    steps, ones = start
    while steps < max_steps:
        position = ones * test.s_plus - (steps - ones) * test.s_minus
        slack = 1 - 1e-9
        away = min(
            (up - position) * (slack / test.s_plus), (low + position) * (slack / test.s_minus), 2.0 ** (sizes - 1) - 1
        )
        e = min(int(away) + 1, max_steps - steps).bit_length() - 1
        word = next(stream)
        column, rest = word >> (63 - e), word & ((1 << (63 - e)) - 1)
        place = column + (2 << e)
        steps += 1 << e
        ones += column if rest < cut[place] else alias[place]
        position = ones * test.s_plus - (steps - ones) * test.s_minus
        if position >= up:
            return steps, 1
        if position <= -low:
            return steps, 0
    return steps, -1
