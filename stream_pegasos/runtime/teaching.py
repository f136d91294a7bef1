"""A teacher that works beside the learner; the learner never waits for it."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

from stream_pegasos.common.checks import check_integer
from stream_pegasos.common.locks import new_condition
from stream_pegasos.common.servers import AT_ONCE, ServerAwayError
from stream_pegasos.features.message import Message, is_blank, make_message, message_identity, shown_message
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.predictions import Predictions
from stream_pegasos.runtime.answers import shown
from stream_pegasos.runtime.questions import Agreement, Questions
from stream_pegasos.runtime.recent import Recent
from stream_pegasos.runtime.teacher import NoLabelError, Teacher, TeacherLabel
from stream_pegasos.streams.example import Id, Truth

__all__ = ["Lesson", "Teaching"]

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before a teacher that failed is asked again, doubled each time
MOST_TRIES = 3  # questions about one message whose answers were no labels, or refusals
MOST_REMEMBERED = 10_000  # messages labelled by the teacher
AWAY, NO_LABEL, REFUSED = "away", "no label", "refused"  # kinds of failures


@dataclass(slots=True)
class Question:
    """A message that waits for the teacher."""

    number: int
    x: Message
    id: Id
    truth: Truth | None = None  # the label that a person gave the message meanwhile
    n_tries: int = 0
    said: TeacherLabel | None = None


class Lesson(NamedTuple):
    """A message with the label that the teacher gave, and the id for learning it."""

    x: Message
    label: Label
    weight: float
    id: Id


class Teaching:
    """Asks a teacher about messages, in separate threads, and keeps its answers until the learner takes them.

    A message is asked about once. At most `size` messages wait; the oldest are dropped first. If the teacher is away,
    the question is repeated after a second, later after a minute. If an answer is no label, or a refusal, there are
    three attempts. Each fault is counted, and logged once until the teacher answers again.

    If a person labels a message while it waits, the teacher's label is not learned. Messages labelled by both show how
    good the teacher is, and this gives the weight of its lessons.

    `shown` gives the text of a message for the teacher.
    """

    def __init__(
        self,
        teacher: Teacher,
        questions: Questions,
        on_event: Callable[[str], None],
        shown: Callable[[Message], str] = shown_message,
        size: int = 1_000,
    ) -> None:
        check_integer("the number of messages that wait for the teacher", size, 1, 1_000_000)
        self._teacher, self.questions, self._on_event, self._shown = teacher, questions, on_event, shown
        self.agreement = Agreement(teacher.labels)
        self.n_asked = self.n_taught = self.n_left_out = self.n_dropped = 0
        self.faults = Counter[str]()
        self.error: str | None = None  # the current failure
        self._size, self._numbers = size, itertools.count(1)
        self._open: OrderedDict[Id, Question] = OrderedDict()  # also questions that are answered and not taken yet
        self._waiting: deque[Question] = deque()
        self._answered: list[Question] = []
        self._said: Recent[Id, Label] = Recent(MOST_REMEMBERED)
        self._told: set[str] = set()
        self._n_asking, self._pause, self._until = 0, 0.0, 0.0
        self._changed = new_condition()
        self._is_over = False

    def start(self) -> None:
        """Begin to ask."""
        self._is_over = False
        for _ in range(AT_ONCE):
            threading.Thread(target=self._work, name="teacher", daemon=True).start()

    def close(self) -> None:
        """Stop asking; pending answers are not awaited."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    # The learner's side

    @staticmethod
    def id_for(x: Message, id: Id | None) -> Id:
        """The id under which a message is taught; without an id it is made from the message's content."""
        return f"teacher:{message_identity(x):016x}" if id is None else id

    def ids_for(self, X: Sequence[Message], ids: Sequence[Id | None]) -> list[Id | None]:
        """The ids for learning messages that a person labels, to correct the lessons of the teacher."""
        with self._changed:
            return [
                own_id if id is None and (own_id := self.id_for(x, id)) in self._said else id
                for x, id in zip(X, ids, strict=True)
            ]

    def ask(self, X: Sequence[Message], ids: Sequence[Id | None], predictions: Predictions) -> None:
        """Ask about some of these messages, which were only predicted."""
        with self._changed:
            for x, id, choose in zip(X, ids, self.questions.choices(predictions), strict=True):
                own_id = self.id_for(x, id)
                if not is_blank(x) and not self._knows(own_id) and choose():
                    self._put(x, own_id)

    def compare(self, X: Sequence[Message], ids: Sequence[Id | None], labels: Iterable[Truth]) -> None:
        """Compare labels of a person with those of the teacher, and ask the teacher about some more messages."""
        with self._changed:
            for x, id, label in zip(X, ids, labels, strict=True):
                own_id = self.id_for(x, id)
                if own_id in self._open:
                    self._open[own_id].truth = label
                elif own_id in self._said:
                    self.agreement.add(self._said.pop(own_id), label)
                elif not is_blank(x) and self.questions.choose_check():
                    self._put(x, own_id, label)

    def _knows(self, id: Id) -> bool:
        return id in self._open or id in self._said

    def _put(self, x: Message, id: Id, truth: Truth | None = None) -> None:
        question = Question(next(self._numbers), x, id, truth)
        self._open[id] = question
        self._waiting.append(question)
        self.n_asked += 1
        if len(self._open) > self._size:
            del self._open[self._waiting.popleft().id]
            self.n_dropped += 1
        self._changed.notify_all()

    def lessons(self) -> list[Lesson]:
        """The teacher's new lessons, in the order of the questions; messages labelled by a person are only compared."""
        with self._changed:
            answered, self._answered, lessons = (
                sorted(self._answered, key=lambda open_question: open_question.number),
                [],
                [],
            )
            for question in answered:
                assert question.said is not None
                label, probability = question.said
                self._open.pop(question.id, None)
                if question.truth is not None:
                    self.agreement.add(label, question.truth)
                    continue
                self._said[question.id] = label
                weight = self.agreement.weight(label, probability)
                if weight > 0.0:
                    lessons.append(Lesson(question.x, label, weight, question.id))
                    self.n_taught += 1
                else:
                    self.n_left_out += 1
            return lessons

    def give_back(self, lessons: Iterable[Lesson]) -> None:
        """Take back lessons that could not be learned now."""
        with self._changed:
            for x, label, _, id in lessons:
                question = Question(0, x, id, said=TeacherLabel(label))
                self._said.pop(id, None)
                self._open[id] = question
                self._answered.append(question)
                self.n_taught -= 1

    @property
    def is_busy(self) -> bool:
        """Whether answers are pending, from a teacher that has not failed for a minute."""
        with self._changed:
            return self._pause < LONGEST_PAUSE and bool(self._waiting or self._n_asking)

    # The teacher's side

    def _work(self) -> None:
        while (question := self._next()) is not None:
            try:
                teacher_label = self._teacher.label_one(self._shown(question.x))
            except Exception as error:  # a server may answer anything, so any kind
                self._failed(question, error)
            else:
                self._came(question, teacher_label)

    def _next(self) -> Question | None:
        """Wait for the next question; `None` at the end. If the teacher fails, it gets one question at a time."""
        with self._changed:
            while not self._is_over:
                left = self._until - monotonic()
                if self._waiting and left <= 0.0 and not (self._pause and self._n_asking):
                    self._n_asking += 1
                    return self._waiting.popleft()
                self._changed.wait(left if left > 0.0 else None)
            return None

    def _came(self, question: Question, teacher_label: TeacherLabel) -> None:
        with self._changed:
            self._n_asking -= 1
            self._pause = 0.0
            question.said = teacher_label
            self._answered.append(question)
            is_again, self.error = bool(self._told), None
            self._told.clear()
            self._changed.notify_all()
        if is_again:
            self._on_event("the teacher answers again")

    def _failed(self, question: Question, error: Exception) -> None:
        kind = AWAY if isinstance(error, ServerAwayError) else NO_LABEL if isinstance(error, NoLabelError) else REFUSED
        with self._changed:
            self._n_asking -= 1
            self.faults[kind] += 1
            if kind == AWAY:
                self._waiting.appendleft(question)
            else:
                question.n_tries += 1
                if question.n_tries < MOST_TRIES:
                    self._waiting.append(question)
                else:
                    del self._open[question.id]
                    self.n_dropped += 1
            if kind != NO_LABEL:
                self._pause = min(max(2.0 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
                self._until = monotonic() + self._pause
                self.error = str(error)
            is_new = kind not in self._told
            self._told.add(kind)
            self._changed.notify_all()
        if is_new:
            self._on_event(f"the teacher gives no labels now: {error or type(error).__name__}; it will be asked again")

    # The view and the state.

    def view(self) -> dict[str, Any]:
        """The state, as values for JSON."""
        with self._changed:
            return {
                "url": self._teacher.url,
                "share": self.questions.share,
                "per_day": self.questions.per_day,
                "n_of_day": self.questions.n_of_day,
                "n_asked": self.n_asked,
                "n_taught": self.n_taught,
                "n_left_out": self.n_left_out,
                "n_dropped": self.n_dropped,
                "n_waiting": len(self._waiting) + self._n_asking,
                "n_tokens": self._teacher.n_tokens,
                "faults": dict(self.faults),
                "error": self.error,
                "agreement": [
                    {"label": shown(label), "n": n, "share": agreed / n if n else None}
                    for label, (agreed, n) in self.agreement.counts.items()
                ],
            }

    def get_state(self, keeps_messages: bool = False) -> dict[str, Any]:
        """The state to save, including waiting messages if `keeps_messages`."""
        with self._changed:
            return {
                "questions": self.questions.get_state(),
                "agreement": [[label, *count] for label, count in self.agreement.counts.items()],
                "counts": [self.n_asked, self.n_taught, self.n_left_out, self.n_dropped, self._teacher.n_tokens],
                "faults": dict(self.faults),
                "said": [[*item] for item in self._said.items()],
                "open": [[question.x, question.id, question.truth] for question in self._open.values()]
                if keeps_messages
                else [],
            }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `get_state`, before `start`; a ValueError if it is not valid."""
        if not state:
            return
        try:
            self.questions.set_state(state["questions"])
            counts = {label: [int(agreed), int(n)] for label, agreed, n in state["agreement"]}
            self.agreement.counts |= {label: counts[label] for label in self._teacher.labels if label in counts}
            counted = [int(n) for n in state["counts"]]
            self.n_asked, self.n_taught, self.n_left_out, self.n_dropped, self._teacher.n_tokens = counted
            self.faults = Counter({str(kind): int(n) for kind, n in state["faults"].items()})
            for id, label in state["said"]:
                self._said[id] = label
            for x, id, truth in state["open"]:
                with self._changed:
                    self._put(make_message(x), id, truth)
                self.n_asked -= 1
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the state must be one of a teacher's questions ({error})") from None
