"""Learning of many examples in order. An interruption leaves the model in a valid state."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_WEIGHT, check_lengths, check_number
from stream_pegasos.common.display import quoted
from stream_pegasos.common.state import State
from stream_pegasos.engine import Encoder, Learner, Rows, Vocabulary
from stream_pegasos.engine.pure.encoders import Inputs, plain_items
from stream_pegasos.engine.pure.weights import DIRECT_LIMIT
from stream_pegasos.features.base import MessageFeatures
from stream_pegasos.features.frames import n_rows, some_rows
from stream_pegasos.learners.class_weights import ClassWeights, drop_idle, plain_weight, weights_given
from stream_pegasos.learners.feature_scaler import FeatureScaler
from stream_pegasos.learners.forgetting import (
    Recency,
    drop_column,
    drop_forgotten_names,
    most_important,
    selected,
)
from stream_pegasos.learners.label_policy import Label, check_label, label_list
from stream_pegasos.learners.labels import (
    LabelColumn,
    Labels,
    distinct,
    targets_many,
    tell_of_look_alikes,
    told_of_labels,
    unknown_label,
    unmet_labels,
)
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.predictions import PartlyLearnedError, RawScores, raw_scores
from stream_pegasos.learners.probabilities import Floats

__all__ = ["Learning"]

# The number of rows in a call of the engine after features or names were forgotten; later rows are read again after the
# next time.
READ_AGAIN = 128
# The number of margins to keep at a time if the caller does not need them: one for each row and class.
MOST_MARGINS = 1 << 21
# The number of messages after which labels are reported that options name but no message had; the largest number of
# labels in that list.
LABELS_AWAITED, MOST_NAMED = 500, 20


class ScaledRows(NamedTuple):
    """Examples during learning: the number of examples before them, their rows and weights, and the scaler after all of
    them.
    """

    n_before: int
    rows: Inputs
    weights: Floats
    scaler: FeatureScaler


class Learning(Model):
    """A base class that adds learning, of one row or many, and forgetting, which bounds the memory.

    After any exception, also a `KeyboardInterrupt`, the model is in the state after exactly the first `n_learned` rows.
    Only the pure engine may leave an interrupted step half done.
    """

    learner: Learner
    labels: Labels
    class_weights: ClassWeights
    vocabulary: Vocabulary
    is_direct: bool
    is_direct_with_weight: bool
    by_margin: bool
    # The scaler of numeric features, if there may be some, and the batch that the learner is learning.
    _scaling: tuple[FeatureScaler, ScaledRows | None] | None = None
    _is_watched: bool
    recency: Recency = Recency()
    _told_of_labels: bool = False  # whether there was a warning that labels are unlike classes
    _told_of_options: bool = True  # whether options name no unmet label, or there was a warning

    def _set_ways(self, watched: bool, by_margin: bool) -> None:
        """Choose the shortcuts that are allowed, given the options of `_set_up`."""
        # Whether an example may go directly to the learner; and whether it may with its own weight.
        self._is_watched = watched
        self.is_direct = (
            not self.class_weights.is_given
            and self.max_features is None
            and not watched
            and self.labels.n_alone < math.inf
            and self._scaling is None
            and self._told_of_options
        )
        self.is_direct_with_weight = self.class_weights.is_fixed and not watched
        self.by_margin = by_margin

    def learn_all(self, encoder: Encoder, rows: Inputs, y: Iterable[Any], w: float | Iterable[float]) -> None:
        """Learn examples without returning scores, in parts, so that the scores do not fill the memory."""
        y, n = self._label_list(y), n_rows(rows)
        n_known = len(self.classes)
        # No call adds more classes than it has rows, or distinct labels.
        size = n if n * (n_known + n) <= MOST_MARGINS else MOST_MARGINS // max(2, n_known + self._n_labels(y))
        if n <= size:
            self.learn_rows(encoder, rows, y, w)
            return
        w = _checked_weights(rows, y, w)
        self.check_labels(y, w)
        encoder.check(rows)  # any fault must be raised before the first row is learned
        before, has_told, self._told_of_labels = (
            self.labels,
            self._told_of_labels,
            True,
        )  # one warning for the whole call
        try:
            self._learn_parts(encoder, rows, y, w, max(1, size))
        finally:
            self._told_of_labels = has_told
        if self.labels is not before:
            self._tell_of_labels(before)

    def _tell_of_labels(self, before: Labels) -> None:
        """Warn if a new label looks like a known one, and once if labels are unlike classes. `before` has the previous
        labels.
        """
        tell_of_look_alikes(self.labels, before)
        self._told_of_labels = self._told_of_labels or told_of_labels(self.labels, self.n_learned)

    def _tell_of_options(self) -> None:
        if not self._told_of_options and self.n_learned >= LABELS_AWAITED:
            for fault in self.faults_of_options():
                warnings.warn(fault, stacklevel=4)

    @property
    def inner(self) -> Any:
        """The classifier inside this one, which has its rule and options; else this one itself."""
        return self

    def _unmet_labels(self) -> dict[Label, str]:
        return unmet_labels(self.inner, self.labels)

    def faults_of_options(self) -> list[str]:
        """Faults to report once: options for labels that have not come, which are probably misspelt."""
        if self._told_of_options:
            return []
        self._told_of_options = True
        self._set_ways(self._is_watched, self.by_margin)
        labels = ", ".join(map(quoted, self.classes[:MOST_NAMED]))
        return [
            f"no message had the label {quoted(of)} of {name}; the labels were {labels}"
            for of, name in self._unmet_labels().items()
        ]

    def _learn_parts(self, encoder: Encoder, rows: Inputs, y: LabelColumn, w: float | list[float], size: int) -> None:
        n = len(y)
        for begin in range(0, n, size):
            end = min(begin + size, n)
            try:
                self.learn_rows(encoder, some_rows(rows, begin, end), y[begin:end], _some_weights(w, begin, end))
            except PartlyLearnedError as error:
                raise PartlyLearnedError(begin + error.n_learned, error.found, error.args[2]) from error.__cause__
            except Exception as error:
                if not begin:
                    raise
                raise PartlyLearnedError(begin, self.score_rows(encoder, some_rows(rows, 0, 0)), error) from error

    def _label_list(self, y: object) -> LabelColumn:
        """The labels as a list, or as a plain array with one axis; a masked array would hide its missing labels."""
        return y if isinstance(y, list) or (type(y) is np.ndarray and y.ndim == 1) else label_list(y)

    def _n_labels(self, y: LabelColumn) -> int:
        if isinstance(y, np.ndarray) and y.dtype.kind == "i" and y.ndim == 1 and len(y):
            low = int(y.min())
            if int(y.max()) - low < len(y):  # counted without a Python object for each label
                return int(np.count_nonzero(np.bincount(y.astype(np.int64) - low)))
        with suppress(TypeError, ValueError):  # some are not hashable, and will be refused
            return len({*self._each_label(y)})
        return 0

    def _each_label(self, y: Iterable[Any]) -> Iterable[Any]:
        """The labels of examples, each at least once."""
        return label_list(y)

    def _check_label(self, label: object) -> None:
        """Check that this is a label. The label of an example without weight is not added, and may be any label."""
        check_label(label)

    def _brought(self, y: object, teaches: Iterable[bool]) -> list[Any]:
        """The labels of the examples that teach, after all were checked."""
        values = label_list(y)
        for label in distinct(values):
            self._check_label(label)
        return [*compress(values, teaches)]

    # Learning.

    def learn_row(self, encoder: Encoder, x: object, y: object, w: float) -> None:
        target = self.labels.find_target(y)
        if not isinstance(w, float) or w != 1.0:
            check_number("w", w, 0.0, LARGEST_WEIGHT)
        if target is None or not self.is_direct_with_weight:
            self.learn_rows(encoder, [x], [y], w)
            return
        of_label, n_before = self.class_weights.weight, self.n_learned
        weight = 1.0 if w == 1.0 and self.is_direct else of_label(self.labels.label_from_target(target), w)
        try:
            if self._scaling is not None:
                (x,) = self._scaled_to_learn(plain_rows(encoder, [x]), np.array([weight]))
            if self.learner.learn(encoder, x, target, weight):
                self.forget_names()
            if weight:
                self._count_alone([target], n_before)
            self.forget_least()
            self._tell_of_options()
        except BaseException:
            self.forget_least()
            raise
        finally:
            self.set_scaler(self.scaler)

    def learn_rows(self, encoder: Encoder, rows: Inputs, y: Iterable[Any], w: float | Iterable[float]) -> RawScores:
        y = self._label_list(y)
        w = weights_given(w)
        check_lengths("labels", len(y), n_rows(rows))
        teaches = self.class_weights.teaching(y, w)
        if teaches is not None:
            self._brought(y, teaches)
            y, w = drop_idle(self.labels.targets, label_list(y), w, teaches)
            if not any(teaches) and not self.labels.targets:
                return self.score_rows(encoder, rows)
        labels, targets = targets_many(self.labels, y)
        weights, counts = self.class_weights.weights_many(targets, labels.label_from_target, w)
        before, counts_before, n_before = self.labels, self.class_weights.counts, self.n_learned
        taught = targets if weights is None else targets[weights > 0.0]
        try:
            raw = self._learn_scaled(encoder, rows, labels, targets, weights)
            self.labels, self.class_weights.counts = labels, counts
            self._count_alone(taught.tolist() if labels.n_alone == math.inf else (), n_before)
        except (
            BaseException
        ):  # of a detector, or an interruption: earlier examples stay learned, with only their labels
            learned_targets = taught[: self.n_learned - n_before].tolist()
            learned = [labels.label_from_target(target) for target in learned_targets]
            self.labels, self.class_weights.counts = before.add_labels(learned), counts_before
            self.class_weights.counts = self.class_weights.counts_with(learned)
            self._count_alone(learned_targets, n_before)
            self.forget_least()
            raise
        if self.labels is not before:
            self._tell_of_labels(before)
        self._tell_of_options()
        return raw

    def _count_alone(self, targets: Sequence[float], n_before: int) -> None:
        """Note when a label other than the first truth value came, among learned examples."""
        if self.labels.n_alone == math.inf:
            n = next((n for n, target in enumerate(targets) if target), None)
            if n is not None:
                self.labels = replace(self.labels, n_alone=float(n_before + n))
            self._set_ways(self._is_watched, self.by_margin)

    def score_rows(self, encoder: Encoder, rows: Inputs) -> RawScores:
        if (scaler := self.scaler) is not None:
            encoder.check(rows)
            encoder, rows = in_any_column(encoder), scaler.scaled_rows(rows)
        raw, n_known = RawScores(*self.learner.predict_learn_many(encoder, rows)), len(self.labels.known)
        n = len(raw.margins)
        return raw if n_known > 1 else raw.mask_unseen_classes((n * (n_known < 1), n))

    def scaled(self, x: object) -> Any:
        """An example with its numeric features scaled."""
        scaler = self.scaler
        return x if scaler is None else scaler.scaled(x)

    @property
    def scaler(self) -> FeatureScaler | None:
        """The scaler of numeric features, after the examples that the learner has learned."""
        if self._scaling is None:
            return None
        scaler, batch = self._scaling
        if batch is not None:
            n = self.n_learned - batch.n_before
            taught = batch.weights > 0.0
            if n == taught.sum():
                scaler = batch.scaler
            elif n > 0:  # learning ended early
                scaler = copy.copy(scaler)
                scaler.learned_rows(batch.rows, np.where(taught.cumsum() <= n, batch.weights, 0.0).tolist())
            self._scaling = scaler, None
        return scaler

    def set_scaler(self, scaler: FeatureScaler | None) -> None:
        if scaler is not None and not scaler.is_idle:
            self._scaling = scaler, None
        elif self._scaling is not None:
            self._scaling = None
            self._set_ways(self._is_watched, self.by_margin)

    def _scaled_to_learn(self, rows: Inputs, weights: Floats) -> Any:
        """The rows to learn, each with its numeric features scaled by the state before it."""
        before = self.scaler
        assert before is not None
        scaler = copy.copy(before)
        scaled = scaler.learned_rows(rows, weights.tolist())
        self._scaling = before, ScaledRows(self.n_learned, rows, weights, scaler)
        return scaled

    def _learn_scaled(
        self, encoder: Encoder, rows: Inputs, labels: Labels, targets: Floats, weights: Floats | None
    ) -> RawScores:
        """Learn rows as `_learn_targets` does, with numeric features scaled."""
        if self._scaling is None:
            return self._learn_targets(encoder, rows, labels, targets, weights)
        rows = plain_rows(encoder, rows)
        scaled = self._scaled_to_learn(rows, np.ones(len(targets)) if weights is None else weights)
        try:
            return self._learn_targets(in_any_column(encoder), scaled, labels, targets, weights)
        finally:
            self.set_scaler(self.scaler)

    def _n_before_two(self, labels: Labels, targets: Floats, weights: Floats | None) -> tuple[int, int]:
        """The number of examples predicted before the first class is learned, and before the second is."""
        n_known = len(self.labels.known)
        if n_known > 1:
            return 0, 0
        learned = targets if weights is None else np.where(weights > 0.0, targets, -1.0)
        first, second = (int(np.append(learned >= number, True).argmax()) + 1 for number in (0.0, 1.0))
        if not n_known and first <= len(targets):  # a truth value makes its opposite known
            known_then = self.labels.add_labels([labels.label_from_target(targets[first - 1])]).known
            second = first if len(known_then) > 1 else second
        return 0 if n_known else first, second

    def _learn_targets(
        self, encoder: Encoder, rows: Inputs, labels: Labels, targets: Floats, weights: Floats | None
    ) -> RawScores:
        """Learn rows with the targets of these labels, which the model does not have yet."""
        n_before_two, parts = self._n_before_two(labels, targets, weights), list[tuple[Floats, Floats]]()
        self._learn_blocks(encoder, rows, targets, weights, parts)
        return raw_scores(parts).mask_unseen_classes(n_before_two)

    def _learn_blocks(
        self,
        encoder: Encoder,
        rows: Inputs,
        targets: Floats,
        weights: Floats | None,
        parts: list[tuple[Floats, Floats]],
    ) -> None:
        """Learn rows. The engine adds the scores from before learning to `parts`, even if an exception follows."""
        n_learned_rows, n = 0, len(targets)
        end = n  # first all at once, because all must be checked before one is learned
        while not parts or n_learned_rows < n:
            part, block = some_rows(rows, n_learned_rows, end), slice(n_learned_rows, end)
            block_weights = None if weights is None else weights[block]
            self.learner.predict_learn_many(encoder, part, targets[block], block_weights, parts)
            # The engine stops after an example that adds too many features or names.
            self.forget_least()
            if encoder.is_crowded(self.learner.n_held):
                self.forget_names()
            n_learned_rows += len(parts[-1][0])
            end = min(n_learned_rows + READ_AGAIN, n)

    # Forgetting.

    def drop_class(self, label: Label) -> None:
        if label not in self.labels.targets:
            raise ValueError(unknown_label(label, self.classes))
        self.grow(len(self.labels.known))
        learner = drop_column(self.learner, self.labels.known.index(label))
        self.class_weights.forget(label)
        self.learner, self.labels, self.recency = learner, self.labels.without(label), Recency()
        self.forget_least()  # because a waiting mini-batch has become a step

    def grow(self, n_known: int) -> None:
        """Give each known class its own column, if two share one."""
        self.learner.grow()
        for number in range(self.learner.n_columns - 1, n_known - 1, -1):
            self.learner = drop_column(self.learner, number)

    def forget_names(self) -> None:
        """Forget the names without a feature, and number the others again."""
        with self.lock:
            state = self.learner.get_state()
            self._replace(state, state, self.recency)

    def forget_least(self) -> None:
        """Drop the least important features, to three quarters of `max_features`, if there are more; and names, if
        there are more than twice as many.
        """
        most, learner = self.max_features, self.learner
        if most is None or (len(learner) <= most and self.vocabulary.size() <= 2 * most):
            return
        before = state = learner.get_state()
        recency = self.recency
        if len(learner) > most:
            n_kept = len(state["keys"]) - len(learner) + max(1, most * 3 // 4)
            importance = self._importance(state)
            mask = most_important(importance, state["keys"], self.vocabulary.names, n_kept)
            recency = self._recency(state, importance, mask)
            state = selected(learner.declaration, state, mask)
        self._replace(before, state, recency)

    def _replace(self, before: State, state: State, recency: Recency) -> None:
        """Replace the state and the names that it needs, completely or, if interrupted, not at all."""
        names, recency_before = self.vocabulary.names, self.recency
        try:
            self.learner.set_state(drop_forgotten_names(state, self.vocabulary))
            self.recency = recency
        except BaseException:
            self.vocabulary.set_names(names)
            self.learner.set_state(before)
            self.recency = recency_before
            raise

    def _importance(self, state: Mapping[str, Any]) -> Floats:
        """The importance of each feature in a state. The least important are forgotten first."""
        raise NotImplementedError

    def _recency(self, state: Mapping[str, Any], importance: Floats, mask: NDArray[np.bool_]) -> Recency:
        """The `Recency` of the kept features, for the next forgetting."""
        return self.recency


def plain_rows(encoder: Encoder, rows: Inputs) -> Any:
    """Checked rows. Each value of a dict is read once, because reading may run code that uses the model."""
    if isinstance(rows, tuple):
        encoder.check(rows)
        return rows
    return [x if isinstance(x, MessageFeatures) else dict(plain_items(x)) for x in rows]


def in_any_column(encoder: Encoder) -> Encoder:
    """The encoder for checked rows, to which numeric features may have been added."""
    return Rows(DIRECT_LIMIT) if isinstance(encoder, Rows) else encoder


def _checked_weights(rows: Inputs, y: LabelColumn, w: float | Iterable[float]) -> float | list[float]:
    """The weights of rows that are learned in parts: one for all, or a list."""
    values = weights_given(w)
    check_lengths("labels", len(y), n_rows(rows))
    check_lengths("weights", len(values) if isinstance(values, list) else len(y), len(y))
    for weight in values if isinstance(values, list) else [values]:  # a single weight is checked, and read, much faster
        plain_weight(weight)
    return values


def _some_weights(w: float | list[float], begin: int, end: int) -> float | list[float]:
    return w[begin:end] if isinstance(w, list) else w
