"""Which errors of a private run may be shown: sentences of this package, with public names and a number of a line.

A failed run says where it failed. The child process words the place, and code of the model runs there. So the parent
shows a place only if it is one of the sentences below. A new sentence in `dpsmc_audit.models` is kept back until it is
listed here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["is_public"]

ORDER = (
    "an order is for recorded samples: a model draws its samples one after the other",
    "recorded samples need an order, random or file",
)
FILES = (
    *ORDER,
    "cannot read @",
    "@ holds no samples",
    "@ is not a Parquet file",
    "@ is a device",
    "@: model.column must name one of its columns",
    "@ has no column '@'",
    "@ has several columns '@'",
)
LINES = (
    "outcomes must be 0 or 1",
    "samples must be numbers",
    "samples must be finite",
    "the line is too long",
    "not CSV",
    "cannot be read",
    "the times of a trace must increase, and a trace needs two of them",
    "times must start at 0 in equal steps, and the lines of a trace together",
    "the trace that begins here does not fit the formula",
    "the trace that begins here is too short",
)
"""They follow the name of the file and the number of the line."""
NUMBERED = (
    r"expected \d{1,6} values",
    r"times must be 0, [\d.e+-]+, [\d.e+-]+, \.\.\., and the lines of a trace together",
)
"""The number of columns, and times of a step that the user has declared."""
FUNCTIONS = (
    *ORDER,
    "model.target=@ cannot be used",
    "model.target=@ failed",
    "model.target=@: its traces do not fit the formula",
    "model.target=@: returns traces, so a formula is needed",
    "model.target=@: expected 256 bits",
    "model.target=@: bits must be 0 or 1",
    "model.target=@: expected arrays (n, points) by signal, as there is a formula",
    "model.target=@: expected signals of shape (256, points)",
    "model.target=@: its signals do not fit together",
    "model.target=@: expected numbers",
    "a trace of the powertrain does not fit the formula",
)


def is_public(place: str, names: Sequence[str], *, recorded: bool) -> bool:
    """Tell whether the place of an error may be shown.

    Parameters
    ----------
    place : str
        The place as the child words it.
    names : sequence of str
        Names that are public: of the file, its columns and signals, or of the function.
    recorded : bool
        Whether the samples are recorded. Then no code of a model runs in the child, and lines are public.

    Returns
    -------
    bool
        True if it is a sentence of this package about public names.

    Examples
    --------
    >>> is_public("a.csv, line 3: outcomes must be 0 or 1", ["a.csv"], recorded=True)
    True
    >>> is_public("a.csv, line 3: 17 ones", ["a.csv"], recorded=True)
    False
    """
    if not place.isprintable():
        return False
    named = "|".join(re.escape(name) for name in names) or "(?!)"  # the last one matches nothing
    if not recorded:
        return _fits(place, FUNCTIONS, named)
    place, numbered = re.subn(rf"^(?:{named}), (?:line|row) \d{{1,12}}: ", "", place)
    known = LINES if numbered else FILES
    return _fits(place, known, named) or (bool(numbered) and any(re.fullmatch(form, place) for form in NUMBERED))


def _fits(place: str, sentences: Sequence[str], named: str) -> bool:
    """Tell whether a place is one of the sentences with a public name for each @."""
    return any(re.fullmatch(re.escape(words).replace("@", f"(?:{named})"), place) for words in sentences)
