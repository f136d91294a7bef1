"""Which messages a teacher is asked about, and how far its answers are to be trusted."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from time import time
from typing import Any

from stream_pegasos.common.checks import check_integer, check_number
from stream_pegasos.learners.label_meaning import Label
from stream_pegasos.learners.predictions import Predictions, uncertainty
from stream_pegasos.streams.example import Truth

__all__ = ["Agreement", "Questions"]

SPAN, DAY = 1_000, 86_400.0  # messages over any of which the share is kept; seconds
STEP = 0.02  # of the threshold, at each message
MORE = 0.05  # of the messages reach the threshold than the share allows, so that room waits for 20 messages
AT_RANDOM = 0.1  # share of the questions
PROBATION = 30  # messages that people label, about each of which a teacher is asked before it is for a share of them
# What is taken for granted of a teacher: right nine times in ten, as if that many messages had shown it.
ACCURACY, MESSAGES = 0.9, 10.0


class Quota:
    """At most so many in any span, of messages or seconds."""

    def __init__(self, most: int, span: float) -> None:
        self._span = span
        self.places: deque[float] = deque(maxlen=most)

    def has_room(self, place: float) -> bool:
        return len(self.places) < (self.places.maxlen or 0) or place - self.places[0] >= self._span

    def count(self, place: float) -> int:
        """How many are in the span that ends here."""
        return sum(place - number < self._span for number in [*self.places])


class Questions:
    """Chooses the messages that a teacher is asked about: those of which the model is unsure, and a random tenth.

    A message is asked about if its uncertainty (1 minus the difference of the two largest probabilities) reaches a
    threshold, and there is room: no 1,000 messages have more questions than the share allows. The threshold moves up by
    0.02 × (1 − r) with each message that reaches it and down by 0.02 × r with each other one, so that a share r of the
    messages reach it. r is 0.05 more than the share, so that room is taken soon after it comes.

    While the model does not know all labels, each message is asked about, up to half of what 1,000 messages allow. The
    other half of it comes evenly over the first 1,000.

    Parameters
    ----------
    share
        The largest share of any 1,000 messages, from 0.001 to 1.
    per_day
        How many questions at most in any 24 hours, from 1 to 1,000,000; `None` for no such limit.
    labels
        The labels that the model is to know.
    clock
        Returns the time in seconds.

    Raises
    ------
    TypeError, ValueError
        If `share` or `per_day` is out of range.

    Examples
    --------
    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.operation.questions import Questions
    >>> model, questions, asked = TextClassifier(), Questions(share=0.1, labels=["spam", "ham"]), 0
    >>> for text in ["win a prize", "lunch at noon"] * 500:
    ...     (ask,) = questions.choose(model.predictions([text]))
    ...     if ask:  # a Teacher, or a person
    ...         model.learn_one(text, "spam" if "prize" in text else "ham")
    ...         asked += 1
    >>> asked <= 100, model.predict_one("a prize")
    (True, 'spam')

    """

    def __init__(
        self,
        share: float = 0.05,
        per_day: int | None = None,
        labels: Iterable[Label] = (),
        clock: Callable[[], float] = time,
    ) -> None:
        check_number("share", share, 0.001, 1.0)
        if per_day is not None:
            check_integer("per_day", per_day, 1, 1_000_000)
        self.share, self.per_day = share, per_day
        self._labels, self._clock = frozenset(labels), clock
        self.n_messages = 0
        self._threshold, self._n_first, self._n_checks = 0.5 * (1.0 - share), 0, 0
        most = int(share * SPAN + 1e-9)
        self._most_first = most // 2
        self._of_span = Quota(most, SPAN)
        rest = most - self._most_first
        self._of_span.places.extend(SPAN * (each / rest - 1.0) for each in range(rest))  # as if these had been asked
        self._of_day = None if per_day is None else Quota(per_day, DAY)

    @property
    def n_of_day(self) -> int | None:
        """How many questions there were in the last 24 hours, if these are limited."""
        return None if self._of_day is None else self._of_day.count(self._clock())

    def choose(self, predictions: Predictions) -> list[bool]:
        """Whether to ask about each message, given its prediction. All messages are to be given, in their order."""
        return [asks() for asks in self.choices(predictions)]

    def choices(self, predictions: Predictions) -> Iterator[Callable[[], bool]]:
        """As `choose`, for messages of which some are passed over: a function for each, which is called in their order
        for those that are not.
        """
        is_new = len(predictions) > 0 and not self._labels <= {*predictions.classes}
        return (partial(self._choose, value, is_new) for value in uncertainty(predictions).tolist())

    def _choose(self, uncertainty: float, is_new: bool) -> bool:
        has_room = self._next()
        is_first = is_new and has_room and self._n_first < self._most_first
        reaches = uncertainty >= self._threshold
        if is_first:
            self._n_first += 1
        else:
            rate = min(1.0, self.share + MORE)
            self._threshold = min(1.0, max(0.0, self._threshold + STEP * (reaches - rate)))
        return self._take(has_room and (is_first or reaches or self._chance() < AT_RANDOM * self.share))

    def choose_check(self) -> bool:
        """Whether to ask about a message that a person labelled, to see how good the teacher is."""
        asks = self._next() and (self._n_checks < PROBATION or self._chance() < self.share)
        self._n_checks += asks
        return self._take(asks)

    def _next(self) -> bool:
        """Whether anything may be asked about the next message."""
        self.n_messages += 1
        is_free = self._of_span.has_room(self.n_messages)
        return is_free and (self._of_day is None or self._of_day.has_room(self._clock()))

    def _take(self, asks: bool) -> bool:
        if asks:
            self._of_span.places.append(self.n_messages)
            if self._of_day is not None:
                self._of_day.places.append(self._clock())
        return asks

    def _chance(self) -> float:
        """A number from 0 to 1 for this message, the same in every process."""
        return int.from_bytes(blake2b(b"%d" % self.n_messages, digest_size=6).digest()) / 2.0**48

    def get_state(self) -> dict[str, Any]:
        return {
            "n": self.n_messages,
            "n_first": self._n_first,
            "n_checks": self._n_checks,
            "threshold": self._threshold,
            "places": [*self._of_span.places],
            "times": [*self._of_day.places] if self._of_day is not None else [],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `get_state` gave; a ValueError, TypeError or LookupError says that it is no such state."""
        for name in ("n", "n_first", "n_checks"):
            check_integer(name, state[name], 0, 1 << 53)
        check_number("threshold", state["threshold"], 0.0, 1.0)
        for number in itertools.chain(state["places"], state["times"]):
            check_number("place", number, -SPAN, 1e300)
        self.n_messages, self._threshold = state["n"], state["threshold"]
        self._n_first, self._n_checks = state["n_first"], state["n_checks"]
        self._of_span.places.clear()
        self._of_span.places.extend(state["places"])
        if self._of_day is not None:
            self._of_day.places.extend(state["times"])


