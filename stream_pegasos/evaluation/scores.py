"""Scores of predictions of one label an example, and which score a model gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from stream_pegasos.evaluation.label_scores import LabelScore
from stream_pegasos.evaluation.ranking import Ranking, RankingInBins
from stream_pegasos.evaluation.tallies import (
    LABELS,
    ORDERED,
    SEVERAL,
    TWO,
    Bools,
    Floats,
    Integers,
    Reliability,
    Score,
    newest,
    ratio,
)
from stream_pegasos.learners.labels import Label

__all__ = [
    "ClassScoreRow",
    "OrderedScore",
    "OrderedScoreRow",
    "Outcomes",
    "PrequentialScore",
    "ScoreRow",
    "kind_of",
    "new_score",
    "score_of_state",
]

NO_MARGINS: Floats = np.zeros(0)


class Outcomes(NamedTuple):
    """Predictions of one label an example, and which label each turned out to have: what scores are made of."""

    truths: list[Any]
    predicted: list[Any]  # `None` where the model could not say
    of_truth: Floats  # the probability of what came true
    of_predicted: Floats  # and of what was predicted
    # Where one margin tells two classes apart: the negative and the positive label, `None` until it is known, and the
    # margins.
    classes: tuple[Label | None, ...] = ()
    margins: Floats = NO_MARGINS

    @property
    def n(self) -> int:
        return len(self.truths)

    @property
    def is_positive(self) -> Bools:
        """Whether each example is positive, of two classes."""
        return np.fromiter((label == self.classes[1] for label in self.truths), bool, self.n)

    def split(self, n: int) -> tuple[Outcomes, Outcomes]:
        """The first n, and the rest."""
        a, b, c, d, classes, margins = self
        return (
            Outcomes(a[:n], b[:n], c[:n], d[:n], classes, margins[:n]),
            Outcomes(a[n:], b[n:], c[n:], d[n:], classes, margins[n:]),
        )

    @classmethod
    def joined(cls, parts: Sequence[Outcomes]) -> Outcomes:
        truths, predicted, of_truth, of_predicted, classes, margins = zip(*parts, strict=True)
        return cls(
            list(chain(*truths)),
            list(chain(*predicted)),
            np.concatenate(of_truth),
            np.concatenate(of_predicted),
            classes[-1],
            np.concatenate(margins),
        )

    def turned(self, classes: tuple[Label | None, ...]) -> Outcomes:
        """The same for a model whose negative and positive label are these, of which the other may be positive here."""
        if not self.classes:
            return self
        exchanged = any(
            mine is not None and mine == other for mine, other in zip(self.classes, classes[::-1], strict=True)
        )
        return self._replace(classes=classes, margins=-self.margins if exchanged else self.margins)

    @classmethod
    def of(
        cls,
        truths: list[Any],
        predicted: list[Any],
        labels: Sequence[Any],
        probabilities: Floats,
        classes: tuple[Label | None, ...] = (),
        margins: Floats = NO_MARGINS,
    ) -> Outcomes:
        """Outcomes, given a column of probabilities for each of `labels`; that of a label yet to come is 0.

        A label that was not known has the probability that it would have had if it and those known were all alike:
        1/(K + 1) beside K known ones, and 1/2 before any; so has every label where the model could not say.
        """
        columns = {label: column for column, label in enumerate(labels) if label is not None}
        # One more column, of zeros, for labels that have none.
        padded = np.concatenate([probabilities, np.zeros((len(truths), 1))], axis=1)
        rows, none = np.arange(len(truths)), len(labels)
        at_truth, at_predicted = (
            np.array([columns.get(label, none) for label in given], np.intp) for given in (truths, predicted)
        )
        of_truth, of_predicted = padded[rows, at_truth], padded[rows, at_predicted]
        unknown = np.flatnonzero((of_truth <= 0.0) | (at_predicted == none))
        if len(unknown):
            there = np.array([*(label is not None for label in labels), False])
            n_known = ((padded[unknown] > 0.0) & there).sum(axis=1)
            of_truth[unknown] = 1.0 / (np.maximum(n_known, 1) + 1)
        return cls(truths, predicted, of_truth, of_predicted, classes, margins)


class ScoreRow(NamedTuple):
    """The scores of two classes after the first `n` examples, a row of the prequential curve."""

    n: int
    accuracy: float
    balanced_accuracy: float
    f1: float
    roc_auc: float
    log_loss: float
    window_accuracy: float
    seconds: float


class ClassScoreRow(NamedTuple):
    """The same of several classes."""

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


class PrequentialScore(Score):
    """Metrics of predictions of one label an example, updated in bulk. Memory stays constant, except for counts of each
    class.

    As long as one margin tells two classes apart, there are also metrics of the positive one and of the ranking. From
    the first example on that is of several classes, these are left out; everything else goes on.

    A metric is `nan` where it is undefined. A prediction of `None`, where the model knew no answer, counts as wrong,
    but as no false alarm, and not in the calibration. Macro F1 is the mean over the classes that occurred or were
    predicted, balanced accuracy over those that occurred.

    Parameters
    ----------
    window
        How many of the newest examples `window_accuracy` and `window_roc_auc` count.
    exact
        Whether `roc_auc` is exact, which takes 8 bytes an example. If not, margins are counted in 8,001 bins, in
        constant memory; the width of a bin is 1/200 of the margin, or 1/12,800 near 0.

    Attributes
    ----------
    classes
        The negative and the positive label of two classes, `None` until it is known.
    reliability, expected_calibration_error
        Those of the probability of the positive label where there are two classes, or else of the predicted one, which
        comes true if the prediction is right.

    Examples
    --------

    >>> from stream_pegasos.evaluation.scores import Outcomes, PrequentialScore

    >>> score = PrequentialScore()
    >>> truths, predicted = ["card", "cash", "card", "fee"], ["card", "card", "card", None]
    >>> score.update(Outcomes(truths, predicted, [0.9, 0.3, 0.6, 0.1], [0.9, 0.7, 0.6, 0]))
    >>> score.accuracy, round(score.macro_f1, 3)
    (0.5, 0.267)
    >>> score.of_classes(1)
    [ClassRow(label='card', precision=0.6666666666666666, recall=1.0, f1=0.8, count=2)]
    >>> score.confused(1)
    [ConfusedRow(truth='cash', predicted='card', count=1)]

    """

    kind = TWO

    def __init__(self, window: int = 1_000, exact: bool = True) -> None:
        super().__init__(window)
        self.classes: tuple[Label | None, ...] = (None, None)
        self._newest: Floats = np.zeros((0, 3))  # whether right, whether positive, margin
        self._ranking: Ranking | RankingInBins = Ranking() if exact else RankingInBins()
        self._of_positive = Reliability()

    @classmethod
    def of_several(cls, window: int = 1_000) -> PrequentialScore:
        """A score for a model in which each class has a margin."""
        score = cls(window)
        score.kind = SEVERAL
        return score

    @property
    def row_type(self) -> Any:
        return ScoreRow if self.kind == TWO else ClassScoreRow

    def update(self, outcomes: Outcomes) -> None:
        """Take in outcomes."""
        truths, predicted = self.tally.numbers_of(outcomes.truths), self.tally.numbers_of(outcomes.predicted)
        right, made = truths == predicted, predicted >= 0
        wrong = ~right & made
        self.tally.add(truths, predicted[made], truths[right])
        self.tally.add_pairs(truths[wrong], predicted[wrong])
        of_truth = np.asarray(outcomes.of_truth, float)
        self._log_loss -= float(np.log(np.clip(of_truth, 1e-15, 1.0)).sum())
        self._reliability.update(np.asarray(outcomes.of_predicted, float)[made], right[made])
        y, margins = np.zeros(outcomes.n, bool), np.zeros(outcomes.n)
        if self.kind == TWO and not self._are_two(outcomes.classes):
            self.kind, self._ranking = SEVERAL, Ranking()  # which is asked for no more
        if self.kind == TWO:
            y, margins = truths == self.tally.number_of(self.classes[1]), outcomes.margins
            self._ranking.update(y, margins)
            self._of_positive.update(np.where(y, of_truth, 1.0 - of_truth), y)
        self._newest = newest(self._newest, np.column_stack([right, y, margins]), self.window)
        self._follow_order(truths, predicted, made)

    def _are_two(self, classes: tuple[Label | None, ...]) -> bool:
        """Whether these are still the two classes; if so, go on with them, also if they have been exchanged."""
        if not classes or len({*self.classes, *classes} - {None}) > 2:
            return False
        # A model that met 1 took it for positive; when 2 follows, 1 turns out to be negative.
        if self.classes[1] is not None and self.classes[1] != classes[1]:
            self._ranking.swap()
            self._newest = self._newest * [1, -1, -1] + [0, 1, 0]
            self._of_positive.mirror()
        self.classes = classes
        return True

    def _follow_order(self, truths: Integers, predicted: Integers, made: Bools) -> None:
        """Classes that have no order: nothing to follow."""

    @property
    def n(self) -> int:
        return int(self.tally.occurred.sum())

    @property
    def accuracy(self) -> float:
        return ratio(self.tally.right.sum(), self.n)

    @property
    def window_accuracy(self) -> float:
        return ratio(self._newest[:, 0].sum(), len(self._newest))

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the recalls of the classes that occurred."""
        return self.tally.balanced_accuracy

    @property
    def confusion_matrix(self) -> Integers:
        """The counts of two classes, as `confusion_matrix[truth, prediction]` with 0 for negative, 1 for positive."""
        cells = [[self.tally.cell(truth, label) for label in self.classes] for truth in self.classes]
        return np.array(cells, np.int64)

    @property
    def unanswered(self) -> Integers:
        """How many negative and how many positive examples had no answer."""
        occurred: Integers = np.array([self.tally.row(label)[0] for label in self.classes])
        unanswered: Integers = occurred - self.confusion_matrix.sum(axis=1)
        return unanswered

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of the positive label."""
        occurred, predicted, right = self.tally.row(self.classes[1])
        return ratio(2 * right, occurred + predicted)

    @property
    def roc_auc(self) -> float:
        """The share of pairs in which the positive example has the higher margin; a tie is half."""
        return self._ranking.roc_auc

    @property
    def window_roc_auc(self) -> float:
        """The same over the newest examples."""
        ranking = Ranking()
        ranking.update(self._newest[:, 1] == 1.0, self._newest[:, 2])
        return ranking.roc_auc

    @property
    def reliability(self) -> Floats:
        return self._of_positive.rows if self.kind == TWO else self._reliability.rows

    @property
    def expected_calibration_error(self) -> float:
        return self._of_positive.error if self.kind == TWO else self._reliability.error

    def figures(self) -> dict[str, float]:
        is_two = self.kind == TWO
        return {
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            **({"f1": self.f1, "roc_auc": self.roc_auc} if is_two else {}),
            **({} if is_two else {"macro_f1": self.macro_f1, "micro_f1": self.micro_f1}),
            "log_loss": self.log_loss,
            "calibration_error": self.expected_calibration_error,
            "window_accuracy": self.window_accuracy,
        }

    def get_state(self) -> dict[str, Any]:
        """All that has been counted, as JSON values; not where `exact`, of two classes."""
        state = {
            "kind": self.kind,
            "tally": self.tally.get_state(),
            "log_loss": self._log_loss,
            "tenths": self._reliability.sums.tolist(),
            "newest": self._newest.tolist(),
        }
        if self.kind == TWO:
            state |= {"margins": self._ranking.get_state(), "tenths_of_positive": self._of_positive.sums.tolist()}
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        tenths = np.array(state["tenths"], float).reshape(10, 3)
        latest = np.array(state["newest"], float).reshape(-1, 3)[-self.window :]
        log_loss = float(state["log_loss"])
        if self.kind == TWO:
            of_positive = np.array(state["tenths_of_positive"], float).reshape(10, 3)
            self._ranking.set_state(state["margins"])
            self._of_positive.sums = of_positive
        self.tally.set_state(state["tally"])
        self._reliability.sums, self._newest, self._log_loss = tenths, latest, log_loss


class OrderedScore(PrequentialScore):
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

    >>> from stream_pegasos.evaluation.scores import OrderedScore, Outcomes

    >>> probabilities = [0.5] * 4
    >>> score = OrderedScore()
    >>> score.update(Outcomes([0, 1, 2, 4], [0, 2, 2, 3], probabilities, probabilities))
    >>> score.mean_absolute_error, round(score.quadratic_kappa, 3)
    (0.5, 0.852)

    """

    kind = ORDERED
    row_type = OrderedScoreRow

    def __init__(self, window: int = 1_000) -> None:
        super().__init__(window)
        # Over the predictions made: their number; the sums of |error|, error²; of truths and their squares; of
        # predictions and theirs.
        self._sums: Floats = np.zeros(7)

    def _follow_order(self, truths: Integers, predicted: Integers, made: Bools) -> None:
        labels = np.array(self.tally.labels, float)
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


