"""Decisions on margins that promise something of the classes."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.checks import check_integer, check_number, check_share
from stream_pegasos.engine.pure.mistakes import SMALLEST
from stream_pegasos.learners.labels import Label, check_label
from stream_pegasos.learners.persistence import pack, unpack
from stream_pegasos.learners.probabilities import Floats

__all__ = ["ClassDecisions", "Decision", "Given", "changed_by_label", "decisions_by_label", "parameters_of_decisions"]

# A margin, and whatever else is kept of margins, may be this large.
LARGEST_MARGIN = 1e307
# The cut aims at this share of the rate, since where chance takes more than the rate allows nothing more is flagged.
AIM = 0.9
# The cut follows about as many negatives as were flagged this often at the rate.
MEMORY = 10.0


# Of fewer margins NumPy is slower than Python.
FEW = 8
NOTHING_KEPT = (
    "nothing is kept to choose a cut from: the model was saved by an earlier release, or it has learned several "
    "classes, or several labels, without a limit; learn with a max_false_positive_rate, of any size, first"
)


class Decision:
    """Whether to predict the positive label: if its probability is above a threshold and a limit of false positives, if
    there is one, allows it.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not between 0 and 1.
    """

    def __init__(self, threshold: float = 0.5, max_false_positive_rate: float | None = None) -> None:
        check_share("threshold", threshold)
        if max_false_positive_rate is not None:
            check_share("max_false_positive_rate", max_false_positive_rate)
        self.threshold = threshold
        self.control = None if max_false_positive_rate is None else FalsePositiveControl(float(max_false_positive_rate))

    @property
    def is_by_margin(self) -> bool:
        """Whether the margin alone decides, as the probability is above one half exactly where it is above 0."""
        return self.threshold == 0.5 and self.control is None

    def changed(
        self, threshold: float | None, rate: float | None, negatives: Tail | None = None, is_new: bool = False
    ) -> Decision:
        """The decision with another threshold, or another limit, whose cut is chosen from what is known of negatives,
        by the limit that there was or else as it is given, unless the model is new; a rate of 1 is no limit.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of its range, or too little is known of negatives.
        """
        decision = Decision(self.threshold if threshold is None else threshold, None if rate == 1.0 else rate)
        if rate is None or (self.control is not None and self.control.rate == rate):
            decision.control = self.control
        elif decision.control is not None and not is_new:
            before = self.control
            if before is None:
                if negatives is None:
                    raise ValueError(NOTHING_KEPT)
                before = decision.control
                before.tail, before.scale = negatives, negatives.scale()
            decision.control = before.at(decision.control.rate)
        return decision

    def allows(self, margins: Any, probabilities: Any) -> Any:
        """Whether the positive label is predicted, of one example or of each of several."""
        positive = probabilities > self.threshold
        return positive if self.control is None else positive & self.control.allows(margins)

    def learn(self, margin: float, flagged: bool, sign: float) -> None:
        """Take note of what was predicted of an example with that sign."""
        if self.control is not None and sign < 0.0:
            self.control.learn(margin, flagged)
            if self.control.tail is not None:
                self.control.tail.learn(margin)

    def in_turn(self, margins: Any, probabilities: Any, signs: Any, n_undecided: int) -> NDArray[np.bool_]:
        """Decide and learn one after the other; the first ones, for which nothing is decided yet, count nothing."""
        if self.control is None:
            return self.allows(margins, probabilities)  # type: ignore[no-any-return]
        positive = np.zeros(len(signs), bool)
        rows = zip(margins.tolist(), probabilities.tolist(), signs.tolist(), strict=True)
        for i, (margin, probability, sign) in enumerate(rows):
            if i >= n_undecided:
                positive[i] = self.allows(margin, probability)
                if sign < 0.0:
                    self.control.learn(margin, bool(positive[i]))
        if self.control.tail is not None:
            self.control.tail.learn_many(margins[n_undecided:][signs[n_undecided:] < 0.0])
        return positive


class ClassDecisions:
    """Which of several classes to predict, if some need more than the largest probability. A class with a decision of
    its own is predicted if that allows it; if several are allowed, the most probable of them. Otherwise the most
    probable of all other classes is predicted.

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
            raise ValueError(
                f"threshold is {threshold!r}; with a max_false_positive_rate by label it must be by label, too"
            )
        threshold = {}
    if not isinstance(rate, Mapping):
        if rate is not None:
            raise ValueError(f"max_false_positive_rate is {rate!r}; with a threshold by label it must be by label, too")
        rate = {}
    labels = dict.fromkeys(map(check_label, [*threshold, *rate]))
    return {label: Decision(threshold.get(label, 0.5), rate.get(label)) for label in labels}


