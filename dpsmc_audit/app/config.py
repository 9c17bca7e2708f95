"""The configuration's schema and its checks. Only the command line imports this; the library takes plain arguments."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hydra.conf import HydraConf
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from dpsmc_audit.app.keys import Keys, key_of, keys_of, paths
from dpsmc_audit.errors import ParameterError, check_entries, check_probability, in_order, require
from dpsmc_audit.evidence.intervals import check_confidence
from dpsmc_audit.evidence.profiles import check_floor, epsilon_grid
from dpsmc_audit.evidence.verdict import METHODS
from dpsmc_audit.exact.calibration import mechanism_named
from dpsmc_audit.mechanisms import Mechanism
from dpsmc_audit.models.keys import ORDERS, RELATIONS, ModelKeys, read_formula, source_of
from dpsmc_audit.runs.execution import Backend, Execution
from dpsmc_audit.setting import Setting
from dpsmc_audit.sprt import Sprt

if TYPE_CHECKING:
    from dpsmc_audit.models.sources import Source

__all__ = ["BackendKeys", "Config", "Engine", "Named", "Noise", "known_keys", "read", "refuse_unknown", "register"]

KERNELS, ENGINES = ("jumps", "steps"), ("monte_carlo", "exact")
SAMPLER_KEYS = ("sampler", "epsilon", "claimed_delta", "confidence", "runs", "seed", "method", "floor")
"""All that an audit of a user's mechanism reads."""
SAMPLER_RUNS = 100_000
PUBLIC = ("p", "relation", "alpha", "alpha_fp", "alpha_fn", "delta", "epsilon", "max_steps", "p_phi")
"""Keys that a release repeats."""
MOST = 10**15
"""Runs, pairs, draws: a number that no machine will come to the end of."""
NOTIONS = ("expected", "marginal", "informed", "python")
TRACE_RUNS, ESTIMATE_RUNS = 100, 40_000
"""Runs of Table 1 where traces are simulated, and samples of an estimate, if not told otherwise."""


@dataclass
class Named:
    """A task or an observer: its name, or with the name python the user's own code as package.module:name."""

    name: str = ""
    target: str | None = None

    def check(self, group: str) -> None:
        """Raise `ParameterError` for a target that is missing or has no meaning."""
        own = self.name == "python"
        require(not own or self.target is not None, f"{group}=python needs {group}.target=package.module:name")
        require(own or self.target is None, f"{group}.target is for {group}=python, got {group}={self.name}")


@dataclass
class Noise:
    """The law of L; `distribution` and `arguments` are for mechanism=law."""

    name: str = ""
    distribution: str | None = None
    arguments: Any = None

    @property
    def numbers(self) -> dict[str, float]:
        """The arguments of the distribution, by name."""
        given = {} if self.arguments is None else self.arguments
        message = f"mechanism.arguments must be numbers by name, such as {{a: 2, scale: 5}}, got {given}"
        require(isinstance(given, dict), message)
        require(all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in given.values()), message)
        return {f"{name}": float(value) for name, value in given.items()}


@dataclass
class Engine:
    """How numbers are made."""

    name: str = "monte_carlo"
    kernel: str = "jumps"


@dataclass
class BackendKeys:
    """Where they are made; nothing of it can change a result."""

    name: str = "threads"
    workers: int | None = None
    address: str | None = None
    block_size: int | None = None
    checkpoint: float | None = 10.0

    @property
    def count(self) -> int:
        if self.workers is not None:
            return self.workers
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @property
    def execution(self) -> Execution:
        every = self.checkpoint
        require(every is None or 0.0 <= every < math.inf, f"backend.checkpoint must be seconds or null, got {every}")
        return Execution(cast(Backend, self.name), self.count, self.address, self.block_size)


