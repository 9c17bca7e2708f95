"""A verification: its expected cost, one run in a child process, and the release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from dpsmc_audit.errors import require
from dpsmc_audit.mechanisms import Law, Mechanism, NoNoise
from dpsmc_audit.models.keys import ORDERS, RELATIONS
from dpsmc_audit.models.sources import Negated, Source
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.verify.boundary import Allowed, sealed
from dpsmc_audit.verify.entropy import Entropy, SeededEntropy, SystemEntropy
from dpsmc_audit.verify.ledger import Spent
from dpsmc_audit.verify.noise import Grid, opendp_version
from dpsmc_audit.verify.order import order_words, ordered
from dpsmc_audit.verify.run import Outcome, run_once
from dpsmc_audit.verify.statement import expected_cost, privacy_statement

__all__ = ["Samples", "announcement", "sentences", "verify"]

Record = Callable[[float, float], Spent]
INSECURE = (
    "none: all that is random here was drawn from a seed (insecure=true); anyone who knows the seed can repeat this run"
)


@dataclass(frozen=True)
class Samples:
    """Private samples. They are opened in the child process, because errors of opening them can reveal them.

    Parameters
    ----------
    open : callable
        Makes the source.
    order : {"random", "file"} or None
        The order of recorded samples. None for a model that draws its samples.
    names : tuple of str
        Names that an error may repeat: of the file, its columns and signals, or of the model's function.
    """

    open: Callable[[], Source]
    order: str | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Source, order: str | None = None) -> Self:
        """Take the samples of a source that is open.

        Parameters
        ----------
        source : Source
            The source.
        order : {"random", "file"}, optional
            The order of recorded samples. The default is random.

        Returns
        -------
        Samples
            The samples.
        """
        signals = getattr(getattr(source, "formula", None), "signals", ())
        given = (getattr(source, name, None) for name in ("path", "column", "target"))
        if order is None and not source.repeatable:
            order = "random"
        names = tuple(f"{name}" for name in (*given, *signals) if name is not None)
        return cls(lambda: source, order, (*names, "trace", "time"))


def verify(
    test: Sprt,
    mechanism: Mechanism,
    samples: Source | Samples,
    *,
    epsilon: float,
    negated: bool = False,
    max_steps: int = 10_000_000,
    seed: int | None = None,
    record: Record | None = None,
) -> dict[str, Any]:
    """Run the test once on private samples and return what may be released.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    samples : Source or Samples
        The samples. Those of a source are used in random order if they are recorded.
    epsilon : float
        The privacy level that the release states its delta for.
    negated : bool
        Test the negated specification (the paper's Remark 2).
    max_steps : int
        The largest number of samples.
    seed : int, optional
        Makes the run repeatable. The release then protects nothing, and says so.
    record : callable, optional
        Called with the proven bound (epsilon, delta) before the run starts, such as ``Ledger.record``. It returns what
        all releases leak together, or raises an error that stops this one.

    Returns
    -------
    dict
        The release.

    Raises
    ------
    VerificationError
        If the run fails. The message holds nothing about samples or noise.
    ParameterError
        If the order is unknown, or if there is a ledger and nothing is proven for the law of L.

    Examples
    --------
    >>> from dpsmc_audit.mechanisms import Exponential
    >>> from dpsmc_audit.models.sources import Bernoulli
    >>> test = Sprt(p=0.73, delta=0.03, alpha=0.01)
    >>> release = verify(test, Exponential.private(test, 0.1), Bernoulli(0.9), epsilon=0.1)
    >>> release["decision"], release["tau"] > 0, sorted(release)
    ('H_null', True, ['decision', 'insecure', 'noise', 'privacy', 'tau'])
    """
    given = samples if isinstance(samples, Samples) else Samples.of(samples)
    order = given.order
    require(order is None or order in ORDERS, f"order must be one of {', '.join(ORDERS)}, got {order}")
    privacy = privacy_statement(test, mechanism, epsilon, negated=negated)
    if order is not None:
        privacy["samples"] = order_words(order, seeded=seed is not None)
    if seed is not None:
        privacy["protection"] = INSECURE
    spent = None if record is None else _recorded(record, privacy)
    grid = Grid.of(test)
    opendp = opendp_version(test, mechanism, grid) if seed is None else None
    entropy: Entropy = SystemEntropy() if seed is None else SeededEntropy(seed)

    def run() -> Outcome:
        source = ordered(given.open(), order, entropy)
        counted = Negated(source) if negated else source
        return run_once(test, mechanism, counted, max_steps, entropy, opendp=opendp is not None)

    tau, decision = sealed(run, Allowed(max_steps, given.names, recorded=order is not None))
    release = {
        "decision": decision,
        "tau": tau,
        "insecure": seed is not None,
        "privacy": privacy,
        "noise": _noise(mechanism, grid, opendp, seed is not None),
    }
    return release if spent is None else release | {"ledger": spent.as_dict()}


def _recorded(record: Record, privacy: dict[str, Any]) -> Spent:
    """Record the release before it is made. Its statement then says what all of them leak together."""
    most = privacy["at_most"]
    require(most is not None, "ledger: nothing is proven for one release with these parameters, so none can be counted")
    spent = record(privacy["epsilon"], most["delta_at_epsilon"])
    privacy["composition"] = spent.words
    return spent


def _noise(mechanism: Mechanism, grid: Grid, opendp: str | None, seeded: bool) -> dict[str, str]:
    """Describe how L was drawn. Its law and its grid are public."""
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
    """Tabulate the expected number of samples over p_phi.

    Parameters
    ----------
    test : Sprt
        The test.
    mechanism : Mechanism
        The law of L.
    negated : bool
        Show p_phi of the specification as the user gave it.

    Returns
    -------
    str
        Two lines.
    """
    cost = expected_cost(test, mechanism)
    pairs = sorted((1.0 - p_phi if negated else p_phi, samples) for p_phi, samples in cost.items())
    cells = [(f"{p_phi:.4g}", f"{float(f'{samples:.3g}'):.0f}") for p_phi, samples in pairs]
    lines = []
    for row, name in enumerate(("if p_phi is", "it takes on average about")):
        lines.append(f"{name:<26} " + "  ".join(cell[row].rjust(max(map(len, cell))) for cell in cells))
    return "\n".join(lines)


def sentences(release: dict[str, Any], p: float, relation: str) -> list[str]:
    """Describe a release in words.

    Parameters
    ----------
    release : dict
        The result of `verify`.
    p : float
        The threshold as the user gave it.
    relation : {"gt", "ge", "lt", "le"}
        The relation between p_phi and p that was tested.

    Returns
    -------
    list of str
        One line for each statement.
    """
    decision, privacy = release["decision"], release["privacy"]
    answer = {"H_null": "yes (H_null)", "H_alt": "no (H_alt)"}.get(decision, "undecided")
    lines = [f"is p_phi {RELATIONS[relation]} {p:g}? {answer} after tau = {release['tau']} samples", *_leaks(privacy)]
    if "samples" in privacy:
        lines.append(f"samples: {privacy['samples']}")
    lines.append(
        f"protection against an observer who knows every other sample: {privacy['informed_observer'].partition(':')[0]}"
    )
    lines.append(f"composition: {privacy['composition']}")
    if release["insecure"]:
        lines.append(f"protection: {privacy['protection']}")
    return lines


def _leaks(privacy: dict[str, Any]) -> list[str]:
    """What is proven and what was examined, for an observer who knows no other sample."""
    epsilon, most, delta = privacy["epsilon"], privacy["at_most"], privacy["delta_at_epsilon"]
    proven = "nothing is proven at these parameters: p_phi and samples that were not examined are not covered"
    if most is not None:
        proven = (
            f"to an observer who knows no other sample, this release leaks at most (epsilon, privacy delta) = "
            f"({epsilon:g}, {most['delta_at_epsilon']:.3g}) about one sample, total variation "
            f"{most['total_variation']:.3g}; proven for every p_phi and every sample, if samples are independent"
        )
    worst = f"no case needs a privacy delta above its numerical error at epsilon = {epsilon:g}"
    if delta is not None:
        varied = privacy["total_variation"]
        apart = "" if varied is None else f"; total variation {varied:.3g} ± {privacy['total_variation_error']:.1g}"
        worst = (
            f"the worst case needs a privacy delta = {delta:.3g} ± {privacy['numerical_error']:.1g} at "
            f"epsilon = {epsilon:g} (p_phi = {privacy['worst_p_phi']:g}, sample {privacy['worst_sample']}, "
            f"{privacy['worst_seen']}){apart}"
        )
    whole, near, missing = (privacy[f"p_phi_{name}"] for name in ("grid", "decision", "unknown"))
    unknown = f"; not known: p_phi = {', '.join(f'{p_phi:g}' for p_phi in missing)}" if missing else ""
    cases = (
        f"examined were sample 1 at {len(whole)} p_phi outside of p ± delta (tau and decision) and at {len(near)} "
        f"within (decision alone); many samples of data that are all ones or all zeros{unknown}"
    )
    return [f"privacy: {proven}", f"examined: {worst}", cases]
