"""Middleware of all requests: it checks host and token, counts, and answers internal errors."""

from __future__ import annotations

import hmac
import logging
import re
from contextlib import suppress
from http import HTTPStatus
from time import perf_counter
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.service.access_log import LONGEST_PATH, AccessLog
from stream_pegasos.service.connections import CONNECTION
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.service.responses import as_json

log = logging.getLogger(__name__)

NOTHING: dict[str, Any] = {}
# The reasons of refusals, by status; the log has no other text about them.
REASONS = {
    400: "the Host header has another name, or the body does not come to its end",
    401: "the bearer token is missing or wrong",
    404: "there is no such path, message or label",
    405: "the path takes other methods",
    408: "the body does not come in time",
    413: "the body, a text or a list is too large",
    415: "the body has another content type",
    422: "the body or a parameter is not valid",
    503: "nothing can be learned, or asked of an encoder, now",
}


class RequestMiddleware:
    """Checks host and token, counts requests, and answers internal errors without a traceback. Hosts are the names
    allowed in the Host header, without the port: `"*.example.org"` for all subdomains, `"*"` for any host.
    """

    def __init__(
        self,
        app: ASGIApp,
        learner: LiveLearner,
        metrics: Metrics,
        open_paths: set[str],
        hosts: tuple[str, ...],
        access_log: AccessLog | None = None,
    ) -> None:
        self._app, self._learner, self._metrics, self._open_paths = app, learner, metrics, open_paths
        self._access_log = access_log
        self._token = None if learner.token is None else learner.token.encode()
        names = [re.escape(host.lower()).replace(r"\*", ".*") for host in hosts]
        self._host = re.compile(rf"({'|'.join(names)})(:\d*)?".encode(), re.IGNORECASE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, size, has_begun, body_begin = perf_counter(), 500, 0, False, b""

        async def watch(message: Message) -> None:
            nonlocal status, size, has_begun, body_begin
            if message["type"] == "http.response.start":
                status, has_begun = message["status"], True
            else:
                body = message.get("body", b"")
                size += len(body)
                body_begin = body_begin or (body if status >= 400 else b"")
            await send(message)

        try:
            await (self._refusal(scope) or self._app)(scope, receive, watch)
        except Exception as error:
            log.error("%a: %r", scope["path"][:LONGEST_PATH], error)
            if not has_begun:
                await as_json({"detail": "internal error"}, 500)(scope, receive, watch)
        finally:
            seconds = perf_counter() - start
            if status >= 400:
                self._refused(scope, status, body_begin)
            self._metrics.observe(scope["path"], status, seconds)
            if self._access_log is not None:
                self._access_log.write(scope, status, size, seconds)
            if (connection := scope.get("state", NOTHING).get(CONNECTION)) is not None:
                connection.answered()

    def _refused(self, scope: Scope, status: int, body_begin: bytes) -> None:
        """Count a refusal; from status 500 on it is a failure of the service. Internal errors are logged elsewhere."""
        is_failure = status >= 500
        self._learner.monitor.refused(
            f"{scope['method']} {scope['path']}", str(status), _detail(body_begin), is_failure
        )
        if status != 500:
            self._learner.refusals.add(str(status), REASONS.get(status, HTTPStatus(status).phrase), is_failure)

    def _refusal(self, scope: Scope) -> Response | None:
        host = authorization = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"authorization":
                authorization = value
        if scope["path"] == "/healthz":  # watchdogs use any host name, and the answer reveals nothing of the model
            return None
        if self._host.fullmatch(host) is None:
            return as_json({"detail": "the Host header has another name than those allowed"}, 400)
        if self._token is None or scope["path"] in self._open_paths:
            return None
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token):
            return None
        return as_json({"detail": "the bearer token is missing or wrong"}, 401, {"www-authenticate": "Bearer"})


def _detail(body: bytes) -> str:
    """The reason of a refusal in the answer."""
    with suppress(ValueError, LookupError, TypeError):
        return str(orjson.loads(body)["detail"])
    return ""
