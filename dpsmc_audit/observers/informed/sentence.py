"""The texts about one released result, to someone who knows every other sample."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpsmc_audit.evidence.intervals import percent
from dpsmc_audit.observers.phrases import brief
from dpsmc_audit.observers.sentence import Words

if TYPE_CHECKING:
    from dpsmc_audit.observers.informed.audit import InformedAudit

__all__ = ["InformedWords"]


class InformedWords(Words):
    """About one released result, to someone who knows every other sample."""

    audit: InformedAudit
    sees = "to someone who knows all other samples, a single released result"
    observer = "Informed (standard differential privacy): sees one released result and knows every other sample."
    uncovered = "Other sequences are not covered."

    @property
    def method(self) -> str:
        """How the verdict was made, in a few words."""
        return f"exact laws of single sequences; the verdict is on {self.audit.worst}"

    @property
    def confidence(self) -> str:
        """The level of the verdict, and that of averages over sequences."""
        averages = f"; averages over sequences at {percent(self.claim.confidence)}" if self.audit.averages else ""
        return f"exact, not sampled{averages}"

    @property
    def curve(self) -> str:
        """What the privacy profile is of."""
        averages = self.audit.averages
        if averages is None:
            return "exact, the given sequence"
        return f"average over {averages.sequences} drawn sequences, each exact"

    def _violated(self) -> str:
        who, where = "to someone who knows all other samples,", f"({self.audit.worst})"
        if math.isinf(self.found.epsilon_lower):
            return f"{who} some results give {self.changed} away with certainty {where}, so no finite epsilon holds."
        if self._ratio is not None:
            return f"{who} {self.changed} changes the chance of some result {self._ratio} {where}."
        delta = f"the privacy delta is {self.found.delta_lower:.4g}"
        return f"{who} the result tells more about {self.changed} than the claim allows: {delta} {where}."

    def _certified(self) -> str:
        return (
            f"on {self.audit.worst}, even to someone who knows all other samples, {self.changed} changes the chance of"
            f" no result by more than {self._allowed}."
        )

    def _undecided(self) -> str:
        running = max(self.audit.law.running)
        if running <= 0.0:
            return super()._undecided()
        return (
            f"there is no violation on {self.audit.worst}. But {brief(running)} of the runs outlast it, and it is not"
            " known what they would show."
        )
