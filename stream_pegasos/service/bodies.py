"""Receiving the bodies of requests, within limits of number and size."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope

from stream_pegasos.service import room
from stream_pegasos.service.limits import Limits


@dataclass(eq=False)
class _Body:
    """A body that is being received."""

    task: asyncio.Task[Any]
    n_bytes: int = 0
    refusal: HTTPException | None = None  # the answer, once the service waits no longer

    def give_way(self) -> None:
        self.refuse(_no_room())

    def refuse(self, refusal: HTTPException) -> None:
        self.refusal = refusal
        self.task.cancel()


class Bodies:
    """Receives as many bodies at a time as the limits allow, with together at most four times the bytes of the largest
    one. The `room` counts the bytes of a body until its request is answered.

    Beyond that, the slowest body gives way, if it had two seconds; else the new one is refused.
    """

    def __init__(self, limits: Limits) -> None:
        self.room = room.Room(4 * limits.body)
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None  # of the oldest body; most come at once, and need none

    async def receive(self, scope: Scope, receive: Receive, types: Sequence[str]) -> tuple[str, bytes]:
        """The content type of a request, in lower case, and its body.

        Raises
        ------
        HTTPException
            If it has another type, is too large or too slow, or there is no room for it.
        """
        headers, largest = dict(scope["headers"]), self._limits.body
        type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        if type not in types:
            # A browser asks the service before a page of another site may send these types.
            raise HTTPException(415, f"the content type must be {' or '.join(types)}")
        length = headers.get(b"content-length", b"")
        # Python refuses to read very many digits.
        if length.isdigit() and (len(length) > 18 or int(length) > largest):
            raise self._too_large()
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        scope["body"] = body = _Body(task)
        self.room.waiting[body] = now = loop.time()
        if self._timer is None:
            self._timer = loop.call_at(now + self._limits.seconds, self._refuse_late)
        try:
            if len(self.room.waiting) > self._limits.concurrency and not self.room.make(body, room.PATIENCE):
                raise _no_room()
            return type, await self._all_parts(receive, body)
        except asyncio.CancelledError:
            if body.refusal is None:
                raise
            task.uncancel()
            raise body.refusal from None
        finally:
            self.room.waiting.pop(body, None)

    async def _all_parts(self, receive: Receive, body: _Body) -> bytes:
        parts: list[bytes] = []
        largest, more = self._limits.body, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HTTPException(400, "the body did not come to its end")
            part, more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            if body.n_bytes + len(part) > largest:
                raise self._too_large()
            if not self.room.take(body, len(part)):
                raise _no_room()
        return b"".join(parts)

    def _refuse_late(self) -> None:
        """Refuse bodies whose time is over."""
        loop, seconds, self._timer = asyncio.get_running_loop(), self._limits.seconds, None
        for body, began in [*self.room.waiting.items()]:
            assert isinstance(body, _Body)
            if began + seconds > loop.time():
                self._timer = loop.call_at(began + seconds, self._refuse_late)
                break
            del self.room.waiting[body]
            body.refuse(_closing_refusal(408, f"the body did not come within {seconds:g} seconds"))

    def answered(self, scope: Scope) -> None:
        """Release the body of an answered request."""
        if "body" in scope:
            self.room.release(scope.pop("body"))

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is too large; it may have {self._limits.body:,} bytes")


def _no_room() -> HTTPException:
    return _closing_refusal(503, "too many bodies at a time", {"retry-after": "1"})


def _closing_refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> HTTPException:
    """A refusal that closes the connection, on which more of the body may come."""
    return HTTPException(status, detail, {"connection": "close", **(headers or {})})
