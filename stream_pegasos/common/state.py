"""Declaration of a learner's state. Each rule declares its fields once; whatever is done to a state loops over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_integer, check_number
from stream_pegasos.common.state_fields import (
    BUFFERED,
    COLUMNS,
    DIMENSIONS,
    FEATURES,
    LARGEST_COUNT,
    LARGEST_SUM,
    SIGN,
    TAUGHT,
    THRESHOLDS,
    Field,
    Limit,
    State,
)

__all__ = [
    "BUFFERED",
    "COLUMNS",
    "DIMENSIONS",
    "FEATURES",
    "LARGEST_SUM",
    "SIGN",
    "TAUGHT",
    "THRESHOLDS",
    "Declaration",
    "Field",
    "Limit",
    "State",
    "check_field",
    "count",
    "in_double",
    "keys",
]


def check_field(field: Field, state: Mapping[str, Any], sizes: dict[str, int]) -> None:
    """Raise an error unless a field's value is possible. `sizes` are those of the dimensions, which it adds to."""
    low, high = (limit(dict(state)) if callable(limit) else limit for limit in (field.low, field.high))
    value = state[field.name]
    if not field.shape:
        if field.of_type is int:
            check_integer(field.name, value, int(low), int(high))
        else:
            check_number(field.name, value, -high if field.signed else low, high)
            check_number(f"|{field.name}|", abs(value), low, high)
        return
    dtypes = (np.int64,) if field.of_type is int else (np.float64, np.float32)
    shape = tuple(sizes.setdefault(*size) for size in zip(field.shape, np.shape(value), strict=False))
    if field.size is not None:
        shape = (field.size,)
    if value.dtype not in dtypes or value.shape != shape or len(shape) != len(field.shape):
        raise ValueError(f"{field.name} must be as they were saved")
    numbers = np.abs(value) if field.signed else value
    if field.of_type is float:
        low, high = np.float64(low), np.float64(high)  # so that single precision, too, is compared in double
    if not ((numbers >= low) & (numbers <= high)).all():
        raise ValueError(f"{field.name} must be from {low:g} to {high:g}")


def in_double(state: State) -> State:
    """A copy of the state in double precision; the compiled engine stores some arrays in single precision."""
    return {
        name: value.astype(float) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value
        for name, value in state.items()
    }


def count(name: str, *shape: str, high: Limit = LARGEST_COUNT, **properties: Any) -> Field:
    return Field(name, 0, high, shape, of_type=int, **properties)


def keys(name: str, dimension: str, **properties: Any) -> Field:
    return Field(name, -(1 << 63), (1 << 63) - 1, (dimension,), of_type=int, **properties)


@dataclass(frozen=True)
class Declaration:
    """The fields of a state, and its conditions: pairs of a fault and a function that is true if the state is free of
    it. A state has all optional fields or none.

    `evidence` is the name of the field with the count of an example that is learned now; other evidence is in that
    unit. It is empty for a rule without evidence.
    """

    fields: tuple[Field, ...]
    conditions: tuple[tuple[str, Callable[[State], bool]], ...] = ()
    optional: tuple[Field, ...] = ()
    evidence: str = ""

    def select_fields(self, state: Mapping[str, Any]) -> tuple[Field, ...]:
        """The fields of a state; the optional ones are included if it has any of them."""
        return self.fields + (self.optional if any(field.name in state for field in self.optional) else ())

    def names(self, *shape: str, **properties: Any) -> tuple[str, ...]:
        """The names of the fields with this shape and these properties."""
        return tuple(
            field.name
            for field in self.fields
            if field.shape == shape and all(getattr(field, name) == value for name, value in properties.items())
        )

    @property
    def can_be_merged(self) -> bool:
        return all(field.merges for field in self.fields + self.optional)

    def is_complete(self, state: Mapping[str, Any]) -> bool:
        """Whether a state has all these fields."""
        return all(field.name in state for field in self.fields)

    def check(self, state: Mapping[str, Any], **sizes: int) -> None:
        """Raise a ValueError or a TypeError if no learner can be in this state."""
        for field in self.select_fields(state):
            check_field(field, state, sizes)
        for fault, holds in self.conditions:
            if not holds(dict(state)):
                raise ValueError(fault)

    def occurrences(self, state: Mapping[str, Any]) -> NDArray[np.float64]:
        """The number of examples with each feature, in units of an example now."""
        counts = [state[field.name] for field in self.fields if field.counts_features]
        if not counts:
            raise TypeError("a rule must count the examples with each feature, or its estimator say what is important")
        total: NDArray[np.float64] = np.sum(counts, axis=0, dtype=float)
        return total / float(state[self.evidence]) if self.evidence else total

    def selected(self, state: Mapping[str, Any], mask: NDArray[np.bool_]) -> State:
        """The state with some of the features."""
        places = np.flatnonzero(mask)
        entries: dict[str, NDArray[np.intp]] = {FEATURES: places}
        for field in self.fields:
            if field.sizes:
                all_sizes = state[field.name]
                starts, n = np.cumsum(all_sizes) - all_sizes, all_sizes[places]
                entries[field.sizes] = np.repeat(starts[places] - (np.cumsum(n) - n), n) + np.arange(n.sum())
        new_state = dict(state)
        for field in self.fields:
            if field.shape and field.shape[0] in entries:
                new_state[field.name] = state[field.name][entries[field.shape[0]]]
        for field in self.fields:
            if field.derived is not None:
                new_state[field.name] = field.derived(new_state)
        return new_state

    def drop_column(self, state: Mapping[str, Any], column: int) -> State:
        """The state without one of the columns. The later columns move up."""
        new_state, fields = dict(state), self.select_fields(state)
        for field in fields:
            if field.holds_columns and field.shape != (COLUMNS,):
                dimension, mask = field.shape[0], state[field.name] != column
                for other in fields:
                    if other.shape[:1] == (dimension,):
                        new_state[other.name] = state[other.name][mask]
                new_state[field.name] = new_state[field.name] - (new_state[field.name] > column)
                for other in fields:
                    if other.sizes == dimension:
                        sizes = state[other.name]
                        is_removed = np.repeat(np.arange(len(sizes)), sizes)[~mask]
                        new_state[other.name] = sizes - np.bincount(is_removed, minlength=len(sizes))
        for field in fields:
            if COLUMNS in field.shape:
                new_state[field.name] = np.delete(new_state[field.name], column, axis=field.shape.index(COLUMNS))
        return new_state

    def mirrored(self, state: Mapping[str, Any]) -> State:
        """The state of a learner of two classes in one column, as if it had met the classes in the other order."""
        new_state = dict(state)
        for field in self.select_fields(state):
            if field.mirror == SIGN:
                new_state[field.name] = 0.0 - state[field.name]  # no −0
            elif field.mirror:
                new_state[field.name] = state[field.mirror]
        return new_state

    def split_pair(self, state: Mapping[str, Any]) -> State:
        """The state in these fields after two classes that shared a column got one each."""
        fields = self.select_fields(state)
        return {field.name: field.split(dict(state)) if field.split else state[field.name] for field in fields}
