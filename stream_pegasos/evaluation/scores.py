"""Scores of predictions that grow with the stream: those of two classes, and which score a model gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stream_pegasos.evaluation.class_scores import ClassOutcomes, ClassScore, OrderedScore
from stream_pegasos.evaluation.label_scores import LabelScore
from stream_pegasos.evaluation.tallies import Bools, Floats, Reliability, Score, Tally, newest, ratio
from stream_pegasos.learners.labels import Label

__all__ = ["Outcomes", "PrequentialScore", "ScoreRow", "kind_of", "new_score", "score_of_state"]

# Of margins of either sign; 200 · asinh(64 · margin) is beyond them for margins beyond 3.8 million.
_BINS = 4_000


class Outcomes(NamedTuple):
    """Predictions of examples of two classes, and which these turned out to be: what scores are made of."""

    y: Bools  # whether positive
    margins: Floats
    probabilities: Floats  # of the positive label
    predicted: NDArray[np.int8]  # 1 for the positive label, 0 for the negative one, −1 where the model could not say
    classes: tuple[Label | None, ...] = (None, None)  # the negative and the positive one, once they are known

    @property
    def n(self) -> int:
        return len(self.y)

    def split(self, n: int) -> tuple[Outcomes, Outcomes]:
        """The first n, and the rest."""
        y, margins, probabilities, predicted, classes = self
        return (
            Outcomes(y[:n], margins[:n], probabilities[:n], predicted[:n], classes),
            Outcomes(y[n:], margins[n:], probabilities[n:], predicted[n:], classes),
        )

    @classmethod
    def joined(cls, parts: Sequence[Outcomes]) -> Outcomes:
        y, margins, probabilities, predicted, classes = zip(*parts, strict=True)
        together = np.concatenate
        return cls(together(y), together(margins), together(probabilities), together(predicted), classes[-1])

    def turned(self, classes: tuple[Label | None, ...]) -> Outcomes:
        """The same for a model whose negative and positive label are these, of which the other may be positive here."""
        negative, positive = self.classes
        if (negative is None or negative != classes[1]) and (positive is None or positive != classes[0]):
            return self._replace(classes=classes)
        predicted = np.where(self.predicted < 0, self.predicted, 1 - self.predicted)
        return Outcomes(~self.y, -self.margins, 1.0 - self.probabilities, predicted, classes)

    def as_classes(self) -> ClassOutcomes:
        """The same as outcomes of several classes."""
        both = np.array([1.0 - self.probabilities, self.probabilities]).T
        labels = (*self.classes, None)
        truths, predicted = ([labels[i] for i in column.astype(int)] for column in (self.y, self.predicted))
        return ClassOutcomes.of(truths, predicted, self.classes, both)


class ScoreRow(NamedTuple):
    """The scores after the first `n` examples, a row of the prequential curve."""

    n: int
    accuracy: float
    balanced_accuracy: float
    f1: float
    roc_auc: float
    log_loss: float
    window_accuracy: float
    seconds: float


class PrequentialScore(Score):
    """Binary classification metrics over a growing stream, updated in bulk.

    A metric is `nan` where it is undefined: all metrics before the first example, balanced accuracy and ROC AUC while
    the stream has one class, F1 while no example is positive or predicted positive.

    Parameters
    ----------
    window
        How many of the newest examples `window_accuracy` and `window_roc_auc` count.
    exact
        Whether `roc_auc` is exact, which takes 8 bytes an example. If not, margins are counted in 8,001 bins, in
        constant memory; the width of a bin is 1/200 of the margin, or 1/12,800 near 0.

    Attributes
    ----------
    n
        The number of examples.
    classes
        The negative and the positive label, where `after` told them.
    confusion_matrix
        The counts, as `confusion_matrix[truth, prediction]` with 0 for negative, 1 for positive.
    unanswered
        How many negative and how many positive examples had no answer. They count as wrong, but no negative one as a
        false alarm.
    reliability
        One row for each tenth of the probabilities of the positive label, from 0 to 1: the number of examples, their
        mean probability and the share of positive ones.

    Examples
    --------

    >>> from stream_pegasos.evaluation.scores import PrequentialScore

    >>> score = PrequentialScore()
    >>> score.update(
    ...     [True, False, True], margins=[0.4, -1.2, -0.1], probabilities=[0.6, 0.2, 0.45]
    ... )
    >>> score.confusion_matrix
    array([[1, 0],
           [1, 1]])
    >>> round(score.accuracy, 3), round(score.f1, 3), score.roc_auc
    (0.667, 0.667, 1.0)

    """

    kind = "two classes"
    row_type = ScoreRow

    def __init__(self, window: int = 1_000, exact: bool = True) -> None:
        super().__init__(window)
        self.classes: tuple[Label | None, ...] = (None, None)
        self.confusion_matrix: NDArray[np.int64] = np.zeros((2, 2), np.int64)
        self.unanswered: NDArray[np.int64] = np.zeros(2, np.int64)
        self._newest: Floats = np.zeros((0, 3))  # whether positive, whether right, margin
        self._ranking: _Margins | _MarginCounts = _Margins() if exact else _MarginCounts()

    def update(
        self,
        y: ArrayLike,
        margins: ArrayLike,
        probabilities: ArrayLike,
        predicted: ArrayLike | None = None,
    ) -> None:
        """Add examples.

        Parameters
        ----------
        y
            Whether each example is positive.
        margins
            The margins that were predicted.
        probabilities
            The probabilities of the positive label that were predicted.
        predicted
            1 where the positive label was predicted, 0 where the negative one was, −1 where there was no answer; by
            default, whether the margin is above 0.

        """
        y, margins = np.asarray(y, bool), np.asarray(margins, float)
        probabilities = np.asarray(probabilities, float)
        predicted = np.asarray(margins > 0 if predicted is None else predicted, np.int8)
        answered = predicted >= 0
        counts = np.bincount((2 * y + predicted)[answered], minlength=4)
        of_truth = np.clip(np.where(y, probabilities, 1 - probabilities), 1e-15, 1.0)
        self.confusion_matrix += counts.reshape(2, 2)
        self.unanswered += np.bincount(y[~answered], minlength=2)
        self._log_loss -= float(np.log(of_truth).sum())
        self._reliability.update(probabilities, y)
        self._newest = newest(self._newest, np.column_stack([y, y == predicted, margins]), self.window)
        self._ranking.update(y, margins)

    @property
    def n(self) -> int:
        return int(self.confusion_matrix.sum() + self.unanswered.sum())

    @property
    def accuracy(self) -> float:
        """The share of right predictions."""
        return ratio(self.confusion_matrix.trace(), self.n)

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the two classes' shares of right predictions."""
        (tn, _), (_, tp) = self.confusion_matrix
        n_negative, n_positive = self.confusion_matrix.sum(axis=1) + self.unanswered
        return (ratio(tp, n_positive) + ratio(tn, n_negative)) / 2

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of the positive label."""
        (_, fp), (fn, tp) = self.confusion_matrix
        return ratio(2 * tp, 2 * tp + fp + fn + self.unanswered[1])

    @property
    def window_accuracy(self) -> float:
        """The accuracy over the newest examples."""
        return ratio(self._newest[:, 1].sum(), len(self._newest))

    @property
    def roc_auc(self) -> float:
        """The share of pairs in which the positive example has the higher margin; a tie is half."""
        return self._ranking.roc_auc

    @property
    def window_roc_auc(self) -> float:
        """The same over the newest examples."""
        ranking = _Margins()
        ranking.update(self._newest[:, 0] == 1.0, self._newest[:, 2])
        return ranking.roc_auc

    def after(self, outcomes: Any) -> Score:
        """The score that has taken in outcomes too: this one or, where they are of several classes, one of these.

        That one goes on from all that was counted here. What is new in it is the calibration of the predicted class: of
        the time with two classes it supposes that the more probable one was predicted.
        """
        if not isinstance(outcomes, Outcomes):
            return self._as_several().after(outcomes)
        positive = self.classes[1]
        # A model that met 1 took it for positive; when 2 follows, 1 turns out to be negative.
        if positive is not None and positive != outcomes.classes[1]:
            self.swap()
        self.classes = outcomes.classes
        self.update(outcomes.y, outcomes.margins, outcomes.probabilities, outcomes.predicted)
        return self

    def _as_several(self) -> ClassScore:
        of_more_probable = Reliability()
        sums = self._reliability.sums
        of_more_probable.sums[5:] = sums[5:] + (sums[4::-1] * [1, -1, -1] + sums[4::-1, :1] * [0, 1, 1])
        return ClassScore.going_on(self.window, self.tally(), self._log_loss, of_more_probable, self._newest[:, 1])

    def tally(self) -> Tally:
        tally = Tally()
        counts = np.column_stack([self.confusion_matrix, self.unanswered])
        for truth in np.flatnonzero(counts.any(axis=1)).tolist():
            for predicted in np.flatnonzero(counts[truth]).tolist():
                i, j = tally.numbers_of([self.classes[truth], (*self.classes, None)[predicted]]).tolist()
                tally.add_counts(i, j, int(counts[truth, predicted]))
        return tally

    def swap(self) -> None:
        """Exchange the two classes, as a model does whose second label shows the first positive."""
        self.confusion_matrix, self.unanswered = self.confusion_matrix[::-1, ::-1].copy(), self.unanswered[::-1].copy()
        self._ranking.swap()
        self._newest = self._newest * [-1, 1, -1] + [1, 0, 0]
        self._reliability.mirror()

    def figures(self) -> dict[str, float]:
        return {
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "f1": self.f1,
            "roc_auc": self.roc_auc,
            "log_loss": self.log_loss,
            "calibration_error": self.expected_calibration_error,
            "window_accuracy": self.window_accuracy,
        }

    def get_state(self) -> dict[str, Any]:
        """All that has been counted, as JSON values; not where `exact`."""
        return {
            "confusion_matrix": self.confusion_matrix.tolist(),
            "unanswered": self.unanswered.tolist(),
            "log_loss": self._log_loss,
            "tenths": self._reliability.sums.tolist(),
            "newest": self._newest.tolist(),
            "margin_counts": self._ranking.get_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over what has been counted elsewhere.

        Raises
        ------
        ArithmeticError, LookupError, TypeError, ValueError
            If it is nothing that `get_state` gives.
        """
        confusion_matrix = np.array(state["confusion_matrix"], np.int64).reshape(2, 2)
        unanswered = np.array(state["unanswered"], np.int64).reshape(2)
        tenths = np.array(state["tenths"], float).reshape(10, 3)
        latest = np.array(state["newest"], float).reshape(-1, 3)[-self.window :]
        self._ranking.set_state(state["margin_counts"])
        self.confusion_matrix, self.unanswered = confusion_matrix, unanswered
        self._reliability.sums, self._newest = tenths, latest
        self._log_loss = float(state["log_loss"])


