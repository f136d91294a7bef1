"""Labelling of messages by people, on the page or over HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from stream_pegasos.evaluation.chunks import predict_block
from stream_pegasos.evaluation.tallies import ORDERED
from stream_pegasos.features.message import size_of
from stream_pegasos.operation.answers import answers_of, label_named, shown, shown_answer
from stream_pegasos.service.label_checks import each_label
from stream_pegasos.service.micro_batching import slices
from stream_pegasos.service.work import Service

__all__ = ["Labelling", "learning_as_given"]

MOST_OFFERED = 1_000  # labels that people are offered
MOST_GIVEN = 20  # labels that are shown as given
SECONDS_BETWEEN = 0.5  # two looks for labels that are due
LONGEST_GIVEN = 200  # characters shown of their messages


class Labelling:
    """Asks people for labels, and takes those that they give."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._offered: dict[Any, None] = {}  # labels, in the order in which they are offered

    async def asked(self, limit: int, first: str = "uncertain", also: int | None = None) -> dict[str, Any]:
        """The messages to label next, the answers of the model, and the labels that can be taken back.

        Parameters
        ----------
        limit
            How many messages.
        first
            Which messages: see `ActiveLearning.queue`.
        also
            The number of a message that someone is reading, to include as long as it waits.
        """
        service, active_learning = self._service, self._service.active_learning
        stale = active_learning.stale(service.model.n_learned) if first == "uncertain" else []
        n_columns = len(service.model.classes)
        for part in slices(stale, lambda message: size_of(message.x) + n_columns):
            with service.monitor.lock:
                n_learned = service.model.n_learned
                block = predict_block(service.model, [message.x for message in part], [])
                active_learning.score(part, block.predictions, n_learned)
            await asyncio.sleep(0)
        messages = active_learning.queue(limit, first, also)
        with service.monitor.lock:
            block = predict_block(service.model, [message.x for message in messages], [])
            answers = answers_of(block, in_full=True) if messages else []
            classes = list(service.model.classes)
        given = active_learning.given()
        taken = service.given_labels()
        listed = service.labels.meant(taken).listed
        labels = self._offer([*classes, *each_label(taken)]) if listed is None else [*listed]
        return {
            "kind": service.kind,
            "size": active_learning.size,
            "seconds": active_learning.seconds,
            "first": first,
            "of_file": active_learning.of_file,
            "n_waiting": len(active_learning),
            "n_given": active_learning.n_given,
            "n_labels": len(labels),
            "are_fixed": listed is not None,
            "labels": [shown(label) for label in (labels if listed else labels[:MOST_OFFERED])],
            "messages": [
                {"number": message.number, "text": service.model.features.shown(message.x), **shown_answer(answer)}
                for message, answer in zip(messages, answers, strict=True)
            ],
            "given": [
                {
                    "number": each.message.number,
                    "text": service.model.features.shown(each.message.x)[:LONGEST_GIVEN],
                    "label": shown(each.label),
                    "seconds": seconds,
                }
                for each, seconds in given[:MOST_GIVEN]
            ],
        }

    def _offer(self, labels: Iterable[Any]) -> list[Any]:
        """The labels to offer. Each keeps its place, by which people know it; ordered labels are sorted."""
        now = dict.fromkeys(labels)
        if now.keys() != self._offered.keys():
            new = sorted((label for label in now if label not in self._offered), key=str)
            self._offered = dict.fromkeys([*(label for label in self._offered if label in now), *new])
        return sorted(self._offered) if self._service.kind == ORDERED else [*self._offered]

    async def teach(self, number: int, label: Any) -> None:
        """Give a message its label, which is learned once it can no longer be taken back. With `None` the message is
        skipped.

        Raises
        ------
        LookupError
            If the message does not wait for a label.
        ValueError, TypeError
            If the label is not allowed, the model does not take it, or there would be too many.
        OSError
            If the label cannot be stored.
        """
        service = self._service
        if label is None:
            service.active_learning.skip(number)
            return
        async with service.learning_lock:
            service.active_learning.message_of(number)
            given = service.given_labels()
            listed = service.labels.meant(given).listed
            known = service.model.classes if listed is None else listed
            if isinstance(label, tuple):
                label = tuple(_label_meant(known, each) for each in label)
            else:
                label = _label_meant(known, label)
            service.labels.check([*given, label], given)
            with service.monitor.lock:
                service.active_learning.give(number, label)
        await service.learn_given()
        await service.sync()

    async def take_back(self, number: int) -> None:
        """Take a label back that is not learned yet.

        Raises
        ------
        LookupError
            If the message has no label that can be taken back.
        OSError
            If the store fails; the label stays.
        """
        async with self._service.learning_lock:
            with self._service.monitor.lock:
                self._service.active_learning.take_back(number)
        await self._service.sync()


def _label_meant(known: Sequence[Any], given: Any) -> Any:
    try:
        label = label_named(known, given)
    except LookupError as error:
        raise ValueError(str(error)) from None
    return given if label is None else label


@asynccontextmanager
async def learning_as_given(service: Service) -> AsyncIterator[None]:
    """Learn the labels of people when they are due; at the end, also those that could still be taken back."""
    if not service.active_learning.size:
        yield
        return
    closing = asyncio.Event()
    task = asyncio.create_task(_learn_as_given(service, closing))
    try:
        yield
    finally:
        closing.set()
        await task
        await service.learn_given(at_once=True)


async def _learn_as_given(service: Service, closing: asyncio.Event) -> None:
    while not closing.is_set():
        try:
            await service.learn_given()
        except Exception as error:
            print(f"stream-pegasos: labels cannot be learned: {error!r}", file=sys.stderr, flush=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(closing.wait(), SECONDS_BETWEEN)
