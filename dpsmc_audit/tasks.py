"""From a checked configuration to a result: one short function per task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpsmc_audit import paper
from dpsmc_audit.config import Config
from dpsmc_audit.simulation import exact_characteristics, simulate
from dpsmc_audit.sprt import require
from dpsmc_audit.walks.monte_carlo import Kernel

if TYPE_CHECKING:
    from dpsmc_audit.auditing import Engine

__all__ = ["TASKS", "run", "warnings_for"]


def run(config: Config, folder: Path) -> dict[str, Any]:
    """The content of result.json; further files of the task go into the folder."""
    require(config.task.name in TASKS, f"task must be one of {', '.join(TASKS)}, got {config.task.name}")
    return {"parameters": config.parameters(), **TASKS[config.task.name](config, folder)}


def warnings_for(config: Config, result: dict[str, Any]) -> list[str]:
    """What a reader must know before using the numbers."""
    test, notes = config.test, []
    if not test.assumption_holds(config.bernoulli):
        notes.append(
            f"Assumption 1 does not hold: |p_phi - p| = {abs(config.bernoulli - test.p):.6g} <= delta = {test.delta:g};"
            " no error level is promised here"
        )
    if result.get("unfinished"):
        notes.append(
            f"{result['unfinished']} runs drew max_steps={config.max_steps} samples undecided;"
            " means count them with those samples, the exact values know no cap"
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


def _simulate(config: Config, folder: Path) -> dict[str, Any]:
    if config.engine.name == "exact":
        result = exact_characteristics(config.test, config.law, config.bernoulli).as_dict()
    else:
        result = simulate(
            config.test,
            config.law,
            config.bernoulli,
            config.runs,
            seed=config.seed,
            max_steps=config.max_steps,
            confidence=config.confidence,
            kernel=cast(Kernel, config.engine.kernel),
            threads=config.threads,
            block_size=config.engine.block_size,
        ).as_dict()
    if config.study == "table1":
        result |= paper.compare(config.test, config.law, config.bernoulli, config.epsilon)
    return result


def _audit(config: Config, folder: Path) -> dict[str, Any]:
    from dpsmc_audit.auditing import audit
    from dpsmc_audit.report.figures import audit_figure, save
    from dpsmc_audit.report.files import write_text
    from dpsmc_audit.report.progress import progress
    from dpsmc_audit.report.tables import histogram_csv

    with progress("pairs", config.pairs) as advance:
        found = audit(
            config.test,
            config.law,
            config.bernoulli,
            config.epsilon,
            entry=config.entry,
            engine=cast("Engine", config.engine.name),
            pairs=config.pairs,
            draws=config.draws,
            bin_width=config.bin_width,
            seed=config.seed,
            max_steps=config.max_steps,
            confidence=config.confidence,
            threads=config.threads,
            progress=advance,
        )
    write_text(folder / "histogram.csv", histogram_csv(found.histogram))
    save(audit_figure(found), folder / "figure1", ("png",))
    return found.as_dict()


TASKS: dict[str, Callable[[Config, Path], dict[str, Any]]] = {"audit": _audit, "simulate": _simulate}
