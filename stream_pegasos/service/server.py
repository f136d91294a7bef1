"""The server behind the service."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stream_pegasos.service.work import Limits

LARGEST_HEAD = 64 << 10  # bytes


def serve(app: FastAPI, host: str, port: int, limits: Limits, on_listening: Callable[[str], None]) -> None:
    """Serve the application until SIGTERM or Ctrl-C.

    Parameters
    ----------
    app
        What `create_app` made.
    host, port
        Where to listen; port 0 for any that is free.
    limits
        Of which those on connections are kept here.
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

    class Connection(HttpToolsProtocol):
        """Hangs up on those who send no end of a head, or none in time."""

        n_bytes = 0  # of a head that has not come to its end
        in_head = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.watch()

        def watch(self) -> None:
            self.timer = self.loop.call_later(limits.seconds, self.transport.close)

        def connection_lost(self, error: Exception | None) -> None:
            self.timer.cancel()
            super().connection_lost(error)

        def data_received(self, data: bytes) -> None:
            if self.in_head:
                if self.n_bytes > LARGEST_HEAD:
                    self.transport.close()
                    return
                if self.n_bytes == 0:
                    self.timer.cancel()
                    self.watch()
                self.n_bytes += len(data)
            super().data_received(data)

        def on_headers_complete(self) -> None:
            self.in_head = False
            self.n_bytes = 0
            self.timer.cancel()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self.in_head = True
            super().on_message_complete()

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Connection,
        ws="none",
        access_log=False,
        log_level="error",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.concurrency,
        timeout_graceful_shutdown=10,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=2048) as listener:
        Server(config).run(sockets=[listener])
