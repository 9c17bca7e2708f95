"""The schema of the configuration and its checks. Only the command line uses it; the library takes plain arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.conf import HydraConf
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from dpsmc_audit.app.config_schema import Schema
from dpsmc_audit.app.keys import Keys, key_of, keys_of, paths
from dpsmc_audit.app.own_mechanism import own_mechanism
from dpsmc_audit.app.reference import cases_of
from dpsmc_audit.errors import ParameterError, check_bin_width, check_entries, check_probability, in_order, require
from dpsmc_audit.evidence.claims import Dp, Gdp, Promise
from dpsmc_audit.evidence.curves import read_curve
from dpsmc_audit.evidence.intervals import check_confidence
from dpsmc_audit.evidence.profiles import check_floor, epsilon_grid
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.models.keys import ORDERS, RELATIONS, read_formula, source_of
from dpsmc_audit.runs.resume import content_of, module_content
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

if TYPE_CHECKING:
    from dpsmc_audit.models.sources import Source

__all__ = ["Config", "as_typed", "known_keys", "read", "register"]

OWN_KEYS = ("confidence", "early", "missing", "predictor", "seed")
"""The keys that an audit of a user's sampler or runs reads, beside those that give them and the claim."""
CLAIM_KEYS = ("claimed_delta", "mu", "curve")
"""The keys of a claim that is more than an epsilon."""
PUBLIC = ("p", "relation", "alpha", "alpha_fp", "alpha_fn", "delta", "epsilon", "max_steps", "p_phi")
"""The keys that a release repeats."""
NOTIONS = ("expected", "marginal", "informed", "python")


