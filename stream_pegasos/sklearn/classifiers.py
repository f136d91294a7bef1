"""Classifiers over texts and over matrices for scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import validate_data

from stream_pegasos.features.base import Features
from stream_pegasos.features.frames import is_frame, list_of_examples
from stream_pegasos.features.text import TextFeatures
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.class_weights import ClassWeight
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.descriptions import Descriptions
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.sklearn.protocol import ClassifierFace, new_classifier
from stream_pegasos.sklearn.texts import list_texts

__all__ = ["OnlineClassifier", "OnlineTextClassifier"]


class OnlineTextClassifier(ClassifierFace):
    """Text classifier: features and a classifier, learned in one pass.

    By default it is the `TextClassifier` of this package: `TextFeatures` for any language, learned by an
    `AdaptiveClassifier`. Texts are a list, an array, a series, or a frame with one column.

    Options of the parts are parameters of this estimator, too: `features__ngram_range`, `classifier__learning_rate`.

    Parameters
    ----------
    features : Features or None, default None
        The `TextFeatures` or `HashedBagOfWords` that turn texts into features; or a sum of features, each of which
        reads a column of a data frame, or a field of dicts. `None` is `TextFeatures()`.
    classifier : classifier of this package or None, default None
        The classifier that learns from the features: an `AdaptiveClassifier`, `PegasosClassifier`, `OrdinalClassifier`
        (which has no `decision_function`) or `KernelPegasosClassifier`. `None` is `AdaptiveClassifier()`.
    class_weight : dict, {"balanced", "sqrt"} or None, default None
        The weight of the loss on each label: a dict from label to a number of at least 0; `"balanced"`, which balances
        by the labels learned so far; or `"sqrt"`, the root of that. `None` keeps the classifier's.
    passes : int, default 1
        The number of times that `fit` learns all rows, at least 1. One pass is enough for the adaptive classifier;
        others may need more.
    shuffle : bool, default True
        Whether `fit` learns rows in random order, a new one in each pass, because data sorted by class is learned
        badly. `False` is for a stream, whose order matters. `partial_fit` never shuffles.
    random_state : int, numpy.random.RandomState or None, default 0
        The source of the random order: an int for the same model every time, a `RandomState`, or `None` for a random
        seed.
    descriptions : mapping of label to str, iterable of str or None, default None
        Descriptions of labels, learned before the first example, as for `TextClassifier.describe`: for each label a
        text, several texts, or `None` for its name. These labels are classes from the beginning.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The labels, sorted.
    model_ : TextClassifier
        The model inside. It can be saved, served and trained further on its own; its labels are those of `y`.

    Examples
    --------

    >>> from stream_pegasos.sklearn import OnlineTextClassifier

    >>> model = OnlineTextClassifier()
    >>> model.fit(["see you at lunch", "cheap pills for you", "lunch at noon?"], ["ham", "spam", "ham"])
    OnlineTextClassifier()
    >>> model.predict(["pills, cheap pills", "at noon"])
    array(['spam', 'ham'], dtype='<U4')

    A stream in portions, with all labels known in advance:

    >>> model = OnlineTextClassifier().set_params(classifier__learning_rate=1.0)
    >>> for texts, labels in [(["lunch?"], ["work"]), (["cheap pills", "lunch!"], ["spam", "work"])]:
    ...     _ = model.partial_fit(texts, labels, classes=["home", "spam", "work"])
    >>> model.predict_proba(["cheap lunch"]).shape
    (1, 3)

    """

    PARTS: ClassVar = {"features": TextFeatures, "classifier": AdaptiveClassifier}

    def __init__(
        self,
        features: Features | None = None,
        classifier: Classifier | None = None,
        *,
        class_weight: ClassWeight = None,
        passes: int = 1,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = 0,
        descriptions: Descriptions | None = None,
    ) -> None:
        super().__init__(
            classifier, class_weight=class_weight, passes=passes, shuffle=shuffle, random_state=random_state
        )
        self.features, self.descriptions = features, descriptions

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _examples(self, X: object, is_new: bool) -> Any:
        features = self.part("features")
        if isinstance(features, Features) and features.fields and is_frame(X):
            return features.messages(X)
        is_of_texts = not isinstance(features, Features) or features.takes_text
        return list_texts(X) if is_of_texts else list_of_examples(X)

    def _new_model(self) -> Model:
        model = TextClassifier(self.part("features"), new_classifier(self))
        if self.descriptions is not None:
            model.describe(self.descriptions)
        return model

    def _add_described(self, labels: object) -> Any:
        return unique_labels(labels, [*self.descriptions]) if self.descriptions else labels


class OnlineClassifier(ClassifierFace):
    """A linear classifier over the rows of a matrix, sparse or dense, learned in one pass.

    The default, `AdaptiveClassifier`, is for sparse features that are present or absent: words, tags, one-hot columns.
    It stores weights only for columns that occurred, so there may be 2³⁰ columns. For texts, `OnlineTextClassifier`
    does the same faster, without a matrix.

    Options of the classifier are parameters of this estimator, too: `classifier__learning_rate`.

    Parameters
    ----------
    classifier : classifier of this package or None, default None
        An `AdaptiveClassifier`, `PegasosClassifier`, `OrdinalClassifier` (which has no `decision_function`) or
        `KernelPegasosClassifier`. `None` is `AdaptiveClassifier()`.
    class_weight : dict, {"balanced", "sqrt"} or None, default None
    passes : int, default 1
    shuffle : bool, default True
    random_state : int, numpy.random.RandomState or None, default 0
        All as for `OnlineTextClassifier`.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The labels, sorted.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : numpy.ndarray
        The names of columns, if X was a data frame with named columns.
    model_ : Classifier
        The model inside. Its features are the numbers of columns, its labels those of `y`.

    Examples
    --------

    >>> from scipy import sparse
    >>> from stream_pegasos import PegasosClassifier
    >>> from stream_pegasos.sklearn import OnlineClassifier

    >>> X = sparse.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]] * 20)
    >>> OnlineClassifier().fit(X, ["ham", "spam", "spam"] * 20).predict([[1, 0], [0, 1]])
    array(['ham', 'spam'], dtype='<U4')
    >>> model = OnlineClassifier(PegasosClassifier(l2=0.1), passes=100)
    >>> model.fit(X, [-1, 1, 1] * 20).decision_function([[1.0, 0.0], [0.0, 1.0]]).round()
    array([-1.,  2.])

    """

    PARTS: ClassVar = {"classifier": AdaptiveClassifier}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _examples(self, X: object, is_new: bool) -> Any:
        matrix = sparse.csr_array(validate_data(self, X, reset=is_new, accept_sparse="csr", dtype=np.float64))
        if not matrix.data.all():
            matrix = matrix.copy()
            matrix.eliminate_zeros()  # as in a matrix from a dense one
        return matrix

    def _new_model(self) -> Classifier:
        return new_classifier(self)
