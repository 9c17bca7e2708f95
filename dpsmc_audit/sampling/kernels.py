"""Random walks of the test, sampled: one random stream per path, and every jitted kernel in this one file.

Two kernels draw (tau, decision) of a run. `steps` looks at single samples: 64 of them from a handful of random words,
skipped by counting where the bounds are out of reach. `jumps` never makes the single samples: where a bound is at least
n steps away it draws how many of the next n hold, a binomial, from an alias table. Both follow the same law; path i is
a function of (seed, i) alone, so neither threads nor blocks can change a result.

All kernels stay in one file because Numba's cache does not notice a change to a helper in another one.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from dpsmc_audit.numerics.jit import kernel

__all__ = ["ALT", "NULL", "UNFINISHED"]

NULL, ALT, UNFINISHED = 1, 0, -1

_GOLDEN = uint64(0x9E3779B97F4A7C15)


# --- the generator: xoshiro256++, one stream per path, seeded by splitmix64 -----------------------------------------


@kernel
def _mix(z):
    """The output function of splitmix64, a bijection of the 64-bit words."""
    z = uint64(z)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@kernel
def _stream(seed, path):
    """Initial state of path's stream: its key is a bijection of the path index, so no two paths share a stream."""
    key = _mix(_mix(uint64(seed) + _GOLDEN) + uint64(path) * _GOLDEN)
    return (
        _mix(key + _GOLDEN),
        _mix(key + _GOLDEN * uint64(2)),
        _mix(key + _GOLDEN * uint64(3)),
        _mix(key + _GOLDEN * uint64(4)),
    )


@kernel
def _rotate(x, k):
    return (x << uint64(k)) | (x >> uint64(64 - k))


@kernel
def _next(s0, s1, s2, s3):
    """One 64-bit word of xoshiro256++ and the next state."""
    word = _rotate(s0 + s3, 23) + s0
    shifted = s1 << uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    return word, s0, s1, s2, _rotate(s3, 45)


@kernel
def _uniforms(seed, first, out):
    """The first draw of each path's stream, as a uniform in [0, 1): it decides the path's L."""
    for i in range(out.size):
        s0, s1, s2, s3 = _stream(seed, first + i)
        word = _next(s0, s1, s2, s3)[0]
        out[i] = (word >> uint64(11)) * (1.0 / 9007199254740992.0)


# --- kernel 1: every sample of the sequence -------------------------------------------------------------------------


