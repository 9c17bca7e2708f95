"""The task audit: from a checked configuration to a typed result and its files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpsmc_audit.app.cautions import levels_exceeded, outside_assumption, unfinished
from dpsmc_audit.app.config import Config
from dpsmc_audit.errors import ParameterError, SamplerError, require
from dpsmc_audit.runs.execution import Execution
from dpsmc_audit.runs.files import PARTIAL, write_json, write_text
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent
from dpsmc_audit.targets import load_target, said
from dpsmc_audit.tasks.other_observers import OtherObservers, other_observers

if TYPE_CHECKING:
    from dpsmc_audit.exact.averages import WorstErrors
    from dpsmc_audit.exact.enclosure import Enclosure
    from dpsmc_audit.observers.base import Audit, Engine, Observer
__all__ = ["Audited", "Price", "audit_of", "kept_before", "others_of"]


@dataclass(frozen=True, eq=False)
class Price:
    """What a mechanism costs: mean samples at p_phi, and both errors where the hypotheses begin.

    Parameters
    ----------
    samples : Enclosure
        Mean samples.
    worst : WorstErrors
        Both errors.
    """

    samples: Enclosure
    worst: WorstErrors

    def as_dict(self) -> dict[str, float | str]:
        """Return the part of ``result.json``."""
        from dpsmc_audit.tasks.simulate import exact_numbers

        return exact_numbers({"samples_exact": self.samples, "fp_worst": self.worst.fp, "fn_worst": self.worst.fn})


@dataclass(frozen=True, eq=False)
class Audited:
    """The result of the task audit.

    Parameters
    ----------
    audit : Audit
        What was found.
    price : Price, optional
        None for a user's mechanism.
    others : OtherObservers
        The profiles of the other observers.
    notes : tuple of str
        Warnings.
    """

    audit: Audit
    price: Price | None = None
    others: OtherObservers = field(default_factory=OtherObservers)
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        if self.price is None:
            return self.audit.as_dict()
        return {**self.audit.as_dict(), **self.price.as_dict(), "other_observers": self.others.as_dict()}

    def write(self, folder: Path) -> None:
        """Write the histogram, the profiles and the certificate.

        An audit without a privacy profile has no ``profile.csv``. Without other observers, an older
        ``observers.csv`` is removed, and without a certificate an older ``certificate.json``.

        Parameters
        ----------
        folder : Path
            Where the files are written.
        """
        from dpsmc_audit.observers.base import PairAudit
        from dpsmc_audit.observers.black_box import BlackBoxAudit
        from dpsmc_audit.report.tables import columns_csv, observers_csv

        write_text(folder / "histogram.csv", columns_csv(self.audit.histogram))
        if isinstance(self.audit, PairAudit):
            write_text(folder / "profile.csv", columns_csv(self.audit.leakage.profile))
        if isinstance(self.audit, BlackBoxAudit):
            write_text(folder / "profile.csv", columns_csv(self.audit.profile))
            write_text(folder / "trade_off.csv", columns_csv(self.audit.curve))
        for name in ("observers.csv", "certificate.json"):
            (folder / name).unlink(missing_ok=True)  # an older run's
        if isinstance(self.audit, PairAudit) and self.audit.certificate is not None:
            self.audit.certificate.save(folder / "certificate.json")
        if self.others.curves:
            write_text(folder / "observers.csv", observers_csv(self.others.curves))

    def draw(self, folder: Path) -> None:
        """Draw the histogram and the profiles as PNG files.

        Parameters
        ----------
        folder : Path
            Where the figures are written.
        """
        from dpsmc_audit.observers.base import PairAudit
        from dpsmc_audit.observers.black_box import BlackBoxAudit
        from dpsmc_audit.report.figures import audit_figure, profile_figure, save, trade_off_figure
        from dpsmc_audit.report.page_audit import FIGURES

        figure = audit_figure(self.audit)
        if figure is not None:
            save(figure, folder / FIGURES.get(self.audit.observer, "histogram"), ("png",))
        if isinstance(self.audit, PairAudit):
            save(profile_figure(self.audit), folder / "profile", ("png",))
        if isinstance(self.audit, BlackBoxAudit):
            save(trade_off_figure(self.audit), folder / "trade_off", ("png",))


def audit_of(config: Config, execution: Execution) -> Audited:
    """Do the task audit.

    Parameters
    ----------
    config : Config
        Checked.
    execution : Execution
        Where the work is done.

    Returns
    -------
    Audited
        Without the profiles of other observers.
    """
    if config.own is not None:
        return _black_box(config, execution)
    from dpsmc_audit.app.progress import sampling_of
    from dpsmc_audit.exact.averages import exact_mean, worst_errors
    from dpsmc_audit.observers.audit import audit
    from dpsmc_audit.observers.base import PairAudit

    observer = _observer(config)
    with sampling_of(config, execution, observer.unit, observer.amount) as sampling:
        found = audit(
            config.setting,
            config.promise,
            observer,
            entry=config.entries,
            engine=cast("Engine", config.engine.name),
            confidence=config.confidence,
            sampling=sampling,
        )
    kind = f"{config.notion.target} must return a PairAudit, got {type(found).__name__}"
    require(isinstance(found, PairAudit), kind)
    price = Price(exact_mean(config.setting), worst_errors(config.test, config.law, rough=True))
    notes = [*outside_assumption(config, config.p_phi), *unfinished(config, found.unfinished)]
    error, needed = found.numerical_error, found.leakage.profile.at(found.claim.epsilon)
    if getattr(found, "leakage_from", None) == "exact" and error > max(needed, 1e-6):
        notes.append(
            f"the exact law is only known to ±{error:.2g} here, more than the privacy delta of {needed:.2g} in its"
            " profile: use the sampled verdict, not the profile"
        )
    return Audited(found, price, notes=(*notes, *levels_exceeded(config, price.worst)))


def _observer(config: Config) -> Observer:
    """The observer that the configuration names, with its numbers."""
    from dpsmc_audit.observers import audit

    if config.notion.name == "python":
        return _own_observer(config.notion.target)
    kind = audit.OBSERVERS[config.notion.name]
    key = {"sequences": "pairs"}
    return kind(**{part.name: getattr(config, key.get(part.name, part.name)) for part in fields(kind)})


def _own_observer(target: str | None) -> Observer:
    """An observer from outside the package: its class is called without arguments."""
    assert target is not None
    made = load_target("notion.target", target)
    try:
        observer = made()
    except Exception as error:
        raise ParameterError(f"notion.target={target}: called without arguments it raised {said(error)}") from error
    missing = [name for name in ("name", "unit", "amount", "audit") if not hasattr(observer, name)]
    require(not missing, f"notion.target={target} is no observer: it has no {', '.join(missing)}")
    return cast("Observer", observer)


def others_of(config: Config, audited: str) -> OtherObservers:
    """Compute the curves of the other observers.

    Parameters
    ----------
    config : Config
        Checked.
    audited : str
        The observer that is left out.

    Returns
    -------
    OtherObservers
        Their curves.
    """
    from dpsmc_audit.evidence.profiles import epsilon_grid

    pair, grid = Adjacent.of(config.setting, config.entries), epsilon_grid(config.promise.main.epsilon, config.epsilons)
    sampling = Sampling(config.seed, config.max_steps)
    return other_observers(audited, pair, grid, config.floor, config.bin_width, sampling)


def _black_box(config: Config, execution: Execution) -> Audited:
    """A user's mechanism, or runs of it."""
    from dpsmc_audit.app.progress import sampling_of
    from dpsmc_audit.evidence.samples import read_samples
    from dpsmc_audit.observers.black_box import Named, audit_mechanism, audit_samples

    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("confidence", "early", "missing")}
    if config.predictor is not None:
        numbers["predictor"] = Named(load_target("predictor", config.predictor), config.predictor)
    if config.samples is not None:
        ones, zeros = read_samples(config.paths, config.label, config.missing)
        return Audited(audit_samples(ones, zeros, config.promise, **numbers, seed=config.seed))
    assert config.sampler is not None
    sampler = Named(load_target("sampler", config.sampler), config.sampler)
    with sampling_of(config, execution, "runs", config.runs) as sampling:
        return Audited(audit_mechanism(sampler, config.promise, runs=config.runs, **numbers, sampling=sampling))


def kept_before(error: SamplerError, config: Config, folder: Path) -> SamplerError:
    """Keep the runs before a sampler failed, under a name that is no result's.

    Parameters
    ----------
    error : SamplerError
        What the sampler raised.
    config : Config
        Checked.
    folder : Path
        Where the files are written.

    Returns
    -------
    SamplerError
        The error to raise. It names the file.
    """
    from dpsmc_audit.report.tables import columns_csv

    if error.partial is None or os.path.lexists(folder / PARTIAL):  # a file of the user
        return error
    note = "the sampler failed; these bounds hold only if the failure does not depend on its outcomes"
    kept = {"parameters": config.parameters(), "error": f"{error}", "note": note, **error.partial.as_dict()}
    write_json(folder / PARTIAL, kept)
    write_text(folder / "histogram.csv", columns_csv(error.partial.histogram))
    return SamplerError(f"{error}; the {error.partial.runs} runs before are in {PARTIAL}")