class _Margins:
    """All margins of either class. ROC AUC counts the pairs that are in order; counting those between old and new
    margins, both sorted, makes a curve of exact values cheap.
    """

    def __init__(self) -> None:
        self._new: list[tuple[Bools, Floats]] = []
        self._positive: Floats = np.zeros(0)
        self._negative: Floats = np.zeros(0)
        self._half_pairs = 0

    def update(self, y: Bools, margins: Floats) -> None:
        self._new.append((y, margins))

    @property
    def roc_auc(self) -> float:
        self._merge()
        return ratio(self._half_pairs, 2 * len(self._positive) * len(self._negative))

    def swap(self) -> None:
        self._merge()
        self._positive, self._negative = -self._negative[::-1], -self._positive[::-1]

    def get_state(self) -> Any:
        raise ValueError("exact scores are not written down: use exact=False")

    def set_state(self, state: Any) -> None:
        self.get_state()

    def _merge(self) -> None:
        """Sort the new margins in."""
        if not self._new:
            return
        y, margins = (np.concatenate(arrays) for arrays in zip(*self._new, strict=True))
        positive, negative = np.sort(margins[y]), np.sort(margins[~y])
        self._half_pairs += (
            _half_pairs(self._positive, negative)
            + _half_pairs(positive, self._negative)
            + _half_pairs(positive, negative)
        )
        self._positive = np.insert(self._positive, np.searchsorted(self._positive, positive), positive)
        self._negative = np.insert(self._negative, np.searchsorted(self._negative, negative), negative)
        self._new.clear()