@dataclass
class Config(Schema):
    """The checked configuration of a run. `read` makes one."""

    given = frozenset[str]()  # the keys that the user gave; no field, so no key of the schema

    def check(self) -> None:
        """Check all values.

        Raises
        ------
        ParameterError
            For a value that no task can work with.
        """
        self.task.check("task")
        self.notion.check("notion")
        self._check_common()
        if self.own is None:
            self._check_barrier()
            self._check_model()

    def _check_range(self, name: str, least: int, most: int, shown: str) -> None:
        value = getattr(self, name)
        require(least <= value <= most, f"{name} must lie in [{least}, {shown}], got {value}")

    def _check_common(self) -> None:
        """Check the keys that an audit of a user's sampler reads too."""
        check_confidence(self.confidence)
        check_floor(self.floor)
        _ = self.backend.execution
        self._check_range("runs", 1, 10**15, "10^15")
        self._check_range("seed", 0, 2**64 - 1, "2^64 - 1")
        audited, sampled = self.task.name == "audit", self.engine.name == "monte_carlo"
        require(self.own is None or audited, f"{self.own} is for task=audit, got task={self.task.name}")
        require(self.label is None or self.samples is not None, "label is for samples=FILE")
        for key in ("missing", "predictor"):
            given = getattr(self, key) not in (None, False)
            require(self.own is not None or not given, f"{key} is for sampler=... or samples=...")
        self._check_claim()
        judged = audited and (self.own is not None or (self.notion.name == "marginal" and sampled))
        where = "task=audit notion=marginal engine=monte_carlo, or sampler=..."
        require(judged or self.early, f"early=false is for {where}")

    @property
    def cases(self) -> set[str]:
        """Which keys are read: see `reference.cases_of`."""
        groups = ("task", "notion", "engine", "mechanism")
        names = {name: getattr(self, name).name for name in groups} | {"sampler": self.sampler}
        return cases_of(names | {"samples": None if self.samples is None else "given"})

    @property
    def chosen(self) -> str:
        """What decides which keys are read, as words of the command line."""
        if self.own is not None:
            return f"{self.own}=..."
        engine = " engine=exact" if self.engine.name == "exact" else ""
        noise = " mechanism=none" if self.mechanism.name == "none" else ""
        if self.task.name == "audit":
            return f"task=audit notion={self.notion.name}{engine}"
        return f"task={self.task.name}" + (f"{engine}{noise}" if self.task.name == "simulate" else "")

    def _check_claim(self) -> None:
        """Check what is claimed: epsilon with claimed_delta, or mu, or curve."""
        require(0.0 <= self.claimed_delta < 1.0, f"claimed_delta must lie in [0, 1), got {self.claimed_delta}")
        require(self.curve != "", "curve must name a file")
        given = [name for name in CLAIM_KEYS if getattr(self, name) != getattr(Config, name)]
        require(len(given) <= 1, f"{' and '.join(given)} are different claims: give one of them")
        if given:
            require(self.task.name == "audit", f"{given[0]} is for task=audit, got task={self.task.name}")
            _ = self.promise

    @property
    def own(self) -> str | None:
        """The key that gives the user's own mechanism: a sampler, or samples; None for the paper's test."""
        given = [name for name in ("sampler", "samples") if getattr(self, name) is not None]
        return given[0] if given else None

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The keys that an audit of the user's own mechanism reads."""
        given = ("sampler", "runs") if self.samples is None else ("samples", "label")
        return (*given, *CLAIM_KEYS, "epsilon", *OWN_KEYS)

    @property
    def paths(self) -> list[str]:
        """The files of runs that one already has."""
        given = self.samples if isinstance(self.samples, list) else [self.samples]
        wrong = [x for x in given if not isinstance(x, str) or not x]
        require(not wrong, f"samples must be a file or a list of two files, got {self.samples}")
        return list(given)

    @cached_property
    def promise(self) -> Promise:
        """The claim that is audited."""
        if self.mu is not None:
            return Gdp(self.mu)
        return Dp(self.epsilon, self.claimed_delta) if self.curve is None else read_curve(self.curve)

    def _check_barrier(self) -> None:
        """Check the test, its noise and its observers."""
        self._check_range("max_steps", 1, 2**40, "2^40")
        check_entries(self.entries, self.max_steps if self.task.name == "audit" else 2**40)
        _ = self.law  # its scale may take seconds
        if self.epsilons is not None:
            require(isinstance(self.epsilons, list), f"epsilons must be a list, got {self.epsilons}")
            _ = epsilon_grid(self.epsilon, self.epsilons)
        informed = self.task.name == "audit" and self.notion.name == "informed"
        asked = f"task={self.task.name} notion={self.notion.name}"
        require(self.sequence is None or informed, f"sequence is for task=audit notion=informed, got {asked}")
        require(self.sequence != "", "sequence must name a file")
        self._check_range("pairs", 4, 10**15, "10^15")
        self._check_range("draws", 2, 10**15, "10^15")
        check_bin_width(self.bin_width)
        for name, value, known in (
            ("engine", self.engine.name, ("monte_carlo", "exact")),
            ("engine.kernel", self.engine.kernel, ("jumps", "steps")),
            ("notion", self.notion.name, NOTIONS),
        ):
            require(value in known, f"{name} must be one of {', '.join(known)}, got {value}")

    def _check_model(self) -> None:
        """Check the system and its specification."""
        self.model.check()
        task, model = self.task.name, self.model.name
        require(self.relation in RELATIONS, f"relation must be one of {', '.join(RELATIONS)}, got {self.relation}")
        require(not self.insecure or task == "verify", f"insecure is for task=verify, got {task}")
        self._check_ledger()
        own = task == "verify" and self.mechanism.name == "python"
        require(not own, "task=verify cannot use mechanism=python: nothing could be said of how its noise is drawn")
        if self.known:
            check_probability("p_phi", self.bernoulli)
            given = self.formula is not None or self.formula_file is not None
            require(not given, "formula has no meaning with model=bernoulli: its samples are bits")
            return
        require(self.p_phi is None, f"p_phi has no meaning with model={model}: it is the model's to give")
        ask = "estimate it with task=estimate, then give model=bernoulli p_phi=..."
        require(task != "audit", f"task=audit needs a known p_phi, got model={model}: {ask}")
        require(
            task != "simulate" or self.engine.name != "exact",
            f"engine=exact needs a known p_phi, got model={model}: leave engine=exact out",
        )
        require(task != "simulate" or model != "recorded", "task=simulate needs new samples for each run, not recorded")
        ordered = task == "verify" or self.model.order in (None, ORDERS[0])
        require(ordered, f"model.order={self.model.order} is for task=verify: task={task} counts every recorded sample")

    def _check_ledger(self) -> None:
        """Check what counts releases."""
        task = self.task.name
        require(self.ledger is None or task == "verify", f"ledger is for task=verify, got {task}")
        require(self.ledger != "", "ledger must name a file")
        require(self.ledger is None or not self.insecure, "ledger has no meaning with insecure=true")
        require(self.budget is None or self.ledger is not None, "budget needs ledger=PATH")
        require(self.budget is None or 0.0 < self.budget < math.inf, f"budget must be positive, got {self.budget}")

    @property
    def known(self) -> bool:
        """Whether p_phi is a parameter."""
        return self.model.name == "bernoulli"

    @property
    def negated(self) -> bool:
        """Whether the question is if p_phi is below p: the test then looks at the negated specification, at 1 - p."""
        return self.relation in ("lt", "le")

    @property
    def source(self) -> Source:
        """The samples of the model, judged by the specification as it is written."""
        return source_of(self.model, read_formula(self.formula, self.formula_file), self.p_phi, self.threads)

    @property
    def test(self) -> Sprt:
        """The test."""
        threshold = 1.0 - self.p if self.negated else self.p
        return Sprt(threshold, self.delta, self.alpha, self.alpha_fp, self.alpha_fn)

    @cached_property
    def law(self) -> Mechanism:
        """The law of L, calibrated to the test and to epsilon."""
        noise = self.mechanism
        if noise.name == "python":
            require(noise.target is not None, "mechanism=python needs mechanism.target=package.module:callable")
            return own_mechanism(f"{noise.target}", self.test, self.epsilon)
        require(noise.target is None, f"mechanism.target is for mechanism=python, got {noise.name}")
        from dpsmc_audit.exact.calibration import mechanism_named  # it loads the kernels, which takes a moment

        return mechanism_named(noise.name, self.test, self.epsilon, noise.distribution, noise.numbers)

    @cached_property
    def setting(self) -> Setting:
        """The test, its noise and the probability of its samples."""
        return Setting(self.test, self.law, self.bernoulli)

    @property
    def entries(self) -> tuple[int, ...]:
        """The changed samples, in order."""
        given = self.entry if isinstance(self.entry, list) else [self.entry]
        wrong = [x for x in given if not isinstance(x, int) or isinstance(x, bool)]
        require(not wrong, f"entry must be a sample number or a list of them, got {self.entry}")
        return in_order(given)

    @property
    def bernoulli(self) -> float:
        """The probability of the samples that the test counts: p_phi, or 1 - p_phi if negated."""
        if self.p_phi is None:
            raise ParameterError(f"model={self.model.name} needs p_phi: give p_phi=0.84, for example")
        return 1.0 - self.p_phi if self.negated else self.p_phi

    @property
    def threads(self) -> int:
        """The number of threads that simulate traces, all in this process."""
        return self.backend.count if self.backend.name == "threads" else 1

    def inputs(self) -> dict[str, str]:
        """Compute digests of what the result depends on beside the parameters.

        Returns
        -------
        dict
            Digests of the files and modules that keys name; the law of L, whose center may be computed; and Table 1,
            which adds the paper's numbers.
        """
        files = {
            "sequence": self.sequence,
            "curve": self.curve,
            "formula_file": self.formula_file,
            "model_path": self.model.path,
        }
        modules = {
            "sampler": self.sampler,
            "predictor": self.predictor,
            "model_target": self.model.target,
            "mechanism_target": self.mechanism.target,
            "task_target": self.task.target,
            "notion_target": self.notion.target,
        }
        if self.samples is not None:
            files |= {f"samples_{k}": path for k, path in enumerate(self.paths)}
        found = {name: content_of(Path(path)) for name, path in files.items() if path is not None}
        found |= {name: module_content(target) for name, target in modules.items() if target is not None}
        if self.own is None and self.mechanism.target is None:  # a user's law may print its place in memory
            found["noise"] = f"{self.law}"
        found |= {} if self.figures is None else {"figures": f"{self.figures}"}  # a folder without them is not complete
        return found | ({"study": "table1"} if self.study == "table1" else {})

    def parameters(self) -> dict[str, Any]:
        """List what the result depends on, for ``result.json``.

        Returns
        -------
        dict
            Keys and values, without the backend. A release lists public keys only: no seed, and no path or target,
            which can name whose data it holds.
        """
        values = asdict(self)
        for name in ("mu", "curve", "predictor", "label"):
            if values[name] is None:
                del values[name]
        if self.own is not None:
            if self.mu is not None or self.curve is not None:
                del values["epsilon"], values["claimed_delta"]
            return {"task": self.task.name} | {name: values[name] for name in self.own_keys if name in values}
        names = {group: values[group]["name"] for group in ("task", "mechanism", "notion", "model")}
        given = {f"model_{name}": value for name, value in self.model.given.items() if name != "order"}
        if self.task.name == "verify":
            order = {} if self.model.order_used is None else {"model_order": self.model.order_used}
            public = {name: value for name, value in given.items() if name not in ("model_path", "model_target")}
            public |= order | self.mechanism.given
            del names["notion"]
            return {name: values[name] for name in PUBLIC} | names | public
        targets = {"task_target": self.task.target, "notion_target": self.notion.target}
        given |= {name: target for name, target in targets.items() if target is not None}
        for name in ("study", "figures", "sampler", "samples", "missing", "insecure", "ledger", "budget", "backend"):
            del values[name]
        if self.claimed_delta == 0.0:
            del values["claimed_delta"]
        return (
            values | self.mechanism.given | given | names | {"engine": self.engine.name, "kernel": self.engine.kernel}
        )


