"""From a checked configuration to a typed result: one short function for each task."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from dpsmc_audit.app.config import Config
from dpsmc_audit.errors import ParameterError, require
from dpsmc_audit.runs.execution import SERIAL, Execution
from dpsmc_audit.runs.files import PARTIAL, write_json, write_text
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.runs.provenance import provenance
from dpsmc_audit.runs.schema import SCHEMA
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent
from dpsmc_audit.targets import load_target, said
from dpsmc_audit.tasks.other_observers import OtherObservers, other_observers

if TYPE_CHECKING:
    from dpsmc_audit.exact.averages import WorstErrors
    from dpsmc_audit.exact.fixed import Exact
    from dpsmc_audit.observers.base import Audit, Engine, Observer
    from dpsmc_audit.observers.black_box import SamplerError
    from dpsmc_audit.sampling.runs import Kernel
    from dpsmc_audit.stl import Formula
    from dpsmc_audit.tasks.estimate import Estimate
    from dpsmc_audit.verify.ledger import Spent

__all__ = ["TASKS", "Audited", "Done", "Estimated", "Released", "Result", "Simulated", "Task", "run"]


class Result(Protocol):
    """What a task returns. It may also have `notes` (warnings for the reader) and `write` (further files)."""

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters and provenance."""
        ...


Task = Callable[[Config, Execution], Result]


