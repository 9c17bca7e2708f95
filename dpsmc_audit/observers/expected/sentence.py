"""The texts about averages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpsmc_audit.observers.phrases import brief
from dpsmc_audit.observers.sentence import Words

if TYPE_CHECKING:
    from dpsmc_audit.observers.expected.audit import ExpectedAudit

__all__ = ["ExpectedWords"]


class ExpectedWords(Words):
    """About averages: the paper's Definition 3."""

    audit: ExpectedAudit
    sees = "an average running time"
    observer = "Expected (the paper's Definition 3): compares average running times, over all other samples."
    uncovered = "Single results are not covered."

    @property
    def method(self) -> str:
        """How the verdict was made, in a few words."""
        if not self.audit.sampled:
            return super().method
        return f"{brief(self.audit.pairs or 0)} pairs of sequences, a paired comparison"

    @property
    def could(self) -> str:
        """Which difference would have been found."""
        if self.found.detectable is None:
            return "so few pairs, or pairs that are all identical, cannot show any violation."
        return (
            f"they would have shown a difference of {brief(self.found.detectable)} samples between the two averages in"
            " nine of ten audits, and may miss a smaller one."
        )

    @property
    def curve(self) -> str:
        """What the privacy profile is of."""
        return "exact, averages in bins"

    def _violated(self) -> str:
        if math.isinf(self.found.epsilon_lower):
            side = 1 if self.found.witness is None or self.found.witness.p1 > self.found.witness.p0 else 0
            return (
                f"averaged over all other samples, some running times are possible with one value of {self.changed}"
                f" (x = {side}) and impossible with the other. So no finite epsilon holds."
            )
        if self._ratio is None:
            return super()._violated()
        changes = f"{self.changed} changes the chance of some running times {self._ratio}"
        return f"averaged over all other samples, {changes}."

    def _certified(self) -> str:
        h = self.audit.histogram
        return (
            f"for averages in bins of {h.hi[0] - h.lo[0]:g} samples, {self.changed} changes the chance of no average"
            f" running time by more than {self._allowed}."
        )

    @property
    def _measured(self) -> str:
        return "its probability is"

    def _probability(self, p: float) -> str:
        return f"{'at least ' if self.audit.sampled and p > 0.0 else ''}{brief(p, 4)}"

    def _impossible(self, side: int) -> str:
        return f"With x = {1 - side} it is impossible."

    def _likelier(self, side: int, ratio: str) -> str:
        return f"It is {ratio} times as likely with x = {side}."
