"""Encoding the texts of several requests together, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from stream_pegasos.features.encoders import EncoderAwayError
from stream_pegasos.features.message import Message

__all__ = ["Encoding"]


class Encoding:
    """Has the vectors of messages made before these are predicted or learned, which then finds them ready.

    One thread encodes. What comes meanwhile waits, and is encoded together. What `encode` raises is lost, unless the
    server of the encoder is away.
    """

    def __init__(self, encode: Callable[[list[Message]], Any]) -> None:
        self._encode = encode
        self._waiting: list[tuple[Sequence[Message], asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def encode(self, X: Sequence[Message]) -> None:
        """Wait until the messages are encoded, or refused; an EncoderAwayError if the server of the encoder is away."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((X, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._encode_waiting())
        await done

    async def _encode_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            away = None
            try:
                with suppress(Exception):  # any that an encoder raises: those that wait now are encoded all the same
                    try:
                        await asyncio.to_thread(self._encode, [x for X, _ in batch for x in X])
                    except EncoderAwayError as error:
                        away = error
            finally:
                for _, done in batch:
                    if done.done():  # as of a client that is gone
                        continue
                    if away is None:
                        done.set_result(None)
                    else:
                        done.set_exception(EncoderAwayError(str(away)))
