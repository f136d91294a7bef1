"""The bodies of requests: how they are received, and how much of them there is at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope

from stream_pegasos.service.limits import Limits

PATIENCE = 2.0  # seconds in which a body is to come where others want its room


@dataclass(eq=False)
class _Coming:
    """A body of which more is to come."""

    scope: Any
    task: asyncio.Task[Any]
    began: float
    refusal: HTTPException | None = None  # once it is not waited for any longer


class Bodies:
    """Receives so many bodies at a time, with four times as many bytes together as the largest one may have. Bytes
    count until their requests are answered.

    Beyond that, the body that began first and is still coming gives way, if it had two seconds. Where there is none,
    the new one is refused.

    Attributes
    ----------
    n_bytes
        Of the bodies of all requests that are not answered yet.
    """

    def __init__(self, limits: Limits) -> None:
        self.n_bytes = 0
        self._limits = limits
        self._coming: dict[_Coming, None] = {}  # those that began first come first
        self._timer: asyncio.TimerHandle | None = None  # for the first of them: most come at once and need none

    async def receive(self, scope: Scope, receive: Receive, types: Sequence[str]) -> tuple[str, bytes]:
        """The content type of a request, in lower case, and its body.

        Raises
        ------
        HTTPException
            If it is of none of these types, or too large, or too slow, or there is no room for it.
        """
        headers, largest = dict(scope["headers"]), self._limits.body
        type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        if type not in types:
            # So a browser asks before it lets the page of a stranger send anything.
            raise HTTPException(415, f"the content type must be {' or '.join(types)}")
        length = headers.get(b"content-length", b"")
        # Python refuses to read an int of very many digits.
        if length.isdigit() and (len(length) > 18 or int(length) > largest):
            raise self._too_large()
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        coming = _Coming(scope, task, loop.time())
        self._coming[coming] = None
        if self._timer is None:
            self._timer = loop.call_at(coming.began + self._limits.seconds, self._refuse_late)
        try:
            if len(self._coming) > self._limits.concurrency and not self._make_room(coming):
                raise _no_room()
            return type, await self._all_parts(receive, coming)
        except asyncio.CancelledError:
            if coming.refusal is None:
                raise
            task.uncancel()
            raise coming.refusal from None
        finally:
            self._coming.pop(coming, None)

    async def _all_parts(self, receive: Receive, coming: _Coming) -> bytes:
        parts: list[bytes] = []
        largest, more = self._limits.body, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HTTPException(400, "the body did not come to its end")
            part, more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            self.n_bytes += len(part)
            coming.scope["n_bytes"] = size = coming.scope.get("n_bytes", 0) + len(part)
            if size > largest:
                raise self._too_large()
            if self.n_bytes > 4 * largest and not self._make_room(coming):
                raise _no_room()
        return b"".join(parts)

    def _refuse_late(self) -> None:
        """Wait no longer for bodies whose time is over."""
        loop, seconds, self._timer = asyncio.get_running_loop(), self._limits.seconds, None
        for coming in [*self._coming]:
            if coming.began + seconds > loop.time():
                self._timer = loop.call_at(coming.began + seconds, self._refuse_late)
                break
            self._refuse(coming, _slow(408, f"the body did not come within {seconds:g} seconds"))

    def _refuse(self, coming: _Coming, refusal: HTTPException) -> None:
        del self._coming[coming]
        coming.refusal = refusal
        coming.task.cancel()

    def answered(self, scope: Any) -> None:
        """A request is answered, whatever came of its body."""
        self.n_bytes -= scope.pop("n_bytes", 0)

    def _make_room(self, new: _Coming) -> bool:
        """Whether another body gives way to this one."""
        slowest = next(iter(self._coming))
        if slowest is new or asyncio.get_running_loop().time() < slowest.began + PATIENCE:
            return False
        self._refuse(slowest, _no_room())
        self.answered(slowest.scope)
        return True

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is too large; it may have {self._limits.body:,} bytes")


def _no_room() -> HTTPException:
    return _slow(503, "too many bodies at a time", {"retry-after": "1"})


def _slow(status: int, detail: str, headers: Mapping[str, str] | None = None) -> HTTPException:
    """A refusal that ends the connection, on which more of the body may come."""
    return HTTPException(status, detail, {"connection": "close", **(headers or {})})
