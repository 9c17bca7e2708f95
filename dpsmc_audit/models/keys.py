"""The keys ``model.*`` of the command line, and the source that they and a specification make."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsmc_audit.errors import ParameterError, regular, require

if TYPE_CHECKING:
    from dpsmc_audit.models.sources import Source
    from dpsmc_audit.stl import Formula

__all__ = [
    "MODELS",
    "ORDERS",
    "RELATIONS",
    "ModelKeys",
    "checked_formula",
    "public_unit_notes",
    "read_formula",
    "source_of",
]

RELATIONS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
ORDERS = ("random", "file")
"""In which a verification uses recorded samples."""
_POWERTRAIN = (
    *("speed_mean", "speed_sd", "speed_range", "maf", "injector", "air_fuel", "kappa", "tau"),
    *("pedal", "pulse", "period", "sensor_failure", "pump", "extrapolate", "variant"),
    *("duration", "step", "sample_step"),
)
"""What a named setting can be changed in."""
MODELS = {
    "bernoulli": (),
    "powertrain": ("setting", *_POWERTRAIN),
    "recorded": ("path", "column", "order", "step"),
    "python": ("target", "step"),
}
"""The models and the keys that have a meaning for each."""

UNCHECKED = (
    "The unit of the formula is not checked: the step of recorded traces is private. "
    "If it may be known, give it as model.step."
)


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
    order: str | None = None
    target: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The keys that have a value, but for the name."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "name"}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def order_used(self) -> str | None:
        """In which a verification uses recorded samples; None for a model that draws them."""
        return (self.order or ORDERS[0]) if self.name == "recorded" else None

    def check(self) -> None:
        """Raise `ParameterError` for an unknown model and for keys that it does not know."""
        require(self.name in MODELS, f"model must be one of {', '.join(MODELS)}, got {self.name}")
        for name in self.given:
            require(name in MODELS[self.name], f"model.{name} has no meaning with model={self.name}")
        known = self.order is None or self.order in ORDERS
        require(known, f"model.order must be one of {', '.join(ORDERS)}, got {self.order}")


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
        require(given is not None or keys.step is None, "model.step is for traces: give a formula too")
    if keys.name == "python":
        require(keys.target is not None, "model=python needs model.target=package.module:function")
        require(given is not None or keys.step is None, "model.step is for traces: give a formula too")
        require(given is None or keys.step is not None, "traces of model=python need model.step, their step in seconds")
    return given


def public_unit_notes(keys: ModelKeys, formula: Formula | None) -> list[str]:
    """What can be said of the formula's unit of time before a verification, from public parameters alone.

    The step and the length of a simulated trace are configured. Those of recorded traces are read from private data, so
    nothing that depends on them may leave the run, a warning neither. A step that the user declares (model.step) is
    public: it is looked at here, and behind the boundary the file is checked against it.
    """
    from dpsmc_audit.stl.units import depends_on_step, unit_notes

    if formula is None:
        return []
    if keys.name == "powertrain":
        from dpsmc_audit.models.simulated import PowertrainBits

        source = source_of(keys, formula)
        assert isinstance(source, PowertrainBits)
        return unit_notes(formula, source.model.sample_step, (source.points, source.points))
    if keys.step is not None:
        return unit_notes(formula, keys.step)
    return [UNCHECKED] if depends_on_step(formula) else []


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
        return Recorded(f"{keys.path}", keys.column, formula, keys.step)
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
