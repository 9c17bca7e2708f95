"""Monte-Carlo privacy auditing and experimentation around differentially private statistical model checking.

The names below are the public interface; each is imported on first use, so that starting up stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "Sprt": "sprt",
    "ParameterError": "errors",
    "Mechanism": "mechanisms",
    "NoNoise": "mechanisms",
    "Exponential": "mechanisms",
    "Adjacent": "setting",
    "Audit": "observers.base",
    "Claim": "observers.base",
    "Expected": "observers.expected.audit",
    "ExpectedAudit": "observers.expected.audit",
    "Finding": "evidence.verdict",
    "Informed": "observers.informed.audit",
    "Marginal": "observers.marginal.audit",
    "PairAudit": "observers.base",
    "Sampling": "sampling.plan",
    "Verdict": "evidence.verdict",
    "audit": "observers.audit",
    "Execution": "runs.execution",
    "Setting": "setting",
    "Simulation": "tasks.simulate",
    "simulate": "tasks.simulate",
    "exact_characteristics": "tasks.simulate",
    "draw_runs": "sampling.runs",
    "exit_law": "exact.fixed",
    "exact_law": "exact.laws",
    "exact_mean": "exact.averages",
    "exact_sd": "exact.averages",
    "exact_error": "exact.averages",
    "worst_errors": "exact.averages",
    "load_results": "runs.files",
    "Laplace": "mechanisms",
    "Truncated": "mechanisms",
    "Law": "mechanisms",
    "MarginalAudit": "observers.marginal.audit",
    "InformedAudit": "observers.informed.audit",
    "marginal_law": "observers.marginal.law",
    "draw_pair": "observers.informed.law",
    "given_sequence": "observers.informed.law",
    "oscillating_sequence": "observers.informed.sequences",
    "read_sequence": "observers.informed.sequences",
    "BlackBoxAudit": "observers.black_box",
    "Sampler": "observers.black_box",
    "SamplerError": "observers.black_box",
    "audit_mechanism": "observers.black_box",
    "DpSprt": "zoo.dpsprt",
    "private": "exact.calibration",
    "privacy_profile": "evidence.profiles",
    "Profile": "evidence.profiles",
}

__all__ = [
    "Adjacent",
    "Audit",
    "BlackBoxAudit",
    "Claim",
    "DpSprt",
    "Execution",
    "Expected",
    "ExpectedAudit",
    "Exponential",
    "Finding",
    "Informed",
    "InformedAudit",
    "Laplace",
    "Law",
    "Marginal",
    "MarginalAudit",
    "Mechanism",
    "NoNoise",
    "PairAudit",
    "ParameterError",
    "Profile",
    "Sampler",
    "SamplerError",
    "Sampling",
    "Setting",
    "Simulation",
    "Sprt",
    "Truncated",
    "Verdict",
    "__version__",
    "audit",
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
    "private",
    "read_sequence",
    "simulate",
    "worst_errors",
]

if TYPE_CHECKING:
    from dpsmc_audit.errors import ParameterError
    from dpsmc_audit.evidence.profiles import Profile, privacy_profile
    from dpsmc_audit.evidence.verdict import Finding, Verdict
    from dpsmc_audit.exact.averages import exact_error, exact_mean, exact_sd, worst_errors
    from dpsmc_audit.exact.calibration import private
    from dpsmc_audit.exact.fixed import exit_law
    from dpsmc_audit.exact.laws import exact_law
    from dpsmc_audit.mechanisms import Exponential, Laplace, Law, Mechanism, NoNoise, Truncated
    from dpsmc_audit.observers.audit import audit
    from dpsmc_audit.observers.base import Audit, Claim, PairAudit
    from dpsmc_audit.observers.black_box import BlackBoxAudit, Sampler, SamplerError, audit_mechanism
    from dpsmc_audit.observers.expected.audit import Expected, ExpectedAudit
    from dpsmc_audit.observers.informed.audit import Informed, InformedAudit
    from dpsmc_audit.observers.informed.law import draw_pair, given_sequence
    from dpsmc_audit.observers.informed.sequences import oscillating_sequence, read_sequence
    from dpsmc_audit.observers.marginal.audit import Marginal, MarginalAudit
    from dpsmc_audit.observers.marginal.law import marginal_law
    from dpsmc_audit.runs.execution import Execution
    from dpsmc_audit.runs.files import load_results
    from dpsmc_audit.sampling.plan import Sampling
    from dpsmc_audit.sampling.runs import draw_runs
    from dpsmc_audit.setting import Adjacent, Setting
    from dpsmc_audit.sprt import Sprt
    from dpsmc_audit.tasks.simulate import Simulation, exact_characteristics, simulate
    from dpsmc_audit.zoo.dpsprt import DpSprt


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"dpsmc_audit.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
