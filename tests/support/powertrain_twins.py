"""The powertrain in plain Python, twice: the kernel's method word for word, and a naive one of order one.

Both read the tables in two dimensions at every step and search the delay line; the naive one takes explicit Euler steps
and interpolates the delayed ratio itself, as one would at first.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field

from dpsmc_audit.models.powertrain import Powertrain

Trace = dict[str, list[float]]
Table = tuple[list[float], list[float], list[list[float]]]


def table(speeds: str, charges: str, *columns: str) -> Table:
    """Typed in again and by columns, so that a slip in one of the two copies shows."""
    values = [[float(x) for x in column.split()] for column in columns]
    axes = ([float(x) for x in axis.split()] for axis in (speeds, charges))
    return *axes, [list(row) for row in zip(*values, strict=True)]  # type: ignore[return-value]


SPEEDS, CHARGES = "1000 1500 2000 2500 3000", ".1 .2 .3 .4"
KAPPA = table(SPEEDS, CHARGES, ".8 .7 .7 .8 .9", ".7 .66 .65 .73 .85", ".66 .66 .63 .66 .8", ".6 .6 .6 .6 .7")
TAU = table(SPEEDS, CHARGES, ".4 .3 .35 .3 .2", ".22 .22 .4 .35 .5", ".2 .22 .5 .4 .35", ".35 .3 .45 .5 .4")
SLOW_SPEEDS, LOW_CHARGES = "800 1000 1500 2000 3000", ".05 .15 .2 .25"
DELAY = table(SLOW_SPEEDS, LOW_CHARGES, ".8 .6 .4 .3 .2", ".4 .3 .2 .2 .2", ".3 .25 .2 .2 .2", ".25 .2 .2 .2 .2")


def read(table: Table, speed: float, charge: float, extrapolate: bool) -> float:
    """Bilinear interpolation; beyond the ends the last cell goes on, or its last value is held."""
    speeds, charges, values = table
    if not extrapolate:
        speed = min(max(speed, speeds[0]), speeds[-1])
        charge = min(max(charge, charges[0]), charges[-1])
    i = min(max(bisect.bisect_right(speeds, speed) - 1, 0), len(speeds) - 2)
    j = min(max(bisect.bisect_right(charges, charge) - 1, 0), len(charges) - 2)
    x = (speed - speeds[i]) / (speeds[i + 1] - speeds[i])
    y = (charge - charges[j]) / (charges[j + 1] - charges[j])
    below = values[i][j] * (1 - x) + values[i + 1][j] * x
    beyond = values[i][j + 1] * (1 - x) + values[i + 1][j + 1] * x
    return below * (1 - y) + beyond * y


@dataclass
class Twin:
    """One trace: a model and the factors that are random in it."""

    model: Powertrain
    speed: float
    maf: float = 1.0
    injector: float = 1.0
    air_fuel: float = 1.0
    kappa: float = 1.0
    tau: float = 1.0
    c2: float = -0.366
    fuel: float = 0.1726
    ref: float = 14.7
    integral: float = 0.0
    film: float = 0.0
    normal: bool = False
    power: bool = False
    failed: bool = False
    estimate: float = field(init=False)

    def __post_init__(self) -> None:
        self.speed = min(max(self.speed, self.model.speed_range[0]), self.model.speed_range[1])
        self.w = self.speed * math.pi / 30
        self.closed = self.model.variant == "closed_loop"
        self.estimate = 0.825 if self.closed else 0.982
        self.first_pressure = 0.7705 if self.closed else 0.982

    def pumped(self, x: float) -> float:
        return self.c2 + 0.08979 * self.w * x - 0.0337 * self.w * x**2 + 0.0001 * self.w**2 * x

    def pedal(self, k: int, h: float) -> float:
        half = round(self.model.period / 2 / h)
        return self.model.pedal + (self.model.pulse if k // half % 2 else 0)

    def tick(self, number: int, throttle: float, ratio: float, air_in: float) -> None:
        """The controller acts, for the number-th time."""
        failure = self.model.sensor_failure
        measured = self.air_fuel * ratio if number * 0.01 < failure - 1e-9 else -1.0
        if not self.closed:
            self.normal = self.normal or number >= 1000
            self.power = throttle >= 50 if self.power else throttle >= 70
            self.failed = self.failed or measured <= -1
            self.ref = 12.5 if self.normal and self.power else 14.7
        open_loop = not self.closed and (self.failed or not self.normal or self.power)
        estimated = self.pumped(self.estimate)
        kp, ki, least, most = (0.1, 0.1, 0.1, 5.0) if self.closed else (0.04, 0.14, 0.13, 1.66)
        feed = estimated / self.ref
        if self.closed:
            clipped = min(max(self.speed, 1000), 3000)
            wet = 0.4 + 0.25 * (clipped - 1000) / 1000 if clipped < 2000 else 0.65 - 0.15 * (clipped - 2000) / 1000
            dry = 0.5 + 0.45 * (clipped - 1000) / 1000 if clipped < 2000 else 0.95 - 0.05 * (clipped - 2000) / 1000
            self.film = wet * self.fuel + dry * self.film if number > 1 else 0.0
            feed = (feed - (1 - dry) * self.film) / (1 - wet)
        if not open_loop:
            error = measured - self.ref
            self.integral += 0.01 * ki * error
            feed *= max(0.0, 1 + kp * error + self.integral)
        self.fuel = min(max(feed, least), most)
        self.estimate += 0.01 * 0.41328 * (self.maf * air_in - estimated)

    def mode(self) -> int:
        if self.closed:
            return 1
        return 3 if self.failed else 0 if not self.normal else 2 if self.power else 1

    def tables(self, air: float) -> tuple[float, float, float]:
        charge, extrapolate = math.pi * air / self.w, self.model.extrapolate
        kappa, tau, delay = (read(table, self.speed, charge, extrapolate) for table in (KAPPA, TAU, DELAY))
        return self.kappa * kappa, self.tau * tau, delay

    def run(self, h: float, *, naive: bool = False) -> Trace:
        """All signals at the model's sampling step."""
        steps, per_tick = round(self.model.duration / h), round(0.01 / h)
        every = round(self.model.sample_step / h)
        lag, p, m, slow, fast = 0.0, self.first_pressure, 0.0112, 14.7, 14.7
        out: Trace = {name: [] for name in ("e", "air_fuel", "throttle", "pressure", "fuel", "mode", "reference")}
        line = NaiveLine() if naive else Line()
        for k in range(steps + 1):
            throttle = min(max(lag + 8.8, 0.0), 90.0)
            if k and k % per_tick == 0:
                self.tick(k // per_tick, throttle, fast, plate(throttle) * restriction(p))
            if k % every == 0:
                point = ((fast - self.ref) / self.ref, fast, throttle, p, self.fuel, self.mode(), self.ref)
                for name, value in zip(out, point, strict=True):
                    out[name].append(value)
            air = self.model.pump * self.pumped(p)
            kappa, tau, delay = self.tables(air)
            fuel = self.injector * self.fuel
            ratio = air / (kappa * fuel + m / tau)
            target = self.pedal(k, h)
            next_lag = target + (lag - target) * math.exp(-10 * h)
            if naive:
                arrived = line.put(ratio, ratio, 1 / delay, h)
                p += h * 0.41328 * (plate(throttle) * restriction(p) - air)
                m += h * ((1 - kappa) * fuel - m / tau)
                middle = 0.5 * (slow + arrived + (slow - arrived) * math.exp(-10 * h))
                fast = middle + (fast - middle) * math.exp(-50 * h)
            else:
                next_throttle = min(max(next_lag + 8.8, 0.0), 90.0)
                p = self.rosenbrock(p, plate(throttle), plate(next_throttle), h)
                next_air = self.model.pump * self.pumped(p)
                kappa1, tau1, delay1 = self.tables(next_air)
                m = (m + h / 2 * ((2 - kappa - kappa1) * fuel - m / tau)) / (1 + h / 2 / tau1)
                next_ratio = next_air / (kappa1 * fuel + m / tau1)
                arrived = line.put(ratio, next_ratio, 0.5 * (1 / delay + 1 / delay1), h)
                decay = 50 / 40 * (math.exp(-10 * h) - math.exp(-50 * h))
                fast = arrived + decay * (slow - arrived) + math.exp(-50 * h) * (fast - arrived)
            slow = arrived + (slow - arrived) * math.exp(-10 * h)
            lag = next_lag
        return out

    def rosenbrock(self, p: float, flow: float, next_flow: float, h: float) -> float:
        """ROS2 as printed: two linear equations with the same matrix, here a number."""
        pump, gamma, c1 = self.model.pump, 1 - math.sqrt(0.5), 0.41328
        ratio, share = min(p, 1 / p), restriction(p)
        slope = -2 * (2 * ratio - 1) / max(abs(share), 0.01) if ratio >= 0.5 else 0.0
        matrix = c1 * (flow * slope - pump * (0.08979 * self.w - 0.0674 * self.w * p + 0.0001 * self.w**2))
        k1 = c1 * (flow * share - pump * self.pumped(p)) / (1 - gamma * h * matrix)
        guess = p + h * k1
        k2 = (c1 * (next_flow * restriction(guess) - pump * self.pumped(guess)) - 2 * k1) / (1 - gamma * h * matrix)
        return p + 1.5 * h * k1 + 0.5 * h * k2


def plate(throttle: float) -> float:
    return 2.821 - 0.05231 * throttle + 0.10299 * throttle**2 - 0.00063 * throttle**3


def restriction(p: float) -> float:
    ratio = min(p, 1 / p)
    return math.copysign(2 * math.sqrt(ratio - ratio**2) if ratio >= 0.5 else 1.0, 1 - p)


class Line:
    """Transport delay: the mean of what arrives during a step, from the integral of what was put in."""

    def __init__(self) -> None:
        self.z, self.area, self.left = [0.0], [0.0], -14.7

    def put(self, first: float, last: float, rate: float, h: float) -> float:
        self.z.append(self.z[-1] + h * rate)
        self.area.append(self.area[-1] + h * rate * (first + last) / 2)
        left = self.up_to(self.z[-1] - 1)
        mean, self.left = (left - self.left) / (h * rate), left
        return mean

    def up_to(self, z: float) -> float:
        if z <= 0:
            return 14.7 * z
        j = bisect.bisect_right(self.z, z) - 1
        share = (z - self.z[j]) / (self.z[j + 1] - self.z[j])
        return self.area[j] + share * (self.area[j + 1] - self.area[j])


class NaiveLine(Line):
    """The ratio as it was, interpolated between the steps at which it was stored, across its jumps too."""

    def __init__(self) -> None:
        super().__init__()
        self.ratio: list[float] = []

    def put(self, first: float, last: float, rate: float, h: float) -> float:
        self.ratio.append(first)
        z = self.z[-1] - 1
        arrived = 14.7
        if z >= 0:
            j = min(bisect.bisect_right(self.z, z) - 1, len(self.ratio) - 2)
            share = (z - self.z[j]) / (self.z[j + 1] - self.z[j])
            arrived = self.ratio[j] + share * (self.ratio[j + 1] - self.ratio[j])
        self.z.append(self.z[-1] + h * rate)
        return arrived
