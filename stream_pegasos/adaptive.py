"""The adaptive binary learner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stream_pegasos.binary import BinaryClassifier
from stream_pegasos.checks import check_bool, check_number, check_one_of
from stream_pegasos.engine import AdaptiveLearner, Encoder
from stream_pegasos.labels import Label

__all__ = ["AdaptiveClassifier"]


class AdaptiveClassifier(BinaryClassifier):
    """TODO"""

    _learner: AdaptiveLearner

    def __init__(
        self,
        learning_rate: float = 0.5,
        loss: str = "log",
        margin: float = 5.0,
        naive_bayes: bool = True,
        smoothing: float = 0.5,
        half_life: float | None = 10_000,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.1,
        class_weight: Mapping[Label, float] | None = None,
        pos_label: Label | None = None,
    ) -> None:
        check_number("learning_rate", learning_rate, 1e-30, 1e30)
        check_one_of("loss", loss, ("hinge", "log"))
        check_number("margin", margin, 0.0, math.inf)
        check_bool("naive_bayes", naive_bayes)
        check_number("smoothing", smoothing, 1e-30, 1e30)
        if half_life is not None:
            check_number("half_life", half_life, 1.0, 1e300)
        check_bool("fit_intercept", fit_intercept)
        check_number("intercept_scaling", intercept_scaling, 1e-30, 1e30)
        self.learning_rate = learning_rate
        self.loss = loss
        self.margin = margin
        self.naive_bayes = naive_bayes
        self.smoothing = smoothing
        self.half_life = half_life
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.pos_label = pos_label
        self._set_up(
            AdaptiveLearner(
                float(learning_rate),
                loss == "hinge",
                float(margin),
                float(smoothing) if naive_bayes else 0.0,
                0.0 if half_life is None else float(half_life),
                float(intercept_scaling) if fit_intercept else 0.0,
            )
        )

    @property
    def weights(self) -> dict[Any, float]:
        keys, values = self._learner.items()
        pairs = sorted(zip(keys.tolist(), values.tolist(), strict=True))
        return {self._vocabulary.name(key): value for key, value in pairs}

    @property
    def intercept(self) -> float:
        return self._learner.intercept

    def _contributions(self, encoder: Encoder, x: Any) -> dict[int, float]:
        """What each feature of an example adds to the margin, by its key."""
        return self._learner.contributions(encoder, x)

    def _check_state(self, state: Mapping[str, Any], names: list[Any]) -> None:
        pass
