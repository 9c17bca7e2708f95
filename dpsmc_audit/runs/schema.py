"""The schema of ``result.json``: one number, raised whenever a key changes its name or its meaning.

Every result has `schema`, `parameters` (the keys of the command line) and `provenance` (code, versions, seed, digest).
An audit adds what `dpsmc_audit.observers.base.Audit.as_dict` and its observer's `as_dict` return; the other tasks add
what their results' `as_dict` return.

Version 1: up to the development of 0.1, without the key `schema`.
Version 2: `witness` and `best_event` have a structure (`what`); exact audits say `undecided` instead of `consistent`;
all audits have `observer`, `epsilon_claimed`, `delta_claimed` and `confidence`; `other_observers` is part of an audit;
`sentence` is the plain sentence of page and terminal (the bounds and the witness have keys of their own); `parameters`
has `task_target` and `notion_target` where a task or an observer from outside the package is named.
Version 3: numbers about the delta of a privacy claim begin with `privacy_`: `privacy_delta_claimed`,
`privacy_delta_lower`, `privacy_delta_upper`, `privacy_delta_at_epsilon`, `privacy_delta_at_2_epsilon`. The parameter
`delta` is the indifference parameter of the test, as before. `sentence` begins with the verdict.
"""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMA", "schema_of"]

SCHEMA = 3


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
    >>> schema_of({"schema": 3}), schema_of({})
    (3, 1)
    """
    return int(result.get("schema", 1))
