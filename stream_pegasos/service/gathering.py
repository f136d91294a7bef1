"""Messages that several requests want predicted at the same time, predicted together."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Gathering"]


class _Asked(NamedTuple):
    items: Sequence[Any]
    size: int
    answers: asyncio.Future[list[Any]]


class Gathering:
    """Answers in one call what is asked within one turn of the event loop, as that takes far less time. What cannot be
    answered together is answered request by request.

    Parameters
    ----------
    answer
        Gives an answer to each item of a list.
    most
        No more is added to a call once its items have this size together.
    """

    def __init__(self, answer: Callable[[list[Any]], list[Any]], most: int) -> None:
        self._answer, self._most = answer, most
        self._asked: deque[_Asked] = deque()

    async def answers(self, items: Sequence[Any], size: int) -> list[Any]:
        """The answer to each item; `size` is that of all of them."""
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._answer_next)
        asked = _Asked(items, size, loop.create_future())
        self._asked.append(asked)
        return await asked.answers

    def _answer_next(self) -> None:
        these, size = [], 0
        while self._asked and size < self._most:
            these.append(self._asked.popleft())
            size += these[-1].size
        if self._asked:
            asyncio.get_running_loop().call_soon(self._answer_next)
        self._answer_together(these)

    def _answer_together(self, these: list[_Asked]) -> None:
        try:
            answers = iter(self._answer([item for one in these for item in one.items]))
        except Exception as error:
            if len(these) > 1:
                for one in these:
                    self._answer_together([one])
            elif not these[0].answers.done():
                these[0].answers.set_exception(error)
            return
        for one in these:
            own = [*itertools.islice(answers, len(one.items))]
            if not one.answers.done():  # or nobody waits for them any longer
                one.answers.set_result(own)
