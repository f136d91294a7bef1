"""Decisions on margins that promise something of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_integer, check_number, check_share
from stream_pegasos.learners.labels import Label, check_label
from stream_pegasos.learners.persistence import pack, unpack
from stream_pegasos.learners.probabilities import Floats

__all__ = ["ClassDecisions", "Decision", "decisions_by_label"]

# A margin, and whatever else is kept of margins, may be this large.
LARGEST_MARGIN = 1e307
# The cut aims at this share of the rate, since where chance takes more than the rate allows nothing more is flagged.
AIM = 0.9
# The cut follows about as many negatives as were flagged this often at the rate.
MEMORY = 10.0


class Decision:
    """Whether the positive label is predicted: where its probability is above a threshold, and a limit of false
    positives, if there is one, allows it.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not between 0 and 1.
    """

    def __init__(self, threshold: float = 0.5, max_false_positive_rate: float | None = None) -> None:
        check_share("threshold", threshold)
        if max_false_positive_rate is not None:
            check_share("max_false_positive_rate", max_false_positive_rate)
        # As the probability is above one half exactly where the margin is above 0.
        self.is_by_margin = threshold == 0.5 and max_false_positive_rate is None
        self.threshold = threshold
        self.control = None if max_false_positive_rate is None else FalsePositiveControl(float(max_false_positive_rate))

    def allows(self, margins: Any, probabilities: Any) -> Any:
        """Whether the positive label is predicted, of one example or of each of several."""
        positive = probabilities > self.threshold
        return positive if self.control is None else positive & self.control.allows(margins)

    def learn(self, margin: float, flagged: bool, sign: float) -> None:
        """Take note of what was predicted of an example with that sign."""
        if self.control is not None and sign < 0.0:
            self.control.learn(margin, flagged)

    def in_turn(self, margins: Any, probabilities: Any, signs: Any, n_undecided: int) -> NDArray[np.bool_]:
        """Decide and learn one after the other; the first ones, for which nothing is decided yet, count nothing."""
        if self.control is None:
            return self.allows(margins, probabilities)  # type: ignore[no-any-return]
        positive = np.zeros(len(signs), bool)
        rows = zip(margins.tolist(), probabilities.tolist(), signs.tolist(), strict=True)
        for i, (margin, probability, sign) in enumerate(rows):
            if i >= n_undecided:
                positive[i] = self.allows(margin, probability)
                self.learn(margin, bool(positive[i]), sign)
        return positive


class ClassDecisions:
    """Which of several classes is predicted, where some need more than the largest probability: a class that has a
    decision of its own is predicted where that allows it, the likeliest of them if it allows several; or else the
    likeliest of all other classes.

    What a limit of false positives looks at is half of how far the margin of its class is above the largest other one.

    Parameters
    ----------
    of_label
        The decisions, by label.
    """

    def __init__(self, of_label: Mapping[Label, Decision]) -> None:
        self.of_label = of_label

    def allows(self, classes: tuple[Label | None, ...], margins: Floats, probabilities: Floats) -> NDArray[np.intp]:
        """The number of the class that is predicted of each of several examples, −1 for none."""
        decided = [self._number(classes, row, p) for row, p in zip(margins, probabilities, strict=True)]
        return np.array(decided, np.intp)

    def in_turn(
        self, classes: tuple[Label | None, ...], margins: Floats, probabilities: Floats, targets: Floats
    ) -> NDArray[np.intp]:
        """Decide and learn one after the other."""
        decided = np.empty(len(targets), np.intp)
        for i, target in enumerate(targets.astype(int).tolist()):
            decided[i] = self._number(classes, margins[i], probabilities[i])
            self.learn(classes, margins[i], int(decided[i]), target)
        return decided

    def learn(self, classes: tuple[Label | None, ...], margins: Floats, decided: int, target: int) -> None:
        """Take note of what was predicted of an example of class `target`."""
        for number, decision in self._numbered(classes, margins):
            if np.isfinite(margins[number]):
                decision.learn(lead(margins, number), decided == number, 1.0 if target == number else -1.0)

    def _number(self, classes: tuple[Label | None, ...], margins: Floats, probabilities: Floats) -> int:
        numbered = self._numbered(classes, margins)
        own = [(number, decision) for number, decision in numbered if np.isfinite(margins[number])]
        others = np.where(np.isfinite(margins), margins, -np.inf)
        others[[number for number, _ in own]] = -np.inf
        if not np.isfinite(others).any() and len(own) < 2:
            return -1  # nothing is decided against nothing
        allowed = [
            number for number, decision in own if decision.allows(lead(margins, number), float(probabilities[number]))
        ]
        if allowed:
            return max(allowed, key=probabilities.__getitem__)
        return int(others.argmax()) if np.isfinite(others).any() else -1

    def _numbered(self, classes: tuple[Label | None, ...], margins: Floats) -> list[tuple[int, Decision]]:
        """The decisions on classes that have a margin, by number."""
        known = classes[: len(margins)]
        return [(known.index(label), decision) for label, decision in self.of_label.items() if label in known]

    def get_state(self) -> Any:
        return [
            [pack(label), None if decision.control is None else decision.control.get_state()]
            for label, decision in self.of_label.items()
        ]

    def set_state(self, state: Any) -> None:
        """Take over a state.

        Raises
        ------
        LookupError, TypeError, ValueError
            If it cannot have been reached.
        """
        if [unpack(label) for label, _ in state] != [*self.of_label]:
            raise ValueError("the decisions are not on the labels of the parameters")
        for (_, one), decision in zip(state, self.of_label.values(), strict=True):
            if decision.control is not None:
                decision.control.set_state(one)


def decisions_by_label(
    threshold: float | Mapping[Label, float], rate: float | Mapping[Label, float] | None
) -> dict[Label, Decision]:
    """The decision of each label that has one of its own, none where neither is given by label.

    Raises
    ------
    TypeError, ValueError
        If one is no number between 0 and 1, or only one is given by label.
    """
    if not isinstance(threshold, Mapping) and not isinstance(rate, Mapping):
        return {}
    if not isinstance(threshold, Mapping):
        if threshold != 0.5:
            raise ValueError(f"threshold is {threshold!r}; beside a max_false_positive_rate by label it must be, too")
        threshold = {}
    if not isinstance(rate, Mapping):
        if rate is not None:
            raise ValueError(f"max_false_positive_rate is {rate!r}; beside a threshold by label it must be, too")
        rate = {}
    labels = dict.fromkeys(map(check_label, [*threshold, *rate]))
    return {label: Decision(threshold.get(label, 0.5), rate.get(label)) for label in labels}


def lead(margins: Floats, number: int) -> float:
    """Half of how far a margin is above the largest other one; with two that are opposite the margin itself."""
    others = np.delete(margins, number)
    best = float(others.max(initial=-np.inf))
    return (float(margins[number]) - best) / 2.0 if np.isfinite(best) else float(margins[number])


class FalsePositiveControl:
    """Keeps the share of the negative examples that are flagged at or below a rate, at any time.

    An example is flagged only above a cut, which follows a high quantile of the margins of negatives: at each of them
    it moves by step · (whether the margin is above it − share aimed at), as the bound of adaptive conformal inference
    does (Gibbs and Candès 2021). The step is that of Robbins and Monro for a tail that falls as exp(−margin/scale), the
    scale being the mean size of the margins: scale/(rate · n), where n grows up to `MEMORY`/rate. And so that the
    promise rests on no assumption, nothing is flagged while one more false positive would break it.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.n_negatives = 0
        self.n_flagged = 0  # of the negatives
        self.cut = 0.0
        self.scale = 0.0

    def allows(self, margins: Any) -> Any:
        """Whether an example with this margin may be flagged, or each of several."""
        return (margins > self.cut) & (self.n_flagged + 1 <= self.rate * (self.n_negatives + 1))

    def learn(self, margin: float, flagged: bool) -> None:
        """Take in a negative example."""
        self.n_negatives += 1
        self.n_flagged += flagged
        self.scale += (abs(margin) - self.scale) / self.n_negatives
        step = self.scale / min(max(1.0, self.rate * self.n_negatives), MEMORY)
        self.cut += step * ((margin > self.cut) - AIM * self.rate)

    def get_state(self) -> dict[str, float]:
        return {
            "n_negatives": self.n_negatives,
            "n_flagged": self.n_flagged,
            "cut": self.cut,
            "scale": self.scale,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over a state.

        Raises
        ------
        TypeError, ValueError
            If it cannot have been reached.
        """
        check_integer("n_negatives", state["n_negatives"], 0, (1 << 53) - 1)
        check_integer("n_flagged", state["n_flagged"], 0, int(self.rate * state["n_negatives"]))
        check_number("cut", state["cut"], -LARGEST_MARGIN, LARGEST_MARGIN)
        check_number("scale", state["scale"], 0.0, LARGEST_MARGIN)
        self.n_negatives, self.n_flagged = state["n_negatives"], state["n_flagged"]
        self.cut, self.scale = float(state["cut"]), float(state["scale"])
