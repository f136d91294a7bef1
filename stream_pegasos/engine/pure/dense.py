"""The weights for the vector of a message, beside the weights of its features."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State
from stream_pegasos.engine.pure.adaptive_state import (
    FIRST_JOINT_WEIGHTS,
    JOINT_MEMORY,
    JOINT_PRECISION,
    LARGEST_JOINED,
    LARGEST_JOINT_WEIGHT,
    LARGEST_MARGIN_JOINED,
    LEAST_SPREAD,
    OF_ONE_WEIGHT,
    PRIOR_VARIANCE,
    SHARE_BESIDE,
    SURE_BELOW,
    dense_fields,
    has_counts,
)
from stream_pegasos.engine.pure.driver import LARGEST_LOG_ODDS

Floats = NDArray[np.float64]
ARRAYS = tuple(field.name for field in dense_fields("two") if field.shape)


@dataclass(slots=True)
class DenseBlock:
    """Logistic regression on the directions x = (u − mean)/‖u − mean‖ of the vectors u of messages, and its combination
    with the margins of features.

    The weights w of each class have a normal prior, whose variance is f = 1/8 for each class that there is. An example
    is a step of Newton's method, as in an extended Kalman filter (Ollivier, Online natural gradient as a Kalman filter,
    2018), with one covariance f·P for all classes: with p the probabilities before, e = [class = y] − p, and
    h = p (1 − p) of the class of the example,

        k = f P x / (1 + f h x'Px),    P ← P − h k (Px)',    w ← w + e k.

    Examples whose class had a probability near 1 are skipped. Two classes have the weights −w and w, and ordered
    classes share w. These two, and labels that hold together, have the log-odds 2 w'x, and f = 1/4. More than two
    classes are learned beside half of the margins of their features; ordered classes, and labels, also beside half of
    the log-odds of their frequencies.

    Two joint weights combine the margins of the features with those of the block. They learn how much each kind says:
    steps of Newton's method on the log loss, with a prior, over roughly the newest thousand examples.
    """

    reduction: str
    mean: Floats
    covariance: Floats  # P
    weights: Floats  # a row for each class, or one row that all share
    counts: Floats  # of each class
    n: float = 0.0  # messages learned, as evidence
    evidence: float = 1.0  # the count of a message that is learned now, below 2; the covariance is P times this
    joint: Floats = field(default_factory=lambda: np.array(FIRST_JOINT_WEIGHTS))
    information: Floats = field(default_factory=lambda: np.zeros((2, 2)))

    @classmethod
    def of(cls, reduction: str, n_dimensions: int, n_classes: int) -> DenseBlock:
        n_rows = 1 if reduction in OF_ONE_WEIGHT else n_classes
        d = n_dimensions
        return cls(reduction, np.zeros(d), np.eye(d), np.zeros((n_rows, d)), np.zeros(n_classes))

    @property
    def _is_softmax(self) -> bool:
        return self.reduction == "ovr"

    @property
    def _factor(self) -> float:
        """The ratio of margins to the products with weights."""
        return 1.0 if self._is_softmax else 2.0

    def direction(self, vector: Floats) -> Floats:
        """The direction of a vector; 0 if no word has a vector."""
        if len(vector) != len(self.mean) or not vector.any():
            return np.zeros(len(self.mean))
        centred = vector - self.mean
        norm = math.sqrt(float((centred * centred).sum()))
        return np.array(centred / norm if norm else centred)

    def margins(self, x: Floats) -> Floats:
        """The margin of each class, or one margin that all problems share."""
        margins: Floats = self._factor * (self.weights * x).sum(axis=1)
        return margins

    def attribution(self, vector: Floats, column: int, slope: float) -> tuple[float, Floats, float]:
        unit = self.joint / slope
        factors = np.zeros(len(self.mean))
        if self.direction(vector).any():
            centred = vector - self.mean
            factors = self._factor * unit[1] * self.weights[column] / math.sqrt(float((centred * centred).sum()))
        return float(unit[0]), factors, -float(factors @ self.mean)

    def joined(self, of_features: Floats, vector_score: Floats) -> Floats:
        """The log-odds of problems; with a softmax, the logarithms of the odds of classes."""
        joined: Floats = self.joint[0] * of_features + self.joint[1] * vector_score
        return joined.clip(-LARGEST_JOINED, LARGEST_JOINED)

    def learn_joint(self, of_features: Floats, vector_score: Floats, holds: NDArray[np.bool_], weight: float) -> None:
        margins_joined = np.stack(np.broadcast_arrays(of_features, vector_score), axis=1)
        margins_joined = margins_joined.clip(-LARGEST_MARGIN_JOINED, LARGEST_MARGIN_JOINED)
        joined = margins_joined @ self.joint
        if self._is_softmax:
            p = softmax(joined)
            centred = margins_joined - p @ margins_joined
            curvature, gradient = (p[:, np.newaxis] * centred).T @ centred, -centred[holds].sum(axis=0)
        else:
            p = sigmoids(joined)
            curvature, gradient = (
                (margins_joined * (p * (1.0 - p))[:, np.newaxis]).T @ margins_joined,
                (p - holds) @ margins_joined,
            )
        self.information = JOINT_MEMORY * self.information + weight * curvature
        (a, b), (_, c) = (self.information + np.diag(JOINT_PRECISION)).tolist()
        determinant = max(a * c - b * b, math.prod(JOINT_PRECISION))  # always true, except for rounding
        step = np.array([c * gradient[0] - b * gradient[1], a * gradient[1] - b * gradient[0]]) / determinant
        self.joint = (self.joint - weight * step).clip(0.0, LARGEST_JOINT_WEIGHT)

    def learn(
        self, vector: Floats, x: Floats, of_features: Floats, holds: NDArray[np.bool_], order: list[int], weight: float
    ) -> None:
        """Take one step, beside the margins of features. `holds` tells for each problem whether the example is
        positive.
        """
        if not vector.any():
            return
        p = self._probabilities(x, of_features, order)
        self.n += self.evidence
        self.mean += (vector - self.mean) / (self.n / self.evidence + 1.0)
        errors = holds - p
        if self._is_softmax:
            (of_class,) = p[holds]
            error, curvature = 1.0 - of_class, of_class * (1.0 - of_class)
        elif self.reduction == "ordinal":
            of_class = float(
                p[holds].min(initial=1.0) - p[~holds].max(initial=0.0)
            )  # p are probabilities of a higher class
            error, curvature = 1.0 - of_class, (p * (1.0 - p)).sum()
            errors = errors.sum(keepdims=True)
            self.counts[order[np.count_nonzero(holds)]] += self.evidence
        else:
            error, curvature = np.abs(errors).max(initial=0.0), (p * (1.0 - p)).max(initial=0.0)
            self.counts[: len(holds)] += self.evidence * holds
        if error < SURE_BELOW:
            return
        n_classes = max(len(self.weights), 2) if self._is_softmax else 2
        variance, px = n_classes * PRIOR_VARIANCE * weight * self.evidence, self.covariance @ x
        spread = float(x @ px)
        if spread < LEAST_SPREAD:
            return
        gain = variance / (1.0 + variance * curvature * spread)
        self.covariance -= curvature * gain * np.outer(px, px)  # stays symmetric to the last bit
        self.weights += np.outer(gain * errors, px)

    def _probabilities(self, x: Floats, of_features: Floats, order: list[int]) -> Floats:
        """The probability of each problem: by the vector, by a share of the features' margins and by the frequencies of
        classes.
        """
        margins = self.margins(x)
        if self.reduction == "two":
            return sigmoids(margins)
        margins = margins + SHARE_BESIDE * self.joint[0] * of_features
        if self._is_softmax:
            return softmax(margins)
        counts = self.counts
        if self.reduction == "ordinal":
            counts = counts[order[:0:-1]].cumsum()[::-1]
        half_evidence = 0.5 * self.evidence
        log_odds = np.log((counts + half_evidence) / (np.maximum(self.n - counts, 0.0) + half_evidence))
        return sigmoids(margins + (1.0 - SHARE_BESIDE) * log_odds)

    def add_class(self) -> None:
        self.counts = np.append(self.counts, 0.0)
        if self.reduction not in OF_ONE_WEIGHT:
            self.weights = np.vstack([self.weights, np.zeros(len(self.mean))])

    def fade(self, growth: float) -> None:
        """Make the next message count more than the earlier ones, by this factor."""
        self.evidence *= growth
        if self.evidence >= 2.0:
            self._weaken(2.0)

    def forget(self, share: float) -> None:
        self._weaken(self.evidence / share)
        self.evidence = 1.0
        self.weights *= math.sqrt(share)
        self.information *= share

    def _weaken(self, factor: float) -> None:
        """Divide all evidence by the factor. Each variance stays within the prior's: that of a number that never varies
        would grow beyond it.
        """
        self.evidence /= factor
        self.n /= factor
        self.counts /= factor
        variances = self.covariance.diagonal()
        growth = np.where(variances * factor <= 1.0, factor, 1.0 / np.clip(variances, 1.0 / factor, 1.0))
        self.covariance *= np.sqrt(np.outer(growth, growth))

    def get_state(self) -> State:
        rows, columns = np.tril_indices(len(self.mean))
        weights = self.weights[0] if self.reduction in OF_ONE_WEIGHT else self.weights
        information = self.information[[0, 0, 1], [0, 1, 1]]
        arrays = self.mean, self.covariance[rows, columns], weights, self.joint, information
        counts = {"vector_counts": self.counts.copy()} if has_counts(self.reduction) else {}
        numbers = {"n_vectors": self.n, "vector_evidence": self.evidence}
        return {**dict(zip(ARRAYS, map(np.copy, arrays), strict=True)), **counts, **numbers}

    @classmethod
    def from_state(cls, reduction: str, state: State, n_classes: int) -> DenseBlock:
        mean, triangle, weights, joint, (a, b, c) = (state[name].copy() for name in ARRAYS)
        rows, columns = np.tril_indices(len(mean))
        covariance = np.zeros((len(mean), len(mean)))
        covariance[rows, columns] = covariance[columns, rows] = triangle
        counts = state["vector_counts"].copy() if has_counts(reduction) else np.zeros(n_classes)
        weights = weights.reshape(-1, len(mean))
        n, evidence, information = state["n_vectors"], state["vector_evidence"], np.array([[a, b], [b, c]])
        return cls(reduction, mean, covariance, weights, counts, n, evidence, joint, information)


def sigmoids(log_odds: Floats) -> Floats:
    probabilities: Floats = 1.0 / (1.0 + np.exp(-log_odds.clip(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)))
    return probabilities


def softmax(margins: Floats) -> Floats:
    terms = np.exp(margins - margins.max())
    probabilities: Floats = terms / terms.sum()
    return probabilities
