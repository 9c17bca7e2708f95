"""One trace of the powertrain, jitted: plant, transport delay, sensor and sampled controller.

A method of order two solves each equation, so a step of 1 ms is fine enough:

* the manifold pressure by ROS2, a linearly implicit Runge-Kutta method of two stages. With the throttle wide open the
  pressure settles within 0.1 ms, and an explicit step of 1 ms would oscillate around p = 1. The method keeps its order
  with any estimate of the slope, so the estimate can be bounded at p = 1, where the true slope is infinite;
* the fuel film by the trapezoidal rule. It is implicit, but in closed form because the film is linear;
* the throttle and the two lags of the sensor exactly;
* the transport delay through its integral. The air-fuel ratio u jumps whenever the controller acts (the first command
  ends a pulse 50 above the set point). Interpolating stored values of u would lose a part of each jump, an error of
  order one. The line stores z and the integral of u over z instead. Both are continuous, and the sensor receives in
  each step the mean of u over that step.

No random number is drawn here. All jitted functions of the model stay in this file, because Numba's cache does not
notice edits in other files.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from dpsmc_audit.numerics.jit import kernel

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
FASTEST_DELAY = 1e4  # positions per second: shorter delays than 0.1 ms are no delays
LEAST_FLOW = 0.01  # bounds the slope that ROS2 is given at p = 1


class Controller(NamedTuple):
    """The parameters in which the two published controllers differ.

    Parameters
    ----------
    modes, compensates : bool
        Whether it has modes, and whether it compensates the film of fuel.
    kp, ki : float
        The gains of its feedback.
    least_fuel, most_fuel : float
        The limits of its command.
    pressure, estimate : float
        Manifold pressure at the start, and its estimate.
    """

    modes: bool
    compensates: bool
    kp: float
    ki: float
    least_fuel: float
    most_fuel: float
    pressure: float
    estimate: float


class Grid(NamedTuple):
    """Lengths of time.

    Parameters
    ----------
    step : float
        The step in seconds.
    steps, tick, every, half_period, failure : int
        In steps: the trace, a controller tick, a sample, half a pedal period, and when the sensor fails.
    """

    step: float
    steps: int
    tick: int
    every: int
    half_period: int
    failure: int


class Switches(NamedTuple):
    """The state of the mode logic.

    Parameters
    ----------
    normal, power, failed : bool
        Whether feedback was switched on, the pedal asks for full power, and the sensor has failed.
    """

    normal: bool
    power: bool
    failed: bool


class Memory(NamedTuple):
    """The state of the controller.

    Parameters
    ----------
    estimate : float
        Estimated manifold pressure.
    integral : float
        Of the feedback.
    wall : float
        Film on the wall.
    """

    estimate: float
    integral: float
    wall: float


jitted = partial(kernel, error_model="numpy")  # divisions by zero give inf or nan, which are checked later


@jitted
def _angle(lag):
    return min(max(lag + 8.8, 0.0), 90.0)


@jitted
def _throttle_flow(angle):
    """Compute the air flow through the throttle plate while the flow is choked."""
    return 2.821 + angle * (-0.05231 + angle * (0.10299 - 0.00063 * angle))


@jitted
def _restriction(p):
    """Compute the share of the choked flow at pressure p (negative: back flow), and minus its slope times itself."""
    ratio = p if p <= 1.0 else 1.0 / p
    sign = 1.0 if p < 1.0 else -1.0
    if ratio < 0.5:
        return sign, 0.0
    return sign * 2.0 * math.sqrt(ratio - ratio * ratio), 4.0 * ratio - 2.0


@jitted
def _pumped(x, linear, square):
    """Compute the air that the cylinders draw at pressure x. The controller estimates with the same polynomial."""
    return -0.366 + x * (linear + square * x)


@jitted
def _next_pressure(p, share, fall, flow, next_flow, pump, linear, square, h):
    """Make a ROS2 step of ``p' = c1 (flow share(p) - pump P(p))``. `fall` is minus the slope of the share, times it."""
    reach = GAMMA * h * MANIFOLD
    bounded = max(abs(share), LEAST_FLOW)
    damping = bounded / (bounded * (1.0 + reach * pump * (linear + 2.0 * square * p)) + reach * flow * fall)
    first = damping * MANIFOLD * (flow * share - pump * _pumped(p, linear, square))
    guess = p + h * first
    change = MANIFOLD * (next_flow * _restriction(guess)[0] - pump * _pumped(guess, linear, square))
    second = damping * (change - 2.0 * first)
    return p + h * (1.5 * first + 0.5 * second)


