"""The base class of scores: counts by class, calibration, and rows of metrics."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stream_pegasos.common.errors import must_be
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.evaluation.metric_names import ROWS, list_metrics
from stream_pegasos.learners.label_policy import Label, check_label
from stream_pegasos.learners.predictions import joined

__all__ = [
    "FEWEST_IN_TENTH",
    "ClassRow",
    "ConfusedRow",
    "OtherRow",
    "PredictedExamples",
    "Reliability",
    "Score",
    "Tally",
    "added",
    "newest",
    "no_sets",
    "ratio",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]

# The largest number of pairs of confused classes; with more, the rarer half is forgotten.
MOST_PAIRS = 20_000
TENTHS = 10
FEWEST_IN_TENTH = 30  # examples; with fewer the share is mostly chance, and is not drawn


def no_sets() -> Floats:
    return np.zeros((0, 2))


class ClassRow(NamedTuple):
    """The quality of predictions for one class, which occurred `count` times."""

    label: Label
    precision: float
    recall: float
    f1: float
    count: int  # type: ignore[assignment]


class OtherRow(NamedTuple):
    """The quality of predictions for several classes, with their counts summed."""

    n_classes: int
    precision: float
    recall: float
    f1: float
    count: int  # type: ignore[assignment]


class ConfusedRow(NamedTuple):
    """The number of times that one class was predicted instead of another."""

    truth: Label
    predicted: Label
    count: int  # type: ignore[assignment]


@dataclass
class PredictedExamples:
    """Predictions and true labels, the input of scores. Lists and arrays have an item for each example; tuples apply to
    all examples.
    """

    truths: list[Any]
    predicted: list[Any]

    @property
    def n(self) -> int:
        return len(self.truths)

    def part(self, begin: int, end: int) -> Self:
        """The outcomes of the examples from `begin` to `end`."""
        columns: list[Any] = [
            column if isinstance(column, tuple) else column[begin:end] for column in vars(self).values()
        ]
        return type(self)(*columns)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The outcomes of all parts, one after the other. Tuples come from the last part."""
        return cls(*map(_joined, zip(*(vars(part).values() for part in parts), strict=True)))


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[-1], tuple):
        return parts[-1]
    return list(chain(*parts)) if isinstance(parts[-1], list) else joined([*parts], 0)


