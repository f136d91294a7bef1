"""Declaration of a learner's state. Each rule declares its fields once; checks, files and forgetting use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT, check_integer, check_number

State = dict[str, Any]

# The dimensions of arrays. `TAUGHT` joins the taught columns of all features, `n_taught` for each feature.
FEATURES, COLUMNS, BUFFERED, TAUGHT, DIMENSIONS = "features", "columns", "buffered", "taught", "dimensions"

# The largest sum of squares in a state, and of other values that grow like such a sum.
LARGEST_SUM = 1e307

Limit = float | Callable[[State], float]


@dataclass(frozen=True)
class Field:
    """A number of a state or, with dimensions, an array. A dimension has the same size in all fields. `low` and `high`
    are the limits of the values or, if `signed`, of their absolute values. A limit may depend on the whole state.
    """

    name: str
    low: Limit = 0.0
    high: Limit = LARGEST_SUM
    shape: tuple[str, ...] = ()
    signed: bool = False
    of_type: type = float  # or int
    size: int | None = None  # fixed size of an array with one dimension

    def check(self, state: Mapping[str, Any], sizes: dict[str, int]) -> None:
        low, high = (limit(dict(state)) if callable(limit) else limit for limit in (self.low, self.high))
        value = state[self.name]
        if not self.shape:
            if self.of_type is int:
                check_integer(self.name, value, int(low), int(high))
            else:
                check_number(self.name, value, -high if self.signed else low, high)
                check_number(f"|{self.name}|", abs(value), low, high)
            return
        dtypes = (np.int64,) if self.of_type is int else (np.float64, np.float32)
        shape = tuple(sizes.setdefault(*size) for size in zip(self.shape, np.shape(value), strict=False))
        if self.size is not None:
            shape = (self.size,)
        if value.dtype not in dtypes or value.shape != shape or len(shape) != len(self.shape):
            raise ValueError(f"{self.name} must be as they were saved")
        numbers = np.abs(value) if self.signed else value
        if self.of_type is float:
            low, high = np.float64(low), np.float64(high)  # so that single precision, too, is compared in double
        if not ((numbers >= low) & (numbers <= high)).all():
            raise ValueError(f"{self.name} must be from {low:g} to {high:g}")


def in_double(state: State) -> State:
    """A copy of the state in double precision; the compiled engine stores some arrays in single precision."""
    return {
        name: value.astype(float) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value
        for name, value in state.items()
    }


def count(name: str, *shape: str, high: Limit = LARGEST_COUNT) -> Field:
    return Field(name, 0, high, shape, of_type=int)


def keys(name: str, dimension: str) -> Field:
    return Field(name, -(1 << 63), (1 << 63) - 1, (dimension,), of_type=int)


@dataclass(frozen=True)
class Declaration:
    """The fields of a state, and its conditions: pairs of a fault and a function that is true if the state is free of
    it. A state has all optional fields or none.
    """

    fields: tuple[Field, ...]
    conditions: tuple[tuple[str, Callable[[State], bool]], ...] = ()
    optional: tuple[Field, ...] = ()

    def select_fields(self, state: Mapping[str, Any]) -> tuple[Field, ...]:
        """The fields of a state; the optional ones are included if it has any of them."""
        return self.fields + (self.optional if any(field.name in state for field in self.optional) else ())

    def check(self, state: Mapping[str, Any], **sizes: int) -> None:
        """Raise a ValueError or a TypeError if no learner can be in this state."""
        for field in self.select_fields(state):
            field.check(state, sizes)
        for fault, holds in self.conditions:
            if not holds(dict(state)):
                raise ValueError(fault)

    def selected(self, state: Mapping[str, Any], mask: NDArray[np.bool_]) -> State:
        places = np.flatnonzero(mask)
        taken_of: dict[str, NDArray[np.intp]] = {FEATURES: places}
        if "n_taught" in state:
            starts, n = np.cumsum(state["n_taught"]) - state["n_taught"], state["n_taught"][places]
            taken_of[TAUGHT] = np.repeat(starts[places] - (np.cumsum(n) - n), n) + np.arange(n.sum())
        of_fields = {field.name: taken_of.get(field.shape[0]) for field in self.fields if field.shape}
        return {name: value if of_fields.get(name) is None else value[of_fields[name]] for name, value in state.items()}

    def drop_column(self, state: Mapping[str, Any], column: int) -> State:
        """The state without one of the columns. The later columns move up."""
        new_state = dict(state)
        for of, dimension in (("taught_columns", TAUGHT), ("buffer_columns", BUFFERED)):
            if of in state:
                mask = state[of] != column
                for name in self.field_names_in(dimension):
                    new_state[name] = state[name][mask]
                new_state[of] = new_state[of] - (new_state[of] > column)
        if "n_taught" in state:
            of_feature = np.repeat(np.arange(len(state["n_taught"])), state["n_taught"])
            is_removed = of_feature[state["taught_columns"] == column]
            new_state["n_taught"] = state["n_taught"] - np.bincount(is_removed, minlength=len(state["n_taught"]))
        for field in self.select_fields(state):
            if COLUMNS in field.shape:
                new_state[field.name] = np.delete(new_state[field.name], column, axis=field.shape.index(COLUMNS))
        return new_state

    def field_names_in(self, *dimensions: str) -> list[str]:
        """The names of the fields whose first dimension is one of these."""
        return [field.name for field in self.fields if field.shape and field.shape[0] in dimensions]
