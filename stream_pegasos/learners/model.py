"""The interface of all models: River's protocol, inspection and files, the same with and without texts."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.checks import check_integer, check_lengths
from stream_pegasos.common.errors import indefinite, must_be, type_name
from stream_pegasos.common.file_lock import locked
from stream_pegasos.common.locks import Lock as PureLock
from stream_pegasos.common.packing import described, get_parameters
from stream_pegasos.engine import Encoder, Lock, OneByOne
from stream_pegasos.engine.pure.encoders import Inputs
from stream_pegasos.features.frames import frame_like, is_frame, is_series, n_rows, series_like
from stream_pegasos.features.vectors import VectorSource, WordVectors
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import read_weights
from stream_pegasos.learners.decisions import none_if_empty
from stream_pegasos.learners.f1_decisions import DecideFor, DecisionChange
from stream_pegasos.learners.files import KINDS, Arrays, Snapshot, check_replaceable, read_model, write_model
from stream_pegasos.learners.label_policy import Label, Prediction, check_label
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions
from stream_pegasos.learners.probabilities import Floats
from stream_pegasos.learners.trainer import Examples, Trainer

__all__ = ["Model"]

# The public names of models, beside their parameters.
PUBLIC = {
    *("learn_one", "learn_many", "predict_one", "predict_many", "predict_proba_one", "predict_proba_many"),
    *("decision_function_one", "decision_function_many", "predictions", "predict_learn_many", "explain_one"),
    *("explain_ngrams_one", "keep_names", "names", "describe", "set_decision", "forget_class", "check_labels", "flush"),
    *("classes", "pair", "weights", "intercept", "n_learned", "n_iterations", "n_features", "n_drifts", "capabilities"),
    *("parts", "save", "load", "clone", "mutate", "lock", "coverage", "predict_set_one"),
}
MOST_THREADS = 1 << 20  # no machine has more processors


class HasParameters(Protocol):
    """A classifier that takes over parameters which its trainer has taken already."""

    def take_parameters(self, parameters: dict[str, Any]) -> None: ...


class Model(OneByOne, base.Estimator):
    """The interface of all models for the layers above. A model around a classifier passes calls on to it.

    Attributes
    ----------
    capabilities : frozenset of Capability
        The abilities of the model; each equals its name: "texts" (examples are texts), "vectors" (messages may have
        vectors), "weights" (features have weights), "explain" (`contributions`, and `explain_one` for texts), "several
        classes" (more than two), "ordered" (classes are integers, and errors have a size), "several labels" (an example
        may have several).
    lock : Lock
        A reentrant lock; while a thread holds it, no other thread changes the model.
    """

    lock: PureLock
    # The names of fields in the records that it learned from, by options of `read`.
    field_names: Mapping[str, str] = MappingProxyType({})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        KINDS[cls.__name__] = cls

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        model = super().__new__(cls)
        model.lock = Lock()
        return model

    def __repr__(self) -> str:
        return described(self)

    def __getstate__(self) -> dict[str, Any]:
        """The state for a pickle or a copy, taken between two steps."""
        with self.lock:
            return copy.deepcopy(self.__dict__)

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """A new model, whose nested estimators take parameters as a dict by name; or a copy with all its knowledge."""
        if not include_attributes:
            params = dict(new_params or {})
            for name in [name for name, value in params.items() if isinstance(value, dict)]:
                part = vars(self).get(name)
                params[name] = part.clone(params[name]) if isinstance(part, base.Base) else params[name]
            return super().clone(params)
        if new_params:
            raise ValueError(
                "a copy with include_attributes keeps its parameters: leave out new_params or include_attributes"
            )
        return copy.deepcopy(self)

    def __dir__(self) -> list[str]:
        """The names for completion: those in docstrings and guides, without the interface for layers above."""
        return [name for name in super().__dir__() if name[0] == "_" or name in PUBLIC or name in get_parameters(self)]

    @property
    def trainer(self) -> Trainer:
        """The trainer, which learns and scores, with its parts."""
        raise NotImplementedError

    @property
    def parts(self) -> dict[str, base.Base]:
        """The estimators of the model, by parameter."""
        return {"classifier": self}

    # One example at a time.

    if TYPE_CHECKING:  # the engine defines them, without types of labels

        def predict_one(self, x: object) -> Prediction: ...
        def predict_prepared(self, encoder: Encoder, x: object) -> Prediction: ...

    def predict_proba_one(self, x: object) -> dict[Label, float]:
        """The probability of each known label; their sum is 1, and there is none before the first label. `predict_one`
        gives the most probable label, unless a threshold or a limit of false positives decides otherwise. A single
        known label has 1, as in River's models; `predictions` reserves a share for labels to come.

        Parameters
        ----------
        x : dict or str
            The features, as for `learn_one`; for a text model, the text.
        """
        encoder, x = self.encode_one(x)
        with self.lock:
            return self.trainer.make_probabilities(self.trainer.encode_margins(encoder, x))

    def predict_set_one(self, x: object) -> list[Label]:
        """The labels of a set that contains the right one as often as asked, the most probable first; empty before the
        first label.

        Parameters
        ----------
        x : dict or str
            The features, as for `learn_one`; for a text model, the text.

        Raises
        ------
        ValueError
            If no `coverage` was asked for.

        Examples
        --------
        >>> from stream_pegasos import AdaptiveClassifier, TextClassifier
        >>> model = TextClassifier(classifier=AdaptiveClassifier(coverage=0.9))
        >>> model.learn_many(["see you at lunch", "cheap pills for you"] * 9, ["ham", "spam"] * 9)
        >>> model.predict_set_one("cheap pills"), model.predict_set_one("who are you")
        (['spam'], ['spam', 'ham'])
        """
        if self.coverage is None:
            raise ValueError("predict_set_one: a coverage must be asked for first, as by set_decision(coverage=0.95)")
        sets = self.predictions([x]).sets
        assert sets is not None
        return sets[0]

    def decision_function_one(self, x: object) -> float | dict[Label, float]:
        """The scores that decide. With two classes: the margin, above 0 for the positive one. With more: a dict of the
        margins by class. With ordered classes: the logarithms of their probabilities.

        Parameters
        ----------
        x : dict or str
            The features, as for `learn_one`; for a text model, the text.
        """
        encoder, x = self.encode_one(x)
        with self.lock:
            return self.trainer.labels.score(self.trainer.encode_margins(encoder, x))

    # Many examples in one call.

    def learn_many(self, X: object, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1) -> None:
        """Learn from many examples in order, as with `learn_one`, but faster.

        Parameters
        ----------
        X : iterable of dict or str, series, data frame or sparse matrix
            A sequence of feature dicts, a data frame with a column for each feature, or a SciPy sparse matrix, whose
            columns are the features 0, 1, 2, …; for a text model, texts.
        y : iterable of labels, or data frame
            The label of each example; for a `MultiLabelClassifier` a collection of labels for each, or a data frame
            with a column of truth values for each label.
        w : float or iterable of float, default 1.0
            The weight of all examples, or a weight for each, from 0 to 1e30.
        threads : int, default 1
            The number of threads for the call, at least 1. The results are the same for any number, bit for bit. Only
            text models use more than one: if there are enough texts, the other threads turn texts into features in
            advance. Dicts and matrices use one thread, and the pure engine always uses one.

        Raises
        ------
        TypeError, ValueError
            As for `learn_one`; also if the numbers of labels or weights and examples differ, or if `threads` is no
            integer of at least 1. Then no example is learned.
        PartlyLearnedError
            If a drift detector raises after some examples. The error has the number of learned examples.
        """
        examples = self._read_examples(X, y, w, threads)
        with self.lock:
            trainer, n_before = self.trainer, self.trainer.learner.n_learned
            try:
                trainer.learn_all(examples)
            finally:  # after an exception, the learned examples get names, too
                self._name_features(examples, trainer.learner.n_learned - n_before)

    def predict_learn_many(
        self, X: object, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1
    ) -> Predictions:
        """Prequential evaluation in one call: predict each example, then learn it.

        The classes of the result are those known at the end; a class has a score of −inf before it is known.

        Parameters
        ----------
        X : iterable of dict or str, series, data frame or sparse matrix
        y : iterable of labels, or data frame
        w : float or iterable of float, default 1.0
        threads : int, default 1
            All as for `learn_many`, with the same errors.
        """
        examples = self._read_examples(X, y, w, threads)
        with self.lock:
            trainer, n_before = self.trainer, self.trainer.learner.n_learned
            try:
                raw = trainer.learn_rows(examples)
                return trainer.make_predictions(raw, trainer.count_learned(examples, n_before, len(raw.margins)))
            except PartlyLearnedError as error:
                assert error.found is not None
                n_learned = trainer.count_learned(examples, n_before, len(error.found.margins))
                error.predictions = trainer.make_predictions(error.found, n_learned)
                raise
            finally:
                self._name_features(examples, trainer.learner.n_learned - n_before)

    def predictions(self, X: object, threads: int = 1) -> Predictions:
        """All predictions for each example: labels, probabilities and scores.

        Parameters
        ----------
        X : iterable of dict or str, series, data frame or sparse matrix
            As for `learn_many`.
        threads : int, default 1
            As for `learn_many`; here each thread predicts a share of the texts.
        """
        encoder, rows = self._encode_many(X, threads)
        with self.lock:
            return self.trainer.make_predictions(self.trainer.score_rows(encoder, rows))

    def predict_many(self, X: object, threads: int = 1) -> Any:
        """The label of each example, as an array; as a series if X is a data frame or a series.

        Parameters
        ----------
        X : iterable of dict or str, series, data frame or sparse matrix
            As for `learn_many`.
        threads : int, default 1
            As for `predictions`.
        """
        labels = self.predictions(X, threads).labels
        return series_like(X, labels) if is_frame(X) or is_series(X) else labels

    def predict_proba_many(self, X: object, threads: int = 1) -> Any:
        """The probabilities of each example, as an array with a column for each label, in the order of
        `predict_proba_one`; as a data frame if X is a data frame or a series.

        Parameters
        ----------
        X : iterable of dict or str, series, data frame or sparse matrix
            As for `learn_many`.
        threads : int, default 1
            As for `predictions`.
        """
        predictions = self.predictions(X, threads)
        classes, probabilities = predictions.classes, predictions.probabilities
        if None in classes:  # beside the only known label
            classes, probabilities = classes[:1], np.ones((len(predictions), 1))
        if is_frame(X) or is_series(X):
            return frame_like(X, dict(zip(classes, probabilities.T, strict=True)))
        return probabilities

    def decision_function_many(self, X: object, threads: int = 1) -> Any:
        """The scores that decide, as an array with a row for each example.

        Parameters
        ----------
        X : iterable of dict or str, series, data frame or sparse matrix
            As for `learn_many`.
        threads : int, default 1
            As for `predictions`.
        """
        return self.predictions(X, threads).scores

    def flush(self) -> None:
        """Take the step with the examples in the mini-batch buffer, if there are any."""
        with self.lock:
            self.trainer.flush()

    def set_decision(
        self,
        threshold: float | Mapping[Label, float] | None = None,
        max_false_positive_rate: float | Mapping[Label, float] | None = None,
        pos_label: Label | None = None,
        decide_for: DecideFor | None = None,
        coverage: float | None = None,
    ) -> None:
        """Change which label is predicted, and nothing else. A saved model keeps the change.

        Parameters
        ----------
        threshold : float, dict or None, default None
            As for `AdaptiveClassifier`; `None` keeps the present one.
        max_false_positive_rate : float, dict or None, default None
            As for `AdaptiveClassifier`; `None` keeps the present one, and a rate of 1 is no limit. For a new rate, the
            cut-off is chosen from the learned examples, as described there. With more than two classes, the model must
            have learned with a limit for this; any limit is enough. While the model only predicts, the cut-off does not
            change, and the rate holds for messages like the learned ones.
        pos_label : bool, int, str or None, default None
            The label that single numbers are for. With two classes it becomes the positive one, so margins change their
            sign if it was the negative one. `None` keeps the present one; if an example may have several labels, it
            stands for all.
        decide_for : {"accuracy", "macro_f1", "micro_f1"} or None, default None
            As for `AdaptiveClassifier`; `None` keeps the present one. The counts serve both means of F1. A model that
            has learned for accuracy has no counts: at first it decides as before, and for F1 only as it learns.
        coverage : float or None, default None
            As for `AdaptiveClassifier`; `None` keeps the present one, and 0 stands for no sets.

        Raises
        ------
        TypeError, ValueError
            If the model has no thresholds, if a number is not between 0 and 1, if a label is not in `classes`, if the
            positive label is unknown, or if too few examples are known for a cut-off. The model does not change then.

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
            decisions = none_if_empty(threshold), none_if_empty(max_false_positive_rate)
            change = DecisionChange(*decisions, pos_label, decide_for, coverage)
            parameters = self.trainer.change_decision(change)
            if parameters is None:
                raise TypeError(
                    f"{type(self.parts['classifier']).__name__} has no threshold, no limit of false positives and no "
                    "coverage; AdaptiveClassifier and MultiLabelClassifier have"
                )
            cast(HasParameters, self.parts["classifier"]).take_parameters(parameters)

    def forget_class(self, label: Label) -> None:
        """Remove a class and its weights, for example after a typo. It is not predicted any more; if it comes again, it
        is a new class. Its effect on the weights of other classes stays. For models of "several classes".

        Parameters
        ----------
        label : bool, int or str
            The label, one of `classes`.

        Raises
        ------
        TypeError
            If the model is only for two classes, or for ordered classes.
        ValueError
            If the label is not in `classes`. The model does not change then.
        """
        if Capability.MULTICLASS not in self.capabilities or Capability.ORDINAL in self.capabilities:
            raise TypeError(f"{type(self.parts['classifier']).__name__} cannot forget a class")
        label = check_label(label)
        with self.lock:
            self.trainer.drop_class(label)

    # Inspection.

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset()

    @property
    def max_features(self) -> int | None:
        """The largest number of features to keep; `None` for no limit."""
        return self.trainer.forgetting.max_features

    @property
    def n_drifts(self) -> int:
        """The number of drifts that the detector has detected; 0 without a detector."""
        return self.trainer.drift.n_drifts

    @property
    def vector_source(self) -> VectorSource | None:
        """The source of a message's vector, if there is one; a model file has only its name."""
        return None

    @property
    def coverage(self) -> float | None:
        """The requested coverage, if there is one."""
        return self.trainer.policy.coverage

    @property
    def classes(self) -> tuple[Label, ...]:
        """The known labels, in order of arrival; ordered classes in ascending order."""
        return self.labels.classes

    @property
    def labels(self) -> Labels:
        """The labels as the model numbers them, for layers above."""
        return self.trainer.labels

    @property
    def pair(self) -> tuple[Label | None, ...]:
        """The labels for a score below 0 and above 0, if an example has a single score; `None` for a label that has not
        come.
        """
        return self.labels.pair

    @property
    def n_learned(self) -> int:
        """The number of learned examples; exact if every example is a step, otherwise approximate."""
        return self.trainer.learner.n_learned

    @property
    def n_iterations(self) -> int:
        """The number of steps taken; with several columns, the largest."""
        return self.trainer.learner.n_iterations

    @property
    def n_features(self) -> int:
        """The number of known features; with a kernel, of support vectors."""
        return len(self.trainer.learner)

    @property
    def weights(self) -> Any:
        """The weight of each feature by name; with several columns, a dict of the nonzero weights for each."""
        self._check_has("weights")
        with self.lock:
            return self.trainer.weights()

    @property
    def intercept(self) -> Any:
        """The constant part of the margin; with several columns, a dict by column."""
        self._check_has("intercept")
        with self.lock:
            return self.trainer.labels.show_intercepts(self.trainer.learner.intercept)

    def get_weights(self, keys: NDArray[np.int64], label: Label | None = None) -> Floats:
        """The weights of features that are ints, 0 for unknown ones: a row for each feature, a column for each
        class, or for one label alone.
        """
        self._check_has("weights")
        with self.lock:
            return self.trainer.weights_by_key(keys, label)

    def _check_has(self, name: str) -> None:
        if Capability.WEIGHTS not in self.capabilities:
            raise AttributeError(f"{type(self.parts['classifier']).__name__} has no {name}")

    def check_labels(self, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> None:
        """Check that all these labels can be learned, in this order, with these weights.

        Raises
        ------
        TypeError, ValueError
            As for `learn_one`, if a label cannot be learned.
        """
        labels = self.trainer.labels.read_column(y)
        self.trainer.check_labels(labels, read_weights(w, len(labels)))

    @property
    def _multiclass(self) -> bool:
        return Capability.MULTICLASS in self.capabilities

    # Encoding.

    def encode_one(self, x: object) -> tuple[Encoder, Any]:
        """An encoder, and the example in the form that it takes."""
        raise NotImplementedError

    def encode_many(self, X: object, threads: int = 1) -> tuple[Encoder, Inputs]:
        """An encoder, and the examples in the form that it takes: a list, or the arrays of a CSR matrix."""
        raise NotImplementedError

    def _encode_many(self, X: object, threads: int) -> tuple[Encoder, Inputs]:
        if type(threads) is int and threads == 1:
            return self.encode_many(X)
        check_integer("threads", threads, 1, MOST_THREADS)
        encoder, rows = self.encode_many(X, int(threads))
        return encoder.get_threaded(int(threads)), rows

    def _read_examples(self, X: object, y: Iterable[Any], w: float | Iterable[float], threads: int) -> Examples:
        """Examples, labels and weights in the form that the trainer takes. This is the only place that reads them."""
        encoder, rows = self._encode_many(X, threads)
        labels = y if type(y) is list else self.trainer.labels.read_column(y)
        n = n_rows(rows)
        if len(labels) != n:
            check_lengths("labels", len(labels), n)
        return Examples(encoder, rows, labels, None if type(w) is float and w == 1.0 else read_weights(w, n))

    def _name_features(self, examples: Examples, n_learned: int) -> None:
        """Note the names of the features in the first `n_learned` examples that teach, if names are kept."""

    # Files.

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        """Arrays, names of features and JSON values. If `lazy`, an array may be a `Column`, which must be read before
        the model changes.
        """
        raise NotImplementedError

    @classmethod
    def from_state(cls, arrays: Arrays, names: list[Any], values: dict[str, Any]) -> Self:
        """The model for a result of `to_state`. The value `find_vectors` finds word vectors that a file names."""
        raise NotImplementedError

    def vectors_met(self) -> WordVectors:
        """The word vectors in use, with only the words that the model has met; a ValueError if there are none."""
        raise ValueError(f"{type(self).__name__} has no word vectors to be saved")

    def save(self, path: str | os.PathLike[str], vectors: bool = False) -> None:
        """Write the model, with its mini-batch buffer, to a file. The file is written as a whole or not at all.

        A drift detector starts again in a loaded model. The file has only the name of word vectors or an encoder:
        `load` opens them only if the caller names them, too.

        Parameters
        ----------
        path : str or path
            The file; an existing model is replaced at the end, in one step.
        vectors : bool, default False
            Whether to write the word vectors, too: of the words that this model has met since it was created, copied,
            merged or loaded, by their hashes; of more than 98,304 words per thread, only those met last. Then a loaded
            model needs no package and no file of vectors; other words have no vector.

        Raises
        ------
        ValueError
            If a parameter is a function, which no file can hold without code, if there are no vectors to write, or if
            the file exists and is no model.
        OSError
            If the file cannot be written, for example on a full disk, or if it is in use, for example by a service. The
            previous file does not change then.
        """
        source = self.vectors_met() if vectors else self.vector_source
        with locked(path):
            check_replaceable(path)
            write_model(path, lambda file: self._snapshot(None, file, source))

    def snapshot(self, progress: object = None, file: IO[bytes] | None = None) -> Snapshot:
        """The present state, for writing while the model continues to learn. `progress`, such as the position in the
        stream, is any value that `pack` takes. Its arrays are copies; or they are in a file that `write_model` opened,
        so that memory holds no second model.
        """
        return self._snapshot(progress, file, self.vector_source)

    def _snapshot(self, progress: object, file: IO[bytes] | None, vectors: VectorSource | None) -> Snapshot:
        with self.lock:
            state = self.to_state(lazy=file is not None)
            taken = Snapshot(type(self).__name__, *state, progress, self.field_names, vectors)
            return taken if file is None else taken.spooled(file)

    @classmethod
    def load(cls, path: str | os.PathLike[str], vectors: object = None) -> Self:
        """Read a model of this class from a file that `save` wrote. Parameters and errors are those of the function
        `load`.

        Raises
        ------
        ValueError
            Also if the file holds a model of another class.
        """
        model: Self = read_model(path, vectors)[0]
        if not issubclass(type(model), cls):  # isinstance would also see the classifier in a text model
            raise ValueError(must_be(f"the model of {path}", indefinite(cls.__name__), type_name(model)))
        return model
