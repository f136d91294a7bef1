"""Learners whose features are scaled by what is known of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.adaptive_state import (
    Floats,
)
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.engine.pure.driver import Learner, sigmoid
from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.weights import Row


class ScaledLearner(Learner, is_rule=False):
    """The values of a row are scaled by what is known of each feature, and then divided by their norm; these are what
    the weights meet. So margin = Σ weight · scale · x / ‖scale · x‖ + intercept.
    """

    meets_unknown = True
    _features: dict[int, Any]
    _dense: DenseBlock | None = None  # from the first vector on that is learned

    def __len__(self) -> int:
        return len(self._features)

    def items(self) -> tuple[NDArray[np.int64], Floats]:
        """Keys, and what each feature weighs, weight · scale."""
        found = np.fromiter(self._features, np.int64, len(self._features))
        return found, self.weights_of(found)

    def weights_of(self, keys: NDArray[np.int64]) -> Floats:
        scales, weights = self._scales_and_weights(keys.tolist())
        return scales[:, np.newaxis] * weights

    def contributions(self, encoder: Encoder, x: Any, column: int = 0) -> dict[int, float]:
        row = encoder.row(x, True)
        encoder.forget_newest()
        values, weights = self._values_and_weights(row)
        products = (values * weights[:, column]).tolist() if column < weights.shape[1] else []
        return {key: product for key, product in zip(row.keys, products, strict=False) if key in self._features}

    def of_vector(self, encoder: Encoder, x: Any, column: int = 0) -> tuple[float, Floats, float]:
        if self._dense is None:
            return super().of_vector(encoder, x, column)
        vector = encoder.row(x, False).vector
        return self._dense.attribution(vector, column, self.calibration.slope)

    def _scales_and_weights(self, keys: Sequence[int]) -> tuple[Floats, Floats]:
        """Of each feature the scale and, in a row, the weights."""
        raise NotImplementedError

    def _values_and_weights(self, row: Row) -> tuple[Floats, Floats]:
        """The scaled values, divided by their norm, and the weights that they meet."""
        scales, weights = self._scales_and_weights(row.keys)
        values = scales * np.array(row.values, np.float64)
        norm = math.sqrt(float((values * values).sum()))
        return (values / norm if norm else np.zeros(len(values))), weights


def logarithms(log_odds: list[float], order: Sequence[int]) -> list[float]:
    """Of the probability of each of some ordered classes, given the log-odds of a higher one than each of them but the
    last. None can have more above it than the one before.
    """
    result = [0.0] * len(order)
    above = 1.0
    for number, odds in zip(order, [*log_odds, -math.inf], strict=False):
        next_above = min(above, sigmoid(odds)) if odds > -math.inf else 0.0
        result[number] = math.log(max(above - next_above, 1e-300))
        above = next_above
    return result
