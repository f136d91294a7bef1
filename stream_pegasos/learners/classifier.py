"""What all classifiers have in common: River's protocol, and one interface to all that stands above them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.checks import check_integer
from stream_pegasos.engine import Encoder, Lock, OneByOne, Rows
from stream_pegasos.features.frames import (
    csr_arrays,
    frame_like,
    is_frame,
    is_series,
    list_of_examples,
    series_like,
    without_duplicates,
)
from stream_pegasos.learners.explanations import Contributions, explain
from stream_pegasos.learners.files import Snapshot
from stream_pegasos.learners.labels import Label, Labels
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions
from stream_pegasos.learners.probabilities import Floats
from stream_pegasos.learners.rows import RowClassifier

__all__ = ["Classifier"]

# No machine has more processors.
MOST_THREADS = 1 << 20


class Classifier(OneByOne, RowClassifier, base.MiniBatchClassifier):  # type: ignore[misc]  # whose y is a bool, int or str
    """River's protocol around a learner of the engine.

    What turns examples into the rows that a `RowClassifier` takes is apart from the rest, which a model around this one
    uses, as the text model does.

    Attributes
    ----------
    capabilities
        What the model can do, by name: "texts" (examples are texts), "weights" (features have weights), "explain"
        (`contributions`; of a text `explain_one`), "several classes" (more than two), "ordered" (classes that are
        integers, between which errors have a size), "several labels" (an example may have several).
    lock
        Whoever holds it finds the model between two steps.
    """

    capabilities: frozenset[str] = frozenset()
    _labels: Labels
    _linear = True  # whether values of one column that comes twice count as their sum does

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        model = super().__new__(cls)
        model.lock = Lock()
        return model

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy is made of: all of it between the same two steps."""
        with self.lock:
            return copy.deepcopy(self.__dict__)

    # One example at a time.

    def predict_proba_one(self, x: Any) -> dict[Any, float]:  # type: ignore[override]
        """The probability of each label. `predict_one` gives the label with the largest one, unless a threshold or a
        limit of false positives decides otherwise. While only one label is known, `None` stands for those to come:
        after n examples with the same label, the next one has it with probability (n + 1) / (n + 2), by Laplace's rule
        of succession.

        Parameters
        ----------
        x
            The features, as for `learn_one`.
        """
        encoder, x = self.encode_one(x)
        with self.lock:
            return self._core.probabilities_of(self._core.margins_of(encoder, x))

    def decision_function_one(self, x: Any) -> Any:
        """What the decision rests on. With two classes: the margin, above 0 for the positive one. With more: a dict of
        the margins by class. With ordered classes: the logarithms of their probabilities or, where each pair of
        neighbours has its SVM, the margins by pair.

        Parameters
        ----------
        x
            The features, as for `learn_one`.
        """
        encoder, x = self.encode_one(x)
        with self.lock:
            return self._core.score_of(self._core.margins_of(encoder, x))

    # Many examples in one call.

    def learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1) -> None:
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
        threads
            How many threads may work on the call, at least 1. What is learned and predicted is the same for any number,
            bit for bit. Only text models use more than one: if there are enough texts, the others turn texts into
            features in advance. Dicts and matrices use one thread, and so does everything without the compiled engine.

        Raises
        ------
        TypeError, ValueError
            As `learn_one` does; also if there are not as many labels or weights as examples, or if `threads` is no
            integer of at least 1. Nothing is learned then.
        PartlyLearnedError
            If a drift detector raises after some examples. It says how many were learned.
        """
        encoder, rows = self._encode_many(X, threads)
        with self.lock:
            self._core.learn_rows(encoder, rows, y, w)
            self._name_features(rows)

    def predict_learn_many(
        self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1
    ) -> Predictions:
        """Prequential evaluation in one call: predict each example, then learn it.

        The classes of the result are those known at the end; a class that was not yet known has a score of −inf. While
        only one label is known, its probability counts all examples of the call.

        Parameters
        ----------
        X, y, w, threads
            As for `learn_many`, and raising as it does.
        """
        encoder, rows = self._encode_many(X, threads)
        with self.lock:
            try:
                said = self._core.predictions_of(self._core.learn_rows(encoder, rows, y, w))
                self._name_features(rows)
                return said
            except PartlyLearnedError as error:
                error.predictions = self._core.predictions_of(error.found)
                raise

    def predictions(self, X: Any, threads: int = 1) -> Predictions:
        """All predictions for each example: label, probabilities and scores.

        Parameters
        ----------
        X, threads
            As for `learn_many`; here each thread predicts a share of the texts.
        """
        encoder, rows = self._encode_many(X, threads)
        with self.lock:
            return self._core.predictions_of(self._core.meet_rows(encoder, rows))

    def predict_many(self, X: Any, threads: int = 1) -> Any:
        """The label of each example, as an array; as a series for a data frame or a series.

        Parameters
        ----------
        X, threads
            As for `predictions`.
        """
        labels = self.predictions(X, threads).labels
        return series_like(X, labels) if is_frame(X) or is_series(X) else labels

    def predict_proba_many(self, X: Any, threads: int = 1) -> Any:
        """The probabilities of each example, as an array with a column a label, in the order of `predict_proba_one`; as
        a data frame for a data frame or a series.

        Parameters
        ----------
        X, threads
            As for `predictions`.
        """
        said = self.predictions(X, threads)
        if is_frame(X) or is_series(X):
            return frame_like(X, dict(zip(said.classes, said.probabilities.T, strict=True)))
        return said.probabilities

    def decision_function_many(self, X: Any, threads: int = 1) -> Any:
        """What the decision on each example rests on, as an array with a row an example.

        Parameters
        ----------
        X, threads
            As for `predictions`.
        """
        return self.predictions(X, threads).scores

    def flush(self) -> None:
        """Take the step with the examples that the mini-batch buffer holds; none if it is empty."""
        with self.lock:
            self._core._learner.flush()
            self._core._forget()

    def snapshot(self, progress: Any = None) -> Snapshot:
        with self.lock, self._core._learner.forked_copy() as copied:
            return dataclasses.replace(super().snapshot(progress), wait=copied.wait)

    def set_decision(
        self,
        threshold: float | Mapping[Label, float] | None = None,
        max_false_positive_rate: float | Mapping[Label, float] | None = None,
        pos_label: Label | None = None,
    ) -> None:
        """Change which label is predicted, and nothing else; for models with thresholds.

        Parameters
        ----------
        threshold, max_false_positive_rate, pos_label
            As for `AdaptiveClassifier.set_decision`; what is `None` stays as it is.

        Raises
        ------
        TypeError
            If the model has no thresholds.
        """
        raise TypeError(
            f"{type(self).__name__} has no threshold and no limit of false positives; AdaptiveClassifier and "
            "MultiLabelClassifier have"
        )

    def check_labels(self, y: Iterable[Any]) -> None:
        """Check that all these labels could be learned, in that order.

        Raises
        ------
        TypeError, ValueError
            As `learn_one` does if one could not.
        """
        self._core._labels.with_labels(y)

    def forget_class(self, label: Label) -> None:
        """Remove a class, such as one that a typo brought, with its weights. It is not predicted any more; if it comes
        again, it is new. What its examples taught the other classes stays. For models of "several classes".

        Parameters
        ----------
        label
            The label, one of `classes`.

        Raises
        ------
        TypeError
            If the model is for two classes alone, for ordered ones, or frozen.
        ValueError
            If the label is not in `classes`. The model is then as it was before.

        """
        core = self._core
        if "several classes" not in core.capabilities or "ordered" in core.capabilities or core.is_frozen:
            raise TypeError(f"{'a frozen model' if core.is_frozen else type(core).__name__} cannot forget a class")
        with self.lock:
            core._forget_class(label)

    # What is known of the model.

    @property
    def has_one_margin(self) -> bool:
        """Whether one margin tells two classes apart; otherwise each class has its own, or a column of it."""
        return not self._core._learner.several

    @property
    def classes(self) -> tuple[Label | None, ...]:
        return self._core._labels.classes

    def _intercepts(self) -> Any:
        values, columns = self._learner.intercept.tolist(), self._columns()
        return values[0] if columns is None else {of: values[column] + 0.0 for of, column in columns.items()}  # no −0

    def _n_columns(self) -> int:
        columns = self._columns()
        return 1 if columns is None else len(columns)

    @property
    def n_iterations(self) -> int:
        return self._core._learner.n_iterations

    @property
    def n_features(self) -> int:
        """The number of features that are known; with a kernel that of the support vectors."""
        return len(self._core._learner)

    @property
    def weights(self) -> Any:
        """The weight of each feature, by its name; with several columns a dict of those for each that are not 0."""
        core = self._core_with("weights")
        with self.lock:
            keys, values = core._learner.items()
            order = np.argsort(keys, kind="stable")
            names, values = [core._vocabulary.name(key) for key in keys[order].tolist()], values[order]
            columns = core._columns()
        if columns is None:
            return dict(zip(names, values[:, 0].tolist(), strict=True))
        return {
            of: {names[i]: float(values[i, column]) for i in np.flatnonzero(values[:, column]).tolist()}
            for of, column in columns.items()
        }

    @property
    def intercept(self) -> Any:
        """What the intercept adds to the margin; with several columns to that of each."""
        core = self._core_with("intercept")
        with self.lock:
            return core._intercepts()

    def weights_of(self, keys: NDArray[np.int64]) -> Floats:
        """What features weigh that are ints, as hashed ones are: a row each, with a column for each class or, with two
        classes, for the margin; 0 for those that are not known.
        """
        core = self._core_with("weights")
        with self.lock:
            weights, columns = core._learner.weights_of(keys), core._columns()
        return weights if columns is None else weights[:, list(columns.values())]

    def contributions(self, encoder: Encoder, x: Any, label: Any = None) -> Contributions:
        """What all that an example has adds to the margin; where the model can "explain". With several classes the
        margin is that of the one named or, without a name, how far that of the predicted class is above the next best.
        """
        core = self._core
        with self.lock:
            return explain(core._learner, encoder, x, core._explained(encoder, x, label))

    @property
    def _core(self) -> Classifier:
        """The part that learns: itself, or that of a model around it."""
        return self

    @property
    def parts(self) -> dict[str, base.Base]:
        """The estimators that the model consists of, by parameter."""
        return {"classifier": self}

    def _core_with(self, name: str) -> Classifier:
        if "weights" not in self.capabilities:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return self._core

    @property
    def _multiclass(self) -> bool:
        return "several classes" in self.capabilities

    # What encodes the examples.

    def encode_one(self, x: Any) -> tuple[Encoder, Any]:
        """What encodes an example, and what it takes."""
        return self._vocabulary, x

    def encode_many(self, X: Any) -> tuple[Encoder, Any]:
        """What encodes examples, and what it takes: a list, or the arrays of a CSR matrix."""
        if hasattr(X, "tocsr"):
            matrix = X.tocsr()
            rows, n_columns = csr_arrays(matrix), matrix.shape[-1]
            return Rows(n_columns), rows if self._linear else without_duplicates(rows, n_columns)
        return self._vocabulary, list_of_examples(X)

    def _encode_many(self, X: Any, threads: int) -> tuple[Encoder, Any]:
        check_integer("threads", threads, 1, MOST_THREADS)
        encoder, rows = self.encode_many(X)
        return encoder.with_threads(int(threads)), rows
