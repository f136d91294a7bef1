"""Scores of predictions with one label per example, and the choice of a score for a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from stream_pegasos.blocks.predicted import PredictedBlock
from stream_pegasos.common.errors import must_be
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.ranking import Pair, PositiveScore
from stream_pegasos.evaluation.tallies import (
    Floats,
    Integers,
    PredictedExamples,
    Reliability,
    Score,
    added,
    newest,
    no_sets,
    ratio,
)
from stream_pegasos.learners.capabilities import CLASSES, LABELS, ORDERED, model_kind
from stream_pegasos.learners.earlier import score_now
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.predictions import Predictions

if TYPE_CHECKING:
    from stream_pegasos.blocks.river_models import AnyModel

__all__ = [
    "AnyOutcomes",
    "OrderedScore",
    "Outcomes",
    "PrequentialScore",
    "block_outcomes",
    "new_score",
    "score_of_state",
]


@dataclass
class Outcomes(PredictedExamples):
    """Predictions with one label per example, `None` if the model had no answer, and the true labels."""

    of_truth: Floats  # the probability of the true label
    of_predicted: Floats  # the probability of the predicted label
    # The negative and the positive label if two classes share one margin, `None` until known; and the margins.
    classes: Pair = ()
    margins: Floats = field(default_factory=lambda: np.zeros(0))
    in_sets: Floats = field(default_factory=no_sets)

    @classmethod
    def of(cls, truths: list[Any], predicted: list[Any], labels: Sequence[Any], probabilities: Floats) -> Outcomes:
        """Create outcomes from a column of probabilities for each of `labels`; 0 for a label that has not come.

        An unknown label gets a probability of 1/(K + 1) beside K known labels, as if all were equally probable, and 1/2
        before any. Every label gets this probability if the model had no answer.
        """
        columns = {label: column for column, label in enumerate(labels) if label is not None}
        # One more column of zeros, for labels without a column.
        padded = np.concatenate([probabilities, np.zeros((len(truths), 1))], axis=1)
        rows, no_column = np.arange(len(truths)), len(labels)
        at_truth, at_predicted = (
            np.array([columns.get(label, no_column) for label in labels_of_rows], np.intp)
            for labels_of_rows in (truths, predicted)
        )
        of_truth, of_predicted = padded[rows, at_truth], padded[rows, at_predicted]
        unknown = np.flatnonzero((of_truth <= 0.0) | (at_predicted == no_column))
        if len(unknown):
            is_known = np.array([*(label is not None for label in labels), False])
            n_known = ((padded[unknown] > 0.0) & is_known).sum(axis=1)
            is_silent = np.isnan(padded[unknown]).any(axis=1)  # a model without probabilities
            of_truth[unknown] = np.where(is_silent, np.nan, 1.0 / (np.maximum(n_known, 1) + 1))
        return cls(truths, predicted, of_truth, of_predicted)


class PrequentialScore(Score):
    """Metrics of predictions with one label per example, updated in bulk. Memory is constant, except for the counts of
    each class.

    While one margin separates two classes, there are also metrics of the positive class and of the ranking, and the
    reliability is that of the positive class's probability. From the first example of a third class on, these metrics
    are `nan`, and the reliability is that of the predicted class; all other metrics continue.

    An undefined metric is `nan`. A prediction of `None`, before any label is known, counts only in `n` and
    `n_unanswered`. Macro F1 is the mean over the classes that occurred or were predicted, balanced accuracy over those
    that occurred.

    An exact ROC AUC takes 8 bytes per example. If it is not `exact`, margins are counted in 8,001 bins, in constant
    memory; the width of a bin is 1/200 of the margin, or 1/12,800 near 0.
    """

    kind = CLASSES

    def __init__(self, window: int = 1_000, exact: bool = True) -> None:
        super().__init__(window)
        self._positive: PositiveScore | None = PositiveScore(window, exact)

    def update(self, outcomes: Outcomes) -> None:
        is_answered = np.array([label is not None for label in outcomes.predicted], bool)
        self.n += outcomes.n
        self.n_unanswered += int((~is_answered).sum())
        self._count_sets(outcomes.in_sets[is_answered[: len(outcomes.in_sets)]])
        truths, predicted = (
            self.tally.label_numbers(itertools.compress(labels, is_answered))
            for labels in (outcomes.truths, outcomes.predicted)
        )
        right = truths == predicted
        self.tally.add(truths, predicted, truths[right])
        self.tally.add_pairs(truths[~right], predicted[~right])
        of_truth = np.asarray(outcomes.of_truth, float)[is_answered]
        self._log_loss = added(self._log_loss, -np.log(np.clip(of_truth, 1e-15, 1.0)))
        self._reliability.update(np.asarray(outcomes.of_predicted, float)[is_answered], right)
        self._newest = newest(self._newest, right[:, np.newaxis], self.window)
        if self._positive is not None and self._positive.takes(outcomes.classes):
            of_positive = truths == self.tally.label_number(self.positive)
            self._positive.update(of_positive, outcomes.margins[is_answered], of_truth)
        else:
            self._positive = None
        self._follow_order(truths, predicted)

    def add(self, other: Self) -> None:
        super().add(other)
        if other.n_answered == 0:
            return
        if self._positive and other._positive and self._positive.takes(other._positive.classes):
            self._positive.add(other._positive)
        else:
            self._positive = None

    def _follow_order(self, truths: Integers, predicted: Integers) -> None:
        """Count values that depend on the order of classes; classes have none here."""

    @property
    def accuracy(self) -> float:
        return ratio(self.tally.right.sum(), self.n_answered)

    @property
    def positive(self) -> Label | None:
        """The positive label; `None` if there is none or it is unknown."""
        return None if self._positive is None else self._positive.classes[1]

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of the positive label."""
        occurred, predicted, right = self.tally.row(self.positive)
        return ratio(2 * right, occurred + predicted)

    @property
    def roc_auc(self) -> float:
        """The share of pairs in which the positive example has the higher margin; a tie counts half."""
        return math.nan if self._positive is None else self._positive.roc_auc

    @property
    def window_roc_auc(self) -> float:
        """`roc_auc` over the newest examples."""
        return math.nan if self._positive is None else self._positive.window_roc_auc

    @property
    def _shown_reliability(self) -> Reliability:
        return self._reliability if self._positive is None else self._positive.reliability

    @property
    def has_positive(self) -> bool:
        return self._positive is not None

    def get_state(self) -> dict[str, Any]:
        """All counts as JSON values; not possible with `exact` while there is a positive class."""
        return {**super().get_state(), "positive": None if self._positive is None else self._positive.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        positive = None if state["positive"] is None else PositiveScore(self.window, exact=False)
        if positive is not None:
            positive.set_state(state["positive"])
        super().set_state(state)
        self._positive = positive


class OrderedScore(PrequentialScore):
    """Metrics of predictions of ordered classes, which are integers, including the sizes of errors.

    Quadratic kappa is Cohen's with squared distances between labels as weights: 1 - the mean squared error / the mean
    squared error of random predictions with the same frequencies.
    """

    kind = ORDERED
    # Sums over all predictions: their number; |error| and error²; truths and their squares; predictions and their
    # squares. Labels are relative to the first one, because the squares of large labels would cancel.
    n_sums = 7

    def __init__(self, window: int = 1_000) -> None:
        super().__init__(window)
        self._positive = None
        self._first: int | None = None

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "first": self._first}

    def set_state(self, state: Mapping[str, Any]) -> None:
        first = state["first"]
        self._first = None if first is None else int(first)
        super().set_state(state)

    def _follow_order(self, truths: Integers, predicted: Integers) -> None:
        labels: list[Any] = self.tally.labels
        if self._first is None and labels:
            self._first = labels[0]
        steps = np.array([label - self._first for label in labels], float)
        truth, prediction = steps[truths], steps[predicted]
        error = prediction - truth
        columns = [np.ones_like(error), abs(error), error**2, truth, truth**2, prediction, prediction**2]
        self._sums += np.sum(columns, axis=1)

    def add(self, other: Self) -> None:
        self._first = other._first if self._first is None else self._first
        super().add(other)

    def _sums_beside(self, other: Self) -> Floats:
        if other._first is None or self._first is None:  # no predictions here
            return self._sums
        further = float(self._first - other._first)
        n, error, squares, *error_sums = self._sums.tolist()
        pairs = zip(error_sums[::2], error_sums[1::2], strict=True)
        moved = [(total + n * further, square + 2 * further * total + n * further**2) for total, square in pairs]
        return np.array([n, error, squares, *itertools.chain(*moved)])

    @property
    def mean_absolute_error(self) -> float:
        """The mean distance between the predicted and the true label."""
        return ratio(self._sums[1], self._sums[0])

    @property
    def quadratic_kappa(self) -> float:
        n, _, squares, truth, truth2, prediction, prediction2 = self._sums.tolist()
        by_chance = ratio(n * (truth2 + prediction2) - 2 * truth * prediction, n * n)
        return 1.0 - ratio(ratio(squares, n), by_chance)


