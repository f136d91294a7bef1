"""Rows of features, and the weights that they meet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State

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


class Row(NamedTuple):
    """An example, as the engine has it: x = factor · {key: value}. Values of a key that stands twice add up."""

    keys: Sequence[int]
    values: Sequence[float]
    factor: float = 1.0


@dataclass(slots=True)
class Column:
    """What the weights of a column have in common: w = a·v, ‖v‖², and Σ c w = b·v − u with the sum of the c."""

    scale: float = 1.0
    squares: float = 0.0
    sums_scale: float = 0.0
    sums_weight: float = 0.0


class WeightDict:
    """A lazily scaled weight dictionary: w = a·v, so that scaling all weights costs one multiplication.

    The record of a feature has a number for each of the columns, which are weight vectors with a scale of their own.

    With `average` each column also holds the average of the w's that `accumulate` was called at, each with its weight
    c, and that is what it then predicts with: Σ c w = b·v − u with b = Σ c a, so that it costs no more than w itself
    (the trick of two scaled vectors; Bottou, Stochastic gradient descent tricks, 2012).
    """

    def __init__(self, average: bool = False, n_columns: int = 1) -> None:
        self.average = average
        self._columns = [Column() for _ in range(n_columns)]
        self._v: dict[int, list[float]] = {}
        self._u: dict[int, list[float]] = {}

    @property
    def n_columns(self) -> int:
        return len(self._columns)

    def __len__(self) -> int:
        return len(self._v)

    def __contains__(self, key: int) -> bool:
        return key in self._v

    def get(self, key: int, column: int = 0) -> float:
        """The weight that predicts."""
        return self._predicting(column, *(numbers.get(key, self._nothing)[column] for numbers in (self._v, self._u)))

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys, and the weights that predict, with a row a key."""
        values = [[self.get(key, column) for column in range(self.n_columns)] for key in self._v]
        return np.fromiter(self._v, np.int64, len(self._v)), np.array(values).reshape(len(self._v), self.n_columns)

    def squared_norm(self, column: int = 0) -> float:
        """‖w‖²"""
        its = self._columns[column]
        return its.scale * its.scale * its.squares

    def dot(self, row: Row, column: int = 0) -> float:
        """⟨w, x⟩"""
        return self._columns[column].scale * row.factor * self._inner(self._v, row, column)

    def predict(self, row: Row, column: int = 0) -> float:
        """⟨w, x⟩ with the weights that predict."""
        if not self._columns[column].sums_weight:
            return self.dot(row, column)
        return row.factor * self._predicting(
            column, self._inner(self._v, row, column), self._inner(self._u, row, column)
        )

    def add(self, row: Row, factor: float, column: int = 0) -> None:
        """w ← w + factor · x"""
        its = self._columns[column]
        step = factor * row.factor / its.scale
        for key, x in zip(row.keys, row.values, strict=True):
            if x != 0.0:
                record = self._v.setdefault(key, self._nothing)
                old, new = record[column], record[column] + step * x
                record[column] = new
                its.squares += (new - old) * (new + old)
                if self.average:
                    self._u.setdefault(key, self._nothing)[column] += its.sums_scale * (step * x)

    def scale(self, factor: float, column: int = 0) -> None:
        """w ← factor · w"""
        its = self._columns[column]
        its.scale *= factor
        if abs(its.scale) < (FOLD_AVERAGED_BELOW if self.average else FOLD_BELOW):
            self._fold(column)

    def accumulate(self, weight: float, column: int = 0) -> None:
        """Take w into the average."""
        its = self._columns[column]
        its.sums_scale += weight * its.scale
        its.sums_weight += weight

    def negate(self) -> None:
        """w ← −w, and so all that the average was taken of."""
        for its in self._columns:
            its.scale, its.sums_scale = -its.scale, -its.sums_scale
        self._u = {key: [-u for u in record] for key, record in self._u.items()}

    def add_column(self) -> None:
        self._columns.append(Column())
        for record in (*self._v.values(), *self._u.values()):
            record.append(0.0)

    def clear_column(self, column: int) -> None:
        self._columns[column] = Column()
        for record in (*self._v.values(), *self._u.values()):
            record[column] = 0.0

    @property
    def _nothing(self) -> list[float]:
        return [0.0] * self.n_columns

    def _inner(self, numbers: dict[int, list[float]], row: Row, column: int) -> float:
        pairs = zip(row.keys, row.values, strict=True)
        return sum(numbers[key][column] * x for key, x in pairs if key in numbers)

    def _predicting(self, column: int, v: float, u: float) -> float:
        its = self._columns[column]
        return (its.sums_scale * v - u) / its.sums_weight if its.sums_weight else its.scale * v

    def _fold(self, column: int) -> None:
        its = self._columns[column]
        if its.scale == 0.0 and not its.sums_weight and self.n_columns == 1:
            self._v.clear()
            self._u.clear()
        for key, record in self._v.items():
            if self.average:
                self._u[key][column] -= its.sums_scale * record[column]
            record[column] *= its.scale
        its.scale, its.sums_scale = 1.0, 0.0
        its.squares = math.fsum(record[column] * record[column] for record in self._v.values())  # whatever their order

    def get_state(self) -> State:
        shape = len(self._v), self.n_columns
        state = {
            "keys": np.fromiter(self._v, np.int64, len(self._v)),
            "values": np.array(list(self._v.values()), np.float64).reshape(shape),
            "scale": np.array([its.scale for its in self._columns], np.float64),
            "squares": np.array([its.squares for its in self._columns], np.float64),
        }
        if self.average:
            state["sums"] = np.array([self._u[key] for key in self._v], np.float64).reshape(shape)
            state["sums_scale"] = np.array([its.sums_scale for its in self._columns], np.float64)
            state["sums_weight"] = np.array([its.sums_weight for its in self._columns], np.float64)
        return state

    def set_state(self, state: State) -> None:
        keys = state["keys"].tolist()
        self._v = dict(zip(keys, state["values"].tolist(), strict=True))
        names = ("scale", "squares", "sums_scale", "sums_weight") if self.average else ("scale", "squares")
        self._columns = [Column(*numbers) for numbers in zip(*(state[name].tolist() for name in names), strict=True)]
        self._u = dict(zip(keys, state["sums"].tolist(), strict=True)) if self.average else {}
