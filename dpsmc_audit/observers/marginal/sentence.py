"""The texts about one released result, to someone who knows no other sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsmc_audit.observers.sentence import RunWords

if TYPE_CHECKING:
    from dpsmc_audit.observers.marginal.audit import MarginalAudit

__all__ = ["MarginalWords"]


class MarginalWords(RunWords):
    """About one released result, to someone who knows no other sample."""

    audit: MarginalAudit
    observer = "Marginal: sees one released result (running time tau and decision o), knows no other sample."
    uncovered = "Observers who know other samples are not covered."

    @property
    def curve(self) -> str:
        """What the privacy profile is of."""
        return "of the sampled runs" if self.audit.leakage_from == "sampled" else "exact, one released result"

    def _certified(self) -> str:
        return f"for one released result, {self.changed} changes no chance by more than {self._allowed}."
