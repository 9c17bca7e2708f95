"""The text of ``--help``: usage, three examples, and one line for each key that the chosen task reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from dpsmc_audit.app.keys import key_of, overrides_in
from dpsmc_audit.app.reference import GROUPS, REFERENCE, Key, cases_of
from dpsmc_audit.models.keys import MODELS

__all__ = ["EXAMPLES", "asked_for_help", "asked_for_version", "help_text", "version_text"]

EXAMPLES = (
    ("engine=exact epsilon=0.05", "audit the paper's claim without sampling"),
    ("sampler=mine:noisy epsilon=1", "audit your own mechanism: the function noisy of mine.py"),
    ("-m task=simulate alpha=0.01,0.05", "a sweep: one table with a row for each value"),
)
"""Arguments and what they do."""

CHOICES = ("task", "mechanism", "notion", "model", "engine", "backend", "sampler", "samples")
"""Keys on which it depends what is read."""

ENDING = """
null means: not given. Numbers may be written as 100000, 100_000, 1e5 or 10^5.
A list after a comma makes a sweep: -m alpha=0.01,0.05. Prepared sweeps: +sweep={sweeps}.
A result goes into a folder below outputs/; hydra.run.dir=NAME (for sweeps hydra.sweep.dir=NAME) chooses another.

  --help task=NAME          the keys that a task reads; also notion=NAME, model=NAME, engine=exact, sampler=x
  --version                 the version
  --cfg job                 the configuration that a command makes, without running it
  --hydra-help              the options of Hydra, which reads the command line
  -sc install=bash          completion for the command dpsmc-audit: eval "$(dpsmc-audit -sc install=bash)"

Exit codes: 0 done, 1 a point of a sweep failed, 2 invalid input, 3 a verification without a decision, 130 Ctrl-C."""


@dataclass(frozen=True)
class _Chosen:
    """What a command line chooses, and the defaults that come with it."""

    names: Mapping[str, str | None]
    values: Mapping[str, Any]
    given: tuple[str, ...]

    @classmethod
    def of(cls, arguments: Sequence[str], folder: str) -> _Chosen:
        words = [word for word in overrides_in(arguments) if key_of(word) in CHOICES and "," not in word]
        with initialize_config_dir(folder, version_base="1.3"):
            values: Any = OmegaConf.to_container(compose("config", words))
        names = {name: f"{values[name]['name']}" for name in CHOICES[:-2]}
        own = {name: values[name] for name in CHOICES[-2:]}
        return cls({**names, **own}, values, tuple(words))

    def default(self, key: Key) -> str:
        """The default of a key, also where a chosen group changes it."""
        group, _, name = key.name.partition(".")
        value = self.values[group]
        if isinstance(value, dict):
            value = value[name or "name"]
        return "null" if value is None else f"{value}".lower() if isinstance(value, bool) else f"{value}"

    def shows(self, key: Key) -> bool:
        """Whether a key belongs to what was chosen. All keys do if no task was."""
        model = f"{self.names['model']}"
        if key.name.startswith("model.") and key.name.partition(".")[2] not in MODELS[model]:
            return False
        keys = {key_of(word) for word in self.given}
        models = {"estimate"} if "model" in keys and "task" not in keys else set[str]()  # an audit has one model only
        return not self.given or key.read_in(cases_of(self.names) | models)


def asked_for_help(arguments: Sequence[str]) -> bool:
    """Tell whether a command line asks for help.

    Parameters
    ----------
    arguments : sequence of str
        The words of the command line.

    Returns
    -------
    bool
        True if it does.

    Examples
    --------
    >>> asked_for_help(["task=verify", "--help"]), asked_for_help(["--hydra-help"])
    (True, False)
    """
    return not {"-h", "--help"}.isdisjoint(arguments) and not {"-sc", "--shell-completion"} & {*arguments}


def asked_for_version(arguments: Sequence[str]) -> bool:
    """Tell whether a command line asks for the version.

    Parameters
    ----------
    arguments : sequence of str
        The words of the command line.

    Returns
    -------
    bool
        True if it does.
    """
    return "--version" in arguments and not {"-sc", "--shell-completion"} & {*arguments}


def version_text() -> str:
    """Return the version of this package."""
    from dpsmc_audit import __version__

    return f"dpsmc_audit {__version__}"


def help_text(arguments: Sequence[str], folder: str, sweeps: Sequence[str]) -> str:
    """Write the help for a command line.

    Parameters
    ----------
    arguments : sequence of str
        The words of the command line. Those that choose a task, a model and so on choose the keys that are listed.
    folder : str
        The folder of the configuration.
    sweeps : sequence of str
        The names of the prepared sweeps.

    Returns
    -------
    str
        The text.
    """
    chosen = _Chosen.of(arguments, folder)
    return "\n".join([*_beginning(chosen), *_keys(chosen), ENDING.format(sweeps="|".join(sweeps))])


def _beginning(chosen: _Chosen) -> Iterator[str]:
    yield f"{version_text()} audits whether the running time of a sequential test gives a single sample away."
    yield ""
    yield "Usage: python -m dpsmc_audit [key=value ...]     or, the same: dpsmc-audit [key=value ...]"
    yield ""
    yield "Examples"
    for words, about in EXAMPLES:
        yield f"  python -m dpsmc_audit {words:34}{about}"
    if chosen.given:
        yield ""
        yield f"Keys that {' '.join(chosen.given)} reads"


def _keys(chosen: _Chosen) -> Iterator[str]:
    """One line for each key, below the heading of its group."""
    cells = {key: (key.name, chosen.default(key), _range(key)) for key in REFERENCE if chosen.shows(key)}
    widths = [max(map(len, column)) for column in zip(*cells.values(), strict=True)]
    for group, title in GROUPS.items():
        lines = [key for key in cells if key.group == group]
        yield from ["", title] if lines else []
        for key in lines:
            first = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells[key], widths, strict=True))
            yield f"  {first}  {_meaning(key)}"


def _is_range(values: str) -> bool:
    return values.startswith(("[", "(", ">"))


def _range(key: Key) -> str:
    """The range of a number and its unit. A probability needs no unit beside its range."""
    unit = "" if key.unit == "probability" else key.unit
    return f"{key.values if _is_range(key.values) else ''} {unit}".strip()


def _meaning(key: Key) -> str:
    """The meaning, with the words to choose from."""
    return f"{key.about}: {', '.join(key.values.split())}" if key.values and not _is_range(key.values) else key.about
