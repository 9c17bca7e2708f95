"""Signal temporal logic: read formulas from text and evaluate them on batches of sampled traces.

A text goes through `parser` to a tree (`syntax`), then to a `program` over the `kernels`.
`semantics` says what every operator means, `until` among them, and evaluates it.

Examples
--------
>>> import numpy as np
>>> from dpsmc_audit.stl.traces import Traces
>>> from dpsmc_audit.stl import parse
>>> formula = parse("always[0.8,1] (abs(e) < 0.05)")
>>> batch = Traces(0.1, {"e": np.array([[0.0] * 11, [0.0] * 10 + [0.2]])})
>>> formula.truth(batch)
array([ True, False])
>>> formula.robustness(batch).round(3)
array([ 0.05, -0.15])
"""

from __future__ import annotations

from dpsmc_audit.stl.formula import Formula, parse

__all__ = ["Formula", "parse"]
