"""The HTTP server of the service."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from stream_pegasos.runtime.limits import Limits
from stream_pegasos.service.connections import HttpConnection


def serve(app: Starlette, host: str, port: int, limits: Limits, on_listening: Callable[[str], None]) -> None:
    """Serve the application of `create_app` until SIGTERM or Ctrl-C; a second signal has no effect. With port 0 it
    listens on any free port. `on_listening` is called with the URL once requests are accepted.
    """

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                address, at = listener.getsockname()[:2]
                on_listening(f"http://{f'[{address}]' if ':' in address else address}:{at}/")

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if not self.should_exit:  # a second Ctrl-C would skip the last checkpoint
                super().handle_exit(sig, frame)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await app.state.finish()  # may take longer than the timeout below
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=HttpConnection,
        ws="none",
        access_log=False,
        log_level="error",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=10,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=2048) as listener:
        Server(config).run(sockets=[listener])
