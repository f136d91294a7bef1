"""Frozen classifiers, which only predict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from stream_pegasos.engine import Learner, in_use
from stream_pegasos.engine.frozen import FROZEN, frozen_features, frozen_rest
from stream_pegasos.engine.pure import AdaptiveLearner, FrozenLearner
from stream_pegasos.learners.files import Arrays, Saveable, Snapshot

__all__ = ["FEATURE_ARRAYS", "Freezable"]

# The arrays of features in a file of a frozen model.
FEATURE_ARRAYS = tuple(field.name for field in FROZEN if field.shape)


class Freezable(Saveable):
    """Adds freezing. A frozen classifier has two parts: the classifier without its features, which keeps labels,
    decisions and calibration; and what a `FrozenLearner` knows of the features.
    """

    _learner: Learner
    _frozen: tuple[Arrays, Mapping[str, Any], Mapping[str, Any]]

    @property
    def is_frozen(self) -> bool:
        """Whether it only predicts."""
        return isinstance(self._learner, in_use(FrozenLearner))

    def snapshot(self, progress: Any = None) -> Snapshot:
        if "_learner" in self.__dict__ and self.is_frozen:
            raise TypeError("save the frozen text model, not its classifier")
        return super().snapshot(progress)

    def frozen(self) -> Self:
        """A copy that only predicts.

        Raises
        ------
        TypeError
            If it has no adaptive learner, or features that are not hashed.
        ValueError
            If there are too many classes.
        """
        if not isinstance(self._learner, in_use(AdaptiveLearner)):
            raise TypeError(
                f"{type(self).__name__} cannot be frozen; AdaptiveClassifier can, and OrdinalClassifier and "
                "MultiLabelClassifier made with one"
            )
        arrays, _, values = self.to_state()
        known = frozen_features(self._learner, {**arrays, **values["learner"]})
        none = np.zeros(len(arrays["keys"]), bool)
        return self.from_frozen_state(self._learner.declaration.selected(arrays, none), [], values, known)

    @classmethod
    def from_frozen_state(
        cls, arrays: Arrays, names: list[Any], values: Mapping[str, Any], known: Mapping[str, Any]
    ) -> Self:
        """A frozen classifier, from the state of the classifier without features, and what is `known` of these.

        Raises
        ------
        LookupError, TypeError, ValueError
            If there can be no such state.
        """
        made = cls.from_state(arrays, names, values)
        made._frozen = arrays, values, known
        learner = in_use(FrozenLearner)(made._learner.arguments[-1])
        state = {**known, **frozen_rest(made._learner, made._learner.get_state())}
        learner.declaration.check(state)
        learner.set_state(state)
        made._learner = learner
        return made

    def frozen_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arrays of a frozen classifier, and the other values."""
        arrays, values, known = self._frozen
        numbers = {name: value for name, value in known.items() if name not in FEATURE_ARRAYS}
        return {**arrays, **{name: known[name] for name in FEATURE_ARRAYS}}, {**values, "frozen": numbers}
