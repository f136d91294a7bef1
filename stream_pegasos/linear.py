"""The binary learner over feature dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos import _pure
from stream_pegasos.checks import check_bool, check_integer, check_lengths, check_number, check_state
from stream_pegasos.engine import Encoder, Learner, Rows, Vocabulary, signs_of
from stream_pegasos.frames import csr_arrays, frame_like, frame_to_dicts, is_frame, series_like
from stream_pegasos.labels import Label, Labels, check_label
from stream_pegasos.persistence import Saveable, pack, unpack

__all__ = ["PegasosClassifier"]

# Weights of examples and l2 inside these limits keep every sum finite, whatever the stream brings.
SMALLEST_L2, LARGEST_WEIGHT = 1e-30, 1e30


class PegasosClassifier(Saveable, base.MiniBatchClassifier):
    """Linear support vector machine trained by Pegasos, one example at a time.

    Step t takes the examples of a batch whose margin y⟨w, x⟩ is below 1, moves w along them with the step size
    η = 1/(λ(t + t0)) after shrinking it by 1 − ηλ, and projects it onto the ball of radius 1/√λ. The weights are a
    dictionary scaled lazily, so that a step costs what the features of its examples cost, however many steps were taken
    and however many features are known. The defaults are the algorithm as published.

    Labels may be bool, int or str. The margin is for `True`, or for 1 beside 0 or −1; with other labels the first one
    met is the negative one, unless `pos_label` says otherwise.

    Parameters
    ----------
    l2
        The regularisation λ of the objective λ/2 ‖w‖² + mean hinge loss, from 1e-30 to 1e30.
    batch_size
        k, the number of examples a step is taken on, at least 1. `learn_one` keeps examples (of those that matter)
        until k are there.
    t0
        Steps that the step size pretends to have been taken before the first, at least 0. 0 is Pegasos as published;
        1/λ makes the first step as large as that of a perceptron with a learning rate of 1.
    project
        Whether each step ends with the projection onto the ball of radius 1/√λ, as in the paper of 2007; the one of
        2011 leaves it out.
    fit_intercept
        Whether to add one constant feature, and so an intercept that is regularised as any other weight.
    intercept_scaling
        The value of that feature, above 0: the larger, the less its weight is regularised.
    class_weight
        What the loss on each label counts, as a dict from label to a weight of at least 0; 1 for labels not in it.
    pos_label
        The label that positive margins stand for.

    Attributes
    ----------
    weights : dict
        The weight of each feature learned, by the name it came in with.
    intercept : float
        What the intercept adds to the margin.
    n_iterations : int
        t, the number of steps taken.
    classes : tuple
        The negative and the positive label, each `None` as long as it is unknown.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    [^1]: Shalev-Shwartz, S., Singer, Y. and Srebro, N., 2007. Pegasos: Primal Estimated sub-GrAdient SOlver for
        SVM. ICML.
    [^2]: Shalev-Shwartz, S., Singer, Y., Srebro, N. and Cotter, A., 2011. Pegasos: primal estimated sub-gradient solver
        for SVM. Mathematical Programming 127.
    [^3]: Platt, J., 1999. Probabilistic outputs for support vector machines. (`predict_proba_one` learns its slope
        online, from margins taken before learning.)

    Examples
    --------

    >>> from stream_pegasos import PegasosClassifier

    >>> model = PegasosClassifier(l2=0.1)
    >>> for x, y in [({"cheap": 1, "pills": 1}, "spam"), ({"see": 1, "you": 1}, "ham")] * 10:
    ...     model.learn_one(x, y)
    >>> model.predict_one({"cheap": 1, "watches": 1})
    'spam'
    >>> model.classes
    ('spam', 'ham')
    >>> {name: round(weight, 2) for name, weight in model.weights.items()}
    {'cheap': -0.8, 'pills': -0.8, 'see': 0.6, 'you': 0.6}

    In a pipeline, evaluated by predicting each example before learning it:

    >>> from river import datasets, evaluate, metrics, preprocessing

    >>> pipeline = preprocessing.StandardScaler() | PegasosClassifier(l2=0.01, fit_intercept=True)
    >>> evaluate.progressive_val_score(datasets.Phishing(), pipeline, metrics.Accuracy())
    Accuracy: 87.68%

    """

    def __init__(
        self,
        l2: float = 1e-4,
        batch_size: int = 1,
        t0: float = 0.0,
        project: bool = True,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        class_weight: Mapping[Label, float] | None = None,
        pos_label: Label | None = None,
    ) -> None:
        check_number("l2", l2, SMALLEST_L2, 1e30)
        check_integer("batch_size", batch_size, 1, 1 << 31)
        check_number("t0", t0, 0.0, 1e100)
        check_bool("project", project)
        check_bool("fit_intercept", fit_intercept)
        check_number("intercept_scaling", intercept_scaling, 1e-30, 1e30)
        if class_weight is not None and not isinstance(class_weight, Mapping):
            raise TypeError(f"class_weight is {class_weight!r}; it must be a dict from label to weight, or None")
        for label, weight in (class_weight or {}).items():
            check_label(label)
            check_number(f"class_weight[{label!r}]", weight, 0.0, LARGEST_WEIGHT)
        self.l2 = l2
        self.batch_size = batch_size
        self.t0 = t0
        self.project = project
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.pos_label = pos_label
        self._labels = Labels(pos_label)
        self._vocabulary = Vocabulary()
        self._learner = Learner(
            float(l2), int(batch_size), float(t0), bool(project), float(intercept_scaling) if fit_intercept else 0.0
        )

    @property
    def n_iterations(self) -> int:
        return self._learner.n_iterations

    @property
    def classes(self) -> tuple[Label | None, Label | None]:
        return self._labels.negative, self._labels.positive

    @property
    def weights(self) -> dict[Any, float]:
        keys, values = self._learner.weights.items()
        names = self._vocabulary.names
        return {
            key if key < _pure.FIRST_NAME else names[key - _pure.FIRST_NAME]: value
            for key, value in sorted(zip(keys.tolist(), values.tolist(), strict=True))
            if key != _pure.INTERCEPT
        }

    @property
    def intercept(self) -> float:
        return self.intercept_scaling * self._learner.weights.get(_pure.INTERCEPT)

    # One example at a time.

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
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
            If a value is NaN or infinite, the weight is out of its range, or the label is a third one. The model is
            then as it was before.
        """
        try:
            sign = self._labels.signs.get(y)
        except TypeError:  # not even hashable
            sign = None
        if sign is None or w != 1.0 or self.class_weight is not None:
            self._learn_one(self._vocabulary, x, y, w)
        else:
            self._learner.learn(self._vocabulary, x, sign, 1.0)

    def predict_one(self, x: dict[Any, Any]) -> Any:  # type: ignore[override]
        """The label of `x`; `None` where `pos_label` is given and nothing has been learned.

        Parameters
        ----------
        x
            The features, as for `learn_one`; those never learned count nothing.
        """
        return self._decide(self._learner.margin(self._vocabulary, x))

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """The probability of each label; the label that `predict_one` gives has the larger one.

        Parameters
        ----------
        x
            The features, as for `learn_one`.
        """
        return self._probabilities(self._learner.margin(self._vocabulary, x))

    def decision_function_one(self, x: dict[Any, Any]) -> float:
        """The margin ⟨w, x⟩ + intercept; above 0 for the positive label.

        Parameters
        ----------
        x
            The features, as for `learn_one`.
        """
        return self._learner.margin(self._vocabulary, x)

    # Many examples in one call.

    def learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> None:
        """Learn from many examples in turn, as `learn_one` would; only faster.

        Parameters
        ----------
        X
            A sequence of feature dicts, a data frame with a column a feature, or a SciPy sparse matrix, whose columns
            are the features 0, 1, 2, …
        y
            As many labels.
        w
            The weight of all examples, or as many weights.

        Raises
        ------
        TypeError, ValueError
            As `learn_one` does, and if there are not as many labels or weights as examples. Nothing is learned then.
        """
        self._predict_learn_many(X, y, w)

    def predict_learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> NDArray[np.float64]:
        """Prequential evaluation in one call: the margin of each example before it is learned.

        Parameters
        ----------
        X, y, w
            As for `learn_many`, and raising as it does.
        """
        return self._predict_learn_many(X, y, w)[0]

    def predict_many(self, X: Any) -> Any:
        """The label of each example, as an array; as a series for a data frame.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        return self._decide_many(self.decision_function_many(X), X)

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of each example, as an array with a column a label, the negative one first; as a data frame
        for a data frame.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        encoder, rows = self._encode_many(X)
        return self._probabilities_many(self._learner.predict_learn_many(encoder, rows)[1], X)

    def decision_function_many(self, X: Any) -> NDArray[np.float64]:
        """The margin of each example.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        encoder, rows = self._encode_many(X)
        return self._learner.predict_learn_many(encoder, rows)[0]

    def flush(self) -> None:
        """Take the step with the examples that the mini-batch buffer holds; none if it is empty."""
        self._learner.flush()

    # What the text classifier shares, which brings an encoder of its own.

    def _learn_one(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        try:
            sign = self._labels.signs.get(y)
        except TypeError:  # not even hashable
            sign = None
        if not isinstance(w, float) or w != 1.0:
            check_number("w", w, 0.0, LARGEST_WEIGHT)
        if sign is None:
            self._learn_many(encoder, [x], [y], w)
            return
        if w != 1.0 or self.class_weight is not None:
            w = self._weight(self._labels, sign, w)
        self._learner.learn(encoder, x, sign, w)

    def _learn_many(
        self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Margin and probability of the positive label of each row before it is learned."""
        labels, exchanged, signs = self._signs_many(y)
        check_lengths("labels", len(signs), len(rows[0]) - 1 if isinstance(rows, tuple) else len(rows))
        weights = self._weights_many(labels, signs, w)
        if exchanged:
            self._learner.negate()
        try:
            result = self._learner.predict_learn_many(encoder, rows, signs, weights)
        except BaseException:
            if exchanged:
                self._learner.negate()
            raise
        self._labels = labels
        return result

    def _signs_many(self, y: Iterable[Any]) -> tuple[Labels, bool, NDArray[np.float64]]:
        """The labels with any new ones in `y`, whether that exchanged positive and negative, and +1 or −1 for each."""
        if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuf":
            labels, exchanged = self._labels.with_labels(first_labels(y))
            return labels, exchanged, np.where(y == labels.positive, 1.0, -1.0)
        given = y.tolist() if hasattr(y, "tolist") else list(y)
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

    def _weights_many(
        self, labels: Labels, signs: NDArray[np.float64], w: float | Iterable[float]
    ) -> NDArray[np.float64] | None:
        if isinstance(w, (int, float)) and w == 1.0 and self.class_weight is None:
            return None
        each = list(w) if isinstance(w, Iterable) else [w] * len(signs)
        check_lengths("weights", len(each), len(signs))
        pairs = zip(signs.tolist(), each, strict=True)
        return np.array([self._weight(labels, sign, weight) for sign, weight in pairs], np.float64)

    def _weight(self, labels: Labels, sign: float, w: Any) -> float:
        """The weight of an example times that of its class."""
        check_number("w", w, 0.0, LARGEST_WEIGHT)
        if self.class_weight is None:
            return float(w)
        label = labels.positive if sign > 0.0 else labels.negative
        return float(w) * self.class_weight.get(label, 1.0)  # type: ignore[arg-type]

    def _predict_learn_many(
        self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._learn_many(*self._encode_many(X), y, w)

    def _encode_many(self, X: Any) -> tuple[Encoder, Any]:
        if hasattr(X, "tocsr"):
            return Rows(), csr_arrays(X.tocsr())
        if is_frame(X):
            return self._vocabulary, frame_to_dicts(X)
        if isinstance(X, (dict, str, bytes)):
            raise TypeError(f"X must be a sequence of examples, not a single {type(X).__name__}")
        return self._vocabulary, X if isinstance(X, list) else list(X)

    def _decide(self, margin: float) -> Any:
        known = self._labels.known
        if not known:
            return None
        return known[-1] if margin > 0.0 else known[0]

    def _probabilities(self, margin: float) -> dict[Any, float]:
        known = self._labels.known
        if len(known) == 2:
            positive = self._learner.probability(margin)
            return {known[0]: 1.0 - positive, known[1]: positive}
        return dict.fromkeys(known, 1.0)

    def _decide_many(self, margins: NDArray[np.float64], X: Any) -> Any:
        """Labels, in the form that goes with the examples `X`."""
        known = self._labels.known or (None,)
        labels = np.array(known)
        if labels.tolist() != list(known) or len({*map(type, known)}) > 1:  # no dtype of NumPy's holds them as they are
            labels = np.array(known, object)
        decided = labels[(margins > 0.0).astype(np.intp) if len(known) == 2 else np.zeros(len(margins), np.intp)]
        return series_like(X, decided) if is_frame(X) else decided

    def _probabilities_many(self, positive: NDArray[np.float64], X: Any) -> Any:
        """Probabilities, in the form that goes with the examples `X`."""
        known = self._labels.known
        columns = [1.0 - positive, positive] if len(known) == 2 else [np.ones(len(positive)) for _ in known]
        if is_frame(X):
            return frame_like(X, dict(zip(known, columns, strict=True)))
        return np.array(columns).reshape(len(known), len(positive)).T

    # The state as data, for files.

    def _to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        state = self._learner.get_state()
        arrays = {name: state.pop(name) for name in list(state) if isinstance(state[name], np.ndarray)}
        values = {
            "parameters": {name: pack(value) for name, value in self._get_params().items()},
            "labels": {
                "negative": pack(self._labels.negative),
                "positive": pack(self._labels.positive),
                "met": self._labels.met,
            },
            "names": [pack(name) for name in self._vocabulary.names],
            "learner": state,
        }
        return arrays, values

    @classmethod
    def _from_state(cls, arrays: Mapping[str, NDArray[Any]], values: Any) -> Self:
        model = cls(**{name: unpack(value) for name, value in values["parameters"].items()})
        names = [unpack(name) for name in values["names"]]
        state = {**arrays, **values["learner"]}
        check_state(state, names, model.batch_size)
        model._vocabulary = Vocabulary(names)
        model._learner.set_state(state)
        model._labels.restore(
            unpack(values["labels"]["negative"]), unpack(values["labels"]["positive"]), values["labels"]["met"]
        )
        return model


def first_labels(y: NDArray[Any]) -> list[Any]:
    """The distinct labels in the order of their first places, up to a third, which is one too many."""
    labels: list[Any] = []
    while len(y) and len(labels) < 3:
        labels.append(y[0].item())
        y = y[y != y[0]]
    return labels
