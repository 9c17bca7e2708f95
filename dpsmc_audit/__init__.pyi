"""The public names and where they are defined: for `lazy_loader`, which imports them on first use, and for mypy."""

from .errors import (
    ParameterError as ParameterError,
    SamplerError as SamplerError,
)
from .evidence.claims import (
    Curve as Curve,
    Dp as Dp,
    Gdp as Gdp,
    Point as Point,
    Promise as Promise,
)
from .evidence.curves import read_curve as read_curve
from .evidence.profiles import (
    Profile as Profile,
    privacy_profile as privacy_profile,
)
from .evidence.verdict import (
    Finding as Finding,
    Verdict as Verdict,
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
from .observers.audit import audit as audit
from .observers.certificates import Certificate as Certificate
from .observers.base import (
    Audit as Audit,
    Claim as Claim,
    PairAudit as PairAudit,
)
from .observers.black_box import (
    BlackBoxAudit as BlackBoxAudit,
    Sampler as Sampler,
    audit_mechanism as audit_mechanism,
    audit_samples as audit_samples,
)
from .observers.expected.audit import (
    Expected as Expected,
    ExpectedAudit as ExpectedAudit,
)
from .observers.informed.audit import (
    Informed as Informed,
    InformedAudit as InformedAudit,
)
from .observers.informed.law import given_sequence as given_sequence
from .observers.informed.average import draw_pair as draw_pair
from .observers.informed.sequences import (
    oscillating_sequence as oscillating_sequence,
    read_sequence as read_sequence,
)
from .observers.marginal.audit import (
    Marginal as Marginal,
    MarginalAudit as MarginalAudit,
)
from .observers.marginal.law import marginal_law as marginal_law
from .runs.execution import Execution as Execution
from .runs.files import load_results as load_results
from .sampling.plan import Sampling as Sampling
from .sampling.runs import draw_runs as draw_runs
from .setting import (
    Adjacent as Adjacent,
    Setting as Setting,
)
from .sprt import Sprt as Sprt
from .tasks.simulate import (
    Simulation as Simulation,
    exact_characteristics as exact_characteristics,
    simulate as simulate,
)
from .zoo.dpsprt import DpSprt as DpSprt

__all__: list[str]
__version__: str
