"""Values as people type them: 1e5, 10^5 and 100_000 are numbers; formulas and paths need quotes for the shell only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, get_args, get_type_hints

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from dpsmc_audit.app.config_schema import Schema
from dpsmc_audit.app.keys import key_of, overrides_in

__all__ = ["as_hydra_reads", "kind_of", "plain_number", "quoted"]

_FORMS = (
    re.compile(r"(?P<factor>[+-]?\d[\d_]*(?:\.\d+)?)(?P<exponent>)"),
    re.compile(r"(?P<factor>[+-]?\d[\d_]*(?:\.\d*)?)[eE](?P<exponent>[+-]?\d{1,3})"),
    re.compile(r"(?:(?P<factor>[+-]?\d[\d_]*(?:\.\d+)?)[*x])?10\^(?P<exponent>[+-]?\d{1,3})"),
)
"""1_000.5, 1e5 and 3x10^5."""

_PIECES = re.compile(r"([^,\[\]()\s]+)")


@lru_cache(maxsize=256)
def kind_of(key: str) -> type | None:
    """Find the type of a key's value.

    Parameters
    ----------
    key : str
        A key of the schema, such as ``model.path``.

    Returns
    -------
    type or None
        int, float, bool or str; None for a group, a value of any type and a key that does not exist.

    Examples
    --------
    >>> kind_of("runs"), kind_of("model.path"), kind_of("epsilons"), kind_of("model")
    (<class 'int'>, <class 'str'>, <class 'float'>, None)
    """
    if key == "entry":
        return int
    kind: Any = Schema
    for name in key.split("."):
        kind = get_type_hints(kind).get(name) if isinstance(kind, type) else None
    found = [part for whole in (kind, *get_args(kind)) for part in (whole, *get_args(whole))]
    return next((part for part in (int, float, bool, str) if part in found), None)


def plain_number(text: str, whole: bool) -> str:
    """Write a number as Hydra reads it.

    Parameters
    ----------
    text : str
        What was typed.
    whole : bool
        Whether a whole number is wanted.

    Returns
    -------
    str
        The number; the text as it is if it is none, or not a whole one.

    Examples
    --------
    >>> [plain_number(text, True) for text in ("1e5", "10^5", "100_000", "3x10^2")]
    ['100000', '100000', '100000', '300']
    >>> plain_number("10^-3", False), plain_number("1e-3", False), plain_number("1.5", True), plain_number("many", True)
    ('0.001', '1e-3', '1.5', 'many')
    """
    found = next(filter(None, (form.fullmatch(text) for form in _FORMS)), None)
    if found is None:
        return text
    value = Fraction((found["factor"] or "1").replace("_", "")) * Fraction(10) ** int(found["exponent"] or 0)
    if whole:
        return f"{value.numerator}" if value.denominator == 1 else text
    try:
        float(text)
    except ValueError:
        return repr(float(value))
    return text.replace("_", "")


def as_hydra_reads(arguments: Sequence[str]) -> list[str]:
    """Rewrite a command line for Hydra, which knows neither 10^5 nor a formula without quotes of its own.

    Parameters
    ----------
    arguments : sequence of str
        The words of the command line.

    Returns
    -------
    list of str
        The words. Values that Hydra can read as text stay as they are.

    Examples
    --------
    >>> as_hydra_reads(["-m", "runs=1e3,1e4", "formula=always[0,1](x < 2)", "model.column=ok"])
    ['-m', 'runs=1000,10000', 'formula="always[0,1](x < 2)"', 'model.column=ok']
    """
    overrides = set(overrides_in(arguments))
    return [_rewritten(word) if word in overrides else word for word in arguments]


def _rewritten(word: str) -> str:
    name, equals, value = word.partition("=")
    kind = kind_of(key_of(word))
    if kind in (int, float):
        pieces = _PIECES.split(value)
        return name + equals + "".join(plain_number(piece, kind is int) for piece in pieces)
    if kind is str and value and value[0] not in "'\"" and not _readable(word):
        return f"{name}{equals}{quoted(value)}"
    return word


def quoted(value: str) -> str:
    """Quote a text for Hydra.

    Parameters
    ----------
    value : str
        The text.

    Returns
    -------
    str
        The text in double quotes.

    Examples
    --------
    >>> print(quoted('a "b"'))
    "a \\"b\\""
    """
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', value)
    escaped = re.sub(r"(\\+)$", r"\1\1", escaped)
    return f'"{escaped}"'


def _readable(word: str) -> bool:
    try:
        OverridesParser.create().parse_override(word)
    except HydraException:
        return False
    return True
