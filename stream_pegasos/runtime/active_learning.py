"""Active learning: the choice of messages that people are asked to label, and their labels."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from stream_pegasos.common.checks import check_integer, check_number
from stream_pegasos.common.errors import must_be
from stream_pegasos.features.message import Message, is_blank, message_identity, message_size
from stream_pegasos.learners.predictions import Predictions, uncertainty
from stream_pegasos.runtime.answers import now
from stream_pegasos.runtime.recent import Recent
from stream_pegasos.streams.example import Id, Truth

__all__ = ["ActiveLearning", "Given", "LabelStore", "Waiting", "is_asked"]

FIRST = ("uncertain", "newest", "oldest")  # orders of the queue: the messages asked for first
LONGEST_ASKED = 20_000  # characters; people are not asked to read longer messages
MOST_DONE = 100_000  # messages remembered, so that nobody is asked to label them again
MOST_SCORED = 1_000  # messages scored again at a time
MOST_HELD = 5  # labels that can be taken back; with more, the model would choose messages by outdated scores

_CHARACTERS_A_MESSAGE = 1_000  # allowed on average


@dataclass(slots=True)
class Waiting:
    """A message that waits for a label."""

    number: int  # among all messages that have waited
    x: Message
    uncertainty: float = -1.0  # of the model, from 0 to 1; below all others before the first score
    scored_at: int = -1  # the number of messages the model had learned at the score
    origin: Id | None = None  # the source of the message, such as its id
    time: str | None = None  # its arrival; unknown for messages of a file


@dataclass(slots=True)
class Given:
    """A label that can still be taken back; it is learned when the clock reaches `due`."""

    message: Waiting
    label: Truth
    due: float


class LabelStore(Protocol):
    """A store of labels that people give. If it raises an OSError, the label is not given, or not taken back."""

    def given(self, message: Waiting, label: Truth) -> None:
        """Store a label that a person gave."""

    def taken_back(self, message: Waiting) -> None:
        """Remove the label of a message, because it is taken back."""

    def learned(self, message: Waiting) -> None:
        """Record that the label of a message is learned, and can no longer be taken back."""


def is_asked(x: Message) -> bool:
    """Whether people are asked to label this message: it is neither blank nor too long."""
    return not is_blank(x) and message_size(x) <= LONGEST_ASKED


class ActiveLearning:
    """Messages that wait for people to label them, in bounded memory, and the labels that can still be taken back.

    A message waits only once, even if it comes several times. The newest five labels can be taken back, each for some
    seconds. The model learns a label only after that, because no learner can unlearn.

    The messages whose two most probable labels are closest are asked for first: `uncertainty` is 1 minus the difference
    of their probabilities. The measure is the margin sampling of Scheffer, Decomain and Wrobel, "Active Hidden Markov
    Models for Information Extraction", IDA 2001.

    Parameters
    ----------
    size : int, default 1000
        The largest number of waiting messages, from 0 to 1,000,000; fewer if they have more than 1,000 characters on
        average. The newest push out the oldest. A message of more than 20,000 characters does not wait. With 0, people
        are not asked.
    seconds : float, default 10.0
        The time in which a label can be taken back, from 0 to 3,600 seconds; it ends earlier if five other labels are
        given.
    of_file : bool, default False
        Whether the messages are in a file. Equally uncertain messages are then asked for in the order of the file,
        otherwise the newest first.
    store : LabelStore or None, default None
        The store of the labels that can be taken back; `None` for no store.
    clock : callable, default time.monotonic
        A function that returns the time in seconds.

    Raises
    ------
    TypeError, ValueError
        If `size` or `seconds` is out of range.

    Attributes
    ----------
    n_given : int
        The number of labels given, without those taken back.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.runtime.active_learning import ActiveLearning

    >>> model = TextClassifier()
    >>> model.learn_many(["win a prize", "lunch at noon"] * 20, ["spam", "ham"] * 20)
    >>> active_learning = ActiveLearning(size=100, seconds=0)
    >>> active_learning.add(["a prize to win", "lunch, or a prize?", "at noon"])
    >>> stale = active_learning.stale(model.n_learned)
    >>> active_learning.score(stale, model.predictions([message.x for message in stale]), model.n_learned)
    >>> [asked, *_] = active_learning.queue(limit=3)
    >>> asked.x
    'lunch, or a prize?'
    >>> active_learning.give(asked.number, "spam")
    >>> [(given.message.x, given.label) for given in active_learning.due()]
    [('lunch, or a prize?', 'spam')]

    """

    def __init__(
        self,
        size: int = 1_000,
        seconds: float = 10.0,
        of_file: bool = False,
        store: LabelStore | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        check_integer("the number of messages that wait", size, 0, 1_000_000)
        check_number("the seconds to take a label back", seconds, 0.0, 3_600.0)
        self.size, self.seconds, self.of_file, self.store = size, seconds, of_file, store
        self.n_given = 0
        self._clock = clock
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Waiting] = {}  # by number, the oldest first
        self._number_by_message: dict[Message, int] = {}
        self._n_characters = 0
        # Messages to be put into `_waiting`, each with its origin and its arrival.
        self._new: deque[tuple[Message, Id | None, str | None]] = deque()
        self._n_new = 0  # the number of their characters
        self._given: dict[int, Given] = {}  # by number, in the order of giving
        self._done: Recent[int, None] = Recent(MOST_DONE)  # the identities of messages

    def __len__(self) -> int:
        self._settle()
        return len(self._waiting)

    def add(self, X: Sequence[Message], origins: Sequence[Id | None] = ()) -> None:
        """Let messages without a label wait. A message that already waits becomes the newest.

        Parameters
        ----------
        X : sequence of str or Fields
            The messages.
        origins : sequence of int, str or None, default ()
            The source of each message, such as its id.
        """
        if not self.size:
            return
        time = None if self.of_file else now()
        self._new.extend((x, origin, time) for x, origin in zip(X, origins or [None] * len(X), strict=True))
        self._n_new += sum(map(message_size, X))
        most = self.size * _CHARACTERS_A_MESSAGE
        while len(self._new) > self.size or self._n_new > most:
            self._n_new -= message_size(self._new.popleft()[0])

    def has_room(self) -> bool:
        """Whether the next message would not push out another one."""
        self._settle()
        most = self.size * _CHARACTERS_A_MESSAGE - LONGEST_ASKED
        return len(self._waiting) < self.size and self._n_characters <= most

    def drop(self, X: Sequence[Message], origins: Sequence[Id | None] = ()) -> None:
        """Never ask for these messages: their labels came from elsewhere. Labels that people gave them, and that can
        still be taken back, are dropped, unless the store fails.
        """
        if not self.size and not self._given:
            return
        self._settle()
        for given_label in self.superseded(X, origins):
            if given_label is not None and given_label.message.number in self._given:
                with suppress(OSError):
                    self._discard(given_label.message)
        for x in X:
            self._close(x)

    def superseded(self, X: Sequence[Message], origins: Sequence[Id | None] = ()) -> list[Given | None]:
        """The label of each message that a person gave and can still take back, if any. It is found by the message or
        its origin.
        """
        if not self._given:
            return [None] * len(X)
        by_message = {given_label.message.x: given_label for given_label in self._given.values()}
        by_origin = self._group_by_origin(given_label.message for given_label in self._given.values())
        given_to: dict[Id | None, Given | None] = {
            origin: self._given[message.number] for origin, message in by_origin.items()
        }
        pairs = zip(X, origins or itertools.repeat(None, len(X)), strict=True)
        return [given_to.get(origin, by_message.get(x)) for x, origin in pairs]

    def messages_from(self, origins: Iterable[Id | None]) -> list[Message | None]:
        """The newest message of each origin that waits for its label, or whose label can still be taken back."""
        self._settle()
        given_label = [given_label.message for given_label in self._given.values()]
        from_origin = self._group_by_origin([*self._waiting.values(), *given_label])
        return [from_origin[origin].x if origin in from_origin else None for origin in origins]

    def _group_by_origin(self, messages: Iterable[Waiting]) -> dict[Id, Waiting]:
        return {message.origin: message for message in messages if message.origin is not None}

    def stale(self, n_learned: int) -> list[Waiting]:
        """The messages to score again after the model has learned `n_learned` messages, at most 1,000: those with the
        largest uncertainty so far, then those with the oldest scores.
        """
        self._settle()
        old = [message for message in self._waiting.values() if message.scored_at != n_learned]
        if len(old) <= MOST_SCORED:
            return old
        head = [message for message in self.queue(MOST_SCORED // 10, "uncertain") if message.scored_at != n_learned]
        chosen = {message.number for message in head}
        longest_ago = heapq.nsmallest(MOST_SCORED, old, key=lambda message: message.scored_at)
        candidates = (message for message in longest_ago if message.number not in chosen)
        return [*head, *itertools.islice(candidates, MOST_SCORED - len(head))]

    def score(self, messages: Sequence[Waiting], predictions: Predictions, n_learned: int) -> None:
        """Score messages by the predictions of a model that has learned `n_learned` messages."""
        for message, value in zip(messages, uncertainty(predictions).tolist(), strict=True):
            message.uncertainty, message.scored_at = value, n_learned

    def queue(self, limit: int, first: str = "uncertain", also: int | None = None) -> list[Waiting]:
        """The messages to ask for next.

        Parameters
        ----------
        limit : int
            The largest number of messages.
        first : {"uncertain", "newest", "oldest"}, default "uncertain"
            The order: the most `"uncertain"`, the `"newest"` or the `"oldest"` first.
        also : int or None, default None
            The number of a message to add at the end, if it waits and is not in the queue.

        Raises
        ------
        ValueError
            If `first` is another order.
        """
        if first not in FIRST:
            raise ValueError(must_be("first", f"one of {', '.join(FIRST)}", first))
        self._settle()
        sign = 1 if first == "oldest" or (first == "uncertain" and self.of_file) else -1

        def place(message: Waiting) -> tuple[float, int]:
            return (-message.uncertainty if first == "uncertain" else 0.0), sign * message.number

        chosen = heapq.nsmallest(limit, self._waiting.values(), key=place)
        if also in self._waiting and all(message.number != also for message in chosen):
            chosen.append(self._waiting[also])
        return chosen

    def get_message(self, number: int) -> Message:
        return self._message(number).x

    def give(self, number: int, label: Truth) -> None:
        """Give a message its label, which is learned when it is due.

        Raises
        ------
        LookupError
            If the message does not wait for a label.
        OSError
            If the store fails; the message still waits.
        """
        self._give(self._message(number), label)

    def give_to(self, x: Message, label: Truth, origin: Id | None = None) -> int:
        """Give a label to a message, even if it does not wait. It replaces a label that can still be taken back.

        Parameters
        ----------
        x : str or Fields
            The message.
        label : bool, int, str or tuple of labels
            Its label.
        origin : int or str or None, default None
            The source of the message, such as its id.

        Returns
        -------
        int
            The number of the message, to take back the label.

        Raises
        ------
        OSError
            If the store fails; the label is not given.
        """
        (given_label,) = self.superseded([x], [origin])
        if given_label is not None:
            self.take_back(given_label.message.number)
        self._settle()
        message = self._waiting.get(self._number_by_message.get(x, 0))
        if message is None:
            message = Waiting(next(self._numbers), x, origin=origin)
        self._give(message, label)
        return message.number

    def _give(self, message: Waiting, label: Truth) -> None:
        if self.store is not None:
            self.store.given(message, label)
        self._given[message.number] = Given(message, label, self._clock() + self.seconds)
        self.n_given += 1
        self._close(message.x)

    def skip(self, number: int) -> None:
        """Do not ask for a message again.

        Raises
        ------
        LookupError
            If the message does not wait for a label.
        """
        self._close(self._message(number).x)

    def take_back(self, number: int) -> None:
        """Take back a label that is not learned yet; the message waits again.

        Raises
        ------
        LookupError
            If the message has no label that can be taken back.
        OSError
            If the store fails; the label stays.
        """
        if number not in self._given:
            raise LookupError(f"message {number} has no label that can be taken back; what is learned stays learned")
        self._settle()
        message = self._given[number].message
        self._discard(message)
        self._done.pop(message_identity(message.x), None)
        self._put(message)
        self._make_room()

    def given(self) -> list[tuple[Given, float]]:
        """The labels that can be taken back, the newest first, each with its remaining seconds."""
        now = self._clock()
        return [(given_label, max(0.0, given_label.due - now)) for given_label in reversed(self._given.values())]

    def due(self, at_once: bool = False) -> list[Given]:
        """Remove and return the labels to learn now, in the order in which they were given.

        Parameters
        ----------
        at_once : bool, default False
            Whether to return all labels, e.g. at the end.
        """
        now = self._clock()
        is_late = len(self._given) if at_once else max(0, len(self._given) - MOST_HELD)
        due = [
            given_label
            for place, given_label in enumerate(self._given.values())
            if place < is_late or given_label.due <= now
        ]
        for given_label in due:
            del self._given[given_label.message.number]
            if self.store is not None:
                self.store.learned(given_label.message)
        return due

    def hold(self, given_labels: Sequence[Given]) -> None:
        """Put back labels that were due but could not be learned, before labels that were given later."""
        self._given = {**{given_label.message.number: given_label for given_label in given_labels}, **self._given}

    def _close(self, x: Message) -> None:
        """Stop asking for a message."""
        self._remove(x)
        self._done[message_identity(x)] = None

    def _discard(self, message: Waiting) -> None:
        if self.store is not None:
            self.store.taken_back(message)
        del self._given[message.number]
        self.n_given -= 1

    def _message(self, number: int) -> Waiting:
        self._settle()
        if number not in self._waiting:
            raise LookupError(f"message {number} does not wait for a label, or no longer")
        return self._waiting[number]

    def _settle(self) -> None:
        """Put new messages into `_waiting`. This is delayed until they are needed: most are pushed out before."""
        if not self._new:
            return
        for x, origin, time in self._new:
            self._remove(x)
            if is_asked(x) and message_identity(x) not in self._done:
                self._put(Waiting(next(self._numbers), x, origin=origin, time=time))
        self._new.clear()
        self._n_new = 0
        self._make_room()

    def _put(self, message: Waiting) -> None:
        self._remove(message.x)
        self._waiting[message.number] = message
        self._number_by_message[message.x] = message.number
        self._n_characters += message_size(message.x)

    def _remove(self, x: Message) -> None:
        number = self._number_by_message.pop(x, None)
        if number is not None:
            del self._waiting[number]
            self._n_characters -= message_size(x)

    def _make_room(self) -> None:
        while len(self._waiting) > self.size or self._n_characters > self.size * _CHARACTERS_A_MESSAGE:
            self._remove(next(iter(self._waiting.values())).x)