@dataclass
class Config:
    """All keys of the command line, typed; `read` turns a composed configuration into one that was checked."""

    p: float = 0.73
    p_phi: float | None = None
    alpha: float = 0.01
    alpha_fp: float | None = None
    alpha_fn: float | None = None
    delta: float = 0.01
    epsilon: float = 0.01
    entry: Any = 1
    runs: int = 10_000
    pairs: int = 500
    draws: int = 10_000
    bin_width: int | None = 140
    seed: int = 1
    max_steps: int = 10_000_000
    confidence: float = 0.99
    floor: float = 0.01
    epsilons: list[float] | None = None
    sequence: str | None = None
    method: str = "split"
    sampler: str | None = None
    claimed_delta: float = 0.0
    formula: str | None = None
    formula_file: str | None = None
    relation: str = "gt"
    insecure: bool = False
    study: str | None = None
    task: Named = field(default_factory=Named)
    mechanism: Noise = field(default_factory=Noise)
    notion: Named = field(default_factory=Named)
    model: ModelKeys = field(default_factory=ModelKeys)
    engine: Engine = field(default_factory=Engine)
    backend: BackendKeys = field(default_factory=BackendKeys)

    def check(self) -> None:
        """Raise `ParameterError` for any value that no task can work with."""
        self.task.check("task")
        self.notion.check("notion")
        self._check_common()
        if self.sampler is None:
            self._check_barrier()
            self._check_model()

    def _check_common(self) -> None:
        """What concerns a user's mechanism too."""
        check_confidence(self.confidence)
        check_floor(self.floor)
        _ = self.backend.execution
        require(1 <= self.runs <= MOST, f"runs must lie in [1, 10^15], got {self.runs}")
        require(0 <= self.seed < 2**64, f"seed must lie in [0, 2^64), got {self.seed}")
        require(self.method in METHODS, f"method must be one of {', '.join(METHODS)}, got {self.method}")
        audited, sampled = self.task.name == "audit", self.engine.name == "monte_carlo"
        require(self.sampler is None or audited, f"sampler is for task=audit, got task={self.task.name}")
        require(self.sampler is not None or self.claimed_delta == 0.0, "claimed_delta is for task=audit sampler=...")
        judged = audited and (self.sampler is not None or (self.notion.name == "marginal" and sampled))
        where = "task=audit notion=marginal engine=monte_carlo, or sampler=..."
        require(judged or self.method == "split", f"method={self.method} is for {where}")

    def _check_barrier(self) -> None:
        """What concerns the test, its noise and its observers."""
        _ = self.law
        check_entries(self.entries, self.max_steps if self.task.name == "audit" else 2**40)
        if self.epsilons is not None:
            require(isinstance(self.epsilons, list), f"epsilons must be a list, got {self.epsilons}")
            _ = epsilon_grid(self.epsilon, self.epsilons)
        asked = f"task={self.task.name} notion={self.notion.name}"
        informed = self.task.name == "audit" and self.notion.name == "informed"
        require(self.sequence is None or informed, f"sequence is for task=audit notion=informed, got {asked}")
        require(self.sequence != "", "sequence must name a file")
        for name, least in (("max_steps", 1), ("pairs", 4), ("draws", 2)):
            value = getattr(self, name)
            require(value >= least, f"{name} must be at least {least}, got {value}")
            require(value <= MOST or name == "max_steps", f"{name} must be at most 10^15, got {value}")
        require(self.bin_width is None or self.bin_width >= 1, f"bin_width must be at least 1, got {self.bin_width}")
        require(self.max_steps <= 2**40, f"max_steps must be at most 2^40, got {self.max_steps}")
        for group, name, known in (("engine", self.engine.name, ENGINES), ("notion", self.notion.name, NOTIONS)):
            require(name in known, f"{group} must be one of {', '.join(known)}, got {name}")
        require(
            self.engine.kernel in KERNELS,
            f"engine.kernel must be one of {', '.join(KERNELS)}, got {self.engine.kernel}",
        )

    def _check_model(self) -> None:
        """What concerns the system and its specification."""
        self.model.check()
        require(self.relation in RELATIONS, f"relation must be one of {', '.join(RELATIONS)}, got {self.relation}")
        require(not self.insecure or self.task.name == "verify", f"insecure is for task=verify, got {self.task.name}")
        if self.known:
            check_probability("p_phi", self.bernoulli)
            given = self.formula is not None or self.formula_file is not None
            require(not given, "formula has no meaning with model=bernoulli: its samples are bits")
            return
        require(self.p_phi is None, f"p_phi has no meaning with model={self.model.name}: it is the model's to give")
        task, model = self.task.name, self.model.name
        ask = "task=estimate tells its p_phi, then give model=bernoulli p_phi=..."
        require(task != "audit", f"task=audit needs a known p_phi, got model={model}: {ask}")
        require(task != "simulate" or self.engine.name != "exact", f"engine=exact needs a known p_phi, got {model}")
        require(task != "simulate" or model != "recorded", "task=simulate needs new samples for each run, not recorded")
        ordered = task == "verify" or self.model.order in (None, ORDERS[0])
        require(ordered, f"model.order={self.model.order} is for task=verify: task={task} counts every recorded sample")

    @property
    def known(self) -> bool:
        """Whether p_phi is a parameter."""
        return self.model.name == "bernoulli"

    @property
    def negated(self) -> bool:
        """Remark 2: whether p_phi is below p is asked of the negated specification, at 1 - p."""
        return self.relation in ("lt", "le")

    @property
    def source(self) -> Source:
        """The samples of the model, judged by the specification as it is written."""
        return source_of(self.model, read_formula(self.formula, self.formula_file), self.p_phi, self.threads)

    @property
    def test(self) -> Sprt:
        threshold = 1.0 - self.p if self.negated else self.p
        return Sprt(threshold, self.delta, self.alpha, self.alpha_fp, self.alpha_fn)

    @cached_property
    def law(self) -> Mechanism:
        noise = self.mechanism
        return mechanism_named(noise.name, self.test, self.epsilon, noise.distribution, noise.numbers)

    @cached_property
    def setting(self) -> Setting:
        return Setting(self.test, self.law, self.bernoulli)

    @property
    def entries(self) -> tuple[int, ...]:
        """One entry, or a list of them."""
        given = self.entry if isinstance(self.entry, list) else [self.entry]
        wrong = [x for x in given if not isinstance(x, int) or isinstance(x, bool)]
        require(not wrong, f"entry must be a sample number or a list of them, got {self.entry}")
        return in_order(given)

    @property
    def bernoulli(self) -> float:
        """The probability of the samples that the test counts: p_phi, or what it leaves to 1."""
        if self.p_phi is None:
            raise ParameterError(f"model {self.model.name} needs p_phi")
        return 1.0 - self.p_phi if self.negated else self.p_phi

    @property
    def threads(self) -> int:
        """That simulate traces, which are made in this process."""
        return self.backend.count if self.backend.name == "threads" else 1

    def _public(self) -> dict[str, Any]:
        """What a release may say of its run: no seed, and no path, which can name whose data it holds."""
        noise = {"distribution": self.mechanism.distribution, "arguments": self.mechanism.numbers}
        given = {f"model_{name}": value for name, value in self.model.given.items() if name not in ("path", "target")}
        if self.model.order_used is not None:
            given["model_order"] = self.model.order_used
        public = {name: getattr(self, name) for name in PUBLIC}
        public |= {"task": self.task.name, "mechanism": self.mechanism.name, "model": self.model.name}
        return public | given | (noise if self.mechanism.name == "law" else {})

    def inputs(self) -> dict[str, str]:
        """What the result depends on beside the parameters: digests of the files and of the modules that are named.

        The law of L too: its center may be computed, and another center makes other runs.
        """
        from dpsmc_audit.runs.resume import content_of, module_content

        files = {"sequence": self.sequence, "formula_file": self.formula_file, "model_path": self.model.path}
        modules = {"sampler": self.sampler, "model_target": self.model.target}
        modules |= {"task_target": self.task.target, "notion_target": self.notion.target}
        found = {name: Path(path) for name, path in files.items() if path is not None}
        digests = {name: content_of(path) for name, path in found.items()}
        digests |= {name: module_content(target) for name, target in modules.items() if target is not None}
        digests |= {"noise": f"{self.law}"} if self.sampler is None else {}
        return digests | ({"study": "table1"} if self.study == "table1" else {})  # it adds the paper's numbers

    def parameters(self) -> dict[str, Any]:
        """What the result depends on: not the backend."""
        values = asdict(self)
        if self.sampler is not None:
            return {"task": self.task.name} | {name: values[name] for name in SAMPLER_KEYS if name in values}
        if self.task.name == "verify":
            return self._public()
        if self.mechanism.name == "law":
            values["distribution"] = self.mechanism.distribution
            values["arguments"] = self.mechanism.numbers
        values |= {f"model_{name}": value for name, value in self.model.given.items() if name != "order"}
        given = {"task_target": self.task.target, "notion_target": self.notion.target}
        values |= {name: target for name, target in given.items() if target is not None}
        for group in ("task", "mechanism", "notion", "model"):
            values[group] = values[group]["name"]
        values["engine"], values["kernel"] = self.engine.name, self.engine.kernel
        for name in ("study", "sampler", "claimed_delta", "insecure", "backend"):
            del values[name]
        return values


