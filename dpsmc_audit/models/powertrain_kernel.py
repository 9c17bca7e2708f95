"""One trace of the powertrain, jitted: plant, transport delay, sensor and sampled controller.

Each equation is solved by a method of order two that fits it, so that 1 ms is fine enough:

* the manifold pressure by ROS2, a linearly implicit Runge-Kutta method of two stages. With the throttle wide open the
  pressure settles within 0.1 ms, where an explicit step of 1 ms would swing around p = 1; the method keeps its order
  with any estimate of the slope, and so the estimate may be bounded at p = 1, where the true slope is infinite;
* the fuel film by the trapezoidal rule, which is implicit and in closed form as the film is linear;
* the throttle and the two lags of the sensor exactly;
* the transport delay through its integral. The air-fuel ratio u jumps whenever the controller acts (the first command
  ends a pulse 50 above the set point), so interpolating stored values of u would lose a part of each jump, an error of
  order one. The line stores z and the integral of u over z instead: both are continuous, and what enters the sensor
  in a step is the mean of u over that step, whatever jumps lie in it.

No random number is drawn here. All jitted functions of the model stay in this one file (see walks.monte_carlo).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["FAILURE", "NORMAL", "POWER", "SIGNALS", "STARTUP", "Controller", "Grid", "simulate"]

STARTUP, NORMAL, POWER, FAILURE = 0, 1, 2, 3
SIGNALS = ("e", "air_fuel", "reference", "speed", "throttle", "pressure", "fuel", "mode")

SET_POINT, RICH = 14.7, 12.5
MANIFOLD = 0.41328  # c1, RT/V of the intake manifold
FIRST_FUEL = 0.1726  # commanded until the controller first acts
FIRST_FILM = 0.0112
NORMAL_AFTER = 1000  # ticks: 10 s of startup
POWER_ABOVE, POWER_UNTIL = 70.0, 50.0
SENSOR_DEAD = -1.0
TICK = 0.01
GAMMA = 1.0 - math.sqrt(0.5)  # makes ROS2 stable however stiff the pressure
LEAST_FLOW = 0.01  # bounds the slope that ROS2 is given at p = 1


class Controller(NamedTuple):
    """What tells the two published controllers apart."""

    modes: bool
    compensates: bool
    kp: float
    ki: float
    least_fuel: float
    most_fuel: float
    pressure: float
    estimate: float


class Grid(NamedTuple):
    """Times in whole steps: how many, one controller tick, one sample, half a pedal period, the sensor's failure."""

    step: float
    steps: int
    tick: int
    every: int
    half_period: int
    failure: int


@njit(cache=True, nogil=True)
def _throttle_flow(angle):
    """Air through the throttle plate at this angle while the flow is choked."""
    return 2.821 + angle * (-0.05231 + angle * (0.10299 - 0.00063 * angle))


@njit(cache=True, nogil=True)
def _restriction(p):
    """Share of the choked flow at manifold pressure p (negative if it flows back), and its slope in p."""
    ratio = p if p <= 1.0 else 1.0 / p
    sign = 1.0 if p < 1.0 else -1.0
    if ratio < 0.5:
        return sign, 0.0
    share = 2.0 * math.sqrt(ratio - ratio * ratio)
    return sign * share, -2.0 * (2.0 * ratio - 1.0) / max(share, LEAST_FLOW)


@njit(cache=True, nogil=True)
def _pumped(x, linear, square):
    """Air that the cylinders draw at manifold pressure x; the controller estimates with the same polynomial."""
    return -0.366 + x * (linear + square * x)


@njit(cache=True, nogil=True)
def _next_pressure(p, share, slope, flow, next_flow, pump, linear, square, h):
    """ROS2 on ``p' = c1 (flow share(p) - pump P(p))``."""
    jacobian = MANIFOLD * (flow * slope - pump * (linear + 2.0 * square * p))
    damping = 1.0 / (1.0 - GAMMA * h * jacobian)
    first = damping * MANIFOLD * (flow * share - pump * _pumped(p, linear, square))
    guess = p + h * first
    change = MANIFOLD * (next_flow * _restriction(guess)[0] - pump * _pumped(guess, linear, square))
    second = damping * (change - 2.0 * first)
    return p + h * (1.5 * first + 0.5 * second)


@njit(cache=True, nogil=True)
def _film(pieces, charge):
    """Direct share of the fuel and time constant of the film."""
    j = int(charge >= 0.1) + int(charge >= 0.2) + int(charge >= 0.3) + int(charge >= 0.4)
    return pieces[j, 0] + pieces[j, 1] * charge, pieces[j, 2] + pieces[j, 3] * charge


@njit(cache=True, nogil=True)
def _delay(pieces, charge):
    j = int(charge >= 0.05) + int(charge >= 0.15) + int(charge >= 0.2) + int(charge >= 0.25)
    return pieces[j, 0] + pieces[j, 1] * charge


@njit(cache=True, nogil=True)
def _switch(ticks, throttle, measured, normal_on, power_on, fail_on):
    """The controller's three switches; normal and failure latch, power has a hysteresis."""
    normal_on = normal_on or ticks >= NORMAL_AFTER
    power_on = throttle >= (POWER_UNTIL if power_on else POWER_ABOVE)
    return normal_on, power_on, fail_on or measured <= SENSOR_DEAD


@njit(cache=True, nogil=True)
def _mode(normal_on, power_on, fail_on):
    if fail_on:
        return FAILURE
    if not normal_on:
        return STARTUP
    return POWER if power_on else NORMAL


@njit(cache=True, nogil=True)
def _record(values, slots, sample, out):
    """Only what was asked for: slot -1 is a signal that nobody wants."""
    for name in range(slots.size):
        if slots[name] >= 0:
            out[slots[name], sample] = values[name]


