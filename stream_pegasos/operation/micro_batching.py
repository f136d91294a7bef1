"""Small requests are predicted together, and large ones in slices, between which others are answered."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from stream_pegasos.common.together import together_or_alone
from stream_pegasos.features.message import grouped

__all__ = ["A_MESSAGE", "SLICE", "MicroBatching", "give_way", "slices"]

SLICE = 50_000  # characters of a slice, about
A_MESSAGE = 100  # characters that each message counts beside its text


class _Request(NamedTuple):
    items: Sequence[Any]
    size: int
    answers: asyncio.Future[list[Any]]


class MicroBatching:
    """Answers all requests of one turn of the event loop by one call, which takes far less time than one call each.
    Where that call fails, each request is answered by a call of its own. A batch is full once its items have the size
    `most` together.
    """

    def __init__(self, answer: Callable[[list[Any]], list[Any]], most: int) -> None:
        self._answer, self._most = answer, most
        self._waiting: deque[_Request] = deque()

    async def answers(self, items: Sequence[Any], size: int) -> list[Any]:
        """The answer to each item; `size` is that of all of them."""
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
        self._answer_batch(batch)

    def _answer_batch(self, batch: list[_Request]) -> None:
        def answered(requests: list[_Request]) -> Iterator[Any]:
            return iter(self._answer([item for request in requests for item in request.items]))

        for requests, answers in together_or_alone(batch, answered, Exception):
            for request in requests:
                own = answers if isinstance(answers, Exception) else [*itertools.islice(answers, len(request.items))]
                if request.answers.done():  # as of a client that is gone
                    continue
                if isinstance(own, Exception):
                    request.answers.set_exception(own)
                else:
                    request.answers.set_result(own)


async def give_way() -> None:
    """Let other requests run, and ignore a cancellation: a request is learned as a whole."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()


def slices(items: list[Any], size_of: Callable[[Any], int]) -> Iterator[list[Any]]:
    """The items in slices of about `SLICE` characters."""
    return grouped(items, lambda item: A_MESSAGE + size_of(item), SLICE)
