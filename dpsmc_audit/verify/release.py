"""A verification: what it will cost, one run behind the boundary, and the release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsmc_audit.errors import require
from dpsmc_audit.mechanisms import Law, Mechanism, NoNoise
from dpsmc_audit.models.keys import ORDERS, RELATIONS
from dpsmc_audit.models.sources import Negated, Source
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify.boundary import sealed
from dpsmc_audit.verify.entropy import Entropy, SeededEntropy, SystemEntropy
from dpsmc_audit.verify.noise import Grid, opendp_version
from dpsmc_audit.verify.order import in_order, order_words
from dpsmc_audit.verify.run import Outcome, run_once
from dpsmc_audit.verify.statement import expected_cost, privacy_statement

__all__ = ["announcement", "sentences", "verify"]

INSECURE = "none: all that is random here was drawn from a seed (insecure=true); whoever knows it can repeat this run"


def verify(
    test: Sprt,
    mechanism: Mechanism,
    source: Source | Callable[[], Source],
    *,
    epsilon: float,
    negated: bool = False,
    max_steps: int = 10_000_000,
    seed: int | None = None,
    order: str | None = None,
    announce: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Run the test once on a source and return what may be released.

    A function that makes the source is called behind the boundary: opening private data can tell of them too.
    A `seed` makes the run repeatable and the release worthless for privacy, which it then says. `announce` is told
    what the run will cost before it starts. `order` is random or file for recorded samples, and None for samples that a
    model draws. If it is not given, a recorded source is used in random order; with a function that makes a recorded
    source it must be given.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> from dpsmc_audit.models.sources import Bernoulli
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.01)
    >>> release = verify(test, Exponential.private(test, 0.1), Bernoulli(0.9), epsilon=0.1)
    >>> release["decision"], release["tau"] > 0, sorted(release)
    ('H_null', True, ['decision', 'insecure', 'noise', 'privacy', 'tau'])
    """
    require(order is None or order in ORDERS, f"order must be one of {', '.join(ORDERS)}, got {order}")
    if order is None and not callable(source) and not source.repeatable:
        order = "random"
    privacy = privacy_statement(test, mechanism, epsilon, negated=negated)
    if order is not None:
        privacy = privacy | {"samples": order_words(order, seeded=seed is not None)}
    if announce is not None:
        announce(announcement(test, mechanism, negated=negated))
    grid = Grid.of(test)
    opendp = opendp_version(test, mechanism, grid) if seed is None else None
    entropy: Entropy = SystemEntropy() if seed is None else SeededEntropy(seed)

    def run() -> Outcome:
        opened = source() if callable(source) else source
        ordered = in_order(opened, order, entropy)
        counted = Negated(ordered) if negated else ordered
        return run_once(test, mechanism, counted, max_steps, entropy, opendp=opendp is not None)

    tau, decision = sealed(run)
    return {
        "decision": decision,
        "tau": tau,
        "insecure": seed is not None,
        "privacy": privacy if seed is None else privacy | {"protection": INSECURE},
        "noise": _noise(mechanism, grid, opendp, seed is not None),
    }


def _noise(mechanism: Mechanism, grid: Grid, opendp: str | None, seeded: bool) -> dict[str, Any]:
    """How L was drawn: its law and its grid are public."""
    drawn = "a seed" if seeded else "the operating system's entropy"
    sampler = f"OpenDP {opendp}" if opendp else f"exact sampler in whole numbers, from {drawn}"
    if isinstance(mechanism, Law):
        sampler = f"scipy's quantile of a 53-bit uniform number, from {drawn}: not exact"
    if isinstance(mechanism, NoNoise):
        sampler = "none: L = 0"
    return {
        "sampler": sampler,
        "grid": f"(s_plus + s_minus) / 2^{grid.bits}",
        "rounding": "after N samples walk, bounds and L are within N/2 + 2 units of those that were audited",
    }


def announcement(test: Sprt, mechanism: Mechanism, *, negated: bool = False) -> str:
    """What a run will cost, in samples, as far as that can be known beforehand."""
    cost = expected_cost(test, mechanism)
    pairs = sorted((1.0 - p_phi if negated else p_phi, samples) for p_phi, samples in cost.items())
    cells = [(f"{p_phi:.4g}", f"{float(f'{samples:.3g}'):.0f}") for p_phi, samples in pairs]
    widths = [max(len(cell) for cell in column) for column in cells]
    lines = (
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in zip(*cells, strict=True)
    )
    return "\n".join(
        f"{name:<26} {line}" for name, line in zip(("if p_phi is", "it takes on average about"), lines, strict=True)
    )


def sentences(release: dict[str, Any], p: float, relation: str) -> list[str]:
    """The release for a person."""
    said, privacy = release["decision"], release["privacy"]
    answer = {"H_null": "yes", "H_alt": "no"}.get(said, "undecided")
    name = "" if answer == said else f" ({said})"
    lines = [f"is p_phi {RELATIONS[relation]} {p:g}? {answer}{name} after tau = {release['tau']} samples"]
    lines += _leaks(privacy)
    if "samples" in privacy:
        lines.append(f"samples: {privacy['samples']}")
    lines.append(f"protection from who knows every other sample: {privacy['informed_observer'].partition(':')[0]}")
    lines.append(f"composition: {privacy['composition']}")
    if release["insecure"]:
        lines.append(f"protection: {privacy['protection']}")
    return lines


def _leaks(privacy: dict[str, Any]) -> list[str]:
    """For the observer who knows no other sample: what is proven, and what was examined."""
    epsilon, most, delta = privacy["epsilon"], privacy["at_most"], privacy["delta_at_epsilon"]
    proven = "nothing is proven at these parameters: p_phi and samples that were not examined are not covered"
    if most is not None:
        proven = (
            f"an observer who knows no other sample learns of one sample at most what (epsilon, delta) = "
            f"({epsilon:g}, {most['delta_at_epsilon']:.3g}) allows, total variation {most['total_variation']:.3g}; "
            f"proven for every p_phi and every sample, if samples are independent"
        )
    worst = f"no case needs a delta above its numerical error at epsilon = {epsilon:g}"
    if delta is not None:
        varied = privacy["total_variation"]
        apart = "" if varied is None else f"; total variation {varied:.3g} ± {privacy['total_variation_error']:.1g}"
        worst = (
            f"the worst case needs delta = {delta:.3g} ± {privacy['numerical_error']:.1g} at epsilon = {epsilon:g} "
            f"(p_phi = {privacy['worst_p_phi']:g}, sample {privacy['worst_sample']}, {privacy['worst_seen']}){apart}"
        )
    whole, near, missing = (privacy[f"p_phi_{name}"] for name in ("grid", "decision", "unknown"))
    cases = (
        f"sample 1 at {len(whole)} p_phi outside of p ± delta (tau and decision) and at {len(near)} within "
        f"(decision alone); many samples of data that are all ones or all zeros"
    )
    but = f"; not known: p_phi = {', '.join(f'{p_phi:g}' for p_phi in missing)}" if missing else ""
    return [f"privacy: {proven}", f"examined: {worst}", f"examined were {cases}{but}"]
