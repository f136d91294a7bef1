"""Classifiers and pipelines of River's, evaluated like the models of this package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from river import base

from stream_pegasos.common.checks import user_code
from stream_pegasos.common.locks import Lock
from stream_pegasos.evaluation.tallies import Floats
from stream_pegasos.learners.label_meaning import Label
from stream_pegasos.learners.labels import Labels, check_label, label_list
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions, settled

__all__ = ["RiverModel"]

MOST_LOG_ODDS = 34.0


class RiverModel:
    """A classifier of River's behind the interface that evaluation asks for; a TypeError if it is none. Where it has no
    probabilities, these are NaN, and what rests on them is undefined.
    """

    capabilities: frozenset[str] = frozenset()

    def __init__(self, model: Any) -> None:
        if not isinstance(model, base.Classifier):  # as a pipeline is whose last step is one
            raise TypeError(f"{model!r} is a {type(model).__name__}, no classifier of this package or of River's")
        self._model: Any = model
        self.lock, self._labels = Lock(), Labels()

    @property
    def classes(self) -> tuple[Label, ...]:
        return self._labels.classes

    @property
    def pair(self) -> tuple[Label | None, ...]:
        return self._labels.pair

    def check_labels(self, y: Iterable[Any]) -> None:
        self._labels.with_labels(label_list(y))

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        labels = self._labels.with_labels([y])
        with user_code("the model"):
            self._model.learn_one(x, check_label(y), **({} if w == 1.0 else {"w": w}))
        self._labels = labels

    def predictions(self, X: Sequence[Any], threads: int = 1) -> Predictions:
        return self._settled([self._said(x) for x in X])

    def predict_learn_many(
        self, X: Sequence[Any], y: Sequence[Any], w: float | Sequence[float] = 1.0, threads: int = 1
    ) -> Predictions:
        said: list[tuple[Label | None, dict[Label, float]]] = []
        self.check_labels(y)
        for x, label, weight in zip(X, y, w if isinstance(w, Sequence) else [w] * len(X), strict=True):
            try:
                found = self._said(x)
                self.learn_one(x, label, weight)
            except (ValueError, TypeError) as error:
                if not said:
                    raise
                raise PartlyLearnedError(len(said), None, error, self._settled(said)) from error
            said.append(found)
        return self._settled(said)

    def _said(self, x: Any) -> tuple[Label | None, dict[Label, float]]:
        """The label that is predicted, and the probabilities. Labels that a model answers are known from then on: it
        may have learned them before.
        """
        probabilities: dict[Any, float] = {}
        with user_code("the model"):
            with contextlib.suppress(NotImplementedError):
                probabilities = self._model.predict_proba_one(x)
            label = self._model.predict_one(x)
        label = None if label is None else check_label(label)
        probabilities = {check_label(of): p for of, p in probabilities.items() if of is not None}
        if new := [of for of in (*probabilities, label) if of is not None and of not in self._labels.targets]:
            self._labels = self._labels.with_labels(new)
        return label, probabilities

    def _settled(self, said: list[tuple[Label | None, dict[Label, float]]]) -> Predictions:
        known, pair = self.classes, self.pair
        found = np.full((len(said), len(known)), np.nan)
        for row, (_, probabilities) in enumerate(said):
            if probabilities:
                found[row] = [probabilities.get(label, 0.0) for label in known]
        labels = np.empty(len(said), object)
        labels[:] = [label for label, _ in said]
        return settled(self._scores(labels, found), labels, (known, found), pair=pair)

    def _scores(self, labels: Any, probabilities: Floats) -> Floats:
        if not self.pair:
            return probabilities
        positive = self._labels.positive
        if positive >= probabilities.shape[1]:
            return np.zeros(len(labels))
        p = probabilities[:, positive]
        with np.errstate(divide="ignore"):
            log_odds = np.log(p / (1.0 - p))
        by_label = np.where(labels == self.pair[1], 1.0, -1.0)
        return np.clip(np.where(np.isnan(p), by_label, log_odds), -MOST_LOG_ODDS, MOST_LOG_ODDS)
