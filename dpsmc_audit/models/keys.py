"""The keys ``model.*`` of the command line, and the source that they and a specification make."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsmc_audit.errors import ParameterError, regular, require

if TYPE_CHECKING:
    from dpsmc_audit.models.simulated import PowertrainBits
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
"""The orders in which a verification can use recorded samples."""

UNCHECKED = (
    "The unit of the formula is not checked: the step of recorded traces is private. "
    "If it may be known, give it as model.step."
)


@dataclass
class ModelKeys:
    """All ``model.*`` keys. A key is None if it was not given.

    Parameters
    ----------
    name : str
        The model.
    setting : str, optional
        powertrain: the reading of the case study that the other keys change.
    speed_mean, speed_sd, speed_range, maf, injector, air_fuel, kappa, tau, pedal, pulse, period : optional
        powertrain: its inputs.
    sensor_failure, pump, extrapolate, variant, duration, step, sample_step : optional
        powertrain: as in `Powertrain`. `step` is also that of recorded traces and of a user's function.
    path, column : str, optional
        recorded: the file, and the column of its outcomes.
    order : str, optional
        recorded: the order in which a verification uses the samples.
    target : str, optional
        python: the user's function.
    """

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
        """The keys that have a value, without the name."""
        return {name: value for name, value in asdict(self).items() if name != "name" and value is not None}

    @property
    def order_used(self) -> str | None:
        """The order in which a verification uses recorded samples. None for a model that draws its samples."""
        return (self.order or ORDERS[0]) if self.name == "recorded" else None

    def check(self) -> None:
        """Check that the model exists and has all keys that were given.

        Raises
        ------
        ParameterError
            If it does not.
        """
        require(self.name in MODELS, f"model must be one of {', '.join(MODELS)}, got {self.name}")
        for name in self.given:
            require(name in MODELS[self.name], f"model.{name} has no meaning with model={self.name}")
        known = self.order is None or self.order in ORDERS
        require(known, f"model.order must be one of {', '.join(ORDERS)}, got {self.order}")

    def check_with(self, formula: Formula | None) -> None:
        """Check that the keys fit together and fit a formula, without reading data or importing code of the user.

        Parameters
        ----------
        formula : Formula or None
            The specification.

        Raises
        ------
        ParameterError
            If they do not fit.
        """
        self.check()
        if self.name == "bernoulli":
            require(formula is None, "formula has no meaning with model=bernoulli: its samples are bits")
        elif self.name == "recorded":
            require(self.path is not None, "model=recorded needs model.path, a file of outcomes or traces")
            require(Path(f"{self.path}").exists(), f"cannot read {self.path}: No such file or directory")
            outcomes = self.column is None or formula is None
            require(outcomes, "model.column names outcomes: it has no meaning with a formula, which reads traces")
        elif self.name == "python":
            require(self.target is not None, "model=python needs model.target=package.module:function")
            known = formula is None or self.step is not None
            require(known, "traces of model=python need model.step, their step in seconds")
        if self.name != "powertrain" and self.step is not None:
            require(formula is not None, "model.step is for traces: give a formula too")
            require(0.0 < self.step < math.inf, f"model.step must be positive, got {self.step}")


MODELS = {
    "bernoulli": (),
    "powertrain": tuple(
        item.name for item in fields(ModelKeys) if item.name not in ("name", "path", "column", "order", "target")
    ),
    "recorded": ("path", "column", "order", "step"),
    "python": ("target", "step"),
}
"""The models and the keys of each."""


def read_formula(formula: str | None, formula_file: str | None) -> Formula | None:
    """Read a formula from text or from a file.

    Parameters
    ----------
    formula : str or None
        The text.
    formula_file : str or None
        The path of a file that holds the text. Not both may be given.

    Returns
    -------
    Formula or None
        None if neither was given.

    Raises
    ------
    ParameterError
        If both were given, the file cannot be read or the text is not a formula.
    """
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
    """Read the formula of a verification and check it with the keys, without reading private data.

    Parameters
    ----------
    keys : ModelKeys
        The model.
    formula, formula_file : str or None
        As for `read_formula`.

    Returns
    -------
    Formula or None
        The formula that the run will evaluate. None if the samples are bits.

    Raises
    ------
    ParameterError
        If the formula or the keys are wrong.
    """
    given = read_formula(formula, formula_file)
    if keys.name == "powertrain":
        return _powertrain(keys, given).formula
    keys.check_with(given)
    return given


def public_unit_notes(keys: ModelKeys, formula: Formula | None) -> list[str]:
    """Describe doubtful units of time before a verification, from public parameters alone.

    The step and the length of a simulated trace are configured, so they are public. Those of recorded traces are read
    from private data, so nothing that depends on them may leave the run, not even a warning. A step that the user
    declares (model.step) is public. It is examined here, and the child process checks the file against it.

    Parameters
    ----------
    keys : ModelKeys
        The model.
    formula : Formula or None
        The specification.

    Returns
    -------
    list of str
        Lines to warn with.
    """
    from dpsmc_audit.stl.units import depends_on_step, unit_notes

    if formula is None:
        return []
    if keys.name == "powertrain":
        model = _powertrain(keys, formula).model
        return unit_notes(formula, model.sample_step, (model.points, model.points))
    if keys.step is not None:
        return unit_notes(formula, keys.step)
    return [UNCHECKED] if depends_on_step(formula) else []


def source_of(keys: ModelKeys, formula: Formula | None, p_phi: float | None = None, threads: int = 1) -> Source:
    """Make the source that a configuration describes.

    Parameters
    ----------
    keys : ModelKeys
        The model.
    formula : Formula or None
        The specification. None for samples that are bits, and for the specification of the case study.
    p_phi : float, optional
        The probability of ``model=bernoulli``.
    threads : int
        Threads that simulate traces.

    Returns
    -------
    Source
        The source.

    Raises
    ------
    ParameterError
        If the keys are wrong, a file cannot be read or a function cannot be imported.

    Examples
    --------
    >>> source_of(ModelKeys("bernoulli"), None, p_phi=0.84)
    Bernoulli(p_phi=0.84)
    >>> source_of(ModelKeys("powertrain", speed_sd=80.0), None).model.speed_sd
    80.0
    """
    if keys.name == "powertrain":
        return _powertrain(keys, formula, threads)
    keys.check_with(formula)
    if keys.name == "recorded":
        from dpsmc_audit.models.recorded import Recorded

        return Recorded(f"{keys.path}", keys.column, formula, keys.step)
    if keys.name == "python":
        from dpsmc_audit.models.simulated import PythonBits

        return PythonBits(f"{keys.target}", formula, keys.step)
    from dpsmc_audit.models.sources import Bernoulli

    if p_phi is None:
        raise ParameterError("model=bernoulli needs p_phi: give p_phi=0.84, for example")
    return Bernoulli(p_phi)


def _powertrain(keys: ModelKeys, formula: Formula | None, threads: int = 1) -> PowertrainBits:
    from dpsmc_audit.models.powertrain import Powertrain
    from dpsmc_audit.models.simulated import CASE_STUDY, PowertrainBits
    from dpsmc_audit.stl import parse

    keys.check()
    changes = keys.given
    if keys.speed_range is not None:
        ends = len(keys.speed_range) == 2
        require(ends, f"model.speed_range must be [lowest, highest], got {keys.speed_range}")
        changes["speed_range"] = tuple(keys.speed_range)
    setting = changes.pop("setting", "tolerance")
    return PowertrainBits(Powertrain.named(setting, **changes), formula or parse(CASE_STUDY), threads)