def register() -> None:
    """Make the schema known to Hydra, as the first entry of the defaults list."""
    ConfigStore.instance().store(name="schema", node=Config)


@lru_cache(maxsize=1)
def known_keys() -> Keys:
    """List every key of the command line.

    Returns
    -------
    Keys
        The keys of the schema, the group of sweeps, and Hydra's own keys.
    """
    own = keys_of(Config, leaves=("entry",))
    groups = tuple(f"hydra/{name}" for choice in HydraConf().defaults for name in choice)
    return own + Keys(("sweep", "hydra", *groups)) + keys_of(HydraConf, "hydra.")


def as_typed(overrides: Any) -> list[str]:
    """Return overrides as the user typed them.

    Parameters
    ----------
    overrides : ListConfig of str
        The overrides as Hydra keeps them.

    Returns
    -------
    list of str
        The overrides. References to other keys are not resolved.
    """
    typed = OmegaConf.to_container(overrides, resolve=False)
    assert isinstance(typed, list)
    return [f"{override}" for override in typed]


def refuse_unknown(composed: DictConfig) -> None:
    """Refuse a composed configuration with an unknown key. Keys below ``hydra`` are left to Hydra, which adds some.

    Parameters
    ----------
    composed : DictConfig
        The configuration.

    Raises
    ------
    UnknownKeyError
        If it holds a key that the schema does not have.
    """
    values = OmegaConf.to_container(composed, resolve=False)
    assert isinstance(values, dict)
    values.pop("hydra", None)
    known_keys().refuse(paths(values))


