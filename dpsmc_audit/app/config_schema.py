"""All keys of the command line, with their types and defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpsmc_audit.app.groups import BackendKeys, Engine, Named, Noise
from dpsmc_audit.models.keys import ModelKeys

__all__ = ["Schema"]


@dataclass
class Schema:
    """All keys of the command line, with their types and defaults. `reference` describes each in a line.

    Parameters
    ----------
    p, p_phi, delta, alpha, alpha_fp, alpha_fn : float
        The test and the system. `p_phi` is None if a model has it, and a level of one error is None if it is `alpha`.
    epsilon, claimed_delta : float
        The privacy claim.
    mu, curve : float and str, optional
        Another claim in its place: Gaussian differential privacy, or the file of a curve.
    entry : int or list of int
        The changed samples.
    runs, pairs, draws : int
        How much is sampled.
    bin_width : int, optional
        The width of bins in samples; None chooses one.
    seed, max_steps : int
        How runs are drawn.
    confidence, floor : float
        The level of intervals, and the smallest probability of an event behind a bound on epsilon.
    epsilons : list of float, optional
        Where the privacy profile is computed.
    early : bool
        Whether sampling stops as soon as the claim is refuted.
    sequence, sampler : str, optional
        A file of the other samples, and the user's mechanism.
    samples, label : object, optional
        The file or files of runs one already has, and the column of labels.
    missing : bool
        Whether nan and None are outcomes of their own.
    predictor : str, optional
        The user's classifier.
    formula, formula_file : str, optional
        The specification, or its file.
    relation : str
        Which side of `p` is asked for.
    insecure : bool
        Whether a release may have a seed.
    ledger, budget : str and float, optional
        The file that counts releases, and the largest sum of their epsilons.
    figures : bool, optional
        Whether pictures are drawn as PNG files; None draws them for single runs and not for points of a sweep.
    study : str, optional
        The name of a sweep.
    task, mechanism, notion, model, engine, backend
        The groups.
    """

    p: float = 0.73
    p_phi: float | None = None
    alpha: float = 0.01
    alpha_fp: float | None = None
    alpha_fn: float | None = None
    delta: float = 0.01
    epsilon: float = 0.01
    entry: Any = 1
    runs: int = 10_000
    pairs: int = 500
    draws: int = 10_000
    bin_width: int | None = 140
    seed: int = 1
    max_steps: int = 10_000_000
    confidence: float = 0.99
    floor: float = 0.01
    epsilons: list[float] | None = None
    sequence: str | None = None
    early: bool = True
    sampler: str | None = None
    samples: Any = None
    label: str | None = None
    missing: bool = False
    predictor: str | None = None
    claimed_delta: float = 0.0
    mu: float | None = None
    curve: str | None = None
    formula: str | None = None
    formula_file: str | None = None
    relation: str = "gt"
    insecure: bool = False
    ledger: str | None = None
    budget: float | None = None
    figures: bool | None = None
    study: str | None = None
    task: Named = field(default_factory=Named)
    mechanism: Noise = field(default_factory=Noise)
    notion: Named = field(default_factory=Named)
    model: ModelKeys = field(default_factory=ModelKeys)
    engine: Engine = field(default_factory=Engine)
    backend: BackendKeys = field(default_factory=BackendKeys)
