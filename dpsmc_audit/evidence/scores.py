"""Scores: numbers that a classifier gives to outputs. Each score is one more view for the predictor.

A score is computed before the label of the run is known, by a classifier that was fitted to earlier runs, and it is
never computed again. So a classifier that fits too well shows a score that says nothing, and costs no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.outputs import Outputs
from dpsmc_audit.evidence.views import Views

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpsmc_audit.runs.checkpoints import Saved

__all__ = ["Classifier", "ClassifierScore", "Linear", "Score", "scores_for"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FIRST, GROWTH, MOST = 16, 1.25, 20_000
"""A classifier is fitted when there are so many runs, then after each growth by this factor, to at most so many."""

_RIDGE = 1.0
"""The precision of the prior of standardised slopes."""


class Score(Protocol):
    """A number for each run that may tell its label."""

    name: str

    def features(self, views: Views, outputs: Outputs) -> FloatArray:
        """Return what the score is computed from: a row for each run.

        Parameters
        ----------
        views : Views
            They know the categories so far.
        outputs : Outputs
            The runs.

        Returns
        -------
        array
            A row for each run.
        """
        ...

    def values(self, features: FloatArray) -> FloatArray:
        """Return the score of each run, a finite number.

        Parameters
        ----------
        features : array
            A row for each run.

        Returns
        -------
        array
            The scores.
        """
        ...

    def learn(self, features: FloatArray, labels: IntArray) -> None:
        """Take in runs with their labels.

        Parameters
        ----------
        features : array
            A row for each run.
        labels : array of int
            The labels.
        """
        ...

    def fresh(self) -> Score:
        """Return a score of the same kind that has learnt nothing."""
        ...

    def saved(self) -> Saved:
        """Return the state."""
        ...

    def restore(self, saved: Saved) -> None:
        """Set the state.

        Parameters
        ----------
        saved : Saved
            The result of `saved`.
        """
        ...


class Classifier(Protocol):
    """What a user's predictor must have, as classifiers of scikit-learn do."""

    def fit(self, features: FloatArray, labels: IntArray) -> Any:
        """Learn from runs.

        Parameters
        ----------
        features : array
            A row for each run.
        labels : array of int
            The labels.
        """
        ...

    def predict_proba(self, features: FloatArray) -> Any:
        """Return the probability of label 1 for each run, alone or in the second of two columns.

        Parameters
        ----------
        features : array
            A row for each run.

        Returns
        -------
        array
            A probability for each run, or two columns.
        """
        ...


class _Fitted:
    """Runs so far, and when to fit to them again."""

    name = "score"

    def __init__(self) -> None:
        self.seen, self.labels, self.fitted = np.empty((0, 0)), np.empty(0, np.int64), 0

    def features(self, views: Views, outputs: Outputs) -> FloatArray:
        """Return what the score is computed from.

        Parameters
        ----------
        views : Views
            They know the categories so far.
        outputs : Outputs
            The runs.

        Returns
        -------
        array
            A row for each run.
        """
        return np.nan_to_num(views.features(outputs), posinf=1e100, neginf=-1e100)

    def learn(self, features: FloatArray, labels: IntArray) -> None:
        """Take in runs with their labels, and fit again if there are enough new ones.

        Parameters
        ----------
        features : array
            A row for each run.
        labels : array of int
            The labels.
        """
        room = MOST - self.labels.size
        if room <= 0:
            return
        self.seen = features[:room] if self.labels.size == 0 else np.vstack([self.seen, features[:room]])
        self.labels = np.append(self.labels, labels[:room])
        due = self.labels.size >= max(FIRST, GROWTH * self.fitted)
        if due and 0 < self.labels.sum() < self.labels.size:
            self.fitted = self.labels.size
            self.fit()

    def fit(self) -> None:
        """Fit to the first `fitted` runs."""
        raise NotImplementedError

    def saved(self) -> Saved:
        """Return the state.

        Returns
        -------
        Saved
            The runs so far; the fit follows from them. A classifier that draws random numbers of its own is fitted to
            other ones when it is restored.
        """
        return {"seen": self.seen, "labels": self.labels, "fitted": self.fitted}

    def restore(self, saved: Saved) -> None:
        """Set the state, and fit again to what was fitted.

        Parameters
        ----------
        saved : Saved
            The result of `saved`.
        """
        self.seen, self.labels = np.array(saved["seen"], np.float64), np.array(saved["labels"], np.int64)
        self.fitted = int(saved["fitted"])
        if self.fitted:
            self.fit()


