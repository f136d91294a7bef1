"""What the classifiers of several classes have in common: machines that learn from one reading of each example."""

from __future__ import annotations

from typing import Any

from stream_pegasos._pure.weights import INTERCEPT
from stream_pegasos.checks import check_step_parameters
from stream_pegasos.classifier import Classifier
from stream_pegasos.engine import MultiLearner, Vocabulary

__all__ = ["SeveralClassifier"]


class SeveralClassifier(Classifier):
    """A learner with a column of weights for each class, or for each pair of classes."""

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

    def _column_names(self) -> dict[Any, int]:
        """The column of each class or pair of classes."""
        raise NotImplementedError

    @property
    def n_iterations(self) -> int:
        return max(self._learner.n_iterations.tolist(), default=0)

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
