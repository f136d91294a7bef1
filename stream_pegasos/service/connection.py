"""A client's connection to the server, on which nobody waits for the client without end."""

from __future__ import annotations

import contextlib
import itertools
from asyncio import TimerHandle, Transport
from collections.abc import Callable, Sized
from typing import Any, NamedTuple

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stream_pegasos.service.bodies import PATIENCE
from stream_pegasos.service.limits import Limits

LARGEST_HEAD = 64 << 10  # bytes
LINGER = 1.0  # seconds in which a client that is still sending may read its answer
MOST_WAITING = 64  # requests of a connection, behind the one that is at work
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

turns = itertools.count(1)  # the time is the same for all that comes at once


class ClientTransport(NamedTuple):
    """What is left to uvicorn of the way to the client."""

    write: Callable[[bytes], None]
    close: Callable[[], None]
    is_closing: Callable[[], bool]


class Flow(FlowControl):
    """Nothing more is read from a client as long as requests of it wait for those before them."""

    def __init__(self, transport: Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """Waits for its client only so long: for the end of a head, and for the client to take what was written.

    Requests may be sent before those before them are answered. Of so many that more than 64 wait, the rest is not read:
    the last answer says that the connection ends.

    Where the answer is complete and the body is not, the connection ends: it sends nothing more, and throws away what
    comes for a moment, so that a client that is still sending reads its answer and not that the connection was reset.
    When there are more connections than may be, that one goes which has waited longest for its client while no request
    of the client was at work.
    """

    def __init__(self, limits: Limits, **named: Any) -> None:
        super().__init__(**named)
        self._limits = limits
        self._socket: Transport
        self._timer: TimerHandle | None = None
        self._turn = 0  # when it began to wait for its client
        self._body_due = 0.0
        self._in_head = True  # or before it
        self._n_bytes = 0  # that came without an end of the head, or without anything of the body
        self._keeps_alive = False
        self._is_full = False  # so that nothing of what comes is read any more
        self._is_ending = False
        self._unsent: list[bytes] = []  # of this turn of the event loop: a head and its body go together

    # Its beginning and its end

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._socket = transport
        self.flow = Flow(transport, self.pipeline)
        self.transport = ClientTransport(self._write, self._end, self._is_closing)  # type: ignore[assignment]
        self._turn = next(turns)
        self._abort_in(self._limits.seconds)
        if len(self.connections) > self._limits.concurrency:
            others: set[Any] = self.connections - {self}
            waiting = [other for other in others if other._is_waiting()]
            if waiting:
                min(waiting, key=lambda other: other._turn)._give_way()

    def eof_received(self) -> None:
        # The transport closes itself now, once all is written.
        self._send()
        self._is_ending = True
        self._abort_in(self._limits.seconds)

    def connection_lost(self, error: Exception | None) -> None:
        self._is_ending = True
        self._unsent.clear()
        self._cancel()
        super().connection_lost(error)

    def shutdown(self) -> None:
        self._keeps_alive = False
        super().shutdown()

    def _is_waiting(self) -> bool:
        if self._is_ending or self.cycle is None or self.cycle.response_complete or self.flow.write_paused:
            return True
        return not self._in_head and self.loop.time() > self._body_due

    def _give_way(self) -> None:
        self.connections.discard(self)
        if self.cycle is None and not self._is_ending:
            self._socket.write(UNAVAILABLE)
            self._socket.close()
        else:
            self._socket.abort()

    def _write(self, data: bytes) -> None:
        if self._is_ending:
            return
        if not self._unsent:
            self.loop.call_soon(self._send)
        self._unsent.append(data)

    def _send(self) -> None:
        if self._unsent:
            self._socket.write(b"".join(self._unsent))
            self._unsent.clear()

    def _is_closing(self) -> bool:
        return self._is_ending or self._socket.is_closing()

    def _end(self) -> None:
        if self._is_ending:
            return
        self._send()
        self._is_ending = True
        self.pipeline.clear()  # nobody is going to answer them
        if (self._in_head and not self._n_bytes) or self._socket.is_closing():
            self._socket.close()
            self._abort_in(self._limits.seconds)
            return
        self.flow.resume_reading()
        with contextlib.suppress(OSError):
            self._socket.write_eof()
        self._call_in(LINGER, self._linger_on)

    def _linger_on(self) -> None:
        if self._socket.get_write_buffer_size():
            self._abort_in(self._limits.seconds)
        else:
            self._socket.abort()

    def _abort_in(self, seconds: float) -> None:
        self._call_in(seconds, self._socket.abort)

    def _call_in(self, seconds: float, function: Callable[[], None]) -> None:
        self._cancel()
        self._timer = self.loop.call_later(seconds, function)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # What comes

    def data_received(self, data: bytes) -> None:
        if self._is_ending or self._is_full:
            return
        if self._n_bytes > LARGEST_HEAD:
            self._socket.abort()
            return
        self._n_bytes += len(data)
        super().data_received(data)
        if self._timer is None and self._in_head and self._n_bytes:
            self._abort_in(self._limits.seconds)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) == MOST_WAITING:
            self._is_full = True
            self.cycle.keep_alive = False
        if self._is_full:
            return
        self._in_head = False
        self._n_bytes = 0
        self._turn, self._body_due = next(turns), self.loop.time() + PATIENCE
        if not self.flow.write_paused:
            self._cancel()
        super().on_headers_complete()
        # An answer that comes before the end of the body says that it is the last one.
        self._keeps_alive, self.cycle.keep_alive = self.cycle.keep_alive, False

    def on_body(self, body: bytes) -> None:
        if self._is_full:
            return
        self._n_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._is_full:
            return
        self._in_head = True
        self._n_bytes = 0
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._keeps_alive
        super().on_message_complete()

    # What goes

    def pause_writing(self) -> None:
        super().pause_writing()
        self._turn = next(turns)
        self._abort_in(self._limits.seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._is_ending:
            self._cancel()

    def on_response_complete(self) -> None:
        self._turn = next(turns)
        super().on_response_complete()
