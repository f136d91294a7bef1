"""Scores of predictions of several labels an example."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.evaluation.tallies import LABELS, Bools, Floats, Score, newest, ratio

__all__ = ["LabelOutcomes", "LabelScore", "LabelScoreRow", "labels_that_hold"]

# Pairs of a label that was missed and one that was put instead, counted of one example.
MOST_PAIRS_OF_ONE = 100

Labels = tuple[Any, ...]


def labels_that_hold(y: Any) -> Labels:
    """The labels that hold: a tuple, list or set of them, or those that a dict says `True` of."""
    return tuple(label for label, holds in y.items() if holds) if isinstance(y, Mapping) else tuple(dict.fromkeys(y))


class LabelOutcomes(NamedTuple):
    """Predictions of the labels that hold, and which these turned out to be."""

    truths: list[Labels]
    predicted: list[Labels]
    probabilities: Floats  # a column a label, 0 where it was not known yet
    holds: Bools  # whether the label of the column holds
    n_unknown: NDArray[np.int64]  # how many labels hold that were not known yet

    @property
    def n(self) -> int:
        return len(self.truths)

    def split(self, n: int) -> tuple[LabelOutcomes, LabelOutcomes]:
        """The first n, and the rest."""
        a, b, c, d, e = self
        return LabelOutcomes(a[:n], b[:n], c[:n], d[:n], e[:n]), LabelOutcomes(a[n:], b[n:], c[n:], d[n:], e[n:])

    @classmethod
    def joined(cls, parts: Sequence[LabelOutcomes]) -> LabelOutcomes:
        truths, predicted, probabilities, holds, n_unknown = zip(*parts, strict=True)
        width = max(each.shape[1] for each in probabilities)

        def wide(array: NDArray[Any]) -> NDArray[Any]:
            return np.pad(array, ((0, 0), (0, width - array.shape[1])))

        return cls(
            list(chain(*truths)),
            list(chain(*predicted)),
            np.concatenate([*map(wide, probabilities)]),
            np.concatenate([*map(wide, holds)]),
            np.concatenate(n_unknown),
        )

    @classmethod
    def of(
        cls, truths: Iterable[Any], predicted: Iterable[Any], classes: Sequence[Any], probabilities: Floats
    ) -> LabelOutcomes:
        """Outcomes, given a column of probabilities for each of `classes`; that of a label yet to come is 0."""
        truths, predicted = [labels_that_hold(y) for y in truths], [labels_that_hold(y) for y in predicted]
        columns = {label: column for column, label in enumerate(classes)}
        holds = np.zeros((len(truths), len(classes)), bool)
        n_unknown = np.zeros(len(truths), np.int64)
        for row, labels in enumerate(truths):
            there = [columns[label] for label in labels if label in columns]
            holds[row, there] = True
            n_unknown[row] = len(labels) - len(there)
        n_unknown += (holds & ~(probabilities > 0.0)).sum(axis=1)
        return cls(truths, predicted, probabilities, holds, n_unknown)


class LabelScoreRow(NamedTuple):
    """The scores of several labels after the first `n` examples, a row of the prequential curve."""

    n: int
    micro_f1: float
    macro_f1: float
    exact_matches: float
    hamming_loss: float
    log_loss: float
    calibration_error: float
    window_micro_f1: float
    seconds: float


class LabelScore(Score):
    """Metrics of predictions of several labels an example, updated in bulk.

    Each label of each example is a decision. Micro F1 counts all decisions together; macro F1 is the mean over the
    labels that occurred or were predicted. The Hamming loss is the share of wrong decisions, over all labels met so
    far. Log loss and calibration count the labels that were known when an example was predicted. In the log loss, a
    label that holds but was not known yet has the probability 1/2.

    Parameters
    ----------
    window
        How many of the newest examples `window_accuracy` and `window_micro_f1` count.

    Attributes
    ----------
    accuracy, exact_matches
        The share of examples with all labels right.

    Examples
    --------

    >>> import numpy as np
    >>> from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore

    >>> probabilities = np.array([[0.9, 0.2], [0.8, 0.6]])
    >>> score = LabelScore()
    >>> score.update(
    ...     LabelOutcomes.of(
    ...         [("oil",), ("gas",)], [("oil",), ("oil", "gas")], ("oil", "gas"), probabilities
    ...     )
    ... )
    >>> score.micro_f1, score.exact_matches, score.hamming_loss
    (0.8, 0.5, 0.25)

    """

    kind = LABELS
    row_type = LabelScoreRow

    def __init__(self, window: int = 1_000) -> None:
        super().__init__(window)
        self._n = 0
        self._n_exact = 0
        self._n_decisions = 0  # that the log loss is about
        self._newest: Floats = np.zeros((0, 3))  # whether exact, twice the labels that are right, labels in all

    def update(self, outcomes: LabelOutcomes) -> None:
        truths, predicted, probabilities, holds, n_unknown = outcomes
        right: list[Any] = []
        confused: list[tuple[Any, Any]] = []
        rows: list[tuple[bool, int, int]] = []
        for truth, prediction in zip(truths, predicted, strict=True):
            both = [label for label in prediction if label in truth]
            right += both
            is_exact = len(both) == len(truth) == len(prediction)
            rows.append((is_exact, 2 * len(both), len(truth) + len(prediction)))
            if not is_exact and len(both) < min(len(truth), len(prediction)):
                missed = [label for label in truth if label not in both]
                instead = [label for label in prediction if label not in both]
                confused += list(product(missed, instead))[:MOST_PAIRS_OF_ONE]
        numbers = self.tally.numbers_of
        occurred, said = numbers(chain(*truths)), numbers(chain(*predicted))
        self.tally.add(occurred, said, numbers(right))
        self.tally.add_pairs(*(numbers(column) for column in zip(*confused, strict=True)) if confused else ((), ()))
        self._n += len(rows)
        self._newest = newest(self._newest, np.array(rows, float).reshape(-1, 3), self.window)
        self._n_exact += sum(is_exact for is_exact, _, _ in rows)
        known = probabilities > 0.0
        p, h = probabilities[known], holds[known]
        self._reliability.update(p, h)
        self._log_loss -= float(np.log(np.clip(np.where(h, p, 1.0 - p), 1e-15, 1.0)).sum())
        self._log_loss += math.log(2.0) * int(n_unknown.sum())
        self._n_decisions += len(p) + int(n_unknown.sum())

    @property
    def n(self) -> int:
        return self._n

    @property
    def exact_matches(self) -> float:
        return ratio(self._n_exact, self._n)

    accuracy = exact_matches

    @property
    def window_accuracy(self) -> float:
        return ratio(self._newest[:, 0].sum(), len(self._newest))

    @property
    def window_micro_f1(self) -> float:
        """The micro F1 over the newest examples."""
        return ratio(self._newest[:, 1].sum(), self._newest[:, 2].sum())

    @property
    def hamming_loss(self) -> float:
        """The share of wrong decisions."""
        tally = self.tally
        n_wrong = tally.occurred.sum() + tally.predicted.sum() - 2 * tally.right.sum()
        return ratio(n_wrong, self._n * len(tally))

    @property
    def log_loss(self) -> float:
        return ratio(self._log_loss, self._n_decisions)

    def figures(self) -> dict[str, float]:
        return {
            "micro_f1": self.micro_f1,
            "macro_f1": self.macro_f1,
            "exact_matches": self.exact_matches,
            "hamming_loss": self.hamming_loss,
            "log_loss": self.log_loss,
            "calibration_error": self.expected_calibration_error,
            "window_micro_f1": self.window_micro_f1,
        }

    def get_state(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "n": self._n,
            "n_exact": self._n_exact,
            "tally": self.tally.get_state(),
            "log_loss": self._log_loss,
            "n_decisions": self._n_decisions,
            "tenths": self._reliability.sums.tolist(),
            "newest": self._newest.astype(int).tolist(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        tenths = np.array(state["tenths"], float).reshape(10, 3)
        latest = np.array(state["newest"], float).reshape(-1, 3)[-self.window :]
        n, n_exact, n_decisions = (int(state[name]) for name in ("n", "n_exact", "n_decisions"))
        log_loss = float(state["log_loss"])
        self.tally.set_state(state["tally"])
        self._n, self._n_exact, self._n_decisions = n, n_exact, n_decisions
        self._reliability.sums, self._newest, self._log_loss = tenths, latest, log_loss
