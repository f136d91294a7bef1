"""Decisions about labels: by margins, thresholds, limits of false positives or F1; sets of labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from stream_pegasos.common.display import quoted
from stream_pegasos.engine import Learner, probabilities_many, probabilities_one
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.engine.pure.driver import Margins
from stream_pegasos.learners.coverage import (
    NEVER,
    Coverage,
    changed_coverage,
    check_coverage,
    coverage_asked,
    include_best,
)
from stream_pegasos.learners.decisions import (
    Decision,
    Decisions,
    PerLabel,
    changed_by_label,
    copied,
    decisions_by_label,
    limited,
    merge_limits,
    parameters_of_decisions,
)
from stream_pegasos.learners.f1_decisions import DecideFor, DecisionChange, F1Decision, changed_f1, check_decide_for
from stream_pegasos.learners.false_positives import Tail
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.labels import Labels, unknown_label
from stream_pegasos.learners.predictions import Decided, RawScores, WeightedTargets, largest
from stream_pegasos.learners.probabilities import Floats, blocks

__all__ = ["ChangedDecision", "ClassPolicy", "DecisionPolicy"]

WHICH_CLASS = "which class is meant? Name it by pos_label, on the command line --pos-label"


class ChangedDecision(NamedTuple):
    """The labels after a change of the decision, and the parameters of the estimator that changed."""

    labels: Labels
    parameters: dict[str, Any]


class DecisionPolicy:
    """The decision by the largest margin, which has no options. A subclass decides by probabilities, learns from the
    predictions of learned examples, and may give sets of labels.

    Attributes
    ----------
    by_margin : bool
        Whether the largest margin decides.
    learns : bool
        Whether it learns from predictions, so that each must be shown to it before its example is learned.
    f1 : F1Decision or None
        The decision for F1, if asked for.
    conformal : Coverage or None
        The level of label sets, if asked for.
    """

    by_margin = True
    learns = False
    f1: F1Decision | None = None
    conformal: Coverage | None = None

    @property
    def coverage(self) -> float | None:
        return None if self.conformal is None else self.conformal.coverage

    @property
    def is_new(self) -> bool:
        """Whether a policy that has learned nothing is the one that the parameters make."""
        return True

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to decide, and no set to find."""
        return self.by_margin and self.conformal is None

    # Predictions.

    def label(self, labels: Labels, margins: Any, calibrated: tuple[float, ...]) -> Any:
        """The predicted label of one example."""
        return labels.label(margins)

    def apply(self, labels: Labels, raw: RawScores, learned: WeightedTargets | None = None) -> RawScores:
        """The scores with decisions and sets. With `learned`, limits, counts and the level learn row by row."""
        decided = self.decide(labels, raw, learned)
        if decided is not None:
            raw = raw._replace(decided=decided)
        return raw if self.conformal is None else self._add_sets(self.conformal, labels, raw, learned)

    def decide(self, labels: Labels, raw: RawScores, learned: WeightedTargets | None = None) -> Decided:
        """The decision on each row; `None` if margins alone decide. With `learned`, limits learn row by row."""
        return None

    def _add_sets(
        self, conformal: Coverage, labels: Labels, raw: RawScores, learned: WeightedTargets | None
    ) -> RawScores:
        probabilities, least = self._set_probabilities(labels, raw), np.full(len(raw.margins), conformal.least)
        if learned is not None:
            truth = self._truth_probabilities(labels, probabilities, learned.targets)
            self.conformal, least = conformal.learned(truth, learned.weights)
        return raw._replace(members=probabilities >= least[:, np.newaxis])

    def _set_probabilities(self, labels: Labels, raw: RawScores) -> Floats:
        """The probability for which each label is in the set of an example; `NEVER` for an unknown label."""
        margins = raw.margins
        parts = [probabilities_many(margins[rows], raw.calibrated[rows]) for rows in blocks(margins)]
        return include_best(np.concatenate(parts), np.isfinite(margins), largest(margins))

    def _truth_probabilities(self, labels: Labels, probabilities: Floats, targets: Floats) -> Floats:
        """The probability for which the right label is in the set, given those of all labels."""
        padded = np.pad(probabilities, ((0, 0), (0, 1)), constant_values=NEVER)
        numbers = np.minimum(targets.astype(np.intp), probabilities.shape[1])
        truth: Floats = padded[np.arange(len(padded)), numbers]
        return truth

    def is_wrong(self, labels: Labels, raw: RawScores, target: float) -> bool:
        """Whether the prediction for a single row is wrong."""
        decided = largest(raw.margins) if raw.decided is None else raw.decided
        return bool(decided[0] != target)

    def limited(self, labels: Labels) -> Mapping[Label, float]:
        """The labels with a limit of false positives, and the threshold of each."""
        return {}

    # Changes.

    def snapshot(self) -> Any:
        """The state before learning, for `restore` after an interruption."""
        return None if self.f1 is None else self.f1.changed(self.f1.decide_for), self.conformal

    def restore(self, snapshot: Any) -> None:
        self.f1, self.conformal = snapshot

    def change(self, change: DecisionChange, labels: Labels, learner: Learner) -> ChangedDecision | None:
        """Change the options. `None` if there are none."""
        return None

    def forget(self, label: Label, labels: Labels) -> None:
        """Forget a class of these labels, which leaves the model."""

    def forget_negative(
        self, labels: Labels, label: Label, probability: float, weight: float, calibrated: tuple[float, ...]
    ) -> None:
        """Make limits forget an example that was learned with this label, when the label had about that probability."""

    def warn_of_labels(self, labels: Labels, before: Labels) -> None:
        """Warn if new labels show that options are for a label that did not come."""

    def merge(self, parts: Sequence[Any]) -> None:
        """Take over what parts, which continued from this one, learned from predictions."""
        if self.f1 is not None:
            self.f1.take([part.f1 for part in parts if part.f1 is not None])
        if self.conformal is not None:
            self.conformal = self.conformal.merged([part.conformal for part in parts if part.conformal is not None])

    # The state as data.

    def get_state(self, labels: Labels) -> dict[str, Any]:
        state: dict[str, Any] = {}
        if self.f1 is not None:
            state["f1"] = self.f1.get_state()
        if self.conformal is not None:
            state["conformal"] = self.conformal.get_state()
        return state

    def set_state(self, state: Mapping[str, Any], labels: Labels) -> None:
        if self.f1 is not None:
            self.f1.set_state(state["f1"], labels.classes)
        if self.conformal is not None:
            self.conformal = Coverage.from_state(state["conformal"], self.conformal.coverage)


