"""The schema of ``result.json``: one number, raised whenever a key changes its name or its meaning.

Every result has `schema`, `parameters` (the keys of the command line) and `provenance` (code, versions, seed, digest).
An audit adds what `dpsmc_audit.observers.base.Audit.as_dict` and its observer's `as_dict` return; the other tasks add
what their results' `as_dict` return.

Version 1: up to the development of 0.1, without the key `schema`.
Version 2: `witness` and `best_event` have a structure (`what`); exact audits say `undecided` instead of `consistent`;
all audits have `observer`, `epsilon_claimed`, `delta_claimed` and `confidence`; `other_observers` is part of an audit;
`sentence` is the plain sentence of page and terminal (the bounds and the witness have keys of their own); `parameters`
has `task_target` and `notion_target` where a task or an observer from outside the package is named; an audit has the
whole `claim`; `parameters` has `early` instead of `method`; audits by bets have `runs_used`, those of black boxes also
`views`; `exact_errors_are` and `numerical_error_is` say whether numerical errors are proven or estimated.
"""

from __future__ import annotations

__all__ = ["SCHEMA"]

SCHEMA = 2
