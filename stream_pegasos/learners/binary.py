"""What the classifiers of two classes have in common: labels, weights of examples, margins and probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_WEIGHT, check_lengths, check_number
from stream_pegasos.engine import AdaptiveLearner, Encoder, KernelLearner, Learner, Vocabulary, signs_of
from stream_pegasos.engine.pure.weights import INTERCEPT
from stream_pegasos.features.frames import n_rows, some_rows
from stream_pegasos.learners.classifier import (
    READ_AGAIN,
    Bools,
    Classifier,
    ClassWeight,
    Floats,
    Outcomes,
    PartlyLearnedError,
    balanced_weights,
    check_class_weight,
)
from stream_pegasos.learners.labels import Label, Labels, label_array, label_list
from stream_pegasos.learners.persistence import pack, unpack

__all__ = ["BinaryClassifier"]

# The arrays of a learner's state that have an entry a feature.
OF_FEATURES = {"keys", "values", "sums", "log_ratios", "gradient_squares", "positives", "negatives"}


class BinaryClassifier(Classifier):
    """A learner of margins behind labels."""

    pos_label: Label | None
    class_weight: ClassWeight
    max_features: int | None = None
    _labels: Labels
    _learner: Learner | AdaptiveLearner | KernelLearner

    def _set_up(
        self, learner: Learner | AdaptiveLearner | KernelLearner, watched: bool = False, needs_positive: bool = False
    ) -> None:
        """`watched` if something is to see each prediction before its example is learned; `needs_positive` if a
        decision rests on which label is the positive one.
        """
        check_class_weight(self.class_weight)
        self._straight = self.class_weight is None and not watched  # whether an example may go straight to the learner
        self._straight_with_weight = self.class_weight != "balanced" and not watched
        self._labels = Labels(self.pos_label, needs_positive)
        self._label_counts = {}
        self._vocabulary = Vocabulary()
        self._learner = learner

    @property
    def n_iterations(self) -> int:
        return self._learner.n_iterations

    @property
    def classes(self) -> tuple[Label | None, Label | None]:
        return self._labels.negative, self._labels.positive

    def _predict_one(self, encoder: Encoder, x: Any) -> Any:
        return self._decide(self._learner.margin(encoder, x))

    def _predict_proba_one(self, encoder: Encoder, x: Any) -> dict[Any, float]:
        return self._probabilities(self._learner.margin(encoder, x))

    def _decision_function_one(self, encoder: Encoder, x: Any) -> float:
        return self._learner.margin(encoder, x)

    def _predict_many(self, encoder: Encoder, rows: Any) -> NDArray[Any]:
        return self._answers(encoder, rows)[0]

    def _answers(self, encoder: Encoder, rows: Any) -> tuple[NDArray[Any], Floats, Floats]:
        """The label of each row, the probability of the positive one, and the margin."""
        margins, probabilities = self._learner.predict_learn_many(encoder, rows)
        positive, choices = self._positive_many(margins, probabilities), self._choices
        chosen = positive.astype(np.intp) if len(choices) == 2 else np.zeros(len(positive), np.intp)
        return label_array(choices)[chosen], probabilities, margins

    def _predict_proba_many(self, encoder: Encoder, rows: Any) -> tuple[tuple[Label, ...], Floats]:
        known = self._labels.known
        positive = self._learner.predict_learn_many(encoder, rows)[1]
        if len(known) == 2:
            return known, np.array([1.0 - positive, positive]).T
        only = self._probabilities(0.0)
        return tuple(only), np.full((len(positive), len(only)), list(only.values()))

    def _decision_function_many(self, encoder: Encoder, rows: Any) -> Floats:
        return self._learner.predict_learn_many(encoder, rows)[0]

    def _learn_one(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        try:
            sign = self._labels.signs.get(y)
        except TypeError:  # not even hashable
            sign = None
        if not isinstance(w, float) or w != 1.0:
            check_number("w", w, 0.0, LARGEST_WEIGHT)
        if sign is None or not self._straight_with_weight:
            self._learn_many(encoder, [x], [y], w)
            return
        weight = 1.0 if w == 1.0 and self._straight else self._weight(self._labels.of_sign(sign), w)
        if self._learner.learn(encoder, x, sign, weight):
            self._forget_idle_names()
        if self.max_features is not None:
            self._forget_least(self.max_features)

    def _learn_many(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> Outcomes:
        labels, exchanged, signs = self._signs_many(y)
        check_lengths("labels", len(signs), n_rows(rows))
        weights, counts = self._weights_many(signs, labels.of_sign, w)
        n_before = self._learner.n_iterations
        if exchanged:
            self._learner.negate()
        try:
            outcomes = self._learn_signs(encoder, rows, labels, signs, weights)
        except PartlyLearnedError as error:
            learned = [labels.of_sign(sign) for sign in signs[: error.n_learned]]
            labels, also_exchanged = self._labels.with_labels(learned)
            if exchanged != also_exchanged:
                self._learner.negate()
            self._labels = labels
            if self.class_weight == "balanced":
                self._label_counts = balanced_weights(learned, self._label_counts)[1]
            raise
        except BaseException:
            if self._learner.n_iterations > n_before:  # interrupted on the way: what was learned stays
                self._labels, self._label_counts = labels, counts
            elif exchanged:
                self._learner.negate()
            raise
        self._labels, self._label_counts = labels, counts
        return outcomes

    def _learn_signs(
        self, encoder: Encoder, rows: Any, labels: Labels, signs: Floats, weights: Floats | None
    ) -> Outcomes:
        """Learn rows with a sign each, those of `labels`, which are taken over after."""
        margins, probabilities = self._learn_rows(encoder, rows, signs, weights)
        return Outcomes(margins, probabilities, self._positive_many(margins, probabilities))

    def flush(self) -> None:
        with self._lock:
            self._learner.flush()
            if self.max_features is not None:
                self._forget_least(self.max_features)

    def _learn_rows(self, encoder: Encoder, rows: Any, signs: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
        """The margin of each row and its probability, before it was learned."""
        done, end, n = 0, len(signs), len(signs)  # first all at once, since all are to be checked before any is learned
        parts: list[tuple[Floats, Floats]] = []
        while not parts or done < n:
            these, block = some_rows(rows, done, end), slice(done, end)
            block_weights = None if weights is None else weights[block]
            parts.append(self._learner.predict_learn_many(encoder, these, signs[block], block_weights))
            # The engine stops after an example with which there are too many features, or names.
            if self.max_features is not None:
                self._forget_least(self.max_features)
            if encoder.is_crowded(self._learner.n_held):
                self._forget_idle_names()
            done += len(parts[-1][0])
            end = min(done + READ_AGAIN, n)
        return joined(parts)

    def _forget_least(self, max_features: int) -> None:
        """Forget features if there are more than that many, or names if there are twice as many."""
        if len(self._learner) <= max_features and self._vocabulary.size() <= 2 * max_features:
            return
        state = self._learner.get_state()
        if len(self._learner) > max_features:
            importance = self._importance(state)
            n_forgotten = len(self._learner) - max(1, max_features * 3 // 4)
            most = np.partition(importance, n_forgotten - 1)[n_forgotten - 1]
            kept = importance > most
            equal = np.flatnonzero(importance == most)
            equal = equal[np.argsort(state["keys"][equal])]
            kept[equal[: len(importance) - n_forgotten - kept.sum()]] = True
            for name in OF_FEATURES & state.keys():
                state[name] = state[name][kept]
            if "squares" in state:
                state["squares"] = math.fsum((state["values"] ** 2).tolist())
        self._forget_names(state)
        self._learner.set_state(state)

    def _importance(self, state: Mapping[str, Any]) -> Floats:
        """Of each feature in a state, where there is a `max_features`: the least are forgotten first."""
        raise NotImplementedError

    def _check_n_features(self, state: Mapping[str, Any]) -> None:
        n = int((state["keys"] != INTERCEPT).sum())
        if self.max_features is not None and n > self.max_features:
            raise ValueError(f"there are {n} features, more than max_features={self.max_features}")

    def _signs_many(self, y: Iterable[Any]) -> tuple[Labels, bool, NDArray[np.float64]]:
        """The labels with any new ones in `y`, whether that exchanged positive and negative, and +1 or −1 for each."""
        if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuf":
            labels, exchanged = self._labels.with_labels(first_labels(y))
            return labels, exchanged, np.where(y == labels.positive, 1.0, -1.0)
        given = label_list(y)
        labels, exchanged = self._labels, False
        try:
            signs = signs_of(given, labels.signs)
        except TypeError:  # some are not even hashable, which with_labels says of them by name
            signs = None
        if signs is None:
            labels, exchanged = labels.with_labels(given)
            signs = signs_of(given, labels.signs)
            assert signs is not None
        return labels, exchanged, signs

    def _decide(self, margin: float) -> Any:
        known = self._labels.known
        if not known:
            return None
        return known[-1] if margin > 0.0 else known[0]

    @property
    def _choices(self) -> tuple[Label | None, ...]:
        """The labels that can be predicted, the negative one first."""
        return self._labels.known or (None,)

    def _positive_many(self, margins: Floats, probabilities: Floats) -> Bools:
        return margins > 0.0

    def _probabilities(self, margin: float) -> dict[Any, float]:
        known = self._labels.known
        if len(known) == 2:
            positive = self._learner.probability(margin)
            return {known[0]: 1.0 - positive, known[1]: positive}
        # Before anything is learned pos_label is as probable as what it will stand beside.
        return self._probabilities_of_only(known[0]) if known else {None: 0.5, self._labels.positive: 0.5}

    @property
    def _n_learned(self) -> int:
        return self._learner.n_iterations

    def _labels_to_state(self) -> dict[str, Any]:
        labels = self._labels
        return {"labels": {"negative": pack(labels.negative), "positive": pack(labels.positive), "met": labels.met}}

    def _labels_from_state(self, values: Any) -> None:
        labels = values["labels"]
        self._labels.restore(unpack(labels["negative"]), unpack(labels["positive"]), labels["met"])


def joined(parts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The margins and the probabilities of several blocks."""
    if len(parts) == 1:
        return parts[0]
    margins, probabilities = zip(*parts, strict=True)
    return np.concatenate(margins), np.concatenate(probabilities)


def first_labels(y: NDArray[Any]) -> list[Any]:
    """The distinct labels in the order of their first places, up to a third, which is one too many."""
    labels: list[Any] = []
    while len(y) and len(labels) < 3:
        labels.append(y[0].item())
        y = y[y != y[0]]
    return labels
