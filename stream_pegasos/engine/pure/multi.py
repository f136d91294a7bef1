"""Pegasos on several weight vectors over one reading of each example."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.learner import Calibration, Learner, with_intercept
from stream_pegasos.engine.pure.weights import Row, State, WeightDict


class MultiLearner:
    """Pegasos steps on several weight vectors, the *columns*.

    With `joint` all columns make one vector, and the column of an example's class is to beat the best other one by 1
    (Crammer and Singer 2001). Otherwise each column is a `Learner` of its own.

    Classes are numbered in the order in which they come. Each has a column, from the first example on that it brings;
    or `signs` says, class by class, what an example is to each column: positive (1), negative (−1) or nothing (0).
    """

    def __init__(
        self, l2: float, batch_size: int, t0: float, project: bool, intercept_scaling: float, joint: bool
    ) -> None:
        self.arguments = (l2, batch_size, t0, project, intercept_scaling, joint)
        self._intercept_scaling = intercept_scaling
        self._columns: Joint | Separate = (Joint if joint else Separate)(l2, batch_size, t0, project)
        self._calibration = Calibration()

    @property
    def n_columns(self) -> int:
        return self._columns.n

    @property
    def n_held(self) -> int:
        """At least the number of features that something is kept of."""
        return self._columns.n_held

    @property
    def n_iterations(self) -> NDArray[np.int64]:
        """The number of steps that each column has taken."""
        return self._columns.get_state()["n_iterations"]  # type: ignore[no-any-return]

    @property
    def slope(self) -> float:
        """The probabilities of the classes are proportional to exp(slope · margin)."""
        return self._calibration.slope

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys, and the weights with a row a key."""
        state = self._columns.get_state()
        return state["keys"], state["values"] * state["scale"]

    def add_column(self) -> None:
        self._columns.add()

    def clear_column(self, column: int) -> None:
        """Make a column as it was when it was added."""
        self._columns.clear(column)

    def margins(self, encoder: Encoder, x: Any) -> NDArray[np.float64]:
        """⟨w, x⟩ for each column."""
        return np.array(self._columns.margins(self._row(encoder.row(x, False))), np.float64)

    def learn(self, encoder: Encoder, x: Any, y: int, weight: float, signs: NDArray[np.float64] | None = None) -> bool:
        """Take in one example of class y; whether names are to be forgotten."""
        self._learn_row(self._row(encoder.row(x, True)), y, weight, signs)
        return encoder.is_crowded(self.n_held)

    def predict_learn_many(
        self,
        encoder: Encoder,
        X: Any,
        y: NDArray[np.int64] | None = None,
        weights: NDArray[np.float64] | None = None,
        signs: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The margins of each example, in turn, and the slope, before it is learned; −inf for columns to come. It ends
        with an example with which names are to be forgotten.
        """
        n_columns = self.n_columns
        if y is not None and signs is None and len(y):
            n_columns = max(n_columns, int(y.max()) + 1)
        margins: list[list[float]] = []
        slopes: list[float] = []
        for i, row in enumerate(map(self._row, encoder.rows(X, y is not None))):
            margins.append([*self._columns.margins(row), *[-math.inf] * (n_columns - self.n_columns)])
            slopes.append(self.slope)
            if y is not None:
                self._learn_row(row, int(y[i]), 1.0 if weights is None else float(weights[i]), signs)
                if encoder.is_crowded(self.n_held):
                    break
        return np.array(margins, np.float64).reshape(len(margins), n_columns), np.array(slopes, np.float64)

    def flush(self) -> None:
        """Take the steps with the examples that the buffers hold."""
        self._columns.flush()

    def _row(self, row: Row) -> Row:
        return with_intercept(row, self._intercept_scaling)

    def _learn_row(self, row: Row, y: int, weight: float, signs: NDArray[np.float64] | None) -> None:
        if signs is None:
            if y == self.n_columns:
                self.add_column()
            margins = self._columns.margins(row)
            expected = sum(p * m for p, m in zip(softmax(margins, self.slope), margins, strict=True))
            self._calibration.descend(expected - margins[y])
            own = [1.0 if column == y else -1.0 for column in range(self.n_columns)]
        else:
            own = signs[y].tolist()
        self._columns.learn_row(row, y, own, weight)

    def get_state(self) -> State:
        return {**self._columns.get_state(), **self._calibration.get_state()}

    def set_state(self, state: State) -> None:
        self._columns.set_state(state)
        self._calibration.set_state(state)


class Joint:
    """One vector made of all columns."""

    def __init__(self, l2: float, batch_size: int, t0: float, project: bool) -> None:
        self._l2, self._batch_size, self._t0, self._project = l2, batch_size, t0, project
        self._weights: list[WeightDict] = []
        self._n_iterations = 0
        self._n_buffered = 0
        self._buffer: list[tuple[int, int, float]] = []  # of the violating examples: key, column, c·x or −c·x

    @property
    def n(self) -> int:
        return len(self._weights)

    @property
    def n_held(self) -> int:
        return sum(map(len, self._weights)) + len(self._buffer)

    def add(self) -> None:
        self._weights.append(WeightDict())

    def clear(self, column: int) -> None:
        self._weights[column] = WeightDict()

    def margins(self, row: Row) -> list[float]:
        return [weights.dot(row) for weights in self._weights]

    def learn_row(self, row: Row, y: int, signs: list[float], weight: float) -> None:
        margins = self.margins(row)
        rivals = [column for column in range(self.n) if column != y]
        if rivals:
            rival = max(rivals, key=margins.__getitem__)
            if margins[y] - margins[rival] < 1.0:
                for column, sign in ((y, 1.0), (rival, -1.0)):
                    coefficient = sign * weight * row.factor
                    items = zip(row.keys, row.values, strict=True)
                    self._buffer += [(key, column, coefficient * x) for key, x in items]
        self._n_buffered += 1
        if self._n_buffered == self._batch_size:
            self.flush()

    def flush(self) -> None:
        if not self._n_buffered:
            return
        self._n_iterations += 1
        n = self._n_iterations + self._t0
        self._scale((n - 1.0) / n)
        for key, column, value in self._buffer:
            self._weights[column].add(Row([key], [value]), 1.0 / (self._l2 * n * self._n_buffered))
        self._n_buffered, self._buffer = 0, []
        ratio = self._l2 * sum(weights.squared_norm for weights in self._weights)
        if self._project and ratio > 1.0:
            self._scale(1.0 / math.sqrt(ratio))

    def _scale(self, factor: float) -> None:
        for weights in self._weights:
            weights.scale(factor)

    def get_state(self) -> State:
        return {
            **stack([weights.get_state() for weights in self._weights]),
            "n_iterations": np.full(self.n, self._n_iterations, np.int64),
            "n_buffered": np.full(self.n, self._n_buffered, np.int64),
            "buffer_keys": np.array([key for key, _, _ in self._buffer], np.int64),
            "buffer_columns": np.array([column for _, column, _ in self._buffer], np.int64),
            "buffer_values": np.array([value for _, _, value in self._buffer], np.float64),
        }

    def set_state(self, state: State) -> None:
        self._weights = [WeightDict() for _ in state["scale"]]
        for weights, part in zip(self._weights, unstack(state), strict=True):
            weights.set_state(part)
        self._n_iterations = max(state["n_iterations"].tolist(), default=0)
        self._n_buffered = max(state["n_buffered"].tolist(), default=0)
        names = ("buffer_keys", "buffer_columns", "buffer_values")
        self._buffer = list(zip(*(state[name].tolist() for name in names), strict=True))


# The learners of columns have no first weights, which alone would need names.
NAMELESS = Encoder()


class Separate:
    """A learner a column."""

    def __init__(self, l2: float, batch_size: int, t0: float, project: bool) -> None:
        self._arguments = (l2, batch_size, t0, project, 0.0)
        self._learners: list[Learner] = []

    @property
    def n(self) -> int:
        return len(self._learners)

    @property
    def n_held(self) -> int:
        return sum(learner.n_held for learner in self._learners)

    def add(self) -> None:
        self._learners.append(Learner(*self._arguments))

    def clear(self, column: int) -> None:
        self._learners[column] = Learner(*self._arguments)

    def margins(self, row: Row) -> list[float]:
        return [learner.weights.dot(row) for learner in self._learners]

    def learn_row(self, row: Row, y: int, signs: list[float], weight: float) -> None:
        for learner, sign in zip(self._learners, signs, strict=True):
            if sign:
                learner.learn_row(row, sign, weight, NAMELESS)

    def flush(self) -> None:
        for learner in self._learners:
            learner.flush()

    def get_state(self) -> State:
        states = [learner.get_state() for learner in self._learners]
        columns = [column for column, state in enumerate(states) for _ in state["buffer_keys"]]
        return {
            **stack(states),
            "n_iterations": np.array([state["n_iterations"] for state in states], np.int64),
            "n_buffered": np.array([state["n_buffered"] for state in states], np.int64),
            "buffer_keys": concatenate([state["buffer_keys"] for state in states], np.int64),
            "buffer_columns": np.array(columns, np.int64),
            "buffer_values": concatenate([state["buffer_values"] for state in states], np.float64),
        }

    def set_state(self, state: State) -> None:
        self._learners = [Learner(*self._arguments) for _ in state["scale"]]
        for column, (learner, part) in enumerate(zip(self._learners, unstack(state), strict=True)):
            mine = state["buffer_columns"] == column
            learner.set_state(
                {
                    **part,
                    **Calibration().get_state(),
                    "n_iterations": int(state["n_iterations"][column]),
                    "n_buffered": int(state["n_buffered"][column]),
                    "buffer_keys": state["buffer_keys"][mine],
                    "buffer_values": state["buffer_values"][mine],
                }
            )


def stack(states: list[State]) -> State:
    """The weights of several columns, with a row a key; in an order that does not depend on how they came about."""
    keys = sorted({key for state in states for key in state["keys"][state["values"] != 0.0].tolist()})
    rows = {key: i for i, key in enumerate(keys)}
    values = np.zeros((len(keys), len(states)))
    for column, state in enumerate(states):
        there = state["values"] != 0.0
        values[[rows[key] for key in state["keys"][there].tolist()], column] = state["values"][there]
    return {
        "keys": np.array(keys, np.int64),
        "values": values,
        "scale": np.array([state["scale"] for state in states], np.float64),
        "squares": np.array([state["squares"] for state in states], np.float64),
    }


def unstack(state: State) -> list[State]:
    return [
        {"keys": state["keys"][values != 0.0], "values": values[values != 0.0], "scale": scale, "squares": squares}
        for values, scale, squares in zip(
            state["values"].T, state["scale"].tolist(), state["squares"].tolist(), strict=True
        )
    ]


def concatenate(arrays: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays])


def softmax(margins: list[float], slope: float) -> list[float]:
    largest = max(margins)
    terms = [math.exp(slope * (margin - largest)) for margin in margins]
    total = sum(terms)
    return [term / total for term in terms]
