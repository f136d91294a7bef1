"""Predictions for several examples, and the raw scores behind them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.cached import cached_property
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.probabilities import Floats, know_two

__all__ = [
    "PartlyLearnedError",
    "Predictions",
    "RawScores",
    "WeightedTargets",
    "joined_predictions",
    "largest",
    "uncertainty",
]

Members = NDArray[np.bool_] | None  # whether each label (a column) is in an example's set; `None` without sets
ClassNumbers = tuple[tuple[Label | None, ...], Floats]  # labels, and a column of numbers for each


class Predictions:
    """The predictions of a model for several examples. Labels and probabilities are computed on first use.

    `limited` has the labels with a limit of false positives, and the threshold of each.

    Attributes
    ----------
    scores : numpy.ndarray of float
        The scores that decide. With two classes: a number, above 0 for the positive one. With more: a row of margins,
        in the order of `classes`. With ordered classes: the logarithms of probabilities.
    pair : tuple
        The negative and the positive label, if scores are single numbers; `None` for a label that has not come. Else
        empty.
    labels : numpy.ndarray
        The label predicted for each example, `None` before the first label; a tuple of labels if an example may have
        several.
    classes : tuple
        The labels of the columns of `probabilities`; `None` stands for labels that have not come.
    probabilities : numpy.ndarray of float
        A row for each example, with a column for each class. Rows sum to 1, unless an example may have several labels.
        A single known label has (n + 1) / (n + 2) after n examples, by Laplace's rule of succession, and labels to come
        have the rest.
    sets : list of list, or None
        For each example, the labels in the set for the `coverage`, the most probable first; `None` without a coverage.
    withheld : list of list
        For each example, the labels with a probability above their threshold that a limit of false positives excluded.
    """

    def __init__(
        self,
        scores: Floats,
        find_labels: Callable[[], NDArray[Any]],
        find_probabilities: Callable[[], ClassNumbers],
        limited: Mapping[Label, float] | None = None,
        pair: tuple[Label | None, ...] = (),
        members: Members = None,
    ) -> None:
        self.scores, self._find_labels, self._find_probabilities = scores, find_labels, find_probabilities
        self.limited, self.pair, self.members = limited or {}, pair, members

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return f"<Predictions of {len(self):,} messages: labels {self.labels}, of {self.classes}>"

    def rows(self, places: Any) -> Predictions:
        """The predictions for some of the examples."""
        return self._with(
            self.scores[places],
            self.labels[places],
            self.probabilities[places],
            None if self.members is None else self.members[places],
        )

    def _with(self, scores: Floats, labels: NDArray[Any], probabilities: Floats, members: Members) -> Predictions:
        """Predictions of the same labels for other examples."""
        others = copy.copy(self)
        others.scores, others.members = scores, members
        others.__dict__ |= {"labels": labels, "_said": (self.classes, probabilities)}
        return others

    def __getstate__(self) -> dict[str, Any]:
        labels, said = self.labels, self._said  # computed now, as no pickle holds the functions
        return {**self.__dict__, "_find_labels": None, "_find_probabilities": None, "labels": labels, "_said": said}

    @cached_property
    def labels(self) -> NDArray[Any]:
        return self._find_labels()

    @cached_property
    def _said(self) -> ClassNumbers:
        return self._find_probabilities()

    @property
    def classes(self) -> tuple[Label | None, ...]:
        return self._said[0]

    @property
    def probabilities(self) -> Floats:
        return self._said[1]

    @property
    def class_margins(self) -> ClassNumbers:
        """The labels with a margin, and a column of margins for each. A single score is the margin of the positive
        label; that of the negative one is its negative.
        """
        if self.pair:
            return self.pair, np.stack([-self.scores, self.scores], axis=1)
        return self.classes[: self.scores.shape[1]], self.scores

    @property
    def has_one_score(self) -> bool:
        """Whether an example has a single score, for two classes."""
        return self.scores.ndim == 1

    @property
    def layout(self) -> tuple[Any, ...]:
        """The labels and the width of the columns. Predictions can be joined if they share it."""
        return self.classes, self.pair, self.scores.shape[1:]

    @property
    def sets(self) -> list[list[Label]] | None:
        if self.members is None:
            return None
        sets: list[list[Label]] = [[] for _ in range(len(self))]
        rows, columns = np.nonzero(self.members)
        order = np.lexsort((columns, -self.probabilities[rows, columns], rows)) if len(rows) else rows
        classes: Any = self.classes
        for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
            sets[row].append(classes[column])
        return sets

    @property
    def withheld(self) -> list[list[Label]]:
        label_lists: list[list[Label]] = [[] for _ in range(len(self))]
        labels = self.labels.tolist() if self.limited else []
        for column, label in enumerate(self.classes if self.limited else ()):
            if label is None or label not in self.limited:
                continue
            for row in np.flatnonzero(self.probabilities[:, column] > self.limited[label]).tolist():
                predicted = labels[row]
                if label != predicted and not (isinstance(predicted, tuple) and label in predicted):
                    label_lists[row].append(label)
        return label_lists


def settled(
    scores: Floats,
    labels: NDArray[Any],
    class_probabilities: ClassNumbers,
    limited: Mapping[Label, float] | None = None,
    pair: tuple[Label | None, ...] = (),
    members: Members = None,
) -> Predictions:
    """Predictions with labels and probabilities that are already computed."""
    return Predictions(scores, lambda: labels, lambda: class_probabilities, limited, pair, members)


def joined_predictions(parts: Sequence[Predictions]) -> Predictions:
    """The predictions of all parts, one after the other. All parts must have the same layout."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return first._with(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.probabilities for part in parts]),
        None if first.members is None else np.concatenate([part.members for part in parts]),
    )


