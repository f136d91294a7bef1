"""The part of an adaptive rule that predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State
from stream_pegasos.engine.frozen import declared, entries_of, half, nothing_of, refuse
from stream_pegasos.engine.pure.adaptive_state import OF_ONE_WEIGHT, Floats
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.engine.pure.driver import ScoredExample
from stream_pegasos.engine.pure.encoders import Encoder
from stream_pegasos.engine.pure.scaled import ScaledLearner, logarithms
from stream_pegasos.engine.pure.weights import Row


@dataclass(eq=False, repr=False)
class FrozenLearner(ScaledLearner):
    """Predicts as an adaptive learner does, and learns no more. The `reduction` is that of the learner, "two" for one
    of two classes.
    """

    reduction: str = "two"
    max_features = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.declaration = declared(self.reduction)
        self.several = self.reduction != "two"
        self.set_state(nothing_of(self.reduction))

    @property
    def n_iterations(self) -> int:
        return int(self._state["n_iterations"])

    @property
    def n_columns(self) -> int:
        return len(self._state["order" if self.reduction == "ordinal" else "intercepts"])

    @property
    def intercept(self) -> Floats:
        """What is added to the margin of each problem."""
        return self._state["intercepts"].copy()  # type: ignore[no-any-return]

    def negate(self) -> None:
        refuse()

    def _scales_and_weights(self, keys: Sequence[int]) -> tuple[Floats, Floats]:
        unit, unknown_scale = self._state["unit"], self._state["unknown_scale"]
        known = np.array([self._features.get(key, -1) for key in keys], np.int64)
        if self.reduction in OF_ONE_WEIGHT:
            words = np.maximum(known, 0)
            return np.where(known < 0, unknown_scale, half(words >> 16)), unit * half(words)[:, np.newaxis]
        scales, weights = np.full(len(known), unknown_scale), np.zeros((len(known), self.n_columns))
        for i, record in enumerate(map(self._record, known.tolist())):
            if len(record):
                columns = record[1:] & 0xFFFF
                there = columns < self.n_columns
                scales[i], weights[i, columns[there]] = half(record[0]), unit * half(record[1:][there] >> 16)
        return scales, weights

    def _record(self, place: int) -> NDArray[np.int64]:
        """The words of a record; none if it is not there as a whole."""
        records = self._state["records"]
        end = place + 1 + (int(records[place]) >> 16) if 0 <= place < len(records) else 0
        return records[place:end].astype(np.int64) if 0 < end <= len(records) else np.zeros(0, np.int64)

    def _meet(self, encoder: Encoder, row: Row) -> ScoredExample:
        values, weights = self._values_and_weights(row)
        margins = (values[:, np.newaxis] * weights).sum(axis=0) + self._state["intercepts"]
        slope = self.calibration.slope
        if self._dense is not None:
            margins = self._dense.joined(margins, self._dense.margins(self._dense.direction(row.vector))) / slope
        predicting = margins.tolist()
        if self.reduction == "ordinal":
            predicting = logarithms([slope * margin for margin in predicting], self._state["order"].tolist())
        return ScoredExample(row, predicting, values)

    def _learn(self, encoder: Encoder, met: ScoredExample, y: float, weight: float) -> bool:
        refuse()

    def get_state(self) -> State:
        return dict(self._state)

    def set_state(self, state: State) -> None:
        self._state, self._features = dict(state), entries_of(state)
        self._dense = DenseBlock.from_state(self.reduction, state, self.n_columns) if "vector_mean" in state else None
        self.calibration.slope = state["slope"]
        self.calibration.confidence = (state["confidence_intercept"], state["confidence_slope"])
