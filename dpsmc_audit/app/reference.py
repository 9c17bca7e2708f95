"""What each key of the command line means: one line per key, for `--help` and for the warning about keys not read.

The lines are in ``reference.csv``; types and defaults are those of the schema. A test checks that every key of the
schema has its line, that the ranges are those that the checks accept, and that keys called unread change no result.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files

__all__ = ["GROUPS", "REFERENCE", "Key", "cases_of", "unread"]

GROUPS = {
    "task": "What is done",
    "test": "The test and its noise",
    "model": "The system whose samples are tested",
    "claim": "The privacy claim that is audited",
    "sampling": "How much is sampled",
    "view": "What an audit looks at",
    "own": "A mechanism of your own, instead of the built-in test",
    "release": "A private release (task=verify)",
    "run": "Where and how it runs (no key of this group changes a number)",
}


@dataclass(frozen=True)
class Key:
    """A key of the command line.

    Parameters
    ----------
    name : str
        The key, with its group: ``model.path``.
    group : str
        One of `GROUPS`.
    values : str
        The values that it may have: an interval or words.
    unit : str
        The unit of a number.
    readers : str
        The cases (see `cases_of`) in which it is read.
    about : str
        What it means.
    """

    name: str
    group: str
    values: str
    unit: str
    readers: str
    about: str

    def read_in(self, cases: Collection[str]) -> bool:
        """Tell whether the key is read.

        Parameters
        ----------
        cases : collection of str
            What `cases_of` says of a run.

        Returns
        -------
        bool
            True if one of the cases reads it.
        """
        return not {"anything", *self.readers.split()}.isdisjoint(cases)


def _rows() -> tuple[Key, ...]:
    text = files("dpsmc_audit.app").joinpath("reference.csv").read_text(encoding="utf-8")
    return tuple(Key(**row) for row in csv.DictReader(text.splitlines()))


REFERENCE = _rows()
"""All keys in the order of `--help`. A group such as ``model`` stands for ``model.name``."""


def cases_of(names: Mapping[str, str | None]) -> set[str]:
    """Say which cases of `Key.readers` a run is.

    Parameters
    ----------
    names : mapping
        The task, the notion, the engine, the mechanism, the sampler and the samples by their keys.

    Returns
    -------
    set of str
        The cases.

    Examples
    --------
    >>> sorted(cases_of({"task": "audit", "notion": "marginal", "engine": "exact"}))
    ['audit', 'marginal', 'marginal-exact']
    >>> sorted(cases_of({"task": "simulate", "engine": "monte_carlo", "mechanism": "none"}))
    ['simulate', 'simulate-sampled']
    """
    task, notion = f"{names.get('task')}", f"{names.get('notion')}"
    if "python" in (task, notion if task == "audit" else ""):
        return {"anything"}
    engine = "exact" if names.get("engine") == "exact" else "sampled"
    if task == "audit":
        own = [name for name in ("sampler", "samples") if names.get(name) is not None]
        return {*own} or {"audit", notion, f"{notion}-{engine}"}
    if task == "simulate":
        return {task, f"{task}-{engine}"} | (set() if names.get("mechanism") == "none" else {f"{task}-noisy"})
    return {task}


def unread(given: Iterable[str], cases: Iterable[Collection[str]]) -> list[str]:
    """Find the keys that were given and that nothing reads.

    Parameters
    ----------
    given : iterable of str
        The keys.
    cases : iterable of collections
        The cases of each run: one, or one for each point of a sweep.

    Returns
    -------
    list of str
        In the order of `REFERENCE`. Keys that are not listed there are left out.
    """
    wanted, runs = set(given), list(cases)
    return [key.name for key in REFERENCE if key.name in wanted and not any(key.read_in(each) for each in runs)]
