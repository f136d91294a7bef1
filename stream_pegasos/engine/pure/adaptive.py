"""Steps of a size of its own for each feature, on features scaled by what naive Bayes knows of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.learner import Calibration
from stream_pegasos.engine.pure.weights import Row, State

# What every feature is scaled by, however little its presence tells of the label: it may tell more beside others.
LEAST_SCALE = 0.3
# The newest evidence may weigh this much more than the oldest before all is written down anew, at its weight of now.
LARGEST_EVIDENCE = 2.0**400


@dataclass(slots=True)
class Feature:
    """What is known of a feature: its weight, the logarithm of its count ratio, and as evidence the sum of its squared
    gradients and the number of positive and of negative examples that had it.
    """

    weight: float = 0.0
    log_ratio: float = 0.0
    squares: float = 0.0
    positives: float = 0.0
    negatives: float = 0.0


UNKNOWN = Feature()


class AdaptiveLearner:
    """Steps of AdaGrad on rows whose values are scaled and then divided by their norm, for examples whose y · margin is
    below `margin`.

    The scale of a feature is `LEAST_SCALE` plus the size of its log-count ratio: how much more often positive than
    negative examples have it, each count with `smoothing` added, beside how many there are of both; 1 for all if
    `smoothing` is 0. The ratio of a feature is that of the last time it was learned. Evidence halves over `half_life`
    examples, if that is not 0: instead of shrinking the old, each example counts more than the one before.
    `intercept_scaling` is 0 for no intercept.
    """

    def __init__(
        self,
        learning_rate: float,
        hinge: bool,
        margin: float,
        smoothing: float,
        half_life: float,
        intercept_scaling: float,
        max_features: int = 0,
    ) -> None:
        self.arguments = (learning_rate, hinge, margin, smoothing, half_life, intercept_scaling, max_features)
        self.n_iterations = 0
        self._learning_rate = learning_rate
        self._hinge = hinge
        self._largest_margin = margin
        self._smoothing = smoothing
        self._growth = 2.0 ** (1.0 / half_life) if half_life else 1.0
        self._intercept_scaling = intercept_scaling
        self._max_features = max_features
        self._features: dict[int, Feature] = {}
        self._intercept = Feature()  # which every example has
        self._evidence = 1.0  # what an example counts that is learned now
        self._calibration = Calibration()

    def __len__(self) -> int:
        return len(self._features)

    @property
    def n_held(self) -> int:
        """The number of features that something is kept of."""
        return len(self._features)

    @property
    def intercept(self) -> float:
        return self._intercept_scaling * self._intercept.weight

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys, and what each feature weighs: margin = Σ weight · x / ‖scale · x‖ + intercept."""
        values = [feature.weight * self._scale(feature) for feature in self._features.values()]
        return np.fromiter(self._features, np.int64, len(self._features)), np.array(values, np.float64)

    def weights_of(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """What `items` says of some features; 0 for those that are not known."""
        features = (self._features.get(key, UNKNOWN) for key in keys.tolist())
        return np.array([feature.weight * self._scale(feature) for feature in features], np.float64)

    def margin(self, encoder: Encoder, x: Any) -> float:
        row = encoder.row(x, True)
        encoder.forget_newest()
        return self._margin(row, self._scaled(row))

    def contributions(self, encoder: Encoder, x: Any) -> dict[int, float]:
        """What each feature that has been learned adds to the margin, which is their sum and the intercept."""
        row = encoder.row(x, True)
        encoder.forget_newest()
        pairs = zip(row.keys, self._scaled(row), strict=True)
        return {key: self._features[key].weight * value for key, value in pairs if key in self._features}

    def probability(self, margin: float) -> float:
        """The probability of the positive class; above one half exactly where the margin is above 0."""
        return self._calibration.probability(margin)

    def learn(self, encoder: Encoder, x: Any, y: float, weight: float) -> bool:
        """Take in one example with label y = ±1; whether names are to be forgotten."""
        row = encoder.row(x, True)
        values = self._scaled(row)
        if not self._learn(row, values, self._margin(row, values), y, weight):
            encoder.forget_newest()
        return False  # there are only those of features

    def predict_learn_many(
        self,
        encoder: Encoder,
        X: Any,
        y: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Margin and probability of each example, in turn, before it is learned; without y nothing is learned. It ends
        with the example that brings in a feature beyond `max_features`.
        """
        margins: list[float] = []
        probabilities: list[float] = []
        for i, row in enumerate(encoder.rows(X, True)):
            values = self._scaled(row)
            margin = self._margin(row, values)
            margins.append(margin)
            probabilities.append(self.probability(margin))
            weight = 1.0 if weights is None else float(weights[i])
            if y is None or not self._learn(row, values, margin, float(y[i]), weight):
                encoder.forget_newest()
            if y is not None and 0 < self._max_features < len(self):
                break
        return np.array(margins), np.array(probabilities)

    def flush(self) -> None:
        """Nothing waits for a step."""

    def negate(self) -> None:
        """Exchange the two classes: what has been learned stays, with the opposite sign."""
        for feature in (*self._features.values(), self._intercept):
            feature.weight, feature.log_ratio = -feature.weight, -feature.log_ratio
            feature.positives, feature.negatives = feature.negatives, feature.positives

    def forget(self, share: float) -> None:
        """Keep that share of all evidence so far and, as weights grow with its root, that of the weights; from then on
        both move faster.
        """
        self._evidence /= share
        self._weigh_anew()
        for feature in (*self._features.values(), self._intercept):
            feature.weight *= math.sqrt(share)
            feature.log_ratio = self._log_ratio(feature)

    def _scale(self, feature: Feature) -> float:
        if not self._smoothing:
            return 1.0
        return LEAST_SCALE + abs(feature.log_ratio - self._intercept.log_ratio)

    def _log_ratio(self, feature: Feature) -> float:
        if not self._smoothing:
            return 0.0
        smoothing = self._smoothing * self._evidence
        # A difference, as it changes its sign exactly where the classes are exchanged.
        return math.log(feature.positives + smoothing) - math.log(feature.negatives + smoothing)

    def _scaled(self, row: Row) -> list[float]:
        """The values that the weights meet: scaled, then divided by their norm."""
        items = zip(row.keys, row.values, strict=True)
        values = [x * self._scale(self._features.get(key, UNKNOWN)) for key, x in items]
        norm = math.sqrt(sum(value * value for value in values))
        return [value / norm for value in values] if norm else [0.0] * len(values)

    def _margin(self, row: Row, values: list[float]) -> float:
        pairs = zip(row.keys, values, strict=True)
        return self.intercept + sum(self._features.get(key, UNKNOWN).weight * value for key, value in pairs)

    def _learn(self, row: Row, values: list[float], margin: float, y: float, weight: float) -> bool:
        """Whether there was a step."""
        self._calibration.learn(margin, y)
        is_near = y * margin < self._largest_margin
        if is_near:
            slope = (y * margin < 1.0) if self._hinge else 1.0 / (1.0 + math.exp(min(y * margin, 700.0)))
            gradient = -y * weight * slope
            self._learn_feature(self._intercept, gradient * self._intercept_scaling, y, weight)
            for key, x, value in zip(row.keys, row.values, values, strict=True):
                if x != 0.0:
                    feature = self._features.setdefault(key, Feature())
                    self._learn_feature(feature, gradient * value, y, weight)
        self.n_iterations += 1
        self._evidence *= self._growth
        if self._evidence > LARGEST_EVIDENCE:
            self._weigh_anew()
        return is_near

    def _learn_feature(self, feature: Feature, gradient: float, y: float, weight: float) -> None:
        square = gradient * gradient
        if square > 0.0:
            feature.squares += self._evidence * square
            feature.weight -= self._learning_rate * gradient / math.sqrt(feature.squares / self._evidence)
        if y > 0.0:
            feature.positives += weight * self._evidence
        else:
            feature.negatives += weight * self._evidence
        feature.log_ratio = self._log_ratio(feature)

    def _weigh_anew(self) -> None:
        """Write all evidence down as what it counts now."""
        evidence, self._evidence = self._evidence, 1.0
        for feature in (*self._features.values(), self._intercept):
            feature.squares /= evidence
            feature.positives /= evidence
            feature.negatives /= evidence

    def get_state(self) -> State:
        features, intercept = self._features.values(), self._intercept
        n = len(features)
        return {
            "keys": np.fromiter(self._features, np.int64, n),
            "values": np.fromiter((feature.weight for feature in features), np.float64, n),
            "log_ratios": np.fromiter((feature.log_ratio for feature in features), np.float64, n),
            "gradient_squares": np.fromiter((feature.squares for feature in features), np.float64, n),
            "positives": np.fromiter((feature.positives for feature in features), np.float64, n),
            "negatives": np.fromiter((feature.negatives for feature in features), np.float64, n),
            "intercept": intercept.weight,
            "intercept_log_ratio": intercept.log_ratio,
            "intercept_squares": intercept.squares,
            "n_positives": intercept.positives,
            "n_negatives": intercept.negatives,
            "evidence": self._evidence,
            "n_iterations": self.n_iterations,
            **self._calibration.get_state(),
        }

    def set_state(self, state: State) -> None:
        names = ("values", "log_ratios", "gradient_squares", "positives", "negatives")
        columns = [state[name].tolist() for name in names]
        entries = zip(*columns, strict=True)
        self._features = {key: Feature(*entry) for key, entry in zip(state["keys"].tolist(), entries, strict=True)}
        of_intercept = ("intercept", "intercept_log_ratio", "intercept_squares", "n_positives", "n_negatives")
        self._intercept = Feature(*(state[name] for name in of_intercept))
        self._evidence = state["evidence"]
        self.n_iterations = state["n_iterations"]
        self._calibration.set_state(state)
