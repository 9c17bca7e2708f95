"""Small audits of every kind, with the files that their reports are made from."""

from __future__ import annotations

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
from dpsmc_audit.report.page_audit import OBSERVERS_CSV, audit_page
from dpsmc_audit.report.tables import columns_csv, flatten, observers_csv
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


def _written(folder: Path, found: Any, given: dict[str, Any]) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "histogram.csv", columns_csv(found.histogram))
    if hasattr(found, "leakage"):
        write_text(folder / "profile.csv", columns_csv(found.leakage.profile))
    return {"parameters": given, **found.as_dict()}


def expected(folder: Path, engine: Any = "exact", mechanism: Mechanism = LAW, **changed: Any) -> dict[str, Any]:
    """Definition 3."""
    epsilon = changed.get("epsilon", EPSILON)
    observer = Expected(draws=200, pairs=changed.get("pairs", 200), bin_width=changed.get("bin_width", 20))
    found = audit(Setting(TEST, mechanism, P_PHI), epsilon, observer, engine=engine)
    return _written(folder, found, parameters("expected", engine, **changed))


def marginal(folder: Path, engine: Any = "exact", mechanism: Mechanism = LAW, **changed: Any) -> dict[str, Any]:
    """One released result."""
    epsilon, entry = changed.get("epsilon", EPSILON), changed.get("entry", 1)
    options: dict[str, Any] = {name: changed[name] for name in ("runs", "method") if name in changed}
    observer = Marginal(pairs=20, bin_width=20, **options)
    found = audit(Setting(TEST, mechanism, P_PHI), epsilon, observer, entry=entry, engine=engine)
    return _written(folder, found, parameters("marginal", engine, **changed))


def informed(folder: Path, bits: Any = None, mechanism: Mechanism = LAW, **changed: Any) -> dict[str, Any]:
    """All other samples known: a given sequence, or ten drawn ones."""
    epsilon, entry = changed.get("epsilon", EPSILON), changed.get("entry", 1)
    found = audit(Setting(TEST, mechanism, P_PHI), epsilon, Informed(sequence=bits, sequences=10), entry=entry)
    return _written(folder, found, parameters("informed", "monte_carlo", **changed))


def noisy(x: int, runs: int, rng: np.random.Generator) -> Any:
    return np.floor(10 * (x + rng.exponential(size=runs))), np.zeros(runs, int)


def same(x: int, runs: int, rng: np.random.Generator) -> Any:
    return rng.integers(1, 9, runs), rng.integers(0, 2, runs)


def sampler(
    folder: Path, draws: Any = noisy, name: str = "mine:noisy", runs: int = 2000, **changed: Any
) -> dict[str, Any]:
    """A user's mechanism."""
    found = audit_mechanism(Named(draws, name), 1.0, runs=runs, method=changed.get("method", "split"))
    given = {"task": "audit", "sampler": name, "epsilon": 1.0, "claimed_delta": 0.0, "confidence": 0.99, "runs": runs}
    return _written(folder, found, given)


def write_observers(folder: Path, audited: str, mechanism: Mechanism = LAW) -> OtherObservers:
    """The curves of the other observers; the reasons of those left out."""
    pair, sampling = Adjacent(Setting(TEST, mechanism, P_PHI)), Sampling(max_steps=10**6)
    found = other_observers(audited, pair, epsilon_grid(EPSILON), 0.01, 20, sampling)
    write_text(folder / OBSERVERS_CSV, observers_csv(found.curves))
    return found


def page(folder: Path, result: dict[str, Any], notes: Any = (), given: Any = ("notion=x",)) -> str:
    return audit_page(folder, result, notes, given)


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
