"""The bodies of requests: how they are received, and how much of them there is at a time."""

from __future__ import annotations

import asyncio
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
    timeout: asyncio.Timeout
    due: float
    gives_way: bool = False


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

    async def receive(self, request: Request) -> bytes:
        """The body of a request.

        Raises
        ------
        HTTPException
            If it is no JSON, or too large, or too slow, or there is no room for it.
        """
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":
            # So a browser asks before it lets the page of a stranger send anything.
            raise HTTPException(415, "the content type must be application/json")
        largest, seconds = self._limits.body, self._limits.seconds
        length = request.headers.get("content-length")
        # Python refuses to read an int of very many digits.
        if length is not None and length.isdecimal() and (len(length) > 18 or int(length) > largest):
            raise self._too_large()
        now = asyncio.get_running_loop().time
        coming = _Coming(request.scope, asyncio.timeout(seconds), now() + PATIENCE)
        self._coming[coming] = None
        parts: list[bytes] = []
        size = 0
        try:
            async with coming.timeout:
                async for part in request.stream():
                    parts.append(part)
                    size += len(part)
                    self.n_bytes += len(part)
                    request.scope["n_bytes"] = request.scope.get("n_bytes", 0) + len(part)
                    if size > largest:
                        raise self._too_large()
                    if self.n_bytes > 4 * largest and not self._make_room(coming, now()):
                        raise _no_room()
        except ClientDisconnect:
            raise HTTPException(400, "the body did not come to its end") from None
        except TimeoutError:
            if coming.gives_way:
                raise _no_room() from None
            raise HTTPException(408, f"the body did not come within {seconds:g} seconds") from None
        finally:
            self._coming.pop(coming, None)
        return b"".join(parts)

    def answered(self, scope: Any) -> None:
        """A request is answered, whatever came of its body."""
        self.n_bytes -= scope.pop("n_bytes", 0)

    def _make_room(self, new: _Coming, now: float) -> bool:
        """Whether another body gives way to this one."""
        slowest = next(iter(self._coming))
        if slowest is new or now < slowest.due:
            return False
        del self._coming[slowest]
        slowest.gives_way = True
        slowest.timeout.reschedule(now)
        self.answered(slowest.scope)
        return True

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is too large; it may have {self._limits.body:,} bytes")


def _no_room() -> HTTPException:
    return HTTPException(503, "too many large bodies at a time", {"retry-after": "1"})
