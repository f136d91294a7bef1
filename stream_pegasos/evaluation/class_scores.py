"""Scores of predictions of several classes, ordered ones among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from stream_pegasos.evaluation.tallies import Bools, Floats, Integers, Reliability, Tally, TallyScore, newest, ratio

__all__ = ["ClassOutcomes", "ClassScore", "ClassScoreRow", "OrderedScore", "OrderedScoreRow"]


class ClassOutcomes(NamedTuple):
    """Predictions of examples of several classes, and which these turned out to be."""

    truths: list[Any]
    predicted: list[Any]  # `None` where the model could not say
    of_truth: Floats  # the probability of what came true
    of_predicted: Floats  # and of what was predicted

    @property
    def n(self) -> int:
        return len(self.truths)

    def split(self, n: int) -> tuple[ClassOutcomes, ClassOutcomes]:
        """The first n, and the rest."""
        a, b, c, d = self
        return ClassOutcomes(a[:n], b[:n], c[:n], d[:n]), ClassOutcomes(a[n:], b[n:], c[n:], d[n:])

    @classmethod
    def joined(cls, parts: Sequence[ClassOutcomes]) -> ClassOutcomes:
        truths, predicted, of_truth, of_predicted = zip(*parts, strict=True)
        return cls(
            list(chain(*truths)), list(chain(*predicted)), np.concatenate(of_truth), np.concatenate(of_predicted)
        )

    @classmethod
    def of(
        cls, truths: list[Any], predicted: list[Any], classes: Sequence[Any], probabilities: Floats
    ) -> ClassOutcomes:
        """Outcomes, given a column of probabilities for each of `classes`; that of a class yet to come is 0.

        A label that was not known has the probability that it would have had if it and those known were all alike:
        1/(K + 1) beside K known ones, and 1/2 before any; so has every label where the model could not say.
        """
        n = len(truths)
        columns = {label: column for column, label in enumerate(classes)}
        # One more column, of zeros, for labels that have none.
        padded = np.concatenate([probabilities, np.zeros((n, 1))], axis=1)
        rows, none = np.arange(n), len(classes)
        of_truth = padded[rows, [columns.get(label, none) for label in truths]]
        of_predicted = padded[rows, [columns.get(label, none) for label in predicted]]
        unknown = np.flatnonzero(~(of_truth > 0.0) | np.array([label is None for label in predicted], bool))
        if len(unknown):
            there = np.array([*(label is not None for label in classes), False])
            n_known = ((padded[unknown] > 0.0) & there).sum(axis=1)
            of_truth[unknown] = 1.0 / (np.maximum(n_known, 1) + 1)
        return cls(truths, predicted, of_truth, of_predicted)


class ClassScoreRow(NamedTuple):
    """The scores of several classes after the first `n` examples, a row of the prequential curve."""

    n: int
    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    micro_f1: float
    log_loss: float
    calibration_error: float
    window_accuracy: float
    seconds: float


class OrderedScoreRow(NamedTuple):
    """The same of ordered classes."""

    n: int
    accuracy: float
    mean_absolute_error: float
    quadratic_kappa: float
    balanced_accuracy: float
    macro_f1: float
    micro_f1: float
    log_loss: float
    calibration_error: float
    window_accuracy: float
    seconds: float


class ClassScore(TallyScore):
    """Metrics of predictions of any number of classes, updated in bulk. Memory stays constant, except for counts of
    each class.

    A metric is `nan` where it is undefined. A prediction of `None`, where the model knew no answer, counts as wrong,
    but not in the calibration. Macro F1 is the mean over the classes that occurred or were predicted, balanced accuracy
    over those that occurred.

    Parameters
    ----------
    window
        How many of the newest examples `window_accuracy` counts.

    Attributes
    ----------
    reliability, expected_calibration_error
        Those of the probability of the predicted class, which comes true if the prediction is right.

    Examples
    --------

    >>> from stream_pegasos.evaluation.class_scores import ClassOutcomes, ClassScore

    >>> score = ClassScore()
    >>> truths, predicted = ["card", "cash", "card", "fee"], ["card", "card", "card", None]
    >>> score = score.after(ClassOutcomes(truths, predicted, [0.9, 0.3, 0.6, 0.1], [0.9, 0.7, 0.6, 0]))
    >>> score.accuracy, round(score.macro_f1, 3)
    (0.5, 0.267)
    >>> score.of_classes(1)
    [ClassRow(label='card', precision=0.6666666666666666, recall=1.0, f1=0.8, count=2)]
    >>> score.confused(1)
    [ConfusedRow(truth='cash', predicted='card', count=1)]

    """

    kind = "several classes"
    row_type: Any = ClassScoreRow

    def __init__(self, window: int = 1_000) -> None:
        super().__init__(window)
        self._newest: Floats = np.zeros((0, 1))  # whether right

    @classmethod
    def going_on(
        cls, window: int, tally: Tally, log_loss: float, reliability: Reliability, newest: Floats
    ) -> ClassScore:
        """A score that goes on from what was counted so far: sums, and whether the newest were right."""
        score = cls(window)
        score._tally, score._log_loss, score._reliability = tally, log_loss, reliability
        score._newest = newest.reshape(-1, 1)
        return score

    def after(self, outcomes: Any) -> ClassScore:
        outcomes = outcomes if isinstance(outcomes, ClassOutcomes) else outcomes.as_classes()
        truths, predicted = self._tally.numbers_of(outcomes.truths), self._tally.numbers_of(outcomes.predicted)
        right, made = truths == predicted, predicted >= 0
        wrong = ~right & made
        self._tally.add(truths, predicted[made], truths[right])
        self._tally.add_pairs(truths[wrong], predicted[wrong])
        self._log_loss -= float(np.log(np.clip(outcomes.of_truth, 1e-15, 1.0)).sum())
        self._reliability.update(np.asarray(outcomes.of_predicted, float)[made], right[made])
        self._newest = newest(self._newest, right[:, np.newaxis], self.window)
        self._follow_order(truths, predicted, made)
        return self

    def _follow_order(self, truths: Integers, predicted: Integers, made: Bools) -> None:
        """Classes that have no order: nothing to follow."""

    @property
    def n(self) -> int:
        return int(self._tally.occurred.sum())

    @property
    def accuracy(self) -> float:
        return ratio(self._tally.right.sum(), self.n)

    @property
    def window_accuracy(self) -> float:
        return ratio(self._newest.sum(), len(self._newest))

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the recalls of the classes that occurred."""
        return self._tally.balanced_accuracy

    def figures(self) -> dict[str, float]:
        return {
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            "micro_f1": self.micro_f1,
            "log_loss": self.log_loss,
            "calibration_error": self.expected_calibration_error,
            "window_accuracy": self.window_accuracy,
        }

    def get_state(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "tally": self._tally.get_state(),
            "log_loss": self._log_loss,
            "tenths": self._reliability.sums.tolist(),
            "newest": self._newest[:, 0].astype(int).tolist(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over what has been counted elsewhere.

        Raises
        ------
        ArithmeticError, LookupError, TypeError, ValueError
            If it is nothing that `get_state` gives.
        """
        tenths = np.array(state["tenths"], float).reshape(10, 3)
        latest = np.array(state["newest"], float).reshape(-1, 1)[-self.window :]
        log_loss = float(state["log_loss"])
        self._tally.set_state(state["tally"])
        self._reliability.sums, self._newest, self._log_loss = tenths, latest, log_loss


class OrderedScore(ClassScore):
    """The same for classes that are integers and have an order; it also measures how far off predictions are.

    Predictions of `None` count for neither mean absolute error nor kappa.

    Attributes
    ----------
    mean_absolute_error
        How far the predicted label is from the true one.
    quadratic_kappa
        Cohen's kappa with squared distances between labels as weights: 1 - the mean squared error / the mean squared
        error of random predictions with the same frequencies.

    Examples
    --------

    >>> from stream_pegasos.evaluation.class_scores import ClassOutcomes, OrderedScore

    >>> probabilities = [0.5] * 4
    >>> score = OrderedScore().after(
    ...     ClassOutcomes([0, 1, 2, 4], [0, 2, 2, 3], probabilities, probabilities)
    ... )
    >>> score.mean_absolute_error, round(score.quadratic_kappa, 3)
    (0.5, 0.852)

    """

    kind = "ordered"
    row_type = OrderedScoreRow

    def __init__(self, window: int = 1_000) -> None:
        super().__init__(window)
        # Over the predictions made: their number; the sums of |error|, error²; of truths and their squares; of
        # predictions and theirs.
        self._sums: Floats = np.zeros(7)

    def _follow_order(self, truths: Integers, predicted: Integers, made: Bools) -> None:
        labels = np.array(self._tally.labels, float)
        truth, prediction = labels[truths[made]], labels[predicted[made]]
        error = prediction - truth
        columns = [np.ones_like(error), abs(error), error**2, truth, truth**2, prediction, prediction**2]
        self._sums += np.sum(columns, axis=1)

    @property
    def mean_absolute_error(self) -> float:
        return ratio(self._sums[1], self._sums[0])

    @property
    def quadratic_kappa(self) -> float:
        n, _, squares, truth, truth2, prediction, prediction2 = self._sums.tolist()
        by_chance = ratio(n * (truth2 + prediction2) - 2 * truth * prediction, n * n)
        return 1.0 - ratio(ratio(squares, n), by_chance)

    def figures(self) -> dict[str, float]:
        figures = super().figures()
        return {
            "accuracy": figures.pop("accuracy"),
            "mean_absolute_error": self.mean_absolute_error,
            "quadratic_kappa": self.quadratic_kappa,
            **figures,
        }

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "sums": self._sums.tolist()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        sums = np.array(state["sums"], float).reshape(7)
        super().set_state(state)
        self._sums = sums