@jitted
def _film(pieces, charge):
    """Read the direct share of the fuel and the time constant of the film."""
    j = int(charge >= 0.1) + int(charge >= 0.2) + int(charge >= 0.3) + int(charge >= 0.4)
    return pieces[j, 0] + pieces[j, 1] * charge, pieces[j, 2] + pieces[j, 3] * charge


@jitted
def _delay(pieces, charge):
    j = int(charge >= 0.05) + int(charge >= 0.15) + int(charge >= 0.2) + int(charge >= 0.25)
    return pieces[j, 0] + pieces[j, 1] * charge


@jitted
def _ratio(air, direct, injected, wall, tau):
    """Compute the air-fuel ratio in the cylinder. It is 0 where the extrapolated film is impossible (tau <= 0)."""
    fuel = direct * injected + wall / tau
    return air / fuel if tau > 0.0 and fuel > 0.0 else 0.0


@jitted
def _switch(ticks, throttle, measured, before):
    """Update the three switches of the controller. Normal and failure latch, power has a hysteresis."""
    normal = before.normal or ticks >= NORMAL_AFTER
    power = throttle >= (POWER_UNTIL if before.power else POWER_ABOVE)
    return Switches(normal, power, before.failed or measured <= SENSOR_DEAD)


@jitted
def _mode(switches):
    if switches.failed:
        return FAILURE
    if not switches.normal:
        return STARTUP
    return POWER if switches.power else NORMAL


@jitted
def _act(law, memory, mode, reference, measured, air_in, linear, square, wet, dry):
    """Make one tick of the controller: the fuel that it commands, and its new state."""
    expected = _pumped(memory.estimate, linear, square)
    feed, integral = expected / reference, memory.integral
    if law.compensates:
        feed = (feed - (1.0 - dry) * memory.wall) / (1.0 - wet)
    if mode == NORMAL:
        error = measured - reference
        integral += TICK * law.ki * error
        feed *= max(0.0, 1.0 + law.kp * error + integral)
    fuel = min(max(feed, law.least_fuel), law.most_fuel)
    estimate = memory.estimate + TICK * MANIFOLD * (air_in - expected)
    return fuel, Memory(estimate, integral, wet * fuel + dry * memory.wall)


@jitted
def _push(line, k, mean, advance):
    """Add step k to the delay line: the position, the integral of the input up to it, and the mean of the input."""
    line[0, k + 1] = line[0, k] + advance
    line[1, k + 1] = line[1, k] + mean * advance
    line[2, k] = mean
    return line[0, k + 1]


@jitted
def _left_the_line(line, cell, z):
    """Compute the integral of the output of the delay line up to position z, and the cell in which z lies."""
    if z <= 0.0:
        return z * SET_POINT, cell
    while line[0, cell + 1] <= z:
        cell += 1
    return line[1, cell] + line[2, cell] * (z - line[0, cell]), cell


@jitted
def _record(values, slots, sample, out):
    """Write the signals that have a slot. Slot -1 means that a signal is not written."""
    for name in range(slots.size):
        if slots[name] >= 0:
            out[slots[name], sample] = values[name]


