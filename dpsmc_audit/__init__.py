"""Monte-Carlo privacy auditing and experimentation around differentially private statistical model checking.

The names below are the public interface; each is imported on first use, so that starting up stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "Sprt": "sprt",
    "ParameterError": "sprt",
    "Mechanism": "mechanisms",
    "NoNoise": "mechanisms",
    "Exponential": "mechanisms",
    "Audit": "audits.expected",
    "audit": "audits.expected",
    "Execution": "execution",
    "Setting": "setting",
    "Simulation": "simulation",
    "simulate": "simulation",
    "exact_characteristics": "simulation",
    "draw_runs": "walks.monte_carlo",
    "exit_law": "walks.exact",
    "exact_law": "walks.laws",
    "exact_mean": "walks.averages",
    "exact_sd": "walks.averages",
    "exact_error": "walks.averages",
    "worst_errors": "walks.averages",
    "load_results": "report.files",
    "Laplace": "mechanisms",
    "Truncated": "mechanisms",
    "Law": "mechanisms",
    "MarginalAudit": "audits.marginal",
    "audit_marginal": "audits.marginal",
    "InformedAudit": "audits.informed",
    "audit_informed": "audits.informed",
    "marginal_law": "notions.marginal",
    "draw_pair": "notions.informed",
    "given_sequence": "notions.informed",
    "oscillating_sequence": "notions.sequences",
    "read_sequence": "notions.sequences",
    "BlackBoxAudit": "audits.black_box",
    "Sampler": "audits.black_box",
    "SamplerError": "audits.black_box",
    "audit_mechanism": "audits.black_box",
    "DpSprt": "dpsprt",
    "privacy_profile": "profiles",
    "Profile": "profiles",
}

__all__ = [
    "Audit",
    "BlackBoxAudit",
    "DpSprt",
    "Execution",
    "Exponential",
    "InformedAudit",
    "Laplace",
    "Law",
    "MarginalAudit",
    "Mechanism",
    "NoNoise",
    "ParameterError",
    "Profile",
    "Sampler",
    "SamplerError",
    "Setting",
    "Simulation",
    "Sprt",
    "Truncated",
    "__version__",
    "audit",
    "audit_informed",
    "audit_marginal",
    "audit_mechanism",
    "draw_pair",
    "draw_runs",
    "exact_characteristics",
    "exact_error",
    "exact_law",
    "exact_mean",
    "exact_sd",
    "exit_law",
    "given_sequence",
    "load_results",
    "marginal_law",
    "oscillating_sequence",
    "privacy_profile",
    "read_sequence",
    "simulate",
    "worst_errors",
]

if TYPE_CHECKING:
    from dpsmc_audit.audits.black_box import BlackBoxAudit, Sampler, SamplerError, audit_mechanism
    from dpsmc_audit.audits.expected import Audit, audit
    from dpsmc_audit.audits.informed import InformedAudit, audit_informed
    from dpsmc_audit.audits.marginal import MarginalAudit, audit_marginal
    from dpsmc_audit.dpsprt import DpSprt
    from dpsmc_audit.execution import Execution
    from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
    from dpsmc_audit.notions.informed import draw_pair, given_sequence
    from dpsmc_audit.notions.marginal import marginal_law
    from dpsmc_audit.notions.sequences import oscillating_sequence, read_sequence
    from dpsmc_audit.profiles import Profile, privacy_profile
    from dpsmc_audit.report.files import load_results
    from dpsmc_audit.setting import Setting
    from dpsmc_audit.simulation import Simulation, exact_characteristics, simulate
    from dpsmc_audit.sprt import ParameterError, Sprt
    from dpsmc_audit.walks.averages import exact_error, exact_mean, exact_sd, worst_errors
    from dpsmc_audit.walks.exact import exit_law
    from dpsmc_audit.walks.laws import exact_law
    from dpsmc_audit.walks.monte_carlo import draw_runs


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"dpsmc_audit.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