@dataclass(frozen=True)
class Done:
    """A task that was done.

    Parameters
    ----------
    config : Config
        What was asked for.
    result : Result
        What was found.
    """

    config: Config
    result: Result

    @property
    def notes(self) -> list[str]:
        """What a reader must know before using the numbers."""
        return list(getattr(self.result, "notes", ()))

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json``."""
        found = dict(self.result.as_dict())
        released, steps = self.config.task.name == "verify", found.pop("steps", None)
        made = provenance(None, None) if released else provenance(self.config.seed, steps)
        return {"schema": SCHEMA, "parameters": self.config.parameters(), **found, "provenance": made}


def run(config: Config, folder: Path, execution: Execution = SERIAL, *, alone: bool = True) -> Done:
    """Do the task of a configuration and write its files, but for ``result.json``.

    Parameters
    ----------
    config : Config
        Checked.
    folder : Path
        Where figures and columns go.
    execution : Execution
        Where the work is done. It does not change a result.
    alone : bool
        An audit that is no point of a sweep also looks at the other observers.

    Returns
    -------
    Done
        The typed result; `as_dict` serialises it.

    Raises
    ------
    ParameterError
        If the task cannot be done; the message is one line.
    """
    from dpsmc_audit.observers.black_box import SamplerError

    name = config.task.name
    require(name in TASKS, f"task must be one of {', '.join(TASKS)}, got {name}")
    try:
        result = TASKS[name](config, execution)
    except SamplerError as error:
        raise _kept(error, config, folder) from error
    except (KeyboardInterrupt, Exception):
        raise
    except BaseException as error:  # code of the user must not decide how the command ends
        raise ParameterError(f"the user's code raised {said(error)}") from error
    if alone and isinstance(result, Audited) and config.sampler is None:
        result = replace(result, others=_others(config, result.audit.observer))
    if hasattr(result, "write"):
        result.write(folder)
    return Done(config, result)


def _sampling(config: Config, execution: Execution) -> Sampling:
    return Sampling(config.seed, config.max_steps, execution)


# --- audit ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Price:
    """What a mechanism costs: mean samples at p_phi, and both errors where the hypotheses begin."""

    samples: Exact
    worst: WorstErrors

    def as_dict(self) -> dict[str, float]:
        """Return the part of ``result.json``."""
        named = {"samples_exact": self.samples, "fp_worst": self.worst.fp, "fn_worst": self.worst.fn}
        values = {name: exact.value for name, exact in named.items()}
        return values | {f"{name}_error": exact.error for name, exact in named.items()}


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
        """Write the histogram, the profiles and the figures.

        An audit without a privacy profile has no ``profile.csv``. Without other observers, an older
        ``observers.csv`` is removed.

        Parameters
        ----------
        folder : Path
            Where the files are written.
        """
        from dpsmc_audit.observers.base import PairAudit
        from dpsmc_audit.report.figures import audit_figure, profile_figure, save
        from dpsmc_audit.report.page_audit import FIGURES
        from dpsmc_audit.report.tables import columns_csv, observers_csv

        write_text(folder / "histogram.csv", columns_csv(self.audit.histogram))
        figure = audit_figure(self.audit)
        if figure is not None:
            save(figure, folder / FIGURES.get(self.audit.observer, "histogram"), ("png",))
        if isinstance(self.audit, PairAudit):
            write_text(folder / "profile.csv", columns_csv(self.audit.leakage.profile))
            save(profile_figure(self.audit), folder / "profile", ("png",))
        (folder / "observers.csv").unlink(missing_ok=True)  # an older run's
        if self.others.curves:
            write_text(folder / "observers.csv", observers_csv(self.others.curves))


def _audit(config: Config, execution: Execution) -> Audited:
    if config.sampler is not None:
        return _black_box(config, execution)
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.exact.averages import exact_mean, worst_errors
    from dpsmc_audit.observers.audit import audit
    from dpsmc_audit.observers.base import PairAudit

    observer = _observer(config)
    with progress(observer.unit, observer.amount) as advance:
        found = audit(
            config.setting,
            config.epsilon,
            observer,
            entry=config.entries,
            engine=cast("Engine", config.engine.name),
            confidence=config.confidence,
            sampling=_sampling(config, replace(execution, progress=advance)),
        )
    kind = f"{config.notion.target} must return a PairAudit, got {type(found).__name__}"
    require(isinstance(found, PairAudit), kind)
    price = Price(exact_mean(config.setting), worst_errors(config.test, config.law))
    notes = [*_assumption(config, config.p_phi), *_unfinished(config, found.unfinished)]
    error, needed = found.numerical_error, found.leakage.profile.at(config.epsilon)
    if getattr(found, "leakage_from", None) == "exact" and error > max(needed, 1e-6):
        notes.append(
            f"the exact law is only known to ±{error:.2g} here, more than the delta of {needed:.2g} in its profile:"
            " go by the sampled verdict, not by the profile"
        )
    return Audited(found, price, notes=(*notes, *_levels(config, price.worst)))


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


def _others(config: Config, audited: str) -> OtherObservers:
    """The curves of the other observers."""
    from dpsmc_audit.evidence.profiles import epsilon_grid

    pair, grid = Adjacent.of(config.setting, config.entries), epsilon_grid(config.epsilon, config.epsilons)
    sampling = Sampling(config.seed, config.max_steps)
    return other_observers(audited, pair, grid, config.floor, config.bin_width, sampling)


def _black_box(config: Config, execution: Execution) -> Audited:
    """A user's mechanism."""
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.observers.black_box import Named, audit_mechanism

    assert config.sampler is not None
    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("confidence", "runs", "method", "floor")}
    sampler = Named(load_target("sampler", config.sampler), config.sampler)
    with progress("runs", config.runs) as advance:
        sampling = _sampling(config, replace(execution, progress=advance))
        return Audited(audit_mechanism(sampler, config.epsilon, config.claimed_delta, **numbers, sampling=sampling))


def _kept(error: SamplerError, config: Config, folder: Path) -> SamplerError:
    """Keep the runs before a sampler failed, under a name that is no result's."""
    from dpsmc_audit.observers.black_box import SamplerError
    from dpsmc_audit.report.tables import columns_csv

    if error.partial is None or os.path.lexists(folder / PARTIAL):  # a file of the user
        return error
    note = "the sampler failed: these bounds hold if what made it fail has nothing to do with its outcomes"
    kept = {"parameters": config.parameters(), "error": f"{error}", "note": note, **error.partial.as_dict()}
    write_json(folder / PARTIAL, kept)
    write_text(folder / "histogram.csv", columns_csv(error.partial.histogram))
    return SamplerError(f"{error}; the {error.partial.runs} runs before are in {PARTIAL}")


