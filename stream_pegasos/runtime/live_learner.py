"""A text model that predicts and learns, with its monitor, checkpoints, journal and limits."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from stream_pegasos.blocks.blockwise import encode_ahead, get_weight, predict_block
from stream_pegasos.blocks.predicted import Labelled
from stream_pegasos.features.message import Message, make_message, message_size
from stream_pegasos.learners.class_weights import plain_weight
from stream_pegasos.learners.descriptions import Descriptions
from stream_pegasos.learners.label_policy import Label, LabelPolicy
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.answers import shown_answer
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.durable_learning import DurableLearning
from stream_pegasos.runtime.explaining import explained
from stream_pegasos.runtime.journal import Entry
from stream_pegasos.runtime.label_checks import LabelChecks
from stream_pegasos.runtime.learned_ids import is_same
from stream_pegasos.runtime.limits import Limits
from stream_pegasos.runtime.micro_batching import A_MESSAGE, SLICE, EncodingQueue, MicroBatching, give_way, slices
from stream_pegasos.runtime.monitor import Monitor
from stream_pegasos.runtime.parameters import made_with
from stream_pegasos.runtime.refusals import Refusals
from stream_pegasos.runtime.teaching import Lesson, Teaching
from stream_pegasos.streams import Answer
from stream_pegasos.streams.example import Id, Truth

if TYPE_CHECKING:
    from stream_pegasos.learners.text import TextClassifier

log = logging.getLogger(__name__)


class EndingError(Exception):
    """Learning has ended."""


class LiveLearner:
    """A `TextClassifier` that predicts and learns, with its monitor, its checkpoints, its journal and its limits.

    The progress is the state in the checkpoint beside the model. `begun_with` identifies the model if there is no
    checkpoint; `allow_gap` continues if the journal lacks messages: see `Journal`. With checkpoints, the journal is the
    store of `active_learning`. With `sync`, the answer to a request waits until the journal is flushed to the disk.

    If `labels` is given, only these may be learned from now on. In it, true, `"true"` and 1 are the same, and must be
    written as the model knows it.

    `teaching` asks a teacher about messages that are predicted; `learn_taught` learns the answers.
    """

    def __init__(
        self,
        model: TextClassifier,
        checkpoints: Checkpoints | None = None,
        progress: dict[str, Any] | None = None,
        limits: Limits | None = None,
        token: str | None = None,
        id_window: int = 100_000,
        active_learning: ActiveLearning | None = None,
        sync: bool = False,
        begun_with: str = "a new model",
        labels: Sequence[Label] | None = None,
        allow_gap: bool = False,
        teaching: Teaching | None = None,
    ) -> None:
        self.teaching = teaching
        self.active_learning = ActiveLearning(size=0) if active_learning is None else active_learning
        self.checkpoints = checkpoints
        self.limits = limits or Limits()
        self.token = token
        self.monitor = Monitor(model)
        self.labels = LabelChecks(self.monitor, labels, self.limits.classes)
        self._lock = self.monitor.lock  # between the event loop and the threads of the checkpoints and the journal
        self.learning_lock, self._syncing = asyncio.Lock(), asyncio.Lock()
        self._predictions = MicroBatching(self._predict, SLICE)
        self._encoding = EncodingQueue(lambda X: encode_ahead(self.model, X))
        self._ending = False
        self.n_verdicts = Counter[str]()
        self.refusals = Refusals()
        self._learning = DurableLearning(
            model,
            checkpoints,
            progress,
            monitor=self.monitor,
            id_window=id_window,
            sync=sync,
            begun_with=begun_with,
            allow_gap=allow_gap,
            beside={} if teaching is None else {"teaching": teaching},
        )
        self._journal, self.n_learned_again = self._learning.journal, self._learning.n_learned_again
        if checkpoints is not None:
            self.active_learning.store = self._journal

    @property
    def model(self) -> TextClassifier:
        return self.monitor.model

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a message; empty if a message is a text."""
        features = self.model.features
        return () if features.takes_text else features.fields

    @property
    def mail_field(self) -> str | None:
        """The field that holds a whole mail, if the model reads mails."""
        field: str | None = self.model.features.mail_field
        return field

    def start(self) -> None:
        """Begin to learn, and to write checkpoints."""
        self._ending = False
        self._learning.start()
        if self.teaching is not None:
            self.teaching.start()

    async def finish(self) -> None:
        """Refuse to learn from now on, and wait until the current request is learned."""
        self._ending = True
        async with self.learning_lock:
            pass

    def close(self, last: bool = True) -> None:
        """Write a last checkpoint, if `last` is true, and end; an OSError if it could not be written."""
        if self.teaching is not None:
            self.teaching.close()
        self._learning.close(last)

    async def predict(self, X: list[Message], ids: Sequence[Id | None] | None = None) -> list[Answer]:
        """The answer to each message. People are asked to label messages with new ids."""
        await self._encode(X)
        answers: list[Answer] = []
        messages = [*zip(X, [None] * len(X) if ids is None else ids, strict=True)]
        for part in slices(messages, lambda message: message_size(message[0])):
            answers += await self._predictions.answers(part, sum(A_MESSAGE + message_size(x) for x, _ in part))
        return answers

    async def _encode(self, X: Sequence[Message]) -> None:
        """Let the model's encoder read the messages, if it has one; other requests are answered meanwhile."""
        if self.model.features.encoder is not None:
            await self._encoding.encode(X)

    def _predict(self, messages: list[tuple[Message, Id | None]]) -> list[Answer]:
        X, ids = [x for x, _ in messages], [id for _, id in messages]
        with self._lock:
            block = predict_block(self.model, X, [])
            self.monitor.predicted(X, block)
            answers = block.answers()
            are_new = self._learning.ids.are_new(ids)
            if self.teaching is not None and any(are_new):
                rows = [*itertools.compress(range(len(X)), are_new)]
                new_messages = [X[row] for row in rows], [ids[row] for row in rows]
                self.teaching.ask(*new_messages, block.predictions.rows(rows))
        new = [*itertools.compress(messages, are_new)]
        self.active_learning.add([x for x, _ in new], [id for _, id in new])
        return answers

    async def learn(self, examples: list[Labelled], ids: Sequence[Id | None] | None = None) -> list[Answer]:
        """Predict each message, then learn it, unless its id was learned before with this label. Each answer has
        `learned` true or false. A new label for a known id is a `correction`: "taken back" if the old label was not
        learned yet, else "taught anew".

        A label may have any form that the model learns. With checkpoints, a message is a text or has fields with JSON
        values, and an id is a str or an int: the journal can restore only these.

        After an EndingError, an OSError of the journal, or a ValueError or TypeError about the arguments, nothing is
        learned. After a RuntimeError, the messages before the fault are learned; `learned_ids` shows which.
        """
        if self.active_learning.of_file:  # its labels are stored elsewhere
            raise ValueError("labels are for the messages of the file here: give them by POST /teach")
        async with self.learning_lock:  # no new labels between the check and the learning
            self._check_runs()
            examples = [(x, self.labels.plain(y), *map(plain_weight, weight[:1])) for x, y, *weight in examples]
            answers = await self._learn_all(examples, [None] * len(examples) if ids is None else ids)
        await self.sync()
        return answers

    async def describe_labels(self, descriptions: Descriptions) -> dict[str, Any]:
        """Learn descriptions of labels, as `TextClassifier.describe` does. Return the number of texts learned and the
        labels left out. It raises the errors of `learn`.
        """
        lessons = self.model.make_lessons(descriptions)
        await self.learn([(make_message(x), y, lessons.w) for x, y in zip(lessons.X, lessons.y, strict=True)])
        return {"n_learned": len(lessons.X), "left_out": lessons.left_out}

    def _check_runs(self) -> None:
        if self._ending:
            raise EndingError("the service is ending")

    async def _learn_all(
        self, examples: list[Labelled], ids: Sequence[Id | None], number_waiting: int | None = None
    ) -> list[Answer]:
        """Learn all these messages; `number_waiting` is that of the message whose label has waited, if any."""
        X, labels = [example[0] for example in examples], [example[1] for example in examples]
        of_people = ids
        if self.teaching is not None:
            ids = self.teaching.ids_for(X, ids)
        await self._encode(X)
        entries = [(x, y, *(weight or [1.0])[:1], id) for (x, y, *weight), id in zip(examples, ids, strict=True)]
        weights = [entry[2] for entry in entries]
        self.labels.check_size(len(examples), self.labels.check(labels, self.given_labels(), weights))
        teaches = [weight > 0.0 for weight in weights]
        given_labels = self.active_learning.superseded(X, ids)
        superseded = [
            given_label if teaching else None for given_label, teaching in zip(given_labels, teaches, strict=True)
        ]
        numbers = [given_label.message.number for given_label in superseded if given_label is not None]
        answers: list[Answer] = []
        before = self.model.n_learned
        try:
            with closing(
                self._learning.taking(entries, numbers if number_waiting is None else [number_waiting])
            ) as parts:
                for part in parts:
                    places = [i for i in range(len(answers), len(answers) + len(part)) if teaches[i]]
                    with self._lock:
                        self.active_learning.drop([X[i] for i in places], [ids[i] for i in places])
                    answers += part
                    if len(answers) < len(examples):
                        await give_way()
        except BaseException as error:
            waiting = {
                given_label.message.number for given_label, _ in self.active_learning.given()
            } - self._journal.waiting.keys()
            with self._lock, suppress(OSError):
                for other in superseded:  # the record of these messages has ended their labels
                    if other is not None and other.message.number in waiting:
                        self._journal.given(other.message, other.label)
            if before == self.model.n_learned or not isinstance(error, (TypeError, ValueError)):
                raise
            raise RuntimeError(f"learned in part: {error}") from error
        if self.teaching is not None:
            with self._lock:
                self.teaching.compare(*([*itertools.compress(column, teaches)] for column in (X, of_people, labels)))
        return [
            answer if other is None or is_same(other.label, label) else answer._replace(correction="taken back")
            for answer, label, other in zip(answers, labels, superseded, strict=True)
        ]

    async def unlearn(self, X: Sequence[Message], ids: Sequence[Id]) -> list[str]:
        """Forget the lesson of each id, as `DurableLearning.unlearn` does. It raises the errors of `learn`; then
        nothing is forgotten.
        """
        async with self.learning_lock:
            self._check_runs()
            await self._encode(X)
            predict_block(self.model, [*X], [])  # raises an error if a message would be refused
            entries: list[Entry] = [(x, None, 1.0, id) for x, id in zip(X, ids, strict=True)]
            superseded = self.active_learning.superseded(X, ids)
            with self._lock:
                for number in {given_label.message.number for given_label in superseded if given_label is not None}:
                    self.active_learning.take_back(number)
            outcomes = [*itertools.chain.from_iterable(self._learning.taking(entries))]
            outcomes = [
                outcome if given_label is None else "taken back"
                for outcome, given_label in zip(outcomes, superseded, strict=True)
            ]
        await self.sync()
        return outcomes

    async def sync(self) -> None:
        """Wait until the journal is flushed to the disk; requests that wait at the same time share one flush."""
        journal = self._journal
        if journal.safe:
            n = journal.n_written
            async with self._syncing:
                if journal.n_synced < n:
                    await asyncio.to_thread(journal.sync)

    async def learn_given(self, at_once: bool = False) -> None:
        """Learn the labels of people that can no longer be taken back, or all of them if `at_once`."""
        async with self.learning_lock:  # no label is learned twice
            held_labels = []
            try:
                for given_label in self.active_learning.due(at_once):
                    message = given_label.message
                    try:
                        await self._learn_all([(message.x, given_label.label)], [message.origin], message.number)
                    except OSError:  # of the journal
                        held_labels.append(given_label)
                    except (ValueError, TypeError, RuntimeError) as error:
                        log.error("a label that was given is not learned: %s", error)
            finally:
                self.active_learning.hold(held_labels)

    async def learn_taught(self) -> None:
        """Learn the teacher's answers, except for messages that a person labelled meanwhile."""
        if self.teaching is None:
            return
        async with self.learning_lock:
            lessons = self.teaching.lessons()
            try:
                with suppress(OSError):  # of the journal, or of the encoder's server
                    await self._encode([lesson.x for lesson in lessons])
                    while lessons:
                        await self._learn_lesson(lessons[0])
                        del lessons[0]
            finally:
                self.teaching.give_back(lessons)

    async def _learn_lesson(self, lesson: Lesson) -> None:
        x, label, weight, id = lesson
        (given,), (is_new,) = self.active_learning.superseded([x], [id]), self._learning.ids.are_new([id])
        if given is not None or not is_new:
            return
        try:
            self.labels.check([label], self.given_labels(), [weight])
            for _ in self._learning.taking([(x, label, weight, id)]):
                await give_way()
        except (ValueError, TypeError) as error:
            log.error("what the teacher taught is not learned: %s", error)

    @property
    def label_policy(self) -> LabelPolicy:
        """The policy beside the labels of the model and those that people gave."""
        return self.labels.policy(self.given_labels())

    def given_labels(self) -> list[Truth]:
        """The labels of people that can still be taken back, the newest first."""
        return [given_label.label for given_label, _ in self.active_learning.given()]

    def learned_ids(self) -> list[Id]:
        """The ids of the newest messages learned, the oldest first."""
        with self._lock:
            return self._learning.ids.ids()

    async def explain(self, x: Message, label: Label | None = None) -> dict[str, Any]:
        """The answer to a message and its explanation: see `explained`."""
        await self._encode([x])
        with self._lock:
            return shown_answer(explained(self.model, x, label))

    def classes(self, search: str, limit: int) -> dict[str, Any]:
        with self._lock:
            return self.monitor.classes(search, limit)

    def wrong(self, search: str, first: str = "newest") -> list[Mapping[str, Any]]:
        with self._lock:
            return self.monitor.wrong.search(search, first)

    async def correct(self, number: int, label: Truth) -> Answer:
        """Learn one of the wrong answers with the right label, as a correction. It raises the errors of `learn`, and a
        LookupError if the message is not kept.
        """
        with self._lock:
            wrong = self.monitor.wrong.take(number)
            (is_new,) = self._learning.ids.are_new([wrong.id])
        assert wrong.example is not None
        # Without an id the wrong lesson is unknown: a double weight undoes it, too.
        weight = 2.0 * get_weight(wrong.example) if is_new else get_weight(wrong.example)
        try:
            (answer,) = await self.learn([(wrong.example[0], label, weight)], [wrong.id])
        except BaseException:
            with self._lock:
                self.monitor.wrong.give_back(wrong)
            raise
        return answer

    def words(self, label: Label | None) -> dict[str, Any]:
        with self._lock:
            return self.monitor.words(label)

    def view(self) -> dict[str, Any]:
        with self._lock:
            view = self.monitor.view()
            view["teaching"] = None if self.teaching is None else self.teaching.view()
        checkpoint = None
        if self.checkpoints is not None:
            written = self.checkpoints.written_at
            checkpoint = {
                "path": self.checkpoints.path.name,
                "seconds_ago": None if written is None else monotonic() - written,
                "error": self.checkpoints.error,
            }
        additions = {"n_refused": self.refusals.of_clients.total(), "checkpoint": checkpoint}
        return {**view, **additions, "asks": self.active_learning.size > 0, "fields": self.fields}

    def describe(self) -> dict[str, Any]:
        with self._lock:
            described = {**self.monitor.describe(), "classes": list(self.model.classes)}
        parameters = {name: made_with(part) for name, part in self.model.parts.items()}
        return {**described, "parameters": parameters}

    def health(self) -> str:
        """The failing parts among checkpoints and journal, or "ok" if none fails."""
        if not self.can_learn:  # no request can repair it meanwhile
            with self._lock, suppress(OSError):
                self._journal.try_again()
        fails = {"checkpoints fail": self.checkpoints, "the journal fails": self._journal}
        return ", ".join(name for name, store in fails.items() if store and store.error is not None) or "ok"

    @property
    def can_learn(self) -> bool:
        """Whether the journal accepted the newest record."""
        return self._journal.error is None
