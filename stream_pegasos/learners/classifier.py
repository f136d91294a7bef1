"""What all classifiers have in common: River's protocol, for one example and for many."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.checks import LARGEST_WEIGHT, check_integer, check_lengths, check_number
from stream_pegasos.common.locks import Lock
from stream_pegasos.engine import AdaptiveLearner, Encoder, KernelLearner, Learner, MultiLearner, Rows, Vocabulary
from stream_pegasos.engine.pure.weights import FIRST_NAME
from stream_pegasos.features.frames import (
    csr_arrays,
    frame_like,
    frame_to_dicts,
    is_frame,
    is_series,
    series_like,
    without_duplicates,
)
from stream_pegasos.learners.labels import Label, check_label, rule_of_succession
from stream_pegasos.learners.persistence import (
    Arrays,
    Saveable,
    Snapshot,
    pack,
    pack_parameters,
    unpack,
    unpack_parameters,
)

__all__ = ["Classifier"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
ClassWeight = Mapping[Label, float] | Literal["balanced"] | None


# So many rows are read again after features or names were forgotten: few, as most are when that comes often.
READ_AGAIN = 128


class Outcomes(NamedTuple):
    """What a model says of examples before it learns them; of two classes also of the positive one."""

    decided_on: Any  # a margin an example, or what takes its place with more classes
    probabilities: Floats | None = None
    positive: Bools | None = None  # whether it is predicted


class PartlyLearnedError(RuntimeError):
    """Learning many examples failed in the middle, where a drift detector raised: those before are learned.

    Attributes
    ----------
    n_learned
        The number of examples learned, which are the first ones.
    outcomes
        What was predicted for these before they were learned.
    """

    def __init__(self, n_learned: int, outcomes: Outcomes, reason: Exception) -> None:
        super().__init__(n_learned, outcomes, reason)
        self.n_learned = n_learned
        self.outcomes = outcomes

    def __str__(self) -> str:
        return f"an example cannot be learned, though {self.n_learned} before it in the call are: {self.args[2]}"


class Classifier(Saveable, base.MiniBatchClassifier):
    """The public methods. An estimator says what encodes its examples, and does the work on what is encoded already, in
    the methods with an underscore: so it can run on another's encoder too, as it does inside the text model.
    """

    _vocabulary: Vocabulary
    _learner: Learner | AdaptiveLearner | KernelLearner | MultiLearner
    class_weight: ClassWeight = None
    _lock: Lock  # whoever holds it finds the model between two steps
    _linear = True  # whether values of one column that comes twice count as their sum does
    _label_counts: Mapping[Label, int]  # of the examples learned, where class_weight is "balanced"

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        model = super().__new__(cls)
        model._lock = Lock()
        return model

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy is made of: all of it between the same two steps."""
        with self._lock:
            return copy.deepcopy(self.__dict__)

    # One example at a time.

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn from one example.

        Parameters
        ----------
        x
            The features: int, str, bool or tuples of those, each with a finite number of at most 1e45 in size.
        y
            The label: bool, int or str.
        w
            What the loss on this example counts, from 0 to 1e30.

        Raises
        ------
        TypeError
            If a feature's name, a value or the label is of no such type.
        ValueError
            If a value is NaN or infinite, the weight is out of its range, or the label is none that the model takes.
            The model is then as it was before.
        """
        encoder, x = self._encode_one(x)
        with self._lock:
            self._learn_one(encoder, x, y, w)

    def predict_one(self, x: Any) -> Any:  # type: ignore[override]
        """The label of `x`. Before anything is learned it is `None` or, with two classes and no `pos_label`, `False`.

        Parameters
        ----------
        x
            The features, as for `learn_one`; those never learned count nothing.
        """
        encoder, x = self._encode_one(x)
        with self._lock:
            return self._predict_one(encoder, x)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:  # type: ignore[override]
        """The probability of each label; the label that `predict_one` gives has the largest one, unless a threshold or
        a limit of false positives decides otherwise. While only one label is known `None` stands for those to come: of
        n examples with the same label the next one has it with probability (n + 1) / (n + 2), by Laplace's rule of
        succession.

        Parameters
        ----------
        x
            The features, as for `learn_one`.
        """
        encoder, x = self._encode_one(x)
        with self._lock:
            return self._predict_proba_one(encoder, x)

    def decision_function_one(self, x: Any) -> Any:
        """What the decision rests on: with two classes the margin, above 0 for the positive one; with more a dict of
        the margins by class or, for ordered ones, by pair of neighbours.

        Parameters
        ----------
        x
            The features, as for `learn_one`.
        """
        encoder, x = self._encode_one(x)
        with self._lock:
            return self._decision_function_one(encoder, x)

    # Many examples in one call.

    def learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> None:
        """Learn from many examples in turn, as `learn_one` would; only faster.

        Parameters
        ----------
        X
            A sequence of feature dicts, a data frame with a column a feature, or a SciPy sparse matrix, whose columns
            are the features 0, 1, 2, …; for a text model, texts.
        y
            As many labels.
        w
            The weight of all examples, or as many weights.

        Raises
        ------
        TypeError, ValueError
            As `learn_one` does, and if there are not as many labels or weights as examples. Nothing is learned then.
        PartlyLearnedError
            If a drift detector raises after some examples. It says how many were learned.
        """
        self._predict_learn_many(X, y, w)

    def predict_learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> Any:
        """Prequential evaluation in one call: what decides about each example, before it is learned.

        With two classes that is the margin. `MulticlassPegasosClassifier` gives a row of margins, in the order of
        `classes` as they are afterwards, −inf for those that were yet to come; `OrdinalPegasosClassifier` the label
        that it predicts, `None` before the first.

        Parameters
        ----------
        X, y, w
            As for `learn_many`, and raising as it does.
        """
        return self._predict_learn_many(X, y, w).decided_on

    def predict_many(self, X: Any) -> Any:
        """The label of each example, as an array; as a series for a data frame or a series.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        encoder, rows = self._encode_many(X)
        with self._lock:
            labels = self._predict_many(encoder, rows)
        return series_like(X, labels) if is_frame(X) or is_series(X) else labels

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of each example, as an array with a column a label, in the order of `predict_proba_one`; as
        a data frame for a data frame or a series.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        encoder, rows = self._encode_many(X)
        with self._lock:
            labels, probabilities = self._predict_proba_many(encoder, rows)
        if is_frame(X) or is_series(X):
            return frame_like(X, dict(zip(labels, probabilities.T, strict=True)))
        return probabilities

    def decision_function_many(self, X: Any) -> Any:
        """What the decision on each example rests on, as an array with a row an example.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        encoder, rows = self._encode_many(X)
        with self._lock:
            return self._decision_function_many(encoder, rows)

    def flush(self) -> None:
        """Take the step with the examples that the mini-batch buffer holds; none if it is empty."""
        with self._lock:
            self._learner.flush()

    def snapshot(self, progress: Any = None) -> Snapshot:
        with self._lock:
            return super().snapshot(progress)

    def _predict_learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> Outcomes:
        encoder, rows = self._encode_many(X)
        with self._lock:
            return self._learn_many(encoder, rows, y, w)

    def _forget_idle_names(self) -> None:
        """Forget the names that stand for nothing."""
        state = self._learner.get_state()
        self._forget_names(state)
        self._learner.set_state(state)

    def _forget_names(self, state: dict[str, Any]) -> None:
        """Forget the names that no key in the state stands for, and number the others anew."""
        of_keys = [name for name in ("keys", "buffer_keys") if name in state]
        used = np.unique(np.concatenate([state[name][state[name] >= FIRST_NAME] for name in of_keys]))
        names = self._vocabulary.names
        self._vocabulary.set_names([names[key - FIRST_NAME] for key in used.tolist()])
        for name in of_keys:
            keys = state[name]
            state[name] = np.where(keys >= FIRST_NAME, FIRST_NAME + np.searchsorted(used, keys), keys)

    # What encodes the examples.

    def _encode_one(self, x: Any) -> tuple[Encoder, Any]:
        return self._vocabulary, x

    def _encode_many(self, X: Any) -> tuple[Encoder, Any]:
        if hasattr(X, "tocsr"):
            matrix = X.tocsr()
            rows, n_columns = csr_arrays(matrix), matrix.shape[-1]
            return Rows(n_columns), rows if self._linear else without_duplicates(rows, n_columns)
        if is_frame(X):
            return self._vocabulary, frame_to_dicts(X)
        if isinstance(X, (dict, str, bytes)):
            raise TypeError(f"X must be a sequence of examples, not a single {type(X).__name__}")
        if isinstance(X, np.ndarray) and X.dtype != object:
            raise TypeError("X is a dense array; scipy.sparse.csr_array(X) makes the sparse matrix that is taken")
        return self._vocabulary, X if isinstance(X, list) else list(X)

    # The work on what is encoded already.

    def _learn_one(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        raise NotImplementedError

    def _learn_many(self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]) -> Outcomes:
        """Learn, and say what was predicted for each row before it was learned."""
        raise NotImplementedError

    def _predict_one(self, encoder: Encoder, x: Any) -> Any:
        raise NotImplementedError

    def _predict_proba_one(self, encoder: Encoder, x: Any) -> dict[Any, float]:
        raise NotImplementedError

    def _decision_function_one(self, encoder: Encoder, x: Any) -> Any:
        raise NotImplementedError

    def _predict_many(self, encoder: Encoder, rows: Any) -> NDArray[Any]:
        raise NotImplementedError

    def _predict_proba_many(self, encoder: Encoder, rows: Any) -> tuple[tuple[Label, ...], Floats]:
        raise NotImplementedError

    def _decision_function_many(self, encoder: Encoder, rows: Any) -> Floats:
        raise NotImplementedError

    # The state as data, for files.

    def _to_state(self) -> tuple[dict[str, NDArray[Any]], list[Any], dict[str, Any]]:
        state = self._learner.get_state()
        arrays = {name: state.pop(name) for name in list(state) if isinstance(state[name], np.ndarray)}
        values = {
            "parameters": pack_parameters(self),
            **self._labels_to_state(),
            "learner": state,
        }
        if self.class_weight == "balanced":
            values["label_counts"] = [[pack(label), count] for label, count in self._label_counts.items()]
        return arrays, self._vocabulary.names, values

    @classmethod
    def _from_state(cls, arrays: Arrays, names: list[Any], values: Any) -> Self:
        model = cls(**unpack_parameters(values["parameters"]))
        state = {**arrays, **values["learner"]}
        model._labels_from_state(values)
        if model.class_weight == "balanced":
            model._label_counts = label_counts(values["label_counts"], model.classes)
        model._check_state(state, names)
        model._vocabulary = Vocabulary(names)
        model._learner.set_state(state)
        return model

    def _labels_to_state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _labels_from_state(self, values: Any) -> None:
        """Take over the labels; raise a ValueError or a TypeError if they cannot be."""
        raise NotImplementedError

    def _check_state(self, state: Mapping[str, Any], names: list[Any]) -> None:
        """Raise a ValueError or a TypeError if the learner cannot have been in this state."""
        raise NotImplementedError

    @property
    def classes(self) -> tuple[Label | None, ...]:
        raise NotImplementedError

    @property
    def n_iterations(self) -> int:
        raise NotImplementedError

    @property
    def weights(self) -> Any:
        raise AttributeError(f"{type(self).__name__} has no weights")

    @property
    def intercept(self) -> Any:
        raise AttributeError(f"{type(self).__name__} has no intercept")

    def _probabilities_of_only(self, label: Label) -> dict[Any, float]:
        """While one label has been met: what is left is for those to come."""
        known = rule_of_succession(self._n_learned)
        return {label: known, None: 1.0 - known}

    @property
    def _n_learned(self) -> int:
        """How many examples were learned, or nearly; exact where every example is a step."""
        raise NotImplementedError

    # Weights of examples.

    def _weights_many(
        self, marks: NDArray[Any], label_of: Callable[[Any], Label], w: float | Iterable[float]
    ) -> tuple[Floats | None, Mapping[Label, int]]:
        """The weight of each example times that of its label, given by a mark, or `None` where all are 1; and how many
        examples there are of each label once these are learned, where that matters.
        """
        if isinstance(w, (int, float)) and w == 1.0 and self.class_weight is None:
            return None, self._label_counts
        each = list(w) if isinstance(w, Iterable) else [w] * len(marks)
        check_lengths("weights", len(each), len(marks))
        labels = [label_of(mark) for mark in marks.tolist()]
        if self.class_weight == "balanced":
            of_labels, counts = balanced_weights(labels, self._label_counts)
            pairs = zip(of_labels, each, strict=True)
            return np.array([of_label * plain_weight(weight) for of_label, weight in pairs], np.float64), counts
        weights = [self._weight(label, weight) for label, weight in zip(labels, each, strict=True)]
        return np.array(weights, np.float64), self._label_counts

    def _weight(self, label: Label, w: Any) -> float:
        of_label = self.class_weight.get(label, 1.0) if isinstance(self.class_weight, Mapping) else 1.0
        return of_label * plain_weight(w)


def plain_weight(w: Any) -> float:
    check_number("w", w, 0.0, LARGEST_WEIGHT)
    return float(w)


def balanced_weights(labels: Iterable[Label], counts: Mapping[Label, int]) -> tuple[list[float], dict[Label, int]]:
    """The weight N / (K · n) of each example, with N examples of K labels so far and n of its own, itself included;
    and the new counts.
    """
    counts = dict(counts)
    n = sum(counts.values())
    weights = []
    for label in labels:
        n += 1
        counts[label] = counts.get(label, 0) + 1
        weights.append(n / (len(counts) * counts[label]))
    return weights, counts


def label_counts(packed: Any, labels: Iterable[Label | None]) -> dict[Label, int]:
    """Counts of labels as they were written.

    Raises
    ------
    TypeError, ValueError
        If they cannot be.
    """
    counts = {unpack(label): count for label, count in packed}
    if len(counts) < len(packed) or not counts.keys() <= set(labels):
        raise ValueError(f"there are counts of {[*counts]}, which are not the labels")
    for label, count in counts.items():
        check_integer(f"the count of {label!r}", count, 1, (1 << 53) - 1)
    return counts


def check_class_weight(class_weight: Any) -> None:
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise TypeError(
            f"class_weight is {class_weight!r}; it must be a dict from label to weight, 'balanced', or None"
        )
    for label, weight in class_weight.items():
        check_label(label)
        check_number(f"class_weight[{label!r}]", weight, 0.0, LARGEST_WEIGHT)