@kernel
def _popcount(x):
    x = x - ((x >> uint64(1)) & uint64(0x5555555555555555))
    x = (x & uint64(0x3333333333333333)) + ((x >> uint64(2)) & uint64(0x3333333333333333))
    x = (x + (x >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return (x * uint64(0x0101010101010101)) >> uint64(56)


@kernel
def _bernoulli_word(s0, s1, s2, s3, threshold, certain):
    """64 independent bits, each 1 with probability exactly ``threshold / 2^64`` (always if certain).

    Bit j compares a uniform with the threshold, most significant binary digit first; a word of randomness gives one
    digit to all 64 comparisons, and about seven words settle them all.
    """
    if certain:
        return ~uint64(0), s0, s1, s2, s3
    ones = uint64(0)
    undecided = ~uint64(0)
    while undecided != uint64(0) and threshold != uint64(0):
        word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
        if threshold >> uint64(63):
            ones |= undecided & ~word
            undecided &= word
        else:
            undecided &= ~word
        threshold <<= uint64(1)
    return ones, s0, s1, s2, s3


@kernel
def _steps(
    seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low, threshold, certain, max_steps, tau, decision
):  # fmt: skip
    """(tau, decision) of these paths, begun with begun[i] samples, held[i] of them 1; bounds enlarged by excess[i]."""
    for i in range(tau.size):
        up, low = b_up + excess[i], b_low + excess[i]
        s0, s1, s2, s3 = _stream(seed, paths[i])
        _, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
        steps, ones, outcome = begun[i], held[i], UNFINISHED
        while outcome == UNFINISHED and steps < max_steps:
            word, s0, s1, s2, s3 = _bernoulli_word(s0, s1, s2, s3, threshold, certain)
            walk = ones * s_plus - (steps - ones) * s_minus
            # 65 steps instead of 64: a whole step of margin against rounding
            if walk + 65 * s_plus < up and walk - 65 * s_minus > -low and steps + 64 <= max_steps:
                ones += np.int64(_popcount(word))
                steps += 64
                continue
            for _ in range(min(64, max_steps - steps)):
                ones += np.int64(word & uint64(1))
                word >>= uint64(1)
                steps += 1
                walk = ones * s_plus - (steps - ones) * s_minus
                if walk >= up:
                    outcome = NULL
                    break
                if walk <= -low:
                    outcome = ALT
                    break
        tau[i] = steps
        decision[i] = outcome


# --- kernel 2: binomial jumps ---------------------------------------------------------------------------------------


@kernel
def _start(i, seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low):
    """Path i at its beginning: generator, bounds, room to them, steps, ones, i. Number -1, a dummy, never decides."""
    if i >= excess.size:
        return uint64(1), uint64(2), uint64(3), uint64(4), np.inf, np.inf, np.inf, np.inf, np.int64(0), np.int64(0), -1
    s0, s1, s2, s3 = _stream(seed, paths[i])
    _, s0, s1, s2, s3 = _next(s0, s1, s2, s3)  # this draw was spent on L
    walk = held[i] * s_plus - (begun[i] - held[i]) * s_minus
    up, low = b_up + excess[i], b_low + excess[i]
    return s0, s1, s2, s3, up, low, up - walk, low + walk, begun[i], held[i], i


@kernel
def _jump(lane, s_plus, s_minus, per_up, per_low, cut, alias, log2, max_steps):
    """The lane after one jump of the largest size at whose end a bound may be met, but not before it."""
    s0, s1, s2, s3, up, low, above, below, steps, ones, path = lane
    away = min(above * per_up, below * per_low, float(log2.size - 2))
    e = uint64(log2[uint64(min(np.int64(away) + 1, max_steps - steps))])
    word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
    column = word >> (uint64(63) - e)
    place = column + (uint64(2) << e)
    rest = word & ((uint64(1) << (uint64(63) - e)) - uint64(1))
    gained = column if rest < cut[place] else uint64(alias[place])
    steps += np.int64(uint64(1) << e)
    ones += np.int64(gained)
    walk = ones * s_plus - (steps - ones) * s_minus
    return s0, s1, s2, s3, up, low, up - walk, low + walk, steps, ones, path


@kernel
def _ended(lane, max_steps):
    """No room is left (``up - walk <= 0`` just where ``walk >= up``), or no sample."""
    return (min(lane[6], lane[7]) <= 0.0) | (lane[8] >= max_steps)


@kernel
def _record(lane, tau, decision):
    """Write an ended lane's outcome; how many paths that finishes (a dummy is none)."""
    path = lane[10]
    if path < 0:
        return 0
    tau[path] = lane[8]
    decision[path] = NULL if lane[6] <= 0.0 else (ALT if lane[7] <= 0.0 else UNFINISHED)
    return 1


@kernel
def _jumps(
    seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low, cut, alias, log2, max_steps, tau, decision
):  # fmt: skip
    """As `_steps`, by binomial jumps; three paths advance in turn, so that their table look-ups overlap."""
    per_up, per_low = (1.0 - 1e-9) / s_plus, (1.0 - 1e-9) / s_minus
    x = _start(0, seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low)
    y = _start(1, seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low)
    z = _start(2, seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low)
    started, finished = 3, 0
    while finished < tau.size:
        x_ended, y_ended, z_ended = False, False, False
        while not (x_ended | y_ended | z_ended):
            x = _jump(x, s_plus, s_minus, per_up, per_low, cut, alias, log2, max_steps)
            y = _jump(y, s_plus, s_minus, per_up, per_low, cut, alias, log2, max_steps)
            z = _jump(z, s_plus, s_minus, per_up, per_low, cut, alias, log2, max_steps)
            x_ended, y_ended, z_ended = _ended(x, max_steps), _ended(y, max_steps), _ended(z, max_steps)
        if x_ended:
            finished += _record(x, tau, decision)
            x = _start(started, seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low)
            started += 1
        if y_ended:
            finished += _record(y, tau, decision)
            y = _start(started, seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low)
            started += 1
        if z_ended:
            finished += _record(z, tau, decision)
            z = _start(started, seed, paths, begun, held, excess, s_plus, s_minus, b_up, b_low)
            started += 1


# --- entries that are given -----------------------------------------------------------------------------------------


@kernel
def _until_given(
    seed, paths, entries, bit, excess, s_plus, s_minus, b_up, b_low, threshold, certain, begun, held, decision
):  # fmt: skip
    """Walk as far as the last entry, every entry `bit`: begun[i] samples of which held[i] hold, or a decision."""
    last = entries[entries.size - 1]
    for i in range(paths.size):
        up, low = b_up + excess[i], b_low + excess[i]
        s0, s1, s2, s3 = _stream(seed, paths[i])
        word, steps, ones, place, outcome = uint64(0), 0, 0, 0, UNFINISHED
        while outcome == UNFINISHED and steps < last:
            if steps % 64 == 0:
                word, s0, s1, s2, s3 = _bernoulli_word(s0, s1, s2, s3, threshold, certain)
            drawn = np.int64(word & uint64(1))
            word >>= uint64(1)
            steps += 1
            if steps == entries[place]:
                drawn = np.int64(bit)
                place += 1
            ones += drawn  # type: ignore[assignment]
            walk = ones * s_plus - (steps - ones) * s_minus
            if walk >= up:
                outcome = NULL
            elif walk <= -low:
                outcome = ALT
        begun[i], held[i], decision[i] = steps, ones, outcome


# --- kernel 3: adjacent pairs of sequences, every L at once ---------------------------------------------------------


@kernel
def _settle(steps, excess, sorted_excess, guide, scale, slot, since, waits):
    """Let every L up to the walk's excess stop here. The new slot, and since when the larger L wait.

    A wait is added at the slot where it began: the running sum over slots is then the sum of tau for every L. The guide
    table starts the search for the new slot close to it.
    """
    if slot == sorted_excess.size or excess < sorted_excess[uint64(slot)]:
        return slot, since
    waits[uint64(slot)] += steps - since
    place = min((excess - sorted_excess[0]) * scale, guide.size - 1.0)
    slot = max(slot, guide[uint64(place)])
    while slot < sorted_excess.size and sorted_excess[uint64(slot)] <= excess:
        slot += 1
    return slot, steps


@kernel
def _pair(
    seed, path, entries, sorted_excess, guide, scale, s_plus, s_minus, b_up, b_low, threshold, certain, max_steps,
    waits_1, waits_0,
):  # fmt: skip
    """One pair of sequences that differ at the entries alone, both members in one pass.

    Returns for how many L the cap was hit, and how many samples were drawn.

    After each entry the walk with x_n = 0 is below the other by one more step up and step down, so one comparison tells
    whether either may stop an L that still runs.
    """
    s0, s1, s2, s3 = _stream(seed, path)
    draws = sorted_excess.size
    slot_1, slot_0, since_1, since_0 = 0, 0, 0, 0
    steps, ones, less, gap = 0, 0, 0, 0.0
    ceiling, floor = -np.inf, np.inf
    word, left = uint64(0), 0
    while steps < max_steps:
        if left == 0:
            word, s0, s1, s2, s3 = _bernoulli_word(s0, s1, s2, s3, threshold, certain)
            left = 64
        bit = np.int64(word & uint64(1))
        word >>= uint64(1)
        left -= 1
        steps += 1
        if less < entries.size and steps == entries[less]:
            bit = np.int64(1)
            less += 1
            gap = less * (s_plus + s_minus)
            ceiling, floor = -np.inf, np.inf
        ones += bit  # type: ignore[assignment]
        walk = ones * s_plus - (steps - ones) * s_minus
        if floor < walk < ceiling:
            continue
        slot_1, since_1 = _settle(
            steps, max(walk - b_up, -walk - b_low), sorted_excess, guide, scale, slot_1, since_1, waits_1
        )
        walk = (ones - less) * s_plus - (steps - ones + less) * s_minus
        slot_0, since_0 = _settle(
            steps, max(walk - b_up, -walk - b_low), sorted_excess, guide, scale, slot_0, since_0, waits_0
        )
        if slot_1 == draws and slot_0 == draws:
            return 0, steps
        next_1 = sorted_excess[uint64(slot_1)] if slot_1 < draws else np.inf
        next_0 = sorted_excess[uint64(slot_0)] if slot_0 < draws else np.inf
        # slightly early, against rounding: what is beyond is checked exactly
        ceiling = b_up + min(next_1, next_0 + gap) - 1e-6 * s_plus
        floor = max(-b_low - next_1, -b_low - next_0 + gap) + 1e-6 * s_minus
    if slot_1 < draws:
        waits_1[uint64(slot_1)] += steps - since_1
    if slot_0 < draws:
        waits_0[uint64(slot_0)] += steps - since_0
    return 2 * draws - slot_1 - slot_0, steps


@kernel
def _pair_climbing(
    seed, path, entries, sorted_excess, guide, scale, sign, s_plus, s_minus, b_up, b_low, threshold, certain, max_steps,
    waits_1, waits_0, at, ones_at,
):  # fmt: skip
    """As `_pair`, faster, where both walks go from below all L at the entries to beyond all L where they drift to.

    First the records of the walk are listed, without a branch that could be guessed wrong; then each is placed among
    the L, one independent of the other. How many samples were drawn; 0, and nothing done, where the walk is not of that
    kind.
    """
    s0, s1, s2, s3 = _stream(seed, path)
    first, top, gap = sorted_excess[0], sorted_excess[sorted_excess.size - 1], entries.size * (s_plus + s_minus)
    bound, behind = (b_up, b_low) if sign > 0 else (b_low, b_up)
    # the other member is a gap behind where the walk climbs, and a gap ahead where it descends
    start, end = bound + first - 1e-6 * s_plus - (0.0 if sign > 0 else gap), bound + top + gap + 1e-6 * s_plus
    floor = -behind - first + gap + 1e-6 * s_plus  # with a gap to spare for the other member
    best, steps, ones, found, changed = start, 0, 0, 0, 0
    word, left, walk = uint64(0), 0, 0.0
    while walk < end:
        if left == 0:
            word, s0, s1, s2, s3 = _bernoulli_word(s0, s1, s2, s3, threshold, certain)
            left = 64
            if found + 64 >= at.size or steps + 64 >= max_steps:
                return 0
        bit = np.int64(word & uint64(1))
        word >>= uint64(1)
        left -= 1
        steps += 1
        if changed < entries.size and steps == entries[changed]:
            if found > 0:
                return 0
            bit = np.int64(1)
            changed += 1
        ones += bit  # type: ignore[assignment]
        walk = sign * (ones * s_plus - (steps - ones) * s_minus)
        if walk < floor:
            return 0
        at[uint64(found)] = steps
        ones_at[uint64(found)] = ones
        found += np.int64(walk > best)  # type: ignore[assignment]
        best = max(best, walk)
    if changed < entries.size:
        return 0
    for member in range(2):
        waits = waits_1 if member == 0 else waits_0
        slot, since = 0, 0
        for k in range(found):
            n, ones = at[uint64(k)], ones_at[uint64(k)] - member * entries.size
            excess = sign * (ones * s_plus - (n - ones) * s_minus) - bound
            place = max(min((excess - first) * scale, guide.size - 1.0), 0.0)
            stopped = np.int64(guide[uint64(place)])
            while stopped < sorted_excess.size and sorted_excess[uint64(stopped)] <= excess:
                stopped += 1
            waits[uint64(slot)] += n - since
            slot, since = max(slot, stopped), n  # type: ignore[assignment]
    return steps


@kernel
def _pairs(
    seed, first, count, entries, sorted_excess, guide, scale, s_plus, s_minus, b_up, b_low, threshold, certain,
    max_steps, sums,
):  # fmt: skip
    """Sums of tau over pairs first, ..., first + count - 1, a row for x_n = 1 and one for x_n = 0, for every L.

    Returns for how many (sequence, L) the cap was hit, and how many samples were drawn.
    """
    waits_1 = np.zeros(sorted_excess.size + 1, np.int64)  # the last slot takes what comes after every L has stopped
    waits_0 = np.zeros(sorted_excess.size + 1, np.int64)
    at, ones_at = np.empty(1 << 16, np.int64), np.empty(1 << 16, np.int64)
    p_phi = 1.0 if certain else threshold * 2.0**-64
    sign = 1.0 if p_phi * s_plus >= (1.0 - p_phi) * s_minus else -1.0
    unfinished, drawn = 0, 0
    for i in range(count):
        climbed = _pair_climbing(
            seed, first + i, entries, sorted_excess, guide, scale, sign, s_plus, s_minus, b_up, b_low, threshold,
            certain, max_steps, waits_1, waits_0, at, ones_at,
        )  # fmt: skip
        drawn += climbed
        if climbed == 0:
            capped, steps = _pair(
                seed, first + i, entries, sorted_excess, guide, scale, s_plus, s_minus, b_up, b_low, threshold, certain,
                max_steps, waits_1, waits_0,
            )  # fmt: skip
            unfinished += capped
            drawn += steps
    total_1, total_0 = 0, 0
    for j in range(sorted_excess.size):
        total_1 += waits_1[j]
        total_0 += waits_0[j]
        sums[0, j] = total_1
        sums[1, j] = total_0
    return unfinished, drawn


@kernel
def _pair_times(
    seed, first, shift, bits, entries, sorted_excess, s_plus, s_minus, b_up, b_low, threshold, certain, max_steps, tau
):  # fmt: skip
    """``tau[i, member, j]`` of a few L for pairs first, first + 1, ...: entries forced to bits[member].

    The members share their other samples (shift = 0), or member 1 is the sequence `shift` paths further on.
    """
    for i in range(tau.shape[0]):
        for member in range(2):
            s0, s1, s2, s3 = _stream(seed, first + i + member * shift)
            word = uint64(0)
            steps, ones, slot, place = 0, 0, 0, 0
            while slot < sorted_excess.size and steps < max_steps:
                if steps % 64 == 0:
                    word, s0, s1, s2, s3 = _bernoulli_word(s0, s1, s2, s3, threshold, certain)
                bit = np.int64(word & uint64(1))
                word >>= uint64(1)
                steps += 1
                if place < entries.size and steps == entries[place]:
                    bit = bits[member]
                    place += 1
                ones += bit  # type: ignore[assignment]
                walk = ones * s_plus - (steps - ones) * s_minus
                excess = max(walk - b_up, -walk - b_low)
                while slot < sorted_excess.size and sorted_excess[slot] <= excess:
                    tau[i, member, slot] = steps
                    slot += 1
            tau[i, member, slot:] = steps


# --- kernel 4: the records of one walk ------------------------------------------------------------------------------


@kernel
def _records(
    seed, path, entries, bit, lowest, top, s_plus, s_minus, b_up, b_low, threshold, certain, max_steps, at, ones_at
):  # fmt: skip
    """When the excess of a walk sets a record above `lowest`, until one reaches `top`; every entry is forced to `bit`.

    Returns how many records there are and how many samples were drawn; -1 records if there is no room for them.
    """
    s0, s1, s2, s3 = _stream(seed, path)
    word, steps, ones, found, place = uint64(0), 0, 0, 0, 0
    best = lowest
    while best < top and steps < max_steps:
        if steps % 64 == 0:
            word, s0, s1, s2, s3 = _bernoulli_word(s0, s1, s2, s3, threshold, certain)
            if found + 64 > at.size:
                return -1, steps
        held = np.int64(word & uint64(1))
        word >>= uint64(1)
        steps += 1
        if place < entries.size and steps == entries[place]:
            held = np.int64(bit)
            place += 1
        ones += held  # type: ignore[assignment]
        walk = ones * s_plus - (steps - ones) * s_minus
        excess = max(walk - b_up, -walk - b_low)
        at[uint64(found)] = steps
        ones_at[uint64(found)] = ones
        found += np.int64(excess > best)  # type: ignore[assignment]
        best = max(best, excess)
    return found, steps
