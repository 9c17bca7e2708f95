"""Numbers for categories, in the order of their first appearance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.columns import plain

__all__ = ["Codes"]

FloatArray = NDArray[np.float64]


class Codes:
    """Numbers for categories, in the order of their first appearance. Later ones share the code `most`.

    Parameters
    ----------
    most : int
        How many categories have a code of their own.
    known : iterable
        The categories so far.
    shared : bool
        Whether a later one was seen.
    """

    def __init__(self, most: int, known: Iterable[Any] = (), shared: bool = False) -> None:
        self.most, self.shared = most, shared
        self._codes = {_key(value): code for code, value in enumerate(known)}

    @property
    def known(self) -> list[Any]:
        """The categories in the order of their codes."""
        return list(self._codes)

    def of(self, column: NDArray[Any]) -> NDArray[np.int64]:
        """Return the codes of runs. New categories are added.

        Parameters
        ----------
        column : array
            Floats with nan, or objects with None, for what is missing.

        Returns
        -------
        array of int64
            The codes.
        """
        codes = self._of_objects(column.tolist()) if column.dtype == object else self._of_floats(column)
        self.shared = self.shared or bool(np.any(codes == self.most))
        return codes

    def _of_objects(self, values: list[Any]) -> NDArray[np.int64]:
        self._add(dict.fromkeys(values))
        return np.fromiter((self._codes.get(value, self.most) for value in values), np.int64, len(values))

    def _of_floats(self, column: FloatArray) -> NDArray[np.int64]:
        codes = self._looked_up(column)
        if len(self._codes) < self.most and np.any(new := codes == self.most):
            distinct, first = np.unique(column[new], return_index=True)
            keys = plain(distinct).tolist()
            self._add(keys[place] for place in np.argsort(first).tolist())
            codes = self._looked_up(column)
        return codes

    def _looked_up(self, column: FloatArray) -> NDArray[np.int64]:
        codes = np.full(column.size, self.most, np.int64)
        for value, code in self._codes.items():
            codes[np.isnan(column) if value is None else column == value] = code
        return codes

    def _add(self, values: Iterable[Any]) -> None:
        for value in values:
            if len(self._codes) >= self.most:
                return
            self._codes.setdefault(value, len(self._codes))


def _key(value: Any) -> Any:
    """Turn lists, which transcripts become in a file, back into tuples."""
    return tuple(value) if isinstance(value, list) else value
