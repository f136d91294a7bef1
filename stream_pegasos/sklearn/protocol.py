"""scikit-learn's protocol for the classifiers of this package."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from river import base
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted

from stream_pegasos.common.checks import check_bool, check_integer, check_lengths
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.packing import get_parameters
from stream_pegasos.features.frames import is_frame, listed
from stream_pegasos.features.message import is_nothing
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import ClassWeight
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.label_policy import check_label
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.predictions import PartlyLearnedError, Predictions
from stream_pegasos.learners.probabilities import Floats
from stream_pegasos.learners.text import TextClassifier

__all__ = ["ClassifierFace", "apply_options", "get_options", "new_classifier"]

Labels = NDArray[Any]
Part = TypeVar("Part", bound=base.Base)


def has_margins(estimator: ClassifierFace) -> bool:
    """Whether the classifier has a margin for each class; ordered classes have none."""
    return Capability.ORDINAL not in estimator.part("classifier").capabilities


def takes_several_classes(classifier: object) -> bool:
    """Whether more than two classes are possible; `True` for an object that is no classifier, which `fit` refuses."""
    return not isinstance(classifier, Classifier) or Capability.MULTICLASS in classifier.capabilities


class ClassifierFace(ClassifierMixin, BaseEstimator):
    """The base class of estimators: scikit-learn's protocol around a classifier of this package.

    A subclass defines its parts, its examples, and how to create a model.
    """

    PARTS: ClassVar[Mapping[str, Callable[[], base.Base]]]  # by parameter, a function that creates the default

    def __init__(
        self,
        classifier: Classifier | None = None,
        *,
        class_weight: ClassWeight = None,
        passes: int = 1,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.classifier, self.class_weight = classifier, class_weight
        self.passes, self.shuffle, self.random_state = passes, shuffle, random_state

    # Methods that subclasses implement.

    def _examples(self, X: object, is_new: bool) -> Any:
        """The examples as the model takes them, a list or a CSR matrix. `is_new` if it has learned nothing before."""
        raise NotImplementedError

    def _new_model(self) -> Model:
        raise NotImplementedError

    # Parameters.

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = takes_several_classes(self.part("classifier"))
        return tags

    def part(self, name: str) -> Any:
        """A part; its default if the parameter is `None`."""
        part = getattr(self, name)
        return self.PARTS[name]() if part is None else part

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the parameters of the parts, as in `classifier__learning_rate`.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name in self.PARTS:
                params |= {f"{name}__{option}": value for option, value in get_options(self.part(name)).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters, and those of the parts, as in `classifier__learning_rate`.

        Parameters
        ----------
        **params : object
            The new values, by name.

        Raises
        ------
        TypeError, ValueError
            If there is no such parameter, or if a part refuses its value. Nothing changes then.
        """
        of_parts: dict[str, dict[str, Any]] = {}
        for name in list(params):
            part, nested, option = name.partition("__")
            if nested and part in self.PARTS:
                of_parts.setdefault(part, {})[option] = params.pop(name)
        changed = copy.copy(self)
        super(ClassifierFace, changed).set_params(**params)
        for name, options in of_parts.items():
            setattr(changed, name, apply_options(changed.part(name), options))
        self.__dict__ = changed.__dict__
        return self

    # Learning.

    def fit(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn all rows with a new model, and forget everything learned before.

        Parameters
        ----------
        X : sequence of str or dict, data frame or matrix
            The examples: texts, or the rows of a matrix.
        y : array-like of str, int or bool
            The label of each example; also a data frame with one column.
        sample_weight : array-like of float or None, default None
            The weight of each example, at least 0; `None` for 1 each. A row with a weight of 0 is left out.

        Raises
        ------
        TypeError, ValueError
            If a parameter is wrong, if the examples, labels or weights cannot be learned, or if there are more classes
            than the classifier can learn. The estimator does not change then.
        """
        check_integer("passes", self.passes, 1, 1 << 31)
        check_bool("shuffle", self.shuffle)
        new = copy.copy(self)
        examples, labels, weights = new._checked(X, y, sample_weight, is_new=True)
        new.classes_, new.model_, new._are_fixed = new._add_described(np.unique(labels)), new._new_model(), False
        new._check_classes()
        rows = np.flatnonzero(weights)
        chance = check_random_state(self.random_state)
        for _ in range(self.passes):
            learn(new.model_, examples, labels, weights, chance.permutation(rows) if self.shuffle else rows)
        new.model_.flush()
        self.__dict__ = new.__dict__
        return self

    def partial_fit(
        self, X: object, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue learning: each row once, in the given order.

        Parameters
        ----------
        X : sequence of str or dict, data frame or matrix
        y : array-like of str, int or bool
            Both as for `fit`.
        classes : array-like of str, int or bool, or None, default None
            All possible labels, in the first call: other labels are refused from then on. Without it, `classes_` grows
            with new labels.
        sample_weight : array-like of float or None, default None
            As for `fit`.

        Raises
        ------
        TypeError, ValueError
            As for `fit`; also if a label is not in `classes`, or if `classes` differ from those of the first call. The
            estimator does not change then.
        PartlyLearnedError
            If a drift detector raises after some examples. The error has the number of learned examples.
        """
        is_new = not hasattr(self, "model_")
        classes = checked_labels(classes)
        new = copy.copy(self)
        examples, labels, weights = new._checked(X, y, sample_weight, is_new)
        if is_new:
            new.model_, new._are_fixed = new._new_model(), classes is not None
        classes_in_batch = new._add_described(np.unique(labels))
        new.classes_ = new._known(classes_in_batch, None if classes is None else np.unique(column_or_1d(classes)))
        new._check_classes()
        try:
            learn(new.model_, examples, labels, weights, np.flatnonzero(weights))
        except (PartlyLearnedError, KeyboardInterrupt):
            self.__dict__ = new.__dict__  # keep the learned examples
            raise
        self.__dict__ = new.__dict__
        return self

    def _checked(
        self, X: object, y: ArrayLike, sample_weight: ArrayLike | None, is_new: bool
    ) -> tuple[Any, Labels, Floats]:
        """The examples, their labels and their weights."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        examples = self._examples(X, is_new)
        y = checked_labels(single_column("y", y))
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        n = n_examples(examples)
        check_lengths("labels", len(labels), n)
        sample_weight = single_column("sample_weight", sample_weight)
        weights = np.ones(n) if sample_weight is None else column_or_1d(np.asarray(sample_weight, np.float64))
        check_lengths("weights", len(weights), n)
        if not weights.any():
            raise ValueError("y must have an example whose weight is not zero, got none")
        return examples, labels, weights

    def _add_described(self, labels: Labels) -> Labels:
        """These labels, and those with descriptions."""
        return labels

    def _known(self, labels: Labels, classes: Labels | None) -> Labels:
        """The classes after these labels are learned."""
        before: Labels | None = vars(self).get("classes_", classes)
        if before is None:
            return labels
        if classes is not None and not np.array_equal(before, classes):
            raise ValueError(must_be("classes", f"{before.tolist()} as in the first call", classes.tolist()))
        new = set(labels.tolist()) - set(before.tolist())
        if new and self._are_fixed:
            raise ValueError(f"a label must be one of the classes {before.tolist()}, got {new.pop()!r}")
        known_classes: Labels = unique_labels(before, labels) if new else before
        return known_classes

    def _check_classes(self) -> None:
        if len(self.classes_) > 2 and not takes_several_classes(self.model_):
            raise ValueError(
                f"Only binary classification is supported. There are {len(self.classes_)} classes, and this classifier "
                "is for two; AdaptiveClassifier and PegasosClassifier take any number"
            )

    # Predicting.

    def _predictions(self, X: object) -> Predictions:
        check_is_fitted(self, "model_")
        predictions: Predictions = self.model_.predictions(self._examples(X, is_new=False))
        return predictions

    def _columns(self) -> dict[Any, int]:
        """The column of each class."""
        return {label: column for column, label in enumerate(self.classes_.tolist())}

    def predict(self, X: object) -> Labels:
        """The label of each example, as an array.

        Parameters
        ----------
        X : sequence of str or dict, data frame or matrix
            The examples.
        """
        predictions, columns = self._predictions(X), self._columns()
        # The opposite of a single truth value is a label that has not come. `None` is predicted if no class is allowed.
        opposite = (self._to_come(predictions) or [0])[0]
        indices = [-1 if label is None else columns.get(label, opposite) for label in predictions.labels.tolist()]
        numbers = np.array(indices, np.int64)
        if (numbers < 0).any():
            numbers = np.where(numbers < 0, self._probabilities(predictions).argmax(axis=1), numbers)
        labels: Labels = self.classes_[numbers]
        return labels

    def _to_come(self, predictions: Predictions) -> list[int]:
        """The columns of classes without any example."""
        return [column for label, column in self._columns().items() if label not in predictions.classes]

    def predict_proba(self, X: object) -> Floats:
        """The probabilities of each example, with a column for each of `classes_`.

        They are calibrated online, and sum to 1 for each example. A class without examples has 0. While only one class
        has examples, the other classes share the rest: 1 / (n + 2) after n examples.

        Parameters
        ----------
        X : sequence of str or dict, data frame or matrix
            The examples.
        """
        return self._probabilities(self._predictions(X))

    def _probabilities(self, predictions: Predictions) -> Floats:
        columns = self._columns()
        probabilities = np.zeros((len(predictions), len(columns)))
        for label, column in zip(predictions.classes, predictions.probabilities.T, strict=True):
            if label in columns:
                probabilities[:, columns[label]] = column
        if not predictions.classes or not columns.keys() >= set(predictions.classes):
            to_come = self._to_come(predictions) or [0]
            probabilities[:, to_come] += (1.0 - probabilities.sum(axis=1, keepdims=True)) / len(to_come)
        return probabilities

    @available_if(has_margins)
    def decision_function(self, X: object) -> Floats:
        """The margins of each example. With two classes: the margin, above 0 for `classes_[1]`. With more: a column for
        each of `classes_`, −inf for a class without examples.
        """
        predictions, columns = self._predictions(X), self._columns()
        classes, class_margins = predictions.class_margins
        if predictions.has_one_score and len(columns) <= 2:
            return class_margins[:, 1 if columns.get(classes[1]) == 1 or columns.get(classes[0]) == 0 else 0]
        margins = np.full((len(predictions), len(columns)), -np.inf)
        for label, column in zip(classes, class_margins.T, strict=True):
            if label in columns:
                margins[:, columns[label]] = column
        return margins[:, 1] - margins[:, 0] if len(columns) == 2 else margins


def new_classifier(estimator: ClassifierFace) -> Classifier:
    """A new classifier, by an estimator's parameters."""
    classifier = estimator.part("classifier")
    if not isinstance(classifier, Classifier) or isinstance(classifier, TextClassifier):
        raise TypeError(
            must_be("classifier", "a classifier over feature dicts, as AdaptiveClassifier()", type_name(classifier))
        )
    if Capability.MULTILABEL in classifier.capabilities:
        raise TypeError("several labels an example cannot be learned here; use MultiLabelClassifier by itself")
    weights = estimator.class_weight
    options: dict[str, Any] = {} if weights is None else {"class_weight": weights}
    if classifier.inner is not classifier:  # the inner classifier has the weights of ordered classes
        options = {"classifier": apply_options(classifier.inner, options)}
    new: Classifier = apply_options(classifier, options)
    return new


def get_options(part: object) -> dict[str, Any]:
    """The options of a part; empty for an invalid object, which `fit` refuses."""
    return get_parameters(part) if isinstance(part, base.Base) else {}


def apply_options(part: Part, options: Mapping[str, Any]) -> Part:
    """An untrained copy of a part with new options. Raise a ValueError if it has no such option."""
    known_options = get_options(part)
    for name in options.keys() - known_options.keys():
        raise ValueError(f"Invalid parameter {name!r} for {type(part).__name__}. It has: {', '.join(known_options)}")
    return part.clone(dict(options))


def learn(model: Classifier, examples: Any, labels: Labels, weights: Floats, rows: NDArray[np.intp]) -> None:
    """Learn the examples of these rows, in this order."""
    if not np.array_equal(rows, np.arange(len(labels))):
        labels, weights = labels[rows], weights[rows]
        examples = [examples[row] for row in rows.tolist()] if isinstance(examples, list) else examples[rows]
    model.learn_many(examples, labels, 1.0 if (weights == 1.0).all() else weights)


def n_examples(examples: Any) -> int:
    return len(examples) if isinstance(examples, list) else int(examples.shape[0])


def single_column(name: str, values: Any) -> Any:
    """Labels or weights; from a data frame, its only column."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must have no masked values; leave out such examples")
    if not is_frame(values):
        return listed(values)
    if values.shape[1] != 1:
        raise ValueError(f"{name} must be one column, got a data frame of {values.shape[1]}; choose one of them")
    return values[values.columns[0]]


def checked_labels(labels: Any) -> Any:
    """Labels, checked before NumPy converts them: NaN beside texts would become the text "nan". An Enum becomes its
    value, of which NumPy would take the first letters.
    """
    is_objects = isinstance(labels, np.ndarray) and labels.dtype.kind == "O" and labels.ndim == 1
    values = labels.tolist() if is_objects or hasattr(labels, "isna") else labels
    if not isinstance(values, (list, tuple)):
        return labels
    try:
        # A list in it is a row of a column, for NumPy.
        plain = [label if isinstance(label, (list, tuple)) else check_label(label) for label in values]
    except (TypeError, ValueError) as error:
        if any(map(is_nothing, values)):
            raise ValueError(f"a label is missing: {error}; leave out such examples, or give them a label") from None
        raise
    return plain if any(isinstance(label, Enum) for label in values) else labels
