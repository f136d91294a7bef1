"""Online scaling of numeric features, as in tables."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_number
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.common.state import LARGEST_SUM
from stream_pegasos.engine import find_numeric, learn_moments, standardize
from stream_pegasos.engine.pure.encoders import Inputs, plain_name
from stream_pegasos.engine.pure.moments import DENSE, FIRST_EXAMPLES, Moments
from stream_pegasos.engine.pure.weights import DIRECT_LIMIT, VALUE_LIMIT
from stream_pegasos.features.base import MessageFeatures
from stream_pegasos.features.frames import n_rows

__all__ = ["IDLE", "FeatureScaler", "Scaling", "merge_scalers"]

CHECKED_EVERY, LOOKED_FOR = 100, 1000  # examples between two drops of features; examples until the search for them ends
ROUNDED_UP = 1.0 + 1e-9  # rounding may enlarge the counts of merged models
IDLE: dict[str, Any] = {"n": float(LOOKED_FOR), "n_values": 0.0, "features": []}


class FeatureScaler:
    """A scaler of the features of a table to mean 0 and deviation 1, by the examples learned before. Words beside them
    stay unchanged, and so do examples that are no table. An absent feature counts as 0.
    """

    def __init__(self) -> None:
        self.n = 0.0  # sum of the weights of examples
        self.n_values = 0.0  # number of values other than 0, of all features
        self.names: list[Any] = []  # features of the first examples
        self._set_moments(np.zeros((3, 0)))

    def _set_moments(self, moments: Moments) -> None:
        self.moments, self._places = moments, find_numeric(moments, self.n, self.n_values)

    @property
    def is_idle(self) -> bool:
        """Whether the search ended without numeric features: the examples are no table."""
        return not self._places and self.n >= (LOOKED_FOR if self.names else CHECKED_EVERY)

    def scaled(self, x: object) -> Any:
        """An example with its numeric features scaled. An invalid example may stay unchanged."""
        if not self._places or not isinstance(x, dict):
            return x
        return standardize(x, self.names, self._places, self.moments, self.n)

    def learn(self, x: dict[Any, Any], weight: float) -> None:
        if isinstance(x, MessageFeatures):
            self.set_state(IDLE)
            return
        moments = self.moments.copy()  # so that a copy of the scaler does not change
        if self.n < FIRST_EXAMPLES:
            known_names = {*self.names}
            self.names = [*self.names, *(name for name in x if name not in known_names)]
            moments = np.hstack([moments, np.zeros((3, len(self.names) - moments.shape[1]))])
        learn_moments(x, self.names, moments, self.n, weight)
        before, self.n = self.n, self.n + weight
        self.n_values += weight * sum(map(bool, x.values()))
        if before // CHECKED_EVERY < self.n // CHECKED_EVERY:
            is_dense = moments[0] >= DENSE * self.n
            self.names, moments = [*compress(self.names, is_dense)], np.ascontiguousarray(moments[:, is_dense])
        self._set_moments(moments)

    def scaled_rows(self, rows: Inputs) -> Any:
        """Examples, as a list or the arrays of a CSR matrix, with their numeric features scaled."""
        return self.learned_rows(rows, [0.0] * n_rows(rows)) if self._places else rows

    def learned_rows(self, rows: Inputs, weights: Iterable[float]) -> Any:
        """Learn the examples with a weight above 0. Return all, each scaled by the state before it."""
        if not isinstance(rows, tuple):
            return [self._learned(*pair) for pair in zip(rows, weights, strict=True)]
        indptr, indices, data = rows
        scaled_rows: list[dict[Any, float]] = []
        for (begin, end), weight in zip(pairwise(indptr.tolist()), weights, strict=True):
            if self.is_idle:
                break
            x = dict(zip(indices[begin:end].tolist(), data[begin:end].tolist(), strict=True))
            scaled_rows.append({name: value for name, value in self._learned(x, weight).items() if is_column(name)})
        end, sizes = indptr[len(scaled_rows)], np.cumsum([0, *map(len, scaled_rows)])  # later rows do not change
        names, values = [*chain.from_iterable(scaled_rows)], [*chain.from_iterable(x.values() for x in scaled_rows)]
        return (
            np.concatenate([sizes, indptr[len(scaled_rows) + 1 :] - end + sizes[-1]]),
            np.concatenate([np.array(names, np.int64), indices[end:]]),
            np.concatenate([np.array(values, np.float64), data[end:]]),
        )

    def _learned(self, x: dict[Any, Any], weight: float) -> Any:
        scaled = self.scaled(x)
        if weight and not self.is_idle:
            self.learn(x, weight)
        return scaled

    def find_moments(self, names: Sequence[Any]) -> Moments:
        """The moments of these features; an unknown feature has those of zeros."""
        places = [self.names.index(name) if name in self.names else -1 for name in names]
        moments: Moments = np.hstack([self.moments, np.zeros((3, 1))])[:, places]
        return moments

    def get_state(self) -> dict[str, Any]:
        features = zip(map(pack, self.names), *self.moments.tolist(), strict=True)
        return {"n": self.n, "n_values": self.n_values, "features": [[*feature] for feature in features]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        check_number("n", state["n"], 0.0, LARGEST_SUM)
        check_number("n_values", state["n_values"], 0.0, LARGEST_SUM)
        names = [plain_name(unpack(packed)) for packed, _, _, _ in state["features"]]
        if len({*names}) < len(names):
            raise ValueError("a feature has moments twice")
        for _, count, mean, squares in state["features"]:
            check_number("the count of a feature", count, 0.0, state["n"] * ROUNDED_UP)
            check_number("the size of a mean", abs(mean), 0.0, VALUE_LIMIT)
            check_number("the squares of a feature", squares, 0.0, LARGEST_SUM)
        self.n, self.n_values, self.names = state["n"], state["n_values"], names
        moments = np.array([of_one[1:] for of_one in state["features"]], np.float64)
        self._set_moments(np.ascontiguousarray(moments.reshape(-1, 3).T))


def is_column(name: object) -> bool:
    return type(name) is int and 0 <= name < DIRECT_LIMIT


def merge_scalers(base: FeatureScaler, parts: Sequence[FeatureScaler]) -> FeatureScaler:
    """A scaler with the knowledge of the base, and that of each part beyond it."""
    merged, scalers = copy.copy(base), [base, *parts]
    merged.names = [name for name in parts[0].names if all(name in part.names for part in parts)]
    counts, means, squares = np.array([scaler.find_moments(merged.names) for scaler in scalers]).swapaxes(0, 1)
    n, center = np.array([[scaler.n] for scaler in scalers]), means[1]
    distances = means - center  # so that rounding does not lose them beside the square of a mean
    sums = np.array([counts, n * distances, squares + n * distances**2])
    counts, first, second = sums[:, 0] + (sums[:, 1:] - sums[:, :1]).sum(axis=1)
    counts = np.maximum(counts, 0.0)
    merged.n = base.n + sum(part.n - base.n for part in parts)
    merged.n_values = base.n_values + sum(part.n_values - base.n_values for part in parts)
    distance = first / max(merged.n, 1e-300)
    merged._set_moments(np.array([counts, center + distance, np.maximum(second - merged.n * distance**2, 0.0)]))
    return merged


class ScaledRows(NamedTuple):
    """Examples during learning: the number of examples before them, their rows and weights, and the scaler after all of
    them.
    """

    n_before: int
    rows: Inputs
    weights: NDArray[np.float64]
    scaler: FeatureScaler


class Scaling:
    """A scaler in step with a learner: it is that of the examples that the learner has learned, also after an
    interruption.
    """

    def __init__(self, scaler: FeatureScaler) -> None:
        # The scaler, and the batch that the learner is learning; replaced by one assignment, so never half of it.
        self._state: tuple[FeatureScaler, ScaledRows | None] = scaler, None

    def scale_rows(self, rows: Inputs, weights: NDArray[np.float64], n_learned: int) -> Any:
        """The rows to learn, each with its numeric features scaled by the state before it."""
        before = self.scaler(n_learned)
        scaler = copy.copy(before)
        scaled = scaler.learned_rows(rows, weights.tolist())
        self._state = before, ScaledRows(n_learned, rows, weights, scaler)
        return scaled

    def scaler(self, n_learned: int) -> FeatureScaler:
        """The scaler after so many learned examples."""
        scaler, batch = self._state
        if batch is not None:
            n, teaches = n_learned - batch.n_before, batch.weights > 0.0
            if n == teaches.sum():
                scaler = batch.scaler
            elif n > 0:  # learning ended early
                scaler = copy.copy(scaler)
                scaler.learned_rows(batch.rows, np.where(teaches.cumsum() <= n, batch.weights, 0.0).tolist())
            self._state = scaler, None
        return scaler
