"""Pegasos on one weight vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.weights import INTERCEPT, Row, State, WeightDict


def signs_of(y: list[Any], signs: Mapping[Any, float]) -> NDArray[np.float64] | None:
    """The value in `signs` of each label of a list, or None if one is not there."""
    found = [signs.get(label) for label in y]
    return None if None in found else np.array(found, np.float64)


class Calibration:
    """A probability for each margin, learned from the margins of examples before they are learned.

    The probability of the positive class is 1/(1 + exp(−s·margin)), with the slope of Platt (1999) and without his
    intercept, so that probability and decision always agree. The slope s > 0 follows by stochastic descent on the log
    loss over log s, with the step size of AdaGrad (Duchi, Hazan and Singer 2011) over the newest thousand gradients or
    so, since the first margins of Pegasos are far larger than those to come.
    """

    def __init__(self) -> None:
        self.slope = 1.0
        self._squares = 0.0

    def probability(self, margin: float) -> float:
        """The probability of the positive class; above one half exactly where the margin is above 0."""
        probability = logistic(self.slope * margin)
        return max(probability, 0.5 + 2.0**-53) if margin > 0.0 else probability

    def learn(self, margin: float, y: float) -> None:
        """One step on the log loss of the label y = ±1."""
        probability = self.probability(margin)
        self.descend(-y * margin * (1.0 - probability if y > 0.0 else probability))

    def descend(self, gradient: float) -> None:
        """One step, given the gradient over s."""
        gradient = min(max(self.slope * gradient, -LARGEST_GRADIENT), LARGEST_GRADIENT)
        if abs(gradient) >= SMALLEST_GRADIENT:
            self._squares = CALIBRATION_MEMORY * self._squares + gradient * gradient
            # A step of log s is at most the rate, so 1 − step is near exp(−step), and stays above 0.
            slope = self.slope * (1.0 - CALIBRATION_RATE * gradient / math.sqrt(self._squares))
            self.slope = min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)

    def get_state(self) -> State:
        return {"slope": self.slope, "calibration_squares": self._squares}

    def set_state(self, state: State) -> None:
        self.slope, self._squares = state["slope"], state["calibration_squares"]


# The size of the first steps of the logarithm of the slope.
CALIBRATION_RATE = 0.5
# How much of the sum of their squares is left at each new one.
CALIBRATION_MEMORY = 1.0 - 1.0 / 1000.0
# Inside these limits squares of gradients and slopes stay in the range of a float64.
SMALLEST_GRADIENT, LARGEST_GRADIENT = 1e-100, 1e100
SMALLEST_SLOPE, LARGEST_SLOPE = 1e-200, 1e200


class Learner:
    """Pegasos steps on rows, with a mini-batch buffer, and a probability for each margin.

    `intercept_scaling` is 0 for no intercept. The average of the iterates, if `average_from` is not 0, begins with that
    step, and weighs w_t by t if `average_by_t`. With `only_violations` a batch without a violation is no step. The
    `initializer` gives the first weight of each feature by its name.
    """

    def __init__(
        self,
        l2: float,
        batch_size: int,
        t0: float,
        project: bool,
        intercept_scaling: float,
        average_from: int = 0,
        average_by_t: bool = False,
        only_violations: bool = False,
        initializer: Callable[[Any], float] | None = None,
        max_features: int = 0,
    ) -> None:
        self.arguments = (
            l2,
            batch_size,
            t0,
            project,
            intercept_scaling,
            average_from,
            average_by_t,
            only_violations,
            initializer,
            max_features,
        )
        self.weights = WeightDict(average_from > 0)
        self.n_iterations = 0
        self._l2 = l2
        self._batch_size = batch_size
        self._t0 = t0
        self._project = project
        self._intercept_scaling = intercept_scaling
        self._average_from = average_from
        self._average_by_t = average_by_t
        self._only_violations = only_violations
        self._initializer = initializer
        self._max_features = max_features
        self._initial_scale = 1.0  # what all steps so far have left of the first weights
        self._n_buffered = 0
        self._n_violations = 0  # among the buffered
        self._buffer: list[tuple[int, float]] = []  # of the violating examples: key, c·y·x
        self._calibration = Calibration()

    def __len__(self) -> int:
        """The number of features that have a weight."""
        return len(self.weights) - (INTERCEPT in self.weights)

    @property
    def n_held(self) -> int:
        """The number of features that something is kept of, or a little more."""
        return len(self.weights) + len(self._buffer)

    def weights_of(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weights that predict."""
        return np.array([self.weights.get(key) for key in keys.tolist()], np.float64)

    @property
    def n_buffered(self) -> int:
        return self._n_buffered

    def margin(self, encoder: Encoder, x: Any) -> float:
        """⟨w, x⟩ with the weights that predict."""
        return self.weights.predict(with_intercept(encoder.row(x, False), self._intercept_scaling))

    def probability(self, margin: float) -> float:
        """The probability of the positive class; above one half exactly where the margin is above 0."""
        return self._calibration.probability(margin)

    def learn(self, encoder: Encoder, x: Any, y: float, weight: float) -> bool:
        """Take in one example of label y = ±1, and the step if it is due; whether names are to be forgotten."""
        self.learn_row(with_intercept(encoder.row(x, True), self._intercept_scaling), y, weight, encoder)
        return encoder.is_crowded(self.n_held)

    def predict_learn_many(
        self,
        encoder: Encoder,
        X: Any,
        y: NDArray[np.float64] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Margin and probability of each example, in turn, before it is learned; without y nothing is learned. It ends
        with an example that brings in a weight beyond `max_features`, or with which names are to be forgotten.
        """
        margins: list[float] = []
        probabilities: list[float] = []
        for i, given in enumerate(encoder.rows(X, y is not None)):
            row = with_intercept(given, self._intercept_scaling)
            margins.append(self.weights.predict(row))
            probabilities.append(self.probability(margins[i]))
            if y is not None:
                self.learn_row(row, float(y[i]), 1.0 if weights is None else float(weights[i]), encoder)
                if 0 < self._max_features < len(self) or encoder.is_crowded(self.n_held):
                    break
        return np.array(margins), np.array(probabilities)

    def flush(self) -> None:
        """Take the step with the examples that the buffer holds."""
        if self._n_buffered:
            self._step()

    def negate(self) -> None:
        """Exchange the two classes: what has been learned stays, with the opposite sign."""
        self.weights.negate()
        self._initial_scale = -self._initial_scale
        self._buffer = [(key, -value) for key, value in self._buffer]

    def learn_row(self, row: Row, y: float, weight: float, encoder: Encoder) -> None:
        self._calibration.learn(self.weights.predict(row), y)
        self._initialize(encoder, row)
        if y * self.weights.dot(row) < 1.0:
            coefficient = weight * y * row.factor
            self._buffer += [(key, coefficient * x) for key, x in zip(row.keys, row.values, strict=True)]
            self._n_violations += 1
        self._n_buffered += 1
        if self._n_buffered == self._batch_size:
            self._step()

    def _step(self) -> None:
        buffer, n_buffered = self._buffer, self._n_buffered
        idle = self._only_violations and not self._n_violations
        self._buffer, self._n_buffered, self._n_violations = [], 0, 0
        if idle:
            return
        self.n_iterations += 1
        n = self.n_iterations + self._t0
        self._scale((n - 1.0) / n)
        if buffer:
            keys, values = zip(*buffer, strict=True)
            self.weights.add(Row(keys, values), 1.0 / (self._l2 * n * n_buffered))
        if self._project:
            self._back_into_ball()
        if 0 < self._average_from <= self.n_iterations:
            self.weights.accumulate(self.n_iterations if self._average_by_t else 1.0)

    def _initialize(self, encoder: Encoder, row: Row) -> None:
        """Give features that are new what is left of their first weights, which are to lie in the ball."""
        if self._initializer is None or self._initial_scale == 0.0:
            return
        items = zip(row.keys, row.values, strict=True)
        new = dict.fromkeys(key for key, x in items if x != 0.0 and key != INTERCEPT and key not in self.weights)
        first = {key: self._initializer(encoder.name(key)) for key in new}
        for key, value in first.items():
            self.weights.add(Row([key], [1.0]), self._initial_scale * value)
        if new and (self._project or self.n_iterations == 0):
            self._back_into_ball()

    def _back_into_ball(self) -> None:
        """Bring w back into the ball of radius 1/√λ."""
        ratio = self._l2 * self.weights.squared_norm
        if ratio > 1.0:
            self._scale(1.0 / math.sqrt(ratio))

    def _scale(self, factor: float) -> None:
        self.weights.scale(factor)
        self._initial_scale *= factor

    def get_state(self) -> State:
        state = {
            **self.weights.get_state(),
            **self._calibration.get_state(),
            "n_iterations": self.n_iterations,
            "n_buffered": self._n_buffered,
            "buffer_keys": np.array([key for key, _ in self._buffer], np.int64),
            "buffer_values": np.array([value for _, value in self._buffer], np.float64),
        }
        if self._only_violations:
            state["n_violations"] = self._n_violations
        if self._initializer is not None:
            state["initial_scale"] = self._initial_scale
        return state

    def set_state(self, state: State) -> None:
        self.weights.set_state(state)
        self._calibration.set_state(state)
        self.n_iterations = state["n_iterations"]
        self._n_buffered = state["n_buffered"]
        keys, values = state["buffer_keys"].tolist(), state["buffer_values"].tolist()
        self._buffer = list(zip(keys, values, strict=True))
        self._n_violations = state.get("n_violations", 0)
        self._initial_scale = state.get("initial_scale", 1.0)


def with_intercept(row: Row, scaling: float) -> Row:
    """The row with the constant feature of that value; as it is for 0."""
    if not scaling:
        return row
    return Row([*row.keys, INTERCEPT], [*row.values, scaling / row.factor], row.factor)


def logistic(z: float) -> float:
    """1/(1 + exp(−z)), kept inside (0, 1)."""
    return 1.0 / (1.0 + math.exp(-min(max(z, -34.0), 34.0)))
