"""Models of each kind, as stand-ins where the package has none yet: of several classes, of ordered ones, of labels that
may hold together.
"""

from collections import Counter

import numpy as np

from stream_pegasos import OrdinalPegasosClassifier, PegasosClassifier, TextClassifier
from stream_pegasos.common.locks import Lock
from stream_pegasos.learners.predictions import Predictions


class Explained(TextClassifier):
    """One margin a class, each the sum of what the n-grams add to it."""

    @property
    def capabilities(self):
        return super().capabilities | {"explain"}

    def explain_one(self, x, label=None):
        scores = dict(zip(self.classes, self.predictions([x]).scores[0], strict=True))
        first, *rest = sorted(scores, key=scores.get, reverse=True)
        counts = Counter(self.features.tokens(x))
        columns = np.array([self.features.index(ngram)[0] for ngram in counts] or [0])
        weights = self.weights_of(columns)
        of = weights[:, self.classes.index(first if label is None else label)]
        if label is None and rest:
            of = of - weights[:, self.classes.index(rest[0])]
        raw = {ngram: count * weight for (ngram, count), weight in zip(counts.items(), of, strict=False)}
        # The norm of the text divides each.
        target = scores[first if label is None else label] - (scores[rest[0]] if label is None and rest else 0.0)
        total = sum(raw.values())
        return {ngram: value * target / total for ngram, value in raw.items() if value} if total else {}


def several_classes():
    return Explained(classifier=PegasosClassifier(multi_class="ovr", t0=1e4))


class Ordered(TextClassifier):
    """Ordered classes."""

    @property
    def capabilities(self):
        return super().capabilities | {"ordered", "explain"}

    def explain_one(self, x, label=None):
        columns = {ngram: self.features.index(ngram)[0] for ngram in self.features.tokens(x)}
        weights = self.weights_of(np.array([*columns.values(), 0]))[:-1, 0]
        return {ngram: weight for ngram, weight in zip(columns, weights.tolist(), strict=True) if weight}


def ordered():
    return Ordered(classifier=OrdinalPegasosClassifier(t0=1e4))


class SeveralLabels:
    """A model of two classes for each label."""

    capabilities = frozenset({"texts", "weights", "explain", "several labels"})
    max_features = None
    n_drifts = 0

    def __init__(self):
        self.each = {}
        self.n_learned = self.n_iterations = 0
        self.features = TextClassifier().features
        self.parts = {"classifier": TextClassifier()}
        self.lock = Lock()

    @property
    def classes(self):
        return tuple(self.each)

    @property
    def n_features(self):
        return sum(model.n_features for model in self.each.values())

    def check_labels(self, y):
        for labels in y:
            if not isinstance(labels, (tuple, list, set)):
                raise TypeError(f"{labels!r} is no list of labels")

    def predictions(self, X):
        said = [model.predictions(X) for model in self.each.values()]
        shape = (len(X), len(self.each))
        probabilities = np.zeros(shape) if not said else np.array([each.probabilities[:, 1] for each in said]).T
        scores = np.zeros(shape) if not said else np.array([each.scores for each in said]).T
        labels = np.empty(len(X), object)
        for i, row in enumerate(scores):
            labels[i] = tuple(label for label, score in zip(self.each, row, strict=True) if score > 0.0)
        classes = self.classes
        return Predictions(scores, lambda: labels, lambda: (classes, probabilities))

    def learn_one(self, x, y, w=1.0):
        self.check_labels([y])
        for label in y:
            if label not in self.each:
                self.each[label] = TextClassifier()
                self.each[label].learn_one("", False)
        for label, model in self.each.items():
            model.learn_one(x, label in y, w)
        self.n_learned += 1
        self.n_iterations += 1

    def predict_learn_many(self, X, y, w=1.0):
        self.check_labels(y)
        for label in sorted({label for labels in y for label in labels} - set(self.each)):
            self.each[label] = TextClassifier()
            self.each[label].learn_one("", False)
        said = []
        for label, model in self.each.items():
            said.append(model.predict_learn_many(X, [label in labels for labels in y], w))
        scores = np.array([each.scores for each in said]).reshape(len(said), len(X)).T
        probabilities = np.array([each.probabilities[:, 1] for each in said]).reshape(len(said), len(X)).T
        labels = np.empty(len(X), object)
        for i, row in enumerate(scores):
            labels[i] = tuple(label for label, score in zip(self.each, row, strict=True) if score > 0.0)
        self.n_learned += len(X)
        self.n_iterations += len(X)
        classes = self.classes
        return Predictions(scores, lambda: labels, lambda: (classes, probabilities))

    def weights_of(self, keys):
        columns = [model.weights_of(keys)[:, 0] for model in self.each.values()]
        return np.array(columns).T if columns else np.zeros((len(keys), 0))

    def explain_one(self, x, label=None):
        return self.each[label].explain_one(x)
