"""Decisions for F1: labels to predict, chosen by counts of the decisions so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_member, check_number
from stream_pegasos.common.display import quoted
from stream_pegasos.common.errors import must_be
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.engine.merging import merged_newest
from stream_pegasos.engine.pure.driver import LARGEST_CALIBRATION_WEIGHT
from stream_pegasos.learners.decisions import PerLabel
from stream_pegasos.learners.false_positives import Tail, whole_units
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.predictions import WeightedTargets, largest
from stream_pegasos.learners.probabilities import Floats

__all__ = ["DecideFor", "DecisionChange", "F1Decision", "changed_f1", "check_decide_for"]

DecideFor = Literal["accuracy", "micro_f1", "macro_f1"]


class DecisionChange(NamedTuple):
    """The arguments of `set_decision`; `None` leaves a part unchanged."""

    threshold: PerLabel
    rate: PerLabel  # of false positives
    pos_label: Label | None
    decide_for: DecideFor | None
    coverage: float | None


ACCURACY, MICRO_F1, MACRO_F1 = "accuracy", "micro_f1", "macro_f1"
# The number of right predictions that counts begin with, so that the first thresholds are close to 1/2.
RIGHT_AT_FIRST = {MICRO_F1: 25.0, MACRO_F1: 2.0}

Bools = NDArray[np.bool_]


class F1Decision:
    """A decision that raises F1 the most. F1 so far is 2 · right / counted: `right` is the number of right predictions,
    and `counted` that of all predictions and all examples with the label.

    One more prediction, right with probability p, changes F1 by (2p − F1) / counted. So a label is predicted if p is
    above F1 / 2, with its own F1 or, for micro F1, that of all labels together. If classes are `exclusive`, the class
    with the largest change of F1 is predicted. All counts are halved after `MOST` examples, so that the newest count
    most. They are multiples of 2^−36: their sums are exact in any order.
    """

    MOST = Tail.MOST

    def __init__(self, decide_for: str, exclusive: bool) -> None:
        self.decide_for, self.exclusive = decide_for, exclusive
        self.n = 0.0  # examples
        self.counts: Mapping[Label, tuple[float, float]] = {}  # right, counted

    def changed(self, decide_for: str) -> Self:
        """The same decision for another mean of F1. It shares the counts, because no method changes counts in place."""
        decision = type(self)(decide_for, self.exclusive)
        decision.n, decision.counts = self.n, self.counts
        return decision

    def numbers(
        self, labels: Labels, margins: Floats, probabilities: Floats, learned: WeightedTargets | None = None
    ) -> NDArray[np.intp]:
        """The class predicted for each example, −1 for none. With `learned`, each example is counted after its
        decision.
        """
        truths = [] if learned is None else [[int(target)] for target in learned.targets.tolist()]
        weights = None if learned is None else learned.weights
        decided = self.decided(labels, margins, probabilities, truths, weights)
        return largest(np.where(decided, 1.0, -np.inf))

    def decided(
        self,
        labels: Labels,
        margins: Floats,
        probabilities: Floats,
        truths: Sequence[Sequence[int]] = (),
        weights: Floats | None = None,
    ) -> Bools:
        """A mask of the labels predicted for each example; a label with a margin of −inf is never predicted. With
        `truths`, the numbers of its labels, and `weights`, each example is counted after its decision.
        """
        n = margins.shape[1]
        width = max(n, len(labels.known), 1)  # a label may come with this example
        is_known = widened(margins > -np.inf, width)
        probabilities = widened(probabilities, width)
        right, counted = np.zeros((2, width))
        for number, label in enumerate(labels.known):
            right[number], counted[number] = self.counts.get(label, (0.0, 0.0))
        if weights is None:
            return self._chosen(is_known, probabilities, right, counted)[:, :n]
        decided, n_counted = np.zeros(is_known.shape, bool), self.n
        for row, weight in enumerate(weights.tolist()):
            decided[row] = self._chosen(is_known[row], probabilities[row], right, counted)
            if weight := whole_units(min(weight, LARGEST_CALIBRATION_WEIGHT)):
                holds = np.zeros(width, bool)
                holds[truths[row]] = True
                right += weight * (holds & decided[row])
                counted += weight * (holds + decided[row].astype(float))
                n_counted += weight
            if n_counted >= self.MOST:
                n_counted, right, counted = n_counted / 2.0, whole(right / 2.0), whole(counted / 2.0)
        counts = zip(labels.known, zip(right.tolist(), counted.tolist(), strict=True), strict=False)
        self.n, self.counts = n_counted, {label: count for label, count in counts if count[1]}
        return decided[:, :n]

    def _chosen(self, is_known: Bools, probabilities: Floats, right: Floats, counted: Floats) -> Bools:
        first = RIGHT_AT_FIRST[self.decide_for]
        if self.decide_for == MICRO_F1:
            right, counted = right.sum(), counted.sum()
        counted = counted + 2.0 * first
        half_of_f1 = (right + first) / counted
        chosen: Bools = probabilities > half_of_f1
        if self.exclusive:
            gains = np.where(is_known, (probabilities - half_of_f1) / counted, -np.inf)
            chosen = np.arange(is_known.shape[-1]) == gains.argmax(axis=-1, keepdims=True)
        return is_known & chosen

    def forget(self, label: Label) -> None:
        self.counts = {other: count for other, count in self.counts.items() if other != label}

    def take(self, other_decisions: Sequence[F1Decision]) -> None:
        """Add the counts of decisions that continued from this one."""
        labels = list(dict.fromkeys(label for decision in (self, *other_decisions) for label in decision.counts))
        states = [
            {"n": decision.n, "counts": [count for label in labels for count in decision.counts.get(label, (0.0, 0.0))]}
            for decision in (self, *other_decisions)
        ]
        merged = merged_newest(states, "n", "counts", self.MOST)
        counts = whole(merged["counts"]).reshape(-1, 2).tolist()
        self.n = whole_units(merged["n"])
        self.counts = {label: (right, counted) for label, (right, counted) in zip(labels, counts, strict=True)}

    def get_state(self) -> Any:
        return {"n": self.n, "counts": [[pack(label), *counts] for label, counts in self.counts.items()]}

    def set_state(self, state: Mapping[str, Any], labels: Iterable[Label]) -> None:
        check_number("n", state["n"], 0.0, self.MOST)
        counts = {}
        for packed, right, counted in state["counts"]:
            label = unpack(packed)
            check_number(f"the count of {quoted(label)}", counted, 0.0, 2.0 * self.MOST)
            check_number(f"the right predictions of {quoted(label)}", right, 0.0, counted)
            counts[label] = whole_units(float(right)), whole_units(float(counted))
        if len(counts) < len(state["counts"]) or not counts.keys() <= set(labels):
            raise ValueError(f"there are decisions on {[*counts]}, which are not the labels")
        self.n, self.counts = whole_units(float(state["n"])), counts


def widened(numbers: NDArray[Any], width: int) -> NDArray[Any]:
    """The array, with columns of zeros added up to the width."""
    n_more = width - numbers.shape[1]
    return np.pad(numbers, ((0, 0), (0, n_more))) if n_more else numbers


def whole(counts: Floats) -> Floats:
    """Counts rounded as by `whole_units`."""
    result: Floats = np.round(counts / Tail.UNIT) * Tail.UNIT
    return result


def changed_f1(present: F1Decision | None, decide_for: str, exclusive: bool) -> F1Decision | None:
    """The decision for this metric; `None` for accuracy, and for micro F1 of exclusive classes, which is the same."""
    if decide_for == ACCURACY or (exclusive and decide_for == MICRO_F1):
        return None
    return F1Decision(decide_for, exclusive) if present is None else present.changed(decide_for)


def check_decide_for(decide_for: object, threshold: object, max_false_positive_rate: object) -> None:
    """Check `decide_for`; other values than accuracy exclude a threshold and a limit of false positives."""
    check_member("decide_for", decide_for, (ACCURACY, MICRO_F1, MACRO_F1))
    for name, value, default in (
        ("threshold", threshold, 0.5),
        ("max_false_positive_rate", max_false_positive_rate, None),
    ):
        if decide_for != ACCURACY and value != default:
            expected = f"left out with decide_for={decide_for!r}, as thresholds follow from F1"
            raise ValueError(must_be(name, expected, value))