Given = float | Mapping[Label, float] | None


def changed_by_label(
    decisions: Mapping[Label, Decision], threshold: Given, rate: Given, labels: Iterable[Label]
) -> dict[Label, Decision]:
    """The decisions with those changed that are given by label or, as one number, for these labels."""

    def of_label(value: Given) -> Mapping[Label, float]:
        if isinstance(value, Mapping):
            return value
        return {} if value is None else dict.fromkeys(labels, value)

    thresholds, rates = of_label(threshold), of_label(rate)
    changed = dict(decisions)
    for label in dict.fromkeys(map(check_label, [*thresholds, *rates])):
        changed[label] = changed.get(label, Decision()).changed(thresholds.get(label), rates.get(label))
    return changed


def parameters_of_decisions(decisions: Mapping[Label, Decision]) -> dict[str, Any]:
    """What a classifier is made with that has these decisions by label."""
    return {
        "threshold": {label: decision.threshold for label, decision in decisions.items()},
        "max_false_positive_rate": {
            label: decision.control.rate for label, decision in decisions.items() if decision.control is not None
        }
        or None,
    }


def lead(margins: Floats, number: int) -> float:
    """Half of how far a margin is above the largest other one; with two that are opposite the margin itself."""
    others = np.delete(margins, number)
    best = float(others.max(initial=-np.inf))
    return (float(margins[number]) - best) / 2.0 if np.isfinite(best) else float(margins[number])


