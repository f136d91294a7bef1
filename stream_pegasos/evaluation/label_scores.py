"""Scores of predictions with several labels per example."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.evaluation.tallies import Bools, Floats, PredictedExamples, Score, added, newest, no_sets, ratio
from stream_pegasos.learners.capabilities import LABELS
from stream_pegasos.learners.label_policy import labels_that_hold

__all__ = ["LabelOutcomes", "LabelScore"]

MOST_PAIRS_OF_ONE = 100  # the most pairs of a missed and a wrong label that are counted for one example

Labels = tuple[Any, ...]


@dataclass
class LabelOutcomes(PredictedExamples):
    """Predictions of the labels that hold, and the true labels, both as tuples of labels."""

    probabilities: Floats  # a column for each label, 0 if it was not known yet
    holds: Bools  # whether the column's label holds
    n_unknown: NDArray[np.int64]  # the number of labels that hold but were not known yet
    in_sets: Floats = field(default_factory=no_sets)

    @classmethod
    def of(
        cls, truths: Iterable[Any], predicted: Iterable[Any], classes: Sequence[Any], probabilities: Floats
    ) -> LabelOutcomes:
        """Create outcomes from a column of probabilities for each of `classes`; the probability of a label that has not
        come is 0.
        """
        truths, predicted = [labels_that_hold(y) for y in truths], [labels_that_hold(y) for y in predicted]
        columns = {label: column for column, label in enumerate(classes)}
        holds = np.zeros((len(truths), len(classes)), bool)
        n_unknown = np.zeros(len(truths), np.int64)
        for row, labels in enumerate(truths):
            columns_of_truth = [columns[label] for label in labels if label in columns]
            holds[row, columns_of_truth] = True
            n_unknown[row] = len(labels) - len(columns_of_truth)
        n_unknown += (holds & ~(probabilities > 0.0)).sum(axis=1)
        return cls(truths, predicted, probabilities, holds, n_unknown)


class LabelScore(Score):
    """Metrics of predictions with several labels per example, updated in bulk.

    Each label of each example is a decision. Micro F1 counts all decisions together; macro F1 is the mean over the
    labels that occurred or were predicted. The Hamming loss is the share of wrong decisions, over all labels met so
    far. Accuracy is `exact_matches`, the share of examples with all labels right. Log loss and calibration count the
    labels that were known when an example was predicted. In the log loss, a label that holds but was not known yet has
    the probability 1/2.
    """

    kind = LABELS

    n_sums = 2  # examples with all labels right; decisions counted in the log loss
    n_columns = 3  # whether all are right; twice the number of right labels; predicted plus true labels

    def update(self, outcomes: LabelOutcomes) -> None:
        truths, predicted = outcomes.truths, outcomes.predicted
        self._count_sets(outcomes.in_sets)
        right: list[Any] = []
        confused: list[tuple[Any, Any]] = []
        rows: list[tuple[bool, int, int]] = []
        for truth, prediction in zip(truths, predicted, strict=True):
            common = [label for label in prediction if label in truth]
            right += common
            is_exact = len(common) == len(truth) == len(prediction)
            rows.append((is_exact, 2 * len(common), len(truth) + len(prediction)))
            if not is_exact and len(common) < min(len(truth), len(prediction)):
                missed = [label for label in truth if label not in common]
                instead = [label for label in prediction if label not in common]
                confused += list(product(missed, instead))[:MOST_PAIRS_OF_ONE]
        numbers = self.tally.label_numbers
        self.tally.add(numbers(chain(*truths)), numbers(chain(*predicted)), numbers(right))
        self.tally.add_pairs(*(numbers(column) for column in zip(*confused, strict=True)) if confused else ((), ()))
        self._newest = newest(self._newest, np.array(rows, float).reshape(-1, 3), self.window)
        probabilities, n_unknown = outcomes.probabilities, int(outcomes.n_unknown.sum())
        is_known = probabilities > 0.0
        p, h = probabilities[is_known], outcomes.holds[is_known]
        self._reliability.update(p, h)
        losses = np.where(
            is_known, -np.log(np.clip(np.where(outcomes.holds, probabilities, 1.0 - probabilities), 1e-15, 1.0)), 0.0
        )
        unknown = math.log(2.0) * outcomes.n_unknown[:, np.newaxis]
        self._log_loss = added(self._log_loss, np.hstack([losses, unknown]).ravel())
        self.n += outcomes.n
        self._sums += sum(is_exact for is_exact, _, _ in rows), len(p) + n_unknown

    @property
    def exact_matches(self) -> float:
        return ratio(self._sums[0], self.n)

    accuracy = exact_matches

    @property
    def window_micro_f1(self) -> float:
        """The micro F1 over the newest examples."""
        return ratio(self._newest[:, 1].sum(), self._newest[:, 2].sum())

    @property
    def hamming_loss(self) -> float:
        """The share of wrong decisions."""
        tally = self.tally
        n_wrong = tally.occurred.sum() + tally.predicted.sum() - 2 * tally.right.sum()
        return ratio(n_wrong, self.n * len(tally))

    @property
    def log_loss(self) -> float:
        return ratio(self._log_loss, self._sums[1])
