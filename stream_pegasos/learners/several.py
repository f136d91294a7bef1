"""What the classifiers of several classes have in common: machines that learn from one reading of each example."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_step_parameters
from stream_pegasos.engine import Encoder, MultiLearner, Vocabulary
from stream_pegasos.engine.pure.weights import INTERCEPT
from stream_pegasos.features.frames import some_rows
from stream_pegasos.learners.classifier import READ_AGAIN, Classifier, Floats

__all__ = ["SeveralClassifier"]


class SeveralClassifier(Classifier):
    """A learner with a column of weights for each class, or for each pair of classes."""

    batch_size: int
    intercept_scaling: float
    _learner: MultiLearner

    def _set_up(
        self,
        l2: float,
        batch_size: int,
        t0: float,
        project: bool,
        fit_intercept: bool,
        intercept_scaling: float,
        joint: bool,
    ) -> None:
        check_step_parameters(l2, batch_size, t0, project, fit_intercept, intercept_scaling)
        self.l2 = l2
        self.batch_size = batch_size
        self.t0 = t0
        self.project = project
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self._vocabulary = Vocabulary()
        self._label_counts = {}
        scaling = float(intercept_scaling) if fit_intercept else 0.0
        self._learner = MultiLearner(float(l2), int(batch_size), float(t0), bool(project), scaling, joint)

    def _learn_rows(
        self,
        encoder: Encoder,
        rows: Any,
        numbers: NDArray[np.int64],
        weights: Floats | None,
        signs: Floats | None = None,
    ) -> Floats:
        """The margins of each row, before it is learned; −inf in columns to come."""
        parts: list[Floats] = []
        done, end, n = 0, len(numbers), len(numbers)  # first all at once, since all are to be checked
        while not parts or done < n:
            # The engine stops after an example with which names are to be forgotten.
            block = slice(done, end)
            block_weights = None if weights is None else weights[block]
            these = some_rows(rows, done, end)
            parts.append(self._learner.predict_learn_many(encoder, these, numbers[block], block_weights, signs)[0])
            if encoder.is_crowded(self._learner.n_held):
                self._forget_idle_names()
            done += len(parts[-1])
            end = min(done + READ_AGAIN, n)
        margins = np.full((n, max(part.shape[1] for part in parts)), -np.inf)
        done = 0
        for part in parts:
            margins[done : done + len(part), : part.shape[1]] = part
            done += len(part)
        return margins

    def _column_names(self) -> dict[Any, int]:
        """The column of each class or pair of classes."""
        raise NotImplementedError

    @property
    def n_iterations(self) -> int:
        return max(self._learner.n_iterations.tolist(), default=0)

    @property
    def _n_learned(self) -> int:
        return self.n_iterations * self.batch_size

    @property
    def weights(self) -> dict[Any, dict[Any, float]]:
        with self._lock:
            keys, values = self._learner.items()
            columns = self._column_names()
        named = [(i, self._vocabulary.name(key)) for i, key in enumerate(keys.tolist()) if key != INTERCEPT]
        return {
            of: {name: float(values[i, column]) for i, name in named if values[i, column] != 0.0}
            for of, column in columns.items()
        }

    @property
    def intercept(self) -> dict[Any, float]:
        with self._lock:
            keys, values = self._learner.items()
            columns = self._column_names()
        own = self.intercept_scaling * values[keys == INTERCEPT].sum(axis=0)
        return {of: float(own[column]) for of, column in columns.items()}

    @property
    def _multiclass(self) -> bool:
        return True