# --- warnings -------------------------------------------------------------------------------------------------------


def _assumption(config: Config, p_phi: float | None) -> list[str]:
    assert p_phi is not None
    test = config.test
    if test.assumption_holds(1.0 - p_phi if config.negated else p_phi):
        return []
    return [
        f"Assumption 1 does not hold: |p_phi - p| = {abs(p_phi - config.p):.6g} <= delta = {test.delta:g};"
        " no error level is promised here"
    ]


def _unfinished(config: Config, count: int) -> list[str]:
    if not count:
        return []
    return [
        f"{count} runs drew max_steps={config.max_steps} samples undecided;"
        " means count them with those samples, the exact values know no cap"
    ]


def _levels(config: Config, worst: WorstErrors) -> list[str]:
    named = (
        ("fp_worst", worst.fp, config.test.fp, "H_alt at p + delta"),
        ("fn_worst", worst.fn, config.test.fn, "H_null at p - delta"),
    )
    return [
        f"{name} = {exact.value:.4g} exceeds its level {level:g}: P({kind}); Wald's bounds are approximate"
        for name, exact, level, kind in named
        if exact.value - exact.error > level
    ]


def _units(formula: Formula | None, found: Estimate) -> list[str]:
    """The intervals of the formula that cover one sample of the traces that were drawn."""
    from dpsmc_audit.stl.units import unit_notes

    traces = found.examples
    return [] if formula is None or traces.points is None else unit_notes(formula, traces.step, traces.points)


# --- the other tasks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Simulated:
    """The result of the task simulate.

    Parameters
    ----------
    found : Result
        Of runs, of runs on a model, or of the exact engine.
    paper : dict
        The paper's numbers for the same parameters, in its study.
    notes : tuple of str
        Warnings.
    """

    found: Result
    paper: dict[str, float | None]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        return {**self.found.as_dict(), **self.paper}


def _simulate(config: Config, execution: Execution) -> Simulated:
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.tasks import paper
    from dpsmc_audit.tasks.simulate import exact_characteristics, simulate

    if not config.known:
        return _simulate_model(config, execution)
    compared = paper.compare(config.setting, config.epsilon) if config.study == "table1" else {}
    notes = _assumption(config, config.p_phi)
    if config.engine.name == "exact":
        known = exact_characteristics(config.setting)
        return Simulated(known, compared, (*notes, *_levels(config, known.worst)))
    kernel = cast("Kernel", config.engine.kernel)
    with progress("runs", config.runs) as advance:
        sampling = _sampling(config, replace(execution, progress=advance))
        found = simulate(config.setting, config.runs, sampling, confidence=config.confidence, kernel=kernel)
    notes += [*_unfinished(config, found.tally.unfinished), *_levels(config, found.exact.worst)]
    return Simulated(found, compared, tuple(notes))


def _simulate_model(config: Config, execution: Execution) -> Simulated:
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.tasks import paper
    from dpsmc_audit.tasks.simulate_model import simulate_model

    source = config.source
    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("negated", "confidence")}
    with progress("runs", config.runs) as advance:
        sampling = Sampling(config.seed, config.max_steps, replace(execution, progress=advance))
        found = simulate_model(config.test, config.law, source, config.runs, sampling, **numbers)
    published = paper.published(config.test, config.law, config.epsilon) if config.study == "table1" else {}
    notes = [*_units(getattr(source, "formula", None), found.estimate), *_assumption(config, found.estimate.p_phi)]
    simulation = found.simulation
    notes += [*_unfinished(config, simulation.tally.unfinished), *_levels(config, simulation.exact.worst)]
    return Simulated(found, published, tuple(notes))


