"""Which keys the command line has, and which of them an unknown one comes closest to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any, get_args, get_origin, get_type_hints

from dpsmc_audit.errors import ParameterError

__all__ = ["Keys", "UnknownKeyError", "distance", "key_of", "keys_of", "overrides_in", "own_configuration", "paths"]

MOVED = 2
"""What it costs to leave out, to add or to replace the groups in front of a name: as much as two letters."""
LONGEST = 60
"""So many letters of an unknown key are looked at and shown."""
MOST = 3
"""So many equally close keys are named."""
VALUED = ("-p", "--package", "-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir")
"""Options of Hydra whose value is the next word."""
OWN = ("-cp", "--config-path", "-cn", "--config-name", "-cd", "--config-dir")
"""Options of Hydra that bring configuration files of the user, which can have groups of their own."""
COMPLETION = ("-sc", "--shell-completion")
"""With these the words are no overrides."""


class UnknownKeyError(ParameterError):
    """A key that the schema does not have."""


def distance(a: str, b: str) -> int:
    """Letters to insert, delete or change, and neighbours to swap, that lead from one word to the other.

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


def _tails(key: str) -> list[str]:
    """The key without its first group, without its first two, and so on."""
    parts = key.split(".")
    return [".".join(parts[k:]) for k in range(1, len(parts))]


@dataclass(frozen=True)
class Keys:
    """All known keys in the order of the schema; below the `open` ones every name is allowed."""

    names: tuple[str, ...]
    open: tuple[str, ...] = ()

    def __add__(self, other: Keys) -> Keys:
        return Keys(self.names + other.names, self.open + other.open)

    def knows(self, key: str) -> bool:
        """Whether the key, or a group of that name, exists.

        Examples
        --------
        >>> some = Keys(("noise", "noise.scale", "noise.arguments"), open=("noise.arguments",))
        >>> some.knows("noise.scale"), some.knows("noise.scales"), some.knows("noise.arguments.a")
        (True, False, True)
        """
        if key in self._known:
            return True
        return "" not in key.split(".") and any(key.startswith(f"{group}.") for group in self.open)

    def nearest(self, key: str) -> tuple[str, ...]:
        """The known keys that the fewest changes lead to, at most three; of equally close ones the first.

        One letter more, less or other, or two neighbours swapped, is one change. To leave out, to add or to replace
        the groups in front of a name counts as two.

        Examples
        --------
        >>> some = Keys(("seed", "model", "model.column", "alpha", "alpha_fp", "alpha_fn"))
        >>> some.nearest("sed"), some.nearest("column"), some.nearest("alpha_f")
        (('seed',), ('model.column',), ('alpha_fp', 'alpha_fn'))
        """
        shown = key[:LONGEST]
        found: dict[int, int] = {}
        best = len(shown) + LONGEST
        for cost, asked, texts in (
            (0, [shown], self._whole),
            (MOVED, [shown, *_tails(shown)], self._with_tails),
        ):
            pairs = ((cost + _at_least(word, text), word, text, place) for word in asked for text, place in texts)
            for bound, word, text, place in sorted(pairs) if cost <= best else ():
                if bound > best:
                    break
                found[place] = min(cost + distance(word, text), found.get(place, best + 1))
                best = min(best, found[place])
        return tuple(self.names[place] for place in sorted(found) if found[place] == best)[:MOST]

    def refuse(self, keys: Iterable[str]) -> None:
        """Raise `UnknownKeyError` for the first key that does not exist."""
        for key in keys:
            if not self.knows(key):
                raise UnknownKeyError(self.message(key))

    def message(self, key: str) -> str:
        """What is said of an unknown key."""
        shown = f"{key[:LONGEST]}…" if len(key) > LONGEST else key or "''"
        *others, last = self.nearest(key)
        close = f"keys are {', '.join(others)} and {last}" if others else f"key is {last}"
        return f"unknown key {shown}: the closest known {close}"

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def _whole(self) -> list[tuple[str, int]]:
        """Each name and its place."""
        return [(name, place) for place, name in enumerate(self.names)]

    @cached_property
    def _with_tails(self) -> list[tuple[str, int]]:
        """Each name, whole and without the groups in front of it, and its place."""
        return self._whole + [(tail, place) for name, place in self._whole for tail in _tails(name)]


def _at_least(a: str, b: str) -> int:
    """A lower bound of the distance: each change mends one letter in length, and two in the set of letters."""
    return max(abs(len(a) - len(b)), (len({*a} ^ {*b}) + 1) // 2)


def keys_of(schema: type, prefix: str = "", leaves: Sequence[str] = ()) -> Keys:
    """The keys of a dataclass at every depth.

    Parameters
    ----------
    schema
        A dataclass; fields whose type is a dataclass are groups.
    prefix
        What comes before each name.
    leaves
        Fields of any type that nevertheless are single values. Other fields of any type, and dictionaries, are open.

    Returns
    -------
    Keys
        In the order of the fields, a group before what is in it.
    """
    names, free = list[str](), list[str]()
    for name, kind in get_type_hints(schema).items():
        key = f"{prefix}{name}"
        names.append(key)
        if isinstance(kind, type) and is_dataclass(kind):
            inner = keys_of(kind, f"{key}.", leaves)
            names += inner.names
            free += inner.open
        elif key not in leaves and any(part is Any or get_origin(part) is dict for part in (kind, *get_args(kind))):
            free.append(key)
    return Keys(tuple(names), tuple(free))


def paths(values: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    """The key of every value in nested dictionaries.

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
    """The key, or the group, that an override is about.

    Examples
    --------
    >>> key_of("++model.step=0.1"), key_of("~p"), key_of("+task@here=audit")
    ('model.step', 'p', 'task')
    """
    return override.lstrip("+~").partition("=")[0].partition("@")[0].strip()


def overrides_in(arguments: Sequence[str]) -> list[str]:
    """The words of a command line that change a key.

    Examples
    --------
    >>> overrides_in(["-m", "--config-dir", "a=b", "p=0.5,0.6", "~epsilon", "--config-name=x"])
    ['p=0.5,0.6', '~epsilon']
    """
    if any(word in COMPLETION for word in arguments):
        return []
    before = ["", *arguments]
    free = [word for word, last in zip(arguments, before, strict=False) if last not in VALUED]
    return [word for word in free if not word.startswith("-") and ("=" in word or word.startswith("~"))]


def own_configuration(arguments: Sequence[str]) -> bool:
    """Whether a command line brings configuration files of the user."""
    options = [word.partition("=")[0] for word in arguments]
    return any(option in OWN or key_of(option) == "hydra.searchpath" for option in options)
