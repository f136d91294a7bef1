"""Middleware of every request: it checks the token, counts, and answers internal errors."""

from __future__ import annotations

import hmac
import sys
from time import perf_counter
from typing import Any

from stream_pegasos.service.messages import as_json
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.service.work import Service


class RequestMiddleware:
    """Checks the token, counts requests, and answers internal errors without a traceback."""

    def __init__(self, app: Any, service: Service, metrics: Metrics, open_paths: set[str]) -> None:
        self._app, self._service, self._metrics, self._open_paths = app, service, metrics, open_paths
        self._token = None if service.token is None else service.token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, begun = perf_counter(), 500, False

        async def watch(message: Any) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
            await send(message)

        try:
            if self._may(scope):
                await self._app(scope, receive, watch)
            else:
                refusal = as_json(
                    {"detail": "the bearer token is missing or wrong"}, 401, {"www-authenticate": "Bearer"}
                )
                await refusal(scope, receive, watch)
        except Exception as error:
            print(f"stream-pegasos: {scope['path']!a}: {error!r}", file=sys.stderr, flush=True)
            if not begun:
                await as_json({"detail": "internal error"}, 500)(scope, receive, watch)
        finally:
            if status >= 400:
                self._service.monitor.n_failed += 1
            self._metrics.observe(scope["path"], status, perf_counter() - start)

    def _may(self, scope: Any) -> bool:
        if self._token is None or scope["path"] in self._open_paths:
            return True
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, token = given.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token)
