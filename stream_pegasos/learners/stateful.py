"""What a file keeps of a classifier, and what one is made of from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.packing import pack_parameters, unpack_parameters
from stream_pegasos.engine import Learner, Vocabulary
from stream_pegasos.engine.pure.driver import CONFIDENCE
from stream_pegasos.engine.pure.encoders import check_names
from stream_pegasos.engine.pure.weights import INTERCEPT
from stream_pegasos.learners.earlier import as_now
from stream_pegasos.learners.files import Arrays, Snapshot
from stream_pegasos.learners.forgetting import Forgetful

__all__ = ["Stateful"]


class Stateful(Forgetful, base.Base):
    """Adds the state as data: the learner's, the labels, their counts, and the names of features."""

    _learner: Learner

    def to_state(self) -> tuple[dict[str, NDArray[Any]], list[Any], dict[str, Any]]:
        state = self._learner.get_state()
        arrays = {name: state.pop(name) for name in list(state) if isinstance(state[name], np.ndarray)}
        values = {"parameters": self._packed_parameters(), "labels": self._labels.get_state(), "learner": state}
        if not self._class_weights.is_fixed:
            values["label_counts"] = self._class_weights.get_state()
        return arrays, self._vocabulary.names, values

    def snapshot(self, progress: Any = None) -> Snapshot:
        with self.lock:
            return super().snapshot(progress)

    def _packed_parameters(self) -> dict[str, Any]:
        return pack_parameters(self)

    @classmethod
    def _made_with(cls, parameters: dict[str, Any]) -> Self:
        return cls(**parameters)

    @classmethod
    def from_state(cls, arrays: Arrays, names: list[Any], values: Any) -> Self:
        values, state = as_now(values, {**arrays, **values["learner"]})
        model = cls._made_with(unpack_parameters(values["parameters"]))
        model._take_state(state, names, values)
        return model

    def _take_state(self, state: dict[str, Any], names: list[Any], values: Any) -> None:
        """Take over what a file says; raise a ValueError, TypeError or LookupError if it cannot have been written."""
        has_column_each = CONFIDENCE[0].name in state
        if has_column_each:
            self._learner.grow()
            self._labels = replace(self._labels, names_opposite=False)
        self._labels.set_state(values["labels"])
        if len(self.classes) > 2 and not has_column_each:
            raise ValueError("more than two classes cannot share a column")
        if not self._class_weights.is_fixed:
            self._class_weights.set_state(values["label_counts"], self.classes)
        self._learner.declaration.check(state, columns=len(self.classes) if has_column_each else 1)
        check_names(names, state)
        if self.max_features is not None and (state["keys"] != INTERCEPT).sum() > self.max_features:
            raise ValueError(f"there are more features than max_features={self.max_features}")
        self._vocabulary = Vocabulary(names)
        self._learner.set_state(state)
