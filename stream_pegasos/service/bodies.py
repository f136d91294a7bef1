"""Reception of a request's body, within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import suppress
from types import coroutine
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope

from stream_pegasos.common.display import printable

__all__ = ["receive_body"]

MOST_PASSED_OVER, LONGEST_PASSED_OVER = 64 << 20, 5.0  # bytes and seconds of a too large body that is still read


async def receive_body(
    scope: Scope, receive: Receive, types: Sequence[str], most: int, seconds: float
) -> tuple[str, bytes]:
    """The content type of a request, in lower case, and its body. The request is refused if it has another type or is
    encoded, has more than `most` bytes, or does not come within so many seconds.
    """
    headers = dict(scope["headers"])
    type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    if type not in types:
        # A browser asks the service before a page of another site may send these types.
        raise HTTPException(415, f"the content type must be {' or '.join(types)}")
    if (encoding := headers.get(b"content-encoding", b"identity").strip().lower()) != b"identity":
        name = printable(encoding.decode("latin-1"), 40)
        raise HTTPException(415, f"the content encoding must be none, got {name}; send the body as it is")
    length = headers.get(b"content-length", b"")
    # Python refuses to read very many digits.
    if length.isdigit() and (len(length) > 18 or int(length) > most):
        if b"expect" not in headers:  # a client that waits for `100 Continue` has sent nothing
            await _pass_over(receive, seconds)
        raise _too_large(most)
    body, more, end = bytearray(), True, asyncio.get_running_loop().time() + seconds
    try:
        while more:
            message = await _received(receive(), end)
            if message["type"] == "http.disconnect":
                raise HTTPException(400, "the body did not come to its end")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > most:
                if more:
                    await _pass_over(receive, seconds)
                raise _too_large(most)
    except TimeoutError:
        # The connection is closed, because more of the body may come.
        late = f"the body did not come within {seconds:g} seconds"
        raise HTTPException(408, late, {"connection": "close"}) from None
    return type, bytes(body)


async def _received(part: Any, end: float) -> Any:
    """The next part of a body, until the loop's time `end`. Most parts are there already; for these a timer would take
    a twentieth of the time of a small request.
    """
    try:
        waited_for = part.send(None)
    except StopIteration as there:
        return there.value
    async with asyncio.timeout_at(end):
        return await _rest(part, waited_for)


@coroutine
def _rest(part: Any, waited_for: Any) -> Generator[Any, Any, Any]:
    """Continue a coroutine that has begun and waits for `waited_for`; return its result."""
    try:
        while True:
            yield waited_for
            waited_for = part.send(None)
    except StopIteration as there:
        return there.value


async def _pass_over(receive: Receive, seconds: float) -> None:
    """Read to the end of a body, within limits. If a connection is closed while the client still sends, the client sees
    only this error, and never the answer.
    """
    n_left, more = MOST_PASSED_OVER, True
    with suppress(TimeoutError):
        async with asyncio.timeout(min(seconds, LONGEST_PASSED_OVER)):
            while more and n_left > 0:
                message = await receive()
                n_left -= len(message.get("body", b""))
                more = message.get("more_body", False)


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"the body must have at most {most:,} bytes, got more")
