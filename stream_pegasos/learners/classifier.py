"""What all classifiers have in common: River's protocol, and one interface to all that stands above them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from river import base

from stream_pegasos.common.checks import check_integer
from stream_pegasos.engine import Encoder, Learner, Lock, OneByOne, Rows, Vocabulary
from stream_pegasos.features.frames import (
    csr_arrays,
    frame_like,
    is_frame,
    is_series,
    list_of_examples,
    series_like,
    without_duplicates,
)
from stream_pegasos.learners.class_weights import ClassWeight, ClassWeights
from stream_pegasos.learners.decisions import PerLabel, none_if_empty
from stream_pegasos.learners.label_meaning import Label
from stream_pegasos.learners.labels import Labels, check_label
from stream_pegasos.learners.learning import LearnsRows
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions, RawScores

__all__ = ["Classifier", "OfAnyKind"]

# No machine has more processors.
MOST_THREADS = 1 << 20


class Classifier(LearnsRows, OneByOne, base.Estimator):
    """River's protocol around a learner of the engine.

    An estimator is of one of River's kinds, sets up the learner and the labels, and overrides what is special to it.
    Encoding is apart from the rest, so that a model around this one, such as the text model, may do it in its own way.

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
    max_features: int | None = None
    n_drifts: int = 0
    _linear = True  # whether two values in one column count as their sum

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        model = super().__new__(cls)
        model.lock = Lock()
        return model

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy is made of: all of it between the same two steps."""
        with self.lock:
            return copy.deepcopy(self.__dict__)

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
        """Choose the shortcuts that nothing forbids, as `_set_up` says."""
        # Whether an example may go straight to the learner, and with a weight of its own.
        self._is_direct = not self._class_weights.is_given and self.max_features is None and not watched
        self._is_direct_with_weight = self._class_weights.is_fixed and not watched
        self._by_margin = by_margin

    # One example at a time.

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
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
            self._core.learn_all(encoder, rows, y, w)
            self._name_features(rows)

    def predict_learn_many(
        self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1
    ) -> Predictions:
        """Prequential evaluation in one call: predict each example, then learn it.

        The classes of the result are those known at the end; a class that was not yet known has a score of −inf.

        Parameters
        ----------
        X, y, w, threads
            As for `learn_many`, and raising as it does.
        """
        encoder, rows = self._encode_many(X, threads)
        w = list(w) if isinstance(w, Iterable) else w
        with self.lock:
            core, n_before = self._core, self._core.n_learned
            try:
                found = core.learn_rows(encoder, rows, y, w)
                self._name_features(rows)
                return core.predictions_of(found, core.n_before_each(n_before, len(found.margins), w))
            except PartlyLearnedError as error:
                n_before_each = core.n_before_each(n_before, len(error.found.margins), w)
                error.predictions = core.predictions_of(error.found, n_before_each)
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
            self._core.forget_least()

    def set_decision(
        self,
        threshold: float | Mapping[Label, float] | None = None,
        max_false_positive_rate: float | Mapping[Label, float] | None = None,
        pos_label: Label | None = None,
    ) -> None:
        """Change which label is predicted, and nothing else. A saved model keeps the change.

        Parameters
        ----------
        threshold, max_false_positive_rate
            As those of an `AdaptiveClassifier`. What is `None` stays as it is. A rate of 1 is no limit. For another
            rate the cut-off is chosen as it says there, from the examples that were learned. A model of more than two
            classes must have learned with a limit for that; any limit will do. While the model only predicts, the
            cut-off stays, and the rate holds for messages like those that it learned.
        pos_label
            The label that single numbers are for. With two classes it becomes the positive one, so margins change their
            sign if it was the negative one. `None` keeps the present one; where an example may have several labels, it
            stands for all.

        Raises
        ------
        TypeError, ValueError
            If the model has no thresholds, a number is not between 0 and 1, a label is not in `classes`, nothing says
            which label is meant, or too little is known to choose a cut-off. The model is then as it was before.

        Examples
        --------

        >>> from stream_pegasos import AdaptiveClassifier

        >>> model = AdaptiveClassifier()
        >>> model.learn_many([{"pills": 1}] * 30, ["ham", "spam", "spam"] * 10)
        >>> model.predict_one({"pills": 1}), round(model.predict_proba_one({"pills": 1})["spam"], 2)
        ('spam', 0.57)
        >>> model.set_decision(threshold=0.9, pos_label="spam")
        >>> model.predict_one({"pills": 1})
        'ham'

        """
        if pos_label is not None:
            pos_label = check_label(pos_label)
        with self.lock:
            self._core._decide(none_if_empty(threshold), none_if_empty(max_false_positive_rate), pos_label)

    @property
    def _core(self) -> Classifier:
        return self

    @property
    def parts(self) -> dict[str, base.Base]:
        """The estimators that the model consists of, by parameter."""
        return {"classifier": self}

    # What encodes the examples.

    def encode_one(self, x: Any) -> tuple[Encoder, Any]:
        """What encodes an example, and what it takes."""
        return self._vocabulary, x

    def encode_many(self, X: Any, threads: int = 1) -> tuple[Encoder, Any]:
        """What encodes examples, and what it takes: a list, or the arrays of a CSR matrix."""
        if hasattr(X, "tocsr"):
            matrix = X.tocsr()
            rows, n_columns = csr_arrays(matrix), matrix.shape[-1]
            return Rows(n_columns), rows if self._linear else without_duplicates(rows, n_columns)
        return self._vocabulary, list_of_examples(X)

    def _encode_many(self, X: Any, threads: int) -> tuple[Encoder, Any]:
        check_integer("threads", threads, 1, MOST_THREADS)
        encoder, rows = self.encode_many(X, int(threads))
        return encoder.with_threads(int(threads)), rows

    def n_before_each(self, n_before: int, n: int, w: Any) -> Any:
        """How many examples were learned before each of n, which a call learned with weights w."""
        if self.n_learned == n_before:
            return n_before
        teaches = np.array(w[:n] if isinstance(w, list) else [w] * n, np.float64) > 0.0
        return n_before + np.cumsum(teaches) - teaches

    def predictions_of(self, found: RawScores, n_learned: Any = None) -> Predictions:
        """The predictions that raw scores make; `n_learned` is how many examples were learned before each of them."""
        labels, n_learned = self._labels, self.n_learned if n_learned is None else n_learned
        return Predictions(
            labels.scores_many(found.margins),
            lambda: labels.labels_many(found.margins, found.decided),
            lambda: labels.probabilities_many(found.margins, found.calibrated, n_learned),
            self._limited(),
            labels.pair,
        )

    # What an estimator may change.

    def _name_features(self, rows: Any) -> None:
        """Note what the features of learned rows stand for, if that is asked for."""

    def _decide(self, threshold: PerLabel, rate: PerLabel, pos_label: Label | None) -> None:
        """Take over another decision, where the model has any."""
        raise TypeError(
            f"{type(self).__name__} has no threshold and no limit of false positives; AdaptiveClassifier and "
            "MultiLabelClassifier have"
        )

    def _limited(self) -> Mapping[Label, float]:
        """The labels that have a limit of false positives, and the threshold of each."""
        return {}


if TYPE_CHECKING:

    class OfAnyKind(Classifier, base.MiniBatchClassifier):  # type: ignore[misc]
        """A model that is of the kind of the one within, which River asks of its instances.

        Type checkers, which know of classes alone, take it for a classifier, as most are.
        """
else:
    OfAnyKind = Classifier
