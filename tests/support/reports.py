"""Small audits of every kind, with the files that their reports are made from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpsmc_audit.evidence.profiles import epsilon_grid
from dpsmc_audit.mechanisms import Exponential, Mechanism
from dpsmc_audit.observers.audit import audit
from dpsmc_audit.observers.black_box import Named, audit_mechanism
from dpsmc_audit.observers.expected.audit import Expected
from dpsmc_audit.observers.informed.audit import Informed
from dpsmc_audit.observers.marginal.audit import Marginal
from dpsmc_audit.report.page_audit import audit_page
from dpsmc_audit.report.tables import columns_csv, flatten
from dpsmc_audit.runs.files import write_json, write_text
from dpsmc_audit.sampling.plan import Sampling
from dpsmc_audit.setting import Adjacent, Setting
from dpsmc_audit.sprt import Sprt
from dpsmc_audit.tasks.other_observers import OtherObservers, other_observers

EPSILON, P_PHI = 0.1, 0.84
TEST = Sprt(p=0.73, delta=0.03, alpha=0.05)
LAW = Exponential.private(TEST, EPSILON)

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<!--"


def parameters(notion: str, engine: str, **changed: Any) -> dict[str, Any]:
    """As `Config.parameters` has them, as far as a report looks at them."""
    known: dict[str, Any] = {
        "task": "audit",
        "p_phi": P_PHI,
        "epsilon": EPSILON,
        "entry": 1,
        "mechanism": "exponential",
    }
    known |= {"notion": notion, "engine": engine, "confidence": 0.99, "floor": 0.01, "pairs": 500, "bin_width": 20}
    return known | {"relation": "gt"} | changed


@dataclass(frozen=True)
class Made:
    """An audit, the folder with its files, and the parameters that a page shows."""

    folder: Path
    audit: Any
    parameters: dict[str, Any]
    others: OtherObservers = field(default_factory=OtherObservers)

    @property
    def result(self) -> dict[str, Any]:
        """As ``result.json`` has it."""
        return {"parameters": self.parameters, **self.audit.as_dict()}

    def page(self, notes: Any = (), given: Any = ("notion=x",), **changed: Any) -> str:
        return audit_page(self.folder, self.audit, self.others, self.result | changed, notes, given)

    def found(self, **changed: Any) -> Made:
        """The same audit with another finding."""
        return replace(self, audit=replace(self.audit, finding=replace(self.audit.finding, **changed)))


def written(folder: Path, found: Any, given: dict[str, Any]) -> Made:
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "histogram.csv", columns_csv(found.histogram))
    return Made(folder, found, given)


def expected(folder: Path, engine: Any = "exact", mechanism: Mechanism = LAW, **changed: Any) -> Made:
    """Definition 3."""
    epsilon = changed.get("epsilon", EPSILON)
    observer = Expected(draws=200, pairs=changed.get("pairs", 200), bin_width=changed.get("bin_width", 20))
    found = audit(Setting(TEST, mechanism, P_PHI), epsilon, observer, engine=engine)
    return written(folder, found, parameters("expected", engine, **changed))


def marginal(folder: Path, engine: Any = "exact", mechanism: Mechanism = LAW, **changed: Any) -> Made:
    """One released result."""
    epsilon, entry = changed.get("epsilon", EPSILON), changed.get("entry", 1)
    options: dict[str, Any] = {name: changed[name] for name in ("runs", "early") if name in changed}
    observer = Marginal(pairs=20, bin_width=20, **options)
    found = audit(Setting(TEST, mechanism, P_PHI), epsilon, observer, entry=entry, engine=engine)
    return written(folder, found, parameters("marginal", engine, **changed))


def informed(folder: Path, bits: Any = None, mechanism: Mechanism = LAW, **changed: Any) -> Made:
    """All other samples known: a given sequence, or ten drawn ones."""
    epsilon, entry = changed.get("epsilon", EPSILON), changed.get("entry", 1)
    found = audit(Setting(TEST, mechanism, P_PHI), epsilon, Informed(sequence=bits, sequences=10), entry=entry)
    return written(folder, found, parameters("informed", "monte_carlo", **changed))


def noisy(x: int, runs: int, rng: np.random.Generator) -> Any:
    return np.floor(10 * (x + rng.exponential(size=runs))), np.zeros(runs, int)


def same(x: int, runs: int, rng: np.random.Generator) -> Any:
    return rng.integers(1, 9, runs), rng.integers(0, 2, runs)


def sampler(folder: Path, draws: Any = noisy, name: str = "mine:noisy", runs: int = 2000, **changed: Any) -> Made:
    """A user's mechanism."""
    found = audit_mechanism(Named(draws, name), 1.0, runs=runs, early=changed.get("early", True))
    given = {"task": "audit", "sampler": name, "epsilon": 1.0, "claimed_delta": 0.0, "confidence": 0.99, "runs": runs}
    return written(folder, found, given)


def curves(audited: str, mechanism: Mechanism = LAW) -> OtherObservers:
    """The profiles of the other observers."""
    pair, sampling = Adjacent(Setting(TEST, mechanism, P_PHI)), Sampling(max_steps=10**6)
    return other_observers(audited, pair, epsilon_grid(EPSILON), 0.01, 20, sampling)


@dataclass(frozen=True)
class Odd:
    """An event that an observer from outside the package names as it likes."""

    name: str = HOSTILE

    def as_dict(self) -> dict[str, Any]:
        return {"kind": "odd"}


def estimates(folder: Path, formulas: list[str]) -> list[tuple[Path, dict[str, Any]]]:
    """Points of a sweep over formulas, as their files and rows."""
    points = []
    for k, formula in enumerate(formulas):
        given: dict[str, Any] = dict.fromkeys(("p_phi", "alpha_fp", "alpha_fn"))
        given |= {"alpha": 0.01, "p": 0.73, "delta": 0.01}
        given |= {"task": "estimate", "model": "python", "formula": formula, "runs": 10, "epsilon": 0.01, "entry": 1}
        found = {"p_phi": 0.9 - 0.1 * k, "p_phi_ci": [0.4, 0.95], "samples_drawn": 10, "seconds_per_sample": 1e-6}
        result = {"parameters": given | {"mechanism": "exponential", "notion": "expected"}} | found
        file = folder / f"<b>{k}" / "result.json"
        file.parent.mkdir(parents=True)
        write_json(file, result)
        points.append((file, flatten(result)))
    return points
