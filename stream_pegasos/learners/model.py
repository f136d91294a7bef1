"""The face of all models: River's protocol, inspection and files, the same for a classifier and for one over texts."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.checks import check_integer, indefinite, must_be
from stream_pegasos.common.file_lock import locked
from stream_pegasos.common.locks import Lock as PureLock
from stream_pegasos.common.packing import described, get_parameters
from stream_pegasos.engine import Encoder, Lock, OneByOne
from stream_pegasos.engine.pure.encoders import Inputs
from stream_pegasos.features.frames import frame_like, is_frame, is_series, series_like
from stream_pegasos.features.vectors import VectorSource, WordVectors
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import weights_given
from stream_pegasos.learners.core import Core
from stream_pegasos.learners.decisions import none_if_empty
from stream_pegasos.learners.f1_decisions import DecideFor, DecisionChange
from stream_pegasos.learners.files import KINDS, Arrays, Snapshot, check_replaceable, read_model, write_model
from stream_pegasos.learners.label_meaning import Label, Prediction
from stream_pegasos.learners.labels import check_label
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions
from stream_pegasos.learners.probabilities import Floats

__all__ = ["Model"]

# What is public of models, beside their parameters.
PUBLIC = {
    *("learn_one", "learn_many", "predict_one", "predict_many", "predict_proba_one", "predict_proba_many"),
    *("decision_function_one", "decision_function_many", "predictions", "predict_learn_many", "explain_one"),
    *("explain_ngrams_one", "keep_names", "names", "describe", "set_decision", "forget_class", "check_labels", "flush"),
    *("classes", "pair", "weights", "intercept", "n_learned", "n_iterations", "n_features", "n_drifts", "capabilities"),
    *("parts", "save", "load", "clone", "mutate", "lock", "coverage", "predict_set_one"),
}
MOST_THREADS = 1 << 20  # no machine has more processors


class Model(OneByOne, base.Estimator):
    """What all that stands above models may ask of one; a model around a classifier answers with what that one does.

    Attributes
    ----------
    capabilities
        What the model can do, each a `Capability` that equals its name: "texts" (examples are texts), "vectors" (which
        messages may have), "weights" (features have weights), "explain" (`contributions`; of a text `explain_one`),
        "several classes" (more than two), "ordered" (classes that are integers, between which errors have a size),
        "several labels" (an example may have several).
    lock
        Whoever holds it finds the model between two steps.
    """

    lock: PureLock
    # Those of the records that it was taught from, by options of `read`.
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
        """What a pickle or a copy is made of: all of it between the same two steps."""
        with self.lock:
            return copy.deepcopy(self.__dict__)

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """A fresh model, whose parts take parameters as a dict by name; or a copy that keeps what was learned."""
        if not include_attributes:
            params = dict(new_params or {})
            for name in [name for name, value in params.items() if isinstance(value, dict)]:
                part = vars(self).get(name)
                params[name] = part.clone(params[name]) if isinstance(part, base.Base) else params[name]
            return super().clone(params)
        if new_params:
            raise ValueError("what was learned keeps its own parameters: leave out new_params or include_attributes")
        return copy.deepcopy(self)

    def __dir__(self) -> list[str]:
        """What completion offers: what is told of in docstrings and guides, and not what the layers above share."""
        return [name for name in super().__dir__() if name[0] == "_" or name in PUBLIC or name in get_parameters(self)]

    @property
    def _core(self) -> Core:
        """The classifier that learns: the model itself, or the one within it."""
        raise NotImplementedError

    @property
    def parts(self) -> dict[str, base.Base]:
        """The estimators that the model consists of, by parameter."""
        return {"classifier": self}

    # One example at a time.

    if TYPE_CHECKING:  # they are the engine's, which knows nothing of labels

        def predict_one(self, x: object) -> Prediction: ...
        def predict_prepared(self, encoder: Encoder, x: object) -> Prediction: ...

    def predict_proba_one(self, x: object) -> dict[Label, float]:
        """The probability of each label that is known, none before the first; their sum is 1. `predict_one` gives the
        label with the largest one, unless a threshold or a limit of false positives decides otherwise. While one label
        alone is known it has 1, as River's own have it; `predictions` leaves room for labels to come.

        Parameters
        ----------
        x
            The features, as for `learn_one`.
        """
        encoder, x = self.encode_one(x)
        with self.lock:
            return self._core.make_probabilities(self._core.encode_margins(encoder, x))

    def predict_set_one(self, x: object) -> list[Label]:
        """The labels of a set that holds the right one as often as asked, the likeliest first; [] before any is known.

        Parameters
        ----------
        x
            The features, as for `learn_one`.

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
        """What the decision rests on. With two classes: the margin, above 0 for the positive one. With more: a dict of
        the margins by class. With ordered classes: the logarithms of their probabilities.

        Parameters
        ----------
        x
            The features, as for `learn_one`.
        """
        encoder, x = self.encode_one(x)
        with self.lock:
            return self._core.decision_score(self._core.encode_margins(encoder, x))

    # Many examples in one call.

    def learn_many(self, X: object, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1) -> None:
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
        y, w = list(y) if isinstance(y, Iterator) else y, weights_given(w)
        with self.lock:
            core, n_before = self._core, self._core.n_learned
            try:
                core.learn_all(encoder, rows, y, w)
            finally:  # after an exception those that were learned before it have names, too
                self._name_features(rows, y, w, core.n_learned - n_before)

    def predict_learn_many(
        self, X: object, y: Iterable[Any], w: float | Iterable[float] = 1.0, threads: int = 1
    ) -> Predictions:
        """Prequential evaluation in one call: predict each example, then learn it.

        The classes of the result are those known at the end; a class that was not yet known has a score of −inf.

        Parameters
        ----------
        X, y, w, threads
            As for `learn_many`, and raising as it does.
        """
        encoder, rows = self._encode_many(X, threads)
        y, w = list(y) if isinstance(y, Iterator) else y, weights_given(w)
        with self.lock:
            core, n_before = self._core, self._core.n_learned
            try:
                try:
                    raw = core.learn_rows(encoder, rows, y, w)
                finally:
                    self._name_features(rows, y, w, core.n_learned - n_before)
                predictions: Predictions = core.make_predictions(
                    raw, core.n_before_each(n_before, len(raw.margins), y, w)
                )
                return predictions
            except PartlyLearnedError as error:
                assert error.found is not None
                n_before_each = core.n_before_each(n_before, len(error.found.margins), y, w)
                error.predictions = core.make_predictions(error.found, n_before_each)
                raise

    def predictions(self, X: object, threads: int = 1) -> Predictions:
        """All predictions for each example: label, probabilities and scores.

        Parameters
        ----------
        X, threads
            As for `learn_many`; here each thread predicts a share of the texts.
        """
        encoder, rows = self._encode_many(X, threads)
        with self.lock:
            predictions: Predictions = self._core.make_predictions(self._core.score_rows(encoder, rows))
        return predictions

    def predict_many(self, X: object, threads: int = 1) -> Any:
        """The label of each example, as an array; as a series for a data frame or a series.

        Parameters
        ----------
        X, threads
            As for `predictions`.
        """
        labels = self.predictions(X, threads).labels
        return series_like(X, labels) if is_frame(X) or is_series(X) else labels

    def predict_proba_many(self, X: object, threads: int = 1) -> Any:
        """The probabilities of each example, as an array with a column a label, in the order of `predict_proba_one`; as
        a data frame for a data frame or a series.

        Parameters
        ----------
        X, threads
            As for `predictions`.
        """
        predictions = self.predictions(X, threads)
        classes, probabilities = predictions.classes, predictions.probabilities
        if None in classes:  # behind the only label that is known
            classes, probabilities = classes[:1], np.ones((len(predictions), 1))
        if is_frame(X) or is_series(X):
            return frame_like(X, dict(zip(classes, probabilities.T, strict=True)))
        return probabilities

    def decision_function_many(self, X: object, threads: int = 1) -> Any:
        """What the decision on each example rests on, as an array with a row an example.

        Parameters
        ----------
        X, threads
            As for `predictions`.
        """
        return self.predictions(X, threads).scores

    def flush(self) -> None:
        """Take the step with the examples that the mini-batch buffer holds; none if it is empty."""
        self._core.flush()

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
        threshold, max_false_positive_rate
            As those of an `AdaptiveClassifier`. What is `None` stays as it is. A rate of 1 is no limit. For another
            rate the cut-off is chosen as it says there, from the examples that were learned. A model of more than two
            classes must have learned with a limit for that; any limit will do. While the model only predicts, the
            cut-off stays, and the rate holds for messages like those that it learned.
        pos_label
            The label that single numbers are for. With two classes it becomes the positive one, so margins change their
            sign if it was the negative one. `None` keeps the present one; where an example may have several labels, it
            stands for all.
        decide_for
            As that of an `AdaptiveClassifier`; `None` keeps the present one. What is counted for one mean of F1 serves
            the other, too. A model that has learned for accuracy has nothing counted: it decides as before at first,
            and for F1 as it learns.
        coverage
            As that of an `AdaptiveClassifier`; `None` keeps the present one, and 0 asks for no sets.

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
            decisions = none_if_empty(threshold), none_if_empty(max_false_positive_rate)
            self._core.decide(DecisionChange(*decisions, pos_label, decide_for, coverage))

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
            If the model is for two classes alone, or for ordered ones.
        ValueError
            If the label is not in `classes`. The model is then as it was before.
        """
        if Capability.MULTICLASS not in self.capabilities or Capability.ORDINAL in self.capabilities:
            raise TypeError(f"{type(self._core).__name__} cannot forget a class")
        label = check_label(label)
        with self.lock:
            self._core.drop_class(label)

    # What it knows.

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset()

    @property
    def max_features(self) -> int | None:
        """The largest number of features that are kept; `None` for no limit."""
        return None

    @property
    def n_drifts(self) -> int:
        """How many drifts the detector has detected; 0 without one."""
        return 0

    @property
    def vector_source(self) -> VectorSource | None:
        """What gives a message its vector, if anything; a file names it, but does not have it."""
        return None

    @property
    def coverage(self) -> float | None:
        """The coverage that is asked for, if any."""
        conformal = self._core.conformal
        return None if conformal is None else conformal.coverage

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels that are known, in the order in which they came."""
        return self._core.classes

    @property
    def pair(self) -> tuple[Label | None, ...]:
        """Where an example has a single score: the labels that a score below and above 0 stands for, `None` for one to
        come.
        """
        return self._core.pair

    @property
    def n_learned(self) -> int:
        """How many examples were learned; exact if every example is a step, and otherwise nearly so."""
        return self._core.n_learned

    @property
    def n_iterations(self) -> int:
        """The number of steps taken; with several columns, the largest."""
        return self._core.n_iterations

    @property
    def n_features(self) -> int:
        """The number of known features; with a kernel, of support vectors."""
        return self._core.n_features

    @property
    def weights(self) -> Any:
        """The weight of each feature by name; with several columns, a dict of the weights other than 0 for each."""
        return self._core.weights

    @property
    def intercept(self) -> Any:
        """What the intercept adds to the margin; with several columns, a dict for these."""
        return self._core.intercept

    def get_weights(self, keys: NDArray[np.int64]) -> Floats:
        """The weights of features that are ints, 0 for unknown ones: a row each, a column a class."""
        return self._core.get_weights(keys)

    def check_labels(self, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> None:
        """Check that all these labels can be learned, in this order, with these weights.

        Raises
        ------
        TypeError, ValueError
            As `learn_one` does, if a label cannot be learned.
        """
        self._core.check_labels(y, w)

    @property
    def _multiclass(self) -> bool:
        return Capability.MULTICLASS in self.capabilities

    # What encodes the examples.

    def encode_one(self, x: object) -> tuple[Encoder, Any]:
        """What encodes an example, and what it takes."""
        raise NotImplementedError

    def encode_many(self, X: object, threads: int = 1) -> tuple[Encoder, Inputs]:
        """What encodes examples, and what it takes: a list, or the arrays of a CSR matrix."""
        raise NotImplementedError

    def _encode_many(self, X: object, threads: int) -> tuple[Encoder, Inputs]:
        check_integer("threads", threads, 1, MOST_THREADS)
        encoder, rows = self.encode_many(X, int(threads))
        return encoder.get_threaded(int(threads)), rows

    def _name_features(self, rows: Inputs, y: object, w: object, n_learned: int) -> None:
        """Note what the features of the first `n_learned` rows that teach stand for, if that is asked for."""

    # Files.

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        """Arrays, names of features and JSON values; if it is `lazy`, an array may be a `Column`, to be read before the
        model changes.
        """
        raise NotImplementedError

    @classmethod
    def from_state(cls, arrays: Arrays, names: list[Any], values: dict[str, Any]) -> Self:
        """What `to_state` gave as a model; `find_vectors` among the values finds word vectors that a file names."""
        raise NotImplementedError

    def vectors_met(self) -> WordVectors:
        """The word vectors in use, with the words alone that were met; a ValueError if there are none."""
        raise ValueError(f"{type(self).__name__} has no word vectors to be saved")

    def save(self, path: str | os.PathLike[str], vectors: bool = False) -> None:
        """Write the model to a file, its mini-batch buffer included; the file is there whole or not at all.

        A drift detector begins anew in a loaded model. Of word vectors or an encoder the file has the name: `load`
        opens them only if they are named to it, too.

        Parameters
        ----------
        path
            The file; a model that exists is replaced at the end, in one step.
        vectors
            Whether to write the word vectors, too: those of the words that this model has met since it was made,
            copied, merged or loaded, by their hashes; of more than 98,304 words a thread, those met last. A loaded
            model then needs no package and no file of vectors; words that were not met have no vector.

        Raises
        ------
        ValueError
            If a parameter is a function, which no file can hold without code, there are no vectors to be written, or
            the file exists and is no model.
        OSError
            If the file cannot be written, as when the disk is full, or is in use, as a service keeps its model there;
            what was there before is left as it was.
        """
        source = self.vectors_met() if vectors else self.vector_source
        with locked(path):
            check_replaceable(path)
            write_model(path, lambda file: self._snapshot(None, file, source))

    def snapshot(self, progress: object = None, file: IO[bytes] | None = None) -> Snapshot:
        """The state as it is now, to be written while the model goes on learning; with `progress`, such as the position
        in the stream: anything that `pack` takes. Its arrays are copies; or in a file that `write_model` opened, so
        that memory holds no second model.
        """
        return self._snapshot(progress, file, self.vector_source)

    def _snapshot(self, progress: object, file: IO[bytes] | None, vectors: VectorSource | None) -> Snapshot:
        with self.lock:
            state = self.to_state(lazy=file is not None)
            taken = Snapshot(type(self).__name__, *state, progress, self.field_names, vectors)
            return taken if file is None else taken.spooled(file)

    @classmethod
    def load(cls, path: str | os.PathLike[str], vectors: object = None) -> Self:
        """Read a model of this class from a file that `save` wrote; it takes and raises what the function `load` does.

        Raises
        ------
        ValueError
            If the file holds a model of another class, too.
        """
        model: Self = read_model(path, vectors)[0]
        if not issubclass(type(model), cls):  # isinstance sees the classifier in a text model, too
            raise ValueError(must_be(f"the model of {path}", indefinite(cls.__name__), type(model)))
        return model
