"""Inspecting a model: its classes, its sizes, the weights of features, and the margins of an example."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.locks import Lock
from stream_pegasos.engine import Encoder, Learner, Vocabulary
from stream_pegasos.learners.explanations import Columns, Contributions, explain, first_against_second
from stream_pegasos.learners.files import Saveable
from stream_pegasos.learners.label_meaning import Label
from stream_pegasos.learners.labels import Labels, Margins
from stream_pegasos.learners.probabilities import Floats

__all__ = ["Inspectable"]


class Inspectable(Saveable):
    """Adds the inspection of a classifier, or of a model around one."""

    capabilities: frozenset[str]
    lock: Lock
    _learner: Learner
    _labels: Labels
    _vocabulary: Vocabulary

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels that are known, in the order in which they came."""
        return self._core._labels.classes

    @property
    def pair(self) -> tuple[Label | None, ...]:
        """Where an example has a single score, as with two labels: the one for which a score below 0 speaks, and that
        for one above 0; `None` for a label yet to come. Where each label has a score, nothing.
        """
        return self._core._labels.pair

    @property
    def n_learned(self) -> int:
        """How many examples were learned; exact if every example is a step, and otherwise nearly so."""
        return self._learner.n_iterations

    def _by_class(self, numbers: Floats) -> Floats:
        """Numbers of classes, a row each, as they are shown: of two in a pair, that of the positive one."""
        return self._labels.scores_many(numbers) + 0.0  # no −0

    def _intercepts(self) -> Any:
        (values,) = self._by_class(self._learner.intercept[np.newaxis]).tolist()
        return dict(zip(self.classes, values, strict=False)) if isinstance(values, list) else values

    @property
    def n_iterations(self) -> int:
        return self._core._learner.n_iterations

    @property
    def n_features(self) -> int:
        """The number of known features; with a kernel, of support vectors."""
        return len(self._core._learner)

    @property
    def weights(self) -> Any:
        """The weight of each feature by name; with several columns, a dict of the weights other than 0 for each."""
        core = self._core_with("weights")
        with self.lock:
            keys, values = core._learner.items()
            order = np.argsort(keys, kind="stable")
            names, values = [core._vocabulary.name(key) for key in keys[order].tolist()], core._by_class(values[order])
            classes = core.classes
        if values.ndim == 1:
            return dict(zip(names, values.tolist(), strict=True))
        return {
            of: {names[i]: float(values[i, column]) for i in np.flatnonzero(values[:, column]).tolist()}
            for column, of in enumerate(classes)
        }

    @property
    def intercept(self) -> Any:
        """What the intercept adds to the margin; with several columns, a dict for these."""
        core = self._core_with("intercept")
        with self.lock:
            return core._intercepts()

    def weights_of(self, keys: NDArray[np.int64]) -> Floats:
        """The weights of features that are ints, as hashed ones are: a row for each feature, with a column for each
        class or, with two classes, for their margin; 0 for unknown features.
        """
        core = self._core_with("weights")
        with self.lock:
            return core._by_class(core._learner.weights_of(keys)).reshape(len(keys), -1)

    @property
    def _core(self) -> Inspectable:
        """The classifier that learns: itself, or that of a model around it."""
        return self

    def _core_with(self, name: str) -> Inspectable:
        if "weights" not in self.capabilities:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return self._core

    def check_labels(self, y: Iterable[Any]) -> None:
        """Check that all these labels can be learned, in this order.

        Raises
        ------
        TypeError, ValueError
            As `learn_one` does, if a label cannot be learned.
        """
        self._core._labels.with_labels(y)

    @property
    def _multiclass(self) -> bool:
        return "several classes" in self.capabilities

    # Of an example.

    def margins_of(self, encoder: Encoder, x: Any) -> Margins:
        """The margins of the classes that are known."""
        found, n_known = self._learner.margins(encoder, x), len(self._labels.known)
        return found if n_known > 1 else found[:n_known]

    def label_of(self, margins: Margins) -> Any:
        return self._labels.label(margins)

    def probabilities_of(self, margins: Margins) -> dict[Any, float]:
        return self._labels.probabilities(margins, self._learner.calibrated, self.n_learned)

    def score_of(self, margins: Margins) -> Any:
        return self._labels.score(margins)

    def contributions(self, encoder: Encoder, x: Any, label: Any = None) -> Contributions:
        """What the features, the vector and the intercept of an example add to the margin; for models that can
        "explain". With several classes, it is the margin of `label` or, without one, the distance of the predicted
        class's margin above the next best.
        """
        core = self._core
        with self.lock:
            return explain(core._learner, encoder, x, core._explained(encoder, x, label))

    def _explained(self, encoder: Encoder, x: Any, label: Any) -> Columns:
        """The columns whose margins are explained."""
        if label is not None and label not in self.classes:
            raise ValueError(f"{label!r} is none of the classes {self.classes}")
        labels = self._labels
        number = min(labels.positive, 1) if label is None else int(labels.targets[label])
        if labels.pair and len(self._learner.intercept) == 2:
            return [(number, 0.5), (1 - number, -0.5)]
        if label is not None:
            return [(number, 1.0)]
        margins = self.margins_of(encoder, x)
        predicted = self.label_of(margins)
        return [] if predicted is None else first_against_second(margins, int(labels.targets[predicted]))
