"""The public names and where they are defined: for `lazy_loader`, which imports them on first use, and for mypy."""

from .errors import ParameterError as ParameterError
from .evidence.profiles import (
    Profile as Profile,
    privacy_profile as privacy_profile,
)
from .exact.averages import (
    exact_error as exact_error,
    exact_mean as exact_mean,
    exact_sd as exact_sd,
    worst_errors as worst_errors,
)
from .exact.calibration import private as private
from .exact.fixed import exit_law as exit_law
from .exact.laws import exact_law as exact_law
from .mechanisms import (
    Exponential as Exponential,
    Laplace as Laplace,
    Law as Law,
    Mechanism as Mechanism,
    NoNoise as NoNoise,
    Truncated as Truncated,
)
from .observers.black_box import (
    BlackBoxAudit as BlackBoxAudit,
    Sampler as Sampler,
    SamplerError as SamplerError,
    audit_mechanism as audit_mechanism,
)
from .observers.expected.audit import (
    Audit as Audit,
    audit as audit,
)
from .observers.informed.audit import (
    InformedAudit as InformedAudit,
    audit_informed as audit_informed,
)
from .observers.informed.law import (
    draw_pair as draw_pair,
    given_sequence as given_sequence,
)
from .observers.informed.sequences import (
    oscillating_sequence as oscillating_sequence,
    read_sequence as read_sequence,
)
from .observers.marginal.audit import (
    MarginalAudit as MarginalAudit,
    audit_marginal as audit_marginal,
)
from .observers.marginal.law import marginal_law as marginal_law
from .runs.execution import Execution as Execution
from .runs.files import load_results as load_results
from .sampling.runs import draw_runs as draw_runs
from .setting import Setting as Setting
from .sprt import Sprt as Sprt
from .tasks.simulate import (
    Simulation as Simulation,
    exact_characteristics as exact_characteristics,
    simulate as simulate,
)
from .zoo.dpsprt import DpSprt as DpSprt

__all__: list[str]
__version__: str
