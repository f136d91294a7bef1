"""Classifiers that begin with two classes, and go on with as many as the stream brings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from stream_pegasos.common.checks import check_lengths
from stream_pegasos.engine import Encoder, Learner
from stream_pegasos.features.frames import n_rows, some_rows
from stream_pegasos.learners.class_weights import plain_weight
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.forgetting import forget_column
from stream_pegasos.learners.labels import (
    Label,
    ThirdLabelError,
    TwoClasses,
    check_label,
    label_list,
)
from stream_pegasos.learners.predictions import PartlyLearnedError, RawScores, joined_scores

__all__ = ["GrowingClassifier"]


class GrowingClassifier(Classifier):
    """Two classes in one column; from a third label on a column a class, where the model can do "several classes"."""

    def check_labels(self, y: Iterable[Any]) -> None:
        given = label_list(y)
        try:
            super().check_labels(given)
        except ThirdLabelError:
            if "several classes" not in self.capabilities:
                raise
            for label in given:
                check_label(label)

    def learn_rows(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> RawScores:
        given = y if isinstance(y, (list, np.ndarray)) else label_list(y)
        try:
            return super().learn_rows(encoder, rows, given, w)
        except ThirdLabelError as error:
            if "several classes" not in self.capabilities:
                raise
            return self._learn_across(error.label, encoder, rows, label_list(given), w)

    def _learn_across(
        self, third: Label, encoder: Encoder, rows: Any, y: list[Any], w: float | Iterable[float]
    ) -> RawScores:
        """Learn rows in the middle of which a third label comes, up to there with two."""
        each = list(w) if isinstance(w, Iterable) else None  # one for all is checked, and read, much faster
        check_lengths("labels", len(y), n_rows(rows))
        check_lengths("weights", len(y) if each is None else len(each), len(y))
        for weight in [w] if each is None else each:
            plain_weight(weight)
        n = [check_label(label) for label in y].index(third)
        encoder.check(rows)  # whatever is wrong has to show before the first is learned
        first = self.learn_rows(encoder, some_rows(rows, 0, n), y[:n], w if each is None else each[:n])
        # The one with the third label, too, was predicted with two.
        before = self.predictions_of(joined_scores([first, self.meet_rows(encoder, some_rows(rows, n, n + 1))]))
        of_two = self._learner, self._labels
        self._become_several()
        try:
            weights = w if each is None else each[n:]
            return self.learn_rows(encoder, some_rows(rows, n, len(y)), y[n:], weights).after(before)
        except PartlyLearnedError as error:
            raise PartlyLearnedError(n + error.n_learned, error.found.after(before), error.args[2]) from error.__cause__
        except BaseException as error:  # a detector's, at the very example that brings the class, or an interruption
            if len(self._labels.classes) < 3:
                self._learner, self._labels = of_two
            if n and isinstance(error, Exception):
                raise PartlyLearnedError(n, first, error) from error
            raise

    def _forget_class(self, label: Label) -> None:
        if isinstance(self._labels, TwoClasses) and label in self._labels.targets:
            self._become_several()
        super()._forget_class(label)

    def _become_several(self) -> None:
        """Go on from what is known of two classes to any number; without a positive one that was only named."""
        learner, labels = self._learner_of_several(), self._labels
        assert isinstance(labels, TwoClasses)
        self._learner, self._labels = learner, labels.as_several()
        if labels.only_named:
            forget_column(learner, len(self._labels.known))

    def _learner_of_several(self) -> Learner:
        """One that knows what the learner of two classes knows."""
        raise NotImplementedError

    def _take_state(self, state: dict[str, Any], names: list[Any], values: Any) -> None:
        if isinstance(self._labels, TwoClasses) and isinstance(values["labels"], list):
            if "several classes" not in self.capabilities:
                raise ValueError("the labels are not as they were written")
            self._become_several()
        super()._take_state(state, names, values)
