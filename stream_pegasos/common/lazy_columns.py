"""Arrays that are read a few rows at a time, so that a state is never in memory twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State

__all__ = ["SOME", "Column", "Columns", "read", "whole"]

SOME, ALL = 1 << 16, 1 << 48  # numbers of a column to read at a time, roughly


@dataclass(frozen=True)
class Column:
    """An array that its owner stores in another form. `parts` gives the next rows, by name, with the rows of other
    columns that share it; it may be called until the owner changes.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    parts: Callable[[int], Iterable[Mapping[str, NDArray[Any]]]]


Columns = Mapping[str, NDArray[Any] | Column]


def read(arrays: Columns, n: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield names with the next rows of each array, about `n` numbers at a time. Columns that share their parts are
    read together.
    """
    sharing: dict[Any, list[str]] = {}
    for name, array in arrays.items():
        if isinstance(array, Column):
            sharing.setdefault(array.parts, []).append(name)
        else:
            yield name, np.ascontiguousarray(array)
    for parts, names in sharing.items():
        for part in parts(n):
            for name in names:
                yield name, part[name]


def whole(state: State) -> State:
    """The state with arrays in place of columns."""
    columns = {name: value for name, value in state.items() if isinstance(value, Column)}
    return state | dict(read(columns, ALL))
