"""Connections of the server, with bounded memory for any input."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stream_pegasos.runtime.limits import LARGEST_HEAD
from stream_pegasos.runtime.refusals import Refusals

__all__ = ["CONNECTION", "REFUSALS", "HttpConnection"]

CONNECTION, REFUSALS = "connection", "refusals"  # their names in the state of a request
PIECE = 4 << 10  # bytes passed on at a time: parsing a request of a few bytes takes some thousand bytes of memory
LINGER = 1.0  # seconds for a client that still sends to read why it is refused

_DETAIL = orjson.dumps({"detail": f"the head of a request, and what follows its body, may have {LARGEST_HEAD:,} bytes"})
REFUSAL = b"\r\n".join(
    [
        b"HTTP/1.1 431 Request Header Fields Too Large",
        b"content-type: application/json",
        b"content-length: %d" % len(_DETAIL),
        b"connection: close",
        b"",
        _DETAIL,
    ]
)


class HttpConnection(asyncio.Protocol):
    """Passes the bytes of a connection to the server in small pieces: not before earlier requests are answered, and at
    most the largest head.

    Its own parser follows the requests in the bytes. The bytes not passed on are at most one read of the socket,
    because the socket is not read meanwhile. Requests find the connection in their state, and call `answered` on it.
    """

    def __init__(self, app_state: dict[str, Any], **options: Any) -> None:
        self._server = HttpToolsProtocol(app_state={**app_state, CONNECTION: self}, **options)
        self._refusals: Refusals | None = app_state.get(REFUSALS)
        self._parser: Any = httptools.HttpRequestParser(self)
        self._pending: bytes | memoryview = b""
        self._n_silent = 0  # bytes since the parser's last event: of a head, or after a body
        self._n_unanswered = 0  # requests
        self._in_body = self._is_told = False
        self._is_paused = self._is_reading_paused = False  # by the server; the socket
        self._is_over = False  # no more bytes are passed on

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connection_made(cast(Any, _Throttled(self._transport, self)))

    def connection_lost(self, error: Exception | None) -> None:
        if self._parser is not None:
            self._end()
            self._server.connection_lost(error)

    def eof_received(self) -> None:
        self._server.eof_received()

    def pause_writing(self) -> None:
        self._server.pause_writing()

    def resume_writing(self) -> None:
        self._server.resume_writing()

    def data_received(self, data: bytes) -> None:
        if not self._is_over:
            unread = b"".join([self._pending, data]) if self._pending else data
            self._pending = unread if len(unread) <= PIECE else memoryview(unread)  # slices without copies
            self._hand_on()

    def throttle(self, is_paused: bool) -> None:
        """Called when the server stops or resumes taking bytes."""
        self._is_paused = is_paused
        if not is_paused:
            self._hand_on()

    def answered(self) -> None:
        self._n_unanswered -= 1
        if self._pending:
            self._hand_on()

    @property
    def is_refused(self) -> bool:
        return self._parser is None

    def _may_go_on(self) -> bool:
        """Whether the server may get more: the next head, or the body of the only request."""
        return not self._is_paused and (not self._n_unanswered or (self._n_unanswered == 1 and self._in_body))

    def _hand_on(self) -> None:
        while self._pending and not self._is_over and self._may_go_on():
            size = min(PIECE, LARGEST_HEAD - self._n_silent)
            piece, self._pending = self._pending[:size], self._pending[size:]
            self._follow(piece)
            if self._n_silent >= LARGEST_HEAD:
                self._refuse()
            else:
                self._server.data_received(cast(bytes, piece))
        waits = self._is_paused or bool(self._pending)
        if waits != self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = waits
            (self._transport.pause_reading if waits else self._transport.resume_reading)()

    def _follow(self, piece: bytes | memoryview) -> None:
        self._is_told = False
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserError:
            self._is_over, self._pending = True, b""  # the server finds the same error, and closes
        except httptools.HttpParserUpgrade:  # the server ignores upgrades
            pass
        self._n_silent = 0 if self._is_told else self._n_silent + len(piece)

    # Events of the parser.

    def on_headers_complete(self) -> None:
        self._n_unanswered += 1
        self._in_body = self._is_told = True

    def on_body(self, body: bytes) -> None:
        self._is_told = True

    def on_message_complete(self) -> None:
        self._in_body, self._is_told = False, True

    def _refuse(self) -> None:
        """Answer that the head is too large, and close soon."""
        if not self._in_body or self._n_unanswered:
            self._transport.write(REFUSAL)
        if self._refusals is not None:
            self._refusals.add("431", "the head of a request is too large")
        self._end()
        self._server.connection_lost(None)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER, self._transport.close)

    def _end(self) -> None:
        self._parser, self._pending, self._is_over, self._is_paused = None, b"", True, False


class _Throttled:
    """The transport given to the server. If the server pauses reading through it, only the connection is paused."""

    def __init__(self, transport: asyncio.Transport, connection: HttpConnection) -> None:
        self._transport, self._connection = transport, connection
        self.write = transport.write  # an attribute, because each answer uses it

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        if not self._connection.is_refused:  # a refused connection closes soon
            self._transport.close()

    def pause_reading(self) -> None:
        self._connection.throttle(True)

    def resume_reading(self) -> None:
        self._connection.throttle(False)