def read(composed: DictConfig, given: Sequence[str] = ()) -> Config:
    """Turn a composed configuration into a checked one.

    Parameters
    ----------
    composed : DictConfig
        The configuration that Hydra composed.
    given : sequence of str
        The overrides it was composed with. Some defaults depend on which keys were given.

    Returns
    -------
    Config
        The typed and checked configuration.

    Raises
    ------
    ParameterError
        For unknown keys, impossible values, and keys that have no meaning together.
    """
    refuse_unknown(composed)
    config = OmegaConf.to_object(composed)
    assert isinstance(config, Config)
    keys, task = [key_of(override) for override in given], config.task.name
    config.given = frozenset(keys)
    if "runs" not in keys:
        config.runs = _usual_runs(config)
    once = config.model.name == "recorded" and task == "estimate"
    require(not once or "runs" not in keys, "runs has no meaning with model=recorded: all of its samples count")
    if task == "verify":
        seeded = "seed" in keys or config.seed != Config.seed
        leak = "task=verify draws fresh random numbers; a seed would reveal samples and noise (insecure=true allows it)"
        require(config.insecure or not seeded, leak)
        require(seeded or not config.insecure, "insecure=true is for a run with a seed, and none was given")
    require(config.sampler is None or config.samples is None, "sampler and samples are different sources: give one")
    for key in keys if config.own is not None else ():
        read_too = key in (*config.own_keys, "task", "sweep", "study", "figures") or key.startswith(
            ("hydra", "backend")
        )
        hint = "; to claim a privacy delta, give claimed_delta" if key == "delta" else ""
        require(read_too, f"{key} has no meaning with {config.own}=...: leave it out, only its runs are audited{hint}")
    if config.samples is not None and "early" not in keys:
        config.early = False  # the runs are there; all of them make the bounds sharper
    config.check()
    return config


def _usual_runs(config: Config) -> int:
    """Return the number of runs where none is given."""
    if config.sampler is not None:
        return 100_000
    if config.task.name == "estimate":
        return 40_000
    return 100 if config.study == "table1" and not config.known else config.runs
