"""Classifiers that also learn from their predictions: limits of false positives, F1, label sets and drift detectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_integer
from stream_pegasos.engine import Encoder
from stream_pegasos.engine.merging import COUNTS_OF_FEATURE
from stream_pegasos.engine.pure import AdaptiveLearner
from stream_pegasos.engine.pure.encoders import Inputs
from stream_pegasos.engine.pure.half_life import aged, steady_before
from stream_pegasos.features.frames import some_rows
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.coverage import NEVER, Coverage
from stream_pegasos.learners.decisions import Decision, Decisions
from stream_pegasos.learners.drift import DriftWatch
from stream_pegasos.learners.f1_decisions import F1Decision
from stream_pegasos.learners.feature_scaler import IDLE, FeatureScaler
from stream_pegasos.learners.forgetting import Recency
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.predictions import (
    Decided,
    PartlyLearnedError,
    RawScores,
    WeightedTargets,
    joined_scores,
    raw_scores,
)
from stream_pegasos.learners.probabilities import Floats

__all__ = ["WatchedClassifier"]

KEPT_AFTER_DRIFT = 0.1  # the share of the evidence to keep at a drift


class WatchedClassifier(Classifier):
    """A classifier that shows each prediction to its limits of false positives, counts for F1 and drift detector,
    before it learns the example.
    """

    learner: AdaptiveLearner
    _drift: DriftWatch
    _linear = False

    def _set_up(self, *args: Any, **kwargs: Any) -> None:
        self._scaling = FeatureScaler(), None
        super()._set_up(*args, **kwargs)

    @property
    def n_drifts(self) -> int:
        return self._drift.n_drifts

    def _learn_targets(
        self, encoder: Encoder, rows: Inputs, labels: Labels, targets: Floats, weights: Floats | None
    ) -> RawScores:
        if self._drift.detector is not None:
            return self._learn_in_turn(encoder, rows, labels, targets, weights)
        n_before_two, before = self._n_before_two(labels, targets, weights), self._kept()
        parts: list[tuple[Floats, Floats]] = []
        learned = WeightedTargets.of(targets, weights)
        try:
            self._learn_blocks(encoder, rows, targets, weights, parts)
            raw = raw_scores(parts).mask_unseen_classes(n_before_two)
            raw = raw._replace(decided=self._decided(labels, raw, learned))
            return self._add_sets(labels, raw, learned)
        except BaseException:  # an interruption: limits must match the engine's examples
            if parts:
                self.decisions, self.f1, self.conformal = before
                raw = raw_scores(parts).mask_unseen_classes(n_before_two)
                learned = WeightedTargets(*(array[: len(raw.margins)] for array in learned))
                self._decided(labels, raw, learned)
                self._add_sets(labels, raw, learned)
            raise

    def _learn_in_turn(
        self, encoder: Encoder, rows: Inputs, labels: Labels, targets: Floats, weights: Floats | None
    ) -> RawScores:
        """Learn the rows one by one; before each, tell the detector whether its prediction was wrong."""
        self.learner.predict_learn_many(encoder, rows)  # raises any fault before the first row is learned
        parts: list[RawScores] = []
        first, second = self._n_before_two(labels, targets, weights)
        for i, target in enumerate(targets.tolist()):
            row, place = some_rows(rows, i, i + 1), slice(i, i + 1)
            raw = RawScores(*self.learner.predict_learn_many(encoder, row))
            raw = raw.mask_unseen_classes((first - i, second - i))
            raw = self._add_sets(labels, raw._replace(decided=self._decided(labels, raw)))
            weight = None if weights is None else weights[place]
            teaches = weight is None or bool(weight[0])
            n_drifts, n_before, state = self._drift.n_drifts, self.n_learned, None
            learning_limits = drifted = False
            before = self._kept() if teaches else (self.decisions, self.f1, self.conformal)
            try:
                if teaches and i >= second:  # with one class, no prediction can be wrong
                    try:
                        drifted = self._drift.tell(self._is_wrong(labels, raw, target))
                    except Exception as error:
                        if not i:
                            raise
                        raise PartlyLearnedError(i, joined_scores(parts), error) from error
                if teaches:
                    learning_limits = True
                    learned = WeightedTargets.of(targets[place], weight)
                    self._decided(labels, raw, learned)
                    self._add_sets(labels, raw, learned)
                if drifted:
                    state = self.learner.get_state()
                    self.learner.forget(KEPT_AFTER_DRIFT)
                self._learn_blocks(encoder, row, targets[place], weight, [])
            except BaseException:  # an interruption may come before the row is learned
                if self.n_learned == n_before:
                    self._drift.n_drifts = n_drifts
                    if learning_limits:
                        self.decisions, self.f1, self.conformal = before
                    if state is not None:
                        self.learner.set_state(state)
                raise
            parts.append(raw)
        # The last part has no rows. It adds the columns of all present classes, even if there are no rows at all.
        empty = RawScores(*self.learner.predict_learn_many(encoder, some_rows(rows, 0, 0)))
        return joined_scores([*parts, self._add_sets(labels, empty)])

    def _kept(self) -> tuple[Decisions | dict[Label, Decision] | None, F1Decision | None, Coverage | None]:
        """The state that an interruption may restore: the decisions, the counts for F1, and the level of the sets."""
        f1 = None if self.f1 is None else self.f1.changed(self.f1.decide_for)
        return self._copied_decisions(), f1, self.conformal

    def _copied_decisions(self) -> Decisions | dict[Label, Decision] | None:
        """The present decisions; later learning of their limits does not change them."""
        return self.decisions

    def score_rows(self, encoder: Encoder, rows: Inputs) -> RawScores:
        raw = super().score_rows(encoder, rows)
        return self._add_sets(self.labels, raw._replace(decided=self._decided(self.labels, raw)))

    def _add_sets(self, labels: Labels, raw: RawScores, learned: WeightedTargets | None = None) -> RawScores:
        """The scores with label sets, if a coverage is asked for. With `learned`, the level learns row by row."""
        if self.conformal is None:
            return raw
        probabilities, least = self._in_sets(labels, raw), np.full(len(raw.margins), self.conformal.least)
        if learned is not None:
            of_truth = self._truth_probabilities(labels, probabilities, learned.targets)
            self.conformal, least = self.conformal.learned(of_truth, learned.weights)
        return raw._replace(members=probabilities >= least[:, np.newaxis])

    def _in_sets(self, labels: Labels, raw: RawScores) -> Floats:
        """The probability for which each label is in the set of an example; `NEVER` for an unknown label."""
        raise NotImplementedError

    def _truth_probabilities(self, labels: Labels, probabilities: Floats, targets: Floats) -> Floats:
        """The probability for which the right label is in the set, given those of all labels."""
        padded = np.pad(probabilities, ((0, 0), (0, 1)), constant_values=NEVER)
        numbers = np.minimum(targets.astype(np.intp), probabilities.shape[1])
        of_truth: Floats = padded[np.arange(len(padded)), numbers]
        return of_truth

    def _importance(self, state: Mapping[str, Any]) -> Floats:
        n = state["n_iterations"] - self.recency.n_iterations
        share, _ = aged(self.learner.parameters["half_life"], n, steady_before({**state}, n))
        return self.recency.scores_now(counts_now(state), share)

    def _recency(self, state: Mapping[str, Any], importance: Floats, mask: NDArray[np.bool_]) -> Recency:
        counts, scores = (column[mask].astype(np.float32) for column in (counts_now(state), importance))
        return Recency(counts, scores, state["n_iterations"])

    # Methods that estimators implement.

    def _decided(self, labels: Labels, raw: RawScores, learned: WeightedTargets | None = None) -> Decided:
        """The decision on each row; `None` if margins alone decide. With `learned`, limits learn row by row."""
        raise NotImplementedError

    def _is_wrong(self, labels: Labels, raw: RawScores, target: float) -> bool:
        """Whether the prediction for a single row is wrong."""
        raise NotImplementedError

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        arrays, names, values = super().to_state(lazy)
        scaler, recency = self.scaler, self.recency
        values["watched"] = {"n_drifts": self.n_drifts, "scaler": IDLE if scaler is None else scaler.get_state()}
        if len(recency.counts):
            values["watched"]["n_forgotten"] = recency.n_iterations
            arrays |= recency.get_state()
        if self.f1 is not None:
            values["f1"] = self.f1.get_state()
        if self.conformal is not None:
            values["conformal"] = self.conformal.get_state()
        return arrays, names, values

    def _take_state(self, state: dict[str, Any], names: list[Any], values: dict[str, Any]) -> None:
        recent = {name: state.pop(name) for name in Recency().get_state() if name in state}
        super()._take_state(state, names, values)
        if recent:
            n = values["watched"]["n_forgotten"]
            check_integer("n_forgotten", n, 0, self.n_iterations)
            self.recency = Recency.from_state(recent, n, len(state["keys"]))
        n_drifts, state_of_scaler = (values["watched"][name] for name in ("n_drifts", "scaler"))
        check_integer("n_drifts", n_drifts, 0, self.n_iterations)
        scaler = FeatureScaler()
        scaler.set_state(state_of_scaler)
        self.set_scaler(scaler)
        self._drift.n_drifts = n_drifts  # the detector starts again
        if self.f1 is not None:
            self.f1.set_state(values["f1"], self.classes)
        if self.conformal is not None:
            self.conformal = Coverage.from_state(values["conformal"], self.conformal.coverage)


def counts_now(state: Mapping[str, Any]) -> Floats:
    """The number of occurrences of each feature, in units of an example now."""
    counts: Floats = np.sum([state[name] for name in COUNTS_OF_FEATURE if name in state], axis=0, dtype=float)
    return counts / float(state["evidence"])
