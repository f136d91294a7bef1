"""The rule of Pegasos, for one or several weight vectors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import (
    BUFFERED,
    COLUMNS,
    FEATURES,
    LARGEST_SUM,
    SIGN,
    Declaration,
    Field,
    Limit,
    State,
    count,
    keys,
)
from stream_pegasos.common.sums import sum_in_order
from stream_pegasos.engine.pure.driver import (
    CALIBRATION,
    CONFIDENCE,
    LARGEST_CALIBRATION_WEIGHT,
    Learner,
    ScoredExample,
    add_intercept,
)
from stream_pegasos.engine.pure.encoders import Encoder, are_unique
from stream_pegasos.engine.pure.weights import FOLD_BELOW, INTERCEPT, Row, WeightDict

# Reductions of several classes to columns; each column separates two classes or sets of classes.
REDUCTIONS = ("two", "ovr", "crammer_singer")
SIGNS = np.array([-1.0, 1.0])  # of two classes in the column that they share


def opposite(name: str) -> Callable[[State], NDArray[np.float64]]:
    """Numbers by column: those of before for the second class, and their opposites for the first."""
    return lambda state: np.array(state[name] * SIGNS)


def twice(name: str) -> Callable[[State], NDArray[Any]]:
    """The same numbers for both classes."""
    return lambda state: np.repeat(state[name], 2)


def exact_squares(state: State) -> NDArray[np.float64]:
    """‖v‖² of each column, rounded once."""
    return np.array([math.fsum(column) for column in (state["values"] ** 2).T.tolist()])


def column_field(name: str, low: Limit = 0.0, high: Limit = LARGEST_SUM, **properties: Any) -> Field:
    return Field(name, low, high, (COLUMNS,), merges="joint", split=twice(name), **properties)


def matrix_field(name: str) -> Field:
    return Field(name, shape=(FEATURES, COLUMNS), signed=True, merges="joint", mirror=SIGN, split=opposite(name))


# The numbers of each column: of its weights and of their average, and of its steps.
OF_WEIGHTS = (
    column_field("scale", FOLD_BELOW, 1.0, signed=True),
    column_field("squares", signed=True, derived=exact_squares),
)
OF_AVERAGE = (column_field("sums_scale", signed=True), column_field("sums_weight"))


def step_fields(batch_size: int) -> tuple[Field, ...]:
    """The numbers of steps; equal in all columns if these form one vector."""
    n_iterations, n_buffered = "n_iterations", "n_buffered"
    return (
        count(n_iterations, COLUMNS, merges="joint", split=twice(n_iterations)),
        count(n_buffered, COLUMNS, high=batch_size - 1, merges="joint", split=twice(n_buffered)),
    )


STEPS = tuple(field.name for field in step_fields(1))
OF_BUFFER = (
    keys("buffer_keys", BUFFERED, merges="joint", split=lambda state: np.tile(state["buffer_keys"], 2)),
    count(
        "buffer_columns",
        BUFFERED,
        high=lambda state: len(state["scale"]) - 1,
        holds_columns=True,
        merges="joint",
        split=lambda state: np.repeat(np.arange(2), len(state["buffer_keys"])),
    ),
    Field(
        "buffer_values",
        shape=(BUFFERED,),
        signed=True,
        merges="joint",
        mirror=SIGN,
        split=lambda state: np.outer(SIGNS, state["buffer_values"]).ravel(),
    ),
)


@cache
def declared(batch_size: int, average: bool, reduction: str) -> Declaration:
    joined = reduction == "crammer_singer"
    fields = (
        keys("keys", FEATURES, merges="joint"),
        matrix_field("values"),
        *OF_WEIGHTS,
        *step_fields(batch_size),
        *OF_BUFFER,
        *CALIBRATION,
        *(CONFIDENCE if reduction != "two" else ()),
        *((matrix_field("sums"), *OF_AVERAGE) if average else ()),
    )
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
    return Declaration(fields, conditions)


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

    def has_columns_in(self, state: Mapping[str, Any]) -> bool:
        return self.reduction != "two" or self.split_declaration().is_complete(state)

    def split_declaration(self) -> Declaration:
        return declared(self.batch_size, self.average_from > 0, "ovr")

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
        for field in OF_WEIGHTS + OF_AVERAGE:
            state[field.name] = np.array([getattr(column.weights, field.name) for column in columns], np.float64)
        for name in STEPS:
            state[name] = np.array([getattr(column, name) for column in columns], np.int64)
        return {field.name: state[field.name] for field in self.declaration.fields}

    def set_state(self, state: State) -> None:
        self._set_class_columns(self.has_columns_in(state))
        keys = state["keys"].tolist()
        self._known = dict.fromkeys(keys)
        self._columns = [Column(WeightDict(self.average_from > 0)) for _ in state["scale"]]
        for i, column in enumerate(self._columns):
            weights = column.weights
            weights.v = dict(zip(keys, state["values"][:, i].tolist(), strict=True))
            weights.u = dict(zip(keys, state["sums"][:, i].tolist(), strict=True)) if weights.average else {}
            for field in OF_WEIGHTS + (OF_AVERAGE if weights.average else ()):
                setattr(weights, field.name, state[field.name][i].item())
            for name in STEPS:
                setattr(column, name, state[name][i].item())
        for key, i, x in zip(*(state[field.name].tolist() for field in OF_BUFFER), strict=True):
            self._columns[i].buffer.append((key, x))
        self.calibration.set_state(state)


def matrix(keys: list[int], columns: list[dict[int, float]]) -> NDArray[np.float64]:
    rows = [[column.get(key, 0.0) for column in columns] for key in keys]
    return np.array(rows, np.float64).reshape(len(keys), len(columns))
