"""The keys ``model.*`` of the command line, and the source that they and a specification make."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsmc_audit.sprt import ParameterError, regular, require

if TYPE_CHECKING:
    from dpsmc_audit.models.sources import Source
    from dpsmc_audit.stl import Formula

__all__ = ["MODELS", "RELATIONS", "ModelKeys", "checked_formula", "read_formula", "source_of"]

RELATIONS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_POWERTRAIN = (
    *("speed_mean", "speed_sd", "speed_range", "maf", "injector", "air_fuel", "kappa", "tau"),
    *("pedal", "pulse", "period", "sensor_failure", "pump", "extrapolate", "variant"),
    *("duration", "step", "sample_step"),
)
"""What a named setting can be changed in."""
MODELS = {
    "bernoulli": (),
    "powertrain": ("setting", *_POWERTRAIN),
    "recorded": ("path", "column"),
    "python": ("target", "step"),
}
"""The models and the keys that have a meaning for each."""


@dataclass
class ModelKeys:
    """Every ``model.*`` key; None where it was not given."""

    name: str = ""
    setting: str | None = None
    speed_mean: float | None = None
    speed_sd: float | None = None
    speed_range: list[float] | None = None
    maf: float | None = None
    injector: float | None = None
    air_fuel: float | None = None
    kappa: float | None = None
    tau: float | None = None
    pedal: float | None = None
    pulse: float | None = None
    period: float | None = None
    sensor_failure: float | None = None
    pump: float | None = None
    extrapolate: bool | None = None
    variant: str | None = None
    duration: float | None = None
    step: float | None = None
    sample_step: float | None = None
    path: str | None = None
    column: str | None = None
    target: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The keys that have a value, but for the name."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "name"}
        return {name: value for name, value in values.items() if value is not None}

    def check(self) -> None:
        """Raise `ParameterError` for an unknown model and for keys that it does not know."""
        require(self.name in MODELS, f"model must be one of {', '.join(MODELS)}, got {self.name}")
        for name in self.given:
            require(name in MODELS[self.name], f"model.{name} has no meaning with model={self.name}")


def read_formula(formula: str | None, formula_file: str | None) -> Formula | None:
    """The formula given as text or as a file that holds it; None if there is neither."""
    from dpsmc_audit.stl import parse

    require(formula is None or formula_file is None, "formula and formula_file cannot be given together")
    if formula_file is None:
        return None if formula is None else parse(formula)
    try:
        text = regular(Path(formula_file)).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ParameterError(f"formula_file: cannot read {formula_file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ParameterError(f"formula_file: {formula_file} is not a text file") from None
    try:
        return parse(text)
    except ParameterError as error:
        raise ParameterError(f"{formula_file}: {error}") from None


def checked_formula(keys: ModelKeys, formula: str | None, formula_file: str | None) -> Formula | None:
    """The formula that will be asked, without a look at any data; what is wrong with the keys is said here."""
    keys.check()
    given = read_formula(formula, formula_file)
    if keys.name == "powertrain":
        source = source_of(keys, given)
        return getattr(source, "formula", None)
    if keys.name == "recorded":
        require(keys.path is not None, "model=recorded needs model.path, a file of outcomes or traces")
        require(Path(f"{keys.path}").exists(), f"cannot read {keys.path}: No such file or directory")
        require(keys.column is None or given is None, "model.column names outcomes: it has no meaning with a formula")
    if keys.name == "python":
        require(keys.target is not None, "model=python needs model.target=package.module:function")
        require(given is not None or keys.step is None, "model.step is for traces: give a formula too")
        require(given is None or keys.step is not None, "traces of model=python need model.step, their step in seconds")
    return given


def source_of(keys: ModelKeys, formula: Formula | None, p_phi: float | None = None, threads: int = 1) -> Source:
    """The source that a configuration describes; what cannot be read or imported is said here.

    Examples
    --------
    >>> source_of(ModelKeys("bernoulli"), None, p_phi=0.84)
    Bernoulli(p_phi=0.84)
    >>> source_of(ModelKeys("powertrain", speed_sd=80.0), None).model.speed_sd
    80.0
    """
    keys.check()
    given = keys.given
    if keys.name == "bernoulli":
        from dpsmc_audit.models.sources import Bernoulli

        require(formula is None, "formula has no meaning with model=bernoulli: its samples are bits")
        if p_phi is None:
            raise ParameterError("model bernoulli needs p_phi")
        return Bernoulli(p_phi)
    if keys.name == "powertrain":
        return _powertrain(given, formula, threads)
    if keys.name == "recorded":
        from dpsmc_audit.models.recorded import Recorded

        require(keys.path is not None, "model=recorded needs model.path, a file of outcomes or traces")
        return Recorded(f"{keys.path}", keys.column, formula)
    from dpsmc_audit.models.simulated import PythonBits

    require(keys.target is not None, "model=python needs model.target=package.module:function")
    return PythonBits(f"{keys.target}", formula, keys.step)


def _powertrain(given: dict[str, Any], formula: Formula | None, threads: int) -> Source:
    from dpsmc_audit.models.powertrain import Powertrain
    from dpsmc_audit.models.simulated import CASE_STUDY, PowertrainBits
    from dpsmc_audit.stl import parse

    changes = dict(given)
    setting = changes.pop("setting", "tolerance")
    if "speed_range" in changes:
        ends = changes["speed_range"]
        require(len(ends) == 2, f"model.speed_range must be [lowest, highest], got {ends}")
        changes["speed_range"] = tuple(ends)
    return PowertrainBits(Powertrain.named(setting, **changes), formula or parse(CASE_STUDY), threads)
