"""Learners whose features are scaled by their own records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.adaptive_state import ENLARGED, LEAST_SQUARED_NORM, Floats
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.engine.pure.driver import Learner, sigmoid
from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.weights import Row


class ScaledLearner(Learner, is_rule=False):
    """A learner with a scale for each feature. The margin is Σ weight · scale · x / ‖scale · x‖ + intercept."""

    counts_unknown = True
    _features: dict[int, Any]
    _dense: DenseBlock | None = None  # made when the first vector is learned

    def __len__(self) -> int:
        return len(self._features)

    def items(self) -> tuple[NDArray[np.int64], Floats]:
        keys = np.fromiter(self._features, np.int64, len(self._features))
        return keys, self.get_weights(keys)

    def get_weights(self, keys: NDArray[np.int64]) -> Floats:
        scales, weights = self._scales_and_weights(keys.tolist())
        return self._expand_pair(scales[:, np.newaxis] * weights)

    def contributions(self, encoder: Encoder, x: object, number: int = 0) -> dict[int, float]:
        row, (column, sign) = encoder.row(x, True), self._signed_column(number)
        encoder.forget_newest()
        values, weights = self._values_and_weights(row)
        products = (sign * values * weights[:, column]).tolist() if column < weights.shape[1] else []
        return {key: product for key, product in zip(row.keys, products, strict=False) if key in self._features}

    def vector_score(self, encoder: Encoder, x: object, number: int = 0) -> tuple[float, Floats, float]:
        if self._dense is None:
            return super().vector_score(encoder, x, number)
        vector, (column, sign) = encoder.row(x, False).vector, self._signed_column(number)
        share, factors, constant = self._dense.attribution(vector, column, self.calibration.slope)
        return share, sign * factors, sign * constant

    def _scales_and_weights(self, keys: Sequence[int]) -> tuple[Floats, Floats]:
        """The scale of each feature, and the weights, a row for each feature."""
        raise NotImplementedError

    def _values_and_weights(self, row: Row) -> tuple[Floats, Floats]:
        """The scaled values, divided by their norm, and their weights."""
        scales, weights = self._scales_and_weights(row.keys)
        values = scales * np.array(row.values, np.float64)
        squares = float((values * values).sum())
        if squares < LEAST_SQUARED_NORM:  # so that no square becomes 0
            values = values * ENLARGED
            squares = float((values * values).sum())
        norm = math.sqrt(squares)
        return (values / norm if norm else np.zeros(len(values))), weights


def logarithms(log_odds: list[float], order: Sequence[int]) -> list[float]:
    """The logarithms of the probabilities of ordered classes. `log_odds` has, for each class but the last, the log-odds
    of a higher class; the probability of a higher class never rises along the order.
    """
    result = [0.0] * len(order)
    above = 1.0
    for number, odds in zip(order, [*log_odds, -math.inf], strict=False):
        next_above = min(above, sigmoid(odds)) if odds > -math.inf else 0.0
        result[number] = math.log(max(above - next_above, 1e-300))
        above = next_above
    return result


def unevenness(values: Sequence[float]) -> float:
    """The mean absolute value minus the smallest, divided by the root mean square. Zeros are left out."""
    sizes = np.abs(np.array([value for value in values if value != 0.0], np.float64))
    if not len(sizes) or sizes.min() == sizes.max():
        return 0.0
    sizes /= sizes.max()
    return float((sizes - sizes.min()).sum() / math.sqrt(len(sizes) * (sizes * sizes).sum()))
