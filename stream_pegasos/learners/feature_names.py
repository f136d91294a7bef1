"""Names of hashed features: the words of the heaviest features."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_integer
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.features.base import Features
from stream_pegasos.learners.label_policy import Label

__all__ = ["FeatureNames"]

MOST_NAMES = 20_000
LONGEST_NAMED = 5_000  # characters of a message that are searched for names
LONGEST_NAME = 100
# After the first messages, every sixteenth is enough, because heavy features occur again and again.
FIRST, ONE_IN = 1_000, 16
# A name has a weight for each class: this many are read at a time, and this many in all.
MOST_WEIGHTS_AT_A_TIME = 1 << 21
MOST_WEIGHTS = 1 << 24


class HashedModel(Protocol):
    """A model with hashed columns as features, for example of texts."""

    features: Features

    @property
    def classes(self) -> tuple[Label, ...]: ...
    def get_weights(self, keys: NDArray[np.int64], label: Label | None = None) -> NDArray[np.float64]: ...


class FeatureNames:
    """The newest n-gram of each hashed feature, for up to 20,000 features. The lightest are dropped first."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, float]] = {}  # by column: the n-gram, and its sign there
        self._n = 0  # messages

    def __len__(self) -> int:
        return len(self._names)

    def learned(self, model: HashedModel, rows: Iterable[Any]) -> None:
        """Name the features of some of the messages that a text model has learned. The rows are prepared messages."""
        for row in rows:
            if self._n < FIRST or self._n % ONE_IN == 0:
                self.add(model, row)
            self._n += 1

    def add(self, model: HashedModel, row: Any) -> None:
        begin = tuple(field[:LONGEST_NAMED] for field in row) if isinstance(row, tuple) else row[:LONGEST_NAMED]
        for ngram, column, value in model.features.contents(begin):
            if len(ngram) <= LONGEST_NAME:
                self._names[column] = ngram, math.copysign(1.0, value)
        self._drop_lightest(model)

    def take(self, model: HashedModel, parts: Iterable[FeatureNames]) -> None:
        """Add the names of parts that continued from these, for the merged model."""
        n = self._n
        for part in parts:
            self._names |= part._names
            self._n += max(0, part._n - n)
        self._drop_lightest(model)

    def _drop_lightest(self, model: HashedModel) -> None:
        most = max(1, min(MOST_NAMES, MOST_WEIGHTS // max(1, len(model.classes))))
        if len(self._names) > most + most // 4:
            columns = self._columns()
            sizes = np.concatenate([np.abs(part).max(axis=1) for part in self._weights(model, columns)])
            for column in columns[np.argsort(sizes, kind="stable")[:-most]].tolist():
                del self._names[column]

    def weights(self, model: HashedModel, label: Label | None = None) -> list[tuple[str, float]]:
        """The weight of each n-gram for a label; without one, the weight that all classes share, or of the first."""
        parts = [part[:, 0] for part in self._weights(model, self._columns(), label)]
        weights = np.concatenate([*parts, np.zeros(0)]).tolist()
        return [(name, sign * weight) for (name, sign), weight in zip(self._names.values(), weights, strict=True)]

    def named(self, weights: Mapping[Any, float]) -> list[tuple[str, float]]:
        """The weight of each n-gram, given weights by feature."""
        return [(name, sign * weights[key]) for key, (name, sign) in self._names.items() if key in weights]

    def _columns(self) -> NDArray[np.int64]:
        return np.fromiter(self._names, np.int64, len(self._names))

    def _weights(
        self, model: HashedModel, columns: NDArray[np.int64], label: Label | None = None
    ) -> Iterable[NDArray[np.float64]]:
        step = max(1, MOST_WEIGHTS_AT_A_TIME // max(1, len(model.classes)))
        return (model.get_weights(columns[i : i + step], label) for i in range(0, len(columns), step))

    def get_state(self) -> dict[str, Any]:
        return {"n": self._n, "names": [[column, pack(name), sign] for column, (name, sign) in self._names.items()]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        check_integer("n", state["n"], 0, (1 << 53) - 1)
        names = {int(column): (str(unpack(name)), float(sign)) for column, name, sign in state["names"]}
        np.array([*names], np.int64)
        self._n, self._names = state["n"], names
