"""Predict the label of a run from its output, as learnt from earlier runs.

A run is seen in several views: real numbers such as the output itself, a coordinate, or the score of a classifier. Each
view has cells, and `shapes` learns the probability of label 1 in each cell. The views are weighted by their evidence.

The first `KEPT` runs are kept as they are, and cells are chosen anew as they grow. After that the cells stay as they
are and only their counts grow, so that memory does not depend on the number of runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.evidence.bets import level_of
from dpsmc_audit.evidence.outputs import Outputs
from dpsmc_audit.evidence.scores import Score, scores_for
from dpsmc_audit.evidence.shapes import cell_ends, counted_by_cell, learnt, starts
from dpsmc_audit.evidence.views import Views

if TYPE_CHECKING:
    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["KEPT", "Cells", "Predicted", "Predictor"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

KEPT = 65_536
"""The number of labelled runs that are kept as they are."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of a batch.

    Parameters
    ----------
    levels : array of int
        The prediction of each run (`bets.level_of`).
    lowest, highest : int
        The range of predictions that any output could have had.
    """

    levels: IntArray
    lowest: int
    highest: int


class Cells:
    """What is known of one view: its cells, the counts in them, and the predictions.

    Parameters
    ----------
    times : bool
        Whether the view is a running time (`shapes.learnt`).

    Attributes
    ----------
    ends : array
        The largest value of each cell.
    counts : array
        ``counts[label, cell]``: the labelled runs so far.
    chance : array
        The predicted probability of label 1 in each cell.
    evidence : float
        The log evidence of the view.
    """

    def __init__(self, times: bool = False) -> None:
        self.times = times
        self.ends, self.counts = np.array([np.inf]), np.zeros((2, 1))
        self.chance, self.evidence = np.array([0.5]), 0.0
        self.start = starts()

    def place(self, values: FloatArray) -> IntArray:
        """Find the cell of each value.

        Parameters
        ----------
        values : array
            Values of the view.

        Returns
        -------
        array of int
            The cells.
        """
        return np.searchsorted(self.ends, values)

    def cut(self, values: FloatArray, labels: IntArray) -> None:
        """Choose new cells, and count all runs again.

        Parameters
        ----------
        values, labels : array
            The value and the label of every run so far.
        """
        self.ends = cell_ends(np.sort(values))
        self.counts = counted_by_cell(self.ends.size, self.place(values), labels)

    def count(self, place: IntArray, labels: IntArray) -> None:
        """Count more runs in the cells as they are.

        Parameters
        ----------
        place, labels : array of int
            The cell and the label of each new run.
        """
        self.counts = self.counts + counted_by_cell(self.ends.size, place, labels)

    def learn(self) -> None:
        """Learn from the counts."""
        seen = np.flatnonzero(self.counts.sum(axis=0))
        found = learnt(self.counts[:, seen], self.start, self.times)
        self.evidence = found.evidence
        # a cell without runs, of a new value between others, predicts like its neighbour
        self.chance = found.chance[np.minimum(np.searchsorted(seen, np.arange(self.ends.size)), seen.size - 1)]


class Predictor:
    """What is learnt so far, of all views.

    Parameters
    ----------
    form : Outputs
        Some runs: they fix what a run looks like.
    score : Score, optional
        A classifier of the user. Its score is one more view.
    """

    def __init__(self, form: Outputs, score: Score | None = None) -> None:
        self.views = Views(form)
        self.scores = scores_for(form, score)
        self.runs = 0
        self.cells = self._fresh_cells()
        self.weights = np.full(len(self.cells), 1.0 / len(self.cells))
        self._values = np.empty((len(self.cells), 0))
        self._labels = np.empty(0, np.int64)
        self._new: list[tuple[FloatArray, list[FloatArray]]] = []
        self._placed: list[IntArray] = []

    def _fresh_cells(self) -> list[Cells]:
        return [*(Cells(self.views.times) for _ in self.views.names), *(Cells() for _ in self.scores)]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views."""
        return (*self.views.names, *(score.name for score in self.scores))

    def named(self, view: int, low: float, high: float) -> str:
        """Put an event into words.

        Parameters
        ----------
        view : int
            The view.
        low, high : float
            The event is ``low <= view < high``.

        Returns
        -------
        str
            The event.
        """
        if view < len(self.views.names):
            return self.views.named(view, low, high)
        name = self.names[view]
        ends = [f"{low:.4g} <= " if low > -np.inf else "", f" < {high:.4g}" if high < np.inf else ""]
        return f"{ends[0]}{name}{ends[1]}"

    def kept(self, view: int) -> tuple[FloatArray, IntArray]:
        """Return the runs that are kept.

        Parameters
        ----------
        view : int
            The view.

        Returns
        -------
        values, labels : array
            Of each run, in their order.
        """
        return self._values[view], self._labels

    def predict(self, outputs: Outputs) -> Predicted:
        """Predict the labels of runs. `learn` takes in the runs of all predictions since it was last called.

        Parameters
        ----------
        outputs : Outputs
            The runs, in their order.

        Returns
        -------
        Predicted
            The predictions.
        """
        features = [score.features(self.views, outputs) for score in self.scores]
        rows = [score.values(x) for score, x in zip(self.scores, features, strict=True)]
        values = np.vstack([self.views.encode(outputs), *rows])
        self._new.append((values, features))
        self._placed.append(self._places(values))
        chance = np.zeros(outputs.runs)
        lowest = highest = 0.0
        for weight, cells, place in zip(self.weights, self.cells, self._placed[-1], strict=True):
            chance += weight * cells.chance[place]
            lowest, highest = lowest + weight * cells.chance.min(), highest + weight * cells.chance.max()
        ends = level_of(np.array([lowest, highest]))
        return Predicted(np.clip(level_of(chance), *ends), int(ends[0]), int(ends[1]))

    def _places(self, values: FloatArray) -> IntArray:
        return np.array([cells.place(row) for cells, row in zip(self.cells, values, strict=True)])

    def learn(self, labels: IntArray) -> None:
        """Learn from the runs that were predicted since the last call.

        Parameters
        ----------
        labels : array of int
            The labels of the first of these runs; the others are not used.
        """
        values = np.hstack([row for row, _ in self._new])[:, : labels.size]
        features = [np.vstack(parts)[: labels.size] for parts in zip(*(x for _, x in self._new), strict=True)]
        placed = np.hstack(self._placed)[:, : labels.size]
        self._new, self._placed = [], []
        keeps = self.runs < KEPT
        self.runs += labels.size
        for score, x in zip(self.scores, features, strict=True):
            score.learn(x, labels)
        if keeps:
            self._values, self._labels = np.hstack([self._values, values]), np.append(self._labels, labels)
        for k, cells in enumerate(self.cells):
            if keeps:
                cells.cut(self._values[k], self._labels)
            else:
                cells.count(placed[k], labels)
            cells.learn()
        evidence = np.array([cells.evidence for cells in self.cells])
        weight = np.exp(evidence - evidence.max())
        self.weights = weight / weight.sum()

    def saved(self) -> Saved:
        """Return what was learnt, for a checkpoint.

        Returns
        -------
        Saved
            Arrays and numbers.
        """
        state: Saved = {"seen_values": self._values, "seen_labels": self._labels, "seen_runs": self.runs}
        state |= self.views.saved()
        for k, cells in enumerate(self.cells):
            named = {"ends": cells.ends, "counts": cells.counts, "chance": cells.chance, "start": cells.start}
            state |= {f"seen_{name}_{k}": value for name, value in named.items()}
            state |= {f"seen_evidence_{k}": cells.evidence}
        for k, score in enumerate(self.scores):
            state |= {f"score{k}_{name}": value for name, value in score.saved().items()}
        for k, (values, features) in enumerate(self._new):
            state |= {f"new_values_{k}": values} | {f"new_features_{k}_{j}": x for j, x in enumerate(features)}
        return state | {"seen_weights": self.weights, "new": len(self._new)}

    def restore(self, saved: Saved) -> None:
        """Restore what was learnt.

        Parameters
        ----------
        saved : Saved
            The result of `saved`, for runs of the same form.

        Raises
        ------
        KeyError, ValueError
            If it does not fit.
        """
        self.views = Views.restore(saved)
        self.cells = self._fresh_cells()
        for k, cells in enumerate(self.cells):
            cells.ends, cells.counts, cells.chance, cells.start = (
                np.array(saved[f"seen_{name}_{k}"], np.float64) for name in ("ends", "counts", "chance", "start")
            )
            cells.evidence = float(saved[f"seen_evidence_{k}"])
            if cells.counts.shape != (2, cells.ends.size) or cells.chance.shape != cells.ends.shape:
                raise ValueError("cells and counts differ in number")
        for k, score in enumerate(self.scores):
            own = f"score{k}_"
            score.restore({name.removeprefix(own): value for name, value in saved.items() if name.startswith(own)})
        self.weights = np.array(saved["seen_weights"], np.float64)
        self._values = np.array(saved["seen_values"], np.float64)
        self._labels = np.array(saved["seen_labels"], np.int64)
        self.runs = int(saved["seen_runs"])
        self._new = [
            (
                np.array(saved[f"new_values_{k}"], np.float64),
                [np.array(saved[f"new_features_{k}_{j}"], np.float64) for j in range(len(self.scores))],
            )
            for k in range(int(saved["new"]))
        ]
        self._placed = [self._places(values) for values, _ in self._new]
        if self._values.shape != (len(self.cells), self._labels.size) or self.weights.size != len(self.cells):
            raise ValueError("values and labels differ in number")
