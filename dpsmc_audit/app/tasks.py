"""From a checked configuration to a result: one short function per task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpsmc_audit.app.config import Config
from dpsmc_audit.errors import require
from dpsmc_audit.exact.averages import exact_mean, worst_errors
from dpsmc_audit.runs.execution import SERIAL, Execution
from dpsmc_audit.runs.notes import warn
from dpsmc_audit.runs.provenance import provenance
from dpsmc_audit.runs.schema import SCHEMA
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.sampling.runs import Kernel
from dpsmc_audit.setting import Adjacent
from dpsmc_audit.tasks import paper
from dpsmc_audit.tasks.other_observers import OtherObservers, other_observers
from dpsmc_audit.tasks.simulate import exact_characteristics, simulate

if TYPE_CHECKING:
    from dpsmc_audit.models.sources import Source
    from dpsmc_audit.observers.base import Engine, Observer
    from dpsmc_audit.tasks.estimate import Estimate

__all__ = ["TASKS", "run", "warnings_for"]

OBSERVERS = "observers.csv"


def run(config: Config, folder: Path, execution: Execution = SERIAL, *, alone: bool = True) -> dict[str, Any]:
    """The content of result.json; further files of the task go into the folder.

    An audit that is no point of a sweep (`alone`) also looks at the other observers.
    """
    require(config.task.name in TASKS, f"task must be one of {', '.join(TASKS)}, got {config.task.name}")
    result = TASKS[config.task.name](config, folder, execution)
    if config.task.name == "audit" and config.sampler is None:
        result |= {"other_observers": _others(config, folder, alone).as_dict()}
    released = config.task.name == "verify"
    steps = result.pop("steps", None)
    made = provenance(None, None) if released else provenance(config.seed, steps)
    return {"schema": SCHEMA, "parameters": config.parameters(), **result, "provenance": made}


def warnings_for(config: Config, result: dict[str, Any]) -> list[str]:
    """What a reader must know before using the numbers."""
    if config.sampler is not None or config.task.name == "verify":
        return []
    test, notes = config.test, list(result.get("warnings", []))
    p_phi: float = result["p_phi"] if config.p_phi is None else config.p_phi
    if not test.assumption_holds(1.0 - p_phi if config.negated else p_phi):
        notes.append(
            f"Assumption 1 does not hold: |p_phi - p| = {abs(p_phi - config.p):.6g} <= delta = {test.delta:g};"
            " no error level is promised here"
        )
    if result.get("unfinished"):
        notes.append(
            f"{result['unfinished']} runs drew max_steps={config.max_steps} samples undecided;"
            " means count them with those samples, the exact values know no cap"
        )
    error, needed = float(result.get("numerical_error") or 0.0), float(result.get("delta_at_epsilon") or 0.0)
    if result.get("leakage_from") == "exact" and error > max(needed, 1e-6):
        notes.append(
            f"the exact law is only known to ±{error:.2g} here, more than the delta of {needed:.2g} in its profile:"
            " go by the sampled verdict, not by the profile"
        )
    for name, level, kind in (
        ("fp_worst", test.fp, "H_alt at p + delta"),
        ("fn_worst", test.fn, "H_null at p - delta"),
    ):
        if name in result and result[name] - result[f"{name}_error"] > level:
            notes.append(
                f"{name} = {result[name]:.4g} exceeds its level {level:g}: P({kind}); Wald's bounds are approximate"
            )
    return notes


def _estimate(config: Config, folder: Path, execution: Execution) -> dict[str, Any]:
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.report.figures import save
    from dpsmc_audit.report.traces import traces_figure
    from dpsmc_audit.tasks.estimate import estimate

    source, runs = config.source, config.runs if config.model.name != "recorded" else None
    with progress("samples", runs) as advance:
        found = estimate(source, runs, seed=config.seed, confidence=config.confidence, progress=advance)
    formula = getattr(source, "formula", None)
    if formula is not None and formula.signals:
        save(traces_figure(found, formula, config.model.name), folder / "traces", ("png",))
    return found.as_dict() | ({} if formula is None else {"formula": f"{formula}"}) | _unit_warnings(source, found)


def _unit_warnings(source: Source, found: Estimate) -> dict[str, list[str]]:
    """Nothing, or the intervals of the formula that cover one sample of the traces that were drawn."""
    from dpsmc_audit.stl.units import unit_notes

    formula, traces = getattr(source, "formula", None), found.examples
    notes = [] if formula is None or traces.points is None else unit_notes(formula, traces.step, traces.points)
    return {"warnings": notes} if notes else {}


def _simulate_model(config: Config, execution: Execution) -> dict[str, Any]:
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.tasks.simulate_model import simulate_model

    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("negated", "seed", "max_steps", "confidence")}
    with progress("runs", config.runs) as advance:
        told = replace(execution, progress=advance)
        found = simulate_model(config.test, config.law, config.source, config.runs, **numbers, execution=told)
    result = found.as_dict() | _unit_warnings(config.source, found.estimate)
    return result | (paper.published(config.test, config.law, config.epsilon) if config.study == "table1" else {})


def _simulate(config: Config, folder: Path, execution: Execution) -> dict[str, Any]:
    if not config.known:
        return _simulate_model(config, execution)
    if config.engine.name == "exact":
        result = exact_characteristics(config.setting).as_dict()
    else:
        from dpsmc_audit.app.progress import progress

        kernel = cast(Kernel, config.engine.kernel)
        with progress("runs", config.runs) as advance:
            sampling = _sampling(config, replace(execution, progress=advance))
            found = simulate(config.setting, config.runs, sampling, confidence=config.confidence, kernel=kernel)
        result = found.as_dict()
    if config.study == "table1":
        result |= paper.compare(config.setting, config.epsilon)
    return result


def _verify(config: Config, folder: Path, execution: Execution) -> dict[str, Any]:
    """The release; parameters that are no part of it (a seed, a path) stay here."""
    from dpsmc_audit.models.keys import checked_formula, public_unit_notes
    from dpsmc_audit.verify.release import announcement, verify

    formula = checked_formula(config.model, config.formula, config.formula_file)
    for note in public_unit_notes(config.model, formula):
        warn(note)
    seed = config.seed if config.insecure else None
    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("epsilon", "negated", "max_steps")}
    numbers["order"] = config.model.order_used
    print(announcement(config.test, config.law, negated=config.negated))
    release = verify(config.test, config.law, lambda: config.source, **numbers, seed=seed)
    return release | ({} if formula is None else {"formula": f"{formula}"})


def _audit(config: Config, folder: Path, execution: Execution) -> dict[str, Any]:
    if config.sampler is not None:
        return _black_box(config, folder, execution)
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.observers.audit import audit
    from dpsmc_audit.report.figures import save
    from dpsmc_audit.report.observers import figure_of, profile_figure
    from dpsmc_audit.report.tables import columns_csv
    from dpsmc_audit.runs.files import write_text

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
    write_text(folder / "histogram.csv", columns_csv(found.histogram))
    write_text(folder / "profile.csv", columns_csv(found.leakage.profile))
    figure, name = figure_of(found)
    save(figure, folder / name, ("png",))
    save(profile_figure(found), folder / "profile", ("png",))
    return {**found.as_dict(), **_price(config)}


def _sampling(config: Config, execution: Execution) -> Sampling:
    return Sampling(config.seed, config.max_steps, execution)


def _observer(config: Config) -> Observer:
    """The observer that the configuration names, with its numbers."""
    from dpsmc_audit.observers import audit

    kind = audit.OBSERVERS[config.notion.name]
    key = {"sequences": "pairs"}
    return kind(**{field.name: getattr(config, key.get(field.name, field.name)) for field in fields(kind)})


def _others(config: Config, folder: Path, alone: bool) -> OtherObservers:
    """The curves of the other observers, written beside the result."""
    from dpsmc_audit.evidence.profiles import epsilon_grid
    from dpsmc_audit.report.tables import observers_csv
    from dpsmc_audit.runs.files import write_text

    (folder / OBSERVERS).unlink(missing_ok=True)  # an older run's
    if not alone:
        return OtherObservers()
    pair, grid = Adjacent.of(config.setting, config.entries), epsilon_grid(config.epsilon, config.epsilons)
    sampling = Sampling(config.seed, config.max_steps)
    others = other_observers(config.notion.name, pair, grid, config.floor, config.bin_width, sampling)
    if others.curves:
        write_text(folder / OBSERVERS, observers_csv(others.curves))
    return others


def _black_box(config: Config, folder: Path, execution: Execution) -> dict[str, Any]:
    """A user's mechanism; if it fails, what was gathered is kept under a name that is no result's."""
    from dpsmc_audit.app.progress import progress
    from dpsmc_audit.observers.black_box import Named, SamplerError, audit_mechanism
    from dpsmc_audit.report.black_box import black_box_figure
    from dpsmc_audit.report.figures import save
    from dpsmc_audit.report.tables import columns_csv
    from dpsmc_audit.runs.files import write_json, write_text
    from dpsmc_audit.targets import load_target

    assert config.sampler is not None
    numbers: dict[str, Any] = {name: getattr(config, name) for name in ("confidence", "runs", "method", "floor")}
    sampler = Named(load_target("sampler", config.sampler), config.sampler)
    try:
        with progress("runs", config.runs) as advance:
            claim = (config.epsilon, config.claimed_delta)
            sampling = _sampling(config, replace(execution, progress=advance))
            found = audit_mechanism(sampler, *claim, **numbers, sampling=sampling)
    except SamplerError as error:
        if error.partial is None:
            raise
        note = "the sampler failed: these bounds hold if what made it fail has nothing to do with its outcomes"
        kept = {"parameters": config.parameters(), "error": f"{error}", "note": note, **error.partial.as_dict()}
        write_json(folder / "partial.json", kept)
        write_text(folder / "histogram.csv", columns_csv(error.partial.histogram))
        raise SamplerError(f"{error}; the {error.partial.runs} runs before are in partial.json") from error
    write_text(folder / "histogram.csv", columns_csv(found.histogram))
    save(black_box_figure(found), folder / "sampler", ("png",))
    return found.as_dict()


def _price(config: Config) -> dict[str, Any]:
    """What the mechanism costs: mean samples at p_phi, and the larger of its two errors where the hypotheses begin."""
    samples, worst = (
        exact_mean(config.setting),
        worst_errors(config.test, config.law),
    )
    return {"samples_exact": samples.value, "fp_worst": worst.fp.value, "fn_worst": worst.fn.value} | {
        "samples_exact_error": samples.error,
        "fp_worst_error": worst.fp.error,
        "fn_worst_error": worst.fn.error,
    }


TASKS: dict[str, Callable[[Config, Path, Execution], dict[str, Any]]] = {
    "audit": _audit,
    "simulate": _simulate,
    "estimate": _estimate,
    "verify": _verify,
}
