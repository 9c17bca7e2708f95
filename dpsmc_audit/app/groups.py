"""The groups of keys of the configuration."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, cast

from dpsmc_audit.errors import require
from dpsmc_audit.runs.execution import Backend, Execution

__all__ = ["BackendKeys", "Engine", "Named", "Noise"]


@dataclass
class Named:
    """A task or an observer: its name, or with the name python the user's own code as package.module:name.

    Parameters
    ----------
    name : str
        The name.
    target : str, optional
        The user's own code.
    """

    name: str = ""
    target: str | None = None

    def check(self, group: str) -> None:
        """Check that the target fits the name.

        Parameters
        ----------
        group : str
            The key on the command line, for the message: ``task`` or ``notion``, for example.

        Raises
        ------
        ParameterError
            If the name is python and the target is missing, or if another name has a target.
        """
        own = self.name == "python"
        require(not own or self.target is not None, f"{group}=python needs {group}.target=package.module:name")
        require(own or self.target is None, f"{group}.target is for {group}=python, got {group}={self.name}")


@dataclass
class Noise:
    """The law of L. `distribution` and `arguments` are for mechanism=law, `target` is for mechanism=python.

    Parameters
    ----------
    name : str
        The mechanism.
    distribution : str, optional
        The name of a law in ``scipy.stats``.
    arguments : dict, optional
        Its numbers by name.
    target : str, optional
        The user's own code.
    """

    name: str = ""
    distribution: str | None = None
    arguments: Any = None
    target: str | None = None

    @property
    def numbers(self) -> dict[str, float]:
        """The arguments of the distribution, by name."""
        given = {} if self.arguments is None else self.arguments
        message = f"mechanism.arguments must be numbers by name, such as {{a: 2, scale: 5}}, got {given}"
        require(isinstance(given, dict), message)
        require(all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in given.values()), message)
        return {f"{name}": float(value) for name, value in given.items()}

    @property
    def given(self) -> dict[str, Any]:
        """The parameters of the law beside its name, for ``result.json``."""
        if self.name == "python":
            return {"mechanism_target": self.target}
        return {"distribution": self.distribution, "arguments": self.numbers} if self.name == "law" else {}


@dataclass
class Engine:
    """How numbers are made.

    Parameters
    ----------
    name : str
        ``monte_carlo`` or ``exact``.
    kernel : str
        How samples are drawn: ``jumps`` or ``steps``.
    """

    name: str = "monte_carlo"
    kernel: str = "jumps"


@dataclass
class BackendKeys:
    """Where numbers are made. No key of this group changes a result.

    Parameters
    ----------
    name : str
        The backend.
    workers : int, optional
        Threads or processes; by default one per available core.
    address : str, optional
        The scheduler of Dask.
    block_size : int, optional
        Runs or pairs in a block; by default some hundredths of a second of work.
    checkpoint : float, optional
        Seconds between two checkpoints; None for none.
    """

    name: str = "threads"
    workers: int | None = None
    address: str | None = None
    block_size: int | None = None
    checkpoint: float | None = 10.0

    @property
    def count(self) -> int:
        """The number of workers: as given, or one per available core."""
        if self.workers is not None:
            return self.workers
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @property
    def execution(self) -> Execution:
        """The execution that these keys describe, checked."""
        every = self.checkpoint
        require(every is None or 0.0 <= every < math.inf, f"backend.checkpoint must be seconds or null, got {every}")
        return Execution(cast(Backend, self.name), self.count, self.address, self.block_size)
