"""The keys of the command line, and the known keys that are closest to an unknown one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from dpsmc_audit.errors import ParameterError, require

__all__ = [
    "Keys",
    "UnknownKeyError",
    "check_options",
    "distance",
    "key_of",
    "keys_of",
    "overrides_in",
    "own_configuration",
    "paths",
]

LONGEST = 60
"""Letters of an unknown key that are compared and shown."""
FILES = ("-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir")
"""Options of Hydra that bring configuration files of the user."""
PLAIN = ("-h", "--help", "--hydra-help", "--version", "-r", "--run", "-m", "--multirun", "--resolve")
PLAIN_ENDED = ("-sc", "--shell-completion")
"""Options of Hydra without a value; the rest of the line after the last two is not ours."""
CHOICES = {
    "-c": ("job", "hydra", "all"),
    "--cfg": ("job", "hydra", "all"),
    "-i": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
    "--info": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
}
"""Options of Hydra that take one of some words. That of --info can be left out."""
VALUED = (*FILES, "-p", "--package", "--experimental-rerun")
"""Options of Hydra that take any value."""


class UnknownKeyError(ParameterError):
    """The schema does not have this key."""


def distance(a: str, b: str) -> int:
    """Count the changes that lead from one word to another.

    Parameters
    ----------
    a, b : str
        The words.

    Returns
    -------
    int
        The least number of letters to insert, delete or replace and of neighbours to swap.

    Examples
    --------
    >>> distance("epsilom", "epsilon"), distance("epislon", "epsilon"), distance("", "p")
    (1, 1, 1)
    """
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            least = min(last[j + 1] + 1, row[j] + 1, last[j] + (x != y))
            if i and j and x == b[j - 1] and y == a[i - 1]:
                least = min(least, before[j - 1] + 1)
            row.append(least)
        before, last = last, row
    return last[-1]


def _at_least(a: str, b: str) -> int:
    """Bound the distance from below: one change mends one letter in length, and two in the set of letters."""
    return max(abs(len(a) - len(b)), (len({*a} ^ {*b}) + 1) // 2)


def _tails(key: str) -> list[str]:
    """Return the key, the key without its first group, without its first two, and so on."""
    parts = key.split(".")
    return [".".join(parts[k:]) for k in range(len(parts))]


@dataclass(frozen=True)
class Keys:
    """A set of known keys.

    Parameters
    ----------
    names : tuple of str
        The keys, in the order of the schema.
    open : tuple of str
        The keys below which every name is allowed.
    """

    names: tuple[str, ...]
    open: tuple[str, ...] = ()

    def __add__(self, other: Keys) -> Keys:
        return Keys(self.names + other.names, self.open + other.open)

    def knows(self, key: str) -> bool:
        """Tell whether a key, or a group of that name, exists.

        Parameters
        ----------
        key : str
            The key.

        Returns
        -------
        bool
            True if it is known, or lies below an open key.

        Examples
        --------
        >>> some = Keys(("noise", "noise.scale", "noise.arguments"), open=("noise.arguments",))
        >>> some.knows("noise.scale"), some.knows("noise.scales"), some.knows("noise.arguments.a")
        (True, False, True)
        """
        free = any(key.startswith(f"{group}.") for group in self.open)
        return key in self.names or (free and "" not in key.split("."))

    def nearest(self, key: str) -> tuple[str, ...]:
        """Find the known keys that need the fewest changes, at most three of them.

        One letter more, less or different, or two neighbours swapped, is one change. To omit, add or replace the groups
        in front of a name counts as two changes.

        Parameters
        ----------
        key : str
            An unknown key.

        Returns
        -------
        tuple of str
            The closest keys, in the order of the schema.

        Examples
        --------
        >>> some = Keys(("seed", "model", "model.column", "alpha", "alpha_fp", "alpha_fn"))
        >>> some.nearest("sed"), some.nearest("column"), some.nearest("alpha_f")
        (('seed',), ('model.column',), ('alpha_fp', 'alpha_fn'))
        """
        whole, *without = _tails(key[:LONGEST])
        as_typed = ((whole, name, name) for name in self.names)
        moved = ((word, tail, name) for name in self.names for tail in _tails(name) for word in (whole, *without))
        found, best = dict[str, float](), math.inf
        for cost, pairs in ((0, as_typed), (2, moved)):
            if cost > best:
                break
            for bound, a, b, name in sorted((cost + _at_least(a, b), a, b, name) for a, b, name in pairs):
                if bound > best:
                    break
                found[name] = min(cost + distance(a, b), found.get(name, math.inf))
                best = min(best, found[name])
        return tuple(name for name in self.names if found.get(name) == best)[:3]

    def refuse(self, keys: Iterable[str]) -> None:
        """Refuse keys that do not exist.

        Parameters
        ----------
        keys : iterable of str
            The keys.

        Raises
        ------
        UnknownKeyError
            For the first key that does not exist.
        """
        for key in keys:
            if not self.knows(key):
                raise UnknownKeyError(self.message(key))

    def message(self, key: str) -> str:
        """Word the refusal of an unknown key.

        Parameters
        ----------
        key : str
            The key.

        Returns
        -------
        str
            One line that names the closest known keys.
        """
        shown = f"{key[:LONGEST]}…" if len(key) > LONGEST else key or "''"
        *others, last = self.nearest(key)
        close = f"keys are {', '.join(others)} and {last}" if others else f"key is {last}"
        return f"unknown key {shown}: the closest known {close}"


def keys_of(schema: type, prefix: str = "", leaves: Sequence[str] = ()) -> Keys:
    """List the keys of a dataclass at every depth.

    Parameters
    ----------
    schema : type
        A dataclass. Fields whose type is a dataclass are groups.
    prefix : str
        The text in front of each name.
    leaves : sequence of str
        Fields of type Any that nevertheless are single values. Other fields of type Any, and dictionaries, are open.

    Returns
    -------
    Keys
        In the order of the fields, a group before its content.
    """
    found = Keys(())
    for name, kind in get_type_hints(schema).items():
        key = f"{prefix}{name}"
        free = key not in leaves and any(part is Any or get_origin(part) is dict for part in (kind, *get_args(kind)))
        found += Keys((key,), (key,) if free else ())
        if isinstance(kind, type) and is_dataclass(kind):
            found += keys_of(kind, f"{key}.", leaves)
    return found


def paths(values: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    """List the keys of all values in nested dictionaries.

    Parameters
    ----------
    values : mapping
        The dictionaries.
    prefix : str
        The text in front of each key.

    Yields
    ------
    str
        The key of each value.

    Examples
    --------
    >>> list(paths({"p": 0.73, "model": {"name": "x", "more": {}}}))
    ['p', 'model.name', 'model.more']
    """
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from paths(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def key_of(override: str) -> str:
    """Find the key, or the group, that an override changes.

    Parameters
    ----------
    override : str
        An override as Hydra reads it.

    Returns
    -------
    str
        Its key.

    Examples
    --------
    >>> key_of("++model.step=0.1"), key_of("~p"), key_of("+task@here=audit")
    ('model.step', 'p', 'task')
    """
    return override.lstrip("+~").partition("=")[0].partition("@")[0].strip()


def overrides_in(arguments: Sequence[str]) -> list[str]:
    """Find the overrides in a command line.

    Parameters
    ----------
    arguments : sequence of str
        The words of the command line.

    Returns
    -------
    list of str
        The words that change a key. With shell completion there are none.

    Examples
    --------
    >>> overrides_in(["-m", "--config-dir", "a=b", "p=0.5,0.6", "~epsilon", "--config-name=x"])
    ['p=0.5,0.6', '~epsilon']
    """
    if "-sc" in arguments or "--shell-completion" in arguments:
        return []
    free = [word for word, last in zip(arguments, ["", *arguments], strict=False) if last not in VALUED]
    return [word for word in free if not word.startswith("-") and ("=" in word or word.startswith("~"))]


def check_options(arguments: Sequence[str]) -> None:
    """Refuse options that Hydra does not have, and options without their value: Hydra would print its whole usage.

    Parameters
    ----------
    arguments : sequence of str
        The words of the command line.

    Raises
    ------
    ParameterError
        For the first option that is wrong.

    Examples
    --------
    >>> check_options(["-m", "--config-dir", "own", "p=0.5", "--cfg", "job"])
    >>> check_options(["--nope"])
    Traceback (most recent call last):
    dpsmc_audit.errors.ParameterError: unknown option --nope: --help lists all options
    """
    words = list(arguments)
    while words:
        option, given, value = words.pop(0).partition("=")
        if not option.startswith("-") or option in PLAIN:
            require(not given or not option.startswith("-"), f"{option} takes no value, got {value}")
        elif option in PLAIN_ENDED:
            return
        elif option in CHOICES:
            known = CHOICES[option]
            optional = known[0] == "all"
            if not given and words and (words[0] in known or not optional):
                value = words.pop(0)
            right = value in known or (optional and not given and value == "")
            require(right, f"{option} must be one of {', '.join(known)}, got {value or 'nothing'}")
        else:
            require(option in VALUED, f"unknown option {option[:LONGEST]}: --help lists all options")
            require(bool(given or words), f"{option} needs a value")
            if not given:
                words.pop(0)


def own_configuration(arguments: Sequence[str]) -> bool:
    """Tell whether a command line brings configuration files of the user, which can have groups of their own.

    Parameters
    ----------
    arguments : sequence of str
        The words of the command line.

    Returns
    -------
    bool
        True if it names a file, a folder or a search path.
    """
    options = [word.partition("=")[0] for word in arguments]
    return any(option in FILES or key_of(option) == "hydra.searchpath" for option in options)
