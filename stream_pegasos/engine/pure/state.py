"""What the state of a learner consists of: each rule declares it once, and checks, files and forgetting follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import LARGEST_COUNT, check_integer, check_number
from stream_pegasos.engine.pure.encoders import plain_name
from stream_pegasos.engine.pure.weights import DIRECT_LIMIT, FIRST_NAME, INTERCEPT, MULTIPLIER, State

# The dimensions of arrays: a number for each of these.
FEATURES, COLUMNS, BUFFERED = "features", "columns", "buffered"

# A sum of squares in a state, and whatever else grows with them, may be this large.
LARGEST_SUM = 1e307

Limit = float | Callable[[State], float]


@dataclass(frozen=True)
class Field:
    """One part of a state: a number or, with dimensions, an array of numbers; a dimension has one size in all fields.

    The limits are those of each number, or of its size where it is `signed`; a function makes them of the whole state.
    """

    name: str
    low: Limit = 0.0
    high: Limit = LARGEST_SUM
    shape: tuple[str, ...] = ()
    signed: bool = False
    of_type: type = float

    def check(self, state: Mapping[str, Any], sizes: dict[str, int]) -> None:
        low, high = (limit(dict(state)) if callable(limit) else limit for limit in (self.low, self.high))
        value = state[self.name]
        if not self.shape:
            if self.of_type is int:
                check_integer(self.name, value, int(low), int(high))
            else:
                check_number(self.name, abs(value) if self.signed else value, low, high)
            return
        dtype = np.int64 if self.of_type is int else np.float64
        shape = tuple(sizes.setdefault(*size) for size in zip(self.shape, np.shape(value), strict=False))
        if value.dtype != dtype or value.shape != shape or len(shape) != len(self.shape):
            raise ValueError(f"{self.name} are not as they were written")
        numbers = np.abs(value) if self.signed else value
        if not ((numbers >= low) & (numbers <= high)).all():
            raise ValueError(f"{self.name} are not from {low:g} to {high:g}")


def count(name: str, *shape: str, high: Limit = LARGEST_COUNT) -> Field:
    return Field(name, 0, high, shape, of_type=int)


def keys(name: str, dimension: str) -> Field:
    """Keys of features."""
    return Field(name, INTERCEPT, (1 << 63) - 1, (dimension,), of_type=int)


@dataclass(frozen=True)
class Declaration:
    """All fields of a state, and what else is true of it: pairs of a fault, and of a function that says there is none.

    Fields with the dimension `FEATURES`, the field `keys` among them, hold what is known of each feature.
    """

    fields: tuple[Field, ...]
    conditions: tuple[tuple[str, Callable[[State], bool]], ...] = ()

    def check(self, state: Mapping[str, Any], names: list[Any], **sizes: int) -> None:
        """Raise a ValueError or a TypeError if no learner can have been in this state."""
        check_names(names)
        for field in self.fields:
            field.check(state, sizes)
            if field.name in KEYS:
                check_keys(state[field.name], names)
        if any(field.name == "keys" and field.shape == (FEATURES,) for field in self.fields):
            check_unique(state["keys"])
        for fault, holds in self.conditions:
            if not holds(dict(state)):
                raise ValueError(fault)

    def with_columns(self, state: Mapping[str, Any]) -> State:
        """A state of one column, as it was written before there were several."""
        made = dict(state)
        for field in self.fields:
            if field.name not in made and field.shape == (BUFFERED,):
                made[field.name] = np.zeros(len(made["buffer_keys"]), np.int64)
            if COLUMNS in field.shape and np.ndim(made[field.name]) < len(field.shape):
                if len(field.shape) == 1:
                    Field(field.name, -LARGEST_SUM, of_type=field.of_type).check(made, {})
                made[field.name] = np.asarray(made[field.name])[..., np.newaxis]
        return made

    def selected(self, state: Mapping[str, Any], kept: NDArray[np.bool_]) -> State:
        """The state without some of the features."""
        of_features = {field.name for field in self.fields if field.shape[:1] == (FEATURES,)}
        return {name: value[kept] if name in of_features else value for name, value in state.items()}


KEYS = ("keys", "buffer_keys")


def check_names(names: list[Any]) -> None:
    own_keys = [name for name in names if isinstance(name, int) and -DIRECT_LIMIT < name < DIRECT_LIMIT]
    if own_keys or len(set(names)) < len(names) or list(map(plain_name, names)) != names:
        raise ValueError("the feature names are not as they were written")


def check_keys(found: NDArray[np.int64], names: list[Any]) -> None:
    direct = (found > -DIRECT_LIMIT) & (found < DIRECT_LIMIT)
    named = (found >= FIRST_NAME) & (found < FIRST_NAME + len(names))
    if not (direct | named | (found == INTERCEPT)).all():
        raise ValueError("the weights are not those of features")


def check_unique(found: NDArray[np.int64]) -> None:
    hashes = found.view(np.uint64) * np.uint64(MULTIPLIER)
    if not (hashes[1:] > hashes[:-1]).all():  # the order in which the compiled engine writes them
        hashes.sort()
        if (hashes[1:] == hashes[:-1]).any():
            raise ValueError("a feature has two weights")
