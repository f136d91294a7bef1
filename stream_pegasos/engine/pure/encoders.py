"""Encoders: they turn inputs into rows of 64-bit keys and float values."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.state import State
from stream_pegasos.engine.pure.weights import DIRECT_LIMIT, FIRST_NAME, INTERCEPT, VALUE_LIMIT, Row


def get_parameters(encoder: Any) -> dict[str, Any]:
    return {field.name: getattr(encoder, field.name) for field in dataclasses.fields(encoder)}


# The inputs of several examples: a list, or indptr, indices and data of a CSR matrix.
CsrArrays = tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]]
Inputs = list[Any] | CsrArrays


class Encoder:
    """An encoder for one kind of input. All inputs of a call are checked before the first row is returned."""

    def row(self, x: object, learning: bool) -> Row:
        raise NotImplementedError

    def rows(self, X: Inputs, learning: bool) -> Iterable[Row]:
        return [self.row(x, learning) for x in X]

    def check(self, X: Inputs) -> None:
        """Raise the error that learning these inputs would raise."""
        self.rows(X, True)

    def name(self, key: int) -> Any:
        return key

    def size(self) -> int:
        """The number of names that have a number."""
        return 0

    def forget_newest(self) -> None:
        """Forget the names that the newest row added; it was not learned."""

    def is_crowded(self, n_held: int) -> bool:
        """Whether there are far more names than features of the learner, so that names should be forgotten."""
        return False

    def get_threaded(self, n: int) -> Encoder:
        """An encoder that does the same with this many threads, or with one thread if more are of no use, as in
        Python.
        """
        return self


# An encoder is crowded if it has this many names for each feature of the learner, and the spare names.
NAMES_HELD, SPARE_NAMES = 4, 1_000
DEEPEST_NAME = 32  # levels of nested tuples, so that files can hold every name


class Vocabulary(Encoder):
    """An encoder of feature dicts. Integers are their own keys; other names get numbers when they are first learned."""

    def __init__(self, names: Iterable[Any] = ()) -> None:
        self.set_names(names)

    def set_names(self, names: Iterable[Any]) -> None:
        """Number these names, and forget all others."""
        self._keys = {name: FIRST_NAME + i for i, name in enumerate(names)}
        self._names = list(self._keys)  # extended on demand
        self._n_before = len(self._keys)  # the number of names before the newest row

    @property
    def names(self) -> list[Any]:
        """The names that are not their own keys, in the order of their keys."""
        return list(self._keys)

    def name(self, key: int) -> Any:
        if key < FIRST_NAME:
            return key
        if len(self._names) != len(self._keys):
            self._names += itertools.islice(self._keys, len(self._names), None)
        return self._names[key - FIRST_NAME]

    def row(self, x: object, learning: bool) -> Row:
        return self._row(plain_items(x), learning)

    def rows(self, X: Inputs, learning: bool) -> Iterable[Row]:
        checked = [plain_items(x) for x in X]
        # A generator, because each row is learned before the names of the next row get numbers.
        return (self._row(items, learning) for items in checked)

    def _row(self, items: list[tuple[Any, float]], learning: bool) -> Row:
        self._n_before = len(self._keys)
        keys, values = [], []
        for name, value in items:
            if isinstance(name, int) and -DIRECT_LIMIT < name < DIRECT_LIMIT:
                key: int | None = name
            elif value == 0.0:
                key = None  # a value of 0 teaches nothing, so its name needs no number
            elif learning:
                key = self._keys.setdefault(name, FIRST_NAME + len(self._keys))
            else:
                key = self._keys.get(name)
            if key is not None:
                keys.append(key)
                values.append(value)
        return Row(keys, values)

    def size(self) -> int:
        return len(self._keys)

    def is_crowded(self, n_held: int) -> bool:
        return self.size() > NAMES_HELD * n_held + SPARE_NAMES

    def forget_newest(self) -> None:
        del self._names[self._n_before :]
        while len(self._keys) > self._n_before:
            self._keys.popitem()


SIZE_EXPECTED = f"finite, and at most {VALUE_LIMIT:g} in size"


def plain_items(x: object) -> list[tuple[Any, float]]:
    if not isinstance(x, dict):
        raise TypeError(must_be("features", "a dict", type_name(x)))
    return [(plain_name(name), check_value(name, value)) for name, value in x.items()]


def check_value(name: object, value: Any) -> float:
    try:
        if isinstance(value, (str, bytes, bytearray, memoryview, np.complexfloating)):
            raise TypeError
        number = float(value)
    except OverflowError:
        number = math.inf
    except TypeError:
        raise TypeError(must_be(f"feature {name!r}", "a number", value, "encode it as one first")) from None
    if not abs(number) <= VALUE_LIMIT:
        raise ValueError(must_be(f"feature {name!r}", SIZE_EXPECTED, value))
    return number


def plain_name(name: object, depth: int = 0) -> int | str | tuple[Any, ...]:
    """A feature name as an int, a str or a tuple of those. Equal names are the same feature."""
    if isinstance(name, (int, np.bool_, np.integer)):
        return int(name)
    if isinstance(name, str):
        return str.__str__(name)
    if isinstance(name, tuple):
        if depth == DEEPEST_NAME and name:
            raise ValueError(f"a feature name must be nested at most {DEEPEST_NAME} deep, got a deeper tuple")
        return tuple(plain_name(part, depth + 1) for part in name)
    raise TypeError(must_be("a feature name", "an int, a str, a bool or a tuple of those", name))


class Rows(Encoder):
    """An encoder of the rows of a CSR matrix, given as (indptr, indices, data). Their columns are the keys."""

    def __init__(self, n_columns: int) -> None:
        self._n_columns = n_columns

    def rows(self, X: Inputs, learning: bool) -> Iterable[Row]:
        indptr, indices, data = (array.tolist() for array in X)
        least, most = min(indices, default=0), max(indices, default=-1)
        if least < 0 or most >= self._n_columns:
            wrong = least if least < 0 else most
            raise ValueError(must_be("a column of X", f"from 0 to {self._n_columns - 1}", wrong))
        for position, value in enumerate(data):
            if not abs(value) <= VALUE_LIMIT:
                raise ValueError(must_be(f"column {indices[position]}", SIZE_EXPECTED, value))
        return [Row(indices[begin:end], data[begin:end]) for begin, end in itertools.pairwise(indptr)]


def check_names(names: list[Any], state: State) -> None:
    """Raise a ValueError or a TypeError if a state does not fit these names, whose keys begin at `FIRST_NAME`."""
    own_keys = [name for name in names if isinstance(name, int) and -DIRECT_LIMIT < name < DIRECT_LIMIT]
    if own_keys or len(set(names)) < len(names) or list(map(plain_name, names)) != names:
        raise ValueError("the feature names must be as they were saved")
    for of in {"keys", "buffer_keys"} & state.keys():
        keys = state[of]
        direct = (keys > -DIRECT_LIMIT) & (keys < DIRECT_LIMIT)
        named = (keys >= FIRST_NAME) & (keys < FIRST_NAME + len(names))
        if not (direct | named | (keys == INTERCEPT)).all():
            raise ValueError("the weights must be those of features")


def are_unique(keys: NDArray[np.int64]) -> bool:
    ordered = np.sort(keys)
    return not (ordered[1:] == ordered[:-1]).any()