class _MarginCounts:
    """How many margins of either class are in each bin."""

    def __init__(self) -> None:
        self._counts: NDArray[np.int64] = np.zeros((2, 2 * _BINS + 1), np.int64)  # negatives, positives

    def update(self, y: Bools, margins: Floats) -> None:
        # Nearly margin · 12,800 where the margin is small, and 200 · log(margin) where it is large.
        bins = np.rint(200 * np.arcsinh(64 * margins)).clip(-_BINS, _BINS).astype(np.intp) + _BINS
        np.add.at(self._counts, (y.astype(np.intp), bins), 1)

    @property
    def roc_auc(self) -> float:
        negatives, positives = self._counts.astype(float)  # as the number of pairs may be beyond any int64
        half_pairs = (positives * (2 * np.cumsum(negatives) - negatives)).sum()
        return ratio(half_pairs, 2 * negatives.sum() * positives.sum())

    def swap(self) -> None:
        self._counts = self._counts[::-1, ::-1].copy()

    def get_state(self) -> Any:
        """For each bin that has any: its number, and the counts of negatives and of positives."""
        bins = np.flatnonzero(self._counts.any(axis=0))
        return np.column_stack([bins, self._counts[:, bins].T]).tolist()

    def set_state(self, state: Any) -> None:
        bins, negatives, positives = np.array(state, np.int64).reshape(-1, 3).T
        self._counts[:] = 0
        self._counts[:, bins] = negatives, positives


