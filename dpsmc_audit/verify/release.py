"""A verification: what it will cost, one run behind the boundary, and the release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsmc_audit.mechanisms import Law, Mechanism, NoNoise
from dpsmc_audit.models.keys import RELATIONS
from dpsmc_audit.models.sources import Negated, Source
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify.boundary import sealed
from dpsmc_audit.verify.entropy import Entropy, SeededEntropy, SystemEntropy
from dpsmc_audit.verify.noise import Grid, opendp_version
from dpsmc_audit.verify.run import Outcome, run_once
from dpsmc_audit.verify.statement import expected_cost, privacy_statement

__all__ = ["announcement", "sentences", "verify"]

INSECURE = "none: samples and noise were drawn from a seed (insecure=true); whoever knows it can repeat this run"


def verify(
    test: Sprt,
    mechanism: Mechanism,
    source: Source | Callable[[], Source],
    *,
    epsilon: float,
    negated: bool = False,
    max_steps: int = 10_000_000,
    seed: int | None = None,
    announce: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Run the test once on a source and return what may be released.

    A function that makes the source is called behind the boundary: opening private data can tell of them too.
    A `seed` makes the run repeatable and the release worthless for privacy, which it then says. `announce` is told
    what the run will cost before it starts.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> from dpsmc_audit.models.sources import Bernoulli
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.01)
    >>> release = verify(test, Exponential.private(test, 0.1), Bernoulli(0.9), epsilon=0.1)
    >>> release["decision"], release["tau"] > 0, sorted(release)
    ('H_null', True, ['decision', 'insecure', 'noise', 'privacy', 'tau'])
    """
    privacy = privacy_statement(test, mechanism, epsilon, negated=negated)
    if announce is not None:
        announce(announcement(test, mechanism, negated=negated))
    grid = Grid.of(test)
    opendp = opendp_version(test, mechanism, grid) if seed is None else None
    entropy: Entropy = SystemEntropy() if seed is None else SeededEntropy(seed)

    def run() -> Outcome:
        opened = source() if callable(source) else source
        counted = Negated(opened) if negated else opened
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
    if privacy["delta_at_epsilon"] is None:
        lines.append("privacy: nothing is known of one release at these parameters")
    else:
        lines.append(
            f"privacy: who knows no other sample learns of one sample what (epsilon, delta) = ({privacy['epsilon']:g}, "
            f"{privacy['delta_at_epsilon']:.3g}) allows, at worst (p_phi = {privacy['worst_p_phi']:g}, sample "
            f"{privacy['worst_sample']}); total variation {privacy['total_variation']:.3g}"
        )
    lines.append(f"protection from who knows every other sample: {privacy['informed_observer'].partition(':')[0]}")
    lines.append(f"composition: {privacy['composition']}")
    if release["insecure"]:
        lines.append(f"protection: {privacy['protection']}")
    return lines
