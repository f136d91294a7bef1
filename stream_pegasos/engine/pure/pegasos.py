"""The rule of Pegasos, for one or several weight vectors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import BUFFERED, COLUMNS, FEATURES, Declaration, Field, State, count, keys
from stream_pegasos.common.sums import sum_in_order
from stream_pegasos.engine.pure.driver import (
    CALIBRATION,
    CONFIDENCE,
    LARGEST_CALIBRATION_WEIGHT,
    SMALLEST_SLOPE,
    Calibration,
    Learner,
    ScoredExample,
    add_intercept,
    has_column_each,
    squares_of_confidence,
)
from stream_pegasos.engine.pure.encoders import Encoder, are_unique
from stream_pegasos.engine.pure.weights import FOLD_BELOW, INTERCEPT, Row, WeightDict

# Reductions of several classes to columns; each column separates two classes or sets of classes.
REDUCTIONS = ("two", "ovr", "crammer_singer")
# The numbers of each column: of its weights, and of its steps, which are equal in all columns if these form one vector.
OF_WEIGHTS = ("scale", "squares", "sums_scale", "sums_weight")
STEPS = ("n_iterations", "n_buffered")
OF_BUFFER = ("buffer_keys", "buffer_columns", "buffer_values")


@cache
def declared(batch_size: int, average: bool, reduction: str) -> Declaration:
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
        *(CONFIDENCE if reduction != "two" else ()),
    ]
    if average:
        fields += [
            Field("sums", shape=(FEATURES, COLUMNS), signed=True),
            Field("sums_scale", shape=(COLUMNS,), signed=True),
            Field("sums_weight", shape=(COLUMNS,)),
        ]
    conditions: tuple[tuple[str, Callable[[State], bool]], ...] = (
        ("a feature has two weights", lambda state: are_unique(state["keys"])),
        (
            "the buffer holds features of no example",
            lambda state: bool(state["n_buffered"][state["buffer_columns"]].all()),
        ),
        (
            "the classes have not taken the same steps",
            lambda state: not joined or all(len(set(state[name].tolist())) <= 1 for name in STEPS),
        ),
    )
    return Declaration(tuple(fields), conditions)


@dataclass
class Column:
    """A weight vector, its number of steps, and the buffer for the next step."""

    weights: WeightDict
    n_iterations: int = 0
    n_buffered: int = 0
    buffer: list[tuple[int, float]] = dataclasses.field(default_factory=list)  # of the violating examples: key, c·y·x


class Batch(NamedTuple):
    """The examples of one step of a column."""

    column: Column
    cyx: list[tuple[int, float]]  # of the violating examples: key and c·y·x
    k: int


@dataclass(eq=False, repr=False)
class PegasosLearner(Learner):
    """Pegasos steps, with a buffer for mini-batches. `intercept_scaling` is 0 for no intercept. The average begins with
    step `average_from`, if not 0, and weighs w_t by t if `average_by_t`.

    "two": y is the sign in the only column; when a third class comes, it becomes "ovr". "ovr": each class has a column,
    from its first example on, in which all other classes are negative. "crammer_singer": the columns form one vector;
    the margin of an example's class should exceed the best other margin by 1 (Crammer and Singer 2001).
    """

    l2: float
    batch_size: int
    t0: float
    project: bool
    intercept_scaling: float
    average_from: int = 0
    average_by_t: bool = False
    max_features: int = 0
    reduction: str = "two"

    def __post_init__(self) -> None:
        super().__init__()
        self._set_class_columns(self.reduction != "two")
        self._columns: list[Column] = []
        self._known: dict[int, None] = {}  # the features with a weight in some column
        if not self.has_class_columns:
            self.add_column()

    def __len__(self) -> int:
        return len(self._known) - (INTERCEPT in self._known)

    def _set_class_columns(self, has_columns: bool) -> None:
        self.has_class_columns = has_columns
        reduction = "ovr" if has_columns and self.reduction == "two" else self.reduction
        self.declaration = declared(self.batch_size, self.average_from > 0, reduction)

    @property
    def n_iterations(self) -> int:
        return max((column.n_iterations for column in self._columns), default=0)

    @property
    def n_buffered(self) -> int:
        return max((column.n_buffered for column in self._columns), default=0)

    @property
    def n_learned(self) -> int:
        """The number of examples that the oldest column has met."""
        return max((column.n_iterations * self.batch_size + column.n_buffered for column in self._columns), default=0)

    @property
    def n_columns(self) -> int:
        return len(self._columns)

    @property
    def n_held(self) -> int:
        return len(self._known) + sum(len(column.buffer) for column in self._columns)

    @property
    def intercept(self) -> NDArray[np.float64]:
        weights = [column.weights.get(INTERCEPT) for column in self._columns]
        return self._expand_pair(self.intercept_scaling * np.array(weights))

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        keys = np.array([key for key in self._known if key != INTERCEPT], np.int64)
        return keys, self.get_weights(keys)

    def get_weights(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = [[column.weights.get(key) for column in self._columns] for key in keys.tolist()]
        return self._expand_pair(np.array(rows, np.float64).reshape(len(keys), self.n_columns))

    def contributions(self, encoder: Encoder, x: object, number: int = 0) -> dict[int, float]:
        row, (column, sign) = encoder.row(x, False), self._signed_column(number)
        pairs = zip(row.keys, row.values, strict=True)
        return {key: sign * row.factor * value * self._columns[column].weights.get(key) for key, value in pairs}

    def add_column(self) -> None:
        column = Column(WeightDict(self.average_from > 0))
        if self.reduction == "crammer_singer" and self._columns:
            column.n_iterations, column.n_buffered = self._columns[0].n_iterations, self._columns[0].n_buffered
        self._columns.append(column)

    def _find_margins(self, encoder: Encoder, row: Row) -> ScoredExample:
        row = add_intercept(row, self.intercept_scaling)
        return ScoredExample(row, [column.weights.predict(row) for column in self._columns])

    def _learn(self, encoder: Encoder, scored: ScoredExample, y: float, weight: float) -> bool:
        if self.has_class_columns and y == self.n_columns:
            self.add_column()
            scored.margins.append(0.0)
        if self.has_class_columns:
            self.calibration.learn_class(scored.margins, int(y), min(weight, LARGEST_CALIBRATION_WEIGHT))
        else:
            self.calibration.learn(scored.margins[0], y, min(weight, LARGEST_CALIBRATION_WEIGHT))
        row, violators = scored.row, []
        for sign in self._violated(row, y):
            pairs = zip(row.keys, row.values, strict=True) if sign else ()
            violators.append([(key, sign * weight * row.factor * x) for key, x in pairs])
        if self.batch_size == 1:
            self.step(
                [Batch(*violators_of_column, 1) for violators_of_column in zip(self._columns, violators, strict=True)]
            )
            return True
        for column, violators_of_column in zip(self._columns, violators, strict=True):
            column.n_buffered += 1
            column.buffer += violators_of_column
        self._step_from_buffers([column for column in self._columns if column.n_buffered == self.batch_size])
        return True

    def flush(self) -> None:
        self._step_from_buffers([column for column in self._columns if column.n_buffered])

    def _step_from_buffers(self, columns: list[Column]) -> None:
        batches = [Batch(column, column.buffer, column.n_buffered) for column in columns]
        for column in columns:
            column.buffer, column.n_buffered = [], 0
        self.step(batches)

    def _violated(self, row: Row, y: float) -> list[float]:
        """The sign of the example in each column where it violates the margin, else 0."""
        margins = [column.weights.dot(row) for column in self._columns]
        if self.reduction == "crammer_singer":
            signs, of_class = [0.0] * self.n_columns, int(y)
            rivals = [column for column in range(self.n_columns) if column != of_class]
            rival = max(rivals, key=margins.__getitem__, default=of_class)
            if rival != of_class and margins[of_class] - margins[rival] < 1.0:
                signs[of_class], signs[rival] = 1.0, -1.0
            return signs
        signs = [1.0 if column == y else -1.0 for column in range(self.n_columns)] if self.has_class_columns else [y]
        return [sign if sign * margin < 1.0 else 0.0 for sign, margin in zip(signs, margins, strict=True)]

    def step(self, batches: list[Batch]) -> None:
        """Take one step of Pegasos on each of some columns, each with its batch of k examples (2007, figure 1):

        t ← t + 1,   η = 1 / (λ t)               of which t0 steps count as already taken
        w ← (1 − ηλ) w + (η/k) Σ c y x           over the examples with y⟨w, x⟩ < 1
        w ← min(1, 1/(√λ ‖w‖)) w                 if `project`
        """
        for column, cyx, k in batches:
            column.n_iterations += 1
            t = column.n_iterations + self.t0
            self._rescale(column, (t - 1.0) / t)  # 1 − ηλ
            violators = [(key, x) for key, x in cyx if x != 0.0]
            column.weights.add(violators, 1.0 / (self.l2 * t * k))  # η/k
            self._known.update((key, None) for key, _ in violators)
        columns = [column for column, _, _ in batches]
        balls = [columns] if self.reduction == "crammer_singer" else [[column] for column in columns]
        for ball in balls if self.project else ():  # one ball if all columns are one vector
            ratio = self.l2 * sum_in_order(column.weights.squared_norm() for column in ball)
            for column in ball if ratio > 1.0 else ():
                self._rescale(column, 1.0 / math.sqrt(ratio))
        for column in columns:
            if 0 < self.average_from <= column.n_iterations:
                column.weights.accumulate(column.n_iterations if self.average_by_t else 1.0)

    def _rescale(self, column: Column, factor: float) -> None:
        column.weights.rescale(factor)
        if not self.has_class_columns and not column.weights.v:
            self._known = {}

    def get_state(self, lazy: bool = False) -> State:
        keys, columns = [*self._known], self._columns
        buffered = [(key, i, x) for i, column in enumerate(columns) for key, x in column.buffer]
        state = {
            "keys": np.array(keys, np.int64),
            "values": matrix(keys, [column.weights.v for column in columns]),
            "sums": matrix(keys, [column.weights.u for column in columns]),
            "buffer_keys": np.array([key for key, _, _ in buffered], np.int64),
            "buffer_columns": np.array([column for _, column, _ in buffered], np.int64),
            "buffer_values": np.array([x for _, _, x in buffered], np.float64),
            **self.calibration.get_state(self.has_class_columns),
        }
        for name in OF_WEIGHTS:
            state[name] = np.array([getattr(column.weights, name) for column in columns], np.float64)
        for name in STEPS:
            state[name] = np.array([getattr(column, name) for column in columns], np.int64)
        return {field.name: state[field.name] for field in self.declaration.fields}

    def set_state(self, state: State) -> None:
        self._set_class_columns(self.reduction != "two" or has_column_each(state))
        keys = state["keys"].tolist()
        self._known = dict.fromkeys(keys)
        self._columns = [Column(WeightDict(self.average_from > 0)) for _ in state["scale"]]
        for i, column in enumerate(self._columns):
            weights = column.weights
            weights.v = dict(zip(keys, state["values"][:, i].tolist(), strict=True))
            weights.u = dict(zip(keys, state["sums"][:, i].tolist(), strict=True)) if weights.average else {}
            for name in {*OF_WEIGHTS} & state.keys():
                setattr(weights, name, state[name][i].item())
            for name in STEPS:
                setattr(column, name, state[name][i].item())
        for key, i, x in zip(*(state[name].tolist() for name in OF_BUFFER), strict=True):
            self._columns[i].buffer.append((key, x))
        self.calibration.set_state(state)

    @staticmethod
    def split_pair_columns(state: State) -> State:
        return from_two_classes(state)


def matrix(keys: list[int], columns: list[dict[int, float]]) -> NDArray[np.float64]:
    rows = [[column.get(key, 0.0) for column in columns] for key in keys]
    return np.array(rows, np.float64).reshape(len(keys), len(columns))


def from_two_classes(state: State) -> State:
    """The state as of an "ovr" learner: the negative class in column 0, the positive class in 1. The margins become −m
    and m, so the slope is halved.
    """
    signs, new_state = (
        np.array([-1.0, 1.0]),
        Calibration().get_state(has_columns=True) | state | squares_of_confidence(state),
    )
    for name in {"values", "sums"} & state.keys():
        new_state[name] = state[name] * signs
    for name in {*OF_WEIGHTS, *STEPS} & state.keys():
        new_state[name] = np.repeat(state[name], 2)
    new_state["buffer_keys"] = np.tile(state["buffer_keys"], 2)
    new_state["buffer_columns"] = np.repeat(np.arange(2), len(state["buffer_keys"]))
    new_state["buffer_values"] = np.outer(signs, state["buffer_values"]).ravel()
    new_state["slope"] = max(state["slope"] / 2.0, SMALLEST_SLOPE)
    return new_state