class Agreement:
    """How often a teacher and people gave one message the same label, by the label that the teacher gave."""

    def __init__(self, labels: Sequence[Label]) -> None:
        self.counts: dict[Label, list[int]] = {label: [0, 0] for label in labels}  # agreed, compared

    @property
    def n(self) -> int:
        return sum(compared for _, compared in self.counts.values())

    def add(self, label: Label, truth: Truth) -> None:
        count = self.counts.setdefault(label, [0, 0])
        count[0] += label == truth
        count[1] += 1

    def accuracy(self, label: Label) -> float:
        """How often the teacher is right where it gives this label: 0.9 to begin with, which counts as 10 messages;
        the mean of all labels counts as 10 messages of each.
        """
        n_agreed = sum(agreed for agreed, _ in self.counts.values())
        mean = (n_agreed + ACCURACY * MESSAGES) / (self.n + MESSAGES)
        agreed, compared = self.counts.get(label, (0, 0))
        return (agreed + mean * MESSAGES) / (compared + MESSAGES)

    def weight(self, label: Label, probability: float | None = None) -> float:
        """How much a lesson weighs: 1 where the label is certain, 0 where it is as good as chance."""
        right = min(self.accuracy(label), 1.0 if probability is None else probability)
        chance = 1.0 / len(self.counts)
        return max(0.0, (right - chance) / (1.0 - chance))
