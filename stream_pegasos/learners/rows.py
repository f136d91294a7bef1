"""What a classifier does with encoded examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stream_pegasos.common.checks import LARGEST_WEIGHT, check_lengths, check_number
from stream_pegasos.engine import Encoder, Learner, Lock, Vocabulary
from stream_pegasos.features.frames import (
    n_rows,
    some_rows,
)
from stream_pegasos.learners.class_weights import ClassWeight, ClassWeights, plain_weight
from stream_pegasos.learners.explanations import Columns, first_against_second
from stream_pegasos.learners.forgetting import forget_column, forget_idle_names, forget_least
from stream_pegasos.learners.labels import (
    Label,
    Labels,
    Margins,
    SignedLabels,
    are_exchanged,
    label_list,
    n_of_two,
    targets_many,
    unknown_label,
)
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions, RawScores, joined_scores
from stream_pegasos.learners.probabilities import Floats
from stream_pegasos.learners.stateful import Stateful

__all__ = ["RowClassifier"]

# So many rows are read again after features or names were forgotten: few, as most are when that comes often.
READ_AGAIN = 128


class RowClassifier(Stateful):
    """Learns and predicts rows, which are what an encoder of the engine takes; labels get their numbers here.

    An estimator sets up the learner and the labels, and changes what is special to it.
    """

    max_features: int | None = None
    n_drifts: int = 0
    lock: Lock
    _labels: Labels

    @property
    def has_one_margin(self) -> bool:
        raise NotImplementedError

    def _set_up(
        self,
        learner: Learner,
        labels: Labels,
        class_weight: ClassWeight = None,
        watched: bool = False,
        by_margin: bool = True,
    ) -> None:
        """`watched` if something is to see each prediction before its example is learned; `by_margin` if the largest
        margin decides which label is predicted.
        """
        self._learner, self._labels, self._class_weights = learner, labels, ClassWeights(class_weight)
        self._vocabulary = Vocabulary()
        self._set_ways(watched, by_margin)

    def _set_ways(self, watched: bool, by_margin: bool) -> None:
        """Set what is left out where it is not needed, as `_set_up` says."""
        # Whether an example may go straight to the learner, and with a weight of its own.
        self._is_direct = not self._class_weights.is_given and self.max_features is None and not watched
        self._is_direct_with_weight = self._class_weights.is_fixed and not watched
        self._by_margin = by_margin

    @property
    def n_learned(self) -> int:
        """How many examples were learned, or nearly; exact where every example is a step."""
        return self._learner.n_iterations

    def _columns(self) -> dict[Any, int] | None:
        """The column of each class, or of what else has one; `None` where there is one for two classes."""
        return {label: column for column, label in enumerate(self.classes)} if self._learner.several else None

    def learn_row(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        try:
            target = self._labels.targets.get(y)
        except TypeError:
            target = None
        if not isinstance(w, float) or w != 1.0:
            check_number("w", w, 0.0, LARGEST_WEIGHT)
        if target is None or not self._is_direct_with_weight:
            self.learn_rows(encoder, [x], [y], w)
            return
        of_label = self._class_weights.weight
        weight = 1.0 if w == 1.0 and self._is_direct else of_label(self._labels.of_target(target), w)
        if self._learner.learn(encoder, x, target, weight):
            self.forget_names()
        if self.max_features is not None:
            self._forget()

    def learn_rows(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> RawScores:
        """Learn, and say what was found of each example before."""
        y = y if isinstance(y, (list, np.ndarray)) else label_list(y)
        labels, targets = targets_many(self._labels, y)
        if self.has_one_margin and not isinstance(labels, SignedLabels):
            return self._learn_across(encoder, rows, label_list(y), w)
        check_lengths("labels", len(targets), n_rows(rows))
        weights, counts = self._class_weights.weights_many(targets, labels.of_target, w)
        n_before = self.n_learned
        exchanged = self._exchange(are_exchanged(self._labels, labels))
        try:
            found = self._learn_targets(encoder, rows, labels, targets, weights)
        except PartlyLearnedError as error:
            learned = [labels.of_target(target) for target in targets[: error.n_learned].tolist()]
            labels, counts = self._labels.with_labels(learned), self._class_weights.counts_with(learned)
            self._exchange(exchanged != are_exchanged(self._labels, labels))
            self._labels, self._class_weights.counts = labels, counts
            raise
        except BaseException:
            if self.n_learned > n_before:  # interrupted on the way: what was learned stays
                self._labels, self._class_weights.counts = labels, counts
            else:
                self._exchange(exchanged)
            raise
        self._labels, self._class_weights.counts = labels, counts
        return found

    def _exchange(self, is_due: bool) -> bool:
        """Exchange two classes, if that is due; whether it was."""
        if is_due:
            self._learner.negate()
        return is_due

    def _learn_across(self, encoder: Encoder, rows: Any, y: list[Any], w: float | Iterable[float]) -> RawScores:
        """Learn rows in the middle of which a third label comes; up to there two share one margin."""
        each = list(w) if isinstance(w, Iterable) else None  # one for all is checked, and read, much faster
        check_lengths("labels", len(y), n_rows(rows))
        check_lengths("weights", len(y) if each is None else len(each), len(y))
        for weight in [w] if each is None else each:
            plain_weight(weight)
        n = n_of_two(self._labels, y)
        encoder.check(rows)  # whatever is wrong has to show before the first is learned
        first = self.learn_rows(encoder, some_rows(rows, 0, n), y[:n], w if each is None else each[:n])
        # The one with the third label, too, is predicted with two.
        before = joined_scores([first, self.meet_rows(encoder, some_rows(rows, n, n + 1))])
        of_two, kept = self._labels, dict(self.__dict__)
        self._grow()
        try:
            found = self.learn_rows(encoder, some_rows(rows, n, len(y)), y[n:], w if each is None else each[n:])
        except PartlyLearnedError as error:
            before = before.with_numbers(of_two.known, self._labels.targets)
            found = joined_scores([before, error.found.without_first()])
            raise PartlyLearnedError(n + error.n_learned, found, error.args[2]) from error.__cause__
        except BaseException as error:  # a detector's, at the very example that brings the class, or an interruption
            if len(self._labels.classes) < 3:
                self.__dict__.update(kept)
            if n and isinstance(error, Exception):
                raise PartlyLearnedError(n, first, error) from error
            raise
        return joined_scores([before.with_numbers(of_two.known, self._labels.targets), found.without_first()])

    def meet_rows(self, encoder: Encoder, rows: Any) -> RawScores:
        """What is found of each example."""
        return RawScores(*self._learner.predict_learn_many(encoder, rows))

    def margins_of(self, encoder: Encoder, x: Any) -> Margins:
        return self._learner.margins(encoder, x)

    def label_of(self, margins: Margins) -> Any:
        return self._labels.label(margins)

    def probabilities_of(self, margins: Margins) -> dict[Any, float]:
        return self._labels.probabilities(margins, self._learner.calibrated_for(margins), self.n_learned)

    def score_of(self, margins: Margins) -> Any:
        columns = self._columns()
        return float(margins[1]) if columns is None else {of: float(margins[c]) for of, c in columns.items()}

    def predictions_of(self, found: RawScores) -> Predictions:
        labels, n_learned = self._labels, self.n_learned
        return Predictions(
            found.margins[:, 1] if self.has_one_margin else found.margins,
            lambda: labels.labels_many(found.margins, found.decided),
            lambda: labels.probabilities_many(found.margins, found.calibrated, n_learned),
            self._limited(),
        )

    # What an estimator may change.

    def _name_features(self, rows: Any) -> None:
        """Keep what features of learned rows stand for, where that is asked for."""

    def _explained(self, encoder: Encoder, x: Any, label: Any) -> Columns:
        """The columns whose margins are explained."""
        if label is not None and label not in self.classes:
            raise ValueError(f"{label!r} is none of the classes {self.classes}")
        columns = self._columns()
        if columns is None:
            return [(0, -1.0 if label is not None and label == self.classes[0] else 1.0)]
        if label is not None:
            return [(columns[label], 1.0)]
        margins = self.margins_of(encoder, x)
        predicted = self.label_of(margins)
        return [] if predicted is None else first_against_second(margins, columns[predicted])

    def _forget_class(self, label: Label) -> None:
        if label not in self._labels.targets:
            raise ValueError(unknown_label(label, self.classes))
        if self.has_one_margin:
            self._grow()
        forget_column(self._learner, self._labels.known.index(label))
        self._labels = self._labels.without(label)
        self._class_weights.forget(label)

    def _limited(self) -> Mapping[Label, float]:
        """The labels that have a limit of false positives, and the threshold of each."""
        return {}

    def _learn_targets(
        self, encoder: Encoder, rows: Any, labels: Labels, targets: Floats, weights: Floats | None
    ) -> RawScores:
        """Learn rows with the targets of these labels, which are taken over after."""
        return self._learn_blocks(encoder, rows, targets, weights)

    def _learn_blocks(self, encoder: Encoder, rows: Any, targets: Floats, weights: Floats | None) -> RawScores:
        """Learn; what was found of each row before, −inf for classes to come."""
        done, n = 0, len(targets)
        end = n  # first all at once, since all are to be checked before any is learned
        parts: list[RawScores] = []
        while not parts or done < n:
            these, block = some_rows(rows, done, end), slice(done, end)
            block_weights = None if weights is None else weights[block]
            parts.append(RawScores(*self._learner.predict_learn_many(encoder, these, targets[block], block_weights)))
            # The engine stops after an example with which there are too many features, or names.
            self._forget()
            if encoder.is_crowded(self._learner.n_held):
                self.forget_names()
            done += len(parts[-1].margins)
            end = min(done + READ_AGAIN, n)
        return parts[0] if len(parts) == 1 else joined_scores(parts)

    def forget_names(self) -> None:
        with self.lock:
            forget_idle_names(self._learner, self._vocabulary)

    def _forget(self) -> None:
        if self.max_features is not None:
            forget_least(self._learner, self._vocabulary, self.max_features, self._importance)

    def _importance(self, state: Mapping[str, Any]) -> Floats:
        """Of each feature in a state, where there is a `max_features`: the least are forgotten first."""
        raise NotImplementedError
