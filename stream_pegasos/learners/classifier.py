"""The base class of classifiers over feature dicts: a learner of the engine, the labels, and the names of features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.errors import must_be
from stream_pegasos.common.lazy_columns import Column
from stream_pegasos.common.packing import pack_parameters, unpack_parameters
from stream_pegasos.engine import Encoder, Learner, Rows, Vocabulary
from stream_pegasos.engine.pure.driver import Margins, has_column_each
from stream_pegasos.engine.pure.encoders import Inputs, check_names
from stream_pegasos.engine.pure.weights import INTERCEPT
from stream_pegasos.features.frames import csr_arrays, list_of_examples, merge_duplicates
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import ClassWeight, ClassWeights, weights_given
from stream_pegasos.learners.coverage import Coverage
from stream_pegasos.learners.decisions import Decision, Decisions
from stream_pegasos.learners.earlier import as_now
from stream_pegasos.learners.explanations import Columns, Contributions, explain, first_against_second
from stream_pegasos.learners.f1_decisions import DecisionChange, F1Decision
from stream_pegasos.learners.files import Arrays
from stream_pegasos.learners.label_policy import Label, label_list
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.learning import Learning
from stream_pegasos.learners.predictions import Predictions, RawScores
from stream_pegasos.learners.probabilities import Floats, NumberLearned

__all__ = ["Classifier"]


class Classifier(Learning):
    """The base class of estimators. Each sets up a learner and labels, and overrides what it does differently."""

    # Decisions, if there are any; the decision for F1, if asked for; the level of label sets, if asked for.
    decisions: Decisions | dict[Label, Decision] | None = None
    f1: F1Decision | None = None
    conformal: Coverage | None = None
    _linear = True  # whether two values in one column count as their sum

    def _set_up(
        self,
        learner: Learner,
        labels: Labels,
        class_weight: ClassWeight = None,
        watched: bool = False,
        by_margin: bool = True,
    ) -> None:
        """Set up the parts. `watched`: each prediction is examined before its example is learned. `by_margin`: the
        largest margin decides.
        """
        self.learner, self.labels, self.class_weights = learner, labels, ClassWeights(class_weight)
        self.vocabulary = Vocabulary()
        self._told_of_options = not self._unmet_labels()
        self._set_ways(watched, by_margin)

    @property
    def _core(self) -> Classifier:
        return self

    # Encoding.

    def encode_one(self, x: object) -> tuple[Encoder, Any]:
        return self.vocabulary, x

    def encode_many(self, X: object, threads: int = 1) -> tuple[Encoder, Inputs]:
        if hasattr(X, "tocsr"):
            matrix = X.tocsr()
            rows, n_columns = csr_arrays(matrix), matrix.shape[-1]
            return Rows(n_columns), rows if self._linear else merge_duplicates(rows, n_columns)
        return self.vocabulary, list_of_examples(X)

    # Inspection.

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.labels.classes

    @property
    def pair(self) -> tuple[Label | None, ...]:
        return self.labels.pair

    @property
    def n_iterations(self) -> int:
        return self.learner.n_iterations

    @property
    def n_features(self) -> int:
        return len(self.learner)

    @property
    def weights(self) -> Any:
        self._check_has("weights")
        with self.lock:
            keys, values = self.learner.items()
            order = np.argsort(keys, kind="stable")
            names, values = [self.vocabulary.name(key) for key in keys[order].tolist()], self._as_shown(values[order])
            classes = self.classes
        if values.ndim == 1:
            return dict(zip(names, values.tolist(), strict=True))
        return {
            of: {names[i]: float(values[i, column]) for i in np.flatnonzero(values[:, column]).tolist()}
            for column, of in enumerate(classes)
        }

    @property
    def intercept(self) -> Any:
        self._check_has("intercept")
        with self.lock:
            return self._intercepts()

    def get_weights(self, keys: NDArray[np.int64]) -> Floats:
        self._check_has("weights")
        with self.lock:
            return self._as_shown(self.learner.get_weights(keys)).reshape(len(keys), -1)

    @property
    def n_learned(self) -> int:
        return self.learner.n_learned

    def flush(self) -> None:
        with self.lock:
            self.learner.flush()
            self.forget_least()

    def check_labels(self, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> None:
        y = label_list(y)
        teaches = self.class_weights.teaching(y, weights_given(w))
        self.labels.add_labels(y if teaches is None else self._brought(y, teaches))

    def _check_has(self, name: str) -> None:
        if Capability.WEIGHTS not in self.capabilities:
            raise AttributeError(f"{type(self).__name__} has no {name}")

    def _as_shown(self, numbers: Floats) -> Floats:
        """Numbers of classes, a row each, as the user sees them: for two classes in a pair, the number of the positive
        one.
        """
        return self.labels.scores_many(numbers) + 0.0  # no −0

    def _intercepts(self) -> Any:
        (values,) = self._as_shown(self.learner.intercept[np.newaxis]).tolist()
        return dict(zip(self.classes, values, strict=False)) if isinstance(values, list) else values

    # Scores of an example.

    def encode_margins(self, encoder: Encoder, x: object) -> Margins:
        margins, n_known = self.learner.margins(encoder, self.scaled(x)), len(self.labels.known)
        return margins if n_known > 1 else margins[:n_known]

    def label_of(self, margins: Margins) -> Any:
        return self.labels.label(margins)

    def make_probabilities(self, margins: Margins) -> dict[Any, float]:
        return self.labels.probabilities(margins, self.learner.calibrated, self.n_learned)

    def decision_score(self, margins: Margins) -> float | dict[Label, float]:
        return self.labels.score(margins)

    def contributions(self, encoder: Encoder, x: object, label: Label | None = None) -> Contributions:
        """The parts of the margin of `label` that the features, the vector and the intercept add. Without a label: the
        parts of the distance from the margin of the predicted class to the next best.
        """
        with self.lock:
            return explain(self.learner, encoder, self.scaled(x), self._explained(encoder, x, label))

    def _explained(self, encoder: Encoder, x: object, label: Label | None) -> Columns:
        if label is not None and label not in self.classes:
            raise ValueError(must_be("label", f"one of the classes {self.classes}", label))
        labels = self.labels
        number = min(labels.positive, 1) if label is None else int(labels.targets[label])
        if labels.pair and len(self.learner.intercept) == 2:
            return [(number, 0.5), (1 - number, -0.5)]
        if label is not None:
            return [(number, 1.0)]
        if labels.pair and self.classes:  # the other class was forgotten
            return [(0, 1.0 if labels.positive == 0 else -1.0)]
        margins = self.encode_margins(encoder, x)
        predicted = self.label_of(margins)
        return [] if predicted is None else first_against_second(margins, int(labels.targets[predicted]))

    # Predictions from raw scores.

    def n_before_each(self, n_before: int, n: int, y: Any, w: Any) -> NumberLearned:
        """The number of examples learned before each of n, which a call learned with labels y and weights w, starting
        after `n_before`.
        """
        if self.n_learned == n_before:
            return n_before
        teaching = self.class_weights.teaching(y, w)
        if teaching is None:
            return n_before + np.arange(n)
        teaches = np.array(teaching[:n])
        n_before_each: NDArray[np.int64] = n_before + np.cumsum(teaches) - teaches
        return n_before_each

    def make_predictions(self, raw: RawScores, n_learned: NumberLearned | None = None) -> Predictions:
        """The predictions from raw scores. `n_learned` is the number of examples learned before each of them."""
        labels, n_learned = self.labels, self.n_learned if n_learned is None else n_learned
        return Predictions(
            labels.scores_many(raw.margins),
            lambda: labels.labels_many(raw.margins, raw.decided),
            lambda: labels.probabilities_many(raw.margins, raw.calibrated, n_learned),
            self._limited(),
            labels.pair,
            raw.members,
        )

    # Methods that estimators may override.

    def decide(self, change: DecisionChange) -> None:
        """Change the decision, if the model has one."""
        raise TypeError(
            f"{type(self).__name__} has no threshold, no limit of false positives and no coverage; AdaptiveClassifier "
            "and MultiLabelClassifier have"
        )

    def _limited(self) -> Mapping[Label, float]:
        """The labels with a limit of false positives, and the threshold of each."""
        return {}

    # The state as data: the learner's, the labels, their counts, and the names of features.

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        state = self.learner.get_state(lazy)
        arrays = {name: state.pop(name) for name in list(state) if isinstance(state[name], (np.ndarray, Column))}
        values = {"parameters": self._packed_parameters(), "labels": self.labels.get_state(), "learner": state}
        if not self.class_weights.is_fixed:
            values["label_counts"] = self.class_weights.get_state()
        return arrays, self.vocabulary.names, values

    def _packed_parameters(self) -> dict[str, Any]:
        return pack_parameters(self)

    @classmethod
    def _made_with(cls, parameters: dict[str, Any]) -> Self:
        return cls(**parameters)

    @classmethod
    def from_state(cls, arrays: Arrays, names: list[Any], values: dict[str, Any]) -> Self:
        values, state = as_now(values, {**arrays, **values["learner"]})
        model = cls._made_with(unpack_parameters(values["parameters"]))
        model._take_state(state, names, values)
        return model

    def _take_state(self, state: dict[str, Any], names: list[Any], values: dict[str, Any]) -> None:
        """Restore the state from a file. Raise a ValueError, TypeError or LookupError if no model can have
        written it.
        """
        has_columns = has_column_each(state)
        if has_columns:
            self.learner.grow()
            self.labels = replace(self.labels, names_opposite=False)
        self.labels.set_state(values["labels"])
        self._set_ways(self._is_watched, self.by_margin)
        if len(self.classes) > 2 and not has_columns:
            raise ValueError("more than two classes cannot share a column")
        if not self.class_weights.is_fixed:
            self.class_weights.set_state(values["label_counts"], self.classes)
        self.learner.declaration.check(state, columns=len(self.classes) if has_columns else 1)
        check_names(names, state)
        if self.max_features is not None and (state["keys"] != INTERCEPT).sum() > self.max_features:
            raise ValueError(f"there are more features than max_features={self.max_features}")
        self.vocabulary = Vocabulary(names)
        self.learner.set_state(state)