def kind_of(model: Any) -> str:
    """The kind of score that a model gets: "several labels", "ordered", "several classes" or "two classes"."""
    for kind in (LABELS, ORDERED):
        if kind in model.capabilities:
            return kind
    return TWO if model.has_one_margin else SEVERAL


def new_score(model: Any, window: int = 1_000, exact: bool = True) -> Score:
    """A score for what a model is going to predict.

    Parameters
    ----------
    model
        The model.
    window
        The number of newest examples that some figures are also given for.
    exact
        Whether ROC AUC is exact, as in `PrequentialScore`.
    """
    return _score(kind_of(model), window, exact)


def _score(kind: str, window: int, exact: bool) -> Score:
    if kind == TWO:
        return PrequentialScore(window, exact)
    if kind == SEVERAL:
        return PrequentialScore.of_several(window)
    return OrderedScore(window) if kind == ORDERED else LabelScore(window)


def score_of_state(state: Mapping[str, Any], model: Any, window: int = 1_000) -> Score:
    """The score that `get_state` wrote down, for the model that stood beside it.

    Raises
    ------
    ArithmeticError, LookupError, TypeError, ValueError
        If it is nothing that `get_state` gives, or of another kind than the model's.
    """
    kind, wanted = state["kind"], kind_of(model)
    # A model of two classes may have been asked about a third one.
    if kind != wanted and {kind, wanted} != {TWO, SEVERAL}:
        raise ValueError(f"a score of {kind} beside a model of {wanted}")
    score: Score = _score(kind, window, exact=False)
    if isinstance(score, PrequentialScore) and kind == TWO:
        score.classes = model.classes
    score.set_state(state)
    return score