class Tail:
    """How the margins of negative examples are spread, in bins an eighth as wide as their power of 2; the newest 16,384
    to 32,768 count, as all counts are halved when there are that many.
    """

    MOST = 1 << 15
    OF_SIGN = 256  # bins of margins of one sign
    SMALLEST = 16  # sizes below 2^−16 share a bin, as do those above 2^15

    def __init__(self) -> None:
        self.n = 0.0
        self.counts = [0.0] * (2 * self.OF_SIGN)  # from the lowest to the highest margins

    @classmethod
    def of_mistakes(cls, n: float, sizes: NDArray[np.float64]) -> Tail:
        """Of `n` margins all that is known of those above 0: how many have each of the sizes that mistakes are counted
        by. The others are taken for just below 0.
        """
        tail = cls()
        first = tail.OF_SIGN + 8 * (tail.SMALLEST + SMALLEST)
        tail.counts[first : first + len(sizes)] = sizes.tolist()
        tail.counts[tail.OF_SIGN - 1] = max(n - float(sizes.sum()), 0.0)
        tail.n = sum(tail.counts)
        return tail

    def scale(self) -> float:
        """The mean of those above 0; 1 if there are none."""
        above = self.counts[self.OF_SIGN :]
        total = sum(count * self._edge(self.OF_SIGN + place) for place, count in enumerate(above) if count)
        return total / sum(above) if total else 1.0

    def learn(self, margin: float) -> None:
        mantissa, exponent = math.frexp(margin)
        place = 8 * (exponent + self.SMALLEST) + int(16.0 * abs(mantissa) - 8.0)
        place = min(max(place, 0), self.OF_SIGN - 1) if mantissa else 0
        self.counts[self.OF_SIGN + place if mantissa > 0.0 else self.OF_SIGN - 1 - place] += 1.0
        self.n += 1.0
        if self.n >= self.MOST:
            self.n /= 2.0
            self.counts = [count / 2.0 for count in self.counts]

    def learn_many(self, margins: Floats) -> None:
        """The same of each in turn, only faster where they are many."""
        if len(margins) < FEW:
            for margin in margins.tolist():
                self.learn(margin)
            return
        room = math.ceil(self.MOST - self.n) - 1
        if len(margins) > room:  # they are halved on the way
            self.learn_many(margins[:room])
            self.learn(float(margins[room]))
            self.learn_many(margins[room + 1 :])
            return
        mantissas, exponents = np.frexp(margins)
        places = 8 * (exponents + self.SMALLEST) + (16.0 * np.abs(mantissas) - 8.0).astype(int)
        places = np.where(mantissas == 0.0, 0, np.clip(places, 0, self.OF_SIGN - 1))
        numbers = np.where(mantissas > 0.0, self.OF_SIGN + places, self.OF_SIGN - 1 - places)
        for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            self.counts[number] += float(count)
        self.n += len(margins)

    def cut(self, n: float) -> tuple[float, float]:
        """The lowest edge of a bin above which at most `n` lie, and how many do."""
        above = np.cumsum(self.counts[::-1])
        bins = int(np.searchsorted(above, n, side="right"))  # of the highest ones
        return self._edge(2 * self.OF_SIGN - bins), float(above[bins - 1]) if bins else 0.0

    def _edge(self, number: int) -> float:
        """The lower end of a bin."""
        if number in (0, 2 * self.OF_SIGN):
            return LARGEST_MARGIN if number else -LARGEST_MARGIN
        if number == self.OF_SIGN:
            return 0.0
        place = number - self.OF_SIGN if number > self.OF_SIGN else self.OF_SIGN - number
        exponent, eighth = divmod(place, 8)
        return math.copysign(math.ldexp(1.0 + eighth / 8.0, exponent - self.SMALLEST - 1), number - self.OF_SIGN)

    def get_state(self) -> dict[str, Any]:
        there = {place: count for place, count in enumerate(self.counts) if count}
        return {"n": self.n, "places": [*there], "counts": [*there.values()]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over a state.

        Raises
        ------
        LookupError, TypeError, ValueError
            If it cannot have been reached.
        """
        check_number("n", state["n"], 0.0, self.MOST)
        counts = [0.0] * len(self.counts)
        for place, count in zip(state["places"], state["counts"], strict=True):
            check_integer("place", place, 0, len(counts) - 1)
            check_number("count", count, 0.0, self.MOST)
            counts[place] = float(count)
        if not math.isclose(sum(counts), state["n"], abs_tol=1e-6):
            raise ValueError(f"{state['n']} margins are not those counted")
        self.n, self.counts = float(state["n"]), counts


class FalsePositiveControl:
    """Keeps the share of the negative examples that are flagged at or below a rate, at any time.

    An example is flagged only above a cut-off, which follows a high quantile of the margins of negatives: at each
    negative it moves by step · (1 if the margin is above it, else 0, − the share aimed at), as in adaptive conformal
    inference (Gibbs and Candès 2021). The step is that of Robbins and Monro for a tail that falls as
    exp(−margin/scale), the scale being the mean size of the margins: scale/(rate · n), where n grows up to
    `MEMORY`/rate. So that the promise needs no assumption, nothing is flagged while one more false positive would break
    it.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.n_negatives = 0
        self.n_flagged = 0  # of the negatives
        self.cut = 0.0
        self.scale = 0.0
        self.tail: Tail | None = Tail()  # `None` where it was learned without, by an older release

    def at(self, rate: float) -> FalsePositiveControl:
        """A control of another rate: its cut is the lowest one that would have kept to it, as margins were spread.

        Raises
        ------
        ValueError
            If fewer than 1/rate negative examples were learned.
        """
        if self.tail is None:
            raise ValueError(NOTHING_KEPT)
        if rate * self.tail.n < 1.0:
            raise ValueError(
                f"max_false_positive_rate is {rate:g}, and the model knows {self.tail.n:,.0f} negative examples; it "
                f"takes {math.ceil(1.0 / rate):,} to choose a cut"
            )
        control = FalsePositiveControl(rate)
        control.tail, control.scale = copy.deepcopy(self.tail), self.scale
        n = math.floor(self.tail.n)
        # One more may be flagged then.
        control.cut, above = self.tail.cut(min(AIM * rate * n, rate * (n + 1) - 1.0))
        control.n_negatives, control.n_flagged = n, math.floor(above)
        return control

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

    def get_state(self) -> dict[str, Any]:
        tail = {} if self.tail is None else {"tail": self.tail.get_state()}
        return {
            **tail,
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
        check_integer("n_flagged", state["n_flagged"], 0, state["n_negatives"])  # parts may exceed the rate
        check_number("cut", state["cut"], -LARGEST_MARGIN, LARGEST_MARGIN)
        check_number("scale", state["scale"], 0.0, LARGEST_MARGIN)
        self.tail = Tail() if "tail" in state else None
        if self.tail is not None:
            self.tail.set_state(state["tail"])
        self.n_negatives, self.n_flagged = state["n_negatives"], state["n_flagged"]
        self.cut, self.scale = float(state["cut"]), float(state["scale"])
