"""The classifier for several labels per example, over feature dicts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.engine import Learner
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.engine.pure.driver import Margins
from stream_pegasos.features.frames import frame_like, is_frame, is_series
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.coverage import NEVER, changed_coverage, coverage_asked
from stream_pegasos.learners.decision_policy import ChangedDecision, DecisionPolicy
from stream_pegasos.learners.decisions import (
    Decision,
    PerLabel,
    changed_by_label,
    copied,
    decisions_by_label,
    limited,
    merge_limits,
    parameters_of_decisions,
)
from stream_pegasos.learners.drift import DriftWatch
from stream_pegasos.learners.explanations import Columns
from stream_pegasos.learners.f1_decisions import DecisionChange, changed_f1, check_decide_for
from stream_pegasos.learners.forgetting import UseForgetting
from stream_pegasos.learners.label_policy import LABEL_SET, Label, check_label
from stream_pegasos.learners.labels import LabelColumn, LabelParameters, Labels, unknown_label
from stream_pegasos.learners.predictions import Decided, RawScores, WeightedTargets
from stream_pegasos.learners.probabilities import Floats, NumberLearned, probabilities_by_class
from stream_pegasos.learners.trainer import Trainer

__all__ = ["MultiLabelClassifier"]


NO_SETS = np.zeros(1, np.int64), np.zeros(0, np.int64)


@dataclass
class LabelSets(Labels):
    """Labels of examples that may have several. Labels that were named but never held are kept apart."""

    takes_targets: ClassVar[bool] = False

    by_label: bool = True
    never: tuple[Label, ...] = ()
    # The sets of the examples that are being learned: which labels hold, and the same by numbers, all joined.
    sets: Sequence[Mapping[Label, bool]] = field(default=(), init=False, repr=False, compare=False)
    numbers: tuple[NDArray[np.int64], NDArray[np.int64]] = field(default=NO_SETS, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.never = tuple(label for label in dict.fromkeys(self.never) if label not in self.targets)

    @property
    def is_new(self) -> bool:
        return not self.known and not self.never

    def read_column(self, y: object) -> list[Any]:
        return LABEL_SET.check_column(y)

    def count_distinct(self, y: LabelColumn) -> int:
        with suppress(TypeError, ValueError):  # which are raised when they are learned
            return len({*itertools.chain.from_iterable(map(LABEL_SET.check_set, y))})
        return 0

    def check_column(self, y: LabelColumn, teaches: Sequence[bool] | None = None) -> None:
        for labels in y:
            LABEL_SET.check_set(labels)

    def number(self, y: LabelColumn, teaches: Sequence[bool] | None = None) -> tuple[Self, Floats]:
        sets = [LABEL_SET.check_set(labels) for labels in y]
        if teaches is not None:
            sets = [labels if of else {} for labels, of in zip(sets, teaches, strict=True)]
        labels = self._add_sets(sets)
        numbers = [
            sorted(int(labels.targets[label]) for label, holds in label_set.items() if holds) for label_set in sets
        ]
        starts = np.cumsum([0, *map(len, numbers)])
        labels.sets, labels.numbers = sets, (starts, np.array([*itertools.chain(*numbers)], np.int64))
        return labels, np.arange(len(sets), dtype=np.float64)

    def _add_sets(self, sets: Sequence[Mapping[Label, bool]]) -> Self:
        targets = dict(self.targets)
        for label_set in sets:
            for label, holds in label_set.items():
                if holds:
                    targets.setdefault(label, float(len(targets)))
        return type(self)(tuple(targets), never=(*self.never, *itertools.chain(*sets)))

    def add_targets(self, labels: Self, targets: Floats) -> Self:
        return self._add_sets([labels.sets[int(target)] for target in targets.tolist()])

    def prepare(self, learner: Learner, before: Labels) -> None:
        cast(AdaptiveLearner, learner).sets = self.numbers

    def settled(self) -> Self:
        return replace(self)

    def set_numbers(self, target: float) -> list[int]:
        """The numbers of the labels that hold for an example that is being learned."""
        starts, numbers = self.numbers
        set_numbers: list[int] = numbers[starts[int(target)] : starts[int(target) + 1]].tolist()
        return set_numbers

    @property
    def has_two(self) -> bool:
        return True  # the probability of a label does not need another label

    def predicted_columns(self, n_columns: int, margins: Margins, predicted: Any) -> Columns:
        return [(int(np.argmax(margins)), 1.0)] if len(margins) else []

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


class SetPolicy(DecisionPolicy):
    """Each label is decided by itself: by its own threshold and limit of false positives, or for F1.

    `decisions` are by label; a label without one begins with `default`.
    """

    by_margin = False
    learns = True  # because a prediction is no single label

    def __init__(self, classifier: AdaptiveClassifier) -> None:
        self.decisions = decisions_by_label(classifier.threshold, classifier.max_false_positive_rate)
        self.default = default_decision(decision_options(classifier))
        self.f1 = changed_f1(None, classifier.decide_for, exclusive=False)
        self.conformal = changed_coverage(None, classifier.coverage)
        self._set_options(classifier)

    def _set_options(self, classifier: AdaptiveClassifier) -> None:
        self.decide_for, self.options = classifier.decide_for, decision_options(classifier)

    @property
    def is_new(self) -> bool:
        return self.default.parameters == default_decision(self.options).parameters

    def _decision(self, label: Label) -> Decision:
        return self.decisions.setdefault(label, self.default.renewed())

    def label(self, labels: Labels, margins: Any, calibrated: tuple[float, ...]) -> Any:
        decided = self.decide(labels, RawScores(margins[np.newaxis], np.array([calibrated])))
        return labels.label(margins if decided is None else decided[0])

    def decide(self, labels: Labels, raw: RawScores, learned: WeightedTargets | None = None) -> Decided:
        if self.f1 is None and self.options == (0.5, None):
            return None
        assert isinstance(labels, LabelSets)
        margins, probabilities = raw.margins, probabilities_by_class(raw.margins, raw.calibrated)
        holding = [] if learned is None else [labels.set_numbers(target) for target in learned.targets.tolist()]
        if self.f1 is not None:
            return self.f1.decided(
                labels, margins, probabilities, holding, None if learned is None else learned.weights
            )
        decided = np.zeros(margins.shape, bool)
        for column, label in enumerate(labels.classes[: margins.shape[1]]):
            is_negative = np.array([column not in columns_held for columns_held in holding], bool)
            negatives = None if learned is None else is_negative * learned.weights
            decision = self._decision(label)
            decided[:, column] = decision.allows(margins[:, column], probabilities[:, column], negatives)
        return decided

    def _set_probabilities(self, labels: Labels, raw: RawScores) -> Floats:
        return np.where(np.isfinite(raw.margins), probabilities_by_class(raw.margins, raw.calibrated), NEVER)

    def _truth_probabilities(self, labels: Labels, probabilities: Floats, targets: Floats) -> Floats:
        """The probability of the least probable label that holds. If none holds, any set is right."""
        assert isinstance(labels, LabelSets)
        padded = np.pad(probabilities, ((0, 0), (0, len(labels.known))), constant_values=NEVER)
        numbers = map(labels.set_numbers, targets.tolist())
        return np.array([row[own].min(initial=1.0) for row, own in zip(padded, numbers, strict=True)])

    def is_wrong(self, labels: Labels, raw: RawScores, target: float) -> bool:
        assert isinstance(labels, LabelSets)
        decided = raw.margins[0] > 0.0 if raw.decided is None else raw.decided[0]
        return set(np.flatnonzero(decided).tolist()) != set(labels.set_numbers(target))

    def limited(self, labels: Labels) -> Mapping[Label, float]:
        return limited(self.decisions)

    def snapshot(self) -> Any:
        return copied(self.decisions), super().snapshot()

    def restore(self, snapshot: Any) -> None:
        self.decisions, others = snapshot
        super().restore(others)

    def change(self, change: DecisionChange, labels: Labels, learner: Learner) -> ChangedDecision:
        threshold, rate, pos_label, decide_for, coverage = change
        for label in labels.classes:
            self._decision(label)
        now, default = self.decisions, self.default
        decisions = changed_by_label(
            now,
            threshold,
            rate,
            [*now] if pos_label is None else [pos_label],
            is_new=lambda label: label not in labels.targets,
        )
        if unknown := [label for label in decisions if label not in now]:
            raise ValueError(unknown_label(unknown[0], labels.classes))
        if pos_label is None:
            share, limit = (None if isinstance(value, Mapping) else value for value in (threshold, rate))
            default = default.changed(share, limit, is_new=True)
        are_alike = all(decision.parameters == default.parameters for decision in decisions.values())
        parameters = parameters_of_decisions({None: default} if are_alike else decisions)
        decide_for = decide_for or self.decide_for
        check_decide_for(decide_for, **parameters)
        coverage = coverage_asked(coverage, self.coverage)
        self.decisions, self.default, self.decide_for = decisions, default, decide_for
        self.options = parameters["threshold"], parameters["max_false_positive_rate"]
        self.f1 = changed_f1(self.f1, decide_for, exclusive=False)
        self.conformal = changed_coverage(self.conformal, coverage)
        return ChangedDecision(labels, parameters | {"decide_for": decide_for, "coverage": coverage})

    def forget(self, label: Label, labels: Labels) -> None:
        if self.f1 is not None:
            self.f1.forget(label)
        decision = self.decisions.get(label)
        is_named = any(isinstance(option, Mapping) and label in option for option in self.options)
        if decision is not None and (is_named or decision.parameters != self.default.parameters):
            self.decisions[label] = decision.renewed()  # its limit counted the forgotten class
        else:
            self.decisions.pop(label, None)

    def merge(self, parts: Sequence[SetPolicy]) -> None:
        self.decisions = merge_limits([policy.decisions for policy in (self, *parts)])
        super().merge(parts)

    def get_state(self, labels: Labels) -> dict[str, Any]:
        state = super().get_state(labels)
        default = self.default.renewed()  # for labels whose decision does not exist yet
        limits = {label: self.decisions.get(label, default).limit for label in labels.classes}
        if self.default.parameters != default_decision(self.options).parameters:
            state["others"] = self.default.parameters
        state["decisions"] = [[pack(label), limit.get_state()] for label, limit in limits.items() if limit is not None]
        return state

    def set_state(self, state: Mapping[str, Any], labels: Labels) -> None:
        if "others" in state:
            self.default = Decision(*state["others"])
        for packed, limit_state in state["decisions"]:
            label = unpack(packed)
            limit = self._decision(label).limit
            if label not in labels.classes or limit is None:
                raise ValueError(f"{label!r} has no limit of false positives")
            limit.set_state(limit_state)
        super().set_state(state, labels)


class MultiLabelClassifier(Classifier, base.MultiLabelClassifier):  # type: ignore[misc]
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
    _linear = False
    inner_kind = AdaptiveClassifier

    def __init__(self, classifier: AdaptiveClassifier | None = None) -> None:
        self.classifier = AdaptiveClassifier() if classifier is None else classifier
        if not issubclass(type(self.classifier), AdaptiveClassifier):
            raise TypeError(must_be("classifier", "an AdaptiveClassifier", type_name(classifier)))
        options = {"class_weight": self.classifier.class_weight, "pos_label": self.classifier.pos_label}
        for name, option in options.items():
            if option is not None:
                raise ValueError(f"{name} must be None, as an example may have several labels here")

    def make_trainer(self) -> Trainer:
        classifier = self.classifier
        return Trainer(
            self.lock,
            classifier.options.make_learner("multilabel"),
            LabelSets(),
            policy=SetPolicy(classifier),
            forgetting=UseForgetting(classifier.max_features),
            drift=DriftWatch(classifier.drift_detector),
            scales=True,
            label_options=LabelParameters(None, None, classifier.threshold, classifier.max_false_positive_rate),
        )

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
        if not is_frame(X) and not is_series(X):
            return predictions.labels
        columns = {
            label: np.array([label in label_set for label_set in predictions.labels], bool)
            for label in predictions.classes
        }
        return frame_like(X, columns)

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        new = super().clone(new_params, include_attributes)
        if decision_options(new.classifier) == decision_options(self.classifier):
            own, policy = cast(SetPolicy, self.trainer.policy), cast(SetPolicy, new.trainer.policy)
            policy.default = own.default.renewed()  # decisions by label do not include it
        return new


def decision_options(classifier: AdaptiveClassifier) -> tuple[PerLabel, PerLabel]:
    return classifier.threshold, classifier.max_false_positive_rate


def default_decision(options: tuple[PerLabel, PerLabel]) -> Decision:
    """The decision for labels without their own."""
    threshold, rate = options
    return (
        Decision()
        if isinstance(threshold, Mapping) or isinstance(rate, Mapping)
        else Decision(cast(float, threshold), rate)
    )
