"""Labels from people, on the page or over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from stream_pegasos.blocks.blockwise import predict_block
from stream_pegasos.common.display import quoted
from stream_pegasos.features.message import Message, message_size
from stream_pegasos.learners.capabilities import ORDERED
from stream_pegasos.learners.label_policy import Label
from stream_pegasos.learners.label_typos import look_alike, one_slip_away
from stream_pegasos.runtime.answers import label_named, shown, shown_answer
from stream_pegasos.runtime.label_checks import each_label
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.runtime.micro_batching import slices
from stream_pegasos.streams.example import Id, Truth

__all__ = ["Labelling", "LookAlikeError", "learning_as_given"]

log = logging.getLogger(__name__)

MOST_OFFERED = 1_000  # labels offered to people
MOST_GIVEN = 20  # labels shown as given
SECONDS_BETWEEN = 0.5  # between two looks for labels that are due
LONGEST_GIVEN = 200  # characters of their messages shown

LookFor = Callable[[Label, Sequence[Label]], Label | None]  # finds the known label that a new one resembles


class Labelling:
    """Asks people for labels, and accepts their labels."""

    def __init__(self, learner: LiveLearner) -> None:
        self._learner = learner
        self._offered: dict[Any, None] = {}  # labels, in the order of the offer

    async def asked(self, limit: int, first: str = "uncertain", also: int | None = None) -> dict[str, Any]:
        """The messages to label next, the answers of the model, and the labels that can be taken back. `first` is as
        for `ActiveLearning.queue`; `also` is the number of a message that a person is reading: it is included while it
        waits.
        """
        learner, active_learning = self._learner, self._learner.active_learning
        stale = active_learning.stale(learner.model.n_learned) if first == "uncertain" else []
        n_columns = len(learner.model.classes)
        for part in slices(stale, lambda message: message_size(message.x) + n_columns):
            with learner.monitor.lock:
                n_learned = learner.model.n_learned
                block = predict_block(learner.model, [message.x for message in part], [])
                active_learning.score(part, block.predictions, n_learned)
            await asyncio.sleep(0)
        messages = active_learning.queue(limit, first, also)
        with learner.monitor.lock:
            block = predict_block(learner.model, [message.x for message in messages], [])
            answers = block.answers(probabilities=block.most_probable())
            classes = list(learner.model.classes)
        recent = active_learning.given()
        recent_labels = learner.given_labels()
        listed = learner.labels.policy(recent_labels).allowed
        labels = self._offer([*classes, *each_label(recent_labels)]) if listed is None else [*listed]
        offered = labels if listed else labels[:MOST_OFFERED]
        with learner.monitor.lock:
            counts = learner.monitor.counts(offered)
        return {
            "kind": learner.monitor.kind,
            "size": active_learning.size,
            "seconds": active_learning.seconds,
            "first": first,
            "of_file": active_learning.of_file,
            "n_waiting": len(active_learning),
            "n_given": active_learning.n_given,
            "n_labels": len(labels),
            "are_fixed": listed is not None,
            "labels": [shown(label) for label in offered],
            "counts": counts,
            "messages": [
                {
                    "number": message.number,
                    "time": message.time,
                    "text": learner.model.features.shown(message.x),
                    **shown_answer(answer.as_json()),
                }
                for message, answer in zip(messages, answers, strict=True)
            ],
            "given": [
                {
                    "number": each.message.number,
                    "text": learner.model.features.shown(each.message.x)[:LONGEST_GIVEN],
                    "label": shown(each.label),
                    "seconds": seconds,
                }
                for each, seconds in recent[:MOST_GIVEN]
            ],
        }

    def _offer(self, labels: Iterable[Label]) -> list[Label]:
        """The labels to offer. Each keeps its place, which people remember; ordered labels are sorted."""
        now = dict.fromkeys(labels)
        if now.keys() != self._offered.keys():
            new = sorted((label for label in now if label not in self._offered), key=str)
            self._offered = dict.fromkeys([*(label for label in self._offered if label in now), *new])
        return sorted(self._offered) if self._learner.monitor.kind == ORDERED else [*self._offered]

    async def teach(self, number: int, label: Truth | None, new_label: object = None) -> None:
        """Give a message its label, which is learned once it can no longer be taken back. With `None` the message is
        skipped. A LookupError if the message does not wait for a label; a LookAlikeError if another label may be meant,
        unless `new_label` is "confirmed".
        """
        active_learning = self._learner.active_learning
        if label is None:
            active_learning.skip(number)
            return
        async with self._learner.learning_lock:
            active_learning.get_message(number)
            label = self._learnable_label(label, new_label)
            with self._learner.monitor.lock:
                active_learning.give(number, label)
        await self._learn()

    async def teach_message(self, x: Message, id: Id | None, label: Truth, new_label: object = None) -> int:
        """Give a label to a message, even if it does not wait, like `teach`; return its number, for `take_back`."""
        active_learning = self._learner.active_learning
        if active_learning.of_file:  # its labels are stored elsewhere
            raise ValueError("labels are for the messages of the file here: name one by its number")
        async with self._learner.learning_lock:
            label = self._learnable_label(label, new_label)
            with self._learner.monitor.lock:
                number = active_learning.give_to(x, label, id)
        await self._learn()
        return number

    def _learnable_label(self, label: Truth, new_label: object) -> Truth:
        """The label or labels that a person means, after a check that they may be learned."""
        learner = self._learner
        recent_labels = learner.given_labels()
        listed = learner.labels.policy(recent_labels).allowed
        known_labels = [*learner.model.classes, *each_label(recent_labels)] if listed is None else listed
        looks_for: tuple[LookFor, ...] = (look_alike,)
        if listed is not None or new_label == "confirmed":
            looks_for = ()
        elif new_label == "ask":
            looks_for = (look_alike, one_slip_away)
        if isinstance(label, tuple):
            label = tuple(_label_meant(known_labels, single, looks_for) for single in label)
        else:
            label = _label_meant(known_labels, label, looks_for)
        learner.labels.check([*recent_labels, label], recent_labels, [1.0] * (len(recent_labels) + 1))
        return label

    async def _learn(self) -> None:
        await self._learner.learn_given()
        await self._learner.sync()

    async def take_back(self, number: int) -> None:
        """Take back a label that is not learned yet; a LookupError if there is none. If the store fails, the label
        stays.
        """
        async with self._learner.learning_lock:
            with self._learner.monitor.lock:
                self._learner.active_learning.take_back(number)
        await self._learner.sync()


class LookAlikeError(ValueError):
    """A new label resembles a known one, which may be meant."""

    def __init__(self, label: Label, alike: Label) -> None:
        super().__init__(
            f"label {quoted(label)} is new, and looks like {quoted(alike)}: give that, or the new_label 'confirmed'"
        )
        self.label, self.alike = label, alike


def _label_meant(known_labels: Sequence[Label], given: Label, looks_for: Sequence[LookFor]) -> Label:
    try:
        label: Label | None = label_named(known_labels, given)
    except LookupError as error:
        raise ValueError(str(error)) from None
    if label is not None:
        return label
    for look in looks_for:
        if (alike := look(given, known_labels)) is not None:
            raise LookAlikeError(given, alike)
    return given


@asynccontextmanager
async def learning_as_given(learner: LiveLearner) -> AsyncIterator[None]:
    """Learn the labels of people when they are due, and those of a teacher when they come. At the end, also learn the
    labels that could still be taken back.
    """
    closing = asyncio.Event()
    task = asyncio.create_task(_learn_as_given(learner, closing))
    try:
        yield
    finally:
        closing.set()
        await task
        await learner.learn_given(at_once=True)


async def _learn_as_given(learner: LiveLearner, closing: asyncio.Event) -> None:
    while not closing.is_set():
        try:
            await learner.learn_given()
            await learner.learn_taught()
        except Exception as error:
            log.error("labels cannot be learned: %r", error)
        with suppress(TimeoutError):
            await asyncio.wait_for(closing.wait(), SECONDS_BETWEEN)
