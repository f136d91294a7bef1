"""Rows of features, and the weights that they meet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Integers below this size are their own keys; any other feature name gets the next key from FIRST_NAME on.
DIRECT_LIMIT = 1 << 53
FIRST_NAME = 1 << 60
INTERCEPT = -(1 << 60)
# The compiled engine keeps features in the order of the lowest 64 bits of key · this; nearly 2⁶⁴ / the golden ratio.
MULTIPLIER = 0x9E3779B97F4A7C15

# With values, example weights and l2 inside their limits no sum in the engine can overflow.
VALUE_LIMIT = 1e45
# Below this scale the weights are folded, so that neither they nor the scale leave the range of a float64.
FOLD_BELOW = 1e-9
# With an average far earlier, since b·v − u is a small difference of large numbers where the scale is small.
FOLD_AVERAGED_BELOW = 1e-3

State = dict[str, Any]


class Row(NamedTuple):
    """One example: x = factor · {key: value}; a key may stand more than once, its values then add up."""

    keys: Sequence[int]
    values: Sequence[float]
    factor: float = 1.0


class WeightDict:
    """A lazily scaled weight dictionary: w = a·v, so that scaling all weights costs one multiplication.

    With `average` it also holds the average of the w's that `accumulate` was called at, each with its weight c, and
    that is what it then predicts with: Σ c w = b·v − u with b = Σ c a, so that it costs no more than w itself (the
    trick of two scaled vectors; Bottou, Stochastic gradient descent tricks, 2012).
    """

    def __init__(self, average: bool = False) -> None:
        self._v: dict[int, float] = {}
        self._a = 1.0
        self._squares = 0.0  # ‖v‖²
        self.average = average
        self._u: dict[int, float] = {}
        self._b = 0.0
        self._total = 0.0  # Σ c

    def __len__(self) -> int:
        return len(self._v)

    def __contains__(self, key: int) -> bool:
        return key in self._v

    def get(self, key: int) -> float:
        """The weight that predicts."""
        return self._predicting(self._v.get(key, 0.0), self._u.get(key, 0.0))

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys and the weights that predict."""
        values = np.fromiter((self.get(key) for key in self._v), np.float64, len(self._v))
        return np.fromiter(self._v, np.int64, len(self._v)), values

    @property
    def squared_norm(self) -> float:
        """‖w‖²"""
        return self._a * self._a * self._squares

    def dot(self, row: Row) -> float:
        """⟨w, x⟩"""
        return self._a * row.factor * inner(self._v, row)

    def predict(self, row: Row) -> float:
        """⟨w, x⟩ with the weights that predict."""
        if not self._total:
            return self.dot(row)
        return row.factor * self._predicting(inner(self._v, row), inner(self._u, row))

    def add(self, row: Row, factor: float) -> None:
        """w ← w + factor · x"""
        v, step = self._v, factor * row.factor / self._a
        for key, x in zip(row.keys, row.values, strict=True):
            if x != 0.0:
                old = v.get(key, 0.0)
                new = old + step * x
                v[key] = new
                self._squares += (new - old) * (new + old)
                if self.average:
                    self._u[key] = self._u.get(key, 0.0) + self._b * (step * x)

    def scale(self, factor: float) -> None:
        """w ← factor · w"""
        self._a *= factor
        if abs(self._a) < (FOLD_AVERAGED_BELOW if self.average else FOLD_BELOW):
            self._fold()

    def accumulate(self, weight: float) -> None:
        """Take w into the average."""
        self._b += weight * self._a
        self._total += weight

    def negate(self) -> None:
        """w ← −w, and so all that the average was taken of."""
        self._a, self._b = -self._a, -self._b
        self._u = {key: -u for key, u in self._u.items()}

    def _predicting(self, v: float, u: float) -> float:
        return (self._b * v - u) / self._total if self._total else self._a * v

    def _fold(self) -> None:
        if self.average:
            self._u = {key: self._u[key] - self._b * v for key, v in self._v.items()}
        if self._a == 0.0 and not self._total:
            self._v.clear()
            self._u.clear()
        for key in self._v:
            self._v[key] *= self._a
        self._a, self._b = 1.0, 0.0
        self._squares = math.fsum(x * x for x in self._v.values())  # whatever their order

    def get_state(self) -> State:
        state = {
            "keys": np.fromiter(self._v, np.int64, len(self._v)),
            "values": np.fromiter(self._v.values(), np.float64, len(self._v)),
            "scale": self._a,
            "squares": self._squares,
        }
        if self.average:
            state["sums"] = np.fromiter((self._u[key] for key in self._v), np.float64, len(self._v))
            state["sums_scale"], state["sums_weight"] = self._b, self._total
        return state

    def set_state(self, state: State) -> None:
        keys = state["keys"].tolist()
        self._v = dict(zip(keys, state["values"].tolist(), strict=True))
        self._a, self._squares = state["scale"], state["squares"]
        if self.average:
            self._u = dict(zip(keys, state["sums"].tolist(), strict=True))
            self._b, self._total = state["sums_scale"], state["sums_weight"]


def inner(weights: dict[int, float], row: Row) -> float:
    return sum(weights.get(key, 0.0) * x for key, x in zip(row.keys, row.values, strict=True))