def _half_pairs(positive: Floats, negative: Floats) -> int:
    """Twice the number of pairs in which the positive margin is higher, plus the ties."""
    if len(positive) < len(negative):
        return _half_ranks(negative, positive)
    return 2 * len(positive) * len(negative) - _half_ranks(positive, negative)


def _half_ranks(ordered: Floats, values: Floats) -> int:
    left, right = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return int(left.sum() + right.sum())


def kind_of(model: Any) -> str:
    """The kind of score that a model gets: "several labels", "ordered", "several classes" or "two classes"."""
    for kind in (LabelScore.kind, OrderedScore.kind):
        if kind in model.capabilities:
            return kind
    return PrequentialScore.kind if model.has_one_margin else ClassScore.kind


def new_score(model: Any, window: int = 1_000, exact: bool = True) -> Score:
    """A score for what a model is going to predict. One of two classes becomes one of several when a third is met.

    Parameters
    ----------
    model
        The model.
    window
        The number of newest examples that some figures are also given for.
    exact
        Whether ROC AUC is exact, as in `PrequentialScore`.
    """
    kind = kind_of(model)
    if kind == PrequentialScore.kind:
        return PrequentialScore(window, exact)
    return next(score(window) for score in SEVERAL if score.kind == kind)


def score_of_state(state: Mapping[str, Any], model: Any, window: int = 1_000) -> Score:
    """The score that `get_state` wrote down, for the model that stood beside it.

    Raises
    ------
    ArithmeticError, LookupError, TypeError, ValueError
        If it is nothing that `get_state` gives, or of another kind than the model's.
    """
    kind = state.get("kind", PrequentialScore.kind)  # which writes none
    there, wanted = kind in (LabelScore.kind, OrderedScore.kind), kind_of(model)
    if kind != wanted and (there or wanted != PrequentialScore.kind):
        raise ValueError(f"a score of {kind} beside a model of {wanted}")
    if kind == PrequentialScore.kind:
        score = PrequentialScore(window, exact=False)
        score.classes = model.classes
        score.set_state(state)
        return score
    other = next(score(window) for score in SEVERAL if score.kind == kind)
    other.set_state(state)
    return other


SEVERAL: tuple[type[ClassScore] | type[LabelScore], ...] = (ClassScore, OrderedScore, LabelScore)