def check_seed_given(insecure: bool, seeded: bool) -> None:
    """A release made from a seed can be made again by whoever guesses it."""
    message = "task=verify draws fresh entropy; a seed would give its samples and noise away (insecure=true allows it)"
    require(insecure or not seeded, message)
    require(seeded or not insecure, "insecure=true is for a run with a seed, and none was given")


def register() -> None:
    """Make the schema known to Hydra, as the first entry of the defaults list."""
    ConfigStore.instance().store(name="schema", node=Config)


@lru_cache(maxsize=1)
def known_keys() -> Keys:
    """Every key that the command line has: those of the schema, the group of sweeps, and Hydra's own."""
    own = keys_of(Config, leaves=("entry",))
    groups = tuple(f"hydra/{name}" for choice in HydraConf().defaults for name in choice)
    return own + Keys(("sweep", "hydra", *groups)) + keys_of(HydraConf, "hydra.")


def refuse_unknown(composed: DictConfig) -> None:
    """Raise `UnknownKeyError` if a composed configuration holds a key that the schema does not have.

    What is below ``hydra`` is left to Hydra: it adds names of its own there.
    """
    values = OmegaConf.to_container(composed, resolve=False)
    assert isinstance(values, dict)
    values.pop("hydra", None)
    known_keys().refuse(paths(values))


def read(composed: DictConfig, given: Sequence[str] = ()) -> Config:
    """The typed and checked configuration; `given` are the overrides it was composed with."""
    refuse_unknown(composed)
    config = OmegaConf.to_object(composed)
    assert isinstance(config, Config)
    keys = [key_of(override) for override in given]
    if config.study == "table1" and not config.known and "runs" not in keys:
        config.runs = TRACE_RUNS
    if config.task.name == "estimate" and "runs" not in keys:
        config.runs = ESTIMATE_RUNS
    once = config.model.name == "recorded" and config.task.name == "estimate"
    require(not once or "runs" not in keys, "runs has no meaning with model=recorded: all of its samples count")
    if config.task.name == "verify":
        check_seed_given(config.insecure, "seed" in keys or config.seed != Config.seed)
    if config.sampler is not None:
        for key in keys:
            known = key in (*SAMPLER_KEYS, "task", "sweep", "study") or key.startswith(("hydra", "backend"))
            require(known, f"{key} has no meaning with sampler={config.sampler}: its runs are all that is audited")
        if "runs" not in keys:
            config.runs = SAMPLER_RUNS
    config.check()
    return config
