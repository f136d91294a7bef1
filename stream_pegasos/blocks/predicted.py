"""Predictions for examples, made before these are learned."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.learners.label_policy import Label, labels_that_hold
from stream_pegasos.learners.predictions import Predictions
from stream_pegasos.learners.probabilities import Floats
from stream_pegasos.streams import Answer

__all__ = ["MOST_PROBABLE", "NOTHING", "Labelled", "PredictedBlock", "has_weight"]

# (x, y), (x, y, w) or a longer tuple that begins like this.
Labelled = Sequence[Any]
Said = tuple[Any, Any, Any]

FEW_COLUMNS = 16
MOST_PROBABLE = 10
NOTHING = itertools.repeat(None)  # no id, or no probabilities, for all examples


@dataclass(slots=True)
class PredictedBlock:
    """Examples that were predicted and, if there are labels `y`, then learned. `classes` are the labels that the model
    knew before.
    """

    predictions: Predictions
    classes: tuple[Label | None, ...]
    y: list[Any]
    examples: Sequence[Labelled] = ()  # if the block comes from `evaluate` or `predict_learn`
    _each: list[Said] | None = field(default=None, init=False)  # cache
    _are_counted: bool | None = field(default=None, init=False)

    def __len__(self) -> int:
        return len(self.predictions)

    @property
    def _has_columns(self) -> bool:
        """Whether each class has its own margin."""
        predictions = self.predictions
        return not predictions.has_one_score and predictions.scores.shape[1] == len(predictions.classes)

    @property
    def _were_known(self) -> NDArray[np.bool_]:
        """Whether the label of each column was known at the time of the prediction; it may have come later in the
        block.
        """
        return np.isfinite(self.predictions.scores) if self._has_columns else self.predictions.probabilities > 0.0

    @property
    def _has_several(self) -> bool:
        """Whether an example may have several labels."""
        return len(self) > 0 and isinstance(self.predictions.labels[0], tuple)

    def answers(
        self,
        ids: Iterable[Any] = NOTHING,
        probabilities: Iterable[Mapping[Label, float] | None] | None = None,
        begin: int = 0,
    ) -> list[Answer]:
        """The answer to each example from `begin` on, with its id and with probabilities from `probabilities_by_label`
        or `most_probable`; by default with the most probable ones, unless two classes share one margin.
        """
        if probabilities is None:
            probabilities = NOTHING if self.predictions.has_one_score else self.most_probable(begin=begin)
        predictions = self.predictions
        sets = NOTHING if predictions.sets is None else predictions.sets[begin:]
        rows = zip(ids, self.each()[begin:], probabilities, predictions.withheld[begin:], sets, strict=False)
        return [
            Answer(id, label, p, listed, margin, None, withheld, set=members)
            for id, (label, p, margin), listed, withheld, members in rows
        ]

    def each(self) -> list[Said]:
        """The label, its probability and its margin for each example, as in an `Answer`."""
        if self._each is None:
            predictions = self.predictions
            labels, columns = (
                predictions.labels.tolist(),
                {label: column for column, label in enumerate(predictions.classes)},
            )
            if self._has_several:
                self._each = self._several_answers(
                    labels, [[columns[label] for label in several_labels] for several_labels in labels]
                )
            else:
                known_labels = set(self.classes) - {None}
                places = [columns[label] if label in known_labels else -1 for label in labels]
                self._each = self._single_answers(labels, places)
        return self._each

    def _several_answers(self, labels: list[tuple[Label, ...]], places: list[list[int]]) -> list[Said]:
        probabilities, margins = self.predictions.probabilities, self.predictions.scores
        return [
            (
                label,
                tuple(probabilities[row, at].tolist()),
                tuple(map(finite, margins[row, at].tolist())) if self._has_columns else None,
            )
            for row, (label, at) in enumerate(zip(labels, places, strict=True))
        ]

    def _single_answers(self, labels: list[Label | None], places: list[int]) -> list[Said]:
        """The predictions, given the column of each label; −1 if the model had no answer."""
        predictions = self.predictions
        probabilities = numbers_at(predictions.probabilities, places) if predictions.classes else [None] * len(labels)
        margins: list[Any] = [None] * len(labels)
        if predictions.has_one_score:
            margins = predictions.scores.tolist()
        elif self._has_columns and predictions.classes:
            margins = leads(predictions.scores, places)
        return [
            (label, probability, finite(margin)) if at >= 0 else (None, None, None)
            for label, at, probability, margin in zip(labels, places, probabilities, margins, strict=True)
        ]

    def probabilities_by_label(self) -> list[dict[Label, float]]:
        """The probability of every label that was known at the time of the prediction."""
        predictions, before = self.predictions, set(self.classes) - {None}
        columns = [
            (column, label) for column, label in enumerate(predictions.classes) if label is not None and label in before
        ]
        return [
            {label: row[column] for column, label in columns if is_there[column]}
            for row, is_there in zip(predictions.probabilities.tolist(), self._were_known.tolist(), strict=True)
        ]

    def most_probable(self, limit: int = MOST_PROBABLE, begin: int = 0) -> list[dict[Label, float]]:
        """The most probable known labels of each example from `begin` on and their probabilities, largest first."""
        known_labels, probabilities = set(self.classes), self.predictions.probabilities[begin:]
        classes = [label if label in known_labels else None for label in self.predictions.classes]
        n = min(limit, len(classes))
        columns: Iterable[Sequence[int]] = itertools.repeat(range(n))
        if n < len(classes):  # only the columns of the largest probabilities
            best = np.sort(np.argpartition(-probabilities, n - 1, axis=1)[:, :n], axis=1)
            columns, probabilities = best.tolist(), np.take_along_axis(probabilities, best, axis=1)
        result = []
        for places, row in zip(columns, probabilities.tolist(), strict=False):
            named = ((classes[at], p) for at, p in zip(places, row, strict=True) if p > 0.0)
            pairs = [(label, p) for label, p in named if label is not None]
            pairs.sort(key=itemgetter(1), reverse=True)  # equally probable labels keep their order
            result.append(dict(pairs))
        return result

    def label_probabilities(self) -> Floats:
        """The probability of each example's label; `nan` if the model did not know it, or has no probabilities. With
        several labels: the smallest probability, over all labels, that the label holds or not, as given.
        """
        predictions, were_known, known_labels = self.predictions, self._were_known, set(self.classes) - {None}
        columns = {label: column for column, label in enumerate(predictions.classes) if label in known_labels}
        result = np.full(len(self), np.nan)
        if not self._has_several:
            places = np.array([columns.get(y, -1) for y in self.y], np.intp)
            rows = np.flatnonzero(places >= 0)
            rows = rows[were_known[rows, places[rows]]]
            result[rows] = predictions.probabilities[rows, places[rows]]
            return result
        for row, y in enumerate(self.y):
            held_columns = [columns.get(label, -1) for label in labels_that_hold(y)]
            if -1 in held_columns or not were_known[row, held_columns].all():
                continue
            likelihoods = 1.0 - predictions.probabilities[row]
            likelihoods[held_columns] = predictions.probabilities[row, held_columns]
            result[row] = likelihoods[were_known[row]].min(initial=1.0)
        return result

    def sureness(self) -> Floats:
        """The probability of each example's most probable label. With several labels: the smallest probability, over
        all labels, of the more probable of yes and no.
        """
        probabilities: Floats = np.nan_to_num(self.predictions.probabilities)
        sureness: Floats = probabilities.max(axis=1, initial=0.0)
        if self._has_several:
            sureness = np.maximum(probabilities, 1.0 - probabilities).min(axis=1, initial=1.0)
        return sureness

    def wrong_rows(self) -> list[int]:
        """The rows with a wrong answer."""
        pairs = enumerate(zip(self.predictions.labels.tolist(), self.y, strict=True))
        if self._has_several:
            return [row for row, (labels, truth) in pairs if {*labels} != {*labels_that_hold(truth)}]
        return [row for row, (label, truth) in pairs if label != truth and label is not None]

    def counted(self) -> PredictedBlock:
        """The examples that metrics count: those with a weight above 0."""
        if self._are_counted is None:
            self._are_counted = all(map(has_weight, self.examples))
        if self._are_counted:
            return self
        rows = [row for row, example in enumerate(self.examples) if has_weight(example)]
        y, examples = [self.y[row] for row in rows], [self.examples[row] for row in rows]
        return PredictedBlock(self.predictions.rows(rows), self.classes, y, examples)


def has_weight(example: Labelled) -> bool:
    """Whether an example counts. One of weight 0 is not learned, and is in no metric."""
    return len(example) < 3 or bool(example[2] != 0.0)


def numbers_at(rows: Floats, places: list[int]) -> list[float]:
    """The number at a place of each row."""
    if rows.shape[1] <= FEW_COLUMNS:  # also faster for few rows
        return [row[place] for row, place in zip(rows.tolist(), places, strict=True)]
    numbers: list[float] = rows[np.arange(len(places)), places].tolist()
    return numbers


def leads(margins: Floats, places: list[int]) -> list[float]:
    """The difference between the margin at a place of each row and the largest other one."""
    rows, rivals = np.arange(len(places)), margins.copy()
    rivals[rows, places] = -np.inf
    with np.errstate(invalid="ignore"):
        result: list[float] = (margins[rows, places] - rivals.max(axis=1, initial=-np.inf)).tolist()
    # Rows from before the third class have one margin, in two columns with opposite signs.
    for row in np.flatnonzero(np.isfinite(margins).sum(axis=1) == 2).tolist():
        negative, positive = margins[row][np.isfinite(margins[row])].tolist()
        result[row] = positive if negative == -positive else result[row]
    return result


def finite(margin: float | None) -> float | None:
    return margin if margin is not None and math.isfinite(margin) else None