AnyOutcomes = Outcomes | LabelOutcomes


def block_outcomes(predicted_block: PredictedBlock, model: AnyModel) -> AnyOutcomes:
    """The outcomes of the examples that count, for the model that has learned the block."""
    block = predicted_block.counted()
    predictions, y = block.predictions, block.y
    if model_kind(model.capabilities) == LABELS:
        label_outcomes = LabelOutcomes.of(y, predictions.labels, predictions.classes, predictions.probabilities)
        label_outcomes.in_sets = in_sets(predictions, label_outcomes.truths)
        return label_outcomes
    known_labels = set(block.classes) - {None}
    predicted = [label if label in known_labels else None for label in predictions.labels.tolist()]
    columns = [label if label in known_labels else None for label in predictions.classes]
    outcomes = Outcomes.of(y, predicted, columns, predictions.probabilities)
    outcomes.in_sets = in_sets(predictions, [(truth,) for truth in y])
    if set(model.classes).issuperset(y):
        outcomes.classes, outcomes.margins = model.labels.positive_margins(predictions)
    return outcomes


def in_sets(predictions: Predictions, truths: Sequence[Sequence[Any]]) -> Floats:
    """Whether each set contains all labels of its example, and the size of the set; no rows without sets."""
    if predictions.sets is None:
        return no_sets()
    pairs = zip(truths, predictions.sets, strict=True)
    return np.array([({*truth} <= {*members}, len(members)) for truth, members in pairs], float).reshape(-1, 2)


def new_score(model: AnyModel, window: int = 1_000, exact: bool = True) -> Score:
    """A new score for a model; for the window and `exact` see `PrequentialScore`."""
    kind = model_kind(model.capabilities)
    if kind == CLASSES:
        return PrequentialScore(window, exact)
    return OrderedScore(window) if kind == ORDERED else LabelScore(window)


def score_of_state(state: Mapping[str, Any], model: AnyModel, window: int = 1_000) -> Score:
    """The score with a state from `get_state`, for the model that was saved with it. It raises the errors of
    `set_state`.
    """
    score = new_score(model, window, exact=False)
    if state["kind"] != score.kind:
        raise ValueError(must_be("the kind of the score", f"{score.kind!r}, as that of the model", state["kind"]))
    score.set_state(score_now(state))
    return score