class Linear(_Fitted):
    """A linear score of all features: logistic regression with a normal prior."""

    name = "linear score"

    def __init__(self) -> None:
        super().__init__()
        self._center, self._scale, self._slope = np.zeros(1), np.ones(1), np.zeros(1)

    def fresh(self) -> Linear:
        """Return a linear score that has learnt nothing."""
        return Linear()

    def fit(self) -> None:
        """Fit by a few steps of Newton's method."""
        x, y = self.seen[: self.fitted], self.labels[: self.fitted]
        self._center = np.median(x, axis=0)
        spread = np.quantile(np.abs(x - self._center), 0.75, axis=0)
        self._scale = np.where(spread > 0.0, spread, np.maximum(np.abs(x - self._center).max(axis=0), 1e-300))
        z = np.column_stack([np.ones(y.size), self._standard(x)])
        slope = np.zeros(z.shape[1])
        for _ in range(8):
            p = 1.0 / (1.0 + np.exp(-np.clip(z @ slope, -30.0, 30.0)))
            gradient = z.T @ (y - p) - _RIDGE * slope
            curvature = (z * (p * (1.0 - p))[:, None]).T @ z + _RIDGE * np.eye(slope.size)
            slope = slope + np.clip(np.linalg.solve(curvature, gradient), -2.0, 2.0)
        self._slope = slope[1:]

    def fixed(self, runs: int) -> FloatArray:
        """Return the score that was learnt from the first runs.

        Parameters
        ----------
        runs : int
            How many.

        Returns
        -------
        array
            Of every run that is kept.
        """
        made = Linear()
        made.learn(self.seen[:runs], self.labels[:runs])
        return made.values(self.seen)

    def _standard(self, x: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((x - self._center) / self._scale, -10.0, 10.0))

    def values(self, features: FloatArray) -> FloatArray:
        """Return the score of each run.

        Parameters
        ----------
        features : array
            A row for each run.

        Returns
        -------
        array
            Log odds, up to a constant; 0 before the first fit.
        """
        if not self.fitted:
            return np.zeros(len(features))
        # rounded, so that equal runs have equal scores on every processor
        return np.asarray(np.round(self._standard(features) @ self._slope, 6))


class ClassifierScore(_Fitted):
    """The score of a user's classifier: its log odds of label 1.

    Parameters
    ----------
    factory : callable
        Makes a new classifier, without arguments.
    name : str
        What the user calls it, for messages.
    """

    name = "predictor"

    def __init__(self, factory: Callable[[], Classifier], name: str) -> None:
        super().__init__()
        self.factory, self.called = factory, name
        self._classifier: Classifier | None = None

    def fresh(self) -> ClassifierScore:
        """Return a score of the same kind that has learnt nothing."""
        return ClassifierScore(self.factory, self.called)

    def fit(self) -> None:
        """Make a classifier and fit it to all runs so far.

        Raises
        ------
        ParameterError
            If the user's code fails.
        """
        try:
            self._classifier = self.factory()
            self._classifier.fit(self.seen[: self.fitted], self.labels[: self.fitted])
        except (Exception, SystemExit) as error:
            raise self._failed(f"fit on {self.fitted} runs", error) from error

    def values(self, features: FloatArray) -> FloatArray:
        """Return the score of each run.

        Parameters
        ----------
        features : array
            A row for each run.

        Returns
        -------
        array
            Log odds; 0 before the first fit.

        Raises
        ------
        ParameterError
            If the user's code fails, or returns no probabilities.
        """
        if self._classifier is None or len(features) == 0:
            return np.zeros(len(features))
        call = f"predict_proba on {len(features)} runs"
        try:
            found = np.asarray(self._classifier.predict_proba(features), np.float64)
        except (Exception, SystemExit) as error:
            raise self._failed(call, error) from error
        if found.shape == (len(features), 2):
            found = found[:, 1]
        if found.shape != (len(features),):
            raise ParameterError(f"predictor {self.called}, {call}: shape {found.shape}, need ({len(features)},)")
        wrong = ~((found >= 0.0) & (found <= 1.0))
        if wrong.any():
            value = float(found[np.argmax(wrong)])
            raise ParameterError(f"predictor {self.called}, {call}: {value} is no probability")
        kept = np.clip(found, 1e-12, 1.0 - 1e-12)
        return np.asarray(np.log(kept) - np.log1p(-kept))

    def _failed(self, call: str, error: BaseException) -> ParameterError:
        text = " ".join(f"{error}".split())
        return ParameterError(f"predictor {self.called}, {call} raised {type(error).__name__}: {text}")


def scores_for(form: Outputs, own: Score | None) -> tuple[Score, ...]:
    """Choose the scores for runs of this form.

    Parameters
    ----------
    form : Outputs
        Some runs.
    own : Score, optional
        The user's.

    Returns
    -------
    tuple of Score
        A linear score if a run has several numbers, and the user's.
    """
    several = form.kind in ("vectors", "transcripts") or (form.kind == "columns" and len(form.columns) > 2)
    linear: tuple[Score, ...] = (Linear(),) if several else ()
    return linear if own is None else (*linear, own)
