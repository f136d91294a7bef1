"""Rows of features, and the weights for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.sums import sum_in_order

# Integers below this size are their own keys. Any other feature name gets the next key from FIRST_NAME on.
DIRECT_LIMIT = 1 << 53
FIRST_NAME = 1 << 60
INTERCEPT = -(1 << 60)
# The hash of a key in the compiled engine is the lowest 64 bits of key · MULTIPLIER, which is close to 2⁶⁴ / the golden
# ratio.
MULTIPLIER = 0x9E3779B97F4A7C15

# With values, example weights and l2 inside their limits, no sum in the engine can overflow.
VALUE_LIMIT = 1e45
# Below this scale the weights are folded, so that the weights and the scale stay in the range of a float64.
FOLD_BELOW = 1e-9
# An average is folded far earlier: at a small scale, b·v − u is a small difference of large numbers.
FOLD_AVERAGED_BELOW = 1e-3

NO_VECTOR = np.zeros(0)


class Row(NamedTuple):
    """An example: x = factor · {key: value}, and perhaps a vector. The values of a repeated key add up.

    A row is even if its values depend only on the kinds of its features.
    """

    keys: Sequence[int]
    values: Sequence[float]
    factor: float = 1.0
    vector: NDArray[np.float64] = NO_VECTOR
    is_even: bool = False


@dataclass
class WeightDict:
    """A lazily scaled weight dictionary: w = a·v, so that scaling w costs one multiplication.

    With `average`, it predicts with the average of w over the calls of `accumulate`, each with its weight c. With
    b = Σ c a there is a u so that Σ c w = b·v − u; so an average costs no more (Bottou, Stochastic gradient descent
    tricks, 2012).
    """

    average: bool
    v: dict[int, float] = field(default_factory=dict)
    u: dict[int, float] = field(default_factory=dict)
    scale: float = 1.0  # a
    squares: float = 0.0  # ‖v‖²
    sums_scale: float = 0.0  # b
    sums_weight: float = 0.0  # Σ c

    def squared_norm(self) -> float:
        """‖w‖²"""
        return self.scale * self.scale * self.squares

    def dot(self, row: Row) -> float:
        """⟨w, x⟩"""
        return self.scale * row.factor * inner(self.v, row)

    def predict(self, row: Row) -> float:
        """⟨w, x⟩ with the predicting weights."""
        if not self.sums_weight:
            return self.dot(row)
        return row.factor * self._predicting(inner(self.v, row), inner(self.u, row))

    def get(self, key: int) -> float:
        """The predicting weight."""
        return self._predicting(self.v.get(key, 0.0), self.u.get(key, 0.0))

    def _predicting(self, v: float, u: float) -> float:
        return (self.sums_scale * v - u) / self.sums_weight if self.sums_weight else self.scale * v

    def add(self, x: Iterable[tuple[int, float]], factor: float) -> None:
        """w ← w + factor · x"""
        step = factor / self.scale
        for key, value in x:
            before = self.v.get(key, 0.0)
            after = self.v[key] = before + step * value
            self.squares += (after - before) * (after + before)
            if self.sums_scale:
                self.u[key] = self.u.get(key, 0.0) + self.sums_scale * (step * value)

    def rescale(self, factor: float) -> None:
        """w ← factor · w"""
        self.scale *= factor
        if abs(self.scale) < (FOLD_AVERAGED_BELOW if self.average else FOLD_BELOW):
            self._fold()

    def accumulate(self, weight: float) -> None:
        """Add w to the average."""
        self.sums_scale += weight * self.scale
        self.sums_weight += weight

    def _fold(self) -> None:
        """Store w with a = 1 and b = 0; store nothing if w is 0."""
        if self.sums_weight:
            self.u = {key: self.u.get(key, 0.0) - self.sums_scale * v for key, v in self.v.items()}
        self.v = {key: self.scale * v for key, v in self.v.items()} if self.scale or self.sums_weight else {}
        self.scale, self.sums_scale = 1.0, 0.0
        self.squares = math.fsum(v * v for v in self.v.values())  # exact, so their order does not matter


def inner(weights: Mapping[int, float], row: Row) -> float:
    pairs = zip(row.keys, row.values, strict=True)
    return sum_in_order(weights[key] * x for key, x in pairs if key in weights)
