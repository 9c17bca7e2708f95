"""The schema of ``result.json``: one number, raised whenever a key changes its name or its meaning.

Every result has `schema`, `parameters` (the keys of the command line) and `provenance` (code, versions, seed, digest).
An audit adds what `dpsmc_audit.observers.base.Audit.as_dict` and its observer's `as_dict` return; the other tasks add
what their results' `as_dict` return.

Version 1: up to the development of 0.1, without the key `schema`.
Version 2: `witness` and `best_event` have a structure (`what`); exact audits say `undecided` instead of `consistent`;
all audits have `observer`, `epsilon_claimed`, `delta_claimed` and `confidence`; `other_observers` is part of an audit.
"""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMA", "schema_of"]

SCHEMA = 2


def schema_of(result: dict[str, Any]) -> int:
    """Return the version of a result that was read from a file.

    Parameters
    ----------
    result : dict
        The content of ``result.json``.

    Returns
    -------
    int
        Its version; 1 for results from before there were versions.

    Examples
    --------
    >>> schema_of({"schema": 2}), schema_of({})
    (2, 1)
    """
    return int(result.get("schema", 1))
