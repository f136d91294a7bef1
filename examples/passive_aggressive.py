"""A learner of one's own, in Python alone: Passive-Aggressive (PA-I) of Crammer et al., 2006, Online
Passive-Aggressive Algorithms, JMLR 7.

An example with a margin below 1 moves the weights until its margin is 1, but by at most C:
w ← w + y min(C, loss / ‖x‖²) x. The rule says what the model keeps, and how it scores and learns an example; labels,
probabilities, weights of examples, files, pipelines and evaluation come from the package.

    python passive_aggressive.py [STREAM]
"""

import sys

import numpy as np

from stream_pegasos import HashedBagOfWords, TextClassifier, prequential
from stream_pegasos.common.checks import check_number
from stream_pegasos.common.state import Declaration, Field, count, keys
from stream_pegasos.engine.pure.driver import CALIBRATION, LARGEST_CALIBRATION_WEIGHT, Learner, ScoredExample
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.trainer import Trainer
from stream_pegasos.streams import read, synthetic


def plain_dict(row):
    """The values of an example by the keys of its features; a key may be twice in a row."""
    x = {}
    for key, value in zip(row.keys, row.values, strict=True):
        x[key] = x.get(key, 0.0) + row.factor * value
    return x


class PassiveAggressiveLearner(Learner, is_rule=False):
    """The rule: a dict of weights."""

    # The contents of a saved model; a file is checked against it.
    declaration = Declaration(
        (
            keys("keys", "features"),
            Field("weights", 0.0, 1e100, ("features",), signed=True),
            count("n_iterations"),
            *CALIBRATION,
        )
    )
    max_features = n_iterations = 0
    intercept = np.zeros(2)

    def __init__(self, C: float) -> None:
        super().__init__()
        self.C, self._weights = C, {}

    def __len__(self):
        return len(self._weights)

    def _find_margins(self, encoder, row):
        x = plain_dict(row)
        return ScoredExample(row, [sum(self._weights.get(key, 0.0) * value for key, value in x.items())], x)

    def _learn(self, encoder, scored, y, weight):  # y is -1 or 1
        self.calibration.learn(scored.margins[0], y, min(weight, LARGEST_CALIBRATION_WEIGHT))
        self.n_iterations += 1
        x, loss = scored.values, 1.0 - y * scored.margins[0]
        square = sum(value * value for value in x.values())
        if loss <= 0.0 or square == 0.0:
            return False
        step = y * min(self.C * weight, loss / square)
        for key, value in x.items():
            self._weights[key] = self._weights.get(key, 0.0) + step * value
        return True

    def get_weights(self, keys):  # a column for each class: two classes share one, with opposite signs
        return self._expand_pair(np.array([[self._weights.get(key, 0.0)] for key in keys.tolist()]).reshape(-1, 1))

    def items(self):
        keys = np.fromiter(self._weights, np.int64, len(self._weights))
        return keys, self.get_weights(keys)

    def contributions(self, encoder, x, number=0):
        sign, row = 1.0 if number else -1.0, plain_dict(encoder.row(x, False))
        return {key: sign * self._weights[key] * value for key, value in row.items() if key in self._weights}

    def get_state(self, lazy=False):
        weights = np.array([*self._weights.values()], np.float64)
        keys = np.fromiter(self._weights, np.int64, len(self._weights))
        return {**self.calibration.get_state(), "keys": keys, "weights": weights, "n_iterations": self.n_iterations}

    def set_state(self, state):
        self._weights = dict(zip(state["keys"].tolist(), state["weights"].tolist(), strict=True))
        self.n_iterations = state["n_iterations"]
        self.calibration.set_state(state)


class PassiveAggressiveClassifier(Classifier):
    """The estimator: it checks its parameters, and has the labels."""

    capabilities = frozenset(["weights", "explain"])

    def __init__(self, C: float = 1.0) -> None:
        check_number("C", C, 1e-30, 1e30)
        self.C = C

    def make_trainer(self):
        return Trainer(self.lock, PassiveAggressiveLearner(float(self.C)), Labels(most=2, counts_alone=True))


def main() -> None:
    stream = read(sys.argv[1]) if len(sys.argv) > 1 else synthetic(20_000)
    model = TextClassifier(HashedBagOfWords(), PassiveAggressiveClassifier(C=0.1))
    print(prequential(stream, model))


if __name__ == "__main__":
    main()