def uncertainty(predictions: Predictions) -> Floats:
    """The uncertainty of a model about each message, from 0 to 1: 1 minus the difference of the two largest
    probabilities. If a message may have several labels: 1 minus the smallest difference between yes and no. With fewer
    than two known labels it is 1.
    """
    if not len(predictions):
        return np.ones(0)
    probabilities, unsure = predictions.probabilities, np.ones(len(predictions))
    if isinstance(predictions.labels[0], tuple):
        nearest = np.abs(2.0 * probabilities - 1.0).min(axis=1, initial=1.0)
        return 1.0 - nearest if probabilities.shape[1] else unsure
    if probabilities.shape[1] < 2 or None in (*predictions.classes, *predictions.pair):
        return unsure
    two = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.clip(1.0 - (two[:, 1] - two[:, 0]), 0.0, 1.0)


Decided = NDArray[Any] | None


class WeightedTargets(NamedTuple):
    """Targets and weights of examples, for limits of false positives to learn from."""

    targets: Floats
    weights: Floats

    @classmethod
    def of(cls, targets: Floats, weights: Floats | None) -> WeightedTargets:
        """Targets with their weights, `None` if all are 1."""
        return cls(targets, np.ones(len(targets)) if weights is None else weights)


class RawScores(NamedTuple):
    """Scores of a learner for several examples: margins, their calibration and, unless the margins alone decide, the
    decisions; with a coverage, also the sets.
    """

    margins: Floats
    calibrated: Floats
    decided: Decided = None
    members: Members = None


class PartlyLearnedError(RuntimeError):
    """A drift detector or a model of River raised an error among many examples. The earlier examples are learned.

    Attributes
    ----------
    n_learned : int
        The number of learned examples, which are the first.
    found : RawScores or None
        Their raw scores from before learning.
    predictions : Predictions or None
        Their predictions, if the call returns predictions.
    """

    def __init__(
        self, n_learned: int, raw: RawScores | None, reason: Exception, predictions: Predictions | None = None
    ) -> None:
        super().__init__(n_learned, raw, reason, predictions)
        self.n_learned = n_learned
        self.found = raw
        self.predictions = predictions

    def __str__(self) -> str:
        return f"an example cannot be learned, though {self.n_learned} before it in the call are: {self.args[2]}"


def joined_scores(parts: list[RawScores]) -> RawScores:
    """The raw scores of all parts, one after the other. Later parts may have more columns."""
    decided = [part.decided for part in parts if part.decided is not None]
    if decided and decided[0].ndim == 1:
        decided_parts = [largest(part.margins) if part.decided is None else part.decided for part in parts]
    else:
        decided_parts = decided
    members = [part.members for part in parts if part.members is not None]
    return RawScores(
        joined([part.margins for part in parts], -np.inf),
        joined([part.calibrated for part in parts], np.nan),
        joined(decided_parts, False) if decided_parts else None,
        joined(members, False) if members else None,
    )


def joined(parts: list[NDArray[Any]], missing: float) -> NDArray[Any]:
    """The rows of all parts, one after the other, with `missing` in the columns that a part lacks."""
    width = max(part.shape[1:] for part in parts)
    if all(part.shape[1:] == width for part in parts):
        return np.concatenate(parts)
    result = np.full((sum(map(len, parts)), *width), missing, parts[0].dtype)
    n_done = 0
    for part in parts:
        result[n_done : n_done + len(part), : part.shape[1]] = part
        n_done += len(part)
    return result


def largest(numbers: Floats) -> NDArray[np.intp]:
    """The place of the largest number in each row; −1 if all are −inf."""
    if not numbers.shape[1]:
        return np.full(len(numbers), -1)
    best = numbers.argmax(axis=1)
    return best if know_two(numbers) else np.where(numbers[np.arange(len(numbers)), best] > -np.inf, best, -1)
