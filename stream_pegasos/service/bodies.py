"""Receiving the body of a request, within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope

__all__ = ["receive_body"]

MOST_PASSED_OVER, LONGEST_PASSED_OVER = 64 << 20, 5.0  # bytes of a body that is too large, and seconds


async def receive_body(
    scope: Scope, receive: Receive, types: Sequence[str], most: int, seconds: float
) -> tuple[str, bytes]:
    """The content type of a request, in lower case, and its body, of `most` bytes that come within so many seconds.

    Raises
    ------
    HTTPException
        If it has another type, or is too large or too slow.
    """
    headers = dict(scope["headers"])
    type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    if type not in types:
        # A browser asks the service before a page of another site may send these types.
        raise HTTPException(415, f"the content type must be {' or '.join(types)}")
    length = headers.get(b"content-length", b"")
    # Python refuses to read very many digits.
    if length.isdigit() and (len(length) > 18 or int(length) > most):
        if b"expect" not in headers:  # whoever waits to be told to go on has sent nothing
            await _pass_over(receive, seconds)
        raise _too_large(most)
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HTTPException(400, "the body did not come to its end")
                body += message.get("body", b"")
                if len(body) > most:
                    if message.get("more_body", False):
                        await _pass_over(receive, seconds)
                    raise _too_large(most)
                more = message.get("more_body", False)
    except TimeoutError:
        # The connection is closed, as more of the body may come on it.
        late = f"the body did not come within {seconds:g} seconds"
        raise HTTPException(408, late, {"connection": "close"}) from None
    return type, bytes(body)


async def _pass_over(receive: Receive, seconds: float) -> None:
    """Read on to the end of a body, within limits: a client that still sends when the connection is closed is told of
    that alone, and never sees the answer.
    """
    rest, more = MOST_PASSED_OVER, True
    with suppress(TimeoutError):
        async with asyncio.timeout(min(seconds, LONGEST_PASSED_OVER)):
            while more and rest > 0:
                message = await receive()
                rest -= len(message.get("body", b""))
                more = message.get("more_body", False)


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"the body is too large; it may have {most:,} bytes")
