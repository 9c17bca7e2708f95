"""Jitted loops of DP-SPRT: exact laws for given noise of the thresholds, and runs."""

from __future__ import annotations

import math

import numpy as np

from dpsmc_audit.numerics.jit import kernel

__all__ = ["integrate", "programme", "run_fresh", "run_given"]


@kernel
def _beyond(distance, scale):
    """Compute P(a Laplace variable of this scale exceeds the distance)."""
    return 0.5 * math.exp(-distance / scale) if distance > 0.0 else 1.0 - 0.5 * math.exp(distance / scale)


@kernel
def integrate(above, below, scale, z_low, z_high, weight, law):
    """Add up P(tau = n, o) over the noise of the thresholds. H_1 is tested first, as in the authors' package.

    Parameters
    ----------
    above, below : ndarray
        Distances of the sums above T0 and below T1.
    scale : float
        The scale of Y_n.
    z_low, z_high, weight : ndarray
        Noise of the two thresholds, and its weights.
    law : ndarray
        The result, rows o = 0, 1.
    """
    for k in range(weight.size):
        alive = weight[k]
        for n in range(above.size):
            up = _beyond(below[n] + z_high[k], scale)
            down = min(_beyond(above[n] + z_low[k], scale), 1.0 - up)
            law[1, n] += alive * up
            law[0, n] += alive * down
            alive *= 1.0 - up - down
            if alive < 1e-18 * weight[k]:
                break


@kernel
def programme(p, low, high, scale, z, weight, law):
    """Do the same for fresh samples, with the law of the sum of the runs that still run, sample by sample.

    Parameters
    ----------
    p : float
        The probability of a sample of 1.
    low, high : ndarray
        The thresholds.
    scale : float
        The scale of Y_n.
    z, weight : ndarray
        Noise of the thresholds, and its weights.
    law : ndarray
        The result, rows o = 0, 1.
    """
    alive, new = np.zeros(low.size + 2), np.zeros(low.size + 2)
    for k in range(weight.size):
        alive[:] = 0.0
        alive[0] = weight[k]
        first, last = 0, 0
        for n in range(low.size):
            last += 1
            mass = 0.0
            for total in range(first, last + 1):
                here = alive[total] * (1.0 - p) + (alive[total - 1] * p if total > first else 0.0)
                up = _beyond(high[n] - total + z[k], scale)
                down = min(_beyond(total - low[n] + z[k], scale), 1.0 - up)
                law[1, n] += here * up
                law[0, n] += here * down
                new[total] = here * (1.0 - up - down)
                mass += new[total]
            alive[first : last + 1] = new[first : last + 1]
            while first < last and alive[first] < 1e-16 * weight[k]:
                alive[first] = 0.0
                first += 1
            while last > first and alive[last] < 1e-16 * weight[k]:
                alive[last] = 0.0
                last -= 1
            if mass < 1e-13 * weight[k]:
                break


@kernel
def _laplace(rng, scale):
    return scale * rng.standard_exponential() * (1.0 if rng.random() < 0.5 else -1.0)


@kernel
def run_given(rng, above, below, query, threshold, shared, tau, decision):
    """Run on one sequence. The sign of Y_n is drawn only where its size could stop the run.

    Parameters
    ----------
    rng : Generator
        The source of random numbers.
    above, below : ndarray
        Distances of the sums above T0 and below T1.
    query, threshold : float
        The scales of Y_n and Z.
    shared : bool
        Whether both thresholds have the same noise.
    tau, decision : ndarray
        The results.
    """
    for i in range(tau.size):
        z_high = _laplace(rng, threshold)
        z_low = z_high if shared else _laplace(rng, threshold)
        tau[i], decision[i] = above.size, 1
        for n in range(above.size):
            size = query * rng.standard_exponential()
            up, down = below[n] + z_high, above[n] + z_low
            if size < up and size < down:
                continue
            noise = size if rng.random() < 0.5 else -size
            if noise >= up:
                tau[i] = n + 1
                break
            if -noise >= down:
                tau[i], decision[i] = n + 1, 0
                break


@kernel
def run_fresh(rng, p, lines, query, threshold, shared, max_steps, tau, decision):
    """Run on fresh samples.

    Parameters
    ----------
    rng : Generator
        The source of random numbers.
    p : float
        The probability of a sample of 1.
    lines : ndarray
        Slope, offset and factor of ln n of T0 and of T1.
    query, threshold : float
        The scales of Y_n and Z.
    shared : bool
        Whether both thresholds have the same noise.
    max_steps : int
        The largest number of samples.
    tau, decision : ndarray
        The results. The decision is -1 for a run that reached `max_steps`.

    Returns
    -------
    int
        How many runs reached `max_steps`.
    """
    unfinished = 0
    for i in range(tau.size):
        z_high = _laplace(rng, threshold)
        z_low = z_high if shared else _laplace(rng, threshold)
        total, outcome, n = 0.0, -1, 0
        while outcome < 0 and n < max_steps:
            n += 1
            total += 1.0 if rng.random() < p else 0.0
            size, log = query * rng.standard_exponential(), math.log(n)
            up = lines[1, 0] * n + lines[1, 1] + lines[1, 2] * log + z_high - total
            down = total - (lines[0, 0] * n + lines[0, 1] + lines[0, 2] * log) + z_low
            if size < up and size < down:
                continue
            noise = size if rng.random() < 0.5 else -size
            if noise >= up:
                outcome = 1
            elif -noise >= down:
                outcome = 0
        tau[i], decision[i] = n, outcome
        unfinished += outcome < 0
    return unfinished
