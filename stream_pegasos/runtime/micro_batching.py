"""Batches of small requests, predicted or encoded together; large requests in slices, so that others are answered."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from stream_pegasos.common.batch_then_single import batch_then_single
from stream_pegasos.features.encoders import EncoderAwayError
from stream_pegasos.features.message import Message, grouped

__all__ = ["A_MESSAGE", "SLICE", "EncodingQueue", "MicroBatching", "give_way", "slices"]

SLICE = 50_000  # approximate number of characters of a slice
A_MESSAGE = 100  # characters added for each message


class _Request(NamedTuple):
    items: Sequence[Any]
    size: int
    answers: asyncio.Future[list[Any]]


class MicroBatching:
    """Answers all requests of one turn of the event loop by one call, which is much faster than a call for each. If
    this call fails, each request is answered by a call of its own. A batch is full when its items have the total size
    `most`.
    """

    def __init__(self, answer: Callable[[list[Any]], list[Any]], most: int) -> None:
        self._answer, self._most = answer, most
        self._waiting: deque[_Request] = deque()

    async def answers(self, items: Sequence[Any], size: int) -> list[Any]:
        """The answer to each item; `size` is the total size of the items."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._answer_next)
        request = _Request(items, size, loop.create_future())
        self._waiting.append(request)
        return await request.answers

    def _answer_next(self) -> None:
        batch, size = list[_Request](), 0
        while self._waiting and size < self._most:
            batch.append(self._waiting.popleft())
            size += batch[-1].size
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._answer_next)

        def answered(requests: list[_Request]) -> Iterator[Any]:
            return iter(self._answer([item for request in requests for item in request.items]))

        for requests, answers in batch_then_single(batch, answered, Exception):
            for request in requests:
                own = answers if isinstance(answers, Exception) else [*itertools.islice(answers, len(request.items))]
                if request.answers.done():  # e.g. the client has left
                    continue
                if isinstance(own, Exception):
                    request.answers.set_exception(own)
                else:
                    request.answers.set_result(own)


class EncodingQueue:
    """Makes the vectors of messages before these are predicted or learned.

    One thread encodes. Messages that come meanwhile wait, and are encoded together. An error of `encode` is dropped,
    unless the server of the encoder is away.
    """

    def __init__(self, encode: Callable[[list[Message]], Any]) -> None:
        self._encode = encode
        self._waiting: list[tuple[Sequence[Message], asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def encode(self, X: Sequence[Message]) -> None:
        """Wait until the messages are encoded, or refused; an EncoderAwayError if the server of the encoder is away."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((X, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._encode_waiting())
        await future

    async def _encode_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            away = None
            try:
                with suppress(Exception):  # an encoder may raise any error; waiting messages are still encoded
                    try:
                        await asyncio.to_thread(self._encode, [x for X, _ in batch for x in X])
                    except EncoderAwayError as error:
                        away = error
            finally:
                for _, future in batch:
                    if future.done():  # e.g. the client has left
                        continue
                    if away is None:
                        future.set_result(None)
                    else:
                        future.set_exception(EncoderAwayError(str(away)))


async def give_way() -> None:
    """Let other requests run, and ignore a cancellation: a request is learned completely."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()


def slices(items: list[Any], size: Callable[[Any], int]) -> Iterator[list[Any]]:
    """The items in slices of about `SLICE` characters."""
    return grouped(items, lambda item: A_MESSAGE + size(item), SLICE)
