"""Figure 1 of the paper, and what it hides: ``python -m experiments.figure1``.

The paper does not say which parameters and entry n its figure shows; ours is alpha = delta = epsilon = 0.01, n = 1.
Writes ``experiments/results/figure1.csv`` and ``figures/figure1.png`` and ``.pdf``.
"""

from __future__ import annotations

from pathlib import Path

from dpsmc_audit import Exponential, Sprt
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.expected.audit import Expected
from dpsmc_audit.report.figures import audit_figure, save
from dpsmc_audit.report.tables import columns_csv
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Setting
from dpsmc_audit.tasks.paper import P_PHI, P

TOP = Path(__file__).parent.parent
EPSILON = 0.01


def main() -> None:
    test = Sprt(P, delta=0.01, alpha=0.01)
    found = audit(
        Setting(test, Exponential.private(test, EPSILON), P_PHI),
        EPSILON,
        Expected(pairs=500, draws=10_000),
        entry=1,
        sampling=Sampling(seed=1),
    )
    (TOP / "experiments" / "results" / "figure1.csv").write_text(columns_csv(found.histogram), encoding="utf-8")
    save(audit_figure(found), TOP / "figures" / "figure1")
    print(found.sentence)


if __name__ == "__main__":
    main()
