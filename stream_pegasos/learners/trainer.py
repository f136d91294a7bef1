"""Training: examples run through a learner of the engine, in order. An interruption leaves a valid state."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_WEIGHT, check_integer, check_number
from stream_pegasos.common.display import quoted
from stream_pegasos.common.lazy_columns import Column
from stream_pegasos.common.locks import Lock
from stream_pegasos.engine import Encoder, Learner, Rows, Vocabulary
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.engine.pure.driver import Margins
from stream_pegasos.engine.pure.encoders import Inputs, check_names, plain_items
from stream_pegasos.engine.pure.weights import DIRECT_LIMIT, INTERCEPT
from stream_pegasos.features.base import MessageFeatures
from stream_pegasos.features.frames import some_rows
from stream_pegasos.learners.class_weights import ClassWeight, ClassWeights, Weights, plain_weight
from stream_pegasos.learners.decision_policy import DecisionPolicy
from stream_pegasos.learners.drift import DriftWatch
from stream_pegasos.learners.explanations import Contributions, explain
from stream_pegasos.learners.f1_decisions import DecisionChange
from stream_pegasos.learners.feature_scaler import IDLE, FeatureScaler, Scaling
from stream_pegasos.learners.forgetting import Forgetting, Recency, drop_column
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.labels import (
    LabelColumn,
    LabelParameters,
    Labels,
    tell_of_look_alikes,
    told_of_labels,
    unknown_label,
    unmet_labels,
)
from stream_pegasos.learners.predictions import (
    PartlyLearnedError,
    Predictions,
    RawScores,
    WeightedTargets,
    joined_scores,
)
from stream_pegasos.learners.probabilities import Floats, NumberLearned

__all__ = ["Examples", "Trainer"]

# The number of rows in a call of the engine after features or names were forgotten; later rows are read again after the
# next time.
READ_AGAIN = 128
# The number of margins to keep at a time if the caller does not need them: one for each row and class.
MOST_MARGINS = 1 << 21
# The number of messages after which labels are reported that options name but no message had; the largest number of
# labels in that list.
LABELS_AWAITED, MOST_NAMED = 500, 20
KEPT_AFTER_DRIFT = 0.1  # the share of the evidence to keep at a drift


class Examples(NamedTuple):
    """Examples to learn, in the form that a trainer takes: an encoder and its rows, with the labels and weights."""

    encoder: Encoder
    rows: Inputs
    labels: LabelColumn
    weights: Weights

    def part(self, begin: int, end: int) -> Examples:
        weights = None if self.weights is None else self.weights[begin:end]
        return Examples(self.encoder, some_rows(self.rows, begin, end), self.labels[begin:end], weights)


class Trainer:
    """Learns and scores examples. It holds the parts of a classifier, each of which answers for itself.

    After any exception, also a `KeyboardInterrupt`, the model is in the state after exactly the first `n_learned` rows.
    Only the pure engine may leave an interrupted step half done.

    Attributes
    ----------
    lock : Lock
        Held while the state changes.
    learner : Learner
        The rule and its driver, in the engine in use.
    labels : Labels
    vocabulary : Vocabulary
        The names of features.
    class_weights : ClassWeights
    policy : DecisionPolicy
    forgetting : Forgetting
    drift : DriftWatch
    scaling : Scaling or None
        The scaler of numeric features; `None` if there are none.
    direct : Learner or None
        The learner, if an example may go straight to it.
    is_direct_with_weight : bool
        Whether an example with a weight may go to the learner without the others of its call.
    by_margin : bool
        Whether the largest margin decides, and examples need no scaling.
    is_plain : bool
        Whether the policy has nothing to decide, and no set to find.
    """

    scaling: Scaling | None

    def __init__(
        self,
        lock: Lock,
        learner: Learner,
        labels: Labels,
        class_weight: ClassWeight = None,
        policy: DecisionPolicy | None = None,
        forgetting: Forgetting | None = None,
        drift: DriftWatch | None = None,
        scales: bool = False,
        label_options: LabelParameters | None = None,
    ) -> None:
        self.lock, self.learner, self.labels, self.vocabulary = lock, learner, labels, Vocabulary()
        self.class_weights = ClassWeights(class_weight)
        self.policy = DecisionPolicy() if policy is None else policy
        self.forgetting = Forgetting() if forgetting is None else forgetting
        self.drift = DriftWatch(None) if drift is None else drift
        self.scales, self.scaling = scales, Scaling(FeatureScaler()) if scales else None
        self.label_options = label_options or LabelParameters(class_weight, labels.pos_label)
        self.has_warned_of_labels = False  # whether there was a warning that labels are unlike classes
        self.has_warned_of_options = not self._unmet_labels()  # or there is no reason to
        self.join_parts()

    def __setstate__(self, parts: dict[str, Any]) -> None:
        for name, part in parts.items():
            setattr(self, name, part)
        self.join_parts()

    def join_parts(self) -> None:
        """Tell the learner which classes have come, and choose shortcuts, after parts were replaced."""
        self.labels.prepare(self.learner, self.labels)
        self.choose_paths()

    def choose_paths(self) -> None:
        """Choose the shortcuts that the parts allow."""
        learns_from_predictions = self.policy.learns or self.drift.detector is not None
        self.by_margin = self.policy.by_margin and self.scaling is None
        self.is_plain = self.policy.is_plain
        self.weighs_labels = self.class_weights.is_given
        self.is_direct_with_weight = (
            self.class_weights.is_fixed and not learns_from_predictions and self.labels.takes_targets
        )
        is_direct = (
            self.is_direct_with_weight
            and not self.weighs_labels
            and self.forgetting.max_features is None
            and self.labels.n_alone < math.inf
            and self.scaling is None
            and self.has_warned_of_options
        )
        self.direct = self.learner if is_direct else None

    # Inspection.

    @property
    def is_new(self) -> bool:
        """Whether nothing was learned yet, so that the parameters alone compose the same."""
        is_untaught = self.labels.is_new and not self.learner.n_iterations and not self.vocabulary.size()
        return is_untaught and self.policy.is_new

    def weights(self) -> Any:
        keys, values = self.learner.items()
        order = np.argsort(keys, kind="stable")
        names = [self.vocabulary.name(key) for key in keys[order].tolist()]
        values = self.labels.show_weights(values[order])
        if values.ndim == 1:
            return dict(zip(names, values.tolist(), strict=True))
        return {
            label: {names[i]: float(values[i, column]) for i in np.flatnonzero(values[:, column]).tolist()}
            for column, label in enumerate(self.labels.classes)
        }

    def weights_by_key(self, keys: NDArray[np.int64], label: Label | None = None) -> Floats:
        numbers = self.learner.get_weights(keys)
        if label is None:
            return self.labels.show_weights(numbers).reshape(len(keys), -1)
        columns = self.labels.label_columns(label, None, numbers.shape[1])
        weights: Floats = np.sum([factor * numbers[:, [column]] for column, factor in columns], axis=0)
        return weights

    def contributions(
        self, encoder: Encoder, x: object, label: Label | None = None, against: Label | None = None
    ) -> Contributions:
        margins, n_columns = self.encode_margins(encoder, x), len(self.learner.intercept)
        if label is None:
            predicted = self.label_of(margins) if len(margins) else None
            columns = self.labels.predicted_columns(n_columns, margins, predicted)
        else:
            columns = self.labels.label_columns(label, against, n_columns)
        return explain(self.learner, encoder, self.scaled(x), columns, self.labels.has_intercepts)

    # Scores of an example.

    def encode_margins(self, encoder: Encoder, x: object) -> Margins:
        return self.learner.margins(encoder, self.scaled(x))

    def label_of(self, margins: Margins) -> Any:
        return self.policy.label(self.labels, margins, self.learner.calibrated)

    def make_probabilities(self, margins: Margins) -> dict[Any, Any]:
        return self.labels.probabilities(margins, self.learner.calibrated, self.learner.n_learned)

    # Scores of many examples.

    def score_rows(self, encoder: Encoder, rows: Inputs) -> RawScores:
        if (scaler := self.scaler) is not None:
            encoder.check(rows)
            encoder, rows = in_any_column(encoder), scaler.scaled_rows(rows)
        return self.policy.apply(self.labels, RawScores(*self.learner.predict_learn_many(encoder, rows)))

    def count_learned(self, examples: Examples, n_before: int, n: int) -> NumberLearned:
        """The number of examples learned before each of the first n, of which a call learned some, starting after
        `n_before`.
        """
        if self.learner.n_learned == n_before:
            return n_before
        teaching = self.class_weights.teaching(examples.labels, examples.weights)
        if teaching is None:
            return n_before + np.arange(n)
        teaches = np.array(teaching[:n])
        counts: NDArray[np.int64] = n_before + np.cumsum(teaches) - teaches
        return counts

    def make_predictions(self, raw: RawScores, n_learned: NumberLearned | None = None) -> Predictions:
        """The predictions from raw scores. `n_learned` is the number of examples learned before each of them."""
        n_learned = self.learner.n_learned if n_learned is None else n_learned
        return self.labels.make_predictions(raw, n_learned, self.policy.limited(self.labels))

    # Learning.

    def learn_row(self, encoder: Encoder, x: object, y: object, w: float) -> None:
        target = self.labels.find_target(y)
        if not isinstance(w, float) or w != 1.0:
            check_number("w", w, 0.0, LARGEST_WEIGHT)
        if target is None or not self.is_direct_with_weight:
            weights = None if w == 1.0 else np.array([plain_weight(w)])
            self.learn_rows(Examples(encoder, [x], self.labels.read_column([y]), weights))
            return
        n_before, own_weight = self.learner.n_learned, self.class_weights.weight
        weight = 1.0 if w == 1.0 and self.direct is not None else own_weight(self.labels.label_from_target(target), w)
        try:
            if self.scaling is not None:
                (x,) = self.scaling.scale_rows(plain_rows(encoder, [x]), np.array([weight]), n_before)
            if self.learner.learn(encoder, x, target, weight):
                self.forget_names()
            if weight:
                self._begin_alone([target], n_before)
            self.forget_least()
            self._warn_of_options()
        except BaseException:
            self.forget_least()
            raise
        finally:
            self.set_scaler(self.scaler)

    def learn_all(self, examples: Examples) -> None:
        """Learn examples without returning scores, in parts, so that the scores do not fill the memory."""
        n, n_known = len(examples.labels), len(self.labels.known)
        # No call adds more classes than it has rows, or distinct labels.
        size = n
        if n * (n_known + n) > MOST_MARGINS:
            size = MOST_MARGINS // max(2, n_known + self.labels.count_distinct(examples.labels))
        if n <= size:
            self.learn_rows(examples)
            return
        self.check_labels(examples.labels, examples.weights)
        examples.encoder.check(examples.rows)  # any fault must be raised before the first row is learned
        before, has_warned, self.has_warned_of_labels = self.labels, self.has_warned_of_labels, True  # warn once a call
        try:
            self._learn_parts(examples, max(1, size))
        finally:
            self.has_warned_of_labels = has_warned
        self._warn_of_labels(before)

    def _learn_parts(self, examples: Examples, size: int) -> None:
        n = len(examples.labels)
        for begin in range(0, n, size):
            try:
                self.learn_rows(examples.part(begin, min(begin + size, n)))
            except PartlyLearnedError as error:
                raise PartlyLearnedError(begin + error.n_learned, error.found, error.args[2]) from error.__cause__
            except Exception as error:
                if not begin:
                    raise
                none = self.score_rows(examples.encoder, some_rows(examples.rows, 0, 0))
                raise PartlyLearnedError(begin, none, error) from error

    def check_labels(self, y: LabelColumn, weights: Weights) -> None:
        self.labels.check_column(y, self.class_weights.teaching(y, weights))

    def learn_rows(self, examples: Examples) -> RawScores:
        encoder, rows, y, weights = examples
        weighs = weights is not None or self.weighs_labels
        teaches = self.class_weights.teaching(y, weights) if weighs else None
        labels, targets = self.labels.number(y, teaches)
        if teaches is not None and not labels.known and not any(teaches):
            return self.score_rows(encoder, rows)
        before, n_before = self.labels, self.learner.n_learned
        counts = counts_before = self.class_weights.counts
        if weighs:
            weights, counts = self.class_weights.weights_many(targets, labels.label_from_target, weights, teaches)
        taught = targets if weights is None else targets[weights > 0.0]
        try:
            learn = self._learn_targets if self.scaling is None else self._learn_scaled
            raw = learn(encoder, rows, labels, targets, weights)
            self.labels, self.class_weights.counts = labels.settled(), counts
            if self.labels.n_alone == math.inf:
                self._begin_alone(taught, n_before)
        except BaseException:  # of a detector, or an interruption: earlier examples stay learned
            taught = taught[: self.learner.n_learned - n_before]
            self.labels, self.class_weights.counts = before.add_targets(labels, taught), counts_before
            if not self.class_weights.is_fixed:
                learned = [labels.label_from_target(target) for target in taught.tolist()]
                self.class_weights.counts = self.class_weights.counts_with(learned)
            self.labels.prepare(self.learner, self.labels)
            self._begin_alone(taught, n_before)
            self.forget_least()
            raise
        if self.labels is not before:
            self._warn_of_labels(before)
        if not self.has_warned_of_options:
            self._warn_of_options()
        return raw

    def _begin_alone(self, targets: Floats | Sequence[float], n_before: int) -> None:
        if self.labels.n_alone == math.inf:
            self.labels = self.labels.begin_alone(targets, n_before)
            self.choose_paths()

    def _learn_scaled(
        self, encoder: Encoder, rows: Inputs, labels: Labels, targets: Floats, weights: Weights
    ) -> RawScores:
        """Learn rows as `_learn_targets` does, with numeric features scaled."""
        assert self.scaling is not None
        rows = plain_rows(encoder, rows)
        scaled = self.scaling.scale_rows(
            rows, np.ones(len(targets)) if weights is None else weights, self.learner.n_learned
        )
        try:
            return self._learn_targets(in_any_column(encoder), scaled, labels, targets, weights)
        finally:
            self.set_scaler(self.scaler)

    def _learn_targets(
        self, encoder: Encoder, rows: Inputs, labels: Labels, targets: Floats, weights: Weights
    ) -> RawScores:
        """Learn rows with the targets of these labels, which the model does not have yet."""
        labels.prepare(self.learner, self.labels)
        if self.drift.detector is not None:
            return self._learn_in_turn(encoder, rows, labels, targets, weights)
        parts = list[tuple[Floats, Floats]]()
        if not self.policy.learns:
            self._learn_blocks(encoder, rows, targets, weights, parts)
            raw = raw_scores(parts)
            return raw if self.is_plain else self.policy.apply(labels, raw)
        snapshot, learned = self.policy.snapshot(), WeightedTargets.of(targets, weights)
        try:
            self._learn_blocks(encoder, rows, targets, weights, parts)
            return self.policy.apply(labels, raw_scores(parts), learned)
        except BaseException:  # an interruption: limits must match the engine's examples
            if parts:
                self.policy.restore(snapshot)
                raw = raw_scores(parts)
                self.policy.apply(labels, raw, WeightedTargets(*(array[: len(raw.margins)] for array in learned)))
            raise

    def _learn_in_turn(
        self, encoder: Encoder, rows: Inputs, labels: Labels, targets: Floats, weights: Weights
    ) -> RawScores:
        """Learn the rows one by one; before each, tell the detector whether its prediction was wrong."""
        self.learner.predict_learn_many(encoder, rows)  # raises any fault before the first row is learned
        parts: list[RawScores] = []
        seen = self.labels
        for i, target in enumerate(targets.tolist()):
            row, place = some_rows(rows, i, i + 1), slice(i, i + 1)
            raw = self.policy.apply(labels, RawScores(*self.learner.predict_learn_many(encoder, row)))
            weight = None if weights is None else weights[place]
            teaches = weight is None or bool(weight[0])
            n_drifts, n_before, state = self.drift.n_drifts, self.learner.n_learned, None
            is_drift = False
            snapshot = self.policy.snapshot() if teaches else None
            try:
                if teaches and seen.has_two:  # with one class, no prediction can be wrong
                    try:
                        is_drift = self.drift.tell(self.policy.is_wrong(labels, raw, target))
                    except Exception as error:
                        if not i:
                            raise
                        raise PartlyLearnedError(i, joined_scores(parts), error) from error
                if teaches:
                    self.policy.apply(labels, raw, WeightedTargets.of(targets[place], weight))
                if is_drift:
                    state = self.learner.get_state()
                    cast(AdaptiveLearner, self.learner).forget(KEPT_AFTER_DRIFT)
                self._learn_blocks(encoder, row, targets[place], weight, [])
            except BaseException:  # an interruption may come before the row is learned
                if self.learner.n_learned == n_before:
                    self.drift.n_drifts = n_drifts
                    if teaches:
                        self.policy.restore(snapshot)
                    if state is not None:
                        self.learner.set_state(state)
                raise
            parts.append(raw)
            if teaches and not seen.has_two:
                seen = seen.add_targets(labels, targets[place])
        # The last part has no rows. It adds the columns of all present classes, even if there are no rows at all.
        empty = RawScores(*self.learner.predict_learn_many(encoder, some_rows(rows, 0, 0)))
        return joined_scores([*parts, self.policy.apply(labels, empty)])

    def _learn_blocks(
        self,
        encoder: Encoder,
        rows: Inputs,
        targets: Floats,
        weights: Weights,
        parts: list[tuple[Floats, Floats]],
    ) -> None:
        """Learn rows. The engine adds the scores from before learning to `parts`, even if an exception follows."""
        n, n_done = len(targets), 0
        self.learner.predict_learn_many(encoder, rows, targets, weights, parts)  # all are checked before one is learned
        while True:  # the engine stops after an example that adds too many features or names
            if self.forgetting.max_features is not None:
                self.forget_least()
            if encoder.is_crowded(self.learner.n_held):
                self.forget_names()
            n_done += len(parts[-1][0])
            if n_done >= n:
                return
            end = min(n_done + READ_AGAIN, n)
            some_weights = None if weights is None else weights[n_done:end]
            rows_left = some_rows(rows, n_done, end)
            self.learner.predict_learn_many(encoder, rows_left, targets[n_done:end], some_weights, parts)

    # Numeric features.

    @property
    def scaler(self) -> FeatureScaler | None:
        """The scaler of numeric features, after the examples that the learner has learned."""
        return None if self.scaling is None else self.scaling.scaler(self.learner.n_learned)

    def set_scaler(self, scaler: FeatureScaler | None) -> None:
        if scaler is not None and not scaler.is_idle:
            self.scaling = Scaling(scaler)
        elif self.scaling is not None:
            self.scaling = None
            self.choose_paths()

    def scaled(self, x: object) -> Any:
        """An example with its numeric features scaled."""
        scaler = self.scaler
        return x if scaler is None else scaler.scaled(x)

    # Warnings.

    def _warn_of_labels(self, before: Labels) -> None:
        """Warn if a new label looks like a known one, and once if labels are unlike classes. `before` has the previous
        labels.
        """
        if self.labels.known != before.known:
            tell_of_look_alikes(self.labels, before)
            if not self.has_warned_of_labels:
                self.has_warned_of_labels = told_of_labels(self.labels, self.learner.n_learned)
            if not self.is_plain:
                self.policy.warn_of_labels(self.labels, before)

    def _warn_of_options(self) -> None:
        if not self.has_warned_of_options and self.learner.n_learned >= LABELS_AWAITED:
            for fault in self.faults_of_options():
                warnings.warn(fault, stacklevel=4)

    def _unmet_labels(self) -> dict[Label, str]:
        return unmet_labels(self.label_options, self.labels)

    def faults_of_options(self) -> list[str]:
        """Faults to report once: options for labels that have not come, which are probably misspelt."""
        if self.has_warned_of_options:
            return []
        self.has_warned_of_options = True
        self.choose_paths()
        labels = ", ".join(map(quoted, self.labels.classes[:MOST_NAMED]))
        return [
            f"no message had the label {quoted(label)} of {name}; the labels were {labels}"
            for label, name in self._unmet_labels().items()
        ]

    # Decisions and forgetting.

    def change_decision(self, change: DecisionChange) -> dict[str, Any] | None:
        """Change which label is predicted. Return the new parameters; `None` if the policy has none."""
        changed = self.policy.change(change, self.labels, self.learner)
        if changed is None:
            return None
        self.labels = changed.labels
        names = vars(self.label_options).keys() & changed.parameters.keys()
        self.label_options = replace(self.label_options, **{name: changed.parameters[name] for name in names})
        self.choose_paths()
        return changed.parameters

    def drop_class(self, label: Label) -> None:
        if label not in self.labels.targets:
            raise ValueError(unknown_label(label, self.labels.classes))
        self.grow(len(self.labels.known))
        learner, before = drop_column(self.learner, self.labels.known.index(label)), self.labels
        self.class_weights.forget(label)
        self.direct = None  # lest an interruption leaves the learner of before there
        self.learner, self.labels, self.forgetting.recency = learner, self.labels.without(label), Recency()
        self.join_parts()
        self.policy.forget(label, before)
        self.forget_least()  # because a waiting mini-batch has become a step

    def grow(self, n_known: int) -> None:
        """Give each known class its own column, if two share one."""
        self.direct = None  # lest an interruption leaves the learner of before there
        self.learner.grow()
        for number in range(self.learner.n_columns - 1, n_known - 1, -1):
            self.learner = drop_column(self.learner, number)
        self.choose_paths()

    def flush(self) -> None:
        self.learner.flush()
        self.forget_least()

    def forget_least(self) -> None:
        if self.forgetting.max_features is not None:
            self.forgetting.forget_least(self.learner, self.vocabulary)

    def forget_names(self) -> None:
        with self.lock:
            self.forgetting.forget_names(self.learner, self.vocabulary)

    # The state as data: the learner's, the labels, their counts, and the names of features.

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        state = self.learner.get_state(lazy)
        arrays = {name: state.pop(name) for name in list(state) if isinstance(state[name], (np.ndarray, Column))}
        values = {"labels": self.labels.get_state(), "learner": state}
        if not self.class_weights.is_fixed:
            values["label_counts"] = self.class_weights.get_state()
        if self.scales:
            scaler, recency = self.scaler, self.forgetting.recency
            values["watched"] = {
                "n_drifts": self.drift.n_drifts,
                "scaler": IDLE if scaler is None else scaler.get_state(),
            }
            if len(recency.counts):
                values["watched"]["n_forgotten"] = recency.n_iterations
                arrays |= recency.get_state()
        return arrays, self.vocabulary.names, values | self.policy.get_state(self.labels)

    def take_state(self, state: dict[str, Any], names: list[Any], values: dict[str, Any]) -> None:
        """Restore the state from a file. Raise a ValueError, TypeError or LookupError if no model can have
        written it.
        """
        recent = {name: state.pop(name) for name in Recency().get_state() if name in state} if self.scales else {}
        n_columns = self.labels.restore(values["labels"], state, self.learner)
        if not self.class_weights.is_fixed:
            self.class_weights.set_state(values["label_counts"], self.labels.classes)
        self.learner.declaration.check(state, columns=n_columns)
        check_names(names, state)
        most = self.forgetting.max_features
        if most is not None and (state["keys"] != INTERCEPT).sum() > most:
            raise ValueError(f"there are more features than max_features={most}")
        self.vocabulary = Vocabulary(names)
        self.learner.set_state(state)
        if self.scales:
            self._take_watched(values["watched"], recent, len(state["keys"]))
        self.policy.set_state(values, self.labels)
        self.join_parts()

    def _take_watched(self, watched: Mapping[str, Any], recent: dict[str, Any], n_features: int) -> None:
        n_iterations = self.learner.n_iterations
        if recent:
            n = watched["n_forgotten"]
            check_integer("n_forgotten", n, 0, n_iterations)
            self.forgetting.recency = Recency.from_state(recent, n, n_features)
        check_integer("n_drifts", watched["n_drifts"], 0, n_iterations)
        scaler = FeatureScaler()
        scaler.set_state(watched["scaler"])
        self.set_scaler(scaler)
        self.drift.n_drifts = watched["n_drifts"]  # the detector starts again


def raw_scores(parts: list[tuple[Floats, Floats]]) -> RawScores:
    return RawScores(*parts[0]) if len(parts) == 1 else joined_scores([RawScores(*part) for part in parts])


def plain_rows(encoder: Encoder, rows: Inputs) -> Any:
    """Checked rows. Each value of a dict is read once, because reading may run code that uses the model."""
    if isinstance(rows, tuple):
        encoder.check(rows)
        return rows
    return [x if isinstance(x, MessageFeatures) else dict(plain_items(x)) for x in rows]


def in_any_column(encoder: Encoder) -> Encoder:
    """The encoder for checked rows, to which numeric features may have been added."""
    return Rows(DIRECT_LIMIT) if isinstance(encoder, Rows) else encoder