class ClassPolicy(DecisionPolicy):
    """The decision among classes that exclude each other, by thresholds and limits of false positives, or for F1.

    `decisions` are by label; `None` stands for the positive label.
    """

    def __init__(
        self,
        threshold: float | Mapping[Label, float],
        max_false_positive_rate: PerLabel,
        pos_label: Label | None,
        decide_for: str,
        coverage: float | None,
    ) -> None:
        decisions: Mapping[Any, Decision] = decisions_by_label(threshold, max_false_positive_rate)
        if not decisions:
            decision = Decision(threshold, max_false_positive_rate)  # type: ignore[arg-type]
            decisions = {} if decision.is_by_margin else {None: decision}
        check_decide_for(decide_for, threshold, max_false_positive_rate)
        check_coverage(coverage)
        self.pos_label, self.decide_for = pos_label, decide_for
        self.conformal = changed_coverage(None, coverage)
        self._set_decisions(decisions, changed_f1(None, decide_for, exclusive=True))

    def _set_decisions(self, decisions: Mapping[Any, Decision], f1: F1Decision | None) -> None:
        self.decisions, self.f1 = Decisions(decisions), f1
        self.by_margin = not decisions and f1 is None
        self.learns = self._has_limits() or (f1, self.conformal) != (None, None)

    def _has_limits(self) -> bool:
        return any(decision.limit is not None for decision in self.decisions.of_label.values())

    @property
    def needs_positive(self) -> bool:
        """Whether a decision depends on which label is the positive one."""
        return None in self.decisions.of_label

    def label(self, labels: Labels, margins: Margins, calibrated: tuple[float, ...]) -> Any:
        if self.by_margin:
            return labels.label(margins)
        probabilities = probabilities_one(margins, calibrated)
        if self.f1 is not None:
            return labels.choices[self.f1.numbers(labels, np.array([margins]), np.array([probabilities]))[0]]
        return labels.choices[self.decisions.number(labels, margins, probabilities)]

    def decide(self, labels: Labels, raw: RawScores, learned: WeightedTargets | None = None) -> Decided:
        margins = raw.margins
        if self.by_margin:
            return None
        if len(margins) == 1 and self.f1 is None:
            scores = margins[0].tolist(), probabilities_one(margins[0], raw.calibrated[0].tolist())
            target = () if learned is None else (float(learned.targets[0]), float(learned.weights[0]))
            return np.array([self.decisions.number(labels, *scores, *target)])
        decided = []
        for rows in blocks(margins):
            probabilities = probabilities_many(margins[rows], raw.calibrated[rows])
            part = None if learned is None else WeightedTargets(*(array[rows] for array in learned))
            decisions = self.decisions if self.f1 is None else self.f1
            decided.append(decisions.numbers(labels, margins[rows], probabilities, part))
        return np.concatenate(decided)

    def limited(self, labels: Labels) -> Mapping[Label, float]:
        decisions = self.decisions.of_label.items()
        return limited({positive_label(labels) if label is None else label: own for label, own in decisions})

    def snapshot(self) -> Any:
        decisions = Decisions(copied(self.decisions.of_label)) if self._has_limits() else self.decisions
        return decisions, super().snapshot()

    def restore(self, snapshot: Any) -> None:
        self.decisions, others = snapshot
        super().restore(others)

    def change(self, change: DecisionChange, labels: Labels, learner: Learner) -> ChangedDecision:
        threshold, rate, pos_label, decide_for, coverage = change
        decisions: Mapping[Any, Decision] = self.decisions.of_label
        positive = self.pos_label if pos_label is None else pos_label
        if (decide_for, coverage) == (None, None) or (threshold, rate, pos_label) != (None, None, None):
            adaptive = cast(AdaptiveLearner, learner)
            decisions, labels = self._changed_decisions(threshold, rate, pos_label, labels, adaptive)
        parameters = parameters_of_decisions(decisions)
        decide_for = decide_for or cast(DecideFor, self.decide_for)
        check_decide_for(decide_for, **parameters)
        coverage = coverage_asked(coverage, self.coverage)
        self.conformal = changed_coverage(self.conformal, coverage)
        self._set_decisions(decisions, changed_f1(self.f1, decide_for, exclusive=True))
        self.pos_label, self.decide_for = positive, decide_for
        parameters |= {"pos_label": positive, "decide_for": decide_for, "coverage": coverage}
        return ChangedDecision(replace(labels, needs_positive=self.needs_positive), parameters)

    def _changed_decisions(
        self,
        threshold: PerLabel,
        rate: PerLabel,
        pos_label: Label | None,
        labels_before: Labels,
        learner: AdaptiveLearner,
    ) -> tuple[Mapping[Any, Decision], Labels]:
        """The decisions after a change, and the labels that they belong to."""
        labels, now = labels_before, dict(self.decisions.of_label)
        named = [label for values in (threshold, rate) if isinstance(values, Mapping) for label in values]
        if pos_label is not None:
            labels = replace(labels, pos_label=pos_label)
            if len(labels.known) > 1 and labels.positive == len(labels.known):
                raise ValueError(unknown_label(pos_label, labels.known))
        positive = self.pos_label if pos_label is None else pos_label
        if now.keys() <= {None} and not named:
            return self._changed_decision(labels, labels_before, threshold, rate, positive, learner), labels
        now = {positive_label(labels_before) if label is None else label: decision for label, decision in now.items()}
        label_read = next(iter(now)) if pos_label is None and len(now) == 1 else positive
        if label_read is None and not all(value is None or isinstance(value, Mapping) for value in (threshold, rate)):
            raise ValueError(WHICH_CLASS)
        decisions = changed_by_label(
            now,
            threshold,
            rate,
            [] if label_read is None else [label_read],
            lambda label: newest_negatives(labels_before, label, learner),
            lambda _: not learner.n_iterations,
        )
        for label in decisions.keys() - now.keys():
            if labels.known and label not in labels.known:
                raise ValueError(unknown_label(label, labels.known))
        return decisions, labels

    def _changed_decision(
        self,
        labels: Labels,
        labels_before: Labels,
        threshold: Any,
        rate: Any,
        named: Label | None,
        learner: AdaptiveLearner,
    ) -> dict[Any, Decision]:
        """The decision for the positive one of these labels, `named`."""
        before = self.decisions.of_label.get(None)
        if before is None and named is None and len(labels.known) > 2:
            raise ValueError(WHICH_CLASS)
        if before is not None and before.limit is not None and labels.positive != labels_before.positive:
            if rate is None:
                positive = positive_label(labels_before)
                raise ValueError(f"the limit of false positives is for {positive!r}; set one for {named!r}")
            before = Decision(before.threshold)
        negatives = newest_negatives(labels_before, named, learner)
        decision = (before or Decision()).changed(threshold, rate, negatives, not learner.n_iterations)
        if decision.is_by_margin:
            return {}
        if named is None and before is None:
            Labels(needs_positive=True).add_labels(labels.known)  # raises an error if the positive label is unknown
        return {None: decision}

    def forget(self, label: Label, labels: Labels) -> None:
        key = None if None in self.decisions.of_label and label == positive_label(labels) else label
        if self.f1 is not None:
            self.f1.forget(label)
        if key in self.decisions.of_label:  # its limit counted the forgotten class
            self.decisions.of_label = {**self.decisions.of_label, key: self.decisions.of_label[key].renewed()}

    def forget_negative(
        self, labels: Labels, label: Label, probability: float, weight: float, calibrated: tuple[float, ...]
    ) -> None:
        log_odds = math.log(max(1.0 - probability, 1e-12) / max(probability, 1e-12))
        for limited_label, decision in self.decisions.of_label.items() if labels.pair else ():
            own = positive_label(labels) if limited_label is None else limited_label
            if decision.limit is not None and label not in (limited_label, own):
                decision.limit.forget(log_odds / (2.0 * calibrated[0]), weight)

    def warn_of_labels(self, labels: Labels, before: Labels) -> None:
        known_labels, positive = labels.known, positive_label(labels)
        if None in self.decisions.of_label and len(before.known) < 2 <= labels.positive == len(known_labels):
            warnings.warn(
                f"the threshold or limit of false positives is for {quoted(positive)}, a label that has not come: "
                f"it holds neither for {', '.join(map(quoted, known_labels[:-1]))} nor for the new label",
                UserWarning,
                stacklevel=2,
            )

    def merge(self, parts: Sequence[ClassPolicy]) -> None:
        merged = merge_limits([policy.decisions.of_label for policy in (self, *parts)])
        if merged:
            self.decisions = Decisions(merged)
        super().merge(parts)

    def get_state(self, labels: Labels) -> dict[str, Any]:
        decisions = {"decisions": self.decisions.get_state()} if self.decisions.of_label else {}
        return decisions | super().get_state(labels)

    def set_state(self, state: Mapping[str, Any], labels: Labels) -> None:
        self.decisions.set_state(state.get("decisions", []))
        super().set_state(state, labels)


def positive_label(labels: Labels) -> Label | None:
    return next(iter(labels.known[labels.positive :]), labels.pos_label)


def newest_negatives(labels: Labels, label: Label | None, learner: AdaptiveLearner) -> Tail | None:
    """The histogram of the newest negatives' margins for a class, if there is one; `None` stands for the positive
    class.
    """
    number = labels.positive if label is None else int(labels.targets.get(label, 1))
    mistakes = learner.mistakes()
    if not mistakes:
        return None
    n_negatives, n_positives, false_positives, false_negatives = mistakes.values()
    return Tail.tail_of_mistakes(*((n_negatives, false_positives) if number else (n_positives, false_negatives)))
