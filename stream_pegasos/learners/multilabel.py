"""The classifier for several labels per example, over feature dicts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.checks import check_lengths
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.packing import get_parameters, pack, pack_parameters, unpack
from stream_pegasos.engine import Encoder
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.engine.pure.encoders import Inputs
from stream_pegasos.features.frames import frame_like, is_frame, is_series, n_rows
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import each_weight, weights_given
from stream_pegasos.learners.coverage import NEVER, changed_coverage, coverage_asked
from stream_pegasos.learners.decisions import (
    Decision,
    PerLabel,
    changed_by_label,
    copied,
    decisions_by_label,
    limited,
    parameters_of_decisions,
)
from stream_pegasos.learners.drift import DriftWatch
from stream_pegasos.learners.explanations import Columns
from stream_pegasos.learners.f1_decisions import DecisionChange, changed_f1, check_decide_for
from stream_pegasos.learners.label_policy import LABEL_SET, Label, check_label
from stream_pegasos.learners.labels import Labels, unknown_label
from stream_pegasos.learners.predictions import Decided, RawScores, WeightedTargets
from stream_pegasos.learners.probabilities import Floats, NumberLearned, probabilities_by_class
from stream_pegasos.learners.watched import WatchedClassifier

__all__ = ["MultiLabelClassifier"]


@dataclass
class LabelSets(Labels):
    """Labels of examples that may have several. Labels that were named but never held are kept apart."""

    by_label: bool = True
    never: tuple[Label, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.never = tuple(label for label in dict.fromkeys(self.never) if label not in self.targets)

    def joined(self, other_labels: Sequence[Labels]) -> Self:
        label_sets = [labels for labels in (self, *other_labels) if isinstance(labels, LabelSets)]
        never = [label for labels in label_sets for label in labels.never]
        return replace(super().joined(other_labels), never=tuple(never))

    def get_state(self) -> Any:
        return super().get_state() | {"never": [pack(label) for label in self.never]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        never = state.get("never", [])
        if not isinstance(never, list):
            raise ValueError("the labels that never held must be a list")
        super().set_state(state)
        self.never = tuple(check_label(unpack(label)) for label in never)
        self.__post_init__()

    def label(self, margins: Any) -> Any:
        """Whether each label holds, given its margin or its decision."""
        labels_held = dict(zip(self.known, (margins > 0.0).tolist(), strict=False))
        return labels_held | dict.fromkeys(self.never, False)

    def labels_many(self, margins: Floats, decided: NDArray[Any] | None = None) -> NDArray[Any]:
        """The labels that hold: those in `decided` or, without it, those with a margin above 0."""
        label_tuples = np.empty(len(margins), object)
        label_tuples[:] = [()] * len(margins)
        rows, columns = np.nonzero(margins > 0.0 if decided is None else decided)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            label_tuples[row] += (self.known[column],)
        return label_tuples

    def probabilities_many(
        self, margins: Floats, calibrated: Floats, n_learned: NumberLearned
    ) -> tuple[tuple[Label | None, ...], Floats]:
        """The labels, and the probability that each holds; 0 for labels that have not come."""
        return self.known[: margins.shape[1]], np.where(
            np.isfinite(margins), probabilities_by_class(margins, calibrated), 0.0
        )

    def probabilities(self, margins: Any, calibrated: tuple[float, ...], n_learned: NumberLearned) -> dict[Any, Any]:
        """The probabilities that each label holds and that it does not."""
        values = probabilities_by_class(margins, np.array(calibrated)).tolist()
        pairs = [*zip(self.known, values, strict=False), *((label, 0.0) for label in self.never)]
        return {label: {False: 1.0 - p, True: p} for label, p in pairs}


class MultiLabelClassifier(WatchedClassifier, base.MultiLabelClassifier):  # type: ignore[misc]
    """Classifier for any number of labels per example, such as topics or tags: it predicts which of them hold.

    Each label is learned separately, as `AdaptiveClassifier` learns one of many classes (see its documentation). All
    labels share the scales of the features, so each feature is looked up only once. New labels may come at any time.
    For a label that comes late, all earlier examples count as negative; its weights begin with its first example.

    The labels of an example are a set, list or tuple of those that hold, which may be empty; or River's dict from label
    to a truth value, which may be 1 or 0. The labels of many examples may be a data frame with a column of truth values
    for each label.

    Parameters
    ----------
    classifier : AdaptiveClassifier or None, default None
        The classifier whose parameters are used; `None` for the defaults. A label is predicted if its probability is
        above the `threshold`. At most a share of `max_false_positive_rate` of the examples without the label are
        flagged. Both are one number for all labels, or a dict by label.
        Instead of these, a `decide_for` of `"micro_f1"` or `"macro_f1"` predicts a label if its probability is above
        half of F1 so far, of all labels together or of this one; then one more prediction raises F1. The
        `drift_detector` gets 1 if any label was wrong, else 0. The classifier may have no `class_weight` and no
        `pos_label`.

    Attributes
    ----------
    weights, intercept : dict
        As for `AdaptiveClassifier`, by label.
    n_iterations, n_drifts : int
        As for `AdaptiveClassifier`.
    classes : tuple
        The labels met, in order of arrival.

    Raises
    ------
    TypeError
        If the classifier has another class. When learning, if the labels are a single label, or if one of them is no
        bool, int or str.
    ValueError
        If the classifier has a parameter that needs exactly one label per example.

    References
    ----------
    [^1]: Tsoumakas, G. and Katakis, I., 2007. Multi-label classification: an overview. (One classifier for each label.)
    [^2]: Busa-Fekete, R., Szörényi, B., Dembczyński, K. and Hüllermeier, E., 2015. Online F-measure optimization.
        NIPS. (`decide_for`: a threshold of half of the F1 so far.)
    [^3]: Lipton, Z., Elkan, C. and Naryanaswamy, B., 2014. Optimal thresholding of classifiers to maximize F1 measure.
        ECML. (Half of the best F1 is the best threshold for calibrated probabilities.)

    Examples
    --------
    >>> from stream_pegasos import MultiLabelClassifier
    >>> model = MultiLabelClassifier()
    >>> stream = [({"wheat": 1, "ship": 1}, {"grain", "ship"}), ({"wheat": 1}, {"grain"}), ({"oil": 1}, set())]
    >>> for x, y in stream * 30:
    ...     model.learn_one(x, y)
    >>> model.predict_one({"wheat": 1, "price": 1})
    {'grain': True, 'ship': False}
    >>> model.predict_proba_one({"ship": 1})["ship"][True] > 0.5
    True
    >>> model.predict_many([{"wheat": 1, "ship": 1}, {"oil": 1}]).tolist()
    [('grain', 'ship'), ()]
    """

    capabilities = frozenset([Capability.WEIGHTS, Capability.EXPLAIN, Capability.MULTICLASS, Capability.MULTILABEL])
    learner: AdaptiveLearner
    labels: LabelSets
    decisions: dict[Label, Decision]

    def __init__(self, classifier: AdaptiveClassifier | None = None) -> None:
        self.classifier = AdaptiveClassifier() if classifier is None else classifier
        if not issubclass(type(self.classifier), AdaptiveClassifier):
            raise TypeError(must_be("classifier", "an AdaptiveClassifier", type_name(classifier)))
        options = {"class_weight": self.classifier.class_weight, "pos_label": self.classifier.pos_label}
        for name, option in options.items():
            if option is not None:
                raise ValueError(f"{name} must be None, as an example may have several labels here")
        self._drift = DriftWatch(self.classifier.drift_detector)
        self.decisions = decisions_by_label(self.classifier.threshold, self.classifier.max_false_positive_rate)
        self.of_others = make_default_decision(self.classifier)
        self.f1 = changed_f1(None, self.classifier.decide_for, exclusive=False)
        self.conformal = changed_coverage(None, self.classifier.coverage)
        # Watched, because y is no single label.
        self._set_up(self.classifier.make_learner("multilabel"), LabelSets(), watched=True, by_margin=False)

    def decide(self, change: DecisionChange) -> None:
        threshold, rate, pos_label, decide_for, coverage = change
        for label in self.classes:
            self._decision(label)
        now, of_others = self.decisions, self.of_others
        decisions = changed_by_label(
            now, threshold, rate, [*now] if pos_label is None else [pos_label], is_new=self._is_new
        )
        if unknown := [label for label in decisions if label not in now]:
            raise ValueError(unknown_label(unknown[0], self.classes))
        if pos_label is None:
            share, limit = (None if isinstance(value, Mapping) else value for value in (threshold, rate))
            of_others = of_others.changed(share, limit, is_new=True)
        are_alike = all(decision.parameters == of_others.parameters for decision in decisions.values())
        parameters = parameters_of_decisions({None: of_others} if are_alike else decisions)
        decide_for = decide_for or self.classifier.decide_for
        check_decide_for(decide_for, **parameters)
        coverage = coverage_asked(coverage, self.classifier.coverage)
        parameters |= {"decide_for": decide_for, "coverage": coverage}
        self.classifier = AdaptiveClassifier(**{**get_parameters(self.classifier), **parameters})
        self.decisions, self.of_others = decisions, of_others
        self.f1 = changed_f1(self.f1, decide_for, exclusive=False)
        self.conformal = changed_coverage(self.conformal, coverage)

    def _is_new(self, label: Label) -> bool:
        return label not in self.labels.targets

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        new = super().clone(new_params, include_attributes)
        if decision_options(new.classifier) == decision_options(self.classifier):
            new.of_others = self.of_others.renewed()  # decisions by label do not include it
        return new

    def drop_class(self, label: Label) -> None:
        if self.f1 is not None:
            self.f1.forget(label)
        decision, options = self.decisions.get(label), decision_options(self.classifier)
        is_named = any(isinstance(option, Mapping) and label in option for option in options)
        if decision is not None and (is_named or decision.parameters != self.of_others.parameters):
            self.decisions[label] = decision.renewed()  # its limit counted the forgotten class
        else:
            self.decisions.pop(label, None)
        super().drop_class(label)

    @property
    def inner(self) -> AdaptiveClassifier:
        return self.classifier

    @property
    def max_features(self) -> int | None:
        return self.classifier.max_features

    def label_of(self, margins: Any) -> Any:
        decided = self._decided(self.labels, RawScores(margins[np.newaxis], np.array([self.learner.calibrated])))
        return self.labels.label(margins if decided is None else decided[0])

    def learn_rows(self, encoder: Encoder, rows: Inputs, y: Iterable[Any], w: float | Iterable[float]) -> RawScores:
        sets = [LABEL_SET.check_set(labels) for labels in LABEL_SET.check_column(y)]
        check_lengths("labels", len(sets), n_rows(rows))
        w = weights_given(w)
        example_weights = each_weight(w, len(sets))
        # An example without weight adds no label.
        sets = [numbers_of_set if weight else {} for numbers_of_set, weight in zip(sets, example_weights, strict=True)]
        labels = self._labels_with(sets)
        numbers = [
            sorted(int(labels.targets[label]) for label, holds in numbers_of_set.items() if holds)
            for numbers_of_set in sets
        ]
        starts = np.cumsum([0, *map(len, numbers)])
        self.learner.sets = (
            starts,
            np.array([number for numbers_of_set in numbers for number in numbers_of_set], np.int64),
        )
        targets = np.arange(len(sets), dtype=np.float64)
        weights, _ = self.class_weights.weights_many(targets, int, example_weights if isinstance(w, Iterable) else w)
        before, n_before = self.labels, self.n_learned
        try:
            raw = self._learn_scaled(encoder, rows, labels, targets, weights)
            self.labels = labels
        except BaseException:  # of a detector, or an interruption: the labels of the learned examples stay
            self.labels = before
            self.labels = self._labels_with([*itertools.compress(sets, example_weights)][: self.n_learned - n_before])
            self.forget_least()
            raise
        if labels.known != before.known:
            self._tell_of_labels(before)
        self._tell_of_options()
        return raw

    def _label_list(self, y: object) -> list[Any]:
        return LABEL_SET.check_column(y)

    def _each_label(self, y: Iterable[Any]) -> Iterable[Any]:
        return itertools.chain.from_iterable(map(LABEL_SET.check_set, y))

    def check_labels(self, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> None:
        for labels in LABEL_SET.check_column(y):
            LABEL_SET.check_set(labels)

    def predict_many(self, X: object, threads: int = 1) -> Any:
        """The labels predicted for each example, as an array of tuples; if X is a data frame or a series, as a data
        frame with a column for each label.

        Parameters
        ----------
        X : iterable of dict or str, series, data frame or sparse matrix
            As for `learn_many`.
        threads : int, default 1
            As for `predictions`.
        """
        predictions = self.predictions(X, threads)
        if is_frame(X) or is_series(X):
            return frame_like(
                X,
                {
                    of: np.array([of in label_set for label_set in predictions.labels], bool)
                    for of in predictions.classes
                },
            )
        return predictions.labels

    def _labels_with(self, sets: list[dict[Label, bool]]) -> LabelSets:
        targets = dict(self.labels.targets)
        for label_set in sets:
            for label, holds in label_set.items():
                if holds:
                    targets.setdefault(label, float(len(targets)))
        return LabelSets(tuple(targets), never=(*self.labels.never, *itertools.chain(*sets)))

    def _decision(self, label: Label) -> Decision:
        return self.decisions.setdefault(label, self.of_others.renewed())

    def _limited(self) -> Mapping[Label, float]:
        return limited(self.decisions)

    def _copied_decisions(self) -> dict[Label, Decision]:
        return copied(self.decisions)

    def _decided(self, labels: Labels, raw: RawScores, learned: WeightedTargets | None = None) -> Decided:
        if self.f1 is None and self.classifier.threshold == 0.5 and self.classifier.max_false_positive_rate is None:
            return None
        margins, probabilities = raw.margins, probabilities_by_class(raw.margins, raw.calibrated)
        holding = [] if learned is None else [self._set(target) for target in learned.targets.tolist()]
        if self.f1 is not None:
            return self.f1.decided(
                labels, margins, probabilities, holding, None if learned is None else learned.weights
            )
        decided = np.zeros(margins.shape, bool)
        for column, label in enumerate(labels.classes[: margins.shape[1]]):
            is_negative = np.array([column not in columns_held for columns_held in holding], bool)
            of_negatives = None if learned is None else is_negative * learned.weights
            decision = self._decision(label)
            decided[:, column] = decision.allows(margins[:, column], probabilities[:, column], of_negatives)
        return decided

    def _in_sets(self, labels: Labels, raw: RawScores) -> Floats:
        return np.where(np.isfinite(raw.margins), probabilities_by_class(raw.margins, raw.calibrated), NEVER)

    def _truth_probabilities(self, labels: Labels, probabilities: Floats, targets: Floats) -> Floats:
        """The probability of the least probable label that holds. If none holds, any set is right."""
        padded = np.pad(probabilities, ((0, 0), (0, len(labels.known))), constant_values=NEVER)
        numbers = map(self._set, targets.tolist())
        return np.array([row[of].min(initial=1.0) for row, of in zip(padded, numbers, strict=True)])

    def _is_wrong(self, labels: Labels, raw: RawScores, target: float) -> bool:
        decided = raw.margins[0] > 0.0 if raw.decided is None else raw.decided[0]
        return set(np.flatnonzero(decided).tolist()) != set(self._set(target))

    def _explained(self, encoder: Encoder, x: object, label: Label | None) -> Columns:
        if label is not None:
            return super()._explained(encoder, x, label)
        margins = self.encode_margins(encoder, x)
        return [(int(np.argmax(margins)), 1.0)] if len(margins) else []

    def _set(self, target: float) -> list[int]:
        starts, numbers = self.learner.sets
        set_numbers: list[int] = numbers[starts[int(target)] : starts[int(target) + 1]].tolist()
        return set_numbers

    def _n_before_two(self, labels: Labels, targets: Floats, weights: Floats | None) -> tuple[int, int]:
        return 0, 0  # the probability of a label does not need another label

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        arrays, names, values = super().to_state(lazy)
        of_others = self.of_others.renewed()  # for labels whose decision does not exist yet
        limits = {label: self.decisions.get(label, of_others).limit for label in self.classes}
        if self.of_others.parameters != make_default_decision(self.classifier).parameters:
            values["others"] = self.of_others.parameters
        values["decisions"] = [[pack(label), limit.get_state()] for label, limit in limits.items() if limit is not None]
        return arrays, names, values

    def _packed_parameters(self) -> dict[str, Any]:
        return pack_parameters(self.classifier)

    @classmethod
    def _made_with(cls, parameters: dict[str, Any]) -> Self:
        return cls(AdaptiveClassifier(**parameters))

    def _take_state(self, state: dict[str, Any], names: list[Any], values: dict[str, Any]) -> None:
        super()._take_state(state, names, values)
        if "others" in values:
            self.of_others = Decision(*values["others"])
        for packed, state_of_limit in values["decisions"]:
            label = unpack(packed)
            limit = self._decision(label).limit
            if label not in self.classes or limit is None:
                raise ValueError(f"{label!r} has no limit of false positives")
            limit.set_state(state_of_limit)


def decision_options(classifier: AdaptiveClassifier) -> tuple[PerLabel, PerLabel]:
    return classifier.threshold, classifier.max_false_positive_rate


def make_default_decision(classifier: AdaptiveClassifier) -> Decision:
    """The decision for labels without their own."""
    threshold, rate = classifier.threshold, classifier.max_false_positive_rate
    if isinstance(threshold, Mapping) or isinstance(rate, Mapping):
        return Decision()
    return Decision(threshold, rate)
