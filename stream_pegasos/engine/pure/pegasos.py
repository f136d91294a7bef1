"""The rule of Pegasos, on one weight vector or on several."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import BUFFERED, COLUMNS, FEATURES, Declaration, Field, State, count, keys
from stream_pegasos.engine.pure.driver import (
    CALIBRATION,
    CONFIDENCE,
    SMALLEST_SLOPE,
    Calibration,
    Learner,
    ScoredExample,
    with_intercept,
)
from stream_pegasos.engine.pure.encoders import Encoder, are_unique
from stream_pegasos.engine.pure.weights import FOLD_BELOW, INTERCEPT, Row, WeightDict

# How several classes become columns, each of which tells two things apart.
REDUCTIONS = ("two", "ovr", "crammer_singer", "pairs")
# Those in which each class has one.
OF_CLASSES = ("ovr", "crammer_singer")
# What columns have alike that make one vector.
JOINED = ("n_iterations", "n_buffered")
OF_BUFFER = ("buffer_keys", "buffer_columns", "buffer_values")


def declared(batch_size: int, average: bool, only_violations: bool, initializing: bool, reduction: str) -> Declaration:
    """What the state of a `PegasosLearner` consists of."""
    joined = reduction == "crammer_singer"
    fields = [
        keys("keys", FEATURES),
        Field("values", shape=(FEATURES, COLUMNS), signed=True),
        Field("scale", FOLD_BELOW, 1.0, (COLUMNS,), signed=True),
        Field("squares", shape=(COLUMNS,), signed=True),
        count("n_iterations", COLUMNS),
        count("n_buffered", COLUMNS, high=batch_size - 1),
        keys("buffer_keys", BUFFERED),
        count("buffer_columns", BUFFERED, high=lambda state: len(state["scale"]) - 1),
        Field("buffer_values", shape=(BUFFERED,), signed=True),
        *CALIBRATION,
        *(CONFIDENCE if reduction in OF_CLASSES else ()),
    ]
    if average:
        fields += [
            Field("sums", shape=(FEATURES, COLUMNS), signed=True),
            Field("sums_scale", shape=(COLUMNS,), signed=True),
            Field("sums_weight", shape=(COLUMNS,)),
        ]
    if only_violations:
        fields.append(count("n_violations", COLUMNS, high=batch_size - 1))
    if initializing:
        fields.append(Field("initial_scale", high=1.0, signed=True))
    conditions: tuple[tuple[str, Callable[[State], bool]], ...] = (
        ("a feature has two weights", lambda state: are_unique(state["keys"])),
        (
            "the buffer holds features of no example",
            lambda state: bool(state["n_buffered"][state["buffer_columns"]].all()),
        ),
        (
            "there are more violations than examples that wait",
            lambda state: not only_violations or bool((state["n_violations"] <= state["n_buffered"]).all()),
        ),
        (
            "the classes have not taken the same steps",
            lambda state: not joined or all(len(set(state[name].tolist())) <= 1 for name in JOINED),
        ),
    )
    return Declaration(tuple(fields), conditions)


@dataclass(slots=True)
class Steps:
    """The steps of a column, and what waits for the next one."""

    n_iterations: int = 0
    n_buffered: int = 0
    n_violations: int = 0  # among the buffered
    buffer: list[tuple[int, float]] = field(default_factory=list)  # of the violating examples: key, c·y·x


@dataclass(eq=False, repr=False)
class PegasosLearner(Learner):
    """Pegasos steps, with a mini-batch buffer.

    `intercept_scaling` is 0 for no intercept. The average of the iterates, if `average_from` is not 0, begins with that
    step, and weighs w_t by t if `average_by_t`. With `only_violations` a batch without a violation is no step. The
    `initializer` gives the first weight of each feature by its name; only with one column.

    The `reduction` says whether an example is positive, negative or nothing in each column. "two": y is the sign in the
    only column. "ovr": each class has a column, in which all others are negative; it begins with the first example of
    the class. "crammer_singer": each class has a column, too, but all columns form one vector, and the column of an
    example's class should beat the best other one by 1 (Crammer and Singer 2001). "pairs": `signs` gives it, with a row
    a class.
    """

    l2: float
    batch_size: int
    t0: float
    project: bool
    intercept_scaling: float
    average_from: int = 0
    average_by_t: bool = False
    only_violations: bool = False
    initializer: Callable[[Any], float] | None = None
    max_features: int = 0
    reduction: str = "two"

    def __post_init__(self) -> None:
        super().__init__()
        averaging, initializing = self.average_from > 0, self.initializer is not None
        self.declaration = declared(self.batch_size, averaging, self.only_violations, initializing, self.reduction)
        self.several = self.reduction != "two"
        self.signs: NDArray[np.float64] = np.zeros((0, 0))
        self.weights = WeightDict(averaging, n_columns=0 if self.several else 1)
        self._steps = [Steps() for _ in range(self.n_columns)]
        self._initial_scale = 1.0  # what all steps so far have left of the first weights

    def __len__(self) -> int:
        return len(self.weights) - (INTERCEPT in self.weights)

    @property
    def n_iterations(self) -> int:
        return max((steps.n_iterations for steps in self._steps), default=0)

    @property
    def n_buffered(self) -> int:
        return max((steps.n_buffered for steps in self._steps), default=0)

    @property
    def n_columns(self) -> int:
        return self.weights.n_columns

    @property
    def n_held(self) -> int:
        return len(self.weights) + sum(len(steps.buffer) for steps in self._steps)

    @property
    def intercept(self) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = self.weights_of(np.array([INTERCEPT]))[0]
        return self.intercept_scaling * weights

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys, and the weights that predict, with a row a key."""
        found, values = self.weights.items()
        return found[found != INTERCEPT], values[found != INTERCEPT]

    def weights_of(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        columns = range(self.n_columns)
        rows = [[self.weights.get(key, column) for column in columns] for key in keys.tolist()]
        return np.array(rows, np.float64).reshape(len(keys), self.n_columns)

    def contributions(self, encoder: Encoder, x: Any, column: int = 0) -> dict[int, float]:
        row = encoder.row(x, False)
        pairs = zip(row.keys, row.values, strict=True)
        return {key: row.factor * value * self.weights.get(key, column) for key, value in pairs}

    def add_column(self) -> None:
        self.weights.add_column()
        joined = self.reduction == "crammer_singer" and self._steps
        steps = Steps(self._steps[0].n_iterations, self._steps[0].n_buffered) if joined else Steps()
        self._steps.append(steps)

    def clear_column(self, column: int) -> None:
        """Make a column as it was when it was added."""
        self.weights.clear_column(column)
        self._steps[column] = Steps()

    def negate(self) -> None:
        self.weights.negate()
        self._initial_scale = -self._initial_scale
        for steps in self._steps:
            steps.buffer = [(key, -value) for key, value in steps.buffer]

    def flush(self) -> None:
        self._take_steps([column for column, steps in enumerate(self._steps) if steps.n_buffered])

    def _n_columns_for(self, y: NDArray[np.float64] | None) -> int:
        if y is None or not len(y) or self.reduction not in OF_CLASSES:
            return self.n_columns
        return max(self.n_columns, int(y.max()) + 1)

    def _meet(self, encoder: Encoder, row: Row) -> ScoredExample:
        row = with_intercept(row, self.intercept_scaling)
        return ScoredExample(row, [self.weights.predict(row, column) for column in range(self.n_columns)])

    def _learn(self, encoder: Encoder, met: ScoredExample, y: float, weight: float) -> bool:
        self._initialize(encoder, met.row)
        if self.reduction in OF_CLASSES and y == self.n_columns:
            self.add_column()
            met.margins.append(0.0)
        self._calibrate(met.margins, y)
        due = []
        for column, sign in self._violated(met.row, y).items():
            steps, coefficient = self._steps[column], sign * weight * met.row.factor
            steps.n_buffered += 1
            if sign:
                steps.buffer += [(key, coefficient * x) for key, x in zip(met.row.keys, met.row.values, strict=True)]
                steps.n_violations += 1
            if steps.n_buffered == self.batch_size:
                due.append(column)
        self._take_steps(due)
        return True

    def _calibrate(self, margins: list[float], y: float) -> None:
        if self.reduction == "two":
            self.calibration.learn(margins[0], y)
        elif self.reduction != "pairs":
            self.calibration.learn_class(margins, int(y))

    def _violated(self, row: Row, y: float) -> dict[int, float]:
        """For each column that the example is something to: its sign where it violates the margin, 0 where not."""
        margins = [self.weights.dot(row, column) for column in range(self.n_columns)]
        if self.reduction == "crammer_singer":
            of_class = int(y)
            rivals = [column for column in range(self.n_columns) if column != of_class]
            rival = max(rivals, key=margins.__getitem__, default=None)
            found = dict.fromkeys(range(self.n_columns), 0.0)
            if rival is not None and margins[of_class] - margins[rival] < 1.0:
                found[of_class], found[rival] = 1.0, -1.0
            return found
        if self.reduction == "ovr":
            signs = [1.0 if column == y else -1.0 for column in range(self.n_columns)]
        else:
            signs = [y] if self.reduction == "two" else self.signs[int(y)].tolist()
        columns = enumerate(zip(signs, margins, strict=True))
        return {column: sign if sign * margin < 1.0 else 0.0 for column, (sign, margin) in columns if sign}

    def _take_steps(self, columns: list[int]) -> None:
        """The steps of some columns with what their buffers hold."""
        due = self._due(columns)
        for column in columns:
            steps = self._steps[column]
            buffer, n_buffered = steps.buffer, steps.n_buffered
            steps.buffer, steps.n_buffered, steps.n_violations = [], 0, 0
            if column in due:
                self._take_step(column, buffer, n_buffered)
        if self.project:
            self._back_into_ball(due)
        for column in due:
            n_iterations = self._steps[column].n_iterations
            if 0 < self.average_from <= n_iterations:
                self.weights.accumulate(n_iterations if self.average_by_t else 1.0, column)

    def _due(self, columns: list[int]) -> list[int]:
        """Those of which the batch is a step."""
        violated = [column for column in columns if self._steps[column].n_violations]
        if not self.only_violations or (violated and self.reduction == "crammer_singer"):
            return columns
        return violated

    def _take_step(self, column: int, buffer: list[tuple[int, float]], n_buffered: int) -> None:
        """w ← (1 − ηλ) w + (η/k) Σ c y x, with η = 1/(λn)"""
        steps = self._steps[column]
        steps.n_iterations += 1
        n = steps.n_iterations + self.t0
        self._scale((n - 1.0) / n, column)
        if buffer:
            row = Row([key for key, _ in buffer], [x for _, x in buffer])
            self.weights.add(row, 1.0 / (self.l2 * n * n_buffered), column)

    def _initialize(self, encoder: Encoder, row: Row) -> None:
        """Give features that are new what is left of their first weights, which are to lie in the ball."""
        if self.initializer is None or self._initial_scale == 0.0:
            return
        items = zip(row.keys, row.values, strict=True)
        new = dict.fromkeys(key for key, x in items if x != 0.0 and key != INTERCEPT and key not in self.weights)
        first = {key: self.initializer(encoder.name(key)) for key in new}
        for key, value in first.items():
            self.weights.add(Row([key], [1.0]), self._initial_scale * value)
        if new and (self.project or self.n_iterations == 0):
            self._back_into_ball([0])

    def _back_into_ball(self, columns: list[int]) -> None:
        """Bring each w, or all of them as one, back into the ball of radius 1/√λ."""
        balls = [columns] if self.reduction == "crammer_singer" else [[column] for column in columns]
        for ball in balls:
            ratio = self.l2 * sum(self.weights.squared_norm(column) for column in ball)
            for column in ball if ratio > 1.0 else []:
                self._scale(1.0 / math.sqrt(ratio), column)

    def _scale(self, factor: float, column: int) -> None:
        self.weights.scale(factor, column)
        self._initial_scale *= factor

    def get_state(self) -> State:
        buffered = [(key, column, x) for column, steps in enumerate(self._steps) for key, x in steps.buffer]
        state = {
            **self.weights.get_state(),
            **self.calibration.get_state(self.reduction in OF_CLASSES),
            "n_iterations": np.array([steps.n_iterations for steps in self._steps], np.int64),
            "n_buffered": np.array([steps.n_buffered for steps in self._steps], np.int64),
            "buffer_keys": np.array([key for key, _, _ in buffered], np.int64),
            "buffer_columns": np.array([column for _, column, _ in buffered], np.int64),
            "buffer_values": np.array([x for _, _, x in buffered], np.float64),
        }
        if self.only_violations:
            state["n_violations"] = np.array([steps.n_violations for steps in self._steps], np.int64)
        if self.initializer is not None:
            state["initial_scale"] = self._initial_scale
        return state

    def set_state(self, state: State) -> None:
        self.weights.set_state(state)
        self.calibration.set_state(state)
        counts = zip(state["n_iterations"].tolist(), state["n_buffered"].tolist(), strict=True)
        self._steps = [Steps(n_iterations, n_buffered) for n_iterations, n_buffered in counts]
        names = ("buffer_keys", "buffer_columns", "buffer_values")
        for key, column, x in zip(*(state[name].tolist() for name in names), strict=True):
            self._steps[column].buffer.append((key, x))
        for column, n_violations in enumerate(state["n_violations"].tolist() if self.only_violations else ()):
            self._steps[column].n_violations = n_violations
        self._initial_scale = state.get("initial_scale", 1.0)


def from_two_classes(state: State) -> State:
    """The state of an "ovr" learner that knows what one of "two" in this state knows: the negative class in column 0,
    the positive one in column 1. Their margins are −m and m, so that the slope is half of what it was.
    """
    both = np.array([-1.0, 1.0])
    n_buffered = len(state["buffer_keys"])
    made = Calibration().get_state(several=True) | state
    for name in ("values", "sums"):
        if name in state:
            made[name] = state[name] * both
    for name in ("scale", "squares", "sums_scale", "sums_weight", "n_iterations", "n_buffered", "n_violations"):
        if name in state:
            made[name] = np.repeat(state[name], 2)
    made["buffer_keys"] = np.tile(state["buffer_keys"], 2)
    made["buffer_columns"] = np.repeat(np.arange(2), n_buffered)
    made["buffer_values"] = np.concatenate([-state["buffer_values"], state["buffer_values"]])
    made["slope"] = max(state["slope"] / 2.0, SMALLEST_SLOPE)
    return made
