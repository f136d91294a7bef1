"""The bodies of requests: how they are received, and how much of them there is at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

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
    """Receives bodies, and counts their bytes until the requests are answered: four times the largest one at most.

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

    async def receive(self, request: Request, types: Sequence[str]) -> tuple[str, bytes]:
        """The content type of a request, in lower case, and its body.

        Raises
        ------
        HTTPException
            If it is of none of these types, or too large, or too slow, or there is no room for it.
        """
        headers, largest = dict(request.scope["headers"]), self._limits.body
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
        coming = _Coming(request.scope, task, loop.time())
        self._coming[coming] = None
        if self._timer is None:
            self._timer = loop.call_at(coming.began + self._limits.seconds, self._refuse_late)
        try:
            return type, await self._all_parts(request, coming)
        except ClientDisconnect:
            raise HTTPException(400, "the body did not come to its end") from None
        except asyncio.CancelledError:
            if coming.refusal is None:
                raise
            task.uncancel()
            raise coming.refusal from None
        finally:
            self._coming.pop(coming, None)

    async def _all_parts(self, request: Request, coming: _Coming) -> bytes:
        parts: list[bytes] = []
        size, largest = 0, self._limits.body
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            self.n_bytes += len(part)
            request.scope["n_bytes"] = request.scope.get("n_bytes", 0) + len(part)
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
            self._refuse(coming, HTTPException(408, f"the body did not come within {seconds:g} seconds"))

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
    return HTTPException(503, "too many large bodies at a time", {"retry-after": "1"})