@jitted
def _trace(grid, law, pump, pedal, pulse, speed, maf, injector, sensor, film, delay, wet, dry, line, slots, out):
    """Fill ``out[signal, sample]``. Return False if the state is not finite or the delay not positive."""
    h, w = grid.step, speed * math.pi / 30.0
    linear, square = 0.08979 * w + 0.0001 * w * w, -0.0337 * w
    keep_slow, keep_fast = math.exp(-10.0 * h), math.exp(-50.0 * h)  # the throttle lags as the slow stage does
    through = 1.25 * (keep_slow - keep_fast)  # the slow stage seen through the fast one
    lag, p, wall, slow, fast = 0.0, law.pressure, FIRST_FILM, SET_POINT, SET_POINT
    fuel, reference, memory = FIRST_FUEL, SET_POINT, Memory(law.estimate, 0.0, 0.0)
    switches = Switches(not law.modes, False, False)
    mode, throttle = _mode(switches), _angle(lag)
    flow, air = _throttle_flow(throttle), pump * _pumped(p, linear, square)
    (direct, tau), rate = _film(film, math.pi * air / w), 1.0 / _delay(delay, math.pi * air / w)
    ratio = _ratio(air, direct, injector * fuel, wall, tau)
    left, cell, line[:, 0] = -SET_POINT, 0, 0.0
    # count down: a remainder of integers would cost as much as the whole film
    ticks, to_tick, sample, to_sample = 0, grid.tick, 0, 0
    to_press, target, next_target = grid.half_period, pedal, pedal + pulse
    for k in range(grid.steps + 1):
        share, fall = _restriction(p)
        if to_tick == 0:
            ticks, to_tick = ticks + 1, grid.tick
            measured = sensor * fast if k < grid.failure else SENSOR_DEAD
            if law.modes:
                switches = _switch(ticks, throttle, measured, switches)
                mode = _mode(switches)
                reference = RICH if switches.normal and switches.power else SET_POINT
            fuel, memory = _act(law, memory, mode, reference, measured, maf * flow * share, linear, square, wet, dry)
            ratio = 0.0 if ratio == 0.0 else _ratio(air, direct, injector * fuel, wall, tau)
        if to_sample == 0:
            values = ((fast - reference) / reference, fast, reference, speed, throttle, p, fuel, float(mode))
            _record(values, slots, sample, out)
            sample, to_sample = sample + 1, grid.every
        if k == grid.steps:
            break
        to_tick, to_sample, to_press = to_tick - 1, to_sample - 1, to_press - 1
        lag = target + (lag - target) * keep_slow
        if to_press == 0:
            target, next_target, to_press = next_target, target, grid.half_period
        throttle, old_flow = _angle(lag), flow
        flow = _throttle_flow(throttle)
        p = _next_pressure(p, share, fall, old_flow, flow, pump, linear, square, h)
        air = pump * _pumped(p, linear, square)
        gained, old_ratio, old_rate = (1.0 - direct) * injector * fuel - wall / tau, ratio, rate
        (direct, tau), rate = _film(film, math.pi * air / w), 1.0 / _delay(delay, math.pi * air / w)
        if not (0.0 < rate < FASTEST_DELAY and abs(fast) < np.inf):  # nan fails every comparison
            return False
        wall = (wall + 0.5 * h * (gained + (1.0 - direct) * injector * fuel)) * tau / (tau + 0.5 * h)
        ratio = 0.0 if ratio == 0.0 else _ratio(air, direct, injector * fuel, wall, tau)
        advance, old_left = 0.5 * h * (old_rate + rate), left
        z = _push(line, k, 0.5 * (old_ratio + ratio), advance)
        left, cell = _left_the_line(line, cell, z - 1.0)
        arrived = (left - old_left) / advance
        above_slow, above_fast = slow - arrived, fast - arrived
        slow, fast = arrived + keep_slow * above_slow, arrived + through * above_slow + keep_fast * above_fast
    return abs(fast) < np.inf


@jitted
def simulate(grid, law, pump, pedal, pulse, speed, maf, injector, sensor, film, delay, wet, dry, slots, out):
    """Simulate traces into ``out[trace, signal, sample]``.

    Parameters
    ----------
    grid, law : Grid, Controller
        Times and controller.
    pump, pedal, pulse : float
        As in `Powertrain`.
    speed, maf, injector, sensor, wet, dry : ndarray, shape (traces,)
        Inputs, and the film compensation at each speed.
    film, delay : ndarray, shape (traces, 5, 4) and (traces, 5, 2)
        Tables as functions of the charge.
    slots : ndarray of int
        Where each of `SIGNALS` is written, or -1.
    out : ndarray
        The result.

    Returns
    -------
    int
        The first trace that failed, or -1.
    """
    line = np.empty((3, grid.steps + 1))
    for i in range(speed.size):
        numbers = (speed[i], maf[i], injector[i], sensor[i])
        rows = (film[i], delay[i], wet[i], dry[i])
        if not _trace(grid, law, pump, pedal, pulse, *numbers, *rows, line, slots, out[i]):
            return i
    return -1
