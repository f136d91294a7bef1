"""The HTTP server of the service."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stream_pegasos.service.limits import Limits


class JoinedWrites:
    """A transport that sends the head and the body of a response together: two system calls would take a tenth of the
    time of a request.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._unsent = transport, list[bytes]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._send)
        self._unsent.append(data)

    def close(self) -> None:
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._unsent and not self._transport.is_closing():
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()


class HttpProtocol(asyncio.Protocol):
    """uvicorn's protocol over `JoinedWrites`."""

    def __init__(self, **options: Any) -> None:
        self._protocol = HttpToolsProtocol(**options)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._protocol.connection_made(JoinedWrites(transport))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def eof_received(self) -> None:
        self._protocol.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._protocol.connection_lost(error)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()


def serve(app: Starlette, host: str, port: int, limits: Limits, on_listening: Callable[[str], None]) -> None:
    """Serve the application until SIGTERM or Ctrl-C; a second signal changes nothing.

    Parameters
    ----------
    app
        What `create_app` made.
    host, port
        Where to listen; port 0 for any that is free.
    limits
        The limits; there may be four times as many connections as requests whose bodies are coming.
    on_listening
        Called with the URL, once requests may come.

    Raises
    ------
    OSError
        If it cannot listen there.
    """

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                address, at = listener.getsockname()[:2]
                on_listening(f"http://{f'[{address}]' if ':' in address else address}:{at}/")

        def handle_exit(self, sig: int, frame: Any) -> None:
            if not self.should_exit:  # a second Ctrl-C would leave out the last checkpoint
                super().handle_exit(sig, frame)

        async def shutdown(self, sockets: Any = None) -> None:
            await app.state.finish()  # which may take longer than the timeout below
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=HttpProtocol,
        ws="none",
        access_log=False,
        log_level="error",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=4 * limits.concurrency,
        timeout_graceful_shutdown=10,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=2048) as listener:
        Server(config).run(sockets=[listener])
