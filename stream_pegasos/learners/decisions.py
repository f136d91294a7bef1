"""Decisions about the predicted class: thresholds, and limits of false positives."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_share
from stream_pegasos.common.errors import must_be
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.engine.merging import merged_newest
from stream_pegasos.engine.pure.driver import Margins
from stream_pegasos.learners.false_positives import FIRST, FalsePositiveLimit, Tail
from stream_pegasos.learners.label_policy import Label, check_label
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.predictions import WeightedTargets, largest
from stream_pegasos.learners.probabilities import Floats

__all__ = [
    "Decision",
    "Decisions",
    "PerLabel",
    "changed_by_label",
    "copied",
    "decisions_by_label",
    "limited",
    "merge_limits",
    "none_if_empty",
    "parameters_of_decisions",
]

NOTHING_KEPT = (
    "nothing is kept to choose a cut from, as the model has learned several classes, or several labels, without a "
    "limit; learn with a max_false_positive_rate, of any size, first"
)


class Decision:
    """A decision about the positive label: it is predicted if its probability is above a threshold and a limit, if any,
    allows it.
    """

    def __init__(self, threshold: float = 0.5, max_false_positive_rate: float | None = None) -> None:
        check_share("threshold", threshold)
        if max_false_positive_rate is not None:
            check_share("max_false_positive_rate", max_false_positive_rate)
        self.threshold = threshold
        self.limit = None if max_false_positive_rate is None else FalsePositiveLimit(float(max_false_positive_rate))

    @property
    def parameters(self) -> tuple[float, float | None]:
        return self.threshold, None if self.limit is None else self.limit.rate

    @property
    def is_by_margin(self) -> bool:
        """Whether the margin alone decides: the probability is above one half if and only if the margin is above 0."""
        return self.threshold == 0.5 and self.limit is None

    def renewed(self) -> Decision:
        """The same decision with an empty limit."""
        return Decision(*self.parameters)

    def changed(
        self, threshold: float | None, rate: float | None, negatives: Tail | None = None, is_new: bool = False
    ) -> Decision:
        """The decision with another threshold or limit; a rate of 1 is no limit. Unless the model is new, the cut is
        chosen from the negatives of the present limit or, without one, from `negatives`.
        """
        decision = Decision(self.threshold if threshold is None else threshold, None if rate == 1.0 else rate)
        if rate is None or (self.limit is not None and self.limit.rate == rate):
            decision.limit = self.limit
        elif decision.limit is not None and not is_new:
            negatives_met = negatives if self.limit is None else copy.deepcopy(self.limit.negatives)
            if negatives_met is None:
                raise ValueError(NOTHING_KEPT)
            decision.limit = FalsePositiveLimit(decision.limit.rate, negatives_met)
            if not decision.limit.knows_enough:
                raise ValueError(
                    f"max_false_positive_rate={rate:g} needs {math.ceil(FIRST / rate):,} negative examples to choose a "
                    f"cut, got {negatives_met.n:,.0f}"
                )
        return decision

    def allows(self, margins: Any, probabilities: Any, of_negatives: Floats | None = None) -> Any:
        """Whether the label is predicted, for one example or several; never with a margin of −inf, for a class that has
        not come. With `of_negatives`, weights that are 0 for positive examples, the limit learns each example after its
        decision.
        """
        allowed = (probabilities > self.threshold) & (margins > -math.inf)
        if self.limit is None:
            return allowed
        if of_negatives is None:
            return allowed & (margins > self.limit.cut)
        for i, (margin, weight) in enumerate(zip(margins.tolist(), of_negatives.tolist(), strict=True)):
            if margin > -math.inf:
                allowed[i] &= margin > self.limit.cut
                if weight:
                    self.limit.learn(margin, weight)
        return allowed


class Decisions:
    """A decision among several classes, by decisions for labels; `None` stands for the positive label.

    The prediction is the most probable of the classes whose decision allows it. If there is none, it is the most
    probable of the classes without a decision. A limit uses half the difference between its class's margin and the
    largest other.
    """

    def __init__(self, of_label: Mapping[Any, Decision]) -> None:
        self.of_label = of_label

    def _decisions_by_number(self, labels: Labels, n: int) -> dict[int, Decision]:
        """The decisions by the numbers of their classes, for the first n classes, which have columns."""
        decisions = self.of_label.items()
        numbers = [labels.positive if of is None else labels.targets.get(of, n) for of, _ in decisions]
        return {int(number): decision for number, (_, decision) in zip(numbers, decisions, strict=True) if number < n}

    def number(
        self,
        labels: Labels,
        margins: Margins,
        probabilities: Sequence[float],
        target: float | None = None,
        weight: float = 1.0,
    ) -> int:
        """The result of `numbers` for one example, much faster."""
        own = self._decisions_by_number(labels, len(margins))
        allowed = other = -1
        n_known = 0
        for number, margin in enumerate(margins):
            n_known += margin > -math.inf
            decision = own.get(number)
            if decision is None:
                if margin > (margins[other] if other >= 0 else -math.inf):
                    other = number
                continue
            lead = margin_lead(margins, number)
            if decision.allows(lead, probabilities[number]) and (
                allowed < 0 or probabilities[number] > probabilities[allowed]
            ):
                allowed = number
            if decision.limit is not None and weight and target not in (None, number) and lead > -math.inf:
                decision.limit.learn(lead, weight)
        return -1 if other < 0 and n_known < 2 else other if allowed < 0 else allowed

    def numbers(
        self, labels: Labels, margins: Floats, probabilities: Floats, learned: WeightedTargets | None = None
    ) -> NDArray[np.intp]:
        """The class predicted for each example, −1 for none. With `learned`, limits learn each example after its
        decision.
        """
        is_known = np.isfinite(margins)
        allowed, other_margins = np.zeros(margins.shape, bool), np.where(is_known, margins, -np.inf)
        for number, decision in self._decisions_by_number(labels, margins.shape[1]).items():
            of_negatives = None if learned is None else (learned.targets != number) * learned.weights
            allowed[:, number] = decision.allows(leads(margins, number), probabilities[:, number], of_negatives)
            other_margins[:, number] = -np.inf
        best = largest(other_margins)
        numbers = np.where(allowed.any(axis=1), largest(np.where(allowed, probabilities, -np.inf)), best)
        # A class with a decision needs another class as the alternative.
        numbers[(best < 0) & (is_known.sum(axis=1) < 2)] = -1
        return numbers

    def get_state(self) -> Any:
        return [
            [pack(label), None if decision.limit is None else decision.limit.get_state()]
            for label, decision in self.of_label.items()
        ]

    def set_state(self, state: Sequence[Any]) -> None:
        if [unpack(label) for label, _ in state] != [*self.of_label]:
            raise ValueError("the decisions are not on the labels of the parameters")
        for (_, decision_state), decision in zip(state, self.of_label.values(), strict=True):
            if decision.limit is not None:
                decision.limit.set_state(decision_state)


def decisions_by_label(
    threshold: float | Mapping[Label, float], rate: float | Mapping[Label, float] | None
) -> dict[Label, Decision]:
    """The decisions of labels that have their own; empty if neither argument is a mapping."""
    if not isinstance(threshold, Mapping) and not isinstance(rate, Mapping):
        return {}
    if not isinstance(threshold, Mapping):
        if threshold != 0.5:
            raise ValueError(must_be("threshold", "by label, as max_false_positive_rate is", threshold))
        threshold = {}
    if not isinstance(rate, Mapping):
        if rate is not None:
            raise ValueError(must_be("max_false_positive_rate", "by label, as threshold is", rate))
        rate = {}
    labels = dict.fromkeys(map(check_label, [*threshold, *rate]))
    return {label: Decision(threshold.get(label, 0.5), rate.get(label)) for label in labels}


PerLabel = float | Mapping[Label, float] | None


def none_if_empty(value: PerLabel) -> PerLabel:
    return None if isinstance(value, Mapping) and not value else value


def changed_by_label(
    decisions: Mapping[Any, Decision],
    threshold: PerLabel,
    rate: PerLabel,
    labels: Iterable[Any],
    negatives: Callable[[Any], Tail | None] = lambda _: None,
    is_new: Callable[[Any], bool] = lambda _: False,
) -> dict[Any, Decision]:
    """The decisions after a change; a single number is for all `labels`. `negatives` gives the known negatives of a
    label without a limit.
    """

    def of_label(value: PerLabel) -> Mapping[Label, float]:
        if isinstance(value, Mapping):
            return value
        return {} if value is None else dict.fromkeys(labels, value)

    thresholds, rates = of_label(threshold), of_label(rate)
    changed = dict(decisions)
    for label in dict.fromkeys([*thresholds, *rates]):
        before, own = changed.get(label, Decision()), None if label is None else check_label(label)
        changed[own] = before.changed(thresholds.get(label), rates.get(label), negatives(label), is_new(own))
    return changed


def parameters_of_decisions(decisions: Mapping[Any, Decision]) -> dict[str, Any]:
    if decisions.keys() <= {None}:
        threshold, rate = decisions.get(None, Decision()).parameters
        return {"threshold": threshold, "max_false_positive_rate": rate}
    rates = {label: decision.limit.rate for label, decision in decisions.items() if decision.limit is not None}
    thresholds = {label: decision.threshold for label, decision in decisions.items()}
    return {"threshold": thresholds, "max_false_positive_rate": rates or None}


def copied(decisions: Mapping[Any, Decision]) -> dict[Any, Decision]:
    """The same decisions, with copies of their limits."""
    copies = {label: copy.copy(decision) for label, decision in decisions.items()}
    for decision in copies.values():
        if decision.limit is not None:
            decision.limit = copy.copy(decision.limit)
            decision.limit.negatives = copy.copy(decision.limit.negatives)
            decision.limit.negatives.counts = dict(decision.limit.negatives.counts)
    return copies


def merge_limits(parts: Sequence[Mapping[Any, Decision]]) -> dict[Any, Decision]:
    """The decisions of all parts, the first of which is the base; limits of false positives have the negatives of
    all.
    """
    merged = {label: decision for decisions in reversed(parts) for label, decision in decisions.items()}
    for label, decision in merged.items():
        if decision.limit is not None:
            tails = [negatives_met(decisions.get(label)) for decisions in parts]
            places = sorted({place for tail in tails for place in tail.counts})
            states = [{"n": tail.n, "counts": [tail.counts.get(place, 0.0) for place in places]} for tail in tails]
            counts = merged_newest(states, "n", "counts", Tail.MOST)["counts"].tolist()
            decision.limit.set_state({"n": math.fsum(counts), "places": places, "counts": counts})
    return merged


def negatives_met(decision: Decision | None) -> Tail:
    return Tail() if decision is None or decision.limit is None else decision.limit.negatives


def limited(decisions: Mapping[Any, Decision]) -> dict[Any, float]:
    """The labels with a limit of false positives, and the threshold of each."""
    return {label: decision.threshold for label, decision in decisions.items() if decision.limit is not None}


def margin_lead(margins: Margins, number: int) -> float:
    best = max(*margins[:number], *margins[number + 1 :], -math.inf, -math.inf)
    return margins[number] if best == -math.inf else (margins[number] - best) / 2.0


def leads(margins: Floats, number: int) -> Floats:
    """Half the difference between a class's margin and the largest other one; for two opposite margins, the margin
    itself.
    """
    own, best = margins[:, number], np.delete(margins, number, axis=1).max(axis=1, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(best), (own - best) / 2.0, own)
