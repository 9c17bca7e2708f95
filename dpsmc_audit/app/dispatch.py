"""From a checked configuration to a typed result: one short function for each task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from dpsmc_audit.app.audits import Audited, audit_of, kept_before, others_of
from dpsmc_audit.app.cautions import doubtful_units, levels_exceeded, outside_assumption, unfinished
from dpsmc_audit.app.config import Config
from dpsmc_audit.errors import ParameterError, SamplerError, require
from dpsmc_audit.runs.execution import SERIAL, Execution
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.runs.provenance import provenance
from dpsmc_audit.runs.schema import SCHEMA
from dpsmc_audit.targets import load_target, said

if TYPE_CHECKING:
    from dpsmc_audit.sampling.runs import Kernel
    from dpsmc_audit.stl import Formula
    from dpsmc_audit.tasks.estimate import Estimate
    from dpsmc_audit.verify.ledger import Spent

__all__ = ["TASKS", "Done", "Estimated", "Released", "Result", "Simulated", "Task", "run"]


class Result(Protocol):
    """What a task returns. It may also have `notes` (warnings), `write` (further files) and `draw` (PNG figures)."""

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
        A run that is no point of a sweep draws figures unless ``figures=false``, and an audit looks at the other
        observers. Points of a sweep draw figures with ``figures=true``.

    Returns
    -------
    Done
        The typed result; `as_dict` serialises it.

    Raises
    ------
    ParameterError
        If the task cannot be done; the message is one line.
    """
    from dpsmc_audit.app.progress import doing

    name = config.task.name
    require(name in TASKS, f"task must be one of {', '.join(TASKS)}, got {name}")
    doing(DOING.get(name, name))
    try:
        result = TASKS[name](config, execution)
    except SamplerError as error:
        raise kept_before(error, config, folder) from error
    except (KeyboardInterrupt, Exception):
        raise
    except BaseException as error:  # code of the user must not decide how the command ends
        raise ParameterError(f"the user's code raised {said(error)}") from error
    if alone and isinstance(result, Audited) and config.own is None:
        doing("computing what the other observers see")
        result = replace(result, others=others_of(config, result.audit.observer))
    if hasattr(result, "write"):
        result.write(folder)
    if hasattr(result, "draw") and (alone if config.figures is None else config.figures):
        doing("drawing figures")
        result.draw(folder)
    return Done(config, result)


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
    from dpsmc_audit.app.progress import sampling_of
    from dpsmc_audit.tasks import paper
    from dpsmc_audit.tasks.simulate import exact_characteristics, simulate

    if not config.known:
        return _simulate_model(config, execution)
    compared = paper.compare(config.setting, config.epsilon) if config.study == "table1" else {}
    notes = outside_assumption(config, config.p_phi)
    if config.engine.name == "exact":
        known = exact_characteristics(config.setting)
        return Simulated(known, compared, (*notes, *levels_exceeded(config, known.worst)))
    kernel = cast("Kernel", config.engine.kernel)
    with sampling_of(config, execution, "runs", config.runs) as sampling:
        found = simulate(config.setting, config.runs, sampling, confidence=config.confidence, kernel=kernel)
    notes += [*unfinished(config, found.tally.unfinished), *levels_exceeded(config, found.exact.worst)]
    return Simulated(found, compared, tuple(notes))


def _simulate_model(config: Config, execution: Execution) -> Simulated:
    from dpsmc_audit.app.progress import sampling_of
    from dpsmc_audit.tasks import paper
    from dpsmc_audit.tasks.simulate_model import simulate_model

    source = config.source
    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("negated", "confidence")}
    with sampling_of(config, execution, "runs", config.runs) as sampling:
        found = simulate_model(config.test, config.law, source, config.runs, sampling, **numbers)
    published = paper.published(config.test, config.law, config.epsilon) if config.study == "table1" else {}
    formula, simulation = getattr(source, "formula", None), found.simulation
    notes = [*doubtful_units(formula, found.estimate), *outside_assumption(config, found.estimate.p_phi)]
    notes += [*unfinished(config, simulation.tally.unfinished), *levels_exceeded(config, simulation.exact.worst)]
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

    def draw(self, folder: Path) -> None:
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
    p_phi = found.p_phi if config.p_phi is None else config.p_phi
    asked = not config.given.isdisjoint(("p", "delta"))  # an estimate has a threshold only where one was given
    notes = [*doubtful_units(formula, found), *(outside_assumption(config, p_phi) if asked else ())]
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
    from dpsmc_audit.app.progress import hide
    from dpsmc_audit.models.keys import checked_formula, public_unit_notes
    from dpsmc_audit.verify.release import Samples, announcement, verify

    formula = checked_formula(config.model, config.formula, config.formula_file)
    hide()
    for note in public_unit_notes(config.model, formula):
        warn(note)
    seed = config.seed if config.insecure else None
    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("epsilon", "negated", "max_steps")}
    model = config.model
    named = (model.path, model.column, model.target, *(formula.signals if formula is not None else ()), "trace", "time")
    samples = Samples(lambda: config.source, model.order_used, tuple(name for name in named if name is not None))
    hide()
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


DOING = {
    "audit": "preparing the audit",
    "simulate": "preparing the runs",
    "estimate": "preparing the samples",
    "verify": "running the test once",
}
"""What is shown when a task begins."""

TASKS: dict[str, Task] = {
    "audit": audit_of,
    "simulate": _simulate,
    "estimate": _estimate,
    "verify": _verify,
    "python": _own,
}