@dataclass(frozen=True, eq=False)
class Estimated:
    """The result of the task estimate.

    Parameters
    ----------
    found : Estimate
        The share of samples that satisfy the specification.
    model : str
        Where they come from.
    formula : Formula, optional
        The specification.
    notes : tuple of str
        Warnings.
    """

    found: Estimate
    model: str
    formula: Formula | None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        return self.found.as_dict() | ({} if self.formula is None else {"formula": f"{self.formula}"})

    def write(self, folder: Path) -> None:
        """Draw a few traces, if the specification is about signals.

        Parameters
        ----------
        folder : Path
            Where the figure is written.
        """
        from dpsmc_audit.report.figures import save
        from dpsmc_audit.report.traces import traces_figure

        if self.formula is None or not self.formula.signals:
            return
        try:
            save(traces_figure(self.found, self.formula, self.model), folder / "traces", ("png",))
        except (ArithmeticError, ValueError) as error:  # an estimate is not lost to its picture
            warn(f"the traces could not be drawn: {said(error)}")


def _estimate(config: Config, execution: Execution) -> Estimated:
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.tasks.estimate import estimate

    source, runs = config.source, config.runs if config.model.name != "recorded" else None
    with progress("samples", runs) as advance:
        found = estimate(source, runs, seed=config.seed, confidence=config.confidence, progress=advance)
    formula = getattr(source, "formula", None)
    notes = [*_units(formula, found), *_assumption(config, found.p_phi if config.p_phi is None else config.p_phi)]
    return Estimated(found, config.model.name, formula, tuple(notes))


@dataclass(frozen=True, eq=False)
class Released:
    """The result of the task verify: what may be published about one private run.

    Parameters
    ----------
    release : dict
        The decision, tau and the privacy statement.
    """

    release: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``result.json`` without parameters."""
        return self.release


def _verify(config: Config, execution: Execution) -> Released:
    """One private run. A seed and paths are no part of its result."""
    from dpsmc_audit.models.keys import checked_formula, public_unit_notes
    from dpsmc_audit.verify.release import Samples, announcement, verify

    formula = checked_formula(config.model, config.formula, config.formula_file)
    for note in public_unit_notes(config.model, formula):
        warn(note)
    seed = config.seed if config.insecure else None
    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("epsilon", "negated", "max_steps")}
    model = config.model
    named = (model.path, model.column, model.target, *(formula.signals if formula is not None else ()), "trace", "time")
    samples = Samples(lambda: config.source, model.order_used, tuple(name for name in named if name is not None))
    print(announcement(config.test, config.law, negated=config.negated))
    release = verify(config.test, config.law, samples, **numbers, seed=seed, record=_record(config))
    return Released(release | ({} if formula is None else {"formula": f"{formula}"}))


def _record(config: Config) -> Callable[[float, float], Spent] | None:
    """The ledger of the release, if there is one. Data are known there by their file, models by their keys."""
    from dpsmc_audit.verify.ledger import Ledger, file_digest

    if config.ledger is None:
        return None
    path, ledger = config.model.path, Ledger(Path(config.ledger), config.budget)
    data = f"{config.model}".encode() if path is None else file_digest(Path(path))
    return lambda epsilon, delta: ledger.record(epsilon, delta, data)


def _own(config: Config, execution: Execution) -> Result:
    """A task from outside the package: ``task.target`` is called with the configuration and the execution."""
    target = config.task.target
    assert target is not None
    result = load_target("task.target", target)(config, execution)
    require(callable(getattr(result, "as_dict", None)), f"task.target={target} must return an object with as_dict()")
    found = result.as_dict()
    require(isinstance(found, dict), f"task.target={target}: as_dict() must return a dict, got {type(found).__name__}")
    return cast(Result, result)


TASKS: dict[str, Task] = {
    "audit": _audit,
    "simulate": _simulate,
    "estimate": _estimate,
    "verify": _verify,
    "python": _own,
}
