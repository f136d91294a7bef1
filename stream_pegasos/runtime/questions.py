"""The choice of messages that a teacher is asked about, and the trust in its answers."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from time import time
from typing import Any

from stream_pegasos.common.checks import check_integer, check_number
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.predictions import Predictions, uncertainty
from stream_pegasos.streams.example import Truth

__all__ = ["Agreement", "Questions"]

SPAN, DAY = 1_000, 86_400.0  # the number of consecutive messages to which the share applies; seconds
STEP = 0.02  # of the threshold, at each message
MORE = 0.05  # how much the share above the threshold exceeds the allowed one: room is used in 20 messages
AT_RANDOM = 0.1  # share of random questions
PROBATION = 30  # the first messages labelled by people: a teacher is asked about all, later about a share of them
# The prior of a teacher: its accuracy, and the number of messages that this prior counts as.
ACCURACY, MESSAGES = 0.9, 10.0


class Quota:
    """A limit of the number of questions in any span of messages or seconds."""

    def __init__(self, most: int, span: float) -> None:
        self._span = span
        self.places: deque[float] = deque(maxlen=most)

    def has_room(self, place: float) -> bool:
        return len(self.places) < (self.places.maxlen or 0) or place - self.places[0] >= self._span

    def count(self, place: float) -> int:
        """The number of questions in the span that ends here."""
        return sum(place - number < self._span for number in [*self.places])


class Questions:
    """Chooses the messages that a teacher is asked about: uncertain messages, and a random tenth.

    A message is chosen if its uncertainty (1 minus the difference of the two largest probabilities) reaches a
    threshold, and there is room: any 1,000 messages have at most as many questions as the share allows. The threshold
    rises by 0.02 × (1 − r) with each message that reaches it and falls by 0.02 × r with each other message, so that a
    share r of the messages reaches it. r is 0.05 larger than the share, so that free room is soon used.

    While the model does not know all labels, each message is chosen, up to half of the questions that 1,000 messages
    allow. The other half becomes free evenly over the first 1,000 messages.

    Parameters
    ----------
    share : float, default 0.05
        The largest share of any 1,000 messages, from 0.001 to 1.
    per_day : int or None, default None
        The largest number of questions in any 24 hours, from 1 to 1,000,000; `None` for no limit.
    labels : iterable of labels, default ()
        The labels that the model should learn.
    clock : callable, default time.time
        A function that returns the time in seconds.

    Raises
    ------
    TypeError, ValueError
        If `share` or `per_day` is out of range.

    Examples
    --------
    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.runtime.questions import Questions
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
        """The number of questions in the last 24 hours; `None` if they are not limited."""
        return None if self._of_day is None else self._of_day.count(self._clock())

    def choose(self, predictions: Predictions) -> list[bool]:
        """Whether to ask about each message, by its prediction. All messages must be passed, in order."""
        return [asks() for asks in self.choices(predictions)]

    def choices(self, predictions: Predictions) -> Iterator[Callable[[], bool]]:
        """Like `choose`, if some messages may be skipped: yield a function for each message, to be called in order for
        messages that are not skipped.
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
        """Whether to ask about a message that a person labelled, to measure the teacher."""
        asks = self._next() and (self._n_checks < PROBATION or self._chance() < self.share)
        self._n_checks += asks
        return self._take(asks)

    def _next(self) -> bool:
        """Whether there is room for a question about the next message."""
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
        """A pseudo-random number from 0 to 1 for this message, the same in every process."""
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
        """Restore the state from `get_state`; a ValueError, TypeError or LookupError if it is not valid."""
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
    """How often the teacher and people gave a message the same label, by the label of the teacher."""

    def __init__(self, labels: Sequence[Label]) -> None:
        self.counts: dict[Label, list[int]] = {label: [0, 0] for label in labels}  # agreements, comparisons

    @property
    def n(self) -> int:
        return sum(compared for _, compared in self.counts.values())

    def add(self, label: Label, truth: Truth) -> None:
        count = self.counts.setdefault(label, [0, 0])
        count[0] += label == truth
        count[1] += 1

    def accuracy(self, label: Label) -> float:
        """The accuracy of the teacher for this label. It begins with 0.9, which counts as 10 messages; the mean of all
        labels counts as 10 messages of each label.
        """
        n_agreed = sum(agreed for agreed, _ in self.counts.values())
        mean = (n_agreed + ACCURACY * MESSAGES) / (self.n + MESSAGES)
        agreed, compared = self.counts.get(label, (0, 0))
        return (agreed + mean * MESSAGES) / (compared + MESSAGES)

    def weight(self, label: Label, probability: float | None = None) -> float:
        """The weight of a lesson: 1 if the label is certain, 0 if it is as good as chance."""
        right = min(self.accuracy(label), 1.0 if probability is None else probability)
        chance = 1.0 / len(self.counts)
        return max(0.0, (right - chance) / (1.0 - chance))