@njit(cache=True, nogil=True)
def _trace(grid, law, pump, pedal, pulse, speed, maf, injector, sensor, film, delay, wet, dry, line, slots, out):
    """Fill ``out[signal, sample]``; False if the state left every range in which the model makes sense."""
    h = grid.step
    w = speed * math.pi / 30.0
    linear, square = 0.08979 * w + 0.0001 * w * w, -0.0337 * w
    keep_slow, keep_fast = math.exp(-10.0 * h), math.exp(-50.0 * h)  # the throttle lags as the slow stage does
    passed = 1.25 * (keep_slow - keep_fast)  # the slow lag seen through the fast one
    lag, p, estimate, wall = 0.0, law.pressure, law.estimate, FIRST_FILM
    slow, fast, fuel, reference = SET_POINT, SET_POINT, FIRST_FUEL, SET_POINT
    integral, stored = 0.0, 0.0
    normal_on, power_on, fail_on = not law.modes, False, False
    mode = _mode(normal_on, power_on, fail_on)
    throttle = min(max(lag + 8.8, 0.0), 90.0)
    flow = _throttle_flow(throttle)
    air = pump * _pumped(p, linear, square)
    direct, tau = _film(film, math.pi * air / w)
    rate = 1.0 / _delay(delay, math.pi * air / w)
    ratio = air / (direct * injector * fuel + wall / tau)
    z, area, left, cell = 0.0, 0.0, -SET_POINT, 0
    flooded = False
    # countdowns instead of remainders: a division of integers costs as much as all of the film
    ticks, to_tick, sample, to_sample, to_pedal, target, other = 0, grid.tick, 0, 0, grid.half_period, pedal, pedal + pulse
    line[0, 0], line[1, 0] = 0.0, 0.0
    for k in range(grid.steps + 1):
        share, slope = _restriction(p)
        if to_tick == 0:
            ticks, to_tick = ticks + 1, grid.tick
            measured = sensor * fast if k < grid.failure else SENSOR_DEAD
            if law.modes:
                normal_on, power_on, fail_on = _switch(ticks, throttle, measured, normal_on, power_on, fail_on)
                mode = _mode(normal_on, power_on, fail_on)
            reference = RICH if normal_on and power_on else SET_POINT
            expected = _pumped(estimate, linear, square)
            feed = expected / reference
            if law.compensates:
                feed = (feed - (1.0 - dry) * stored) / (1.0 - wet)
            if mode == NORMAL:
                error = measured - reference
                integral += TICK * law.ki * error
                feed *= max(0.0, 1.0 + law.kp * error + integral)
            fuel = min(max(feed, law.least_fuel), law.most_fuel)
            stored = wet * fuel + dry * stored
            estimate += TICK * MANIFOLD * (maf * flow * share - expected)
            ratio = 0.0 if flooded else air / (direct * injector * fuel + wall / tau)
        if to_sample == 0:
            error = (fast - reference) / reference
            values = (error, fast, reference, speed, throttle, p, fuel, float(mode))
            _record(values, slots, sample, out)
            sample, to_sample = sample + 1, grid.every
        if k == grid.steps:
            break
        to_tick, to_sample, to_pedal = to_tick - 1, to_sample - 1, to_pedal - 1
        lag = target + (lag - target) * keep_slow
        if to_pedal == 0:
            target, other, to_pedal = other, target, grid.half_period
        throttle = min(max(lag + 8.8, 0.0), 90.0)
        next_flow = _throttle_flow(throttle)
        p = _next_pressure(p, share, slope, flow, next_flow, pump, linear, square, h)
        flow = next_flow
        air = pump * _pumped(p, linear, square)
        charge = math.pi * air / w
        evaporated = wall / tau
        arriving = 1.0 - direct
        direct, tau = _film(film, charge)
        old_ratio, old_rate = ratio, rate
        rate = 1.0 / _delay(delay, charge)
        if not (0.0 < rate < 1e4 and abs(fast) < 1e6):  # nan fails every comparison
            return False
        flooded = flooded or tau <= 0.0
        if flooded:  # the film would evaporate infinitely fast: all fuel, no air
            wall, tau, ratio = 0.0, 1.0, 0.0
        else:
            gained = (arriving + 1.0 - direct) * injector * fuel - evaporated
            wall = (wall + 0.5 * h * gained) * tau / (tau + 0.5 * h)
            ratio = air / (direct * injector * fuel + wall / tau)
        mean = 0.5 * (old_ratio + ratio)
        advance = 0.5 * h * (old_rate + rate)
        line[2, k] = mean
        z += advance
        area += mean * advance
        line[0, k + 1], line[1, k + 1] = z, area
        reached = (z - 1.0) * SET_POINT
        if z > 1.0:
            while line[0, cell + 1] <= z - 1.0:
                cell += 1
            reached = line[1, cell] + line[2, cell] * (z - 1.0 - line[0, cell])
        arrived = (reached - left) / advance
        left = reached
        fast = arrived + passed * (slow - arrived) + keep_fast * (fast - arrived)
        slow = arrived + keep_slow * (slow - arrived)
    return True


@njit(cache=True, nogil=True)
def simulate(grid, law, pump, pedal, pulse, speed, maf, injector, sensor, film, delay, wet, dry, slots, out):
    """Traces one after the other into ``out[trace, signal, sample]``; the first that failed, or -1."""
    line = np.empty((3, grid.steps + 1))
    for i in range(speed.size):
        numbers = (speed[i], maf[i], injector[i], sensor[i])
        rows = (film[i], delay[i], wet[i], dry[i])
        if not _trace(grid, law, pump, pedal, pulse, *numbers, *rows, line, slots, out[i]):
            return i
    return -1
