"""The classifier of ordered classes, over feature dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.packing import get_parameters
from stream_pegasos.engine import Learner
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.engine.pure.driver import Margins
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.coverage import NEVER, changed_coverage, coverage_asked, include_best, outward
from stream_pegasos.learners.decision_policy import ChangedDecision, DecisionPolicy
from stream_pegasos.learners.drift import DriftWatch
from stream_pegasos.learners.explanations import Columns
from stream_pegasos.learners.f1_decisions import DecisionChange
from stream_pegasos.learners.forgetting import UseForgetting
from stream_pegasos.learners.label_policy import ORDERED_LABEL, Label
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.pegasos import PegasosClassifier
from stream_pegasos.learners.predictions import RawScores
from stream_pegasos.learners.probabilities import Floats, NumberLearned, fill_single_class, probabilities_with_labels
from stream_pegasos.learners.trainer import Trainer

__all__ = ["OrdinalClassifier"]


@dataclass
class OrderedLabels(Labels):
    """Integer labels, numbered in order of arrival. Margins are the logarithms of their probabilities, by number."""

    has_intercepts: ClassVar[bool] = False

    by_label: bool = True

    @property
    def classes(self) -> tuple[int, ...]:
        return tuple(sorted(self.targets))

    @property
    def order(self) -> NDArray[np.int64]:
        return np.array([self.targets[label] for label in self.classes], np.int64)

    def add_labels(self, y: Sequence[Any]) -> Self:
        return super().add_labels([ORDERED_LABEL.check(label) for label in y])

    def check_label(self, label: object) -> None:
        ORDERED_LABEL.check(label)

    def prepare(self, learner: Learner, before: Labels) -> None:
        cast(AdaptiveLearner, learner).order = self.order

    def label(self, margins: Any) -> Any:
        return self.choices[self.medians(margins[np.newaxis])[0]]

    def labels_many(self, margins: Floats, decided: NDArray[Any] | None = None) -> NDArray[Any]:
        return super().labels_many(margins, self.medians(margins))

    def medians(self, margins: Floats) -> NDArray[np.intp]:
        """The number of the highest label that is reached with a probability above one half; −1 if there is none."""
        order = self.class_order(margins)
        if not len(order):
            return np.full(len(margins), -1)
        reached = np.cumsum(np.exp(margins[:, order])[:, ::-1], axis=1)[:, ::-1] > 0.5
        result: NDArray[np.intp] = order[np.maximum(reached.sum(axis=1) - 1, 0)]
        medians: NDArray[np.intp] = np.where(np.isfinite(margins).any(axis=1), result, -1)
        return medians

    def probabilities_many(
        self, margins: Floats, calibrated: Floats, n_learned: NumberLearned
    ) -> tuple[tuple[Label | None, ...], Floats]:
        order = self.class_order(margins)
        if len(order) == 1:
            return super().probabilities_many(margins, calibrated, n_learned)
        result = fill_single_class(np.exp(margins[:, order]), margins[:, order], n_learned)
        return tuple(self.known[number] for number in order.tolist()), result

    def probabilities(self, margins: Any, calibrated: tuple[float, ...], n_learned: NumberLearned) -> dict[Any, Any]:
        classes, result = self.probabilities_many(margins[np.newaxis], np.array([calibrated]), n_learned)
        return probabilities_with_labels(dict(zip(classes, result[0].tolist(), strict=True)))

    def scores_many(self, margins: Floats) -> Floats:
        scores: Floats = margins[:, self.class_order(margins)]
        return scores

    def score(self, margins: Margins) -> dict[Label, float]:
        return {label: float(margins[int(self.targets[label])]) for label in self.classes}

    def show_weights(self, numbers: Floats) -> Floats:
        """The weight that all classes share."""
        weights: Floats = numbers[:, 0] + 0.0
        return weights

    def show_intercepts(self, intercepts: Floats) -> Any:
        return dict(zip(pairwise(self.classes), intercepts.tolist(), strict=True))

    def show_sets(self, members: NDArray[np.bool_] | None, margins: Floats) -> NDArray[np.bool_] | None:
        return None if members is None else members[:, self.class_order(margins)]

    @property
    def poles(self) -> tuple[Label | None, ...]:
        return (self.classes[0], self.classes[-1]) if self.known else ()

    def label_columns(self, label: Label, against: Label | None, n_columns: int) -> Columns:
        expected = "None, as of ordered classes only the place among them is explained"
        raise ValueError(must_be("label", expected, label))

    def predicted_columns(self, n_columns: int, margins: Margins, predicted: Any) -> Columns:
        return [(0, 1.0)]

    def class_order(self, margins: Floats) -> NDArray[np.int64]:
        order: NDArray[np.int64] = self.order[self.order < margins.shape[1]]
        return order

    def set_state(self, state: Mapping[str, Any]) -> None:
        super().set_state(state)
        for label in self.known:
            ORDERED_LABEL.check(label)


class MedianPolicy(DecisionPolicy):
    """The median of ordered classes is predicted, and a set is an interval."""

    by_margin = False

    def __init__(self, coverage: float | None) -> None:
        self.conformal = changed_coverage(None, coverage)
        self.learns = coverage is not None

    def _set_probabilities(self, labels: Labels, raw: RawScores) -> Floats:
        assert isinstance(labels, OrderedLabels)
        margins, order = raw.margins, labels.class_order(raw.margins)
        is_known = np.isfinite(margins)
        probabilities = include_best(np.exp(margins), is_known, labels.medians(margins))
        probabilities[:, order] = outward(probabilities[:, order])
        return np.where(is_known, probabilities, NEVER)

    def is_wrong(self, labels: Labels, raw: RawScores, target: float) -> bool:
        assert isinstance(labels, OrderedLabels)
        return bool(labels.medians(raw.margins)[0] != target)

    def change(self, change: DecisionChange, labels: Labels, learner: Learner) -> ChangedDecision:
        if change[:-1] != (None, None, None, None):
            raise TypeError(
                "OrdinalClassifier has no threshold and no limit of false positives, only a coverage; "
                "AdaptiveClassifier and MultiLabelClassifier have all"
            )
        coverage = coverage_asked(change.coverage, self.coverage)
        self.conformal, self.learns = changed_coverage(self.conformal, coverage), coverage is not None
        return ChangedDecision(labels, {"coverage": coverage})


class OrdinalClassifier(Classifier, base.MiniBatchClassifier):  # type: ignore[misc]
    """Classifier for ordered classes, such as stars.

    Each feature has one weight, and there is a threshold between any two neighbouring classes. The probability that an
    example is above threshold k is 1/(1 + exp(−s · (⟨w, x⟩ + b_k) − o_k)), with an intercept b_k. The slope s and the
    offset o_k are learned online from margins taken before learning. All thresholds contribute to the weights, with the
    steps and the scaled features of the `AdaptiveClassifier`. A feature is scaled by the mean size of its log-count
    ratios; each ratio compares the classes above a threshold with those below. The predicted label is the median: the
    highest label that is reached with a probability above 1/2. It has the least expected absolute error.

    This fits if the words of each class are between those of its neighbours, too. An `AdaptiveClassifier` is better for
    a class with its own words, such as neutral questions among reviews. Compare both on the stream, for example by
    `stream-pegasos evaluate FILE --ordered --compare MODEL`, with a MODEL from `train --save` without a file.

    Labels are integers, and new ones may come at any time. Integers between them that were never met are no classes. A
    new class begins with the thresholds of its neighbours.

    Parameters
    ----------
    classifier : AdaptiveClassifier or None, default None
        The classifier whose parameters are used; `None` for the defaults. It may have no `pos_label`, `threshold`,
        `max_false_positive_rate` or `decide_for`.

    Attributes
    ----------
    weights : dict
        The weight of each feature; positive weights point to higher classes.
    intercept : dict
        The constant part of the margin, by pair of neighbouring labels.
    n_iterations, n_drifts : int
        As for `AdaptiveClassifier`.
    classes : tuple
        The labels met, in ascending order.

    Raises
    ------
    TypeError
        If the classifier has another class; when learning, if a label is no integer.
    ValueError
        If the classifier has a parameter that is not used here.

    References
    ----------
    [^1]: McCullagh, P., 1980. Regression models for ordinal data. JRSS B 42. (Proportional odds: one weight for each
        feature, and thresholds.)

    Examples
    --------
    >>> from stream_pegasos import OrdinalClassifier
    >>> stream = [({"awful": 1}, 1), ({"dull": 1}, 2), ({"fine": 1}, 4), ({"superb": 1}, 5)]
    >>> model = OrdinalClassifier()
    >>> for x, y in stream * 20:
    ...     model.learn_one(x, y)
    >>> [model.predict_one(x) for x, _ in stream]
    [1, 2, 4, 5]
    >>> model.predict_one({"awful": 1, "fine": 1})
    2
    >>> sorted(model.weights, key=model.weights.get)
    ['awful', 'dull', 'fine', 'superb']
    """

    capabilities = frozenset([Capability.WEIGHTS, Capability.EXPLAIN, Capability.MULTICLASS, Capability.ORDINAL])
    _linear = False
    inner_kind = AdaptiveClassifier

    def __init__(self, classifier: AdaptiveClassifier | None = None) -> None:
        self.classifier = AdaptiveClassifier() if classifier is None else classifier
        if isinstance(classifier, PegasosClassifier):
            raise TypeError(
                "an OrdinalClassifier is made of an AdaptiveClassifier; the pairs of neighbouring labels, each with a "
                "PegasosClassifier, are in examples/papers/duros_katzman.py"
            )
        if not issubclass(type(self.classifier), AdaptiveClassifier):
            raise TypeError(must_be("classifier", "an AdaptiveClassifier", type_name(classifier)))
        parameters, defaults = get_parameters(self.classifier), get_parameters(AdaptiveClassifier())
        for name in ("pos_label", "threshold", "max_false_positive_rate", "decide_for"):
            if parameters[name] != defaults[name]:
                raise ValueError(f"{name} must be left out, as an OrdinalClassifier does not use it")

    def make_trainer(self) -> Trainer:
        classifier = self.classifier
        return Trainer(
            self.lock,
            classifier.options.make_learner("ordinal"),
            OrderedLabels(),
            classifier.class_weight,
            MedianPolicy(classifier.coverage),
            UseForgetting(classifier.max_features),
            DriftWatch(classifier.drift_detector),
            scales=True,
        )