class Score(ABC):
    """The quality of predictions on a growing stream. Separate metrics cover the `window` newest examples. No metric
    counts the `n_unanswered`.
    """

    kind: str  # "classes", "ordered" or "several labels"
    n_sums = 0
    n_columns = 1  # columns for each of the newest examples; the first is 1 if it was right

    def __init__(self, window: int = 1_000) -> None:
        if window < 1:
            raise ValueError(must_be("window", "at least 1 example", window))
        self.window = window
        self.n = self.n_unanswered = 0
        self.tally = Tally()
        self._log_loss = 0.0
        self._reliability = Reliability()
        self._newest: Floats = np.zeros((0, self.n_columns))
        self._sums: Floats = np.zeros(self.n_sums)
        self._sets: Floats = np.zeros(
            4
        )  # number of sets, of those with the right label, of labels in them, of sets with one label
        self._newest_sets: Floats = np.zeros((0, 1))

    def __repr__(self) -> str:
        metrics = {name: value for name, value in self.metrics().items() if not name.startswith("window_")}
        figures = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        return f"<{type(self).__name__} of {self.n:,} messages: {figures}>"

    @property
    def n_answered(self) -> int:
        return self.n - self.n_unanswered

    @property
    def positive(self) -> Label | None:
        """The positive label; `None` if there is none or it is unknown."""
        return None

    @property
    def has_positive(self) -> bool:
        """Whether one of two classes is the positive one."""
        return False

    @property
    @abstractmethod
    def accuracy(self) -> float:
        """The share of right predictions."""

    @property
    def window_accuracy(self) -> float:
        return ratio(self._newest[:, 0].sum(), len(self._newest))

    @property
    def log_loss(self) -> float:
        """The mean of -log P(true label)."""
        return ratio(self._log_loss, self.n_answered)

    @property
    def _shown_reliability(self) -> Reliability:
        return self._reliability

    @property
    def reliability(self) -> Floats:
        """For each tenth of the probabilities: the number of predictions, their mean probability, and the share that
        came true.
        """
        return self._shown_reliability.rows

    @property
    def calibration_error(self) -> float:
        """The mean distance between the mean probability of a tenth and the share that came true."""
        sums = self._shown_reliability.sums
        return ratio(float(np.abs(sums[:, 1] - sums[:, 2]).sum()), sums[:, 0].sum())

    @property
    def micro_f1(self) -> float:
        """The F1 of all decisions together. With one label per example, this is the accuracy."""
        tally = self.tally
        return ratio(2 * tally.right.sum(), tally.occurred.sum() + tally.predicted.sum())

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occurred or were predicted."""
        total = self.tally.occurred + self.tally.predicted
        return ratio(float((2 * self.tally.right / np.maximum(total, 1)).sum()), int(np.count_nonzero(total)))

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall of the classes that occurred."""
        has_examples = self.tally.occurred > 0
        return ratio(
            float((self.tally.right[has_examples] / self.tally.occurred[has_examples]).sum()), int(has_examples.sum())
        )

    @property
    def has_sets(self) -> bool:
        """Whether a coverage was asked for."""
        return bool(self._sets[0])

    @property
    def coverage(self) -> float:
        """The share of sets that contain the right label, or all right labels."""
        return ratio(self._sets[1], self._sets[0])

    @property
    def window_coverage(self) -> float:
        return ratio(self._newest_sets.sum(), len(self._newest_sets))

    @property
    def set_size(self) -> float:
        """The mean number of labels in a set."""
        return ratio(self._sets[2], self._sets[0])

    @property
    def sets_of_one(self) -> float:
        """The share of sets with a single label."""
        return ratio(self._sets[3], self._sets[0])

    def _count_sets(self, in_sets: Floats) -> None:
        """Count the sets that contain the right labels, and their sizes."""
        is_covered, sizes = in_sets.T
        self._sets = self._sets + np.array(
            [len(is_covered), is_covered.sum(), sizes.sum(), np.count_nonzero(sizes == 1.0)]
        )
        self._newest_sets = newest(self._newest_sets, is_covered[:, np.newaxis], self.window)

    @abstractmethod
    def update(self, outcomes: Any) -> None:
        """Count outcomes."""

    def add(self, other: Self) -> None:
        """Add the counts of another score of this kind; its newest examples come last."""
        self.n += other.n
        self.n_unanswered += other.n_unanswered
        self.tally.add_tally(other.tally)
        self._log_loss += other._log_loss
        self._reliability.sums += other._reliability.sums
        self._sums = self._sums + other._sums_beside(self)
        self._newest = newest(self._newest, other._newest, self.window)
        self._sets = self._sets + other._sets
        self._newest_sets = newest(self._newest_sets, other._newest_sets, self.window)

    def _sums_beside(self, other: Self) -> Floats:
        """The sums, converted for addition to another score's."""
        return self._sums

    def metric(self, name: str) -> float:
        """The value of the metric with this name."""
        value: float = getattr(self, name)
        return value

    def metrics(self) -> dict[str, float]:
        """All metrics by name; the most important is the first."""
        return {
            metric.name: self.metric(metric.name)
            for metric in list_metrics(self.kind)
            if (self.has_positive or not metric.of_positive) and (self.has_sets or not metric.of_sets)
        }

    def row(self, seconds: float = math.nan) -> Any:
        """A row of a curve: the present metrics, as a named tuple that begins with `n` and ends with `seconds`."""
        kind = ROWS[self.kind]
        return kind(self.n, *map(self.metric, kind._fields[1:-1]), seconds)

    def class_rows(self, limit: int | None = None) -> list[ClassRow]:
        return self.tally.class_rows(limit)

    def others(self, limit: int) -> OtherRow | None:
        return self.tally.others(limit)

    def confused(self, limit: int | None = None) -> list[ConfusedRow]:
        return self.tally.confused(limit)

    def get_state(self) -> dict[str, Any]:
        """All counts as JSON values."""
        return {
            "kind": self.kind,
            "n": self.n,
            "n_unanswered": self.n_unanswered,
            "tally": self.tally.get_state(),
            "log_loss": self._log_loss,
            "tenths": self._reliability.sums.tolist(),
            "newest": self._newest.astype(int).tolist(),
            "sums": self._sums.tolist(),
            "sets": self._sets.tolist(),
            "newest_sets": self._newest_sets.astype(int).ravel().tolist(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore counts from a state. Raise an ArithmeticError, LookupError, TypeError or ValueError if it is no state
        from `get_state`.
        """
        latest = np.array(state["newest"], float).reshape(-1, self.n_columns)[-self.window :]
        sums = np.array(state["sums"], float).reshape(self.n_sums)
        n, log_loss = int(state["n"]), float(state["log_loss"])
        sets = np.array(state["sets"], float).reshape(4)
        newest_sets = np.array(state["newest_sets"], float).reshape(-1, 1)[-self.window :]
        self._reliability.set_state(state["tenths"])
        self.tally.set_state(state["tally"])
        self._newest, self._sums, self.n, self._log_loss = latest, sums, n, log_loss
        self._sets, self._newest_sets = sets, newest_sets
        self.n_unanswered = int(state["n_unanswered"])


class Tally:
    """Counts for each label: of its occurrences, of its predictions, and of both together; and of confused pairs of
    labels.

    An undefined metric is `nan`: the precision of a label that was never predicted, the recall of one that never
    occurred. With more than 20,000 confused pairs, the rarer half is forgotten.
    """

    def __init__(self) -> None:
        self.labels: list[Label] = []
        self._numbers: dict[Any, int] = {}
        self._counts: Integers = np.zeros((3, 8), np.int64)
        self._pairs: Counter[tuple[int, int]] = Counter()

    def __len__(self) -> int:
        return len(self.labels)

    def label_numbers(self, labels: Iterable[Any]) -> Integers:
        """The number of each label, -1 for `None`. New labels get new numbers."""
        labels = labels if isinstance(labels, list) else list(labels)
        try:
            return np.array([self._numbers[label] for label in labels], np.int64)
        except KeyError:
            return np.array([self._number(label) for label in labels], np.int64)

    def _number(self, label: object) -> int:
        if label is None:
            return -1
        if label not in self._numbers:
            self.labels.append(check_label(label))
            self._numbers[label] = len(self.labels) - 1
            n = self._counts.shape[1]
            if len(self.labels) > n:
                self._counts = np.concatenate([self._counts, np.zeros((3, n), np.int64)], axis=1)
        return self._numbers[label]

    def add(self, occurred: Integers, predicted: Integers, right: Integers) -> None:
        """Count labels by their numbers."""
        size = self._counts.shape[1]
        for row, numbers in zip(self._counts, (occurred, predicted, right), strict=True):
            row += np.bincount(numbers, minlength=size)

    def add_pairs(self, truths: ArrayLike, predicted: ArrayLike, counts: ArrayLike | None = None) -> None:
        """Count confused labels by their numbers."""
        columns = truths, predicted, np.ones_like(truths) if counts is None else counts
        for truth, taken_for, count in zip(*(np.asarray(column).tolist() for column in columns), strict=True):
            self._pairs[truth, taken_for] += count
        if len(self._pairs) > MOST_PAIRS:
            self._pairs = Counter(dict(self._pairs.most_common(MOST_PAIRS // 2)))

    def add_tally(self, other: Tally) -> None:
        numbers = self.label_numbers(other.labels)
        self._counts[:, numbers] += other._counts[:, : len(other)]
        if other._pairs:
            truths, predicted = numbers[np.array([*other._pairs])].T
            self.add_pairs(truths, predicted, np.array([*other._pairs.values()]))

    def label_number(self, label: Label | None) -> int:
        """The number of a known label, or −1."""
        return self._numbers.get(label, -1)

    def row(self, label: Label | None) -> tuple[int, int, int]:
        """The occurrences and predictions of a label, and its right predictions."""
        return tuple(self._counts[:, self._numbers[label]].tolist()) if label in self._numbers else (0, 0, 0)

    @property
    def occurred(self) -> Integers:
        """The number of occurrences of each label."""
        return self._counts[0, : len(self)]

    @property
    def predicted(self) -> Integers:
        """The number of predictions of each label."""
        return self._counts[1, : len(self)]

    @property
    def right(self) -> Integers:
        """The number of right predictions of each label."""
        return self._counts[2, : len(self)]

    def class_rows(self, limit: int | None = None) -> list[ClassRow]:
        """The quality of predictions for each class, the most frequent first."""
        counts = self._counts.T.tolist()
        return [ClassRow(self.labels[number], *_rates(*counts[number])) for number in self._order()[:limit].tolist()]

    def others(self, limit: int) -> OtherRow | None:
        """The sum of the classes that `class_rows(limit)` leaves out; `None` without any."""
        places = self._order()[limit:]
        return OtherRow(len(places), *_rates(*self._counts[:, places].sum(axis=1).tolist())) if len(places) else None

    def _order(self) -> Integers:
        """The numbers of labels, the most frequent first; equally frequent ones in order of arrival."""
        return np.argsort(-self.occurred, kind="stable")

    def confused(self, limit: int | None = None) -> list[ConfusedRow]:
        """The most frequent confusions of two classes."""
        pairs = self._pairs.most_common(limit)
        return [ConfusedRow(self.labels[truth], self.labels[taken_for], count) for (truth, taken_for), count in pairs]

    def get_state(self) -> dict[str, Any]:
        return {
            "labels": [pack(label) for label in self.labels],
            "counts": self._counts[:, : len(self)].tolist(),
            "pairs": [[*pair, count] for pair, count in self._pairs.items()],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore counts from a state. It raises the errors of `Score.set_state`."""
        tally = Tally()
        n = len(tally.label_numbers([unpack(label) for label in state["labels"]]))
        counts = np.array(state["counts"], np.int64).reshape(3, n)
        pairs = np.array(state["pairs"], np.int64).reshape(-1, 3)
        if len(tally) != n or (counts < 0).any() or (pairs[:, :2] < 0).any() or (pairs[:, :2] >= n).any():
            raise ValueError("the state must have counts of classes")
        tally._counts[:, :n] = counts
        tally.add_pairs(*pairs.T)
        self.__dict__.update(tally.__dict__)


class Reliability:
    """The share of predictions that came true, by tenths of their probability."""

    def __init__(self) -> None:
        self.sums: Floats = np.zeros((TENTHS, 3))  # number, sum of probabilities, number that came true

    def update(self, probabilities: Floats, came_true: Bools) -> None:
        is_known = ~np.isnan(probabilities)  # a model may have no probabilities
        probabilities, came_true = probabilities[is_known], came_true[is_known]
        tenth = np.minimum((TENTHS * probabilities).astype(np.intp), TENTHS - 1)
        columns: tuple[Any, ...] = (1.0, probabilities, came_true)
        for column, weights in enumerate(columns):
            np.add.at(self.sums[:, column], tenth, weights)  # in order, so that the size of blocks changes no bit

    @property
    def rows(self) -> Floats:
        """For each tenth: the number of predictions, their mean probability, the share that came true."""
        n = self.sums[:, :1]
        return np.hstack([n, np.divide(self.sums[:, 1:], n, out=np.full((TENTHS, 2), math.nan), where=n > 0)])

    def set_state(self, sums: ArrayLike) -> None:
        self.sums = np.array(sums, float).reshape(TENTHS, 3)

    def mirror(self) -> None:
        """Count the opposite events instead; their probabilities are one minus the old ones."""
        self.sums = self.sums[::-1] * [1, -1, -1] + self.sums[::-1, :1] * [0, 1, 1]


def ratio(part: float, whole: float) -> float:
    """The quotient, `nan` if it is undefined."""
    return float(part / whole) if whole else math.nan


def added(total: float, numbers: Floats) -> float:
    """A total plus numbers, added in order, so that the size of blocks changes no bit."""
    return float(np.add.accumulate(np.append(total, numbers))[-1])


def newest(before: Floats, rows: Sequence[Any] | Floats, window: int) -> Floats:
    """The last `window` rows."""
    return np.concatenate([before, np.asarray(rows, float)])[-window:]


def _rates(occurred: int, predicted: int, right: int) -> tuple[float, float, float, int]:
    return ratio(right, predicted), ratio(right, occurred), ratio(2 * right, occurred + predicted), occurred
