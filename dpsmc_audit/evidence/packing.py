"""Outputs as arrays of numbers, for checkpoints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.outputs import Outputs

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["packed", "unpacked"]


def packed(outputs: Outputs, name: str) -> Saved:
    """Return outputs as a checkpoint can hold them.

    Parameters
    ----------
    outputs : Outputs
        The runs.
    name : str
        The beginning of every name.

    Returns
    -------
    Saved
        An array for each column, and one with the form and all that is no number.

    Examples
    --------
    >>> runs = Outputs("categories", (np.array(["a", None], object),), ("output",))
    >>> unpacked(packed(runs, "left"), "left").columns[0].tolist()
    ['a', None]
    """
    others = {f"{k}": column.tolist() for k, column in enumerate(outputs.columns) if column.dtype == object}
    text = json.dumps([outputs.kind, outputs.names, others]).encode()
    state: Saved = {f"{name}_form": np.frombuffer(text, np.uint8).astype(np.int64)}
    numbers = {k: column for k, column in enumerate(outputs.columns) if column.dtype != object}
    return state | {f"{name}_{k}": np.asarray(column, np.float64) for k, column in numbers.items()}


def unpacked(saved: Saved, name: str) -> Outputs:
    """Return the outputs of a checkpoint.

    Parameters
    ----------
    saved : Saved
        It holds what `packed` returned.
    name : str
        The beginning of every name.

    Returns
    -------
    Outputs
        The runs.

    Raises
    ------
    KeyError, ValueError
        If they are not there.
    """
    form = np.asarray(saved[f"{name}_form"]).astype(np.uint8).tobytes()
    kind, names, others = json.loads(form)
    columns = [
        _objects(others[f"{k}"], kind) if f"{k}" in others else np.array(saved[f"{name}_{k}"], np.float64)
        for k in range(len(names))
    ]
    return Outputs(kind, tuple(columns), tuple(names))


def _objects(values: list[Any], kind: str) -> NDArray[Any]:
    made = np.empty(len(values), object)
    for k, value in enumerate(values):
        made[k] = tuple(value) if kind == "transcripts" and value is not None else value
    return made
